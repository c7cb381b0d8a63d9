/*
 * balance.h: how evenly the GPUs of one recording are loaded, on the whole and over time, and what
 * is to be said of that.
 */
#ifndef LAB_ANALYSIS_BALANCE_BALANCE_H
#define LAB_ANALYSIS_BALANCE_BALANCE_H

#include "analysis/balance/drift.h"
#include "analysis/recording/recording_stats.h"

#define LAB_BALANCED                                                                               \
    3 /* metrics: memory, utilisation, power, as lab_recording_stats_metric counts */

struct lab_balance { /* of one recording */
    const struct lab_recording_stats *stats;
    double cv[LAB_BALANCED];
    int windows;
    double *window_cv[LAB_BALANCED];
    struct lab_drift drift[LAB_BALANCED];
};

/* In windows of that length; 0 = a tenth of the recording. */
struct lab_balance lab_balance_make(const struct lab_recording_stats *stats, double window_s,
                                    struct lab_arena *arena);

/* No trend, and no window that differs from the whole by a point: nothing for people to look at. */
bool lab_balance_is_steady(const struct lab_balance *balance);
/* The metric with the largest CV, or -1. */
int lab_balance_worst(const struct lab_balance *balance);

/* --- words --- */

const char *lab_balance_answer(const struct lab_balance *balance, struct lab_arena *arena);
const char *lab_balance_answer_for_all(const struct lab_balance *balances, int count,
                                       struct lab_arena *arena);
/* What its grade asks for; NULL without one. */
const char *lab_balance_advice(const struct lab_balance *balance, struct lab_arena *arena);
/* What the windows say: which metric drifts, and the worst of them; NULL with fewer than two. */
const char *lab_balance_over_time(const struct lab_balance *balance, struct lab_arena *arena);
void lab_balance_add_notes(const struct lab_recording_stats *stats, const char *const **notes,
                           struct lab_arena *arena);
/* Whether runs of one label are slower where they are less balanced. */
void lab_balance_add_rate_note(const struct lab_balance *balances, int count,
                               const char *const **notes, struct lab_arena *arena);

#endif
