#!/usr/bin/env bash
# Advice from studies, what to run where there are none, advice measured again, and A/A studies.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
cd "$work" || exit 1

# without a study: which one to run
run advise
expect_status 0
expect_out '^Nothing is advised: no study was run on this machine'
expect_out '^  gpulab run (numa|compile)_study .*experiment.repeat=5$'
run advise --json
json 'd["advice"] == [] and d["run"].startswith("gpulab run ") and d["study"] is None'
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

# what a study of this machine doesn't compare: which one to run
small='experiment.vit_configs=[{patch_size:16,depth:1,heads:1,dim:64,mlp_dim:0}]'
run run quick_test --device cpu "$small" 'experiment.test.tensor_shape=[3,64,64]' \
    experiment.test.num_samples=64 experiment.test.warmup_samples=16 \
    experiment.test.memory_size_mb=8 experiment.trace=false
expect_status 0
run advise --workload vit depth=7
expect_out 'no study of this machine compares placements of vit'
expect_out 'experiment.vit_configs.depth=7'

# nothing but failures
run run quick_test --device cpu "$small" experiment.test.timeout_s=0.001 experiment.max_retries=0 \
    output_dir=failed experiment.trace=false
run advise --study failed/quick_test/*/*
expect_out '^Nothing is advised: no run of'

# a line for each GPU whose node is faster for certain, with its gain; local nodes by gpulab bind
sim() { # sim GPUS NODES [WORDS]: copies alone, which feel where they come from
    run run numa_study --device "${machine-sim:l40s-10}" "experiment.hardware.gpu_ids=$1" \
        "experiment.hardware.numa_nodes=$2" 'experiment.vit_configs=[{patch_size:32,depth:0}]' \
        experiment.trace=false experiment.repeat=5 -q "${@:3}"
    expect_status 0
}
sim '[0,1,5]' '[0,2]'
run advise
expect_out '^Bind each device as below. Local NUMA nodes, mean of 3 devices: 1'
expect_out '^  GPU 5 +2 +[+]1[0-9][.][0-9]% '
expect_out '^  CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,5 torchrun --nproc-per-node 3 --no-python gpulab bind PROGRAM$'
expect_out '^Not measured here$'
expect_out '^  flock /tmp/gpu0-1.lock PROGRAM +# one job at a time'
run advise --json
json '(len(d["advice"][0]["lines"]) == 3 and "openmp" in [l["name"] for l in d["advice"][0]["not_measured"]] and d["simulated"]
      and all(l["gain"]["verdict"] == "yes" and l["gain"]["low"] > 0.05 and l["gain"]["runs"] == 5
              and l["gain"]["simulated"] for l in d["advice"][0]["lines"]))'

# the same points again, in turn: other runs, the same gain
run advise --verify --json
expect_status 0
json '(d["advised"] == 3 and d["confirmed"] == 3 and d["simulated"]
      and d["claims"][0]["kind"] == "advise.bind_all" and 0.1 < d["claims"][0]["low"]
      and d["claims"][0]["high"] < 0.2 and d["claims"][0]["runs"] == 5)'
ls -d "$work"/gpulab-scratch-* >/dev/null 2>&1 && fail "advise --verify left its folder behind"

# one run a point: no line, and the command that gets a verdict
sim '[0,1]' '[0,2]' experiment.repeat=1 output_dir=once
run advise
expect_out '^No binding is advised[.] '
expect_out '(1 run each: no interval)'
expect_out '^  gpulab advise --verify --study once/'
grep -q numactl "$work/out" && fail "$what: a line without a certain gain"
run advise --verify
expect_out '^Local NUMA nodes, mean of 2 devices: 1'

# nothing planted, 1.5% noise between runs: lines are as rare as false claims
sed -e 's/slowdown: .*}/slowdown: 0}/' -e '/name: \(socket\|fabric\)/s/latency_us: .*}/latency_us: 0}/' \
    -e 's/between: .*/between: {compute: 0.015, copy: 0.015}/' "$source_dir/conf/machine/l40s-10.yaml" >flat.yaml
wrong=0
for seed in 1 2 3 4 5 6; do
    machine=sim:./flat.yaml sim '[0,1,5]' '[0,2]' "seed=$seed"
    run advise --json
    grep -q numactl "$work/out" && wrong=$((wrong + 1))
done
[ "$wrong" -le 2 ] || fail "$wrong of 6 studies of a machine without any effect have a line"

# a study of two remote NUMA nodes that don't differ, of a machine that isn't this one
sim '[5]' '[0,1]' output_dir=single
run advise --study single/numa_locality_study/*/*
expect_out '^No binding is advised[.] '
expect_out '^Study: single/.* \(simulated\)$'
grep -q 'this machine\|placements' "$work/out" && fail "$what: speaks of this machine, of none compared"

# A/A studies: claims of each kind, and how many are false
run selftest --device sim:l40s-10:0 --studies 2 --runs 2
expect_out '^  numa.cell +2 +[0-9]+ '
expect_out '^  Not covered, observed, not estimated: '
run selftest --device sim:l40s-10:0 --studies 2 --runs 2 --json # inference, then training
json '"training.gang" in [k["kind"] for k in d["kinds"]] and "stability.drift" in [k["kind"] for k in d["kinds"]]'
json '"scaling.width" in d["not_covered"] and not any("no study" in why for why in d["not_covered"].values())'
run selftest --device cpu --studies 1 --runs 2 --json
[ "$status" = 0 ] || [ "$status" = 3 ] || fail "$what: status $status: $(cat "$work/err")"
json '(d["studies"] == 1 and d["device"] == "cpu:0" and d["limit"] == 0.05
      and "numa.penalty" in [k["kind"] for k in d["kinds"]]
      and all(k["claims"] >= k["false_claims"] and k["low"] <= k["rate"] <= k["high"]
              for k in d["kinds"]))'
run selftest --device nowhere
expect_status 2
run list --json
json 'not any("selftest" in s["folder"] for s in d["studies"])'
ls -d "$work"/gpulab-scratch-* >/dev/null 2>&1 && fail "selftest left its folder behind"
finish
