"""GPT-2 124M training in PyTorch, as nanoGPT does it: bf16 autocast, fused AdamW, clipping, T = 1024.

usage: torch_gpt2.py eager|compile BATCH ...
       torch_gpt2.py curve BATCH SEED STEPS

eager, compile: a line of JSON for each batch: tokens/s over 3 seconds behind a warm-up, the memory's peak,
and energy by the GPU's counter over the same steps. curve: the losses of training with the parameters and
synthetic tokens of `gpulab bench gpt2 data_seed=SEED warmup=20 steps=STEPS`, all of them in one line of JSON.
"""
import ctypes
import json
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

DEPTH, WIDTH, HEADS, SEQ, VOCAB, PADDED = 12, 768, 12, 1024, 50257, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, HEADS, c // HEADS).transpose(1, 2)
                   for p in self.qkv(self.norm1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, classes=PADDED):
        super().__init__()
        self.classes = classes
        self.tokens, self.positions = nn.Embedding(PADDED, WIDTH), nn.Embedding(SEQ, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x, y):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        logits = F.linear(self.norm(h), self.tokens.weight[:self.classes])
        return F.cross_entropy(logits.view(-1, self.classes), y.view(-1))


def energy_j():
    """Of the first GPU, since its driver was loaded."""
    nvml, gpu, millijoules = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_ulonglong()
    for call, words in ((nvml.nvmlInit_v2, ()), (nvml.nvmlDeviceGetHandleByIndex_v2, (0, ctypes.byref(gpu))),
                        (nvml.nvmlDeviceGetTotalEnergyConsumption, (gpu, ctypes.byref(millijoules)))):
        if call(*words):
            sys.exit(f"torch_gpt2.py: {call.__name__} failed")
    return millijoules.value / 1000


def measure(mode, batch):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Model().cuda()
    step_model = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    x, y = torch.randint(VOCAB, (2, batch, SEQ), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    joules = energy_j()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < 3:
        for _ in range(4):
            step()
        steps += 4
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    joules, tokens = energy_j() - joules, steps * batch * SEQ
    print(json.dumps({"mode": mode, "batch": batch, "tokens_per_second": tokens / seconds,
                      "memory_gib": torch.cuda.max_memory_reserved() / 2**30,
                      "joules_per_million_tokens": joules / tokens * 1e6}), flush=True)


# --- the same parameters and tokens as ours, by counter (src/base/random.h, src/workload/gpt2/data.c) ---

def bits(seed, index):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * np.uint64(0xd1342543de82ef95) + (
            np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def tokens_of(seed, first, count):
    """Half follow from the one before, the others are log-uniform."""
    index = np.arange(first, first + count)

    def draw(at):
        u = (bits(bits(seed, 0), at) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.minimum(np.exp(u * math.log(VOCAB + 1)).astype(np.int64) - 1, VOCAB - 1)
    follows = (bits(bits(seed, 1), index) & np.uint64(1)).astype(bool) & (index > 0)
    return np.where(follows, (draw(np.maximum(index - 1, 0)) * 31 + 7) % VOCAB, draw(index))


@torch.no_grad()
def fill(model, seed):
    at, stream = 0, bits(seed, 2)
    ends = {id(p) for b in model.blocks for p in (b.projection.weight, b.down.weight)}
    order = [model.tokens.weight, model.positions.weight]
    for b in model.blocks:
        order += [b.qkv.weight, b.projection.weight, b.up.weight, b.down.weight]
    for p in order:
        limit = np.float32(0.02 * math.sqrt(3) / (math.sqrt(2 * DEPTH) if id(p) in ends else 1))
        drawn = (bits(stream, np.arange(at, at + p.numel())) >> np.uint64(40)).astype(np.float32)
        p.copy_(torch.from_numpy(limit * (drawn * np.float32(2.0**-23) - np.float32(1))).view_as(p))
        at += p.numel()
    model.tokens.weight[VOCAB:] = 0
    for b in model.blocks:
        for layer in (b.qkv, b.projection, b.up, b.down):
            layer.bias.zero_()
    return order


def curve(batch, seed, steps, warmup=20):
    torch.set_float32_matmul_precision("high")
    model = Model(VOCAB).cuda()
    decayed = fill(model, seed)
    others = [p for p in model.parameters() if all(p is not d for d in decayed)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=6e-4, betas=(0.9, 0.95), fused=True)
    losses = []
    for step in range(steps):
        done = (step - warmup) / (steps - warmup)
        rate = 6e-4 * (step + 1) / warmup if step < warmup else 6e-5 + 2.7e-4 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = rate
        drawn = torch.from_numpy(tokens_of(seed, step * batch * SEQ, batch * SEQ + 1)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(drawn[:-1].view(batch, SEQ), drawn[1:].view(batch, SEQ))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    print(json.dumps([round(float(loss), 5) for loss in losses]), flush=True)


if sys.argv[1] == "curve":
    curve(*map(int, sys.argv[2:5]))
else:
    for size in sys.argv[2:]:
        torch.cuda.reset_peak_memory_stats()
        measure(sys.argv[1], int(size))
        torch.cuda.empty_cache()
