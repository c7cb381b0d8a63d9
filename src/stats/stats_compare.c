/*
 * stats_compare.c: whether and by how much two samples differ, by the order of their values.
 *
 * All of it comes from one walk through both sorted samples, so that a million values cost their
 * sorting. The exact distributions are counted in doubles: whole numbers, exact up to 2^53 and
 * within rounding beyond.
 */
#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define EXACT_PAIRS 10000
#define EXACT_TIED  1500

static const struct lab_interval unknown = {NAN, NAN, NAN};

struct sorted {
    double *x, *y;
    size_t nx, ny;
};

static void release(struct sorted *s) {
    lab_mem_free(s->x);
    lab_mem_free(s->y);
}

static bool sort_both(struct sorted *ret, const double *x, size_t nx, const double *y, size_t ny) {
    if (nx == 0 || ny == 0)
        return false;
    struct sorted s = {lab_mem_resize(NULL, nx, sizeof *x), lab_mem_resize(NULL, ny, sizeof *y), nx,
                       ny};
    if (!lab_stats_sort(x, nx, s.x) || !lab_stats_sort(y, ny, s.y)) {
        release(&s);
        return false;
    }
    *ret = s;
    return true;
}

/* What both samples say about each other. */
struct order {
    double above, equal; /* pairs with x > y, and x = y */
    double tie_cubes;    /* Σ t³ − t over values that occur t times in both together */
};

struct group { /* values that are equal */
    size_t in_x, in_y;
};

/* The next group from *i and *j on; false at the end. */
static bool next_group(const struct sorted *s, size_t *i, size_t *j, struct group *ret) {
    if (*i == s->nx && *j == s->ny)
        return false;
    bool from_x = *j == s->ny || (*i < s->nx && s->x[*i] <= s->y[*j]);
    double value = from_x ? s->x[*i] : s->y[*j];
    *ret = (struct group){0, 0};
    while (*i < s->nx && s->x[*i] == value) {
        ret->in_x++;
        (*i)++;
    }
    while (*j < s->ny && s->y[*j] == value) {
        ret->in_y++;
        (*j)++;
    }
    return true;
}

static struct order count_pairs(const struct sorted *s) {
    struct order order = {0, 0, 0};
    struct group group;
    for (size_t i = 0, j = 0; next_group(s, &i, &j, &group);) {
        double size = (double)(group.in_x + group.in_y);
        order.above += (double)group.in_x * (double)(j - group.in_y);
        order.equal += (double)group.in_x * (double)group.in_y;
        order.tie_cubes += size * size * size - size;
    }
    return order;
}

/* --- Mann and Whitney's distribution --- */

/*
 * P(U ≤ u) without ties. The number of orders with each U are the coefficients of the Gaussian
 * binomial Π (1 − q^(m+i)) / (1 − q^i), i = 1 to k; those up to u need no others.
 */
static double untied_tail(size_t k, size_t m, size_t u) {
    double *orders = lab_mem_alloc(u + 1, sizeof *orders), total = 1;
    orders[0] = 1;
    for (size_t i = 1; i <= k; i++) {
        for (size_t v = u; v >= m + i; v--)
            orders[v] -= orders[v - (m + i)];
        for (size_t v = i; v <= u; v++)
            orders[v] += orders[v - i];
        total = total / (double)i * (double)(m + i);
    }
    double sum = 0;
    for (size_t v = 0; v <= u; v++)
        sum += orders[v];
    lab_mem_free(orders);
    return fmin(1, sum / total);
}

/*
 * Twice the smaller tail with ties: in how many of all choices of k among the ranks their sum is no
 * larger, or no smaller, than what it is. Ranks are doubled, which makes them whole.
 */
static double tied_p(const struct sorted *s) {
    bool x_small = s->nx <= s->ny;
    size_t k = x_small ? s->nx : s->ny, n = s->nx + s->ny, most = 2 * k * n, seen = 0, sum = 0;
    double *choices = lab_mem_alloc((k + 1) * (most + 1), sizeof *choices);
    choices[0] = 1; /* [chosen][sum] */
    struct group group;
    for (size_t i = 0, j = 0; next_group(s, &i, &j, &group);) {
        size_t size = group.in_x + group.in_y, rank2 = 2 * seen + size + 1;
        sum += rank2 * (x_small ? group.in_x : group.in_y);
        for (size_t copy = 0; copy < size; copy++, seen++) {
            for (size_t chosen = seen + 1 < k ? seen + 1 : k; chosen >= 1; chosen--) {
                double *to = choices + chosen * (most + 1);
                const double *from = to - (most + 1);
                for (size_t v = rank2; v <= most; v++)
                    to[v] += from[v - rank2];
            }
        }
    }
    double below = 0, above = 0, total = 0;
    for (size_t v = 0; v <= most; v++) {
        double orders = choices[k * (most + 1) + v];
        total += orders;
        below += v <= sum ? orders : 0;
        above += v >= sum ? orders : 0;
    }
    lab_mem_free(choices);
    return fmin(1, 2 * fmin(below, above) / total);
}

static double normal_p(double u, double nx, double ny, double tie_cubes) {
    double n = nx + ny;
    double variance = nx * ny / 12 * (n + 1 - tie_cubes / (n * (n - 1)));
    double distance = fmax(0, fabs(u - nx * ny / 2) - 0.5);
    if (!(variance > 0) || distance == 0)
        return 1;
    return 2 * lab_stats_normal_cdf(-distance / sqrt(variance));
}

struct lab_rank_test lab_stats_mann_whitney(const double *x, size_t nx, const double *y,
                                            size_t ny) {
    struct lab_rank_test test = {NAN, NAN, LAB_TEST_NONE};
    struct sorted s;
    if (!sort_both(&s, x, nx, y, ny))
        return test;
    struct order order = count_pairs(&s);
    size_t small = nx < ny ? nx : ny, large = nx < ny ? ny : nx;
    double pairs = (double)nx * (double)ny;
    test.u = order.above + order.equal / 2;
    if (order.tie_cubes == 0 && pairs <= EXACT_PAIRS) {
        double tail = untied_tail(small, large, (size_t)fmin(test.u, pairs - test.u));
        test.p = fmin(1, 2 * tail);
        test.how = LAB_TEST_EXACT;
    } else if (order.tie_cubes > 0 && (double)(nx + ny) * (double)small <= EXACT_TIED) {
        test.p = tied_p(&s);
        test.how = LAB_TEST_EXACT;
    } else {
        test.p = normal_p(test.u, (double)nx, (double)ny, order.tie_cubes);
        test.how = LAB_TEST_APPROX;
    }
    release(&s);
    return test;
}

/* --- Hodges and Lehmann's shift --- */

/* Doubles as whole numbers of the same order, so that halving reaches every one of them. */
static uint64_t to_order(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static double from_order(uint64_t order) {
    uint64_t bits = order >> 63 ? order & ~(1ULL << 63) : ~order;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double differences_up_to(const struct sorted *s, double limit) {
    double count = 0;
    size_t j = s->ny; /* y[j] to the last give x − y ≤ limit */
    for (size_t i = 0; i < s->nx; i++) {
        j = i == 0 ? 0 : j;
        while (j < s->ny && s->x[i] - s->y[j] > limit)
            j++;
        count += (double)(s->ny - j);
    }
    return count;
}

/* The k-th smallest of all x − y, from 1. */
static double difference_at(const struct sorted *s, double k) {
    uint64_t low = to_order(s->x[0] - s->y[s->ny - 1]), high = to_order(s->x[s->nx - 1] - s->y[0]);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (differences_up_to(s, from_order(middle)) >= k)
            high = middle;
        else
            low = middle + 1;
    }
    return from_order(low);
}

/* The largest k with P(U ≤ k − 1) ≤ (1 − confidence)/2, 1 at least: the interval is from the k-th
 * smallest difference to the k-th largest. */
static double shift_rank(size_t nx, size_t ny, double confidence, double *ret_confidence) {
    double pairs = (double)nx * (double)ny, tail = (1 - confidence) / 2;
    size_t small = nx < ny ? nx : ny, large = nx < ny ? ny : nx;
    if (pairs > EXACT_PAIRS) {
        double sigma = sqrt(pairs * ((double)nx + (double)ny + 1) / 12);
        *ret_confidence = confidence;
        return fmax(1, floor(pairs / 2 + 0.5 + lab_stats_normal_quantile(tail) * sigma));
    }
    size_t low = 1, high = ((size_t)pairs + 1) / 2;
    while (low < high) {
        size_t k = low + (high - low + 1) / 2;
        if (untied_tail(small, large, k - 1) <= tail)
            low = k;
        else
            high = k - 1;
    }
    *ret_confidence = fmax(0, 1 - 2 * untied_tail(small, large, low - 1));
    return (double)low;
}

struct lab_effect lab_stats_shift(const double *x, size_t nx, const double *y, size_t ny,
                                  double confidence) {
    struct lab_effect effect = {NAN, unknown};
    struct sorted s;
    if (!sort_both(&s, x, nx, y, ny))
        return effect;
    if (isfinite(s.x[0] - s.y[ny - 1]) && isfinite(s.x[nx - 1] - s.y[0])) {
        double pairs = (double)nx * (double)ny, reached;
        double low = difference_at(&s, floor((pairs + 1) / 2));
        double high = fmod(pairs, 2) == 0 ? difference_at(&s, pairs / 2 + 1) : low;
        effect.value = low + (high - low) / 2;
        if (confidence > 0 && confidence < 1) {
            double k = shift_rank(nx, ny, confidence, &reached);
            effect.interval = (struct lab_interval){difference_at(&s, k),
                                                    difference_at(&s, pairs + 1 - k), reached};
        }
    }
    release(&s);
    return effect;
}
