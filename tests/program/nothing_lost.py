"""Kills `gpulab run` at chosen and at random instants and checks that nothing is lost.

    nothing_lost.py GPULAB FOLDER KILLS

The study is thirty short runs. A run counts as acknowledged when the line that says so was printed.
After every kill: each acknowledged run is done in the database, results.json is whole, and within a
second no process of the study is alive. At the end of a study: its runs are those of one that nobody
disturbed, each counted once, each with all of its iterations.
"""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

gpulab, folder, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
RUNS, ITERATIONS = 30, 50
FAILPOINTS = ["before-publish", "after-publish", "before-commit", "before-commit:7", "after-commit",
              "after-commit:5", "before-ack", "before-ack:3", "before-results:2", "after-results:2",
              "before-rename:4", "before-rename:6", "after-rename:5", "after-rename:7"]
CONFIG = f"""\
defaults: [_base, _self_]
name: short
workload: 'null'
test: {{num_samples: {ITERATIONS}, warmup_samples: 1, timeout_s: 60}}
axes: [hardware.gpu_ids, hardware.numa_nodes, {{test.sync_frequency: {list(range(1, RUNS + 1))}}}]
"""
ACKNOWLEDGED = re.compile(r"^\[\d+/\d+\] sync_frequency (\d+): ", re.M)
problems = []


def check(holds, *text):
    if not holds:
        problems.append(" ".join(str(word) for word in text))
        print("FAIL:", problems[-1], flush=True)


class Study:
    """One sequence of commands that ends with one finished folder."""

    def __init__(self, name):
        self.name = name
        self.outputs = os.path.join(folder, name)
        self.acknowledged = set()
        self.attempt = 0

    def start(self, failpoint=None):
        self.attempt += 1
        self.mark = f"{self.name}-{self.attempt}-{os.getpid()}"
        self.log = os.path.join(folder, f"{self.mark}.log")
        env = dict(os.environ, GPULAB_TEST_MARK=self.mark)
        if failpoint:
            env["GPULAB_FAILPOINT"] = failpoint
        with open(self.log, "w") as log:
            return subprocess.Popen([gpulab, "run", "--no-report", "--config-dir", os.path.join(folder, "conf"),
                                     "short", "device=cpu:0", f"output_dir={self.outputs}"],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def folders(self):
        found = []
        for path, _, files in os.walk(self.outputs):
            if "study.db" in files and not os.path.basename(path).startswith("."):
                found.append(path)
        return found

    def rows(self):
        # a copy: what a killed writer left has to be undone by the next one, not by who looks
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for suffix in ("", "-wal", "-journal"):
                if os.path.exists(f"{self.folders()[0]}/study.db{suffix}"):
                    shutil.copy(f"{self.folders()[0]}/study.db{suffix}", place)
            db = sqlite3.connect(f"{place}/study.db")
            runs = db.execute("SELECT number, id, identity, state FROM run").fetchall()
            counts = dict(db.execute("SELECT run, sum(count) FROM iterations GROUP BY run").fetchall())
            db.close()
        return [(run[1], run[2], run[3], counts.get(run[0], 0)) for run in runs]

    def check_now(self):
        self.acknowledged |= {f"gpu0_numa0_null_sync_frequency{value}"
                              for value in ACKNOWLEDGED.findall(open(self.log).read())}
        check(len(self.folders()) <= 1, self.mark, "left", len(self.folders()), "folders")
        if not self.folders():
            check(not self.acknowledged, self.mark, "acknowledged runs without a folder")
            return
        done = {row[0] for row in self.rows() if row[2] == "done"}
        check(self.acknowledged <= done, self.mark, "lost", self.acknowledged - done)
        results = json.load(open(os.path.join(self.folders()[0], "results.json")))
        ids = [result["run_id"] for result in results]
        check(len(ids) == len(set(ids)), self.mark, "counts a run twice in results.json")
        check(set(ids) <= {row[0] for row in self.rows()}, self.mark, "invents runs")

    def is_over(self):
        """Whether nothing is left to do, so that the same command would begin another."""
        return (bool(self.folders()) and all(row[2] == "done" for row in self.rows()) and
                not os.path.exists(os.path.join(self.folders()[0], ".room")))

    def check_end(self):
        self.check_now()
        path = self.folders()[0]
        results = json.load(open(os.path.join(path, "results.json")))
        check(len(results) == RUNS and all(result["success"] for result in results), self.mark,
              "results.json has", len(results))
        summary = json.load(open(os.path.join(path, "experiment_summary.json")))
        check(summary["successful_runs"] == RUNS, self.mark, "summary:", summary)
        check(not [name for name in os.listdir(path) if name.startswith(".")], self.mark,
              "left", os.listdir(path))
        check(len(os.listdir(os.path.dirname(path))) == 1, self.mark, "left",
              os.listdir(os.path.dirname(path)))
        return sorted(self.rows())


def alive(mark):
    """Processes that carry the mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"GPULAB_TEST_MARK={mark}".encode() in open(f"/proc/{pid}/environ", "rb").read():
                status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))
                pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
                # one that SIGKILL has reached runs no more, though the kernel may still write for it
                if status["State"][0] not in "ZX" and not pending & 1 << signal.SIGKILL - 1:
                    found.append(f"{pid} {status['Name'].strip()} {status['State'].strip()}")
        except OSError:
            pass
    return found


def describe(mark):
    """What the threads of processes with the mark are at."""
    lines = []
    for pid in [line.split()[0] for line in alive(mark)]:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                for name in ("stat", "schedstat", "wchan", "syscall"):
                    lines.append(open(f"/proc/{pid}/task/{thread}/{name}").read().strip())
        except OSError as problem:
            lines.append(str(problem))
    return "\n".join(lines + open("/proc/stat").read().splitlines()[:3])


def check_orphans(study):
    """A second, counted in looks: a virtual machine may be stopped for a while, which its processes
    don't notice but its clock does. A sanitized worker that was acknowledged looks for leaks before it
    ends."""
    for _ in range(800 if "san/" in gpulab else 100):
        left = alive(study.mark)
        if not left:
            return
        time.sleep(0.01)
    check(not left, study.mark, "left processes", left, describe(study.mark))


def finish(study):
    process = study.start()
    status = process.wait(timeout=240)
    check(status == 0, study.mark, "ends with", status, open(study.log).read()[-2000:])
    check_orphans(study)
    return study.check_end()


os.makedirs(os.path.join(folder, "conf", "experiment"))
with open(os.path.join(folder, "conf", "experiment", "short.yaml"), "w") as file:
    file.write(CONFIG)
quiet = Study("undisturbed")
undisturbed = finish(quiet)
check(len(quiet.acknowledged) == RUNS, "undisturbed: acknowledged", len(quiet.acknowledged))
check(len(undisturbed) == RUNS and all(row[3] == ITERATIONS for row in undisturbed),
      "undisturbed:", undisturbed[:3])

for place in FAILPOINTS:
    study = Study(place.replace(":", "-"))
    process = study.start(failpoint=place)
    check(process.wait(timeout=240) == -signal.SIGKILL, place, "wasn't hit:",
          open(study.log).read()[-500:])
    check_orphans(study)
    study.check_now()
    check(finish(study) == undisturbed, place, "ends with other results")

random.seed(20)
study, number = Study("random-0"), 0
for kill in range(kills):
    process = study.start()
    try:
        process.wait(timeout=random.uniform(0.0, 0.4))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    check_orphans(study)
    study.check_now()
    if process.returncode == 0 or study.is_over():
        check(study.check_end() == undisturbed, study.mark, "ends with other results")
        number += 1
        study = Study(f"random-{number}")
if study.attempt:
    check(finish(study) == undisturbed, study.mark, "ends with other results")
print(f"{len(FAILPOINTS)} places and {kills} random kills over {number + 1} studies:",
      "failed" if problems else "nothing lost")
sys.exit(1 if problems else 0)
