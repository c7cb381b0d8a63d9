/*
 * vendor/nccl.h: NCCL, exchanges between GPUs, as far as we use it. Rows as in vendor/cuda.h; every
 * function returns a lab_nccl_result unless it stands below the table.
 *
 * A communicator has a rank for each GPU. Ranks of one process are made together (ncclCommInitAll,
 * or ncclCommInitRank within a group), ranks of several processes by an id that one of them draws
 * and all are given. Exchanges are put on a stream and end there.
 */
#pragma once

#include "base/dl.h"
#include "vendor/cuda.h"

#include <stdbool.h>
#include <stddef.h>

typedef int lab_nccl_result;
typedef struct lab_nccl_comm_st *lab_nccl_comm;

enum {
    LAB_NCCL_SUCCESS = 0,
    LAB_NCCL_IN_PROGRESS = 7, /* of a communicator that doesn't block: ask again */
};

typedef int lab_nccl_type;
enum { LAB_NCCL_FLOAT16 = 6, LAB_NCCL_FLOAT32 = 7, LAB_NCCL_BFLOAT16 = 9 };

typedef int lab_nccl_reduction;
enum { LAB_NCCL_SUM = 0 };

#define LAB_NCCL_ESSENTIAL "all-reduce between GPUs goes through host memory"
#define LAB_NCCL_ABORT     "an exchange whose partner is gone can only be ended with its process"
#define LAB_NCCL_TEXTS     "its errors are shown as numbers, without what led to them"

#define LAB_NCCL_FUNCTIONS(X)                                                                      \
    X(ncclGetVersion, LAB_NCCL_ESSENTIAL, (int *ret_version))                                      \
    X(ncclCommInitAll, LAB_NCCL_ESSENTIAL,                                                         \
      (lab_nccl_comm * ret_comms, int device_count, const int *devices))                           \
    X(ncclCommDestroy, LAB_NCCL_ESSENTIAL, (lab_nccl_comm comm))                                   \
    X(ncclCommAbort, LAB_NCCL_ABORT, (lab_nccl_comm comm))                                         \
    X(ncclCommGetAsyncError, LAB_NCCL_ABORT, (lab_nccl_comm comm, lab_nccl_result * ret_result))   \
    X(ncclAllReduce, LAB_NCCL_ESSENTIAL,                                                           \
      (const void *from, void *to, size_t count, lab_nccl_type type, lab_nccl_reduction reduction, \
       lab_nccl_comm comm, lab_cu_stream stream))

struct lab_nccl {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_NCCL_MEMBER(name, effect, parameters) lab_nccl_result(*name) parameters;
    LAB_NCCL_FUNCTIONS(LAB_NCCL_MEMBER)
#undef LAB_NCCL_MEMBER
    const char *(*ncclGetErrorString)(lab_nccl_result result); /* these two may be NULL */
    const char *(*ncclGetLastError)(lab_nccl_comm comm);
};

/* Loads it at the first call, from any thread; never NULL, but the functions may be. */
const struct lab_nccl *lab_nccl_load(const struct lab_dl_report **ret_report);

/* All that an all-reduce between GPUs of one process needs is there. */
bool lab_nccl_ready(void);

/* As 22809 for 2.28.9; 0 where there is none. */
int lab_nccl_version(void);
