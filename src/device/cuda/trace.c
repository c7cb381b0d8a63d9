/*
 * trace.c: what the GPU did, by CUPTI's activity records. CUPTI is one for the whole process: it
 * hands over buffers of records of all contexts, from threads of its own. So there is one collector
 * here, which devices join and leave; at the end each takes what its own context did.
 *
 * Its time stamps are switched to CLOCK_MONOTONIC, the clock of everything else. Inside graphs each
 * command has its record: dearer than one for the whole graph, but the pass is short.
 */
#include "base/mem.h"
#include "device/cuda/cuda.h"
#include "vendor/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20)

struct record {
    uint32_t kind; /* enum lab_cupti_kind */
    uint32_t context, correlation;
    union {
        struct lab_trace_kernel kernel;
        struct lab_trace_copy copy;
        struct lab_trace_fill fill;
        struct lab_trace_call call;
    };
};

static struct {
    pthread_mutex_t lock; /* of what follows */
    int users;            /* devices that are being traced */
    bool alone;           /* no more than one has been since it was switched on */
    bool registered;
    struct record *records;
    size_t count, room; /* `room`: as many as all users asked for */
    int64_t dropped;
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const enum lab_cupti_kind kinds[] = {LAB_CUPTI_CONCURRENT_KERNEL, LAB_CUPTI_MEMCPY,
                                            LAB_CUPTI_MEMSET, LAB_CUPTI_DRIVER};
#define KIND_COUNT ((int)(sizeof kinds / sizeof *kinds))

/* --- what CUPTI calls, from any thread --- */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * LAB_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void give_buffer(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records) {
    *ret_buffer = lab_mem_alloc(1, BUFFER_BYTES);
    *ret_bytes = BUFFER_BYTES;
    *ret_records = 0; /* as many as fit */
}

static int32_t memory_of(uint32_t kind) {
    enum { PAGEABLE = 1, PINNED = 2, DEVICE = 3, MANAGED = 5 };
    switch (kind) {
    case PAGEABLE:
        return LAB_TRACE_MEMORY_PAGEABLE;
    case PINNED:
        return LAB_TRACE_MEMORY_PINNED;
    case DEVICE:
        return LAB_TRACE_MEMORY_DEVICE;
    case MANAGED:
        return LAB_TRACE_MEMORY_MANAGED;
    default:
        return LAB_TRACE_MEMORY_UNKNOWN;
    }
}

#define PLACE(from)                                                                                \
    {                                                                                              \
        .device = (int32_t)(from)->device, .context = (from)->context, .stream = (from)->stream,   \
        .correlation = (from)->correlation, .graph_node = (from)->graph_node                       \
    }

static struct record read_kernel(const struct lab_cupti_kernel *from) {
    struct record record = {
        .context = from->context,
        .correlation = from->correlation,
        .kernel = {.start_ns = (int64_t)from->start,
                   .end_ns = (int64_t)from->end,
                   .place = PLACE(from),
                   .name = from->name,
                   .registers = from->registers,
                   .static_shared = from->static_shared,
                   .dynamic_shared = from->dynamic_shared,
                   .local_bytes = from->local_per_thread},
    };
    memcpy(record.kernel.grid, from->grid, sizeof record.kernel.grid);
    memcpy(record.kernel.block, from->block, sizeof record.kernel.block);
    return record;
}

static struct record read_copy(const struct lab_cupti_memcpy *from) {
    return (struct record){
        .context = from->context,
        .correlation = from->correlation,
        .copy = {.start_ns = (int64_t)from->start,
                 .end_ns = (int64_t)from->end,
                 .place = PLACE(from),
                 .size_bytes = (int64_t)from->bytes,
                 .kind = from->copy_kind,
                 .from = memory_of(from->from_kind),
                 .to = memory_of(from->to_kind)},
    };
}

static struct record read_fill(const struct lab_cupti_memset *from) {
    return (struct record){
        .context = from->context,
        .correlation = from->correlation,
        .fill = {.start_ns = (int64_t)from->start,
                 .end_ns = (int64_t)from->end,
                 .place = PLACE(from),
                 .size_bytes = (int64_t)from->bytes,
                 .value = from->value,
                 .memory = memory_of(from->memory_kind)},
    };
}

static struct record read_call(const struct lab_cupti_call *from) {
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    const char *name = NULL;
    if (!cupti->cuptiGetCallbackName ||
        cupti->cuptiGetCallbackName(LAB_CUPTI_DOMAIN_DRIVER, from->function, &name) !=
            LAB_CUPTI_SUCCESS)
        name = NULL;
    return (struct record){
        .correlation = from->correlation,
        .call = {.start_ns = (int64_t)from->start,
                 .end_ns = (int64_t)from->end,
                 .name = name ? name : "cu (unknown)",
                 .thread = from->thread,
                 .correlation = from->correlation,
                 .result = (int32_t)from->result},
    };
}

/* A command that was under way when its buffer was taken has no times. */
static bool is_complete(const struct record *record) {
    return record->kind == LAB_CUPTI_DRIVER || (record->kernel.start_ns && record->kernel.end_ns);
}

static void keep(const struct lab_cupti_record *from) {
    struct record record;
    switch ((enum lab_cupti_kind)from->kind) {
    case LAB_CUPTI_CONCURRENT_KERNEL:
        record = read_kernel((const struct lab_cupti_kernel *)(const void *)from);
        break;
    case LAB_CUPTI_MEMCPY:
        record = read_copy((const struct lab_cupti_memcpy *)(const void *)from);
        break;
    case LAB_CUPTI_MEMSET:
        record = read_fill((const struct lab_cupti_memset *)(const void *)from);
        break;
    case LAB_CUPTI_DRIVER:
        record = read_call((const struct lab_cupti_call *)(const void *)from);
        break;
    case LAB_CUPTI_RUNTIME:
    default:
        return;
    }
    record.kind = from->kind;
    if (!is_complete(&record) || collector.count >= collector.room) {
        collector.dropped++;
        return;
    }
    LAB_PUSH(collector.records, collector.count) = record;
}

static void take_buffer(lab_cu_context context, uint32_t stream, uint8_t *buffer, size_t bytes,
                        size_t valid_bytes) {
    (void)context;
    (void)stream;
    (void)bytes;
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    struct lab_cupti_record *record = NULL;
    pthread_mutex_lock(&collector.lock);
    while (valid_bytes &&
           cupti->cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == LAB_CUPTI_SUCCESS)
        keep(record);
    pthread_mutex_unlock(&collector.lock);
    lab_mem_free(buffer);
}

/* --- switching it on and off; under `switching`, since CUPTI may call back meanwhile --- */

static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

static int fail(lab_cupti_result result, const char *call, struct lab_err *err) {
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    const char *text = NULL, *hint = "";
    if (!cupti->cuptiGetResultString || cupti->cuptiGetResultString(result, &text) != 0)
        text = NULL;
    if (result == LAB_CUPTI_INSUFFICIENT_PRIVILEGES || result == LAB_CUPTI_VIRTUALIZED_PRIVILEGES)
        hint = "; only root may trace GPUs here, unless the administrator loads the driver with "
               "NVreg_RestrictProfilingToAdminUsers=0";
    else if (result == LAB_CUPTI_MULTIPLE_SUBSCRIBERS)
        hint = "; another profiler holds this process";
    else if (result == LAB_CUPTI_NOT_COMPATIBLE)
        hint = "; the driver is older than this CUPTI";
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s: %s (%d)%s", call, text ? text : "failed",
                       result, hint);
}

static int check_cupti(struct lab_err *err) {
    const struct lab_dl_report *report;
    lab_cupti_load(&report);
    if (!report->handle)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "CUPTI, which traces GPUs, was not found: %s",
                           report->reason);
    if (!lab_cupti_ready())
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%s is too old to trace: CUDA 12 or later is needed", report->path);
    return 0;
}

/* For as long as the process lives. The clock goes first, or the first records have another one. */
static int register_once(const struct lab_cupti *cupti, struct lab_err *err) {
    if (collector.registered)
        return 0;
    lab_cupti_result result = cupti->cuptiActivityRegisterTimestampCallback(now);
    if (result != LAB_CUPTI_SUCCESS)
        return fail(result, "cuptiActivityRegisterTimestampCallback", err);
    result = cupti->cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (result != LAB_CUPTI_SUCCESS)
        return fail(result, "cuptiActivityRegisterCallbacks", err);
    if (cupti->cuptiSetThreadIdType)
        cupti->cuptiSetThreadIdType(LAB_CUPTI_THREAD_SYSTEM);
    collector.registered = true;
    return 0;
}

static void disable(const struct lab_cupti *cupti, int count) {
    for (int i = 0; i < count; i++)
        cupti->cuptiActivityDisable(kinds[i]);
}

static int enable(const struct lab_cupti *cupti, struct lab_err *err) {
    for (int i = 0; i < KIND_COUNT; i++) {
        lab_cupti_result result = cupti->cuptiActivityEnable(kinds[i]);
        if (result == LAB_CUPTI_SUCCESS)
            continue;
        disable(cupti, i);
        return fail(result, "cuptiActivityEnable", err);
    }
    return 0;
}

static int join(struct cuda_device *device, size_t capacity, struct lab_err *err) {
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    lab_cupti_result result = cupti->cuptiGetContextId(device->context, &device->trace_context);
    if (result != LAB_CUPTI_SUCCESS) {
        if (collector.users == 0)
            disable(cupti, KIND_COUNT);
        return fail(result, "cuptiGetContextId", err);
    }
    pthread_mutex_lock(&collector.lock);
    collector.alone = collector.users == 0;
    collector.users++;
    collector.room += capacity;
    pthread_mutex_unlock(&collector.lock);
    return 0;
}

int cuda_trace_begin(struct lab_device *base, size_t capacity, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    if (device->traced)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is being traced already", base->ref.name);
    if (check_cupti(err) || cuda_enter(device, err))
        return -1;
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    pthread_mutex_lock(&switching);
    int result = register_once(cupti, err);
    if (result == 0 && collector.users == 0)
        result = enable(cupti, err);
    if (result == 0)
        result = join(device, capacity, err);
    pthread_mutex_unlock(&switching);
    device->traced = result == 0;
    return result;
}

/* --- handing over --- */

static int64_t start_of(const struct record *record) {
    return record->kernel.start_ns; /* all members of the union begin with start and end */
}

static int compare_starts(const void *a, const void *b) {
    int64_t x = start_of(a), y = start_of(b);
    return (x > y) - (x < y);
}

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Where one device alone was traced, all is its own: contexts of libraries too. Of several, the
 * last must not take what others have done since they left. */
static bool is_command(const struct record *record, uint32_t context) {
    return record->kind != LAB_CUPTI_DRIVER && (record->context == context || collector.alone);
}

/* The calls that the context's commands came from, ascending. */
static size_t list_correlations(uint32_t context, uint32_t *numbers) {
    size_t count = 0;
    for (size_t i = 0; i < collector.count; i++)
        if (is_command(&collector.records[i], context))
            numbers[count++] = collector.records[i].correlation;
    if (count)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    return count;
}

static void hand_over(const struct cuda_device *device, const struct record *record,
                      struct lab_arena *arena, struct lab_trace *trace) {
    const struct lab_device_ref *ref = &device->base.ref;
    uint32_t green = ref->slices > 1 ? (uint32_t)ref->slice + 1 : 0;
    switch ((enum lab_cupti_kind)record->kind) {
    case LAB_CUPTI_CONCURRENT_KERNEL: {
        struct lab_trace_kernel *kernel = &trace->kernels[trace->kernel_count++];
        *kernel = record->kernel;
        kernel->place.green = green;
        kernel->name = lab_arena_strdup(arena, kernel->name ? kernel->name : "unknown");
        break;
    }
    case LAB_CUPTI_MEMCPY:
        trace->copies[trace->copy_count] = record->copy;
        trace->copies[trace->copy_count++].place.green = green;
        break;
    case LAB_CUPTI_MEMSET:
        trace->fills[trace->fill_count] = record->fill;
        trace->fills[trace->fill_count++].place.green = green;
        break;
    case LAB_CUPTI_DRIVER:
        trace->calls[trace->call_count++] = record->call;
        break;
    case LAB_CUPTI_RUNTIME:
        break;
    }
}

/* Takes what is the context's own; the rest stays for the others. Under the collector's lock. */
static void collect(const struct cuda_device *device, struct lab_arena *arena,
                    struct lab_trace *trace) {
    uint32_t context = device->trace_context;
    size_t count = collector.count, left = 0;
    LAB_AUTO_FREE uint32_t *numbers = lab_mem_alloc(count + 1, sizeof *numbers);
    size_t number_count = list_correlations(context, numbers);
    trace->kernels = lab_arena_alloc(arena, count, sizeof *trace->kernels);
    trace->copies = lab_arena_alloc(arena, count, sizeof *trace->copies);
    trace->fills = lab_arena_alloc(arena, count, sizeof *trace->fills);
    trace->calls = lab_arena_alloc(arena, count, sizeof *trace->calls);
    if (count)
        qsort(collector.records, count, sizeof *collector.records, compare_starts);
    for (size_t i = 0; i < count; i++) {
        struct record *record = &collector.records[i];
        bool own = record->kind == LAB_CUPTI_DRIVER
                       ? bsearch(&record->correlation, numbers, number_count, sizeof *numbers,
                                 compare_numbers) != NULL
                       : is_command(record, context);
        if (own)
            hand_over(device, record, arena, trace);
        else
            collector.records[left++] = *record;
    }
    collector.count = left;
}

static void describe(const struct cuda_device *device, struct lab_arena *arena,
                     struct lab_trace *trace) {
    char name[128] = "", bus[32] = "";
    device->cuda->cuDeviceGetName(name, sizeof name, device->ordinal);
    device->cuda->cuDeviceGetPCIBusId(bus, sizeof bus, device->ordinal);
    trace->gpus = lab_arena_alloc(arena, 1, sizeof *trace->gpus);
    trace->gpus[trace->gpu_count++] = (struct lab_trace_gpu){
        .device = device->ordinal,
        .name = lab_arena_strdup(arena, name),
        .uuid = device->base.ref.uuid ? lab_arena_strdup(arena, device->base.ref.uuid) : NULL,
        .pci_bus = lab_arena_strdup(arena, bus),
        .compute_units = device->sm_count,
        .compute_major = device->capability / 10,
        .compute_minor = device->capability % 10,
        .memory_bytes = device->base.info.memory_bytes,
    };
    trace->notes = lab_arena_alloc(arena, 2, sizeof *trace->notes);
    trace->notes[trace->note_count++] = (struct lab_trace_note){LAB_TRACE_NOTE_SOURCE, "cupti"};
    trace->notes[trace->note_count++] = (struct lab_trace_note){
        "GPULAB_CUPTI_API", lab_arena_printf(arena, "%u", lab_cupti_version())};
}

static void leave(void) {
    if (--collector.users > 0)
        return;
    lab_mem_free(collector.records);
    collector.records = NULL;
    collector.count = collector.room = 0;
    collector.dropped = 0;
}

int cuda_trace_end(struct lab_device *base, struct lab_arena *arena, struct lab_trace *ret_trace,
                   struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    const struct lab_cupti *cupti = lab_cupti_load(NULL);
    if (!device->traced)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't being traced", base->ref.name);
    device->traced = false;
    size_t lost = 0;
    pthread_mutex_lock(&switching);
    lab_cupti_result result = cupti->cuptiActivityFlushAll(LAB_CUPTI_FLUSH_FORCED);
    if (cupti->cuptiActivityGetNumDroppedRecords)
        cupti->cuptiActivityGetNumDroppedRecords(NULL, 0, &lost);
    if (collector.users == 1)
        disable(cupti, KIND_COUNT);
    pthread_mutex_lock(&collector.lock);
    if (result == LAB_CUPTI_SUCCESS)
        collect(device, arena, ret_trace);
    ret_trace->dropped = collector.dropped + (int64_t)lost;
    leave();
    pthread_mutex_unlock(&collector.lock);
    pthread_mutex_unlock(&switching);
    ret_trace->process = (uint32_t)getpid();
    describe(device, arena, ret_trace);
    return result == LAB_CUPTI_SUCCESS ? 0 : fail(result, "cuptiActivityFlushAll", err);
}
