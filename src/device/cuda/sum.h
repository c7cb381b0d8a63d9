/* sum.h: what sums keep on a device, and the hook by which waiting for the device tells of them. */
#pragma once

#include "device/cuda/cuda.h"
#include "device/sum.h"

extern const struct lab_sum_kind *const cuda_sums[]; /* NULL-terminated */
extern const struct lab_sum_kind cuda_sum_memory;    /* sum.c: slices of one GPU */
extern const struct lab_sum_kind cuda_sum_nccl;      /* sum_nccl.c: whole GPUs */

#define CUDA_SUM_RANKS 16 /* slices that a GPU can be cut into */
