/*
 * recording_read.c: a recording back in memory. What the file says is checked before it is
 * believed, and what can't be read is stepped over and named: half of a recording is worth more
 * than none.
 */
#include "store/recording/recording_internal.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOURCES_MAX 4096 /* entities in one file */

/* --- rows, also of damaged files --- */

char *lab_recording_text(sqlite3_stmt *row, int column, struct lab_arena *arena) {
    char *copy = lab_sql_text(row, column, arena);
    lab_str_make_printable(copy); /* whoever made the file */
    return copy;
}

/* The rows behind number `*after`, which goes along; SQLite's code at the end, or -1 from
 * `each`. */
static int walk(struct lab_recording_reading *reading, const char *sql, lab_recording_row *each,
                void *state, int64_t *after) {
    LAB_AUTO_STATEMENT *row = NULL;
    int code = sqlite3_prepare_v2(reading->store->db, sql, -1, &row, NULL);
    if (code)
        return code;
    bool all = reading->query_boot == -1;
    lab_sql_bind(row, LAB_ROW(SQL_INT(*after), SQL_INT(all ? INT64_MIN : reading->query->from_ns),
                              SQL_INT(all ? INT64_MAX : reading->query->until_ns)));
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(row, 0);
        if (number <= *after) /* a tree that is no tree */
            return SQLITE_CORRUPT;
        *after = number;
        if (each(reading, row, state) < 0)
            return -1;
    }
    return code;
}

int lab_recording_each(struct lab_recording_reading *reading, const char *what, const char *sql,
                       lab_recording_row *each, void *state) {
    enum { SINGLE_STEPS = 64, TRIES = SINGLE_STEPS + 40 };
    int64_t after = 0;
    int failed = 0;
    for (int tries = 0; tries < TRIES; tries++) {
        int64_t before = after;
        int code = walk(reading, sql, each, state, &after);
        if (code == SQLITE_DONE || code == -1) {
            if (failed)
                lab_recording_note(&reading->notes, "some %s: the file is damaged", what);
            return code == -1 ? -1 : 0;
        }
        if ((code & 0xff) != SQLITE_CORRUPT && (code & 0xff) != SQLITE_IOERR) {
            lab_recording_note(&reading->notes, "%s: %s", what, sqlite3_errstr(code));
            return 0;
        }
        failed++;
        if (after > before)
            tries = 0;
        after += tries < SINGLE_STEPS ? 1 : INT64_C(1) << (tries - SINGLE_STEPS);
    }
    lab_recording_note(&reading->notes, "%s %s: the file is damaged or cut off there",
                       after ? "the last" : "all", what);
    return 0;
}

/* --- epochs --- */

/* Segments and sources ascend by row, which comes first in both. */
static int by_row(const void *key, const void *item) {
    int64_t row = *(const int64_t *)key, at = *(const int64_t *)item;
    return (row > at) - (row < at);
}

struct lab_recording_segment *lab_recording_segment(struct lab_recording_reading *reading,
                                                    int64_t row) {
    return reading->segment_count ? bsearch(&row, reading->segments, (size_t)reading->segment_count,
                                            sizeof *reading->segments, by_row)
                                  : NULL;
}

static int add_stretch(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    (void)state;
    struct lab_recording_segment segment = {
        .row = sqlite3_column_int64(row, 0),
        .boot_id = lab_recording_text(row, 1, reading->arena),
        .host = lab_recording_text(row, 2, reading->arena),
        .mono_ns = sqlite3_column_int64(row, 3),
        .wall_ns = sqlite3_column_int64(row, 4),
        .first_ns = INT64_MAX,
    };
    if (!lab_recording_is_time(segment.mono_ns) || segment.wall_ns < 0 ||
        segment.wall_ns > LAB_RECORDING_WALL_MAX)
        return 0;
    if (reading->segment_count) {
        const struct lab_recording_segment *last = &reading->segments[reading->segment_count - 1];
        bool same = strcmp(last->boot_id, segment.boot_id) == 0 &&
                    strcmp(last->host, segment.host) == 0 && segment.mono_ns >= last->mono_ns;
        segment.boot = last->boot + !same;
    }
    LAB_ADD(reading->segments, reading->segment_count, reading->arena) = segment;
    return 0;
}

/* Which boot's times the query means. A run names an epoch of its runner, which is another row of
 * the same boot. */
static int find_query_boot(struct lab_recording_reading *reading, struct lab_err *err) {
    const struct lab_recording_query *query = reading->query;
    if ((query->from_ns == 0 && query->until_ns == 0) || reading->segment_count == 0)
        return 0;
    const struct lab_recording_segment *last = &reading->segments[reading->segment_count - 1];
    reading->query_boot = last->boot;
    if (query->epoch == 0 || reading->damaged)
        return 0;
    LAB_AUTO_STATEMENT *row = NULL;
    if (sqlite3_prepare_v2(reading->store->db, "SELECT boot_id, host FROM epoch WHERE id = ?", -1,
                           &row, NULL))
        return lab_store_fail(reading->store, err);
    sqlite3_bind_int64(row, 1, query->epoch);
    if (sqlite3_step(row) == SQLITE_ROW) {
        const char *boot_id = lab_recording_text(row, 0, reading->arena);
        const char *host = lab_recording_text(row, 1, reading->arena);
        reading->query_boot = -2; /* of no recording */
        for (int i = 0; i < reading->segment_count; i++)
            if (strcmp(reading->segments[i].boot_id, boot_id) == 0 &&
                strcmp(reading->segments[i].host, host) == 0)
                reading->query_boot = reading->segments[i].boot;
    }
    return 0;
}

bool lab_recording_wants(const struct lab_recording_reading *reading,
                         const struct lab_recording_segment *segment, int64_t first_ns,
                         int64_t last_ns) {
    if (reading->query_boot == -1)
        return true;
    return (!segment || segment->boot == reading->query_boot) &&
           first_ns <= reading->query->until_ns && last_ns >= reading->query->from_ns;
}

/* --- entities --- */

struct lab_recording_columns *lab_recording_columns(struct lab_recording_reading *reading,
                                                    int64_t row) {
    return reading->source_count ? bsearch(&row, reading->sources, (size_t)reading->source_count,
                                           sizeof *reading->sources, by_row)
                                 : NULL;
}

static bool is_asked_for(const struct lab_recording_query *query, int metric) {
    for (int i = 0; i < query->metric_count; i++)
        if ((int)query->metrics[i] == metric)
            return true;
    return !query->metrics;
}

/* The track of an entity: rows with one id are one entity, whatever columns each of them had. */
static int find_track(struct lab_recording_reading *reading, const struct lab_entity *entity) {
    struct lab_recording *recording = reading->recording;
    for (int i = 0; i < recording->track_count; i++)
        if (recording->tracks[i].entity.kind == entity->kind &&
            strcmp(recording->tracks[i].entity.id, entity->id) == 0)
            return i;
    struct lab_track *track = &LAB_ADD(recording->tracks, recording->track_count, reading->arena);
    *track = (struct lab_track){.entity = *entity};
    track->entity.column_count = 0;
    return recording->track_count - 1;
}

/* Adds the columns that the track hasn't got, and says where each goes. */
static void map_columns(struct lab_recording_reading *reading, struct lab_track *track,
                        const struct lab_column *columns, struct lab_recording_columns *source) {
    struct lab_column *all = (struct lab_column *)track->entity.columns;
    source->map = lab_arena_alloc(reading->arena, (size_t)source->column_count, sizeof(int));
    for (int i = 0; i < source->column_count; i++) {
        source->map[i] = -1;
        if (columns[i].metric < 0)
            continue;
        int at = lab_entity_column(&track->entity, (enum lab_metric_id)columns[i].metric,
                                   columns[i].instance);
        if (at < 0) {
            if (track->entity.column_count == LAB_COLUMNS_MAX)
                continue;
            at = track->entity.column_count++;
            all[at] = columns[i];
        }
        if (is_asked_for(reading->query, columns[i].metric))
            source->map[i] = at;
    }
}

static int add_source(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    (void)state;
    struct lab_arena *arena = reading->arena;
    if (reading->source_count == SOURCES_MAX)
        return 0;
    struct lab_recording_columns *source = &LAB_ADD(reading->sources, reading->source_count, arena);
    *source = (struct lab_recording_columns){
        .row = sqlite3_column_int64(row, 0), .parent = sqlite3_column_int64(row, 7), .track = -1};
    const char *kind = lab_recording_text(row, 2, arena);
    struct lab_entity entity = {
        .kind = (enum lab_entity_kind)lab_entity_kind_find(kind),
        .index = sqlite3_column_int(row, 3),
        .id = lab_recording_text(row, 1, arena),
        .name = lab_recording_text(row, 4, arena),
        .pci = lab_recording_text(row, 5, arena),
        .node = sqlite3_column_int(row, 6),
        .parent = -1,
        .simulated = sqlite3_column_int(row, 8),
    };
    struct lab_column *columns =
        lab_recording_columns_read(lab_recording_text(row, 9, arena), arena, &source->column_count);
    if (lab_entity_kind_find(kind) < 0 || !columns) {
        lab_recording_note(&reading->notes,
                           "%s '%s': it is of a kind that this gpulab doesn't know", kind,
                           entity.id);
        return 0;
    }
    source->track = find_track(reading, &entity);
    struct lab_track *track = &reading->recording->tracks[source->track];
    entity.column_count = track->entity.column_count;
    entity.columns = track->entity.columns
                         ? track->entity.columns
                         : lab_arena_alloc(arena, LAB_COLUMNS_MAX, sizeof *entity.columns);
    track->entity = entity;
    map_columns(reading, track, columns, source);
    return 0;
}

static void finish_tracks(struct lab_recording_reading *reading) {
    struct lab_recording *recording = reading->recording;
    for (int i = 0; i < reading->source_count; i++) {
        const struct lab_recording_columns *source = &reading->sources[i];
        const struct lab_recording_columns *parent = lab_recording_columns(reading, source->parent);
        if (source->track >= 0 && parent && parent->track != source->track)
            recording->tracks[source->track].entity.parent = parent->track;
    }
    for (int i = 0; i < recording->track_count; i++) {
        struct lab_track *track = &recording->tracks[i];
        size_t columns = (size_t)track->entity.column_count;
        recording->simulated |= track->entity.simulated;
        track->values = lab_arena_alloc(reading->arena, columns, sizeof *track->values);
        track->valid = lab_arena_alloc(reading->arena, columns, sizeof *track->valid);
    }
}

/* --- events --- */

struct events {
    struct numbered_event {
        struct lab_sample_event event;
        int64_t number;
    } * items;
    size_t count;
};

static int add_event(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    struct events *events = state;
    struct lab_recording_segment *segment =
        lab_recording_segment(reading, sqlite3_column_int64(row, 1));
    int64_t time_ns = sqlite3_column_int64(row, 2);
    if (!lab_recording_is_time(time_ns))
        return 0;
    const struct lab_recording_columns *source =
        lab_recording_columns(reading, sqlite3_column_int64(row, 3));
    const char *kind = lab_recording_text(row, 4, reading->arena);
    struct lab_sample_event event = {
        .time_ns = time_ns + (segment ? segment->shift_ns : 0),
        .entity = source ? source->track : -1,
        .kind = lab_event_kind_find(kind),
        .number = sqlite3_column_int64(row, 5),
        .text = lab_recording_text(row, 6, reading->arena),
    };
    if (event.kind == LAB_EVENT_KIND_COUNT ||
        !lab_recording_wants(reading, segment, time_ns, time_ns))
        return 0;
    LAB_ADD(events->items, events->count, reading->arena) =
        (struct numbered_event){event, sqlite3_column_int64(row, 0)};
    return 0;
}

static void read_events(struct lab_recording_reading *reading) {
    struct events events = {0};
    lab_recording_each(reading, "events",
                       "SELECT number, epoch, time_ns, entity, kind, value, text FROM event"
                       " WHERE number > ?1 AND time_ns >= ?2 AND time_ns <= ?3 ORDER BY number",
                       add_event, &events);
    LAB_SORT(events.items, events.count, LAB_BY(events.items, event.time_ns),
             LAB_BY(events.items, number));
    reading->recording->event_count = events.count;
    reading->recording->events =
        lab_arena_alloc(reading->arena, events.count, sizeof *reading->recording->events);
    for (size_t i = 0; i < events.count; i++)
        reading->recording->events[i] = events.items[i].event;
}

/* --- epochs, once it is known what names them --- */

static void finish_epochs(struct lab_recording_reading *reading) {
    struct lab_recording *recording = reading->recording;
    bool has_ticks = false;
    for (int i = 0; i < recording->track_count; i++)
        has_ticks |= recording->tracks[i].count > 0;
    recording->epochs = lab_arena_alloc(reading->arena, (size_t)reading->segment_count + 1,
                                        sizeof *recording->epochs);
    for (int i = 0; i < reading->segment_count; i++) {
        const struct lab_recording_segment *segment = &reading->segments[i];
        if (reading->query_boot != -1 && segment->boot != reading->query_boot)
            continue;
        int64_t from_ns =
            segment->first_ns < segment->mono_ns ? segment->first_ns : segment->mono_ns;
        recording->epochs[recording->epoch_count++] = (struct lab_recording_epoch){
            .from_ns = from_ns + segment->shift_ns,
            .offset_ns = segment->wall_ns - segment->mono_ns - segment->shift_ns,
            .host = segment->host,
            .boot_id = segment->boot_id,
        };
    }
    LAB_SORT(recording->epochs, recording->epoch_count, LAB_BY(recording->epochs, from_ns));
    if (has_ticks && recording->epoch_count == 0) {
        recording->epochs[recording->epoch_count++] =
            (struct lab_recording_epoch){.host = "", .boot_id = ""};
        lab_recording_note(&reading->notes, "the wall-clock time: its record is damaged");
    }
}

/* --- all of it --- */

static int add_maker(struct lab_recording_reading *reading, sqlite3_stmt *row, void *state) {
    (void)state;
    reading->recording->maker = lab_recording_text(row, 1, reading->arena);
    reading->recording->interval_ns = sqlite3_column_int64(row, 2);
    return 0;
}

static const char *label_of(const char *path, struct lab_arena *arena) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return lab_arena_strndup(arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static int64_t three_quarters_of_memory(void) {
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4 * 3;
}

static int read_tables(struct lab_recording_reading *reading, struct lab_err *err) {
    reading->query_boot = -1;
    lab_recording_each(reading, "notes on who made it",
                       "SELECT number, maker, interval_ns FROM recording WHERE number > ?1"
                       " ORDER BY number",
                       add_maker, NULL);
    lab_recording_each(reading, "epochs",
                       "SELECT id, boot_id, host, mono_ns, wall_ns FROM epoch"
                       " WHERE id > ?1 AND kind = '" LAB_RECORDING_EPOCH_KIND "' ORDER BY id",
                       add_stretch, NULL);
    lab_recording_each(reading, "devices",
                       "SELECT number, id, kind, position, name, pci, node, parent, simulated,"
                       " columns FROM entity WHERE number > ?1 ORDER BY number",
                       add_source, NULL);
    finish_tracks(reading);
    if (find_query_boot(reading, err) < 0 || lab_recording_read_ticks(reading, err) < 0)
        return -1;
    read_events(reading);
    if (!reading->query->without_processes && lab_recording_read_processes(reading) < 0)
        return -1;
    finish_epochs(reading);
    return 0;
}

/* One transaction, so that a writer's next second doesn't come between two tables. */
static int read_all(struct lab_recording_reading *reading, struct lab_recording *ret_recording,
                    struct lab_err *err) {
    static const struct lab_recording_query everything;
    struct lab_recording *recording = lab_arena_alloc(reading->arena, 1, sizeof *recording);
    reading->recording = recording;
    if (!reading->query)
        reading->query = &everything;
    reading->bytes_left =
        reading->query->max_bytes ? reading->query->max_bytes : three_quarters_of_memory();
    *recording = (struct lab_recording){
        .path = lab_arena_strdup(reading->arena, reading->store->path),
        .label = label_of(reading->store->path, reading->arena),
        .maker = "",
    };
    int result = 0;
    if (reading->store->version >= LAB_RECORDING_IN_STORE) {
        bool own = sqlite3_get_autocommit(reading->store->db) &&
                   sqlite3_exec(reading->store->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
        result = read_tables(reading, err);
        if (own)
            sqlite3_exec(reading->store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    recording->missing = reading->notes.items;
    if (result == 0)
        *ret_recording = *recording;
    return result;
}

int lab_recording_read(const char *path, const struct lab_recording_query *query,
                       struct lab_arena *arena, struct lab_recording *ret_recording,
                       struct lab_err *err) {
    struct lab_recording_reading reading = {
        .query = query, .arena = arena, .notes = {.arena = arena}};
    if (lab_recording_open(path, &reading.notes, &reading.damaged, &reading.store, err) < 0)
        return -1;
    int result = read_all(&reading, ret_recording, err);
    lab_store_close(reading.store);
    return result;
}

int lab_recording_read_store(struct lab_store *store, const struct lab_recording_query *query,
                             struct lab_arena *arena, struct lab_recording *ret_recording,
                             struct lab_err *err) {
    struct lab_recording_reading reading = {
        .store = store, .query = query, .arena = arena, .notes = {.arena = arena}};
    return read_all(&reading, ret_recording, err);
}
