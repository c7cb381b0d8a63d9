#!/usr/bin/env bash
# `gpulab watch`: who lags in a running job, by its process tree or its batch job, with GPUs that a fake driver plays.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
fake=$(realpath "$3")/fake
[ -e "$fake/libnvidia-ml.so.1" ] || { echo "skipped: no fake driver here"; exit 77; }
cd "$work" || exit 1
export HOME=$work LD_LIBRARY_PATH=$fake
brief=(--interval 20ms --duration 1.6s)
pids=()

# a job of four ranks, each with a worker that inherits its rank, in a batch job
cat >job.sh <<'SH'
for rank in 0 1 2 3; do
    RANK=$rank WORLD_SIZE=8 SLURM_PROCID=0 SLURM_JOB_ID=4711 bash -c 'sleep 61 & exec sleep 62' &
    echo $! >"pid.$rank"
done
wait
SH
setsid bash job.sh &
job=$!
sleep 63 &
alone=$!
trap 'kill -- "-$job" "$alone" 2>/dev/null; rm -rf "$work"' EXIT
for rank in 0 1 2 3; do
    until [ -s "pid.$rank" ] && [ "$(cat "/proc/$(cat "pid.$rank")/comm")" = sleep ]; do sleep 0.02; done
    pids[rank]=$(cat "pid.$rank")
done
steady="memory_total=1000; utilization=99; power=500; sm=70; pcie_rx=900"
on=; for rank in 0 1 2 3; do on+="${on:+,}$rank:${pids[rank]}:100:80:C"; done

# given a clock that is 10% lower than its peers', then that rank is named, with exit status 3 if that is asked for
export GPULAB_FAKE_NVML="gpus=5; $steady; process=$on; sm_clock=1980,1980,1780,1980; reasons=0,0,0x20,0"
run watch "$job" "${brief[@]}" --fail
expect_status 3
expect_out 'GPU 2 \(rank 2\) lags: SM clock 10\.1% lower than its peers'
expect_out 'thermal limit \(driver\), clock 1780 MHz \(peers 1980'
expect_out '4 of 8 ranks are on this host'
expect_err "watching process $job, 9 processes, for 2 s"

# given four that are alike, then none is named, with what would have been found; another job on GPU 4 doesn't matter
export GPULAB_FAKE_NVML="gpus=5; $steady; process=$on,4:$alone:100:80:C; sm_clock=1980,1970,1990,1980,900"
run watch job:4711 "${brief[@]}" --fail --json -q # the workers have the same rank, and are none
expect_status 0
json 'd["recordings"][0]["verdict"] == "none" and 0.01 < d["recordings"][0]["limits"][0]["detection_limit"] < 0.1'
json 'd["answer"].startswith("None of 4 GPUs lags. Detection limits: SM clock ")'
json '[u["rank"] for u in d["recordings"][0]["units"]] == ["0", "1", "2", "3"]'

# given two that differ, then it is inconclusive which lags
export GPULAB_FAKE_NVML="gpus=2; $steady; sm=60,90; process=0:${pids[0]}:100:80:C,1:${pids[1]}:100:80:C"
run watch "$job" "${brief[@]}" --fail
expect_status 0
expect_out 'Inconclusive which of GPU 0 \(rank 0\) and GPU 1 \(rank 1\) lags'

# given a recording of the same, then the analysis says so; ranks are not in it
export GPULAB_FAKE_NVML="gpus=4; $steady; process=$on; sm_clock=1980,1980,1780,1980"
run record "${brief[@]}" -o a.db
run analyze straggler a.db --fail
expect_status 3
expect_out "GPU 2 \(pid ${pids[2]}\) lags: SM clock 10\.1% lower"

# a time that allows no verdict isn't waited for
run watch $$ --duration 12s
expect_status 2
expect_err 'duration 12s is too short: with --interval 2s a verdict needs 28s'

# what can't be watched is one line
while IFS='|' read -r word why; do
    GPULAB_FAKE_NVML="gpus=1" run watch "$word" --interval 50ms -q
    expect_status 2
    expect_one_line
    expect_err "$why"
done <<CASES
$alone|process $alone uses no GPU and has no two ranks
999999999|no process or job 999999999 runs on this host
job:9999|no process of job 9999 runs on this host
train.py|'train.py' is neither a process's number nor job:ID
CASES

# ranks that a launcher starts while it is watched are watched, too
# shellcheck disable=SC2016 # the inner shell expands it
setsid bash -c 'sleep 0.7; for rank in 0 1; do RANK=$rank timeout 12 bash -c "while :; do :; done" & done; wait' &
late=$!
GPULAB_FAKE_NVML="gpus=1" run watch "$late" --interval 50ms --duration 2s -q
kill -- "-$late"
expect_status 0
expect_out "^process $late \\(2 ranks, "

# a job that ends is told, and so is that it was too short
sleep 1.5 &
short=$!
GPULAB_FAKE_NVML="gpus=2; memory_total=1000; process=0:$short:100:80:C,1:$short:100:80:C" run watch "$short" -q
expect_status 0
expect_out 'Not tested'
expect_out 'The job ended after [0-9.]+ s'
finish
