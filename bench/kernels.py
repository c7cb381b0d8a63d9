"""bench/kernels' measurements; see there."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = os.environ.get("BENCH_BUDGET", "6s")
TOKENS, WIDTH = 16384, 2048  # of attention: in all, and heads × head_dim
SOFTMAX = ((4096, 4096), (16384, 8192), (4096, 131072))
SQUARES = (2048, 4096, 8192)
# m, n, k, epilogue of the four products of a layer: vit16x8x768 and vit16x12x1024 at batch 10 and 64
VIT = [(batch * 197, n, k, epilogue) for d in (768, 1024) for batch in (10, 64)
       for n, k, epilogue in ((3 * d, d, "none"), (d, d, "bias"), (4 * d, d, "bias_gelu"), (d, 4 * d, "bias"))]
GROUPS = ("attention", "softmax", "gemm", "vit")


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


def ours(gpulab, row):
    """What `gpulab bench` says: TFLOP/s or TB/s, the limit beside it, and the configuration."""
    if row["kind"] == "gemm":
        subprocess.run([gpulab, "tune", *words_of(row), "--device", "cuda", "--budget", BUDGET],
                       check=True, capture_output=True)
    out = subprocess.run([gpulab, "bench", *words_of(row), "--device", "cuda", "--json"], check=True,
                         capture_output=True, text=True).stdout
    found = json.loads(out)
    what = "memory_bytes_per_second" if row["kind"] == "softmax" else "flops_per_second"
    if not found["verification"]["passed"]:
        sys.exit(f"{title(row)}: wrong: {found['verification']['text']}")
    return found[what] / 1e12, found["limits"][what] / 1e12, found["config"]["config"]


def peers(rows):
    """The peers' figures by row: {"FlashAttention-2": …, "cuDNN": …}; none without PyTorch."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "peers", "torch_kernels.py")],
                          input=json.dumps(rows), capture_output=True, text=True)
    if done.returncode:
        print(f"no peers: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return [{} for _ in rows]
    return json.loads(done.stdout)


def main():
    gpulab, groups = sys.argv[1], sys.argv[2:] or list(GROUPS)
    unknown = [g for g in groups if g not in GROUPS]
    if unknown:
        sys.exit(f"bench/kernels: no group {unknown[0]}: there are {', '.join(GROUPS)}")
    rows = [row for group in groups for row in rows_of(group)]
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         check=True, capture_output=True, text=True).stdout.strip().splitlines()[0]
    lines = [f"# Kernels of our own: {gpu.replace(', ', ', driver ')}", "",
             "bf16. TFLOP/s of attention and products, TB/s read and written of softmax, each over half a "
             "second without a pause; ours as `gpulab bench` has it, products tuned first. `ratio` is ours "
             "over the best peer.", "", "| kernel | ours | peers | ratio | limit | configuration |",
             "|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for row, theirs in zip(rows, peers(rows)):
        rate, limit, configuration = ours(gpulab, row)
        best = max(theirs.values(), default=None)
        named = ", ".join(f"{name} {value:.4g}" for name, value in theirs.items()) or "–"
        lines.append(f"| {title(row)} | {rate:.4g} | {named} | {f'{rate / best:.2f}' if best else '–'} | "
                     f"{limit:.4g} | {configuration} |")
        print(lines[-1], flush=True)
    if groups == list(GROUPS):
        folder = os.environ.get("OUT") or os.path.join(HERE, "results")
        name = gpu.split(",")[0].lower().replace(" ", "-")
        with open(os.path.join(folder, f"kernels-{name}.md"), "w") as file:
            file.write("\n".join(lines) + "\n")


main()
