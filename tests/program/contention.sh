#!/usr/bin/env bash
# The contention study: on simulated machines, where it is known what is there, it finds each neighbour on
# purpose and nothing where nothing is; on CPUs it is carried out for real and leaves its files.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash" "$@"
cd "$work" || exit 1
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data
export XDG_CACHE_HOME=$work/cache GPULAB_LOCK_DIR=$work

# simulated STATUS WORDS...: a short study of a simulated GPU; its verdict is the output for json, and what a
# script learns of it
simulated() {
    local found=$1
    shift
    run run contention device=sim:rtx4070tis-2 'experiment.hardware.gpu_ids=[0]' repeat=3 \
        'experiment.workload=[softmax]' experiment.duration=1.5s -q --no-report "$@"
    expect_status 0
    local folder
    folder=$(sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out")
    run analyze contention "$folder" --json --fail
    expect_status "$found"
}

# 1. Nothing is found where nothing is
simulated 0 'experiment.phases=[baseline,baseline_again]' seed=1
json '(d["phases"][0]["slower"] == 0 and d["phases"][0]["resource"] is None
      and not any(c["verdict"] == "yes" for c in d["claims"]))'

# 2. Each neighbour's resource is the one that fell most
for kind in pcie membw sm power; do
    simulated 3 'experiment.phases=[baseline]' experiment.disturb=$kind seed=1
    json 'd["phases"][0]["resource"] == "'$kind'" and "With a neighbour ('$kind')" in d["answer"]'
done

# 3. What isn't there is refused in one line
refuse() { # refuse PATTERN WORDS...
    local pattern=$1
    shift
    run run contention "$@"
    expect_status 2
    expect_one_line
    expect_err "$pattern"
}
refuse 'must be none, cpu, membw, pcie, sm or power' experiment.disturb=fan
refuse 'on CPUs it must be cpu or membw' device=cpu experiment.disturb=pcie
refuse 'on GPUs it must be pcie, membw, sm or power' device=sim:dgx-h100 experiment.disturb=cpu

# 4. For real, on CPUs: tuned afresh in each phase, the choices at the end, its files beside the report
two=cpu:0/2
[ "$(nproc)" -ge 2 ] || two=cpu:0
run run contention device=$two repeat=1 experiment.duration=1s experiment.cooldown=0 \
    'experiment.workload=[softmax]' experiment.softmax.rows=64 experiment.softmax.columns=256
expect_status 0
expect_out 'verdict, 5 runs'
folder=$(sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out")
cp "$folder/results.json" "$work/out"
json '(all(r["success"] for r in d)
      and {r["test_config"]["phase"] for r in d} >= {"baseline", "regret"}
      and all(k["tuning"]["num_configs_tested"] > 0 and k["capacity"]["memory_gb_per_s"] > 0
              for r in d if r["test_config"]["phase"] != "regret" for k in r["ranks"]))'
[ ! -e "$XDG_CACHE_HOME/gpulab/tuning.db" ] || fail "the cache of tuned configurations was written"
if [ $two = cpu:0/2 ]; then
    json '(all(len(r["ranks"]) == 2 and r["gang_overlap"] > 0 for r in d
              if r["test_config"]["phase"] in ("concurrent", "isolated"))
          and {r["test_config"]["processes"] for r in d if r["test_config"]["phase"] == "isolated"} == {"per_rank"}
          and all({c["phase"] for c in r["ranks"][0]["regret"]} == {"concurrent", "isolated"} for r in d
                  if r["test_config"]["phase"] == "regret"))'
fi
for file in baseline_gpu0_softmax.json regret_gpu0_softmax.json variance_analysis.txt correlation_gpu0.txt; do
    [ -s "$folder/report/$file" ] || fail "report/$file is missing"
done
cp "$folder/report/baseline_gpu0_softmax.json" "$work/out"
json '(d["kernel_name"] == "softmax" and d["phase"] == "baseline" and d["best_time_ms"] > 0
      and len(d["all_benchmark_times"]) > 0 and d["detailed_timings"][0]["time_ms"] > 0)'
finish
