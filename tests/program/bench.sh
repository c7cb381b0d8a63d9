#!/usr/bin/env bash
# bench as a user meets it: figures, JSON, repetitions, fixed counts, interruption. Never a timing.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
quick=(--limit 1s --precision 0.2)
small=(patch_size=32 depth=1 dim=64 heads=1 batch_size=2 'tensor_shape=[3,64,64]' memory_size_mb=4)

run bench
expect_status 0
for workload in vit mlp allreduce memcpy gemm softmax null; do
    expect_out "^ +$workload +"
done

# what NCCL wouldn't accept is refused with what it would, and what can't be had is said in the result
run bench allreduce nccl_threads=16
expect_status 2
expect_err "nccl_threads=16: must be auto, 64, 128, 256 or 512"
run bench allreduce bytes=1003 allreduce=nccl "${quick[@]}" --device cpu:0/2.1,cpu:0/2.0
expect_status 0
expect_out "allreduce=nccl not available, used ring through host memory"
expect_out "ranks 2" # all that --device names take part
grep -q "uses the first" "$work/err" && fail "devices that take part are said not to"
run bench allreduce "${quick[@]}" --device cpu:0
expect_status 2
expect_err "cpu:0 has nothing to sum: name several devices, such as --device cpu:0/2"
run bench allreduce allreduce=hierarchical "${quick[@]}" --device sim:rtx4070tis-2
expect_status 2
expect_err "simulated devices sum in a study, such as gpulab run train_scaling"

run bench gemm m=64 n=64 k=64 "${quick[@]}"
expect_status 0
expect_out "^gemm.* on (cpu|cuda):"
expect_out "median .*\[.*\] at [0-9]+%, within one run"
expect_out "FLOP/s"
expect_out "Verification +passed: relative error"
grep -q $'\033' "$work/out" "$work/err" && fail "escapes in a file"
grep -qE "measuring|warming" "$work/err" && fail "a progress bar in a file"

run bench vit "${small[@]}" --device cpu:0/2 "${quick[@]}" --json
expect_status 0
expect_err "names 2 devices: bench uses the first, cpu:0/2.0"
json 'd["workload"] == "vit" and d["label"] == "vit32x1x64" and d["samples_per_second"] > 0'
json 'd["device"]["name"] == "cpu:0/2.0" and not d["device"]["simulated"]'
json 'd["latency_ms"]["p50"] <= d["latency_ms"]["p95"] <= d["latency_ms"]["p99"] <= d["latency_ms"]["max"]'
json 'd["latency_ms"]["min"] <= d["latency_ms"]["median"]'
json 'd["validity"]["valid"] is True and d["validity"]["reasons"] == []'
json 'd["verification"]["passed"] and d["verification"]["relative_error"] < d["verification"]["tolerance"]'
json 'd["config"]["depth"] == 1 and d["config"]["batch_size"] == 2 and d["config"]["num_samples"] == 0'
json 'set(d["stages"]) == {"h2d", "compute", "d2h"} and d["stages"]["h2d"]["bytes_per_second"] > 0'
json 'd["stop"] in ("precise", "limit") and d["iterations"] >= 1'
json 'set(d["conditions"]) >= {"load_before", "foreign_cpu", "steal"}'
# samples_per_second is images over the time between first start and last end, stretch by stretch
json 'abs(d["samples_per_second"] * d["repetitions"][0]["measured_seconds"] / (2 * d["iterations"]) - 1) < 1e-6'

run bench mlp widths=50-33-7-3 dataset_size=500 --device cpu "${quick[@]}" --json
expect_status 0
json 'd["parameters"] == 1945 and d["label"] == "mlp_50-33-7-3_batch32" and d["verification"]["passed"]'
json 'set(d["metrics"]) == {"loss", "mae", "forward_ms", "backward_ms", "update_ms"}'

# samples count batches, rounded up
run bench vit "${small[@]}" num_samples=7 warmup_samples=3 --json
expect_status 0
json 'd["iterations"] == 4 and d["warmup_iterations"] == 2 and d["stop"] == "counted"'
run bench null --iterations 9 --warmup 1 --json
json 'd["iterations"] == 9 and d["warmup_iterations"] == 1'

run bench gemm m=64 n=64 k=64 --repeat 3 --iterations 20
expect_status 0
expect_out "across 3 runs"
expect_out "^ +3 +.* 20\$"
run bench gemm m=64 n=64 k=64 --repeat 3 --iterations 20 --json
json 'len(d["repetitions"]) == 3 and d["median_interval_is"] == "across repetitions"'
json 'd["latency_ms"]["median"] == sorted(r["latency_ms"]["median"] for r in d["repetitions"])[1]'

run bench memcpy size=1MiB direction=both "${quick[@]}" --json
expect_status 0
json 'd["samples_per_second"] is None and set(d["stages"]) == {"h2d", "d2h"}'

run bench gemm m=64 n=64 k=64 --no-verify --iterations 5
expect_status 0
expect_out "Warning: the results were not verified"

# a node that isn't the device's own is said; here it is the same
run bench null --node 0 --iterations 5 --json
expect_status 0
json 'd["numa_node"] == 0'

# Ctrl-C: what there is, and status 130
interrupt() {
    what="gpulab $* (interrupted)"
    # on a busy machine it may take longer until something was measured
    for delay in 1.5 6 24; do
        # a shell starts background jobs with SIGINT ignored, which gpulab respects
        python3 - "$delay" "$gpulab" "$@" >"$work/out" 2>"$work/err" <<'PYTHON'
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
child = subprocess.Popen(sys.argv[2:])
time.sleep(float(sys.argv[1]))
child.send_signal(signal.SIGINT)
sys.exit(child.wait())
PYTHON
        status=$?
        grep -q "before anything was measured" "$work/err" || break
    done
}
interrupt bench gemm m=256 n=256 k=256 --no-verify --iterations 10000000 --warmup 0
expect_status 130
expect_out "stopped by the user"
interrupt bench gemm m=256 n=256 k=256 --no-verify --iterations 10000000 --warmup 0 --json
expect_status 130
json 'd["stop"] == "interrupted" and d["iterations"] >= 1'

# a polite end from outside is prompt, with whatever threads are at work
python3 - "$gpulab" bench gemm m=256 n=256 k=256 --iterations 10000000 >"$work/out" <<'PYTHON' || fail "SIGTERM: see above"
import signal, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:])
time.sleep(1)
child.send_signal(signal.SIGTERM)
status = child.wait(timeout=20)
if status != -signal.SIGTERM:
    sys.exit(f"ended with {status}")
PYTHON

# --quiet leaves the result alone
run bench null --device cpu:0/2 --iterations 5 --quiet
expect_status 0
[ ! -s "$work/err" ] || fail "$what: $(cat "$work/err")"

finish
