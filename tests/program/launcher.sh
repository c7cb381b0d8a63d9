#!/usr/bin/env bash
# A gang as one program that sees all its GPUs: what it is told, and that its result is of all of them.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
fake=$(realpath "$3")/fake
[ -e "$fake/libnvidia-ml.so.1" ] || { echo "skipped: no fake driver here"; exit 77; }
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work LD_LIBRARY_PATH=$fake FAKE_CUDA_GPUS=4
unset CUDA_VISIBLE_DEVICES
calm="gpus=4; memory_total=1000; memory=100,200,300,400; power=100,150,200,250; utilization=10,20,30,40"

# A launcher whose processes have ended some time before it does, and whose parents have too.
cat >launch.sh <<'SH'
echo "ids=$1 count=$2 world=$3 omp=$OMP_NUM_THREADS rank=${RANK-unset}${LOCAL_RANK-unset}${WORLD_SIZE-unset}"
echo "visible=$CUDA_VISIBLE_DEVICES"
for i in 1 2; do bash -c 'sleep 2.1; true' & done
wait
sleep 1.1
echo "Final loss 0.5"
SH
command='experiment.command="bash launch.sh {gpu_ids} {gpu_count} {world_size}"'

# study GPUS OVERRIDE...: one run of it; its results are in `out`
study() {
    rm -rf outputs
    run run --no-report test_matrix device=cuda "$command" "experiment.hardware.gpu_ids=$1" \
        experiment.max_retries=0 "${@:2}"
    expect_status 0
    cp "$(find outputs -name results.json)" out
}

# given four GPUs and processes deep below the program, then all is summed, and nobody else was there
export RANK=7 GPULAB_FAKE_NVML="$calm; process=0:leaves:90:5:C,1:leaves:190:5:C,2:leaves:290:5:C,3:leaves:390:5:C"
study '[[0,1,2,3]]' experiment.processes=launcher
json 'd[0]["validity"]["valid"] is True and d[0]["foreign_processes"] == []'
json 'abs(d[0]["power_w"] - 700) < 1 and d[0]["gpu_memory_peak_mb"] == 1000'
json 'd[0]["test_config"]["processes"] == "launcher" and 0.9 < d[0]["energy_j"] / (0.7 * d[0]["latency_ms"]["mean"]) < 1.1'
json '[round(100 * r["gpu"]["gpu_utilization"]) for r in d[0]["ranks"]] == [10, 20, 30, 40]'
json 'abs(d[0]["energy_j"] - sum(r["gpu"]["energy_j"] for r in d[0]["ranks"])) < 1'
json 'd[0]["rate"] == d[0]["ranks"][0]["rate"] and d[0]["ranks"][3]["rate"] is None and d[0]["gang_overlap"] is None'
log=$(cat outputs/test_matrix/*/*/logs/*.stdout)
grep -Eq '^ids=0,1,2,3 count=4 world=4 omp=[1-9][0-9]* rank=unsetunsetunset$' <<<"$log" || fail "it was told: $log"
uuid='GPU-[0-9a-f-]{36}'
grep -Eq "^visible=$uuid,$uuid,$uuid,$uuid$" <<<"$log" || fail "it sees: $log"
run analyze balance outputs/test_matrix/*/*/ --json
expect_status 0
json 'd["recordings"][0]["gpus"] == 4 and d["recordings"][0]["memory_total_mib"] == 1000'

# given a program that uses a GPU that it wasn't given, then the run is marked; {gpu_ids} alone makes it a launcher
export GPULAB_FAKE_NVML="$calm; process=1:leaves:90:5:C,2:leaves:90:5:C,3:leaves:90:5:C"
study '[[1,3]]'
json 'd[0]["validity"]["valid"] is False and d[0]["foreign_processes"] == []'
json '[t.split(":")[0] for t in d[0]["validity"]["invalid"]] == ["the program used GPU 2, which the run did not have"]'
grep -q "^ids=1,3 count=2" outputs/test_matrix/*/*/logs/*.stdout || fail "{gpu_ids} are not the machine's numbers"

# given two runs that share a GPU on purpose, then neither's program is foreign to the other
export GPULAB_FAKE_NVML="$calm; process=0:leaves:90:5:C"
command='experiment.command="sleep 2.2"' study '[0]' experiment.repeat=2 experiment.max_workers=2 experiment.runs_per_device=2
json 'len(d) == 2 and all(r["concurrent"] and r["validity"]["valid"] and not r["foreign_processes"] for r in d)'

# the documented launchers can be planned as they stand there
documented=0
# shellcheck disable=SC2016 # nothing of it is to be expanded
while IFS= read -r line; do
    documented=$((documented + 1))
    eval "run ${line#gpulab } --dry-run"
    expect_status 0
    expect_out '3 points|2 points'
done < <(sed -n '/^### Launchers/,$p' "$source_dir/docs/STUDIES.md" | sed -n '/^```sh/,/^```/{/^```/!p}' | sed -e :a -e '/\\$/N; s/\\\n//; ta')
[ $documented -ge 4 ] || fail "$documented launchers are documented"

# what can't be
run run quick_test device=cpu:0/2 experiment.processes=launcher --dry-run
expect_status 2
expect_one_line
expect_err 'processes=launcher starts a program of your own once for all GPUs of a gang; vit is a workload'
run run test_matrix device=cuda 'experiment.hardware.gpu_ids=[0,1]' "$command" experiment.processes=launcher --dry-run
expect_status 0
grep -q 'experiment.gpu_mode=multi' out err || fail "it isn't said how the GPUs become one gang: $(cat out err)"

finish
