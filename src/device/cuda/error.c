/*
 * error.c: what a failure of the driver means, in words: the driver's own text and number, and
 * behind it what to do, where that is known.
 */
#include "device/cuda/cuda.h"

static enum lab_err_code code_of(lab_cu_result result) {
    switch (result) {
    case LAB_CU_OUT_OF_MEMORY:
        return LAB_ERR_MEMORY;
    case LAB_CU_NOT_SUPPORTED:
    case LAB_CU_NEWER_DRIVER_NEEDED:
    case LAB_CU_NO_BINARY_FOR_GPU:
    case LAB_CU_UNSUPPORTED_PTX_VERSION:
        return LAB_ERR_UNSUPPORTED;
    default:
        return LAB_ERR_SYSTEM;
    }
}

/* Failures after which the context answers every call with the same: the process must end. */
static bool is_lasting(lab_cu_result result) {
    switch (result) {
    case LAB_CU_ECC_UNCORRECTABLE:
    case LAB_CU_NVLINK_UNCORRECTABLE:
    case LAB_CU_ILLEGAL_ADDRESS:
    case LAB_CU_LAUNCH_TIMEOUT:
    case LAB_CU_HARDWARE_STACK:
    case LAB_CU_ILLEGAL_INSTRUCTION:
    case LAB_CU_MISALIGNED_ADDRESS:
    case LAB_CU_LAUNCH_FAILED:
    case LAB_CU_MPS_CLIENT_TERMINATED:
        return true;
    default:
        return false;
    }
}

static const char *advice(lab_cu_result result) {
    switch (result) {
    case LAB_CU_STUB_LIBRARY:
        return "a toolkit's stub was loaded instead of the driver; take its stubs folder out of "
               "LD_LIBRARY_PATH";
    case LAB_CU_NEWER_DRIVER_NEEDED:
        return "install a newer NVIDIA driver";
    case LAB_CU_DEVICE_UNAVAILABLE:
        return "another process has the GPU exclusively, or its compute mode is prohibited; "
               "nvidia-smi shows both, and 'nvidia-smi -c DEFAULT' as root shares it "
               "again";
    case LAB_CU_NO_DEVICE:
        return "the driver shows no GPU to this process; look at CUDA_VISIBLE_DEVICES and, in a "
               "container, at --gpus";
    case LAB_CU_NO_BINARY_FOR_GPU:
    case LAB_CU_UNSUPPORTED_PTX_VERSION:
        return "the driver is older than the compiler that made this kernel; update the driver or "
               "install NVRTC of the driver's version";
    case LAB_CU_SYSTEM_NOT_READY:
        return "on machines with NVSwitch the fabric manager must run: systemctl start "
               "nvidia-fabricmanager";
    case LAB_CU_SYSTEM_DRIVER_MISMATCH:
        return "libcuda and the kernel module have different versions, as after an update; reboot";
    case LAB_CU_COMPAT_NOT_SUPPORTED:
        return "a compatibility libcuda was loaded that this GPU doesn't support; take the compat "
               "folder out of LD_LIBRARY_PATH";
    case LAB_CU_MPS_CONNECTION_FAILED:
    case LAB_CU_MPS_RPC_FAILURE:
    case LAB_CU_MPS_SERVER_NOT_READY:
        return "the MPS daemon doesn't answer; restart it, or unset CUDA_MPS_PIPE_DIRECTORY";
    case LAB_CU_MPS_MAX_CLIENTS:
    case LAB_CU_MPS_MAX_CONNECTIONS:
        return "the MPS daemon has reached its limit of processes";
    case LAB_CU_MPS_CLIENT_TERMINATED:
        return "another process under the same MPS daemon failed and ended this one";
    case LAB_CU_NOT_PERMITTED:
        return "permission denied";
    case LAB_CU_OPERATING_SYSTEM:
        return "the operating system refused; in a container check its devices and limits";
    case LAB_CU_UNKNOWN:
        return "nvidia-smi and the kernel's log (dmesg, 'Xid') may show more";
    default:
        return NULL;
    }
}

int cuda_fail(lab_cu_result result, const char *call, struct lab_err *err) {
    const struct lab_cuda *cuda = lab_cuda_load(NULL);
    const char *text = NULL, *help = advice(result);
    if (!cuda->cuGetErrorString || cuda->cuGetErrorString(result, &text) != LAB_CU_SUCCESS || !text)
        text = "unknown error";
    lab_err_set(err, code_of(result), "%s: %s (%d)%s%s%s", call, text, result, help ? "; " : "",
                help ? help : "",
                is_lasting(result) ? "; this process can't use the GPU any more" : "");
    return result == LAB_CU_OUT_OF_MEMORY ? lab_err_hint(err, LAB_HINT_OUT_OF_MEMORY) : -1;
}
