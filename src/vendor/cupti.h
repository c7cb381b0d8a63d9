/*
 * vendor/cupti.h: CUPTI's activity API, as far as we use it: the driver's own record of kernels,
 * copies and calls. Rows as in vendor/cuda.h; every function returns a lab_cupti_result.
 *
 * Records grow from version to version, but only at their end: what is declared here is the part
 * that CUDA 12 (API 18) and 13 (API 130000 and later) have in common. cuptiActivityGetNextRecord
 * knows how long each of them is.
 */
#pragma once

#include "base/dl.h"
#include "vendor/cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int lab_cupti_result; /* 0 = success */

enum {
    LAB_CUPTI_SUCCESS = 0,
    LAB_CUPTI_MAX_LIMIT_REACHED = 12, /* the buffer has no further record */
    LAB_CUPTI_NOT_COMPATIBLE = 14,
    LAB_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
    LAB_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
    LAB_CUPTI_VIRTUALIZED_PRIVILEGES = 40,
};

enum lab_cupti_kind {
    LAB_CUPTI_MEMCPY = 1,
    LAB_CUPTI_MEMSET = 2,
    LAB_CUPTI_DRIVER = 4,
    LAB_CUPTI_RUNTIME = 5,
    LAB_CUPTI_CONCURRENT_KERNEL = 10,
};

enum {
    LAB_CUPTI_FLUSH_FORCED = 1,  /* unfinished buffers too */
    LAB_CUPTI_THREAD_SYSTEM = 1, /* threads by the system's numbers */
    LAB_CUPTI_DOMAIN_DRIVER = 1,
};

struct lab_cupti_record { /* what all begin with */
    uint32_t kind;
};

struct lab_cupti_kernel {
    uint32_t kind;
    uint8_t cache_config, shared_config;
    uint16_t registers;
    uint32_t partitioned_requested, partitioned_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name; /* as the compiler mangled it; lives as long as the module */
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout_requested, carveout, padding;
    uint32_t shared_executed;
    uint64_t graph_node; /* 0 = not from a graph */
};

struct lab_cupti_memcpy {
    uint32_t kind;
    uint8_t copy_kind, from_kind, to_kind, flags;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, padding;
    void *reserved;
    uint64_t graph_node;
};

struct lab_cupti_memset {
    uint32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory_kind;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
};

struct lab_cupti_call {
    uint32_t kind;
    uint32_t function; /* its number in the domain */
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

typedef enum lab_cupti_kind lab_cupti_activity;
typedef struct lab_cupti_record lab_cupti_any;
typedef int lab_cupti_thread_type;
typedef int lab_cupti_domain;
typedef void lab_cupti_request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records);
typedef void lab_cupti_complete(lab_cu_context context, uint32_t stream, uint8_t *buffer,
                                size_t bytes, size_t valid_bytes);
typedef uint64_t lab_cupti_clock(void);

#define LAB_CUPTI_ESSENTIAL "runs on GPUs can't be traced"
#define LAB_CUPTI_DETAILS   "traces of GPUs lack the names of calls, or what was lost of them"

#define LAB_CUPTI_FUNCTIONS(X)                                                                     \
    X(cuptiGetVersion, LAB_CUPTI_ESSENTIAL, (uint32_t * ret_version))                              \
    X(cuptiActivityEnable, LAB_CUPTI_ESSENTIAL, (lab_cupti_activity kind))                         \
    X(cuptiActivityDisable, LAB_CUPTI_ESSENTIAL, (lab_cupti_activity kind))                        \
    X(cuptiActivityRegisterCallbacks, LAB_CUPTI_ESSENTIAL,                                         \
      (lab_cupti_request * request, lab_cupti_complete * complete))                                \
    X(cuptiActivityRegisterTimestampCallback, LAB_CUPTI_ESSENTIAL, (lab_cupti_clock * clock))      \
    X(cuptiActivityFlushAll, LAB_CUPTI_ESSENTIAL, (uint32_t flag))                                 \
    X(cuptiActivityGetNextRecord, LAB_CUPTI_ESSENTIAL,                                             \
      (uint8_t * buffer, size_t valid_bytes, lab_cupti_any * *record))                             \
    X(cuptiGetContextId, LAB_CUPTI_ESSENTIAL, (lab_cu_context context, uint32_t * ret_id))         \
    X(cuptiActivityGetNumDroppedRecords, LAB_CUPTI_DETAILS,                                        \
      (lab_cu_context context, uint32_t stream, size_t * ret_dropped))                             \
    X(cuptiSetThreadIdType, LAB_CUPTI_DETAILS, (lab_cupti_thread_type type))                       \
    X(cuptiGetCallbackName, LAB_CUPTI_DETAILS,                                                     \
      (lab_cupti_domain domain, uint32_t function, const char **ret_name))                         \
    X(cuptiGetResultString, LAB_CUPTI_DETAILS, (lab_cupti_result result, const char **ret_text))

struct lab_cupti {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration can't have them */
#define LAB_CUPTI_MEMBER(name, effect, parameters) lab_cupti_result(*name) parameters;
    LAB_CUPTI_FUNCTIONS(LAB_CUPTI_MEMBER)
#undef LAB_CUPTI_MEMBER
};

/*
 * Loads it at the first call, from any thread; never NULL, but the functions may be. Of several,
 * one of the driver's own major version goes first.
 */
const struct lab_cupti *lab_cupti_load(const struct lab_dl_report **ret_report);

/* All that tracing needs is there, in a version whose records we know. */
bool lab_cupti_ready(void);

/* As it gives it: 18 for CUDA 12.0, 130001 for 13.0; 0 where there is none. */
uint32_t lab_cupti_version(void);

/* Of the CUDA that it came with: 12, 13; 0 = none. */
int lab_cupti_cuda_major(void);
