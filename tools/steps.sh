# shellcheck shell=bash
# Steps with a line each, for tools/check and .ci/run: name, ok or failed, duration. A step's output
# is shown only if it fails; all steps run, and steps_end gives the verdict.
#
#   step NAME COMMAND...        run it now
#   step_start NAME COMMAND...  run it beside what follows; steps_join waits for all of these
#   step_skip NAME WHY
#   steps_end                   exits 1 if any step failed

steps_log=${steps_log:?set it to the folder for the steps output}
steps_failed=()
steps_started=()
mkdir -p "$steps_log"

# to its own file, so that steps that run side by side don't mix
step_run() { # NAME COMMAND...
    local file=$steps_log/${1// /-} start=$EPOCHREALTIME status=ok
    "${@:2}" >"$file.log" 2>&1 </dev/null || status=failed
    echo "$status $(((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}) / 100000))" >"$file.status"
}

step_report() { # NAME
    local file=$steps_log/${1// /-} status tenths
    read -r status tenths <"$file.status"
    printf '%-28s %-7s %5d.%d s\n' "$1" "$status" $((tenths / 10)) $((tenths % 10))
    if [ "$status" != ok ]; then
        steps_failed+=("$1")
        tail -n "${steps_tail:-200}" "$file.log" | sed 's/^/    /'
    fi
}

step() {
    step_run "$@"
    step_report "$1"
}

step_start() {
    step_run "$@" &
    steps_started+=("$1")
}

steps_join() {
    wait
    local name
    for name in "${steps_started[@]}"; do
        step_report "$name"
    done
    steps_started=()
}

step_skip() {
    printf '%-28s %-7s %s\n' "$1" skipped "$2"
}

steps_end() {
    printf '%-28s %-7s %5d s\n' total "" "$SECONDS"
    if [ ${#steps_failed[@]} -gt 0 ]; then
        local IFS=,
        echo "failed: ${steps_failed[*]}; full output in $steps_log" >&2
        exit 1
    fi
}
