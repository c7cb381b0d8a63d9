/*
 * comparison.h: sets of points against the first of them: point by point, and pooled over all that
 * they share. Points are matched by their axes. An axis with one value in each set, but not the
 * same, is a difference between the sets, not between their points; the workload and the model are
 * matched always.
 *
 * The unit of replication is the run, and of pooled claims the block: each block's mean over the
 * shared points, as each point's distance from its own mean, so that a block that lacks a point
 * doesn't count for less. Sets that were run in turn (`session`) are compared pair by pair.
 */
#pragma once

#include "model/claim.h"
#include "model/point_set.h"

enum lab_comparison_verdict {
    LAB_COMPARISON_SLOWER,
    LAB_COMPARISON_FASTER,
    LAB_COMPARISON_INCONCLUSIVE,
    LAB_COMPARISON_SAME,
    LAB_COMPARISON_VERDICTS
};
const char *lab_comparison_verdict_name(enum lab_comparison_verdict verdict); /* "slower" */
struct lab_compared_point;
/* Likewise; of a reported metric "worse". */
const char *lab_comparison_point_verdict(const struct lab_compared_point *point);

struct lab_compared_point {
    const struct lab_point *base, *other;
    struct lab_claim claim; /* "compare.point" */
    enum lab_comparison_verdict verdict;
};

struct lab_compared_fact {
    const char *topic, *name, *base, *other; /* NULL = it has none */
};

struct lab_comparison {
    const struct lab_point_set *base, *other;
    struct lab_claim pooled; /* "compare.pooled" */
    enum lab_comparison_verdict verdict;
    struct lab_compared_point *points; /* by verdict, slower first, then by effect */
    int point_count;
    int counts[LAB_COMPARISON_VERDICTS];
    struct lab_compared_point *metrics; /* pooled likewise, of each that programs reported */
    int metric_count;
    int timed_count;     /* points that aren't of such a metric */
    int identical_count; /* of these, whose runs have the same values on both sides: copies */
    /* in the base alone; in the other alone; less those that failed there */
    const struct lab_point **missing, **added;
    int missing_count, added_count;
    int failed_count;                /* points of the base that failed in the other */
    struct lab_compared_fact *facts; /* that differ, and axes that do */
    int fact_count;
    const char **axes; /* that tell the points of both apart, in order */
    int axis_count;
};

/* Each set but the first against it: count - 1 of them, in the arena. Verdicts of all points hold
 * together, and so do the pooled ones. LAB_ERR_USER where two share no point. */
int lab_comparisons_make(const struct lab_point_set *sets, int count, struct lab_arena *arena,
                         struct lab_comparison **ret_comparisons, struct lab_err *err);

/* Mean of a point's runs: of logarithms, put back. */
double lab_comparison_mean(const struct lab_point *point);
/* A point's value: "38490 samples/s", "44.08M iterations/s", "899 ns"; a unit of "" is left out. */
const char *lab_comparison_value_text(double value, const char *unit, struct lab_arena *arena);
/* The pooled claim as a sentence, with the sets called so, and those of metrics that differ. */
const char *lab_comparison_sentence(const struct lab_comparison *comparison, const char *subject,
                                    const char *reference, struct lab_arena *arena);
/* "NUMA node" of "numa_node", "batch size" of "batch_size". */
const char *lab_comparison_axis_words(const char *name, struct lab_arena *arena);
/* "GPU 0, NUMA node 2, vit0x0x0" by these axes; "" = there are none. */
const char *lab_comparison_point_name(const struct lab_comparison *comparison,
                                      const struct lab_point *point, struct lab_arena *arena);

/* The same of what failed: by these axes, else by its own. */
const char *lab_comparison_failure_name(const struct lab_comparison *comparison,
                                        const struct lab_point_failure *failure,
                                        struct lab_arena *arena);

/* The slow-down that is shown at least, as a share: the near end of the interval of a claim that is
 * slower; 0 = none is shown. And what can't be excluded: its far end; NaN = nobody can tell. */
double lab_comparison_shown(const struct lab_claim *claim, enum lab_comparison_verdict verdict);
double lab_comparison_possible(const struct lab_claim *claim);
