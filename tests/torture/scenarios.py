"""The commands that tests disturb, on a simulated machine and in a folder of their own each.

A scenario has a command, files that are there before it, and two checks. `check_after` holds whatever
happened: what was acknowledged is there, and no file is half-written. `facts` describes what the folder
holds when the same command was run once more: the same as if nobody had disturbed the first.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile

STUDY = """\
defaults: [_base, _self_]
name: short
workload: 'null'
test: {num_samples: %d, warmup_samples: 1, timeout_s: 20}
axes: [hardware.gpu_ids, hardware.numa_nodes, {test.sync_frequency: %s}]
"""
ACKNOWLEDGED = re.compile(r"^\[\d+/\d+\] sync_frequency (\d+): [\d.]", re.M)
RUN = ["run", "--no-report", "--config-dir", "conf", "short", "device=sim:rtx4070tis-2", "output_dir=outputs"]


class Problem(Exception):
    pass


def need(holds, *text):
    if not holds:
        raise Problem(" ".join(str(word) for word in text))


class Result:
    """How a command ended, and what it said."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Place:
    """A folder in which one command runs and nothing else does; with a mark that its processes carry."""

    def __init__(self, gpulab, folder, name):
        self.gpulab, self.path = gpulab, os.path.join(folder, name)
        self.mark = f"{name}-{os.getpid()}"
        os.makedirs(self.path)

    def join(self, *names):
        return os.path.join(self.path, *names)

    def start(self, argv, **variables):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "GPULAB_TEST_MARK": self.mark,
               "HOME": self.path, "XDG_STATE_HOME": self.join("state"), "XDG_CACHE_HOME": self.join("cache"),
               "TMPDIR": self.join("tmp"), "GPULAB_LOCK_DIR": self.path, **variables}
        os.makedirs(env["TMPDIR"], exist_ok=True)
        with open(self.join("out"), "wb") as out, open(self.join("err"), "wb") as err:
            return subprocess.Popen([self.gpulab, *argv], cwd=self.path, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=err, env=env, start_new_session=True)

    def said(self, name):
        with open(self.join(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, argv, limit_s=60, **variables):
        process = self.start(argv, **variables)
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Problem("hangs:", " ".join(argv), self.said("err")[-300:]) from None
        return Result(process.returncode, self.said("out"), self.said("err"))

    def alive(self):
        """Processes that carry the mark in their environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"GPULAB_TEST_MARK={self.mark}\0".encode() not in file.read():
                        continue
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    status = dict(line.split(":\t", 1) for line in file)
                pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
                # one that SIGKILL has reached runs no more, though the kernel may still write for it
                if status["State"][0] not in "ZX" and not pending & 1 << signal.SIGKILL - 1:
                    found.append(f"{pid} {status['Name'].strip()} {status['State'].strip()}")
            except (OSError, KeyError, ValueError):
                pass
        return found

    def age(self):
        """Makes temporary files as old as those which the next command takes for left behind."""
        for folder, _, files in os.walk(self.path):
            for name in files:
                if name.startswith(".gpulab-"):
                    os.utime(os.path.join(folder, name), (1e9, 1e9))

    def leftovers(self):
        """Temporary files, and logs of databases that nobody writes any more."""
        return [os.path.join(folder, name) for folder, folders, files in os.walk(self.path)
                for name in files + folders
                if re.search(r"\.tmp$|^\.gpulab-\d|^study\.db-|^next\.db-|^gpulab-scratch-|^\.room$", name)]


def read_rows(path, *queries):
    """Of a copy: what a killed writer left has to be undone by the next one, not by who looks."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as copy:
        for suffix in ("", "-wal", "-journal"):
            if os.path.exists(path + suffix):
                shutil.copy(path + suffix, os.path.join(copy, "db" + suffix))
        db = sqlite3.connect(os.path.join(copy, "db"))
        try:
            need(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), path, "is damaged")
            return [db.execute(query).fetchall() for query in queries]
        finally:
            db.close()


def study_folders(place):
    return [path for path, _, files in os.walk(place.join("outputs"))
            if "study.db" in files and not os.path.basename(path).startswith(".")]


class Run:
    name, argv, runs, iterations = "run", RUN, 3, 20

    def __init__(self, gpulab, folder):
        self.gpulab, self.folder = gpulab, folder

    def prepare(self, place):
        os.makedirs(place.join("conf", "experiment"))
        with open(place.join("conf", "experiment", "short.yaml"), "w", encoding="utf-8") as file:
            file.write(STUDY % (self.iterations, list(range(1, self.runs + 1))))

    def rows(self, place):
        folders = study_folders(place)
        need(len(folders) <= 1, "left", len(folders), "folders")
        if not folders:
            return []
        runs, counts = read_rows(os.path.join(folders[0], "study.db"),
                                 "SELECT number, id, identity, state FROM run",
                                 "SELECT run, sum(count) FROM iterations GROUP BY run")
        counts = dict(counts)
        return sorted((run[1], run[2], run[3], counts.get(run[0], 0)) for run in runs)

    def check_after(self, place, result):
        new = {f"gpu0_numa0_null_sync_frequency{value}" for value in ACKNOWLEDGED.findall(result.err)}
        place.acknowledged = acknowledged = getattr(place, "acknowledged", set()) | new
        done = {row[0] for row in self.rows(place) if row[2] == "done"}
        need(acknowledged <= done, "lost", acknowledged - done)
        for folder in study_folders(place):
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                ids = [run["run_id"] for run in json.load(file)]
            need(len(ids) == len(set(ids)), "counts a run twice in results.json")
            need(set(ids) <= {row[0] for row in self.rows(place)}, "invents runs")
        if result.status == 0:
            need(len(acknowledged) > 0 and len(done) == self.runs, "succeeds with", len(done), "runs")

    def facts(self, place, result):
        need(result.status == 0 or self.is_over(place), "ends with", result.status, result.err[-500:])
        folder = study_folders(place)[0]
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        with open(os.path.join(folder, "experiment_summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        # one that was killed when all was done may lack its report, and has its database's log
        files = [name for name in os.listdir(folder) if name != "report" and not name.startswith("study.db-")]
        return (self.rows(place), sorted(run["run_id"] for run in results if run["success"]),
                summary["successful_runs"], sorted(files), len(os.listdir(os.path.dirname(folder))))

    def is_over(self, place):
        """Whether nothing is left to do, so that the same command would begin another study."""
        rows = self.rows(place)
        return (len(rows) == self.runs and all(row[2] == "done" for row in rows) and
                not os.path.exists(os.path.join(study_folders(place)[0], ".room")))


class Resume(Run):
    name = "resume"

    def __init__(self, gpulab, folder):
        super().__init__(gpulab, folder)
        self.begun = Place(gpulab, folder, "begun")
        super().prepare(self.begun)
        self.begun.run(RUN, GPULAB_FAILPOINT="after-commit:1")

    def prepare(self, place):
        shutil.copytree(self.begun.path, place.path, dirs_exist_ok=True)

    def check_after(self, place, result):
        super().check_after(place, result)
        need(any(row[2] == "done" for row in self.rows(place)), "lost the run that was done before")


class Record:
    """No recording is written over: the next one has another name, and the first is still there."""

    name, argv = "record", ["record", "--device", "cpu", "-i", "5ms", "-t", "25ms", "-o", "r.db"]
    next_argv = argv[:-1] + ["next.db"]

    def __init__(self, gpulab, folder):
        self.gpulab = gpulab

    def prepare(self, place):
        pass

    def samples(self, place, name="r.db"):
        if not os.path.exists(place.join(name)):
            return []
        got = place.run(["export", name, "-f", "csv"])
        # one that was killed before it held anything is none
        need(got.status == 0 or re.search("is empty|is damaged|no samples|no known field", got.err), "can't be read:", got.err)
        return got.out.splitlines()[1:] if got.status == 0 else []

    def check_after(self, place, result):
        said = re.search(r"^r\.db: .*?([\d,]+) samples", result.err, re.M)
        place.before = self.samples(place)
        if said:
            claimed = int(said.group(1).replace(",", ""))
            need(claimed <= len(place.before), "claims", claimed, "samples and holds", len(place.before))
        elif result.status not in (0, -signal.SIGKILL) and "out of host memory" not in result.err:
            need(not os.path.exists(place.join("r.db")) or place.before, "left a recording of nothing")

    def facts(self, place, result):
        need(result.status == 0, "ends with", result.status, result.err[-500:])
        need(self.samples(place) == getattr(place, "before", self.samples(place)), "changed its samples")
        name = "next.db" if os.path.exists(place.join("next.db")) else "r.db"
        need(len(self.samples(place, name)) > 0, "holds no sample")
        return True

    def is_over(self, place):
        return False


class OfStudy:
    """A command that reads a finished study, which nobody changes."""

    def __init__(self, gpulab, folder):
        self.gpulab = gpulab
        self.template = Place(gpulab, folder, f"study-{self.name}")
        run = Run(gpulab, folder)
        run.prepare(self.template)
        result = self.template.run(RUN)
        need(result.status == 0, "no study:", result.err)
        folder = study_folders(self.template)[0]
        shutil.rmtree(os.path.join(folder, "report"))
        self.study = os.path.relpath(folder, self.template.path)
        self.database = self.hash(self.template)

    def hash(self, place):
        with open(place.join(self.study, "study.db"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def prepare(self, place):
        shutil.copytree(self.template.path, place.path, dirs_exist_ok=True)

    def check_after(self, place, result):
        need(self.hash(place) == self.database, "changed the study")

    def is_over(self, place):
        return False


class Export(OfStudy):
    name = "export"

    @property
    def argv(self):
        return ["export", self.study, "--what", "iterations", "-o", "x.csv"]

    def prepare(self, place):
        super().prepare(place)
        with open(place.join("x.csv"), "w", encoding="utf-8") as file:
            file.write("old\n")

    def check_after(self, place, result):
        super().check_after(place, result)
        with open(place.join("x.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        new = len(lines) == Run.runs * Run.iterations + 1
        need(new or (lines == ["old"] and result.status != 0), "x.csv is half-written:", len(lines), "lines")

    def facts(self, place, result):
        need(result.status == 0, "ends with", result.status, result.err[-500:])
        with open(place.join("x.csv"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


class Report(OfStudy):
    name = "report"

    @property
    def argv(self):
        return ["report", self.study]

    def files(self, place):
        folder = place.join(self.study, "report")
        found = {}
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
        return {name: bytes for name, bytes in found.items() if not name.endswith(".tmp")}

    def check_after(self, place, result):
        super().check_after(place, result)
        files = self.files(place)
        page = files.get("index.html")
        need(page is None or page.rstrip().endswith(b"</html>"), "index.html is half-written")
        need(result.status != 0 or page, "succeeds without a page")
        listed = files.get(".gpulab.manifest", b"").decode().splitlines()
        strange = set(files) - set(listed) - {".gpulab.manifest"}
        need(not strange, "files that the manifest lacks:", strange)

    def facts(self, place, result):
        need(result.status == 0, "ends with", result.status, result.err[-500:])
        # pictures hold the time at which they were made
        return {name: "" if re.search(r"\.(png|pdf)$", name) else hashlib.sha256(bytes).hexdigest()
                for name, bytes in self.files(place).items()}


class Tune:
    name = "tune"
    argv = ["tune", "softmax", "rows=8", "columns=8", "--device", "cpu:0", "--budget", "0.1s", "--warm"]

    def __init__(self, gpulab, folder):
        self.gpulab = gpulab

    def prepare(self, place):
        pass

    def kept(self, place):
        got = place.run(["cache", "list", "tuning"])
        need(got.status == 0, "the cache can't be listed:", got.err)
        return "softmax" in got.out

    def check_after(self, place, result):
        said = result.status == 0 and "isn't kept" not in result.err
        need(not said or self.kept(place), "shows a tuning that isn't kept")

    def facts(self, place, result):
        need(result.status == 0, "ends with", result.status, result.err[-500:])
        return self.kept(place)

    def is_over(self, place):
        return False


class Top:
    name, argv = "top", ["top", "--once"]

    def __init__(self, gpulab, folder):
        self.gpulab = gpulab

    def prepare(self, place):
        pass

    def check_after(self, place, result):
        need(result.status != 0 or "CPU" in result.out, "shows nothing")

    def facts(self, place, result):
        need(result.status == 0, "ends with", result.status, result.err[-500:])
        return True

    def is_over(self, place):
        return False


ALL = [Run, Resume, Record, Export, Report, Tune, Top]
