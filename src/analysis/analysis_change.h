/*
 * analysis_change.h: by how much a mean differs between two labels, and how well that is known.
 *
 * The unit of replication is the recording. Where both labels have several, the interval comes from
 * the spread between them (Welch). Where one has a single recording, the spread between those of
 * the other stands for both. With one recording each, all that is left is the spread within them:
 * the variance of a mean over as many values as are independent of their neighbours. That says how
 * well these two recordings' means are known, not what another recording would give, so that small
 * differences get no verdict.
 */
#ifndef LAB_ANALYSIS_ANALYSIS_CHANGE_H
#define LAB_ANALYSIS_ANALYSIS_CHANGE_H

#include "analysis/recording/recording_stats.h"

/* With one recording each, no smaller difference is a verdict. */
#define LAB_CHANGE_WITHIN_LEAST          0.02
#define LAB_CHANGE_WITHIN_LEAST_ABSOLUTE 1.0 /* degree */

struct lab_change_mean { /* of values over time */
    double mean;
    double variance; /* of the mean */
    double freedom;  /* degrees; NaN = the variance isn't known */
};

/* `values` in the order of time; those that are NaN are left out. */
struct lab_change_mean lab_change_mean_make(const double *values, size_t count);

struct lab_change_side {
    const double *values;          /* one for each recording; NaN = has none */
    int count;                     /* of recordings */
    struct lab_change_mean within; /* of the only one; freedom NaN = it is a single value */
};

/* A metric of a label: of all GPUs together, or of the one with that index (-1 = all). */
struct lab_change_side lab_change_side_make(const struct lab_recording_stats_label *label,
                                            enum lab_recording_stats_metric metric, int gpu,
                                            struct lab_arena *arena);
/* A figure that a recording has one of: no interval within it. */
struct lab_change_side lab_change_side_single(const double *values, int count);

enum lab_change_verdict {
    LAB_CHANGE_UNKNOWN, /* no value, or nothing to compare with */
    LAB_CHANGE_SINGLE,  /* a single value each: a difference without an interval */
    LAB_CHANGE_SAME,    /* can't be told from none: it isn't larger than `bound` */
    LAB_CHANGE_SMALL,   /* one recording each, and less than a verdict needs */
    LAB_CHANGE_HIGHER,
    LAB_CHANGE_LOWER,
};

struct lab_change {
    double first, second;    /* means over the recordings */
    double share, low, high; /* second / first − 1, at 95 %; of an absolute one second − first */
    double bound;            /* the farther end of the interval, without its sign */
    bool within;             /* one recording each */
    bool absolute;           /* in the unit itself: a share of degrees means nothing */
    enum lab_change_verdict verdict;
};

struct lab_change lab_change_make(const struct lab_change_side *first,
                                  const struct lab_change_side *second);
/* A metric of two labels; of all GPUs together, or of the one with that index (-1 = all). */
struct lab_change lab_change_between(const struct lab_recording_stats_label *first,
                                     const struct lab_recording_stats_label *second,
                                     enum lab_recording_stats_metric metric, int gpu,
                                     struct lab_arena *arena);
struct lab_change lab_change_make_absolute(const struct lab_change_side *first,
                                           const struct lab_change_side *second);

const char *lab_change_verdict_name(enum lab_change_verdict verdict); /* for programs: "higher" */
/* For people, in few words: "higher", "≤ 1.2 %". */
const char *lab_change_words(const struct lab_change *change, struct lab_arena *arena);
/* `bound` in percent (an absolute one as it is), rounded up to a tenth: "no more than" has to
 * hold. */
double lab_change_bound_percent(const struct lab_change *change);
/* What the intervals between these labels speak about: other recordings, or these alone. */
const char *lab_change_note(const struct lab_recording_stats_label *labels, int count);
/* "+8.4 % [+6.1, +10.7]", "+3.0 °C [+1.8, +4.2]"; without an interval only the first. */
const char *lab_change_text(const struct lab_change *change, struct lab_arena *arena);
struct lab_doc_cell lab_change_cell(const struct lab_change *change);

#endif
