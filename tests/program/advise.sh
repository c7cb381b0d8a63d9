#!/usr/bin/env bash
# Advice from studies, what to run where there are none, and verdicts on nothing.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
cd "$work" || exit 1

# without a study: which one to run
run advise
expect_status 0
expect_out '^Nothing can be advised yet: no study was run on this machine'
expect_out '^  gpulab run (numa|compile)_study .*experiment.repeat=5$'
run advise --json
json 'd["models"] == [] and d["run"].startswith("gpulab run ") and d["study"] is None'
run advise depth=2
expect_status 2
expect_err 'gpulab advise --workload vit depth=2'
run advise --workload vti
expect_status 2
run advise --workload vit depht=2
expect_status 2
expect_err "did you mean 'depth'"
run advise --study nowhere
expect_status 2

# a study of two batch sizes, three runs each
small='experiment.vit_configs=[{patch_size:16,depth:1,heads:1,dim:64,mlp_dim:0}]'
run run quick_test -m --device cpu "$small" 'experiment.test.tensor_shape=[3,64,64]' \
    experiment.test.batch_size=1,16 experiment.test.num_samples=64 experiment.test.warmup_samples=16 \
    experiment.test.memory_size_mb=8 experiment.trace=false experiment.repeat=3
expect_status 0
run advise
expect_status 0
expect_out '^vit16x1x64: .*, NUMA node 0, batch (1|16)$'
expect_out '([Bb]atch 16 rather than batch 1|batch 1 rather than Batch 16)'
expect_out '^Study: outputs/quick_test/'
run advise --workload vit depth=1 --json
json 'len(d["models"]) == 1 and d["models"][0]["lines"][0]["choice"] == "batch"'
json 'd["models"][0]["lines"][0]["line"].endswith(" PROGRAM") and d["study"].startswith("outputs/quick_test/")'
json 'all(l["measured"] or l["gain"] is None for l in d["models"][0]["lines"])'
run advise --workload vit depth=7
expect_out 'no study of this machine has measured vit in more'
expect_out 'experiment.vit_configs.depth=7'
run analyze recommend quick_test
expect_status 0
expect_out '^(Batch 16: .* throughput than batch 1|No difference larger than|Batch sizes: inconclusive)'
expect_out 'Placements'
run analyze recommend quick_test --json
json 'len(d["models"][0]["placements"]) == 2 and d["models"][0]["factors"][0]["choice"] == "batch"'

# three runs each of three simulated devices: what is advised is what recommend claims
run run numa_study --device sim:l40s-10 'experiment.hardware.gpu_ids=[0,1,2]' \
    'experiment.vit_configs=[{patch_size:32,depth:0}]' experiment.trace=false experiment.repeat=3
expect_status 0
run analyze recommend numa_study --json
json '[f for f in d["models"][0]["factors"] if f["choice"] == "node"][0]["pairs"] == 3'
recommended=$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))["models"][0]
node = [f for f in d["factors"] if f["choice"] == "node"][0]
change = node["change"], node["change_interval"]["high"], node["change_interval"]["low"]
print("%.1f %% [%.1f, %.1f]" % tuple(100 * (1 / (1 + c) - 1) for c in change))' "$work/out")
run advise --study numa_study
tr '\n' ' ' <"$work/out" | grep -qF "rather than Remote NUMA nodes gains $recommended" ||
    fail "advise doesn't say what recommend does, $recommended: $(head -3 "$work/out")"

# a study that has no choices, of a machine that isn't this one
run run numa_study --device sim:l40s-10 'experiment.hardware.gpu_ids=[0]' \
    'experiment.hardware.numa_nodes=[0]' 'experiment.vit_configs=[{patch_size:32,depth:0}]' \
    experiment.trace=false experiment.repeat=1 output_dir=single
run advise --study single/numa_locality_study/*/*
expect_out "^hasn't measured a model in more than one place"
grep -q 'this machine' "$work/out" && fail "$what: speaks of this machine"

# verdicts on nothing
run selftest --device sim:l40s-10:0 --studies 2 --runs 2
expect_out '^  Device        sim:l40s-10:0, simulated$'
run selftest --device cpu --studies 2 --runs 2
[ "$status" = 0 ] || [ "$status" = 3 ] || fail "$what: status $status: $(cat "$work/err")"
expect_out 'in [012] of 2 A/A studies of 2 and 2 runs'
run selftest --device cpu --studies 1 --runs 2 --json
json 'd["studies"] == 1 and d["device"] == "cpu:0" and d["share_interval"]["high"] > 0.9'
run selftest --device nowhere
expect_status 2
run list --json
json 'not any("selftest" in s["folder"] for s in d["studies"])'
ls -d "$work"/gpulab-selftest-* >/dev/null 2>&1 && fail "selftest left its folder behind"
finish
