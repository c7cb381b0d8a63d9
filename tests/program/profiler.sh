#!/usr/bin/env bash
# A study whose workers run under nsys: a stand-in that records how it was called, runs what it is
# given, and leaves a report some time after that has ended, as nsys does.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work/locks
mkdir -p "$work/locks" "$work/bin"
cd "$work" || exit 1
tiny=(--no-report experiment=quick_test device=cpu:0 'experiment.hardware.gpu_ids=[0]'
    'experiment.hardware.numa_nodes=[0]' experiment.test.num_samples=4 experiment.test.batch_size=2
    experiment.test.warmup_samples=2 experiment.test.memory_size_mb=8
    'experiment.vit_configs=[{patch_size:32,depth:0,heads:1,dim:64,mlp_dim:64}]')

# without nsys nothing starts
PATH=/usr/bin:/bin run run "${tiny[@]}" experiment.profiler=nsys
if ! PATH=/usr/bin:/bin command -v nsys >/dev/null; then
    expect_status 2
    expect_one_line
    expect_err 'no nsys on PATH.*developer.nvidia.com/nsight-systems.*experiment.profiler=none'
    [ ! -e "$work/outputs" ] || fail "a study was begun all the same"
fi
run run "${tiny[@]}" experiment.profiler=nsight
expect_status 2
expect_err 'must be none or nsys'
run run "${tiny[@]}" experiment.profiler=nsys --dry-run
expect_status 0

cat >"$work/bin/nsys" <<'STUB'
#!/usr/bin/env bash
# every option has its value in the next word; the program follows
printf '%s\n' "$@" >>"$NSYS_LOG"
[ "$1" = profile ] || exit 64
shift
while [[ $1 == --* ]]; do
    [ "$1" != --output ] || output=$2
    shift 2
done
# started by a process that is gone at once, as a profiler may do: the worker must not mind
[ -z "${NSYS_ORPHAN-}" ] || { ( "$@" & echo $! >"$output.pid" ); while kill -0 "$(cat "$output.pid")" 2>/dev/null; do sleep 0.05; done; }
[ -n "${NSYS_ORPHAN-}" ] || "$@"
status=$?
sleep 0.3
echo report >"$output.nsys-rep"
exit "$status"
STUB
chmod +x "$work/bin/nsys"
export PATH=$work/bin:$PATH NSYS_LOG=$work/nsys.log

# the result is there, and so is the report, in the study's folder
run run "${tiny[@]}" experiment.profiler=nsys --json
expect_status 0
json 'd["summary"]["successful_runs"] == 1 and d["runs"][0]["samples_per_second"] > 0'
json 'any("profiled by nsys" in w for w in d["runs"][0]["validity"]["warnings"])'
folder=$(python3 -c 'import json; print(json.load(open("'"$work/out"'"))["folder"])')
report=$folder/traces/pipeline_gpu0_numa0_vit0x0x0
[ "$(cat "$report.nsys-rep")" = report ] || fail "no report: $(find "$folder")"
for word in --trace cuda,nvtx "$report" "$gpulab"; do
    grep -qx -- "$word" "$NSYS_LOG" || fail "called without $word: $(cat "$NSYS_LOG")"
done
[ "$(tail -1 "$NSYS_LOG")" = worker ] || fail "another program: $(cat "$NSYS_LOG")"

# the profiler's library hears the ranges that traces of ours have, each stage within its batch and the
# measured batches within their window
export NVTX_INJECTION64_PATH=$build_dir/fake/libnvtx_injection.so FAKE_NVTX_LOG=$work/ranges
run run "${tiny[@]}" 'experiment.vit_configs=[{patch_size:32,depth:1,heads:1,dim:64,mlp_dim:64}]' \
    experiment.profiler=nsys experiment.trace=false experiment.resume=false --json
expect_status 0
ranges=$(awk '$2 == "push" { stack[++depth] = $3; path = stack[1]
        for (i = 2; i <= depth; i++) path = path "/" stack[i]
        print path }
    $2 == "pop" { depth-- }
    END { print "left open: " depth }' "$FAKE_NVTX_LOG")
for window in warmup_double_buffer test_double_buffer; do
    for range in h2d_batch_0 compute_batch_0/vit_forward_0 d2h_batch_0; do
        grep -qx "$window/batch_0/$range" <<<"$ranges" || fail "no range $window/batch_0/$range: $ranges"
    done
done
grep -qx 'test_double_buffer/batch_1/compute_batch_1/vit_forward_1' <<<"$ranges" || fail "one batch: $ranges"
grep -qx 'left open: 0' <<<"$ranges" || fail "ranges were left open: $ranges"
[ "$(cut -d' ' -f1 "$FAKE_NVTX_LOG" | sort -u | wc -l)" = 1 ] || fail "several threads: $(cat "$FAKE_NVTX_LOG")"
unset NVTX_INJECTION64_PATH

# a profiler whose starting process is gone while the worker runs
NSYS_ORPHAN=1 run run "${tiny[@]}" experiment.profiler=nsys experiment.resume=false --json
expect_status 0
json 'd["summary"]["successful_runs"] == 1'

# a profiler that can't start it: a failed run that says what it printed, not a hung study
printf '#!/bin/sh\necho "cannot attach" >&2\nexit 3\n' >"$work/bin/nsys"
run run "${tiny[@]}" experiment.profiler=nsys experiment.resume=false experiment.max_retries=0 --json
expect_status 1
json '"status 3" in d["runs"][0]["error"]'

# killed with its runner
cat >"$work/bin/nsys" <<'STUB'
#!/usr/bin/env bash
shift
while [[ $1 == --* ]]; do shift 2; done
"$@" &
echo "$!" >"$WORKER_PID"
wait
STUB
export WORKER_PID=$work/worker.pid
"$gpulab" run "${tiny[@]}" experiment.profiler=nsys experiment.resume=false \
    experiment.test.num_samples=100000000 >"$work/out" 2>"$work/err" &
runner=$!
for _ in $(seq 200); do [ -s "$WORKER_PID" ] && break; sleep 0.05; done
sleep 0.3
kill -KILL "$runner"
wait "$runner" 2>/dev/null
for _ in $(seq 200); do kill -0 "$(cat "$WORKER_PID")" 2>/dev/null || break; sleep 0.05; done
kill -0 "$(cat "$WORKER_PID")" 2>/dev/null && fail "the worker outlived its runner"

finish
