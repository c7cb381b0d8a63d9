"""bench/kernels' measurements; see there."""
import json
import os
import subprocess
import sys

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = os.environ.get("BENCH_BUDGET", "6s")
TOKENS, WIDTH = 16384, 2048  # of attention: in all, and heads × head_dim
SOFTMAX = ((4096, 4096), (16384, 8192), (4096, 131072))
SQUARES = (2048, 4096, 8192)
# m, n, k, epilogue of the four products of a layer: vit16x8x768 and vit16x12x1024 at batch 10 and 64
VIT = [(batch * 197, n, k, epilogue) for d in (768, 1024) for batch in (10, 64)
       for n, k, epilogue in ((3 * d, d, "none"), (d, d, "bias"), (4 * d, d, "bias_gelu"), (d, 4 * d, "bias"))]
PEERS = {"attention": ("FlashAttention-2", "cuDNN"), "softmax": ("PyTorch", "copy"), "gemm": ("cuBLASLt",)}
GROUPS = ("attention", "softmax", "gemm", "vit")
LIBRARY = "way=0,block_m=128,block_n=128,cluster=1,split=1,group=8"  # cuBLASLt's fastest of eight, on Hopper


def attention_rows():
    for head_dim in (64, 128):
        for causal in (False, True):
            for seq in (1024, 4096, 16384):
                yield {"kind": "attention", "batch": TOKENS // seq, "heads": WIDTH // head_dim, "seq": seq,
                       "head_dim": head_dim, "causal": causal}


def rows_of(group):
    if group == "attention":
        return list(attention_rows())
    if group == "softmax":
        return [{"kind": "softmax", "rows": r, "columns": c} for r, c in SOFTMAX]
    sizes = [(n, n, n, "none") for n in SQUARES] if group == "gemm" else VIT
    return [{"kind": "gemm", "m": m, "n": n, "k": k, "epilogue": e} for m, n, k, e in sizes]


def title(row):
    if row["kind"] == "attention":
        return f"attention {row['head_dim']} {'causal' if row['causal'] else 'none'} {row['seq']}"
    if row["kind"] == "softmax":
        return f"softmax {row['rows']}x{row['columns']}"
    return f"gemm {row['m']}x{row['n']}x{row['k']} {row['epilogue']}"


def words_of(row):
    workload = {"attention": "flash_attention_v2", "softmax": "softmax", "gemm": "gemm"}[row["kind"]]
    keys = [f"{key}={str(value).lower()}" for key, value in row.items() if key != "kind"]
    return [workload, "dtype=bf16", *keys, *(["layout=nt"] if row["kind"] == "gemm" else [])]


def tune(gpulab, row):
    """What it took, in words: products alone are tuned."""
    out = subprocess.run([gpulab, "tune", *words_of(row), "--device", "cuda", "--budget", BUDGET, "--json"],
                         check=True, capture_output=True, text=True).stdout
    found = json.loads(out)
    took = found["autotune_duration_seconds"]
    said = "–" if took is None else f"{took:.1f} s"
    return f"{said}, earlier" if found["from_cache"] else said


def ours(gpulab, row, config=None):
    """What `gpulab bench` says: TFLOP/s or TB/s, the limit beside it, and the configuration."""
    words = words_of(row) + ([f'config="{config}"'] if config else [])
    out = subprocess.run([gpulab, "bench", *words, "--device", "cuda", "--json"], check=True,
                         capture_output=True, text=True).stdout
    found = json.loads(out)
    what = "memory_bytes_per_second" if row["kind"] == "softmax" else "flops_per_second"
    if not found["verification"]["passed"]:
        sys.exit(f"{title(row)}: wrong: {found['verification']['text']}")
    return found[what] / 1e12, found["limits"][what] / 1e12, found["config"]["config"]


def in_turn(gpulab, row, rate):
    """Ours and cuBLASLt by the same program, in the order ours, theirs, theirs, ours; means."""
    theirs = [ours(gpulab, row, LIBRARY)[0] for _ in range(2)]
    return (rate + ours(gpulab, row)[0]) / 2, {"cuBLASLt": sum(theirs) / 2}


def peers(rows):
    """The peers' figures by row: {"FlashAttention-2": …, "cuDNN": …}; none without PyTorch."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "peers", "torch_kernels.py")],
                          input=json.dumps(rows), capture_output=True, text=True)
    if done.returncode:
        print(f"no peers: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return [{} for _ in rows]
    return json.loads(done.stdout)


lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def say_head(kind):
    names = PEERS[kind]
    columns = ["kernel", "ours", *names, *(f"ours/{name}" for name in names), "limit",
               *(["tuning"] if kind == "gemm" else []), "configuration"]
    say()
    say(f"| {' | '.join(columns)} |")
    say("|" + "---|" * len(columns))


def say_row(gpulab, row, theirs):
    tuning = [tune(gpulab, row)] if row["kind"] == "gemm" else []
    rate, limit, configuration = ours(gpulab, row)
    if row["kind"] == "gemm" and configuration.startswith("way="):
        rate, theirs = in_turn(gpulab, row, rate)
    values = [theirs.get(name) for name in PEERS[row["kind"]]]
    cells = [title(row), f"{rate:.4g}", *(f"{value:.4g}" if value else "–" for value in values),
             *(f"{rate / value:.2f}" if value else "–" for value in values), f"{limit:.4g}", *tuning,
             configuration]
    say(f"| {' | '.join(cells)} |")


def main():
    gpulab, groups = sys.argv[1], sys.argv[2:] or list(GROUPS)
    unknown = [g for g in groups if g not in GROUPS]
    if unknown:
        sys.exit(f"bench/kernels: no group {unknown[0]}: there are {', '.join(GROUPS)}")
    name, driver = facts.gpu()
    facts.program(gpulab)
    rows = [row for group in groups for row in rows_of(group)]
    say(f"# Kernels of our own: {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("bf16. TFLOP/s of attention and products, TB/s read and written of softmax, each over half a second")
    say("without a pause; ours as `gpulab bench` has it, products tuned first.")
    kind = None
    for row, theirs in zip(rows, peers(rows)):
        if row["kind"] != kind:
            kind = row["kind"]
            say_head(kind)
        say_row(gpulab, row, theirs)
    if groups == list(GROUPS):
        folder = os.environ.get("OUT") or os.path.join(HERE, "results")
        slug = name.lower().replace(" ", "-")
        with open(os.path.join(folder, f"kernels-{slug}.md"), "w") as file:
            file.write("\n".join(lines) + "\n")


main()
