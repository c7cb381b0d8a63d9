/*
 * mlp_adam.cuh: Adam's update of neighbouring parameters, and the numbers behind a state's parts.
 * src/device/mlp.h says what lies where in a state.
 */
#ifndef MLP_ADAM_CUH
#define MLP_ADAM_CUH

#include "common.cuh"

#define STEP_BASE 1048576 /* of the step counter's higher part */

struct adam_factors {
    float rate, keep1, keep2, epsilon; /* keep: 1 - beta */
};

/* base^exponent by squaring: errors stay far below those of fp32 while the power still counts. */
__device__ double power(double base, s64 exponent) {
    double result = 1;
    for (; exponent > 0 && result > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

__device__ float corrected_rate(float rate, float beta1, float beta2, s64 step) {
    return (float)(rate * sqrt(1 - power(beta2, step + 1)) / (1 - power(beta1, step + 1)));
}

__device__ __forceinline__ s64 step_of(const float *tail) {
    return (s64)tail[1] * STEP_BASE + (s64)tail[0];
}

__device__ __forceinline__ void write_tail(float *tail, s64 step, float mse, float mae) {
    tail[0] = (float)((step + 1) % STEP_BASE);
    tail[1] = (float)((step + 1) / STEP_BASE);
    tail[2] = mse;
    tail[3] = mae;
}

/* Moments that die out end as 0, as on a CPU. */
__device__ __forceinline__ float flush(float moment) {
    return fabsf(moment) < 1e-30f ? 0.0f : moment;
}

__device__ __forceinline__ void adam_one(const adam_factors &a, float gradient, float &parameter,
                                         float &m, float &v) {
    float root;
    m = flush(m + (gradient - m) * a.keep1);
    v = flush(v + (gradient * gradient - v) * a.keep2);
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
    parameter -= __fdividef(m * a.rate, root + a.epsilon);
}

/* W or fewer neighbours of the parameters, moments and all. `stride` is between a state's parts. */
template <int W>
__device__ __forceinline__ void adam_some(const adam_factors &a, const float *state,
                                          float *new_state, s64 stride, s64 at,
                                          const float gradient[W], int count) {
    if (W == 4 && count == 4 && aligned(state + at) && aligned(new_state + at)) {
        float4 p = *(const float4 *)(state + at), m = *(const float4 *)(state + stride + at);
        float4 v = *(const float4 *)(state + 2 * stride + at);
        adam_one(a, gradient[0], p.x, m.x, v.x);
        adam_one(a, gradient[1 % W], p.y, m.y, v.y);
        adam_one(a, gradient[2 % W], p.z, m.z, v.z);
        adam_one(a, gradient[3 % W], p.w, m.w, v.w);
        *(float4 *)(new_state + at) = p;
        *(float4 *)(new_state + stride + at) = m;
        *(float4 *)(new_state + 2 * stride + at) = v;
        return;
    }
    float p[W], m[W], v[W];
#pragma unroll
    for (int i = 0; i < W; i++)
        if (i < count) {
            p[i] = state[at + i];
            m[i] = state[stride + at + i];
            v[i] = state[2 * stride + at + i];
        }
#pragma unroll
    for (int i = 0; i < W; i++)
        if (i < count) {
            adam_one(a, gradient[i], p[i], m[i], v[i]);
            new_state[at + i] = p[i];
            new_state[stride + at + i] = m[i];
            new_state[2 * stride + at + i] = v[i];
        }
}

#endif
