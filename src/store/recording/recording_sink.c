/*
 * recording_sink.c: samples collected in memory until the next flush. Each entity has one open
 * chunk; a chunk that is full, or that the wall clock's jump ends, is packed and waits. What waits
 * is bounded: while nothing can be written, the oldest goes.
 */
#include "store/recording/recording_internal.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* --- epochs --- */

static int current_epoch(const struct lab_recorder *recorder) {
    return recorder->epoch_count - 1;
}

void lab_recorder_begin_epoch(struct lab_recorder *recorder, int64_t mono_ns, int64_t wall_ns) {
    for (int i = 0; i < recorder->entity_count; i++)
        lab_recorder_seal(recorder, recorder->entities[i]);
    lab_recorder_seal_processes(recorder);
    LAB_PUSH(recorder->epochs, recorder->epoch_count) =
        (struct lab_recorder_epoch){mono_ns, wall_ns, 0};
}

/* Where the current epoch says that the wall clock should be. */
static int64_t expected_wall(const struct lab_recorder *recorder, int64_t now_ns) {
    const struct lab_recorder_epoch *epoch = &recorder->epochs[current_epoch(recorder)];
    return epoch->wall_ns + (now_ns - epoch->mono_ns);
}

void lab_recorder_check_wall(struct lab_recorder *recorder, int64_t now_ns) {
    if (!recorder->wall_ns)
        return;
    int64_t wall_ns = recorder->wall_ns();
    int64_t moved_ns = wall_ns - expected_wall(recorder, now_ns);
    if (moved_ns > LAB_RECORDER_JUMP_NS || moved_ns < -LAB_RECORDER_JUMP_NS)
        lab_recorder_begin_epoch(recorder, now_ns, wall_ns);
}

/* --- what waits --- */

static void drop_oldest_chunk(struct lab_recorder *recorder) {
    struct lab_recorder_sealed *oldest = recorder->sealed;
    recorder->sealed = oldest->next;
    if (!recorder->sealed)
        recorder->sealed_end = &recorder->sealed;
    recorder->waiting_bytes -= oldest->size;
    if (oldest->entity && oldest->count > oldest->stored) {
        if (recorder->dropped == 0)
            recorder->dropped_ns = oldest->first_ns;
        recorder->dropped += oldest->count - oldest->stored;
    }
    lab_mem_free(oldest);
}

static void drop_oldest_event(struct lab_recorder *recorder) {
    struct lab_recorder_event *oldest = recorder->events;
    recorder->events = oldest->next;
    if (!recorder->events)
        recorder->events_end = &recorder->events;
    recorder->waiting_bytes -= sizeof *oldest + strlen(oldest->text) + 1;
    lab_mem_free(oldest);
}

/* All that waits of processes: their chunks mean nothing without the rows that name them. */
static void drop_processes(struct lab_recorder *recorder) {
    recorder->sealed_end = &recorder->sealed;
    for (struct lab_recorder_sealed *item = recorder->sealed, *next; item; item = next) {
        next = item->next;
        if (item->entity) {
            *recorder->sealed_end = item;
            recorder->sealed_end = &item->next;
        } else {
            recorder->waiting_bytes -= item->size;
            lab_mem_free(item);
        }
    }
    *recorder->sealed_end = NULL;
    lab_process_packer_forget(&recorder->processes);
    recorder->process_chunk = 0;
    recorder->processes_changed = false;
}

void lab_recorder_trim(struct lab_recorder *recorder) {
    if (recorder->processes.fresh_bytes > LAB_RECORDER_BYTES_MAX / 4)
        drop_processes(recorder);
    while (recorder->waiting_bytes > LAB_RECORDER_BYTES_MAX) {
        if (recorder->sealed)
            drop_oldest_chunk(recorder);
        else
            drop_oldest_event(recorder);
    }
}

static void add_sealed(struct lab_recorder *recorder, const struct lab_recorder_sealed *about,
                       const struct lab_str *bytes) {
    struct lab_recorder_sealed *sealed =
        lab_mem_alloc(1, offsetof(struct lab_recorder_sealed, bytes) + bytes->length);
    *sealed = *about;
    sealed->next = NULL;
    sealed->epoch = current_epoch(recorder);
    sealed->size = bytes->length;
    memcpy(sealed->bytes, bytes->text, bytes->length);
    *recorder->sealed_end = sealed;
    recorder->sealed_end = &sealed->next;
    recorder->waiting_bytes += sealed->size;
    lab_recorder_trim(recorder);
}

void lab_recorder_seal(struct lab_recorder *recorder, struct lab_recorder_entity *entity) {
    struct lab_chunk *chunk = &entity->chunk;
    if (chunk->count == 0)
        return;
    if (chunk->count > entity->stored) {
        LAB_AUTO(str, bytes);
        lab_chunk_pack(chunk, &bytes);
        add_sealed(recorder,
                   &(struct lab_recorder_sealed){.entity = entity,
                                                 .number = entity->chunk_number,
                                                 .first_ns = chunk->times_ns[0],
                                                 .last_ns = chunk->times_ns[chunk->count - 1],
                                                 .count = chunk->count,
                                                 .stored = entity->stored},
                   &bytes);
    }
    memset(chunk->valid, 0,
           (size_t)chunk->column_count * LAB_CHUNK_WORDS(chunk->capacity) * sizeof *chunk->valid);
    chunk->count = 0;
    entity->stored = 0;
    entity->chunk_number = 0;
}

void lab_recorder_seal_processes(struct lab_recorder *recorder) {
    struct lab_process_packer *packer = &recorder->processes;
    if (packer->count && recorder->processes_changed) {
        LAB_AUTO(str, bytes);
        lab_process_packer_finish(packer, &bytes);
        add_sealed(recorder,
                   &(struct lab_recorder_sealed){.number = recorder->process_chunk,
                                                 .first_ns = packer->first_ns,
                                                 .last_ns = packer->last_ns,
                                                 .count = packer->count,
                                                 .items = packer->items},
                   &bytes);
    }
    lab_process_packer_restart(packer);
    recorder->process_chunk = 0;
    recorder->processes_changed = false;
}

/* --- entities --- */

struct lab_recorder_entity *lab_recorder_add_entity(struct lab_recorder *recorder,
                                                    const struct lab_entity *entity, int64_t parent,
                                                    const char *columns) {
    struct lab_recorder_entity *item = lab_mem_alloc(1, sizeof *item);
    item->entity = lab_entity_copy(entity, &item->arena);
    item->parent = parent;
    item->columns = lab_arena_strdup(&item->arena, columns);
    item->last_ns = INT64_MIN;
    LAB_PUSH(recorder->entities, recorder->entity_count) = item;
    return item;
}

static bool is_same(const struct lab_recorder_entity *item, const struct lab_entity *entity,
                    int64_t parent, const char *columns) {
    const struct lab_entity *mine = &item->entity;
    return mine->kind == entity->kind && mine->index == entity->index &&
           mine->node == entity->node && mine->simulated == entity->simulated &&
           item->parent == parent && lab_str_equal(mine->id, entity->id ? entity->id : "") &&
           lab_str_equal(mine->name, entity->name ? entity->name : "") &&
           lab_str_equal(mine->pci, entity->pci ? entity->pci : "") &&
           strcmp(item->columns, columns) == 0;
}

static struct lab_recorder_entity *find_entity(const struct lab_recorder *recorder,
                                               const struct lab_entity *entity, int64_t parent,
                                               const char *columns) {
    for (int i = 0; i < recorder->entity_count; i++)
        if (is_same(recorder->entities[i], entity, parent, columns))
            return recorder->entities[i];
    return NULL;
}

static struct lab_recorder_entity *told(const struct lab_recorder *recorder, int number) {
    return number >= 0 && number < recorder->told_count ? recorder->told[number] : NULL;
}

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_recorder *recorder = state;
    assert(number >= 0 && entity->column_count <= LAB_COLUMNS_MAX);
    const struct lab_recorder_entity *above = told(recorder, entity->parent);
    int64_t parent = above ? above->row : 0;
    LAB_AUTO(str, columns);
    lab_recording_columns_write(entity->columns, entity->column_count, &columns);
    struct lab_recorder_entity *item = find_entity(recorder, entity, parent, columns.text);
    if (!item) {
        item = lab_recorder_add_entity(recorder, entity, parent, columns.text);
        item->row = recorder->next_entity++;
    }
    if (number >= recorder->told_count) {
        recorder->told = lab_mem_resize(recorder->told, (size_t)number + 1, sizeof *recorder->told);
        while (recorder->told_count <= number)
            recorder->told[recorder->told_count++] = NULL;
    }
    if (recorder->told[number] && recorder->told[number] != item)
        lab_recorder_seal(recorder, recorder->told[number]);
    recorder->told[number] = item;
}

/* --- ticks --- */

/* Wide entities have shorter chunks, so that the memory for an open one stays small. */
static int chunk_capacity(int columns) {
    int ticks = columns ? (1 << 16) / columns : LAB_CHUNK_TICKS;
    return ticks < 32 ? 32 : ticks > LAB_CHUNK_TICKS ? LAB_CHUNK_TICKS : ticks;
}

static void open_chunk(struct lab_recorder *recorder, struct lab_recorder_entity *entity) {
    struct lab_chunk *chunk = &entity->chunk;
    if (!chunk->times_ns) {
        chunk->column_count = entity->entity.column_count;
        chunk->capacity = chunk_capacity(chunk->column_count);
        size_t columns = (size_t)chunk->column_count + 1, ticks = (size_t)chunk->capacity;
        chunk->times_ns = lab_mem_alloc(ticks, sizeof *chunk->times_ns);
        chunk->values = lab_mem_alloc(columns * ticks, sizeof *chunk->values);
        chunk->valid = lab_mem_alloc(columns * LAB_CHUNK_WORDS(ticks), sizeof *chunk->valid);
    }
    entity->chunk_number = recorder->next_chunk++;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct lab_recorder *recorder = state;
    struct lab_recorder_entity *entity = told(recorder, tick->entity);
    if (!entity)
        return;
    if (tick->time_ns < entity->last_ns) { /* nothing could find it again */
        if (recorder->dropped++ == 0)
            recorder->dropped_ns = tick->time_ns;
        return;
    }
    struct lab_chunk *chunk = &entity->chunk;
    if (chunk->count == 0)
        open_chunk(recorder, entity);
    size_t ticks = (size_t)chunk->capacity, words = LAB_CHUNK_WORDS(ticks);
    size_t at = (size_t)chunk->count++;
    chunk->times_ns[at] = entity->last_ns = tick->time_ns;
    for (int i = 0; i < chunk->column_count; i++) {
        if (!lab_valid_get(tick->valid, i))
            continue;
        chunk->values[(size_t)i * ticks + at] = tick->values[i];
        chunk->valid[(size_t)i * words + at / 64] |= UINT64_C(1) << (at % 64);
    }
    if (chunk->count == chunk->capacity)
        lab_recorder_seal(recorder, entity);
}

/* --- events and processes --- */

static void note_clock(struct lab_recorder *recorder, const struct lab_sample_event *event) {
    int64_t now_ns = lab_clock_now(recorder->clock);
    if (recorder->wall_ns)
        lab_recorder_check_wall(recorder, now_ns);
    else
        lab_recorder_begin_epoch(recorder, event->time_ns,
                                 expected_wall(recorder, event->time_ns) + event->number);
}

static void take_event(void *state, const struct lab_sample_event *event) {
    struct lab_recorder *recorder = state;
    if (event->kind == LAB_EVENT_CLOCK)
        note_clock(recorder, event);
    const char *text = event->text ? event->text : "";
    size_t size = sizeof(struct lab_recorder_event) + strlen(text) + 1;
    struct lab_recorder_event *item = lab_mem_alloc(1, size);
    item->entity = told(recorder, event->entity);
    item->time_ns = event->time_ns;
    item->number = event->number;
    item->epoch = current_epoch(recorder);
    item->kind = event->kind;
    memcpy(item->text, text, strlen(text));
    *recorder->events_end = item;
    recorder->events_end = &item->next;
    recorder->waiting_bytes += size;
    lab_recorder_trim(recorder);
}

static int64_t entity_row(void *state, int number) {
    const struct lab_recorder_entity *entity = told(state, number);
    return entity ? entity->row : 0;
}

static void take_processes(void *state, const struct lab_process_list *list) {
    struct lab_recorder *recorder = state;
    struct lab_process_packer *packer = &recorder->processes;
    if (packer->count && list->time_ns < packer->last_ns)
        return;
    if (!recorder->process_chunk)
        recorder->process_chunk = recorder->next_process_chunk++;
    lab_process_packer_add(packer, list, entity_row, recorder);
    recorder->processes_changed = true;
    if (packer->count == LAB_PROCESS_LISTS || packer->bytes.length > LAB_PROCESS_CHUNK_BYTES)
        lab_recorder_seal_processes(recorder);
    lab_recorder_trim(recorder);
}

struct lab_sink_samples lab_recorder_sink(struct lab_recorder *recorder) {
    return (struct lab_sink_samples){.entity = take_entity,
                                     .tick = take_tick,
                                     .event = take_event,
                                     .processes = take_processes,
                                     .state = recorder};
}

/* --- the end --- */

static void free_entity(struct lab_recorder_entity *item) {
    lab_arena_release(&item->arena);
    lab_mem_free(item->chunk.times_ns);
    lab_mem_free(item->chunk.values);
    lab_mem_free(item->chunk.valid);
    lab_mem_free(item);
}

void lab_recorder_release(struct lab_recorder *recorder) {
    while (recorder->sealed)
        drop_oldest_chunk(recorder);
    while (recorder->events)
        drop_oldest_event(recorder);
    for (int i = 0; i < recorder->entity_count; i++)
        free_entity(recorder->entities[i]);
    lab_process_packer_release(&recorder->processes);
    lab_mem_free(recorder->entities);
    lab_mem_free(recorder->told);
    lab_mem_free(recorder->epochs);
    lab_mem_free(recorder);
}
