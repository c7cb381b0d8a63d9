#!/usr/bin/env python3
"""PyTorch's training step of the mlp workload's models on this process's CPUs: samples per second.

    taskset -c 0-3 python3 torch_mlp_cpu.py WIDTHS DROPOUT BATCH [compiled]

The peer of `gpulab bench mlp widths=WIDTHS dropout=DROPOUT batch_size=BATCH`: the same layers from
torch.nn, single precision, mean squared error, Adam, the next batch of 10,000 shuffled samples in each
step, one thread for each CPU that it may use, median of repeated steps. `compiled` is torch.compile of the
model.
"""
import os
import statistics
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
    return nn.Sequential(*layers)


def main():
    widths = [int(word) for word in sys.argv[1].split("-")]
    dropout, batch = float(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(42)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = model_of(widths, dropout).train()
    if sys.argv[4:] == ["compiled"]:
        model = torch.compile(model)
    loss_of = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, eps=1e-7)
    order = torch.randperm(SAMPLES)
    x, y = torch.randn(SAMPLES, widths[0])[order], torch.randn(SAMPLES, widths[-1])[order]
    times = []
    end = time.monotonic() + 4
    step = 0
    while time.monotonic() < end or len(times) < 10:
        first = step % (SAMPLES // batch) * batch
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x[first:first + batch]), y[first:first + batch]).backward()
        optimizer.step()
        times.append(time.monotonic() - start)
        step += 1
    print(f"{batch / statistics.median(times[len(times) // 5:]):.2f}")


main()
