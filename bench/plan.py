"""bench/plan's measurements; see there."""
import pathlib
import re
import resource
import subprocess
import sys
import time

import studies

gpulab, work = sys.argv[1:]
failed = False


def campaign(phases, studies_each):
    """Of numa_study, 240 runs each; every phase comes after two others."""
    path = pathlib.Path(work) / "campaign"
    path.mkdir()
    with open(path / "thousand.yaml", "w", encoding="utf-8") as file:
        file.write("phases:\n")
        for phase in range(phases):
            words = ", ".join(f"numa_study seed={phase * studies_each + i}" for i in range(studies_each))
            after = f"after: [p{phase - 10}, p{phase - 9}], " if phase >= 10 else ""
            file.write(f"  - {{name: p{phase}, {after}studies: [{words}]}}\n")


def measure(name, words, expected=10000):
    global failed
    times = []
    for _ in range(5):
        start = time.monotonic()
        out = subprocess.run([gpulab, *words, "--config-dir", work], check=True,
                             capture_output=True, text=True).stdout
        times.append(time.monotonic() - start)
    runs = int(re.search(r"(?:= |In all +)(\d+) runs", out).group(1))
    median = sorted(times)[2]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{name:24} {runs} runs  {median:.3f} s (of 5, median)  {peak:.0f} MiB at most",
          flush=True)
    failed |= runs != expected or median > 1 or peak > 100


studies.write(work, "wide", studies.WIDE_TEXT)
measure("sweep of 10,000 configs", studies.SWEEP)
measure("axes of one config", studies.WIDE)
campaign(200, 5)
measure("campaign, 1,000 studies", ["campaign", "run", "thousand", "device=sim:l40s-10", "--dry-run",
                                    "--quiet"], 240000)
sys.exit(failed)
