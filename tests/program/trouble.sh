#!/usr/bin/env bash
# What happens to a study from outside: its folder goes, its disk has limits, its device is taken.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work

# sleeps SECONDS NAME: the words for a study of so many runs, each of which sleeps so long
sleeps() { words=(test_matrix device=cpu:0 'experiment.command="sleep {s}"' "+experiment.matrix.s=[$1]" output_dir="$2"); }

# start ARGS...: in the background, as $pid, with Ctrl-C as a terminal would have it
start() {
    what="gpulab $*"
    env --default-signal=INT "$gpulab" "$@" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
}

end() {
    wait "$pid"
    status=$?
}

# wait_for PATTERN: until a line of its messages matches
wait_for() {
    for _ in $(seq 500); do
        grep -Eq -- "$1" "$work/err" && return
        sleep 0.02
    done
    fail "$what: never said '$1'"
}

# its folder is renamed: nothing more is acknowledged, and it goes on where it lies now
sleeps 0.31,0.32 named
start run "${words[@]}"
wait_for '^\[1/2\] .* begins'
mv named renamed
end
expect_status 1
expect_err "study.db is gone: it was moved or removed"
grep -q 'iterations/s' "$work/err" && fail "$what: a result in a file that is gone: $(cat "$work/err")"
sleeps 0.31,0.32 renamed
run run "${words[@]}"
expect_status 0
expect_err "resuming .*renamed.*: 0 of 2 runs are done"

# results.json can't be written: said once
sleeps 0.01 blocked
env GPULAB_FAILPOINT=before-ack "$gpulab" run "${words[@]}" >/dev/null 2>&1
folder=$(echo blocked/test_matrix/*/*)
rm "$folder/results.json"
mkdir "$folder/results.json"
run run "${words[@]}"
expect_status 1
expect_one_line
expect_err "results.json: Is a directory"
rmdir "$folder/results.json"
run run "${words[@]}"
expect_status 0

# the row of a run is gone: said, and nothing is begun
sleeps 0.01,0.02 lacking
env GPULAB_FAILPOINT=after-commit "$gpulab" run "${words[@]}" >/dev/null 2>&1
python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None).execute("DELETE FROM run WHERE number = 1")' lacking/*/*/*/study.db
run run "${words[@]}"
expect_status 1
expect_one_line
expect_err "lacking/.* holds 1 runs, but its plan has 2: start over with experiment.resume=false"

# no /proc: said, instead of a path that was wrong
without_proc='mount -t tmpfs none /proc && exec "$@"'
if unshare --map-root-user --mount sh -c "$without_proc" sh true 2>/dev/null; then
    sleeps 0.01 unmounted
    what="gpulab run without /proc"
    unshare --map-root-user --mount sh -c "$without_proc" sh "$gpulab" run "${words[@]}" >"$work/out" 2>"$work/err"
    status=$?
    expect_status 1
    expect_err "can't start 'gpulab': /proc isn't mounted"
    grep -q 'Check the path' "$work/err" && fail "$what: a hint at a path: $(cat "$work/err")"
fi

# a file may not grow (ulimit -f, here 20 kB): an error as of a full disk, and nothing is left behind
sleeps 0.01 limited
what="gpulab run, under ulimit -f"
(ulimit -f 20 && exec "$gpulab" run "${words[@]}" >"$work/out" 2>"$work/err")
status=$?
expect_status 1
expect_one_line
[ -z "$(find limited -type f 2>/dev/null)" ] || fail "$what left $(find limited -type f)"

# runner and worker are killed at once: what is left of them is named, and ended it is out of the way
sleeps 60 killed
start run "${words[@]}"
wait_for ' begins'
program=
for _ in $(seq 500); do
    worker=$(pgrep -P "$pid") && program=$(pgrep -P "$worker" -x sleep) && break
    sleep 0.02
done
kill -STOP "$pid" "$worker"
kill -KILL "$pid" "$worker"
wait "$pid" 2>/dev/null
run run "${words[@]}"
expect_status 2
expect_err "is locked by process $program, which outlived its runner, process $pid"
kill "$program"

# another study has the device: Ctrl-C ends the waiting, and promises to finish nothing
sleeps 60 holder
start run "${words[@]}"
holder=$pid
wait_for ' begins'
sleeps 0.01 waiter
start run "${words[@]}"
wait_for "waiting for cpu:0.*: process $holder "
kill -INT "$pid"
end
expect_status 130
expect_err "stopped while waiting for cpu:0"
grep -q "under way" "$work/err" && fail "$what: nothing was under way: $(cat "$work/err")"
kill -TERM "$holder"
wait "$holder"

finish
