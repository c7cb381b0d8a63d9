/*
 * faults.c: what is planted for a health check, and the state that a driver of the simulated
 * machine would report. A dead NVLink shows as active: it is found by measuring.
 */
#include "device/health.h"

#include "base/list.h"
#include "device/sim/describe.h"

#include <math.h>
#include <string.h>

#define DRIVER "580.00"

struct fault_row {
    int64_t gpu;
    struct sim_fault fault;
    struct lab_option_ints gpus;
};

#define FIELD(name, kind, field, ...)                                                              \
    { name, LAB_OPTION_##kind, offsetof(struct fault_row, field), __VA_ARGS__ }
#define GPU_KEY                FIELD("gpu", INT, gpu, .min = 0, .max = SIM_GPUS_MAX - 1)
#define COUNT_KEY(name, field) FIELD(name, INT, fault.field, .min = 0, .max = 1e9, .fallback = "0")

static const struct lab_option link_keys[] = {
    GPU_KEY,
    FIELD("width", INT, fault.width, .min = 0, .max = 32, .fallback = "0"),
    FIELD("generation", INT, fault.generation, .min = 0, .max = 9, .fallback = "0"),
    {NULL},
};
static const struct lab_option cap_keys[] = {
    GPU_KEY,
    FIELD("limit_w", FLOAT, fault.limit_w, .min = 1, .max = 1e6),
    {NULL},
};
static const struct lab_option dead_keys[] = {
    FIELD("gpus", INTS, gpus, .min = 0, .max = SIM_GPUS_MAX - 1),
    {NULL},
};
static const struct lab_option error_keys[] = {
    GPU_KEY,
    COUNT_KEY("ecc_corrected", ecc_corrected),
    COUNT_KEY("ecc_uncorrected", ecc_uncorrected),
    COUNT_KEY("rows_pending", rows_pending),
    COUNT_KEY("rows_failed", rows_failed),
    COUNT_KEY("xid", xid),
    {NULL},
};
static const struct lab_option node_keys[] = {
    GPU_KEY,
    FIELD("node", INT, fault.node, .min = 0, .max = 1023),
    {NULL},
};

/* --- what each list does --- */

static int plant_link(const struct sim_reader *reader, const struct lab_value *value,
                      const struct fault_row *row) {
    struct sim_machine *machine = reader->machine;
    struct sim_gpu *gpu = &machine->gpus[row->gpu];
    int64_t lanes = gpu->model->pcie_lanes, generation = gpu->model->pcie_generation;
    if (row->fault.width > lanes || row->fault.generation > generation)
        return lab_value_err(value, reader->err, "link: GPU %lld has %lld lanes of generation %lld",
                             (long long)row->gpu, (long long)lanes, (long long)generation);
    gpu->fault.width = row->fault.width;
    gpu->fault.generation = row->fault.generation;
    double share = row->fault.width ? (double)row->fault.width / (double)lanes : 1;
    if (row->fault.generation)
        share *= exp2((double)(row->fault.generation - generation));
    machine->links[sim_slot_link(machine, (int)row->gpu)].bandwidth_gb_s *= share;
    return 0;
}

/* It has the model's figures, but for the limit. */
static int plant_cap(const struct sim_reader *reader, const struct lab_value *value,
                     const struct fault_row *row) {
    struct sim_gpu *gpu = &reader->machine->gpus[row->gpu];
    if (row->fault.limit_w < gpu->model->power.idle_w)
        return lab_value_err(value, reader->err, "power_cap: limit_w is below the model's idle_w");
    struct sim_model *model = lab_arena_alloc(reader->arena, 1, sizeof *model);
    *model = *gpu->model;
    gpu->fault.default_limit_w = model->power.limit_w;
    gpu->fault.limit_w = model->power.limit_w = row->fault.limit_w;
    gpu->model = model;
    return 0;
}

static int plant_dead(const struct sim_reader *reader, const struct lab_value *value,
                      const struct fault_row *row) {
    struct sim_machine *machine = reader->machine;
    const int64_t *pair = row->gpus.items;
    if (row->gpus.count != 2 || pair[0] == pair[1] || pair[0] >= machine->gpu_count ||
        pair[1] >= machine->gpu_count)
        return lab_value_err(value, reader->err,
                             "dead_nvlink: gpus must be two GPUs of it, such as [0, 1]");
    machine->gpus[pair[0]].fault.dead |= 1ull << (unsigned)pair[1];
    machine->gpus[pair[1]].fault.dead |= 1ull << (unsigned)pair[0];
    return 0;
}

static int plant_errors(const struct sim_reader *reader, const struct lab_value *value,
                        const struct fault_row *row) {
    struct sim_fault *fault = &reader->machine->gpus[row->gpu].fault;
    (void)value;
    fault->xid = row->fault.xid;
    fault->ecc_corrected = row->fault.ecc_corrected;
    fault->ecc_uncorrected = row->fault.ecc_uncorrected;
    fault->rows_pending = row->fault.rows_pending;
    fault->rows_failed = row->fault.rows_failed;
    return 0;
}

static int plant_node(const struct sim_reader *reader, const struct lab_value *value,
                      const struct fault_row *row) {
    for (int i = 0; i < reader->machine->node_count; i++)
        if (reader->machine->nodes[i].number == row->fault.node) {
            reader->machine->gpus[row->gpu].fault.node = row->fault.node;
            return 0;
        }
    return lab_value_err(value, reader->err, "wrong_node: there is no NUMA node %lld",
                         (long long)row->fault.node);
}

static const struct {
    const char *key;
    const struct lab_option *table;
    int (*plant)(const struct sim_reader *reader, const struct lab_value *value,
                 const struct fault_row *row);
} lists[] = {
    {"link", link_keys, plant_link},        {"power_cap", cap_keys, plant_cap},
    {"dead_nvlink", dead_keys, plant_dead}, {"errors", error_keys, plant_errors},
    {"wrong_node", node_keys, plant_node},
};

int sim_read_faults(const struct sim_reader *reader, const struct lab_value *effects) {
    struct sim_machine *machine = reader->machine;
    for (int i = 0; i < machine->gpu_count; i++)
        machine->gpus[i].fault.node = -1;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const struct lab_value *list = lab_value_get(effects, lists[k].key);
        if (!list)
            continue;
        if (!sim_read_list(reader, effects, lists[k].key, SIM_GPUS_MAX * SIM_GPUS_MAX))
            return -1;
        for (int i = 0; i < list->count; i++) {
            struct fault_row row = {0};
            if (sim_read_map(reader, list->items[i], lists[k].key, lists[k].table, NULL, &row) < 0)
                return -1;
            if (row.gpu >= machine->gpu_count)
                return lab_value_err(list->items[i], reader->err, "%s: there is no GPU %lld",
                                     lists[k].key, (long long)row.gpu);
            if (lists[k].plant(reader, list->items[i], &row) < 0)
                return -1;
        }
    }
    return 0;
}

/* --- as a driver would report it --- */

static void report_gpu(const struct sim_machine *machine, int unit, struct lab_gpu_health *health) {
    const struct sim_gpu *gpu = &machine->gpus[unit];
    const struct sim_fault *fault = &gpu->fault;
    const struct sim_model *model = gpu->model;
    *health = lab_gpu_health_unknown();
    health->name = model->name;
    health->address = machine->shown->pci[unit].address;
    health->node = (int)machine->nodes[sim_shown_node(machine, gpu)].number;
    health->pcie_generation_most = model->pcie_generation;
    health->pcie_generation = fault->generation ? fault->generation : model->pcie_generation;
    health->pcie_width_most = model->pcie_lanes;
    health->pcie_width = fault->width ? fault->width : model->pcie_lanes;
    health->performance_state = 0;
    health->ecc_on = health->persistence = 1;
    health->ecc_corrected = fault->ecc_corrected;
    health->ecc_uncorrected = fault->ecc_uncorrected;
    health->rows_remapped = fault->rows_pending;
    health->rows_pending = fault->rows_pending;
    health->rows_failed = fault->rows_failed;
    health->recovery_action = health->clock_reasons = 0;
    health->clock_most_mhz = model->clock_mhz;
    health->power_limit_w = model->power.limit_w;
    health->power_default_w = fault->limit_w > 0 ? fault->default_limit_w : model->power.limit_w;
    health->temperature_c = model->heat.ambient_c + model->power.idle_w * model->heat.c_per_w;
    health->nvlinks = health->nvlinks_active = model->nvlinks;
    health->fabric = model->nvlinks ? LAB_FABRIC_COMPLETED : LAB_FABRIC_NONE;
    health->fabric_status = health->fabric_clique = health->fabric_degraded = 0;
    health->memory_bytes = (int64_t)(1e9 * model->memory_gb);
    health->memory_used_bytes = health->process_count = 0;
}

int sim_health(const struct lab_machine *here, const struct lab_device_list *devices,
               struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err) {
    (void)here;
    const struct lab_device_ref *first = &devices->items[0];
    struct sim_machine *machine;
    if (sim_describe(first->machine->source + strlen("sim:"), first->definition,
                     strlen(first->definition), first->machine->source, arena, &machine, err) < 0)
        return -1;
    struct lab_health health = {.driver = DRIVER,
                                .module = DRIVER,
                                .gpu_count = devices->count,
                                .gpus_on_bus = machine->gpu_count,
                                .fabric_manager = LAB_HEALTH_UNKNOWN};
    health.gpus = lab_arena_alloc(arena, (size_t)devices->count, sizeof *health.gpus);
    for (int i = 0; i < devices->count; i++)
        report_gpu(machine, devices->items[i].unit, &health.gpus[i]);
    for (int i = 0; i < machine->gpu_count; i++) {
        const struct sim_gpu *gpu = &machine->gpus[i];
        health.fabric_manager = gpu->model->nvlinks ? 1 : health.fabric_manager;
        if (!gpu->fault.xid)
            continue;
        struct lab_xid *xid = &LAB_ADD(health.xids, health.xid_count, arena);
        *xid = (struct lab_xid){.number = (int)gpu->fault.xid};
        snprintf(xid->address, sizeof xid->address, "%s", machine->shown->pci[i].address);
    }
    *ret_health = health;
    return 0;
}
