"""bench/monitor's measurements; see there."""
import argparse
import datetime
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
EIGHT = "gpus=8; power=200~650/20; utilization=20~95/30"
CALL = "nvmlDeviceGetPowerUsage"
FAULTS = {"none": "",
          "a call hangs": f"hang={CALL}:60@4/1",
          "a restart hangs": "lost=1@0.2; hang=nvmlInit_v2:60@2",
          "lost": "lost=1@0.2",
          "all lost": "lost=" + ",".join(f"{gpu}@0.2" for gpu in range(8)),
          "gone": "gone=1@0.2",
          "nonsense": "garbage=1",
          "a storm of events": "storm=1",
          "wrapping counters": "wrap=32; pcie_tx=4000",
          "driver 535": "driver=535",
          **{f"error {code}": f"fail={CALL}:{code}@4/1"
             for code in (1, 3, 4, 9, 10, 13, 15, 16, 17, 18, 26, 999)}}
WARM_S = 1.0


class Bench:
    def __init__(self, folder, seconds):
        self.folder, self.seconds = os.path.abspath(folder), seconds
        self.fake = os.path.join(self.folder, "fake")
        self.rows, self.missed = [], 0
        self.work = tempfile.mkdtemp()
        self.foreign = facts.Foreign()

    # --- programs ---

    def program(self, name):
        for place in (self.folder, os.path.dirname(self.folder)):
            path = os.path.join(place, name)
            if os.access(path, os.X_OK):
                return path
        sys.exit(f"bench/monitor: no {name} in {self.folder}")

    def environment(self, script):
        """None: the driver that is here."""
        env = dict(os.environ)
        if script is not None:
            env.update(LD_LIBRARY_PATH=self.fake, GPULAB_FAKE_NVML=script)
        return env

    def figures(self, command, script=None):
        """`name value` lines of a program; {} where it can't run."""
        done = subprocess.run(command, env=self.environment(script), capture_output=True, text=True)
        if done.returncode:
            self.why = done.stderr.strip().split("\n")[-1]
            return {}
        pairs = (line.split(None, 1) for line in done.stdout.splitlines())
        return {name: number(value) for name, value in pairs}

    # --- rows ---

    def head(self, text):
        self.rows.append((text,))
        print(text)

    def row(self, name, value, unit, goal=None, remark=""):
        verdict = remark
        if goal is not None:
            verdict = ("ok" if value <= goal else "MISSED") + (f" ({remark})" if remark else "")
            self.missed += value > goal
        shown = f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
        limit = "" if goal is None else f"{goal:g}"
        self.rows.append((name, shown, unit, limit, verdict))
        print(f"  {name:58s} {shown:>8s} {unit:8s} {limit:>6s}  {verdict}", flush=True)


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def cpu_ns(pid):
    """Of all threads; to the nanosecond, as /proc/PID/stat isn't."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except OSError:
            pass
    return total


def private_mib(pid):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    return sum(int(kib) for kib in re.findall(r"Private_(?:Clean|Dirty): +(\d+)", text)) / 1024


# --- what is measured ---

def measure_readings(bench):
    """A reading of all GPUs, a thread each. Ours of a fake driver says nothing of a real one's calls."""
    found = {}
    for script in (None, EIGHT):
        out = bench.figures([bench.program("bench_reading"), str(bench.seconds)], script)
        if not out:
            bench.head(f"Readings of this machine's GPUs: none ({bench.why})")
            continue
        real, gpus = not out["simulated"], int(out["gpus"])
        bench.head(f"Readings of {gpus} {'' if real else 'fake '}GPU{'s' * (gpus > 1)}, each 100 ms, "
                   f"{out['metrics']:.0f} metrics")
        fake = "" if real else "fake: judged by nothing"
        bench.row("fast tier: thread time of a GPU, median", out["thread_p50_us"], "us",
                  100 if real else None, fake)
        bench.row("with the slow tier, once a second: 95th percentile", out["thread_p95_us"], "us")
        bench.row(f"fast tier: {gpus} GPU{'s' * (gpus > 1)}, wall, median", out["wall_p50_us"],
                  "us", 200 if real and gpus <= 8 else None, fake)
        found.setdefault("real" if real else "fake", out)
    return found


def measure_cadence(bench):
    bench.head("100 Hz: how long after its time a reading begins")
    for name, script in (("this machine", None), ("8 fake GPUs", EIGHT)):
        out = bench.figures([bench.program("bench_sampler"), "10", str(bench.seconds)], script)
        bench.row(f"{name}: median", out["late_p50_ms"], "ms")
        bench.row(f"{name}: 99th percentile", out["late_p99_ms"], "ms", 1)
        bench.row(f"{name}: ticks missed", out["missed"], "")


def record(bench, script, path):
    command = [bench.program("gpulab"), "record", "-q", "-i", "100ms", "-o", path]
    with open(path + ".messages", "w") as messages:
        return subprocess.Popen(command, env=bench.environment(script), stdout=messages,
                                stderr=messages)


def shares(bench, scripts):
    """Per cent of a core that recordings take, once they have begun; and their private memory."""
    folder = tempfile.mkdtemp(dir=bench.work)
    paths = {name: os.path.join(folder, f"{index}.db") for index, name in enumerate(scripts)}
    running = {name: record(bench, script, paths[name]) for name, script in scripts.items()}
    time.sleep(WARM_S)
    before = {name: (time.monotonic(), cpu_ns(process.pid)) for name, process in running.items()}
    time.sleep(bench.seconds)
    found = {}
    for name, process in running.items():
        if process.poll() is not None:
            why = open(paths[name] + ".messages").read()
            sys.exit(f"bench/monitor: gpulab record, {name}: status {process.returncode} {why}")
        began, cpu = before[name]
        found[name] = (100 * (cpu_ns(process.pid) - cpu) / 1e9 / (time.monotonic() - began),
                       private_mib(process.pid))
    for process in running.values():
        process.terminate()
    for process in running.values():
        process.wait()
    return found


def measure_ten_hertz(bench):
    bench.head("10 Hz, 8 fake GPUs and this machine's CPUs, memory and nodes")
    out = bench.figures([bench.program("bench_sampler"), "100", str(bench.seconds)], EIGHT)
    bench.row("the sampler: CPU time", out["cpu_percent"], "% core", 0.3)
    bench.row("the sampler: memory", out["private_mib"], "MiB", 20)
    cpu, memory = shares(bench, {"alone": EIGHT})["alone"]
    bench.row("gpulab record, writing what it finds: CPU time", cpu, "% core", 0.3)
    bench.row("gpulab record: memory", memory, "MiB", 20)


def measure_watch(bench):
    """Over a job with a process on each GPU, once it has begun."""
    bench.head("gpulab watch at its default of 2 s, 8 fake GPUs")
    job = subprocess.Popen(["sleep", "3600"])
    script = EIGHT + "; process=" + ",".join(f"{gpu}:{job.pid}:100:80:C" for gpu in range(8))
    watch = subprocess.Popen([bench.program("gpulab"), "watch", str(job.pid), "-q", "--duration", "1h"],
                             env=bench.environment(script), stdout=subprocess.DEVNULL)
    time.sleep(WARM_S)
    began, cpu = time.monotonic(), cpu_ns(watch.pid)
    time.sleep(bench.seconds)
    share = 100 * (cpu_ns(watch.pid) - cpu) / 1e9 / (time.monotonic() - began)
    if watch.poll() is not None:
        sys.exit(f"bench/monitor: gpulab watch: status {watch.returncode}")
    for process in (watch, job):
        process.terminate()
        process.wait()
    bench.row("gpulab watch: CPU time", share, "% core", 0.5)


def measure_recording(bench):
    bench.head("A recording: one GPU for a day at 10 Hz, 25 metrics, in compressed time")
    out = bench.figures([bench.program("bench_recording"), bench.work])
    bench.row("bytes of a tick", out["bytes_per_tick"], "bytes", 60)
    bench.row("writing a tick, CPU time", out["write_us_per_tick"], "us", 100)
    bench.row(f"reading {out['read_values'] / 1e6:.0f} million values, best of 5", out["read_seconds"],
              "s", 1)


def measure_faults(bench):
    bench.head("gpulab record at 10 Hz with 8 fake GPUs, one of them at fault: CPU time")
    scripts = {name: f"{EIGHT}; {script}" for name, script in FAULTS.items()}
    for name, (cpu, _) in shares(bench, scripts).items():
        bench.row(name, cpu, "% core", 1)


def measure_peers(bench, readings):
    """The usual loops, on the real driver where there is one: same machine, same minute."""
    kind = "real" if "real" in readings else "fake"
    ours, script = readings[kind], None if kind == "real" else EIGHT
    fake = "" if kind == "real" else ", fake"
    loop = os.path.join(HERE, "peers", "nvml_loop.py")
    gpus = int(ours["gpus"])
    bench.head(f"Python's loop each 100 ms over the same {gpus} GPU{'s' * (gpus > 1)}{fake}, and how many "
               "times ours it takes")
    cpu_us = shares(bench, {"ours": script})["ours"][0] * 1e4 / (10 * gpus)
    bench.row("ours: a reading of all GPUs, wall, median", ours["wall_p50_us"], "us")
    bench.row("ours: CPU time of all of gpulab record for a GPU's sample", cpu_us, "us")
    smi = ["smi"] if kind == "real" and shutil.which("nvidia-smi") else []
    for peer in ["nvml", *smi]:
        out = bench.figures([sys.executable, loop, peer, str(bench.seconds)], script)
        if not out:
            bench.head(f"  {peer}: not run ({bench.why})")
            continue
        name = out["library"] if out["pcie"] or peer == "smi" else f"{out['library']}, without PCIe"
        times = out["wall_p50_us"] / ours["wall_p50_us"]
        bench.row(f"{name}: all GPUs, wall, median", out["wall_p50_us"], "us", None, f"{times:.1f} times")
        times = out["cpu_us"] / cpu_us
        bench.row(f"{name}: CPU time for a GPU's sample", out["cpu_us"], "us", None, f"{times:.1f} times")
        bench.row(f"{name}: samples a second, of 10", out["rate_hz"], "Hz")
        bench.row(f"{name}: CPU time", out["cpu_percent"], "% core")


# --- the table ---

def describe_machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    text = f"{os.cpu_count()} × {model.group(1) if model else os.uname().machine}"
    gpu = None
    if shutil.which("nvidia-smi"):
        out = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True).stdout.strip()
        if ", " in out:
            gpu, driver = out.split("\n")[0].split(", ")
            text += f"; {len(out.splitlines())} × {gpu}, driver {driver}"
    return gpu, text


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True,
                          text=True)
    return done.stdout.strip() or "unknown"


def write_table(bench, caveat):
    gpu, machine = describe_machine()
    name = re.sub(r"[^a-z0-9]+", "-", (gpu or "cpu").lower()).strip("-")
    folder = os.environ.get("OUT") or os.path.join(HERE, "results")
    lines = [f"# What watching costs: {machine}", "",
             f"`bench/monitor --seconds {bench.seconds:g}`, {datetime.date.today()}, commit {commit()}. "
             f"{caveat} `../README.md` says what each row means.", "",
             "| | value | unit | at most | |", "|---|---:|---|---:|---|"]
    for row in bench.rows:
        lines.append(f"| **{row[0].strip()}** | | | | |" if len(row) == 1 else f"| {' | '.join(row)} |")
    path = os.path.join(folder, f"monitor-{name}.md")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    print(f"written to {path}")


def main():
    parser = argparse.ArgumentParser(prog="bench/monitor")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    words = parser.parse_args()
    bench = Bench(words.folder, words.seconds)
    try:
        print(f"  {'':58s} {'value':>8s} {'unit':8s} {'goal':>6s}")
        readings = measure_readings(bench)
        measure_ten_hertz(bench)
        measure_watch(bench)
        measure_cadence(bench)
        measure_recording(bench)
        measure_faults(bench)
        measure_peers(bench, readings)
    finally:
        shutil.rmtree(bench.work)
    foreign = bench.foreign.percent()
    caveat = f"Other processes took {foreign:.0f} % of the CPU time meanwhile" + (
        ": too much for a MISSED to mean anything." if foreign > 5 else ".")
    print(caveat)
    if words.write:
        write_table(bench, caveat)
    sys.exit(1 if bench.missed else 0)


main()
