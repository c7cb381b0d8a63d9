/*
 * recording_read_process.c: the lists of processes back. Who a process is stands in a row of its
 * own, looked up when a list names it first.
 */
#include "store/recording/recording_internal.h"

/* What one process in a list takes in memory: itself, its state while unpacking, a GPU. */
#define ITEM_BYTES (int64_t)(2 * sizeof(struct lab_process_sample) + sizeof(struct lab_process_gpu))

enum { CACHE = 4096 };

struct processes {
    struct lab_recording_reading *reading;
    sqlite3_stmt *find;
    struct cached {
        int64_t number; /* 0 = empty */
        struct lab_process_sample identity;
    } * cache;
    struct lab_process_list *lists;
    size_t count;
    int damaged, too_many;
};

static bool find_identity(struct processes *processes, struct cached *ret) {
    struct lab_arena *arena = processes->reading->arena;
    sqlite3_stmt *row = processes->find;
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 1, ret->number);
    if (sqlite3_step(row) != SQLITE_ROW)
        return false;
    ret->identity = (struct lab_process_sample){
        .pid = sqlite3_column_int(row, 0),
        .parent_pid = sqlite3_column_int(row, 1),
        .start = (uint64_t)sqlite3_column_int64(row, 2),
        .uid = (uint32_t)sqlite3_column_int64(row, 3),
        .user = lab_recording_text(row, 4, arena),
        .name = lab_recording_text(row, 5, arena),
        .command = lab_recording_text(row, 6, arena),
        .container = lab_recording_text(row, 7, arena),
        .advice = lab_recording_text(row, 8, arena),
    };
    return true;
}

static bool identify(void *state, int64_t number, struct lab_process_sample *ret) {
    struct processes *processes = state;
    struct cached *cached = &processes->cache[(uint64_t)number % CACHE];
    if (number <= 0)
        return false;
    if (cached->number != number) {
        struct cached found = {.number = number};
        if (!find_identity(processes, &found))
            return false;
        *cached = found;
    }
    *ret = cached->identity;
    return true;
}

static int track_of(void *state, int64_t row) {
    const struct processes *processes = state;
    const struct lab_recording_columns *source = lab_recording_columns(processes->reading, row);
    return source ? source->track : -1;
}

static void keep_list(struct processes *processes, const struct lab_process_list *list,
                      const struct lab_recording_segment *segment) {
    int64_t shift_ns = segment ? segment->shift_ns : 0;
    if (!lab_recording_is_time(list->time_ns) ||
        !lab_recording_wants(processes->reading, segment, list->time_ns, list->time_ns))
        return;
    if (processes->count &&
        list->time_ns + shift_ns < processes->lists[processes->count - 1].time_ns)
        return;
    struct lab_process_list *kept =
        &LAB_ADD(processes->lists, processes->count, processes->reading->arena);
    *kept = *list;
    kept->time_ns += shift_ns;
}

/* A row: number, epoch, first_ns, last_ns, items, bytes. */
static int add_chunk(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    struct processes *processes = state;
    struct lab_recording_segment *segment =
        lab_recording_segment(reading, sqlite3_column_int64(row, 1));
    if (!lab_recording_wants(reading, segment, sqlite3_column_int64(row, 2),
                             sqlite3_column_int64(row, 3)))
        return 0;
    const void *bytes = sqlite3_column_blob(row, 5);
    size_t size = (size_t)sqlite3_column_bytes(row, 5);
    int64_t items = sqlite3_column_int64(row, 4);
    struct lab_process_list *lists;
    int count;
    if (items < 0 || items > (int64_t)size) {
        processes->damaged++;
        return 0;
    }
    if (items > reading->bytes_left / ITEM_BYTES) {
        processes->too_many++;
        return 0;
    }
    reading->bytes_left -= items * ITEM_BYTES;
    const struct lab_process_unpacking unpacking = {identify, track_of, processes};
    if (!bytes || lab_process_unpack(bytes, size, (int)items, &unpacking, reading->arena, &lists,
                                     &count, NULL) < 0) {
        processes->damaged++;
        return 0;
    }
    for (int i = 0; i < count; i++)
        keep_list(processes, &lists[i], segment);
    return 0;
}

int lab_recording_read_processes(struct lab_recording_reading *reading) {
    struct processes processes = {.reading = reading};
    if (sqlite3_prepare_v2(reading->store->db,
                           "SELECT pid, parent_pid, start, uid, user, name, command, container,"
                           " advice FROM process WHERE number = ?",
                           -1, &processes.find, NULL)) {
        lab_recording_note(&reading->notes, "processes: the file is damaged");
        return 0;
    }
    processes.cache = lab_mem_alloc(CACHE, sizeof *processes.cache);
    int result = lab_recording_each(reading, "lists of processes",
                                    "SELECT number, epoch, first_ns, last_ns, items, bytes"
                                    " FROM process_chunk WHERE number > ?1 AND last_ns >= ?2 AND "
                                    "first_ns <= ?3 ORDER BY number",
                                    add_chunk, &processes);
    if (processes.damaged)
        lab_recording_note(&reading->notes, "lists of processes: %d %s damaged", processes.damaged,
                           processes.damaged == 1 ? "stretch is" : "stretches are");
    if (processes.too_many)
        lab_recording_note(&reading->notes, "lists of processes: %d chunks don't fit in memory",
                           processes.too_many);
    struct lab_recording *recording = reading->recording;
    recording->process_count = processes.count;
    recording->processes = processes.lists;
    sqlite3_finalize(processes.find);
    lab_mem_free(processes.cache);
    return result;
}
