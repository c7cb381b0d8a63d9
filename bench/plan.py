"""bench/plan's measurements; see there."""
import re
import resource
import subprocess
import sys
import time

import studies

gpulab, work = sys.argv[1:]
failed = False


def measure(name, words):
    global failed
    times = []
    for _ in range(5):
        start = time.monotonic()
        out = subprocess.run([gpulab, *words, "--config-dir", work], check=True,
                             capture_output=True, text=True).stdout
        times.append(time.monotonic() - start)
    runs = int(re.search(r": (\d+) runs", out).group(1))
    median = sorted(times)[2]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{name:24} {runs} runs  {median:.3f} s (of 5, median)  {peak:.0f} MiB at most",
          flush=True)
    failed |= runs != 10000 or median > 1 or peak > 100


studies.write(work, "wide", studies.WIDE_TEXT)
measure("sweep of 10,000 configs", studies.SWEEP)
measure("axes of one config", studies.WIDE)
sys.exit(failed)
