/*
 * recording_internal.h: what the files that write and read recordings share. The way of a sample:
 *
 *     recording_sink.c     collects: entities, open chunks, events, lists of processes
 *     recording_pack.c     ticks to bytes               recording_unpack.c    and back
 *     recording_process.c  lists of processes likewise, and recording_process_unpack.c
 *     recording_write.c    a second's worth in one transaction
 *     recording.c          life: making, attaching, flushing, closing
 *     recording_open.c     finding a file's kind, also of a damaged one
 *     recording_read.c     the tables back into memory  recording_ticks.c     the chunks
 *     recording_salvage.c  chunks of a file whose tables are broken
 */
#pragma once

#include "store/recording/recording.h"
#include "store/recording/recording_pack.h"
#include "store/recording/recording_process.h"
#include "store/recording/recording_schema.h"
#include "store/store_internal.h"

#include "base/clock.h"
#include "base/str.h"

/* --- names in files --- */

/* "power core_utilization[3]" */
void lab_recording_columns_write(const struct lab_column *columns, int count, struct lab_str *out);

/* A column that this version doesn't know has the metric -1. NULL: too many, or no such text. */
struct lab_column *lab_recording_columns_read(const char *text, struct lab_arena *arena,
                                              int *ret_count);

/* --- what waits to be written --- */

/* Of the samples that can't be written: more than this and the oldest are dropped. */
#define LAB_RECORDER_BYTES_MAX (8 << 20)

/* A wall clock that moves by more than this against the other begins an epoch. */
#define LAB_RECORDER_JUMP_NS (LAB_NS_PER_S / 10)

struct lab_recorder_epoch {
    int64_t mono_ns, wall_ns;
    int64_t row; /* 0 = not in the file yet */
};

/* An entity as it was told, with its open chunk. */
struct lab_recorder_entity {
    struct lab_arena arena; /* of the next two */
    struct lab_entity entity;
    char *columns; /* as the file has them */
    int64_t row;
    int64_t parent; /* row, 0 = none */
    bool is_stored; /* the row is in the file */
    struct lab_chunk chunk;
    int64_t chunk_number; /* in the file; 0 = no tick yet */
    int stored;           /* how many of the chunk's ticks are in the file */
    int64_t last_ns;      /* of all its ticks; INT64_MIN = none */
};

/* Something packed that won't change again. */
struct lab_recorder_sealed {
    struct lab_recorder_sealed *next;
    struct lab_recorder_entity *entity; /* NULL = lists of processes */
    int64_t number, first_ns, last_ns;
    int epoch; /* index */
    int count, items;
    int stored; /* as above */
    size_t size;
    char bytes[];
};

struct lab_recorder_event {
    struct lab_recorder_event *next;
    struct lab_recorder_entity *entity; /* NULL = of the whole recording */
    int64_t time_ns, number;
    int epoch;
    enum lab_event_kind kind;
    char text[];
};

struct lab_recorder {
    struct lab_store *store;
    bool attached; /* the store isn't ours to close */
    const struct lab_clock *clock;
    int64_t (*wall_ns)(void); /* NULL: wall time goes as the clock does */
    int64_t flush_ns, flushed_ns;
    char boot_id[64], host[256];

    struct lab_recorder_epoch *epochs; /* the last one is current */
    int epoch_count;

    struct lab_recorder_entity **told; /* by the sampler's number; NULL = not told */
    int told_count;
    struct lab_recorder_entity **entities; /* all there have been */
    int entity_count;
    int64_t next_entity, next_chunk;

    struct lab_recorder_sealed *sealed, **sealed_end; /* oldest first */
    struct lab_recorder_event *events, **events_end;
    size_t waiting_bytes; /* of both */

    struct lab_process_packer processes;
    int64_t process_chunk; /* its number in the file; 0 = none is open */
    int64_t next_process_chunk;
    bool processes_changed;

    int64_t dropped, dropped_ns; /* ticks, and when the first of them was */
    int64_t noted;               /* those dropped before, which the file says */
    struct lab_err refusal;      /* why the last flush failed; no code = it didn't */
};

/* --- collecting --- */

void lab_recorder_begin_epoch(struct lab_recorder *recorder, int64_t mono_ns, int64_t wall_ns);

/* Begins an epoch if the wall clock has been set. */
void lab_recorder_check_wall(struct lab_recorder *recorder, int64_t now_ns);

/* Packs what is open, for good. */
void lab_recorder_seal(struct lab_recorder *recorder, struct lab_recorder_entity *entity);
void lab_recorder_seal_processes(struct lab_recorder *recorder);

/* Drops the oldest of what waits beyond the bound. */
void lab_recorder_trim(struct lab_recorder *recorder);

/* An entity of this recording or of an earlier one in the same study; texts are copied. */
struct lab_recorder_entity *lab_recorder_add_entity(struct lab_recorder *recorder,
                                                    const struct lab_entity *entity, int64_t parent,
                                                    const char *columns);

void lab_recorder_release(struct lab_recorder *recorder); /* all memory of it */

/* --- writing --- */

/* All that isn't in the file yet, in one transaction; -1 leaves file and recorder as they were. */
int lab_recorder_write(struct lab_recorder *recorder, struct lab_err *err);

/* --- reading --- */

/* What is missing, in words; kept until the end of reading. */
struct lab_recording_notes {
    struct lab_arena *arena;
    const char **items;
    int count;
};

void lab_recording_note(struct lab_recording_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens a recording or a study, damaged ones too: then `ret_damaged` is set and notes say more. */
int lab_recording_open(const char *path, struct lab_recording_notes *notes, bool *ret_damaged,
                       struct lab_store **ret_store, struct lab_err *err);

/* A stretch between boots or jumps, as the file has it. */
struct lab_recording_segment {
    int64_t row, mono_ns, wall_ns;
    const char *host, *boot_id;
    int boot;         /* stretches of one boot have the same number; ascending */
    int64_t shift_ns; /* from its own times to the recording's */
    int64_t first_ns; /* of all that names it, in its own times; INT64_MAX = nothing does */
};

/* An entity as the file has it, and where its columns go. */
struct lab_recording_columns {
    int64_t row, parent;
    int track; /* index; -1 = of a later version */
    int column_count;
    int *map; /* by column: the track's column, -1 = left out */
};

struct lab_recording_reading {
    struct lab_store *store;
    bool damaged;
    const struct lab_recording_query *query;
    struct lab_arena *arena;
    struct lab_recording_notes notes;
    struct lab_recording_segment *segments; /* ascending by row */
    int segment_count;
    int query_boot;                        /* whose times the query's are; -1 = all */
    struct lab_recording_columns *sources; /* ascending by row */
    int source_count;
    int64_t bytes_left; /* of memory, for what is read */
    struct lab_recording *recording;
};

/* NULL = there is none of the row. */
struct lab_recording_segment *lab_recording_segment(struct lab_recording_reading *reading,
                                                    int64_t row);
struct lab_recording_columns *lab_recording_columns(struct lab_recording_reading *reading,
                                                    int64_t row);

/* Times beyond these (18 years of uptime, the year 2116) are damage; sums of others can't
 * overflow. */
#define LAB_RECORDING_TIME_MAX (INT64_C(1) << 59)
#define LAB_RECORDING_WALL_MAX (INT64_C(1) << 62)

static inline bool lab_recording_is_time(int64_t time_ns) {
    return time_ns > -LAB_RECORDING_TIME_MAX && time_ns < LAB_RECORDING_TIME_MAX;
}

/* Is a stretch of time asked for? `stretch` may be NULL. */
bool lab_recording_wants(const struct lab_recording_reading *reading,
                         const struct lab_recording_segment *segment, int64_t first_ns,
                         int64_t last_ns);

/* Rows one after the other, also of a damaged file: what can't be read is stepped over by the first
 * column, a row's number. ?1 = the number before, ?2 and ?3 = the first and last time asked for;
 * `what` is for the note: "events". -1 only if `each` says so. */
typedef int lab_recording_row(struct lab_recording_reading *reading, sqlite3_stmt *row,
                              void *state);
int lab_recording_each(struct lab_recording_reading *reading, const char *what, const char *sql,
                       lab_recording_row *each, void *state);

/* Chunks out of the pages of a damaged file, as many as there are; some may be older than others of
 * the same number. The bytes live for the call. */
struct lab_recording_salvaged {
    int64_t number, entity, epoch, first_ns, last_ns, count;
    const uint8_t *bytes;
    size_t size;
};
typedef void lab_recording_salvage_row(struct lab_recording_reading *reading,
                                       const struct lab_recording_salvaged *found, void *state);
void lab_recording_salvage(struct lab_recording_reading *reading, lab_recording_salvage_row *each,
                           void *state);

char *lab_recording_text(sqlite3_stmt *row, int column, struct lab_arena *arena);

/* The chunks into the tracks. */
int lab_recording_read_ticks(struct lab_recording_reading *reading, struct lab_err *err);

/* The lists of processes. */
int lab_recording_read_processes(struct lab_recording_reading *reading);
