"""bench/against's rows, samples and table. ratios.py has the statistics, versions.py the builds."""
import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import facts
import ratios
import studies
import versions

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BLOCKS = 8
TIMEOUT_S = 300  # of one sample

# --- rows ---

# turns: number of ABBA sequences per block. words: after `gpulab`; {one} is a device of one core.
Row = collections.namedtuple("Row", "name turns measures words")
PROCESS = ("CPU", "wall")  # of the process and its children
# lower quartiles of `gpulab bench`: from end to end of iterations, and from start to end of one
BENCH = {"iteration": "interval_ms", "latency": "latency_ms"}
NULL_RUNS = 20

# Studies on simulated devices. Every key that sets the amount of work is explicit: a change of the
# defaults is no change of speed.
SIMULATED = """\
defaults: [_vit, _self_]
name: {name}
hardware: {{gpu_ids: [0, 1, 2, 3], numa_nodes: {nodes}}}
repeat: 1
test: {{num_samples: {samples}, warmup_samples: 100, batch_size: 10, tensor_shape: [3, 224, 224]}}
vit_configs:
  - {{patch_size: 32, depth: 0, heads: 8, dim: 64}}
  - {{patch_size: 32, depth: 4, heads: 8, dim: 256}}
  - {{patch_size: 16, depth: 12, heads: 16, dim: 1024}}
"""
CONFIG = ["--config-dir", "../conf"]
STUDY = ["-q", "--no-report", *CONFIG, "output_dir=out"]


def bench_row(workload, turns, iterations, device, *keys, measure="iteration"):
    words = ["bench", workload, *keys, "--device", device, "--iterations", str(iterations),
             "--warmup", str(iterations // 10), "--no-verify", "--no-limits", "-q", "--json"]
    return Row(workload, turns, (measure,), words)


# Iterations of workloads are short, and on one core except mlp's: most run undisturbed on a shared
# machine, too. vit's iterations overlap and may end together: the latency of one is its time.
ROWS = [
    Row("start", 10, PROCESS, ["help"]),
    Row("sweep", 2, PROCESS, [*studies.SWEEP, *CONFIG]),
    Row("axes", 2, PROCESS, [*studies.WIDE, *CONFIG]),
    Row("runner", 2, PROCESS, ["run", f"many{NULL_RUNS}", "device=cpu:0", *STUDY]),
    Row("simulate", 1, PROCESS, ["run", "simulated", "device=sim:l40s-10", *STUDY]),
    Row("analyze", 3, PROCESS, ["analyze", "stability", "study"]),
    Row("report", 2, PROCESS, ["report", "study", "--format", "md", "-q"]),
    Row("iterations", 2, PROCESS, ["export", "study", "--what", "iterations"]),
    Row("recording", 2, PROCESS, ["export", "study", "--format", "multi"]),
    bench_row("gemm", 2, 300, "{one}", "m=256", "n=256", "k=256", "config=default"),
    bench_row("softmax", 2, 300, "{one}", "rows=512", "columns=1024", "config=default"),
    bench_row("flash_attention_v2", 1, 300, "{one}", "batch=1", "heads=4", "seq=256",
              "config=default"),
    bench_row("vit", 1, 300, "{one}", "patch_size=32", "depth=2", "dim=128", "heads=4",
              "batch_size=1", "memory_size_mb=8", "config=default", measure="latency"),
    bench_row("mlp", 1, 1000, "cpu:0", "model=medium", "batch_size=32"),
]


def choose_rows(text):
    """Rows by name or by a prefix of it; all if none is named."""
    chosen = []
    for word in text.replace(",", " ").split():
        found = [row for row in ROWS if row.name.startswith(word)]
        if not found:
            names = ", ".join(row.name for row in ROWS)
            raise versions.VersionError(f"no row '{word}': there are {names}")
        chosen += [row for row in found if row not in chosen]
    return chosen or ROWS


# --- samples ---

class Laboratory:
    """A folder with both programs and their input. Paths of both sides have the same length: they
    shift the stack, and with it the times."""

    def __init__(self, work, programs):
        self.work = work
        for side, program in programs.items():
            os.makedirs(self.path(side))
            shutil.copy2(program, self.path(side, "gpulab"))
        conf = os.path.join(work, "conf")
        studies.write(conf, "wide", studies.WIDE_TEXT)
        studies.write_null(conf, NULL_RUNS)
        for name, nodes, samples in (("simulated", [0], 1000), ("fixed", [0, 2], 20000)):
            text = SIMULATED.format(name=name, nodes=nodes, samples=samples)
            studies.write(conf, name, text)
        self.one, self.no_study = "cpu:0", "no study was made"

    def path(self, side, *names):
        return os.path.join(self.work, side, *names)

    def environment(self, side):
        own = ("GPULAB_", "XDG_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        home = self.path(side, "home")
        env.update(HOME=home, XDG_STATE_HOME=home, XDG_CACHE_HOME=home, XDG_CONFIG_HOME=home,
                   GPULAB_LOCK_DIR=home, LC_ALL="C.UTF-8", COLUMNS="80")
        return env

    def start(self, side, words, out, err):
        return subprocess.Popen(["./gpulab", *words], cwd=self.path(side),
                                env=self.environment(side), stdin=subprocess.DEVNULL, stdout=out,
                                stderr=err)

    def call(self, side, words):
        """CPU and wall time of one process with its children, and its output."""
        for name in ("home", "out"):
            shutil.rmtree(self.path(side, name), ignore_errors=True)
        os.makedirs(self.path(side, "home"))
        with open(self.path(side, "printed"), "w+", encoding="utf-8") as out, \
                open(self.path(side, "messages"), "w+", encoding="utf-8") as err:
            start = time.monotonic()
            process = self.start(side, words, out, err)
            status, used = wait_for(process)
            wall = time.monotonic() - start
            out.seek(0)
            err.seek(0)
            if status:
                said = err.read().strip().split("\n")[0]
                if wall >= TIMEOUT_S:
                    said = f"not done after {TIMEOUT_S} s"
                raise ratios.SampleError(side, f"gpulab {words[0]}: status {status}: {said}")
            return {"CPU": used.ru_utime + used.ru_stime, "wall": wall}, out.read()

    def sample(self, row, side):
        if "study" in row.words and self.no_study:
            raise ratios.SampleError("ref", self.no_study)
        words = [word.replace("{one}", self.one) for word in row.words]
        times, printed = self.call(side, words)
        if row.measures == PROCESS:
            return times
        [measure] = row.measures
        try:
            return {measure: json.loads(printed)[BENCH[measure]]["p25"] * 1e-3}
        except (ValueError, KeyError, TypeError):
            text = f"gpulab bench: no {BENCH[measure]}.p25 in its JSON"
            raise ratios.SampleError(side, text) from None

    def prepare(self):
        """A device of one core, and the study that both programs read."""
        words = ["bench", "null", "--device", "cpu:0", "--limit", "10ms", "--json", "-q"]
        try:
            cores = json.loads(self.call("ref", words)[1])["device"]["cores"]
            self.one = f"cpu:0/{cores}"
        except (ratios.SampleError, ValueError, KeyError, TypeError):
            pass  # then all cores
        try:
            self.make_study()
            self.no_study = None
        except ratios.SampleError as error:
            self.no_study = str(error)

    def make_study(self):
        """REF writes it: new reads older files. Each side has a copy: new may upgrade its own."""
        self.call("ref", ["run", "fixed", "device=sim:l40s-10", *STUDY])
        for folder, _, files in os.walk(self.path("ref", "out")):
            if "study.db" in files:
                for side in ratios.SIDES:
                    shutil.copytree(folder, self.path(side, "study"))
                return
        raise ratios.SampleError("ref", "gpulab run: no study.db was written")


def wait_for(process):
    """Exit status and resource usage. Popen.wait with a timeout polls, each 50 ms in the end."""
    limit = threading.Timer(TIMEOUT_S, process.kill)
    limit.daemon = True
    limit.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        raise
    finally:
        limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used


# --- the table ---

def show_time(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def show_results(results):
    line = "{:19} {:9} {:>8}  {:>7}  {:16}  {:>6}  {}".format
    print(line("row", "time", "REF", "new/REF", "interval", "blocks", "").rstrip())
    for result in results:
        if result.skipped:
            print(f"{result.row.name:19} skipped, REF fails: {result.skipped}")
        elif result.failed:
            print(f"{result.row.name:19} FAILED, new fails: {result.failed}")
        else:
            for measure, found in result.estimates.items():
                again = ", measured again" if measure in result.confirmed else ""
                print(line(result.row.name, measure, show_time(result.reference[measure]),
                           f"{found.ratio:.3f}", f"[{found.low:.3f}, {found.high:.3f}]",
                           result.blocks[measure], result.verdict(measure) + again))


def show_verdict(results):
    """Prints the last lines; returns the exit status."""
    measured = [result for result in results if result.is_measured()]
    said = [result.verdict(measure) for result in measured for measure in result.estimates]
    failed = sum(bool(result.failed) for result in results)
    if not said and not failed:
        print("Nothing was compared.")
        return 2
    if any(result.confirmed for result in measured):
        level = 100 * (1 - 2 * ratios.ALARM / len(said))
        print(f"Measured again: {level:.2f}% interval of the new blocks alone.")
    if "unclear" in said:
        print(f"{said.count('unclear')} of {len(said)} ratios are unclear: the interval includes "
              f"{ratios.BOUND}. Use a quiet machine or more BLOCKS.")
    if failed or "SLOWER" in said:
        print(f"FAILED: {said.count('SLOWER')} of {len(said)} ratios above {ratios.BOUND}, "
              f"{failed} rows that new can't do.")
        return 1
    print(f"Passed: no interval is wholly above {ratios.BOUND}.")
    return 0


def show_progress(number, blocks, row):
    if sys.stderr.isatty():
        print(f"\r\033[Kblock {number} of {blocks}: {row}", end="", file=sys.stderr, flush=True)


# --- the command ---

def parse_words(words):
    parser = argparse.ArgumentParser(
        prog="bench/against", description="Times the CPU side of the working tree against another "
        "version; fails where it takes longer.")
    parser.add_argument("ref", metavar="REF",
                        help="a tag, branch, commit or version in RELEASES.md")
    parser.add_argument("--rows", default="", metavar="NAME,...",
                        help=f"only these of {', '.join(row.name for row in ROWS)}")
    parser.add_argument("--blocks", type=int, default=BLOCKS, metavar="N",
                        help=f"per row, at least {ratios.LEAST_BLOCKS} (default {BLOCKS})")
    found = parser.parse_args(words)
    if not found.ref:
        raise versions.VersionError("no version to compare with: make bench-against REF=0.1.0")
    if found.blocks < ratios.LEAST_BLOCKS:
        raise versions.VersionError(f"{found.blocks} blocks are too few for an interval: "
                                    f"at least {ratios.LEAST_BLOCKS}")
    return found


def run(words):
    words = parse_words(words)
    rows = choose_rows(words.rows)
    ref = versions.resolve(ROOT, words.ref)
    print(f"new  build/, commit {versions.describe_tree(ROOT)}")
    print(f"REF  {ref.name}, commit {ref.commit[:12]}, in build/against", flush=True)
    programs = {"new": versions.build_tree(ROOT), "ref": versions.build_commit(ROOT, ref)}
    print(f"Time ratio new/REF, above 1 = new takes longer; 95% interval over {words.blocks} "
          "blocks.\n", flush=True)
    foreign, start = facts.Foreign(), time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        laboratory = Laboratory(work, programs)
        laboratory.prepare()
        results = ratios.compare(rows, words.blocks, laboratory.sample, progress=show_progress)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    show_results(results)
    print(f"\n{time.monotonic() - start:.0f} s; other processes took {foreign.percent():.0f}% of "
          "the CPU time.")
    return show_verdict(results)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(run(sys.argv[1:]))
    except versions.VersionError as error:
        print(f"bench/against: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
