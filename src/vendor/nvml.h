/*
 * vendor/nvml.h: NVML, the management library that comes with the driver, as far as devices have to
 * be counted and recognised without initialising CUDA. Rows as in vendor/cuda.h; every function
 * returns a lab_nvml_result. What a function is missing for is left unknown by its callers.
 */
#ifndef LAB_VENDOR_NVML_H
#define LAB_VENDOR_NVML_H

#include "base/dl.h"

#include <stddef.h>

typedef int lab_nvml_result;
typedef struct lab_nvml_device_st *lab_nvml_device;

enum { /* lab_nvml_result: those that we tell apart */
       LAB_NVML_SUCCESS = 0,
       LAB_NVML_UNINITIALIZED = 1,
       LAB_NVML_NOT_SUPPORTED = 3,
       LAB_NVML_NO_PERMISSION = 4,
       LAB_NVML_NOT_FOUND = 6,
       LAB_NVML_DRIVER_NOT_LOADED = 9,
       LAB_NVML_GPU_IS_LOST = 15,
       LAB_NVML_LIB_RM_VERSION_MISMATCH = 18,
};

#define LAB_NVML_UUID_BYTES 96
#define LAB_NVML_NAME_BYTES 96

struct lab_nvml_memory { /* nvmlMemory_t */
    unsigned long long total_bytes, free_bytes, used_bytes;
};

struct lab_nvml_pci { /* nvmlPciInfo_t since version 3 */
    char legacy_address[16];
    unsigned domain, bus, device;
    unsigned pci_device_id, pci_subsystem_id;
    char address[32]; /* "00000000:3B:00.0" */
};

struct lab_nvml_attributes { /* nvmlDeviceAttributes_t: of a MIG instance */
    unsigned multiprocessor_count;
    unsigned shared_copy_engines, shared_decoders, shared_encoders, shared_jpeg, shared_ofa;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

#define LAB_NVML_ESSENTIAL "GPUs are found through /proc alone: neither their size nor MIG is known"
#define LAB_NVML_MIG       "MIG instances aren't listed"
#define LAB_NVML_SIZE      "the size of GPUs isn't known before they are opened"

#define LAB_NVML_FUNCTIONS(X)                                                                      \
    X(nvmlInit_v2, LAB_NVML_ESSENTIAL, (void))                                                     \
    X(nvmlDeviceGetCount_v2, LAB_NVML_ESSENTIAL, (unsigned *ret_count))                            \
    X(nvmlDeviceGetHandleByIndex_v2, LAB_NVML_ESSENTIAL,                                           \
      (unsigned index, lab_nvml_device *ret_device))                                               \
    X(nvmlDeviceGetUUID, LAB_NVML_ESSENTIAL,                                                       \
      (lab_nvml_device device, char *uuid, unsigned length))                                       \
    X(nvmlDeviceGetName, LAB_NVML_ESSENTIAL,                                                       \
      (lab_nvml_device device, char *name, unsigned length))                                       \
    X(nvmlDeviceGetPciInfo_v3, LAB_NVML_ESSENTIAL,                                                 \
      (lab_nvml_device device, struct lab_nvml_pci * ret_pci))                                     \
    X(nvmlDeviceGetMemoryInfo, LAB_NVML_SIZE,                                                      \
      (lab_nvml_device device, struct lab_nvml_memory * ret_memory))                               \
    X(nvmlDeviceGetNumGpuCores, LAB_NVML_SIZE, (lab_nvml_device device, unsigned *ret_cores))      \
    X(nvmlDeviceGetCudaComputeCapability, LAB_NVML_SIZE,                                           \
      (lab_nvml_device device, int *ret_major, int *ret_minor))                                    \
    X(nvmlDeviceGetMigMode, LAB_NVML_MIG,                                                          \
      (lab_nvml_device device, unsigned *ret_current, unsigned *ret_pending))                      \
    X(nvmlDeviceGetMaxMigDeviceCount, LAB_NVML_MIG, (lab_nvml_device device, unsigned *ret_count)) \
    X(nvmlDeviceGetMigDeviceHandleByIndex, LAB_NVML_MIG,                                           \
      (lab_nvml_device device, unsigned index, lab_nvml_device *ret_mig))                          \
    X(nvmlDeviceGetAttributes_v2, LAB_NVML_MIG,                                                    \
      (lab_nvml_device device, struct lab_nvml_attributes * ret_attributes))                       \
    X(nvmlSystemGetDriverVersion, "the driver's version isn't known",                              \
      (char *version, unsigned length))

struct lab_nvml {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_NVML_MEMBER(name, effect, parameters) lab_nvml_result(*name) parameters;
    LAB_NVML_FUNCTIONS(LAB_NVML_MEMBER)
#undef LAB_NVML_MEMBER
    const char *(*nvmlErrorString)(lab_nvml_result result); /* may be NULL */
};

/* Loads it at the first call, from any thread; never NULL, but the functions may be. */
const struct lab_nvml *lab_nvml_load(const struct lab_dl_report **ret_report);

/*
 * Loads and initialises it once, for the life of the process; the table, or NULL and why in
 * `ret_why` (lives for ever).
 */
const struct lab_nvml *lab_nvml_open(const char **ret_why);

#endif
