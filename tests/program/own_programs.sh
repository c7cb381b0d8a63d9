#!/usr/bin/env bash
# Programs of the user's own that behave badly: what becomes of their run, and of the study.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work

# own NAME SCRIPT OVERRIDE...: a study of one run of a shell script; its folder is in $folder
own() {
    local name=$1
    printf '%s\n' "$2" >"$name.sh"
    shift 2
    run run test_matrix "experiment.command=\"bash $name.sh\"" device=cpu:0 output_dir="$name" \
        experiment.max_retries=0 "$@"
    folder=$(echo "$name"/test_matrix/*/*)
}

# more figures than anybody needs: all are kept, and it is said that printing them took time
own chatty 'seq 25000 | sed "s/.*/{\"n\": &}/"'
expect_status 0
count=$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM metric").fetchone()[0])' "$folder/study.db")
[ "$count" = 25000 ] || fail "$count figures of 25000"

# asked to end, it may save what it has, and what it says then is in the log
own saving 'trap "echo saved; exit 0" TERM; sleep 100 & wait' experiment.test.timeout_s=2
expect_status 1
expect_err "timed out after 2"
grep -q saved "$folder"/logs/*.stdout || fail "it was not asked, or not heard: $(ls "$folder/logs")"

# ranks of a gang have logs of their own, and a failed one's last lines say whose they are
own ranks 'echo "said by $RANK"; echo "lost by $RANK" >&2; sleep 0.3; exit "$RANK"' \
    device=cpu:0/2 'gpu_ids=[[0,1]]'
expect_status 1
expect_err 'rank 1: .*its last line: lost by 1'
[ "$(cat "$folder"/logs/gpu0+1_numa0_bash.stdout)" = "said by 0" ] || fail "rank 0's log"
[ "$(cat "$folder"/logs/gpu0+1_numa0_bash.rank1.stdout)" = "said by 1" ] || fail "rank 1's log"
run show "$folder" --run gpu0+1_numa0_bash
expect_out '^  rank 0: lost by 0'
expect_out '^  rank 1: lost by 1'
expect_out 'logs/gpu0\+1_numa0_bash.rank1.stderr'

# it makes results.json unwritable: the status says so, and the same command completes the files
own spoiling 'cd spoiling/test_matrix/*/* && rm results.json && mkdir results.json'
expect_status 1
expect_err "results.json: Is a directory"
rmdir "$folder/results.json"
own spoiling 'exit 1'
expect_status 0
expect_err "resuming .*: 1 of 1 runs"
cp "$folder/results.json" "$work/out"
json 'len(d) == 1 and d[0]["success"]'
[ ! -e "$folder/.room" ] || fail "the files are complete, and yet .room says that they aren't"

finish
