/* analysis_words.h: figures put in words, for the sentences of analyses. All lie in the arena. */
#ifndef LAB_ANALYSIS_ANALYSIS_WORDS_H
#define LAB_ANALYSIS_ANALYSIS_WORDS_H

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "stats/stats.h"

const char *lab_words_si(double value, const char *unit, struct lab_arena *arena); /* "12.3 GB/s" */
const char *lab_words_time(double seconds, struct lab_arena *arena);               /* "350 µs" */

/* "0.74× [0.72, 0.76]"; a dash where there is no value. */
const char *lab_words_times(double value, double low, double high, struct lab_arena *arena);
const char *lab_words_capital(const char *words, struct lab_arena *arena); /* "The rest" */
/* For programs: "same", "undecided", or one of the two. */
const char *lab_words_verdict(enum lab_study_verdict verdict, const char *more, const char *less);

/* "12.3 [11.9, 12.7] TFLOP/s"; "9.10 TFLOP/s or more" where there is no upper end; without interval
 * as above. */
const char *lab_words_rate(struct lab_effect rate, const char *unit, struct lab_arena *arena);

/* A count or a rate without a unit: "35190", "812.3"; with how far its interval reaches, as tables
 * have it: "812.3 ± 4.8 %". */
const char *lab_words_number(double value, struct lab_arena *arena);
const char *lab_words_effect(struct lab_effect effect, struct lab_arena *arena);

/* A bound as "no difference larger than" has it: in percent, rounded up since it has to hold. */
double lab_words_bound_percent(double share);

/* Beyond this share a bound says nothing: runs differ too much from each other to tell. */
#define LAB_WORDS_BOUND_MOST 0.5

/* ratio − 1 with its interval. */
struct lab_doc_cell lab_analysis_ratio(const struct lab_study_ratio *ratio);

/* An interval with an end that isn't finite is none. */
struct lab_doc_cell lab_analysis_effect(struct lab_effect effect);

#endif
