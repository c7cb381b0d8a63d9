#!/usr/bin/env bash
# A program of the user's own over a matrix: its report says how long it took and what it said last.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work

cat >"$work/train" <<'SCRIPT'
#!/bin/sh
echo "Iter 1 loss 9"
echo "Iter 2 loss $1"
echo "Final loss: $1"
SCRIPT
chmod +x "$work/train"
run run test_matrix "experiment.command='$work/train {lr}'" '~experiment.matrix.optimizer' \
    '+experiment.matrix.lr=[0.5,0.25]' output_dir="$work/outputs"
expect_status 0
expect_out '^test_matrix: 2 of 2 runs succeeded$'
expect_out '^ +0.25 .*[0-9.]+ [mµ]?s$'
expect_out '^ +lr=0.25 +0.25 +0.25$'
expect_err '^\[2/2\] lr=0.[25]+: done \('
grep -Eq "lr=0.5 \| 0.5 \| 0.5 \|" "$work"/outputs/*/*/*/report/report.md ||
    fail "$what: no metrics in its report.md"

# and so it is told later
run show test_matrix
expect_status 0
expect_out '^ +lr=0.5 +0.5 +0.5$'

# Given lines of ranks in a form that is not known, then a pattern is suggested, and reads them later.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2; do
    echo "[rank0]: objective = $i.5 at $i"
    echo "[rank1]: objective = $i.25 at $i"
done
SCRIPT
run run test_matrix "experiment.command='$work/train'" 'experiment.matrix={}' \
    +experiment.metrics.direction.objective=lower output_dir="$work/outputs"
expect_status 0
expect_out "no metric was read: the pattern 'objective [{]objective[}] at"
run metrics reread --pattern 'objective {objective} at {step}' --pattern 'no {no}' --dry-run
expect_status 0
expect_out '^ +gpu0_numa0_train +objective +1 +2 +2.25 +2$'
expect_out '4 values would replace 0'
run export test_matrix --what metrics
[ "$(wc -l <"$work/out")" = 1 ] || fail "a dry run wrote metrics"
run metrics reread --pattern 'objective {objective} at {step}'
expect_status 0
run export test_matrix --what metrics
expect_out '^gpu0_numa0_train,1,objective,,2.25,,2$'
run show test_matrix
expect_out '^ +gpu0_numa0_train +2.5 +2.25$'
! grep -q 'no metric was read' <"$work/out" || fail "the warning is still there"
run metrics reread --pattern 'no number'
expect_status 2
expect_err "'no number': reads no number"
run export test_matrix --what metrics
[ "$(wc -l <"$work/out")" = 5 ] || fail "a refused pattern changed metrics"

# A value that was read during the run keeps its time, of a log that is cut the rest is known to be missing.
first=$(echo "$work"/outputs/*/*/*/logs/gpu0_numa0_lr0.25.stdout)
study=${first%/logs/*}
printf '\n=== 7 more bytes of stdout were dropped: the log keeps 9 of an attempt ===\n' >>"$first"
run export "$study" --what metrics
before=$(cat "$work/out")
run metrics reread "$study"
expect_status 0
expect_out 'the log holds only the first part of the'
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "reading the same again changed metrics"
run metrics reread "$study" --json
python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["values_read"] == 6 and d["written"], d' <"$work/out" ||
    fail "its JSON is wrong"

# Nothing is changed while a study runs, nor where whoever reads is killed.
flock -o "$study/lock" sleep 2 &
holder=$!
sleep 0.3
run metrics reread "$study"
expect_status 2
expect_err 'is running'
kill $holder
wait $holder 2>/dev/null || true
GPULAB_FAILPOINT=before-reread-commit:1 run metrics reread "$study" --pattern 'Iter {other} loss {loss}'
expect_status 137
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "a killed reading changed metrics"

finish
