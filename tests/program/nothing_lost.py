"""Kills commands at chosen and at random instants and checks that nothing is lost.

    nothing_lost.py GPULAB FOLDER KILLS

Commands and checks are those of tests/torture/scenarios.py: run, resume, record, export, report, tune.
After every kill: what was acknowledged is there, files are whole, and within a second no process of the
command is alive. A study is killed until it is over: its runs are those of one that nobody disturbed,
each counted once, each with all of its iterations. The other commands are repeated once, undisturbed,
and leave what they would have left alone.
"""
import collections
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torture"))
import scenarios  # noqa: E402
from scenarios import Problem, Result, need  # noqa: E402

gpulab, folder, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
# where each is killed on purpose, and of how many random kills it gets one
FAILPOINTS = {
    "run": ["before-publish", "after-publish", "before-commit", "before-commit:7", "after-commit",
            "after-commit:5", "before-ack", "before-ack:3", "before-results:2", "after-results:2",
            "before-rename:4", "before-rename:6", "after-rename:5", "after-rename:7"],
    "resume": ["before-commit", "after-commit:2", "before-ack", "before-results", "before-rename:5"],
    "record": ["before-samples", "after-samples"],
    "export": ["before-replace", "after-replace"],
    "report": ["before-replace", "before-replace:5", "after-replace", "after-replace:5"],
    "tune": ["before-tuning", "after-tuning"],
}
SHARES = {"run": 10, "resume": 4, "record": 4, "export": 4, "report": 2, "tune": 1}
LOOKS = 800 if "san/" in gpulab else 100  # a sanitized worker looks for leaks before it ends
problems, killed, lock = [], collections.Counter(), threading.Lock()


class LongRun(scenarios.Run):
    """A study that is killed several times before it is over."""
    runs = 12


class Lane:
    """One command after another; several lanes work at the same time."""

    def __init__(self, number):
        self.number, self.rng, self.count, self.study = number, random.Random(20 + number), 0, None

    def fresh(self, kind):
        self.count += 1
        place = scenarios.Place(gpulab, folder, f"{kind.name}-{self.number}-{self.count}")
        kind.prepare(place)
        return place

    def kill(self, kind, place, failpoint=None):
        began = time.monotonic()
        process = place.start(kind.argv, **({"GPULAB_FAILPOINT": failpoint} if failpoint else {}))
        try:
            process.wait(timeout=60 if failpoint else self.rng.uniform(0, 1.1 * kind.takes_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            need(not failpoint, failpoint, "hangs")
        need(not failpoint or process.returncode == -signal.SIGKILL, failpoint, "wasn't hit")
        if process.returncode == 0 and not failpoint:
            kind.takes_s = min(kind.takes_s, time.monotonic() - began)
        with lock:
            killed[kind.name] += process.returncode == -signal.SIGKILL
        self.check_orphans(place)
        result = Result(process.returncode, place.said("out"), place.said("err"))
        need(result.status in (0, -signal.SIGKILL), "ends with", result.status, result.err[-500:])
        kind.check_after(place, result)
        return result

    def check_orphans(self, place):
        """A second, counted in looks: a virtual machine may be stopped for a while, which its
        processes don't notice but its clock does."""
        for _ in range(LOOKS):
            left = place.alive()
            if not left:
                return
            time.sleep(0.01)
        raise Problem("left processes", left)

    def finish(self, kind, place):
        if not kind.is_over(place):
            place.age()
            result = place.run(getattr(kind, "next_argv", kind.argv))
            self.check_orphans(place)
            need(kind.facts(place, result) == kind.undisturbed, "ends otherwise:", kind.facts(place, result))
            need(not place.leftovers(), "left", place.leftovers())
        else:
            need(kind.facts(place, Result(0, "", "")) == kind.undisturbed, "ends otherwise")
        shutil.rmtree(place.path)

    def one(self, kind, failpoint=None):
        place = self.study if kind.name == "run" and self.study and not failpoint else self.fresh(kind)
        try:
            result = self.kill(kind, place, failpoint)
            goes_on = kind.name == "run" and not failpoint and result.status and not kind.is_over(place)
            if not goes_on:
                self.finish(kind, place)
            if kind.name == "run" and not failpoint:
                self.study = place if goes_on else None
        except (Problem, OSError, ValueError, KeyError, IndexError) as problem:
            problems.append(f"{place.mark} {failpoint or ''}: {problem}")
            print("FAIL:", problems[-1], place.said("err")[-300:], flush=True)
            self.study = None


def measure(kind):
    """Runs it once, undisturbed: how long that takes, and what it leaves."""
    place = scenarios.Place(gpulab, folder, f"{kind.name}-undisturbed")
    kind.prepare(place)
    began = time.monotonic()
    result = place.run(kind.argv)
    kind.takes_s = time.monotonic() - began
    kind.undisturbed = kind.facts(place, result)
    return kind


kinds = {kind.name: measure(kind(gpulab, folder)) for kind in
         (LongRun, scenarios.Resume, scenarios.Record, scenarios.Export, scenarios.Report, scenarios.Tune)}
work = [(name, failpoint) for name, places in FAILPOINTS.items() for failpoint in places]
drawn = random.Random(20).choices(list(SHARES), SHARES.values(), k=kills)
work += [(name, None) for name in drawn]
lanes = [Lane(number) for number in range(os.cpu_count() or 1)]


def walk(lane):
    for name, failpoint in work[lane.number::len(lanes)]:
        lane.one(kinds[name], failpoint)
    if lane.study:
        lane.one(kinds["run"])


with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
    list(pool.map(walk, lanes))
print(f"{sum(map(len, FAILPOINTS.values()))} places and {kills} random instants, {sum(killed.values())} killed (",
      ", ".join(f"{count} {name}" for name, count in killed.items()), "):",
      f"{len(problems)} problems" if problems else "nothing lost", sep="")
sys.exit(1 if problems else 0)
