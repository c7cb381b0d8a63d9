/*
 * plan.h: which kernel does an op, how it is specialised, its grid and its arguments. All of it
 * follows from the launch alone, so it is decided, and tested, without a GPU.
 *
 * A kernel is one function of a file in kernels/, a variant that function with values for its macros
 * in a dtype. A variant is a few small numbers, cheap to look up; its text for the compiler is made
 * by compile.c only when it is first needed.
 */
#ifndef LAB_DEVICE_CUDA_PLAN_H
#define LAB_DEVICE_CUDA_PLAN_H

#include "device/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * name, file, arguments, macros. An argument is p: pointer, l: 64 bits, i: 32 bits, f: float. Every
 * kernel compiles for CUDA_ARCHITECTURES and whatever comes after them.
 */
#define CUDA_KERNELS(X)                                                                            \
    X(fill, "elementwise.cu", "plf", NULL)                                                         \
    X(add, "elementwise.cu", "pppl", NULL)                                                         \
    X(bias, "elementwise.cu", "pppli", NULL)                                                       \
    X(gelu, "elementwise.cu", "ppl", NULL)                                                         \
    X(layer_norm, "layer_norm.cu", "pppplf", "COLUMNS", "THREADS", "VECTOR")                       \
    X(layer_norm_long, "layer_norm.cu", "ppppif", NULL)                                            \
    X(patchify_layer_norm, "layer_norm.cu", "pppplfii", "COLUMNS", "THREADS", "VECTOR",            \
      "CHANNELS", "PATCH")                                                                         \
    X(layer_norm_embed, "layer_norm.cu", "pppppplfi", "COLUMNS", "THREADS", "VECTOR")              \
    X(softmax, "softmax.cu", "ppli", "THREADS", "PIECES", "VECTOR")                                \
    X(softmax_long, "softmax.cu", "ppi", NULL)                                                     \
    X(patchify, "patches.cu", "ppiiii", NULL)                                                      \
    X(embed, "patches.cu", "ppppii", NULL)                                                         \
    X(attention, "attention.cu", "ppiif", "STAGES")                                                \
    X(attention_any, "attention.cu", "ppiifi", NULL)

enum cuda_kernel_id {
#define CUDA_KERNEL_ID(name, ...) CUDA_KERNEL_##name,
    CUDA_KERNELS(CUDA_KERNEL_ID)
#undef CUDA_KERNEL_ID
        CUDA_KERNEL_COUNT
};

#define CUDA_ARCHITECTURES                                                                         \
    { 80, 86, 89, 90 } /* compute capability × 10 */
#define CUDA_MACROS    5
#define CUDA_ARGUMENTS 9

struct cuda_kernel_row {
    const char *name, *file, *arguments;
    const char *macros[CUDA_MACROS + 1]; /* NULL-terminated */
};

extern const struct cuda_kernel_row cuda_kernel_rows[CUDA_KERNEL_COUNT];

/* Compared and hashed as bytes: no padding, unused macros are 0. */
struct cuda_variant {
    int16_t kernel, dtype;
    int32_t macros[CUDA_MACROS];
};

/* Room for the name of any variant: "layer_norm bf16 COLUMNS=512 THREADS=32 VECTOR=1". */
#define CUDA_VARIANT_NAME_BYTES 160
void cuda_variant_name(const struct cuda_variant *variant, char name[CUDA_VARIANT_NAME_BYTES]);

struct cuda_call {
    struct cuda_variant variant;
    unsigned grid[3], threads, shared_bytes;
    /* each argument at the start of its 8 bytes, as a little-endian machine has it */
    uint64_t arguments[CUDA_ARGUMENTS];
    int argument_count;
};

enum cuda_way {
    CUDA_WAY_KERNEL, /* as the call says */
    CUDA_WAY_GEMM,   /* cuBLASLt does it (gemm.h) */
    CUDA_WAY_LOWER,  /* no kernel has this shape: the op's composition */
};

struct cuda_room { /* what a device offers a kernel */
    int sm_count;
    int shared_bytes_max; /* a block's */
};

/*
 * How a completed launch of a supported op is done; tensors without data count as aligned. Fails for
 * shapes that nothing here can do (LAB_ERR_UNSUPPORTED).
 */
int cuda_plan(const struct lab_launch *launch, struct cuda_room room, enum cuda_way *ret_way,
              struct cuda_call *ret_call, struct lab_err *err);

#endif
