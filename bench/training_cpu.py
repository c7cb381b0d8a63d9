"""bench/training_cpu's measurements; see there."""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = os.environ.get("BENCH_SECONDS", "0.5")
MODELS = (("medium", "50-256-128-64-3", 0.2), ("large", "50-1024-1024-512-512-256-3", 0.3))
BATCHES = (16, 128)
GOAL = 1.0


def cores():
    """A logical CPU of each core that this process may use."""
    taken, found = set(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as file:
                siblings = file.read().strip()
        except OSError:
            siblings = str(cpu)
        if siblings not in taken:
            taken.add(siblings)
            found.append(cpu)
    return found


class Peer:
    """PyTorch in a process of its own on those CPUs, asked for one measurement after the other."""

    def __init__(self, cpus):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "peers", "torch_mlp_cpu.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cpus))

    def step_ms(self, widths, dropout, batch):
        self.process.stdin.write(f"{widths} {dropout} {batch} {SECONDS}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench/training_cpu: PyTorch's side ended without a figure")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours_ms(gpulab, cpus, model, batch, compiled):
    done = subprocess.run([gpulab, "bench", "mlp", f"model={model}", f"batch_size={batch}",
                           f"compile_model={str(compiled).lower()}", "--device", "cpu", "--limit", f"{SECONDS}s",
                           "--no-verify", "--no-limits", "--json"],
                          capture_output=True, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode:
        sys.exit(f"bench/training_cpu: gpulab bench mlp: {done.stderr}")
    found = json.loads(done.stdout)
    if sorted(found["device"]["cpus"]) != sorted(cpus):
        sys.exit(f"bench/training_cpu: gpulab uses CPUs {found['device']['cpus']}, must use {cpus}")
    return found["interval_ms"]["median"]


def main():
    gpulab = os.path.abspath(sys.argv[1])
    there = cores()
    wanted = [int(word) for word in sys.argv[2:]] or [n for n in (2, 8) if n <= len(there)] or [len(there)]
    met = rows = 0
    print(f"{'':<30} {'ours':>9} {'PyTorch':>9} {'unit':<4} {'ratio':>6} {'goal':>5}")
    for count in wanted:
        if count > len(there):
            sys.exit(f"bench/training_cpu: {count} cores: there are {len(there)}")
        cpus = there[:count]
        peer = Peer(cpus)
        for model, widths, dropout in MODELS:
            for batch in BATCHES:
                found = {False: [], True: []}
                for _ in range(ROUNDS):
                    theirs = peer.step_ms(widths, dropout, batch)
                    for compiled, pairs in found.items():
                        pairs.append((ours_ms(gpulab, cpus, model, batch, compiled), theirs))
                for compiled, pairs in found.items():
                    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
                    title = f"{model} {batch}, {count} cores{', compiled' if compiled else ''}"
                    middle = [statistics.median(values) for values in zip(*pairs)]
                    met, rows = met + (ratio >= GOAL), rows + 1
                    print(f"{title:<30} {middle[0]:9.4f} {middle[1]:9.4f} {'ms':<4} {ratio:6.2f} {GOAL:5.1f} "
                          f"{'met' if ratio >= GOAL else 'MISSED'}", flush=True)
        peer.close()
    print(f"{met} of {rows} goals met")


main()
