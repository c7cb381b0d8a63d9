/*
 * selftest.h: A/A studies: the same point under two names, so that whatever difference a verdict
 * finds isn't there. Each is a study as `gpulab run` carries it out, with a process for each run.
 */
#ifndef LAB_CAMPAIGN_SELFTEST_H
#define LAB_CAMPAIGN_SELFTEST_H

#include "analysis/analysis_study.h"
#include "base/tty/console.h"

#define LAB_SELFTEST_LEVEL 0.05 /* what our verdicts promise */

struct lab_selftest_tally {
    int studies;
    int alarms;         /* verdicts of a difference, names interleaved */
    int alarms_in_turn; /* the same runs, had all of one name come before the other's */
    int alarms_spread;  /* of `analyze variance`: one name varies more than the other */
    int spreads;        /* studies that it could judge */
    double *bounds;     /* of each study: how large a difference it could not rule out; a share */
    int capacity;
    int failed_runs;
};

/* What a study's table has to hold for it (LAB_STUDY_WITH_ITERATIONS, …). */
unsigned lab_selftest_needs(void);

/*
 * Judges a study's runs. Neighbours in time are pairs; in each, a coin (`seed`) says which of the
 * two is A. Runs without a pair are left out. Returns false if fewer than two pairs are usable.
 */
bool lab_selftest_judge(const struct lab_study_table *table, uint64_t seed,
                        struct lab_selftest_tally *tally);

void lab_selftest_release(struct lab_selftest_tally *tally);

/* Is the share of alarms consistent with the promise? Its lower bound at 99 % isn't above it. */
bool lab_selftest_holds(int alarms, int studies);

/* One sentence. */
const char *lab_selftest_answer(const struct lab_selftest_tally *tally, int runs,
                                struct lab_arena *arena);

#endif
