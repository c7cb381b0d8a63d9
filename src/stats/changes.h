/*
 * changes.h: where a series in time changes for good, and what that makes of it. NaN among the
 * values gives no answer, as in stats.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum lab_changes_cost {
    /* Normal values, common spread. Its σ is estimated from the differences of neighbours (their
     * scaled MAD over √2; their root mean square where that is 0), so that changes hardly count. */
    LAB_CHANGES_MEAN,
    /* Normal values, each segment its own spread: −2 log likelihood. The spread isn't taken below
     * what rounding leaves: the least difference between distinct values, over √12. */
    LAB_CHANGES_MEAN_VARIANCE,
};

struct lab_changes_options {
    enum lab_changes_cost cost;
    double penalty;     /* of each change; 0: 15 ln n, as warmup_stats */
    size_t segment_min; /* values; 0: 2 */
};

/*
 * The segmentation of least cost + penalties, by PELT (Killick, Fearnhead and Eckley 2012): exact.
 * Beyond 2048 values changes are sought on a grid of 2048 places, all values still counting; each
 * is then moved to the best value nearby, and taken out if it doesn't pay any more. Fills
 * `ret_starts` with the index where each segment but the first begins, rising; it needs room for n
 * / segment_min. False, and no changes, if a value isn't finite or n is 0. Neighbours that depend
 * on each other look like changes: penalties suppose that they don't.
 */
bool lab_changes_find(const double *x, size_t n, const struct lab_changes_options *options,
                      size_t *ret_starts, size_t *ret_count);

enum lab_steady {
    LAB_STEADY_UNKNOWN,  /* no values, or NaN */
    LAB_STEADY_FLAT,     /* all segments alike */
    LAB_STEADY_WARMUP,   /* the last is the fastest */
    LAB_STEADY_SLOWDOWN, /* an earlier one was faster */
    LAB_STEADY_NONE,     /* still changing in the last quarter */
};

struct lab_steadiness {
    enum lab_steady steady;
    size_t from;      /* first value of the steady part; n if there is none */
    double mean;      /* of the last segment */
    double tolerance; /* how far apart means may be and count as alike */
};

/*
 * The classes of Barrett et al., "Virtual machine warmup blows hot and cold" (2017), for times:
 * less is faster. Two segments are alike if their means differ by no more than the last one's
 * variance or 0.001, all in units of the last one's mean (theirs took about a second).
 */
struct lab_steadiness lab_changes_classify(const double *x, size_t n, const size_t *starts,
                                           size_t count);
