#!/usr/bin/env python3
"""PyTorch's forward of the vit workload's model on this process's CPUs: samples per second.

    taskset -c 0-3 python3 torch_vit_cpu.py PATCH DEPTH DIM HEADS BATCH

The peer of `gpulab bench vit`: the same layers from torch.nn, single precision, 224×224 images, one
thread for each CPU that it may use, median of repeated forwards. Images are copied in and outputs
copied out, as the pipeline does.
"""
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64


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
        q, k, v = (y.view(b, t, self.heads, WIDTH).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
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


def main():
    patch, depth, dim, heads, batch = map(int, sys.argv[1:])
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = Model(patch, depth, dim, heads).eval()
    host_in, device_in = torch.randn(batch, 3, 224, 224), torch.empty(batch, 3, 224, 224)
    times = []
    with torch.inference_mode():
        host_out = torch.empty_like(model(host_in))
        end = time.monotonic() + 4
        while time.monotonic() < end or len(times) < 10:
            start = time.monotonic()
            device_in.copy_(host_in)
            host_out.copy_(model(device_in))
            times.append(time.monotonic() - start)
    print(f"{batch / statistics.median(times[len(times) // 5:]):.2f}")


main()
