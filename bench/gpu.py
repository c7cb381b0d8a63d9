"""bench/gpu's measurements; see there."""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "results", "peers")
KEPT = os.path.join(os.environ["OUT"], "peers") if os.environ.get("OUT") else PEERS
MODELS = {"vit32x2x128": (32, 2, 128, 4), "vit32x4x256": (32, 4, 256, 8),
          "vit32x6x512": (32, 6, 512, 8), "vit16x8x768": (16, 8, 768, 12),
          "vit16x12x1024": (16, 12, 1024, 16)}
GROUPS = {"bf16": list(MODELS), "tf32": ["vit32x6x512", "vit16x8x768", "vit16x12x1024"]}
BATCHES = (1, 10, 64)
BUDGET = os.environ.get("BENCH_BUDGET", "6s")  # of tuning a product
ROW_SECONDS, PEER_SECONDS = 20, 60              # of a row in turn, about; of its two processes of PyTorch
gpulab, options = sys.argv[1], facts.Options(sys.argv[2:])
words = options.words


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def ours(workload, *keys, limit="1s", limits="--no-limits", precision="0.01"):
    """One `gpulab bench`, as its JSON."""
    out = run([gpulab, "bench", workload, "--json", "--device", "cuda", "--no-verify", limits, "--limit",
               limit, "--precision", precision, *keys])
    return json.loads(out)


def row_name(dtype, model, batch):
    return ":".join(map(str, (dtype, *MODELS[model], batch)))


def peers_file(driver):
    version = run([sys.executable, "-c", "import torch; print(torch.__version__)"]).strip()
    return os.path.join(PEERS, f"driver-{driver}-torch-{version.split('+')[0]}.json")


def products_file(driver):
    return os.path.join(PEERS, f"driver-{driver}-products.json")


def load(path):
    """What is kept, and what an earlier run has put into $OUT instead."""
    found = {}
    for place in (path, os.path.join(KEPT, os.path.basename(path))):
        found |= json.load(open(place)) if os.path.exists(place) else {}
    return found


def keep(path, kept):
    path = os.path.join(KEPT, os.path.basename(path))
    os.makedirs(KEPT, exist_ok=True)
    with open(path + ".new", "w") as file:
        json.dump(kept, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(path + ".new", path)


def load_peers():
    """All that was kept for this driver, the best of any PyTorch; {} where nothing was."""
    found, driver = {}, facts.gpu()[1]
    for name in sorted(os.listdir(PEERS)) if os.path.isdir(PEERS) else []:
        if name.startswith(f"driver-{driver}-torch-"):
            for row, rate in load(os.path.join(PEERS, name)).items():
                found[row] = max(rate, found.get(row, 0))
    return found


def prepare_peers(rows):
    """Compiles the rows' models side by side, so that measuring finds them in PyTorch's cache."""
    room = min(8, os.cpu_count() or 1)
    share = [rows[i::room] for i in range(room) if rows[i::room]]
    for peer in [subprocess.Popen([sys.executable, f"{HERE}/peers/torch_vit_gpu.py", "prepare", *part],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for part in share]:
        peer.wait()  # one that fails is met again, and said, when it is measured


def run_peers(groups):
    path = peers_file(facts.gpu()[1])
    kept = load(path)
    for group in groups:
        for mode in ("eager", "compiled"):
            rows = [row_name(group, model, batch) for model in GROUPS[group] for batch in BATCHES]
            rows = [row for row in rows if f"{mode} {row}" not in kept]
            if not rows:
                continue
            if mode == "compiled":
                prepare_peers(rows)
            peer = subprocess.Popen([sys.executable, f"{HERE}/peers/torch_vit_gpu.py", mode, *rows],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for line in peer.stdout:
                result = json.loads(line)
                kept[f"{mode} {result['row']}"] = result["samples_per_second"]
                print(mode, result["row"], f"{result['samples_per_second']:.0f}", flush=True)
                keep(path, kept)
            if peer.wait() != 0:
                sys.exit(f"bench/gpu: the {mode} peer of {group} failed; to see why: "
                         f"{sys.executable} {HERE}/peers/torch_vit_gpu.py {mode} {' '.join(rows[:1])}")


lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def number(value):
    return "–" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def model_keys(model):
    patch, depth, dim, heads = MODELS[model]
    return [f"patch_size={patch}", f"depth={depth}", f"dim={dim}", f"heads={heads}"]


def vit(dtype, model, batch, *keys, **how):
    result = ours("vit", *model_keys(model), f"batch_size={batch}", f"dtype={dtype}",
                  "memory_size_mb=512", *keys, **how)
    return result["samples_per_second"]


def gemm_seconds(dtype, m, n, k):
    """cuBLASLt's best algorithm of this product, events around each launch."""
    result = ours("gemm", f"m={m}", f"n={n}", f"k={k}", f"dtype={dtype}", "layout=nt", limit="300ms")
    return result["latency_ms"]["median"] / 1e3


def product_seconds(dtype, model, batch):
    """Of all GEMMs of a batch, each alone; cuBLASLt's times hold from run to run, so they are kept too."""
    path, row = products_file(facts.gpu()[1]), row_name(dtype, model, batch)
    kept = load(path)
    if row not in kept:
        patch, depth, dim, heads = MODELS[model]
        tokens, width, inner = (224 // patch) ** 2 + 1, 3 * patch * patch, 64 * heads
        rows = batch * tokens
        kept[row] = gemm_seconds(dtype, batch * (tokens - 1), dim, width)
        for n, k in ((3 * inner, dim), (dim, inner), (4 * dim, dim), (dim, 4 * dim)):
            kept[row] += depth * gemm_seconds(dtype, rows, n, k)
        keep(path, kept)
    return kept[row]


def limit(dtype, model, batch, copies):
    """Samples/s that the bytes or the GEMMs alone would allow, and whether it is the bytes."""
    seconds = product_seconds(dtype, model, batch)
    return min(batch / seconds, copies[dtype, batch]), copies[dtype, batch] < batch / seconds


def copy_limits(dtypes):
    found = {}
    say("| copies | batch | bytes | GB/s |")
    say("|---|---|---|---|")
    for dtype in dtypes:
        for batch in BATCHES:
            size = batch * 3 * 224 * 224 * (2 if dtype in ("bf16", "fp16") else 4)
            result = ours("memcpy", f"size={size}", "direction=h2d", limit="500ms")
            rate = result["copy_bytes_per_second"]
            found[dtype, batch] = rate / (size / batch)
            say(f"| H2D {dtype} | {batch} | {size} | {rate / 1e9:.1f} |")
    say()
    return found


def verdict(value, goal):
    return "–" if goal is None else "yes" if value >= goal else f"{value / goal:.2f} of it"


def goals(batch, eager, compiled, bound):
    """What is asked of us: plain, compiled; None = nothing is, or the peer wasn't run."""
    if batch <= 10:
        return (eager and min(3 * eager, 0.85 * bound), compiled and
                max(compiled, min(1.3 * compiled, 0.85 * bound)))
    return None, compiled


def table(groups):
    peers = load_peers()
    copies = copy_limits(groups)
    say("| model | dtype | batch | ours | ours compiled | eager | compiled | limit | ours/eager | "
        "compiled/compiled | compiled/limit | plain goal met | compiled goal met | of copies alone |")
    say("|" + "---|" * 14)
    for dtype in groups:
        for model in GROUPS[dtype]:
            for batch in BATCHES:
                row = row_name(dtype, model, batch)
                plain = vit(dtype, model, batch, "compile_model=false")
                graph = vit(dtype, model, batch, "compile_model=true")
                eager, compiled = peers.get(f"eager {row}"), peers.get(f"compiled {row}")
                bound, by_copies = limit(dtype, model, batch, copies)
                plain_goal, graph_goal = goals(batch, eager, compiled, bound)
                alone = vit(dtype, model, batch, "forward=false") if by_copies else None
                say(f"| {model} | {dtype} | {batch} | {number(plain)} | {number(graph)} | "
                    f"{number(eager)} | {number(compiled)} | {number(bound)} | "
                    f"{number(eager and plain / eager)} | {number(compiled and graph / compiled)} | "
                    f"{number(graph / bound)} | {verdict(plain, plain_goal)} | "
                    f"{verdict(graph, graph_goal)} | {number(alone and graph / alone)} |")
    say()
    say("The limit of a row: the smaller of its bytes over the bare copy rate of that piece and the sum of")
    say("its products' times alone, each with events around the launch. For small products that includes a")
    say("launch's own cost, which graphs hide, so a row may pass its limit. Goals at batch 1 and 10: plain")
    say("the smaller of 3 × eager and 0.85 × limit; compiled the smaller of 1.3 × compiled and 0.85 × limit,")
    say("and no less than the peer; at batch 64 the peer. Of copies alone: against the same pipeline without")
    say("the forward, where copies are the limit. A dash: that peer wasn't run here, or nothing is asked.")


# --- in turn ---

LARGE = ("vit32x6x512", "vit16x8x768", "vit16x12x1024")  # of others copies or launches are what is timed


def compiled_peer(row):
    """Samples/s of PyTorch's compiled model, in a process of its own; None where it failed."""
    done = subprocess.run([sys.executable, f"{HERE}/peers/torch_vit_gpu.py", "compiled", row], check=False,
                          capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return found[0]["samples_per_second"] if found else None


def tune_products(dtype, model, batch):
    """The four of a block, so that `gpulab bench vit` finds them."""
    _, _, dim, heads = MODELS[model]
    tokens, inner = (224 // MODELS[model][0]) ** 2 + 1, 64 * heads
    for n, k, epilogue in ((3 * inner, dim, "none"), (dim, inner, "bias_add"), (4 * dim, dim, "bias_gelu"),
                           (dim, 4 * dim, "bias_add")):
        run([gpulab, "tune", "gemm", f"m={batch * tokens}", f"n={n}", f"k={k}", f"dtype={dtype}", "layout=nt",
             f"epilogue={epilogue}", "--device", "cuda", "--warm", "--budget", BUDGET, "--json"])


def in_turn(groups):
    """Compiled models: ours, ours with tuned products, theirs, theirs, and back. What PyTorch compiles is in its
    cache before."""
    rows = [(dtype, model, batch) for dtype in groups for model in LARGE for batch in BATCHES[1:]]
    each = ROW_SECONDS + 4 * float(BUDGET.rstrip("s")) + (PEER_SECONDS if options.peers else 0)
    rows = options.fitting(rows, lambda row: " ".join(map(str, (row[1], row[0], row[2]))), each)
    copies = copy_limits({row[0] for row in rows})
    if options.peers:
        prepare_peers([row_name(*row) for row in rows])
    columns = ("model", "dtype", "batch", "ours", "tuned", "reduce-overhead", "ours/reduce-overhead",
               "tuned/reduce-overhead", "limit", "tuned/limit", *facts.CONDITIONS)
    say(f"| {' | '.join(columns)} |")
    say("|" + "---|" * len(columns))

    def measure(dtype, model, batch, config):
        return vit(dtype, model, batch, "compile_model=true", f"config={config}", limit="1500ms", precision="0.0001")
    for row in rows:
        tune_products(*row)
        plain, tuned = [measure(*row, "default")], [measure(*row, "tuned")]
        theirs = [compiled_peer(row_name(*row)) if options.peers else None for _ in range(2)]
        with facts.Conditions() as seen:
            tuned.append(measure(*row, "tuned"))
        plain.append(measure(*row, "default"))
        found, (bound, _) = None not in theirs, limit(*row, copies)
        ratios = [statistics.median(a / b for a, b in zip(mine, theirs)) if found else None for mine in (plain, tuned)]
        cells = (row[1], row[0], str(row[2]), *(number(statistics.median(mine)) for mine in (plain, tuned)),
                 number(statistics.median(theirs) if found else None),
                 *(f"{ratio:.2f}" if ratio else "–" for ratio in ratios), number(bound),
                 f"{statistics.median(tuned) / bound:.2f}", *seen.cells)
        say(f"| {' | '.join(cells)} |")
    say()
    say("Samples/s over a second without a pause, each in a process of its own: ours, tuned, reduce-overhead twice,")
    say(f"tuned, ours. tuned: products as `gpulab tune gemm --warm --budget {BUDGET}` chose them. Limit: cuBLASLt's")
    say("products alone, each timed by itself, or the copies; conditions are medians while tuned ran.")
    options.say_left_out(say)


# --- beside the table ---

def copies_of_64_mib():
    rates = []
    for direction in ("h2d", "d2h"):
        result = ours("memcpy", f"size={64 << 20}", f"direction={direction}", limits="--limits")
        rates.append(f"{direction.upper()} {result['copy_bytes_per_second'] / 1e9:.1f} GB/s, "
                     f"{100 * result['share_of_limit'][direction]:.0f} % of the bare engine")
    say("- Copies of 64 MiB: " + "; ".join(rates) + ".")


def product_of_4096():
    result = ours("gemm", "m=4096", "n=4096", "k=4096", "dtype=bf16", "layout=nt")
    say(f"- bf16 product of 4096³: {result['flops_per_second'] / 1e12:.0f} TFLOP/s.")


def first_use():
    """Of each kernel of a model, from the log: with an empty cache of kernels, and with the full one."""
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        for state in ("empty", "full"):
            start = time.monotonic()
            done = subprocess.run([gpulab, "bench", "vit", "--json", "--device", "cuda", "--no-verify",
                                   "--limit", "100ms", "--log-level", "debug", "dtype=bf16",
                                   "compile_model=true", *model_keys("vit16x8x768")],
                                  check=True, capture_output=True, text=True, env=env)
            took = time.monotonic() - start
            times = [float(ms) for ms in re.findall(r"was ready after ([0-9.]+) ms", done.stderr)]
            timed = len(re.findall(r"the library's first", done.stderr))
            say(f"- First use with the cache of kernels {state}: {len(times)} kernels, the longest wait for "
                f"one {max(times):.1f} ms, {timed} products timed, {took:.2f} s for the whole process.")


def slices_side_by_side():
    """Two slices of four in one worker, against one alone."""
    with tempfile.TemporaryDirectory() as folder:
        rates = {}
        for name, ids in (("alone", "[0]"), ("together", "[[0,1]]")):
            run([gpulab, "run", "quick_test", "device=cuda:0/4", f"experiment.hardware.gpu_ids={ids}",
                 "experiment.vit_configs=[{patch_size: 16, depth: 8, heads: 12, dim: 768, mlp_dim: 3072}]",
                 "experiment.test.num_samples=4000", "experiment.test.dtype=bf16",
                 "experiment.processes=shared", "experiment.trace=false", "experiment.resume=false",
                 f"output_dir={folder}/{name}"])
            found = glob.glob(f"{folder}/{name}/*/*/*/results.json")
            rates[name] = [rank["samples_per_second"] for rank in json.load(open(found[0]))[0]["ranks"]]
    say(f"- Two slices of four in one worker, vit16x8x768: {' and '.join(map(number, rates['together']))} "
        f"samples/s side by side, {number(rates['alone'][0])} alone.")


def main():
    turn, peers = words[:1] == ["in-turn"], words[:1] == ["peers"]
    groups = words[1:] if peers or turn else words
    for group in groups:
        if group not in GROUPS:
            sys.exit(f"bench/gpu: there is no group '{group}'; there are {', '.join(GROUPS)}")
    name, driver = facts.gpu()
    facts.program(gpulab)
    if peers:
        run_peers(groups or list(GROUPS))
        return
    say(f"# {name}, driver {driver}, {facts.commit_and_date()}")
    say()
    say("Samples per second of the ViT pipeline (H2D, forward, D2H of the output). Peers: PyTorch, the")
    say("same pipeline, eager and torch.compile(mode=\"reduce-overhead\").")
    say()
    if turn:
        in_turn(groups or list(GROUPS))
        return
    table(groups or list(GROUPS))
    if not groups:
        say()
        say("Beside the table, in the same run:")
        for measure in (copies_of_64_mib, product_of_4096, first_use, slices_side_by_side):
            try:
                measure()
            except (subprocess.CalledProcessError, KeyError, IndexError, ValueError) as problem:
                say(f"- {measure.__name__}: {getattr(problem, 'stderr', None) or problem!r}")
    if groups:
        return  # a part must not stand where the whole was
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    out = os.environ.get("OUT") or os.path.join(HERE, "results")
    with open(os.path.join(out, f"gpu-{slug}.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


main()
