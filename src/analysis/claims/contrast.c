/* contrast.c: contrasts of points, block by block. */
#include "analysis/claims/contrast.h"

#include "stats/stats.h"

#include <limits.h>
#include <math.h>

#define CONFIDENCE 0.95
#define POWER      0.8
#define EQUAL      1e-9 /* closer is rounding, not a difference */
/* Two blocks agree by chance too often: then their points' own spread counts where it is larger. */
#define BLOCKS_TRUSTED 3

static struct lab_contrast_term *find_term(const struct lab_contrast *contrast,
                                           const struct lab_study_point *point) {
    for (int i = 0; i < contrast->count; i++)
        if (contrast->terms[i].point == point)
            return &contrast->terms[i];
    return NULL;
}

static struct lab_contrast_term make_term(const struct lab_contrast *contrast,
                                          const struct lab_study_point *point, double weight) {
    struct lab_contrast_term term = {point, weight, NULL};
    if (contrast->value) {
        double *values = lab_arena_alloc(contrast->arena, (size_t)point->count + 1, sizeof *values);
        for (int i = 0; i < point->count; i++)
            values[i] = contrast->value(point->runs[i], contrast->context);
        term.values = values;
    }
    return term;
}

void lab_contrast_add(struct lab_contrast *contrast, const struct lab_study_point *point,
                      double weight) {
    struct lab_contrast_term *found = find_term(contrast, point);
    if (found) {
        found->weight += weight;
        return;
    }
    LAB_ADD(contrast->terms, contrast->count, contrast->arena) = make_term(contrast, point, weight);
}

void lab_contrast_add_pair(struct lab_contrast *contrast, const struct lab_study_point *base,
                           const struct lab_study_point *other, double weight) {
    lab_contrast_add(contrast, base, -weight);
    lab_contrast_add(contrast, other, weight);
}

/* --- estimates --- */

struct estimate {                    /* of the contrast's logarithm, or of a difference */
    double value, variance, freedom; /* of the value; NaN = unknown */
};

static double positive_log(double value) {
    return value > 0 && isfinite(value) ? log(value) : (double)NAN;
}

/* As it is summed; NaN = it isn't usable. */
static double scaled(double value, const char *difference) {
    return !difference ? positive_log(value) : isfinite(value) ? value : (double)NAN;
}

/* NaN = the run has no usable value. */
static double value_of(const struct lab_contrast *contrast, const struct lab_contrast_term *term,
                       int run, enum lab_study_figure figure) {
    double value = term->values               ? term->values[run]
                   : figure == LAB_STUDY_RATE ? term->point->rates[run]
                                              : term->point->times_s[run];
    return scaled(value, contrast->difference);
}

/* The term's value in a block; NaN = there is none. */
static double in_block(const struct lab_contrast *contrast, const struct lab_contrast_term *term,
                       int block, enum lab_study_figure figure) {
    for (int i = 0; i < term->point->count; i++)
        if (term->point->runs[i]->run && term->point->runs[i]->run->repeat == block)
            return value_of(contrast, term, i, figure);
    return NAN;
}

static int count_values(const struct lab_contrast *contrast, const struct lab_contrast_term *term,
                        enum lab_study_figure figure) {
    int count = 0;
    for (int i = 0; i < term->point->count; i++)
        count += !isnan(value_of(contrast, term, i, figure));
    return count;
}

static int last_block(const struct lab_contrast *contrast) {
    int last = -1;
    for (int t = 0; t < contrast->count; t++)
        for (int i = 0; i < contrast->terms[t].point->count; i++) {
            const struct lab_study_run *run = contrast->terms[t].point->runs[i];
            last = run->run && run->run->repeat > last ? run->run->repeat : last;
        }
    return last;
}

static struct estimate mean_of(const double *values, size_t count) {
    struct estimate estimate = {NAN, NAN, NAN};
    if (count > 0)
        estimate.value = lab_stats_mean(values, count);
    if (count > 1) {
        double deviation = lab_stats_stddev(values, count);
        estimate.variance = deviation * deviation / (double)count;
        estimate.freedom = (double)count - 1;
    }
    return estimate;
}

/* The contrast's sum in a block; NaN = a point has no run there. */
static double sum_of_block(const struct lab_contrast *contrast, int block,
                           enum lab_study_figure figure) {
    double sum = 0;
    for (int t = 0; t < contrast->count; t++)
        sum += contrast->terms[t].weight * in_block(contrast, &contrast->terms[t], block, figure);
    return sum;
}

/* `ret_blocks`: how many are whole. */
static struct estimate by_blocks(const struct lab_contrast *contrast, enum lab_study_figure figure,
                                 int *ret_blocks) {
    int blocks = last_block(contrast) + 1;
    double *sums = lab_arena_alloc(contrast->arena, (size_t)blocks + 1, sizeof *sums);
    size_t n = 0;
    for (int b = 0; b < blocks; b++) {
        sums[n] = sum_of_block(contrast, b, figure);
        n += !isnan(sums[n]);
    }
    *ret_blocks = (int)n;
    return mean_of(sums, n);
}

double lab_contrast_variance(const struct lab_contrast *contrast, enum lab_study_figure figure,
                             double *ret_freedom) {
    int blocks;
    struct estimate estimate = by_blocks(contrast, figure, &blocks);
    *ret_freedom = estimate.freedom;
    return estimate.variance * blocks;
}

/* Never below the own variance: a point that varies more than others isn't taken for one of them.
 * Degrees of freedom are the prior's or the own: of few contrasts, their sum would be too many. */
static void moderate(const struct lab_contrast *contrast, int blocks, struct estimate *estimate) {
    double known = contrast->prior.freedom, own = estimate->variance * blocks,
           expected = contrast->prior.variance;
    if (!(known > 0))
        return;
    if (isfinite(known))
        expected = (known * expected + estimate->freedom * own) / (known + estimate->freedom);
    estimate->variance = fmax(own, expected) / blocks;
    estimate->freedom = fmax(estimate->freedom, fmin(known, contrast->prior_most));
}

/* Each point's runs by themselves; degrees of freedom by Welch and Satterthwaite. */
static struct estimate by_points(const struct lab_contrast *contrast,
                                 enum lab_study_figure figure) {
    struct estimate sum = {0, 0, NAN};
    double below = 0;
    for (int t = 0; t < contrast->count; t++) {
        const struct lab_study_point *point = contrast->terms[t].point;
        double weight = contrast->terms[t].weight;
        double *logs = lab_arena_alloc(contrast->arena, (size_t)point->count + 1, sizeof *logs);
        size_t n = 0;
        for (int i = 0; i < point->count; i++) {
            logs[n] = value_of(contrast, &contrast->terms[t], i, figure);
            n += !isnan(logs[n]);
        }
        double deviation = n > 1 ? lab_stats_stddev(logs, n) : (double)NAN;
        double variance = weight * weight * deviation * deviation / (double)n;
        sum.value += weight * (n > 0 ? lab_stats_mean(logs, n) : (double)NAN);
        sum.variance += variance;
        below += variance * variance / ((double)n - 1);
    }
    sum.freedom = below > 0 ? sum.variance * sum.variance / below : sum.variance == 0 ? 1 : NAN;
    return sum;
}

/* --- claims --- */

/* That detect an effect, of the logarithm. */
static int runs_for(double effect, double spread) {
    double needed = lab_stats_needed_t(effect / spread, POWER, LAB_CLAIM_LEVEL);
    return needed < INT_MAX ? (int)ceil(needed) : 0;
}

static void set_needed(struct lab_claim *claim, const struct estimate *estimate) {
    double spread = sqrt(estimate->variance * claim->n / 2), /* as of each of two sides */
        least = log1p(LAB_CLAIM_DETECT);
    if (claim->difference || !(spread > 0))
        return;
    claim->needed = runs_for(least, spread);
    claim->decisive = runs_for(fmax(least, fabs(estimate->value)), spread);
}

static void set_interval(struct lab_claim *claim, struct estimate estimate) {
    double error = sqrt(estimate.variance), distance = 0;
    claim->effect = claim->difference ? estimate.value : expm1(estimate.value);
    if (isnan(error) || isnan(estimate.freedom))
        return;
    if (error > EQUAL) {
        distance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, estimate.freedom);
        claim->p = lab_stats_t_two_sided(estimate.value / error, estimate.freedom);
    } else { /* nothing varies: what differs does so for certain */
        claim->p = fabs(estimate.value) <= EQUAL ? 1 : 0;
    }
    claim->low = estimate.value - distance;
    claim->high = estimate.value + distance;
    if (!claim->difference) {
        claim->low = expm1(claim->low);
        claim->high = expm1(claim->high);
    }
    claim->confidence = CONFIDENCE;
}

/* Of the point that has fewest. */
static int fewest_values(const struct lab_contrast *contrast, enum lab_study_figure figure) {
    int fewest = contrast->count > 0 ? INT_MAX : 0;
    for (int t = 0; t < contrast->count; t++) {
        int values = count_values(contrast, &contrast->terms[t], figure);
        fewest = values < fewest ? values : fewest;
    }
    return fewest;
}

static bool is_by_points(int blocks, int fewest) {
    return blocks < 2 || 2 * blocks < fewest;
}

double lab_contrast_mean(const struct lab_contrast *contrast, const struct lab_study_point *point,
                         enum lab_study_figure figure) {
    const struct lab_contrast_term *found = find_term(contrast, point);
    const struct lab_contrast_term term = found ? *found : make_term(contrast, point, 0);
    int blocks, n = 0;
    double sum = 0;
    by_blocks(contrast, figure, &blocks);
    bool all = is_by_points(blocks, fewest_values(contrast, figure));
    for (int i = 0; i < point->count; i++) {
        double value = value_of(contrast, &term, i, figure);
        const struct lab_run *run = point->runs[i]->run;
        if (isnan(value) || (!all && (!run || isnan(sum_of_block(contrast, run->repeat, figure)))))
            continue;
        sum += value;
        n++;
    }
    return n > 0 ? exp(sum / n) : (double)NAN;
}

struct lab_claim lab_claim_estimate(const struct lab_contrast *contrast,
                                    enum lab_study_figure figure) {
    struct lab_claim claim = lab_claim_none;
    int fewest = fewest_values(contrast, figure), blocks;
    claim.difference = contrast->difference;
    for (int subject = 0; subject < 2; subject++)
        for (int t = 0; t < contrast->count; t++)
            if ((contrast->terms[t].weight > 0) == subject)
                lab_claim_add_scope(&claim, contrast->terms[t].point->name, contrast->arena);
    claim.n = fewest;
    if (fewest == 0)
        return claim;
    struct estimate estimate = by_blocks(contrast, figure, &blocks);
    if (is_by_points(blocks, fewest)) {
        estimate = by_points(contrast, figure);
        for (int t = 0; t < contrast->count; t++) {
            int values = count_values(contrast, &contrast->terms[t], figure);
            claim.most = values > claim.most ? values : claim.most;
        }
    } else {
        claim.n = blocks;
        if (blocks < BLOCKS_TRUSTED)
            estimate.variance = fmax(estimate.variance, by_points(contrast, figure).variance);
        moderate(contrast, blocks, &estimate);
    }
    set_interval(&claim, estimate);
    set_needed(&claim, &estimate);
    lab_claim_judge(&claim, claim.p);
    return claim;
}

struct lab_claim lab_claim_from_blocks(const double *values, int count, const char *unit) {
    struct lab_claim claim = lab_claim_none;
    LAB_AUTO_FREE double *logs = lab_mem_resize(NULL, (size_t)count + 1, sizeof *logs);
    claim.unit = unit;
    for (int i = 0; i < count; i++) {
        logs[claim.n] = unit ? positive_log(values[i]) : values[i];
        claim.n += !isnan(logs[claim.n]);
    }
    struct estimate estimate = mean_of(logs, (size_t)claim.n);
    if (claim.n == 0)
        return claim;
    set_interval(&claim, estimate);
    set_needed(&claim, &estimate);
    if (unit) { /* the ratio to 1 of that unit */
        claim.effect += 1;
        claim.low += 1;
        claim.high += 1;
        claim.p = NAN;
    }
    lab_claim_judge(&claim, claim.p);
    return claim;
}

struct lab_claim lab_claim_from_amounts(const double *values, int count, const char *unit) {
    struct lab_claim claim = lab_claim_none;
    LAB_AUTO_FREE double *kept = lab_mem_resize(NULL, (size_t)count + 1, sizeof *kept);
    claim.unit = unit;
    for (int i = 0; i < count; i++) {
        kept[claim.n] = values[i];
        claim.n += !isnan(values[i]);
    }
    double mean = claim.n > 0 ? lab_stats_mean(kept, (size_t)claim.n) : (double)NAN;
    struct lab_interval interval = lab_stats_mean_interval(kept, (size_t)claim.n, CONFIDENCE);
    if (!(mean > 0))
        return claim;
    claim.effect = mean;
    if (claim.n > 1) {
        claim.low = fmax(0, interval.low);
        claim.high = interval.high;
        claim.confidence = CONFIDENCE;
    }
    lab_claim_judge(&claim, NAN);
    if (!(claim.low > 0))
        claim.verdict = LAB_CLAIM_INCONCLUSIVE;
    return claim;
}

/* Of those that are usable; `ret_count`: how many. */
static struct estimate mean_of_usable(const double *values, int count, const char *difference,
                                      int *ret_count) {
    LAB_AUTO_FREE double *kept = lab_mem_resize(NULL, (size_t)count + 1, sizeof *kept);
    *ret_count = 0;
    for (int i = 0; i < count; i++) {
        kept[*ret_count] = scaled(values[i], difference);
        *ret_count += !isnan(kept[*ret_count]);
    }
    return mean_of(kept, (size_t)*ret_count);
}

struct lab_claim lab_claim_from_differences(const double *base, int base_count, const double *other,
                                            int other_count, const char *unit) {
    struct lab_claim claim = lab_claim_none;
    int counts[2];
    struct estimate a = mean_of_usable(base, base_count, unit, &counts[0]),
                    b = mean_of_usable(other, other_count, unit, &counts[1]);
    struct estimate difference = {b.value - a.value, a.variance + b.variance, 1};
    claim.difference = unit;
    claim.n = counts[0] < counts[1] ? counts[0] : counts[1];
    if (claim.n == 0)
        return claim;
    if (difference.variance > 0)
        difference.freedom = lab_stats_welch_freedom(a.variance, a.freedom, b.variance, b.freedom);
    set_interval(&claim, difference);
    set_needed(&claim, &difference);
    lab_claim_judge(&claim, claim.p);
    return claim;
}

struct lab_claim lab_claim_from_samples(const double *base, int base_count, const double *other,
                                        int other_count) {
    return lab_claim_from_differences(base, base_count, other, other_count, NULL);
}

void lab_claim_adjust(struct lab_claim *const *claims, int count) {
    LAB_AUTO_FREE double *p = lab_mem_resize(NULL, (size_t)count + 1, sizeof *p);
    for (int i = 0; i < count; i++)
        p[i] = claims[i]->p;
    lab_stats_adjust_bh(p, (size_t)count, p);
    for (int i = 0; i < count; i++)
        lab_claim_judge(claims[i], p[i]);
}
