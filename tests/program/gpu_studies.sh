#!/usr/bin/env bash
# The studies of `make test-gpu`, without a GPU: what they are held to, by studies made up for it, and the
# whole of it on this machine's cores.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
tests=$source_dir/tests/gpu

# make FOLDER FAULT: a study of one run on two slices, four batches each: a copy of 10 µs at each multiple
# of 100 µs, and the compute of the batch before it around that
make() {
    mkdir -p "$1/traces"
    python3 - "$1" "${2-}" <<'MAKE'
import json, sqlite3, sys
folder, fault = sys.argv[1:]
ranks = []
for rank in range(2):
    path = f"traces/pipeline_it_rank{rank}.sqlite"
    db = sqlite3.connect(f"{folder}/{path}")
    db.execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, copyKind INT)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, graphNodeId INT)")
    shift = 1000000 if fault == "turns" and rank else 0
    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 'test_double_buffer')", (shift, shift + 1000000))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 1)", (-50000, -40000))  # warm-up
    for i in range(4):
        copy, compute = shift + 100000 * i, shift + 100000 * i + 20000
        late = 75000 if fault == "apart" and i in (1, 2) else 0
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 1)", (copy + late, copy + late + 4000))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 2)", (copy + 60000, copy + 61000))
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?)", (compute, compute + 90000, f"compute_batch_{i}"))
        node = None if fault == "no graph" and i == 2 else 7 + i
        for start, end in ((0, 30000), (40000, 85000)):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)",
                       (compute + start, compute + end, node))
    db.commit()
    wrong = fault == "unverified" and rank
    ranks.append({"device": f"cuda:0/4.{rank}", "overlap": 0.9, "trace": {"path": None if fault == "untraced" else path},
                  "verification": {"applicable": True, "passed": not wrong, "text": "relative error"}})
failed = fault == "failed"
json.dump([{"run_id": "it", "success": not failed, "error": "out of memory" if failed else None,
            "vit_config": {"depth": 2}, "gang_overlap": 0.1 if fault == "alone" else 0.95, "ranks": ranks,
            "validity": {"warnings": ["no trace: not permitted"]}}], open(f"{folder}/results.json", "w"))
json.dump({"total_runs": 1, "successful_runs": 0 if failed else 1}, open(f"{folder}/experiment_summary.json", "w"))
MAKE
}
check() { # check FAULT: the made study, as check_study.py sees it
    make "$work/study-$1" "$1"
    what="check_study.py of a study that is $1"
    python3 "$tests/check_study.py" "$work/study-$1" --graphs --gang >"$work/out" 2>"$work/err"
    status=$?
}
check right
expect_status 0
expect_out '^it on cuda:0/4\.1: 3 of 3 copies lie under the compute of the batch before$'
expect_out '^kernels of two ranks ran at once for 0\.300 ms$'
while IFS='|' read -r fault line; do
    check "$fault"
    expect_status 1
    expect_out "^ERROR: $line"
done <<'FAULTS'
failed|it: out of memory
unverified|it: cuda:0/4\.1: its outputs weren't verified
alone|it: its 2 ranks were no gang at work at once: overlap 0\.1
untraced|it: no trace of cuda:0/4\.0, cuda:0/4\.1: .*not permitted
apart|it on cuda:0/4\.0: too few copies lie under
no graph|it: kernels that no graph launched
turns|gang: no kernels of two ranks ran at once
FAULTS

# the studies themselves, small, on cores: all succeed and are verified, and are checked to the end. How
# well cores overlap depends on what else they do, so that isn't asked for here.
export GPULAB=$gpulab GPULAB_TEST_SLICES=1
what="test_gpu_studies.sh on the CPU"
cores=$(nproc)
[ "$cores" -lt 2 ] || GPULAB_TEST_SLICES=2
GPULAB_TEST_DEVICE=cpu:0 "$tests/test_gpu_studies.sh" experiment.test.num_samples=20 experiment.test.batch_size=1 \
    experiment.test.warmup_samples=2 experiment.test.memory_size_mb=8 \
    'experiment.vit_configs=[{patch_size:32,depth:1,heads:1,dim:64,mlp_dim:64}]' >"$work/out" 2>"$work/err"
for study in plain compiled; do expect_out "^$study\$"; done
grep '^ERROR' "$work/out" | grep -vE 'too few copies|no gang at work at once|of two ranks ran at once' >"$work/bad"
if [ "$cores" -ge 2 ]; then
    expect_out '^kernels of two ranks ran at once for'
    cat "$work/err" >>"$work/bad"
    [ ! -s "$work/bad" ] || fail "$what: $(cat "$work/bad")"
fi

# without the device it is skipped, and says why
what="test_gpu_studies.sh without a GPU"
GPULAB_TEST_DEVICE=cuda:99 "$tests/test_gpu_studies.sh" >"$work/out" 2>"$work/err"
status=$?
expect_status 77
expect_out '^skipped: .*cuda:99'

finish
