/*
 * selftest.h: A/A studies: runs of one point under different names, so that whatever a claim finds
 * isn't there. Each is a study as `gpulab run` carries it out, with a process for each run.
 *
 * The runs of a study are named in several ways (as devices and NUMA nodes, as settings, as phases,
 * as gangs, …), at random within each block, and every analysis that a report would have makes its
 * claims. Every other run of a point is read backwards in time, so that a drift is false too. A
 * kind counts once a study, under one naming: the study is the independent unit. The namings begin
 * with another one in every other study.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "model/claim.h"

#define LAB_SELFTEST_POINTS 8 /* names in a study */

struct lab_selftest_kind {
    const char *kind;            /* of claims: "numa.penalty" */
    int claims, wrong;           /* wrong: verdict YES */
    int studies;                 /* that made such claims */
    int wrong_studies;           /* with a wrong one: at most a share of LAB_CLAIM_LEVEL */
    int last_study, last_naming; /* that counted; from 1 on */
};

struct lab_selftest_tally { /* zeroed = empty; strings lie in the arena of the caller */
    int studies;
    struct lab_selftest_kind *kinds;
    int kind_count;
};

/* What a study's table has to hold for it (LAB_STUDY_WITH_ITERATIONS, …). */
unsigned lab_selftest_needs(void);

/* Names the study's runs, in order of time, and judges what is found; the seed is that of the
 * names. False: there are fewer than two blocks of usable runs. */
bool lab_selftest_judge(const struct lab_study_table *table, uint64_t seed,
                        struct lab_selftest_tally *tally, struct lab_arena *arena);
void lab_selftest_release(struct lab_selftest_tally *tally);

/* Kinds of claim that analyses declare and no study made, with the reason; ends with NULL. */
const struct lab_analysis_kind *lab_selftest_uncovered(const struct lab_selftest_tally *tally,
                                                       struct lab_arena *arena);

/* All kinds together. */
struct lab_selftest_kind lab_selftest_sum(const struct lab_selftest_tally *tally);
/* Whether a kind's share of studies is as promised; false = it is larger, at 99% over all kinds. */
bool lab_selftest_holds(const struct lab_selftest_tally *tally,
                        const struct lab_selftest_kind *kind);
/* One sentence. */
const char *lab_selftest_answer(const struct lab_selftest_tally *tally, struct lab_arena *arena);
