/*
 * describe.c: a machine's description, read from YAML. The tables below are the only schema: each
 * row has its bounds and its default, and one without a default must be given. docs/SIMULATOR.md
 * explains what the keys mean.
 */
#include "device/sim/describe.h"

#include "base/list.h"
#include "base/yaml/yaml.h"

#define LARGE 1e9

/* Keys that others read are rows too, so that a mistyped one is suggested. */
#define ELSEWHERE(name)                                                                            \
    { name, LAB_OPTION_VALUE, 0 }
#define NUMBER(name, type, field, ...)                                                             \
    { name, LAB_OPTION_FLOAT, offsetof(struct type, field), .min = 0, .max = LARGE, __VA_ARGS__ }
#define COUNT(name, type, field, least, most, ...)                                                 \
    { name, LAB_OPTION_INT, offsetof(struct type, field), .min = least, .max = most, __VA_ARGS__ }
#define TEXT(name, type, field, ...)                                                               \
    { name, LAB_OPTION_STRING, offsetof(struct type, field), __VA_ARGS__ }

static const struct lab_option top_keys[] = {
    TEXT("title", sim_machine, title, .fallback = NULL),
    TEXT("cpu", sim_machine, cpu, .fallback = NULL),
    ELSEWHERE("nodes"),
    ELSEWHERE("distances"),
    ELSEWHERE("links"),
    ELSEWHERE("models"),
    ELSEWHERE("gpus"),
    ELSEWHERE("noise"),
    ELSEWHERE("effects"),
    ELSEWHERE("framework"),
    {NULL},
};

static const struct lab_option node_keys[] = {
    COUNT("number", sim_node, number, 0, 1023, .fallback = NULL),
    COUNT("package", sim_node, package, 0, 1023, .fallback = "0"),
    COUNT("cores", sim_node, cores, 0, 1024, .fallback = NULL),
    NUMBER("memory_gb", sim_node, memory_gb, .fallback = NULL),
    NUMBER("bandwidth_gb_s", sim_node, bandwidth_gb_s, .fallback = NULL),
    {NULL},
};

static const struct lab_option link_keys[] = {
    TEXT("name", sim_link, name, .fallback = NULL),
    {"joins", LAB_OPTION_INTS, offsetof(struct sim_link, joins), .fallback = "[]", .max = 1023},
    NUMBER("bandwidth_gb_s", sim_link, bandwidth_gb_s, .fallback = NULL),
    NUMBER("latency_us", sim_link, latency_us, .fallback = "0"),
    {"both", LAB_OPTION_FLAG, offsetof(struct sim_link, both), .fallback = "false"},
    {NULL},
};

static const struct lab_option power_keys[] = {
    NUMBER("idle_w", sim_power, idle_w, .fallback = NULL),
    NUMBER("compute_w", sim_power, compute_w, .fallback = NULL),
    NUMBER("memory_w", sim_power, memory_w, .fallback = NULL),
    NUMBER("limit_w", sim_power, limit_w, .fallback = NULL),
    {NULL},
};

static const struct lab_option heat_keys[] = {
    NUMBER("ambient_c", sim_heat, ambient_c, .fallback = "30"),
    NUMBER("c_per_w", sim_heat, c_per_w, .fallback = NULL),
    {"time_s", LAB_OPTION_FLOAT, offsetof(struct sim_heat, time_s), .min = 0.01, .max = LARGE,
     .fallback = "12"},
    NUMBER("throttle_c", sim_heat, throttle_c, .fallback = "88"),
    {NULL},
};

static const struct lab_option rate_keys[] = {
    {"fp32", LAB_OPTION_FLOAT, LAB_FP32 * sizeof(double), .max = LARGE, .fallback = NULL},
    {"tf32", LAB_OPTION_FLOAT, LAB_TF32 * sizeof(double), .max = LARGE, .fallback = "0"},
    {"bf16", LAB_OPTION_FLOAT, LAB_BF16 * sizeof(double), .max = LARGE, .fallback = "0"},
    {"fp16", LAB_OPTION_FLOAT, LAB_FP16 * sizeof(double), .max = LARGE, .fallback = "0"},
    {NULL},
};

static const struct lab_option model_keys[] = {
    TEXT("name", sim_model, name, .fallback = NULL),
    COUNT("units", sim_model, units, 1, 100000, .fallback = NULL),
    COUNT("copy_engines", sim_model, copy_engines, 1, 16, .fallback = "2"),
    COUNT("pcie_generation", sim_model, pcie_generation, 1, 9, .fallback = "4"),
    COUNT("pcie_lanes", sim_model, pcie_lanes, 1, 32, .fallback = "16"),
    NUMBER("memory_gb", sim_model, memory_gb, .fallback = NULL),
    ELSEWHERE("tflops"),
    NUMBER("memory_gb_s", sim_model, memory_gb_s, .fallback = NULL),
    NUMBER("kernel_us", sim_model, kernel_us, .fallback = "2"),
    NUMBER("graph_kernel_us", sim_model, graph_kernel_us, .fallback = "1"),
    NUMBER("launch_us", sim_model, launch_us, .fallback = "3"),
    NUMBER("graph_us", sim_model, graph_us, .fallback = "8"),
    NUMBER("copy_us", sim_model, copy_us, .fallback = "3"),
    NUMBER("call_us", sim_model, call_us, .fallback = "0.4"),
    NUMBER("sync_us", sim_model, sync_us, .fallback = "6"),
    NUMBER("capture_us", sim_model, capture_us, .fallback = "150"),
    NUMBER("first_us", sim_model, first_us, .fallback = "300"),
    NUMBER("slot_gb_s", sim_model, slot_gb_s, .fallback = NULL),
    NUMBER("slot_us", sim_model, slot_us, .fallback = "1.2"),
    NUMBER("pageable_gb_s", sim_model, pageable_gb_s, .fallback = "6"),
    NUMBER("nvlink_gb_s", sim_model, nvlink_gb_s, .fallback = "0"),
    COUNT("nvlinks", sim_model, nvlinks, 0, 64, .fallback = "0"),
    NUMBER("nvlink_us", sim_model, nvlink_us, .fallback = "3"),
    NUMBER("clock_mhz", sim_model, clock_mhz, .fallback = NULL),
    NUMBER("clock_min_mhz", sim_model, clock_min_mhz, .fallback = "300"),
    ELSEWHERE("power"),
    ELSEWHERE("heat"),
    {NULL},
};

static const struct sim_nested model_nested[] = {
    {"tflops", rate_keys, offsetof(struct sim_model, tflops)},
    {"power", power_keys, offsetof(struct sim_model, power)},
    {"heat", heat_keys, offsetof(struct sim_model, heat)},
    {NULL},
};

struct gpu_row {
    const char *model;
    int64_t node;
};

static const struct lab_option gpu_keys[] = {
    TEXT("model", gpu_row, model, .fallback = NULL),
    COUNT("node", gpu_row, node, 0, 1023, .fallback = NULL),
    ELSEWHERE("path"),
    {NULL},
};

static const struct lab_option pair_keys[] = {
    {"compute", LAB_OPTION_FLOAT, offsetof(struct sim_pair, compute), .max = 10, .fallback = "0"},
    {"copy", LAB_OPTION_FLOAT, offsetof(struct sim_pair, copy), .max = 10, .fallback = "0"},
    {NULL},
};

static const struct lab_option noise_keys[] = {
    ELSEWHERE("between"),
    ELSEWHERE("within"),
    ELSEWHERE("each"),
    {"within_s", LAB_OPTION_FLOAT, offsetof(struct sim_noise, within_s), .min = 1e-9, .max = LARGE,
     .fallback = "0.05"},
    NUMBER("tail_per_s", sim_noise, tail_per_s, .fallback = "0"),
    NUMBER("tail_us", sim_noise, tail_us, .fallback = "50"),
    {"tail_shape", LAB_OPTION_FLOAT, offsetof(struct sim_noise, tail_shape), .min = 0.1,
     .max = LARGE, .fallback = "1.7"},
    NUMBER("tail_most_us", sim_noise, tail_most_us, .fallback = "5000"),
    NUMBER("drift_per_minute", sim_noise, drift_per_minute, .fallback = "0"),
    {NULL},
};

static const struct sim_nested noise_nested[] = {
    {"between", pair_keys, offsetof(struct sim_noise, between)},
    {"within", pair_keys, offsetof(struct sim_noise, within)},
    {"each", pair_keys, offsetof(struct sim_noise, each)},
    {NULL},
};

static const struct lab_option effect_keys[] = {
    ELSEWHERE("remote"),
    ELSEWHERE("slow_gpu"),
    ELSEWHERE("neighbour"),
    ELSEWHERE("drift"),
    ELSEWHERE("link"),
    ELSEWHERE("power_cap"),
    ELSEWHERE("dead_nvlink"),
    ELSEWHERE("errors"),
    ELSEWHERE("wrong_node"),
    COUNT("unbound_node", sim_machine, unbound_node, -1, 1023, .fallback = "-1"),
    {NULL},
};

static const struct lab_option remote_keys[] = {
    {"size_kb", LAB_OPTION_FLOAT, offsetof(struct sim_remote, size_kb), .min = 0.001, .max = LARGE},
    {"slowdown", LAB_OPTION_FLOAT, offsetof(struct sim_remote, slowdown), .max = 100},
    {NULL},
};

static const struct lab_option framework_keys[] = {
    NUMBER("layer_us", sim_framework, layer_us, .fallback = "0"),
    NUMBER("parameter_ns", sim_framework, parameter_ns, .fallback = "0"),
    NUMBER("gflops", sim_framework, gflops, .fallback = "0"),
    {"whole_batch", LAB_OPTION_FLAG, offsetof(struct sim_framework, whole_batch),
     .fallback = "false"},
    NUMBER("sum_layer_us", sim_framework, sum_layer_us, .fallback = "0"),
    NUMBER("sum_gb_s", sim_framework, sum_gb_s, .fallback = "0"),
    {NULL},
};

struct slow_row {
    int64_t gpu;
    double compute, copy, per_minute;
};

static const struct lab_option slow_keys[] = {
    COUNT("gpu", slow_row, gpu, 0, SIM_GPUS_MAX - 1, .fallback = NULL),
    {"compute", LAB_OPTION_FLOAT, offsetof(struct slow_row, compute), .max = 100, .fallback = "0"},
    {"copy", LAB_OPTION_FLOAT, offsetof(struct slow_row, copy), .max = 100, .fallback = "0"},
    {NULL},
};

static const struct lab_option drift_keys[] = {
    COUNT("gpu", slow_row, gpu, 0, SIM_GPUS_MAX - 1, .fallback = NULL),
    {"per_minute", LAB_OPTION_FLOAT, offsetof(struct slow_row, per_minute), .min = -10, .max = 10},
    {NULL},
};

static const struct lab_option neighbour_keys[] = {
    COUNT("node", sim_neighbour, node, 0, 1023, .fallback = NULL),
    NUMBER("gb_s", sim_neighbour, gb_s, .fallback = "0"),
    {"cpu", LAB_OPTION_FLOAT, offsetof(struct sim_neighbour, cpu), .max = 1, .fallback = "0.5"},
    {"on_s", LAB_OPTION_FLOAT, offsetof(struct sim_neighbour, on_s), .min = 1e-6, .max = LARGE,
     .fallback = "0.5"},
    {"off_s", LAB_OPTION_FLOAT, offsetof(struct sim_neighbour, off_s), .min = 1e-6, .max = LARGE,
     .fallback = "0.5"},
    ELSEWHERE("links"),
    {NULL},
};

/* --- reading --- */

static int node_index(const struct sim_machine *machine, int64_t number) {
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].number == number)
            return i;
    return -1;
}

/* --- nodes and links --- */

static int read_nodes(const struct sim_reader *reader, const struct lab_value *tree) {
    struct sim_machine *machine = reader->machine;
    const struct lab_value *list = sim_read_list(reader, tree, "nodes", SIM_NODES_MAX);
    if (!list)
        return -1;
    machine->nodes = lab_arena_alloc(reader->arena, (size_t)list->count, sizeof *machine->nodes);
    for (int i = 0; i < list->count; i++) {
        struct sim_node *node = &machine->nodes[i];
        if (sim_read_map(reader, list->items[i], "node", node_keys, NULL, node) < 0)
            return -1;
        if (i > 0 && node->number <= machine->nodes[i - 1].number)
            return lab_value_err(list->items[i], reader->err,
                                 "NUMA node %lld must come before node %lld",
                                 (long long)node->number, (long long)machine->nodes[i - 1].number);
        if (node->bandwidth_gb_s <= 0 || node->memory_gb <= 0)
            return lab_value_err(list->items[i], reader->err,
                                 "NUMA node %lld: memory_gb and bandwidth_gb_s must be above 0",
                                 (long long)node->number);
        machine->node_count++;
    }
    return 0;
}

static int read_distances(const struct sim_reader *reader, const struct lab_value *tree) {
    struct sim_machine *machine = reader->machine;
    int count = machine->node_count;
    const struct lab_value *rows = lab_value_get(tree, "distances");
    machine->distances = lab_arena_alloc(reader->arena, (size_t)(count * count), sizeof(int));
    for (int i = 0; i < count * count; i++)
        machine->distances[i] = i / count == i % count ? 10 : 20;
    if (!rows)
        return 0;
    if (sim_need(reader, rows, "distances", LAB_VALUE_LIST) < 0)
        return -1;
    if (rows->count != count)
        return lab_value_err(rows, reader->err, "distances: %d rows for %d NUMA nodes", rows->count,
                             count);
    for (int i = 0; i < count; i++) {
        const struct lab_value *row = rows->items[i];
        if (row->type != LAB_VALUE_LIST || row->count != count)
            return lab_value_err(row, reader->err, "distances: a row must be a list of %d numbers",
                                 count);
        for (int j = 0; j < count; j++) {
            int64_t value = row->items[j]->type == LAB_VALUE_INT ? row->items[j]->integer : 0;
            if (value < 10 || value > 254 || (i == j) != (value == 10))
                return lab_value_err(row->items[j], reader->err,
                                     "distances: a NUMA node is 10 from itself and 11 to 254 from "
                                     "others");
            machine->distances[i * count + j] = (int)value;
        }
    }
    return 0;
}

static int check_link(const struct sim_reader *reader, const struct lab_value *value,
                      const struct sim_link *link, int index) {
    const struct sim_machine *machine = reader->machine;
    if (LAB_FIND(machine->links, index, name, link->name) >= 0)
        return lab_value_err(value, reader->err, "there are two links named '%.60s'", link->name);
    if (link->bandwidth_gb_s <= 0)
        return lab_value_err(value, reader->err, "link %.60s: bandwidth_gb_s must be above 0",
                             link->name);
    if (link->joins.count != 0 && link->joins.count != 2)
        return lab_value_err(value, reader->err,
                             "link %.60s: joins must be two NUMA nodes, such as [0, 1]",
                             link->name);
    for (int i = 0; i < link->joins.count; i++)
        if (node_index(machine, link->joins.items[i]) < 0)
            return lab_value_err(value, reader->err,
                                 "link %.60s joins NUMA node %lld, which isn't there", link->name,
                                 (long long)link->joins.items[i]);
    return 0;
}

static int read_links(const struct sim_reader *reader, const struct lab_value *tree) {
    struct sim_machine *machine = reader->machine;
    const struct lab_value *list = lab_value_get(tree, "links");
    if (list && sim_need(reader, list, "links", LAB_VALUE_LIST) < 0)
        return -1;
    int count = list ? list->count : 0;
    if (count > SIM_LINKS_MAX)
        return lab_value_err(list, reader->err, "links: at most %d, not %d", SIM_LINKS_MAX, count);
    machine->links = lab_arena_alloc(reader->arena, (size_t)count + SIM_NODES_MAX + SIM_GPUS_MAX,
                                     sizeof *machine->links);
    for (int i = 0; i < count; i++) {
        struct sim_link *link = &machine->links[i];
        if (sim_read_map(reader, list->items[i], "link", link_keys, NULL, link) < 0 ||
            check_link(reader, list->items[i], link, i) < 0)
            return -1;
        machine->link_count++;
    }
    machine->described_count = count;
    return 0;
}

/* Indices of the links that a list names. */
static int read_path(const struct sim_reader *reader, const struct lab_value *list,
                     const char *what, int *path, int *ret_count) {
    const struct sim_machine *machine = reader->machine;
    *ret_count = 0;
    if (!list)
        return 0;
    if (sim_need(reader, list, what, LAB_VALUE_LIST) < 0)
        return -1;
    if (list->count > SIM_PATH_MAX)
        return lab_value_err(list, reader->err, "%s: at most %d links", what, SIM_PATH_MAX);
    const char **names =
        lab_arena_alloc(reader->arena, (size_t)machine->described_count + 1, sizeof *names);
    for (int i = 0; i < machine->described_count; i++)
        names[i] = machine->links[i].name;
    for (int i = 0; i < list->count; i++) {
        const struct lab_value *item = list->items[i];
        const char *name = item->type == LAB_VALUE_STRING ? item->string : "";
        int found = lab_list_find_text(names, machine->described_count, name);
        if (found < 0) {
            const char *nearest = lab_str_nearest(name, names);
            return lab_value_err(item, reader->err, "%s: there is no link '%.60s'%s%s%s", what,
                                 name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                                 nearest ? "'?" : "");
        }
        path[(*ret_count)++] = found;
    }
    return 0;
}

/* --- GPUs --- */

static int check_model(const struct sim_reader *reader, const struct lab_value *value,
                       const struct sim_model *model) {
    if (model->tflops[LAB_FP32] <= 0 || model->memory_gb_s <= 0 || model->memory_gb <= 0 ||
        model->slot_gb_s <= 0 || model->pageable_gb_s <= 0)
        return lab_value_err(
            value, reader->err,
            "model %s: tflops.fp32, memory_gb, memory_gb_s, slot_gb_s and pageable_gb_s "
            "must be above 0",
            model->key);
    if (!(model->clock_min_mhz > 0 && model->clock_min_mhz <= model->clock_mhz))
        return lab_value_err(value, reader->err,
                             "model %s: clock_min_mhz must be above 0 and up to clock_mhz",
                             model->key);
    if (model->power.limit_w < model->power.idle_w)
        return lab_value_err(value, reader->err, "model %s: power.limit_w is below idle_w",
                             model->key);
    return 0;
}

static int read_models(struct sim_reader *reader, const struct lab_value *tree) {
    const struct lab_value *map = lab_value_get(tree, "models");
    if (!map)
        return lab_value_err(tree, reader->err, "'models' is missing");
    if (sim_need(reader, map, "models", LAB_VALUE_MAP) < 0)
        return -1;
    reader->models = lab_arena_alloc(reader->arena, (size_t)map->count, sizeof *reader->models);
    for (int i = 0; i < map->count; i++) {
        struct sim_model *model = &reader->models[i];
        const char *what = lab_arena_printf(reader->arena, "model %.60s", map->keys[i]);
        model->key = map->keys[i];
        if (sim_read_map(reader, map->items[i], what, model_keys, model_nested, model) < 0 ||
            check_model(reader, map->items[i], model) < 0)
            return -1;
        reader->model_count++;
    }
    return 0;
}

static const struct sim_model *find_model(const struct sim_reader *reader,
                                          const struct lab_value *value, const char *key) {
    const char **names =
        lab_arena_alloc(reader->arena, (size_t)reader->model_count + 1, sizeof *names);
    for (int i = 0; i < reader->model_count; i++) {
        names[i] = reader->models[i].key;
        if (lab_str_equal(names[i], key))
            return &reader->models[i];
    }
    const char *nearest = lab_str_nearest(key, names);
    lab_value_err(value, reader->err, "there is no model '%.60s'%s%s%s", key,
                  nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

static int read_gpus(struct sim_reader *reader, const struct lab_value *tree) {
    struct sim_machine *machine = reader->machine;
    const struct lab_value *list = sim_read_list(reader, tree, "gpus", SIM_GPUS_MAX);
    if (!list)
        return -1;
    machine->gpus = lab_arena_alloc(reader->arena, (size_t)list->count, sizeof *machine->gpus);
    for (int i = 0; i < list->count; i++) {
        struct sim_gpu *gpu = &machine->gpus[i];
        const struct lab_value *item = list->items[i];
        struct gpu_row row = {0};
        const char *what = lab_arena_printf(reader->arena, "GPU %d", i);
        if (sim_read_map(reader, item, what, gpu_keys, NULL, &row) < 0 ||
            !(gpu->model = find_model(reader, item, row.model)) ||
            read_path(reader, lab_value_get(item, "path"), what, gpu->path, &gpu->path_count) < 0)
            return -1;
        gpu->node = node_index(machine, row.node);
        if (gpu->node < 0)
            return lab_value_err(item, reader->err,
                                 "%s: there is no NUMA node "
                                 "%lld",
                                 what, (long long)row.node);
        machine->gpu_count++;
    }
    return 0;
}

/* The links that nobody has to describe: each node's memory, each GPU's slot. */
static void add_links(const struct sim_reader *reader) {
    struct sim_machine *machine = reader->machine;
    for (int i = 0; i < machine->node_count; i++)
        machine->links[machine->link_count++] =
            (struct sim_link){.name = lab_arena_printf(reader->arena, "memory of NUMA node %lld",
                                                       (long long)machine->nodes[i].number),
                              .bandwidth_gb_s = machine->nodes[i].bandwidth_gb_s,
                              .both = true};
    for (int i = 0; i < machine->gpu_count; i++)
        machine->links[machine->link_count++] =
            (struct sim_link){.name = lab_arena_printf(reader->arena, "slot of GPU %d", i),
                              .bandwidth_gb_s = machine->gpus[i].model->slot_gb_s,
                              .latency_us = machine->gpus[i].model->slot_us};
}

static int check_routes(const struct sim_reader *reader, const struct lab_value *tree) {
    const struct sim_machine *machine = reader->machine;
    struct sim_route route;
    for (int gpu = 0; gpu < machine->gpu_count; gpu++)
        for (int node = 0; node < machine->node_count; node++)
            if (sim_route(machine, node, gpu, true, &route) < 0)
                return lab_value_err(
                    tree, reader->err, "no links join NUMA nodes %lld and %lld, where GPU %d is",
                    (long long)machine->nodes[node].number,
                    (long long)machine->nodes[machine->gpus[gpu].node].number, gpu);
    return 0;
}

/* --- what is planted --- */

static int read_remotes(const struct sim_reader *reader, const struct lab_value *effects) {
    struct sim_machine *machine = reader->machine;
    const struct lab_value *list = lab_value_get(effects, "remote");
    if (!list)
        return 0;
    if (!sim_read_list(reader, effects, "remote", SIM_REMOTES_MAX))
        return -1;
    for (int i = 0; i < list->count; i++) {
        struct sim_remote *remote = &machine->remotes[i];
        if (sim_read_map(reader, list->items[i], "remote", remote_keys, NULL, remote) < 0)
            return -1;
        if (i > 0 && remote->size_kb <= remote[-1].size_kb)
            return lab_value_err(list->items[i], reader->err, "remote: sizes must grow");
        machine->remote_count++;
    }
    return 0;
}

static int read_slow(const struct sim_reader *reader, const struct lab_value *effects,
                     const char *key, const struct lab_option *table) {
    struct sim_machine *machine = reader->machine;
    const struct lab_value *list = lab_value_get(effects, key);
    if (!list)
        return 0;
    if (!sim_read_list(reader, effects, key, SIM_GPUS_MAX))
        return -1;
    for (int i = 0; i < list->count; i++) {
        struct slow_row row = {0};
        if (sim_read_map(reader, list->items[i], key, table, NULL, &row) < 0)
            return -1;
        if (row.gpu >= machine->gpu_count)
            return lab_value_err(list->items[i], reader->err, "%s: there is no GPU %lld", key,
                                 (long long)row.gpu);
        struct sim_gpu *gpu = &machine->gpus[row.gpu];
        gpu->slow_compute += row.compute;
        gpu->slow_copy += row.copy;
        gpu->drift_per_minute += row.per_minute;
    }
    return 0;
}

static int read_neighbour(const struct sim_reader *reader, const struct lab_value *effects) {
    struct sim_machine *machine = reader->machine;
    struct sim_neighbour *neighbour = &machine->neighbour;
    const struct lab_value *map = lab_value_get(effects, "neighbour");
    if (!map)
        return 0;
    if (sim_read_map(reader, map, "neighbour", neighbour_keys, NULL, neighbour) < 0 ||
        read_path(reader, lab_value_get(map, "links"), "neighbour", neighbour->links,
                  &neighbour->link_count) < 0)
        return -1;
    if (node_index(machine, neighbour->node) < 0)
        return lab_value_err(map, reader->err, "neighbour: there is no NUMA node %lld",
                             (long long)neighbour->node);
    neighbour->there = true;
    return 0;
}

static int check_unbound(const struct sim_reader *reader, const struct lab_value *effects) {
    int64_t node = reader->machine->unbound_node;
    if (node >= 0 && node_index(reader->machine, node) < 0)
        return lab_value_err(effects, reader->err, "unbound_node: there is no NUMA node %lld",
                             (long long)node);
    return 0;
}

static int read_chance(const struct sim_reader *reader, const struct lab_value *tree) {
    static const struct lab_value none = {.type = LAB_VALUE_MAP};
    const struct lab_value *noise = lab_value_get(tree, "noise");
    const struct lab_value *effects = lab_value_get(tree, "effects");
    noise = noise ? noise : &none;
    const struct lab_value *framework = lab_value_get(tree, "framework");
    effects = effects ? effects : &none;
    framework = framework ? framework : &none;
    return sim_read_map(reader, noise, "noise", noise_keys, noise_nested, &reader->machine->noise) <
                       0 ||
                   sim_read_map(reader, framework, "framework", framework_keys, NULL,
                                &reader->machine->framework) < 0 ||
                   sim_read_map(reader, effects, "effects", effect_keys, NULL, reader->machine) <
                       0 ||
                   check_unbound(reader, effects) < 0 || read_remotes(reader, effects) < 0 ||
                   read_slow(reader, effects, "slow_gpu", slow_keys) < 0 ||
                   read_slow(reader, effects, "drift", drift_keys) < 0 ||
                   read_neighbour(reader, effects) < 0 || sim_read_faults(reader, effects) < 0
               ? -1
               : 0;
}

int sim_describe(const char *name, const char *text, size_t length, const char *origin,
                 struct lab_arena *arena, struct sim_machine **ret_machine, struct lab_err *err) {
    struct lab_value *tree = NULL;
    if (lab_yaml_parse(text, length, origin, LAB_YAML_LIMITS, arena, &tree, err) < 0)
        return -1;
    struct sim_machine *machine = lab_arena_alloc(arena, 1, sizeof *machine);
    struct sim_reader reader = {.arena = arena, .machine = machine, .err = err};
    machine->name = lab_arena_strdup(arena, name);
    machine->definition = lab_arena_strndup(arena, text, length);
    if (tree->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_USER, "%s: describes no machine: must be a map", origin);
    if (sim_read_map(&reader, tree, "a machine", top_keys, NULL, machine) < 0 ||
        read_nodes(&reader, tree) < 0 || read_distances(&reader, tree) < 0 ||
        read_links(&reader, tree) < 0 || read_models(&reader, tree) < 0 ||
        read_gpus(&reader, tree) < 0)
        return -1;
    add_links(&reader);
    if (check_routes(&reader, tree) < 0 || read_chance(&reader, tree) < 0)
        return -1;
    machine->shown = sim_show(machine, arena);
    *ret_machine = machine;
    return 0;
}
