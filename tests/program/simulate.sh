#!/usr/bin/env bash
# Studies on simulated machines: they take seconds, say that they are simulated wherever a figure stands,
# and are the same again for the same seed.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash" "$@"
cd "$work" || exit 1
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data
mkdir -p config

# study WORDS...: runs it; $folder is where it lies, and its results are the output for json
study() {
    run run "$@" -q --no-report
    expect_status 0
    folder=$(sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out")
    cp "$work/out" "$work/answer"
    cp "$folder/results.json" "$work/out"
}

# 1. The study of 48 points, each once
study numa_study --quick device=sim:l40s-10
grep -q "For a verdict, 5 runs" "$work/answer" || fail "$what: doesn't say that it gives no verdict"
grep -q "gpulab run numa_study device=sim:l40s-10 experiment.repeat=5$" "$work/answer" ||
    fail "$what: doesn't say which command gives a verdict: $(tail -4 "$work/answer")"
grep -q "numa_study (simulated): 48 of 48 runs succeeded" "$work/answer" ||
    fail "it doesn't say that 48 of 48 simulated runs succeeded: $(head -3 "$work/answer")"
json 'len(d) == 48 and all(r["success"] and r["simulated"] and r["validity"]["valid"] for r in d)'
json 'all(r["ranks"][0]["simulated"] and r["ranks"][0]["gpu"]["simulated"] for r in d)'
# figures that are means of a second need runs that last one
json '(lambda long: len(long) >= 8 and all(r["energy_j"] > 0 and r["power_w"] > 30 and r["sm_clock_mhz"] == 2520
       for r in long))([r for r in d if r["label"] == "vit16x12x1024"])'
json 'all(r["ranks"][0]["verification"]["text"] == "simulated" for r in d)'
# GPU 3 sits on node 1; node 0 is near, node 2 is far
json '({(r["gpu_id"], r["numa_node"], r["ranks"][0]["device_node"], r["ranks"][0]["distance"]) for r in d}
       >= {(0, 0, 0, 10), (0, 2, 0, 32), (3, 0, 1, 12), (3, 2, 1, 32)})'
# what is planted is there: far copies cost, heavy models don't feel it
json '(lambda v: v["gpu0_numa2_vit0x0x0"] < 0.92 * v["gpu0_numa0_vit0x0x0"]
       and abs(v["gpu0_numa2_vit16x12x1024"] / v["gpu0_numa0_vit16x12x1024"] - 1) < 0.03)(
       {r["run_id"]: r["rate"] for r in d})'
cp "$folder/results.json" "$work/first.json"
cp "$folder/machine.json" "$work/out"
json 'd["simulated"] and len(d["nodes"]) == 4'
python3 - "$folder/study.db" <<'PY' || fail "runs overlap, or samples lie outside of them"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
runs = db.execute("SELECT start_ns, end_ns FROM run ORDER BY start_ns").fetchall()
assert all(a[1] < b[0] for a, b in zip(runs, runs[1:])), "overlap"
chunks = db.execute("SELECT first_ns, last_ns FROM chunk").fetchall()
assert chunks and min(c[0] for c in chunks) >= runs[0][0] and max(c[1] for c in chunks) <= runs[-1][1]
assert db.execute("SELECT count(*), min(simulated) FROM entity").fetchone()[1] == 1
PY
ls "$folder"/traces/*.sqlite >/dev/null 2>&1 || fail "there are no traces"
run show "$folder" --verbose
expect_status 0
expect_out '^ *Time +[0-9-]+ [0-9:]+; the runs took .* of simulated time$' # and no end that is yet to come

# 2. The same seed gives the same figures; another seed, or another repeat, others
study numa_study device=sim:l40s-10 experiment.hardware.gpu_ids=[1] experiment.trace=false experiment.repeat=1
python3 - "$work/first.json" "$work/out" <<'PY' || fail "the same seed gave other figures"
import json, sys
first, again = ({r["run_id"]: r["rate"] for r in json.load(open(p))} for p in sys.argv[1:])
assert again and all(first[run] == rate for run, rate in again.items()), (first, again)
PY
study quick_test device=sim:l40s-10 repeat=3 experiment.trace=false
json 'len({r["rate"] for r in d}) == 9'
study quick_test device=sim:l40s-10 seed=7 experiment.trace=false
python3 - "$work/first.json" "$work/out" <<'PY' || fail "another seed gave the same figures"
import json, sys
first, other = ({r["label"]: r["rate"] for r in json.load(open(p))} for p in sys.argv[1:])
assert all(first.get(label) != rate for label, rate in other.items())
PY

# 3. The other studies
study scaling_study device=sim:dgx-h100 experiment.test.num_samples=200
json 'len(d) == 8 * 5 and all(r["success"] for r in d)'
# of five runs of a point the first is traced
json 'all((r["trace"] is not None) == r["run_id"].endswith("_r0") for r in d)'
[ "$(find "$folder/traces" -name "*.sqlite" | wc -l)" = 8 ] || fail "$what: not one trace of each point"
run analyze latency "$folder" --json
json 'len(d["pipelines"]) == 8'
run show "$folder" --verbose
grep -q "For a verdict" "$work/out" && fail "$what: five runs of each point, but says that there is no verdict"
study compile_study device=sim:g5.12xlarge experiment.test.num_samples=100 experiment.trace=false experiment.repeat=1
json 'all(r["success"] for r in d) and any(r["options"]["compile_model"] for r in d)'
study transfer_study device=sim:l40s-10 experiment.test.num_samples=50 experiment.trace=false experiment.repeat=1 \
    'experiment.vit_configs=[{patch_size:32,depth:0,heads:8,dim:64,mlp_dim:0}]'
json 'all(r["success"] for r in d)'
# two GPUs on one switch get in each other's way, two on different ones don't
study throughput_study device=sim:l40s-10 experiment.test.batch_size=[16] experiment.trace=false experiment.repeat=1
json '(lambda v: v[(0, 1)] < 1.3 * v[(0,)] and v[(0, 2)] > 1.8 * v[(0,)])(
       {tuple(r["gpu_ids"]): r["rate"] for r in d if r["label"] == "vit0x0x0"})'
# the lower card grows hot in the longest run
study stability device=sim:rtx4070tis-2 experiment.hardware.gpu_ids=[0,1] \
    experiment.hardware.numa_nodes=[0] experiment.trace=false experiment.repeat=1
json '(lambda v: v["gpu1_numa0_vit16x12x1024"].get("sw_thermal", 0) > 1 and not v["gpu0_numa0_vit16x12x1024"])(
       {r["run_id"]: r["throttled_s"] for r in d})'

# 4. bench
for workload in vit gemm softmax memcpy null; do
    run bench $workload --device sim:l40s-10:3 --json
    expect_status 0
    json 'd["device"]["simulated"]'
done
run bench memcpy --device sim:l40s-10:3 --node 2
expect_status 0
expect_out 'on simulated sim:l40s-10:3'
run bench command --device sim:l40s-10:0 'command=[true]'
expect_status 1
expect_err "is simulated: your own program can't run on it"

# 5. A single run: the report opens with what it says itself
run run quick_test device=sim:l40s-10 'experiment.vit_configs=[{patch_size:32,depth:4,heads:8,dim:512,mlp_dim:0}]'
expect_status 0
expect_out '^vit32x4x512 runs at [0-9]+ samples/s on GPU 0 \(one run: no comparison\)'
run run quick_test device=sim:l40s-10 experiment.test.num_samples=10 'experiment.vit_configs=[{patch_size:32,depth:4,heads:8,dim:512,mlp_dim:0}]'
expect_status 0
expect_out '^vit32x4x512 runs at [0-9]+ samples/s on GPU 0'

# 6. What can't be
run run numa_study device=sim:dgx-h100
expect_status 2
expect_err 'NUMA node 2, but sim:dgx-h100 has nodes 0 and 1; to run it here, add: experiment.hardware.numa_nodes=\[0,1\]'
run run quick_test device=sim:l40s-10 experiment.hardware.gpu_ids=[12]
expect_status 2
expect_err 'device=sim:l40s-10 has 10'
run run quick_test "device='sim:l40s-10:0,cpu:0'"
expect_status 2
expect_err "aren't in one machine"
run run quick_test device=sim:l40s-10 experiment.max_workers=2
expect_status 2
expect_err 'simulated devices share one process'
run run quick_test device=sim:l40s
expect_status 2
expect_err "there is no simulated machine 'l40s' \(did you mean 'l40s-10'\?\)"
run run test_matrix device=sim:l40s-10 'experiment.command=[true]'
expect_status 2
expect_err "your own program can't run on it"

# 6. One's own machine: a file, and in the search path
mkdir -p config/gpulab/machine
sed 's/^title:.*/title: Mine/; s/number: 3/number: 3, core: 1/' "$source_dir/conf/machine/l40s-10.yaml" \
    >bad.yaml
run devices --device sim:./bad.yaml
expect_status 2
expect_err "^gpulab: \./bad.yaml:[0-9]+: unknown key 'core'; did you mean 'cores'\?"
sed 's/^title:.*/title: Mine/' "$source_dir/conf/machine/rtx4070tis-2.yaml" >config/gpulab/machine/mine.yaml
run devices --device sim:mine
expect_status 0
expect_out '^Simulated machine sim:mine$'
expect_out 'sim:mine:1 .* \(simulated\)'
study quick_test device=sim:mine
json 'len(d) == 3'
study quick_test device=sim:./config/gpulab/machine/mine.yaml
json 'len(d) == 3'
run help devices
expect_status 0
expect_out 'sim:mine: Mine'

# 7. Ranks that sum do so equally often, whatever each one's clock says
study nccl_settings device=sim:rtx4070tis-2 experiment.series=null
json 'len(d) == 10 and all(r["success"] and len(r["ranks"]) == 2 for r in d)'
json 'all(r["rate"] == min(rank["rate"] for rank in r["ranks"]) for r in d)' # of all ranks together
run report "$folder" -f html
expect_status 0
grep -q '[0-9] iterations/s' "$folder/report/index.html" || fail "the load balance has no iterations/s"

finish
