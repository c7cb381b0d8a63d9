/*
 * plan.h: which kernel does an op, how it is specialised, its grid and its arguments. All of it
 * follows from the launch alone, so it is decided, and tested, without a GPU.
 *
 * A kernel is one function of a file in kernels/, a variant that function with values for its
 * macros in a dtype. A variant is a few small numbers, cheap to look up; its text for the compiler
 * is made by compile.c only when it is first needed.
 */
#pragma once

#include "device/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * name, file, architectures, dtypes, arguments, macros. An argument is p: pointer, l: 64 bits, i:
 * 32 bits, f: float, m: a tensor map (128 bytes, `const __grid_constant__`). A kernel for 9.0 alone
 * is compiled for sm_90a, whose matrix instructions no later GPU has.
 */
#define CUDA_KERNELS(X)                                                                            \
    X(fill, "elementwise.cu", FROM_80, ANY, "plf", NULL)                                           \
    X(add, "elementwise.cu", FROM_80, ANY, "pppl", NULL)                                           \
    X(bias, "elementwise.cu", FROM_80, ANY, "pppli", NULL)                                         \
    X(gelu, "elementwise.cu", FROM_80, ANY, "ppl", NULL)                                           \
    X(gelu_tanh, "elementwise.cu", FROM_80, ANY, "ppl", NULL)                                      \
    X(gelu_tanh_backward, "elementwise.cu", FROM_80, ANY, "pppl", NULL)                            \
    X(layer_norm, "layer_norm.cu", FROM_80, ANY, "ppppplf", "COLUMNS", "THREADS", "VECTOR")        \
    X(layer_norm_long, "layer_norm.cu", FROM_80, ANY, "pppppif", NULL)                             \
    X(patchify_layer_norm, "layer_norm.cu", FROM_80, ANY, "pppplfii", "COLUMNS", "THREADS",        \
      "VECTOR", "CHANNELS", "PATCH")                                                               \
    X(layer_norm_embed, "layer_norm.cu", FROM_80, ANY, "pppppplfi", "COLUMNS", "THREADS",          \
      "VECTOR")                                                                                    \
    X(residual_layer_norm, "layer_norm.cu", FROM_80, ANY, "pppppplf", "COLUMNS", "THREADS",        \
      "VECTOR")                                                                                    \
    X(layer_norm_backward, "layer_norm_backward.cu", FROM_80, ANY, "pppppppl", "COLUMNS",          \
      "THREADS", "VECTOR", "ROWS", "SUMS")                                                         \
    X(layer_norm_backward_sums, "layer_norm_backward.cu", FROM_80, SINGLE, "ppii", NULL)           \
    X(cross_entropy, "cross_entropy.cu", FROM_80, ANY, "ppppiif", "THREADS", "PIECES")             \
    X(cross_entropy_long, "cross_entropy.cu", FROM_80, ANY, "ppppiif", NULL)                       \
    X(embed_tokens, "tokens.cu", FROM_80, ANY, "ppppiii", NULL)                                    \
    X(embed_tokens_backward, "tokens.cu", FROM_80, ANY, "ppppli", "COLUMNS", "TOKENS", "VECTOR")   \
    X(column_sum, "gradient.cu", FROM_80, ANY, "ppppliif", NULL)                                   \
    X(column_sum_finish, "gradient.cu", FROM_80, ANY, "pppiif", NULL)                              \
    X(accumulate, "gradient.cu", FROM_80, ANY, "ppplf", NULL)                                      \
    X(square_sum, "gradient.cu", FROM_80, ANY, "ppl", NULL)                                        \
    X(clip, "gradient.cu", FROM_80, ANY, "ppppif", NULL)                                           \
    X(softmax, "softmax.cu", FROM_80, ANY, "ppli", "THREADS", "PIECES", "VECTOR", "BLOCKS",        \
      "AHEAD", "PAST")                                                                             \
    X(softmax_wide, "softmax.cu", FROM_90, ANY, "ppli", "THREADS", "PIECES", "VECTOR", "BLOCKS",   \
      "AHEAD", "PAST", "CLUSTER")                                                                  \
    X(softmax_long, "softmax.cu", FROM_80, ANY, "ppi", NULL)                                       \
    X(patchify, "patches.cu", FROM_80, ANY, "ppiiii", NULL)                                        \
    X(embed, "patches.cu", FROM_80, ANY, "ppppii", NULL)                                           \
    X(attention, "attention.cu", FROM_80, ANY, "ppiif", "STAGES")                                  \
    X(attention_any, "attention.cu", FROM_80, ANY, "ppiifi", NULL)                                 \
    X(flash_attention_mma, "flash_attention_mma.cu", FROM_80, ANY, "pppppiiiif", "WIDTH",          \
      "CAUSAL", "VECTOR", "BLOCK_M", "BLOCK_N", "WARPS", "STAGES", "LSE")                          \
    X(flash_attention_backward_start, "flash_attention_backward.cu", FROM_80, ANY, "pppppllii",    \
      "WIDTH", "VECTOR")                                                                           \
    X(flash_attention_backward_any, "flash_attention_backward.cu", FROM_80, WHOLE, "pppppplliiif", \
      "WIDTH", "CAUSAL")                                                                           \
    X(flash_attention_backward_mma, "flash_attention_backward_mma.cu", FROM_80, HALF,              \
      "ppppppppiiiiif", "WIDTH", "CAUSAL", "VECTOR", "BLOCK_M", "STAGES")                          \
    X(gemm_mma, "gemm_mma.cu", FROM_80, ANY, "pppppiii", "LAYOUT", "EPILOGUE", "VECTOR",           \
      "BLOCK_M", "BLOCK_N", "BLOCK_K", "STAGES", "WARPS_M", "WARPS_N")                             \
    X(gemm_hopper, "gemm_hopper.cu", ONLY_90, MATRIX, "mmmppiiii", "BLOCK_M", "BLOCK_N", "STAGES", \
      "PINGPONG", "CLUSTER", "SPLIT", "LAYOUT", "EPILOGUE")                                        \
    X(flash_attention_hopper, "flash_attention_hopper.cu", ONLY_90, HALF, "mmmppiiiif", "WIDTH",   \
      "CAUSAL", "BLOCK_M", "BLOCK_N", "STAGES", "Q_STAGES", "PINGPONG", "LSE")                     \
    X(flash_attention_backward_hopper, "flash_attention_backward_hopper.cu", ONLY_90, HALF,        \
      "mmmmpppppiiiiiif", "CAUSAL")                                                                \
    X(mlp, "mlp.cu", FROM_80, TRAINING, "ppppppllllllllliiiiffffff", "MODE")                       \
    X(mlp_rows, "mlp_rows.cu", FROM_90, TRAINING, "ppppppllllliffffff", "MODE", "W0", "W1", "W2",  \
      "W3", "W4", "W5", "W6", "W7")                                                                \
    X(mlp_wide, "mlp_wide.cu", FROM_90, TRAINING, "ppppppllllliffffff", "MODE", "W0", "W1", "W2",  \
      "W3", "W4", "W5", "W6", "W7", "FEW")                                                         \
    X(mlp_take, "mlp_batch.cu", FROM_80, TRAINING, "pppppllllfff", "W0", "W1", "W2", "W3", "W4",   \
      "W5", "W6", "W7")                                                                            \
    X(mlp_outputs, "mlp_batch.cu", FROM_80, TRAINING, "ppppllliiif", NULL)                         \
    X(mlp_head, "mlp_batch.cu", FROM_80, TRAINING, "ppppppppllllff", "W0", "W1", "W2", "W3", "W4", \
      "W5", "W6", "W7")                                                                            \
    X(mlp_deltas, "mlp_batch.cu", FROM_80, TRAINING, "pppplif", NULL)                              \
    X(mlp_finish, "mlp_batch.cu", FROM_80, TRAINING, "ppppppppllfff", "MODE", "W0", "W1", "W2",    \
      "W3", "W4", "W5", "W6", "W7")                                                                \
    X(adamw, "adamw.cu", FROM_80, ANY, "pppppllffff", NULL)                                        \
    X(adam, "mlp.cu", FROM_80, TRAINING, "pppllffff", NULL)                                        \
    X(sum, "sum.cu", FROM_80, ANY, "pplpli", "RANKS", "THREADS", "UNROLL")

enum cuda_kernel_id {
#define CUDA_KERNEL_ID(name, ...) CUDA_KERNEL_##name,
    CUDA_KERNELS(CUDA_KERNEL_ID)
#undef CUDA_KERNEL_ID
        CUDA_KERNEL_COUNT
};

/* Which GPUs can run a kernel, by compute capability. */
enum cuda_architectures { CUDA_FROM_80, CUDA_FROM_90, CUDA_ONLY_90 };

enum { /* the dtypes that a kernel exists in, a bit for each */
       CUDA_DTYPES_ANY = 1 << LAB_FP32 | 1 << LAB_TF32 | 1 << LAB_BF16 | 1 << LAB_FP16,
       CUDA_DTYPES_HALF = 1 << LAB_BF16 | 1 << LAB_FP16,
       CUDA_DTYPES_TRAINING = 1 << LAB_FP32 | 1 << LAB_TF32 | 1 << LAB_BF16,
       CUDA_DTYPES_SINGLE = 1 << LAB_FP32,
       CUDA_DTYPES_WHOLE = 1 << LAB_FP32 | 1 << LAB_TF32,     /* stored as fp32 */
       CUDA_DTYPES_MATRIX = CUDA_DTYPES_HALF | 1 << LAB_TF32, /* what matrix units multiply */
};

#define CUDA_ARCHITECTURES                                                                         \
    { 80, 86, 89, 90 } /* compute capability × 10 */
#define CUDA_MACROS    10
#define CUDA_ARGUMENTS 32
#define CUDA_MAPS      4

struct cuda_kernel_row {
    const char *name, *file;
    enum cuda_architectures architectures;
    int dtypes;
    const char *arguments;
    const char *macros[CUDA_MACROS + 1]; /* NULL-terminated */
};

extern const struct cuda_kernel_row cuda_kernel_rows[CUDA_KERNEL_COUNT];

/* Whether a GPU of this capability (90 for 9.0) can run it. */
bool cuda_kernel_runs_on(enum cuda_kernel_id kernel, int capability);

/* Compared and hashed as bytes: no padding, unused macros are 0. */
struct cuda_variant {
    int16_t kernel, dtype;
    int32_t macros[CUDA_MACROS];
};

/* Room for the name of any variant: "layer_norm bf16 COLUMNS=512 THREADS=32 VECTOR=1". */
#define CUDA_VARIANT_NAME_BYTES 256
void cuda_variant_name(const struct cuda_variant *variant, char name[CUDA_VARIANT_NAME_BYTES]);

/*
 * A tensor that a kernel loads or stores in boxes (TMA). The driver turns it into a tensor map just
 * before the launch; what it demands is checked by cuda_map_check. Dimension 0 is the innermost,
 * whose elements lie side by side.
 */
#define CUDA_MAP_RANK 5
struct cuda_map {
    void *data; /* at a multiple of 16 */
    enum lab_dtype dtype;
    int rank;
    uint64_t sizes[CUDA_MAP_RANK];             /* in elements */
    uint64_t strides_bytes[CUDA_MAP_RANK - 1]; /* of dimensions 1, 2, …: multiples of 16 */
    uint32_t box[CUDA_MAP_RANK];               /* in elements, 256 at most in each dimension */
    int swizzle_bytes;                         /* 0, 32, 64 or 128: what a box's row has at most */
};

/* Whether the driver will take it; the error says what it demands. */
int cuda_map_check(const struct cuda_map *map, struct lab_err *err);

struct cuda_call {
    struct cuda_variant variant;
    unsigned grid[3], threads, shared_bytes;
    unsigned cluster; /* blocks of a cluster, along x; 0 = none */
    /* its blocks go from one piece of work to the next: the grid shrinks to the clusters that can
     * run at once, which no plan knows */
    bool persistent;
    /* each argument at the start of its 8 bytes, as a little-endian machine has it; of a tensor map
     * the index in `maps` */
    uint64_t arguments[CUDA_ARGUMENTS];
    int argument_count;
    struct cuda_map maps[CUDA_MAPS];
    int map_count;
};

enum cuda_way {
    CUDA_WAY_KERNEL, /* as the call says */
    CUDA_WAY_GEMM,   /* cuBLASLt does it (gemm.h) */
    CUDA_WAY_LOWER,  /* no kernel has this shape: the op's composition */
    CUDA_WAY_PARTS,  /* several kernels of ours and products of cuBLASLt, in turn */
};

struct cuda_capacity { /* what a device offers a kernel */
    int sm_count;
    int shared_bytes_max; /* a block's */
    int capability;       /* 90 for 9.0 */
};

/*
 * How a completed launch of a supported op is done; tensors without data count as aligned. A tuning
 * that it carries was checked. Fails for shapes that nothing here can do (LAB_ERR_UNSUPPORTED).
 */
int cuda_plan(const struct lab_launch *launch, struct cuda_capacity capacity,
              enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err);

/* --- launches of several parts: training steps of large batches, attention backward --- */

struct cuda_part {
    bool is_product;
    struct lab_launch
        product;           /* cuBLASLt's: a gemm whose output may be fp32 where its inputs aren't */
    struct cuda_call call; /* a kernel of ours */
};

#define CUDA_PARTS 32 /* at most: seven layers have 31 */

/* The parts, in order, of a launch that cuda_plan answers CUDA_WAY_PARTS to, and the scratch memory
 * that they need. */
int cuda_plan_parts(const struct lab_launch *launch, struct cuda_capacity capacity, void *scratch,
                    struct cuda_part parts[CUDA_PARTS], int *ret_count, struct lab_err *err);
int64_t cuda_parts_bytes(const struct lab_launch *launch, struct cuda_capacity capacity);

/* --- sums over ranks, which are no op: plan_sum.c --- */

#define CUDA_SUM_SEATS 1024 /* of a rank, as in kernels/sum.cu: blocks of a grid at most */

struct cuda_sum_arguments { /* the kernel's, in its order */
    uint64_t seats, vector;
    int64_t count;
    uint64_t notice, limit_ns;
    int rank;
};

struct cuda_variant cuda_sum_variant(int ranks, enum lab_dtype dtype);

/* One kernel of a rank on `sm_count` multiprocessors. The grid follows from these and the count
 * alone: all ranks must come to the same. */
void cuda_plan_sum(const struct cuda_variant *variant, const struct cuda_sum_arguments *arguments,
                   int sm_count, struct cuda_call *ret_call);
