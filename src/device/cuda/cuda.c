/*
 * cuda.c: the cuda backend: NVIDIA GPUs, MIG instances and slices of GPUs, through the driver API
 * that is looked up at run time. The device's model is CUDA's own, so most slots are one call.
 */
#include "device/cuda/cuda.h"

#include "device/cuda/sum.h"

/* What the multiprocessors can compute in at all; which ops there are is kernels.c's. */
static bool knows(const struct cuda_device *device, enum lab_dtype dtype) {
    switch (dtype) {
    case LAB_FP32:
        return true;
    case LAB_FP16:
        return device->capability >= 70;
    case LAB_TF32:
    case LAB_BF16:
        return device->capability >= 80;
    }
    return false;
}

static bool supports(const struct lab_device *base, enum lab_op_id op, enum lab_dtype dtype) {
    const struct cuda_device *device = (const struct cuda_device *)base;
    return knows(device, dtype) && cuda_supports(op, dtype, device->capability);
}

static int launch(struct lab_stream *base, const struct lab_launch *what, struct lab_err *err) {
    if (cuda_enter((struct cuda_device *)base->device, err))
        return -1;
    return cuda_launch((struct cuda_stream *)base, what, err);
}

static void prepare(struct lab_device *base, const struct lab_launch *launches, int count) {
    cuda_prepare((struct cuda_device *)base, launches, count);
}

const struct lab_device_ops cuda_device_ops = {
    .close = cuda_close,
    .limits = cuda_limits,
    .clock_mhz = cuda_clock_mhz,
    .power_w = cuda_power_w,
    .energy_j = cuda_energy_j,
    .buffer_open = cuda_buffer_open,
    .buffer_close = cuda_buffer_close,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_sync = cuda_stream_sync,
    .copy = cuda_copy,
    .copy_peer = cuda_copy_peer,
    .launch = launch,
    .supports = supports,
    .prepare = prepare,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_sync = cuda_event_sync,
    .event_time = cuda_event_time,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_close = cuda_graph_close,
    .trace_begin = cuda_trace_begin,
    .trace_end = cuda_trace_end,
};

const struct lab_backend lab_backend_cuda = {
    .name = "cuda",
    .help = "NVIDIA GPUs (cuda:0), slices of their multiprocessors (cuda:0/4, cuda:0/4.2), and MIG "
            "instances (cuda:MIG-…)",
    .rank = 10,
    .select = cuda_select,
    .open = cuda_open,
    .why_together = cuda_why_together,
    .lacks = cuda_lacks,
    .tunable = cuda_tunable,
    .identity = cuda_identity,
    .health = cuda_health,
    .sums = cuda_sums,
};
