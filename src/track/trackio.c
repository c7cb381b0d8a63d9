/*
 * trackio.c: Trackio's inbox, $TRACKIO_DIR/inbox/<run>/<batch>.jsonl. Its server takes the files in
 * at its start and every few seconds, and removes them. A line is one record; each has a log_id
 * that follows from the run and the row's number. A line that comes twice is stored once.
 *
 * Its database is not written: that belongs to its server, which may have it open.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "track/tracker.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- lines --- */

/* Two halves of a row's hash in the form of a UUID. */
static void add_log_id(struct lab_str *out, const struct lab_track_run *run, const char *kind,
                       int64_t number) {
    uint64_t half[2] = {LAB_HASH_START, ~LAB_HASH_START};
    for (int i = 0; i < 2; i++) {
        half[i] = lab_hash_text(half[i], run->project);
        half[i] = lab_hash_text(half[i], run->id);
        half[i] = lab_hash_text(half[i], kind);
        half[i] = lab_hash_text(lab_hash_text(half[i], run->label), run->prefix);
        half[i] = lab_hash_text(half[i], run->renamed);
        half[i] = lab_hash_bytes(half[i], &run->attempt, sizeof run->attempt);
        half[i] = lab_hash_bytes(half[i], &run->revision, sizeof run->revision);
        half[i] = lab_hash_bytes(half[i], &number, sizeof number);
    }
    lab_str_printf(out, "\"log_id\":\"%08x-%04x-%04x-%04x-%012llx\"", (unsigned)(half[0] >> 32),
                   (unsigned)(half[0] >> 16 & 0xffff), (unsigned)(half[0] & 0xffff),
                   (unsigned)(half[1] >> 48), (unsigned long long)(half[1] & 0xffffffffffff));
}

static void add_time(struct lab_str *out, int64_t wall_ns) {
    time_t whole = (time_t)(wall_ns / LAB_NS_PER_S);
    struct tm utc;
    gmtime_r(&whole, &utc);
    lab_str_printf(out, "\"timestamp\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00\"",
                   utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                   utc.tm_sec, (int)(wall_ns % LAB_NS_PER_S / LAB_NS_PER_US));
}

/* What every line begins with; a later attempt is another run. That of the study as a whole isn't:
 * its last values count. */
static void open_line(struct lab_str *out, const struct lab_track_run *run, const char *kind,
                      int64_t number, int64_t wall_ns) {
    LAB_AUTO(str, name);
    lab_str_add(&name, run->name);
    if (run->retried)
        lab_str_printf(&name, " (attempt %d)", run->attempt);
    if (run->revision)
        lab_str_printf(&name, " (values %d)", run->revision + 1);
    lab_str_printf(out, "{\"v\":1,\"kind\":\"%s\",\"project\":", kind);
    lab_track_add_text(out, run->project);
    lab_str_add(out, ",\"run\":");
    lab_track_add_text(out, name.text);
    lab_str_printf(out, ",\"run_id\":\"%s%04x\",", run->id,
                   (unsigned)((run->retried ? run->attempt : 1) + (run->revision << 8)) & 0xffff);
    add_time(out, wall_ns);
    lab_str_add(out, ",");
    add_log_id(out, run, kind, number);
}

static void add_pair(struct lab_str *out, bool first, const char *key, double value) {
    lab_str_add(out, first ? "" : ",");
    lab_track_add_text(out, key);
    lab_str_add(out, ":");
    lab_track_add_number(out, value, true);
}

static void add_map(struct lab_str *out, const struct lab_value *map) {
    for (int i = 0, count = 0; i < map->count; i++) {
        const struct lab_value *value = map->items[i];
        if (value->type == LAB_VALUE_NULL)
            continue;
        lab_str_add(out, count++ ? "," : "");
        lab_track_add_text(out, map->keys[i]);
        lab_str_add(out, ":");
        if (value->type == LAB_VALUE_STRING)
            lab_track_add_text(out, value->string);
        else if (!lab_value_write_plain(value, out))
            lab_track_add_number(out, lab_value_as_number(value), true);
    }
}

/* Names of its own columns, which would hide a metric: its client renames them the same way. */
static const char *free_key(const char *key, struct lab_arena *arena) {
    static const char *const reserved[] = {"project", "run",     "timestamp", "step",
                                           "time",    "metrics", NULL};
    bool taken = lab_str_starts(key, "__") || lab_str_find(key, reserved) >= 0;
    return taken ? lab_arena_printf(arena, "__%s", key) : key;
}

static void add_metrics(const struct lab_track_run *run, const struct lab_track_row *row,
                        struct lab_str *out) {
    LAB_AUTO(arena, arena);
    open_line(out, run, "metric", row->number, row->wall_ns);
    lab_str_printf(out, ",\"step\":%lld,\"metrics\":{", (long long)row->whole_step);
    for (int i = 0; i < row->count; i++)
        add_pair(out, i == 0, free_key(row->values[i].key, &arena), row->values[i].value);
    lab_str_add(out, "}}\n");
}

/* --- the tracker --- */

static const char *trackio_place(const struct lab_track_run *run, struct lab_arena *arena) {
    const char *folder = getenv("TRACKIO_DIR"), *home = getenv("HF_HOME");
    const char *user = getenv("HOME");
    if (folder && *folder)
        folder = lab_arena_strdup(arena, folder);
    else if (home && *home)
        folder = lab_arena_printf(arena, "%s/trackio", home);
    else
        folder = lab_arena_printf(arena, "%s/.cache/huggingface/trackio", user ? user : "");
    uint64_t names = lab_hash_text(lab_hash_text(LAB_HASH_START, run->prefix), run->renamed);
    return lab_arena_printf(arena, "%s/inbox/gpulab-%s-%08x%s%s/00000000.jsonl", folder, run->id,
                            (unsigned)(names ^ names >> 32), *run->label ? "-" : "", run->label);
}

/* A run without a metric isn't listed: the first one has its settings and no value. */
static void trackio_begin(const struct lab_track_run *run, struct lab_track_out *out) {
    struct lab_str *text = &out->bytes;
    open_line(text, run, "metric", -1, run->start_wall_ns);
    lab_str_add(text, ",\"step\":0,\"metrics\":{},\"config\":{\"_Group\":");
    lab_track_add_text(text, run->group);
    if (run->config->count)
        lab_str_add(text, ",");
    add_map(text, run->config);
    lab_str_add(text, "}}\n");
}

static void trackio_row(const struct lab_track_run *run, const struct lab_track_row *row,
                        struct lab_track_out *out) {
    add_metrics(run, row, &out->bytes);
}

/* What its own sampler writes. */
static const struct lab_track_key system_keys[] = {
    {"gpu/%d/utilization", LAB_METRIC_UTILIZATION, 1},
    {"gpu/%d/memory_utilization", LAB_METRIC_MEMORY_UTILIZATION, 1},
    {"gpu/%d/allocated_memory", LAB_METRIC_MEMORY_USED, 0x1p-30},
    {"gpu/%d/total_memory", LAB_METRIC_MEMORY_TOTAL, 0x1p-30},
    {"gpu/%d/power", LAB_METRIC_POWER, 1},
    {"gpu/%d/power_limit", LAB_METRIC_POWER_LIMIT, 1},
    {"gpu/%d/temp", LAB_METRIC_TEMPERATURE, 1},
    {"gpu/%d/sm_clock", LAB_METRIC_SM_CLOCK, 1},
    {"gpu/%d/memory_clock", LAB_METRIC_MEMORY_CLOCK, 1},
    {"gpu/%d/fan_speed", LAB_METRIC_FAN, 1},
    {"gpu/%d/performance_state", LAB_METRIC_PERFORMANCE_STATE, 1},
    {"gpu/%d/energy_consumed", LAB_METRIC_ENERGY, 1},
    {"gpu/%d/memory_usage", LAB_METRIC_MEMORY_USED, 1, .share = true,
     .whole = LAB_METRIC_MEMORY_TOTAL},
    {"gpu/%d/power_percent", LAB_METRIC_POWER, 100, .share = true, .whole = LAB_METRIC_POWER_LIMIT},
    {"cpu/utilization", LAB_METRIC_CPU_UTILIZATION, 1, true},
    {NULL},
};

static void trackio_system_row(const struct lab_track_run *run, const struct lab_track_row *row,
                               struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_str *text = &out->bytes;
    open_line(text, run, "system_metric", row->number, row->wall_ns);
    lab_str_add(text, ",\"metrics\":{");
    for (int i = 0; i < row->count; i++)
        add_pair(text, i == 0, lab_track_label(run, row->values[i].key, &arena),
                 row->values[i].value);
    lab_str_add(text, "}}\n");
}

static void trackio_end(const struct lab_track_run *run, const struct lab_track_end *end,
                        struct lab_track_out *out) {
    LAB_AUTO(arena, arena);
    struct lab_track_row row;
    lab_track_end_row(run, end, &arena, &row);
    add_metrics(run, &row, &out->bytes);
}

static int trackio_deliver(const struct lab_track_run *run, const char *place, int64_t batch,
                           const struct lab_track_out *out, struct lab_err *err) {
    (void)run;
    LAB_AUTO(arena, arena);
    size_t folder = strlen(place) - strlen("00000000.jsonl");
    return lab_file_write_atomic(
        lab_arena_printf(&arena, "%.*s%08lld.jsonl", (int)folder, place, (long long)batch),
        out->bytes.text, out->bytes.length, err);
}

const struct lab_tracker lab_tracker_trackio = {
    .name = "trackio",
    .summary = "Trackio's inbox in $TRACKIO_DIR, which its dashboard takes in",
    .view = "trackio show",
    .variable = "TRACKIO_DIR",
    .by_project = true,
    .place = trackio_place,
    .begin = trackio_begin,
    .row = trackio_row,
    .system_row = trackio_system_row,
    .system_keys = system_keys,
    .end = trackio_end,
    .deliver = trackio_deliver,
};
