/*
 * elementwise.c: fill, add, gelu, exact and by tanh, and the interleaving of channels.
 *
 * `omp simd` says that iterations are independent although the output may be an input: the compiler
 * then needs no test for overlap, which in-place calls would fail.
 */
#include "device/cpu/simd/math.h"
#include "device/cpu/simd/simd.h"

void SIMD(fill)(float *out, float value, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
}

void SIMD(add)(float *out, const float *a, const float *b, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

void SIMD(gelu)(float *out, const float *x, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i, vector_gelu(vector_load(x + i)));
    if (i < count)
        vector_store_part(out + i, vector_gelu(vector_load_part(x + i, count - i, 0)), count - i);
}

void SIMD(gelu_tanh)(float *out, const float *x, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i, vector_gelu_tanh(vector_load(x + i)));
    if (i < count)
        vector_store_part(out + i, vector_gelu_tanh(vector_load_part(x + i, count - i, 0)),
                          count - i);
}

void SIMD(gelu_tanh_backward)(float *out, const float *x, const float *derivative, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i,
                     vector_load(derivative + i) * vector_gelu_tanh_slope(vector_load(x + i)));
    if (i < count)
        vector_store_part(out + i,
                          vector_load_part(derivative + i, count - i, 0) *
                              vector_gelu_tanh_slope(vector_load_part(x + i, count - i, 0)),
                          count - i);
}

/* Colour images are the usual case, and a fixed number of channels lets stores be shuffled. */
static void interleave_3(float *restrict out, const float *restrict red,
                         const float *restrict green, const float *restrict blue, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        out[3 * i] = red[i];
        out[3 * i + 1] = green[i];
        out[3 * i + 2] = blue[i];
    }
}

void SIMD(interleave)(float *out, const float *planes, int64_t stride, int64_t channels,
                      int64_t count) {
    if (channels == 3) {
        interleave_3(out, planes, planes + stride, planes + 2 * stride, count);
        return;
    }
    for (int64_t channel = 0; channel < channels; channel++)
        for (int64_t i = 0; i < count; i++)
            out[i * channels + channel] = planes[channel * stride + i];
}
