# shellcheck shell=bash
# What the trackers' tests share: their packages, a study of 8 runs, and what compares it. The packages
# are installed once, into build/trackers: by uv where that can be had, which takes a fifth of pip's time.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
packages=$source_dir/build/trackers
names=(trackio tensorboard wandb mlflow-skinny sqlalchemy alembic flask flask-cors)

install_with_uv() {
    local uv=$source_dir/build/uv/bin/uv
    command -v uv >/dev/null && uv=uv
    [ "$uv" = uv ] || [ -x "$uv" ] ||
        python3 -m pip install -q --only-binary=:all: --target "${uv%/bin/uv}" uv || return
    UV_SYSTEM_CERTS=true "$uv" pip install -q --only-binary :all: --target "$packages" "${names[@]}"
}

install_with_pip() {
    rm -rf "$packages"
    python3 -m pip install -q --only-binary=:all: --no-compile --target "$packages" "${names[@]}"
}

exec 9>"$source_dir/build/trackers.lock"
flock 9
if [ ! -e "$packages/whole" ]; then
    rm -rf "$packages"
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    if ! { install_with_uv || install_with_pip; } >"$work/pip" 2>&1 9>&-; then
        echo "SKIP: the trackers' packages can't be installed: $(tail -1 "$work/pip")"
        exit 77
    fi
    touch "$packages/whole"
fi
exec 9>&-

cd "$work" || exit 1
unset WANDB_DIR WANDB_ENTITY HF_HOME "${!MLFLOW_TRACKING_@}" "${!GPULAB_TRACK_@}"
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TRACKIO_DIR=$work/trackio
# shellcheck disable=SC2034 # the tests use it
check=(env "PYTHONPATH=$packages" python3 "$source_dir/tests/program/trackers.py")

# mounted COMMANDS GPULAB_ARGS...: as run, after shell commands in a mount namespace of its own
can_mount() {
    unshare --map-root-user --mount true 2>/dev/null
}
mounted() {
    what="$1; gpulab ${*:2}"
    unshare --map-root-user --mount sh -ec "$1; shift; exec \"\$@\"" sh "$1" "$gpulab" "${@:2}" >out 2>err </dev/null
    status=$?
}

# what a program reports, in 8 runs; the second reports values that are no numbers, and names of theirs
cat >train.sh <<'PROGRAM'
for i in $(seq 60); do echo "{\"step\": $((10 * i)), \"loss\": $(((97 * i + $1) % 61)).$1, \"acc\": 0.$i}"; done
[ "$1" != 2 ] || printf '{"step": 700, "loss": NaN, "acc": Infinity, "timestamp": 3, "rate": 5}\n{"step": 710, "loss": -Infinity}\n'
PROGRAM
# shellcheck disable=SC2034 # the tests use it
study=(test_matrix device=cpu:0 '~experiment.matrix.optimizer' 'experiment.command="bash train.sh {seed}"'
    '+experiment.matrix.seed=[1,2,3,4]' experiment.repeat=2 --no-report -q)
