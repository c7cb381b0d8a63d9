/*
 * vendor/nvtx.c: our side of NVTX 3's way of letting a tool in. The tool's library asks for tables
 * of slots and puts its functions there; what it leaves empty isn't called. Of all slots we use
 * three, but the tool is shown all that it knows.
 */
#include "vendor/nvtx.h"

#include "base/dl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES 96

static const unsigned slot_counts[LAB_NVTX_MODULES] = {
    [LAB_NVTX_CORE] = LAB_NVTX_CORE_SLOTS,     [LAB_NVTX_CUDA] = LAB_NVTX_CUDA_SLOTS,
    [LAB_NVTX_OPENCL] = LAB_NVTX_OPENCL_SLOTS, [LAB_NVTX_CUDART] = LAB_NVTX_CUDART_SLOTS,
    [LAB_NVTX_CORE2] = LAB_NVTX_CORE2_SLOTS,   [LAB_NVTX_SYNC] = LAB_NVTX_SYNC_SLOTS,
};

static lab_nvtx_function slots[LAB_NVTX_MODULES][LAB_NVTX_SLOTS_MAX];
static lab_nvtx_function
    *tables[LAB_NVTX_MODULES][LAB_NVTX_SLOTS_MAX + 1]; /* NULL behind the last */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static lab_nvtx_range_push *range_push;
static lab_nvtx_range_push_ex *range_push_ex;
static lab_nvtx_range_pop *range_pop; /* NULL = nobody listens */

static _Thread_local int open_count; /* ranges of this thread */

/* --- what the tool asks for --- */

static int get_table(enum lab_nvtx_module module, lab_nvtx_function ***ret_table,
                     unsigned *ret_slots) {
    if ((int)module < LAB_NVTX_CORE || (int)module >= LAB_NVTX_MODULES)
        return 0;
    if (ret_table)
        *ret_table = tables[module];
    if (ret_slots)
        *ret_slots = slot_counts[module];
    return 1;
}

/* Tools tell theirs; no version of any needs anything else of us. */
static void set_tool_version(uint32_t version) {
    (void)version;
}

static const struct lab_nvtx_callbacks callbacks = {sizeof callbacks, get_table};
static const struct lab_nvtx_version_info version_info = {
    .size = sizeof version_info, .version = LAB_NVTX_VERSION, .set_tool_version = set_tool_version};

static const void *get_export(uint32_t number) {
    switch (number) {
    case LAB_NVTX_EXPORT_CALLBACKS:
        return &callbacks;
    case LAB_NVTX_EXPORT_VERSION:
        return &version_info;
    default:
        return NULL;
    }
}

/* --- letting it in --- */

static void prepare_tables(void) {
    for (int module = LAB_NVTX_CORE; module < LAB_NVTX_MODULES; module++)
        for (unsigned slot = 1; slot < slot_counts[module]; slot++)
            tables[module][slot] = &slots[module][slot];
}

static void load(void) {
    const char *path = getenv(LAB_NVTX_VARIABLE);
    if (!path || !*path)
        return;
    lab_nvtx_initialize *initialize = NULL;
    const struct lab_dl_symbol symbols[] = {{LAB_NVTX_ENTRY, &initialize, "no ranges"}, {NULL}};
    struct lab_dl_report report;
    struct lab_arena arena;
    lab_arena_init(&arena);
    lab_dl_load(&(struct lab_dl_library){.title = "NVTX", .sonames = {path}, .symbols = symbols},
                NULL, &arena, &report);
    lab_arena_release(&arena);
    prepare_tables();
    /* no range is worth a failed run: without a tool that works there are none */
    if (!initialize || initialize(get_export) == 0)
        return;
    range_push = (lab_nvtx_range_push *)slots[LAB_NVTX_CORE][LAB_NVTX_RANGE_PUSH];
    range_push_ex = (lab_nvtx_range_push_ex *)slots[LAB_NVTX_CORE][LAB_NVTX_RANGE_PUSH_EX];
    if (range_push || range_push_ex)
        range_pop = (lab_nvtx_range_pop *)slots[LAB_NVTX_CORE][LAB_NVTX_RANGE_POP];
}

bool lab_nvtx_is_on(void) {
    pthread_once(&once, load);
    return range_pop != NULL;
}

/* --- ranges --- */

int lab_nvtx_push(const char *format, ...) {
    if (!lab_nvtx_is_on())
        return 0;
    char text[TEXT_BYTES];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    if (range_push)
        range_push(text);
    else
        range_push_ex(&(struct lab_nvtx_attributes){.version = LAB_NVTX_VERSION,
                                                    .size = sizeof(struct lab_nvtx_attributes),
                                                    .message_kind = LAB_NVTX_MESSAGE_ASCII,
                                                    .message = text});
    return open_count++;
}

void lab_nvtx_pop(void) {
    if (open_count == 0)
        return;
    range_pop();
    open_count--;
}

void lab_nvtx_pop_to(int depth) {
    while (open_count > depth)
        lab_nvtx_pop();
}
