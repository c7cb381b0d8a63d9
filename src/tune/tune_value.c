/*
 * tune_value.c: the result of a tuning as JSON: the fields that published tuners write
 * (kernel_name, gpu, best_config, best_time_ms, all_benchmark_times, detailed_timings,
 * num_configs_tested, autotune_duration_seconds), and what makes them hold up.
 */
#include "tune/tune.h"

#include "base/clock.h"
#include "base/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lab_value *lab_tune_config_value(const char *config, struct lab_arena *arena) {
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

void lab_tune_add_best(struct lab_value *map, struct lab_tune_best best, struct lab_arena *arena) {
    lab_value_set(arena, map, "best_config", lab_tune_config_value(best.config, arena));
    lab_value_set_string(arena, map, "best_config_text", best.config);
    lab_value_set_float(arena, map, "best_time_ms", 1e3 * best.time_s);
    lab_value_set_float(arena, map, "best_time_low_ms", 1e3 * best.low_s);
    lab_value_set_float(arena, map, "best_time_high_ms", 1e3 * best.high_s);
    lab_value_set_bool(arena, map, "winner_is_certain", best.certain);
}

static void add_best(const struct lab_tuning_result *result, struct lab_arena *arena,
                     struct lab_value *map) {
    const struct lab_trial *best = &result->trials[result->best];
    struct lab_value *alike = lab_value_list(arena);
    for (int i = 0; i < result->alike_count; i++)
        lab_value_append(arena, alike,
                         lab_value_string(arena, result->trials[result->alike[i]].config));
    lab_tune_add_best(map,
                      (struct lab_tune_best){best->config, best->median_s, best->low_s,
                                             best->high_s, result->certain},
                      arena);
    lab_value_set(arena, map, "not_told_apart", alike);
    lab_value_set_float(arena, map, "speedup_over_default", result->speedup);
    lab_value_set_float(arena, map, "speedup_low", result->speedup_low);
    lab_value_set_float(arena, map, "speedup_high",
                        isfinite(result->speedup_high) ? result->speedup_high : NAN);
    lab_value_set_float(arena, map, "confidence", result->confidence);
}

struct lab_value *lab_tune_result_value(const struct lab_tuning_result *result,
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
