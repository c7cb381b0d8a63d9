#!/usr/bin/env python3
"""The five research questions of the NUMA plan, asked by the shipped studies with their defaults on
sim:l40s-10, over many seeds. The truth is what the same study answers on the same machine without any
noise. Of each answer's first claim the interval must hold the truth in at least 90 of 100.

    questions.py GPULAB SOURCE_DIR [--seeds N] [--first SEED] [--question NAME]
    questions.py GPULAB SOURCE_DIR --campaign numa_plan [--seeds N] [--first SEED] [--jobs N]

With --campaign, a campaign asks them: all of its phases run for each seed, and the claim that answers each
question in its report is compared. --jobs N carries out N seeds at once; the machine is simulated, so that
they don't disturb each other.
"""
import argparse
import concurrent.futures
import json
import pathlib
import secrets
import subprocess
import sys
import tempfile

# question: the study that asks it, the analysis that answers it
QUESTIONS = {
    "NUMA sensitivity": ("numa_study", "numa"),
    # scaling_study's models are all compute-bound there: their crossover is outside of its range
    "crossover": ("numa_study", "crossover"),
    "transfer scaling": ("transfer_study", "transfer"),
    "best placement": ("numa_study", "recommend"),
    "compilation": ("compile_study", "compile"),
}
HOLD = 0.9
HOLD_CAMPAIGN = 0.88 # 44 of 50: five questions, ten seeds


def quiet(machine):
    """The machine's description without its noise."""
    lines, keep = [], True
    for line in machine.read_text().splitlines():
        if line[:1] not in (" ", "#", ""):
            keep = not line.startswith("noise:")
        if keep:
            lines.append(line)
    return "\n".join(lines) + "\n"


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def claims(program, study, analyses, device, seed, folder):
    """The claims of each analysis, from one study."""
    output = pathlib.Path(folder) / f"{study}-{seed}"
    run(program, "run", study, f"device={device}", f"seed={seed}", f"output_dir={output}",
        "experiment.trace=false", "--quiet")
    path = next(output.glob("*/*/*/study.db")).parent
    return {name: json.loads(run(program, "analyze", name, str(path), "--json")).get("claims", [])
            for name in analyses}


def answers(program, campaign, device, seed, folder):
    """By question: the claim that answers it, and all claims of its analysis."""
    words = ("campaign", "run", campaign, f"device={device}", f"seed={seed}", "--quiet", "--json",
             f"output_dir={folder}/{campaign}-{seed}", "experiment.trace=false")
    return {q["name"]: (q["claim"], q["claims"]) for q in json.loads(run(program, *words))["questions"]}


def judge(counts, name, seed, claim, truths):
    held = bool(claim and holds(claim, truths))
    counts.setdefault(name, [0, 0])
    counts[name][0] += held
    counts[name][1] += 1
    if not held:
        print(f"  {name}, seed {seed}: {json.dumps(claim)[:300]}")


def ask_campaign(words, still, folder):
    counts = {}
    def ask(device, seed):
        return answers(words.program, words.campaign, device, seed, folder)

    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        truth = pool.submit(ask, f"sim:{still}", 0)
        seeds = {pool.submit(ask, "sim:l40s-10", seed): seed
                 for seed in range(words.first, words.first + words.seeds)}
        for done in concurrent.futures.as_completed(seeds):
            for name, (claim, _) in done.result().items():
                judge(counts, name, seeds[done], claim, truth.result()[name][1])
            print(f"seed {seeds[done]} done", flush=True)
    return counts


def ask_studies(words, still, folder):
    counts, studies = {}, {}
    for name in words.question or list(QUESTIONS):
        studies.setdefault(QUESTIONS[name][0], []).append(name)
    for study, names in studies.items():
        analyses = [QUESTIONS[name][1] for name in names]
        truth = claims(words.program, study, analyses, f"sim:{still}", 0, folder)
        for seed in range(words.first, words.first + words.seeds):
            found = claims(words.program, study, analyses, "sim:l40s-10", seed, folder)
            for name in names:
                analysis = QUESTIONS[name][1]
                judge(counts, name, seed, (found[analysis] or [None])[0], truth[analysis])
    return counts


def holds(claim, truths):
    """None = there is no interval to hold anything."""
    same = [t for t in truths
            if all(t[k] == claim[k] for k in ("kind", "subject", "reference", "quantity"))]
    if not same or claim["low"] is None or same[0]["effect"] is None:
        return None
    slack = 1e-9 * abs(same[0]["effect"])
    return claim["low"] - slack <= same[0]["effect"] <= claim["high"] + slack


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--campaign")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at once, with --campaign")
    parser.add_argument("--question", choices=QUESTIONS, action="append")
    words = parser.parse_args()
    machine = pathlib.Path(words.source) / "conf/machine/l40s-10.yaml"
    print(f"seeds {words.first} to {words.first + words.seeds - 1}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        still = pathlib.Path(folder) / "still.yaml"
        still.write_text(quiet(machine))
        ask = ask_campaign if words.campaign else ask_studies
        counts = ask(words, still, folder)
    for name, (held, total) in counts.items():
        print(f"{name}: {held} of {total} hold the truth")
    held, total = (sum(count[i] for count in counts.values()) for i in range(2))
    print(f"{held} of {total} first claims hold the truth")
    return 0 if held >= (HOLD_CAMPAIGN if words.campaign else HOLD) * total else 1


if __name__ == "__main__":
    sys.exit(main())
