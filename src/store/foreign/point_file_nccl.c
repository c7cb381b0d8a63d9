/*
 * point_file_nccl.c: nccl-tests -J FILE: a list of results, a size each, with times in µs out of
 * place and in place. Time is compared: of small messages, bus bandwidths are printed as 0.00. With
 * -C it is the CPU's time, another quantity. A result with wrong elements is a failure: no value.
 */
#include "store/foreign/point_file.h"

#include <string.h>

#define US 1e-6

static const char *program_of(const struct lab_value *root) {
    const struct lab_value *args = lab_value_get(root, "args");
    bool any = args && args->type == LAB_VALUE_LIST && args->count > 0;
    const char *name = any ? lab_value_as_text(args->items[0], "") : "";
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static void add_place(const struct lab_value *place, const struct lab_axis_setting *axes,
                      int axis_count, struct lab_arena *arena, struct lab_point_set *set) {
    const struct lab_value *time = lab_value_get(place, "time"), *cpu = NULL;
    double wrong = lab_point_file_number(lab_value_get(place, "nwrong"));
    if (!time)
        time = cpu = lab_value_get(place, "cpu_time");
    if (wrong > 0) /* NaN: it wasn't checked */
        lab_point_set_add_failure(set, axes, axis_count,
                                  lab_arena_printf(arena, "%.0f wrong elements", wrong), arena);
    else
        lab_point_add_value(
            lab_point_set_point(set, axes, axis_count, cpu ? "CPU time" : "time", "s", arena),
            US * lab_point_file_number(time), 0, arena);
}

static void add_result(const struct lab_value *result, const char *program, struct lab_arena *arena,
                       struct lab_point_set *set) {
    static const char *const keys[] = {"size", "type", "redop", "root"};
    static const char *const places[][2] = {{"out_of_place", "out of place"},
                                            {"in_place", "in place"}};
    struct lab_axis_setting axes[6] = {{"test", program}};
    int n = 1;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *text = lab_point_file_text(lab_value_get(result, keys[k]), arena);
        if (*text)
            axes[n++] = (struct lab_axis_setting){keys[k], text};
    }
    for (int p = 0; p < 2; p++) {
        const struct lab_value *place = lab_value_get(result, places[p][0]);
        axes[n] = (struct lab_axis_setting){"buffers", places[p][1]};
        if (place && place->type == LAB_VALUE_MAP)
            add_place(place, axes, n + 1, arena, set);
    }
}

static void add_facts(const struct lab_value *root, struct lab_arena *arena,
                      struct lab_point_set *set) {
    const struct lab_value *config = lab_value_get(root, "config"),
                           *devices = lab_value_get(config, "devices");
    const char *nccl = lab_point_file_text(lab_value_get(root, "nccl_version"), arena);
    if (*nccl)
        lab_point_set_add_fact(set, "software", "NCCL", nccl, arena);
    for (int i = 0; devices && devices->type == LAB_VALUE_LIST && i < devices->count; i++)
        lab_point_set_add_fact(set, "machine", lab_arena_printf(arena, "rank %d", i),
                               lab_value_get_text(devices->items[i], "device_info", ""), arena);
    for (int i = 0; config && config->type == LAB_VALUE_MAP && i < config->count; i++)
        if (config->items[i] != devices)
            lab_point_set_add_fact(set, "config", config->keys[i],
                                   lab_point_file_text(config->items[i], arena), arena);
}

bool lab_point_file_nccl(const struct lab_value *root, struct lab_arena *arena,
                         struct lab_point_set *set) {
    const struct lab_value *results = lab_value_get(root, "results");
    if (!results || results->type != LAB_VALUE_LIST || !lab_value_get(root, "nccl_version"))
        return false;
    for (int i = 0; i < results->count; i++)
        add_result(results->items[i], program_of(root), arena, set);
    add_facts(root, arena, set);
    return true;
}
