/*
 * libcupti.c: a CUPTI beside the fake driver: the vendor's own would fall over that. Whatever the
 * GPU did, it tells the same of each context that was asked for by name since tracing was switched
 * on: a call and the copy to the device that came of it, a call and the kernel in a graph that came
 * of it, a fill, a copy back, a kernel that has not ended. Records are longer than our
 * declarations, as in later versions, and come in two buffers.
 */
#include "fake/fake_cuda.h"
#include "vendor/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROTOTYPE(name, effect, parameters) FAKE_EXPORT lab_cupti_result name parameters;
LAB_CUPTI_FUNCTIONS(PROTOTYPE)

#define BEGIN(name)                                                                                \
    do {                                                                                           \
        int code = fake_injected(#name);                                                           \
        if (code)                                                                                  \
            return code;                                                                           \
    } while (0)

#define RECORD_BYTES 256
#define CONTEXTS_MAX 64
#define INVALID      1 /* CUPTI_ERROR_INVALID_PARAMETER */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lab_cupti_request *request;
static lab_cupti_complete *complete;
static lab_cupti_clock *tell_time;
static bool enabled[64];
static lab_cu_context contexts[CONTEXTS_MAX]; /* number i + 1 */
static bool pending[CONTEXTS_MAX];            /* something is to be told of it */
static int context_count;

lab_cupti_result cuptiGetVersion(uint32_t *ret_version) {
    *ret_version = (uint32_t)fake_number("FAKE_CUPTI_VERSION", 130001);
    return 0;
}

lab_cupti_result cuptiActivityRegisterCallbacks(lab_cupti_request *new_request,
                                                lab_cupti_complete *new_complete) {
    BEGIN(cuptiActivityRegisterCallbacks);
    request = new_request;
    complete = new_complete;
    return 0;
}

lab_cupti_result cuptiActivityRegisterTimestampCallback(lab_cupti_clock *clock) {
    BEGIN(cuptiActivityRegisterTimestampCallback);
    tell_time = clock;
    return 0;
}

lab_cupti_result cuptiActivityEnable(lab_cupti_activity kind) {
    BEGIN(cuptiActivityEnable);
    if (!request || !tell_time || (unsigned)kind >= 64 || enabled[kind])
        return INVALID;
    enabled[kind] = true;
    return 0;
}

lab_cupti_result cuptiActivityDisable(lab_cupti_activity kind) {
    if (!enabled[kind])
        return INVALID;
    enabled[kind] = false;
    return 0;
}

lab_cupti_result cuptiGetContextId(lab_cu_context context, uint32_t *ret_id) {
    BEGIN(cuptiGetContextId);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < context_count && contexts[i] != context)
        i++;
    contexts[i] = context;
    context_count += i == context_count;
    pending[i] = true;
    pthread_mutex_unlock(&lock);
    *ret_id = (uint32_t)i + 1;
    return 0;
}

/* --- records --- */

struct writer {
    uint8_t *buffer;
    size_t bytes, used;
};

static void *next(struct writer *writer, lab_cupti_activity kind) {
    static char nowhere[RECORD_BYTES]; /* of kinds that are switched off */
    if (!enabled[kind])
        return nowhere;
    struct lab_cupti_record *record = (void *)(writer->buffer + writer->used);
    memset(record, 0, RECORD_BYTES);
    writer->used += RECORD_BYTES;
    record->kind = (uint32_t)kind;
    return record;
}

static void add_call(struct writer *writer, uint32_t function, uint32_t correlation, uint64_t at) {
    struct lab_cupti_call *call = next(writer, LAB_CUPTI_DRIVER);
    call->function = function;
    call->start = at;
    call->end = at + 10;
    call->process = (uint32_t)getpid();
    call->thread = (uint32_t)syscall(SYS_gettid);
    call->correlation = correlation;
}

static void add_copy(struct writer *writer, uint32_t context, uint32_t correlation, uint8_t kind,
                     uint64_t at) {
    struct lab_cupti_memcpy *copy = next(writer, LAB_CUPTI_MEMCPY);
    copy->copy_kind = kind;
    copy->from_kind = kind == 1 ? 2 : 3; /* pinned, device */
    copy->to_kind = kind == 1 ? 3 : 2;
    copy->bytes = 4096;
    copy->start = at;
    copy->end = at + 100;
    copy->context = context;
    copy->stream = 13;
    copy->correlation = correlation;
}

static void add_kernel(struct writer *writer, uint32_t context, uint32_t correlation, uint64_t at,
                       uint64_t end) {
    struct lab_cupti_kernel *kernel = next(writer, LAB_CUPTI_CONCURRENT_KERNEL);
    kernel->name = "fake_kernel";
    kernel->registers = 32;
    kernel->start = at;
    kernel->end = end;
    kernel->context = context;
    kernel->stream = 14;
    kernel->grid[0] = 132;
    kernel->block[0] = 256;
    kernel->dynamic_shared = 1024;
    kernel->correlation = correlation;
    kernel->graph_node = 77;
}

static void add_fill(struct writer *writer, uint32_t context, uint64_t at) {
    struct lab_cupti_memset *fill = next(writer, LAB_CUPTI_MEMSET);
    fill->value = 255;
    fill->bytes = 64;
    fill->start = at;
    fill->end = at + 5;
    fill->context = context;
    fill->memory_kind = 3;
}

static void tell(uint32_t context, int half) {
    struct writer writer = {0};
    size_t records = 0;
    request(&writer.buffer, &writer.bytes, &records);
    uint64_t at = tell_time();
    uint32_t base = 100 * context;
    if (half == 0) { /* commands before their calls: buffers have no order among each other */
        add_kernel(&writer, context, base + 2, at + 300, at + 500);
        add_copy(&writer, context, base + 1, 1, at + 100);
        add_kernel(&writer, context, base + 9, at, 0);
        add_fill(&writer, context, at + 50);
    } else {
        add_call(&writer, 307, base + 1, at);
        add_call(&writer, 514, base + 2, at + 20);
        add_call(&writer, 119, base + 8, at + 40); /* of no command */
        add_copy(&writer, context, base + 3, 2, at + 600);
    }
    complete(NULL, 0, writer.buffer, writer.bytes, writer.used);
}

lab_cupti_result cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    BEGIN(cuptiActivityFlushAll);
    for (int i = 0; i < context_count; i++) {
        if (!pending[i])
            continue;
        pending[i] = false;
        for (int half = 0; half < 2; half++)
            tell((uint32_t)i + 1, half);
    }
    return 0;
}

lab_cupti_result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                            lab_cupti_any **record) {
    uint8_t *at = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
    if (at >= buffer + valid_bytes)
        return LAB_CUPTI_MAX_LIMIT_REACHED;
    *record = (void *)at;
    return 0;
}

lab_cupti_result cuptiActivityGetNumDroppedRecords(lab_cu_context context, uint32_t stream,
                                                   size_t *ret_dropped) {
    (void)context, (void)stream;
    *ret_dropped = (size_t)fake_number("FAKE_CUPTI_DROPPED", 0);
    return 0;
}

lab_cupti_result cuptiSetThreadIdType(lab_cupti_thread_type type) {
    return type == LAB_CUPTI_THREAD_SYSTEM ? 0 : INVALID;
}

lab_cupti_result cuptiGetCallbackName(lab_cupti_domain domain, uint32_t function,
                                      const char **ret_name) {
    if (domain != LAB_CUPTI_DOMAIN_DRIVER)
        return INVALID;
    *ret_name = function == 307 ? "cuMemcpyHtoDAsync_v2" : "cuGraphLaunch";
    return 0;
}

lab_cupti_result cuptiGetResultString(lab_cupti_result result, const char **ret_text) {
    *ret_text = result == LAB_CUPTI_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                            : "CUPTI_ERROR_UNKNOWN";
    return 0;
}
