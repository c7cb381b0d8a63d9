#!/usr/bin/env python3
"""Makes each fallible call of a command fail in turn, and checks what comes of it.

    torture.py [--gpulab FILE] [--library FILE] [--points N] [--commands A,B] [--classes A,B] [--each] [--seed N]

Each command runs once under tests/torture/fail_call.c, which lists its calls. Then it runs once for
each call, which fails. It has to end by itself, with 0 or with a line that says what failed; what it
acknowledged is there, no file is half-written, no process is left. The same command, undisturbed,
then ends as if nothing had happened, and leaves no temporary file.

Of the calls of one place in the program (the three innermost functions), at most 50 fail, the first and
others that are drawn by the seed; of memory the first, since all end in the same lines of base/mem.c.
--each takes them all, --points N at most N of a class.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenarios  # noqa: E402
from scenarios import Problem, need  # noqa: E402

CLASSES = ["malloc", "open", "write", "rename", "sync", "mkdir", "process", "pipe", "mmap", "thread", "step"]
ROLES = ["main", "worker"]
FRAMES, CALLS_MAX = 3, 1 << 20
HEAD = len(ROLES) * len(CLASSES) + 2 + FRAMES  # numbers of 8 bytes before the list
# lines that say what failed; a run's failure has a line of its own
SAID = re.compile(r"^gpulab: |^\[\d+/\d+\] .*: (failed|fails)|failed", re.M)
LIMIT_S = 30
PER_PLACE = 50


class Counters:
    """The file that fail_call.c counts in."""

    def __init__(self, place):
        self.path = place.join("torture")
        with open(self.path, "wb") as file:
            file.truncate(HEAD * 8 + CALLS_MAX * 8)

    def head(self):
        with open(self.path, "rb") as file:
            return struct.unpack(f"<{HEAD}q", file.read(HEAD * 8))

    def failed(self):
        """How many calls failed, and where the first did, as addresses in the program."""
        head = self.head()
        return head[-FRAMES - 1], [place for place in head[-FRAMES:] if place]

    def calls(self):
        """{(role, class): [place of call 1, of call 2, …]}; None = made by another library."""
        found = collections.defaultdict(list)
        count = self.head()[-FRAMES - 2]
        with open(self.path, "rb") as file:
            file.seek(HEAD * 8)
            for kind, place in struct.iter_unpack("<2I", file.read(min(count, CALLS_MAX) * 8)):
                key = ROLES[kind >> 8 & 255], CLASSES[kind & 255]
                found[key].append(None if kind >> 16 else place)
        return found


def choose(places, name, options, rng):
    """Numbers of the calls that shall fail."""
    of_place = collections.defaultdict(list)
    for number, place in enumerate(places, 1):
        if place is not None:
            of_place[place].append(number)
    most = CALLS_MAX if options.each else 1 if name == "malloc" else PER_PLACE
    own = sorted(number for calls in of_place.values()
                 for number in (calls if len(calls) <= most else [calls[0]] + rng.sample(calls[1:], most - 1)))
    if options.points and len(own) > options.points:
        own = sorted(rng.sample(own, options.points))
    return own


class Torture:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.problems = []
        self.messages = collections.Counter()

    def preload(self, place, **more):
        return {"LD_PRELOAD": self.options.library, "GPULAB_TORTURE": place.join("torture"), **more}

    def fresh(self, scenario, name):
        place = scenarios.Place(self.options.gpulab, self.folder, name)
        scenario.prepare(place)
        return place

    def check_orphans(self, place):
        for _ in range(200):
            left = place.alive()
            if not left:
                return
            time.sleep(0.02)
        raise Problem("left processes", left)

    def disturb(self, scenario, point):
        """One call fails. Returns how the command ended: 'not reached', 'tolerated' or 'refused'."""
        role, name, number = point
        place = self.fresh(scenario, f"{scenario.name}-{role}-{name}-{number}".replace("+", "-on"))
        counters = Counters(place)
        where, result = [], None
        try:
            result = place.run(scenario.argv, LIMIT_S,
                               **self.preload(place, GPULAB_TORTURE_FAIL=f"{role}:{name}:{number}"))
            failed, where = counters.failed()
            os.remove(counters.path)
            need(result.status >= 0, "ended by signal", -result.status, result.err[-300:])
            self.check_orphans(place)
            if result.status:
                need(SAID.search(result.err), "says nothing:", result.status, result.err[-300:])
                last_line = result.err.strip().splitlines()[-1].replace(place.path, "")
                self.messages[re.sub(r"\d+", "N", last_line)] += 1
            scenario.check_after(place, result)
            if result.status == 0 and scenario.facts(place, result) != self.undisturbed:
                need(re.search("^gpulab: ", result.err, re.M), "keeps silent that its files are others")
            last = result
            if not scenario.is_over(place):
                place.age()
                last = place.run(getattr(scenario, "next_argv", scenario.argv), LIMIT_S)
            again = scenario.facts(place, last)
            need(again == self.undisturbed, "ends otherwise than an undisturbed one:", str(again)[:600])
            need(last.status or not place.leftovers(), "left", place.leftovers())
        except (Problem, OSError, ValueError, KeyError, IndexError) as problem:
            self.note(scenario, point, problem, where, result)
            failed = 1
        shutil.rmtree(place.path, ignore_errors=True)
        return "not reached" if not failed else "tolerated" if result and result.status == 0 else "refused"

    def note(self, scenario, point, problem, where, result):
        lines = subprocess.run(["addr2line", "-sfe", self.options.gpulab, *[hex(at - 1) for at in where]],
                               capture_output=True, text=True, check=False).stdout.split("\n")[::2] if where else []
        text = f"{scenario.name} {':'.join(map(str, point))} in {' < '.join(filter(None, lines))}: " \
               f"{type(problem).__name__ if not isinstance(problem, Problem) else ''}{problem}"
        self.problems.append(text)
        status = result.status if result else "none"
        print("FAIL:", text, f"[status {status}: {result.err[-200:] if result else ''}]", flush=True)

    def command(self, kind, pool):
        rng = random.Random(f"{self.options.seed} {kind.name}")
        scenario = kind(self.options.gpulab, self.folder)
        quiet = self.fresh(scenario, f"{kind.name}-undisturbed")
        self.undisturbed = scenario.facts(quiet, quiet.run(scenario.argv))
        counted = self.fresh(scenario, f"{kind.name}-counted")
        counters = Counters(counted)
        result = counted.run(scenario.argv, **self.preload(counted))
        need(result.status == 0, "counting fails:", result.err)
        calls = {key: places for key, places in sorted(counters.calls().items())
                 if not self.options.classes or key[1] in self.options.classes}
        points = [(*key, number) for key, places in calls.items()
                  for number in choose(places, key[1], self.options, rng)]
        ends = collections.defaultdict(collections.Counter)
        for point, end in zip(points, pool.map(lambda point: self.disturb(scenario, point), points)):
            ends[point[:2]][end] += 1
        for (role, name), places in calls.items():
            end = ends[role, name]
            print(f"{kind.name:8}{role:8}{name:8}{len(places):7} calls {places.count(None):6} of other libraries "
                  f"{sum(end.values()):6} failed: {end['refused']} refused, {end['tolerated']} tolerated, "
                  f"{end['not reached']} not reached", flush=True)
            yield end


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpulab", default="build/gpulab")
    parser.add_argument("--library", default="build/fake/libtorture.so")
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--commands", type=lambda text: text.split(","))
    parser.add_argument("--classes", type=lambda text: text.split(","))
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.gpulab, options.library = os.path.abspath(options.gpulab), os.path.abspath(options.library)
    total = collections.Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        torture = Torture(options, folder)
        for kind in scenarios.ALL:
            if not options.commands or kind.name in options.commands:
                for ends in torture.command(kind, pool):
                    total.update(ends)
    for text, count in torture.messages.most_common(12):
        print(f"{count:6} {text[:150]}")
    print(f"{sum(total.values())} points in {time.monotonic() - began:.0f} s: {total['refused']} refused, "
          f"{total['tolerated']} tolerated, {total['not reached']} not reached; {len(torture.problems)} problems")
    return 1 if torture.problems else 0


if __name__ == "__main__":
    sys.exit(main())
