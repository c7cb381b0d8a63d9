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
expect_out '^ +lr0.25 .*[0-9.]+ [mµ]?s$'
expect_out '^ +gpu0_numa0_lr0.25 +0.25 +0.25$'
expect_err '^\[2/2\] lr0.[25]+: done \('
grep -Eq "lr0.5 \| 0.5 \| 0.5 \|" "$work"/outputs/*/*/*/report/report.md ||
    fail "$what: no metrics in its report.md"

# and so it is told later
run show test_matrix
expect_status 0
expect_out '^ +gpu0_numa0_lr0.5 +0.5 +0.5$'

finish
