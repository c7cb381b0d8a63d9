/*
 * vendor/cublaslt.h: cuBLASLt, the vendor's matrix products with fused ends, as far as we use it.
 * Rows as in vendor/cuda.h; every function returns a lab_lt_status. Matrices are column-major
 * there: a row-major product C = A·B is the column-major Cᵀ = Bᵀ·Aᵀ.
 */
#pragma once

#include "base/dl.h"
#include "vendor/cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int lab_lt_status;
typedef struct lab_lt_handle_st *lab_lt_handle;
typedef struct lab_lt_matmul_desc_st *lab_lt_matmul_desc;
typedef struct lab_lt_layout_st *lab_lt_layout;
typedef struct lab_lt_preference_st *lab_lt_preference;
typedef int lab_lt_compute_type;
typedef int lab_lt_data_type;
typedef int lab_lt_desc_attribute;
typedef int lab_lt_preference_attribute;

struct lab_lt_algo {
    uint64_t data[8];
};

struct lab_lt_heuristic {
    struct lab_lt_algo algo;
    size_t workspace_bytes;
    lab_lt_status state; /* 0 = usable */
    float waves;
    int reserved[4];
};

enum { /* lab_lt_status */
       LAB_LT_SUCCESS = 0,
       LAB_LT_NOT_INITIALIZED = 1,
       LAB_LT_ALLOC_FAILED = 3,
       LAB_LT_INVALID_VALUE = 7,
       LAB_LT_ARCH_MISMATCH = 8,
       LAB_LT_EXECUTION_FAILED = 13,
       LAB_LT_INTERNAL_ERROR = 14,
       LAB_LT_NOT_SUPPORTED = 15,
};

enum { LAB_LT_R_32F = 0, LAB_LT_R_16F = 2, LAB_LT_R_16BF = 14 };
enum { LAB_LT_COMPUTE_32F = 68, LAB_LT_COMPUTE_32F_TF32 = 77 };
enum { LAB_LT_OP_N = 0, LAB_LT_OP_T = 1 };

enum {                                   /* lab_lt_desc_attribute, with the type of its value */
       LAB_LT_DESC_TRANSA = 3,           /* int32_t: LAB_LT_OP_… */
       LAB_LT_DESC_TRANSB = 4,           /* int32_t */
       LAB_LT_DESC_EPILOGUE = 7,         /* uint32_t: LAB_LT_EPILOGUE_… */
       LAB_LT_DESC_BIAS_POINTER = 8,     /* void * */
       LAB_LT_DESC_AUX_POINTER = 11,     /* void *: what stands before the activation */
       LAB_LT_DESC_AUX_LD = 12,          /* int64_t: of its columns, in elements */
       LAB_LT_DESC_SM_COUNT_TARGET = 15, /* int32_t */
};

enum { /* epilogues */
       LAB_LT_EPILOGUE_DEFAULT = 1,
       LAB_LT_EPILOGUE_BIAS = 4,
       LAB_LT_EPILOGUE_GELU_BIAS = 36,
       LAB_LT_EPILOGUE_GELU_AUX_BIAS = 164, /* and keeps what stands before it */
       LAB_LT_EPILOGUE_DGELU = 192,
};

enum {                                       /* lab_lt_preference_attribute */
       LAB_LT_PREFERENCE_MAX_WORKSPACE = 1,  /* uint64_t */
       LAB_LT_PREFERENCE_REDUCTION_MASK = 3, /* uint32_t */
       LAB_LT_PREFERENCE_ALIGNMENT_A = 5,    /* uint32_t */
};

#define LAB_LT_ESSENTIAL "matrix products can't be computed on CUDA devices"

#define LAB_LT_FUNCTIONS(X)                                                                        \
    X(cublasLtCreate, LAB_LT_ESSENTIAL, (lab_lt_handle * ret_handle))                              \
    X(cublasLtDestroy, LAB_LT_ESSENTIAL, (lab_lt_handle handle))                                   \
    X(cublasLtMatmulDescCreate, LAB_LT_ESSENTIAL,                                                  \
      (lab_lt_matmul_desc * ret_desc, lab_lt_compute_type compute, lab_lt_data_type scale))        \
    X(cublasLtMatmulDescDestroy, LAB_LT_ESSENTIAL, (lab_lt_matmul_desc desc))                      \
    X(cublasLtMatmulDescSetAttribute, LAB_LT_ESSENTIAL,                                            \
      (lab_lt_matmul_desc desc, lab_lt_desc_attribute attribute, const void *value,                \
       size_t size_bytes))                                                                         \
    X(cublasLtMatrixLayoutCreate, LAB_LT_ESSENTIAL,                                                \
      (lab_lt_layout * ret_layout, lab_lt_data_type type, uint64_t rows, uint64_t columns,         \
       int64_t leading))                                                                           \
    X(cublasLtMatrixLayoutDestroy, LAB_LT_ESSENTIAL, (lab_lt_layout layout))                       \
    X(cublasLtMatmulPreferenceCreate, LAB_LT_ESSENTIAL, (lab_lt_preference * ret_preference))      \
    X(cublasLtMatmulPreferenceDestroy, LAB_LT_ESSENTIAL, (lab_lt_preference preference))           \
    X(cublasLtMatmulPreferenceSetAttribute, LAB_LT_ESSENTIAL,                                      \
      (lab_lt_preference preference, lab_lt_preference_attribute attribute, const void *value,     \
       size_t size_bytes))                                                                         \
    X(cublasLtMatmulAlgoGetHeuristic, LAB_LT_ESSENTIAL,                                            \
      (lab_lt_handle handle, lab_lt_matmul_desc desc, lab_lt_layout a, lab_lt_layout b,            \
       lab_lt_layout c, lab_lt_layout d, lab_lt_preference preference, int wanted,                 \
       struct lab_lt_heuristic *ret_results, int *ret_count))                                      \
    X(cublasLtMatmul, LAB_LT_ESSENTIAL,                                                            \
      (lab_lt_handle handle, lab_lt_matmul_desc desc, const void *alpha, const void *a,            \
       lab_lt_layout a_layout, const void *b, lab_lt_layout b_layout, const void *beta,            \
       const void *c, lab_lt_layout c_layout, void *d, lab_lt_layout d_layout,                     \
       const struct lab_lt_algo *algo, void *workspace, size_t workspace_bytes,                    \
       lab_cu_stream stream))

struct lab_cublaslt {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_LT_MEMBER(name, effect, parameters) lab_lt_status(*name) parameters;
    LAB_LT_FUNCTIONS(LAB_LT_MEMBER)
#undef LAB_LT_MEMBER
    size_t (*cublasLtGetVersion)(void); /* may be NULL */
};

/* As lab_nvrtc_load. */
const struct lab_cublaslt *lab_cublaslt_load(const struct lab_dl_report **ret_report);

/* All that a product needs is there. */
bool lab_cublaslt_ready(void);

/* As the library counts: 130101 for 13.1.1; 0 where there is none. */
int64_t lab_cublaslt_version(void);

/* "not supported"; never NULL. */
const char *lab_cublaslt_status_text(lab_lt_status status);
