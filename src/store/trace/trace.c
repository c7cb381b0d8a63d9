/*
 * trace.c: a trace's records as rows. The database is made in memory and written as one file: a
 * trace has a few thousand rows, and so no reader ever finds half of one, nor a journal beside it.
 */
#include "store/trace/trace.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/trace/trace_schema.h"

#include <sqlite3.h>
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

struct row { /* an insert whose parameters are being bound */
    struct writer *writer;
    sqlite3_stmt *insert;
    int next;
};

static struct row begin(struct writer *writer, enum trace_insert which) {
    sqlite3_stmt *insert = writer->inserts[which];
    sqlite3_clear_bindings(insert);
    return (struct row){writer, insert, 1};
}

static void add_int(struct row *row, int64_t value) {
    sqlite3_bind_int64(row->insert, row->next++, value);
}

/* 0 means that it isn't known: NULL. */
static void add_known(struct row *row, int64_t value) {
    if (value)
        sqlite3_bind_int64(row->insert, row->next, value);
    row->next++;
}

static void add_text(struct row *row, const char *text) {
    if (text)
        sqlite3_bind_text(row->insert, row->next, text, -1, SQLITE_STATIC);
    row->next++;
}

static int end(struct row *row, struct lab_err *err) {
    int code = sqlite3_step(row->insert);
    sqlite3_reset(row->insert);
    return code == SQLITE_DONE ? 0 : fail(row->writer, err);
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
        struct row row = begin(writer, TRACE_INSERT_STRING);
        add_int(&row, (int64_t)++writer->count);
        add_text(&row, text);
        if (end(&row, err) < 0)
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
static struct row begin_command(struct writer *writer, enum trace_insert which, int64_t start_ns,
                                int64_t end_ns, const struct lab_trace_place *place) {
    struct row row = begin(writer, which);
    add_int(&row, start_ns);
    add_int(&row, end_ns);
    add_int(&row, place->device);
    add_int(&row, place->context);
    add_known(&row, place->green);
    add_int(&row, place->stream);
    add_known(&row, place->correlation);
    add_int(&row, writer->global_process);
    add_known(&row, (int64_t)place->graph_node);
    return row;
}

static int write_kernel(struct writer *writer, const struct lab_trace_kernel *kernel,
                        int64_t number, struct lab_err *err) {
    int64_t name = 0, long_name = 0;
    if (number_of(writer, kernel->name, &name, err) < 0 ||
        number_of(writer, kernel->long_name ? kernel->long_name : kernel->name, &long_name, err) <
            0)
        return -1;
    struct row row = begin_command(writer, TRACE_INSERT_KERNEL, kernel->start_ns, kernel->end_ns,
                                   &kernel->place);
    add_int(&row, long_name);
    add_int(&row, name);
    add_int(&row, long_name);
    add_int(&row, kernel->registers);
    for (int i = 0; i < 3; i++)
        add_int(&row, kernel->grid[i]);
    for (int i = 0; i < 3; i++)
        add_int(&row, kernel->block[i]);
    add_int(&row, kernel->static_shared);
    add_int(&row, kernel->dynamic_shared);
    add_int(&row, kernel->local_bytes);
    add_int(&row, number);
    return end(&row, err);
}

static int write_copy(struct writer *writer, const struct lab_trace_copy *copy,
                      struct lab_err *err) {
    struct row row =
        begin_command(writer, TRACE_INSERT_COPY, copy->start_ns, copy->end_ns, &copy->place);
    add_int(&row, copy->size_bytes);
    add_int(&row, copy->kind);
    add_int(&row, copy->from);
    add_int(&row, copy->to);
    return end(&row, err);
}

static int write_fill(struct writer *writer, const struct lab_trace_fill *fill,
                      struct lab_err *err) {
    struct row row =
        begin_command(writer, TRACE_INSERT_FILL, fill->start_ns, fill->end_ns, &fill->place);
    add_int(&row, fill->value);
    add_int(&row, fill->size_bytes);
    add_int(&row, fill->memory);
    return end(&row, err);
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
    struct row row = begin(writer, TRACE_INSERT_CALL);
    add_int(&row, call->start_ns);
    add_int(&row, call->end_ns);
    add_int(&row, is_driver_call(call->name));
    add_int(&row, global_thread(writer, call->thread));
    add_known(&row, call->correlation);
    add_int(&row, name);
    add_int(&row, call->result);
    return end(&row, err);
}

static int write_range(struct writer *writer, const struct lab_trace_range *range, int64_t number,
                       struct lab_err *err) {
    struct row row = begin(writer, TRACE_INSERT_RANGE);
    add_int(&row, range->start_ns);
    if (range->end_ns < range->start_ns)
        row.next++;
    else
        add_int(&row, range->end_ns);
    add_int(&row, range->kind);
    add_int(&row, number);
    add_text(&row, range->text);
    add_int(&row, global_thread(writer, range->thread));
    return end(&row, err);
}

static int write_gpu(struct writer *writer, const struct lab_trace_gpu *gpu, struct lab_err *err) {
    struct row row = begin(writer, TRACE_INSERT_GPU);
    add_int(&row, gpu->device);
    add_text(&row, gpu->name);
    add_text(&row, gpu->pci_bus);
    add_int(&row, gpu->pci_bus != NULL);
    add_known(&row, gpu->memory_bytes);
    add_known(&row, (int64_t)gpu->memory_bytes_per_s);
    add_known(&row, gpu->compute_units);
    add_text(&row, gpu->uuid);
    add_known(&row, gpu->compute_major);
    if (gpu->compute_major)
        add_int(&row, gpu->compute_minor);
    return end(&row, err);
}

static int write_note(struct writer *writer, const char *name, const char *value,
                      struct lab_err *err) {
    struct row row = begin(writer, TRACE_INSERT_NOTE);
    add_text(&row, name);
    add_text(&row, value);
    return end(&row, err);
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
        if (write_note(writer, trace->notes[i].name, trace->notes[i].value, err) < 0)
            return -1;
    struct row row = begin(writer, TRACE_INSERT_PROCESS);
    add_int(&row, writer->global_process);
    add_int(&row, trace->process);
    add_text(&row, "gpulab");
    if (end(&row, err) < 0)
        return -1;
    if (extent->last_ns < extent->first_ns)
        return 0;
    row = begin(writer, TRACE_INSERT_SPAN);
    add_int(&row, extent->last_ns - extent->first_ns);
    add_int(&row, extent->first_ns);
    add_int(&row, extent->last_ns);
    return end(&row, err);
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
