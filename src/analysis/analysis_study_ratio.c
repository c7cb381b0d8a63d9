/*
 * analysis_study_ratio.c: one point of a study against another, with interval and verdict.
 *
 * All of it is in logarithms: there a ratio is a difference, its interval lies within what is
 * possible, and base and other change places without changing the answer.
 */
#include "analysis/analysis_study.h"
#include "analysis/analysis_words.h"

#include "base/str.h"
#include "stats/stats.h"

#include <limits.h>
#include <math.h>

#define CONFIDENCE 0.95
#define LEVEL      0.05
#define POWER      0.8
#define EQUAL      1e-9 /* closer is rounding, not a difference */
#define VALUES_MIN 4    /* fewer say nothing about how they depend on each other */
#define VALUES_MAX 8192 /* more are taken together in groups of neighbours */

struct estimate { /* of a logarithm */
    double value;
    double variance; /* of the value */
    double freedom;  /* degrees; NaN = the variance isn't known */
    double spread;   /* standard deviation between runs; NaN = unknown */
    int runs;
};

static const struct estimate nothing = {NAN, NAN, NAN, NAN, 0};

/* --- within one run --- */

/* Means of neighbours in place of the values, in place; they are as good for the mean's
 * variance. */
static size_t group_neighbours(double *values, size_t count) {
    size_t size = (count + VALUES_MAX - 1) / VALUES_MAX, groups = size > 1 ? count / size : count;
    for (size_t i = 0; size > 1 && i < groups; i++)
        values[i] = lab_stats_mean(values + i * size, size);
    return groups;
}

static double worth(const double *values, size_t count) {
    double effective = lab_stats_effective_size(values, count);
    return effective > 2 ? effective : (double)NAN;
}

/* The rate is the reciprocal of the mean time between iterations, so that its logarithm has the
 * variance of the mean over its square. */
static void set_mean(struct estimate *estimate, const double *values, size_t count) {
    double mean = lab_stats_mean(values, count), deviation = lab_stats_stddev(values, count);
    double effective = worth(values, count);
    if (!(mean > 0))
        return;
    estimate->variance = deviation * deviation / (mean * mean) / effective;
    estimate->freedom = effective - 1;
}

/* The median's from the width of its interval, which needs no shape. */
static void set_median(struct estimate *estimate, const double *values, size_t count) {
    double *sorted = lab_mem_resize(NULL, count, sizeof *sorted), effective = worth(values, count);
    if (!isnan(effective) && lab_stats_sort(values, count, sorted)) {
        struct lab_interval interval =
            lab_stats_median_interval_sorted(sorted, count, effective, CONFIDENCE);
        double width = 2 * lab_stats_normal_quantile((1 + interval.confidence) / 2);
        if (interval.low > 0 && width > 0) {
            double error = log(interval.high / interval.low) / width;
            estimate->variance = error * error;
            estimate->freedom = effective - 1;
        }
    }
    lab_mem_free(sorted);
}

static struct estimate within_rank(const struct lab_study_rank *rank, double value,
                                   enum lab_study_figure figure) {
    struct estimate estimate = {value, NAN, NAN, NAN, 1};
    LAB_AUTO(arena, arena);
    size_t count;
    const double *intervals = lab_study_intervals(rank, &arena, &count);
    if (count >= VALUES_MIN) {
        double *values = lab_arena_alloc(&arena, count, sizeof *values);
        for (size_t i = 0; i < count; i++)
            values[i] = intervals[i];
        count = group_neighbours(values, count);
        if (figure == LAB_STUDY_RATE)
            set_mean(&estimate, values, count);
        else
            set_median(&estimate, values, count);
    }
    return estimate;
}

/* Of several ranks the one that is known least well. Without iterations, the interval that the run
 * itself reported. */
static struct estimate within(const struct lab_study_run *run, double value,
                              enum lab_study_figure figure) {
    struct estimate worst = {value, NAN, NAN, NAN, 1};
    for (int i = 0; i < run->rank_count; i++) {
        struct estimate one = within_rank(&run->ranks[i], value, figure);
        if (!isnan(one.freedom) && !(one.variance <= worst.variance))
            worst = one;
    }
    if (isnan(worst.freedom) && run->run && run->run->rate_low > 0 &&
        run->run->rate_high > run->run->rate_low) {
        double error = log(run->run->rate_high / run->run->rate_low) /
                       (2 * lab_stats_normal_quantile((1 + CONFIDENCE) / 2));
        worst.variance = error * error;
        worst.freedom = INFINITY;
    }
    return worst;
}

/* --- over runs --- */

/* `ret_only`: the run, where there is one with a value. */
static struct estimate over_runs(const struct lab_study_point *point, enum lab_study_figure figure,
                                 const struct lab_study_run **ret_only) {
    const double *values = figure == LAB_STUDY_RATE ? point->rates : point->times_s;
    double *logs = lab_mem_resize(NULL, (size_t)point->count + 1, sizeof *logs);
    struct estimate estimate = nothing;
    size_t n = 0;
    *ret_only = NULL;
    for (int i = 0; i < point->count; i++) {
        if (!(values[i] > 0) || isinf(values[i]))
            continue;
        *ret_only = point->runs ? point->runs[i] : NULL;
        logs[n++] = log(values[i]);
    }
    estimate.runs = (int)n;
    if (n > 0)
        estimate.value = lab_stats_mean(logs, n);
    if (n > 1) {
        estimate.spread = lab_stats_stddev(logs, n);
        estimate.variance = estimate.spread * estimate.spread / (double)n;
        estimate.freedom = (double)n - 1;
    }
    lab_mem_free(logs);
    return estimate;
}

/* --- both --- */

static void set_interval(struct lab_study_ratio *ratio, double difference, double variance,
                         double freedom) {
    if (isnan(freedom) || isnan(variance))
        return;
    double error = sqrt(variance), distance = 0;
    if (error > EQUAL) {
        if (isinf(freedom))
            freedom = 1e6;
        distance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom);
        ratio->p = lab_stats_t_two_sided(difference / error, freedom);
    } else { /* nothing varies: what is different is so for certain */
        ratio->p = fabs(difference) <= EQUAL ? 1 : 0;
        difference = fabs(difference) <= EQUAL ? 0 : difference;
    }
    ratio->low = exp(difference - distance);
    ratio->high = exp(difference + distance);
    ratio->confidence = CONFIDENCE;
    ratio->bound = fmax(fabs(ratio->low - 1), fabs(ratio->high - 1));
}

static double pooled(const struct estimate *base, const struct estimate *other) {
    if (isnan(base->spread) || isnan(other->spread))
        return isnan(base->spread) ? other->spread : base->spread;
    double a = base->runs - 1, b = other->runs - 1;
    return sqrt((a * base->spread * base->spread + b * other->spread * other->spread) / (a + b));
}

static int needed_runs(const struct lab_study_ratio *ratio) {
    double effect = fabs(log(ratio->ratio)) / ratio->spread;
    if (!(ratio->spread > 0) || !(effect > 0) || isinf(effect))
        return 0;
    int here = ratio->base_runs < ratio->other_runs ? ratio->base_runs : ratio->other_runs;
    double needed = lab_stats_needed_t(effect, POWER, LEVEL);
    if (!(needed < INT_MAX))
        return 0;
    return needed > here ? (int)needed : here + 1; /* as many were here, and didn't decide it */
}

static void judge(struct lab_study_ratio *ratio, double p) {
    ratio->verdict = LAB_STUDY_UNDECIDED;
    ratio->needed = 0;
    if (isnan(ratio->ratio) || isnan(ratio->low))
        return;
    if (ratio->within) /* its interval knows nothing of what another run would give */
        return;
    if (p <= LEVEL && !(ratio->low <= 1 && ratio->high >= 1)) {
        ratio->verdict = ratio->ratio > 1 ? LAB_STUDY_MORE : LAB_STUDY_LESS;
        return;
    }
    ratio->verdict = LAB_STUDY_SAME;
    ratio->needed = needed_runs(ratio);
}

struct lab_study_ratio lab_study_compare(const struct lab_study_point *base,
                                         const struct lab_study_point *other,
                                         enum lab_study_figure figure) {
    const struct lab_study_run *only_base, *only_other;
    struct estimate a = over_runs(base, figure, &only_base),
                    b = over_runs(other, figure, &only_other);
    struct lab_study_ratio ratio = {.ratio = exp(b.value - a.value),
                                    .low = NAN,
                                    .high = NAN,
                                    .bound = NAN,
                                    .p = NAN,
                                    .spread = pooled(&a, &b),
                                    .within = a.runs == 1 && b.runs == 1,
                                    .base_runs = a.runs,
                                    .other_runs = b.runs};
    bool shared = a.runs > 0 && b.runs > 0 && (a.runs == 1) != (b.runs == 1);
    if (ratio.within && only_base && only_other) {
        a = within(only_base, a.value, figure);
        b = within(only_other, b.value, figure);
    } else if (shared) { /* the spread of those that have one stands for the single run too */
        struct estimate *single = a.runs == 1 ? &a : &b, *several = a.runs == 1 ? &b : &a;
        single->variance = several->spread * several->spread;
        single->freedom = several->freedom;
    }
    double freedom =
        shared ? a.freedom : lab_stats_welch_freedom(a.variance, a.freedom, b.variance, b.freedom);
    if (a.variance + b.variance <= EQUAL * EQUAL && !isnan(a.freedom + b.freedom))
        freedom = 1;
    set_interval(&ratio, b.value - a.value, a.variance + b.variance, freedom);
    judge(&ratio, ratio.p);
    return ratio;
}

void lab_study_adjust(struct lab_study_ratio *ratios, int count) {
    double *p = lab_mem_resize(NULL, (size_t)count + 1, sizeof *p);
    for (int i = 0; i < count; i++)
        p[i] = ratios[i].p;
    lab_stats_adjust_bh(p, (size_t)count, p);
    for (int i = 0; i < count; i++)
        judge(&ratios[i], p[i]);
    lab_mem_free(p);
}

/* --- words --- */

static double without_minus_zero(double percent) {
    return fabs(percent) < 0.05 ? 0 : percent;
}

const char *lab_study_ratio_words(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    if (isnan(ratio->ratio))
        return "unknown";
    double percent = without_minus_zero(100 * (ratio->ratio - 1));
    if (isnan(ratio->low))
        return lab_arena_printf(arena, "%+.1f %%, how sure is unknown", percent);
    if (ratio->verdict == LAB_STUDY_SAME && ratio->bound <= EQUAL)
        return "none";
    if (ratio->verdict == LAB_STUDY_SAME && ratio->bound > LAB_WORDS_BOUND_MOST)
        return lab_arena_printf(arena, "%+.1f %%, uneven", percent);
    if (ratio->verdict == LAB_STUDY_SAME) /* rounded up: it has to hold */
        return lab_arena_printf(arena, "none larger than %.1f %%",
                                ceil(1000 * ratio->bound - 1e-9) / 10);
    return lab_arena_printf(
        arena, "%+.1f %% [%.1f, %.1f]%s", percent, without_minus_zero(100 * (ratio->low - 1)),
        without_minus_zero(100 * (ratio->high - 1)), ratio->within ? " within one run each" : "");
}
