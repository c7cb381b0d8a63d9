#!/usr/bin/env python3
"""PyTorch's training step of the mlp workload's models on the GPU: microseconds, a JSON line for each row.

    python3 torch_mlp_gpu.py DTYPE:WIDTHS:DROPOUT:BATCH...

The peer of `gpulab bench mlp dtype=DTYPE widths=WIDTHS dropout=DROPOUT batch_size=BATCH`: the same layers
from torch.nn, mean squared error, Adam in its fused form, the next batch of 10,000 shuffled samples in each
step. `eager` launches each operation; `graph` replays the whole step as a CUDA graph, a step a replay, with
the batch copied into place before. tf32 lets products use the matrix units, bf16 is autocast with master
weights in fp32.
"""
import json
import sys
import time

import torch
from torch import nn

SAMPLES = 10000


def model_of(widths, dropout):
    layers = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(inputs, outputs))
        if i + 2 < len(widths):
            layers += [nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers).cuda().train()


def microseconds(step, count):
    """The median of five times `count` steps."""
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count * 1e6)
    return sorted(times)[2]


def measure(dtype, widths, dropout, batch):
    torch.manual_seed(42)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    model = model_of(widths, dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, eps=1e-7, fused=True, capturable=True)
    all_x = torch.randn(SAMPLES, widths[0], device="cuda")
    all_y = torch.randn(SAMPLES, widths[-1], device="cuda")
    x, y = all_x[:batch].clone(), all_y[:batch].clone()
    done = 0

    def next_batch():
        nonlocal done
        first = done % (SAMPLES // batch) * batch
        done += 1
        return all_x[first:first + batch], all_y[first:first + batch]

    def train(inputs, targets):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "bf16"):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(10):
            train(x, y)
    torch.cuda.current_stream().wait_stream(side)
    eager = microseconds(lambda: train(*next_batch()), 50)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        train(x, y)

    def replay():
        inputs, targets = next_batch()
        x.copy_(inputs)
        y.copy_(targets)
        graph.replay()

    with_copies = microseconds(replay, 200)
    return eager, with_copies, microseconds(graph.replay, 200)


def main():
    for row in sys.argv[1:]:
        dtype, widths, dropout, batch = row.split(":")
        eager, graph, replay = measure(dtype, [int(w) for w in widths.split("-")], float(dropout),
                                       int(batch))
        print(json.dumps({"row": row, "eager_us": eager, "graph_us": graph, "replay_us": replay}), flush=True)


main()
