#!/usr/bin/env bash
# GPUs as a user meets them, shown by a driver without any (tests/fake): what is listed can be used,
# and each thing that may be wrong with a GPU is one clear line.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
cd "$work" || exit 1
[ -e "$build_dir/fake/libcuda.so.1" ] || { echo "no fake driver in $build_dir/fake"; exit 1; }
export LD_LIBRARY_PATH=$build_dir/fake
unset CUDA_VISIBLE_DEVICES CUDA_HOME
export XDG_CACHE_HOME=$work/cache

run devices
expect_status 0
expect_out '^ +cuda:1 +[0-9a-z]+ +1\.00 GiB +NVIDIA Fake 90, 132 multiprocessors'
expect_out '^ +CUDA driver +580\.00, CUDA 13\.0 +'
expect_out '^ +NVML '
run devices --json
json '[v["name"] for b in d["backends"] if b["backend"] == "cuda" for v in b["devices"]] == ["cuda:0", "cuda:1"]'
json 'd["libraries"][0]["version"] == "580.00, CUDA 13.0"'
# of every library that belongs to a CUDA, the one rule: none of a later major version than the driver's
FAKE_CUDA_VERSION=12040 run devices --json
json 'all(("too new for the driver" in (l["why_none"] or "")) == (l["version"].startswith(("13.", "API 13"))) for l in d["libraries"] if l["path"] and l["library"] in ("NVRTC", "cuBLASLt", "CUPTI"))'
json 'all(l["unavailable"] for l in d["libraries"] if l["why_none"])'
run devices --device cuda:0/4
expect_out '^ +cuda:0/4\.3 .* 32 of 132 multiprocessors of NVIDIA Fake 90'
FAKE_CUDA_MIG=1 run devices --device cuda
expect_out '^ +cuda:MIG-00000010-0000-0000-0000-0000000000cd ' # whole, to be pasted

refuse() { # refuse SELECTOR PATTERN: by itself, and one line
    run devices --device "$1"
    expect_status 2
    expect_one_line
    expect_err "$2"
}
# slices side by side: in one process, or where an MPS daemon serves the GPU
apart=(run quick_test --dry-run device=cuda:0/4 'experiment.hardware.gpu_ids=[[0,1]]'
    'experiment.vit_configs=[{depth:0}]')
export CUDA_MPS_PIPE_DIRECTORY=$work/mps
run "${apart[@]}"
expect_status 0
for key in experiment.processes=per_rank experiment.max_workers=2; do
    run "${apart[@]}" $key
    expect_status 2
    expect_one_line
    expect_err "time-share a GPU unless an MPS daemon serves it .*leave ${key%=2} ?.*out"
done
mkdir "$work/mps" && mkfifo "$work/mps/control"
run "${apart[@]}" experiment.processes=per_rank
expect_status 0
unset CUDA_MPS_PIPE_DIRECTORY

refuse cuda:3 'cuda:3: there are 2 GPUs: cuda:0, cuda:1$'
refuse cuda:0/40 'at most 16 slices'
FAKE_CUDA_MIG=0 refuse cuda:0 'MIG is on.*cuda:MIG-00000000'
FAKE_CUDA_GPUS=0 refuse cuda:0 'finds no GPU'
FAKE_CUDA_FAIL=nvmlInit_v2:9 FAKE_CUDA_GPUS=0 refuse cuda 'the NVIDIA driver is not loaded|finds no GPU|libcuda'
CUDA_VISIBLE_DEVICES=7 refuse cuda "CUDA_VISIBLE_DEVICES='7' leaves none of 2 GPUs"
FAKE_CUDA_VERSION=11080 refuse cuda 'driver \(CUDA 11\.8\) is too old: it lacks cuLibrary'
FAKE_CUDA_VERSION=12040 run devices
expect_out 'CUDA driver: functions are missing: GPUs can.t be cut into slices'

# copies need no kernels: a whole bench runs
run bench memcpy --device cuda:0 size=1M --limit 1s --json
expect_status 0
json 'd["device"]["name"] == "cuda:0" and d["device"]["physical"].startswith("cuda:GPU-0000")'
run bench memcpy --device cuda:1/2.1 size=1M --limit 1s
expect_status 0

fails() { # fails PATTERN: opening or using the GPU ends in one line
    run bench memcpy --device cuda:0 size=1M --limit 1s
    expect_status 1
    expect_one_line
    expect_err "$1"
}
FAKE_CUDA_FAIL=cuInit:999 fails 'opening cuda:0: cuInit: .*\(999\).*Xid'
FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:46 FAKE_CUDA_MODE=3 fails 'another process has the GPU in exclusive mode'
FAKE_CUDA_FAIL=cuMemAlloc:2 fails 'out of device memory: .* asked for, 1\.00 GiB of 1\.00 GiB free on cuda:0'
FAKE_CUDA_FAIL=cuMemcpyHtoDAsync:700 fails 'illegal memory access .*\(700\); this process'
for call in cuInit cuDevicePrimaryCtxRetain; do # that never returns
    what="a bench whose $call hangs"
    FAKE_CUDA_HANG=$call GPULAB_DRIVER_LIMIT=0.2 timeout 30 "$gpulab" bench memcpy --device cuda:0 size=1M >"$work/out" \
        2>"$work/err" </dev/null
    status=$?
    expect_status 1
    expect_err "the NVIDIA driver hangs: $call has not returned for 0.2 s"
done

# whoever only looks or plans never initialises CUDA; the worker does
FAKE_CUDA_FAIL=cuInit:999 run devices
expect_status 0
expect_out '^ +cuda:1 '
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
study=(--no-report quick_test device=cuda 'experiment.vit_configs=[{depth:0}]' experiment.test.num_samples=20
    experiment.test.memory_size_mb=16 'experiment.test.tensor_shape=[3,64,64]'
    'experiment.hardware.gpu_ids=[0,1]')
FAKE_CUDA_FAIL=cuInit:999 run run "${study[@]}" --dry-run
expect_status 0
run run "${study[@]}" --json
expect_status 0
json 'd["summary"]["successful_runs"] == 2 and d["summary"]["gpu_ids_tested"] == [0, 1]'
json 'all(r["trace"] == "traces/pipeline_%s.sqlite" % r["run_id"] for r in d["runs"])'

# too little memory is a result like others, and the run behind it knows nothing of it
FAKE_CUDA_MEMORY_MIB=40 run run --no-report quick_test device=cuda:0 experiment.order=as_given --json \
    'experiment.vit_configs=[{patch_size:32,depth:1,dim:64},{depth:0}]' experiment.test.batch_size=8 \
    experiment.test.num_samples=80 experiment.test.memory_size_mb=64 \
    'experiment.test.tensor_shape=[3,224,224]'
if grep -q "cuda:0 can't compute: NVRTC" "$work/err"; then
    expect_status 2 # there is no NVRTC here: said before anything runs
else
    expect_status 1
    json '[r["success"] for r in d["runs"]] == [False, True]'
    json '"out of device memory: 32.0 MiB asked for" in d["runs"][0]["error"]'
fi

# a program of the user's can't be kept on a slice
run run test_matrix 'experiment.command="true"' device=cuda:0/4 --dry-run
expect_status 2
expect_one_line
expect_err "needs the whole GPU, not a slice; to run it here, add: device=cuda:0$"

# where nobody may trace, the run is done without a trace and says so
FAKE_CUDA_FAIL=cuptiActivityEnable:35 run run "${study[@]}" --json
expect_status 0
json 'all(r["success"] and r["trace"] is None for r in d["runs"])'
json 'all(any("only root may trace" in w for w in r["validity"]["warnings"]) for r in d["runs"])'
FAKE_CUDA_FAIL=cuInit:999 run run "${study[@]}" experiment.max_retries=0 --json
expect_status 1
json 'd["summary"]["failed_runs"] == 2'

# without the libraries nothing changes, and one line says what is missing
unset LD_LIBRARY_PATH
if ! ldconfig -p | grep -q libcuda.so.1; then
    run devices
    expect_status 0
    expect_out 'None here: no NVIDIA driver|\(libnvidia-ml'
    grep -q '^Libraries' "$work/out" && fail "a table of libraries without any driver"
    refuse cuda:0 'no NVIDIA driver'
fi

finish
