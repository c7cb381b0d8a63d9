/* top_value.c: one snapshot for programs: every metric by its name with its unit; what is unknown
 * is null or absent, never 0. */
#include "top/top_internal.h"

#include <math.h>

static const char *const placements[] = {"unknown", "one_node", "local", "loose",
                                         "cores",   "memory",   "both"};

/* As few digits as it has: 92.35 and not 92.35000000000001, whole where it is. */
static struct lab_value *number_value(const struct lab_metric *metric, int64_t raw,
                                      struct lab_arena *arena) {
    if (metric->scale >= 1)
        return lab_value_int(arena, raw * (int64_t)metric->scale);
    return lab_value_float(arena, (double)raw / round(1 / metric->scale));
}

/* {"power_w": 412.3, "core_utilization_percent": {"0": 3.1, "1": 99.0}}: CSV's names */
static struct lab_value *metrics_value(const struct top_entity *e, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    for (int i = 0; i < e->entity.column_count; i++) {
        const struct lab_column *what = &e->entity.columns[i];
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)what->metric);
        if (!e->columns[i].count)
            continue;
        struct lab_value *value = number_value(metric, e->columns[i].value, arena);
        const char *name = lab_arena_printf(arena, "%s%s", metric->name,
                                            lab_metric_ending((enum lab_metric_id)what->metric));
        if (what->instance < 0) {
            lab_value_set(arena, map, name, value);
            continue;
        }
        struct lab_value *instances = lab_value_get(map, name);
        if (!instances) {
            instances = lab_value_map(arena);
            lab_value_set(arena, map, name, instances);
        }
        lab_value_set(arena, instances, lab_arena_printf(arena, "%d", what->instance), value);
    }
    return map;
}

static struct lab_value *reasons_value(const struct top_entity *e, struct lab_arena *arena) {
    const struct top_column *reasons = top_column(e, LAB_METRIC_CLOCK_REASONS, -1);
    if (!reasons)
        return lab_value_null(arena);
    struct lab_value *list = lab_value_list(arena);
    for (const struct lab_clock_reason *r = lab_clock_reasons; r->bit; r++)
        if ((uint64_t)reasons->value & r->bit)
            lab_value_append(arena, list, lab_value_string(arena, r->name));
    return list;
}

static struct lab_value *entity_value(const struct lab_top_history *history,
                                      const struct top_entity *e, int64_t now_ns,
                                      struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    char reason[200];
    const char *gap = top_gap(history, e, now_ns, reason, sizeof reason);
    bool device = e->entity.kind == LAB_ENTITY_GPU || e->entity.kind == LAB_ENTITY_MIG;
    lab_value_set_string(arena, map, "kind", lab_entity_kind_name(e->entity.kind));
    lab_value_set_int(arena, map, "index", e->entity.index);
    lab_value_set_string(arena, map, "id", e->entity.id);
    lab_value_set_string(arena, map, "name", e->entity.name);
    if (device) {
        lab_value_set_string(arena, map, "pci", *e->entity.pci ? e->entity.pci : NULL);
        lab_value_set(arena, map, "numa_node",
                      e->entity.node < 0 ? lab_value_null(arena)
                                         : lab_value_int(arena, e->entity.node));
        if (e->entity.kind == LAB_ENTITY_MIG)
            lab_value_set_int(arena, map, "gpu", top_gpu_index(history, e->entity.parent));
    }
    lab_value_set_bool(arena, map, "simulated", e->entity.simulated);
    lab_value_set_bool(arena, map, "answers", !gap);
    lab_value_set_string(arena, map, "gap", gap);
    if (device) {
        lab_value_set(arena, map, "clock_reasons", reasons_value(e, arena));
        lab_value_set_float(arena, map, "energy_since_start_j", top_growth(e, LAB_METRIC_ENERGY));
    }
    lab_value_set(arena, map, "metrics", metrics_value(e, arena));
    return map;
}

static struct lab_value *process_value(const struct lab_top_history *history,
                                       const struct lab_process_sample *p,
                                       struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *gpus = lab_value_list(arena);
    lab_value_set_int(arena, map, "pid", p->pid);
    lab_value_set_int(arena, map, "parent_pid", p->parent_pid);
    lab_value_set_string(arena, map, "user", p->user);
    lab_value_set_string(arena, map, "name", p->name);
    lab_value_set_string(arena, map, "command", p->command);
    lab_value_set_string(arena, map, "container", *p->container ? p->container : NULL);
    lab_value_set_float(arena, map, "cpu_percent", p->cpu_percent);
    lab_value_set(arena, map, "memory_bytes",
                  p->memory_bytes < 0 ? lab_value_null(arena)
                                      : lab_value_int(arena, p->memory_bytes));
    lab_value_set(arena, map, "cpu_node",
                  p->cpu_node < 0 ? lab_value_null(arena) : lab_value_int(arena, p->cpu_node));
    for (int i = 0; i < p->gpu_count; i++) {
        const struct lab_process_gpu *on = &p->gpus[i];
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_int(arena, item, "gpu", top_gpu_index(history, on->entity));
        lab_value_set(arena, item, "memory_bytes",
                      on->memory_bytes < 0 ? lab_value_null(arena)
                                           : lab_value_int(arena, on->memory_bytes));
        lab_value_set_float(arena, item, "sm_percent", on->sm_percent);
        lab_value_set_float(arena, item, "memory_percent", on->memory_percent);
        lab_value_set_bool(arena, item, "compute", on->compute);
        lab_value_set_bool(arena, item, "graphics", on->graphics);
        lab_value_append(arena, gpus, item);
    }
    lab_value_set(arena, map, "gpus", gpus);
    lab_value_set_string(arena, map, "placement", placements[p->placement]);
    lab_value_set_string(arena, map, "advice", *p->advice ? p->advice : NULL);
    return map;
}

struct lab_value *lab_top_value(const struct lab_top_history *history,
                                const struct lab_top_view *view, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena), *devices = lab_value_list(arena);
    struct lab_value *host = lab_value_list(arena), *processes = lab_value_list(arena);
    int listed[TOP_DEVICES_MAX], count = top_devices(history, listed);
    bool gpus = top_has_gpus(history);
    for (int i = 0; gpus && i < count; i++)
        lab_value_append(arena, devices,
                         entity_value(history, &history->entities[listed[i]], view->now_ns, arena));
    for (int i = 0; i < history->count; i++) {
        const struct top_entity *e = &history->entities[i];
        if (e->known && e->entity.kind != LAB_ENTITY_GPU && e->entity.kind != LAB_ENTITY_MIG)
            lab_value_append(arena, host, entity_value(history, e, view->now_ns, arena));
    }
    struct top_row *rows;
    int row_count = top_process_rows(history, view, arena, &rows);
    for (int i = 0; i < row_count; i++)
        lab_value_append(arena, processes, process_value(history, rows[i].process, arena));
    lab_value_set_float(arena, map, "time_unix_s",
                        (double)(view->now_ns + view->wall_offset_ns) * 1e-9);
    lab_value_set_string(arena, map, "source", view->source);
    lab_value_set_bool(arena, map, "simulated", lab_top_history_simulated(history));
    lab_value_set(arena, map, "devices", devices);
    lab_value_set(arena, map, "host", host);
    lab_value_set(arena, map, "processes", processes);
    lab_value_set(arena, map, "notes", lab_value_strings(arena, view->notes));
    return map;
}
