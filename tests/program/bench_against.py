"""Tests of bench/against's names, builds, statistics and rows.

    bench_against.py GPULAB FOLDER      with bench/ in PYTHONPATH
"""
import collections
import contextlib
import io
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import against
import ratios
import versions

GPULAB, FOLDER = sys.argv[1:3]


def folder():
    return tempfile.mkdtemp(dir=FOLDER)


def write(root, name, text, mode=0o644):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


# --- names ---

class Clone:
    """A repository with two commits; the second is checked out."""

    def __init__(self):
        self.root = folder()
        self.git("init", "-q", "-b", "trunk")
        self.first, self.second = self.commit("one"), self.commit("two")

    def git(self, *words):
        own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=self.root, check=True, text=True,
                              capture_output=True, env={**os.environ, **own})
        return done.stdout.strip()

    def commit(self, text):
        write(self.root, "file", text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD")

    def list_release(self, *lines):
        head = "# Releases\n\n| version | date | commit |\n|---|---|---|\n"
        write(self.root, "RELEASES.md", head + "\n".join(lines) + "\n")


class Names(unittest.TestCase):
    def setUp(self):
        self.clone = Clone()

    def resolve(self, name):
        return versions.resolve(self.clone.root, name).commit

    def refuse(self, name):
        with self.assertRaises(versions.VersionError) as caught:
            self.resolve(name)
        return str(caught.exception)

    def test_git_names(self):
        self.clone.git("tag", "0.1.0", self.clone.first)
        self.clone.git("tag", "v0.2.0", self.clone.first)
        for name in ("0.1.0", "0.2.0", "v0.2.0", "HEAD~1", self.clone.first, self.clone.first[:9]):
            self.assertEqual(self.resolve(name), self.clone.first, name)
        for name in ("HEAD", "trunk"):
            self.assertEqual(self.resolve(name), self.clone.second, name)

    def test_annotated_tag_is_its_commit(self):
        self.clone.git("tag", "-a", "-m", "text", "0.1.0", self.clone.first)
        self.assertEqual(self.resolve("0.1.0"), self.clone.first)

    def test_release_without_tag(self):
        self.clone.list_release(f"| 0.2.0 | 2026-11-16 | `{self.clone.second[:12]}` | notes |",
                                f"| 0.1.0 | 2026-11-15 | {self.clone.first} |")
        self.assertEqual(self.resolve("0.1.0"), self.clone.first)
        self.assertEqual(self.resolve("v0.1.0"), self.clone.first)
        self.assertEqual(self.resolve("0.2.0"), self.clone.second)

    def test_tag_before_release(self):
        self.clone.git("tag", "0.1.0", self.clone.first)
        self.clone.list_release(f"| 0.1.0 | 2026-11-15 | {self.clone.second} |")
        self.assertEqual(self.resolve("0.1.0"), self.clone.first)

    def test_unknown_lists_what_exists(self):
        self.clone.git("tag", "0.3.0")
        self.clone.list_release(f"| 0.1.0 | 2026-11-15 | {self.clone.first} |")
        for name in ("0.1.1", "-x", "--help"):
            text = self.refuse(name)
            self.assertIn(f"no version '{name}'", text)
            self.assertIn("tags: 0.3.0\n", text)
            self.assertIn("releases in RELEASES.md: 0.1.0\n", text)
            self.assertIn("branches: trunk", text)

    def test_release_of_a_missing_commit(self):
        self.clone.list_release(f"| 0.1.0 | 2026-11-15 | {'1' * 40} |")
        self.assertIn("git fetch --unshallow", self.refuse("0.1.0"))

    def test_malformed_row(self):
        rows = "| 0.1.0 | 2026-11-15 | soon |", "| 0.1.0 | yesterday | 1234567 |", "| 0.1.0 |"
        for row in rows:
            self.clone.list_release(row)
            self.assertIn("RELEASES.md:5: ", self.refuse("0.1.0"))

    def test_own_releases(self):
        versions.releases(against.ROOT)

    def test_no_clone(self):
        self.clone.root = folder()
        with unittest.mock.patch.dict(os.environ, GIT_CEILING_DIRECTORIES=FOLDER):
            self.assertIn("not a git clone", self.refuse("HEAD"))

    def test_modified(self):
        commit = self.clone.second[:12]
        self.assertEqual(versions.describe_tree(self.clone.root), commit)
        write(self.clone.root, "file", "three")
        self.assertEqual(versions.describe_tree(self.clone.root), f"{commit}, modified")


# --- builds ---

CMAKE = """\
#!/bin/sh
# configures, or builds what `file` says
echo "$PWD: $*" >>{calls}
mkdir -p build
case $1 in
--preset) echo "CMAKE_C_COMPILER:FILEPATH=/bin/echo" >build/CMakeCache.txt ;;
*) grep -q broken file && {{ echo "file:1: error"; exit 1; }}
   {{ echo '#!/bin/sh'; echo "echo $(cat file)"; }} >build/gpulab
   chmod +x build/gpulab ;;
esac
"""


class Builds(unittest.TestCase):
    def setUp(self):
        self.clone, self.tools = Clone(), folder()
        self.calls = os.path.join(self.tools, "calls")
        write(self.tools, "cmake", CMAKE.format(calls=self.calls), 0o755)
        path = unittest.mock.patch.dict(os.environ, PATH=f"{self.tools}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)

    def said(self, program):
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()

    def build(self, name):
        version = versions.resolve(self.clone.root, name)
        return versions.build_tree(self.clone.root), versions.build_commit(self.clone.root, version)

    def count(self):
        with open(self.calls, encoding="utf-8") as file:
            return sum("/against/" in line and "--build" in line for line in file)

    def test_tree_and_commit(self):
        write(self.clone.root, "file", "changed")
        new, ref = self.build("HEAD~1")
        self.assertEqual((self.said(new), self.said(ref)), ("changed", "one"))

    def test_commit_is_built_once_per_setting(self):
        self.build("HEAD~1")
        self.build("HEAD~1")
        self.assertEqual(self.count(), 1)
        with unittest.mock.patch.object(versions, "settings_of", lambda _: (["-DX=1"], "cc 2")):
            self.build("HEAD~1")
        self.assertEqual(self.count(), 2)

    def test_failure_shows_the_end_of_the_log(self):
        self.clone.commit("broken")
        write(self.clone.root, "file", "mended")
        for _ in range(2):  # a failed build is no build
            with self.assertRaises(versions.VersionError) as caught:
                self.build("HEAD")
            self.assertIn("HEAD (", str(caught.exception))
            self.assertIn("doesn't build", str(caught.exception))
            self.assertIn("file:1: error", str(caught.exception))


# --- statistics ---

Row = collections.namedtuple("Row", "name turns")


class Machine:
    """Samples with noise: a tenth of them is disturbed and takes up to twice as long."""

    def __init__(self, seed, ratio=1.0, spread=0.03):
        self.random, self.ratio, self.spread = random.Random(seed), ratio, spread

    def sample(self, row, side):
        time = 0.1 * math.exp(self.random.gauss(0, self.spread))
        if self.random.random() < 0.1:
            time *= 1 + self.random.random()
        slow = self.ratio if side == "new" and row.name == "slow" else 1.0
        return {"CPU": slow * time}

    def compare(self, rows=20):
        named = [Row("slow", 1)] + [Row(f"row{i}", 1) for i in range(1, rows)]
        results = ratios.compare(named, 8, self.sample, self.random)
        return [result.verdict("CPU") for result in results]


def verdict(low, ratio, high, confirmed):
    result = ratios.Result(Row("row", 1))
    result.estimates["CPU"] = ratios.Estimate(ratio, low, high)
    result.confirmed = {"CPU"} if confirmed else set()
    return result.verdict("CPU")


class Statistics(unittest.TestCase):
    def test_critical_values_of_the_tables(self):
        table = {5: -1, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 16: 29, 20: 52}
        for count, cut in table.items():
            self.assertEqual(ratios.rank_sum_cut(count, 0.025), cut, count)

    def test_estimate(self):
        logs = [math.log(value) for value in (1.02, 1.00, 1.04, 1.01, 1.03, 9.0)]
        found = ratios.estimate(logs, 0.025)
        self.assertAlmostEqual(found.low, 1.00)
        self.assertAlmostEqual(found.high, 9.0)
        self.assertLess(found.ratio, 1.05)  # the disturbed block hardly counts
        with self.assertRaises(ValueError):
            ratios.estimate(logs[:5], 0.025)

    def test_interval_covers(self):
        draws, hits = random.Random(1), 0
        for _ in range(1000):
            found = ratios.estimate([0.1 + draws.gauss(0, 0.05) for _ in range(8)], 0.025)
            hits += found.low <= math.exp(0.1) <= found.high
        self.assertGreater(hits, 940)
        self.assertLess(hits, 980)

    def test_verdict(self):
        self.assertEqual(verdict(1.06, 1.10, 1.14, True), "SLOWER")
        self.assertEqual(verdict(1.06, 1.10, 1.14, False), "unclear")
        self.assertEqual(verdict(1.04, 1.10, 1.14, True), "unclear")
        self.assertEqual(verdict(0.95, 1.00, 1.06, False), "unclear")
        self.assertEqual(verdict(1.02, 1.03, 1.05, False), "ok")

    def test_equal_programs_pass(self):
        alarms = sum("SLOWER" in Machine(seed, spread=0.1).compare() for seed in range(200))
        self.assertEqual(alarms, 0)

    def test_programs_at_the_bound_pass(self):
        machines = (Machine(seed, ratio=1.05) for seed in range(400))
        alarms = sum("SLOWER" in machine.compare(rows=1) for machine in machines)
        self.assertLessEqual(alarms, 4)

    def test_ten_percent_is_caught(self):
        found = [Machine(seed, ratio=1.10, spread=0.02).compare() for seed in range(50)]
        self.assertGreaterEqual(sum(verdicts[0] == "SLOWER" for verdicts in found), 45)
        self.assertFalse(any("SLOWER" in verdicts[1:] for verdicts in found))

    def test_who_cannot_do_a_row(self):
        broken = {"old": ("ref",), "gone": ("new",), "neither": ("ref", "new"), "both": ()}

        def sample(row, side):
            if side in broken[row.name]:
                raise ratios.SampleError(side, "no such command")
            return {"CPU": 0.1}

        rows = [Row(name, 1) for name in broken]
        old, gone, neither, both = results = ratios.compare(rows, 6, sample)
        self.assertTrue(old.skipped and neither.skipped and not neither.failed)
        self.assertEqual(gone.failed, "no such command")
        self.assertEqual(both.verdict("CPU"), "ok")
        self.assertEqual(self.status(results), 1)
        self.assertEqual(self.status([old, both]), 0)
        self.assertEqual(self.status([old]), 2)

    @staticmethod
    def status(results):
        with contextlib.redirect_stdout(io.StringIO()):
            against.show_results(results)
            return against.show_verdict(results)

    def test_slower_fails(self):
        slow = ratios.compare([Row("slow", 1)], 8, Machine(1, ratio=1.2).sample, random.Random(1))
        same = ratios.compare([Row("same", 1)], 8, Machine(1).sample, random.Random(1))
        self.assertEqual((self.status(slow), self.status(same)), (1, 0))


# --- rows ---

class Rows(unittest.TestCase):
    def test_choice(self):
        names = [row.name for row in against.choose_rows("gemm, s")]
        self.assertEqual(names, ["gemm", "start", "sweep", "simulate", "softmax"])
        self.assertEqual(against.choose_rows(""), against.ROWS)

    def test_program_does_every_row(self):
        laboratory = against.Laboratory(folder(), {side: GPULAB for side in ratios.SIDES})
        laboratory.prepare()
        for row in against.ROWS:
            times = laboratory.sample(row, "new")
            self.assertEqual(tuple(times), row.measures)
            self.assertGreater(min(times.values()), 0, row.name)

    def test_failure_has_its_message(self):
        laboratory = against.Laboratory(folder(), {side: GPULAB for side in ratios.SIDES})
        with self.assertRaises(ratios.SampleError) as caught:
            laboratory.sample(against.Row("none", 1, against.PROCESS, ["no-such-command"]), "new")
        self.assertIn("no-such-command", str(caught.exception))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
