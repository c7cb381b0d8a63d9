#!/usr/bin/env python3
"""Holds a study's folder to what a study on a GPU must show.

    check_study.py FOLDER [--graphs] [--gang] [--least SHARE]

Every run succeeded and its outputs were verified. Of training nothing else is asked. In the trace of
each model, batch i+1 is copied to the device while batch i is computed, for at least SHARE (0.75) of
the batches. --graphs: the kernels were launched by graphs. --gang: ranks measured at the same time, for
more than half of it, and in some run kernels of two ranks ran at the same instant, which they don't
where a GPU takes turns.

Prints a line for each model, and for each thing that isn't so a line that begins with ERROR; exits 1
then.
"""
import argparse
import json
import pathlib
import sqlite3
import sys

errors = 0


def error(run, text):
    global errors
    errors += 1
    print(f"ERROR: {run}: {text}")


class Trace:
    """What lies within the measured window of a trace."""

    def __init__(self, path):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            self.start, self.end = db.execute(
                "SELECT start, end FROM NVTX_EVENTS WHERE text = 'test_double_buffer'").fetchone()
            self.copies = self.read(db, "start, end", "MEMCPY", "AND copyKind = 1")
            self.kernels = self.read(db, "start, end, graphNodeId", "KERNEL", "")
            self.batches = {
                int(text.rsplit("_", 1)[1]): (start, end) for start, end, text in db.execute(
                    "SELECT start, end, text FROM NVTX_EVENTS WHERE text LIKE 'compute\\_batch\\_%' ESCAPE '\\'")}

    def read(self, db, columns, kind, condition):
        return db.execute(f"SELECT {columns} FROM CUPTI_ACTIVITY_KIND_{kind} "
                          f"WHERE start >= ? AND start <= ? {condition} ORDER BY start",
                          (self.start, self.end)).fetchall()

    def overlapped(self):
        """Batches whose successor's copy runs between the start of their first kernel and the end of their last."""
        count = 0
        for i in range(len(self.copies) - 1):
            first, last = self.batches[i]
            kernels = [k for k in self.kernels if first <= k[0] <= last]
            if not kernels:
                return 0
            copy_start, copy_end = self.copies[i + 1]
            count += copy_start < max(k[1] for k in kernels) and copy_end > kernels[0][0]
        return count


def at_once(a, b):
    """Nanoseconds in which a kernel of each ran."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def check_trace(name, rank, trace, wanted):
    if rank["overlap"] is None and not rank["device"].startswith("cuda"):
        return print(f"{name}: {rank['device']} doesn't copy and compute at once")
    batches = len(trace.copies)
    if batches != len(trace.batches) or batches < 3:
        return error(name, f"{batches} copies for {len(trace.batches)} batches in its trace")
    found = trace.overlapped()
    print(f"{name}: {found} of {batches - 1} copies lie under the compute of the batch before")
    if found < wanted.least * (batches - 1):
        error(name, "too few copies lie under the compute of the batch before")


def check_run(folder, run, wanted):
    """Nanoseconds in which kernels of the run's first two ranks ran at once."""
    name = run["run_id"]
    if not run["success"]:
        error(name, run["error"] or "failed")
        return 0
    for rank in run["ranks"]:
        verification = rank.get("verification") or {}
        if not (verification.get("applicable") and verification.get("passed")):
            error(name, f"{rank['device']}: its outputs weren't verified: {verification.get('text')}")
    if wanted.gang and (len(run["ranks"]) < 2 or not run["gang_overlap"] or run["gang_overlap"] <= 0.5):
        error(name, f"its {len(run['ranks'])} ranks were no gang at work at once: overlap {run['gang_overlap']}")
    if not run["vit_config"]:
        print(f"{name}: its {len(run['ranks'])} ranks did the same as one would")
        return 0
    if run["vit_config"]["depth"] == 0:
        return 0
    untraced = [rank["device"] for rank in run["ranks"] if not (rank.get("trace") or {}).get("path")]
    if untraced:
        error(name, f"no trace of {', '.join(untraced)}: {run['validity']['warnings']}")
        return 0
    traces = [Trace(folder / rank["trace"]["path"]) for rank in run["ranks"]]
    for rank, trace in zip(run["ranks"], traces):
        check_trace(f"{name} on {rank['device']}", rank, trace, wanted)
    if wanted.graphs and not all(k[2] for trace in traces for k in trace.kernels):
        error(name, "kernels that no graph launched")
    return at_once(traces[0].kernels, traces[1].kernels) if len(traces) > 1 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--graphs", action="store_true")
    parser.add_argument("--gang", action="store_true")
    parser.add_argument("--least", type=float, default=0.75)
    wanted = parser.parse_args()
    runs = json.loads((wanted.folder / "results.json").read_text())
    summary = json.loads((wanted.folder / "experiment_summary.json").read_text())
    if not runs or summary["successful_runs"] != summary["total_runs"] or summary["total_runs"] != len(runs):
        error("summary", f"{summary['successful_runs']} of {summary['total_runs']} runs succeeded")
    together_ns = sum(check_run(wanted.folder, run, wanted) for run in runs)
    if wanted.gang:
        print(f"kernels of two ranks ran at once for {together_ns / 1e6:.3f} ms")
        if together_ns == 0:
            error("gang", "no kernels of two ranks ran at once")
    sys.exit(1 if errors else 0)


main()
