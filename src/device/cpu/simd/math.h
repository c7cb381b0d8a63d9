/*
 * math.h: exp and gelu of a vector, exact and by tanh. Coefficients are Chebyshev interpolations
 * of the exact functions.
 */
#pragma once

#include "device/cpu/simd/vector.h"

/* e^r for |r| ≤ ln 2 / 2. */
static inline vector exp_reduced(vector r) {
    vector tail = r * 0.001392692661f + 0.008363773874f;
    tail = tail * r + 0.04166655011f;
    tail = tail * r + 0.1666657338f;
    tail = tail * r + 0.5f;
    return (r * r * tail + r) + 1.0f;
}

/*
 * e^(high + low) for high ≤ 0 and a small `low` that carries digits lost from high. Results below
 * the smallest normal float are 0; NaN stays NaN. About one unit in the last place.
 */
#if defined(__AVX512F__)
/* AVX-512 rounds, scales and masks in one instruction each: half as many as elsewhere. */
static inline vector vector_exp(vector high, vector low) {
    __m512 least = _mm512_set1_ps(-88.0f), x = (__m512)high;
    __m512 bounded = _mm512_max_ps(least, x); /* a NaN in the second comes through */
    __m512 n = _mm512_roundscale_ps((__m512)((vector)bounded * 1.44269504f),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    vector r = ((vector)bounded - (vector)n * 0.693359375f) - (vector)n * -2.12194440e-4f + low;
    vector value = exp_reduced(r);
    __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.33f), _CMP_NLT_UQ);
    return (vector)_mm512_maskz_scalef_ps(normal, (__m512)value, n);
}
#else
static inline vector vector_exp(vector high, vector low) {
    vector bounded = vector_max(high, vector_of(-88.0f)); /* NaN too: it can't be an integer */
    /* truncation rounds, as the number is negative */
    lanes power = __builtin_convertvector(bounded * 1.44269504f - 0.5f, lanes);
    vector n = __builtin_convertvector(power, vector);
    /* ln 2 in two parts, the first so short that its product with n is exact */
    vector r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f + low;
    vector value = exp_reduced(r) * (vector)((power + 127) << 23);
    value = vector_select(high < -87.33f, vector_of(0.0f), value);
    return vector_select(high == high, value, high); /* NOLINT(misc-redundant-expression): NaN */
}
#endif

/*
 * x·Φ(x) = max(x, 0) − |x|·Φ(−|x|), where Φ(−a) = exp(−a²/2)·w(a) and w, a scaled erfc, is smooth:
 * t times a polynomial in t = 1/(1 + 0.35·a), 4e-8 off at most. Unlike 1 + erf this keeps the
 * negative tail's digits. a² is split so that its leading part is exact, else exp would magnify the
 * rounding by a². Beyond 14.5 Φ(−a) is 0 in single precision, which also serves the infinities.
 */
static inline vector vector_gelu(vector x) {
    vector size = (vector)((lanes)x & 0x7fffffff);
    vector a = vector_select(size > 14.5f, vector_of(14.5f), size);
    vector head = (vector)((lanes)a & -4096); /* the upper 12 digits */
    vector density = vector_exp(-0.5f * (head * head), -0.5f * (a - head) * (a + head));
    vector t = 1.0f / (a * 0.35f + 1.0f);
    vector w = t * -0.02973227581f + 0.1467839861f;
    w = w * t + -0.2614105432f;
    w = w * t + 0.1655101648f;
    w = w * t + -0.02732191058f;
    w = w * t + 0.1072124994f;
    w = w * t + 0.1194250927f;
    w = w * t + 0.1399143339f;
    w = w * t + 0.139618635f;
    return vector_max(x, vector_of(0.0f)) - a * (density * (t * w));
}

/* 1/(1 + e^(−y)): no exp of a number above 0, so nothing overflows. */
static inline vector vector_sigmoid(vector y) {
    vector e = vector_exp(-(vector)((lanes)y & 0x7fffffff), vector_of(0.0f)),
           share = 1.0f / (1.0f + e);
    return vector_select(y < 0.0f, e * share, share);
}

/* (1 + tanh u)/2 of gelu_tanh is the sigmoid of 2·u: this is 2·u/x. */
static inline vector gelu_tanh_inner(vector x) {
    return (x * x * 0.0713548163f + 1.5957691216f);
}

static inline vector vector_gelu_tanh(vector x) {
    return x * vector_sigmoid(x * gelu_tanh_inner(x));
}

/* σ + x·σ·(1 − σ)·(2·u)' */
static inline vector vector_gelu_tanh_slope(vector x) {
    vector y = x * gelu_tanh_inner(x), share = vector_sigmoid(y);
    return share + x * share * vector_sigmoid(-y) * (x * x * 0.2140644489f + 1.5957691216f);
}
