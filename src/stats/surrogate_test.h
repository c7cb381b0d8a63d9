/*
 * surrogate_test.h: whether two series in time correlate more than chance would have it, whatever
 * each of them remembers of its own past.
 *
 * Each series is taken apart into cosine waves (DCT-II). What is random and remembers its past has
 * waves that are nearly independent of each other, slow ones larger than fast ones: exactly so
 * without any memory and as it grows without bound, nearly so in between (Ahmed, Natarajan and Rao
 * 1974). A correlation is the sum over waves of the products of both; if the series have nothing to
 * do with each other, each product is as likely to have the other sign. How often chance signs come
 * out as far is the p value: Ebisuzaki's test (1997), whose waves have chance phases, for series
 * whose ends don't meet. Nothing has to be said about how long memory lasts, and what merely rises
 * or falls throughout has one large wave, of which a sign says nothing.
 */
#pragma once

#include <stddef.h>

struct lab_surrogate { /* room, used again from one test to the next */
    double *x, *y, *scratch;
    size_t capacity;
    size_t planned; /* length that the transform is prepared for */
    void *wavetable, *workspace;
};

void lab_surrogate_init(struct lab_surrogate *room);
void lab_surrogate_release(struct lab_surrogate *room);

struct lab_surrogate_result {
    double p; /* both sides; NaN: a series is constant, or there are fewer than 3 values */
    double effective_n; /* independent pairs whose correlation by chance would be as large */
};

/* `runs`: what is equal in neighbours belongs together, and has waves of its own; the runs' means
 * are independent values. NULL = one run. */
struct lab_surrogate_result lab_surrogate_test(struct lab_surrogate *room, const double *x,
                                               const double *y, const int *runs, size_t n);
