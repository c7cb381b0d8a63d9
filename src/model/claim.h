/*
 * model/claim.h: what an analysis found, as data. A claim compares a subject with a reference and
 * says how large the effect is, how well that is known, and what follows. Sentences, JSON, colours,
 * exit status 3, advice and the proof are made from claims; a claim that can't be checked against
 * planted truth is not made.
 *
 *     {.kind = "numa.penalty", .subject = "NUMA node 2, GPU 2", .reference = "NUMA node 0",
 *      .quantity = "throughput", .effect = -0.125, .low = -0.138, .high = -0.107,
 *      .confidence = 0.95, .n = 5, .verdict = LAB_CLAIM_YES}
 *
 * Whoever made a claim keeps its strings and runs in an arena.
 */
#pragma once

#include "base/mem.h"
#include "base/value.h"

#include <stdbool.h>

enum lab_claim_verdict {
    LAB_CLAIM_NOT_TESTED,   /* nothing was run that shows it; all values are NaN */
    LAB_CLAIM_YES,          /* there is an effect */
    LAB_CLAIM_NO,           /* there is none larger than `bound`; of an estimate: it lies outside of
                               what was run, and has no value */
    LAB_CLAIM_INCONCLUSIVE, /* more runs are needed; with one run a point always */
};

/* Effects, as shares: below the first one it is negligible; a comparison is to detect the
 * second. */
#define LAB_CLAIM_NEGLIGIBLE 0.005
#define LAB_CLAIM_DETECT     0.02
#define LAB_CLAIM_WORTH      0.01 /* a gain from here on is worth a change of settings */
/* A quantity: throughput on a remote NUMA node relative to the local one. */
#define LAB_CLAIM_REMOTE     "throughput on remote NUMA nodes (local = 1)"
#define LAB_CLAIM_REFERENCE  "reference" /* the effect of a subject against itself */
#define LAB_CLAIM_RUNS_MOST  50          /* that anybody would run of a point */
#define LAB_CLAIM_RUNS_LEAST 5           /* of a point: fewer show no spread */
#define LAB_CLAIM_LEVEL      0.05        /* of a false claim, over all claims of a family */

struct lab_claim {
    const char *kind;                /* "numa.penalty"; the same in every version */
    const char *subject, *reference; /* what is compared with what, as people name them */
    const char *mean_of;  /* that the effect is a mean over: "12 points"; NULL = of one */
    const char *quantity; /* that the effect is of: "throughput" */
    /* NULL: relative to the reference, -0.125 = 12.5% lower. Else the effect is an estimate in this
     * unit, "FLOP/s", "s", "" of a plain number, and there is no reference. */
    const char *unit;
    /* Of values that may be 0 or below, which have no ratio: the effect is the difference from the
     * reference in this unit, "" of plain numbers. NULL = it is relative. */
    const char *difference;
    double effect;                /* NaN = unknown */
    double low, high, confidence; /* the interval over runs; NaN = there is none */
    bool at_least; /* it covers at least as often: a prediction's has the model's error besides */
    double p;      /* of no effect; NaN = unknown */
    double negligible; /* an effect this small is none; 0 = LAB_CLAIM_NEGLIGIBLE */
    int n;             /* runs of the point that has fewest */
    int most;          /* of the one that has most; 0 = as many */
    int of;            /* that were planned of it, where more were than have a value; else 0 */
    int needed;   /* runs a point that would detect LAB_CLAIM_DETECT with 80% power; 0 = unknown */
    int decisive; /* the same of an effect as large as this one, where that is larger */
    enum lab_claim_verdict verdict;
    double bound;             /* of NO: no effect is larger; else NaN */
    const char *reason;       /* why more runs like these decide nothing; NULL = they may */
    const char *const *scope; /* the points that it rests on; of two, the reference first */
    int scope_count;
    bool simulated; /* some of them are */
};

extern const struct lab_claim lab_claim_none; /* not tested */

/* The claim with these names; "" = no reference. `simulated` follows from what is analysed. */
struct lab_claim lab_claim_named(struct lab_claim claim, const char *kind, const char *subject,
                                 const char *reference, const char *quantity);

/* With what it is a mean of: "Batch 32, mean of 12 points". */
const char *lab_claim_subject(const struct lab_claim *claim, struct lab_arena *arena);
/* Whether both compare the same with the same. */
bool lab_claim_is_alike(const struct lab_claim *a, const struct lab_claim *b);

/* Adds a point to the scope, unless it is there. */
void lab_claim_add_scope(struct lab_claim *claim, const char *point, struct lab_arena *arena);

const char *lab_claim_verdict_name(enum lab_claim_verdict verdict); /* "not_tested" */

/* From the interval and `p`, which for one of many is the family's adjusted one: sets `verdict` and
 * `bound`. An estimate in a unit is YES where it has an interval. */
void lab_claim_judge(struct lab_claim *claim, double p);

/*
 * One sentence, without full stop:
 *   NUMA node 2, GPU 2: 12.5% lower throughput than NUMA node 0 (95% CI [10.7, 13.8]%, 5 runs each)
 *   No difference larger than 0.8% in throughput between NUMA node 2 and NUMA node 0 (5 runs each)
 *   Inconclusive: NUMA node 2: 0.5% higher throughput than NUMA node 0 (95% CI: 2.0% lower to 3.0%
 *     higher, 3 runs each); 9 runs per point detect 2% (80% power)
 *   GPU: throughput 31.2× that of CPU (95% CI [28.9, 33.7]×, 5 runs each)
 *   NUMA node 3: not tested
 *   adam: 12.4 higher reward than sgd (95% CI [8.1, 16.7], 3 runs each)
 *   adam: 12.5% lower loss than sgd (95% CI [10.7, 13.8]%, 2 of 3 runs)
 *   GPU 0: compute rate 52.1 TFLOP/s (95% CI [51.3, 52.9] TFLOP/s, 30 runs)
 */
const char *lab_claim_sentence(const struct lab_claim *claim, struct lab_arena *arena);

/* "12.5% [10.7, 13.8]" of an effect that is lower or higher, "12.4 points [8.1, 16.7]" of a
 * difference; "over 900%". */
const char *lab_claim_amount(const struct lab_claim *claim, struct lab_arena *arena);
/* " larger than 0.8%", behind "no difference": rounded up, since it has to hold; "" of 0. */
const char *lab_claim_larger(double bound, struct lab_arena *arena);

/* Takes the interval away, and so the verdict: the runs don't repeat each other. */
void lab_claim_withhold(struct lab_claim *claim, const char *reason);

/* A subject within a sentence: "compiled" of "Compiled"; "GPU 3" and "NUMA node 2" stay. */
const char *lab_claim_within(const char *name, struct lab_arena *arena);

/* Runs per point for a verdict: what detects LAB_CLAIM_DETECT; an effect as large as this one where
 * nobody runs that many, or its interval excludes 0; LAB_CLAIM_RUNS_LEAST behind two runs. 0 =
 * unknown. */
int lab_claim_runs(const struct lab_claim *claim);
/* What an inconclusive claim needs: "9 runs per point detect 2% (80% power)", "… an effect this
 * large …", "2 runs hardly show the spread: run 5 per point", "too noisy here: …"; its
 * reason, where it has one; "" = unknown, or not inconclusive. */
const char *lab_claim_next(const struct lab_claim *claim, struct lab_arena *arena);

/* Whether it is inconclusive although its own interval excludes no effect: the verdict is
 * corrected for all comparisons of its family. What tables with such a row say below it. */
bool lab_claim_is_corrected(const struct lab_claim *claim);
#define LAB_CLAIM_CORRECTED                                                                        \
    "Verdicts are corrected for the number of comparisons: an interval that excludes 0 (a "        \
    "ratio's: 1) can be inconclusive."

/* "-12.5% [-13.8, -10.7]", "31.2× [28.9, 33.7]", whatever the verdict is. */
const char *lab_claim_effect(const struct lab_claim *claim, struct lab_arena *arena);

/* For tables: "-12.5% [-13.8, -10.7]", "within ±0.8%", "-12.5%, 1 run each", "not tested",
 * "+12.4 [8.1, 16.7]", "52.1 TFLOP/s [51.3, 52.9]"; "reference" of a subject against itself. */
const char *lab_claim_short(const struct lab_claim *claim, struct lab_arena *arena);

/* {kind, subject, reference, quantity, unit, difference, effect, low, high, confidence, runs,
 * planned, verdict, bound, needed, reason, scope, simulated} */
struct lab_value *lab_claim_value(const struct lab_claim *claim, struct lab_arena *arena);
