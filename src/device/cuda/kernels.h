/* kernels.h: what launches keep on a device and on a stream; the `kernels` of cuda.h's structs. */
#pragma once

#include "device/cuda/cuda.h"
#include "device/cuda/gemm.h"
#include "device/cuda/module.h"

struct cuda_kernels {
    struct cuda_modules modules;
    struct cuda_gemms gemms;
    bool dependent; /* kernels in graphs may start while their predecessors end */
};

/* The variant's module, compiled and loaded where it isn't yet. */
int cuda_kernels_get(struct cuda_device *device, const struct cuda_variant *variant,
                     struct cuda_module **ret_module, struct lab_err *err);
/* Enqueues a call that no launch stands for; the device's context is current. */
int cuda_kernels_put(struct cuda_stream *stream, struct cuda_call *call, struct lab_err *err);
