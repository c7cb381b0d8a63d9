/*
 * recording_ticks.c: chunks into tracks. First all chunks that are asked for are listed, without
 * their bytes, so that each array is made once and of the right size; then each is unpacked to
 * where its ticks go. A chunk that doesn't read leaves nothing behind and is named.
 */
#include "store/recording/recording_internal.h"

#include <string.h>

struct item {
    int64_t number, first_ns, last_ns;
    int source; /* index; -1 = of no entity that is known */
    int segment;
    int count;
    uint8_t *bytes; /* of one that no tree leads to; NULL = the file has them */
    size_t size;
};

struct items {
    struct item *items;
    int count;
};

/* What can't be read, by track. */
struct loss {
    int chunks;
    int64_t first_ns, last_ns; /* in the recording's times */
};

/* --- which there are --- */

static bool is_possible(const struct item *item) {
    return item->source >= 0 && item->count > 0 && item->count <= LAB_CHUNK_TICKS_MAX &&
           item->first_ns <= item->last_ns && lab_recording_is_time(item->first_ns) &&
           lab_recording_is_time(item->last_ns);
}

/* NULL if it isn't asked for. */
static struct item *add(struct lab_recording_reading *reading, struct items *items,
                        const struct lab_recording_salvaged *about) {
    struct lab_recording_segment *segment = lab_recording_segment(reading, about->epoch);
    const struct lab_recording_columns *source = lab_recording_columns(reading, about->entity);
    struct item item = {
        .number = about->number,
        .source = source ? (int)(source - reading->sources) : -1,
        .segment = segment ? (int)(segment - reading->segments) : -1,
        .first_ns = about->first_ns,
        .last_ns = about->last_ns,
        .count = about->count > LAB_CHUNK_TICKS_MAX ? 0 : (int)about->count,
    };
    if (!lab_recording_wants(reading, segment, item.first_ns, item.last_ns) ||
        (source && source->track < 0))
        return NULL;
    if (segment && is_possible(&item) && item.first_ns < segment->first_ns)
        segment->first_ns = item.first_ns;
    struct item *added = &LAB_ADD(items->items, items->count, reading->arena);
    *added = item;
    return added;
}

/* A row: number, entity, epoch, first_ns, last_ns, count. */
static int add_item(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    const struct lab_recording_salvaged about = {
        .number = sqlite3_column_int64(row, 0),
        .entity = sqlite3_column_int64(row, 1),
        .epoch = sqlite3_column_int64(row, 2),
        .first_ns = sqlite3_column_int64(row, 3),
        .last_ns = sqlite3_column_int64(row, 4),
        .count = sqlite3_column_int64(row, 5),
    };
    add(reading, state, &about);
    return 0;
}

static void add_salvaged(struct lab_recording_reading *reading,
                         const struct lab_recording_salvaged *found, void *state) {
    if (!lab_recording_columns(reading, found->entity) ||
        !lab_packed_sum_fits(found->bytes, found->size))
        return;
    struct item *item = add(reading, state, found);
    if (item) {
        item->bytes = lab_arena_copy(reading->arena, found->bytes, found->size, 1);
        item->size = found->size;
    }
}

/* From the index alone, each epoch on its own; false if it doesn't read. */
static bool list_by_index(struct lab_recording_reading *reading, struct items *items) {
    LAB_AUTO_STATEMENT *row = NULL;
    if (sqlite3_prepare_v2(reading->store->db,
                           "SELECT number, entity, epoch, first_ns, last_ns, count FROM chunk"
                           " INDEXED BY chunk_time WHERE epoch = ?1 AND first_ns <= ?2"
                           " AND last_ns >= ?3",
                           -1, &row, NULL))
        return false;
    int code = SQLITE_DONE;
    bool all = reading->query_boot == -1;
    for (int i = 0; i < reading->segment_count && code == SQLITE_DONE; i++) {
        sqlite3_reset(row);
        sqlite3_bind_int64(row, 1, reading->segments[i].row);
        sqlite3_bind_int64(row, 2, all ? INT64_MAX : reading->query->until_ns);
        sqlite3_bind_int64(row, 3, all ? INT64_MIN : reading->query->from_ns);
        while ((code = sqlite3_step(row)) == SQLITE_ROW)
            add_item(reading, row, items);
    }
    return code == SQLITE_DONE;
}

/* Of several with one number the best comes first: that which the tree leads to, then the
 * longest. */
static int compare_items(const void *a, const void *b) {
    const struct item *one = a, *two = b;
    if (one->number != two->number)
        return one->number < two->number ? -1 : 1;
    if (!one->bytes != !two->bytes)
        return one->bytes ? 1 : -1;
    return two->count - one->count;
}

static void keep_best(struct items *items) {
    int kept = 0;
    for (int i = 0; i < items->count; i++)
        if (!kept || items->items[kept - 1].number != items->items[i].number)
            items->items[kept++] = items->items[i];
    items->count = kept;
}

/* Where the index doesn't read, the table; where that is broken too, whatever pages there are. */
static void list_items(struct lab_recording_reading *reading, struct items *items) {
    if (reading->damaged || !list_by_index(reading, items)) {
        items->count = 0;
        lab_recording_each(reading, "ticks",
                           "SELECT number, entity, epoch, first_ns, last_ns, count FROM chunk"
                           " NOT INDEXED WHERE number > ?1 ORDER BY number",
                           add_item, items);
        lab_recording_salvage(reading, add_salvaged, items);
    }
    if (items->count)
        qsort(items->items, (size_t)items->count, sizeof *items->items, compare_items);
    keep_best(items);
}

/* --- where they go --- */

/* How far the times of a boot move, given the end of the one before it. */
static int64_t shift_of(const struct lab_recording_segment *segment, int64_t base_ns,
                        int64_t end_ns) {
    int64_t first_ns = segment->first_ns < segment->mono_ns ? segment->first_ns : segment->mono_ns;
    int64_t shift_ns = segment->wall_ns - segment->mono_ns - base_ns;
    if (first_ns + shift_ns <= end_ns)
        shift_ns = end_ns + 1 - first_ns;
    int64_t most_ns = 4 * LAB_RECORDING_TIME_MAX;
    return shift_ns > most_ns || shift_ns < -most_ns ? 0 : shift_ns;
}

/*
 * Times of later boots behind those of the first, as far as the wall clock says; if that was set
 * back in between, directly behind.
 */
static void shift_boots(struct lab_recording_reading *reading, const struct items *items) {
    if (reading->query_boot != -1 || reading->segment_count == 0)
        return;
    struct lab_recording_segment *segments = reading->segments;
    LAB_AUTO_FREE int64_t *last_ns = lab_mem_alloc((size_t)reading->segment_count, sizeof *last_ns);
    for (int i = 0; i < reading->segment_count; i++)
        last_ns[i] = segments[i].mono_ns;
    for (int i = 0; i < items->count; i++) {
        int at = items->items[i].segment;
        if (at >= 0 && is_possible(&items->items[i]) && items->items[i].last_ns > last_ns[at])
            last_ns[at] = items->items[i].last_ns;
    }
    int64_t base_ns = segments[0].wall_ns - segments[0].mono_ns, end_ns = last_ns[0];
    for (int i = 1; i < reading->segment_count; i++) {
        bool same = segments[i].boot == segments[i - 1].boot;
        segments[i].shift_ns =
            same ? segments[i - 1].shift_ns : shift_of(&segments[i], base_ns, end_ns);
        if (last_ns[i] + segments[i].shift_ns > end_ns)
            end_ns = last_ns[i] + segments[i].shift_ns;
    }
}

/* Which of the track's columns anybody asked for. */
static void mark_columns(const struct lab_recording_reading *reading, int track, bool *ret_wanted) {
    for (int i = 0; i < reading->source_count; i++) {
        const struct lab_recording_columns *source = &reading->sources[i];
        for (int k = 0; k < source->column_count && source->track == track; k++)
            if (source->map[k] >= 0)
                ret_wanted[source->map[k]] = true;
    }
}

static int make_room(struct lab_recording_reading *reading, int index, int64_t ticks,
                     struct lab_err *err) {
    struct lab_track *track = &reading->recording->tracks[index];
    bool wanted[LAB_COLUMNS_MAX] = {false};
    int columns = 0;
    mark_columns(reading, index, wanted);
    for (int i = 0; i < track->entity.column_count; i++)
        columns += wanted[i];
    int64_t tick_bytes = (int64_t)sizeof(int64_t) + columns * (int64_t)(sizeof(int64_t) + 1);
    if (ticks > reading->bytes_left / tick_bytes)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s holds more than fits in memory (%s alone: %lld ticks of %d "
                           "metrics): ask for a shorter time or fewer metrics",
                           reading->store->path, track->entity.id, (long long)ticks, columns);
    reading->bytes_left -= ticks * tick_bytes;
    track->times_ns = lab_arena_alloc(reading->arena, (size_t)ticks, sizeof(int64_t));
    for (int i = 0; i < track->entity.column_count; i++) {
        if (!wanted[i])
            continue;
        track->values[i] = lab_arena_alloc(reading->arena, (size_t)ticks, sizeof(int64_t));
        track->valid[i] = lab_arena_alloc(reading->arena, (size_t)ticks, 1);
    }
    return 0;
}

static int make_all_room(struct lab_recording_reading *reading, const struct items *items,
                         struct lab_err *err) {
    int64_t *ticks =
        lab_arena_alloc(reading->arena, (size_t)reading->recording->track_count, sizeof *ticks);
    for (int i = 0; i < items->count; i++)
        if (is_possible(&items->items[i]))
            ticks[reading->sources[items->items[i].source].track] += items->items[i].count;
    for (int i = 0; i < reading->recording->track_count; i++)
        if (make_room(reading, i, ticks[i], err) < 0)
            return -1;
    return 0;
}

/* --- one chunk --- */

/* Nothing from place `at` on; what lies there may be of a chunk that didn't read. */
static void clear(struct lab_track *track, size_t at, size_t count) {
    for (int i = 0; i < track->entity.column_count; i++)
        if (track->valid[i])
            memset(track->valid[i] + at, 0, count);
}

/* Keeps ticks `from` to `until` of those just unpacked at the track's end. */
static void keep(struct lab_track *track, size_t from, size_t until, size_t count) {
    size_t at = track->count, kept = until - from;
    if (from > 0) {
        memmove(track->times_ns + at, track->times_ns + at + from, kept * sizeof *track->times_ns);
        for (int i = 0; i < track->entity.column_count; i++) {
            if (!track->values[i])
                continue;
            memmove(track->values[i] + at, track->values[i] + at + from, kept * sizeof(int64_t));
            memmove(track->valid[i] + at, track->valid[i] + at + from, kept);
        }
    }
    if (kept < count)
        clear(track, at + kept, count - kept);
    track->count += kept;
}

static bool unpack_columns(struct lab_chunk_reader *from,
                           const struct lab_recording_columns *source, struct lab_track *track) {
    for (int i = 0; i < source->column_count; i++) {
        int to = source->map[i];
        if (to >= 0 && lab_chunk_reader_column(from, i, track->values[to] + track->count,
                                               track->valid[to] + track->count, NULL) < 0)
            return false;
    }
    return true;
}

static bool unpack(struct lab_recording_reading *reading, const struct item *item,
                   struct lab_chunk_reader *from, const void *bytes, size_t size) {
    const struct lab_recording_columns *source = &reading->sources[item->source];
    struct lab_track *track = &reading->recording->tracks[source->track];
    if (lab_chunk_reader_open(from, bytes, size, NULL) < 0 || from->count != item->count ||
        from->column_count != source->column_count)
        return false;
    size_t count = (size_t)from->count;
    int64_t *times_ns = track->times_ns + track->count;
    if (lab_chunk_reader_times(from, times_ns, NULL) < 0 || times_ns[0] != item->first_ns ||
        times_ns[count - 1] != item->last_ns)
        return false;
    size_t first = 0, until = count;
    if (reading->query_boot != -1) {
        while (first < count && times_ns[first] < reading->query->from_ns)
            first++;
        while (until > first && times_ns[until - 1] > reading->query->until_ns)
            until--;
    }
    int64_t shift_ns = item->segment >= 0 ? reading->segments[item->segment].shift_ns : 0;
    for (size_t i = 0; i < count && shift_ns; i++)
        times_ns[i] += shift_ns;
    bool overlaps = track->count > 0 && times_ns[0] < track->times_ns[track->count - 1];
    if (overlaps || !unpack_columns(from, source, track)) {
        clear(track, track->count, count);
        return false;
    }
    keep(track, first, until, count);
    return true;
}

/* --- all of them --- */

static void note_losses(struct lab_recording_reading *reading, const struct loss *losses) {
    for (int i = 0; i <= reading->recording->track_count; i++) {
        if (losses[i].chunks == 0)
            continue;
        const char *id = i < reading->recording->track_count
                             ? reading->recording->tracks[i].entity.id
                             : "an unknown device";
        lab_recording_note(
            &reading->notes, "ticks of %s: %d %s damaged, between %.1f s and %.1f s", id,
            losses[i].chunks, losses[i].chunks == 1 ? "stretch is" : "stretches are",
            (double)losses[i].first_ns / LAB_NS_PER_S, (double)losses[i].last_ns / LAB_NS_PER_S);
    }
}

static void add_loss(const struct lab_recording_reading *reading, const struct item *item,
                     struct loss *losses) {
    int track =
        item->source >= 0 ? reading->sources[item->source].track : reading->recording->track_count;
    struct loss *loss = &losses[track];
    if (loss->chunks++ == 0 || item->first_ns < loss->first_ns)
        loss->first_ns = item->first_ns;
    if (loss->chunks == 1 || item->last_ns > loss->last_ns)
        loss->last_ns = item->last_ns;
}

static void unpack_all(struct lab_recording_reading *reading, const struct items *items) {
    struct loss *losses = lab_arena_alloc(
        reading->arena, (size_t)reading->recording->track_count + 1, sizeof *losses);
    LAB_AUTO_FREE struct lab_chunk_reader *from = lab_mem_alloc(1, sizeof *from);
    lab_chunk_reader_init(from);
    LAB_AUTO_STATEMENT *row = NULL;
    sqlite3_prepare_v2(reading->store->db, "SELECT bytes FROM chunk WHERE number = ?", -1, &row,
                       NULL);
    for (int i = 0; i < items->count; i++) {
        const struct item *item = &items->items[i];
        bool works = false;
        if (item->bytes) {
            works = is_possible(item) && unpack(reading, item, from, item->bytes, item->size);
        } else if (row && is_possible(item)) {
            sqlite3_reset(row);
            sqlite3_bind_int64(row, 1, item->number);
            if (sqlite3_step(row) == SQLITE_ROW) {
                const void *bytes = sqlite3_column_blob(row, 0);
                works = bytes &&
                        unpack(reading, item, from, bytes, (size_t)sqlite3_column_bytes(row, 0));
            }
        }
        if (!works)
            add_loss(reading, item, losses);
    }
    lab_chunk_reader_release(from);
    note_losses(reading, losses);
}

int lab_recording_read_ticks(struct lab_recording_reading *reading, struct lab_err *err) {
    struct items items = {0};
    list_items(reading, &items);
    shift_boots(reading, &items);
    if (make_all_room(reading, &items, err) < 0)
        return -1;
    unpack_all(reading, &items);
    return 0;
}
