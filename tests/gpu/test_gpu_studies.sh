#!/usr/bin/env bash
# Studies on a GPU as a user runs them: quick_test kernel by kernel, with graphs, and on two slices at once
# in one worker; training of an MLP and of GPT-2 on all slices. All runs must succeed with verified outputs,
# copies must lie under compute, and slices must run side by side (check_study.py).
#
#   test_gpu_studies.sh [OVERRIDE...]       more overrides for each quick_test
#
#   GPULAB               the program; by default the one in the folder above
#   GPULAB_TEST_DEVICE   cuda:0; the same on another device, say cpu:0
#   GPULAB_TEST_SLICES   4: what the device is cut into
#
# Needs python3. Exits 77 without that or the device.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
gpulab=${GPULAB:-$here/../gpulab}
device=${GPULAB_TEST_DEVICE:-cuda:0}
slices=$device/${GPULAB_TEST_SLICES:-4}

skip() {
    echo "skipped: $*"
    exit 77
}
[ -x "$gpulab" ] || skip "no program $gpulab"
command -v python3 >/dev/null || skip "no python3 here, which reads results and traces"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$gpulab" devices --device "$device" >"$work/out" 2>"$work/why" || skip "$(head -1 "$work/why")"
export XDG_STATE_HOME=$work/state
failed=0

study() { # study NAME CHECKS STUDY OVERRIDES...
    local name=$1 checks=$2 status=0
    shift 2
    echo "$name"
    "$gpulab" run "$@" output_dir="$work/$name" >"$work/log" 2>&1 || status=$?
    if [ "$status" != 0 ]; then
        echo "ERROR: $name: gpulab run $*: status $status:"
        tail -20 "$work/log" | sed 's/^/error: /'
        failed=1
    fi
    for folder in "$work/$name"/*/*/*/; do
        # shellcheck disable=SC2086 # several options
        python3 "$here/check_study.py" "$folder" $checks || failed=1
    done
}

study plain "" quick_test device="$device" "$@"
study compiled --graphs quick_test device="$device" experiment.test.compile_model=true "$@"
# long enough for the time that both need to begin to be a small part
study slices --gang quick_test device="$slices" 'experiment.hardware.gpu_ids=[[0,1]]' \
    experiment.processes=shared experiment.test.num_samples=2000 "$@"
# a batch that doesn't divide, one operation before the sums
for dtype in fp32 tf32; do
    study "trained-$dtype" "" train_scaling device="$slices" experiment.gpu_mode=multi \
        'experiment.batch_sizes=[17]' experiment.runs=2 experiment.max_retries=0 \
        experiment.test.compile_model=true experiment.test.dtype="$dtype"
done
# sums in buckets beside the backward pass; cores have fp32 alone, and no time for a larger model
model=(+experiment.depth=6 +experiment.width=256 +experiment.heads=4 +experiment.seq=128 +experiment.vocab=1000
    experiment.runs=2)
dtypes=(fp32 bf16)
case $device in
cuda*) ;;
*)
    model=(+experiment.depth=1 +experiment.width=64 +experiment.heads=1 +experiment.seq=16 +experiment.vocab=64
        experiment.runs=1)
    dtypes=(fp32)
    ;;
esac
for dtype in "${dtypes[@]}"; do
    study "gpt2-$dtype" "" train_scaling experiment.workload=gpt2 device="$slices" experiment.gpu_mode=multi \
        'experiment.batch_sizes=[6]' experiment.max_retries=0 experiment.bucket=1MiB \
        "${model[@]}" +experiment.accumulation=2 experiment.test.dtype="$dtype"
done
exit "$failed"
