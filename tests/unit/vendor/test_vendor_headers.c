/*
 * test_vendor_headers.c: what src/vendor declares by hand is compared with the vendor's own
 * headers, where a toolkit has put them: sizes, offsets, values, and the signature of every
 * function for the version that its row names. Nearly all of it happens when this file is compiled.
 */
#include "test.h"
#include <stdlib.h>

#include "model/trace.h"
#include "vendor/cublaslt.h"
#include "vendor/cuda.h"
#include "vendor/cupti.h"
#include "vendor/nvml.h"
#include "vendor/nvrtc.h"

#ifdef LAB_TEST_CUDA_HEADERS

#include <cublasLt.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cupti.h>
#include <nvrtc.h>

#define SAME(ours, theirs)                                                                         \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
#define SAME_SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define SAME_OFFSET(ours, member, theirs, their_member)                                            \
    SAME(offsetof(ours, member), offsetof(theirs, their_member))

/* --- structures --- */

SAME_SIZE(lab_cu_result, CUresult);
SAME_SIZE(lab_cu_device, CUdevice);
SAME_SIZE(lab_cu_pointer, CUdeviceptr);
SAME_SIZE(struct lab_cu_uuid, CUuuid);
SAME_SIZE(struct lab_cu_resource, CUdevResource);
SAME_OFFSET(struct lab_cu_resource, type, CUdevResource, type);
SAME_OFFSET(struct lab_cu_resource, sm, CUdevResource, sm);
SAME_OFFSET(struct lab_cu_sm_resource, sm_count, CUdevSmResource, smCount);
#if CUDA_VERSION >= 13000
SAME_OFFSET(struct lab_cu_sm_resource, min_partition, CUdevSmResource, minSmPartitionSize);
SAME_OFFSET(struct lab_cu_sm_resource, alignment, CUdevSmResource, smCoscheduledAlignment);
#endif
SAME_SIZE(union lab_cu_launch_value, CUlaunchAttributeValue);
SAME_OFFSET(union lab_cu_launch_value, cluster.y, CUlaunchAttributeValue, clusterDim.y);
SAME_SIZE(struct lab_cu_launch_attribute, CUlaunchAttribute);
SAME_OFFSET(struct lab_cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_OFFSET(struct lab_cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(struct lab_cu_launch_config, CUlaunchConfig);
SAME_OFFSET(struct lab_cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_OFFSET(struct lab_cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_OFFSET(struct lab_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_OFFSET(struct lab_cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_OFFSET(struct lab_cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_OFFSET(struct lab_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(struct lab_cu_tensor_map, CUtensorMap);
SAME(_Alignof(struct lab_cu_tensor_map), _Alignof(CUtensorMap));
SAME_SIZE(struct lab_lt_algo, cublasLtMatmulAlgo_t);
SAME_SIZE(struct lab_lt_heuristic, cublasLtMatmulHeuristicResult_t);
SAME_OFFSET(struct lab_lt_heuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t,
            workspaceSize);
SAME_OFFSET(struct lab_lt_heuristic, state, cublasLtMatmulHeuristicResult_t, state);
SAME_OFFSET(struct lab_lt_heuristic, waves, cublasLtMatmulHeuristicResult_t, wavesCount);

/* --- CUPTI's records: ours are the beginning of theirs --- */

#define SAME_KERNEL(theirs)                                                                        \
    SAME_OFFSET(struct lab_cupti_kernel, registers, theirs, registersPerThread);                   \
    SAME_OFFSET(struct lab_cupti_kernel, start, theirs, start);                                    \
    SAME_OFFSET(struct lab_cupti_kernel, end, theirs, end);                                        \
    SAME_OFFSET(struct lab_cupti_kernel, device, theirs, deviceId);                                \
    SAME_OFFSET(struct lab_cupti_kernel, context, theirs, contextId);                              \
    SAME_OFFSET(struct lab_cupti_kernel, stream, theirs, streamId);                                \
    SAME_OFFSET(struct lab_cupti_kernel, grid, theirs, gridX);                                     \
    SAME_OFFSET(struct lab_cupti_kernel, block, theirs, blockX);                                   \
    SAME_OFFSET(struct lab_cupti_kernel, static_shared, theirs, staticSharedMemory);               \
    SAME_OFFSET(struct lab_cupti_kernel, dynamic_shared, theirs, dynamicSharedMemory);             \
    SAME_OFFSET(struct lab_cupti_kernel, local_per_thread, theirs, localMemoryPerThread);          \
    SAME_OFFSET(struct lab_cupti_kernel, correlation, theirs, correlationId);                      \
    SAME_OFFSET(struct lab_cupti_kernel, name, theirs, name);                                      \
    SAME_OFFSET(struct lab_cupti_kernel, graph_node, theirs, graphNodeId);                         \
    _Static_assert(sizeof(struct lab_cupti_kernel) <= sizeof(theirs), #theirs " is shorter")

#define SAME_MEMCPY(theirs)                                                                        \
    SAME_OFFSET(struct lab_cupti_memcpy, copy_kind, theirs, copyKind);                             \
    SAME_OFFSET(struct lab_cupti_memcpy, from_kind, theirs, srcKind);                              \
    SAME_OFFSET(struct lab_cupti_memcpy, to_kind, theirs, dstKind);                                \
    SAME_OFFSET(struct lab_cupti_memcpy, bytes, theirs, bytes);                                    \
    SAME_OFFSET(struct lab_cupti_memcpy, start, theirs, start);                                    \
    SAME_OFFSET(struct lab_cupti_memcpy, device, theirs, deviceId);                                \
    SAME_OFFSET(struct lab_cupti_memcpy, correlation, theirs, correlationId);                      \
    SAME_OFFSET(struct lab_cupti_memcpy, graph_node, theirs, graphNodeId)

SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
SAME_MEMCPY(CUpti_ActivityMemcpy5);
#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel10);
SAME_MEMCPY(CUpti_ActivityMemcpy6);
#endif
SAME_OFFSET(struct lab_cupti_memset, value, CUpti_ActivityMemset4, value);
SAME_OFFSET(struct lab_cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
SAME_OFFSET(struct lab_cupti_memset, start, CUpti_ActivityMemset4, start);
SAME_OFFSET(struct lab_cupti_memset, correlation, CUpti_ActivityMemset4, correlationId);
SAME_OFFSET(struct lab_cupti_memset, memory_kind, CUpti_ActivityMemset4, memoryKind);
SAME_OFFSET(struct lab_cupti_memset, graph_node, CUpti_ActivityMemset4, graphNodeId);
SAME_SIZE(struct lab_cupti_call, CUpti_ActivityAPI);
SAME_OFFSET(struct lab_cupti_call, function, CUpti_ActivityAPI, cbid);
SAME_OFFSET(struct lab_cupti_call, start, CUpti_ActivityAPI, start);
SAME_OFFSET(struct lab_cupti_call, thread, CUpti_ActivityAPI, threadId);
SAME_OFFSET(struct lab_cupti_call, correlation, CUpti_ActivityAPI, correlationId);
SAME_OFFSET(struct lab_cupti_call, result, CUpti_ActivityAPI, returnValue);

SAME(LAB_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(LAB_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(LAB_CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(LAB_CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(LAB_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(LAB_CUPTI_VIRTUALIZED_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(LAB_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(LAB_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(LAB_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(LAB_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(LAB_CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(LAB_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(LAB_CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(LAB_CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(LAB_TRACE_COPY_H2D, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(LAB_TRACE_COPY_D2H, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(LAB_TRACE_COPY_D2D, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(LAB_TRACE_COPY_H2H, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(LAB_TRACE_COPY_P2P, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);

/* --- values: the driver --- */

SAME(LAB_CU_SUCCESS, CUDA_SUCCESS);
SAME(LAB_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(LAB_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(LAB_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(LAB_CU_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(LAB_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(LAB_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(LAB_CU_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(LAB_CU_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(LAB_CU_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(LAB_CU_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM);
SAME(LAB_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(LAB_CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(LAB_CU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(LAB_CU_HARDWARE_STACK, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(LAB_CU_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(LAB_CU_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(LAB_CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(LAB_CU_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(LAB_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(LAB_CU_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(LAB_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(LAB_CU_COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(LAB_CU_MPS_CONNECTION_FAILED, CUDA_ERROR_MPS_CONNECTION_FAILED);
SAME(LAB_CU_MPS_RPC_FAILURE, CUDA_ERROR_MPS_RPC_FAILURE);
SAME(LAB_CU_MPS_SERVER_NOT_READY, CUDA_ERROR_MPS_SERVER_NOT_READY);
SAME(LAB_CU_MPS_MAX_CLIENTS, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
SAME(LAB_CU_MPS_MAX_CONNECTIONS, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED);
SAME(LAB_CU_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(LAB_CU_INVALID_RESOURCE_CONFIGURATION, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
SAME(LAB_CU_UNKNOWN, CUDA_ERROR_UNKNOWN);

SAME(LAB_CU_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(LAB_CU_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(LAB_CU_L2_CACHE_SIZE, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(LAB_CU_ASYNC_ENGINE_COUNT, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(LAB_CU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(LAB_CU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(LAB_CU_MAX_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

SAME(LAB_CU_MODE_DEFAULT, CU_COMPUTEMODE_DEFAULT);
SAME(LAB_CU_MODE_PROHIBITED, CU_COMPUTEMODE_PROHIBITED);
SAME(LAB_CU_MODE_EXCLUSIVE_PROCESS, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
SAME(LAB_CU_GREEN_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM);
SAME(LAB_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(LAB_CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME(LAB_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(LAB_CU_EVENT_RECORD_EXTERNAL, CU_EVENT_RECORD_EXTERNAL);
SAME(LAB_CU_EVENT_WAIT_EXTERNAL, CU_EVENT_WAIT_EXTERNAL);
SAME(LAB_CU_HOST_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(LAB_CU_RESOURCE_SM, CU_DEV_RESOURCE_TYPE_SM);
SAME(LAB_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);

SAME(LAB_CU_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(LAB_CU_FUNCTION_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(LAB_CU_FUNCTION_NON_PORTABLE_CLUSTER, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(LAB_CU_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(LAB_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION,
     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

SAME(LAB_CU_TENSOR_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(LAB_CU_TENSOR_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(LAB_CU_TENSOR_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(LAB_CU_TENSOR_TFLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME(LAB_CU_TENSOR_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(LAB_CU_TENSOR_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(LAB_CU_TENSOR_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
SAME(LAB_CU_TENSOR_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B);
SAME(LAB_CU_TENSOR_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(LAB_CU_TENSOR_PROMOTION_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(LAB_CU_TENSOR_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

/* --- values: NVRTC and cuBLASLt --- */

SAME(LAB_NVRTC_SUCCESS, NVRTC_SUCCESS);

SAME(LAB_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(LAB_LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(LAB_LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(LAB_LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(LAB_LT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(LAB_LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(LAB_LT_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(LAB_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(LAB_LT_R_32F, CUDA_R_32F);
SAME(LAB_LT_R_16F, CUDA_R_16F);
SAME(LAB_LT_R_16BF, CUDA_R_16BF);
SAME(LAB_LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(LAB_LT_COMPUTE_32F_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(LAB_LT_OP_N, CUBLAS_OP_N);
SAME(LAB_LT_OP_T, CUBLAS_OP_T);
SAME(LAB_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LAB_LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LAB_LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(LAB_LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(LAB_LT_DESC_SM_COUNT_TARGET, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
SAME(LAB_LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT);
SAME(LAB_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(LAB_LT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(LAB_LT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(LAB_LT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU);
SAME(LAB_LT_DESC_AUX_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(LAB_LT_DESC_AUX_LD, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(LAB_LT_PREFERENCE_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LAB_LT_PREFERENCE_REDUCTION_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(LAB_LT_PREFERENCE_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);

/*
 * --- signatures: the tables' rows read with the vendor's types in place of ours ---
 */
#define lab_cu_result             CUresult
#define lab_cu_device             CUdevice
#define lab_cu_pointer            CUdeviceptr
#define lab_cu_context            CUcontext
#define lab_cu_green_context      CUgreenCtx
#define lab_cu_resource_desc      CUdevResourceDesc
#define lab_cu_stream             CUstream
#define lab_cu_event              CUevent
#define lab_cu_function           CUfunction
#define lab_cu_kernel             CUkernel
#define lab_cu_library            CUlibrary
#define lab_cu_graph              CUgraph
#define lab_cu_graph_exec         CUgraphExec
#define lab_cu_attribute          CUdevice_attribute
#define lab_cu_resource_type      CUdevResourceType
#define lab_cu_capture_mode       CUstreamCaptureMode
#define lab_cu_function_attribute CUfunction_attribute
#define lab_cu_jit_option         CUjit_option
#define lab_cu_library_option     CUlibraryOption
#define lab_cu_tensor_type        CUtensorMapDataType
#define lab_cu_tensor_interleave  CUtensorMapInterleave
#define lab_cu_tensor_swizzle     CUtensorMapSwizzle
#define lab_cu_tensor_promotion   CUtensorMapL2promotion
#define lab_cu_tensor_fill        CUtensorMapFloatOOBfill
#define lab_cu_uuid               CUuuid_st
#define lab_cu_resource           CUdevResource_st
#define lab_cu_launch_config      CUlaunchConfig_st
#define lab_cu_tensor_map         CUtensorMap_st

#define CHECK_CUDA(name, suffix, version, effect, parameters)                                      \
    _Static_assert(__builtin_types_compatible_p(PFN_##name##_v##version, CUresult(*) parameters),  \
                   #name " has another signature in the vendor's headers");
LAB_CUDA_FUNCTIONS(CHECK_CUDA)

#define CHECK_NVRTC(name, effect, parameters)                                                      \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), nvrtcResult(*) parameters),     \
                   #name " has another signature in the vendor's headers");
#define lab_nvrtc_program nvrtcProgram
LAB_NVRTC_FUNCTIONS(CHECK_NVRTC)

#define lab_cupti_result      CUptiResult
#define lab_cupti_activity    CUpti_ActivityKind
#define lab_cupti_any         CUpti_Activity
#define lab_cupti_thread_type CUpti_ActivityThreadIdType
#define lab_cupti_domain      CUpti_CallbackDomain
#define lab_cupti_request     __typeof__(*(CUpti_BuffersCallbackRequestFunc)NULL)
#define lab_cupti_complete    __typeof__(*(CUpti_BuffersCallbackCompleteFunc)NULL)
#define lab_cupti_clock       __typeof__(*(CUpti_TimestampCallbackFunc)NULL)
#define CHECK_CUPTI(name, effect, parameters)                                                      \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUptiResult(*) parameters),     \
                   #name " has another signature in the vendor's headers");
LAB_CUPTI_FUNCTIONS(CHECK_CUPTI)

#define lab_lt_handle               cublasLtHandle_t
#define lab_lt_matmul_desc          cublasLtMatmulDesc_t
#define lab_lt_layout               cublasLtMatrixLayout_t
#define lab_lt_preference           cublasLtMatmulPreference_t
#define lab_lt_compute_type         cublasComputeType_t
#define lab_lt_data_type            cudaDataType_t
#define lab_lt_desc_attribute       cublasLtMatmulDescAttributes_t
#define lab_lt_preference_attribute cublasLtMatmulPreferenceAttributes_t
typedef cublasLtMatmulAlgo_t their_algo;
typedef cublasLtMatmulHeuristicResult_t their_heuristic;
#define struct /* theirs have no tags */
#define lab_lt_algo      their_algo
#define lab_lt_heuristic their_heuristic
#define CHECK_LT(name, effect, parameters)                                                         \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), cublasStatus_t(*) parameters),  \
                   #name " has another signature in the vendor's headers");
LAB_LT_FUNCTIONS(CHECK_LT)
#undef struct

LAB_TEST(declarations_agree_with_the_vendors_headers) {
    print_message("compared with the headers of CUDA %d.%d\n", CUDA_VERSION / 1000,
                  CUDA_VERSION % 1000 / 10);
}

#else

static int begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
    print_message("skipped: no CUDA toolkit here (looked in CUDA_HOME and /usr/local/cuda)\n");
    return LAB_TEST_SKIPPED;
}

const struct lab_test_program lab_test_program = {.begin = begin};

#endif
