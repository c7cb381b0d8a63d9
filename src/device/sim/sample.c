/*
 * sample.c: what a sampler would have seen. Each tick of the world moves the GPUs' conditions on
 * and keeps a row of every entity; whoever asks gets the rows since the last time. Ticks come each
 * 10 ms in the first seconds, as most runs are short, and each 100 ms from then on.
 */
#include "base/random.h"
#include "device/sim/sim.h"

#include <math.h>
#include <string.h>

#define TICK_SHORT_NS (10 * LAB_NS_PER_MS)
#define TICK_LONG_NS  (100 * LAB_NS_PER_MS)
#define SHORT_FOR_NS  (5 * LAB_NS_PER_S)

/* Of a node's CPU time, what is always going on. */
#define BACKGROUND        0.01
#define BACKGROUND_SPREAD 0.003
#define CHANCE_OF_HOSTS   998

enum { ENTITY_CPU, ENTITY_NUMA, ENTITY_GPUS };
#define ENTITIES (ENTITY_GPUS + SIM_GPUS_MAX)

/* The values of a GPU's row, in the order of its columns. */
static const enum lab_metric_id gpu_metrics[] = {
    LAB_METRIC_UTILIZATION,   LAB_METRIC_MEMORY_USED,     LAB_METRIC_MEMORY_TOTAL,
    LAB_METRIC_POWER,         LAB_METRIC_TEMPERATURE,     LAB_METRIC_SM_CLOCK,
    LAB_METRIC_CLOCK_REASONS, LAB_METRIC_SM_ACTIVE,       LAB_METRIC_DRAM_ACTIVE,
    LAB_METRIC_PCIE_TX_RATE,  LAB_METRIC_PCIE_RX_RATE,    LAB_METRIC_ENERGY,
    LAB_METRIC_PCIE_TX_BYTES, LAB_METRIC_PCIE_RX_BYTES,   LAB_METRIC_POWER_LIMIT,
    LAB_METRIC_PCIE_WIDTH,    LAB_METRIC_PCIE_GENERATION,
};
#define GPU_COLUMNS  ((int)(sizeof gpu_metrics / sizeof *gpu_metrics))
#define NODE_METRICS 3
#define COLUMNS_MAX  (NODE_METRICS * SIM_NODES_MAX)

struct row {
    int entity, column_count;
    int64_t time_ns;
    size_t values; /* where they begin */
};

struct sim_rows {
    struct row *rows;
    int count;
    int64_t *values;
    int value_count;
    bool told[ENTITIES];
    uint64_t drawn;
};

void sim_sample_init(struct sim_world *world) {
    world->rows = lab_mem_alloc(1, sizeof *world->rows);
}

void sim_sample_release(struct sim_world *world) {
    lab_mem_free(world->rows->rows);
    lab_mem_free(world->rows->values);
    lab_mem_free(world->rows);
}

static int64_t whole(double value, enum lab_metric_id metric) {
    return (int64_t)llround(value / lab_metric(metric)->scale);
}

static void keep(struct sim_world *world, int entity, const int64_t *values, int count) {
    struct sim_rows *rows = world->rows;
    LAB_PUSH(rows->rows, rows->count) = (struct row){.entity = entity,
                                                     .column_count = count,
                                                     .time_ns = world->time_ns,
                                                     .values = (size_t)rows->value_count};
    for (int i = 0; i < count; i++)
        LAB_PUSH(rows->values, rows->value_count) = values[i];
}

/* --- GPUs --- */

static void keep_gpu(struct sim_world *world, struct sim_device *device, double time_s) {
    const struct sim_model *model = device->gpu->model;
    struct sim_condition *condition = &device->condition;
    const struct sim_load *load = &device->load;
    double busy = fmin(1, load->busy_s / time_s);
    condition->energy_j += load->energy_j;
    sim_condition_step(condition, model, time_s, load->energy_j / time_s, busy);
    const double values[GPU_COLUMNS] = {
        100 * busy,
        (double)device->memory_used,
        1e9 * model->memory_gb,
        condition->power_w,
        condition->temperature_c,
        condition->clock_mhz,
        (double)condition->reasons,
        100 * busy,
        fmin(100, 100 * load->memory_s / time_s),
        load->from_bytes / time_s,
        load->to_bytes / time_s,
        condition->energy_j,
        device->from_bytes,
        device->to_bytes,
        model->power.limit_w,
        (double)model->pcie_lanes,
        (double)model->pcie_generation,
    };
    int64_t row[GPU_COLUMNS];
    for (int i = 0; i < GPU_COLUMNS; i++)
        row[i] = whole(values[i], gpu_metrics[i]);
    keep(world, ENTITY_GPUS + device->unit, row, GPU_COLUMNS);
    device->load = (struct sim_load){0};
}

/* --- the host --- */

/* Threads of ranks spin or work all the time; the neighbour does when it is there. */
static double node_load(struct sim_world *world, int node, double time_s) {
    const struct sim_machine *machine = world->machine;
    const struct sim_node *place = &machine->nodes[node];
    uint64_t seed = lab_random_bits(world->seed, CHANCE_OF_HOSTS);
    double load =
        BACKGROUND + BACKGROUND_SPREAD * fabs(sim_random_normal(seed, &world->rows->drawn));
    if (place->cores == 0)
        return 0;
    for (int i = 0; i < world->device_count; i++)
        if (world->devices[i]->host_node == node &&
            world->devices[i]->host.state != SIM_HOST_RESTING)
            load += 1 / (double)place->cores;
    if (machine->neighbour.there && machine->neighbour.node == place->number)
        load += machine->neighbour.cpu * world->neighbour_s / time_s;
    return fmin(1, load);
}

static void keep_host(struct sim_world *world, double time_s) {
    const struct sim_machine *machine = world->machine;
    int64_t row[COLUMNS_MAX] = {0};
    double busy = 0, cores = 0;
    int count = 0;
    for (int i = 0; i < machine->node_count; i++) {
        const struct sim_node *node = &machine->nodes[i];
        double load = node_load(world, i, time_s), total = 1e9 * node->memory_gb;
        busy += load * (double)node->cores;
        cores += (double)node->cores;
        row[count++] = whole(total, LAB_METRIC_NODE_TOTAL);
        row[count++] = whole(total - (double)world->node_used[i], LAB_METRIC_NODE_FREE);
        row[count++] = whole(100 * load, LAB_METRIC_NODE_UTILIZATION);
    }
    int64_t cpu = whole(cores > 0 ? 100 * busy / cores : 0, LAB_METRIC_CPU_UTILIZATION);
    keep(world, ENTITY_CPU, &cpu, 1);
    keep(world, ENTITY_NUMA, row, count);
    world->neighbour_s = 0;
}

static void keep_all(struct sim_world *world) {
    double time_s = 1e-9 * (double)(world->time_ns - world->last_tick_ns);
    if (time_s <= 0)
        return;
    for (int i = 0; i < world->device_count; i++)
        keep_gpu(world, world->devices[i], time_s);
    keep_host(world, time_s);
    world->last_tick_ns = world->time_ns;
}

void sim_sample_tick(struct sim_world *world) {
    keep_all(world);
    bool young = world->time_ns - world->start_ns < SHORT_FOR_NS;
    world->tick_ns += young ? TICK_SHORT_NS : TICK_LONG_NS;
}

/* --- handing over --- */

static void tell_gpu(const struct sim_world *world, int unit, const struct lab_sink_samples *sink) {
    const struct sim_machine *machine = world->machine;
    const struct sim_gpu *gpu = &machine->gpus[unit];
    struct lab_column columns[GPU_COLUMNS];
    char id[256];
    for (int i = 0; i < GPU_COLUMNS; i++)
        columns[i] = (struct lab_column){(int16_t)gpu_metrics[i], -1};
    snprintf(id, sizeof id, "sim:%s:%d", machine->name, unit);
    sink->entity(sink->state, ENTITY_GPUS + unit,
                 &(struct lab_entity){.kind = LAB_ENTITY_GPU,
                                      .index = unit,
                                      .id = id,
                                      .name = gpu->model->name,
                                      .pci = machine->shown->pci[unit].address,
                                      .node = (int)machine->nodes[gpu->node].number,
                                      .parent = -1,
                                      .simulated = true,
                                      .columns = columns,
                                      .column_count = GPU_COLUMNS});
}

static void tell_host(const struct sim_world *world, int entity,
                      const struct lab_sink_samples *sink) {
    static const enum lab_metric_id metrics[NODE_METRICS] = {
        LAB_METRIC_NODE_TOTAL, LAB_METRIC_NODE_FREE, LAB_METRIC_NODE_UTILIZATION};
    const struct sim_machine *machine = world->machine;
    struct lab_column columns[COLUMNS_MAX] = {{LAB_METRIC_CPU_UTILIZATION, -1}};
    int count = 1;
    if (entity == ENTITY_NUMA) {
        count = NODE_METRICS * machine->node_count;
        for (int i = 0; i < count; i++)
            columns[i] = (struct lab_column){(int16_t)metrics[i % NODE_METRICS],
                                             (int16_t)machine->nodes[i / NODE_METRICS].number};
    }
    sink->entity(
        sink->state, entity,
        &(struct lab_entity){.kind = entity == ENTITY_CPU ? LAB_ENTITY_CPU : LAB_ENTITY_NUMA,
                             .id = entity == ENTITY_CPU ? "cpu" : "numa",
                             .name = entity == ENTITY_CPU ? machine->cpu : "NUMA nodes",
                             .pci = "",
                             .node = -1,
                             .parent = -1,
                             .simulated = true,
                             .columns = columns,
                             .column_count = count});
}

static void tell_row(struct sim_world *world, const struct row *row,
                     const struct lab_sink_samples *sink) {
    struct sim_rows *rows = world->rows;
    uint64_t valid[LAB_VALID_WORDS(COLUMNS_MAX)] = {0};
    if (!rows->told[row->entity]) {
        if (row->entity < ENTITY_GPUS)
            tell_host(world, row->entity, sink);
        else
            tell_gpu(world, row->entity - ENTITY_GPUS, sink);
        rows->told[row->entity] = true;
    }
    for (int i = 0; i < row->column_count; i++)
        lab_valid_set(valid, i);
    sink->tick(sink->state, &(struct lab_tick){.entity = row->entity,
                                               .time_ns = row->time_ns,
                                               .cost_ns = -1,
                                               .values = rows->values + row->values,
                                               .valid = valid});
}

void sim_samples(struct lab_device *base, const struct lab_sink_samples *sink) {
    struct sim_world *world = ((struct sim_device *)base)->world;
    LAB_AUTO_LOCK(&world->lock);
    keep_all(world); /* up to now, so that a run's end isn't cut off */
    memset(world->rows->told, 0, sizeof world->rows->told);
    for (int i = 0; i < world->rows->count; i++)
        tell_row(world, &world->rows->rows[i], sink);
    world->rows->count = world->rows->value_count = 0;
}
