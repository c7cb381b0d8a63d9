/*
 * train.c: what surrounds the products of a training step: operands in fewer digits, ReLU with
 * dropout, its derivative, Adam.
 *
 * Philox keeps its words in the lower halves of 64-bit lanes, where products need them; what stands
 * in the upper halves is never looked at. Two such vectors, of the even and of the odd blocks, make
 * one vector of words with a block in each lane.
 */
#include "base/philox.h"
#include "device/cpu/simd/simd.h"
#include "device/cpu/simd/vector.h"
#include "device/mlp.h"

struct blocks {
    pairs words[4];
};

/* Blocks first, first + 2, first + 4, …: one in each pair. */
static inline struct blocks draw(uint32_t first, const struct cpu_dropout *dropout) {
    struct blocks c;
    for (unsigned i = 0; i < LANES / 2; i++)
        c.words[0][i] = first + 2 * i;
    c.words[1] = (pairs){0} + dropout->row;
    c.words[2] = (pairs){0} + dropout->layer;
    c.words[3] = (pairs){0} + dropout->step;
    uint32_t k0 = (uint32_t)dropout->seed, k1 = (uint32_t)(dropout->seed >> 32);
    for (int round = 0; round < LAB_PHILOX_ROUNDS; round++) {
        pairs p0 = pairs_multiply(c.words[0], LAB_PHILOX_M0);
        pairs p1 = pairs_multiply(c.words[2], LAB_PHILOX_M1);
        c.words[0] = (p1 >> 32) ^ c.words[1] ^ k0;
        c.words[1] = p1;
        c.words[2] = (p0 >> 32) ^ c.words[3] ^ k1;
        c.words[3] = p0;
        k0 += LAB_PHILOX_W0;
        k1 += LAB_PHILOX_W1;
    }
    return c;
}

/* x where it is positive, or not a number, and its half of the word isn't below the threshold. */
static inline vector keep(vector x, lanes half, const struct cpu_dropout *dropout) {
    lanes kept = ~(x <= 0.0f) & (half >= (int32_t)dropout->threshold);
    return vector_select(kept, x * dropout->scale, vector_of(0));
}

/* Columns 128·group + 16·j + [lane, lane + LANES), each j: as many as lie within [begin, end). */
static inline void drop_lanes(float *x, int64_t group, int lane, int64_t begin, int64_t end,
                              const struct cpu_dropout *dropout) {
    uint32_t first = (uint32_t)(group * LAB_MLP_LANES + lane);
    struct blocks even = draw(first, dropout), odd = draw(first + 1, dropout);
    for (int word = 0; word < 4; word++) {
        lanes bits = (lanes)((even.words[word] & 0xffffffff) | odd.words[word] << 32);
        for (int upper = 0; upper < 2; upper++) {
            int64_t half_word = 2 * word + upper;
            int64_t column = group * LAB_MLP_GROUP + half_word * LAB_MLP_LANES + lane;
            lanes half = (upper ? bits >> 16 : bits) & 0xffff;
            if (column < begin || column >= end)
                continue;
            float *at = x + (column - begin);
            int64_t rest = end - column;
            if (rest >= LANES)
                vector_store(at, keep(vector_load(at), half, dropout));
            else
                vector_store_part(at, keep(vector_load_part(at, rest, 0), half, dropout), rest);
        }
    }
}

static void relu(float *x, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] <= 0 ? 0 : x[i];
}

void SIMD(relu_dropout)(float *x, int64_t column, int64_t count,
                        const struct cpu_dropout *dropout) {
    int64_t end = column + count;
    if (!dropout->threshold) {
        relu(x, count);
        return;
    }
    for (int64_t group = column / LAB_MLP_GROUP; group * LAB_MLP_GROUP < end; group++)
        for (int lane = 0; lane < LAB_MLP_LANES; lane += LANES)
            drop_lanes(x, group, lane, column, end, dropout);
}

void SIMD(relu_backward)(float *delta, const float *output, int64_t count, float scale) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        delta[i] = output[i] == 0 ? 0 : delta[i] * scale;
}

typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));

/* Without the last `digits`. A carry out of the fraction is the next power of two, or infinity: as
 * it should be. */
static inline vector round_to(vector x, int digits, bool to_even) {
    words u = (words)x, last = (u >> (uint32_t)digits) & 1,
          half = (words){0} + (1u << (digits - 1));
    words near = (u + (to_even ? half - 1 + last : half)) & ~((1u << digits) - 1);
    /* what is no number stays as it is */
    return vector_select(x == x, (vector)near, x); /* NOLINT(misc-redundant-expression) */
}

static inline vector round_either(vector x, bool bf16) {
    return bf16 ? round_to(x, 16, true) : round_to(x, 13, false);
}

void SIMD(round)(float *out, const float *x, int64_t count, bool bf16) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        vector_store(out + i, round_either(vector_load(x + i), bf16));
    if (i < count)
        vector_store_part(out + i, round_either(vector_load_part(x + i, count - i, 0), bf16),
                          count - i);
}

/* Moments of an output that is never positive die out. They end as 0 rather than as numbers below
 * the normal range, which they would never leave and with which some CPUs take a hundred times as
 * long. */
#define MOMENT_LEAST 1e-30f

static inline vector flush(vector moment) {
    vector size = (vector)((lanes)moment & 0x7fffffff);
    return vector_select(size < MOMENT_LEAST, vector_of(0), moment);
}

static inline void update(const struct cpu_adam *a, vector gradient, vector *parameters, vector *m,
                          vector *v) {
    *m = flush(*m + (gradient - *m) * a->keep1);
    *v = flush(*v + (gradient * gradient - *v) * a->keep2);
    *parameters -= *m * a->rate / (vector_sqrt(*v) + a->epsilon);
}

void SIMD(adam)(const struct cpu_adam *a, const float *gradient, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vector p = vector_load(a->parameters + i), m = vector_load(a->m + i);
        vector v = vector_load(a->v + i);
        update(a, vector_load(gradient + i), &p, &m, &v);
        vector_store(a->new_parameters + i, p);
        vector_store(a->new_m + i, m);
        vector_store(a->new_v + i, v);
    }
    int64_t rest = count - i;
    if (!rest)
        return;
    vector p = vector_load_part(a->parameters + i, rest, 0);
    vector m = vector_load_part(a->m + i, rest, 0), v = vector_load_part(a->v + i, rest, 0);
    update(a, vector_load_part(gradient + i, rest, 0), &p, &m, &v);
    vector_store_part(a->new_parameters + i, p, rest);
    vector_store_part(a->new_m + i, m, rest);
    vector_store_part(a->new_v + i, v, rest);
}
