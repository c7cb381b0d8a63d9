/* kernels.h: what launches keep on a device and on a stream; the `kernels` of cuda.h's structs. */
#ifndef LAB_DEVICE_CUDA_KERNELS_H
#define LAB_DEVICE_CUDA_KERNELS_H

#include "device/cuda/cuda.h"
#include "device/cuda/gemm.h"
#include "device/cuda/module.h"

struct cuda_kernels {
    struct cuda_modules modules;
    struct cuda_gemms gemms;
    bool dependent; /* kernels in graphs may start while their predecessors end */
};

#endif
