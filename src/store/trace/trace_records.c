/* trace_records.c: rows of Nsight's tables as the records of model/trace.h. */
#include "store/trace/trace_internal.h"

#include <stdlib.h>

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define GRAPHS  "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
#define COPIES  "CUPTI_ACTIVITY_KIND_MEMCPY"
#define FILLS   "CUPTI_ACTIVITY_KIND_MEMSET"
#define CALLS   "CUPTI_ACTIVITY_KIND_RUNTIME"
#define RANGES  "NVTX_EVENTS"

const char *const trace_device_tables[] = {KERNELS, GRAPHS, COPIES, FILLS, NULL};

/* One table while it is read: the next row goes to `count`. */
struct table {
    const struct trace_reader *reader;
    sqlite3_stmt *rows;
    uint32_t process;
    size_t most;
};

/* Columns that all tables of work begin with; their own begin at PLACE_END. */
#define PLACE                                                                                      \
    "start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId",        \
        "globalPid", "graphNodeId"
enum { START, END, DEVICE, CONTEXT, GREEN, STREAM, CORRELATION, PROCESS, GRAPH_NODE, PLACE_END };

static int64_t integer(const struct table *table, int column) {
    return sqlite3_column_int64(table->rows, column);
}

static int64_t end_of(const struct table *table) {
    int64_t start_ns = integer(table, START);
    if (sqlite3_column_type(table->rows, END) == SQLITE_NULL)
        return start_ns == INT64_MIN ? start_ns : start_ns - 1;
    return integer(table, END);
}

static struct lab_trace_place read_place(const struct table *table) {
    return (struct lab_trace_place){.device = (int32_t)integer(table, DEVICE),
                                    .context = (uint32_t)integer(table, CONTEXT),
                                    .green = (uint32_t)integer(table, GREEN),
                                    .stream = (uint32_t)integer(table, STREAM),
                                    .correlation = (uint32_t)integer(table, CORRELATION),
                                    .graph_node = (uint64_t)integer(table, GRAPH_NODE)};
}

/* Whether the row is the process's; `column` says whose it is. What is nobody's is everybody's. */
static bool is_theirs(const struct table *table, int column) {
    uint32_t process = trace_process_of(integer(table, column));
    return table->process == 0 || process == 0 || process == table->process;
}

static int open_table(struct table *table, const char *name, const char *const *columns,
                      int required, struct lab_err *err) {
    if (trace_count_rows(table->reader, name, &table->most, err) < 0)
        return -1;
    return trace_rows_open(table->reader, name, columns, required, &table->rows, err);
}

/* Every record begins with its start. */
static int by_start(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort(void *records, size_t count, size_t size) {
    if (count > 1)
        qsort(records, count, size, by_start);
}

/* --- work of the device --- */

static int read_kernels(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {PLACE,
                                          "shortName",
                                          "demangledName",
                                          "mangledName",
                                          "gridX",
                                          "gridY",
                                          "gridZ",
                                          "blockX",
                                          "blockY",
                                          "blockZ",
                                          "registersPerThread",
                                          "staticSharedMemory",
                                          "dynamicSharedMemory",
                                          "localMemoryPerThread",
                                          NULL};
    enum {
        SHORT = PLACE_END,
        DEMANGLED,
        MANGLED,
        GRID,
        BLOCK = GRID + 3,
        REGISTERS = BLOCK + 3,
        STATIC_SHARED,
        DYNAMIC_SHARED,
        LOCAL
    };
    if (open_table(table, KERNELS, columns, 2, err) < 0)
        return -1;
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        if (trace->kernel_count == table->most || !is_theirs(table, PROCESS))
            continue;
        struct lab_trace_kernel kernel = {.start_ns = integer(table, START),
                                          .end_ns = end_of(table),
                                          .place = read_place(table),
                                          .registers = (int32_t)integer(table, REGISTERS),
                                          .static_shared = (int32_t)integer(table, STATIC_SHARED),
                                          .dynamic_shared = (int32_t)integer(table, DYNAMIC_SHARED),
                                          .local_bytes = integer(table, LOCAL)};
        kernel.name = trace_text(table->reader, table->rows, SHORT);
        kernel.long_name = trace_text(table->reader, table->rows, DEMANGLED);
        if (!kernel.long_name)
            kernel.long_name = trace_text(table->reader, table->rows, MANGLED);
        if (!kernel.name)
            kernel.name = kernel.long_name;
        for (int i = 0; i < 3; i++) {
            kernel.grid[i] = (int32_t)integer(table, GRID + i);
            kernel.block[i] = (int32_t)integer(table, BLOCK + i);
        }
        trace->kernels[trace->kernel_count++] = kernel;
    }
    return status;
}

/* Where graphs were recorded as a whole, they stand beside the kernels. */
static int read_graphs(struct table *table, size_t most, struct lab_trace *trace,
                       struct lab_err *err) {
    static const char *const columns[] = {PLACE, NULL};
    if (open_table(table, GRAPHS, columns, 2, err) < 0)
        return -1;
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        if (trace->kernel_count < most && is_theirs(table, PROCESS))
            trace->kernels[trace->kernel_count++] =
                (struct lab_trace_kernel){.start_ns = integer(table, START),
                                          .end_ns = end_of(table),
                                          .place = read_place(table),
                                          .name = "graph",
                                          .whole_graph = true};
    }
    return status;
}

static int read_computes(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    size_t kernels, graphs;
    if (trace_count_rows(table->reader, KERNELS, &kernels, err) < 0 ||
        trace_count_rows(table->reader, GRAPHS, &graphs, err) < 0)
        return -1;
    trace->kernels =
        lab_arena_alloc(table->reader->arena, kernels + graphs + 1, sizeof *trace->kernels);
    if (read_kernels(table, trace, err) < 0 || read_graphs(table, kernels + graphs, trace, err) < 0)
        return -1;
    sort(trace->kernels, trace->kernel_count, sizeof *trace->kernels);
    return 0;
}

static int read_copies(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {PLACE, "bytes", "copyKind", "srcKind", "dstKind", NULL};
    enum { BYTES = PLACE_END, KIND, FROM, TO };
    if (open_table(table, COPIES, columns, 2, err) < 0)
        return -1;
    trace->copies = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->copies);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        if (trace->copy_count < table->most && is_theirs(table, PROCESS))
            trace->copies[trace->copy_count++] =
                (struct lab_trace_copy){.start_ns = integer(table, START),
                                        .end_ns = end_of(table),
                                        .place = read_place(table),
                                        .size_bytes = integer(table, BYTES),
                                        .kind = (int32_t)integer(table, KIND),
                                        .from = (int32_t)integer(table, FROM),
                                        .to = (int32_t)integer(table, TO)};
    }
    sort(trace->copies, trace->copy_count, sizeof *trace->copies);
    return status;
}

static int read_fills(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {PLACE, "bytes", "value", "memKind", NULL};
    enum { BYTES = PLACE_END, VALUE, KIND };
    if (open_table(table, FILLS, columns, 2, err) < 0)
        return -1;
    trace->fills = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->fills);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        if (trace->fill_count < table->most && is_theirs(table, PROCESS))
            trace->fills[trace->fill_count++] =
                (struct lab_trace_fill){.start_ns = integer(table, START),
                                        .end_ns = end_of(table),
                                        .place = read_place(table),
                                        .size_bytes = integer(table, BYTES),
                                        .value = integer(table, VALUE),
                                        .memory = (int32_t)integer(table, KIND)};
    }
    sort(trace->fills, trace->fill_count, sizeof *trace->fills);
    return status;
}

/* --- the host --- */

static int read_calls(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {"start",  "end",         "globalTid", "correlationId",
                                          "nameId", "returnValue", NULL};
    enum { THREAD = END + 1, CALL_CORRELATION, NAME, RESULT };
    if (open_table(table, CALLS, columns, 2, err) < 0)
        return -1;
    trace->calls = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->calls);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        if (trace->call_count < table->most && is_theirs(table, THREAD))
            trace->calls[trace->call_count++] =
                (struct lab_trace_call){.start_ns = integer(table, START),
                                        .end_ns = end_of(table),
                                        .name = trace_text(table->reader, table->rows, NAME),
                                        .thread = trace_thread_of(integer(table, THREAD)),
                                        .correlation = (uint32_t)integer(table, CALL_CORRELATION),
                                        .result = (int32_t)integer(table, RESULT)};
    }
    sort(trace->calls, trace->call_count, sizeof *trace->calls);
    return status;
}

static int read_ranges(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {"start", "end",    "eventType", "globalTid",
                                          "text",  "textId", NULL};
    enum { KIND = END + 1, THREAD, TEXT, TEXT_ID };
    if (open_table(table, RANGES, columns, 2, err) < 0)
        return -1;
    trace->ranges = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->ranges);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        int64_t kind = integer(table, KIND);
        if (trace->range_count == table->most || !is_theirs(table, THREAD) ||
            (kind != LAB_TRACE_RANGE_NESTED && kind != LAB_TRACE_RANGE_FREE))
            continue;
        const char *text = trace_text(table->reader, table->rows, TEXT);
        if (!text)
            text = trace_text(table->reader, table->rows, TEXT_ID);
        trace->ranges[trace->range_count++] =
            (struct lab_trace_range){.start_ns = integer(table, START),
                                     .end_ns = end_of(table),
                                     .text = text ? text : "",
                                     .thread = trace_thread_of(integer(table, THREAD)),
                                     .kind = (int32_t)kind};
    }
    sort(trace->ranges, trace->range_count, sizeof *trace->ranges);
    return status;
}

/* --- about it --- */

static int read_gpus(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {
        "id",      "cuDevice",     "name",         "uuid",        "busLocation",
        "smCount", "computeMajor", "computeMinor", "totalMemory", "memoryBandwidth",
        NULL};
    enum { ID, CUDA, NAME, UUID, BUS, UNITS, MAJOR, MINOR, MEMORY, BANDWIDTH };
    if (open_table(table, "TARGET_INFO_GPU", columns, 0, err) < 0)
        return -1;
    trace->gpus = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->gpus);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        bool numbered = sqlite3_column_type(table->rows, CUDA) != SQLITE_NULL;
        if (trace->gpu_count < table->most)
            trace->gpus[trace->gpu_count++] =
                (struct lab_trace_gpu){.device = (int32_t)integer(table, numbered ? CUDA : ID),
                                       .name = trace_text(table->reader, table->rows, NAME),
                                       .uuid = trace_text(table->reader, table->rows, UUID),
                                       .pci_bus = trace_text(table->reader, table->rows, BUS),
                                       .compute_units = (int32_t)integer(table, UNITS),
                                       .compute_major = (int32_t)integer(table, MAJOR),
                                       .compute_minor = (int32_t)integer(table, MINOR),
                                       .memory_bytes = integer(table, MEMORY),
                                       .memory_bytes_per_s = (double)integer(table, BANDWIDTH)};
    }
    return status;
}

static int read_notes(struct table *table, struct lab_trace *trace, struct lab_err *err) {
    static const char *const columns[] = {"name", "value", NULL};
    if (open_table(table, "META_DATA_EXPORT", columns, 0, err) < 0)
        return -1;
    trace->notes = lab_arena_alloc(table->reader->arena, table->most + 1, sizeof *trace->notes);
    int status;
    while ((status = trace_rows_next(table->reader, table->rows, err)) > 0) {
        const char *name = (const char *)sqlite3_column_text(table->rows, 0);
        const char *value = (const char *)sqlite3_column_text(table->rows, 1);
        if (trace->note_count == table->most || !name)
            continue;
        struct lab_trace_note note = {lab_arena_strdup(table->reader->arena, name),
                                      lab_arena_strdup(table->reader->arena, value ? value : "")};
        if (strcmp(note.name, LAB_TRACE_NOTE_DROPPED) == 0)
            trace->dropped = strtoll(note.value, NULL, 10);
        trace->notes[trace->note_count++] = note;
    }
    return status;
}

int trace_read_records(const struct trace_reader *reader, uint32_t process,
                       struct lab_trace *ret_trace, struct lab_err *err) {
    struct table table = {.reader = reader, .process = process};
    struct lab_trace trace = {.process = process};
    if (read_computes(&table, &trace, err) < 0 || read_copies(&table, &trace, err) < 0 ||
        read_fills(&table, &trace, err) < 0 || read_calls(&table, &trace, err) < 0 ||
        read_ranges(&table, &trace, err) < 0 || read_gpus(&table, &trace, err) < 0 ||
        read_notes(&table, &trace, err) < 0)
        return -1;
    *ret_trace = trace;
    return 0;
}
