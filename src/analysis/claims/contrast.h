/*
 * contrast.h: claims from the points of a study.
 *
 * A contrast is a weighted sum of points: a cell against its reference (weights 1 and -1), or the
 * mean of many such differences (pooled). The quantity is a rate or a time, the sum is of
 * logarithms, so that a contrast whose weights add up to 0 is a ratio.
 *
 * The unit of replication is the run. A study runs its points in blocks, one repeat of each in
 * random order. So the contrast is made block by block, and its interval is Student's over the
 * blocks: whatever drifts from block to block, or hits the points of a block alike, cancels out,
 * and runs of one block needn't be independent of each other. Blocks in which a point has no run
 * are left out; where fewer than two are whole, or less than half, the runs of each point count by
 * themselves (Welch). Of two blocks the variance is no less than the points' own runs give: a mean
 * can't be firm by chance while its parts are open. With one run a point there is an effect and no
 * interval.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "model/claim.h"
#include "stats/stats.h"

struct lab_contrast { /* {.arena = …} = empty */
    struct lab_arena *arena;
    /* Any value of a run instead of the figure: a bandwidth, a tuned time. Set before the first
     * point is added. Positive, but for a difference. NaN = the run has none. NULL = the figure. */
    double (*value)(const struct lab_study_run *run, const void *context);
    const void *context;
    const char *difference; /* of claim.h: values may be 0 or below; NULL = ratios */
    /* Of few blocks the variance is hardly known: that of other contrasts of the study, and how
     * many degrees of freedom all of them have. The own one counts where it is larger. */
    struct lab_variance_prior prior;
    double prior_most;
    struct lab_contrast_term {
        const struct lab_study_point *point;
        double weight;
        const double *values; /* of its runs, asked for once; NULL = the figure */
    } * terms;
    int count;
};

/* A point that is there already gets the sum of its weights. */
void lab_contrast_add(struct lab_contrast *contrast, const struct lab_study_point *point,
                      double weight);
/* `other` against `base`. */
void lab_contrast_add_pair(struct lab_contrast *contrast, const struct lab_study_point *base,
                           const struct lab_study_point *other, double weight);

/* Of a block's sum, and its degrees of freedom; NaN = fewer than two blocks are whole. */
double lab_contrast_variance(const struct lab_contrast *contrast, enum lab_study_figure figure,
                             double *ret_freedom);

/* The geometric mean of a point over the runs that the claim below rests on: its whole
 * blocks, or all. NaN = it has none. */
double lab_contrast_mean(const struct lab_contrast *contrast, const struct lab_study_point *point,
                         enum lab_study_figure figure);

/* Effect, interval, p, n, needed, scope and a verdict by itself. Whoever asks for it sets kind,
 * subject, reference and quantity. An empty contrast, or one with a point without values, is not
 * tested. */
struct lab_claim lab_claim_estimate(const struct lab_contrast *contrast,
                                    enum lab_study_figure figure);

/*
 * From one value of each block, where a contrast can't say it: a fit of all points of a block, a
 * crossover. Student's interval over the blocks. With a unit, values are positive estimates in it
 * (the mean is of their logarithms); without, they are logarithms of ratios. NaN = the block has
 * none.
 */
struct lab_claim lab_claim_from_blocks(const double *values, int count, const char *unit);

/* The same of amounts that can't be below 0 while their estimates can: a latency, a difference of
 * times. The mean is of the values themselves. Inconclusive unless it is above 0 for certain; not
 * tested where it isn't above 0. */
struct lab_claim lab_claim_from_amounts(const double *values, int count, const char *unit);

/* Unpaired positive values, one of each recording, `other` against `base`: Welch's interval
 * of the mean logarithms. NaN = there is none. One value on a side: an effect without interval. */
struct lab_claim lab_claim_from_samples(const double *base, int base_count, const double *other,
                                        int other_count);
/* The same of values that may be 0 or below: Welch's interval of the difference in that unit. */
struct lab_claim lab_claim_from_differences(const double *base, int base_count, const double *other,
                                            int other_count, const char *unit);

/* Verdicts of a family hold together: the share of false ones among YES stays below
 * LAB_CLAIM_LEVEL (Benjamini and Hochberg). All comparisons that answer one question are one. */
void lab_claim_adjust(struct lab_claim *const *claims, int count);
