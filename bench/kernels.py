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
GRAPHS = ("backward", "training")  # replayed, by bench_launch
ROW_SECONDS, GROUP_SECONDS = 16, 20  # of a row, about; of a group's two processes of PyTorch, to begin
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
    if row["kind"] in GRAPHS:
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


def ours(gpulab, row, config=None, how=SUSTAINED, checks=False):
    """What `gpulab bench` says, as its JSON, and the rate in TFLOP/s or TB/s. With checks verified, and with limits."""
    words = words_of(row) + ([f'config="{config}"'] if config else [])
    out = subprocess.run([gpulab, "bench", *words, "--device", "cuda", "--json", *how,
                          *([] if checks else ["--no-verify", "--no-limits"])], check=True,
                         capture_output=True, text=True).stdout
    found = json.loads(out)
    if checks and not found["verification"]["passed"]:
        sys.exit(f"{title(row)}: wrong: {found['verification']['text']}")
    return found, found[unit_of(row)] / 1e12


def unit_of(row):
    return "memory_bytes_per_second" if row["kind"] == "softmax" else "flops_per_second"


def launch(gpulab, row):
    """What bench_launch says: TFLOP/s of attention, TB/s of the others."""
    folder = os.path.dirname(os.path.abspath(gpulab))
    found = [path for path in (f"{folder}/bench_launch", f"{folder}/gpu-tests/bench_launch") if os.path.exists(path)]
    if not found:
        sys.exit(f"bench/kernels: no bench_launch beside {gpulab}: ninja -C build bench_launch")
    words = [found[0], "cuda", "bf16", row["op"], *map(str, row["sizes"]), *(["causal"] if row.get("causal") else [])]
    out = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return out["flops" if row["kind"] == "backward" else "bytes"] / out["seconds"] / 1e12


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
    columns = ["kernel", "ours", *names, *(f"ours/{name}" for name in names),
               *([] if kind in GRAPHS else ["burst", f"burst/{names[-1]}", "limit"]),
               *(["tuning"] if kind == "gemm" else []), *facts.CONDITIONS,
               *([] if kind in GRAPHS else ["configuration"])]
    say()
    say(f"| {' | '.join(columns)} |")
    say("|" + "---|" * len(columns))


def say_row(row, rounds, *rest):
    """A row from its rounds of our rate and the peers' rates: means of both, and of the rounds' ratios."""
    taken = [[theirs.get(name) for _, theirs in rounds] for name in PEERS[row["kind"]]]
    mean = [sum(values) / len(values) if all(values) else None for values in taken]
    ratios = [sum(rate / value for (rate, _), value in zip(rounds, values)) / len(values) if all(values) else None
              for values in taken]
    cells = [title(row), f"{sum(rate for rate, _ in rounds) / len(rounds):.4g}",
             *(f"{value:.4g}" if value else "–" for value in mean),
             *(f"{ratio:.2f}" if ratio else "–" for ratio in ratios), *rest]
    say(f"| {' | '.join(cells)} |")


def burst_cells(mine, theirs):
    """Our rate in a burst, and over the last peer's."""
    return [f"{mine:.4g}", f"{mine / theirs:.2f}" if theirs else "–"]


def say_rounds(gpulab, rows, options):
    """Ours, theirs, theirs, ours, each of ours a process of its own."""
    if rows and rows[0]["kind"] in GRAPHS:
        first = [launch(gpulab, row) for row in rows]
    else:
        first = [ours(gpulab, row, checks=True) for row in rows]
    theirs = list(zip(peers(rows, options.peers), peers(rows, options.peers)))
    for row, mine, found in zip(rows, first, theirs):
        if row["kind"] in GRAPHS:
            with facts.Conditions() as seen:
                rate = launch(gpulab, row)
            say_row(row, [(mine, found[0]), (rate, found[1])], *seen.cells)
            continue
        burst = burst_cells(ours(gpulab, row, how=BURST)[1], found[1].get(f"{PEERS[row['kind']][-1]} burst"))
        with facts.Conditions() as seen:
            rate = ours(gpulab, row)[1]
        say_row(row, [(mine[1], found[0]), (rate, found[1])], *burst,
                f"{mine[0]['limits'][unit_of(row)] / 1e12:.4g}", *seen.cells, mine[0]["config"]["config"])


def say_products(gpulab, rows, options):
    """The same for each product, where our program can time cuBLASLt; else PyTorch's loop, once."""
    for row in rows:
        tuning = tune(gpulab, row)
        with facts.Conditions() as seen:
            found, rate = ours(gpulab, row, checks=True)
        configuration = found["config"]["config"]
        if configuration.startswith("way="):
            library = [ours(gpulab, row, LIBRARY)[1] for _ in range(2)] if options.peers else [None] * 2
            rounds = [(rate, {"cuBLASLt": library[0]}), (ours(gpulab, row)[1], {"cuBLASLt": library[1]})]
            burst = ours(gpulab, row, LIBRARY, BURST)[1] if options.peers else None
        else:
            theirs = peers([row], options.peers)[0]
            rounds, burst = [(rate, theirs)], theirs.get("cuBLASLt burst")
        say_row(row, rounds, *burst_cells(ours(gpulab, row, how=BURST)[1], burst),
                f"{found['limits'][unit_of(row)] / 1e12:.4g}", tuning, *seen.cells, configuration)


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
    say("without a pause. In turn: ours, theirs, theirs, ours; means of the two, and of the two ratios. burst: 20")
    say("launches by a GPU that had nothing to do before, once. backward and training: replayed from graphs for half")
    say("a second; others: ours as `gpulab bench` has it, products tuned first.")
    kind = None
    for group in groups:
        rows = options.fitting(rows_of(group), title, ROW_SECONDS, GROUP_SECONDS)
        if rows and rows[0]["kind"] != kind:
            kind = rows[0]["kind"]
            say_head(kind)
        (say_products if kind == "gemm" else say_rounds)(gpulab, rows, options)
    options.say_left_out(say)
    kinds = {GROUPS: "kernels", GRAPHS: "kernels-training"}
    if tuple(groups) in kinds and options.is_table:
        folder = os.environ.get("OUT") or os.path.join(HERE, "results")
        slug = name.lower().replace(" ", "-")
        with open(os.path.join(folder, f"{kinds[tuple(groups)]}-{slug}.md"), "w") as file:
            file.write("\n".join(lines) + "\n")


main()
