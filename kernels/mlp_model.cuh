/*
 * mlp_model.cuh: a model whose widths are known, so that places are numbers, and the end of a step.
 * src/device/mlp.h says what lies where.
 *
 * W0 .. W7  widths, 0 behind the last one
 */
#ifndef MLP_MODEL_CUH
#define MLP_MODEL_CUH

#include "mlp_adam.cuh"
#include "mlp_step.cuh"

#ifdef W0

/* --- the model --- */

__device__ constexpr int width(int i) {
    return i == 0   ? W0
           : i == 1 ? W1
           : i == 2 ? W2
           : i == 3 ? W3
           : i == 4 ? W4
           : i == 5 ? W5
           : i == 6 ? W6
                    : W7;
}

__device__ constexpr int count_layers() {
    int layers = 1;
    while (layers < 7 && width(layers + 1))
        layers++;
    return layers;
}

constexpr int LAYERS = count_layers(), INPUTS = W0, OUTPUTS = width(LAYERS);

__device__ constexpr int weight_at(int layer) {
    int at = 0;
    for (int l = 0; l < layer; l++)
        at += (width(l) + 1) * width(l + 1);
    return at;
}

__device__ constexpr int output_at(int layer) { /* for each row */
    int at = 0;
    for (int l = 0; l < layer; l++)
        at += width(l + 1);
    return at;
}

constexpr int PARAMETERS = weight_at(LAYERS), STRIDE = (PARAMETERS + 31) / 32 * 32;

__device__ constexpr int up(int value, int multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/* --- what a step knows --- */

struct step_data {
    const float *x, *y, *state;
    float *work, *gradient, *new_state;
    int rows;
    s64 first_row, step;
    u32 threshold;
    u64 seed;
    float scale, loss_factor;
};

__device__ __forceinline__ float *delta_of(const step_data &s, int layer) {
    s64 at = (s64)s.rows * output_at(layer), all = (s64)s.rows * output_at(LAYERS) + 2;
    return s.work + (layer == LAYERS - 1 ? at : (all + 31) / 32 * 32 + at);
}

/* --- a parameter --- */

struct held { /* of one parameter; `at` below 0 = there is none */
    int at;
    float p, m, v;
};

__device__ __forceinline__ held hold(const step_data &s, int at) {
    held h = {at, 0, 0, 0};
    if (UPDATE && at >= 0)
        h.p = s.state[at], h.m = s.state[STRIDE + at], h.v = s.state[2 * STRIDE + at];
    return h;
}

__device__ __forceinline__ void finish_one(const step_data &s, const adam_factors &adam, held h,
                                           float gradient) {
    if (h.at < 0)
        return;
    if (!UPDATE) {
        s.gradient[h.at] = gradient;
        return;
    }
    adam_one(adam, gradient, h.p, h.m, h.v);
    s.new_state[h.at] = h.p;
    s.new_state[STRIDE + h.at] = h.m;
    s.new_state[2 * STRIDE + h.at] = h.v;
}

/* --- losses --- */

/*
 * From the derivatives, which hold the differences, by WARPS_OF neighbouring warps of which this
 * thread is number `index`; `meet` makes them wait for each other. Then what only one has to write.
 */
template <int WARPS_OF, class MEET>
__device__ __forceinline__ void finish_losses(const step_data &s, double batch, int index,
                                              double *shared, MEET meet) {
    const float *difference = delta_of(s, LAYERS - 1);
    double elements = batch * OUTPUTS, squares = 0, sizes = 0;
#pragma unroll 4
    for (int i = index; i < s.rows * OUTPUTS; i += 32 * WARPS_OF) {
        double d = (double)difference[i] * elements / 2;
        squares += d * d;
        sizes += fabs(d);
    }
    squares = warp_sum(squares), sizes = warp_sum(sizes);
    if (WARPS_OF > 1) {
        if (index % 32 == 0)
            shared[index / 32] = squares, shared[WARPS_OF + index / 32] = sizes;
        meet();
        squares = sizes = 0;
        for (int i = 0; i < WARPS_OF; i++)
            squares += shared[i], sizes += shared[WARPS_OF + i];
    }
    if (UPDATE && s.new_state != s.state)
        for (int i = index; i < 3 * (STRIDE - PARAMETERS); i += 32 * WARPS_OF) {
            int at = i % 3 * STRIDE + PARAMETERS + i / 3;
            s.new_state[at] = s.state[at];
        }
    if (index)
        return;
    float mse = (float)(squares / elements), mae = (float)(sizes / elements);
    if (UPDATE)
        write_tail(s.new_state + 3 * STRIDE, s.step, mse, mae);
    else
        s.gradient[PARAMETERS] = mse, s.gradient[PARAMETERS + 1] = mae;
}

/* The step's place among the batches there are: nearly always 32 bits are enough, and far
 * quicker. */
__device__ __forceinline__ s64 batch_of(s64 step, s64 batches) {
    if ((u64)step >> 32 || (u64)batches >> 32)
        return step % batches;
    return (u32)step % (u32)batches;
}

#endif

#endif
