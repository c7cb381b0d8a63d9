/* libnvidia_ml.c: the fake driver's GPUs as NVML shows them (fake_cuda.h). */
#include "fake/fake_cuda.h"
#include "vendor/nvml.h"

#define PROTOTYPE(name, effect, parameters) FAKE_EXPORT lab_nvml_result name parameters;
LAB_NVML_FUNCTIONS(PROTOTYPE)
FAKE_EXPORT const char *nvmlErrorString(lab_nvml_result result);

#define BEGIN(name)                                                                                \
    do {                                                                                           \
        int code = fake_injected(#name);                                                           \
        if (code)                                                                                  \
            return code;                                                                           \
    } while (0)

struct lab_nvml_device_st {
    int gpu, instance;
};

static struct lab_nvml_device_st devices[FAKE_GPUS_MAX][3];

/* Before any thread asks. */
__attribute__((constructor)) static void make_devices(void) {
    for (int gpu = 0; gpu < FAKE_GPUS_MAX; gpu++)
        for (int instance = -1; instance < 2; instance++)
            devices[gpu][instance + 1] = (struct lab_nvml_device_st){gpu, instance};
}

static struct lab_nvml_device_st *device_at(int gpu, int instance) {
    return &devices[gpu][instance + 1];
}

lab_nvml_result nvmlInit_v2(void) {
    BEGIN(nvmlInit_v2);
    return 0;
}

const char *nvmlErrorString(lab_nvml_result result) {
    return result == LAB_NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

lab_nvml_result nvmlDeviceGetCount_v2(unsigned *ret_count) {
    BEGIN(nvmlDeviceGetCount_v2);
    *ret_count = (unsigned)fake_number("FAKE_CUDA_GPUS", 2);
    return 0;
}

lab_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, lab_nvml_device *ret_device) {
    BEGIN(nvmlDeviceGetHandleByIndex_v2);
    *ret_device = device_at((int)index, -1);
    return 0;
}

lab_nvml_result nvmlDeviceGetUUID(lab_nvml_device device, char *uuid, unsigned length) {
    char text[48];
    BEGIN(nvmlDeviceGetUUID);
    fake_uuid_text(device->gpu, device->instance, text);
    snprintf(uuid, length, "%s", text);
    return 0;
}

lab_nvml_result nvmlDeviceGetName(lab_nvml_device device, char *name, unsigned length) {
    BEGIN(nvmlDeviceGetName);
    snprintf(name, length, device->instance < 0 ? "NVIDIA Fake 90" : "NVIDIA Fake 90 MIG 3g.40gb");
    return 0;
}

lab_nvml_result nvmlDeviceGetPciInfo_v3(lab_nvml_device device, struct lab_nvml_pci *ret_pci) {
    BEGIN(nvmlDeviceGetPciInfo_v3);
    ret_pci->domain = 0;
    ret_pci->bus = 0x17 + (unsigned)device->gpu;
    ret_pci->device = 0;
    return 0;
}

lab_nvml_result nvmlDeviceGetMemoryInfo(lab_nvml_device device,
                                        struct lab_nvml_memory *ret_memory) {
    (void)device;
    BEGIN(nvmlDeviceGetMemoryInfo);
    ret_memory->total_bytes = (unsigned long long)fake_number("FAKE_CUDA_MEMORY_MIB", 1024) << 20;
    return 0;
}

lab_nvml_result nvmlDeviceGetNumGpuCores(lab_nvml_device device, unsigned *ret_cores) {
    (void)device;
    BEGIN(nvmlDeviceGetNumGpuCores);
    *ret_cores = 128 * FAKE_SM_COUNT;
    return 0;
}

lab_nvml_result nvmlDeviceGetCudaComputeCapability(lab_nvml_device device, int *ret_major,
                                                   int *ret_minor) {
    (void)device;
    BEGIN(nvmlDeviceGetCudaComputeCapability);
    *ret_major = 9;
    *ret_minor = 0;
    return 0;
}

lab_nvml_result nvmlDeviceGetMigMode(lab_nvml_device device, unsigned *ret_current,
                                     unsigned *ret_pending) {
    BEGIN(nvmlDeviceGetMigMode);
    *ret_current = *ret_pending = fake_number("FAKE_CUDA_MIG", -1) == device->gpu;
    return 0;
}

lab_nvml_result nvmlDeviceGetMaxMigDeviceCount(lab_nvml_device device, unsigned *ret_count) {
    (void)device;
    BEGIN(nvmlDeviceGetMaxMigDeviceCount);
    *ret_count = 7;
    return 0;
}

lab_nvml_result nvmlDeviceGetMigDeviceHandleByIndex(lab_nvml_device device, unsigned index,
                                                    lab_nvml_device *ret_mig) {
    BEGIN(nvmlDeviceGetMigDeviceHandleByIndex);
    if (index >= 2)
        return LAB_NVML_NOT_FOUND;
    *ret_mig = device_at(device->gpu, (int)index);
    return 0;
}

lab_nvml_result nvmlDeviceGetAttributes_v2(lab_nvml_device device,
                                           struct lab_nvml_attributes *ret_attributes) {
    BEGIN(nvmlDeviceGetAttributes_v2);
    if (device->instance < 0)
        return LAB_NVML_NOT_SUPPORTED;
    *ret_attributes = (struct lab_nvml_attributes){.multiprocessor_count = 60, .memory_mib = 512};
    return 0;
}

lab_nvml_result nvmlSystemGetDriverVersion(char *version, unsigned length) {
    BEGIN(nvmlSystemGetDriverVersion);
    snprintf(version, length, "580.00");
    return 0;
}
