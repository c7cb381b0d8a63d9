/*
 * stats_surrogate_test.c: the chance of a correlation, by the signs of waves.
 *
 * The largest products are tried with every combination of their signs, the rest counts as normal
 * by its variance: exact where few waves carry everything, which is where the normal distribution
 * is wrong.
 */
#include "stats/surrogate_test.h"

#include "base/mem.h"
#include "stats/stats.h"

#include <gsl/gsl_fft_real.h>
#include <math.h>

#define TRIED 10 /* products whose signs are all tried: 1,024 */

void lab_surrogate_init(struct lab_surrogate *room) {
    *room = (struct lab_surrogate){0};
}

static void drop_plan(struct lab_surrogate *room) {
    if (room->wavetable)
        gsl_fft_real_wavetable_free(room->wavetable);
    if (room->workspace)
        gsl_fft_real_workspace_free(room->workspace);
    room->wavetable = room->workspace = NULL;
    room->planned = 0;
}

void lab_surrogate_release(struct lab_surrogate *room) {
    drop_plan(room);
    lab_mem_free(room->x);
    lab_mem_free(room->y);
    lab_mem_free(room->scratch);
    lab_surrogate_init(room);
}

static void make_room(struct lab_surrogate *room, size_t n) {
    if (n <= room->capacity)
        return;
    room->capacity = 2 * n;
    room->x = lab_mem_resize(room->x, room->capacity, sizeof *room->x);
    room->y = lab_mem_resize(room->y, room->capacity, sizeof *room->y);
    room->scratch = lab_mem_resize(room->scratch, room->capacity, sizeof *room->scratch);
}

/* --- waves --- */

/* The largest product of 2, 3 and 5 that isn't larger: other lengths take the transform far longer.
 * At most a few in a hundred of a long run's last values are left out. */
static size_t quick_length(size_t n) {
    for (size_t length = n; length > 1; length--) {
        size_t rest = length;
        for (size_t factor = 2; factor <= 5; factor++)
            while (rest % factor == 0)
                rest /= factor;
        if (rest == 1)
            return length;
    }
    return n;
}

static void plan(struct lab_surrogate *room, size_t n) {
    if (room->planned == n)
        return;
    drop_plan(room);
    room->wavetable = gsl_fft_real_wavetable_alloc(n);
    room->workspace = gsl_fft_real_workspace_alloc(n);
    room->planned = n;
}

/* Orthonormal DCT-II of n values but for the mean, n − 1 waves, by one real transform (Makhoul
 * 1980). */
static void make_waves(struct lab_surrogate *room, const double *values, size_t n,
                       double *ret_waves) {
    double *v = room->scratch, unit = sqrt(2 / (double)n);
    for (size_t i = 0; 2 * i < n; i++)
        v[i] = values[2 * i];
    for (size_t i = 0; 2 * i + 1 < n; i++)
        v[n - 1 - i] = values[2 * i + 1];
    plan(room, n);
    gsl_fft_real_transform(v, 1, n, room->wavetable, room->workspace);
    for (size_t k = 1; k < n; k++) {
        size_t of = 2 * k <= n ? k : n - k; /* the other half is its mirror */
        double real = v[2 * of - 1], imaginary = 2 * of < n ? v[2 * of] : 0;
        double angle = M_PI * (double)k / (2 * (double)n);
        ret_waves[k - 1] =
            unit * (real * cos(angle) + (2 * k <= n ? imaginary : -imaginary) * sin(angle));
    }
}

/* All waves of all runs, and each run's mean against that of the runs before it. Returns how
 * many. */
static size_t take_apart(struct lab_surrogate *room, const double *values, const int *runs,
                         size_t n, double *ret_waves) {
    double before = 0, mean_before = 0;
    size_t made = 0;
    for (size_t start = 0, behind; start < n; start = behind) {
        behind = start + 1;
        while (behind < n && (!runs || runs[behind] == runs[start]))
            behind++;
        size_t length = quick_length(behind - start);
        double count = (double)(behind - start),
               mean = lab_stats_mean(values + start, behind - start);
        if (length > 1)
            make_waves(room, values + start, length, ret_waves + made);
        made += length - 1;
        if (before > 0)
            ret_waves[made++] = sqrt(before * count / (before + count)) * (mean - mean_before);
        mean_before += (mean - mean_before) * count / (before + count);
        before += count;
    }
    return made;
}

/* --- signs --- */

/* Moves the largest to the front, without their signs. */
static size_t take_largest(double *products, size_t n) {
    size_t tried = n < TRIED ? n : TRIED;
    for (size_t i = 0; i < n; i++)
        products[i] = fabs(products[i]);
    for (size_t t = 0; t < tried; t++) {
        size_t largest = t;
        for (size_t i = t + 1; i < n; i++)
            if (products[i] > products[largest])
                largest = i;
        double keep = products[t];
        products[t] = products[largest];
        products[largest] = keep;
    }
    return tried;
}

/* How often a sum of all with chance signs is at least `found` away from 0. */
static double chance_of(double *products, size_t n, double found) {
    size_t tried = take_largest(products, n);
    double variance = 0, total = 0, chance = 0;
    for (size_t i = tried; i < n; i++)
        variance += products[i] * products[i];
    for (size_t i = 0; i < n; i++)
        total += products[i];
    double sigma = sqrt(variance), rounding = 1e-12 * total;
    for (unsigned surrogate = 0; surrogate < 1U << tried; surrogate++) {
        double sum = 0;
        for (size_t i = 0; i < tried; i++)
            sum += surrogate >> i & 1U ? -products[i] : products[i];
        double gap = found - sum - rounding;
        chance += sigma > rounding ? 0.5 * erfc(gap / sigma / M_SQRT2) : gap <= 0;
    }
    return fmin(1, 2 * chance / (double)(1U << tried));
}

struct lab_surrogate_result lab_surrogate_test(struct lab_surrogate *room, const double *x,
                                               const double *y, const int *runs, size_t n) {
    struct lab_surrogate_result result = {NAN, NAN};
    double of_x = 0, of_y = 0, sum = 0, squares = 0;
    if (n < 3)
        return result;
    make_room(room, n);
    size_t count = take_apart(room, x, runs, n, room->x);
    take_apart(room, y, runs, n, room->y);
    for (size_t i = 0; i < count; i++) {
        of_x += room->x[i] * room->x[i];
        of_y += room->y[i] * room->y[i];
        room->x[i] *= room->y[i];
        sum += room->x[i];
        squares += room->x[i] * room->x[i];
    }
    if (!(of_x > 0 && of_y > 0) || !isfinite(of_x * of_y))
        return result;
    result.p = chance_of(room->x, count, fabs(sum));
    /* independent pairs have r² of 1 / (n − 1) on average */
    result.effective_n = squares > 0 ? fmin((double)n, 1 + of_x * of_y / squares) : (double)n;
    return result;
}
