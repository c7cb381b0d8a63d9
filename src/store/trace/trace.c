/*
 * trace.c: a trace's records as rows. The database is made in memory and written as one file: a
 * trace has a few thousand rows, and so no reader ever finds half of one, nor a journal beside it.
 */
#include "store/trace/trace.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sql.h"
#include "store/trace/trace_schema.h"

#include <string.h>

/* --- statements --- */

struct writer {
    sqlite3 *db;
    sqlite3_stmt *inserts[TRACE_INSERT_COUNT];
    const char *path;
    /* texts that have a number: open addressing, as many slots as a power of two */
    const char **texts;
    int64_t *numbers;
    size_t slots, count;
    int64_t global_process;
};

/* In memory only the want of it can go wrong. */
static int fail(const struct writer *writer, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s: %s", writer->path, sqlite3_errmsg(writer->db));
}

static int prepare(struct writer *writer, struct lab_err *err) {
    if (sqlite3_exec(writer->db, lab_trace_schema, NULL, NULL, NULL))
        return fail(writer, err);
    for (int i = 0; i < TRACE_INSERT_COUNT; i++)
        if (sqlite3_prepare_v2(writer->db, lab_trace_inserts[i], -1, &writer->inserts[i], NULL))
            return fail(writer, err);
    return 0;
}

static int insert(const struct writer *writer, enum trace_insert which,
                  const struct lab_sql_cell *row, struct lab_err *err) {
    sqlite3_stmt *statement = writer->inserts[which];
    lab_sql_bind(statement, row);
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? 0 : fail(writer, err);
}

/* 0 means that it is unknown: NULL. */
static struct lab_sql_cell known(int64_t value) {
    return value ? SQL_INT(value) : SQL_NULL;
}

static struct lab_sql_cell text_or_null(const char *text) {
    return text ? SQL_TEXT(text) : SQL_NULL;
}

/* --- texts that rows refer to by number --- */

static uint64_t hash(const char *text) {
    uint64_t value = 0xcbf29ce484222325;
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3;
    return value;
}

static size_t slot_of(const struct writer *writer, const char *text) {
    size_t slot = hash(text) & (writer->slots - 1);
    while (writer->texts[slot] && strcmp(writer->texts[slot], text) != 0)
        slot = (slot + 1) & (writer->slots - 1);
    return slot;
}

static void grow(struct writer *writer) {
    struct writer old = *writer;
    writer->slots = old.slots ? 2 * old.slots : 64;
    writer->texts = lab_mem_alloc(writer->slots, sizeof *writer->texts);
    writer->numbers = lab_mem_alloc(writer->slots, sizeof *writer->numbers);
    for (size_t i = 0; i < old.slots; i++) {
        if (!old.texts[i])
            continue;
        size_t slot = slot_of(writer, old.texts[i]);
        writer->texts[slot] = old.texts[i];
        writer->numbers[slot] = old.numbers[i];
    }
    lab_mem_free(old.texts);
    lab_mem_free(old.numbers);
}

static int number_of(struct writer *writer, const char *text, int64_t *ret_number,
                     struct lab_err *err) {
    text = text ? text : "";
    if (2 * writer->count >= writer->slots)
        grow(writer);
    size_t slot = slot_of(writer, text);
    if (!writer->texts[slot]) {
        writer->count++;
        if (insert(writer, TRACE_INSERT_STRING, LAB_ROW(SQL_INT(writer->count), SQL_TEXT(text)),
                   err) < 0)
            return -1;
        writer->texts[slot] = text;
        writer->numbers[slot] = (int64_t)writer->count;
    }
    *ret_number = writer->numbers[slot];
    return 0;
}

/* --- rows --- */

/* As Nsight packs them: the process above the lower 24 bits, the thread in these. */
static int64_t global_thread(const struct writer *writer, uint32_t thread) {
    return writer->global_process | (int64_t)(thread & 0xffffff);
}

/* The columns that kernels, copies and fills begin with. */
#define COMMAND(command)                                                                           \
    SQL_INT((command)->start_ns), SQL_INT((command)->end_ns), SQL_INT((command)->place.device),    \
        SQL_INT((command)->place.context), known((command)->place.green),                          \
        SQL_INT((command)->place.stream), known((command)->place.correlation),                     \
        SQL_INT(writer->global_process), known((int64_t)(command)->place.graph_node)

static int write_kernel(struct writer *writer, const struct lab_trace_kernel *kernel,
                        int64_t number, struct lab_err *err) {
    int64_t name = 0, long_name = 0;
    if (number_of(writer, kernel->name, &name, err) < 0 ||
        number_of(writer, kernel->long_name ? kernel->long_name : kernel->name, &long_name, err) <
            0)
        return -1;
    const int32_t *grid = kernel->grid, *block = kernel->block;
    return insert(writer, TRACE_INSERT_KERNEL,
                  LAB_ROW(COMMAND(kernel), SQL_INT(long_name), SQL_INT(name), SQL_INT(long_name),
                          SQL_INT(kernel->registers), SQL_INT(grid[0]), SQL_INT(grid[1]),
                          SQL_INT(grid[2]), SQL_INT(block[0]), SQL_INT(block[1]), SQL_INT(block[2]),
                          SQL_INT(kernel->static_shared), SQL_INT(kernel->dynamic_shared),
                          SQL_INT(kernel->local_bytes), SQL_INT(number)),
                  err);
}

static int write_copy(struct writer *writer, const struct lab_trace_copy *copy,
                      struct lab_err *err) {
    return insert(writer, TRACE_INSERT_COPY,
                  LAB_ROW(COMMAND(copy), SQL_INT(copy->size_bytes), SQL_INT(copy->kind),
                          SQL_INT(copy->from), SQL_INT(copy->to)),
                  err);
}

static int write_fill(struct writer *writer, const struct lab_trace_fill *fill,
                      struct lab_err *err) {
    return insert(writer, TRACE_INSERT_FILL,
                  LAB_ROW(COMMAND(fill), SQL_INT(fill->value), SQL_INT(fill->size_bytes),
                          SQL_INT(fill->memory)),
                  err);
}

/* The driver's functions are those that begin with "cu" and not with "cuda". */
static bool is_driver_call(const char *name) {
    return name && lab_str_starts(name, "cu") && !lab_str_starts(name, "cuda");
}

static int write_call(struct writer *writer, const struct lab_trace_call *call,
                      struct lab_err *err) {
    int64_t name = 0;
    if (number_of(writer, call->name, &name, err) < 0)
        return -1;
    return insert(writer, TRACE_INSERT_CALL,
                  LAB_ROW(SQL_INT(call->start_ns), SQL_INT(call->end_ns),
                          SQL_INT(is_driver_call(call->name)),
                          SQL_INT(global_thread(writer, call->thread)), known(call->correlation),
                          SQL_INT(name), SQL_INT(call->result)),
                  err);
}

static int write_range(struct writer *writer, const struct lab_trace_range *range, int64_t number,
                       struct lab_err *err) {
    bool ended = range->end_ns >= range->start_ns;
    return insert(writer, TRACE_INSERT_RANGE,
                  LAB_ROW(SQL_INT(range->start_ns), ended ? SQL_INT(range->end_ns) : SQL_NULL,
                          SQL_INT(range->kind), SQL_INT(number), text_or_null(range->text),
                          SQL_INT(global_thread(writer, range->thread))),
                  err);
}

static int write_gpu(struct writer *writer, const struct lab_trace_gpu *gpu, struct lab_err *err) {
    return insert(writer, TRACE_INSERT_GPU,
                  LAB_ROW(SQL_INT(gpu->device), text_or_null(gpu->name), text_or_null(gpu->pci_bus),
                          SQL_INT(gpu->pci_bus != NULL), known(gpu->memory_bytes),
                          known((int64_t)gpu->memory_bytes_per_s), known(gpu->compute_units),
                          text_or_null(gpu->uuid), known(gpu->compute_major),
                          gpu->compute_major ? SQL_INT(gpu->compute_minor) : SQL_NULL),
                  err);
}

/* --- the whole --- */

struct extent {
    int64_t first_ns, last_ns;
};

static void extend(struct extent *extent, int64_t start_ns, int64_t end_ns) {
    if (extent->last_ns < extent->first_ns)
        *extent = (struct extent){start_ns, end_ns};
    extent->first_ns = start_ns < extent->first_ns ? start_ns : extent->first_ns;
    extent->last_ns = end_ns > extent->last_ns ? end_ns : extent->last_ns;
}

static int write_commands(struct writer *writer, const struct lab_trace *trace,
                          struct extent *extent, struct lab_err *err) {
    for (size_t i = 0; i < trace->kernel_count; i++) {
        extend(extent, trace->kernels[i].start_ns, trace->kernels[i].end_ns);
        if (write_kernel(writer, &trace->kernels[i], (int64_t)i + 1, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < trace->copy_count; i++) {
        extend(extent, trace->copies[i].start_ns, trace->copies[i].end_ns);
        if (write_copy(writer, &trace->copies[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < trace->fill_count; i++) {
        extend(extent, trace->fills[i].start_ns, trace->fills[i].end_ns);
        if (write_fill(writer, &trace->fills[i], err) < 0)
            return -1;
    }
    return 0;
}

static int write_host(struct writer *writer, const struct lab_trace *trace, struct extent *extent,
                      struct lab_err *err) {
    for (size_t i = 0; i < trace->call_count; i++) {
        extend(extent, trace->calls[i].start_ns, trace->calls[i].end_ns);
        if (write_call(writer, &trace->calls[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < trace->range_count; i++) {
        extend(extent, trace->ranges[i].start_ns, trace->ranges[i].end_ns);
        if (write_range(writer, &trace->ranges[i], (int64_t)i + 1, err) < 0)
            return -1;
    }
    return 0;
}

static int write_about(struct writer *writer, const struct lab_trace *trace,
                       const struct extent *extent, struct lab_err *err) {
    for (size_t i = 0; i < trace->gpu_count; i++)
        if (write_gpu(writer, &trace->gpus[i], err) < 0)
            return -1;
    for (size_t i = 0; i < trace->note_count; i++)
        if (insert(writer, TRACE_INSERT_NOTE,
                   LAB_ROW(text_or_null(trace->notes[i].name), text_or_null(trace->notes[i].value)),
                   err) < 0)
            return -1;
    if (insert(
            writer, TRACE_INSERT_PROCESS,
            LAB_ROW(SQL_INT(writer->global_process), SQL_INT(trace->process), SQL_TEXT("gpulab")),
            err) < 0)
        return -1;
    if (extent->last_ns < extent->first_ns)
        return 0;
    return insert(writer, TRACE_INSERT_SPAN,
                  LAB_ROW(SQL_INT(extent->last_ns - extent->first_ns), SQL_INT(extent->first_ns),
                          SQL_INT(extent->last_ns)),
                  err);
}

static int fill(struct writer *writer, const struct lab_trace *trace, struct lab_err *err) {
    struct extent extent = {0, -1};
    /* small pages: many tables have a few rows, and each has a page at least */
    if (sqlite3_exec(writer->db, "PRAGMA page_size = 1024; BEGIN", NULL, NULL, NULL))
        return fail(writer, err);
    if (prepare(writer, err) < 0 || write_commands(writer, trace, &extent, err) < 0 ||
        write_host(writer, trace, &extent, err) < 0 || write_about(writer, trace, &extent, err) < 0)
        return -1;
    return sqlite3_exec(writer->db, "COMMIT", NULL, NULL, NULL) ? fail(writer, err) : 0;
}

static int save(struct writer *writer, struct lab_err *err) {
    sqlite3_int64 length = 0;
    unsigned char *bytes = sqlite3_serialize(writer->db, "main", &length, 0);
    if (!bytes)
        return fail(writer, err);
    /* a worker that waits for the disk can't die with its runner */
    int result = lab_file_replace(writer->path, (const char *)bytes, (size_t)length, err);
    sqlite3_free(bytes);
    return result;
}

int lab_trace_write(const char *path, const struct lab_trace *trace, struct lab_err *err) {
    struct writer writer = {.path = path, .global_process = (int64_t)trace->process << 24};
    int result = sqlite3_open(":memory:", &writer.db) ? fail(&writer, err) : 0;
    if (result == 0)
        result = fill(&writer, trace, err);
    for (int i = 0; i < TRACE_INSERT_COUNT; i++)
        sqlite3_finalize(writer.inserts[i]);
    if (result == 0)
        result = save(&writer, err);
    sqlite3_close(writer.db);
    lab_mem_free(writer.texts);
    lab_mem_free(writer.numbers);
    return result;
}
