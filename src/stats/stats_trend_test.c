/*
 * stats_trend_test.c: generalised least squares under each of a grid of wanders, by a Kalman filter
 * that makes values and regressors independent, and the likelihood that tells which of them are
 * plausible (restricted, so that levels that were taken off don't make memory look short).
 */
#include "stats/trend_test.h"

#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>
#include <stdbool.h>

#define MEMORY_STEP  3.0 /* between neighbouring memories of the grid */
#define MEMORY_MOST  3.0 /* times the series: beyond it a wander is the same slope or walk */
#define MEMORIES_MAX 32
#define ROUNDING     1e-12 /* the least spread, of the largest value */

/* Independent part over the wandering one; the first is nothing but wander. */
static const double ratios[] = {0, 0.01, 0.1, 1, 10, 100};
#define RATIOS (sizeof ratios / sizeof *ratios)

struct ar1 {
    double memory_s; /* 0: nothing wanders */
    double share;    /* of the variance that wanders */
};

struct sums { /* of values y, ones o and a regressor z, made independent */
    double yy, oo, oy, zz, oz, zy;
    double log_variance;
};

/* Of values first … behind − 1; z may be NULL. */
static struct sums filter(const struct lab_trend_series *series, size_t first, size_t behind,
                          const double *z, struct ar1 ar1) {
    struct sums sums = {0};
    double state_y = 0, state_o = 0, state_z = 0, variance = ar1.share;
    for (size_t i = first; i < behind; i++) {
        double whole = variance + 1 - ar1.share, gain = variance / whole;
        double y = series->values[i] - state_y, o = 1 - state_o, of_z = z ? z[i] - state_z : 0;
        sums.yy += y * y / whole;
        sums.oo += o * o / whole;
        sums.oy += o * y / whole;
        sums.zz += of_z * of_z / whole;
        sums.oz += o * of_z / whole;
        sums.zy += of_z * y / whole;
        sums.log_variance += log(whole);
        if (i + 1 == behind || ar1.share == 0)
            continue;
        double kept = exp(-(series->times_s[i + 1] - series->times_s[i]) / ar1.memory_s);
        state_y = kept * (state_y + gain * y);
        state_o = kept * (state_o + gain * o);
        state_z = kept * (state_z + gain * of_z);
        variance = kept * kept * variance * (1 - gain) + ar1.share * (1 - kept * kept);
    }
    return sums;
}

struct fit { /* of all segments under one wander */
    struct ar1 ar1;
    double squares, freedom, log_variance; /* what is left, and what the likelihood needs besides */
    double value, unit;                    /* of z, and its error for a spread of 1 */
    double error;                          /* of the value */
    double unlikely;                       /* −2 log of the restricted likelihood */
};

static void add_level(struct fit *fit, const struct sums *sums, size_t count) {
    fit->squares += fmax(0, sums->yy - sums->oy * sums->oy / sums->oo);
    fit->log_variance += sums->log_variance + log(sums->oo);
    fit->freedom += (double)count - 1;
}

static void add_effect(struct fit *fit, const struct sums *sums, size_t count) {
    double determinant = sums->oo * sums->zz - sums->oz * sums->oz;
    fit->value = (sums->oo * sums->zy - sums->oz * sums->oy) / determinant;
    fit->unit = sqrt(sums->oo / determinant);
    fit->squares += fmax(0, sums->yy - sums->oy * sums->oy / sums->oo -
                                fit->value * fit->value * determinant / sums->oo);
    fit->log_variance += sums->log_variance + log(determinant);
    fit->freedom += (double)count - 2;
}

/* --- the grid --- */

struct grid {
    struct fit fits[MEMORIES_MAX * RATIOS + 1];
    size_t count;
    double likeliest; /* −2 log */
};

static void make_grid(struct grid *grid, const struct lab_trend_series *series) {
    double span_s = series->times_s[series->n - 1] - series->times_s[0];
    double memory_s = span_s / (double)series->n;
    grid->count = 0;
    grid->fits[grid->count++] = (struct fit){.ar1 = {0, 0}};
    for (int m = 0; m < MEMORIES_MAX && memory_s < MEMORY_MOST * MEMORY_STEP * span_s; m++) {
        for (size_t r = 0; r < RATIOS; r++)
            grid->fits[grid->count++] =
                (struct fit){.ar1 = {fmin(memory_s, MEMORY_MOST * span_s), 1 / (1 + ratios[r])}};
        memory_s *= MEMORY_STEP;
    }
}

static void judge_grid(struct grid *grid, const struct lab_trend_series *series) {
    double largest = 0;
    for (size_t i = 0; i < series->n; i++)
        largest = fmax(largest, fabs(series->values[i]));
    double least = fmax(ROUNDING * largest, 1e-300);
    grid->likeliest = INFINITY;
    for (size_t i = 0; i < grid->count; i++) {
        struct fit *fit = &grid->fits[i];
        fit->squares = fmax(fit->squares, (double)series->n * least * least);
        fit->unlikely = fit->freedom * log(fit->squares / fit->freedom) + fit->log_variance;
        fit->error = fit->unit * sqrt(fit->squares / fit->freedom);
        grid->likeliest = fmin(grid->likeliest, fit->unlikely);
    }
}

/* Twice the log likelihood that an effect of t errors loses if it is taken for none; the other
 * way. */
static double loss_of(double t, double freedom) {
    return freedom * log1p(t * t / freedom);
}

static double t_of(double loss, double freedom) {
    return sqrt(freedom * expm1(loss / freedom));
}

/*
 * The region of effects and memories that the likelihood leaves, for the two of them together (χ²
 * of two degrees: −2 ln of what is missed), and of that region the effects. For the effect alone
 * (one degree) it would miss it in up to 13 % instead of 5 % where memory is as long as the series.
 */
static struct lab_trend_effect take_effect(const struct grid *grid, double miss) {
    struct lab_trend_effect effect = {NAN, INFINITY, -INFINITY, NAN, NAN};
    double freedom = grid->fits[0].freedom, allowed = -2 * log(miss), least = INFINITY;
    for (size_t i = 0; i < grid->count; i++) {
        const struct fit *fit = &grid->fits[i];
        double lost = fit->unlikely - grid->likeliest;
        least = fmin(least, lost + loss_of(fit->value / fit->error, freedom));
        if (lost <= allowed) {
            double margin = fit->error * t_of(allowed - lost, freedom);
            effect.low = fmin(effect.low, fit->value - margin);
            effect.high = fmax(effect.high, fit->value + margin);
        }
        if (lost == 0) {
            effect.value = fit->value;
            effect.memory_s = fit->ar1.memory_s;
        }
    }
    effect.p = exp(-least / 2);
    return effect;
}

static bool usable(const struct lab_trend_series *series, size_t least) {
    if (series->n < least)
        return false;
    for (size_t i = 0; i < series->n; i++)
        if (!isfinite(series->values[i]) || !isfinite(series->times_s[i]))
            return false;
    return series->times_s[series->n - 1] > series->times_s[0];
}

static const struct lab_trend_effect unknown = {NAN, NAN, NAN, NAN, NAN};

struct lab_trend_effect lab_trend_slope(const struct lab_trend_series *series, double confidence) {
    if (!usable(series, 4))
        return unknown;
    LAB_AUTO_FREE struct grid *grid = lab_mem_alloc(1, sizeof *grid);
    make_grid(grid, series);
    double *z = lab_mem_resize(NULL, series->n, sizeof *z),
           middle_s = lab_stats_mean(series->times_s, series->n);
    for (size_t i = 0; i < series->n; i++)
        z[i] = series->times_s[i] - middle_s;
    for (size_t i = 0; i < grid->count; i++) {
        struct sums sums = filter(series, 0, series->n, z, grid->fits[i].ar1);
        add_effect(&grid->fits[i], &sums, series->n);
    }
    judge_grid(grid, series);
    struct lab_trend_effect effect = take_effect(grid, 1 - confidence);
    lab_mem_free(z);
    return effect;
}

struct lab_trend_effect lab_trend_step(const struct lab_trend_series *series, const size_t *starts,
                                       size_t start_count, size_t which, double confidence,
                                       size_t places) {
    if (!usable(series, start_count + 3) || which >= start_count)
        return unknown;
    struct grid *grid = lab_mem_alloc(1, sizeof *grid);
    make_grid(grid, series);
    double *z = lab_mem_alloc(series->n, sizeof *z);
    for (size_t i = starts[which]; i < series->n; i++)
        z[i] = 1;
    for (size_t i = 0; i < grid->count; i++)
        for (size_t s = 0; s <= start_count; s++) {
            bool both = s == which; /* sides of the step at once */
            size_t first = s > 0 ? starts[s - 1] : 0, last = both ? s + 1 : s;
            size_t behind = last < start_count ? starts[last] : series->n;
            struct sums sums = filter(series, first, behind, both ? z : NULL, grid->fits[i].ar1);
            if (both)
                add_effect(&grid->fits[i], &sums, behind - first);
            else
                add_level(&grid->fits[i], &sums, behind - first);
            s = last;
        }
    judge_grid(grid, series);
    struct lab_trend_effect effect =
        take_effect(grid, (1 - confidence) / (double)(places > 0 ? places : 1));
    lab_mem_free(z);
    lab_mem_free(grid);
    return effect;
}
