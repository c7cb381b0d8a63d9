#!/usr/bin/env bash
# A real training under a real launcher: PyTorch's torchrun trains a small GPT on two CPU ranks, over two
# optimizers. Debian's PyTorch belongs to Debian's Python, whichever else comes first on PATH.
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
for python in /usr/bin/python3 python3; do
    found=$(command -v $python) && $found -c 'import torch.distributed.run' 2>import.txt && break
    found=
done
if [ -z "$found" ]; then
    [ ! -e /usr/lib/python3/dist-packages/torch ] || fail "python3-torch is there, and yet: $(tail -1 import.txt)"
    [ "$failures" = 0 ] || finish
    echo "skipped: no PyTorch here"
    exit 77
fi

# PyTorch 1.13 can't read its own defaults of --redirects and --tee with Python 3.11: these leave all as it is
run run test_matrix device=cpu:0/2 'experiment.hardware.gpu_ids=[[0,1]]' experiment.processes=launcher \
    experiment.command="\"$found -m torch.distributed.run --rdzv_backend=c10d
        --rdzv_endpoint=localhost:{port} --nproc_per_node={gpu_count}
        --redirects 9:1 --tee 9:1 '$source_dir/tests/program/train_gpt.py'
        --optimizer {optimizer} --max-iters {max_iters}\"" \
    'experiment.matrix.optimizer=[sgd,adamw]' experiment.matrix.max_iters=30 experiment.max_retries=0 --json
expect_status 0
json 'd["summary"]["successful_runs"] == 2 and d["summary"]["failed_runs"] == 0'
json 'all(len(r["ranks"]) == 2 and r["test_config"]["processes"] == "launcher" for r in d["runs"])'
json 'all(r["peak_memory_mb"] > 50 for r in d["runs"])' # PyTorch alone is more
folder=$(echo outputs/test_matrix/*/*)
grep -hq '^2 ranks on cpu' "$folder"/logs/*.stdout || fail "not two ranks: $(head -2 "$folder"/logs/*.stdout)"
python3 - "$folder/study.db" <<'PY' || fail "its metrics: see above"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for (run,) in db.execute("SELECT number FROM run").fetchall():
    rows = db.execute("SELECT step, value FROM metric WHERE run = ? AND name = 'loss' ORDER BY step", (run,)).fetchall()
    assert [step for step, _ in rows] == list(range(1, 31)), rows
    losses = [value for _, value in rows]
    assert losses[0] > 2.5 and sum(losses[-5:]) / 5 < losses[0] - 1, losses
    names = {name for (name,) in db.execute("SELECT DISTINCT name FROM metric WHERE run = ?", (run,))}
    assert names >= {"loss", "time", "tokens_per_s", "final_loss"}, names
PY
for file in report/report.md report/index.html; do
    grep -q adamw "$folder/$file" || fail "no $file about its optimizers: $(ls "$folder/report")"
done
run analyze metrics "$folder"
expect_status 0
expect_out 'sgd'

finish
