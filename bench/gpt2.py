"""bench/gpt2's measurements; see there."""
import json
import os
import statistics
import subprocess
import sys

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = {4: 430, 16: 560, 64: 570}  # thousand tokens/s asked for
MODES = ("ours", "eager", "compile")
COLUMNS = ("batch", "ours", "eager", "compile", "ours/eager", "ours/compile", "asked", "MFU", "memory", "compile's",
           "J/Mtoken", "compile's J", "SM clock", "power", "temperature")
lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def ours(gpulab, batch):
    command = [gpulab, "bench", "gpt2", "--json", "--device", "cuda", "--limit", "8s", f"batch_size={batch}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"bench/gpt2: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if not result["verification"]["passed"]:
        sys.exit(f"bench/gpt2: verification failed: {result['verification']['text']}")
    told = result["metrics"]
    return {"tokens_per_second": batch * 1024 / result["interval_ms"]["median"] * 1e3,
            "mfu": result["share_of_limit"]["flops"], "memory_gib": told["device_memory_gib"],
            "joules_per_million_tokens": told["joules_per_million_tokens"]}


def torch(mode, batch):
    done = subprocess.run([sys.executable, f"{HERE}/peers/torch_gpt2.py", mode, str(batch)], check=False,
                          capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not found:
        sys.exit(f"bench/gpt2: torch_gpt2.py {mode} {batch}: {done.stderr.strip()[-300:]}")
    return found[0]


def state():
    """Clock, power and temperature just behind a row of ours."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw,temperature.gpu", "--format=csv,noheader"]
    return subprocess.run(query, check=False, capture_output=True, text=True).stdout.strip().split(", ")


def row(gpulab, batch):
    found, seen = {mode: [] for mode in MODES}, []
    for mode in (*MODES, *reversed(MODES)):
        found[mode].append(ours(gpulab, batch) if mode == "ours" else torch(mode, batch))
        seen = state() if mode == "ours" else seen

    def median(mode, key):
        return statistics.median(result[key] for result in found[mode])
    rates = {mode: median(mode, "tokens_per_second") for mode in MODES}
    return [str(batch), *(f"{rates[mode] / 1e3:.0f}k" for mode in MODES), f"{rates['ours'] / rates['eager']:.2f}",
            f"{rates['ours'] / rates['compile']:.2f}", f"{BATCHES.get(batch, 0)}k",
            f"{100 * median('ours', 'mfu'):.0f}%", f"{median('ours', 'memory_gib'):.1f} GiB",
            f"{median('compile', 'memory_gib'):.1f} GiB", f"{median('ours', 'joules_per_million_tokens'):.0f}",
            f"{median('compile', 'joules_per_million_tokens'):.0f}", *seen]


# --- the loss curve ---

MARKS, CURVE_BATCH, SEEDS = (1, 2, 5, 10, 20, 50, 100, 150, 200), 8, (42, 43, 44)


def our_loss(gpulab, steps):
    """Of step `steps` of a training of 200."""
    command = [gpulab, "bench", "gpt2", "--json", "--device", "cuda", "--no-limits", "--no-verify", "--warmup", "0",
               "--iterations", str(steps), f"batch_size={CURVE_BATCH}", "warmup=20", f"steps={MARKS[-1]}",
               f"data_seed={SEEDS[0]}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"bench/gpt2: {done.stderr.strip()}")
    return json.loads(done.stdout)["metrics"]["loss"]


def curve(gpulab):
    say("Loss of a step, batch 8, 200 steps of warm-up and cosine. PyTorch eager has the same parameters and")
    say("tokens with the same seed, and others with others.")
    say()
    say("| step | ours | PyTorch | difference | " + " | ".join(f"PyTorch, seed {seed}" for seed in SEEDS[1:]) +
        " | spread of seeds |")
    say("|---|---|---|---|" + "---|" * len(SEEDS))
    theirs = []
    for seed in SEEDS:
        done = subprocess.run([sys.executable, f"{HERE}/peers/torch_gpt2.py", "curve", str(CURVE_BATCH), str(seed),
                               str(MARKS[-1])], check=False, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"bench/gpt2: torch_gpt2.py curve: {done.stderr.strip()[-300:]}")
        theirs.append(json.loads(done.stdout))
    for mark in MARKS:
        found, peers = our_loss(gpulab, mark), [losses[mark - 1] for losses in theirs]
        say(f"| {mark} | {found:.4f} | {peers[0]:.4f} | {found - peers[0]:+.4f} | " +
            " | ".join(f"{loss:.4f}" for loss in peers[1:]) + f" | {max(peers) - min(peers):.4f} |")


def main():
    gpulab, words = sys.argv[1], sys.argv[2:]
    name, driver = facts.gpu()
    facts.program(gpulab)
    if words == ["curve"]:
        curve(gpulab)
        return
    batches = [int(word) for word in words] or list(BATCHES)
    say(f"# GPT-2 124M training on an {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("Tokens/s, sequences of 1024, bf16, AdamW, clipping; medians of two processes each, in turn. MFU: FLOPs by")
    say("definition over the measured bf16 limit. Energy: power during steps over tokens/s. Memory: buffers of ours,")
    say("the allocator's peak of torch.compile.")
    say()
    say(f"| {' | '.join(COLUMNS)} |")
    say("|" + "---|" * len(COLUMNS))
    for batch in batches:
        say(f"| {' | '.join(row(gpulab, batch))} |")
    if not words:
        say()
        curve(gpulab)
        folder = os.environ.get("OUT") or f"{HERE}/results"
        path = f"{folder}/gpt2-{name.lower().replace(' ', '-')}.md"
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
