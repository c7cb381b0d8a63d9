/* point_set_study.c: a study as a set of points, and what it ran on and with. */
#include "load/point_sets.h"

#include "base/json.h"
#include "base/str.h"
#include "base/yaml/yaml.h"
#include "load/study_file.h"

#include <string.h>

/* --- points --- */

struct axes {
    struct lab_axis_setting *items;
    int count, room;
    struct lab_arena *arena;
};

static void add_axis(struct axes *axes, const char *name, const char *text) {
    for (int i = 0; i < axes->count; i++)
        if (lab_str_equal(axes->items[i].name, name))
            return;
    if (axes->count < axes->room && *text)
        axes->items[axes->count++] = (struct lab_axis_setting){name, text};
}

static const char *text_of(const struct lab_value *value, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (value->type == LAB_VALUE_STRING)
        return value->string;
    lab_value_write(value, &text);
    return lab_arena_strdup(arena, text.text);
}

static void add_map(struct axes *axes, const struct lab_value *map) {
    for (int i = 0; map && map->type == LAB_VALUE_MAP && i < map->count; i++)
        if (!lab_str_equal(map->keys[i], LAB_RUN_SPREAD)) /* how points were placed is no setting */
            add_axis(axes, map->keys[i], text_of(map->items[i], axes->arena));
}

/* "GPU 0 + GPU 1", "0 + 2" */
static void add_ranks(struct axes *axes, const struct lab_study_run *run) {
    const char *devices = "", *nodes = "";
    for (int i = 0; i < run->rank_count && !run->run->spread; i++) {
        const char *sign = i ? " + " : "";
        devices = lab_arena_printf(axes->arena, "%s%s%s", devices, sign,
                                   lab_run_device_title(run->ranks[i].device, axes->arena));
        nodes = lab_arena_printf(axes->arena, "%s%s%d", nodes, sign, run->ranks[i].numa_node);
    }
    add_axis(axes, "device", devices);
    add_axis(axes, "numa_node", nodes);
}

static struct axes axes_of(const struct lab_study_run *run, struct lab_arena *arena) {
    size_t room = 8 + (size_t)(run->options ? run->options->count : 0) +
                  (size_t)(run->test ? run->test->count : 0);
    struct axes axes = {lab_arena_alloc(arena, room, sizeof *axes.items), 0, (int)room, arena};
    add_axis(&axes, "workload", run->run->workload);
    add_axis(&axes, "model", run->model);
    add_ranks(&axes, run);
    add_axis(&axes, "phase", run->phase);
    add_map(&axes, run->test);
    add_map(&axes, run->options);
    return axes;
}

/* What programs reported of how good a result is: its rate is the run's, and of other values nobody
 * knows which way they are better. */
static void add_metrics(struct lab_point_set *set, const struct lab_study_run *run,
                        const struct axes *axes, struct lab_arena *arena) {
    for (int i = 0; i < run->metric_count; i++) {
        const struct lab_study_metric *metric = &run->metrics[i];
        enum lab_direction better =
            lab_metric_direction(metric->name, lab_value_get(run->options, "metrics"));
        if (!better || metric->rank > 0 || lab_metric_name_is_rate(metric->name, metric->unit))
            continue;
        struct lab_point *point =
            lab_point_set_point(set, axes->items, axes->count, metric->name, metric->unit, arena);
        point->better = better;
        lab_point_add_value(point, metric->value, run->run->repeat, arena);
    }
}

static void add_run(struct lab_point_set *set, const struct lab_study_run *run,
                    struct lab_arena *arena) {
    struct axes axes = axes_of(run, arena);
    bool rate = run->rate > 0;
    struct lab_point *point =
        lab_point_set_point(set, axes.items, axes.count, rate ? "throughput" : "time",
                            rate ? run->run->rate_unit : "s", arena);
    lab_point_add_value(point, rate ? run->rate : run->time_s, run->run->repeat, arena);
    add_metrics(set, run, &axes, arena);
}

/* A point none of whose runs is done. */
static void add_failed(struct lab_point_set *set, const struct lab_study_run *run,
                       struct lab_arena *arena) {
    struct axes axes = axes_of(run, arena);
    struct lab_point_failure failure = {axes.items, axes.count, NULL};
    const char *error = run->run->error;
    for (int i = 0; i < set->point_count; i++)
        if (lab_point_failed(&set->points[i], &failure))
            return;
    lab_point_set_add_failure(set, axes.items, axes.count, error && *error ? error : "failed",
                              arena);
}

struct lab_point_set lab_point_set_of_study(const struct lab_study_table *table,
                                            struct lab_arena *arena) {
    struct lab_point_set set = {
        .name = table->name, .source = table->folder, .simulated = table->simulated};
    for (int i = 0; i < table->run_count; i++)
        if (table->runs[i].used)
            add_run(&set, &table->runs[i], arena);
    for (int i = 0; table->failed && i < table->failed_count; i++)
        add_failed(&set, &table->failed[i], arena);
    return set;
}

/* --- facts --- */

/* "4 × NVIDIA L40S, NVIDIA T4", in PCI order. */
static const char *gpu_names(const struct lab_value *pci, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    int count = pci && pci->type == LAB_VALUE_LIST ? pci->count : 0;
    for (int i = 0, alike; i < count; i += alike) {
        const char *model = lab_value_get_text(pci->items[i], "model", "unknown");
        for (alike = 1;
             i + alike < count &&
             lab_str_equal(model, lab_value_get_text(pci->items[i + alike], "model", "unknown"));
             alike++)
            ;
        if (!lab_str_equal(lab_value_get_text(pci->items[i], "kind", ""), "gpu"))
            continue;
        lab_str_add(&text, text.length ? ", " : "");
        if (alike > 1)
            lab_str_printf(&text, "%d × ", alike);
        lab_str_add(&text, model);
    }
    return lab_arena_strdup(arena, text.text);
}

static void add_fact(struct lab_point_set *set, const char *topic, const char *name,
                     const char *text, struct lab_arena *arena) {
    if (text && *text)
        lab_point_set_add_fact(set, topic, name, text, arena);
}

void lab_point_set_add_machine(struct lab_point_set *set, const struct lab_value *machine,
                               uint64_t identity, struct lab_arena *arena) {
    const struct lab_value *nodes = lab_value_get(machine, "nodes");
    bool simulated = lab_value_get_bool(machine, "simulated");
    add_fact(set, "machine", simulated ? "simulated" : "host",
             lab_value_get_text(machine, simulated ? "source" : "host", ""), arena);
    add_fact(set, "machine", "CPU", lab_value_get_text(machine, "cpu_model", ""), arena);
    add_fact(set, "machine", "cores",
             lab_arena_printf(arena, "%lld", (long long)lab_value_get_int(machine, "cores", 0)),
             arena);
    if (nodes)
        add_fact(set, "machine", "NUMA nodes", lab_arena_printf(arena, "%d", nodes->count), arena);
    add_fact(set, "machine", "GPUs", gpu_names(lab_value_get(machine, "pci"), arena), arena);
    add_fact(set, "machine", "identity",
             lab_arena_printf(arena, "%016llx", (unsigned long long)identity), arena);
    add_fact(set, "software", "driver", lab_value_get_text(machine, "driver", ""), arena);
    add_fact(set, "software", "kernel", lab_value_get_text(machine, "kernel", ""), arena);
}

/* Every leaf by its path; where results are written, and what was said when it was composed, is no
 * part of how they were measured. */
static void add_config(struct lab_point_set *set, const char *path, const struct lab_value *value,
                       struct lab_arena *arena) {
    if (value->type != LAB_VALUE_MAP) {
        if (!lab_str_equal(path, "output_dir") && !lab_str_equal(path, "notes"))
            add_fact(set, "config", path, text_of(value, arena), arena);
        return;
    }
    for (int i = 0; i < value->count; i++)
        add_config(set,
                   *path ? lab_arena_printf(arena, "%s.%s", path, value->keys[i]) : value->keys[i],
                   value->items[i], arena);
}

int lab_point_set_add_study_facts(struct lab_point_set *set, const char *folder,
                                  struct lab_arena *arena, struct lab_err *err) {
    struct lab_study_file *file;
    struct lab_value *config, *machine;
    if (lab_study_file_open(folder, arena, &file, err) < 0)
        return -1;
    if (lab_json_parse(file->study.machine, strlen(file->study.machine), "machine", arena, &machine,
                       NULL) == 0)
        lab_point_set_add_machine(set, machine, file->study.machine_identity, arena);
    add_fact(set, "software", "gpulab", file->study.version, arena);
    if (lab_yaml_parse(file->study.config, strlen(file->study.config), "config", LAB_YAML_LIMITS,
                       arena, &config, NULL) == 0)
        add_config(set, "", config, arena);
    lab_study_file_close(file);
    return 0;
}
