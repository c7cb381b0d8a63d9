/*
 * softmax.c: softmax in steps: a row that comes in parts (attention, block by block), or that is
 * too long for the caches and is read twice rather than kept; and the last step past the caches,
 * since a result larger than they are would be read from memory only to be overwritten.
 */
#include "device/cpu/simd/math.h"
#include "device/cpu/simd/simd.h"

#define CHAINS INT64_C(4) /* maxima and sums side by side: one alone waits for its own latency */
#define PAIR   INT64_C(2) /* exponentials have enough to do within themselves */

static float part_top(const float *x, int64_t count, float top) {
    vector tops[CHAINS];
    int64_t i = 0;
    for (int64_t c = 0; c < CHAINS; c++)
        tops[c] = vector_of(top);
    for (; i + CHAINS * LANES <= count; i += CHAINS * LANES)
        for (int64_t c = 0; c < CHAINS; c++)
            tops[c] = vector_max(vector_load(x + i + c * LANES), tops[c]);
    for (; i + LANES <= count; i += LANES)
        tops[0] = vector_max(vector_load(x + i), tops[0]);
    if (i < count)
        tops[1] = vector_max(vector_load_part(x + i, count - i, -INFINITY), tops[1]);
    return vector_top(vector_max(vector_max(tops[0], tops[1]), vector_max(tops[2], tops[3])));
}

/* A single number by the same arithmetic as all others. */
static float exp_of(float x) {
    return vector_exp(vector_of(x), vector_of(0))[0];
}

/* Σ exp(x − top); stored where `out` isn't NULL, which the compiler sees. */
static inline float sum_exp(float *out, const float *x, int64_t count, float top) {
    vector zero = vector_of(0), sums[PAIR] = {zero, zero};
    int64_t i = 0;
    for (; i + PAIR * LANES <= count; i += PAIR * LANES)
        for (int64_t c = 0; c < PAIR; c++) {
            vector share = vector_exp(vector_load(x + i + c * LANES) - top, zero);
            if (out)
                vector_store(out + i + c * LANES, share);
            sums[c] += share;
        }
    for (; i < count; i += LANES) {
        int64_t left = count - i < LANES ? count - i : LANES;
        vector share = left < LANES ? vector_load_part(x + i, left, -INFINITY) : vector_load(x + i);
        share = vector_exp(share - top, zero);
        if (out && left < LANES)
            vector_store_part(out + i, share, left);
        else if (out)
            vector_store(out + i, share);
        /* lanes behind the end are 0, unless all of the row is −∞: then they are as NaN as the
         * rest */
        sums[0] += share;
    }
    return vector_sum(sums[0] + sums[1]);
}

float SIMD(softmax_part)(float *out, const float *x, int64_t count, float *top, float *sum) {
    float before = *top, now = part_top(x, count, before);
    float factor = now > before ? exp_of(before - now) : 1.0f;
    *sum = *sum * factor + sum_exp(out, x, count, now);
    *top = now;
    return factor;
}

void SIMD(softmax_scan)(const float *x, int64_t count, float *top, float *sum) {
    float before = *top, now = part_top(x, count, before);
    float factor = now > before ? exp_of(before - now) : 1.0f;
    *sum = *sum * factor + sum_exp(NULL, x, count, now);
    *top = now;
}

/* Elements before `to` is aligned to a vector; at most `count`. */
static int64_t unaligned(const float *to, int64_t count) {
    int64_t head = (int64_t)(-(uintptr_t)to / sizeof *to % LANES);
    return head < count ? head : count;
}

void SIMD(softmax_write)(float *out, const float *x, int64_t count, float top, float factor,
                         bool streamed) {
    vector zero = vector_of(0);
    int64_t i = streamed ? unaligned(out, count) : 0;
    if (i)
        vector_store_part(out, vector_exp(vector_load_part(x, i, 0) - top, zero) * factor, i);
    if (streamed)
        for (; i + LANES <= count; i += LANES)
            vector_stream(out + i, vector_exp(vector_load(x + i) - top, zero) * factor);
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i, vector_exp(vector_load(x + i) - top, zero) * factor);
    if (i < count)
        vector_store_part(out + i,
                          vector_exp(vector_load_part(x + i, count - i, 0) - top, zero) * factor,
                          count - i);
    if (streamed)
        vector_fence();
}

void SIMD(scale)(float *out, const float *x, int64_t count, float factor, bool streamed) {
    int64_t i = streamed ? unaligned(out, count) : 0;
    if (i)
        vector_store_part(out, vector_load_part(x, i, 0) * factor, i);
    if (streamed)
        for (; i + LANES <= count; i += LANES)
            vector_stream(out + i, vector_load(x + i) * factor);
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i, vector_load(x + i) * factor);
    if (i < count)
        vector_store_part(out + i, vector_load_part(x + i, count - i, 0) * factor, count - i);
    if (streamed)
        vector_fence();
}
