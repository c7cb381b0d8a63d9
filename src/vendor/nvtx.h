/*
 * vendor/nvtx.h: ranges that a profiler shows beside what the device did. NVTX 3 has no library: a
 * tool names one of its own in NVTX_INJECTION64_PATH, which is loaded at the first use and told
 * where functions belong that take ranges. Without the variable nothing is loaded, and a range
 * costs nothing.
 *
 * Ranges follow the host, which runs ahead of the device: a range around a call covers what it asks
 * for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A tool listens. Loads its library at the first call, from any thread: before anything is
 * timed. */
bool lab_nvtx_is_on(void);

/* Opens a range on the calling thread within those that are open; returns how many those are. */
int lab_nvtx_push(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Closes the range that was opened last on this thread. */
void lab_nvtx_pop(void);

/* Closes ranges until `depth` of them are left: also those that a failure has left open. */
void lab_nvtx_pop_to(int depth);

/* --- between us and the tool's library --- */

#define LAB_NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define LAB_NVTX_ENTRY    "InitializeInjectionNvtx2" /* a lab_nvtx_initialize */

enum { LAB_NVTX_VERSION = 3 };

/* What the tool may ask for, by number; it gets NULL for any other. */
enum { LAB_NVTX_EXPORT_CALLBACKS = 1, LAB_NVTX_EXPORT_VERSION = 3 };
typedef const void *lab_nvtx_get_export(uint32_t number);
typedef int lab_nvtx_initialize(lab_nvtx_get_export *get_export); /* 0 = the tool can't */

typedef void (*lab_nvtx_function)(void); /* of any type */

/* Functions come in groups, each an array of addresses of slots; the tool fills those that it
 * likes. */
enum lab_nvtx_module {
    LAB_NVTX_CORE = 1,
    LAB_NVTX_CUDA = 2,
    LAB_NVTX_OPENCL = 3,
    LAB_NVTX_CUDART = 4,
    LAB_NVTX_CORE2 = 5,
    LAB_NVTX_SYNC = 6,
    LAB_NVTX_MODULES
};

enum { /* slots in each; the first is none */
       LAB_NVTX_CORE_SLOTS = 16,
       LAB_NVTX_CUDA_SLOTS = 9,
       LAB_NVTX_OPENCL_SLOTS = 15,
       LAB_NVTX_CUDART_SLOTS = 7,
       LAB_NVTX_CORE2_SLOTS = 16,
       LAB_NVTX_SYNC_SLOTS = 7,
       LAB_NVTX_SLOTS_MAX = 16
};

/* Those of CORE that we call. */
enum { LAB_NVTX_RANGE_PUSH_EX = 8, LAB_NVTX_RANGE_PUSH = 9, LAB_NVTX_RANGE_POP = 11 };

struct lab_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_kind;
    uint32_t color;
    int32_t payload_kind, reserved;
    uint64_t payload;
    int32_t message_kind; /* LAB_NVTX_MESSAGE_ASCII */
    const char *message;
};

enum { LAB_NVTX_MESSAGE_ASCII = 1 };

typedef int lab_nvtx_range_push_ex(const struct lab_nvtx_attributes *attributes);
typedef int lab_nvtx_range_push(const char *message);
typedef int lab_nvtx_range_pop(void);

struct lab_nvtx_callbacks {
    size_t size;
    /* 1 = there is such a module */
    int (*get_table)(enum lab_nvtx_module module, lab_nvtx_function ***ret_table,
                     unsigned *ret_slots);
};

struct lab_nvtx_version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};
