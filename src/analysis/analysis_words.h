/* analysis_words.h: figures put in words, for the sentences of analyses. All lie in the arena. */
#pragma once

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "stats/stats.h"

const char *lab_words_si(double value, const char *unit, struct lab_arena *arena); /* "12.3 GB/s" */
const char *lab_words_time(double seconds, struct lab_arena *arena);               /* "350 µs" */
const char *lab_words_memory(double mib, struct lab_arena *arena); /* "30.2 MiB", "769 GiB" */

const char *lab_words_capital(const char *words, struct lab_arena *arena); /* "The rest" */

/* A count or a rate without a unit: "35190", "812.3". */
const char *lab_words_number(double value, struct lab_arena *arena);

/* A bound as "no difference larger than" has it: in percent, rounded up since it has to hold. */
double lab_words_bound_percent(double share);
/* The larger of `most` and the far end of the claim's interval: of single points next to a mean,
 * for which the mean's bound need not hold. Without an interval it is `most`. */
double lab_words_reach(double most, const struct lab_claim *claim);

/* " (any model: 1.9%)" after a mean's bound, where single ones reach farther; "" = they don't. */
const char *lab_words_beyond(double bound, double reach, const char *who, struct lab_arena *arena);

/* Single claims next to a mean's bound: how far those reach that have a verdict, and how many are
 * inconclusive, which bound nothing. {0} = none. */
struct lab_words_singles {
    double reach;
    int count, open, certain;
};
void lab_words_add_single(struct lab_words_singles *singles, const struct lab_claim *claim);
/* " (any model: 1.9%)", " (any model: 1.9%, but 2 of 18 inconclusive)", " (any model: 1.9%; 1 of 18
 * differs)"; "" = nothing that reaches farther. */
const char *lab_words_singles(double bound, const struct lab_words_singles *singles,
                              const char *who, struct lab_arena *arena);

/* "0 to +14.9%", "+1.0 to +24.9%", of both alike "+6.3%": gains as shares. */
const char *lab_words_range(double least, double most, struct lab_arena *arena);

/* A ratio in three digits: "1.92×", "56.9×". */
const char *lab_words_ratio(double ratio, struct lab_arena *arena);

/* ", NUMA node 2", behind a device; "" where it is chance or the system's choice. */
const char *lab_words_node(int node, struct lab_arena *arena);

/* "GPU 3", "GPUs 0–3 and 7", "GPUs 0 and 1"; other names as they are. */
const char *lab_words_devices(const char *const *names, int count, struct lab_arena *arena);
/* Those of one run, at once: "GPU 3", "GPUs 0+2", "GPUs 0–3"; other names likewise. */
const char *lab_words_gang(const struct lab_study_run *run, struct lab_arena *arena);

/* What is to be said of a device, whose claim over all models ("peers.device") is one of these: the
 * class of models ("peers.class") that alone differs for certain, by more than that mean; else the
 * mean. */
const struct lab_claim *lab_words_told(const struct lab_claim *device,
                                       const struct lab_claim *const *claims, int count);
