/*
 * op_check.h: an op's example made real: random inputs on the host, what the output should be in
 * double precision, and how far an output is from it. Used for single kernels and whole devices.
 */
#pragma once

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "device/op.h"
#include "workload/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct op_case {
    const struct lab_op *op;
    struct lab_launch launch; /* tensors without data */
    char name[96];
    float *in[LAB_LAUNCH_INPUTS];
    int64_t in_count[LAB_LAUNCH_INPUTS];
    double *expected, *expected_also; /* also: NULL where there is no second output */
    int64_t count, also_count;        /* of the outputs */
};

/* Uniform in [-1, 1), rounded to the dtype, so that the reference sees the very same numbers. */
static inline double *op_case_fill(struct lab_arena *arena, struct op_case *c, int input,
                                   uint64_t seed) {
    int64_t count = lab_tensor_count(&c->launch.in[input]);
    c->in_count[input] = count;
    c->in[input] = lab_arena_alloc(arena, (size_t)count, sizeof(float));
    double *exact = lab_arena_alloc(arena, (size_t)count, sizeof *exact);
    for (int64_t i = 0; i < count; i++)
        c->in[input][i] = lab_random_symmetric(seed * 8 + (uint64_t)input, (uint64_t)i);
    if (c->op->domain)
        c->op->domain(&c->launch, input, c->in[input]);
    enum lab_dtype dtype = c->launch.in[input].dtype;
    if (lab_dtype_bytes(dtype) < sizeof(float)) {
        void *rounded = lab_mem_alloc((size_t)count, lab_dtype_bytes(dtype));
        lab_data_encode(dtype, c->in[input], count, rounded);
        lab_data_decode(dtype, rounded, count, c->in[input]);
        lab_mem_free(rounded);
    }
    for (int64_t i = 0; i < count; i++)
        exact[i] = c->in[input][i];
    return exact;
}

/* What the example's second output is, where the op has one. */
static inline struct lab_tensor op_case_also(const struct lab_launch *launch) {
    return lab_op_get(launch->op)->also(launch);
}

/* Example `index` of an op; -1 behind the last. */
static inline int op_case_make(enum lab_op_id id, int index, enum lab_dtype dtype,
                               struct lab_arena *arena, struct op_case *ret_case,
                               struct lab_err *err) {
    *ret_case = (struct op_case){.op = lab_op_get(id)};
    if (lab_op_example(id, index, dtype, &ret_case->launch) < 0)
        return -1;
    if (lab_launch_complete(&ret_case->launch, err) < 0)
        return -1;
    const double *in[LAB_LAUNCH_INPUTS] = {NULL};
    for (int i = 0; i < ret_case->op->inputs; i++)
        in[i] = op_case_fill(arena, ret_case, i, (uint64_t)id * 100 + (uint64_t)index);
    ret_case->count = lab_tensor_count(&ret_case->launch.out);
    ret_case->expected =
        lab_arena_alloc(arena, (size_t)ret_case->count, sizeof *ret_case->expected);
    ret_case->op->reference(&ret_case->launch, in, ret_case->expected);
    if (ret_case->op->reference_also) {
        struct lab_tensor also = op_case_also(&ret_case->launch);
        ret_case->also_count = lab_tensor_count(&also);
        ret_case->expected_also =
            lab_arena_alloc(arena, (size_t)ret_case->also_count, sizeof *ret_case->expected_also);
        ret_case->op->reference_also(&ret_case->launch, in, ret_case->expected_also);
    }
    snprintf(ret_case->name, sizeof ret_case->name, "%s example %d", ret_case->op->name, index);
    return 0;
}

/*
 * The largest difference, relative to the largest value expected, which counts as `least` or more.
 * Whatever isn't a number where one is expected counts as infinitely far.
 */
static inline double op_error(const double *expected, const float *found, int64_t count,
                              double least) {
    double size = least, worst = 0;
    for (int64_t i = 0; i < count; i++)
        size = fmax(size, fabs(expected[i]));
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)found[i] - expected[i]);
        if (!isfinite(difference))
            return INFINITY;
        worst = fmax(worst, difference);
    }
    return worst / size;
}

/* A logarithm's own size means nothing: its error is that of what it is the logarithm of. So is a
 * loss's, and a mean's that is near 0. */
static inline double op_case_also_error(const struct op_case *c, const float *also) {
    return op_error(c->expected_also, also, c->also_count, 1);
}

static inline double op_case_error(const struct op_case *c, const float *out) {
    return op_error(c->expected, out, c->count, 1e-30);
}

/* What the studies' outputs are held to; tf32 and fp16 have 10 bits behind the point, bf16 7. The
 * CPU does better in single precision, with sums of some hundred terms, and is held to that. */
static inline double op_case_tolerance(enum lab_dtype dtype, bool on_cpu) {
    if (dtype == LAB_FP32)
        return on_cpu ? 2e-6 : 1e-5;
    return dtype == LAB_TF32 ? 2e-3 : 2e-2;
}

/* GPULAB_TEST_KERNELS=own leaves out what a library computes: tools that look into every kernel may
 * not bear its own. */
static inline bool only_own_kernels(void) {
    return lab_str_equal(getenv("GPULAB_TEST_KERNELS"), "own");
}

/* Products are a library's without a tuning, and with one whose first value, the way, is 0. */
static inline bool op_is_a_librarys(const struct lab_launch *launch) {
    return lab_str_starts(lab_op_get(launch->op)->name, "gemm") &&
           (!launch->tuning.count || !launch->tuning.values[0]);
}

/* GPULAB_TEST_OPS=WORD,... tries those ops alone whose names begin with one of the words. */
static inline bool op_is_wanted(enum lab_op_id id) {
    const char *words = getenv("GPULAB_TEST_OPS"), *name = lab_op_get(id)->name;
    if (!words || !*words)
        return true;
    for (; *words; words += strspn(words, ",")) {
        size_t length = strcspn(words, ",");
        if (length && strncmp(words, name, length) == 0)
            return true;
        words += length;
    }
    return false;
}

/* An output nobody wrote must not look like a right one. */
static inline void op_case_poison(float *out, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = NAN;
}
