"""bench/gpu's measurements; see there."""
import datetime
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "results", "peers")
MODELS = {"vit32x2x128": (32, 2, 128, 4), "vit32x4x256": (32, 4, 256, 8),
          "vit32x6x512": (32, 6, 512, 8), "vit16x8x768": (16, 8, 768, 12),
          "vit16x12x1024": (16, 12, 1024, 16)}
GROUPS = {"bf16": list(MODELS), "tf32": ["vit32x6x512", "vit16x8x768", "vit16x12x1024"]}
BATCHES = (1, 10, 64)
gpulab, words = sys.argv[1], sys.argv[2:]


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def ours(workload, *keys, limit="1s"):
    """One `gpulab bench`, as its JSON."""
    out = run([gpulab, "bench", workload, "--json", "--device", "cuda", "--no-verify", "--limit", limit,
               *keys])
    return json.loads(out)


def row_name(dtype, model, batch):
    return ":".join(map(str, (dtype, *MODELS[model], batch)))


def gpu_facts():
    out = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    name, driver = out.strip().split("\n")[0].split(", ")
    return name, driver


def peers_file(driver):
    version = run([sys.executable, "-c", "import torch; print(torch.__version__)"]).strip()
    return os.path.join(PEERS, f"driver-{driver}-torch-{version}.json")


def load_peers():
    """All that was kept for this driver, whatever the PyTorch; {} where nothing was."""
    found, driver = {}, gpu_facts()[1]
    if os.path.isdir(PEERS):
        for name in sorted(os.listdir(PEERS)):
            if name.startswith(f"driver-{driver}-"):
                found.update(json.load(open(os.path.join(PEERS, name))))
    return found


def run_peers(groups):
    path = peers_file(gpu_facts()[1])
    os.makedirs(PEERS, exist_ok=True)
    kept = json.load(open(path)) if os.path.exists(path) else {}
    for group in groups:
        for mode in ("eager", "compiled"):
            rows = [row_name(group, model, batch) for model in GROUPS[group] for batch in BATCHES]
            rows = [row for row in rows if f"{mode} {row}" not in kept]
            if not rows:
                continue
            peer = subprocess.Popen([sys.executable, f"{HERE}/peers/torch_vit_gpu.py", mode, *rows],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for line in peer.stdout:
                result = json.loads(line)
                kept[f"{mode} {result['row']}"] = result["samples_per_second"]
                print(mode, result["row"], f"{result['samples_per_second']:.0f}", flush=True)
                with open(path + ".new", "w") as file:
                    json.dump(kept, file, indent=1, sort_keys=True)
                os.replace(path + ".new", path)
            if peer.wait() != 0:
                sys.exit(f"bench/gpu: the {mode} peer of {group} failed; to see why: "
                         f"{sys.executable} {HERE}/peers/torch_vit_gpu.py {mode} {' '.join(rows[:1])}")


lines = []


def say(text=""):
    lines.append(text)
    print(text, flush=True)


def number(value):
    return "–" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def vit(dtype, model, batch, compiled):
    patch, depth, dim, heads = MODELS[model]
    result = ours("vit", f"patch_size={patch}", f"depth={depth}", f"dim={dim}", f"heads={heads}",
                  f"batch_size={batch}", f"dtype={dtype}", f"compile_model={str(compiled).lower()}",
                  "memory_size_mb=512")
    return result["samples_per_second"]


def gemm_seconds(dtype, m, n, k):
    """cuBLASLt's best algorithm of this product, events around each launch."""
    result = ours("gemm", f"m={m}", f"n={n}", f"k={k}", f"dtype={dtype}", "layout=nt", limit="300ms")
    return result["latency_ms"]["median"] / 1e3


def limit(dtype, model, batch, copies):
    """Samples/s that the bytes or the GEMMs alone would allow."""
    patch, depth, dim, heads = MODELS[model]
    tokens, width, inner = (224 // patch) ** 2 + 1, 3 * patch * patch, 64 * heads
    rows = batch * tokens
    seconds = gemm_seconds(dtype, batch * (tokens - 1), dim, width)
    for n, k in ((3 * inner, dim), (dim, inner), (4 * dim, dim), (dim, 4 * dim)):
        seconds += depth * gemm_seconds(dtype, rows, n, k)
    return min(batch / seconds, copies[dtype, batch])


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


def table(groups):
    peers = load_peers()
    copies = copy_limits(groups)
    say("| model | dtype | batch | ours | ours compiled | eager | compiled | limit | "
        "ours/eager | compiled/compiled | compiled/limit |")
    say("|---|---|---|---|---|---|---|---|---|---|---|")
    for dtype in groups:
        for model in GROUPS[dtype]:
            for batch in BATCHES:
                row = row_name(dtype, model, batch)
                plain, graph = vit(dtype, model, batch, False), vit(dtype, model, batch, True)
                eager, compiled = peers.get(f"eager {row}"), peers.get(f"compiled {row}")
                bound = limit(dtype, model, batch, copies)
                say(f"| {model} | {dtype} | {batch} | {number(plain)} | {number(graph)} | "
                    f"{number(eager)} | {number(compiled)} | {number(bound)} | "
                    f"{number(eager and plain / eager)} | {number(compiled and graph / compiled)} | "
                    f"{number(graph / bound)} |")


def main():
    peers = words[:1] == ["peers"]
    groups = words[1:] if peers else words
    for group in groups:
        if group not in GROUPS:
            sys.exit(f"bench/gpu: there is no group '{group}'; there are {', '.join(GROUPS)}")
    if peers:
        run_peers(groups or list(GROUPS))
        return
    name, driver = gpu_facts()
    commit = os.environ.get("BENCH_COMMIT") or run(["git", "rev-parse", "--short", "HEAD"]).strip()
    say(f"# {name}, driver {driver}, commit {commit}, {datetime.date.today()}")
    say()
    say("Samples per second of the ViT pipeline (H2D, forward, D2H of the output). Peers: PyTorch, the")
    say("same pipeline, eager and torch.compile(mode=\"reduce-overhead\").")
    say()
    table(groups or list(GROUPS))
    if groups:
        return  # a part must not stand where the whole was
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    out = os.environ.get("OUT") or os.path.join(HERE, "results")
    with open(os.path.join(out, f"gpu-{slug}.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


main()
