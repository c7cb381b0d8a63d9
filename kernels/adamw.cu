/*
 * adamw.cu: AdamW over all parameters in one launch. gradient, out[count], state[3, count] fp32:
 * parameters, m and v, each of all tensors one behind the other, those that decay first.
 *
 *     g = gradient · scale   m += (1 − beta1)·(g − m)   v += (1 − beta2)·(g² − v)
 *     p −= rate · (m · bias1 / (√(v · bias2) + epsilon) + decay · p)   out = p, rounded
 *
 * Of GPT-2's 148 tensors most are a few thousand numbers: a launch for each would take longer than
 * its work. As one vector nothing is left of them but where decay ends. Nor does a step need the
 * host: rate, scale (clipping, accumulation) and what the counter makes of the betas are read from
 * `control`, which a graph's replays find changed. A decaying parameter below the threshold in
 * magnitude becomes 0: pruning costs a comparison.
 *
 * A thread does four neighbours, so that a warp's 16 bytes of fp32 lie side by side: with eight,
 * whose gradients would be 16 bytes, each access took every other 16 bytes and it reached 3.3 TB/s.
 * All is asked for before the first is used. Odd ends and addresses are done one by one.
 *
 *     control:   rate, scale, bias1 = 1/(1 − beta1^t), bias2, threshold
 *     new_state: may be state itself; NULL: only `out` is wanted
 *     grid:      ⌈count / 1024⌉ blocks of 256 threads
 *
 * Memory bounds it: 28 bytes of a parameter in bf16. On an H200, whose copies reach 4.3 TB/s, 124
 * million go at 4.2.
 */
#include "common.cuh"

#define FOUR 4

union four { /* elements side by side */
#if DTYPE <= 1
    float4 bits;
#else
    uint2 bits;
#endif
    element items[FOUR];
};

__device__ __forceinline__ float4 load_four(const float *from, bool whole, int mine) {
    if (whole)
        return *(const float4 *)from;
    return make_float4(from[0], mine > 1 ? from[1] : 0.0f, mine > 2 ? from[2] : 0.0f,
                       mine > 3 ? from[3] : 0.0f);
}

__device__ __forceinline__ void store_four(float *to, bool whole, int mine, const float *x) {
    if (whole) {
        *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < FOUR; i++)
        if (i < mine)
            to[i] = x[i];
}

#ifdef MAKE_adamw
extern "C" __global__ void __launch_bounds__(256)
    adamw(const element *gradient, const float *state, const float *control, element *out,
          float *new_state, s64 count, s64 decayed, float beta1, float beta2, float epsilon,
          float decay) {
    wait_for_previous();
    s64 first = ((s64)blockIdx.x * 256 + threadIdx.x) * FOUR;
    if (first >= count)
        return;
    int mine = count - first < FOUR ? (int)(count - first) : FOUR;
    bool whole = count % FOUR == 0 && aligned(state) && aligned(new_state);
    union four g, rounded;
    if (mine == FOUR && aligned(gradient)) {
        g = *(const union four *)(gradient + first);
    } else {
#pragma unroll
        for (int i = 0; i < FOUR; i++)
            g.items[i] = i < mine ? gradient[first + i] : from_float(0.0f);
    }
    float4 p4 = load_four(state + first, whole, mine);
    float4 m4 = load_four(state + count + first, whole, mine);
    float4 v4 = load_four(state + 2 * count + first, whole, mine);
    float p[] = {p4.x, p4.y, p4.z, p4.w}, m[] = {m4.x, m4.y, m4.z, m4.w};
    float v[] = {v4.x, v4.y, v4.z, v4.w};
    float rate = control[0], scale = control[1], bias1 = control[2], bias2 = control[3];
    float threshold = control[4];
#pragma unroll
    for (int i = 0; i < FOUR; i++) {
        float x = to_float(g.items[i]) * scale, root;
        bool decays = first + i < decayed;
        m[i] += (x - m[i]) * (1.0f - beta1);
        v[i] += (x * x - v[i]) * (1.0f - beta2);
        asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v[i] * bias2));
        float step = __fdividef(m[i] * bias1, root + epsilon);
        p[i] -= rate * (decays ? fmaf(decay, p[i], step) : step);
        if (decays && fabsf(p[i]) < threshold)
            p[i] = 0.0f;
        rounded.items[i] = from_float(p[i]);
    }
    if (new_state) {
        store_four(new_state + first, whole, mine, p);
        store_four(new_state + count + first, whole, mine, m);
        store_four(new_state + 2 * count + first, whole, mine, v);
    }
    if (mine == FOUR && aligned(out)) {
        *(union four *)(out + first) = rounded;
    } else {
#pragma unroll
        for (int i = 0; i < FOUR; i++)
            if (i < mine)
                out[first + i] = rounded.items[i];
    }
}
#endif
