#!/usr/bin/env bash
# A GPU in trouble leaves the monitor running, at next to no cost, with the gap marked: each fault that
# the fake driver can play, in recordings; and a GPU that hangs, on the screen of top.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
fake=$(realpath "$3")/fake
[ -e "$fake/libnvidia-ml.so.1" ] || { echo "skipped: no fake driver here"; exit 77; }
cd "$work" || exit 1
few=()
case ${ASAN_OPTIONS:-}$3 in */asan | */tsan) few=(few) ;; esac
python3 "$source_dir/tests/program/monitor_faults.py" "$gpulab" "$fake" "$work" "${few[@]}" &
recordings=$!

# --- top: given a GPU whose call into the driver doesn't return, then the screen goes on ---
tm() {
    tmux -S "$work/tmux" -f /dev/null "$@"
}
# shellcheck disable=SC2317 # the trap calls it
clean() {
    tm kill-server 2>/dev/null
    wait
    rm -rf "$work"
}
trap clean EXIT
await() { # PATTERN: until some line of the screen matches
    local i
    for ((i = 0; i < 1000; i++)); do
        tm capture-pane -p -t 0 | grep -Eq -- "$1" && return 0
        sleep 0.02
    done
    fail "the screen never shows '$1':
$(tm capture-pane -p -t 0)"
}
script="gpus=2; power=100; utilization=10@0:20@3.2; hang=nvmlDeviceGetPowerUsage:60@4/1"
tm new-session -d -x 80 -y 24 "env LD_LIBRARY_PATH='$fake' GPULAB_FAKE_NVML='$script' \
    ASAN_OPTIONS='${ASAN_OPTIONS:-}' TSAN_OPTIONS='${TSAN_OPTIONS:-}' \
    '$gpulab' top --interval 100ms; echo \"status \$?\"; sleep 60" || fail "tmux doesn't start"
await '^ +1 .*no answer for .*: its driver call hangs'
await '^.? +0 .* 20% '
tm send-keys -t 0 '?'
await 'Shift-Tab'
tm send-keys -t 0 Escape q
await '^status 0'

# --- given a driver whose start hangs, then TERM and Ctrl-C end what waits for it ---
for words in "record -o never.db" "top --json"; do
    # shellcheck disable=SC2086 # several words
    env LD_LIBRARY_PATH="$fake" GPULAB_FAKE_NVML="gpus=2; hang=nvmlInit_v2:60@1" \
        "$gpulab" $words >"$work/out" 2>&1 &
    waits=$!
    for ((i = 0; i < 1000; i++)); do
        grep -qs lab-open /proc/$waits/task/*/comm && break
        sleep 0.02
    done
    sleep 0.1 # probes before that one open in no time
    kill -TERM $waits
    wait $waits
    result=$?
    [ $result = 143 ] || fail "gpulab $words: status $result after TERM: $(cat "$work/out")"
done
[ ! -e never.db ] || fail "a recording was begun"

# --- given a driver that hangs, then whoever asks for devices says in which call, and ends ---
while read -r call words; do
    # shellcheck disable=SC2086 # several words
    env HOME="$work" LD_LIBRARY_PATH="$fake" GPULAB_FAKE_NVML="gpus=2; hang=$call:90@1" GPULAB_DRIVER_LIMIT=0.2 \
        timeout 30 "$gpulab" $words >"$work/out" 2>&1 </dev/null
    result=$?
    [ $result -lt 124 ] || fail "gpulab $words: status $result, $call hangs: $(cat "$work/out")"
    grep -q "the NVIDIA driver hangs: $call has not returned for 0.2 s" "$work/out" ||
        fail "gpulab $words: no word of $call: $(cat "$work/out")"
done <<'END'
nvmlInit_v2 devices
nvmlInit_v2 advise
nvmlInit_v2 run quick_test device=cuda:0
nvmlDeviceGetUUID devices
END

# --- given a driver that isn't loaded yet, then an exporter says so once, and finds its GPUs later ---
env LD_LIBRARY_PATH="$fake" GPULAB_FAKE_NVML="gpus=2; fail=nvmlInit_v2:9@1x2" \
    "$gpulab" exporter --listen 127.0.0.1:0 --interval 50ms >"$work/out" 2>"$work/err" &
exporter=$!
for ((i = 0; i < 500; i++)); do
    grep -q 'the NVIDIA driver is back after' "$work/err" && break
    sleep 0.02
done
kill -TERM $exporter
wait $exporter
[ "$(grep -c 'not loaded' "$work/err")" = 1 ] || fail "told more than once, or never: $(cat "$work/err")"
grep -q 'the NVIDIA driver is back after' "$work/err" || fail "the GPUs never came: $(cat "$work/err")"

wait "$recordings" || fail "see above"
finish
