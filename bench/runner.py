"""bench/runner's measurements; see there.

A run of the workload `null` does next to nothing, so its time is the engine's: starting the worker,
opening device and workload, the conversation, the commit. The workload itself is what `measured` says:
from the first iteration's start to the last one's end.
"""
import json
import os
import subprocess
import sys
import time

import studies

gpulab, work = sys.argv[1:]
os.environ.update(XDG_STATE_HOME=work, GPULAB_LOCK_DIR=work, HOME=work)
failed = False


def study(runs):
    words = studies.write_null(f"{work}/conf", runs)
    start = time.monotonic()
    subprocess.run([gpulab, *words, "--config-dir", f"{work}/conf", f"output_dir={work}/out"],
                   check=True, capture_output=True)
    took = time.monotonic() - start
    for path, _, files in os.walk(f"{work}/out/many{runs}"):
        if "study.db" in files:
            return took, path


def say(what, figure, goal, good):
    global failed
    failed |= not good
    print(f"{what:52} {figure:>16}   goal {goal}{'' if good else '   MISSED'}", flush=True)


small, path = study(100)
results = json.load(open(f"{path}/results.json"))
measured = sum(sum(rank["last_ns"] - rank["first_ns"] for rank in result["ranks"]) * 1e-9
               for result in results)
each = (small - measured) / 100
say("overhead of a run", f"{1e3 * each:.1f} ms", "50 ms", each <= 0.05)
large, path = study(1000)
ratio = large / small
say("1,000 runs against 100", f"{ratio:.1f} x", "10 x, at most 12", ratio <= 12)

# a study of 10,000 runs, all done: the 1,000 copied ten times under other names
studies.copy_runs(f"{path}/study.db", 9)
for words in (["show", path, "--runs"], ["list"], ["status", path]):
    times = []
    for _ in range(5):
        start = time.monotonic()
        out = subprocess.run([gpulab, *words], check=True, capture_output=True, text=True).stdout
        times.append(time.monotonic() - start)
    took = sorted(times)[2]
    if words[0] == "show":
        assert out.count("\n") >= 10000, out[:500]
    say(f"10,000 runs: gpulab {' '.join(words).replace(path, 'PATH')}", f"{took:.3f} s", "0.3 s",
        took <= 0.3)
sys.exit(failed)
