/*
 * wandb.c: W&B's offline runs: <study>/wandb/offline-run-<time>-<id>/run-<id>.wandb, or below
 * $WANDB_DIR. `wandb sync` uploads them with the user's own login, `wandb leet` shows them here; no
 * key is ever asked for.
 *
 * The file is a LevelDB log: seven bytes, then blocks of 32 KiB. A record is one chunk, or several
 * where it crosses a block's end: checksum of what follows the length, length, kind, data. Each
 * record is a Record message (wandb/proto/wandb_internal.proto). History's x axis is `iteration`.
 */
#include "base/clock.h"
#include "track/tracker.h"
#include "track/tracker_bytes.h"
#include "version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORD_NUM = 1,
    RECORD_HISTORY = 2,
    RECORD_SUMMARY = 3,
    RECORD_STATS = 7,
    RECORD_METRIC = 12,
    RECORD_RUN = 17,
    RECORD_EXIT = 18,
    RECORD_FINAL = 20,
    RECORD_HEADER = 21,
    RECORD_FOOTER = 22,
};
enum { HEADER_VERSION = 1, VERSION_PRODUCER = 1, VERSION_MIN_CONSUMER = 2 };
enum {
    RUN_ID = 1,
    RUN_ENTITY = 2,
    RUN_PROJECT = 3,
    RUN_CONFIG = 4,
    RUN_GROUP = 6,
    RUN_JOB_TYPE = 7,
    RUN_NAME = 8,
    RUN_NOTES = 9,
    RUN_TAGS = 10,
    RUN_HOST = 13,
    RUN_START = 17,
    RUN_RESUME = 24, /* 'wandb sync' appends to what another host's file has sent */
};
enum { UPDATE = 1 }; /* of config and summary */
enum { ITEM_KEY = 1, ITEM_VALUE = 16 };
enum { HISTORY_ITEM = 1, HISTORY_STEP = 2, STEP_NUM = 1 };
enum { STATS_TIME = 2, STATS_ITEM = 3 };
enum { METRIC_NAME = 1, METRIC_STEP = 4, METRIC_OPTIONS = 6, OPTION_SYNC = 1, OPTION_DEFINED = 3 };
enum { EXIT_CODE = 1, EXIT_RUNTIME = 2 };

/* --- the log --- */

#define BLOCK      32768
#define CHUNK_HEAD 7
enum { CHUNK_FULL = 1, CHUNK_FIRST, CHUNK_MIDDLE, CHUNK_LAST };

static void add_chunk(struct lab_str *out, int kind, const char *data, size_t length) {
    char type = (char)kind;
    uint32_t crc = lab_track_crc32(lab_track_crc32(0, &type, 1), data, length);
    lab_track_add_u32(out, crc);
    lab_str_add_bytes(out, (char[]){(char)(length & 255), (char)(length >> 8), type}, 3);
    lab_str_add_bytes(out, data, length);
}

static void add_record(struct lab_track_out *out, const struct lab_str *record) {
    static const char zeros[CHUNK_HEAD];
    size_t done = 0;
    do {
        size_t room = BLOCK - (size_t)(out->offset + (int64_t)out->bytes.length) % BLOCK;
        if (room < CHUNK_HEAD) {
            lab_str_add_bytes(&out->bytes, zeros, room);
            room = BLOCK;
        }
        size_t left = record->length - done, length = room - CHUNK_HEAD;
        bool last = left <= length;
        length = last ? left : length;
        add_chunk(&out->bytes,
                  done == 0 ? last ? CHUNK_FULL : CHUNK_FIRST
                  : last    ? CHUNK_LAST
                            : CHUNK_MIDDLE,
                  record->text + done, length);
        done += length;
    } while (done < record->length);
}

/* --- items --- */

static void add_number(struct lab_str *out, int field, const char *key, double value) {
    size_t item = lab_proto_open(out, field);
    lab_proto_text(out, ITEM_KEY, key);
    size_t json = lab_proto_open(out, ITEM_VALUE);
    lab_track_add_number(out, value, false);
    lab_proto_close(out, json);
    lab_proto_close(out, item);
}

static void add_value(struct lab_str *out, int field, const char *key,
                      const struct lab_value *value) {
    size_t item = lab_proto_open(out, field);
    lab_proto_text(out, ITEM_KEY, key);
    size_t json = lab_proto_open(out, ITEM_VALUE);
    if (value->type == LAB_VALUE_STRING)
        lab_track_add_text(out, value->string);
    else if (!lab_value_write_plain(value, out))
        lab_track_add_number(out, lab_value_as_number(value), false);
    lab_proto_close(out, json);
    lab_proto_close(out, item);
}

static void add_seconds(struct lab_str *out, const char *key, int64_t ns) {
    size_t item = lab_proto_open(out, HISTORY_ITEM);
    lab_proto_text(out, ITEM_KEY, key);
    size_t json = lab_proto_open(out, ITEM_VALUE);
    lab_str_add_decimal(out, ns / LAB_NS_PER_US, 6);
    lab_proto_close(out, json);
    lab_proto_close(out, item);
}

/* Where several hosts write into a run, history has none of their samples: it has one writer. */
static void wandb_row(const struct lab_track_run *run, const struct lab_track_row *row,
                      struct lab_track_out *out) {
    struct lab_str *record = &out->part;
    if (row->sampled && *run->label)
        return;
    size_t history = lab_proto_open(record, RECORD_HISTORY);
    for (int i = 0; i < row->count; i++)
        add_number(record, HISTORY_ITEM, row->values[i].key, row->values[i].value);
    if (!row->sampled && !isnan(row->step))
        add_number(record, HISTORY_ITEM, "iteration", row->step);
    add_number(record, HISTORY_ITEM, "_step", (double)row->number);
    add_seconds(record, "_timestamp", row->wall_ns);
    add_seconds(record, "_runtime", row->wall_ns - run->start_wall_ns);
    size_t step = lab_proto_open(record, HISTORY_STEP);
    lab_proto_int(record, STEP_NUM, row->number);
    lab_proto_close(record, step);
    lab_proto_close(record, history);
    add_record(out, record);
    lab_str_clear(record);
}

/* --- the tracker --- */

static const char *wandb_place(const struct lab_track_run *run, struct lab_arena *arena) {
    const char *folder = getenv("WANDB_DIR");
    LAB_AUTO(str, time);
    lab_str_add_clock(&time, run->study_wall_ns, "%Y%m%d_%H%M%S");
    return lab_arena_printf(arena, "%s/wandb/offline-run-%s-%s%s%s/run-%s.wandb",
                            folder && *folder ? folder : run->folder, time.text, run->id,
                            *run->label ? "-" : "", run->label, run->id);
}

static void add_run(const struct lab_track_run *run, struct lab_str *out) {
    const char *entity = getenv("WANDB_ENTITY");
    size_t item = lab_proto_open(out, RECORD_RUN);
    lab_proto_text(out, RUN_ID, run->id);
    if (entity && *entity)
        lab_proto_text(out, RUN_ENTITY, entity);
    lab_proto_text(out, RUN_PROJECT, run->project);
    size_t config = lab_proto_open(out, RUN_CONFIG);
    for (int i = 0; i < run->config->count; i++)
        add_value(out, UPDATE, run->config->keys[i], run->config->items[i]);
    lab_proto_close(out, config);
    lab_proto_text(out, RUN_GROUP, run->group);
    lab_proto_text(out, RUN_JOB_TYPE, run->point);
    lab_proto_text(out, RUN_NAME, run->name);
    lab_proto_text(out, RUN_NOTES, run->notes);
    for (int i = 0; run->tags[i]; i++)
        lab_proto_text(out, RUN_TAGS, run->tags[i]);
    lab_proto_text(out, RUN_HOST, run->host);
    lab_proto_time(out, RUN_START, run->start_wall_ns);
    if (*run->label)
        lab_proto_int(out, RUN_RESUME, 1);
    lab_proto_close(out, item);
}

static void wandb_begin(const struct lab_track_run *run, struct lab_track_out *out) {
    static const char magic[] = {':', 'W', '&', 'B', (char)0xe1, (char)0xbe, 0};
    LAB_AUTO(str, record);
    lab_str_add_bytes(&out->bytes, magic, sizeof magic);
    size_t header = lab_proto_open(&record, RECORD_HEADER);
    size_t version = lab_proto_open(&record, HEADER_VERSION);
    lab_proto_text(&record, VERSION_PRODUCER, "gpulab " LAB_VERSION);
    lab_proto_text(&record, VERSION_MIN_CONSUMER, "0.40.0");
    lab_proto_close(&record, version);
    lab_proto_close(&record, header);
    add_record(out, &record);
    lab_str_clear(&record);
    add_run(run, &record);
    add_record(out, &record);
}

/* What its own sampler writes: the panels of "System" are made of these names. */
static const struct lab_track_key system_keys[] = {
    {"gpu.%d.gpu", LAB_METRIC_UTILIZATION, 1},
    {"gpu.%d.memory", LAB_METRIC_MEMORY_UTILIZATION, 1},
    {"gpu.%d.memoryAllocatedBytes", LAB_METRIC_MEMORY_USED, 1},
    {"gpu.%d.temp", LAB_METRIC_TEMPERATURE, 1},
    {"gpu.%d.powerWatts", LAB_METRIC_POWER, 1},
    {"gpu.%d.enforcedPowerLimitWatts", LAB_METRIC_POWER_LIMIT, 1},
    {"gpu.%d.smClock", LAB_METRIC_SM_CLOCK, 1},
    {"gpu.%d.memoryClock", LAB_METRIC_MEMORY_CLOCK, 1},
    {"gpu.%d.fanSpeed", LAB_METRIC_FAN, 1},
    {"gpu.%d.smActive", LAB_METRIC_SM_ACTIVE, 1},
    {"gpu.%d.smOccupancy", LAB_METRIC_SM_OCCUPANCY, 1},
    {"gpu.%d.pipeTensorActive", LAB_METRIC_TENSOR_ACTIVE, 1},
    {"gpu.%d.dramActive", LAB_METRIC_DRAM_ACTIVE, 1},
    {"gpu.%d.energyJoules", LAB_METRIC_ENERGY, 1},
    {"gpu.%d.memoryAllocated", LAB_METRIC_MEMORY_USED, 100, .share = true,
     .whole = LAB_METRIC_MEMORY_TOTAL},
    {"gpu.%d.powerPercent", LAB_METRIC_POWER, 100, .share = true, .whole = LAB_METRIC_POWER_LIMIT},
    {"cpu", LAB_METRIC_CPU_UTILIZATION, 1, true},
    {"proc.memory.availableMB", LAB_METRIC_HOST_AVAILABLE, 0x1p-20, true},
    {NULL},
};

/* A label is as its own sampler has it where several hosts write into a run. */
static void wandb_system_row(const struct lab_track_run *run, const struct lab_track_row *row,
                             struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, record);
    size_t stats = lab_proto_open(&record, RECORD_STATS);
    lab_proto_time(&record, STATS_TIME, row->wall_ns);
    for (int i = 0; i < row->count; i++) {
        const char *key = row->values[i].key;
        if (*run->label)
            key = lab_arena_printf(&arena, "%s/l:%s", key, run->label);
        add_number(&record, STATS_ITEM, key, row->values[i].value);
    }
    lab_proto_close(&record, stats);
    add_record(out, &record);
}

/* Its x axis. Not by a pattern for all names: readings of GPUs have no iteration, and `wandb sync`
 * drops patterns where the server doesn't expand them. */
static void add_metric(const char *name, struct lab_track_out *out) {
    LAB_AUTO(str, record);
    size_t metric = lab_proto_open(&record, RECORD_METRIC);
    lab_proto_text(&record, METRIC_NAME, name);
    lab_proto_text(&record, METRIC_STEP, "iteration");
    size_t options = lab_proto_open(&record, METRIC_OPTIONS);
    lab_proto_int(&record, OPTION_SYNC, 1);
    lab_proto_int(&record, OPTION_DEFINED, 1);
    lab_proto_close(&record, options);
    lab_proto_close(&record, metric);
    add_record(out, &record);
}

/* The table of runs has a run's summary alone: its own client writes this with each step. */
static void wandb_last(const struct lab_track_run *run, const struct lab_track_row *row,
                       struct lab_track_out *out) {
    LAB_AUTO(str, record);
    (void)run;
    for (int i = 0; i < row->count && !isnan(row->step); i++)
        add_metric(row->values[i].key, out);
    size_t summary = lab_proto_open(&record, RECORD_SUMMARY);
    for (int i = 0; i < row->count; i++)
        add_number(&record, UPDATE, row->values[i].key, row->values[i].value);
    if (!isnan(row->step))
        add_number(&record, UPDATE, "iteration", row->step);
    lab_proto_close(&record, summary);
    add_record(out, &record);
}

static void add_summary(const struct lab_track_run *run, const struct lab_track_end *end,
                        struct lab_str *record) {
    LAB_AUTO(arena, arena);
    size_t summary = lab_proto_open(record, RECORD_SUMMARY);
    for (int i = 0; i < end->summary->count; i++) {
        const char *key = lab_track_result_name(run, end->summary->keys[i], &arena);
        if (end->summary->items[i]->type != LAB_VALUE_NULL)
            add_value(record, UPDATE, key, end->summary->items[i]);
    }
    struct lab_value *verdict = lab_value_string(&arena, end->text);
    add_value(record, UPDATE, lab_track_label(run, "verdict", &arena), verdict);
    lab_proto_close(record, summary);
}

static void wandb_end(const struct lab_track_run *run, const struct lab_track_end *end,
                      struct lab_track_out *out) {
    static const int last[] = {RECORD_FINAL, RECORD_FOOTER};
    LAB_AUTO(str, record);
    int64_t runtime_s = (end->wall_ns - run->start_wall_ns) / LAB_NS_PER_S;
    add_summary(run, end, &record);
    add_record(out, &record);
    lab_str_clear(&record);
    size_t ended = lab_proto_open(&record, RECORD_EXIT);
    lab_proto_int(&record, EXIT_CODE, end->exit_code);
    lab_proto_int(&record, EXIT_RUNTIME, runtime_s);
    lab_proto_close(&record, ended);
    add_record(out, &record);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        lab_str_clear(&record);
        lab_proto_bytes(&record, last[i], "", 0);
        add_record(out, &record);
    }
}

const struct lab_tracker lab_tracker_wandb = {
    .name = "wandb",
    .summary = "offline runs in the study's wandb/, or in $WANDB_DIR; 'wandb sync' uploads them",
    .view = "wandb sync %s/wandb/offline-run-*",
    .variable = "WANDB_DIR",
    .by_project = true,
    .place = wandb_place,
    .begin = wandb_begin,
    .row = wandb_row,
    .system_row = wandb_system_row,
    .system_keys = system_keys,
    .last = wandb_last,
    .end = wandb_end,
};
