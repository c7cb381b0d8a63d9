"""bench/gpt2's measurements; see there."""
import csv
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = {4: 430, 16: 560, 64: 570}  # thousand tokens/s asked for
MODES = ("ours", "eager", "compile")
ROW_SECONDS = {"ours": 20, "eager": 14, "compile": 28}  # of a process, about
COLUMNS = ("batch", "ours", "eager", "compile", "ours/eager", "ours/compile", "asked", "MFU", "memory", "compile's",
           "J/Mtoken", "compile's J", *facts.CONDITIONS)
lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def ours(gpulab, batch):
    command = [gpulab, "bench", "gpt2", "--json", "--device", "cuda", "--limit", "8s", "--precision", "0.0001",
               f"batch_size={batch}"]  # all of the 8 s: energy is counted over 2 s at a time
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"bench/gpt2: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if not result["verification"]["passed"]:
        sys.exit(f"bench/gpt2: verification failed: {result['verification']['text']}")
    told = result["metrics"]
    return {"tokens_per_second": batch * 1024 / result["interval_ms"]["median"] * 1e3,
            "mfu": result["share_of_limit"]["flops"], "memory_gib": told["device_memory_gib"],
            "joules_per_million_tokens": told.get("joules_per_million_tokens", math.nan)}


def torch(mode, batch):
    done = subprocess.run([sys.executable, f"{HERE}/peers/torch_gpt2.py", mode, str(batch)], check=False,
                          capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not found:
        sys.exit(f"bench/gpt2: torch_gpt2.py {mode} {batch}: {done.stderr.strip()[-300:]}")
    return found[0]


def row(gpulab, batch, modes):
    found, seen = {mode: [] for mode in modes}, []
    for mode in (*modes, *reversed(modes)):
        with facts.Conditions() as conditions:
            found[mode].append(ours(gpulab, batch) if mode == "ours" else torch(mode, batch))
        seen = conditions.cells if mode == "ours" else seen

    def median(mode, key, form):
        return form.format(statistics.median(result[key] for result in found[mode])) if mode in found else "–"

    def ratio(mode):
        """The median of the rounds' ratios: nearest in time are a mode's first and our first, its last and our last."""
        pairs = zip(found["ours"], found.get(mode, []))
        ratios = [mine["tokens_per_second"] / theirs["tokens_per_second"] for mine, theirs in pairs]
        return f"{statistics.median(ratios):.2f}" if ratios else "–"
    rates = [f"{float(median(mode, 'tokens_per_second', '{}')) / 1e3:.0f}k" if mode in found else "–" for mode in MODES]
    return [str(batch), *rates, ratio("eager"), ratio("compile"), f"{BATCHES.get(batch, 0)}k",
            median("ours", "mfu", "{:.0%}"), median("ours", "memory_gib", "{:.1f} GiB"),
            median("compile", "memory_gib", "{:.1f} GiB"), median("ours", "joules_per_million_tokens", "{:.0f}"),
            median("compile", "joules_per_million_tokens", "{:.0f}"), *seen]


# --- the loss curve ---

MARKS, CURVE_BATCH, SEEDS = (1, 2, 5, 10, 20, 50, 100, 150, 200), 8, (42, 43, 44, 45, 46)


def our_losses(gpulab, device, *words):
    """Of all steps, from a study's metrics."""
    with tempfile.TemporaryDirectory() as folder:
        command = [gpulab, "run", "test_matrix", "experiment.workload=gpt2", f"device={device}",
                   "experiment.matrix.optimizer=[adamw]",
                   f"+experiment.test.num_steps={MARKS[-1]}", "+experiment.test.warmup_steps=0", "-q",
                   "experiment.trace=false", f"output_dir={folder}/out", f"+experiment.batch_size={CURVE_BATCH}",
                   "+experiment.warmup=20", f"+experiment.steps={MARKS[-1]}", f"+experiment.data_seed={SEEDS[0]}",
                   *words]
        env = {**os.environ, "XDG_STATE_HOME": folder}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
        if done.returncode:
            sys.exit(f"bench/gpt2: {(done.stderr + done.stdout).strip()[-600:]}")
        study = glob.glob(f"{folder}/out/*/*/*")[0]
        done = subprocess.run([gpulab, "export", study, "--what", "metrics"], check=False, capture_output=True,
                              text=True, env=env)
        rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row["name"] == "loss"]
        losses = {int(float(row["step"])): float(row["value"]) for row in rows}
        return [losses[step] for step in range(1, MARKS[-1] + 1)]


def their_losses(seed):
    done = subprocess.run([sys.executable, f"{HERE}/peers/torch_gpt2.py", "curve", str(CURVE_BATCH), str(seed),
                           str(MARKS[-1])], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench/gpt2: torch_gpt2.py curve: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def chart(ours, sliced, theirs):
    """Losses over steps as SVG: the band of PyTorch's seeds, its run with our parameters and tokens, and ours."""
    width, height, left, top = 760, 420, 60, 40
    low, high = 7.0, 11.2

    def point(step, loss):
        x, y = (width - left - 20) * step / MARKS[-1], (height - 90) * (high - loss) / (high - low)
        return f"{left + x:.1f},{top + y:.1f}"

    def path(losses):
        return " ".join(point(i + 1, loss) for i, loss in enumerate(losses))
    most, least = [max(values) for values in zip(*theirs)], [min(values) for values in zip(*theirs)]
    band = path(most) + " " + " ".join(reversed(path(least).split()))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="13">', f'<rect width="{width}" height="{height}" fill="#fff"/>',
             f'<text x="{left}" y="22" font-size="15">GPT-2 124M, 200 steps, bf16: loss of a step</text>']
    for loss in range(7, 12):
        x, y = point(0, loss).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{width - 20}" y2="{y}" stroke="#ddd"/>'
                     f'<text x="{left - 10}" y="{float(y) + 4:.1f}" text-anchor="end">{loss}</text>')
    for step in range(0, MARKS[-1] + 1, 50):
        parts.append(f'<text x="{point(step, low).split(",")[0]}" y="{height - 30}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{(left + width) // 2}" y="{height - 10}" text-anchor="middle">step</text>')
    parts.append(f'<polygon points="{band}" fill="#9ecae1" stroke="none"/>')
    series = ((theirs[0], "#08519c", "", f"PyTorch, seed {SEEDS[0]}"), (ours, "#d94801", "", "gpulab, same seed"),
              (sliced, "#238b45", "4 4", "gpulab on 4 slices, same seed"))
    for losses, colour, dash, _ in series:
        parts.append(f'<polyline points="{path(losses)}" fill="none" stroke="{colour}" stroke-width="1.5" '
                     f'stroke-dasharray="{dash}"/>')
    words = [("#9ecae1", f"PyTorch, {len(theirs)} seeds: least to most")] + [(c, text) for _, c, _, text in series]
    for i, (colour, text) in enumerate(words):
        y = top + 20 + 20 * i
        parts.append(f'<rect x="{width - 290}" y="{y - 8}" width="22" height="6" fill="{colour}"/>'
                     f'<text x="{width - 260}" y="{y}">{text}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def curve(gpulab, folder):
    ours, sliced = our_losses(gpulab, "cuda:0"), our_losses(
        gpulab, "cuda:0/4", "experiment.gpu_mode=multi", "experiment.hardware.gpu_ids=all")
    theirs = [their_losses(seed) for seed in SEEDS]
    say("Loss of a step, batch 8, 200 steps of warm-up and cosine. PyTorch eager has the same parameters and")
    say("tokens with the same seed, and others with others. 4 slices of the GPU train data-parallel.")
    say()
    say("| step | ours | 4 slices | PyTorch | ours − PyTorch | slices − ours | least to most of " +
        f"{len(SEEDS)} seeds |")
    say("|---|---|---|---|---|---|---|")
    for mark in MARKS:
        peers = [losses[mark - 1] for losses in theirs]
        a, b = ours[mark - 1], sliced[mark - 1]
        say(f"| {mark} | {a:.4f} | {b:.4f} | {peers[0]:.4f} | {a - peers[0]:+.4f} | {b - a:+.4f} | "
            f"{min(peers):.4f} to {max(peers):.4f} |")
    say()
    for steps in (50, MARKS[-1]):
        pairs = [[abs(a - b) for a, b in zip(x[:steps], y[:steps])]
                 for x, y in ((ours, theirs[0]), (sliced, ours), (theirs[1], theirs[0]))]
        say(f"Over {steps} steps: ours and PyTorch differ by {statistics.mean(pairs[0]):.4f} on average and "
            f"{max(pairs[0]):.4f} at most, slices and ours by {statistics.mean(pairs[1]):.4f} and "
            f"{max(pairs[1]):.4f}, two of PyTorch's seeds by {statistics.mean(pairs[2]):.4f} and {max(pairs[2]):.4f}.")
    within = sum(abs(loss - peers[0]) <= max(peers) - min(peers) for loss, peers in zip(ours, zip(*theirs)))
    say(f"Ours is as near to PyTorch with the same seed as its seeds are to each other (least to most) in {within} of "
        f"{MARKS[-1]} steps.")
    say()
    say("![losses over steps](gpt2-loss.svg)")
    with open(f"{folder}/gpt2-loss.svg", "w", encoding="utf-8") as file:
        file.write(chart(ours, sliced, theirs))


def main():
    gpulab, options = sys.argv[1], facts.Options(sys.argv[2:])
    words = options.words
    name, driver = facts.gpu()
    facts.program(gpulab)
    folder = os.environ.get("OUT") or f"{HERE}/results"
    if words == ["curve"]:
        curve(gpulab, folder)
        return
    modes = [mode for mode in MODES if mode == "ours" or options.peers and mode not in words]
    batches = [int(word) for word in words if word not in MODES] or list(BATCHES)
    say(f"# GPT-2 124M training on an {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("Tokens/s, sequences of 1024, bf16, AdamW, clipping; medians of two processes each, in turn. MFU: FLOPs by")
    say("definition over the measured bf16 limit. Energy: the GPU's counter over tokens. Memory: buffers of ours,")
    say("the allocator's peak of torch.compile.")
    say()
    say(f"| {' | '.join(COLUMNS)} |")
    say("|" + "---|" * len(COLUMNS))
    for batch in batches:
        if options.fitting([batch], lambda batch: f"batch {batch}", 2 * sum(ROW_SECONDS[mode] for mode in modes)):
            say(f"| {' | '.join(row(gpulab, batch, modes))} |")
    options.say_left_out(say)
    if options.is_whole:
        say()
        curve(gpulab, folder)
        path = f"{folder}/gpt2-{name.lower().replace(' ', '-')}.md"
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
