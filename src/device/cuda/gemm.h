/*
 * gemm.h: matrix products, alone and with bias, GELU or a residual, by cuBLASLt.
 *
 * A product of a shape is planned once for a device: descriptors, and the fastest of the algorithms
 * that the library proposes, found by timing them (gemm_tune.c). Later launches look the plan up.
 */
#pragma once

#include "device/cuda/cuda.h"
#include "vendor/cublaslt.h"

#define CUDA_GEMM_WORKSPACE_BYTES ((size_t)32 << 20) /* what cuBLASLt's Hopper kernels ask for */

/* What a launch's kernels hand each other. Whoever needs more gets another piece: graphs may know
 * those that there are. */
struct cuda_scratch {
    lab_cu_pointer memory;
    size_t size_bytes;
    struct cuda_scratch *next;
};

struct cuda_workspace {    /* of a stream; products on one stream never run side by side */
    lab_cu_pointer memory; /* 0 until the first product */
    struct cuda_scratch *scratch;
};

/* Compared and hashed as bytes: no padding. */
struct cuda_gemm_key {
    int32_t m, n, k;
    uint8_t op, dtype, out_dtype;
    uint8_t turned;     /* bit 0: a is [k,m]; bit 1: b is [n,k] */
    uint8_t aligned[4]; /* log2 of what a, b, the summand and the output are multiples of */
};

enum cuda_gemm_operand { CUDA_GEMM_A, CUDA_GEMM_B, CUDA_GEMM_C, CUDA_GEMM_D }; /* ours, row-major */

struct cuda_gemm_plan {
    struct cuda_gemm_key key;
    bool ready;  /* else an empty slot */
    bool exists; /* the library has an algorithm for it */
    lab_lt_matmul_desc desc;
    lab_lt_layout layouts[4]; /* by operand; C's is D's */
    const void *bias, *aux;   /* that the descriptor holds */
    struct lab_lt_algo algo;
    size_t workspace_bytes;
};

struct cuda_gemms {
    const struct lab_cublaslt *lt; /* NULL until the first product */
    lab_lt_handle handle;
    struct cuda_gemm_plan *plans; /* open addressing; a power of two of them, or none */
    int count, capacity;
};

/* The memory of one product. */
struct cuda_gemm_operands {
    const void *a, *b, *c, *bias, *aux; /* all but a and b: NULL where the op has none */
    void *d;
};

/*
 * Enqueues a gemm or what is fused to one. *ret_fused is false, and nothing was enqueued, where the
 * library has no algorithm that does it in one: the op's composition will do.
 */
int cuda_gemm_launch(struct cuda_gemms *gemms, struct cuda_stream *stream,
                     const struct lab_launch *launch, bool *ret_fused, struct lab_err *err);
void cuda_gemms_release(struct cuda_gemms *gemms); /* the context is current and idle */

/* How the op's inputs are used. */
bool cuda_gemm_adds(enum lab_op_id op); /* a summand: c */
bool cuda_gemm_has_bias(enum lab_op_id op);
bool cuda_gemm_has_aux(enum lab_op_id op); /* what stands before an activation */
struct cuda_gemm_key cuda_gemm_key_of(const struct lab_launch *launch);

/* --- gemm.c for gemm_tune.c, and the other way round --- */

/* Puts the product on a stream with this algorithm. */
lab_lt_status cuda_gemm_enqueue(const struct cuda_gemms *gemms, struct cuda_gemm_plan *plan,
                                const struct cuda_gemm_operands *operands,
                                const struct lab_lt_algo *algo, lab_cu_pointer workspace,
                                size_t workspace_bytes, lab_cu_stream stream);

/*
 * Which of `count` algorithms is the fastest on this device: as an earlier process found, or timed
 * in graphs on memory and a stream of its own; 0 (the library's first) where that can't be done.
 */
int cuda_gemm_tune(const struct cuda_gemms *gemms, struct cuda_device *device,
                   struct cuda_gemm_plan *plan, const struct lab_lt_heuristic *algorithms,
                   int count);
