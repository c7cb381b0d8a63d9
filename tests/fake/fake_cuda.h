/*
 * fake_cuda.h: a driver without a GPU, for tests of everything around the GPU: devices, contexts,
 * memory, streams, events and graphs behave as the vendor's manual says, as far as we use them, and
 * calls that break its rules fail. Kernels do nothing. Commands run when they are enqueued.
 *
 * The environment says what there is, and is read at each call:
 *
 *   FAKE_CUDA_GPUS=2           how many GPUs; GPU i has the UUID GPU-0000000i-0000-…
 *   FAKE_CUDA_MIG=1            that GPU is in MIG mode and has two instances, MIG-0000001k-0000-…
 *   FAKE_CUDA_VERSION=13000    what the driver says it is for; later functions are missing
 *   FAKE_CUDA_MEMORY_MIB=64    device memory of each
 *   FAKE_CUDA_MODE=3           the compute mode of each
 *   FAKE_CUDA_GROUPS=15        so many slices at most
 *   FAKE_CUDA_DRIFT_NS=5000    added to the GPU's clock from now on
 *   FAKE_CUDA_FAIL=NAME:CODE[,NAME:CODE…]   these functions fail, also those of NVML
 *   FAKE_CUDA_HANG=NAME        this function never returns
 */
#pragma once

#include "vendor/cuda.h"

#include <stdbool.h>

#define FAKE_GPUS_MAX 16
#define FAKE_SM_COUNT 132
#define FAKE_EXPORT   __attribute__((visibility("default")))

int64_t fake_number(const char *variable, int64_t fallback);
int fake_injected(const char *function); /* the code with which it shall fail; 0 = it works */
void fake_uuid(int gpu, int instance, struct lab_cu_uuid *ret_uuid);
void fake_uuid_text(int gpu, int instance, char ret_text[48]); /* instance -1: the whole GPU */

struct lab_cu_context_st {
    int ordinal;
    bool green;
    unsigned sm_count;
};

extern _Thread_local lab_cu_context fake_current;

/* Is all of the range allocated device memory? */
bool fake_is_device(lab_cu_pointer memory, size_t size_bytes);
