#!/usr/bin/env bash
# When a second device pays: on a simulated machine whose GPUs have no peer access two are slower than one; on
# CPU slices training is data-parallel for real. Both leave the files that the published study describes.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash" "$@"
cd "$work" || exit 1
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/data
export XDG_CACHE_HOME=$work/cache GPULAB_LOCK_DIR=$work

# folder: of the study that ran last
folder() {
    sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out"
}

# show FILE: as the output of the next checks
show() {
    [ "$1" -ef "$work/out" ] || cp "$1" "$work/out" || fail "$1 is missing"
}

# 1. Two simulated GPUs sum through host memory: not worth it, and the report says so, batch by batch
run run train_scaling device=sim:rtx4070tis-2 experiment.gpu_mode=compare \
    'experiment.batch_sizes=[32,64,128]' experiment.runs=3 -q
expect_status 0
expect_out "^No answer for real GPUs: on this simulated machine each GPU takes the whole$"
expect_out "Simulated: 2 GPUs are 0\.8[0-9]+× \[0\.8[0-9]+,"
expect_out "^ +Measure on real GPUs\.$"
report=$(folder)/report
grep -q "medium: MLP with layers 50-256-128-64-3\. large: MLP with layers 50-1024-" "$report/report.md" ||
    fail "names on the chart are not explained"
# samples/s on one GPU and two as published (a framework's steps), to a fifth; speed-ups within 0.1
show "$(folder)/results.json"
json '(lambda rate: all(
          abs(rate(model, 1, batch) / one - 1) < 0.2 and abs(rate(model, 2, batch) / two - 1) < 0.2
          and abs(rate(model, 2, batch) / rate(model, 1, batch) - two / one) < 0.1
          for model, batch, one, two in [("medium", 32, 4156, 3567), ("medium", 128, 16883, 12345),
                                         ("large", 32, 1245, 1123)]))(
          lambda model, ranks, batch: [r["samples_per_second"] for r in d if len(r["gpu_ids"]) == ranks
              and "_%s_batch%d_" % (model, batch) in r["run_id"] + "_"][0])'
show "$report/benchmark_medium_multi_gpu.json"
json '([b["batch_size"] for b in d] == [32, 64, 128]
      and all(b["model_parameters"] == 54403 and b["num_runs"] == 3 and b["simulated"] for b in d)
      and all(r["communication_time_ms"] > 0 for b in d for r in b["detailed_runs"])
      and all(0 < r["communication_time_ms"] < r["training_time_ms"] for b in d for r in b["detailed_runs"]))'
# a GPU is as busy as was sampled, however long the host's part of a step is; no end of a rate is below 0
json '(all(r["gpu_utilization"] is None or r["gpu_utilization"] < 5 for b in d for r in b["detailed_runs"])
      and all(0.5 < r["compute_utilization"] <= 1.001 for b in d for r in b["detailed_runs"]))'
json 'all(0 < b["confidence_interval_95"][0] < b["mean_samples_per_sec"] < b["confidence_interval_95"][1] for b in d)'
show "$report/benchmark_large_single_gpu.json"
json 'all(b["mean_gpu_utilization"] < 5 for b in d)'
json 'all(b["model_parameters"] == 2021379 and b["mean_communication_ms"] == 0 for b in d)'
show "$report/comparison_report_medium.md"
expect_out "^\| 128 \| 2 \| .* No answer: simulated \|$"
expect_out "^\*\*Conclusion\*\*: no answer for real devices"
expect_out "said to have 258 K parameters; its layers have 54403"
expect_out "^On this simulated machine each GPU takes the whole batch's time, so several can't be faster\.$"

# 2. What was measured, and predicted within that; simulated studies are used when asked, or where they were just made
run analyze training train_scaling --json
json '(lambda s: len(s["speedups"]) == 6 and all(r["grade"] == "no answer" for r in s["speedups"])
      and len(s["timeline"]) == 12 and len(s["published"]) == 10
      and all(0 < r["exposed_ms"] < r["step_ms"] for r in s["timeline"] if r["devices"] == 2)
      and all(0.7 < r["predicted"] < 1 for r in s["predicted"]))(d["sets"][0])'
json '(d["claims"][0]["kind"] == "training.devices" and d["claims"][0]["verdict"] == "yes"
      and {c["verdict"] for c in d["claims"] if c["kind"] == "training.break_even"} == {"no", "not_tested"})'
# nothing is said of models, batches and numbers of devices outside of what was run
run advise --workload mlp widths=50-4096-4096-3 batch_size=256 train_scaling --json
json '(d["simulated"] and d["training"]["parameters"] == 17002499 and d["training"]["points"] == 12
      and [s["devices"] for s in d["training"]["speedups"]] == [2]
      and d["training"]["speedups"][0]["verdict"] == "not_tested"
      and d["training"]["speedups"][0]["speedup"] is None and d["claims"][0]["verdict"] == "not_tested")'
run advise --workload mlp model=large batch_size=48 train_scaling --json
json '(lambda s: s["verdict"] == "stay" and not s["measured"] and 0.75 < s["low"] < s["speedup"] < s["high"] < 0.95)(
      d["training"]["speedups"][0])'
run advise --workload mlp model=large batch_size=64 train_scaling
expect_out "^ +2 .* 0\.8[0-9]+× \[0\.8.* measured$"
expect_out "^2 GPUs are slower than one at every batch tested \("
run run train_scaling device=sim:rtx4070tis-2 experiment.gpu_mode=auto 'experiment.batch_sizes=[48]' \
    experiment.model=large experiment.runs=1 --dry-run # by what was measured on these devices
expect_out "leaves mlp_large_batch48 on one device: 2 devices$"
expect_out "would be 0\.8[0-9]+× .* as fast as one, by$"
run run train_scaling device=cpu:0/2 experiment.gpu_mode=auto 'experiment.batch_sizes=[48]' \
    experiment.model=large experiment.runs=1 --dry-run
expect_out "mlp_large_batch48 on one device, by a"
mkdir elsewhere && cd elsewhere || exit 1 # with no study below it: a simulated one speaks when asked
run advise --workload mlp model=large batch_size=64
expect_status 0
expect_out "no study has trained a model"
tr '\n' ' ' <"$work/out" >"$work/line" && show "$work/line"
expect_out "A published rule: stay on one +device \(fewer than 5 M parameters and a batch +below 128\)"
expect_out "gpulab run train_scaling .*experiment.batch_sizes=\[16,32,64,128\]"
cd "$work" || exit 1
run advise --workload mlp model=large batch_size=64 --json # or where it was just run
json '(d["simulated"] and d["study"].startswith("outputs/train_scaling/")
      and d["training"]["study"].endswith(d["study"]))'
run advise --workload mlp widths=50-0-3
expect_status 2
expect_err "each width must be 1 to"
run advise --workload mlp batch_size=0
expect_status 2
expect_err "batch_size=0: must be 1 to"

# 3. CPU slices, for real: a gang's throughput counts the batch once, and its parts are told
run run train_scaling device=cpu:0/2 experiment.model=medium experiment.batch_sizes=33 experiment.runs=1 \
    experiment.test.num_steps=400 -q
expect_status 0
study=$(folder)
show "$study/results.json"
json '(len(d) == 2 and all(r["success"] for r in d)
      and all(r["allreduce"] == "ring"
              and 0 <= r["exposed_communication_ms"] <= r["communication_time_ms"] * 1.5
              and sum(k["samples"] for k in r["ranks"]) == 33 * 400
              for r in d if len(r["gpu_ids"]) == 2))'
run export "$study" --what iterations
# Pauses between chunks don't count: the time lies between that of the iterations and the whole span.
python3 - "$study/results.json" "$work/out" <<'CHECK' || fail "throughput isn't samples over the time of the iterations"
import collections, csv, json, sys
parts = collections.defaultdict(list)
for line in csv.DictReader(open(sys.argv[2])):
    parts[line["run_id"], line["rank"]].append((int(line["start_ns"]), int(line["end_ns"])))
for run in json.load(open(sys.argv[1])):
    ranks = [times for (run_id, rank), times in parts.items() if run_id == run["run_id"]]
    assert len(ranks) == len(run["gpu_ids"]) and all(len(times) == 400 for times in ranks), run
    samples = 33 * 400 / len(ranks)
    least = sum(samples * 1e9 / (times[-1][1] - times[0][0]) for times in ranks)
    most = sum(samples * 1e9 / sum(end - start for start, end in times) for times in ranks)
    assert 0.999 * least < run["samples_per_second"] < 1.001 * most, (least, most, run)
CHECK

# 4. What can't be had is refused before it starts
run run train_scaling device=cpu:0 experiment.runs=1
expect_status 2
expect_err "has 1 here \(0 is cpu:0\).*add: device=cpu:0/2"
run run train_scaling device=cpu:0/2 'experiment.hardware.gpu_ids=[0,1,2]'
expect_status 2
expect_err "asks for device 2.*add: experiment.hardware.gpu_ids=all"
run run nccl_settings device=cpu:0
expect_status 2
expect_err "between whole NVIDIA GPUs, two or more, but device=cpu:0 has 1"
run run nccl_settings device=cpu:0/2 --dry-run
expect_out "allreduce=nccl: NCCL needs whole NVIDIA GPUs"
run run train_scaling device=cpu:0/2 experiment.gpu_mode=both
expect_status 2
expect_err "must be single, multi, auto or compare"

# 5. What a rank can't do ends all of them, and the run says why
run run train_scaling device=cpu:0/2 experiment.gpu_mode=multi experiment.model=medium \
    experiment.batch_sizes=1 experiment.runs=1 experiment.max_retries=0 -q --no-report
expect_status 1
folders=(outputs/train_scaling/*/*)
show "${folders[-1]}/results.json"
json '"too few for 2 devices" in d[0]["error"]'

# 6. So does one that fails while it measures; the study goes on, and compiled gangs are as good as others
export GPULAB_FAILPOINT=stretch-of-rank-1:3
run run train_scaling device=cpu:0/2 experiment.model=medium experiment.batch_sizes=17 experiment.runs=1 \
    experiment.test.num_steps=20 experiment.max_retries=0 experiment.order=as_given -q --no-report
expect_status 1
unset GPULAB_FAILPOINT
folders=(outputs/train_scaling/*/*)
show "${folders[-1]}/results.json"
json '([r["success"] for r in sorted(d, key=lambda r: len(r["gpu_ids"]))] == [True, False]
      and any((r["error"] or "").startswith("rank 1: cpu:0/2.1: measuring: it fails on purpose") for r in d))'
run run train_scaling device=cpu:0/2 experiment.gpu_mode=multi experiment.widths=50-64-32-3 \
    experiment.model=medium experiment.batch_sizes=17 experiment.runs=1 experiment.test.num_steps=20 \
    experiment.test.compile_model=true experiment.test.dtype=tf32 -q --no-report
expect_status 0
folders=(outputs/train_scaling/*/*)
show "${folders[-1]}/results.json"
json '(d[0]["success"] and d[0]["gradient_ms"] > 0 and d[0]["update_ms"] > 0 and "forward_ms" not in d[0]
      and all(r["verification"]["passed"] and 0 < r["compute_utilization"] <= 1 for r in d[0]["ranks"]))'

# 7. Devices that train a model each get more done, and no training is faster
run run train_scaling device=sim:rtx4070tis-2 experiment.model=medium experiment.batch_sizes=64 \
    experiment.runs=2 experiment.allreduce=none -q
expect_status 0
expect_out "Each GPU trains a model of its own: no training is faster\."
show "$(folder)/report/comparison_report_medium.md"
expect_out "^\*\*Conclusion\*\*: allreduce=none: each device trains a model of its own"
expect_out "^\| 64 \| 8234 \| 6789 \| 0.82x \| – \|$"

# 8. With a batch for each device several don't do the training that one does
run run train_scaling device=sim:rtx4070tis-2 experiment.model=medium experiment.batch_sizes=64 \
    experiment.runs=2 experiment.scaling=weak -q
expect_status 0
report=$(folder)/report
show "$report/report.md"
expect_out "scaling=weak: n GPUs train with n times the batch of one"
show "$report/comparison_report_medium.md"
expect_out "^\*\*Conclusion\*\*: .* scaling=weak: the batch grows with the devices"

# 9. One batch, one run each: values without a verdict, and nothing of other batches
run run train_scaling device=sim:rtx4070tis-2 'experiment.batch_sizes=[64]' experiment.runs=1 -q
expect_status 0
study=$(folder)
expect_out "verdict, 5 runs"
show "$study/report/comparison_report_large.md"
expect_out "^\| 64 \| 2 \| .* No answer: simulated \|$"
expect_out "^\*\*Break-even\*\*: No answer: simulated\.$"
run analyze training "$study" --json
json '(all(c["verdict"] in ("inconclusive", "not_tested") for c in d["claims"])
      and all(r["grade"] == "no answer" for r in d["sets"][0]["speedups"]))'
run advise --workload mlp model=large batch_size=128 "$study" --json
json '(d["training"]["speedups"][0]["verdict"] == "not_tested"
      and "batch 128 is outside the tested 64" in d["answer"])'
run advise --workload mlp model=large batch_size=64 "$study" --json # measured, one run each
json '(lambda s: len(s) == 1 and s[0]["measured"] and s[0]["verdict"] == "inconclusive"
      and abs(s[0]["one_step_ms"] / s[0]["step_ms"] - s[0]["speedup"]) < 0.005)(d["training"]["speedups"])'

# What simulated sums leave out stands beside each verdict on them
expect_out_of() { # FILE PATTERN
    show "$1"
    tr '\n' ' ' <"$work/out" >"$work/line" && show "$work/line"
    expect_out "$2"
}
nvlink="Simulated all-reduces go through host memory: not valid for +GPUs +with NVLink"
expect_out_of "$study/report/report.md" "No answer for real GPUs: on this simulated machine"
expect_out_of "$study/report/comparison_report_medium.md" "$nvlink"
run advise --workload mlp model=large batch_size=64 "$study"
expect_out_of "$work/out" "Simulated all-reduces +go through host memory"
show "$study/results.json"
json 'all(any("several can" in w for w in r["validity"]["warnings"]) == (len(r["gpu_ids"]) == 2) for r in d)'
json 'all(any("NVLink" in w for w in r["validity"]["warnings"]) == (len(r["gpu_ids"]) == 2) for r in d)'

run run train_scaling device=sim:rtx4070tis-2 experiment.model=medium 'experiment.batch_sizes=[64]' experiment.runs=1 \
    experiment.test.compile_model=true -q
show "$(folder)/results.json" # captured graphs save it
json 'len(d) == 2 and all("share_note" not in r for r in d)'

# 10. A sweep over ways to sum: each way has its own rows and findings, and entries tell which it is
run run -m train_scaling device=sim:rtx4070tis-2 experiment.model=medium 'experiment.batch_sizes=[64]' \
    experiment.allreduce=ring,hierarchical experiment.test.dtype=fp32,bf16 experiment.runs=1 -q
expect_status 0
expect_out "verdict, 5 runs"
! grep -q "Program error" "$work/out" || fail "$what: a claim was withdrawn"
study=$(folder)
show "$study/report/benchmark_medium_multi_gpu.json"
json '(len(d) == 4 and len({(b["allreduce"], b["dtype"]) for b in d}) == 4
      and all(b["batch_size"] == 64 and b["overlap"] is True and b["compile_model"] is False for b in d))'
show "$study/report/comparison_report_medium.md"
expect_out "^\| 64 \| dtype=bf16, allreduce=hierarchical \| 2 \| "
expect_out "^\*\*Break-even\*\* \(dtype=fp32, allreduce=ring\): No answer"
expect_out "^\| 64 \| 8234 \| 6789 \| 0.82x( \| 0\.[0-9]+x){4} \|$"
run analyze training "$study" --json
json 'len({s["name"] for s in d["sets"]}) == 4'

finish
