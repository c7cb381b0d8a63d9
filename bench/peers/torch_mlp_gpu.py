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

from torch_mlp import Batches, model_of, widths_of


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
    model = model_of(widths, dropout, "cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, eps=1e-7, fused=True, capturable=True)
    batches = Batches(widths, batch, "cuda")
    x, y = (values[:batch].clone() for values in (batches.x, batches.y))

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
    eager = microseconds(lambda: train(*batches.next()), 50)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        train(x, y)

    def replay():
        inputs, targets = batches.next()
        x.copy_(inputs)
        y.copy_(targets)
        graph.replay()

    with_copies = microseconds(replay, 200)
    return eager, with_copies, microseconds(graph.replay, 200)


def main():
    for row in sys.argv[1:]:
        dtype, widths, dropout, batch = row.split(":")
        eager, graph, replay = measure(dtype, widths_of(widths), float(dropout), int(batch))
        print(json.dumps({"row": row, "eager_us": eager, "graph_us": graph, "replay_us": replay}), flush=True)


main()
