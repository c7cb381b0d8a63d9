"""What benchmarks say about where and what they measured, and under which load."""
import argparse
import datetime
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # as tests that can't run here


def leave(why):
    print(f"bench/{os.path.basename(sys.argv[0]).removesuffix('.py')}: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def gpu():
    """Name and driver of the first GPU; without one there is nothing to measure."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError:
        leave("nvidia-smi isn't here: this needs a GPU with NVIDIA's driver")
    found = done.stdout.strip().split("\n")[0].split(", ")
    if done.returncode or len(found) != 2:
        said = (done.stdout + done.stderr).strip().split("\n")[0]
        leave(f"no GPU is here: nvidia-smi says: {said or 'nothing'}")
    return found


def program(path):
    if not os.access(path, os.X_OK):
        leave(f"{path} isn't here: 'make build' makes it")


def commit_and_date():
    """Of the tree; BENCH_COMMIT where git isn't there."""
    commit = os.environ.get("BENCH_COMMIT")
    if not commit:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, check=False,
                              capture_output=True, text=True)
        commit = done.stdout.strip() or "unknown"
    return f"commit {commit}, {datetime.date.today()}"


class Options:
    """What benchmarks on a GPU have in common: --seconds N, --rows TEXT,… and --no-peers before or behind `words`."""

    def __init__(self, words):
        parser = argparse.ArgumentParser(allow_abbrev=False, usage=f"bench/{os.path.basename(sys.argv[0]).removesuffix('.py')} [GPULAB] "
                                         "[WORD...] [--seconds N] [--rows TEXT,...] [--no-peers]")
        parser.add_argument("words", nargs="*")
        parser.add_argument("--seconds", type=float, default=math.inf)
        parser.add_argument("--rows", default="")
        parser.add_argument("--no-peers", dest="peers", action="store_false")
        found = parser.parse_intermixed_args(words)
        self.words, self.peers, self.texts = found.words, found.peers, found.rows.split(",")
        self.end, self.left_out = time.monotonic() + found.seconds, []
        self.is_table = not found.rows and found.peers and math.isinf(found.seconds)  # of the groups it names
        self.is_whole = self.is_table and not found.words

    def wanted(self, rows, name):
        return [row for row in rows if any(text in name(row) for text in self.texts)]

    def fitting(self, rows, name, seconds, once=0):
        """Those wanted that the time left is enough for, at so many seconds each. The others are named later."""
        rows = self.wanted(rows, name)
        left = (self.end - time.monotonic() - once) / seconds
        count = len(rows) if left >= len(rows) else max(0, int(left))
        self.left_out += [name(row) for row in rows[count:]]
        return rows[:count]

    def say_left_out(self, say):
        if self.left_out:
            say()
            say(f"Not measured, as --seconds ended before: {'; '.join(self.left_out)}.")


CONDITIONS = ("SM clock", "power", "temperature")


class Conditions:
    """Of the first GPU while something runs on it: `with Conditions() as seen: …`, then seen.cells."""

    def __enter__(self):
        command = ["nvidia-smi", "--id=0", "--query-gpu=clocks.sm,power.draw.instant,temperature.gpu",
                   "--format=csv,noheader,nounits", "--loop-ms=100"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.cells = []
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.cells = self.medians(self.process.communicate()[0].splitlines())

    @staticmethod
    def medians(lines):
        """Of the readings with at least half of the highest power: what begins and ends isn't what runs."""
        seen = []
        for line in lines:
            try:
                clock, power, heat = map(float, line.split(", "))
                seen.append((clock, power, heat))
            except ValueError:
                pass  # "[N/A]", or a line that was cut off
        busy = [reading for reading in seen if reading[1] >= max(power for _, power, _ in seen) / 2]
        return [f"{statistics.median(values):.0f} {unit}" for values, unit in zip(zip(*busy), ("MHz", "W", "°C"))] or [
            "–"] * len(CONDITIONS)


class Foreign:
    """CPU time of all processes that aren't ours, since this began."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        fields = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
        times = os.times()
        idle = fields[3] + fields[4]
        ours = times.user + times.system + times.children_user + times.children_system
        return sum(fields), sum(fields) - idle, ours * os.sysconf("SC_CLK_TCK")

    def percent(self):
        total, busy, ours = (after - before for after, before in zip(self.read(), self.before))
        return 100 * max(0, busy - ours) / total
