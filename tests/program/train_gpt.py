#!/usr/bin/env python3
"""Trains a small GPT on a text of its own, one process for each rank that torchrun starts, and prints as nanoGPT does.

    torchrun --standalone --nproc_per_node=2 train_gpt.py --optimizer adamw --max-iters 40
"""
import argparse
import os
import time

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

TEXT = "the loss of a small model on a small text falls fast, and that is all that it is here to show. " * 40


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norms[0](x)).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, letters, length, width=64, heads=4, depth=2):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.head = nn.Linear(width, letters)

    def forward(self, x, targets):
        x = self.letters(x) + self.places(torch.arange(x.size(1), device=x.device))
        return functional.cross_entropy(self.head(self.blocks(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="adamw")
    parser.add_argument("--max-iters", type=int, default=40)
    parser.add_argument("--batch", type=int, default=8, help="sequences of each rank")
    parser.add_argument("--length", type=int, default=32)
    args = parser.parse_args()

    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local % torch.cuda.device_count()) if cuda else torch.device("cpu")
    # NCCL wants a GPU for each rank
    shared = cuda and int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > torch.cuda.device_count()
    distributed.init_process_group("nccl" if cuda and not shared else "gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()

    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(letter) for letter in TEXT])
    torch.manual_seed(1)
    model = DistributedDataParallel(GPT(len(letters), args.length).to(device))
    optimizer = (torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9) if args.optimizer == "sgd"
                 else torch.optim.AdamW(model.parameters(), lr=3e-3))
    if rank == 0:
        print(f"{ranks} ranks on {device.type}, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    torch.manual_seed(100 + rank)  # each rank has data of its own
    for step in range(1, args.max_iters + 1):
        start = time.perf_counter()
        at = torch.randint(len(data) - args.length - 1, (args.batch,))
        x, y = (torch.stack([data[i + shift:i + shift + args.length] for i in at]).to(device) for shift in (0, 1))
        loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach() / ranks
        distributed.all_reduce(mean)
        if rank == 0:
            took = time.perf_counter() - start
            print(f"iter {step}: loss {mean.item():.4f}, time {1e3 * took:.2f}ms, "
                  f"{args.batch * args.length * ranks / took:.0f} tok/s", flush=True)
    if rank == 0:
        print(f"Final loss {mean.item():.4f}", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
