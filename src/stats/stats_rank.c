/* stats_rank.c: ranks, and the trend of a series by the order of its pairs. */
#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX 40

struct numbered {
    double value;
    size_t index;
};

static int compare(const void *a, const void *b) {
    double left = ((const struct numbered *)a)->value, right = ((const struct numbered *)b)->value;
    return (left > right) - (left < right);
}

bool lab_stats_ranks(const double *x, size_t n, double *ret_ranks) {
    LAB_AUTO_FREE struct numbered *order = lab_mem_resize(NULL, n + 1, sizeof *order);
    bool ordered = true;
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct numbered){x[i], i};
        ordered = ordered && !isnan(x[i]);
    }
    if (ordered)
        qsort(order, n, sizeof *order, compare);
    for (size_t i = 0, next; ordered && i < n; i = next) {
        next = i + 1;
        while (next < n && order[next].value == order[i].value)
            next++;
        for (size_t k = i; k < next; k++)
            ret_ranks[order[k].index] = (double)(i + next + 1) / 2;
    }
    return ordered;
}

/* Sorts `x` by merging and returns in how many pairs an earlier value was the larger. */
static double count_falls(double *x, double *spare, size_t n) {
    double falls = 0;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            size_t middle = n - start < width ? n : start + width;
            size_t end = n - start < 2 * width ? n : start + 2 * width;
            size_t i = start, j = middle, to = start;
            while (i < middle && j < end) {
                if (x[j] < x[i]) {
                    falls += (double)(middle - i);
                    spare[to++] = x[j++];
                } else {
                    spare[to++] = x[i++];
                }
            }
            memcpy(spare + to, x + i, (middle - i) * sizeof *x);
            memcpy(spare + to + (middle - i), x + j, (end - j) * sizeof *x);
        }
        memcpy(x, spare, n * sizeof *x);
    }
    return falls;
}

/* P(at most `falls` pairs fall) over all orders of n values: of those the numbers are the
 * coefficients of Π (1 − q^m) / (1 − q), m = 2 to n. */
static double exact_tail(size_t n, size_t falls) {
    double *orders = lab_mem_alloc(falls + 1, sizeof *orders), total = 1, sum = 0;
    orders[0] = 1;
    for (size_t m = 2; m <= n; m++) {
        for (size_t v = falls; v >= m; v--)
            orders[v] -= orders[v - m];
        for (size_t v = 1; v <= falls; v++)
            orders[v] += orders[v - 1];
        total *= (double)m;
    }
    for (size_t v = 0; v <= falls; v++)
        sum += orders[v];
    lab_mem_free(orders);
    return fmin(1, sum / total);
}

static double normal_p(double s, double n, double tie_terms) {
    double variance = (n * (n - 1) * (2 * n + 5) - tie_terms) / 18;
    double distance = fmax(0, fabs(s) - 1);
    if (!(variance > 0) || distance == 0)
        return 1;
    return 2 * lab_stats_normal_cdf(-distance / sqrt(variance));
}

struct lab_trend_test lab_stats_mann_kendall(const double *x, size_t n) {
    struct lab_trend_test test = {NAN, NAN};
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return test;
    }
    if (n < 2)
        return test;
    LAB_AUTO_FREE double *sorted = lab_mem_resize(NULL, 2 * n, sizeof *sorted);
    memcpy(sorted, x, n * sizeof *x);
    double falls = count_falls(sorted, sorted + n, n), tied_pairs = 0, tie_terms = 0;
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && sorted[next] == sorted[i];)
            next++;
        double t = (double)(next - i);
        tied_pairs += t * (t - 1) / 2;
        tie_terms += t * (t - 1) * (2 * t + 5);
    }
    double pairs = (double)n * (double)(n - 1) / 2;
    test.s = pairs - tied_pairs - 2 * falls;
    if (n <= EXACT_MAX)
        test.p = fmin(1, 2 * exact_tail(n, (size_t)((pairs - fabs(test.s)) / 2)));
    else
        test.p = normal_p(test.s, (double)n, tie_terms);
    return test;
}
