"""bench/trackers: studies with and without trackers, in turn, and points per second of CPU time."""
import collections
import ctypes
import glob
import http.server
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

import facts
import ratios
import studies

BLOCKS = int(os.environ.get("BENCH_BLOCKS", 8))
POINTS = int(os.environ.get("BENCH_POINTS", 1_000_000))  # of a run, which keeps no more
TRACKERS = "wandb,tensorboard,trackio"
BOUND = 1.01  # of the runs' time
RATE = {"tensorboard": 1e6, "wandb": 1e6}  # points per second of CPU time, at least
MLFLOW_US = 5  # of CPU time for a point, at most

gpulab, work, *wanted = sys.argv[1:]
os.environ.update(XDG_STATE_HOME=work, GPULAB_LOCK_DIR=work, HOME=work, TRACKIO_DIR=f"{work}/trackio")
os.environ.pop("WANDB_DIR", None)
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: the sender isn't the runner's child
failed = False
shares = collections.defaultdict(list)  # of the sender, in CPU time until the last run over time

# products on every core of the device, a second or two each; 30 runs of a simulated GPU, which are short
GEMM = f"""\
defaults: [_base, _self_]
name: products
workload: gemm
test: {{num_samples: {120 * os.cpu_count()}, warmup_samples: 10, timeout_s: 600}}
gemm: {{m: 768, n: 768, k: 768}}
repeat: 3
"""
Row = collections.namedtuple("Row", "name turns words")
ROWS = [
    Row("3 runs on all cores", 1, ["products", "device=cpu:0"]),
    Row("30 short simulated runs", 1, ["quick_test", "device=sim:l40s-10", "experiment.repeat=10"]),
]


def say(what, figure, goal="", verdict=""):
    global failed
    failed |= verdict == "MISSED"
    print(f"{what:44} {figure:34} {goal}{'   ' + verdict if verdict else ''}", flush=True)


def sender_cpu():
    """CPU time of the process that sends, so far; 0 = there is none."""
    try:
        for child in open("/proc/thread-self/children").read().split():
            if b"\0sync\0" in open(f"/proc/{child}/cmdline", "rb").read():
                return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{child}/task/*/schedstat")) * 1e-9
    except OSError:
        pass  # it has ended
    return 0


def sample(row, side):
    """Seconds: of iterations, from the first run's line to the last one's, of the command; CPU time of all."""
    tracker = TRACKERS if side == "new" else "none"
    shutil.rmtree(f"{work}/out", ignore_errors=True)
    start = time.monotonic()
    child = subprocess.Popen([gpulab, "run", *row.words, "--no-report", "--config-dir", f"{work}/conf",
                              "experiment.resume=false", f"output_dir={work}/out", f"tracker={tracker}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines, said, sent = [], "", 0
    for line in child.stderr:
        said += line
        if line.startswith("["):
            lines.append(time.monotonic())
            sent = max(sent, sender_cpu())
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    if side == "new":  # the sender, which is ours by now
        usage = os.wait4(-1, 0)[2]
        cpu += usage.ru_utime + usage.ru_stime
    if status or len(lines) < 5:
        raise ratios.SampleError(side, said)
    if side == "new":
        shares[row.name].append(sent / (lines[-1] - start))
    result = {"runs": lines[-1] - lines[0], "command": took, "CPU": cpu}
    path, = glob.glob(f"{work}/out/*/*/*/results.json")
    ranks = [rank for run in json.load(open(path)) for rank in run["ranks"]]
    if "sim:" not in row.words[1]:
        result["iterations"] = sum(rank["last_ns"] - rank["first_ns"] for rank in ranks) * 1e-9
    return result


def bench_runs():
    studies.write(f"{work}/conf", "products", GEMM)
    print(f"Time ratio with {TRACKERS} / without; 95% interval over {BLOCKS} blocks, ABBA or BAAB")
    foreign = facts.Foreign()
    results = [ratios.Result(row) for row in ROWS]
    for result in results:
        result.warm_up(sample)
    ratios.measure_blocks(results, BLOCKS, sample, random.Random(), lambda *_: None)
    for result in results:
        if not result.is_measured():
            sys.exit(f"bench/trackers: {result.row.name}: {result.failed or result.skipped}")
        for measure, logs in result.logs.items():
            found = ratios.estimate(logs, ratios.SCREEN)
            judged = measure in ("runs", "iterations")
            verdict = "met" if found.high <= BOUND else "MISSED" if found.low > BOUND else "unclear"
            more_ms = 1e3 * result.reference[measure] * (found.ratio - 1)
            say(f"{result.row.name}, {measure}: {result.reference[measure]:.2f} s",
                f"{found.ratio:.4f} [{found.low:.4f}, {found.high:.4f}] {more_ms:+.0f} ms",
                f"goal {BOUND}" if judged else "", verdict if judged else "")
        share = statistics.median(shares[result.row.name])
        say(f"{result.row.name}, CPU of the sender meanwhile", f"{100 * share:.2f}% of a core",
            f"goal {100 * (BOUND - 1):.0f}%", "met" if share <= BOUND - 1 else "MISSED")
    print(f"other processes took {foreign.percent():.0f}% of the CPU time meanwhile")


class Server(http.server.BaseHTTPRequestHandler):
    """Accepts all that MLflow's server would."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        answer = {"experiment": {"experiment_id": "1"}}
        if self.path.endswith("create"):
            answer["run"] = {"info": {"run_id": "r"}, "data": {"tags": body.get("tags")}}
        if self.path.endswith("search"):
            answer["runs"] = [{"info": {"run_id": "r"}, "data": {"tags": [
                {"key": "gpulab_attempt", "value": "1.0"}]}}] if self.server.points else []
        self.server.points += len(body.get("metrics", []))
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


def send(path, tracker):
    """CPU time, peak memory in MiB."""
    child = os.posix_spawn(gpulab, [gpulab, "sync", path, "--to", tracker, "--max-points", "1000000000", "-q"], os.environ)
    _, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"bench/trackers: gpulab sync --to {tracker} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def make_points(count, metrics):
    """A study of one run that reported so many values, `metrics` of them at each step."""
    names = ["loss", "accuracy", "grad_norm", "lr"][:metrics]
    form = ", ".join(f'\\"{name}\\": %.6g' for name in names)
    values = ", ".join(f"{n + 1} / (i + 7)" for n in range(metrics))
    program = f"{work}/print.awk"
    with open(program, "w") as file:
        print(f'BEGIN {{ for (i = 0; i < {count // metrics}; i++) printf "{{\\"step\\": %d, {form}}}\\n", i, {values} }}', file=file)
    subprocess.run([gpulab, "run", "test_matrix", "device=cpu:0", "experiment.matrix={}", "--no-report", "-q",
                    f"experiment.command='awk -f {program}'", f"output_dir={work}/points{metrics}_{count}"],
                   check=True, stdout=subprocess.DEVNULL)
    path = glob.glob(f"{work}/points{metrics}_{count}/*/*/*")[0]
    stored = sqlite3.connect(f"{path}/study.db").execute("SELECT count(*) FROM metric").fetchone()[0]
    if stored != count:
        sys.exit(f"bench/trackers: {stored} of {count} points are stored")
    return path


def bench_points():
    for metrics in (1, 2, 4):
        path = make_points(POINTS, metrics)
        for tracker in ("tensorboard", "wandb", "trackio"):
            cpu, memory = send(path, tracker)
            goal = RATE.get(tracker, 0)
            say(f"{tracker}, {metrics} metric{'s' * (metrics > 1)} at each step", f"{POINTS / cpu / 1e6:.2f} million/s, {memory:.0f} MiB",
                f"goal {goal / 1e6:g} million/s" if goal else "", ("met" if POINTS >= goal * cpu else "MISSED") if goal else "")
        shutil.rmtree(path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.points = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{server.server_address[1]}"
    count = POINTS // 5
    cpu, memory = send(make_points(count, 2), "mlflow")
    if server.points < count:
        sys.exit(f"bench/trackers: {server.points} of {count} points arrived")
    say("mlflow, 2 metrics at each step", f"{1e6 * cpu / count:.2f} µs a point, {memory:.0f} MiB", f"goal {MLFLOW_US} µs",
        "met" if 1e6 * cpu <= MLFLOW_US * count else "MISSED")


print(f"gpulab, {facts.commit_and_date()}")
for part in wanted or ("runs", "points"):
    {"runs": bench_runs, "points": bench_points}[part]()
sys.exit(failed)
