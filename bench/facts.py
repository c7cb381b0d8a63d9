"""What benchmarks say about where and what they measured, and under which load."""
import datetime
import os
import subprocess
import sys

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
