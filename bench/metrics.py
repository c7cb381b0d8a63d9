"""bench/metrics: reading a program's metrics, from a log and while it runs."""
import glob
import os
import random
import statistics
import string
import subprocess
import sys
import tempfile
import time

BYTES = int(float(os.environ.get("BENCH_BYTES", 1e9)))
LINES = int(os.environ.get("BENCH_LINES", 800_000))
WORK = os.environ.get("BENCH_WORK", "0,4000").split(",")  # multiplications before a line
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 4))
BLOCK_BYTES = 20_000_000  # is written again and again
METRICS_OFF = "experiment.metrics={json: false, printed: false, patterns: []}"
gpulab, printer = (os.path.realpath(path) for path in sys.argv[1:3])

OTHER_LINES = [
    "prefetching shard {a} of {b} from /data/fineweb/train_{a:06d}.bin",
    "gathered {a} requests in {c:.3f} ms on cuda:{d}",
    "NCCL INFO Channel {d}/0 : {d}[{d}] -> {e}[{e}] via P2P/IPC",
    "saving to /checkpoints/run7/ckpt_{a:06d}.pt",
    "worker {d} waits for {b} files",
    "memory allocated {c:.2f} GiB reserved {f:.2f} GiB",
    "queue depth {d}, dropped {e}",
]
METRIC_LINES = [
    "iter {i}: loss {x:.4f}, time {c:.2f}ms, mfu {y:.2f}%",
    "step {i:5d}/50000 | loss {x:.6f} (+{z:.2f}z)| norm {z:.4f} (-0.32z)| lr 3.00e-04 | {c:.2f} ms | "
    "55.1% bf16 MFU | {a} tok/s",
    "{{'loss': {x:.4f}, 'grad_norm': {z:.4f}, 'learning_rate': 4.99e-05, 'epoch': {z:.2f}}}",
    "Epoch {d}/10, Iter {b}/1000, Loss: {x:.4f}",
]
HEAD = "epoch     train_loss  valid_loss  accuracy  time\n"
FORMS = {  # logs of one kind of line each
    "short lines": ("", ["iter {i} loss {x:.4f}"]),
    "rows of a table": (HEAD, ["{i:<10d}{x:<12.6f}{y:<12.6f}{z:<10.6f}00:{d:02d}"]),
    "lines with a date": ("", ["2026-11-17 10:{d:02d}:00,{b:03d} - INFO - step {i} loss {x:.4f} lr {z:.6f}"]),
    "lines of ranks": ("", ["[rank{d}]: step {i} loss {x:.4f} lr {z:.6f}"]),
    "nine numbers a line": ("", METRIC_LINES[1:2]),
    "lines that all differ": ("", ["step {i} {w} loss {x:.4f} in {w}_{w} lr {z:.6f}"]),
}


def write_log_apart(path, share, size, head, forms):
    """In a process of its own: what it needs would count as its successors' peak memory."""
    child = os.fork()
    if child == 0:
        write_log(path, share, size, head, forms)
        os._exit(0)
    os.waitpid(child, 0)
    return os.path.getsize(path)


def write_log(path, share, size, head, forms):
    """A log of which this share of the lines has metrics."""
    draw, lines, length, i = random.Random(1), [], 0, 0
    while length < min(size, BLOCK_BYTES):
        values = dict(a=draw.randrange(100000), b=draw.randrange(1000), c=100 * draw.random(), d=draw.randrange(8),
                      e=draw.randrange(8), f=80 * draw.random(), x=3 + draw.random(), y=30 + draw.random(),
                      z=draw.random(), w="".join(draw.choices(string.ascii_lowercase, k=10)))
        if draw.random() < share:
            line = forms[i % len(forms)].format(i=i, **values)
            i += 1
        else:
            line = (f"2026-11-17 10:{draw.randrange(60):02d}:{draw.randrange(60):02d},{draw.randrange(1000):03d} INFO "
                    f"[trainer.py:{draw.randrange(400)}] " + draw.choice(OTHER_LINES).format(**values))
        lines.append(line)
        length += len(line) + 1
    block = ("\n".join(lines) + "\n").encode()
    with open(path, "wb") as file:
        file.write(head.encode())
        for _ in range(max(1, size // len(block))):
            file.write(block)


def run(*words):
    """Wall time, CPU time and peak memory of a command and all that it starts."""
    start = time.monotonic()
    process = subprocess.Popen([gpulab, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=work)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bench/metrics: gpulab {' '.join(words)}: {said}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run_program(command, *words):
    return run("run", "test_matrix", f"experiment.command='{command}'", "experiment.matrix={}", "experiment.resume=false",
               f"output_dir={work}/outputs", *words)


def bench_log(name, share, head="", forms=METRIC_LINES):
    run_program("true")
    log, = glob.glob(f"{max(glob.glob(f'{work}/outputs/*/*/*'), key=os.path.getmtime)}/logs/*.stdout")
    size = write_log_apart(log, share, BYTES, head, forms)
    wall, cpu, memory = min(run("metrics", "reread", os.path.dirname(os.path.dirname(log)), "--dry-run")
                            for _ in range(2))
    os.unlink(log)
    scale = 1e9 / size
    print(f"{name:52} {wall * scale:6.2f} s/GB  {cpu * scale:6.2f} s of CPU/GB  {memory:4.0f} MiB")


def bench_output(name, forms):
    """The same while it is printed: what all of gpulab takes, the values it keeps and its report among it."""
    size = write_log_apart(f"{work}/output", 1, BYTES, "", forms)
    wall, cpu, memory = min(run_program(f"cat {work}/output") for _ in range(2))
    os.unlink(f"{work}/output")
    scale = 1e9 / size
    print(f"{name:52} {wall * scale:6.2f} s/GB  {cpu * scale:6.2f} s of CPU/GB  {memory:4.0f} MiB")


def bench_program(spin):
    times, own = {True: [], False: []}, []
    for i in range(ROUNDS):
        for on in (True, False) if i % 2 == 0 else (False, True):
            _, cpu, _ = run_program(f"{printer} {LINES} {spin} {work}/times", *([] if on else [METRICS_OFF]))
            wall, busy, blocked = (float(text) for text in open(f"{work}/times").read().split())
            times[on].append((wall, busy, blocked / wall))
            own.append((cpu - busy) if on else 0)
    walls = statistics.median(a[0] / b[0] for a, b in zip(times[True], times[False]))
    busy = statistics.median(a[1] / b[1] for a, b in zip(times[True], times[False]))
    blocked = statistics.median(time[2] for time in times[True])
    alone = statistics.median(time[0] for time in times[False])
    print(f"{LINES} metrics, program of {alone:6.2f} s: its time {walls:.3f}, its CPU time {busy:.3f} of that with "
          f"metrics off; blocked {100 * blocked:.2f}% of it; gpulab {max(own):.2f} s of CPU")


with tempfile.TemporaryDirectory() as work:
    os.environ.update(HOME=work, XDG_STATE_HOME=f"{work}/state", GPULAB_LOCK_DIR=work)
    bench_log("a log, 20% of its lines with metrics", 0.2)
    bench_log("a log of metrics alone", 1)
    for name, (head, forms) in FORMS.items():
        bench_log(f"a log of {name}", 1, head, forms)
    bench_output("a program's output of nine numbers a line", METRIC_LINES[1:2])
    for amount in WORK:
        bench_program(amount)
