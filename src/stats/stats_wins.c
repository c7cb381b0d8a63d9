/*
 * stats_wins.c: which of several samples has the largest mean, and how often it would have again.
 *
 * Drawing each sample's own values again fails where they are few: two values have one deviation.
 * The deviations of all samples are drawn from instead.
 */
#include "stats/stats.h"

#include "base/mem.h"
#include "base/random.h"

#include <math.h>

#define TAIL                                                                                       \
    0.975 /* where the widths of t and normal are compared: the ends of an interval at 95 % */

struct pool {
    double *deviations;
    size_t count;
    double *means; /* of the samples */
};

static bool is_finite(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return n > 0;
}

/* Deviations are 0 for a sample of one: they would say that nothing varies, and aren't taken. */
static void gather(struct pool *pool, const double *const *samples, const size_t *sizes,
                   size_t count) {
    double freedom = 0;
    pool->count = 0;
    for (size_t s = 0; s < count; s++) {
        size_t n = sizes[s];
        pool->means[s] = lab_stats_mean(samples[s], n);
        if (n < 2)
            continue;
        freedom += (double)n - 1;
        double widened = sqrt((double)n / (double)(n - 1));
        for (size_t i = 0; i < n; i++)
            pool->deviations[pool->count++] = widened * (samples[s][i] - pool->means[s]);
    }
    if (freedom < 1)
        return;
    double factor = lab_stats_t_quantile(TAIL, freedom) / lab_stats_normal_quantile(TAIL);
    for (size_t i = 0; i < pool->count; i++)
        pool->deviations[i] *= factor;
}

static size_t winner(const struct pool *pool, const size_t *sizes, size_t count, uint64_t seed,
                     uint64_t *index) {
    size_t first = 0, equal = 1;
    double most = -INFINITY;
    for (size_t s = 0; s < count; s++) {
        double sum = 0;
        for (size_t i = 0; i < sizes[s]; i++)
            sum += pool->deviations[lab_random_below(seed, (*index)++, pool->count)];
        double mean = pool->means[s] + sum / (double)sizes[s];
        equal = mean > most ? 1 : equal + (mean == most);
        /* of equal ones each has the same chance, whichever comes first in the list */
        if (mean > most || (mean == most && lab_random_below(seed, (*index)++, equal) == 0))
            first = s;
        most = fmax(most, mean);
    }
    return first;
}

bool lab_stats_wins(const double *const *samples, const size_t *sizes, size_t count, int resamples,
                    uint64_t seed, int *ret_wins) {
    size_t total = 0;
    bool usable = count > 0;
    for (size_t s = 0; s < count; s++) {
        usable = usable && is_finite(samples[s], sizes[s]);
        total += sizes[s];
    }
    if (!usable || total <= count)
        return false;
    struct pool pool = {.deviations = lab_mem_alloc(total, sizeof(double)),
                        .means = lab_mem_alloc(count, sizeof(double))};
    uint64_t index = 0;
    gather(&pool, samples, sizes, count);
    for (size_t s = 0; s < count; s++)
        ret_wins[s] = 0;
    for (int r = 0; r < resamples; r++)
        ret_wins[winner(&pool, sizes, count, seed, &index)]++;
    lab_mem_free(pool.deviations);
    lab_mem_free(pool.means);
    return true;
}
