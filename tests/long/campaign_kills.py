#!/usr/bin/env python3
"""Kills a campaign at random instants and repeats its command until it is over, again and again until
so many kills have hit. Each time it ends in one folder, with the phases, runs and answers of one that
nobody disturbed. One that was killed when it had written that it is finished isn't begun again.

    campaign_kills.py GPULAB [KILLS] [SEED]
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

gpulab = str(pathlib.Path(sys.argv[1]).resolve())
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 100
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())

MODELS = ("experiment.vit_configs=[{patch_size:32,depth:0,heads:8,dim:64,mlp_dim:0},"
          "{patch_size:32,depth:2,heads:4,dim:256,mlp_dim:0}]")
CAMPAIGN = f"""
questions:
  - {{name: sensitivity, ask: 'How much is lost?', analysis: numa, phases: [a, more]}}
phases:
  - {{name: a, priority: high, studies: ['numa_study {MODELS} experiment.hardware.gpu_ids=[0,3] repeat=3']}}
  - {{name: more, after: [a], studies: [{{refine: eliminate, claim: numa.cell, study: 'numa_study {MODELS}'}}]}}
  - {{name: b, after: [a], when: numa.penalty > 1%, studies: ['quick_test repeat=2', quick_test]}}
  - {{name: beside, after: [a], studies: ['quick_test experiment.hardware.gpu_ids=[5,6] repeat=3']}}
  - {{name: c, after: [a], when: numa.penalty < 1%, studies: [quick_test]}}
"""


def start(folder, output, action="run"):
    words = ["campaign", action, "kills", "device=sim:l40s-10", "--config-dir", "conf", "--json", "--quiet",
             f"output_dir={output}", "experiment.trace=false"]
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"),
                   "GPULAB_LOCK_DIR": str(folder / "locks")}
    return subprocess.Popen([gpulab, *words], cwd=folder, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finished(folder, output):
    return any(json.loads(path.read_text())["finished"]
               for path in (folder / output / "campaign/kills").glob("*/*/campaign.json"))


def left(folder, output, out):
    """What a campaign left: states of phases, runs of each study, the claims that answer."""
    # killed before its campaign.json was there, a campaign leaves an empty folder, and no word of it
    places = [path.parent for path in (folder / output / "campaign/kills").glob("*/*/campaign.json")]
    if len(places) != 1:
        sys.exit(f"{len(places)} folders: {places}")
    runs = []
    for path in places[0].rglob("results.json"):
        slot = path.relative_to(places[0]).parts[:2]
        runs += [(*slot, run["run_id"], run["success"]) for run in json.loads(path.read_text())]
    answers = json.loads(out)
    states = [(phase["phase"], phase["state"], phase["done"]) for phase in answers["phases"]]
    return sorted(runs), states, [question["claim"] for question in answers["questions"]]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "conf/campaign").mkdir(parents=True)
    (folder / "conf/campaign/kills.yaml").write_text(CAMPAIGN)
    begin = time.monotonic()
    whole = start(folder, "whole")
    out, err = whole.communicate()
    if whole.returncode:
        sys.exit(err)
    expected = left(folder, "whole", out)
    length = time.monotonic() - begin
    draw = random.Random(seed)
    hit = number = 0
    print(f"seed {seed}: {len(expected[0])} runs in {length:.1f} s, undisturbed", flush=True)
    while hit < kills:
        number += 1
        while True:
            process = start(folder, f"killed{number}")
            try:
                out, err = process.communicate(timeout=draw.uniform(0.01, length) if hit < kills else 600)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                hit += 1
                if not finished(folder, f"killed{number}"):
                    continue
                process = start(folder, f"killed{number}", "report")
                out, err = process.communicate()
            break
        if process.returncode:
            sys.exit(f"after {hit} kills: {err}")
        found = left(folder, f"killed{number}", out)
        if found != expected:
            sys.exit(f"after {hit} kills, campaign {number} differs:\n{expected}\n{found}")
    print(f"{hit} kills, {number} campaigns: each ended with the same runs and answers")
