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

# its rate is its own: tokens or words, else steps over time (all of it, where they come at once), else runs
cat >paces.sh <<'PROGRAM'
case $1 in
ranks) for i in 1 2 3; do for r in 0 1; do echo "[rank$r]: step $i/3 | loss 2 | 20$((9 - r)) tok/s"; done; done ;;
tokens) for i in 1 2 3; do echo "step $i/3 | loss 2 | 45 ms | 10$i tok/s"; done ;;
json) echo '{"step": 1, "loss": 2, "train/tokens_per_second": 512}' ;;
steps) for i in 1 2 3 4; do echo "iter $((10 * i)): loss 2"; sleep 0.2; done ;;
burst) sleep 0.5; for i in 1 2 3 4; do echo "iter $((10 * i)): loss 2"; done ;;
late) sleep 1; for i in 1 2 3 4 5 6 7 8; do echo "iter $((10 * i)): loss 2"; sleep 0.05; done ;;
words) echo 'step 1 loss=2, wps=512' ;;
again) for i in 1 2 3 1 2 3; do echo "iter $((10 * i)): loss 2"; sleep 0.1; done ;;
epochs) for i in 1 2 3; do echo "{'loss': 2, 'epoch': 0.$i, 'eval_tokens_per_s': 5}"; sleep 0.2; done ;;
mixed) for i in 1 2 3 4; do echo "[rank0]: iter $i: loss 2"; sleep 0.1; echo "{'val_loss': 2, 'epoch': $i}"; done ;;
none) sleep 0.2; echo '{"loss": 2}' ;;
esac
PROGRAM
run run test_matrix device=cpu:0 output_dir=paces '~experiment.matrix.optimizer' --json --no-report \
    'experiment.command="sh paces.sh {kind}"' '+experiment.matrix.kind=[tokens,ranks,json,steps,burst,late,words,again,epochs,mixed,none]'
expect_status 0
cp "$work/out" paces.json
run export paces/test_matrix/*/* --what metrics
expect_out '^gpu0_numa0_kindepochs,0,loss,,2.0,[0-9]+,0.2,'
# by their definitions, from each line's time and the program's
python3 - paces.json "$work/out" <<'CHECK' || fail "rates of programs"
import csv, json, sys
lines = {}
for line in csv.DictReader(open(sys.argv[2])):
    if line["name"] == "loss" and line["step"]:
        lines.setdefault(line["run_id"], []).append((float(line["step"]), int(line["time_ns"]) * 1e-9))
for run in json.load(open(sys.argv[1]))["runs"]:
    kind, all_s = run["label"].removeprefix("kind"), run["latency_ms"]["mean"] / 1e3
    on = [(b, a) for a, b in zip(lines.get(run["run_id"], []), lines.get(run["run_id"], [])[1:]) if b[0] > a[0]]
    steps, span_s = (sum(b[i] - a[i] for b, a in on) for i in (0, 1))
    times = sum(b[1] > a[1] for b, a in on)
    least = 0.02 if times >= 5 and 2 * times >= len(on) else 0.5
    pace = steps / (span_s if span_s >= least * all_s else all_s)
    want = {"tokens": (102, "tokens/s"), "ranks": (208, "tokens/s"), "json": (512, "tokens/s"), "words": (512, "words/s"),
            "none": (3600 / all_s, "runs/h"), "epochs": (3600 * pace, "epochs/h")}.get(kind, (pace, "steps/s"))
    ok = abs(run["rate"] / want[0] - 1) < 1e-6 and run["rate_unit"] == want[1]
    print(kind, run["rate"], run["rate_unit"], want, steps, span_s, all_s)
    assert ok and steps == {"steps": 30, "burst": 30, "again": 40}.get(kind, steps)
    assert kind not in ("burst", "late") or span_s < all_s / 2
    assert kind != "late" or pace > 1.5 * steps / all_s
CHECK
run show paces/test_matrix/*/*
grep -q 'samples/s' "$work/out" && fail "$what: samples of a program"
run show paces/test_matrix/*/* --run gpu0_numa0_kindnone
expect_out 'done, [0-9]+ runs/h'

# ranks of a gang have logs of their own, and a failed one's last lines say whose they are
# shellcheck disable=SC2016 # the program's own shell expands it
own ranks 'echo "said by $RANK"; echo "lost by $RANK" >&2; sleep 0.3; exit "$RANK"' \
    device=cpu:0/2 'gpu_ids=[[0,1]]'
expect_status 1
expect_err 'rank 1: .*its last line: lost by 1'
[ "$(cat "$folder"/logs/gpu0+1_numa0_ranks.stdout)" = "said by 0" ] || fail "rank 0's log"
[ "$(cat "$folder"/logs/gpu0+1_numa0_ranks.rank1.stdout)" = "said by 1" ] || fail "rank 1's log"
run show "$folder" --run gpu0+1_numa0_ranks
expect_out '^  rank 0: lost by 0'
expect_out '^  rank 1: lost by 1'
expect_out 'logs/gpu0\+1_numa0_ranks.rank1.stderr'

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
