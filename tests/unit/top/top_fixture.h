/*
 * top_fixture.h: recordings made by hand for the tests of `top`: so many GPUs, a minute and a half
 * of values that follow simple curves, two NUMA nodes, processes in right and wrong places.
 */
#pragma once

#include "top/top.h"

#include <math.h>

#define TOP_SECOND_NS 1000000000LL
#define TOP_BEGIN_NS  (1000 * TOP_SECOND_NS)
#define TOP_WALL_NS   1794739323000000000LL /* 2026-11-15 10:42:03 UTC, at TOP_BEGIN_NS */

struct top_fixture {
    struct lab_arena arena;
    struct lab_recording recording;
    int64_t interval_ns;
    int ticks;
};

typedef int64_t top_curve(int64_t base, int tick);

static inline int64_t curve_flat(int64_t base, int tick) {
    (void)tick;
    return base;
}

/* A slow wave between half of the base and all of it. */
static inline int64_t curve_wave(int64_t base, int tick) {
    return base / 4 * 3 + (int64_t)((double)base / 4 * sin(tick / 9.0));
}

static inline int64_t curve_ramp(int64_t base, int tick) {
    return base * tick;
}

static inline int64_t curve_steps(int64_t base, int tick) {
    return tick / 20 % 2 ? base : base / 5;
}

struct top_series {
    enum lab_metric_id metric;
    int instance;
    int64_t base;
    top_curve *curve;
    int every; /* ticks between readings */
};

static inline struct lab_track *top_fixture_track(struct top_fixture *f, struct lab_entity entity,
                                                  const struct top_series *series, int count) {
    struct lab_arena *arena = &f->arena;
    struct lab_track *tracks =
        lab_arena_alloc(arena, (size_t)f->recording.track_count + 1, sizeof *tracks);
    if (f->recording.track_count)
        memcpy(tracks, f->recording.tracks, (size_t)f->recording.track_count * sizeof *tracks);
    f->recording.tracks = tracks;
    struct lab_track *track = &tracks[f->recording.track_count++];
    struct lab_column *columns = lab_arena_alloc(arena, (size_t)count, sizeof *columns);
    track->entity = entity;
    track->entity.columns = columns;
    track->entity.column_count = count;
    track->count = (size_t)f->ticks;
    track->times_ns = lab_arena_alloc(arena, track->count, sizeof *track->times_ns);
    track->values = lab_arena_alloc(arena, (size_t)count, sizeof *track->values);
    track->valid = lab_arena_alloc(arena, (size_t)count, sizeof *track->valid);
    for (int t = 0; t < f->ticks; t++)
        track->times_ns[t] = TOP_BEGIN_NS + t * f->interval_ns;
    for (int c = 0; c < count; c++) {
        columns[c] = (struct lab_column){(int16_t)series[c].metric, (int16_t)series[c].instance};
        track->values[c] = lab_arena_alloc(arena, track->count, sizeof **track->values);
        track->valid[c] = lab_arena_alloc(arena, track->count, sizeof **track->valid);
        for (int t = 0; t < f->ticks; t += series[c].every) {
            track->values[c][t] = series[c].curve(series[c].base, t);
            track->valid[c][t] = 1;
        }
    }
    return track;
}

static inline void top_fixture_gpu(struct top_fixture *f, int index, int node, bool simulated) {
    int64_t gib = 1024 * 1024, busy = 100 - 6 * index;
    const struct top_series series[] = {
        {LAB_METRIC_UTILIZATION, -1, busy, curve_wave, 1},
        {LAB_METRIC_MEMORY_USED, -1, 120 * gib - 7 * index * gib, curve_steps, 1},
        {LAB_METRIC_MEMORY_TOTAL, -1, 141 * gib, curve_flat, 1000},
        {LAB_METRIC_POWER, -1, 690000 - 20000 * index, curve_wave, 1},
        {LAB_METRIC_POWER_LIMIT, -1, 700000, curve_flat, 2},
        {LAB_METRIC_TEMPERATURE, -1, 70 - index, curve_wave, 1},
        {LAB_METRIC_MEMORY_TEMPERATURE, -1, 84 - index, curve_wave, 2},
        {LAB_METRIC_SM_CLOCK, -1, 1980, curve_flat, 1},
        {LAB_METRIC_MEMORY_CLOCK, -1, 3201, curve_flat, 1},
        {LAB_METRIC_CLOCK_REASONS, -1,
         index == 0   ? 0x4
         : index == 1 ? 0x1
                      : 0,
         curve_flat, 1},
        {LAB_METRIC_PERFORMANCE_STATE, -1, 0, curve_flat, 1},
        {LAB_METRIC_SM_ACTIVE, -1, busy * 90, curve_wave, 1},
        {LAB_METRIC_TENSOR_ACTIVE, -1, busy * 50, curve_wave, 1},
        {LAB_METRIC_DRAM_ACTIVE, -1, busy * 70, curve_steps, 1},
        {LAB_METRIC_PCIE_RX_RATE, -1, 12000000, curve_steps, 1},
        {LAB_METRIC_PCIE_TX_RATE, -1, 900000, curve_wave, 1},
        {LAB_METRIC_NVLINK_RX_RATE, -1, 180000000, curve_wave, 1},
        {LAB_METRIC_NVLINK_TX_RATE, -1, 170000000, curve_wave, 1},
        {LAB_METRIC_ENERGY, -1, 300000, curve_ramp, 2},
        {LAB_METRIC_PCIE_GENERATION, -1, 5, curve_flat, 1000},
        {LAB_METRIC_PCIE_WIDTH, -1, 16, curve_flat, 1000},
        {LAB_METRIC_ECC_CORRECTED, -1, 3, curve_flat, 2},
        {LAB_METRIC_ECC_UNCORRECTED, -1, 0, curve_flat, 2},
        {LAB_METRIC_XIDS, -1, index == 2 ? 2 : 0, curve_flat, 2},
        {LAB_METRIC_LAST_XID, -1, index == 2 ? 79 : 0, curve_flat, 2},
        {LAB_METRIC_THROTTLED_POWER, -1, index == 0 ? 250000 : 0, curve_ramp, 2},
    };
    top_fixture_track(f,
                      (struct lab_entity){
                          .kind = LAB_ENTITY_GPU,
                          .index = index,
                          .id = lab_arena_printf(&f->arena, "GPU-5f0c91%02d", index),
                          .name = "NVIDIA H200",
                          .pci = lab_arena_printf(&f->arena, "0000:%02x:00.0", 0x1b + 0x10 * index),
                          .node = node,
                          .parent = -1,
                          .simulated = simulated,
                      },
                      series, sizeof series / sizeof *series);
    f->recording.simulated |= simulated;
}

static inline void top_fixture_mig(struct top_fixture *f, int parent, int index) {
    int64_t gib = 1024 * 1024;
    const struct top_series series[] = {
        {LAB_METRIC_MEMORY_USED, -1, (3 + index) * gib, curve_flat, 1},
        {LAB_METRIC_MEMORY_TOTAL, -1, 16 * gib, curve_flat, 1000},
        {LAB_METRIC_SM_ACTIVE, -1, 4000 + 1000 * index, curve_wave, 1},
    };
    top_fixture_track(f,
                      (struct lab_entity){.kind = LAB_ENTITY_MIG,
                                          .index = index,
                                          .id = lab_arena_printf(&f->arena, "MIG-%d", index),
                                          .name = "1g.18gb",
                                          .pci = "",
                                          .node = 0,
                                          .parent = parent},
                      series, sizeof series / sizeof *series);
}

static inline void top_fixture_host(struct top_fixture *f, int cores, int nodes) {
    int64_t gib = 1024 * 1024;
    struct top_series cpu[64] = {
        {LAB_METRIC_CPU_UTILIZATION, -1, 4200, curve_wave, 1},
        {LAB_METRIC_CPU_SYSTEM, -1, 600, curve_wave, 1},
        {LAB_METRIC_CPU_STEAL, -1, 0, curve_flat, 1},
        {LAB_METRIC_CPU_FREQUENCY, -1, 2900, curve_wave, 1},
        {LAB_METRIC_LOAD, -1, 1230, curve_flat, 1},
        {LAB_METRIC_PRESSURE_CPU, -1, 310, curve_flat, 2},
        {LAB_METRIC_PRESSURE_MEMORY, -1, 0, curve_flat, 2},
        {LAB_METRIC_PRESSURE_IO, -1, 120, curve_flat, 2},
    };
    int count = 8;
    for (int i = 0; i < cores && count < 64; i++)
        cpu[count++] = (struct top_series){LAB_METRIC_CORE_UTILIZATION, i, i * 1000 / (cores - 1),
                                           curve_flat, 1};
    const struct top_series memory[] = {
        {LAB_METRIC_HOST_TOTAL, -1, 504 * gib, curve_flat, 1},
        {LAB_METRIC_HOST_USED, -1, 131 * gib, curve_wave, 1},
    };
    struct top_series numa[64];
    int numa_count = 0;
    for (int i = 0; i < nodes; i++) {
        numa[numa_count++] =
            (struct top_series){LAB_METRIC_NODE_TOTAL, i, 252 * gib, curve_flat, 1};
        numa[numa_count++] =
            (struct top_series){LAB_METRIC_NODE_FREE, i, (180 + 20 * i) * gib, curve_flat, 1};
        numa[numa_count++] =
            (struct top_series){LAB_METRIC_NODE_UTILIZATION, i, 6000 - 4000 * i, curve_wave, 1};
        numa[numa_count++] = (struct top_series){LAB_METRIC_NODE_HIT, i, 1000, curve_ramp, 1};
        numa[numa_count++] =
            (struct top_series){LAB_METRIC_NODE_OTHER, i, i ? 400 : 5, curve_ramp, 1};
    }
    top_fixture_track(f,
                      (struct lab_entity){.kind = LAB_ENTITY_CPU,
                                          .id = "cpu",
                                          .pci = "",
                                          .name = "AMD EPYC 9534 64-Core",
                                          .node = -1,
                                          .parent = -1},
                      cpu, count);
    top_fixture_track(f,
                      (struct lab_entity){.kind = LAB_ENTITY_MEMORY,
                                          .id = "memory",
                                          .pci = "",
                                          .name = "memory",
                                          .node = -1,
                                          .parent = -1},
                      memory, 2);
    top_fixture_track(f,
                      (struct lab_entity){.kind = LAB_ENTITY_NUMA,
                                          .id = "numa",
                                          .pci = "",
                                          .name = "NUMA nodes",
                                          .node = -1,
                                          .parent = -1},
                      numa, numa_count);
}

/* One list, from the begin on: a trainer on two GPUs with its loaders, one on the wrong node,
 * others. */
static inline void top_fixture_processes(struct top_fixture *f, int gpus) {
    int64_t gib = 1024 * 1024 * 1024LL;
    struct lab_process_sample *items = lab_arena_alloc(&f->arena, 8, sizeof *items);
    struct lab_process_gpu *on = lab_arena_alloc(&f->arena, 8, sizeof *on);
    int64_t *bytes = lab_arena_alloc(&f->arena, 2, sizeof *bytes);
    on[0] = (struct lab_process_gpu){0, 58 * gib, 88, 40, true, false};
    on[1] = (struct lab_process_gpu){gpus > 1 ? 1 : 0, 55 * gib, 84, 38, true, false};
    on[2] = (struct lab_process_gpu){gpus > 2 ? 2 : 0, 31 * gib, 61, 22, true, false};
    on[3] = (struct lab_process_gpu){gpus > 3 ? 3 : 0, 512 * gib / 1024, NAN, NAN, false, true};
    bytes[0] = 9 * gib;
    bytes[1] = gib / 4;
    static const struct lab_process_sample base = {.user = "learn",
                                                   .name = "python3",
                                                   .command = "",
                                                   .container = "",
                                                   .advice = "",
                                                   .threads = 12,
                                                   .cpu_node = 0,
                                                   .allowed_nodes = 3};
    for (int i = 0; i < 6; i++)
        items[i] = base;
    items[0].pid = 4100, items[0].parent_pid = 4000, items[0].start = 77;
    items[0].command = "python3 train.py --model vit-large --batch 64";
    items[0].cpu_percent = 164, items[0].memory_bytes = 21 * gib;
    items[0].gpus = on, items[0].gpu_count = gpus > 1 ? 2 : 1;
    items[0].placement = LAB_PLACEMENT_LOCAL;
    items[1].pid = 4377, items[1].parent_pid = 1, items[1].user = "web";
    items[1].command = "python3 -m serve --port 8000", items[1].container = "9f2c1d";
    items[1].cpu_percent = 37, items[1].memory_bytes = 9 * gib;
    items[1].gpus = on + 2, items[1].gpu_count = 1;
    items[1].placement = LAB_PLACEMENT_BOTH, items[1].node_bytes = bytes, items[1].node_count = 2;
    items[1].advice = "taskset -acp 32-63 4377 && migratepages 4377 0 1";
    items[2].pid = 2210, items[2].parent_pid = 1, items[2].user = "root", items[2].name = "Xorg";
    items[2].command = "/usr/lib/xorg/Xorg :0", items[2].cpu_percent = 1.2;
    items[2].memory_bytes = gib / 8, items[2].gpus = on + 3, items[2].gpu_count = 1;
    items[2].placement = LAB_PLACEMENT_LOOSE, items[2].threads = 1;
    items[3].pid = 4000, items[3].parent_pid = 1, items[3].name = "bash", items[3].command = "bash";
    items[3].cpu_percent = 0, items[3].memory_bytes = gib / 256;
    items[4].pid = 4101, items[4].parent_pid = 4100, items[4].command = "python3 loader 0";
    items[4].cpu_percent = 93, items[4].memory_bytes = 2 * gib;
    items[5].pid = 4102, items[5].parent_pid = 4100, items[5].command = "python3 loader 1";
    items[5].cpu_percent = NAN, items[5].memory_bytes = 2 * gib;
    for (int i = 3; i < 6 || (gpus == 0 && i < 6); i++)
        items[i].placement = LAB_PLACEMENT_UNKNOWN;
    for (int i = 0; gpus == 0 && i < 6; i++)
        items[i].gpu_count = 0, items[i].advice = "", items[i].placement = LAB_PLACEMENT_ONE_NODE;
    f->recording.processes = lab_arena_alloc(&f->arena, 1, sizeof *f->recording.processes);
    f->recording.processes[0] =
        (struct lab_process_list){TOP_BEGIN_NS + TOP_SECOND_NS, items, 6, 0};
    f->recording.process_count = 1;
}

/* The GPUs come first, so that a GPU's entity is its index; half of them on each node. */
static inline void top_fixture_init(struct top_fixture *f, int gpus, bool simulated) {
    *f = (struct top_fixture){.interval_ns = TOP_SECOND_NS / 2, .ticks = 180};
    lab_arena_init(&f->arena);
    f->recording = (struct lab_recording){.path = "runs/monday.db",
                                          .label = "monday",
                                          .maker = "gpulab",
                                          .interval_ns = f->interval_ns};
    for (int i = 0; i < gpus; i++)
        top_fixture_gpu(f, i, gpus > 1 && i >= gpus / 2, simulated);
    top_fixture_host(f, 32, gpus ? 2 : 1);
    top_fixture_processes(f, gpus);
    f->recording.epochs = lab_arena_alloc(&f->arena, 1, sizeof *f->recording.epochs);
    f->recording.epochs[0] =
        (struct lab_recording_epoch){TOP_BEGIN_NS, TOP_WALL_NS - TOP_BEGIN_NS, "node7", ""};
    f->recording.epoch_count = 1;
}

static inline void top_fixture_release(struct top_fixture *f) {
    lab_arena_release(&f->arena);
}

/* From a tick on the entity gives nothing; the event says why. */
static inline void top_fixture_gap(struct top_fixture *f, int entity, int tick, const char *why) {
    struct lab_track *track = &f->recording.tracks[entity];
    for (int c = 0; c < track->entity.column_count; c++)
        for (size_t t = (size_t)tick; t < track->count; t++)
            track->valid[c][t] = 0;
    f->recording.events = lab_arena_alloc(&f->arena, 1, sizeof *f->recording.events);
    f->recording.events[0] = (struct lab_sample_event){
        .time_ns = track->times_ns[tick] + 1, .entity = entity, .kind = LAB_EVENT_GAP, .text = why};
    f->recording.event_count = 1;
}

static inline struct lab_top_view top_fixture_view(const struct top_fixture *f, int columns,
                                                   int rows) {
    struct lab_top_view view = {.columns = columns,
                                .rows = rows,
                                .unicode = true,
                                .source = "node7",
                                .speed = 1,
                                .wall_offset_ns = TOP_WALL_NS - TOP_BEGIN_NS};
    lab_top_recording_span(&f->recording, &view.begin_ns, &view.end_ns);
    view.now_ns = view.end_ns;
    return view;
}

static inline struct lab_top_history *top_fixture_history(const struct top_fixture *f,
                                                          const struct lab_machine *machine) {
    struct lab_top_setup setup = {.interval_ns = f->interval_ns, .machine = machine};
    struct lab_top_history *history = lab_top_history_open(&setup);
    lab_top_history_load(history, &f->recording, TOP_BEGIN_NS + f->ticks * f->interval_ns);
    return history;
}

static inline void draw(const struct lab_top_history *history, const struct lab_top_view *view,
                        struct lab_str *out) {
    struct lab_top_grid grid;
    lab_top_grid_init(&grid);
    lab_str_clear(out);
    lab_top_draw(history, view, &grid);
    lab_top_grid_write(&grid, out);
    lab_top_grid_release(&grid);
}
