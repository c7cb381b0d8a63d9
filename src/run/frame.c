/*
 * frame.c: frames to bytes and back. The writer is trusted, the reader trusts nobody: it looks at a
 * header as soon as it is there, so that a lie about the length costs no memory, and at a payload
 * only once it is whole and only between its two ends.
 */
#include "run/frame.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define HEADER_BYTES 8

static const char *const type_names[] = {
    [LAB_FRAME_HELLO] = "HELLO",       [LAB_FRAME_PHASE] = "PHASE",
    [LAB_FRAME_PROGRESS] = "PROGRESS", [LAB_FRAME_ITERATIONS] = "ITERATIONS",
    [LAB_FRAME_METRICS] = "METRICS",   [LAB_FRAME_WARNING] = "WARNING",
    [LAB_FRAME_RESULT] = "RESULT",     [LAB_FRAME_FAILURE] = "FAILURE",
    [LAB_FRAME_ACK] = "ACK",           [LAB_FRAME_JOB] = "JOB",
    [LAB_FRAME_READY] = "READY",       [LAB_FRAME_GO] = "GO",
    [LAB_FRAME_ENTITY] = "ENTITY",     [LAB_FRAME_TICKS] = "TICKS",
    [LAB_FRAME_MEET] = "MEET",
};

/* --- writing --- */

static void put_number(char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (char)(value >> (8 * i));
}

static void add_number(struct lab_str *out, uint64_t value, int bytes) {
    char number[8];
    put_number(number, value, bytes);
    lab_str_add_bytes(out, number, (size_t)bytes);
}

static void add_double(struct lab_str *out, double value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    add_number(out, bits, 8);
}

/* At most `room` bytes with the zero behind them. */
static void add_text(struct lab_str *out, const char *text, size_t room) {
    size_t left = text ? strlen(text) : 0;
    room--;
    while (left > 0 && room > 0) {
        size_t valid = lab_str_utf8_prefix(text, left);
        size_t taken = valid <= room ? valid : lab_str_utf8_prefix(text, room);
        lab_str_add_bytes(out, text, taken);
        text += taken;
        left -= taken;
        room -= taken;
        if (taken < valid)
            break;
        if (left > 0 && room > 0) {
            lab_str_add(out, "?");
            text++;
            left--;
            room--;
        }
    }
    lab_str_add_bytes(out, "", 1);
}

static void add_entity(const struct lab_frame *frame, struct lab_str *out) {
    const struct lab_entity *entity = &frame->entity.entity;
    const int numbers[] = {frame->entity.number, (int)entity->kind, entity->index,
                           entity->node,         entity->parent,    entity->column_count};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(out, (uint64_t)(int64_t)numbers[i], 4);
    for (int i = 0; i < entity->column_count; i++) {
        add_number(out, (uint64_t)(int64_t)entity->columns[i].instance, 4);
        add_text(out, lab_metric((enum lab_metric_id)entity->columns[i].metric)->name,
                 LAB_FRAME_MAX_NAME);
    }
    add_text(out, entity->id, LAB_FRAME_MAX_NAME);
    add_text(out, entity->name, LAB_FRAME_MAX_NAME);
    add_text(out, entity->pci, LAB_FRAME_MAX_NAME);
}

static void add_ticks(const struct lab_frame *frame, struct lab_str *out) {
    size_t columns = (size_t)frame->ticks.column_count;
    assert(frame->ticks.count * (columns + 1) <= LAB_FRAME_MAX_VALUES);
    add_number(out, (uint64_t)frame->ticks.number, 4);
    add_number(out, columns, 4);
    add_number(out, frame->ticks.count, 4);
    for (size_t i = 0; i < frame->ticks.count; i++) {
        add_number(out, (uint64_t)frame->ticks.times_ns[i], 8);
        for (size_t k = 0; k < columns; k++)
            add_number(out, (uint64_t)frame->ticks.values[i * columns + k], 8);
    }
}

static void add_metrics(const struct lab_frame *frame, struct lab_str *out) {
    assert(frame->metrics.count <= LAB_FRAME_MAX_METRICS);
    for (size_t i = 0; i < frame->metrics.count; i++) {
        const struct lab_reported_metric *metric = &frame->metrics.items[i];
        add_double(out, metric->value);
        add_number(out, (uint64_t)metric->time_ns, 8);
        add_double(out, metric->step);
        add_number(out, (uint64_t)(int64_t)metric->rank, 4);
        add_text(out, metric->name, LAB_FRAME_MAX_NAME);
        add_text(out, metric->unit, LAB_FRAME_MAX_NAME);
    }
}

static void add_payload(const struct lab_frame *frame, struct lab_str *out) {
    switch (frame->type) {
    case LAB_FRAME_HELLO:
        add_number(out, (uint64_t)frame->hello.version, 4);
        add_number(out, (uint64_t)frame->hello.pid, 8);
        add_number(out, (uint64_t)frame->hello.rank_count, 4);
        break;
    case LAB_FRAME_PROGRESS:
        add_number(out, (uint64_t)frame->progress.done, 8);
        add_number(out, (uint64_t)frame->progress.total, 8);
        break;
    case LAB_FRAME_ITERATIONS:
        assert(frame->iterations.count <= LAB_FRAME_MAX_ITERATIONS);
        add_number(out, (uint64_t)frame->iterations.first, 8);
        lab_iterations_pack(frame->iterations.items, frame->iterations.count, out);
        break;
    case LAB_FRAME_METRICS:
        add_metrics(frame, out);
        break;
    case LAB_FRAME_FAILURE:
        add_number(out, (uint64_t)frame->failure.code, 4);
        add_text(out, frame->failure.text, LAB_FRAME_MAX_BYTES - 4 - LAB_FRAME_MAX_NAME);
        add_text(out, lab_hint(frame->failure.hint)->name, LAB_FRAME_MAX_NAME);
        break;
    case LAB_FRAME_PHASE:
    case LAB_FRAME_WARNING:
    case LAB_FRAME_JOB:
        add_text(out, frame->text, LAB_FRAME_MAX_BYTES);
        break;
    case LAB_FRAME_RESULT:
        lab_result_pack(frame->result, LAB_FRAME_MAX_BYTES, out);
        break;
    case LAB_FRAME_ENTITY:
        add_entity(frame, out);
        break;
    case LAB_FRAME_TICKS:
        add_ticks(frame, out);
        break;
    case LAB_FRAME_MEET:
        add_number(out, frame->willing, 4);
        break;
    case LAB_FRAME_ACK:
    case LAB_FRAME_READY:
    case LAB_FRAME_GO:
        break;
    }
}

void lab_frame_write(const struct lab_frame *frame, struct lab_str *out) {
    assert(frame->rank >= 0 && frame->rank < LAB_FRAME_MAX_RANKS);
    size_t start = out->length;
    add_number(out, 0, 4);
    add_number(out, (uint64_t)frame->type, 2);
    add_number(out, (uint64_t)frame->rank, 2);
    add_payload(frame, out);
    size_t length = out->length - start - HEADER_BYTES;
    assert(length <= LAB_FRAME_MAX_BYTES);
    put_number(out->text + start, length, 4);
}

/* --- reading --- */

struct payload {
    const char *at, *end;
};

static uint64_t get_number(const char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)from[i] << (8 * i);
    return value;
}

static int take_number(struct payload *payload, int bytes, uint64_t *ret_value,
                       struct lab_err *err) {
    if (payload->end - payload->at < bytes)
        return lab_err_set(err, LAB_ERR_SYSTEM, "ends within a number");
    *ret_value = get_number(payload->at, bytes);
    payload->at += bytes;
    return 0;
}

static int take_i64(struct payload *payload, int64_t *ret_value, struct lab_err *err) {
    return take_number(payload, 8, (uint64_t *)ret_value, err);
}

/* A number of 4 bytes that has to be in a range, both ends included; one from 1 on has no sign. */
static int take_int(struct payload *payload, const char *what, int least, int most, int *ret_value,
                    struct lab_err *err) {
    uint64_t bits = 0;
    if (take_number(payload, 4, &bits, err) < 0)
        return -1;
    int64_t value = least > 0 ? (int64_t)bits : (int32_t)(uint32_t)bits;
    if (value < least || value > most)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s %lld, possible is %d to %d", what,
                           (long long)value, least, most);
    *ret_value = (int)value;
    return 0;
}

static int take_text(struct payload *payload, struct lab_arena *arena, const char **ret_text,
                     struct lab_err *err) {
    size_t left = (size_t)(payload->end - payload->at);
    const char *zero = left ? memchr(payload->at, '\0', left) : NULL;
    if (!zero)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a text has no end");
    size_t length = (size_t)(zero - payload->at);
    size_t valid = lab_str_utf8_prefix(payload->at, length);
    if (valid < length)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a text isn't UTF-8 from byte %zu on", valid);
    *ret_text = lab_arena_strndup(arena, payload->at, length);
    payload->at = zero + 1;
    return 0;
}

static int take_hello(struct payload *payload, struct lab_frame *frame, struct lab_err *err) {
    if (take_int(payload, "version", 1, INT_MAX, &frame->hello.version, err) < 0 ||
        take_i64(payload, &frame->hello.pid, err) < 0 ||
        take_int(payload, "number of ranks", 1, LAB_FRAME_MAX_RANKS, &frame->hello.rank_count,
                 err) < 0)
        return -1;
    if (frame->hello.pid < 1)
        return lab_err_set(err, LAB_ERR_SYSTEM, "process id %lld, the least is 1",
                           (long long)frame->hello.pid);
    return 0;
}

static int take_progress(struct payload *payload, struct lab_frame *frame, struct lab_err *err) {
    if (take_i64(payload, &frame->progress.done, err) < 0 ||
        take_i64(payload, &frame->progress.total, err) < 0)
        return -1;
    int64_t done = frame->progress.done, total = frame->progress.total;
    if (done < 0 || total < 0 || (total > 0 && done > total))
        return lab_err_set(err, LAB_ERR_SYSTEM, "%lld of %lld iterations done", (long long)done,
                           (long long)total);
    return 0;
}

static int take_iterations(struct payload *payload, struct lab_arena *arena,
                           struct lab_frame *frame, struct lab_err *err) {
    int64_t first = 0;
    struct lab_iteration *items = NULL;
    size_t count = 0;
    if (take_i64(payload, &first, err) < 0 ||
        lab_iterations_unpack(payload->at, (size_t)(payload->end - payload->at),
                              LAB_FRAME_MAX_ITERATIONS, arena, &items, &count, err) < 0)
        return -1;
    payload->at = payload->end;
    if (first < 0 || first > INT64_MAX - (int64_t)count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "no iteration can have the index %lld",
                           (long long)first);
    frame->iterations.first = first;
    frame->iterations.items = items;
    frame->iterations.count = count;
    return 0;
}

static int take_metric(struct payload *payload, struct lab_arena *arena,
                       struct lab_reported_metric *metric, struct lab_err *err) {
    uint64_t bits = 0, step = 0;
    if (take_number(payload, 8, &bits, err) < 0 || take_i64(payload, &metric->time_ns, err) < 0 ||
        take_number(payload, 8, &step, err) < 0 ||
        take_int(payload, "metric of rank", -1, LAB_FRAME_MAX_RANKS - 1, &metric->rank, err) < 0 ||
        take_text(payload, arena, &metric->name, err) < 0 ||
        take_text(payload, arena, &metric->unit, err) < 0)
        return -1;
    memcpy(&metric->value, &bits, sizeof bits);
    memcpy(&metric->step, &step, sizeof step);
    return 0;
}

static int take_metrics(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                        struct lab_err *err) {
    enum { LEAST = 3 * 8 + 4 + 2 }; /* bytes of one */
    size_t most = (size_t)(payload->end - payload->at) / LEAST, count = 0;
    most = most < LAB_FRAME_MAX_METRICS ? most : LAB_FRAME_MAX_METRICS;
    struct lab_reported_metric *items = lab_arena_alloc(arena, most + 1, sizeof *items);
    for (; payload->at < payload->end && count < LAB_FRAME_MAX_METRICS; count++)
        if (take_metric(payload, arena, &items[count], err) < 0)
            return -1;
    frame->metrics.items = items;
    frame->metrics.count = count;
    return 0;
}

static int take_failure(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                        struct lab_err *err) {
    int code = 0;
    const char *hint = NULL;
    if (take_int(payload, "code", LAB_ERR_NONE + 1, LAB_ERR_INTERRUPTED, &code, err) < 0 ||
        take_text(payload, arena, &frame->failure.text, err) < 0 ||
        take_text(payload, arena, &hint, err) < 0)
        return -1;
    frame->failure.code = (enum lab_err_code)code;
    frame->failure.hint = lab_hint_find(hint);
    return 0;
}

static int take_columns(struct payload *payload, struct lab_arena *arena, int count,
                        struct lab_entity *entity, struct lab_err *err) {
    struct lab_column *columns = lab_arena_alloc(arena, (size_t)count + 1, sizeof *columns);
    for (int i = 0; i < count; i++) {
        const char *name = NULL;
        int instance = 0;
        if (take_int(payload, "instance", -1, INT16_MAX, &instance, err) < 0 ||
            take_text(payload, arena, &name, err) < 0)
            return -1;
        int metric = lab_metric_find(name);
        if (metric < 0)
            return lab_err_set(err, LAB_ERR_SYSTEM, "there is no metric '%.60s'", name);
        columns[i] = (struct lab_column){(int16_t)metric, (int16_t)instance};
    }
    entity->columns = columns;
    entity->column_count = count;
    return 0;
}

static int take_entity(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                       struct lab_err *err) {
    struct lab_entity *entity = &frame->entity.entity;
    int kind = 0, columns = 0;
    *entity = (struct lab_entity){.simulated = true};
    if (take_int(payload, "number", 0, LAB_FRAME_MAX_ENTITIES - 1, &frame->entity.number, err) <
            0 ||
        take_int(payload, "kind", 0, LAB_ENTITY_KIND_COUNT - 1, &kind, err) < 0 ||
        take_int(payload, "index", 0, INT_MAX, &entity->index, err) < 0 ||
        take_int(payload, "node", -1, INT_MAX, &entity->node, err) < 0 ||
        take_int(payload, "parent", -1, -1, &entity->parent, err) < 0 ||
        take_int(payload, "number of columns", 1, LAB_COLUMNS_MAX, &columns, err) < 0 ||
        take_columns(payload, arena, columns, entity, err) < 0 ||
        take_text(payload, arena, &entity->id, err) < 0 ||
        take_text(payload, arena, &entity->name, err) < 0 ||
        take_text(payload, arena, &entity->pci, err) < 0)
        return -1;
    entity->kind = (enum lab_entity_kind)kind;
    return 0;
}

static int take_ticks(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                      struct lab_err *err) {
    int rows = 0, columns = 0;
    if (take_int(payload, "number", 0, LAB_FRAME_MAX_ENTITIES - 1, &frame->ticks.number, err) < 0 ||
        take_int(payload, "number of columns", 1, LAB_COLUMNS_MAX, &columns, err) < 0 ||
        take_int(payload, "number of rows", 1, (int)LAB_FRAME_MAX_VALUES, &rows, err) < 0)
        return -1;
    size_t each = 8 * ((size_t)columns + 1);
    if ((size_t)(payload->end - payload->at) / each < (size_t)rows)
        return lab_err_set(err, LAB_ERR_SYSTEM, "ends within its rows");
    int64_t *times_ns = lab_arena_alloc(arena, (size_t)rows, sizeof *times_ns);
    int64_t *values = lab_arena_alloc(arena, (size_t)rows * (size_t)columns, sizeof *values);
    for (int i = 0; i < rows; i++) {
        take_i64(payload, &times_ns[i], err);
        for (int k = 0; k < columns; k++)
            take_i64(payload, &values[(size_t)i * (size_t)columns + (size_t)k], err);
    }
    frame->ticks.column_count = columns;
    frame->ticks.count = (size_t)rows;
    frame->ticks.times_ns = times_ns;
    frame->ticks.values = values;
    return 0;
}

static int take_result(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                       struct lab_err *err) {
    struct lab_result *result = lab_arena_alloc(arena, 1, sizeof *result);
    if (lab_result_unpack(payload->at, (size_t)(payload->end - payload->at), arena, result, err) <
        0)
        return -1;
    payload->at = payload->end;
    frame->result = result;
    return 0;
}

static int take_meet(struct payload *payload, struct lab_frame *frame, struct lab_err *err) {
    int willing = 0;
    if (take_int(payload, "answer", 0, 1, &willing, err) < 0)
        return -1;
    frame->willing = willing;
    return 0;
}

static int take_content(struct payload *payload, struct lab_arena *arena, struct lab_frame *frame,
                        struct lab_err *err) {
    switch (frame->type) {
    case LAB_FRAME_HELLO:
        return take_hello(payload, frame, err);
    case LAB_FRAME_PROGRESS:
        return take_progress(payload, frame, err);
    case LAB_FRAME_ITERATIONS:
        return take_iterations(payload, arena, frame, err);
    case LAB_FRAME_METRICS:
        return take_metrics(payload, arena, frame, err);
    case LAB_FRAME_FAILURE:
        return take_failure(payload, arena, frame, err);
    case LAB_FRAME_PHASE:
    case LAB_FRAME_WARNING:
    case LAB_FRAME_JOB:
        return take_text(payload, arena, &frame->text, err);
    case LAB_FRAME_RESULT:
        return take_result(payload, arena, frame, err);
    case LAB_FRAME_ENTITY:
        return take_entity(payload, arena, frame, err);
    case LAB_FRAME_TICKS:
        return take_ticks(payload, arena, frame, err);
    case LAB_FRAME_MEET:
        return take_meet(payload, frame, err);
    case LAB_FRAME_ACK:
    case LAB_FRAME_READY:
    case LAB_FRAME_GO:
        break;
    }
    return 0;
}

static int decode(struct payload payload, struct lab_arena *arena, struct lab_frame *frame,
                  struct lab_err *err) {
    if (take_content(&payload, arena, frame, err) == 0) {
        if (payload.at == payload.end)
            return 0;
        lab_err_set(err, LAB_ERR_SYSTEM, "%zu bytes too many", (size_t)(payload.end - payload.at));
    }
    return lab_err_context(err, "%s frame of rank %d", type_names[frame->type], frame->rank);
}

struct header {
    size_t length;
    int type, rank;
};

/* What can be said of a frame before its payload is there. */
static int check_header(const struct lab_frame_reader *reader, struct header header,
                        struct lab_err *err) {
    bool hello = header.type == LAB_FRAME_HELLO;
    if (reader->rank_count < 0 && !hello)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a frame of type %d came before HELLO",
                           header.type);
    if (reader->rank_count >= 0 && hello)
        return lab_err_set(err, LAB_ERR_SYSTEM, "HELLO came twice");
    if (!hello && header.rank >= reader->rank_count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a frame of rank %d, but the ranks are 0 to %d",
                           header.rank, reader->rank_count - 1);
    if (header.length > LAB_FRAME_MAX_BYTES)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a frame of %zu bytes, at most %zu are allowed",
                           header.length, LAB_FRAME_MAX_BYTES);
    return 0;
}

static int greet(struct lab_frame_reader *reader, const struct lab_frame *hello,
                 struct lab_err *err) {
    if (hello->rank >= hello->hello.rank_count)
        return lab_err_set(err, LAB_ERR_SYSTEM, "HELLO of rank %d, but the ranks are 0 to %d",
                           hello->rank, hello->hello.rank_count - 1);
    reader->rank_count = hello->hello.rank_count;
    return 0;
}

/* As lab_frame_reader_next; on failure nothing has moved, so that the next call fails likewise. */
static int next(struct lab_frame_reader *reader, struct lab_arena *arena,
                struct lab_frame *ret_frame, struct lab_err *err) {
    for (;;) {
        size_t pending = lab_frame_reader_pending(reader);
        const char *bytes = reader->bytes.text + reader->used;
        if (pending < HEADER_BYTES)
            return 0;
        struct header header = {.length = (size_t)get_number(bytes, 4),
                                .type = (int)get_number(bytes + 4, 2),
                                .rank = (int)get_number(bytes + 6, 2)};
        if (check_header(reader, header, err) < 0)
            return -1;
        if (pending - HEADER_BYTES < header.length)
            return 0;
        if (header.type < LAB_FRAME_HELLO || header.type > LAB_FRAME_MEET) {
            reader->skipped++;
            reader->used += HEADER_BYTES + header.length;
            continue;
        }
        struct payload payload = {bytes + HEADER_BYTES, bytes + HEADER_BYTES + header.length};
        struct lab_frame frame = {.type = (enum lab_frame_type)header.type, .rank = header.rank};
        if (decode(payload, arena, &frame, err) < 0 ||
            (frame.type == LAB_FRAME_HELLO && greet(reader, &frame, err) < 0))
            return -1;
        reader->used += HEADER_BYTES + header.length;
        *ret_frame = frame;
        return 1;
    }
}

void lab_frame_reader_init(struct lab_frame_reader *reader) {
    *reader = (struct lab_frame_reader){.rank_count = -1};
    lab_str_init(&reader->bytes);
}

void lab_frame_reader_release(struct lab_frame_reader *reader) {
    lab_str_release(&reader->bytes);
}

void lab_frame_reader_feed(struct lab_frame_reader *reader, const void *bytes, size_t length) {
    if (reader->failed || length == 0)
        return;
    /* Only once the rest is no longer than what was used: a byte is then moved at most once for
     * each byte used, and the whole stays linear. */
    size_t pending = lab_frame_reader_pending(reader);
    if (reader->used > 0 && pending <= reader->used) {
        memmove(reader->bytes.text, reader->bytes.text + reader->used, pending);
        reader->bytes.length = pending;
        reader->used = 0;
    }
    lab_str_add_bytes(&reader->bytes, bytes, length);
}

int lab_frame_reader_next(struct lab_frame_reader *reader, struct lab_arena *arena,
                          struct lab_frame *ret_frame, struct lab_err *err) {
    int status = next(reader, arena, ret_frame, err);
    if (status < 0)
        reader->failed = true;
    return status;
}

size_t lab_frame_reader_pending(const struct lab_frame_reader *reader) {
    return reader->bytes.length - reader->used;
}
