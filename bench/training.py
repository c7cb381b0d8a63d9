"""bench/training's measurements; see there."""
import json
import os
import subprocess
import sys

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"medium": ("50-256-128-64-3", 0.2, 4), "large": ("50-1024-1024-512-512-256-3", 0.3, 3)}
BATCHES = (16, 32, 64, 128, 1024)
DTYPES = ("fp32", "tf32", "bf16")
COLUMNS = ("model", "dtype", "batch", "ours", "eager", "graph", "replays alone", "graph/ours", "eager/ours",
           "asked met", "verified")
lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def times(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def cells(model, dtype, batch, took, verified, peer):
    """A row of the table, by its columns; `peer` None where there is no PyTorch."""
    row = {"model": model, "dtype": dtype, "batch": str(batch), "ours": f"{took:.1f}", "verified": verified}
    if peer:
        graph, eager = peer["graph_us"] / took, peer["eager_us"] / took
        met = graph >= MODELS[model][2] and (model != "medium" or eager >= 30)
        row |= {"eager": f"{peer['eager_us']:.0f}", "graph": f"{peer['graph_us']:.1f}",
                "replays alone": f"{peer['replay_us']:.1f}", "graph/ours": times(graph),
                "eager/ours": times(eager), "asked met": "–" if batch > 128 else "yes" if met else "no"}
    return [row.get(column, "–") for column in COLUMNS]


def ours(gpulab, dtype, model, batch):
    """Median step in microseconds, and what verification said."""
    done = subprocess.run([gpulab, "bench", "mlp", "--json", "--device", "cuda", "--no-limits", "--limit",
                           "500ms", f"model={model}", f"batch_size={batch}", f"dtype={dtype}",
                           "compile_model=true"], check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"bench/training: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    passed = "passed" if result["verification"]["passed"] else "FAILED"
    return result["latency_ms"]["median"] * 1e3, f"{passed}: {result['verification']['text']}"


def peers(rows):
    peer = subprocess.run([sys.executable, f"{HERE}/peers/torch_mlp_gpu.py", *rows], capture_output=True,
                          text=True, check=False)
    found = [json.loads(line) for line in peer.stdout.splitlines() if line.startswith("{")]
    return {result["row"]: result for result in found}


def main():
    gpulab, words = sys.argv[1], sys.argv[2:]
    for word in words:
        if word not in DTYPES:
            sys.exit(f"bench/training: there is no dtype '{word}'; there are {', '.join(DTYPES)}")
    name, driver = facts.gpu()
    facts.program(gpulab)
    dtypes = words or DTYPES
    rows = {(d, m, b): f"{d}:{MODELS[m][0]}:{MODELS[m][1]}:{b}"
            for d in dtypes for m in MODELS for b in BATCHES}
    theirs = peers(rows.values())
    say(f"# Training steps on an {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("Microseconds for a step. Asked at batches up to 128: medium 4 ×, large 3 × PyTorch's graph; medium")
    say("30 × eager. The graph has its next batch copied into place, as ours finds its own; replays alone are")
    say("beside it.")
    say()
    say(f"| {' | '.join(COLUMNS)} |")
    say("|" + "---|" * len(COLUMNS))
    for (dtype, model, batch), row in rows.items():
        took, verified = ours(gpulab, dtype, model, batch)
        say(f"| {' | '.join(cells(model, dtype, batch, took, verified, theirs.get(row)))} |")
    if not words:
        folder = os.environ.get("OUT") or f"{HERE}/results"
        path = f"{folder}/training-{name.lower().replace(' ', '-')}.md"
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
