"""PyTorch's kernels for bench/kernels: reads rows as JSON from stdin, writes {peer: rate} of each.

Each is launched for a second without a pause, after half a second to warm up: a GPU at its power limit is
slower than in a short burst, for all of them alike, and that is measured too. All but softmax are replayed
from a CUDA graph, as ours are; what can't be captured has no rate.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BF16 = {"device": "cuda", "dtype": torch.bfloat16}


def seconds(call, budgets=(0.5, 1.0), at_once=10):
    """The median time of a call, of the last of so many seconds each; so many calls are enqueued at once."""
    for budget in budgets:
        times, end = [], time.perf_counter() + budget
        while not times or time.perf_counter() < end:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(at_once + 1)]
            marks[0].record()
            for mark in marks[1:]:
                call()
                mark.record()
            marks[-1].synchronize()
            times += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return statistics.median(times) / 1e3


def rates(name, work, call, launches=1):
    """In a burst, by a GPU that had nothing to do before, and sustained. `call` is that many launches."""
    call()
    torch.cuda.synchronize()
    time.sleep(0.5)
    burst = seconds(call, (0.0, 0.001), 20 // launches or 1)
    return {f"{name} burst": work * launches / burst, name: work * launches / seconds(call)}


def captured(call, launches):
    """A CUDA graph of them, or None."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):  # where it will be captured: cuDNN has a handle of each
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                call()
    except RuntimeError:
        torch.cuda.synchronize()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):  # a capture that ends well, or random numbers stay captured
            torch.zeros(1, device="cuda")
        return None
    return graph


def replayed(name, work, call, launches=20):
    """The same within a CUDA graph; without one there is no rate. A process's first derivative can't be captured."""
    graph = captured(call, launches)
    return rates(name, work, graph.replay, launches) if graph else {}


def attention(row):
    shared = row.get("kv_heads", row["heads"])
    how = {"device": "cuda", "dtype": {"bf16": torch.bfloat16, "fp16": torch.float16}[row.get("dtype", "bf16")]}
    q, k, v = (torch.randn(row["batch"], row["seq"], heads, row["head_dim"], **how).transpose(1, 2)
               for heads in (row["heads"], shared, shared))
    flops = 4 * row["batch"] * row["heads"] * row["seq"] ** 2 * row["head_dim"] / (1 + row["causal"])
    found = {}
    for name, backend in (("FlashAttention-2", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):
            found |= replayed(name, flops, lambda: F.scaled_dot_product_attention(
                q, k, v, is_causal=row["causal"], enable_gqa=shared != row["heads"]))
    return found


def derivative(outputs, inputs, given):
    return lambda: torch.autograd.grad(outputs, inputs, given, retain_graph=True)


def backward(row):
    batch, tokens, heads, width = row["sizes"]
    q, k, v = (torch.randn(batch, tokens, heads, width, **BF16).transpose(1, 2).requires_grad_() for _ in range(3))
    given = torch.randn(batch, tokens, heads, width, **BF16).transpose(1, 2)
    flops = 10 * batch * heads * tokens ** 2 * width / (1 + row["causal"])
    found = {}
    for name, backend in (("FlashAttention-2", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with torch.enable_grad(), sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=row["causal"])
            found |= replayed(name, flops, derivative(out, (q, k, v), given))
    return found


def residual(x, past, gamma, beta):
    both = x + past
    return both, F.layer_norm(both, gamma.shape, gamma, beta)


def layer_norm(row, back):
    rows, columns = row["sizes"]
    x, past, *given = (torch.randn(rows, columns, **BF16) for _ in range(4))
    weights = [torch.randn(columns, **BF16) for _ in range(2)]
    size = (4 * x.numel() + 2 * columns) * 2 + 8 * rows + (8 * columns if back else 0)
    found = {}
    for name, call in (("PyTorch", residual), ("torch.compile", torch.compile(residual, dynamic=False))):
        if back:
            with torch.enable_grad():
                inputs = [t.detach().requires_grad_() for t in (x, past, *weights)]
                outputs = call(*inputs)
                found |= replayed(name, size, derivative(outputs, inputs, given))
        else:
            found |= replayed(name, size, lambda: call(x, past, *weights))
    return found


def gelu(row, back):
    x, given = (torch.randn(row["sizes"][0], **BF16) for _ in range(2))
    plain = lambda t: F.gelu(t, approximate="tanh")
    size = x.numel() * 2 * (3 if back else 2)
    found = {}
    for name, call in (("PyTorch", plain), ("torch.compile", torch.compile(plain, dynamic=False))):
        if back:
            with torch.enable_grad():
                own = x.detach().requires_grad_()
                found |= replayed(name, size, derivative(call(own), own, given))
        else:
            found |= replayed(name, size, lambda: call(x))
    return found


def cross_entropy(row):
    rows, columns, classes = row["sizes"]
    x = torch.randn(rows, columns, **BF16).requires_grad_()
    targets = torch.randint(classes, (rows,), device="cuda")
    size = 2 * x.numel() * 2 + 8 * rows

    def loss(x):
        return F.cross_entropy(x[:, :classes].float(), targets)

    found = {}
    for name, call in (("PyTorch", loss), ("torch.compile", torch.compile(loss, dynamic=False))):
        def both():
            with torch.enable_grad():
                torch.autograd.grad(call(x), x)
        found |= replayed(name, size, both, 3)
    return found


def adamw(row):
    """PyTorch's fused one in fp32: 28 bytes of a parameter, as ours, but no bf16 copy of it."""
    parameters = torch.randn(row["sizes"][0], device="cuda").requires_grad_()
    parameters.grad = torch.randn_like(parameters)
    optimizer = torch.optim.AdamW([parameters], fused=True, capturable=True)
    return replayed("PyTorch", 28 * parameters.numel(), optimizer.step, 3)


def training(row):
    op = row["op"]
    return {"cross_entropy": cross_entropy, "adamw": adamw}[op](row) if op in ("cross_entropy", "adamw") else \
        (gelu if op.startswith("gelu") else layer_norm)(row, op.endswith("backward"))


def softmax(row):
    x = torch.randn(row["rows"], row["columns"], **BF16)
    out = torch.empty_like(x)
    size = 2 * x.numel() * x.element_size()
    return rates("PyTorch", size, lambda: torch.softmax(x, -1, out=out)) | rates("copy", size, lambda: out.copy_(x))


def gemm(row):
    a, b = torch.randn(row["m"], row["k"], **BF16), torch.randn(row["n"], row["k"], **BF16)
    bias = torch.randn(row["n"], **BF16) if row["epilogue"] != "none" else None
    flops = 2 * row["m"] * row["n"] * row["k"]
    call = (lambda: torch._addmm_activation(bias, a, b.t(), use_gelu=True)) if row["epilogue"] == "bias_gelu" \
        else (lambda: F.linear(a, b, bias))
    return replayed("cuBLASLt", flops, call)


kinds = {"attention": attention, "backward": backward, "training": training, "softmax": softmax, "gemm": gemm}
with torch.no_grad():
    found = [kinds[row["kind"]](row) for row in json.load(sys.stdin)]
print(json.dumps([{name: rate / 1e12 for name, rate in row.items() if rate} for row in found]))
