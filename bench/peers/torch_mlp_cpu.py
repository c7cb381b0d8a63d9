#!/usr/bin/env python3
"""PyTorch's training step of the mlp workload's models on this process's CPUs: milliseconds a step.

    taskset -c 0-3 python3 torch_mlp_cpu.py WIDTHS DROPOUT BATCH [SECONDS]
    taskset -c 0-3 python3 torch_mlp_cpu.py      the same words line by line from stdin, a figure for each

The peer of `gpulab bench mlp widths=WIDTHS dropout=DROPOUT batch_size=BATCH`: the same layers from
torch.nn, single precision, mean squared error, Adam, the next batch of 10,000 shuffled samples in each
step, eager, one thread for each CPU that it may use, median of repeated steps.
"""
import os
import statistics
import sys
import time

import torch
from torch import nn

from torch_mlp import Batches, model_of, widths_of


def measure(widths, dropout, batch, seconds):
    torch.manual_seed(42)
    model = model_of(widths, dropout, "cpu")
    loss_of = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, eps=1e-7)
    batches = Batches(widths, batch, "cpu")
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 10:
        start = time.monotonic()
        inputs, targets = batches.next()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        times.append(time.monotonic() - start)
    return 1e3 * statistics.median(times[len(times) // 5:])


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    lines = [" ".join(sys.argv[1:])] if sys.argv[1:] else sys.stdin
    for line in lines:
        widths, dropout, batch, *seconds = line.split()
        step_ms = measure(widths_of(widths), float(dropout), int(batch),
                          float(seconds[0]) if seconds else 4.0)
        print(f"{step_ms:.6f}", flush=True)


main()
