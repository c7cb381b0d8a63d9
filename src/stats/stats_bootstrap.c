/* stats_bootstrap.c: intervals by resampling blocks, drawn by counter, so that they repeat. */
#include "base/mem.h"
#include "base/random.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

static const struct lab_interval unknown = {NAN, NAN, NAN};

static bool answerable(const double *x, size_t n, double confidence, int resamples) {
    bool sane = n >= 2 && resamples >= 1 && confidence > 0 && confidence < 1;
    for (size_t i = 0; sane && i < n; i++)
        sane = !isnan(x[i]);
    return sane;
}

/* Lower tail that gives a percentile interval of `blocks` values the width of a t interval. */
static double expanded_tail(double confidence, double blocks) {
    double tail = (1 - confidence) / 2;
    if (blocks < 2)
        return 0; /* one block can't tell its spread: everything */
    double t = lab_stats_t_quantile(tail, blocks - 1);
    return lab_stats_normal_cdf(t * sqrt(blocks / (blocks - 1)));
}

/* One resample of circular blocks; the last one is cut to fit. */
static void draw_blocks(const double *x, size_t n, size_t block, uint64_t seed, uint64_t *index,
                        double *ret_drawn) {
    for (size_t i = 0; i < n; i += block) {
        size_t start = lab_random_below(seed, (*index)++, n);
        size_t length = n - i < block ? n - i : block;
        size_t before_wrap = n - start < length ? n - start : length;
        memcpy(ret_drawn + i, x + start, before_wrap * sizeof *x);
        memcpy(ret_drawn + i + before_wrap, x, (length - before_wrap) * sizeof *x);
    }
}

struct lab_interval lab_stats_block_interval(const double *x, size_t n, lab_statistic *statistic,
                                             size_t block, double confidence, int resamples,
                                             uint64_t seed) {
    if (!answerable(x, n, confidence, resamples))
        return unknown;
    if (block == 0)
        block = lab_stats_block_length(x, n);
    block = block > n ? n : block;
    double *drawn = lab_mem_resize(NULL, n, sizeof *drawn);
    double *values = lab_mem_resize(NULL, 2 * (size_t)resamples, sizeof *values);
    double *sorted = values + resamples;
    uint64_t index = 0;
    for (int r = 0; r < resamples; r++) {
        draw_blocks(x, n, block, seed, &index, drawn);
        values[r] = statistic(drawn, n);
    }
    struct lab_interval interval = unknown;
    if (lab_stats_sort(values, (size_t)resamples, sorted)) {
        double tail = expanded_tail(confidence, (double)n / (double)block);
        interval = (struct lab_interval){
            lab_stats_quantile_sorted(sorted, (size_t)resamples, tail),
            lab_stats_quantile_sorted(sorted, (size_t)resamples, 1 - tail), confidence};
    }
    lab_mem_free(values);
    lab_mem_free(drawn);
    return interval;
}
