/*
 * claim.h: what an analysis found, as data. A claim compares a subject with a reference and says
 * how large the effect is, how sure that is, and what follows. Sentences, JSON, colours, exit
 * status 3, advice and the proof are made from claims; a claim that can't be checked against
 * planted truth is not made.
 *
 *     {.kind = "numa.penalty", .subject = "GPU 2, NUMA node 2", .reference = "NUMA node 0",
 *      .effect = -0.125, .low = -0.138, .high = -0.107, .confidence = 0.95, .n = 5,
 *      .verdict = LAB_CLAIM_YES, .bound = 0.008, .scope = runs, .scope_count = 10}
 *
 * Whoever made a claim keeps its strings and runs in an arena.
 */
#ifndef LAB_MODEL_CLAIM_H
#define LAB_MODEL_CLAIM_H

#include "model/run.h"

#include <stdbool.h>

enum lab_claim_verdict {
    LAB_CLAIM_NOT_TESTED,   /* there are no runs to tell it from; effect and interval are NaN */
    LAB_CLAIM_YES,          /* there is an effect: the interval lies beyond the bound */
    LAB_CLAIM_NO,           /* there is none larger than the bound */
    LAB_CLAIM_INCONCLUSIVE, /* the interval holds both; needs more runs */
};

struct lab_claim {
    const char *kind; /* what is claimed: "numa.penalty"; the same in every language and version */
    const char *subject, *reference; /* what is compared with what, as people name them */
    /* Relative to the reference: -0.125 = 12.5% lower. The unit is the kind's where it is no
     * ratio. NaN = unknown. */
    double effect;
    double low, high, confidence; /* the interval; NaN = there is none */
    int n;                        /* independent runs of the smaller side */
    enum lab_claim_verdict verdict;
    double bound;                       /* the least effect that counts, and what NO rules out */
    const struct lab_run *const *scope; /* the runs that it rests on */
    int scope_count;
    bool simulated; /* some of them are */
};

#endif
