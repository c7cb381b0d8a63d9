/*
 * module.h: kernels loaded on a device, found by their variant. A launch looks its kernel up here,
 * so that takes some ten nanoseconds; what isn't there yet is made by compile.h and loaded.
 */
#pragma once

#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan.h"

struct cuda_modules {
    struct cuda_module *slots; /* open addressing; a power of two of them, or none */
    int count, capacity;
};

struct cuda_module {
    struct cuda_variant variant;
    lab_cu_library library; /* NULL: an empty slot */
    lab_cu_function function;
    /* clusters that can run at once, as a persistent launch last asked; 0 = not asked yet */
    int clusters;
    unsigned clusters_shared_bytes; /* with that much shared memory for each block */
};

/* The device's context is current. Also works while a stream is captured. The module stays in place
 * until the next call. */
int cuda_module_get(struct cuda_modules *modules, const struct cuda_device *device,
                    const struct cuda_variant *variant, struct cuda_module **ret_module,
                    struct lab_err *err);

/* Unloads all; the context is current and idle. */
void cuda_modules_release(struct cuda_modules *modules, const struct cuda_device *device);
