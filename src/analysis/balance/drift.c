/* drift.c: trends and correlations by ranks. */
#include "analysis/balance/drift.h"

#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

#define ALPHA     0.05
#define POINT     0.01
#define EXACT_MAX 40 /* values for which all orders are counted; beyond, S is normal enough */
#define PAIRS_MIN 5  /* fewer can't be significant at 5 % by any order */

/*
 * P(S ≥ s) over all orders of n values. The number of orders with k inversions builds up value by
 * value: the n-th adds 0 to n − 1 of them; S = n(n−1)/2 − 2k.
 */
static double exact_tail(int n, int s) {
    int pairs = n * (n - 1) / 2;
    double *share = lab_mem_alloc((size_t)pairs + 1, sizeof *share);
    double *next = lab_mem_alloc((size_t)pairs + 1, sizeof *next);
    share[0] = 1;
    for (int m = 2; m <= n; m++) {
        double sum = 0;
        for (int k = 0; k <= m * (m - 1) / 2; k++) {
            sum += share[k];
            if (k >= m)
                sum -= share[k - m];
            next[k] = sum / m;
        }
        for (int k = 0; k <= m * (m - 1) / 2; k++)
            share[k] = next[k];
    }
    double tail = 0;
    for (int k = 0; k <= (pairs - s) / 2; k++)
        tail += share[k];
    lab_mem_free(share);
    lab_mem_free(next);
    return tail;
}

static double tail_of(int n, int s) {
    if (n <= EXACT_MAX)
        return exact_tail(n, s);
    double variance = (double)n * (n - 1) * (2.0 * n + 5) / 18;
    return 1 - lab_stats_normal_cdf((s - 1) / sqrt(variance));
}

struct lab_drift lab_drift_make(const double *values, int count) {
    struct lab_drift drift = {0, NAN, NAN, -1};
    double *there = lab_mem_alloc((size_t)count + 1, sizeof *there);
    int n = 0, s = 0;
    for (int i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        there[n++] = values[i];
        if (drift.worst < 0 || values[i] > values[drift.worst])
            drift.worst = i;
    }
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            s += (there[k] > there[i]) - (there[k] < there[i]);
    int third = n / 3 > 0 ? n / 3 : n;
    if (n > 0) {
        drift.first = lab_stats_median(there, (size_t)third);
        drift.last = lab_stats_median(there + n - third, (size_t)third);
    }
    if (n >= PAIRS_MIN && 2 * tail_of(n, abs(s)) < ALPHA && fabs(drift.last - drift.first) >= POINT)
        drift.direction = s > 0 ? 1 : -1;
    lab_mem_free(there);
    return drift;
}

/* Ties share the mean of their ranks. */
static void rank(const double *values, int count, double *ret_ranks) {
    for (int i = 0; i < count; i++) {
        int below = 0, same = 0;
        for (int k = 0; k < count; k++) {
            below += values[k] < values[i];
            same += values[k] == values[i];
        }
        ret_ranks[i] = below + (same + 1) / 2.0;
    }
}

struct lab_rank_correlation lab_rank_correlation_make(const double *a, const double *b, int count) {
    struct lab_rank_correlation result = {NAN, false};
    if (count < PAIRS_MIN)
        return result;
    double *ranks = lab_mem_alloc(2 * (size_t)count, sizeof *ranks), *others = ranks + count;
    double middle = (count + 1) / 2.0, common = 0, of_a = 0, of_b = 0;
    rank(a, count, ranks);
    rank(b, count, others);
    for (int i = 0; i < count; i++) {
        common += (ranks[i] - middle) * (others[i] - middle);
        of_a += (ranks[i] - middle) * (ranks[i] - middle);
        of_b += (others[i] - middle) * (others[i] - middle);
    }
    lab_mem_free(ranks);
    if (of_a == 0 || of_b == 0)
        return result;
    double r = common / sqrt(of_a * of_b);
    result.coefficient = r;
    double t = fabs(r) * sqrt((count - 2) / fmax(1e-300, 1 - r * r));
    result.significant = t > lab_stats_t_quantile(1 - ALPHA / 2, count - 2);
    return result;
}
