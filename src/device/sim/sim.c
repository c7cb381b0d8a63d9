/*
 * sim.c: the sim backend: GPUs of machines that exist as descriptions alone. Nothing is computed;
 * all times are a model's. For planning, for teaching, and for tests of what analyses find.
 */
#include "device/sim/sim.h"
#include "device/sum.h"

#include <assert.h>
#include <math.h>

/* A write to a device's registers over the links between sockets, for each step of distance. */
#define FAR_S 0.02e-6

static bool sim_supports(const struct lab_device *base, enum lab_op_id op, enum lab_dtype dtype) {
    (void)op;
    return ((const struct sim_device *)base)->gpu->model->tflops[dtype] > 0;
}

/* The others' time goes on without it. */
static void sim_leave(struct lab_device *base) {
    sim_world_leave((struct sim_device *)base);
}

static void sim_close(struct lab_device *base) {
    struct sim_device *device = (struct sim_device *)base;
    assert(device->buffers.count == 0 && "all buffers are closed");
    if (device->world)
        sim_world_leave(device);
    for (int i = 0; i < device->stream_count; i++)
        sim_stream_free(device->streams[i]);
    lab_mem_free(device->streams);
    lab_mem_free(device->buffers.items);
    lab_trace_log_free(base);
    lab_arena_release(&device->arena);
    lab_mem_free(device);
}

/* The slowest link on the way from the device's own node, with nobody else on it. */
static double link_bytes_per_s(const struct sim_device *device, bool to_device) {
    struct sim_route route;
    double least = INFINITY;
    sim_route(device->machine, device->gpu->node, device->unit, to_device, &route);
    for (int i = 0; i < route.count; i++)
        least = fmin(least, 1e9 * device->machine->links[route.hops[i].link].bandwidth_gb_s);
    return least;
}

static int sim_limits(struct lab_device *base, enum lab_dtype dtype,
                      struct lab_device_limits *ret_limits, struct lab_err *err) {
    (void)err;
    const struct sim_device *device = (const struct sim_device *)base;
    const struct sim_model *model = device->gpu->model;
    *ret_limits = (struct lab_device_limits){.flops_per_s = 1e12 * model->tflops[dtype],
                                             .memory_bytes_per_s = 1e9 * model->memory_gb_s,
                                             .h2d_bytes_per_s = link_bytes_per_s(device, true),
                                             .d2h_bytes_per_s = link_bytes_per_s(device, false),
                                             .how = "from the simulated machine's description"};
    return 0;
}

static double sim_clock_mhz(struct lab_device *base) {
    struct sim_device *device = (struct sim_device *)base;
    LAB_AUTO_LOCK(&device->world->lock);
    return device->condition.clock_mhz;
}

static double sim_device_power_w(struct lab_device *base) {
    struct sim_device *device = (struct sim_device *)base;
    LAB_AUTO_LOCK(&device->world->lock);
    return device->condition.power_w;
}

static void sim_op_times(const struct lab_device *base,
                         struct lab_op_time ret_times[LAB_OP_COUNT]) {
    const struct sim_device *device = (const struct sim_device *)base;
    for (int op = 0; op < LAB_OP_COUNT; op++)
        ret_times[op] = device->op_times[op];
}

static int sim_trace_end(struct lab_device *base, struct lab_arena *arena,
                         struct lab_trace *ret_trace, struct lab_err *err) {
    const struct sim_device *device = (const struct sim_device *)base;
    const struct sim_model *model = device->gpu->model;
    return lab_trace_log_end(
        base,
        &(struct lab_trace_gpu){
            .device = device->unit,
            .name = lab_arena_printf(arena, "%s (simulated)", model->name),
            .pci_bus = lab_arena_strdup(arena, device->machine->shown->pci[device->unit].address),
            .compute_units = (int32_t)model->units,
            .memory_bytes = base->info.memory_bytes,
            .memory_bytes_per_s = 1e9 * model->memory_gb_s,
        },
        0, "simulation", arena, ret_trace, err);
}

static const char *sim_share_note(const struct lab_device *base) {
    return ((const struct sim_device *)base)->whole_batch
               ? "each GPU takes the whole batch's time, so several can't be faster"
               : NULL;
}

static const struct lab_device_ops device_ops = {
    .close = sim_close,
    .leave = sim_leave,
    .limits = sim_limits,
    .op_times = sim_op_times,
    .clock_mhz = sim_clock_mhz,
    .power_w = sim_device_power_w,
    .share_note = sim_share_note,
    .buffer_open = sim_buffer_open,
    .buffer_close = sim_buffer_close,
    .stream_open = sim_stream_open,
    .stream_close = sim_stream_close,
    .stream_sync = sim_stream_sync,
    .copy = sim_copy,
    .copy_peer = sim_copy_peer,
    .launch = sim_launch,
    .supports = sim_supports,
    .event_open = sim_event_open,
    .event_close = sim_event_close,
    .event_record = sim_event_record,
    .event_wait = sim_event_wait,
    .event_sync = sim_event_sync,
    .event_time = sim_event_time,
    .graph_begin = sim_graph_begin,
    .graph_end = sim_graph_end,
    .graph_launch = sim_graph_launch,
    .graph_close = sim_graph_close,
    .trace_begin = lab_trace_log_begin,
    .trace_end = sim_trace_end,
    .rest = sim_world_rest,
    .wake = sim_world_wake,
    .samples = sim_samples,
};

/* --- the clock: the host's own --- */

static int64_t clock_now(const struct lab_clock *clock) {
    return ((const struct sim_device *)clock->state)->host.time_ns;
}

static void clock_sleep_until(const struct lab_clock *clock, int64_t time_ns) {
    struct sim_device *device = clock->state;
    if (time_ns > device->host.time_ns)
        device->host.time_ns = time_ns;
}

/* --- opening --- */

static int sim_open(const struct lab_machine *here, const struct lab_device_ref *ref,
                    struct lab_device_setup setup, struct lab_device **ret_device,
                    struct lab_err *err) {
    (void)here;
    struct sim_device *device = lab_mem_alloc(1, sizeof *device);
    lab_arena_init(&device->arena);
    device->base.ops = &device_ops;
    device->base.ref = lab_device_ref_copy(ref, &device->arena);
    device->unit = ref->unit;
    if (sim_world_join(device, &setup, err) < 0) {
        sim_close(&device->base);
        return -1;
    }
    const struct sim_model *model = device->gpu->model;
    device->base.machine = device->base.ref.machine = device->machine->shown;
    device->base.ref.definition = device->machine->definition;
    device->clock = (struct lab_clock){clock_now, clock_sleep_until, device};
    device->base.clock = &device->clock;
    int number = setup.host_node < 0 ? (int)device->machine->unbound_node : setup.host_node;
    int host_node = lab_machine_node_index(device->machine->shown, number);
    device->host_node = host_node < 0 ? device->gpu->node : host_node;
    int distance =
        lab_machine_distance(device->machine->shown, device->host_node, device->gpu->node);
    device->far_s = FAR_S * (distance - 10);
    device->base.info = (struct lab_device_info){
        .compute_units = (int)model->units,
        .arithmetic = "simulated: times from a model, no results",
        .overlaps = true,
        .memory_bytes = ref->memory_bytes,
    };
    *ret_device = &device->base;
    return 0;
}

static const char *sim_why_together(struct lab_arena *arena) {
    return lab_arena_strdup(arena, "simulated devices share one process");
}

static const struct lab_sum_kind *const sums[] = {&sim_sum_nvlink, NULL};

const struct lab_backend lab_backend_sim = {
    .name = "sim",
    .help =
        "GPUs of a simulated machine (sim:l40s-10), one of them (sim:l40s-10:3), or of a machine "
        "in a file (sim:./mine.yaml); never taken by auto",
    .rank = -1,
    .select = sim_select,
    .open = sim_open,
    .health = sim_health,
    .why_together = sim_why_together,
    .sums = sums,
};
