#!/usr/bin/env python3
"""Cuts the power at each point of a command, and loses what was not synced; checks what is left.

    power.py [--gpulab FILE] [--tools FOLDER] [--commands A,B] [--prefixes N] [--losses N] [--seed N]

Each command runs once on tests/power/log_fs.c, which logs every change of the disk in order. What the
command printed is in the same log: the file `err` says what it had acknowledged at each point. Then
  - each prefix of the log is replayed into a folder: the power went off right there;
  - losses are drawn: of what no fsync covers, writes are lost or torn at 512 or 4,096 bytes. Names that
    no sync of their folder covers are lost: all, none, those after some point (as a journal in order
    does) or any (as a file system without one may).
In each folder the commands' checks (tests/torture/scenarios.py) hold: files open, and hold all that was
acknowledged. The same command, run there, ends as if nothing had happened.

Commands `…/network` see a file system without shared memory, so that SQLite uses its plain journal;
the others see a local disk, and use a WAL.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torture"))
import scenarios  # noqa: E402
from scenarios import Place, Problem, Result, need  # noqa: E402

HEAD = struct.Struct("<6q")
NAMES, DATA = "CDRUL", "WT"
NEVER = 1 << 60
Op = collections.namedtuple("Op", "kind file folder to_folder offset data")


class Log:
    """The operations, with numbers for files that are never used twice."""

    def __init__(self, path, root):
        self.root, self.ops, self.ends = os.stat(root).st_ino, [], []
        known, count = {self.root: 0}, 0
        with open(path, "rb") as file:
            text = file.read()
        at = 0
        while at < len(text):
            kind, inode, folder, to_folder, offset, length = HEAD.unpack_from(text, at)
            at += HEAD.size + length
            if chr(kind) in "CD":
                count += 1
                known[inode] = count
            self.ops.append(Op(chr(kind), known.get(inode), known.get(folder), known.get(to_folder), offset,
                               text[at - length:at]))
            self.ends.append(at)
        self.covered = self.cover()
        # what it printed: a terminal, which loses nothing
        self.shown = {op.file for op in self.ops if op.kind == "C" and op.data in (b"out", b"err")}

    def cover(self):
        """For each operation the number of the sync that makes it last."""
        covered, synced = [NEVER] * len(self.ops), {}
        for number in range(len(self.ops) - 1, -1, -1):
            op = self.ops[number]
            if op.kind in "SF":
                synced[op.kind, op.file] = number
            elif op.kind in DATA:
                covered[number] = synced.get(("S", op.file), NEVER)
            else:
                folders = [op.folder] + [op.to_folder] * (op.kind == "R")
                covered[number] = max(synced.get(("F", folder), NEVER) for folder in folders)
        return covered

    def at(self, size):
        """How many operations a log of this size holds."""
        return sum(end <= size for end in self.ends)


class Disk:
    """What lies on a disk: names in folders, bytes of files."""

    def __init__(self):
        self.folders, self.files = {0: {}}, {}

    def write(self, number, offset, data):
        content = self.files.setdefault(number, bytearray())
        if len(content) < offset + len(data):
            content.extend(bytes(offset + len(data) - len(content)))
        content[offset:offset + len(data)] = data

    def truncate(self, number, size):
        content = self.files.setdefault(number, bytearray())
        del content[size:]
        content.extend(bytes(size - len(content)))

    def name(self, op):
        """One that presupposes what was lost is lost as well."""
        folder = self.folders.get(op.folder)
        if folder is None:
            return
        if op.kind == "R":
            source, to = op.data.split(b"\0")
            if folder.get(source) == op.file and op.to_folder in self.folders:
                del folder[source]
                self.folders[op.to_folder][to] = op.file
        elif op.kind == "U":
            if folder.get(op.data) == op.file and not self.folders.get(op.file):
                del folder[op.data]
        else:
            folder[op.data] = op.file
            if op.kind == "D":
                self.folders.setdefault(op.file, {})

    def save(self, number, path):
        os.makedirs(path, exist_ok=True)
        for name, child in self.folders[number].items():
            below = os.path.join(path, os.fsdecode(name))
            if child in self.folders:
                self.save(child, below)
            else:
                with open(below, "wb") as file:
                    file.write(self.files.get(child, b""))


class Cut:
    """What is lost. Without a generator of numbers: nothing."""

    def __init__(self, log, count, begun, rng=None):
        self.log, self.count, self.begun, self.rng = log, count, begun, rng
        self.names, self.data, self.unit = (rng.choice((0, 0.1, 0.5, 0.9, 1)), rng.choice((0, 0.1, 0.5, 0.9, 1)),
                                            rng.choice((512, 4096, NEVER))) if rng else (0, 0, NEVER)
        self.journal = rng.randint(begun, count) if rng and rng.random() < 0.5 else None

    def __str__(self):
        names = f"up to {self.journal}" if self.journal is not None else f"{1 - self.names:.0%}"
        return f"at {self.count}, names {names}, data {1 - self.data:.0%} in {self.unit}" if self.rng else \
            f"at {self.count}"

    def keeps(self, number, op):
        if not self.rng or number < self.begun or op.file in self.log.shown or self.log.covered[number] < self.count:
            return True
        if op.kind in NAMES and self.journal is not None:
            return number < self.journal
        return self.rng.random() >= (self.names if op.kind in NAMES else self.data)

    def disk(self):
        disk = Disk()
        for number, op in enumerate(self.log.ops[:self.count]):
            if op.kind == "W":
                unit = self.unit - op.offset % self.unit if self.unit < NEVER else NEVER
                start = 0
                while start < len(op.data):  # each part for itself
                    if self.keeps(number, op):
                        disk.write(op.file, op.offset + start, op.data[start:start + unit])
                    start, unit = start + unit, self.unit
            elif op.kind in NAMES + "T" and self.keeps(number, op):
                if op.kind == "T":
                    disk.truncate(op.file, op.offset)
                else:
                    disk.name(op)
        return disk


class Mount:
    def __init__(self, tools, folder):
        self.path, self.backing, self.log = (os.path.join(folder, name) for name in ("mount", "disk", "log"))
        os.mkdir(self.path)
        os.mkdir(self.backing)
        self.process = subprocess.Popen([os.path.join(tools, "log_fs"), self.backing, self.log, self.path],
                                        stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.path):
            if self.process.poll() is not None:
                print("skipped: FUSE can't be mounted here")
                sys.exit(77)
            time.sleep(0.01)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Recording(scenarios.Record):
    """Longer than a second, after which samples are written."""
    argv = ["record", "--device", "cpu", "-i", "50ms", "-t", "2200ms", "-o", "r.db"]
    next_argv = ["record", "--device", "cpu", "-i", "5ms", "-t", "25ms", "-o", "next.db"]

    def check_after(self, place, result):
        super().check_after(place, result)
        if "recording into" in result.err:
            got = place.run(["export", "r.db", "-f", "csv"])
            need(got.status == 0 or "no samples" in got.err, "can't be read:", got.err)


class Power:
    def __init__(self, options, folder):
        self.options, self.folder, self.problems, self.count = options, folder, [], 0

    def log_of(self, kind, local):
        """Runs it undisturbed, on the file system that logs."""
        folder = tempfile.mkdtemp(dir=self.folder)
        mount = Mount(self.options.tools, folder)
        try:
            place = Place(self.options.gpulab, mount.path, "place")
            kind.prepare(place)
            begun = os.path.getsize(mount.log)
            library = os.path.join(self.options.tools, "libmachine.so")
            result = place.run(kind.argv, **({"LD_PRELOAD": library, "GPULAB_TEST_LOCAL": "1"} if local else {}))
            ended = os.path.getsize(mount.log)
            kind.undisturbed = kind.facts(place, result)
        finally:
            mount.close()
        log = Log(mount.log, mount.backing)
        return log, log.at(begun), log.at(ended)

    def trial(self, kind, name, cut, ended):
        self.count += 1
        place = Place(self.options.gpulab, self.folder, f"{name.replace('/', '-')}-{self.count}")
        try:
            disk = cut.disk()
            disk.save(disk.folders[0][b"place"], place.path)
            for shown in ("out", "err"):
                open(place.join(shown), "ab").close()
            status = 0 if cut.count == ended else -signal.SIGKILL
            kind.check_after(place, Result(status, place.said("out"), place.said("err")))
            if not kind.is_over(place):
                place.age()
                result = place.run(getattr(kind, "next_argv", kind.argv))
                need(not place.leftovers(), "left", place.leftovers())
            else:
                result = Result(0, "", "")
            need(kind.facts(place, result) == kind.undisturbed, "ends otherwise:", str(kind.facts(place, result))[:500])
            shutil.rmtree(place.path)
        except (Problem, OSError, ValueError, KeyError, IndexError) as problem:
            self.problems.append(f"{name} {cut}: {type(problem).__name__}: {problem}")
            print("FAIL:", self.problems[-1].replace(place.path, ""), flush=True)
            if not self.options.keep:
                shutil.rmtree(place.path, ignore_errors=True)

    def command(self, name, pool):
        rng = random.Random(f"{self.options.seed} {name}")
        kinds = {kind.name: kind for kind in (scenarios.Run, scenarios.Resume, Recording, scenarios.Export,
                                              scenarios.Report, scenarios.Tune)}
        folder = tempfile.mkdtemp(dir=self.folder)
        kind = kinds[name.split("/")[0]](self.options.gpulab, folder)
        log, begun, ended = self.log_of(kind, "/" not in name)
        points = range(begun, ended + 1)
        if len(points) > self.options.prefixes:
            points = sorted(rng.sample(points, self.options.prefixes))
        cuts = [Cut(log, count, begun) for count in points]
        losses = self.options.losses * SHARES[name] // sum(SHARES[one] for one in self.options.commands)
        for _ in range(losses):  # a third after its end, when all was acknowledged
            count = ended if rng.random() < 1 / 3 else rng.randint(begun, ended)
            cuts.append(Cut(log, count, begun, random.Random(rng.random())))
        before = len(self.problems)
        list(pool.map(lambda cut: self.trial(kind, name, cut, ended), cuts))
        syncs = sum(op.kind in "SF" for op in log.ops[begun:ended])
        print(f"{name:16}{ended - begun:6} operations, {syncs:4} syncs: {len(points):5} prefixes, {losses:5} losses, "
              f"{len(self.problems) - before} problems", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        return len(points), losses


SHARES = {"run": 6, "run/network": 3, "resume": 2, "record": 3, "record/network": 2, "export": 1, "report": 2,
          "tune": 1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpulab", default="build/gpulab", type=os.path.abspath)
    parser.add_argument("--tools", default="build/fake", type=os.path.abspath)
    parser.add_argument("--commands", type=lambda text: text.split(","), default=list(SHARES))
    parser.add_argument("--prefixes", type=int, default=NEVER)
    parser.add_argument("--losses", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--keep", action="store_true", help="keeps folders of problems")
    options = parser.parse_args()
    began, prefixes, losses = time.monotonic(), 0, 0
    folder = tempfile.mkdtemp()
    power = Power(options, folder)
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name in options.commands:
                more = power.command(name, pool)
                prefixes, losses = prefixes + more[0], losses + more[1]
    finally:
        if not (options.keep and power.problems):
            shutil.rmtree(folder, ignore_errors=True)
    problems = [re.sub(r"\d+", "N", problem.split(": ", 1)[1])[:120] for problem in power.problems]
    for text, count in collections.Counter(problems).most_common(8):
        print(f"{count:6} {text}")
    print(f"{prefixes} prefixes and {losses} losses in {time.monotonic() - began:.0f} s: "
          f"{len(power.problems)} problems" + ("" if power.problems else ", lost: 0"))
    return 1 if power.problems else 0


if __name__ == "__main__":
    sys.exit(main())
