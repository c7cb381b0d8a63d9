"""bench/training's measurements; see there."""
import json
import os
import statistics
import subprocess
import sys

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"medium": ("50-256-128-64-3", 0.2, 4), "large": ("50-1024-1024-512-512-256-3", 0.3, 3)}
BATCHES = (16, 32, 64, 128, 1024)
DTYPES = ("fp32", "tf32", "bf16")
COLUMNS = ("model", "dtype", "batch", "ours", "eager", "graph", "replays alone", "graph/ours", "eager/ours",
           "asked met", *facts.CONDITIONS, "verified")
ROW_SECONDS, PEER_SECONDS = 12, 20  # of a row, about; of PyTorch's two processes, to begin
lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def times(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def cells(model, dtype, batch, ours, theirs):
    """A row of the table, by its columns, from two rounds; `theirs` is empty where there is no PyTorch. Times are
    the rounds' medians, ratios the medians of the rounds' ratios."""
    steps = [result["step_us"] for result in ours]
    row = {"model": model, "dtype": dtype, "batch": str(batch), "ours": f"{statistics.median(steps):.1f}",
           "verified": ours[-1]["verified"], **dict(zip(facts.CONDITIONS, ours[-1]["conditions"]))}
    if len(theirs) == len(ours):
        values = {key: [result[f"{key}_us"] for result in theirs] for key in ("eager", "graph", "replay")}
        ratio = {key: statistics.median(them / us for them, us in zip(taken, steps)) for key, taken in values.items()}
        met = ratio["graph"] >= MODELS[model][2] and (model != "medium" or ratio["eager"] >= 30)
        row |= {"eager": f"{statistics.median(values['eager']):.0f}",
                "graph": f"{statistics.median(values['graph']):.1f}",
                "replays alone": f"{statistics.median(values['replay']):.1f}", "graph/ours": times(ratio["graph"]),
                "eager/ours": times(ratio["eager"]), "asked met": "–" if batch > 128 else "yes" if met else "no"}
    return [row.get(column, "–") for column in COLUMNS]


def ours(gpulab, dtype, model, batch):
    """Median step in microseconds of a second, what verification said, and the GPU's conditions."""
    with facts.Conditions() as seen:
        done = subprocess.run([gpulab, "bench", "mlp", "--json", "--device", "cuda", "--no-limits", "--limit",
                               "1500ms", "--precision", "0.0001", f"model={model}", f"batch_size={batch}",
                               f"dtype={dtype}", "compile_model=true"], check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"bench/training: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    passed = "passed" if result["verification"]["passed"] else "FAILED"
    return {"step_us": result["latency_ms"]["median"] * 1e3, "conditions": seen.cells,
            "verified": f"{passed}: {result['verification']['text']}"}


def peers(rows):
    peer = subprocess.run([sys.executable, f"{HERE}/peers/torch_mlp_gpu.py", *rows], capture_output=True,
                          text=True, check=False)
    found = [json.loads(line) for line in peer.stdout.splitlines() if line.startswith("{")]
    return {result["row"]: result for result in found}


def in_turn(gpulab, dtype, options):
    """The rows of a dtype: ours, theirs, theirs, ours."""
    keys = options.fitting([(m, b) for m in MODELS for b in BATCHES], lambda key: f"{key[0]} {dtype} {key[1]}",
                           ROW_SECONDS, PEER_SECONDS)
    rows = {(m, b): f"{dtype}:{MODELS[m][0]}:{MODELS[m][1]}:{b}" for m, b in keys}
    first = {key: ours(gpulab, dtype, *key) for key in rows}
    theirs = [peers(rows.values()) if rows and options.peers else {} for _ in range(2)]
    for (model, batch), row in rows.items():
        results = [first[model, batch], ours(gpulab, dtype, model, batch)]
        found = [results_of[row] for results_of in theirs if row in results_of]
        say(f"| {' | '.join(cells(model, dtype, batch, results, found))} |")


def main():
    gpulab, options = sys.argv[1], facts.Options(sys.argv[2:])
    for word in options.words:
        if word not in DTYPES:
            sys.exit(f"bench/training: there is no dtype '{word}'; there are {', '.join(DTYPES)}")
    name, driver = facts.gpu()
    facts.program(gpulab)
    say(f"# Training steps on an {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("Microseconds for a step. Asked at batches up to 128: medium 4 ×, large 3 × PyTorch's graph; medium")
    say("30 × eager. The graph has its next batch copied into place, as ours finds its own; replays alone are")
    say("next to it. In turn, for each dtype: ours, PyTorch, PyTorch, ours; medians, and of ratios the median.")
    say()
    say(f"| {' | '.join(COLUMNS)} |")
    say("|" + "---|" * len(COLUMNS))
    for dtype in options.words or DTYPES:
        in_turn(gpulab, dtype, options)
    options.say_left_out(say)
    if options.is_whole:
        folder = os.environ.get("OUT") or f"{HERE}/results"
        path = f"{folder}/training-{name.lower().replace(' ', '-')}.md"
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
