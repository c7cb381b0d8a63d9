#!/usr/bin/env bash
# A study's database is opened once by each command that reads one study, however much it shows.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash"
export HOME="$work/home" XDG_STATE_HOME="$work/state" XDG_CACHE_HOME="$work/cache"
export GPULAB_LOCK_DIR="$work/locks"
mkdir -p "$HOME"
cd "$work" || exit 1

# expect_once FOLDER ARGS...
expect_once() {
    local folder=$1 opens
    shift
    opens=$(python3 "$source_dir/tests/program/opens.py" "$folder/study.db" "$gpulab" "$@" 2>&1)
    [ "$opens" = 1 ] || fail "gpulab $*: study.db is opened $opens times"
}

# the count itself: a program that opens it twice is seen to
run run quick_test device=sim:l40s-10 --no-report
expect_status 0
ended=$(dirname "$(find "$work/outputs" -name study.db)")
twice=$(python3 "$source_dir/tests/program/opens.py" "$ended/study.db" cat "$ended/study.db" "$ended/study.db")
[ "$twice" = 2 ] || fail "two opens are counted as '$twice'"

for study in "$ended" quick_test; do
    expect_once "$ended" report "$study"
    expect_once "$ended" report "$study" --format md
    expect_once "$ended" show "$study"
    expect_once "$ended" show "$study" --runs
    expect_once "$ended" show "$study" --config
    expect_once "$ended" status "$study"
    expect_once "$ended" export "$study"
    expect_once "$ended" analyze scaling "$study"
    expect_once "$ended" advise --study "$study"
done
expect_once "$ended" estimate "$ended"
expect_once "$ended" list
run show "$ended" --runs --json
id=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["runs"][0]["run_id"])' "$work/out")
expect_once "$ended" show "$ended" --run "$id"

# A study of programs has metrics, which are read beside its runs. One that isn't finished is among
# the studies from which the time left is estimated.
cat >train <<'END'
#!/bin/sh
echo "Final loss: $1"
[ "$1" = 0.5 ]
END
chmod +x train
run run test_matrix "experiment.command='$work/train {lr}'" '~experiment.matrix.optimizer' \
    '+experiment.matrix.lr=[0.5,0.25]' --no-report
expect_status 1
left=$(dirname "$(find "$work/outputs/test_matrix" -name study.db)")
expect_once "$left" report "$left"
expect_once "$left" show test_matrix
expect_once "$left" status "$left"
expect_once "$left" estimate "$left"

finish
