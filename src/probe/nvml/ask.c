/*
 * ask.c: what the driver's answers mean: a value, never, not now, or that the GPU is in trouble.
 */
#include "probe/nvml/nvml.h"

#define AGAIN_NS (60 * LAB_NS_PER_S)

bool nvml_is_refusal(lab_nvml_result result) {
    switch (result) {
    case LAB_NVML_INVALID_ARGUMENT: /* a field that this driver doesn't know yet */
    case LAB_NVML_NOT_SUPPORTED:
    case LAB_NVML_NO_PERMISSION:
    case LAB_NVML_FUNCTION_NOT_FOUND:
    case LAB_NVML_VERSION_MISMATCH:
    case LAB_NVML_DEPRECATED:
        return true;
    default:
        return false;
    }
}

static bool is_fatal(lab_nvml_result result) {
    switch (result) {
    case LAB_NVML_UNINITIALIZED:
    case LAB_NVML_DRIVER_NOT_LOADED:
    case LAB_NVML_GPU_IS_LOST:
    case LAB_NVML_RESET_REQUIRED:
    case LAB_NVML_LIB_RM_VERSION_MISMATCH:
    case LAB_NVML_GPU_NOT_FOUND:
        return true;
    default:
        return false;
    }
}

/*
 * An unknown error may be a GPU in trouble or one function that never worked on it. The first one
 * ends the reading, and the GPU is looked for anew; if it is there and the same question fails
 * again, it is the question that is at fault. It is tried again each minute, without ending a
 * reading for it.
 */
static bool is_doubtful(struct nvml_unit *unit, enum nvml_question question,
                        lab_nvml_result result) {
    uint64_t bit = UINT64_C(1) << question;
    if (result != LAB_NVML_UNKNOWN && result != LAB_NVML_OPERATING_SYSTEM)
        return false;
    if (unit->doubted & bit) {
        unit->refused |= bit;
        return false;
    }
    unit->doubted |= bit;
    return true;
}

void nvml_ask_again(struct nvml_gpu *gpu, int64_t now_ns) {
    if (gpu->again_ns && now_ns < gpu->again_ns)
        return;
    for (int i = -1; gpu->again_ns && i < gpu->instance_count; i++) {
        struct nvml_unit *unit = i < 0 ? &gpu->unit : gpu->instances[i];
        unit->refused &= ~unit->doubted;
    }
    gpu->again_ns = now_ns + AGAIN_NS;
}

bool nvml_answered(struct nvml_unit *unit, enum nvml_question question, const char *call,
                   lab_nvml_result result) {
    if (result == LAB_NVML_SUCCESS)
        return true;
    if (nvml_is_refusal(result)) {
        unit->refused |= UINT64_C(1) << question;
    } else if (is_fatal(result) || is_doubtful(unit, question, result)) {
        unit->gpu->fatal = result;
        unit->gpu->fatal_call = call;
    }
    return false;
}
