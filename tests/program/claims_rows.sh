#!/usr/bin/env bash
# Sentences that were false once: each row runs a small simulated study and checks its claims against what
# is planted there.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
cd "$work" || exit 1

# machines: no noise; nothing planted but 1.5% noise between runs; two slow GPUs of four
machine=$source_dir/conf/machine/l40s-10.yaml
sed '/^noise:/,/^effects:/{/^effects:/!d}' "$machine" >still.yaml
sed -e 's/slowdown: .*}/slowdown: 0}/' -e '/name: \(socket\|fabric\)/s/latency_us: .*}/latency_us: 0}/' \
    -e 's/between: .*/between: {compute: 0.015, copy: 0.015}/' "$machine" >flat.yaml
sed 's/^\( *\)- {gpu: 7, compute: 0.06}/&\n\1- {gpu: 6, compute: 0.06}/' "$machine" >slow.yaml

copies='experiment.vit_configs=[{patch_size:32,depth:0}]'
# claims STUDY MACHINE GPUS WORDS...: the claims of a study's report are the output for json
claims() {
    run run "$1" "device=sim:$2" "experiment.hardware.gpu_ids=$3" experiment.trace=false -q "${@:4}"
    expect_status 0
    run show --claims --json
    expect_status 0
    json 'd["warnings"] == []'
    json 'all(len(c["scope"]) == len(set(c["scope"])) for c in d["claims"])'
}
numa=(experiment.hardware.numa_nodes=[0,2] "$copies")

# 1. One run of each point: values, and no verdict of any kind
claims numa_study ./flat.yaml '[0,1,2]' "${numa[@]}" experiment.repeat=1
json 'd["claims"] and not any(c["verdict"] in ("yes", "no") for c in d["claims"]
      if c["kind"] != "stability.throttling") # which is observed'
run run numa_study device=sim:l40s-10 'experiment.hardware.gpu_ids=[9]' experiment.hardware.numa_nodes=[3] "$copies" \
    experiment.repeat=1 experiment.test.num_samples=60000 experiment.trace=false -q --no-report
run analyze correlate numa_study --json # with a neighbour's load, which is planted
json 'd["claims"] and all(c["verdict"] == "inconclusive" for c in d["claims"])'
json 'not any("Program error" in note for note in d["notes"])'
claims numa_study l40s-10 '[0,[0,1]]' "${numa[@]}" experiment.repeat=2 # a gang on two nodes: two points
claims numa_study l40s-10 '[0]' experiment.hardware.numa_nodes=[0,2] experiment.repeat=2 seed=1
run show # no line to paste below an answer that is inconclusive
expect_out '^Inconclusive: NUMA node 2: '
grep -q numactl "$work/out" && fail "$what: advises what is inconclusive"

# 2. The headline is the mean over devices, and its interval holds what is planted
claims numa_study ./still.yaml '[0,1]' "${numa[@]}" experiment.repeat=2
truth=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["claims"][0]["effect"])' "$work/out")
held=0
for seed in 1 2 3; do
    claims numa_study l40s-10 '[0,1]' "${numa[@]}" "seed=$seed"
    json 'd["claims"][0]["kind"] == "numa.transfer_bound" and len(d["claims"][0]["scope"]) % 4 == 0'
    python3 -c 'import json, sys
c = json.load(open(sys.argv[1]))["claims"][0]
sys.exit(not c["low"] <= float(sys.argv[2]) <= c["high"])' "$work/out" "$truth" && held=$((held + 1))
done
[ "$held" -ge 2 ] || fail "of 3 intervals only $held hold the truth, $truth"

# 3. No effect of memory pressure is planted, and none is claimed
claims transfer_study l40s-10 '[0]' "$copies" experiment.repeat=3 experiment.test.num_samples=200
json '{c["verdict"] for c in d["claims"] if c["kind"] == "transfer.pressure"} <= {"no", "inconclusive"}'
json 'any(c["kind"] == "transfer.pressure" for c in d["claims"])'

# 4. Slow GPUs are named, one or two of four, and no other
slow='sorted(c["subject"] for c in d["claims"] if c["kind"] == "peers.device" and c["verdict"] == "yes"
             and c["effect"] < 0)'
model='experiment.vit_configs=[{patch_size:32,depth:6,heads:8,dim:512}]'
claims quick_test l40s-10 '[5,6,7]' repeat=5 "$model"
json "$slow"' == ["GPU 7"]'
run show # GPUs 5 and 6 have each other as peers: not what the table compares
expect_out ' -5\.[0-9]% .* µs$'
claims quick_test ./slow.yaml '[5,6,7,8]' repeat=5 "$model"
json "$slow"' == ["GPU 6", "GPU 7"]'

# 5. Copies of GPUs on one bridge: the cause is the resource that fell; without tuning nothing is said of it
claims contention l40s-10 '[0,1]' 'experiment.workload=[memcpy]' experiment.repeat=3 experiment.duration=2s
json '[c["quantity"] for c in d["claims"] if c["kind"] == "contention.cause" and c["subject"].startswith("2 GPUs")
       and c["verdict"] == "yes"] == ["PCIe bandwidth"]'
json '{c["verdict"] for c in d["claims"] if c["kind"] in ("contention.tuning", "variance.different_configurations",
       "variance.suboptimal_convergence")} == {"not_tested"}'

# 6. A phase that idles devices loses throughput: it isn't advised, nor is it when measured again
claims contention l40s-10 '[0,1,2]' 'experiment.workload=[memcpy]' 'experiment.phases=[baseline,concurrent,topology]' \
    experiment.repeat=3 experiment.duration=2s
for verify in '' --verify; do
    run advise $verify
    expect_out 'topology \(GPUs 0\+2, then 1\): 2[678].[0-9]% lower total'
    grep -q flock "$work/out" && fail "$what: advises what was measured to lose"
done
claims contention l40s-10 '[0,1]' 'experiment.workload=[memcpy]' 'experiment.phases=[baseline,concurrent]' \
    experiment.repeat=2 experiment.duration=1s
run advise
expect_out 'this study tests no mitigation'
expect_out '^  gpulab run contention .*isolated'

# 7. Unbound memory lies on NUMA node 0: the phase that binds it gains throughput, and is advised as a line
sed 's/^effects:/&\n  unbound_node: 0/' "$machine" >unbound.yaml
claims contention ./unbound.yaml '[0,5,7]' 'experiment.workload=[memcpy]' 'experiment.phases=[baseline,concurrent,numa]' \
    experiment.repeat=3 experiment.duration=2s
run advise
expect_out '^numa: 2[0-9].[0-9]% higher total throughput than 3 GPUs at once'
expect_out '^  export CUDA_DEVICE_ORDER=PCI_BUS_ID; for g in 0:0 5:2 7:2; do .*--membind=.* PROGRAM & done; wait$'

# 8. One simulated GPU trains fastest, without NVLink: the line confirms it on real GPUs
sed '/^  whole_batch:/d' "$source_dir/conf/machine/rtx4070tis-2.yaml" >shared.yaml
claims train_scaling ./shared.yaml '[1,[0,1]]' experiment.model=medium 'experiment.batch_sizes=[32]' experiment.runs=3
report=$(find outputs/train_scaling -name report.md)
grep -qx ' *gpulab run train_scaling device=cuda' "$report" || fail "real GPUs aren't asked for"
grep -q CUDA_VISIBLE_DEVICES "$report" && fail "restricts programs by what was simulated without NVLink"
finish
