/* timing_file.c: a tuning's JSON as timings, from whatever of its fields are there. */
#include "store/foreign/timing_file.h"

#include "base/file/file.h"
#include "base/json.h"
#include "base/str.h"
#include "store/foreign/monitor_file_internal.h"

#include <math.h>
#include <stdlib.h>

#define BYTES_MAX ((size_t)256 << 20)

/* A map in one text, as tuners write it beside a timing. */
static const char *config_text(const struct lab_value *value, struct lab_arena *arena) {
    if (!value || value->type == LAB_VALUE_NULL)
        return "";
    if (value->type == LAB_VALUE_STRING)
        return value->string;
    LAB_AUTO(str, text);
    for (int i = 0; value->type == LAB_VALUE_MAP && i < value->count; i++) {
        lab_str_printf(&text, "%s%s=", i ? "," : "", value->keys[i]);
        lab_value_write(value->items[i], &text);
    }
    if (value->type != LAB_VALUE_MAP)
        lab_value_write(value, &text);
    return lab_arena_strdup(arena, text.text);
}

static const char *text_of(const struct lab_value *value, struct lab_arena *arena) {
    if (value && value->type == LAB_VALUE_INT)
        return lab_arena_printf(arena, "%lld", (long long)value->integer);
    return value && value->type == LAB_VALUE_STRING ? value->string : "";
}

/* A configuration that is a text or a list is one key of a map: it can be compared as a whole. */
static const struct lab_value *best_config(struct lab_value *value, struct lab_arena *arena) {
    if (!value || value->type == LAB_VALUE_NULL || value->type == LAB_VALUE_MAP)
        return value && value->type == LAB_VALUE_MAP ? value : NULL;
    struct lab_value *map = lab_value_map(arena);
    lab_value_set(arena, map, "config", value);
    return map;
}

static int by_start(const void *a, const void *b) {
    const struct lab_timing *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void read_timings(const struct lab_value *list, struct lab_arena *arena,
                         struct lab_timing_file *file) {
    size_t room = list && list->type == LAB_VALUE_LIST ? (size_t)list->count : 0;
    bool stamped = true;
    file->timings = lab_arena_alloc(arena, room + 1, sizeof *file->timings);
    for (size_t i = 0; i < room; i++) {
        const struct lab_value *item = list->items[i];
        bool bare = item->type != LAB_VALUE_MAP;
        struct lab_timing timing = {
            .start_ns = -1,
            .time_s = 1e-3 * lab_value_as_number(bare ? item : lab_value_get(item, "time_ms")),
            .config = config_text(lab_value_get(item, "config"), arena)};
        if (!(timing.time_s > 0) || isinf(timing.time_s))
            continue;
        if (lab_monitor_value_time(lab_value_get(item, "timestamp"), &timing.start_ns) !=
            LAB_MONITOR_TIME_WALL)
            timing.start_ns = -1;
        stamped &= timing.start_ns >= 0;
        file->timings[file->timing_count++] = timing;
    }
    if (stamped && file->timing_count > 1)
        qsort(file->timings, file->timing_count, sizeof *file->timings, by_start);
}

static bool is_timing_file(const struct lab_value *map) {
    static const char *const fields[] = {"best_time_ms", "best_config", "detailed_timings",
                                         "all_benchmark_times"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (lab_value_get(map, fields[i]))
            return true;
    return false;
}

int lab_timing_file_read(const char *path, struct lab_arena *arena,
                         struct lab_timing_file *ret_file, struct lab_err *err) {
    char *text;
    size_t length;
    struct lab_value *map;
    if (lab_file_read(path, BYTES_MAX, arena, &text, &length, err) < 0 ||
        lab_json_parse(text, length, path, arena, &map, err) < 0)
        return -1;
    if (!is_timing_file(map))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s holds no tuning: none of best_time_ms, best_config, "
                           "detailed_timings and all_benchmark_times is in it",
                           path);
    double best_ms = lab_value_as_number(lab_value_get(map, "best_time_ms"));
    const struct lab_value *whose = lab_value_get(map, "gpu");
    struct lab_timing_file file = {
        .kernel = text_of(lab_value_get(map, "kernel_name"), arena),
        .gpu = text_of(whose ? whose : lab_value_get(map, "gpu_id"), arena),
        .best_config = best_config(lab_value_get(map, "best_config"), arena),
        .best_time_s = best_ms > 0 ? 1e-3 * best_ms : (double)NAN};
    const struct lab_value *named = lab_value_get(map, "best_config_text");
    file.best_text = config_text(named ? named : lab_value_get(map, "best_config"), arena);
    read_timings(lab_value_get(map, "detailed_timings"), arena, &file);
    *ret_file = file;
    return 0;
}
