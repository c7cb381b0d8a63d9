"""PyTorch's kernels for bench/kernels: reads rows as JSON from stdin, writes {peer: rate} of each.

Each is launched for half a second without a pause, after a fifth to warm up: a GPU at its power limit is
slower than in a short burst, for all of them alike.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BF16 = {"device": "cuda", "dtype": torch.bfloat16}


def seconds(call):
    """The median time of a launch."""
    for budget in (0.2, 0.5):
        times, end = [], time.perf_counter() + budget
        while time.perf_counter() < end:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
            marks[0].record()
            for mark in marks[1:]:
                call()
                mark.record()
            marks[-1].synchronize()
            times += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return statistics.median(times) / 1e3


def attention(row):
    shape = (row["batch"], row["seq"], row["heads"], row["head_dim"])
    q, k, v = (torch.randn(shape, **BF16).transpose(1, 2) for _ in range(3))
    flops = 4 * row["batch"] * row["heads"] * row["seq"] ** 2 * row["head_dim"] / (1 + row["causal"])
    found = {}
    for name, backend in (("FlashAttention-2", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):
            found[name] = flops / seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=row["causal"]))
    return found


def softmax(row):
    x = torch.randn(row["rows"], row["columns"], **BF16)
    out = torch.empty_like(x)
    size = 2 * x.numel() * x.element_size()
    return {"PyTorch": size / seconds(lambda: torch.softmax(x, -1, out=out)),
            "copy": size / seconds(lambda: out.copy_(x))}


def gemm(row):
    a, b = torch.randn(row["m"], row["k"], **BF16), torch.randn(row["n"], row["k"], **BF16)
    bias = torch.randn(row["n"], **BF16) if row["epilogue"] != "none" else None
    flops = 2 * row["m"] * row["n"] * row["k"]
    call = (lambda: torch._addmm_activation(bias, a, b.t(), use_gelu=True)) if row["epilogue"] == "bias_gelu" \
        else (lambda: F.linear(a, b, bias))
    return {"cuBLASLt": flops / seconds(call)}


kinds = {"attention": attention, "softmax": softmax, "gemm": gemm}
with torch.no_grad():
    found = [kinds[row["kind"]](row) for row in json.load(sys.stdin)]
print(json.dumps([{name: rate / 1e12 for name, rate in row.items()} for row in found]))
