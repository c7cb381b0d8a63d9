/*
 * point_file_nvbench.c: nvbench --json: benchmarks, each with states (a state: a device and a value
 * of each axis), each with summaries. The time is the mean GPU time of cold runs; without one, the
 * CPU time, which is another quantity. Summaries are a list with tags; before nvbench's JSON 1.0, a
 * map.
 */
#include "store/foreign/point_file.h"

#include "base/str.h"

#include <math.h>

static double named_value(const struct lab_value *list) {
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (lab_str_equal(lab_value_get_text(list->items[i], "name", ""), "value"))
            return lab_point_file_number(lab_value_get(list->items[i], "value"));
    return NAN;
}

/* NaN = the state has none. */
static double mean_of(const struct lab_value *summaries, const char *tag) {
    double time_s = NAN;
    bool list = summaries && summaries->type == LAB_VALUE_LIST;
    for (int i = 0; list && i < summaries->count; i++)
        if (lab_str_equal(lab_value_get_text(summaries->items[i], "tag", ""), tag))
            time_s = named_value(lab_value_get(summaries->items[i], "data"));
    return time_s;
}

static double time_of(const struct lab_value *summaries, const char **ret_quantity) {
    static const char *const tags[][2] = {{"nv/cold/time/gpu/mean", "time"},
                                          {"nv/cold/time/cpu/mean", "CPU time"},
                                          {"nv/cpu_only/time/cpu/mean", "CPU time"}};
    double time_s =
        named_value(lab_value_get(lab_value_get(summaries, "Average GPU Time (Cold)"), "values"));
    *ret_quantity = "time";
    for (size_t t = 0; t < sizeof tags / sizeof *tags && isnan(time_s); t++) {
        time_s = mean_of(summaries, tags[t][0]);
        *ret_quantity = tags[t][1];
    }
    return time_s;
}

static void add_state(const struct lab_value *bench, const struct lab_value *state,
                      struct lab_arena *arena, struct lab_point_set *set) {
    const struct lab_value *values = lab_value_get(state, "axis_values");
    int count = values && values->type == LAB_VALUE_LIST ? values->count : 0, n = 0;
    struct lab_axis_setting *axes = lab_arena_alloc(arena, (size_t)count + 2, sizeof *axes);
    axes[n++] = (struct lab_axis_setting){"benchmark", lab_value_get_text(bench, "name", "")};
    axes[n++] = (struct lab_axis_setting){
        "device", lab_point_file_text(lab_value_get(state, "device"), arena)};
    for (int i = 0; i < count; i++)
        axes[n++] = (struct lab_axis_setting){
            lab_value_get_text(values->items[i], "name", ""),
            lab_point_file_text(lab_value_get(values->items[i], "value"), arena)};
    if (lab_value_get_bool(state, "is_skipped")) {
        const char *reason = lab_value_get_text(state, "skip_reason", "");
        lab_point_set_add_failure(
            set, axes, n, *reason ? lab_arena_printf(arena, "skipped: %s", reason) : "skipped",
            arena);
        return;
    }
    const char *quantity;
    double time_s = time_of(lab_value_get(state, "summaries"), &quantity);
    lab_point_add_value(lab_point_set_point(set, axes, n, quantity, "s", arena), time_s, 0, arena);
}

static void add_facts(const struct lab_value *root, struct lab_arena *arena,
                      struct lab_point_set *set) {
    const struct lab_value *devices = lab_value_get(root, "devices");
    const char *version = lab_value_get_text(
        lab_value_get(lab_value_get(lab_value_get(root, "meta"), "version"), "nvbench"), "string",
        NULL);
    for (int i = 0; devices && devices->type == LAB_VALUE_LIST && i < devices->count; i++)
        lab_point_set_add_fact(
            set, "machine",
            lab_arena_printf(arena, "GPU %s",
                             lab_point_file_text(lab_value_get(devices->items[i], "id"), arena)),
            lab_value_get_text(devices->items[i], "name", ""), arena);
    if (version)
        lab_point_set_add_fact(set, "software", "nvbench", version, arena);
}

bool lab_point_file_nvbench(const struct lab_value *root, struct lab_arena *arena,
                            struct lab_point_set *set) {
    const struct lab_value *benches = lab_value_get(root, "benchmarks");
    if (!benches || benches->type != LAB_VALUE_LIST)
        return false;
    bool known = benches->count == 0 && !lab_value_get(root, "context"); /* Google's has one */
    for (int b = 0; b < benches->count; b++) {
        const struct lab_value *states = lab_value_get(benches->items[b], "states");
        known |= states != NULL;
        for (int i = 0; states && states->type == LAB_VALUE_LIST && i < states->count; i++)
            add_state(benches->items[b], states->items[i], arena, set);
    }
    add_facts(root, arena, set);
    return known;
}
