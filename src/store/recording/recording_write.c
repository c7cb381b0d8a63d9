/*
 * recording_write.c: a second's worth of samples in one transaction. Everything has its number
 * before it is written, and chunks are replaced by number: a transaction that fails is simply tried
 * again with all that has come since.
 *
 * Samples are not waited for until they are on the disk (synchronous=NORMAL): a crash of the
 * program loses nothing that was committed, a power cut at most some seconds, never the file. In a
 * study's file they are in transactions of their own, so that a result's commit, which does wait,
 * stays as short as it was.
 */
#include "store/recording/recording_internal.h"

#include "base/failpoint.h"

/* --- rows --- */

static int write_epochs(struct lab_recorder *recorder, struct lab_err *err) {
    for (int i = 0; i < recorder->epoch_count; i++) {
        struct lab_recorder_epoch *epoch = &recorder->epochs[i];
        if (epoch->row)
            continue;
        if (lab_store_write(recorder->store, LAB_STORE_INSERT_EPOCH,
                            LAB_ROW(SQL_TEXT(recorder->boot_id), SQL_TEXT(recorder->host),
                                    SQL_INT(epoch->mono_ns), SQL_INT(epoch->wall_ns),
                                    SQL_TEXT(LAB_RECORDING_EPOCH_KIND)),
                            err) < 0)
            return -1;
        epoch->row = sqlite3_last_insert_rowid(recorder->store->db);
    }
    return 0;
}

static int write_entity(struct lab_recorder *recorder, const struct lab_recorder_entity *item,
                        struct lab_err *err) {
    const struct lab_entity *entity = &item->entity;
    return lab_store_write(
        recorder->store,
        "INSERT INTO entity (number, id, kind, position, name, pci, node, parent, simulated,"
        " columns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        LAB_ROW(SQL_INT(item->row), SQL_TEXT(entity->id),
                SQL_TEXT(lab_entity_kind_name(entity->kind)), SQL_INT(entity->index),
                SQL_TEXT(entity->name), SQL_TEXT(entity->pci), SQL_INT(entity->node),
                SQL_INT(item->parent), SQL_INT(entity->simulated), SQL_TEXT(item->columns)),
        err);
}

static int write_entities(struct lab_recorder *recorder, struct lab_err *err) {
    for (int i = 0; i < recorder->entity_count; i++)
        if (!recorder->entities[i]->is_stored &&
            write_entity(recorder, recorder->entities[i], err) < 0)
            return -1;
    return 0;
}

static int write_identities(struct lab_recorder *recorder, struct lab_err *err) {
    for (int i = 0; i < recorder->processes.fresh_count; i++) {
        const struct lab_process_identity *identity = &recorder->processes.fresh[i];
        if (lab_store_write(recorder->store,
                            "INSERT INTO process (number, pid, parent_pid, start, uid, user, name, "
                            "command, container,"
                            " advice) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            LAB_ROW(SQL_INT(identity->number), SQL_INT(identity->pid),
                                    SQL_INT(identity->parent_pid), SQL_INT(identity->start),
                                    SQL_INT(identity->uid), SQL_TEXT(identity->user),
                                    SQL_TEXT(identity->name), SQL_TEXT(identity->command),
                                    SQL_TEXT(identity->container), SQL_TEXT(identity->advice)),
                            err) < 0)
            return -1;
    }
    return 0;
}

static int write_event(struct lab_recorder *recorder, int epoch,
                       const struct lab_sample_event *event, int64_t entity, struct lab_err *err) {
    return lab_store_write(
        recorder->store,
        "INSERT INTO event (epoch, time_ns, entity, kind, value, text) VALUES (?, ?, ?, ?, ?, ?)",
        LAB_ROW(SQL_INT(recorder->epochs[epoch].row), SQL_INT(event->time_ns), SQL_INT(entity),
                SQL_TEXT(lab_event_kind_name(event->kind)), SQL_INT(event->number),
                SQL_TEXT(event->text)),
        err);
}

static int write_events(struct lab_recorder *recorder, struct lab_err *err) {
    for (const struct lab_recorder_event *item = recorder->events; item; item = item->next) {
        const struct lab_sample_event event = {.time_ns = item->time_ns,
                                               .kind = item->kind,
                                               .number = item->number,
                                               .text = item->text};
        if (write_event(recorder, item->epoch, &event, item->entity ? item->entity->row : 0, err) <
            0)
            return -1;
    }
    if (recorder->dropped == 0)
        return 0;
    const struct lab_sample_event dropped = {
        .time_ns = recorder->dropped_ns,
        .kind = LAB_EVENT_NOT_STORED,
        .number = recorder->dropped,
        .text = recorder->refusal.code ? recorder->refusal.text : "they came out of order"};
    return write_event(recorder, recorder->epoch_count - 1, &dropped, 0, err);
}

/* --- chunks --- */

static int write_chunk(struct lab_recorder *recorder, const struct lab_recorder_sealed *about,
                       const char *bytes, size_t size, struct lab_err *err) {
    struct lab_sql_cell number = SQL_INT(about->number), count = SQL_INT(about->count);
    struct lab_sql_cell epoch = SQL_INT(recorder->epochs[about->epoch].row);
    struct lab_sql_cell first = SQL_INT(about->first_ns), last = SQL_INT(about->last_ns);
    if (about->entity)
        return lab_store_write(
            recorder->store,
            "INSERT INTO chunk (number, entity, epoch, first_ns, last_ns, count, bytes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
            " last_ns = excluded.last_ns, count = excluded.count, bytes = excluded.bytes",
            LAB_ROW(number, SQL_INT(about->entity->row), epoch, first, last, count,
                    SQL_BLOB(bytes, size)),
            err);
    return lab_store_write(
        recorder->store,
        "INSERT INTO process_chunk (number, epoch, first_ns, last_ns, count, items, bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
        " last_ns = excluded.last_ns, count = excluded.count, items = excluded.items,"
        " bytes = excluded.bytes",
        LAB_ROW(number, epoch, first, last, count, SQL_INT(about->items), SQL_BLOB(bytes, size)),
        err);
}

static int write_open_chunk(struct lab_recorder *recorder, struct lab_recorder_entity *entity,
                            struct lab_str *bytes, struct lab_err *err) {
    const struct lab_chunk *chunk = &entity->chunk;
    if (chunk->count == entity->stored)
        return 0;
    lab_str_clear(bytes);
    lab_chunk_pack(chunk, bytes);
    const struct lab_recorder_sealed about = {
        .entity = entity,
        .number = entity->chunk_number,
        .first_ns = chunk->times_ns[0],
        .last_ns = chunk->times_ns[chunk->count - 1],
        .epoch = recorder->epoch_count - 1,
        .count = chunk->count,
    };
    return write_chunk(recorder, &about, bytes->text, bytes->length, err);
}

static int write_open_processes(struct lab_recorder *recorder, struct lab_str *bytes,
                                struct lab_err *err) {
    const struct lab_process_packer *packer = &recorder->processes;
    if (!recorder->processes_changed)
        return 0;
    lab_str_clear(bytes);
    lab_process_packer_finish(packer, bytes);
    const struct lab_recorder_sealed about = {
        .number = recorder->process_chunk,
        .first_ns = packer->first_ns,
        .last_ns = packer->last_ns,
        .epoch = recorder->epoch_count - 1,
        .count = packer->count,
        .items = packer->items,
    };
    return write_chunk(recorder, &about, bytes->text, bytes->length, err);
}

static int write_chunks(struct lab_recorder *recorder, struct lab_err *err) {
    for (const struct lab_recorder_sealed *item = recorder->sealed; item; item = item->next)
        if (write_chunk(recorder, item, item->bytes, item->size, err) < 0)
            return -1;
    LAB_AUTO(str, bytes);
    int result = 0;
    for (int i = 0; i < recorder->entity_count && result == 0; i++)
        result = write_open_chunk(recorder, recorder->entities[i], &bytes, err);
    if (result == 0)
        result = write_open_processes(recorder, &bytes, err);
    return result;
}

/* --- all of it --- */

static bool has_news(const struct lab_recorder *recorder) {
    if (recorder->sealed || recorder->events || recorder->dropped || recorder->processes_changed ||
        !recorder->epochs[recorder->epoch_count - 1].row)
        return true;
    for (int i = 0; i < recorder->entity_count; i++) {
        const struct lab_recorder_entity *entity = recorder->entities[i];
        if (!entity->is_stored || entity->chunk.count > entity->stored)
            return true;
    }
    return false;
}

static void free_written(struct lab_recorder *recorder) {
    for (struct lab_recorder_sealed *item = recorder->sealed, *next; item; item = next) {
        next = item->next;
        lab_mem_free(item);
    }
    for (struct lab_recorder_event *item = recorder->events, *next; item; item = next) {
        next = item->next;
        lab_mem_free(item);
    }
    recorder->sealed = NULL;
    recorder->sealed_end = &recorder->sealed;
    recorder->events = NULL;
    recorder->events_end = &recorder->events;
    recorder->waiting_bytes = 0;
}

static void note_written(struct lab_recorder *recorder) {
    free_written(recorder);
    for (int i = 0; i < recorder->entity_count; i++) {
        recorder->entities[i]->is_stored = true;
        recorder->entities[i]->stored = recorder->entities[i]->chunk.count;
    }
    lab_process_packer_stored(&recorder->processes);
    recorder->processes_changed = false;
    recorder->noted += recorder->dropped;
    recorder->dropped = 0;
    /* what is open belongs to the current epoch, and nothing else names one any more */
    recorder->epochs[0] = recorder->epochs[recorder->epoch_count - 1];
    recorder->epoch_count = 1;
}

static int write_rows(struct lab_recorder *recorder, struct lab_err *err) {
    return write_epochs(recorder, err) < 0 || write_entities(recorder, err) < 0 ||
                   write_identities(recorder, err) < 0 || write_chunks(recorder, err) < 0 ||
                   write_events(recorder, err) < 0
               ? -1
               : 0;
}

static int write_all(struct lab_recorder *recorder, struct lab_err *err) {
    if (lab_store_check_name(recorder->store, err) < 0 ||
        lab_store_begin(recorder->store, false, err) < 0)
        return -1;
    if (write_rows(recorder, err) < 0) {
        lab_store_rollback(recorder->store);
        return -1;
    }
    lab_failpoint("before-samples");
    int result = lab_store_commit(recorder->store, err);
    lab_failpoint("after-samples");
    return result;
}

int lab_recorder_write(struct lab_recorder *recorder, struct lab_err *err) {
    if (!has_news(recorder))
        return 0;
    /* only the first of them can be in the file: the others came after the last commit */
    int64_t first_row = recorder->epochs[0].row;
    if (write_all(recorder, err) < 0) {
        for (int i = 0; i < recorder->epoch_count; i++)
            recorder->epochs[i].row = i == 0 ? first_row : 0;
        return -1;
    }
    note_written(recorder);
    return 0;
}
