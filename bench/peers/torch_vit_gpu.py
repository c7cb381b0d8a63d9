#!/usr/bin/env python3
"""PyTorch's pipeline of the vit workload on a GPU: samples per second.

    torch_vit_gpu.py MODE ROW...      MODE: eager, compiled, prepare; ROW: dtype:patch:depth:dim:heads:batch

The peer of `gpulab bench vit`: pinned host batches → H2D → forward → D2H of the output, three streams,
two buffers. `compiled` is torch.compile(mode="reduce-overhead"), which captures CUDA graphs. A depth of
0 copies the input in alone. Each row prints a JSON object on a line of its own. `prepare` only compiles,
into PyTorch's cache, and prints nothing: several at once, before `compiled` measures one after the other.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * heads * WIDTH, bias=False)
        self.out = nn.Linear(heads * WIDTH, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, self.heads, WIDTH).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, -1)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, patch, depth, dim, heads):
        super().__init__()
        self.patch = patch
        count, width = (224 // patch) ** 2, 3 * patch * patch
        self.embed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, dim), nn.LayerNorm(dim))
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.position = nn.Parameter(torch.randn(1, count + 1, dim))
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        b, c, h, w = x.shape
        p = self.patch
        x = x.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * c)
        x = torch.cat([self.token.expand(b, -1, -1), self.embed(x)], 1) + self.position
        return self.norm(self.blocks(x))


class Pipeline:
    def __init__(self, forward, one_output, dtype, batch):
        self.forward, self.one_output, self.index = forward, one_output, 0
        self.pool = [torch.randn(batch, 3, 224, 224).to(dtype).pin_memory() for _ in range(8)]
        self.inputs = [torch.empty(batch, 3, 224, 224, dtype=dtype, device="cuda") for _ in range(2)]
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        self.events = [[torch.cuda.Event() for _ in range(2)] for _ in range(3)]
        self.out = None
        if forward is not None:
            for _ in range(3):
                with torch.cuda.stream(self.streams[1]):
                    result = forward(self.inputs[0])
            torch.cuda.synchronize()
            self.out = [torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
                        for _ in range(2)]

    def step(self):
        i = self.index % 2
        copy_in, compute, copy_out = self.streams
        with torch.cuda.stream(copy_in):
            copy_in.wait_event(self.events[2][i])
            self.inputs[i].copy_(self.pool[self.index % 8], non_blocking=True)
            self.events[0][i].record(copy_in)
        if self.forward is not None:
            with torch.cuda.stream(compute):
                compute.wait_event(self.events[0][i])
                if self.one_output:  # of a captured graph: it must have left before the next replay
                    compute.wait_event(self.events[2][1 - i])
                result = self.forward(self.inputs[i])
                self.events[1][i].record(compute)
            with torch.cuda.stream(copy_out):
                copy_out.wait_event(self.events[1][i])
                self.out[i].copy_(result, non_blocking=True)
                self.events[2][i].record(copy_out)
        self.index += 1

    def rate(self, batch):
        for _ in range(50):
            self.step()
        torch.cuda.synchronize()
        count, rates = 50, []
        end = time.monotonic() + 1.5
        while time.monotonic() < end or len(rates) < 5:
            start = time.monotonic()
            for _ in range(count):
                self.step()
            torch.cuda.synchronize()
            rates.append(count * batch / (time.monotonic() - start))
        return statistics.median(rates)


def measure(mode, row):
    name, patch, depth, dim, heads, batch = row.split(":")
    patch, depth, dim, heads, batch = map(int, (patch, depth, dim, heads, batch))
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    forward = None
    if depth:
        model = Model(patch, depth, dim, heads).eval().to("cuda", DTYPES[name])
        forward = model if mode == "eager" else torch.compile(model, mode="reduce-overhead")
    with torch.inference_mode():
        if mode == "prepare":
            Pipeline(forward, True, DTYPES[name], batch)
            return
        rate = Pipeline(forward, mode == "compiled", DTYPES[name], batch).rate(batch)
    print(json.dumps({"mode": mode, "row": row, "samples_per_second": rate}), flush=True)
    torch._dynamo.reset()
    torch.cuda.empty_cache()


for row in sys.argv[2:]:
    measure(sys.argv[1], row)
