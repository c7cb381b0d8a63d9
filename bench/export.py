"""bench/export's measurements; see there."""
import glob
import os
import subprocess
import sys
import time

import studies

RUNS, ITERATIONS = 100, 100_000
LIMIT_MIB = 50
TEXT = f"""\
defaults: [_base, _self_]
name: long
workload: 'null'
test: {{num_samples: {ITERATIONS}, warmup_samples: 1, timeout_s: 600}}
"""

gpulab, work = sys.argv[1:]
os.environ.update(XDG_STATE_HOME=work, GPULAB_LOCK_DIR=work, HOME=work)
failed = False


def measure(name, words, file, lines):
    """An export into a file, which is read only to count its lines."""
    global failed
    start = time.monotonic()
    child = os.posix_spawn(gpulab, [gpulab, "export", path, *words, "--output", file], os.environ)
    _, status, usage = os.wait4(child, 0)
    took = time.monotonic() - start
    found = int(subprocess.run(["wc", "-l", file], check=True, capture_output=True).stdout.split()[0])
    os.remove(file)
    good = status == 0 and found >= lines and usage.ru_maxrss <= LIMIT_MIB * 1024
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{name:24} {took:6.2f} s  {cpu:6.2f} s of CPU  {lines / cpu / 1e6:5.2f} M rows/s"
          f"  {usage.ru_maxrss / 1024:5.1f} MiB   goal {LIMIT_MIB} MiB{'' if good else '   MISSED'}",
          flush=True)
    failed |= not good


studies.write(f"{work}/conf", "long", TEXT)
subprocess.run([gpulab, "run", "-q", "long", "device=cpu:0", "--config-dir", f"{work}/conf",
                f"output_dir={work}/out"], check=True, capture_output=True)
path = glob.glob(f"{work}/out/long/*/*")[0]
studies.copy_runs(f"{path}/study.db", RUNS - 1)
ROWS = RUNS * ITERATIONS
measure("10 million rows, CSV", ["--what", "iterations"], f"{work}/times.csv", ROWS)
measure("  as JSON", ["--what", "iterations", "--json"], f"{work}/times.json", ROWS)
measure("  as JSON lines", ["--what", "iterations"], f"{work}/times.jsonl", ROWS)
sys.exit(failed)
