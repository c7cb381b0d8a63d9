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
GPT2 = (4, 16, 64)  # batches of 1024 tokens; 12 heads of 64, 50257 words padded to 50304
PARAMETERS = 124475904  # with the padded words
LOGIT_ROWS = 8192  # as many as a step does at a time
PEERS = {"attention": ("FlashAttention-2", "cuDNN"), "backward": ("FlashAttention-2", "cuDNN"),
         "training": ("PyTorch", "torch.compile"), "softmax": ("PyTorch", "copy"), "gemm": ("cuBLASLt",)}
GROUPS = ("attention", "grouped", "backward", "training", "softmax", "gemm", "vit")
PLAIN = ("backward", "training")  # ops that `gpulab bench` doesn't have
ROW_SECONDS, GROUP_SECONDS = 14, 20  # of a row, about; of a group's two processes of PyTorch, to begin
LIBRARY = "way=0,block_m=128,block_n=128,cluster=1,split=1,group=8"  # cuBLASLt's fastest of eight, on Hopper


def attention_rows():
    for head_dim in (64, 128):
        for causal in (False, True):
            for seq in (1024, 4096, 16384):
                yield {"kind": "attention", "batch": TOKENS // seq, "heads": WIDTH // head_dim, "seq": seq,
                       "head_dim": head_dim, "causal": causal}


def grouped_rows():
    """Long causal ones whose 16 heads of queries share 4 of keys and values, or a single one."""
    for kv_heads in (4, 1):
        for seq in (8192, 16384):
            yield {"kind": "attention", "batch": TOKENS // seq, "heads": 16, "kv_heads": kv_heads, "seq": seq,
                   "head_dim": 128, "causal": True, "dtype": "fp16"}


def training_rows():
    for batch in GPT2:
        rows = 1024 * batch
        yield {"op": "residual_layer_norm", "sizes": [rows, 768]}
        yield {"op": "layer_norm_backward", "sizes": [rows, 768]}
        yield {"op": "gelu_tanh", "sizes": [rows * 3072]}
        yield {"op": "gelu_tanh_backward", "sizes": [rows * 3072]}
    yield {"op": "cross_entropy", "sizes": [LOGIT_ROWS, 50304, 50257]}
    yield {"op": "adamw", "sizes": [PARAMETERS]}


def rows_of(group):
    if group == "backward":
        return [{"kind": group, "op": "flash_attention_backward", "sizes": [batch, 1024, 12, 64], "causal": causal}
                for causal in (True, False) for batch in GPT2]
    if group == "training":
        return [{"kind": group, **row} for row in training_rows()]
    if group == "attention":
        return list(attention_rows())
    if group == "grouped":
        return list(grouped_rows())
    if group == "softmax":
        return [{"kind": "softmax", "rows": r, "columns": c} for r, c in SOFTMAX]
    sizes = [(n, n, n, "none") for n in SQUARES] if group == "gemm" else VIT
    return [{"kind": "gemm", "m": m, "n": n, "k": k, "epilogue": e} for m, n, k, e in sizes]


def title(row):
    if row["kind"] == "attention":
        shared = f" {row['heads']}:{row['kv_heads']} heads {row['dtype']}" if "kv_heads" in row else ""
        return f"attention {row['head_dim']} {'causal' if row['causal'] else 'none'} {row['seq']}{shared}"
    if row["kind"] in PLAIN:
        return f"{row['op']} {'x'.join(str(n) for n in row['sizes'])}{' causal' if row.get('causal') else ''}"
    if row["kind"] == "softmax":
        return f"softmax {row['rows']}x{row['columns']}"
    return f"gemm {row['m']}x{row['n']}x{row['k']} {row['epilogue']}"


def words_of(row):
    workload = {"attention": "flash_attention_v2", "softmax": "softmax", "gemm": "gemm"}[row["kind"]]
    keys = [f"{key}={str(value).lower()}" for key, value in {"dtype": "bf16", **row}.items() if key != "kind"]
    return [workload, *keys, *(["layout=nt"] if row["kind"] == "gemm" else [])]


def tune(gpulab, row):
    """What it took, in words: products alone are tuned."""
    out = subprocess.run([gpulab, "tune", *words_of(row), "--device", "cuda", "--budget", BUDGET, "--json"],
                         check=True, capture_output=True, text=True).stdout
    found = json.loads(out)
    took = found["autotune_duration_seconds"]
    said = "–" if took is None else f"{took:.1f} s"
    return f"{said}, earlier" if found["from_cache"] else said


SUSTAINED = ("--limit", "1500ms", "--precision", "0.0001")  # a second, and half a second of warm-up
BURST = ("--iterations", "20", "--warmup", "3")             # by a GPU that had nothing to do before


def ours(gpulab, row, *how):
    """What `gpulab bench` says, as its JSON."""
    out = subprocess.run([gpulab, "bench", *words_of(row), "--device", "cuda", "--json", *how], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def unit_of(row):
    return "memory_bytes_per_second" if row["kind"] == "softmax" else "flops_per_second"


def verified(gpulab, row):
    """The limit and the configuration of a row that is right."""
    found = ours(gpulab, row, "--limit", "300ms")
    if not found["verification"]["passed"]:
        sys.exit(f"{title(row)}: wrong: {found['verification']['text']}")
    return f"{found['limits'][unit_of(row)] / 1e12:.4g}", found["config"]["config"]


def launch_words(row):
    """The op of a row and its sizes, for bench_launch."""
    if row["kind"] == "attention":
        sizes = [row["batch"], row["seq"], row["heads"], row.get("kv_heads", row["heads"]), row["head_dim"]]
        return ["flash_attention", *sizes]
    return ["gemm", row["m"], row["n"], row["k"]] if row["kind"] == "gemm" else [row["op"], *row["sizes"]]


def launch(gpulab, row, config=None):
    """Our rate sustained and in a burst: TFLOP/s of attention and products, TB/s of the others."""
    if row["kind"] == "softmax" or row.get("epilogue", "none") != "none":
        how = [f'config="{config}"'] if config else []
        return [ours(gpulab, row, "--no-verify", "--no-limits", *how, *each)[unit_of(row)] / 1e12
                for each in (SUSTAINED, BURST)]
    folder = os.path.dirname(os.path.abspath(gpulab))
    found = [path for path in (f"{folder}/bench_launch", f"{folder}/gpu-tests/bench_launch") if os.path.exists(path)]
    if not found:
        sys.exit(f"bench/kernels: no bench_launch beside {gpulab}: ninja -C build bench_launch")
    words = [found[0], "cuda", row.get("dtype", "bf16"), *map(str, launch_words(row)),
             *(["causal"] if row.get("causal") else []), *([f"config={config}"] if config else [])]
    out = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    work = out["bytes" if row["kind"] == "training" else "flops"] / 1e12
    return work / out["seconds"], work / out["burst_seconds"]


def peers(rows, wanted=True):
    """The peers' figures by row: {"FlashAttention-2": …, "cuDNN": …, "cuDNN burst": …}; none without PyTorch."""
    if not rows or not wanted:
        return [{} for _ in rows]
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
    columns = ["kernel", "ours", *names, *(f"ours/{name}" for name in names), "burst", f"burst/{names[-1]}",
               *facts.CONDITIONS, *([] if kind in PLAIN else ["limit", "configuration"]),
               *(["tuning"] if kind == "gemm" else [])]
    say()
    say(f"| {' | '.join(columns)} |")
    say("|" + "---|" * len(columns))


def mean_ratio(mine, theirs):
    """The mean of the rounds' ratios."""
    return sum(a / b for a, b in zip(mine, theirs)) / len(theirs) if theirs and all(theirs) else None


def say_row(row, mine, theirs, *rest):
    """A row from its rounds of our two rates and the peers' rates: means of both, and of the rounds' ratios."""
    names = PEERS[row["kind"]]
    rates, bursts = zip(*mine)
    taken = {name: [found.get(name) for found in theirs] for name in (*names, f"{names[-1]} burst")}
    means = [sum(taken[name]) / len(theirs) if all(taken[name]) else None for name in names]
    ratios = [*(mean_ratio(rates, taken[name]) for name in names), mean_ratio(bursts, taken[f"{names[-1]} burst"])]
    ratios = [f"{ratio:.2f}" if ratio else "–" for ratio in ratios]
    say("| " + " | ".join([title(row), f"{sum(rates) / len(rates):.4g}",
                           *(f"{value:.4g}" if value else "–" for value in means), *ratios[:-1],
                           f"{sum(bursts) / len(bursts):.4g}", ratios[-1], *rest]) + " |")


def say_rounds(gpulab, rows, options):
    """Ours, theirs, theirs, ours, each of ours a process of its own."""
    about = [() if row["kind"] in PLAIN else verified(gpulab, row) for row in rows]
    first = [launch(gpulab, row) for row in rows]
    theirs = list(zip(peers(rows, options.peers), peers(rows, options.peers)))
    for row, mine, found, rest in zip(rows, first, theirs, about):
        with facts.Conditions() as seen:
            last = launch(gpulab, row)
        say_row(row, [mine, last], found, *seen.cells, *rest)


def say_products(gpulab, rows, options):
    """The same for each product, where our program can time cuBLASLt; else PyTorch's, once."""
    for row in rows:
        tuning = tune(gpulab, row)
        bound, config = verified(gpulab, row)
        mine = [launch(gpulab, row, config)]
        if options.peers and config.startswith("way="):
            found = [launch(gpulab, row, LIBRARY) for _ in range(2)]
            theirs = [{"cuBLASLt": rate, "cuBLASLt burst": burst} for rate, burst in found]
        else:
            theirs = 2 * peers([row], options.peers)
        with facts.Conditions() as seen:
            mine.append(launch(gpulab, row, config))
        say_row(row, mine, theirs, *seen.cells, bound, config, tuning)


def main():
    gpulab, options = sys.argv[1], facts.Options(sys.argv[2:])
    groups = options.words or list(GROUPS)
    unknown = [g for g in groups if g not in GROUPS]
    if unknown:
        sys.exit(f"bench/kernels: no group {unknown[0]}: there are {', '.join(GROUPS)}")
    name, driver = facts.gpu()
    facts.program(gpulab)
    say(f"# Kernels of our own: {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("bf16. TFLOP/s of attention and products, TB/s read and written of all else, each over a second")
    say("without a pause. In turn: ours, theirs, theirs, ours; means of the two, and of the two ratios. burst: a few")
    say("launches by a GPU that had nothing to do for half a second. Both are replayed from graphs, but softmax, which")
    say("is launched. Products were tuned before.")
    kind = None
    for group in groups:
        rows = options.fitting(rows_of(group), title, ROW_SECONDS, GROUP_SECONDS)
        if rows and rows[0]["kind"] != kind:
            kind = rows[0]["kind"]
            say_head(kind)
        (say_products if kind == "gemm" else say_rounds)(gpulab, rows, options)
    options.say_left_out(say)
    kinds = {GROUPS: "kernels", PLAIN: "kernels-training"}
    if tuple(groups) in kinds and options.is_table:
        folder = os.environ.get("OUT") or os.path.join(HERE, "results")
        slug = name.lower().replace(" ", "-")
        with open(os.path.join(folder, f"{kinds[tuple(groups)]}-{slug}.md"), "w") as file:
            file.write("\n".join(lines) + "\n")


main()
