/*
 * vector.h: a vector as wide as this variant's registers, by the vector types that gcc and clang
 * share. Written out rather than left to the compilers' vectorisers, which refuse exp and gelu here
 * and the maximum there.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define LANES (VECTOR_BYTES / 4)

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t lanes __attribute__((vector_size(VECTOR_BYTES))); /* integers, or a mask: 0, −1 */

static inline vector vector_of(float x) {
    return (vector){0} + x;
}

static inline vector vector_load(const float *x) {
    vector v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void vector_store(float *to, vector v) {
    memcpy(to, &v, sizeof v);
}

/* The first `count` < LANES lanes from memory, `rest` in the others. */
static inline vector vector_load_part(const float *x, int64_t count, float rest) {
#if defined(__AVX512F__)
    return (vector)_mm512_mask_loadu_ps((__m512)vector_of(rest), (__mmask16)((1u << count) - 1), x);
#else
    vector v = vector_of(rest);
    for (int64_t i = 0; i < count; i++)
        v[i] = x[i];
    return v;
#endif
}

static inline void vector_store_part(float *to, vector v, int64_t count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)v);
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = v[i];
#endif
}

/* Past the caches, where the processor can; `to` is aligned to a vector. Then vector_fence. */
static inline void vector_stream(float *to, vector v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)v);
#elif defined(__AVX2__)
    _mm256_stream_ps(to, (__m256)v);
#elif defined(__SSE2__)
    _mm_stream_ps(to, (__m128)v);
#else
    vector_store(to, v);
#endif
}

/* What was streamed becomes visible to others before what is stored later. */
static inline void vector_fence(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

static inline vector vector_select(lanes mask, vector yes, vector no) {
    return (vector)((mask & (lanes)yes) | (~mask & (lanes)no));
}

/* NaN in a: b */
static inline vector vector_max(vector a, vector b) {
#if defined(__AVX512F__)
    return (vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vector_select(a > b, a, b);
#endif
}

static inline vector vector_sqrt(vector v) {
#if defined(__AVX512F__)
    return (vector)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
    return (vector)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
    return (vector)_mm_sqrt_ps((__m128)v);
#else
    for (int i = 0; i < LANES; i++)
        v[i] = sqrtf(v[i]);
    return v;
#endif
}

/* --- 32-bit products --- */

typedef uint64_t pairs __attribute__((vector_size(VECTOR_BYTES))); /* half as many, twice as wide */

/* The full product of each pair's lower 32 bits with `factor`. */
static inline pairs pairs_multiply(pairs x, uint32_t factor) {
#if defined(__AVX512F__)
    return (pairs)_mm512_mul_epu32((__m512i)x, _mm512_set1_epi64(factor));
#elif defined(__AVX2__)
    return (pairs)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(factor));
#elif defined(__SSE2__)
    return (pairs)_mm_mul_epu32((__m128i)x, _mm_set1_epi64x(factor));
#else
    return (x & 0xffffffff) * factor;
#endif
}

static inline float vector_sum(vector v) {
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += v[i];
    return sum;
}

static inline float vector_top(vector v) {
    float top = -INFINITY;
    for (int i = 0; i < LANES; i++)
        top = v[i] > top ? v[i] : top;
    return top;
}
