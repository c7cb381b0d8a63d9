"""The mlp workload's models and data in PyTorch, for its peers on CPUs and on GPUs."""
import torch
from torch import nn

SAMPLES = 10000


def widths_of(text):
    """The widths of "50-256-128-64-3"."""
    return [int(word) for word in text.split("-")]


def model_of(widths, dropout, device):
    layers = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(inputs, outputs))
        if i + 2 < len(widths):
            layers += [nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers).to(device).train()


class Batches:
    """10,000 shuffled samples, of which each step takes the next batch."""

    def __init__(self, widths, batch, device):
        order = torch.randperm(SAMPLES, device=device)
        self.x = torch.randn(SAMPLES, widths[0], device=device)[order]
        self.y = torch.randn(SAMPLES, widths[-1], device=device)[order]
        self.batch, self.done = batch, 0

    def next(self):
        first = self.done % (SAMPLES // self.batch) * self.batch
        self.done += 1
        return self.x[first:first + self.batch], self.y[first:first + self.batch]
