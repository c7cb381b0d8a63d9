"""What the benchmarks of a GPU say about where and what they measured."""
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
