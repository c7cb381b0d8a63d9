#!/usr/bin/env bash
# What a study says of the GPUs that it ran on, from samples that lie in its database.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
fake=$(realpath "$3")/fake
[ -e "$fake/libnvidia-ml.so.1" ] || { echo "skipped: no fake driver here"; exit 77; }
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work LD_LIBRARY_PATH=$fake FAKE_CUDA_GPUS=2
calm="gpus=2; memory_total=1000; memory=300@0:420@0.2; power=250; sm_clock=1500; temperature=61"

# one run of 0.4 s or more on GPU 0; its results are in `out`. What the driver gives as the mean of a
# second takes a longer one
long=experiment.duration=1.5
study() {
    rm -rf outputs
    run run --no-report quick_test device=cuda:0 'experiment.vit_configs=[{depth: 0}]' experiment.duration=0.4 \
        experiment.trace=false experiment.test.memory_size_mb=8 experiment.test.batch_size=1 \
        experiment.resume=false "$@"
    expect_status 0
    cp "$(find outputs -name results.json)" out
}

# given a quiet GPU, then the run has its energy, clock and memory, and is valid
export GPULAB_FAKE_NVML=$calm
study
json 'd[0]["validity"]["valid"] is True'
json '(lambda gpu, run: set(gpu["too_short_for"]) >= {"power_w", "energy_j", "gpu_utilization"} and
  run["power_w"] is run["energy_j"] is gpu["gpu_utilization"] is None)(d[0]["ranks"][0]["gpu"], d[0])'
study "$long"
json 'd[0]["validity"]["valid"] is True and d[0]["ranks"][0]["gpu"]["too_short_for"] == []'
json '150 * 1.5 < d[0]["energy_j"] < 350 * 5 and "energy_estimated" in d[0]["ranks"][0]["gpu"]'
json 'abs(d[0]["power_w"] - 250) < 1 and d[0]["sm_clock_mhz"] == 1500'
json 'd[0]["gpu_memory_peak_mb"] == 420 and d[0]["ranks"][0]["gpu"]["temperature_c"] == 61'
json 'd[0]["throttled_s"] == {} and d[0]["foreign_processes"] == []'
json 'd[0]["ranks"][0]["gpu"]["simulated"] is True' # that driver is none
db=$(find outputs -name study.db)
python3 - "$db" <<'PY' || fail "study.db: see above"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
kinds = dict(db.execute("SELECT kind, count(*) FROM entity GROUP BY kind"))
assert kinds["gpu"] == 2 and kinds["cpu"] == kinds["memory"] == kinds["numa"] == 1, kinds
ticks = db.execute("SELECT sum(count) FROM chunk JOIN entity ON entity.number = chunk.entity"
                   " WHERE kind = 'gpu'").fetchone()[0]
assert ticks >= 8, ticks
PY

run estimate --json "$(dirname "$db")"
expect_status 0
json 'd["estimates"][0]["memory"][-1]["device"] == "GPU 1" and d["estimates"][0]["memory"][-1]["peak_mb"] == 420'
run estimate "$(dirname "$db")"
expect_out 'GPU 0 \(simulated\) 420 MiB'

# given somebody else's process on that GPU, then the run is spoilt; on the other one it doesn't matter
sleep 60 &
stranger=$!
export GPULAB_FAKE_NVML="$calm; process=0:$stranger:100:50:C"
study
json 'd[0]["validity"]["valid"] is False and d[0]["success"] is True'
json 'd[0]["foreign_processes"][0]["pid"] == '"$stranger"' and d[0]["foreign_processes"][0]["name"] == "sleep"'
json 'any("other process" in text and "sleep" in text for text in d[0]["validity"]["invalid"])'
export GPULAB_FAKE_NVML="$calm; process=1:$stranger:100:50:C"
study
json 'd[0]["validity"]["valid"] is True and d[0]["foreign_processes"] == []'
kill "$stranger"

# given heat, or an error that the driver reports, then it is spoilt too; at its power limit a GPU is as it is
# under load: a warning
export GPULAB_FAKE_NVML="$calm; reasons=0x20"
study
json 'd[0]["throttled_s"]["sw_thermal"] > 0.2'
json 'any("clocks were lowered" in text and "thermal" in text for text in d[0]["validity"]["invalid"])'
export GPULAB_FAKE_NVML="$calm; reasons=0x4"
study
json 'd[0]["throttled_s"]["sw_power_cap"] > 0.2 and d[0]["validity"]["valid"] is True'
json 'any("clocks were lowered" in text and "power limit" in text for text in d[0]["validity"]["warnings"])'
export GPULAB_FAKE_NVML="$calm; xid=0:79@+0.1"
study
json 'd[0]["ranks"][0]["gpu"]["xids"] == [79]'
json 'any("Xid 79" in text for text in d[0]["validity"]["invalid"])'

# given workers that the driver lists while they live, then no run takes the one before it for a stranger;
# what is said of work that was cleared away with a worker harms nobody either
export GPULAB_FAKE_NVML="gpus=2; memory_total=1000; memory=300; process=0:children:100:50:C; xid=0:45@+0.1"
study experiment.repeat=3
json 'len(d) == 3 and all(run["validity"]["valid"] and not run["foreign_processes"] for run in d)'
json 'any("Xid 45" in text for run in d for text in run["validity"]["warnings"])'
study experiment.repeat=2 experiment.max_workers=2 experiment.runs_per_device=2 # nor one beside it
json 'len(d) == 2 and all(run["validity"]["valid"] and not run["foreign_processes"] for run in d)'

# two slices of one GPU: its energy counts once, and is said to be the whole GPU's
export GPULAB_FAKE_NVML=$calm
study "$long" device=cuda:0/2 'experiment.hardware.gpu_ids=[[0,1]]'
json 'all(rank["gpu"]["whole_gpu"] is True for rank in d[0]["ranks"])'
json 'abs(d[0]["power_w"] - 250) < 1'

# memory that the first run took and that comes back a moment later is waited for
export GPULAB_FAKE_NVML="gpus=2; memory_total=1000; memory=300@0:900@1.2:300@7.5"
rm -rf outputs
run run --no-report quick_test device=cuda:0 'experiment.vit_configs=[{depth: 0},{depth: 0, patch_size: 16}]' \
    experiment.duration=1.5 experiment.trace=false experiment.test.memory_size_mb=8 \
    experiment.test.batch_size=1 experiment.resume=false
expect_status 0
cp "$(find outputs -name results.json)" out
json 'len(d) == 2 and max(r["start_time"] for r in d) > min(r["start_time"] for r in d)'
json '(lambda t: (t[1] - t[0]).total_seconds() > 1)(sorted(__import__("datetime").datetime.fromisoformat(r["start_time"]) for r in d))'

# a driver that hangs or is lost fails no run
export GPULAB_FAKE_NVML="$calm; fail=nvmlDeviceGetMemoryInfo_v2:15/0"
study
json 'd[0]["success"] is True and d[0]["power_w"] is None and d[0]["ranks"][0]["gpu"]["too_short_for"] == []'
json 'any("could not be sampled" in text for text in d[0]["validity"]["warnings"])'

# turned off, then nothing is sampled
export GPULAB_FAKE_NVML=$calm
study experiment.monitor=false
json 'd[0]["energy_j"] is None and d[0]["foreign_processes"] is None'

finish
