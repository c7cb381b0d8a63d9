/*
 * vendor/cuda.h: the CUDA driver API as far as we use it, declared by us and looked up at run time:
 * building needs no toolkit, and running without a driver is an ordinary case.
 *
 * Names are the vendor's, so that its manual applies: `cuda->cuMemAlloc(…)`. A row of the table
 * gives the function, the suffix of its symbol, the version whose signature stands there (the
 * driver is asked for that very one), what is unavailable without it, and the parameters. Every
 * function returns a lab_cu_result. tests/unit/vendor compares all of it with the vendor's headers.
 */
#pragma once

#include "base/dl.h"

#include <stddef.h>
#include <stdint.h>

/* --- types --- */

typedef int lab_cu_result;
typedef int lab_cu_device;
typedef uint64_t lab_cu_pointer; /* device memory */
typedef struct lab_cu_context_st *lab_cu_context;
typedef struct lab_cu_green_context_st *lab_cu_green_context;
typedef struct lab_cu_resource_desc_st *lab_cu_resource_desc;
typedef struct lab_cu_stream_st *lab_cu_stream;
typedef struct lab_cu_event_st *lab_cu_event;
typedef struct lab_cu_function_st *lab_cu_function; /* a lab_cu_kernel may be given as one */
typedef struct lab_cu_kernel_st *lab_cu_kernel;
typedef struct lab_cu_library_st *lab_cu_library;
typedef struct lab_cu_graph_st *lab_cu_graph;
typedef struct lab_cu_graph_exec_st *lab_cu_graph_exec;

/* Enumerations as parameters: an int each, named so that the test can compare signatures. */
typedef int lab_cu_attribute;
typedef int lab_cu_resource_type;
typedef int lab_cu_capture_mode;
typedef int lab_cu_function_attribute;
typedef int lab_cu_jit_option;
typedef int lab_cu_library_option;
typedef int lab_cu_tensor_type;
typedef int lab_cu_tensor_interleave;
typedef int lab_cu_tensor_swizzle;
typedef int lab_cu_tensor_promotion;
typedef int lab_cu_tensor_fill;
typedef int lab_cu_query_result;

struct lab_cu_uuid {
    char bytes[16];
};

struct lab_cu_sm_resource {
    unsigned sm_count;
    unsigned min_partition, alignment; /* since driver 13.0; 0 before */
};

struct lab_cu_resource { /* CUdevResource_v1 */
    lab_cu_resource_type type;
    unsigned char padding[92];
    union {
        struct lab_cu_sm_resource sm;
        unsigned char oversize[48];
    };
};

union lab_cu_launch_value {
    char pad[64];
    int cooperative;
    struct {
        unsigned x, y, z;
    } cluster;
    int programmatic_serialization;
    int priority;
};

struct lab_cu_launch_attribute {
    int id; /* LAB_CU_LAUNCH_… */
    char pad[4];
    union lab_cu_launch_value value;
};

struct lab_cu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes; /* dynamic */
    lab_cu_stream stream;
    struct lab_cu_launch_attribute *attributes;
    unsigned attribute_count;
};

struct lab_cu_tensor_map {
    _Alignas(128) uint64_t opaque[16];
};

enum { /* lab_cu_result: those that we tell apart */
       LAB_CU_SUCCESS = 0,
       LAB_CU_OUT_OF_MEMORY = 2,
       LAB_CU_NOT_INITIALIZED = 3,
       LAB_CU_STUB_LIBRARY = 34,
       LAB_CU_NEWER_DRIVER_NEEDED = 36,
       LAB_CU_DEVICE_UNAVAILABLE = 46,
       LAB_CU_NO_DEVICE = 100,
       LAB_CU_NO_BINARY_FOR_GPU = 209,
       LAB_CU_ECC_UNCORRECTABLE = 214,
       LAB_CU_NVLINK_UNCORRECTABLE = 220,
       LAB_CU_UNSUPPORTED_PTX_VERSION = 222,
       LAB_CU_OPERATING_SYSTEM = 304,
       LAB_CU_NOT_READY = 600,
       LAB_CU_ILLEGAL_ADDRESS = 700,
       LAB_CU_LAUNCH_TIMEOUT = 702,
       LAB_CU_PEER_ALREADY_ENABLED = 704,
       LAB_CU_HARDWARE_STACK = 714,
       LAB_CU_ILLEGAL_INSTRUCTION = 715,
       LAB_CU_MISALIGNED_ADDRESS = 716,
       LAB_CU_LAUNCH_FAILED = 719,
       LAB_CU_NOT_PERMITTED = 800,
       LAB_CU_NOT_SUPPORTED = 801,
       LAB_CU_SYSTEM_NOT_READY = 802,
       LAB_CU_SYSTEM_DRIVER_MISMATCH = 803,
       LAB_CU_COMPAT_NOT_SUPPORTED = 804,
       LAB_CU_MPS_CONNECTION_FAILED = 805,
       LAB_CU_MPS_RPC_FAILURE = 806,
       LAB_CU_MPS_SERVER_NOT_READY = 807,
       LAB_CU_MPS_MAX_CLIENTS = 808,
       LAB_CU_MPS_MAX_CONNECTIONS = 809,
       LAB_CU_MPS_CLIENT_TERMINATED = 810,
       LAB_CU_INVALID_RESOURCE_CONFIGURATION = 915,
       LAB_CU_UNKNOWN = 999,
};

enum { /* lab_cu_attribute */
       LAB_CU_MULTIPROCESSOR_COUNT = 16,
       LAB_CU_COMPUTE_MODE = 20, /* LAB_CU_MODE_… */
       LAB_CU_L2_CACHE_SIZE = 38,
       LAB_CU_ASYNC_ENGINE_COUNT = 40,
       LAB_CU_CAPABILITY_MAJOR = 75,
       LAB_CU_CAPABILITY_MINOR = 76,
       LAB_CU_MAX_SHARED_PER_BLOCK_OPTIN = 97,
};

enum { LAB_CU_MODE_DEFAULT = 0, LAB_CU_MODE_PROHIBITED = 2, LAB_CU_MODE_EXCLUSIVE_PROCESS = 3 };

enum { /* flags of contexts, streams, events, host memory */
       LAB_CU_GREEN_DEFAULT_STREAM = 1,
       LAB_CU_STREAM_NON_BLOCKING = 1,
       LAB_CU_EVENT_DEFAULT = 0,
       LAB_CU_EVENT_DISABLE_TIMING = 2,
       LAB_CU_EVENT_RECORD_EXTERNAL = 1,
       LAB_CU_EVENT_WAIT_EXTERNAL = 1,
       LAB_CU_HOST_REGISTER_PORTABLE = 1,
};

enum { LAB_CU_RESOURCE_SM = 1 };
enum { LAB_CU_CAPTURE_RELAXED = 2 };

enum { /* lab_cu_function_attribute */
       LAB_CU_FUNCTION_SHARED_BYTES = 1,
       LAB_CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
       LAB_CU_FUNCTION_NON_PORTABLE_CLUSTER = 14,
};

enum { /* lab_cu_launch_attribute.id */
       LAB_CU_LAUNCH_CLUSTER = 4,
       LAB_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6,
};

enum { /* of tensor maps */
       LAB_CU_TENSOR_FLOAT16 = 6,
       LAB_CU_TENSOR_FLOAT32 = 7,
       LAB_CU_TENSOR_BFLOAT16 = 9,
       LAB_CU_TENSOR_TFLOAT32 = 11,
       LAB_CU_TENSOR_INTERLEAVE_NONE = 0,
       LAB_CU_TENSOR_SWIZZLE_NONE = 0,
       LAB_CU_TENSOR_SWIZZLE_32B = 1,
       LAB_CU_TENSOR_SWIZZLE_64B = 2,
       LAB_CU_TENSOR_SWIZZLE_128B = 3,
       LAB_CU_TENSOR_PROMOTION_256B = 3,
       LAB_CU_TENSOR_FILL_NONE = 0,
};

/* --- functions --- */

/* The effects; without an essential one no CUDA device can be opened. */
#define LAB_CUDA_ESSENTIAL  "no CUDA device can be used"
#define LAB_CUDA_SLICES     "GPUs can't be cut into slices (cuda:0/4)"
#define LAB_CUDA_GRAPHS     "commands can't be kept in graphs (compile_model=true)"
#define LAB_CUDA_PEERS      "copies between GPUs aren't measured (gpulab check)"
#define LAB_CUDA_TENSOR_MAP "kernels that load tiles by TMA can't run"
#define LAB_CUDA_OCCUPANCY  "kernels aren't sized by how many blocks fit on a multiprocessor"

#define LAB_CUDA_FUNCTIONS(X)                                                                      \
    X(cuInit, , 2000, LAB_CUDA_ESSENTIAL, (unsigned flags))                                        \
    X(cuDriverGetVersion, , 2020, LAB_CUDA_ESSENTIAL, (int *ret_version))                          \
    X(cuGetErrorString, , 6000, LAB_CUDA_ESSENTIAL, (lab_cu_result result, const char **ret_text)) \
    X(cuDeviceGetCount, , 2000, LAB_CUDA_ESSENTIAL, (int *ret_count))                              \
    X(cuDeviceGet, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_device * ret_device, int ordinal))          \
    X(cuDeviceGetName, , 2000, LAB_CUDA_ESSENTIAL, (char *name, int length, lab_cu_device device)) \
    X(cuDeviceGetUuid, _v2, 11040, LAB_CUDA_ESSENTIAL,                                             \
      (struct lab_cu_uuid * ret_uuid, lab_cu_device device))                                       \
    X(cuDeviceGetPCIBusId, , 4010, LAB_CUDA_ESSENTIAL,                                             \
      (char *address, int length, lab_cu_device device))                                           \
    X(cuDeviceGetAttribute, , 2000, LAB_CUDA_ESSENTIAL,                                            \
      (int *ret_value, lab_cu_attribute attribute, lab_cu_device device))                          \
    X(cuDevicePrimaryCtxRetain, , 7000, LAB_CUDA_ESSENTIAL,                                        \
      (lab_cu_context * ret_context, lab_cu_device device))                                        \
    X(cuDevicePrimaryCtxRelease, _v2, 11000, LAB_CUDA_ESSENTIAL, (lab_cu_device device))           \
    X(cuCtxSetCurrent, , 4000, LAB_CUDA_ESSENTIAL, (lab_cu_context context))                       \
    X(cuCtxGetStreamPriorityRange, , 5050, LAB_CUDA_ESSENTIAL,                                     \
      (int *ret_least, int *ret_greatest))                                                         \
    X(cuDeviceGetDevResource, , 12040, LAB_CUDA_SLICES,                                            \
      (lab_cu_device device, struct lab_cu_resource * ret_resource, lab_cu_resource_type type))    \
    X(cuDevSmResourceSplitByCount, , 12040, LAB_CUDA_SLICES,                                       \
      (struct lab_cu_resource * ret_groups, unsigned *group_count,                                 \
       const struct lab_cu_resource *input, struct lab_cu_resource *ret_remaining, unsigned flags, \
       unsigned min_count))                                                                        \
    X(cuDevResourceGenerateDesc, , 12040, LAB_CUDA_SLICES,                                         \
      (lab_cu_resource_desc * ret_desc, struct lab_cu_resource * resources, unsigned count))       \
    X(cuGreenCtxCreate, , 12040, LAB_CUDA_SLICES,                                                  \
      (lab_cu_green_context * ret_context, lab_cu_resource_desc desc, lab_cu_device device,        \
       unsigned flags))                                                                            \
    X(cuGreenCtxDestroy, , 12040, LAB_CUDA_SLICES, (lab_cu_green_context context))                 \
    X(cuCtxFromGreenCtx, , 12040, LAB_CUDA_SLICES,                                                 \
      (lab_cu_context * ret_context, lab_cu_green_context green))                                  \
    X(cuGreenCtxStreamCreate, , 12050, LAB_CUDA_SLICES,                                            \
      (lab_cu_stream * ret_stream, lab_cu_green_context context, unsigned flags, int priority))    \
    X(cuMemAlloc, _v2, 3020, LAB_CUDA_ESSENTIAL, (lab_cu_pointer * ret_memory, size_t size_bytes)) \
    X(cuMemFree, _v2, 3020, LAB_CUDA_ESSENTIAL, (lab_cu_pointer memory))                           \
    X(cuMemGetInfo, _v2, 3020, LAB_CUDA_ESSENTIAL, (size_t * ret_free, size_t * ret_total))        \
    X(cuMemHostRegister, _v2, 6050, LAB_CUDA_ESSENTIAL,                                            \
      (void *memory, size_t size_bytes, unsigned flags))                                           \
    X(cuMemHostUnregister, , 4000, LAB_CUDA_ESSENTIAL, (void *memory))                             \
    X(cuMemcpyHtoDAsync, _v2, 3020, LAB_CUDA_ESSENTIAL,                                            \
      (lab_cu_pointer to, const void *from, size_t size_bytes, lab_cu_stream stream))              \
    X(cuMemcpyDtoHAsync, _v2, 3020, LAB_CUDA_ESSENTIAL,                                            \
      (void *to, lab_cu_pointer from, size_t size_bytes, lab_cu_stream stream))                    \
    X(cuMemcpyDtoDAsync, _v2, 3020, LAB_CUDA_ESSENTIAL,                                            \
      (lab_cu_pointer to, lab_cu_pointer from, size_t size_bytes, lab_cu_stream stream))           \
    X(cuMemcpyAsync, , 4000, LAB_CUDA_ESSENTIAL,                                                   \
      (lab_cu_pointer to, lab_cu_pointer from, size_t size_bytes, lab_cu_stream stream))           \
    X(cuDeviceCanAccessPeer, , 4000, LAB_CUDA_PEERS,                                               \
      (int *ret_can, lab_cu_device device, lab_cu_device peer))                                    \
    X(cuCtxEnablePeerAccess, , 4000, LAB_CUDA_PEERS, (lab_cu_context peer, unsigned flags))        \
    X(cuMemcpyPeerAsync, , 4000, LAB_CUDA_PEERS,                                                   \
      (lab_cu_pointer to, lab_cu_context to_context, lab_cu_pointer from,                          \
       lab_cu_context from_context, size_t size_bytes, lab_cu_stream stream))                      \
    X(cuMemsetD8Async, , 3020, LAB_CUDA_ESSENTIAL,                                                 \
      (lab_cu_pointer to, unsigned char value, size_t count, lab_cu_stream stream))                \
    X(cuStreamCreateWithPriority, , 5050, LAB_CUDA_ESSENTIAL,                                      \
      (lab_cu_stream * ret_stream, unsigned flags, int priority))                                  \
    X(cuStreamDestroy, _v2, 4000, LAB_CUDA_ESSENTIAL, (lab_cu_stream stream))                      \
    X(cuStreamSynchronize, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_stream stream))                     \
    X(cuStreamQuery, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_stream stream))                           \
    X(cuStreamWaitEvent, , 3020, LAB_CUDA_ESSENTIAL,                                               \
      (lab_cu_stream stream, lab_cu_event event, unsigned flags))                                  \
    X(cuEventCreate, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_event * ret_event, unsigned flags))       \
    X(cuEventDestroy, _v2, 4000, LAB_CUDA_ESSENTIAL, (lab_cu_event event))                         \
    X(cuEventRecord, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_event event, lab_cu_stream stream))       \
    X(cuEventRecordWithFlags, , 11010, LAB_CUDA_GRAPHS,                                            \
      (lab_cu_event event, lab_cu_stream stream, unsigned flags))                                  \
    X(cuEventSynchronize, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_event event))                        \
    X(cuEventQuery, , 2000, LAB_CUDA_ESSENTIAL, (lab_cu_event event))                              \
    X(cuEventElapsedTime, , 2000, LAB_CUDA_ESSENTIAL,                                              \
      (float *ret_ms, lab_cu_event start, lab_cu_event end))                                       \
    X(cuLibraryLoadData, , 12000, LAB_CUDA_ESSENTIAL,                                              \
      (lab_cu_library * ret_library, const void *code, lab_cu_jit_option *jit_options,             \
       void **jit_values, unsigned jit_count, lab_cu_library_option *options, void **values,       \
       unsigned count))                                                                            \
    X(cuLibraryUnload, , 12000, LAB_CUDA_ESSENTIAL, (lab_cu_library library))                      \
    X(cuLibraryGetKernel, , 12000, LAB_CUDA_ESSENTIAL,                                             \
      (lab_cu_kernel * ret_kernel, lab_cu_library library, const char *name))                      \
    X(cuKernelGetFunction, , 12000, LAB_CUDA_ESSENTIAL,                                            \
      (lab_cu_function * ret_function, lab_cu_kernel kernel))                                      \
    X(cuKernelSetAttribute, , 12000, LAB_CUDA_ESSENTIAL,                                           \
      (lab_cu_function_attribute attribute, int value, lab_cu_kernel kernel,                       \
       lab_cu_device device))                                                                      \
    X(cuKernelGetAttribute, , 12000, LAB_CUDA_ESSENTIAL,                                           \
      (int *ret_value, lab_cu_function_attribute attribute, lab_cu_kernel kernel,                  \
       lab_cu_device device))                                                                      \
    X(cuLaunchKernelEx, , 11060, LAB_CUDA_ESSENTIAL,                                               \
      (const struct lab_cu_launch_config *config, lab_cu_function function, void **parameters,     \
       void **extra))                                                                              \
    X(cuOccupancyMaxActiveClusters, , 11070, LAB_CUDA_OCCUPANCY,                                   \
      (int *ret_clusters, lab_cu_function function, const struct lab_cu_launch_config *config))    \
    X(cuStreamBeginCapture, _v2, 10010, LAB_CUDA_GRAPHS,                                           \
      (lab_cu_stream stream, lab_cu_capture_mode mode))                                            \
    X(cuStreamEndCapture, , 10000, LAB_CUDA_GRAPHS,                                                \
      (lab_cu_stream stream, lab_cu_graph * ret_graph))                                            \
    X(cuGraphInstantiateWithFlags, , 11040, LAB_CUDA_GRAPHS,                                       \
      (lab_cu_graph_exec * ret_exec, lab_cu_graph graph, unsigned long long flags))                \
    X(cuGraphUpload, , 11010, LAB_CUDA_GRAPHS, (lab_cu_graph_exec exec, lab_cu_stream stream))     \
    X(cuGraphLaunch, , 10000, LAB_CUDA_GRAPHS, (lab_cu_graph_exec exec, lab_cu_stream stream))     \
    X(cuGraphDestroy, , 10000, LAB_CUDA_GRAPHS, (lab_cu_graph graph))                              \
    X(cuGraphExecDestroy, , 10000, LAB_CUDA_GRAPHS, (lab_cu_graph_exec exec))                      \
    X(cuTensorMapEncodeTiled, , 12000, LAB_CUDA_TENSOR_MAP,                                        \
      (struct lab_cu_tensor_map * ret_map, lab_cu_tensor_type type, uint32_t rank, void *address,  \
       const uint64_t *shape, const uint64_t *strides_bytes, const uint32_t *box,                  \
       const uint32_t *element_strides, lab_cu_tensor_interleave interleave,                       \
       lab_cu_tensor_swizzle swizzle, lab_cu_tensor_promotion promotion, lab_cu_tensor_fill fill))

struct lab_cuda {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_CUDA_MEMBER(name, suffix, version, effect, parameters) lab_cu_result(*name) parameters;
    LAB_CUDA_FUNCTIONS(LAB_CUDA_MEMBER)
#undef LAB_CUDA_MEMBER
};

/*
 * Loads the driver at the first call, from any thread; never NULL, but the functions may be.
 * `ret_report` may be NULL; what it points to lives for ever. Loading initialises nothing: that is
 * cuInit's.
 */
const struct lab_cuda *lab_cuda_load(const struct lab_dl_report **ret_report);

/* The first essential function that this driver lacks; NULL where all are there. */
const char *lab_cuda_lacks(void);

/* Of the driver, as 13000 for 13.0; 0 where there is none. Needs no cuInit. */
int lab_cuda_version(void);
