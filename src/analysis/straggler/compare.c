/*
 * compare.c: one metric of all units: who deviates from the peers, and what would have been
 * found.
 */
#include "analysis/straggler/straggler.h"

#include "stats/stats.h"

#include <math.h>

#define PRIOR      4 /* units that the expected spread is worth */
#define POWER      0.8
#define WHOLE      0.9 /* of the windows: every unit was read in them */
#define CONFIDENCE 0.95

struct sample {
    double **values; /* by unit, then by window; windows that every unit has */
    int units, windows;
    double *means;
    bool *out; /* no longer a peer */
    double expected;
};

struct contrast {         /* of a unit against those that are peers */
    double effect, error; /* standard error over the windows */
    double effective;     /* windows that are worth an independent one */
    double spread2, freedom;
    double t;
};

/* Of a unit in `by` windows from w on; NaN = it was not read in them. */
static double mean_of(const double *windows, int w, int by) {
    double sum = 0;
    int count = 0;
    for (int i = w; i < w + by; i++)
        if (!isnan(windows[i])) {
            sum += windows[i];
            count++;
        }
    return count ? sum / count : (double)NAN;
}

/* Takes those in which every unit was read, where `by` windows are one. Returns how many. */
static int take_windows(struct sample *sample, double *const *windows, int count, int by) {
    sample->windows = 0;
    for (int w = 0; w + by <= count; w += by) {
        bool whole = true;
        for (int u = 0; u < sample->units; u++) {
            double mean = mean_of(windows[u], w, by);
            sample->values[u][sample->windows] = mean;
            whole &= !isnan(mean);
        }
        sample->windows += whole;
    }
    return sample->windows;
}

/* Drivers give some metrics less often than others: these have wider windows. */
static void choose_windows(struct sample *sample, double *const *windows, int count) {
    int best = 1, most = 0;
    for (int by = 1; count / by >= LAB_STRAGGLER_WINDOWS; by++) {
        int all = count / by, whole = take_windows(sample, windows, count, by);
        if (whole >= WHOLE * all)
            return;
        best = whole > most ? by : best;
        most = whole > most ? whole : most;
    }
    take_windows(sample, windows, count, best);
}

static struct sample make_sample(double *const *windows, int units, int count, double expected,
                                 struct lab_arena *arena) {
    struct sample sample = {.units = units, .expected = expected};
    sample.values = lab_arena_alloc(arena, (size_t)units, sizeof *sample.values);
    sample.means = lab_arena_alloc(arena, (size_t)units, sizeof *sample.means);
    sample.out = lab_arena_alloc(arena, (size_t)units, sizeof *sample.out);
    for (int u = 0; u < units; u++)
        sample.values[u] = lab_arena_alloc(arena, (size_t)count + 1, sizeof **sample.values);
    choose_windows(&sample, windows, count);
    for (int u = 0; u < units; u++)
        sample.means[u] = lab_stats_mean(sample.values[u], (size_t)sample.windows);
    return sample;
}

/* Mean and variance of the means of all peers but one; -1 = of all. Returns how many. */
static int describe_peers(const struct sample *sample, int but, double *ret_mean,
                          double *ret_variance) {
    double sum = 0, squares = 0;
    int count = 0;
    for (int u = 0; u < sample->units; u++)
        if (u != but && !sample->out[u]) {
            sum += sample->means[u];
            count++;
        }
    *ret_mean = sum / count;
    for (int u = 0; u < sample->units; u++)
        if (u != but && !sample->out[u])
            squares += pow(sample->means[u] - *ret_mean, 2);
    *ret_variance = count > 1 ? squares / (count - 1) : 0;
    return count;
}

static double moderate(const struct sample *sample, double variance, int count,
                       double *ret_freedom) {
    *ret_freedom = PRIOR + count - 1;
    return (PRIOR * pow(sample->expected, 2) + (count - 1) * variance) / *ret_freedom;
}

static struct contrast contrast_of(const struct sample *sample, int unit) {
    struct contrast contrast;
    double mean, variance, n = sample->windows;
    int peers = describe_peers(sample, unit, &mean, &variance);
    LAB_AUTO_FREE double *series = lab_mem_alloc((size_t)sample->windows, sizeof *series);
    for (int w = 0; w < sample->windows; w++) {
        double sum = 0;
        for (int u = 0; u < sample->units; u++)
            sum += u != unit && !sample->out[u] ? sample->values[u][w] : 0;
        series[w] = (sample->values[unit][w] - sum / peers) / mean;
    }
    contrast.effect = lab_stats_mean(series, (size_t)n);
    contrast.effective = lab_stats_effective_size(series, (size_t)n);
    contrast.error = lab_stats_stddev(series, (size_t)n) / sqrt(contrast.effective);
    contrast.spread2 = moderate(sample, variance / (mean * mean), peers, &contrast.freedom);
    contrast.t = contrast.effect /
                 sqrt(contrast.spread2 * (1 + 1.0 / peers) + contrast.error * contrast.error);
    return contrast;
}

/* Rosner's steps: removes the most extreme one by one. */
static void find_odd(struct sample *sample, double level, struct lab_arena *arena) {
    int most = sample->units == 2 ? 1 : (sample->units - 1) / 2, found = 0;
    int *order = lab_arena_alloc(arena, (size_t)most + 1, sizeof *order);
    for (int step = 0; step < most; step++) {
        struct contrast extreme = {.t = 0};
        order[step] = 0;
        for (int u = 0; u < sample->units; u++) {
            if (sample->out[u])
                continue;
            struct contrast contrast = contrast_of(sample, u);
            if (fabs(contrast.t) >= fabs(extreme.t)) {
                extreme = contrast;
                order[step] = u;
            }
        }
        if (lab_stats_t_two_sided(extreme.t, extreme.freedom) <= level)
            found = step + 1;
        sample->out[order[step]] = true;
    }
    for (int step = found; step < most; step++)
        sample->out[order[step]] = false;
}

/* Of the peers' contrasts, which tell how far the windows scatter. */
static double median_error2(const struct sample *sample, struct lab_arena *arena) {
    double *errors = lab_arena_alloc(arena, (size_t)sample->units, sizeof *errors);
    size_t count = 0;
    for (int u = 0; u < sample->units; u++)
        if (!sample->out[u] || sample->units == 2)
            errors[count++] = pow(contrast_of(sample, u).error, 2);
    return lab_stats_median(errors, count);
}

void lab_straggler_compare(double *const *windows, int units, int count, double spread, int family,
                           struct lab_arena *arena, struct lab_straggler_comparison *ret) {
    struct sample sample = make_sample(windows, units, count, spread, arena);
    double mean, variance, freedom;
    *ret = (struct lab_straggler_comparison){
        .units = lab_arena_alloc(arena, (size_t)units + 1, sizeof *ret->units),
        .peers = NAN,
        .spread = NAN,
        .limit = NAN};
    if (sample.windows < LAB_STRAGGLER_WINDOWS || units < 2 || family < 1)
        return;
    double level = LAB_CLAIM_LEVEL / ((units == 2 ? 1 : units) * family);
    ret->tested = true;
    find_odd(&sample, level, arena);
    double error2 = median_error2(&sample, arena);
    if (units == 2 && (sample.out[0] || sample.out[1])) { /* which one, nobody knows */
        sample.out[0] = sample.out[1] = false;
        ret->units[0].odd = ret->units[1].odd = true;
    }
    int peers = describe_peers(&sample, -1, &mean, &variance);
    ret->peers = mean;
    ret->spread = peers > 1 ? sqrt(variance) / mean : (double)NAN;
    int others = peers == units ? units - 1 : peers; /* that a unit is compared with */
    double spread2 = moderate(&sample, variance / (mean * mean), others, &freedom);
    ret->limit =
        (lab_stats_t_quantile(1 - level / 2, freedom) + lab_stats_t_quantile(POWER, freedom)) *
        sqrt(spread2 * (1 + 1.0 / others) + error2);
    for (int u = 0; u < units; u++) {
        struct lab_straggler_deviation *deviation = &ret->units[u];
        struct contrast contrast = contrast_of(&sample, u);
        double half =
            lab_stats_t_quantile(1 - (1 - CONFIDENCE) / 2, fmax(1, contrast.effective - 1)) *
            contrast.error;
        deviation->effect = contrast.effect;
        deviation->low = contrast.effect - half;
        deviation->high = contrast.effect + half;
        /* few windows that count may not even tell on which side of its peers it is */
        deviation->odd = (deviation->odd || sample.out[u]) && fabs(contrast.effect) > half;
    }
}
