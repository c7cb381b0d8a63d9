/*
 * rows.c: layer_norm and softmax of one row. A row is at most a few thousand elements, so the
 * second and third pass find it in the first-level cache.
 */
#include "device/cpu/simd/math.h"
#include "device/cpu/simd/simd.h"

static float row_sum(const float *x, int64_t count) {
    vector sum = vector_of(0);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        sum += vector_load(x + i);
    if (i < count)
        sum += vector_load_part(x + i, count - i, 0);
    return vector_sum(sum);
}

static float row_square_deviations(const float *x, int64_t count, float mean) {
    vector sum = vector_of(0);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vector deviation = vector_load(x + i) - mean;
        sum += deviation * deviation;
    }
    if (i < count) {
        vector deviation = vector_load_part(x + i, count - i, mean) - mean;
        sum += deviation * deviation;
    }
    return vector_sum(sum);
}

void SIMD(layer_norm)(float *out, const float *x, const float *gamma, const float *beta,
                      int64_t count, float epsilon) {
    float mean = row_sum(x, count) / (float)count;
    /* from the deviations, since E[x²] − E[x]² cancels */
    float variance = row_square_deviations(x, count, mean) / (float)count;
    float factor = 1.0f / sqrtf(variance + epsilon);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        out[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
}

static float row_top(const float *x, int64_t count) {
    vector top = vector_of(-INFINITY);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        top = vector_max(vector_load(x + i), top);
    if (i < count)
        top = vector_max(vector_load_part(x + i, count - i, -INFINITY), top);
    return vector_top(top);
}

/* A NaN is never the maximum, but its own exponential spoils the sum, and so the row, as it
 * should. */
void SIMD(softmax)(float *out, const float *x, int64_t count) {
    float top = row_top(x, count);
    vector zero = vector_of(0), sum = zero;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vector share = vector_exp(vector_load(x + i) - top, zero);
        vector_store(out + i, share);
        sum += share;
    }
    float rest = 0;
    if (i < count) { /* lanes behind the end are −∞, unless the maximum is: so count none of them */
        vector share = vector_exp(vector_load_part(x + i, count - i, -INFINITY) - top, zero);
        vector_store_part(out + i, share, count - i);
        for (int64_t c = i; c < count; c++)
            rest += out[c];
    }
    float factor = 1.0f / (vector_sum(sum) + rest);
#pragma omp simd
    for (int64_t c = 0; c < count; c++)
        out[c] *= factor;
}
