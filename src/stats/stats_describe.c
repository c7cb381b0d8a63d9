/*
 * stats_describe.c: location, spread and order.
 *
 * Sums are compensated (Neumaier) and squares taken of scaled deviations, so that neither a million
 * small values nor a few of 1e300 lose their figures. Single quantiles come from selection, linear
 * in n, because the bootstrap asks for thousands of medians.
 */
#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define MAD_TO_SIGMA 1.4826 /* 1 / Φ⁻¹(3/4), as R rounds it */

static bool any_nan(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return true;
    }
    return false;
}

/* Σ scale·x, Neumaier's variant of Kahan's sum: also right when a term exceeds the sum so far. */
static double scaled_sum(const double *x, size_t n, double scale) {
    double sum = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        double term = scale * x[i], next = sum + term;
        lost += fabs(sum) >= fabs(term) ? (sum - next) + term : (term - next) + sum;
        sum = next;
    }
    return isfinite(sum) ? sum + lost : sum;
}

double lab_stats_mean(const double *x, size_t n) {
    if (n == 0)
        return NAN;
    double sum = scaled_sum(x, n, 1);
    if (isfinite(sum) || any_nan(x, n))
        return sum / (double)n;
    /* too large to be summed as they are; infinite only if one of them is */
    return scaled_sum(x, n, 1 / (double)n);
}

/* √(Σ (x − m)² / divisor) */
static double deviation(const double *x, size_t n, double divisor) {
    double mean = lab_stats_mean(x, n), largest = 0;
    if (!isfinite(mean))
        return NAN;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i] - mean));
    if (largest == 0)
        return 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (x[i] - mean) / largest;
        squares += d * d;
    }
    return largest * sqrt(squares / divisor);
}

double lab_stats_stddev(const double *x, size_t n) {
    return n < 2 ? NAN : deviation(x, n, (double)(n - 1));
}

double lab_stats_stddev_population(const double *x, size_t n) {
    return n < 1 ? NAN : deviation(x, n, (double)n);
}

double lab_stats_min(const double *x, size_t n) {
    if (n == 0 || any_nan(x, n))
        return NAN;
    double least = x[0];
    for (size_t i = 1; i < n; i++)
        least = x[i] < least ? x[i] : least;
    return least;
}

double lab_stats_max(const double *x, size_t n) {
    if (n == 0 || any_nan(x, n))
        return NAN;
    double most = x[0];
    for (size_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static void swap(double *a, double *b) {
    double keep = *a;
    *a = *b;
    *b = keep;
}

/*
 * Puts the k-th smallest value at x[k], no larger ones before it and no smaller ones behind it
 * (Hoare's selection; the median of three as pivot keeps sorted and tied values linear).
 */
static void select_rank(double *x, size_t n, size_t k) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (x[middle] < x[low])
            swap(&x[middle], &x[low]);
        if (x[high] < x[low])
            swap(&x[high], &x[low]);
        if (x[high] < x[middle])
            swap(&x[high], &x[middle]);
        double pivot = x[middle];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] < pivot)
                i++;
            while (pivot < x[j])
                j--;
            if (i >= j)
                break;
            swap(&x[i++], &x[j--]);
        }
        /* now x[low..j] ≤ pivot ≤ x[j+1..high], and both parts are shorter */
        if (i == j && k == j)
            return;
        if (k <= j)
            high = i == j ? j - 1 : j;
        else
            low = j + 1;
    }
}

/* a + share·(b − a) without overflow and exact where both are equal. */
static double between(double a, double b, double share) {
    return a == b || share == 0 ? a : (1 - share) * a + share * b;
}

/* The position (n−1)·q: its whole part and the rest. */
static size_t position(size_t n, double q, double *ret_share) {
    double h = (double)(n - 1) * q, whole = floor(h);
    *ret_share = h - whole;
    return (size_t)whole;
}

/* Reorders `x`, which holds no NaN. */
static double quantile_in_place(double *x, size_t n, double q) {
    double share;
    size_t k = position(n, q, &share);
    select_rank(x, n, k);
    if (share == 0) /* as for the last value */
        return x[k];
    double next = x[k + 1];
    for (size_t i = k + 2; i < n; i++)
        next = x[i] < next ? x[i] : next;
    return between(x[k], next, share);
}

/* Copies of up to this many values live on the stack: bootstraps take thousands of small ones. */
#define STACK_VALUES 256

double lab_stats_quantile(const double *x, size_t n, double q) {
    if (n == 0 || !(q >= 0 && q <= 1) || any_nan(x, n))
        return NAN;
    double few[STACK_VALUES] = {0};
    double *copy = n <= STACK_VALUES ? few : lab_mem_resize(NULL, n, sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    double value = quantile_in_place(copy, n, q);
    if (copy != few)
        lab_mem_free(copy);
    return value;
}

double lab_stats_median(const double *x, size_t n) {
    return lab_stats_quantile(x, n, 0.5);
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

bool lab_stats_sort(const double *x, size_t n, double *ret_sorted) {
    if (n == 0)
        return true;
    memcpy(ret_sorted, x, n * sizeof *x);
    if (any_nan(x, n))
        return false;
    qsort(ret_sorted, n, sizeof *ret_sorted, compare);
    return true;
}

double lab_stats_quantile_sorted(const double *sorted, size_t n, double q) {
    if (n == 0 || !(q >= 0 && q <= 1))
        return NAN;
    double share;
    size_t k = position(n, q, &share);
    return k + 1 == n ? sorted[k] : between(sorted[k], sorted[k + 1], share);
}

double lab_stats_mad(const double *x, size_t n, bool scaled) {
    double median = lab_stats_median(x, n);
    if (isnan(median))
        return NAN;
    double few[STACK_VALUES] = {0};
    double *distance = n <= STACK_VALUES ? few : lab_mem_resize(NULL, n, sizeof *distance);
    for (size_t i = 0; i < n; i++)
        distance[i] = x[i] == median ? 0 : fabs(x[i] - median); /* ∞ − ∞ is no distance */
    double mad = quantile_in_place(distance, n, 0.5);
    if (distance != few)
        lab_mem_free(distance);
    return scaled ? MAD_TO_SIGMA * mad : mad;
}
