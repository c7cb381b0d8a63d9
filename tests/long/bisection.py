#!/usr/bin/env python3
"""Does a campaign's bisection find the crossover that is planted? The copy rate of a simulated machine and the
depth of its models place the crossover. The truth is a dense row of widths, run once without noise: where the
compute stage begins to take longer than the copy, from the runs' own figures. Neither the bisection nor an analysis
takes part in it. A campaign then begins with two widths far from it, over many seeds. Of the answers' intervals 90
of 100 must hold the truth, and 90 of 100 be narrower than what was asked for plus the runs' own noise. It fails
where that is refuted: chance alone does so once in a hundred times. docs/CAMPAIGNS.md has what was measured.

    bisection.py GPULAB SOURCE_DIR [--seeds N] [--first SEED]
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile

from questions import quiet, run

CASES = [(24.6, 3), (17.0, 4), (24.6, 6), (20.0, 5)] # GB/s of a slot, depth of the models
ENDS = (64, 768) # widths that a campaign begins with
STEP = 8 # of the dense row
BATCH, SAMPLE_BYTES = 10, 3 * 224 * 224 * 4
HOLD, WIDTH_MOST = 0.9, 0.10
CHANCE = 0.01 # of failing though HOLD is true

CAMPAIGN = """
questions:
  - {{name: crossover, ask: Where is it?, analysis: crossover, claims: [crossover.work], phases: [ends, between]}}
phases:
  - {{name: ends, studies: ['numa_study {words}']}}
  - {{name: between, after: [ends],
     studies: [{{refine: bisect, claim: crossover.model, study: 'numa_study {place}', width: 5%, steps: 5, runs: 200}}]}}
"""
PLACE = "experiment.hardware.gpu_ids=[2] experiment.hardware.numa_nodes=[0] experiment.trace=false"


def models(depth, widths):
    rows = ",".join(f"{{patch_size:32,depth:{depth},heads:4,dim:{dim},mlp_dim:0}}" for dim in widths)
    return f"experiment.vit_configs=[{rows}]"


def truth(program, machine, depth, folder):
    """MFLOP of a sample at which compute takes as long as the copy to the device."""
    output = f"{folder}/dense-{depth}"
    run(program, "run", "numa_study", f"device=sim:{machine}", f"output_dir={output}", "--quiet", "repeat=1",
        models(depth, range(ENDS[0], ENDS[1] + 1, STEP)), *PLACE.split())
    rows = []
    for result in json.loads(next(pathlib.Path(output).rglob("results.json")).read_text()):
        own = result["ranks"][0]
        compute_s = own["compute_utilization"] * BATCH / own["samples_per_second"]
        copy_s = BATCH * SAMPLE_BYTES / (1e9 * own["h2d_gb_per_s"])
        rows.append((own["flops_per_second"] / own["samples_per_second"] / 1e6, compute_s - copy_s))
    rows.sort()
    for (work, excess), (next_work, next_excess) in zip(rows, rows[1:]):
        if excess < 0 <= next_excess:
            return work + (next_work - work) * excess / (excess - next_excess)
    sys.exit(f"depth {depth}: no crossover among {rows[0]} to {rows[-1]}")


def least(total):
    """The fewest of `total` that don't refute HOLD."""
    below = 0.0
    for held in range(total + 1):
        below += math.comb(total, held) * HOLD**held * (1 - HOLD)**(total - held)
        if below > CHANCE:
            return held
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--seeds", type=int, default=6, help="of each case")
    parser.add_argument("--first", type=int, default=1000)
    words = parser.parse_args()
    text = (pathlib.Path(words.source) / "conf/machine/l40s-10.yaml").read_text()
    held = narrow = total = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "conf/campaign").mkdir(parents=True)
        for rate, depth in CASES:
            noisy, still = folder / f"noisy-{depth}.yaml", folder / f"still-{depth}.yaml"
            noisy.write_text(text.replace("slot_gb_s: 24.6", f"slot_gb_s: {rate}"))
            still.write_text(quiet(noisy))
            planted = truth(words.program, still, depth, folder)
            (folder / "conf/campaign/bisection.yaml").write_text(
                CAMPAIGN.format(words=f"{PLACE} {models(depth, ENDS)}", place=PLACE))
            print(f"{rate} GB/s, depth {depth}: planted at {planted:.1f} MFLOP/sample", flush=True)
            for seed in range(words.first, words.first + words.seeds):
                out = run(words.program, "campaign", "run", "bisection", f"device=sim:{noisy}", f"seed={seed}",
                          "--config-dir", str(folder / "conf"), "--quiet", "--json",
                          f"output_dir={folder}/{depth}-{seed}")
                claim = json.loads(out)["questions"][0]["claim"]
                effect, low, high = (1e-6 * (claim[key] or 0) for key in ("effect", "low", "high"))
                hit, small = low <= planted <= high, high - low <= WIDTH_MOST * planted
                total += 1
                held += hit
                narrow += small
                print(f"  seed {seed}: {effect:.1f} [{low:.1f}, {high:.1f}]{'' if hit else ' MISSED'}"
                      f"{'' if small else ' WIDE'}", flush=True)
    print(f"{held} of {total} intervals hold the planted crossover, {narrow} are at most {WIDTH_MOST:.0%} wide; "
          f"at least {least(total)} are asked for")
    return 0 if min(held, narrow) >= least(total) else 1


if __name__ == "__main__":
    sys.exit(main())
