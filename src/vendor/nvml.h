/*
 * vendor/nvml.h: NVML, the management library that comes with the driver: which GPUs there are,
 * without initialising CUDA, and what they are doing. Rows as in vendor/cuda.h; every function
 * returns a lab_nvml_result. What a function is missing for is left unknown by its callers.
 *
 * Functions that came later stand before those that they replace, and LAB_NVML_REPLACED names the
 * pairs: one of the two is enough. Whoever keeps handles for longer than a call goes through
 * vendor/nvml_session.h.
 */
#pragma once

#include "base/dl.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

typedef int lab_nvml_result;
typedef struct lab_nvml_device_st *lab_nvml_device;
typedef struct lab_nvml_event_set_st *lab_nvml_event_set;
typedef struct lab_nvml_gpm_sample_st *lab_nvml_gpm_sample;

enum { /* lab_nvml_result: those that we tell apart */
       LAB_NVML_SUCCESS = 0,
       LAB_NVML_UNINITIALIZED = 1,
       LAB_NVML_INVALID_ARGUMENT = 2,
       LAB_NVML_NOT_SUPPORTED = 3,
       LAB_NVML_NO_PERMISSION = 4,
       LAB_NVML_NOT_FOUND = 6,
       LAB_NVML_INSUFFICIENT_SIZE = 7,
       LAB_NVML_DRIVER_NOT_LOADED = 9,
       LAB_NVML_TIMEOUT = 10,
       LAB_NVML_FUNCTION_NOT_FOUND = 13,
       LAB_NVML_GPU_IS_LOST = 15,
       LAB_NVML_RESET_REQUIRED = 16,
       LAB_NVML_OPERATING_SYSTEM = 17,
       LAB_NVML_LIB_RM_VERSION_MISMATCH = 18,
       LAB_NVML_VERSION_MISMATCH = 25,
       LAB_NVML_DEPRECATED = 26,
       LAB_NVML_GPU_NOT_FOUND = 28,
       LAB_NVML_UNKNOWN = 999,
};

#define LAB_NVML_UUID_BYTES 96
#define LAB_NVML_NAME_BYTES 96

/* --- structures --- */

struct lab_nvml_memory { /* nvmlMemory_t; `used` holds what the driver keeps too, since R510 */
    unsigned long long total_bytes, free_bytes, used_bytes;
};

#define LAB_NVML_MEMORY_V2 0x02000028u

struct lab_nvml_memory_v2 { /* nvmlMemory_v2_t */
    unsigned version;
    unsigned long long total_bytes, reserved_bytes, free_bytes, used_bytes;
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

struct lab_nvml_utilization { /* nvmlUtilization_t */
    unsigned gpu_percent, memory_percent;
};

#define LAB_NVML_TEMPERATURE_V1 0x0100000cu

struct lab_nvml_temperature { /* nvmlTemperature_v1_t */
    unsigned version;
    int sensor; /* 0 = the GPU's die */
    int temperature_c;
};

enum { LAB_NVML_CLOCK_SM = 1, LAB_NVML_CLOCK_MEMORY = 2 };         /* nvmlClockType_t */
enum { LAB_NVML_ECC_CORRECTED = 0, LAB_NVML_ECC_UNCORRECTED = 1 }; /* …MemoryErrorType_t */
enum { LAB_NVML_ECC_SINCE_LOADED = 0 };                            /* …EccCounterType_t */
enum { LAB_NVML_SCOPE_NODE = 0 };                                  /* …AffinityScope_t */
#define LAB_NVML_EVENT_XID 0x8ull                                  /* an event's type */

/* --- field values: many in one call --- */

union lab_nvml_value { /* nvmlValue_t */
    double as_double;
    int as_int;
    unsigned as_unsigned;
    unsigned long as_ulong;
    unsigned long long as_ulonglong;
    long long as_longlong;
    unsigned short as_ushort;
};

enum { /* nvmlValueType_t */
       LAB_NVML_VALUE_DOUBLE = 0,
       LAB_NVML_VALUE_UNSIGNED = 1,
       LAB_NVML_VALUE_ULONG = 2,
       LAB_NVML_VALUE_ULONGLONG = 3,
       LAB_NVML_VALUE_LONGLONG = 4,
       LAB_NVML_VALUE_INT = 5,
       LAB_NVML_VALUE_USHORT = 6,
};

struct lab_nvml_field { /* nvmlFieldValue_t */
    unsigned id, scope;
    long long timestamp_us, latency_us;
    unsigned type;
    lab_nvml_result result; /* of this one */
    union lab_nvml_value value;
};

enum {                                /* NVML_FI_DEV_… */
       LAB_NVML_FI_ECC_CORRECTED = 3, /* since the driver was loaded */
       LAB_NVML_FI_ECC_UNCORRECTED = 4,
       LAB_NVML_FI_THROTTLED_POWER = 74, /* ns */
       LAB_NVML_FI_THROTTLED_SYNC = 76,
       LAB_NVML_FI_MEMORY_TEMPERATURE = 82,
       LAB_NVML_FI_ENERGY = 83, /* mJ */
       LAB_NVML_FI_LINK_COUNT = 91,
       LAB_NVML_FI_PCIE_REPLAYS = 94,
       LAB_NVML_FI_NVLINK_TX_KIB = 138, /* scope = link; LAB_NVML_ALL_LINKS = their sum */
       LAB_NVML_FI_NVLINK_RX_KIB = 139,
       LAB_NVML_FI_ROWS_CORRECTED = 142,
       LAB_NVML_FI_ROWS_UNCORRECTED = 143,
       LAB_NVML_FI_ROWS_PENDING = 144,
       LAB_NVML_FI_ROWS_FAILED = 145,
       LAB_NVML_FI_POWER_AVERAGE = 185, /* mW */
       LAB_NVML_FI_POWER_INSTANT = 186,
       LAB_NVML_FI_POWER_LIMIT = 190,
       LAB_NVML_FI_PCIE_TX_BYTES = 197, /* may wrap */
       LAB_NVML_FI_PCIE_RX_BYTES = 198,
       LAB_NVML_FI_NVLINK5_TX_BYTES = 202, /* scope = link */
       LAB_NVML_FI_NVLINK5_RX_BYTES = 204,
       LAB_NVML_FI_RECOVERY_ACTION = 230,
       LAB_NVML_FI_THROTTLED_THERMAL = 269, /* ns */
       LAB_NVML_FI_THROTTLED_HW_THERMAL = 270,
       LAB_NVML_FI_THROTTLED_BRAKE = 271,
};
#define LAB_NVML_ALL_LINKS 0xffffffffu

/* --- GPM: shares of the time between two samples, Hopper and later --- */

#define LAB_NVML_GPM_SLOTS 333
enum { LAB_NVML_GPM_SUPPORT_VERSION = 1, LAB_NVML_GPM_METRICS_VERSION = 1 };

enum { /* nvmlGpmMetricId_t */
       LAB_NVML_GPM_GRAPHICS = 1,
       LAB_NVML_GPM_SM = 2,
       LAB_NVML_GPM_OCCUPANCY = 3,
       LAB_NVML_GPM_INTEGER = 4,
       LAB_NVML_GPM_TENSOR = 5,
       LAB_NVML_GPM_DRAM = 10,
       LAB_NVML_GPM_FP64 = 11,
       LAB_NVML_GPM_FP32 = 12,
       LAB_NVML_GPM_FP16 = 13,
       LAB_NVML_GPM_PCIE_TX = 20, /* MiB/s, as the three below */
       LAB_NVML_GPM_PCIE_RX = 21,
       LAB_NVML_GPM_NVLINK_RX = 60,
       LAB_NVML_GPM_NVLINK_TX = 61,
};

struct lab_nvml_gpm_support { /* nvmlGpmSupport_t */
    unsigned version;
    unsigned supported;
};

struct lab_nvml_gpm_metric { /* nvmlGpmMetric_t */
    unsigned id;
    lab_nvml_result result;
    double value; /* NaN = nothing known */
    char *short_name, *long_name, *unit;
};

struct lab_nvml_gpm_metrics { /* nvmlGpmMetricsGet_t: the library may touch every slot */
    unsigned version;
    unsigned count;
    lab_nvml_gpm_sample from, until;
    struct lab_nvml_gpm_metric metrics[LAB_NVML_GPM_SLOTS];
};

/* --- processes and events --- */

/*
 * nvmlProcessInfo_t has three layouts; the first two members are the same in all. Version 3 of the
 * functions was 32 bytes at first, and 24 later under the same name: lab_nvml_process_bytes.
 */
struct lab_nvml_process_v1 {
    unsigned pid;
    unsigned long long used_bytes; /* all ones = not known */
};

struct lab_nvml_process_v2 {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance; /* all ones = none */
};

struct lab_nvml_process_v3 { /* as the first drivers of R535 have it */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_bytes;
};

struct lab_nvml_process_use { /* nvmlProcessUtilizationSample_t */
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm_percent, memory_percent, encoder_percent, decoder_percent;
};

struct lab_nvml_event { /* nvmlEventData_t */
    lab_nvml_device device;
    unsigned long long type, data; /* data: which Xid */
    unsigned gpu_instance, compute_instance;
};

#define LAB_NVML_FABRIC_V2 0x02000024u

enum { /* nvmlGpuFabricState_t */
       LAB_NVML_FABRIC_NOT_SUPPORTED = 0,
       LAB_NVML_FABRIC_NOT_STARTED = 1,
       LAB_NVML_FABRIC_IN_PROGRESS = 2,
       LAB_NVML_FABRIC_COMPLETED = 3,
};

struct lab_nvml_fabric { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    unsigned char cluster_uuid[16];
    lab_nvml_result status; /* of the registration, once it is completed */
    unsigned clique;
    unsigned char state;
    unsigned health_mask; /* the two lowest bits: 1 = degraded bandwidth */
};

/* --- functions --- */

#define LAB_NVML_ESSENTIAL "GPUs are found through /proc alone: neither their size nor MIG is known"
#define LAB_NVML_MIG       "MIG instances aren't listed"
#define LAB_NVML_SIZE      "the size of GPUs is unknown before they are opened"
#define LAB_NVML_MEMORY    "memory in use is unknown"
#define LAB_NVML_USE       "utilisation is unknown"
#define LAB_NVML_VIDEO     "use of video units is unknown"
#define LAB_NVML_POWER     "power is unknown"
#define LAB_NVML_HEAT      "temperatures are unknown"
#define LAB_NVML_CLOCKS    "clocks and clock event reasons are unknown"
#define LAB_NVML_FIELDS    "energy, throttling, memory errors, PCIe and NVLink traffic are unknown"
#define LAB_NVML_LINK      "the PCIe link's speed is unknown"
#define LAB_NVML_GPM       "activity of multiprocessors, tensor cores and memory is unknown"
#define LAB_NVML_XID       "Xid errors aren't reported"
#define LAB_NVML_PROCESSES "processes on GPUs aren't listed"
#define LAB_NVML_MPS       "processes under MPS aren't listed"
#define LAB_NVML_SHARES    "how much each process uses a GPU is unknown"
#define LAB_NVML_MINOR     "which of /dev/nvidia* a GPU is"
#define LAB_NVML_NODE      "NUMA nodes of GPUs are known from PCI alone"
#define LAB_NVML_CHECK     "gpulab check leaves tests of a GPU's state out"
#define LAB_NVML_AGAIN     "a lost GPU isn't found again"

#define LAB_NVML_PROCESS_LIST (lab_nvml_device device, unsigned *count, void *ret_items)

#define LAB_NVML_FUNCTIONS(X)                                                                      \
    X(nvmlInit_v2, LAB_NVML_ESSENTIAL, (void))                                                     \
    X(nvmlShutdown, LAB_NVML_AGAIN, (void))                                                        \
    X(nvmlDeviceGetCount_v2, LAB_NVML_ESSENTIAL, (unsigned *ret_count))                            \
    X(nvmlDeviceGetHandleByIndex_v2, LAB_NVML_ESSENTIAL,                                           \
      (unsigned index, lab_nvml_device *ret_device))                                               \
    X(nvmlDeviceGetHandleByPciBusId_v2, LAB_NVML_AGAIN,                                            \
      (const char *address, lab_nvml_device *ret_device))                                          \
    X(nvmlDeviceGetUUID, LAB_NVML_ESSENTIAL,                                                       \
      (lab_nvml_device device, char *uuid, unsigned length))                                       \
    X(nvmlDeviceGetName, LAB_NVML_ESSENTIAL,                                                       \
      (lab_nvml_device device, char *name, unsigned length))                                       \
    X(nvmlDeviceGetPciInfo_v3, LAB_NVML_ESSENTIAL,                                                 \
      (lab_nvml_device device, struct lab_nvml_pci * ret_pci))                                     \
    X(nvmlDeviceGetMinorNumber, LAB_NVML_MINOR, (lab_nvml_device device, unsigned *ret_minor))     \
    X(nvmlDeviceGetMemoryInfo_v2, LAB_NVML_MEMORY,                                                 \
      (lab_nvml_device device, struct lab_nvml_memory_v2 * memory))                                \
    X(nvmlDeviceGetMemoryInfo, LAB_NVML_SIZE,                                                      \
      (lab_nvml_device device, struct lab_nvml_memory * ret_memory))                               \
    X(nvmlDeviceGetNumGpuCores, LAB_NVML_SIZE, (lab_nvml_device device, unsigned *ret_cores))      \
    X(nvmlDeviceGetCudaComputeCapability, LAB_NVML_SIZE,                                           \
      (lab_nvml_device device, int *ret_major, int *ret_minor))                                    \
    X(nvmlDeviceGetMemoryAffinity, LAB_NVML_NODE,                                                  \
      (lab_nvml_device device, unsigned words, unsigned long *ret_nodes, unsigned scope))          \
    X(nvmlDeviceGetMigMode, LAB_NVML_MIG,                                                          \
      (lab_nvml_device device, unsigned *ret_current, unsigned *ret_pending))                      \
    X(nvmlDeviceGetMaxMigDeviceCount, LAB_NVML_MIG, (lab_nvml_device device, unsigned *ret_count)) \
    X(nvmlDeviceGetMigDeviceHandleByIndex, LAB_NVML_MIG,                                           \
      (lab_nvml_device device, unsigned index, lab_nvml_device *ret_mig))                          \
    X(nvmlDeviceGetAttributes_v2, LAB_NVML_MIG,                                                    \
      (lab_nvml_device device, struct lab_nvml_attributes * ret_attributes))                       \
    X(nvmlDeviceGetGpuInstanceId, LAB_NVML_MIG, (lab_nvml_device device, unsigned *ret_id))        \
    X(nvmlSystemGetDriverVersion, "the driver's version is unknown",                               \
      (char *version, unsigned length))                                                            \
    X(nvmlDeviceGetUtilizationRates, LAB_NVML_USE,                                                 \
      (lab_nvml_device device, struct lab_nvml_utilization * ret_utilization))                     \
    X(nvmlDeviceGetEncoderUtilization, LAB_NVML_VIDEO,                                             \
      (lab_nvml_device device, unsigned *ret_percent, unsigned *ret_period_us))                    \
    X(nvmlDeviceGetDecoderUtilization, LAB_NVML_VIDEO,                                             \
      (lab_nvml_device device, unsigned *ret_percent, unsigned *ret_period_us))                    \
    X(nvmlDeviceGetPowerUsage, LAB_NVML_POWER, (lab_nvml_device device, unsigned *ret_mw))         \
    X(nvmlDeviceGetEnforcedPowerLimit, LAB_NVML_POWER, (lab_nvml_device device, unsigned *ret_mw)) \
    X(nvmlDeviceGetTemperatureV, LAB_NVML_HEAT,                                                    \
      (lab_nvml_device device, struct lab_nvml_temperature * temperature))                         \
    X(nvmlDeviceGetTemperature, LAB_NVML_HEAT,                                                     \
      (lab_nvml_device device, int sensor, unsigned *ret_c))                                       \
    X(nvmlDeviceGetFanSpeed, "fan speeds are unknown",                                             \
      (lab_nvml_device device, unsigned *ret_percent))                                             \
    X(nvmlDeviceGetClockInfo, LAB_NVML_CLOCKS,                                                     \
      (lab_nvml_device device, int clock, unsigned *ret_mhz))                                      \
    X(nvmlDeviceGetCurrentClocksEventReasons, LAB_NVML_CLOCKS,                                     \
      (lab_nvml_device device, unsigned long long *ret_reasons))                                   \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, LAB_NVML_CLOCKS,                                  \
      (lab_nvml_device device, unsigned long long *ret_reasons))                                   \
    X(nvmlDeviceGetPerformanceState, LAB_NVML_CLOCKS, (lab_nvml_device device, int *ret_state))    \
    X(nvmlDeviceGetPowerState, LAB_NVML_CLOCKS, (lab_nvml_device device, int *ret_state))          \
    X(nvmlDeviceGetCurrPcieLinkGeneration, LAB_NVML_LINK,                                          \
      (lab_nvml_device device, unsigned *ret_generation))                                          \
    X(nvmlDeviceGetCurrPcieLinkWidth, LAB_NVML_LINK,                                               \
      (lab_nvml_device device, unsigned *ret_width))                                               \
    X(nvmlDeviceGetFieldValues, LAB_NVML_FIELDS,                                                   \
      (lab_nvml_device device, int count, struct lab_nvml_field *fields))                          \
    X(nvmlDeviceGetTotalEnergyConsumption, LAB_NVML_FIELDS,                                        \
      (lab_nvml_device device, unsigned long long *ret_mj))                                        \
    X(nvmlDeviceGetTotalEccErrors, LAB_NVML_FIELDS,                                                \
      (lab_nvml_device device, int kind, int since, unsigned long long *ret_count))                \
    X(nvmlDeviceGetRemappedRows, LAB_NVML_FIELDS,                                                  \
      (lab_nvml_device device, unsigned *ret_corrected, unsigned *ret_uncorrected,                 \
       unsigned *ret_pending, unsigned *ret_failed))                                               \
    X(nvmlGpmQueryDeviceSupport, LAB_NVML_GPM,                                                     \
      (lab_nvml_device device, struct lab_nvml_gpm_support * support))                             \
    X(nvmlGpmSampleAlloc, LAB_NVML_GPM, (lab_nvml_gpm_sample * ret_sample))                        \
    X(nvmlGpmSampleFree, LAB_NVML_GPM, (lab_nvml_gpm_sample sample))                               \
    X(nvmlGpmSampleGet, LAB_NVML_GPM, (lab_nvml_device device, lab_nvml_gpm_sample sample))        \
    X(nvmlGpmMigSampleGet, LAB_NVML_GPM,                                                           \
      (lab_nvml_device device, unsigned gpu_instance, lab_nvml_gpm_sample sample))                 \
    X(nvmlGpmMetricsGet, LAB_NVML_GPM, (struct lab_nvml_gpm_metrics * metrics))                    \
    X(nvmlEventSetCreate, LAB_NVML_XID, (lab_nvml_event_set * ret_set))                            \
    X(nvmlDeviceRegisterEvents, LAB_NVML_XID,                                                      \
      (lab_nvml_device device, unsigned long long types, lab_nvml_event_set set))                  \
    X(nvmlEventSetWait_v2, LAB_NVML_XID,                                                           \
      (lab_nvml_event_set set, struct lab_nvml_event * ret_event, unsigned timeout_ms))            \
    X(nvmlEventSetWait, LAB_NVML_XID,                                                              \
      (lab_nvml_event_set set, struct lab_nvml_event * ret_event, unsigned timeout_ms))            \
    X(nvmlEventSetFree, LAB_NVML_XID, (lab_nvml_event_set set))                                    \
    X(nvmlDeviceGetComputeRunningProcesses_v3, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)          \
    X(nvmlDeviceGetComputeRunningProcesses_v2, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)          \
    X(nvmlDeviceGetComputeRunningProcesses, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)             \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)         \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)         \
    X(nvmlDeviceGetGraphicsRunningProcesses, LAB_NVML_PROCESSES, LAB_NVML_PROCESS_LIST)            \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3, LAB_NVML_MPS, LAB_NVML_PROCESS_LIST)             \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v2, LAB_NVML_MPS, LAB_NVML_PROCESS_LIST)             \
    X(nvmlDeviceGetMPSComputeRunningProcesses, LAB_NVML_MPS, LAB_NVML_PROCESS_LIST)                \
    X(nvmlDeviceGetMaxPcieLinkGeneration, LAB_NVML_CHECK,                                          \
      (lab_nvml_device device, unsigned *ret_generation))                                          \
    X(nvmlDeviceGetMaxPcieLinkWidth, LAB_NVML_CHECK,                                               \
      (lab_nvml_device device, unsigned *ret_width))                                               \
    X(nvmlDeviceGetPersistenceMode, LAB_NVML_CHECK, (lab_nvml_device device, unsigned *ret_on))    \
    X(nvmlDeviceGetEccMode, LAB_NVML_CHECK,                                                        \
      (lab_nvml_device device, unsigned *ret_current, unsigned *ret_pending))                      \
    X(nvmlDeviceGetPowerManagementDefaultLimit, LAB_NVML_CHECK,                                    \
      (lab_nvml_device device, unsigned *ret_mw))                                                  \
    X(nvmlDeviceGetMaxClockInfo, LAB_NVML_CHECK,                                                   \
      (lab_nvml_device device, int clock, unsigned *ret_mhz))                                      \
    X(nvmlDeviceGetNvLinkState, LAB_NVML_CHECK,                                                    \
      (lab_nvml_device device, unsigned link, unsigned *ret_active))                               \
    X(nvmlDeviceGetGpuFabricInfoV, LAB_NVML_CHECK,                                                 \
      (lab_nvml_device device, struct lab_nvml_fabric * fabric))                                   \
    X(nvmlDeviceGetProcessUtilization, LAB_NVML_SHARES,                                            \
      (lab_nvml_device device, struct lab_nvml_process_use * ret_items, unsigned *count,           \
       unsigned long long since_us))

/* X(newer, older): where either is there, the other is not missed. Of three, each with the next. */
#define LAB_NVML_REPLACED(X)                                                                       \
    X(nvmlDeviceGetMemoryInfo_v2, nvmlDeviceGetMemoryInfo)                                         \
    X(nvmlDeviceGetTemperatureV, nvmlDeviceGetTemperature)                                         \
    X(nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons)           \
    X(nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState)                                      \
    X(nvmlEventSetWait_v2, nvmlEventSetWait)                                                       \
    X(nvmlDeviceGetFieldValues, nvmlDeviceGetTotalEnergyConsumption)                               \
    X(nvmlDeviceGetFieldValues, nvmlDeviceGetTotalEccErrors)                                       \
    X(nvmlDeviceGetFieldValues, nvmlDeviceGetRemappedRows)                                         \
    X(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2)            \
    X(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses)               \
    X(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses)               \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v2)          \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses)             \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses)             \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v2)      \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses)         \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses)

struct lab_nvml {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_NVML_MEMBER(name, effect, parameters) lab_nvml_result(*name) parameters;
    LAB_NVML_FUNCTIONS(LAB_NVML_MEMBER)
#undef LAB_NVML_MEMBER
    const char *(*nvmlErrorString)(lab_nvml_result result); /* may be NULL */
    /* there alone tells the layout of processes: lab_nvml_process_bytes */
    void (*nvmlDeviceGetConfComputeMemSizeInfo)(void);
    void (*nvmlDeviceGetRunningProcessDetailList)(void);
    /* exported by a library that makes its machine up; which functions its driver has */
    int (*lab_fake_nvml)(const char *function);
};

/* --- loading --- */

/* Loads it at the first call, from any thread; never NULL, but the functions may be. */
const struct lab_nvml *lab_nvml_load(const struct lab_dl_report **ret_report);

/*
 * Loads it, and initialises it until that succeeds once, which holds for the life of the process;
 * the table, or NULL and why: LAB_ERR_SYSTEM = ask again later, LAB_ERR_UNSUPPORTED = that won't
 * help.
 */
const struct lab_nvml *lab_nvml_open(struct lab_err *err);

/*
 * Takes the demonstration's library, which plays a machine with GPUs, instead of the driver's. Only
 * before anything was loaded. Without GPULAB_FAKE_NVML in the environment it plays its own show.
 */
int lab_nvml_use_demo(struct lab_err *err);
bool lab_nvml_is_demo(void); /* whether that was called, and worked */

/* Where that library lies, beside the program or in the folder it was installed to; NULL =
 * nowhere. */
const char *lab_nvml_demo_folder(struct lab_arena *arena);

/* Is the machine made up? */
bool lab_nvml_simulated(const struct lab_nvml *nvml);

/* --- small things that every user needs --- */

/* Bytes of an entry that version 3 of the process functions writes. */
size_t lab_nvml_process_bytes(const struct lab_nvml *nvml);

/* "the GPU is lost: it fell off the bus" for those that matter, else the library's own words. */
const char *lab_nvml_words(const struct lab_nvml *nvml, lab_nvml_result result);
