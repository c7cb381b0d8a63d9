#!/usr/bin/env bash
# The benchmarks of a GPU: what they say where there is none, and, with stand-ins for the driver and the
# program, what the table of kernels holds.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
mkdir "$work/bin"
stand_in() { # stand_in NAME: a program of that name; its text comes from stdin
    cat >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
bench() { # bench NAME WORD...
    what="bench/$1"
    PATH=$work/bin:$PATH PYTHONPATH=$work/bin PYTHONDONTWRITEBYTECODE=1 BENCH_COMMIT=abc1234 OUT=$work \
        "$source_dir/bench/$1" "${@:2}" >"$work/out" 2>"$work/err"
    status=$?
}

stand_in nvidia-smi <<'SH'
#!/bin/sh
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
exit 9
SH
for name in gpu training kernels; do
    bench "$name" "$gpulab"
    expect_status 77
    expect_one_line
    expect_err "^bench/$name: no GPU is here: nvidia-smi says: NVIDIA-SMI has failed"
done

stand_in nvidia-smi <<'SH'
#!/bin/sh
echo "NVIDIA H200, 580.1"
SH
stand_in gpulab <<'SH'
#!/bin/sh
case $1 in
tune) echo '{"autotune_duration_seconds": 5.04, "from_cache": false}' ;;
bench) echo '{"flops_per_second": 6e14, "limits": {"flops_per_second": 8e14}, "verification": {"passed": true},
              "latency_ms": {"median": 0.05}, "samples_per_second": 640, "config": {"config": "way=1"},
              "copy_bytes_per_second": 5e10, "interval_ms": {"median": 8}, "share_of_limit": {"flops": 0.5},
              "metrics": {"device_memory_gib": 3}}' ;;
esac
SH
stand_in bench_launch <<'SH'
#!/bin/sh
echo '{"seconds": 0.001, "burst_seconds": 0.0008, "bytes": 1e9, "flops": 4e11}'
SH
# PyTorch's side answers as soon as it wants PyTorch
cat >"$work/bin/torch.py" <<'PY'
import json, sys
if "torch_mlp" in sys.argv[0]:
    for row in sys.argv[1:]:
        print(json.dumps({"row": row, "eager_us": 1500, "graph_us": 200, "replay_us": 190}))
    sys.exit(0)
if "torch_gpt2" in sys.argv[0]:
    print(json.dumps({"tokens_per_second": 256000, "memory_gib": 4, "joules_per_million_tokens": 1700}))
    sys.exit(0)
if "torch_vit" in sys.argv[0]:
    for row in sys.argv[2:] if sys.argv[1] == "compiled" else []:
        print(json.dumps({"row": row, "samples_per_second": 500}))
    sys.exit(0)
rates = {"attention": {"FlashAttention-2": 300, "cuDNN": 800, "cuDNN burst": 750}, "backward": {"cuDNN": 800},
         "gemm": {"cuBLASLt": 500}}
print(json.dumps([rates[row["kind"]] for row in json.load(sys.stdin)]))
sys.exit(0)
PY
bench kernels "$work/bin/gpulab" attention grouped backward gemm
expect_status 0
expect_out '^# Kernels of our own: NVIDIA H200, driver 580.1, commit abc1234, [0-9-]+$'
expect_out '^\| kernel \| ours \| FlashAttention-2 \| cuDNN \| ours/FlashAttention-2 \| ours/cuDNN \| burst \| burst/cuDNN \| SM clock \| power \| temperature \| limit \| configuration \|$'
expect_out '^\| attention 64 none 1024 \| 400 \| 300 \| 800 \| 1.33 \| 0.50 \| 500 \| 0.67 \| – \| – \| – \| 800 \| way=1 \|$'
expect_out '^\| attention 128 causal 8192 16:1 heads fp16 \| 400 \| 300 \| 800 \| 1.33 \| 0.50 \|'
expect_out '^\| flash_attention_backward 4x1024x12x64 causal \| 400 \| – \| 800 \| – \| 0.50 \| 500 \| – \| – \| – \| – \|$'
expect_out '^\| gemm 4096x4096x4096 none \| 400 \| 400 \| 1.00 \| 500 \| 1.00 \| – \| – \| – \| 800 \| way=1 \| 5.0 s \|$'

bench kernels "$work/bin/gpulab" attention grouped gemm --rows "64 none,gemm 2048" --no-peers
expect_status 0
expect_out '^\| attention 64 none 4096 \| 400 \| – \| – \| – \| – \| 500 \| – \| – \| – \| – \| 800 \|'
expect_out '^\| gemm 2048x2048x2048 none \| 400 \| – \| – \| 500 \| – \|'
[ "$(grep -c '^| [ag]' "$work/out")" = 4 ] || fail "not the four rows that were asked for"
bench kernels "$work/bin/gpulab" attention grouped --seconds 50 --no-peers
expect_status 0
expect_out '^\| attention 64 none 1024 '
expect_out '^Not measured, as --seconds ended before: attention 64 none 16384; .*16:1 heads fp16\.$'
bench kernels "$work/bin/gpulab" --second 60
expect_status 2

sed -i 's/"passed": true/"passed": true, "text": "to 1e-7"/' "$work/bin/gpulab"
bench training "$work/bin/gpulab" tf32
expect_status 0
expect_out '^# Training steps on an NVIDIA H200, driver 580.1, commit abc1234, [0-9-]+$'
expect_out '^\| medium \| tf32 \| 16 \| 50.0 \| 1500 \| 200.0 \| 190.0 \| 4.00 \| 30 \| yes \| – \| – \| – \| passed: to 1e-7 \|$'
[ "$(grep -c '^| large | tf32' "$work/out")" = 5 ] || fail "not five rows of the large model"
bench gpu "$work/bin/gpulab" in-turn bf16
expect_status 0
expect_out '^\| vit16x12x1024 \| bf16 \| 64 \| 640 \| 640 \| 500 \| 1.28 \| 1.28 \| [0-9,]+ \| [0-9.]+ \| – \| – \| – \|$'
bench gpu "$work/bin/gpulab" in-turn --rows "vit16x12x1024 tf32" --no-peers
expect_status 0
expect_out '^\| vit16x12x1024 \| tf32 \| 64 \| 640 \| 640 \| – \| – \| – \| [0-9,]+ \|'
[ "$(grep -c '^| vit' "$work/out")" = 2 ] || fail "not two rows"

echo >"$work/bin/numpy.py"
bench gpt2 "$work/bin/gpulab" 4 eager
expect_status 0
expect_out '^\| 4 \| 512k \| – \| 256k \| – \| 2.00 \| 430k \| 50% \| 3.0 GiB \| 4.0 GiB \| nan \| 1700 \| – \| – \| – \|$'
bench gpt2 "$work/bin/gpulab" --no-peers --seconds 100
expect_status 0
expect_out '^\| 16 \| 2048k \| – \| – \| – \| – \| 560k \|'
finish
