/*
 * timing_file.c: a tuning as JSON: the fields that published tuners write (kernel_name, gpu,
 * best_config, best_time_ms, all_benchmark_times, detailed_timings, num_configs_tested,
 * autotune_duration_seconds) and what makes them hold up; and back as timings, from whatever of
 * these fields are there.
 */
#include "store/tuning/timing_file.h"

#include "base/file/file.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "store/foreign/monitor_file_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)256 << 20)

/* --- writing --- */

struct lab_value *lab_timing_file_config(const char *config, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (const char *part = config; *part;) {
        size_t length = strcspn(part, ","), name = strcspn(part, "=");
        if (name >= length)
            break;
        char *key = lab_arena_printf(arena, "%.*s", (int)name, part);
        lab_value_set_int(arena, map, key, strtol(part + name + 1, NULL, 10));
        part += length + (part[length] == ',');
    }
    return map;
}

static struct lab_value *trial_value(const struct lab_trial *trial, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "config", trial->config);
    lab_value_set_string(arena, map, "state", lab_trial_state_name(trial->state));
    lab_value_set_string(arena, map, "reason", trial->reason);
    lab_value_set_float(arena, map, "median_ms", 1e3 * trial->median_s);
    lab_value_set_float(arena, map, "low_ms", 1e3 * trial->low_s);
    lab_value_set_float(arena, map, "high_ms", 1e3 * trial->high_s);
    lab_value_set_int(arena, map, "times", trial->time_count);
    lab_value_set_int(arena, map, "rung", trial->rung);
    lab_value_set_bool(arena, map, "final", trial->final);
    return map;
}

static void add_timings(const struct lab_tuning_result *result, const struct lab_trial *trial,
                        struct lab_arena *arena, struct lab_value *list) {
    for (int i = 0; i < trial->time_count; i++) {
        struct lab_value *item = lab_value_map(arena);
        int64_t wall_ns =
            result->start_wall_ns + (trial->times[i].start_ns - result->start_mono_ns);
        lab_value_set_float(arena, item, "timestamp", (double)wall_ns * 1e-9);
        lab_value_set_string(arena, item, "config", trial->config);
        lab_value_set_float(arena, item, "time_ms", 1e3 * trial->times[i].time_s);
        lab_value_append(arena, list, item);
    }
}

static void set_best(struct lab_value *map, const struct lab_trial *best, bool certain,
                     struct lab_arena *arena) {
    lab_value_set(arena, map, "best_config", lab_timing_file_config(best->config, arena));
    lab_value_set_string(arena, map, "best_config_text", best->config);
    lab_value_set_float(arena, map, "best_time_ms", 1e3 * best->median_s);
    lab_value_set_float(arena, map, "best_time_low_ms", 1e3 * best->low_s);
    lab_value_set_float(arena, map, "best_time_high_ms", 1e3 * best->high_s);
    lab_value_set_bool(arena, map, "winner_is_certain", certain);
}

static void add_best(const struct lab_tuning_result *result, struct lab_arena *arena,
                     struct lab_value *map) {
    struct lab_value *alike = lab_value_list(arena);
    for (int i = 0; i < result->alike_count; i++)
        lab_value_append(arena, alike,
                         lab_value_string(arena, result->trials[result->alike[i]].config));
    set_best(map, &result->trials[result->best], result->certain, arena);
    lab_value_set(arena, map, "indistinguishable", alike);
    lab_value_set_float(arena, map, "speedup_over_default", result->speedup);
    lab_value_set_float(arena, map, "speedup_low", result->speedup_low);
    lab_value_set_float(arena, map, "speedup_high",
                        isfinite(result->speedup_high) ? result->speedup_high : NAN);
    lab_value_set_float(arena, map, "confidence", result->confidence);
}

struct lab_value *lab_timing_file_value(const struct lab_tuning_result *result,
                                        struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *times = lab_value_list(arena);
    struct lab_value *timings = lab_value_list(arena), *trials = lab_value_list(arena);
    struct lab_value *warnings = lab_value_list(arena);
    int tested = 0;
    for (int i = 0; i < result->trial_count; i++) {
        const struct lab_trial *trial = &result->trials[i];
        lab_value_append(arena, trials, trial_value(trial, arena));
        add_timings(result, trial, arena, timings);
        tested += trial->state != LAB_TRIAL_UNTRIED;
        if (trial->state == LAB_TRIAL_MEASURED)
            lab_value_append(arena, times, lab_value_float(arena, 1e3 * trial->median_s));
    }
    for (int i = 0; result->warnings && result->warnings[i]; i++)
        lab_value_append(arena, warnings, lab_value_string(arena, result->warnings[i]));
    lab_value_set_string(arena, map, "kernel_name", result->kernel);
    lab_value_set_string(arena, map, "label", result->label);
    lab_value_set_string(arena, map, "gpu", result->device);
    lab_value_set_string(arena, map, "device_model", result->model);
    lab_value_set_string(arena, map, "space", result->space);
    lab_value_set_string(arena, map, "dtype", result->dtype);
    lab_value_set_string(arena, map, "strategy", result->strategy);
    if (result->best >= 0)
        add_best(result, arena, map);
    lab_value_set(arena, map, "all_benchmark_times", times);
    lab_value_set(arena, map, "detailed_timings", timings);
    lab_value_set_int(arena, map, "num_configs_tested", tested);
    lab_value_set_int(arena, map, "num_configs_illegal", result->illegal);
    lab_value_set_float(arena, map, "autotune_duration_seconds", result->duration_s);
    lab_value_set_float(arena, map, "budget_seconds", result->budget_s);
    lab_value_set_bool(arena, map, "warm", result->warm);
    lab_value_set_bool(arena, map, "interrupted", result->interrupted);
    lab_value_set_bool(arena, map, "from_cache", result->from_cache);
    lab_value_set(arena, map, "configurations", trials);
    lab_value_set(arena, map, "warnings", warnings);
    return map;
}

struct lab_value *lab_timing_file_imported(const struct lab_tuning_entry *entry, const char *kernel,
                                           const char *device, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    struct lab_trial best = {.config = entry->config,
                             .median_s = entry->time_s,
                             .low_s = entry->low_s,
                             .high_s = entry->high_s};
    lab_value_set_string(arena, map, "kernel_name", kernel);
    lab_value_set_string(arena, map, "gpu", device);
    set_best(map, &best, entry->certain, arena);
    lab_value_set(arena, map, "all_benchmark_times", lab_value_list(arena));
    lab_value_set(arena, map, "detailed_timings", lab_value_list(arena));
    lab_value_set(arena, map, "num_configs_tested", lab_value_null(arena));
    lab_value_set(arena, map, "autotune_duration_seconds", lab_value_null(arena));
    return map;
}

/* --- reading --- */

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
    if (stamped)
        LAB_SORT(file->timings, file->timing_count, LAB_BY(file->timings, start_ns));
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
    double best_ms = lab_value_get_number(map, "best_time_ms");
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
