/*
 * engine.c: from event to event. At each time, what can start starts; then time jumps to where the
 * next thing ends or comes, and what has ended is taken off. Streams are looked at in a fixed
 * order, so that ties are broken the same way every time.
 */
#include "device/sim/sim.h"

#include <math.h>

/* Less than this is left of a flow by rounding alone. */
#define BYTES_EPSILON 1e-3
#define NEVER_NS      INT64_MAX

bool sim_point_is_passed(struct sim_point point) {
    return !point.stream || point.stream->done >= point.position;
}

static struct sim_command *head_of(const struct sim_stream *stream) {
    return &stream->queue[stream->head];
}

static int64_t later(int64_t now_ns, double seconds) {
    return now_ns + (int64_t)ceil(seconds * 1e9);
}

static void pop(struct sim_stream *stream) {
    stream->head = (stream->head + 1) % stream->capacity;
    stream->count--;
    stream->done++;
    stream->busy = SIM_IDLE;
}

/* --- what commands cost --- */

static double minutes_since(const struct sim_world *world) {
    return (double)(world->time_ns - world->start_ns) / 60e9;
}

/* Longer than the model says, by what is planted and by chance. */
static double factor_of(struct sim_device *device, bool copy) {
    const struct sim_gpu *gpu = device->gpu;
    const struct sim_world *world = device->world;
    double planted = (1 + (copy ? gpu->slow_copy : gpu->slow_compute)) *
                     fmax(0.1, 1 + gpu->drift_per_minute * minutes_since(world));
    return planted *
           sim_chance_factor(&device->chance, &world->machine->noise, copy, world->time_ns);
}

/* Planted, by size, straight lines between the logarithms of the sizes given. */
static double remote_slowdown(const struct sim_machine *machine, double bytes) {
    const struct sim_remote *at = machine->remotes;
    double kb = bytes / 1000;
    int count = machine->remote_count;
    if (count == 0)
        return 0;
    if (kb <= at[0].size_kb)
        return at[0].slowdown;
    for (int i = 1; i < count; i++)
        if (kb <= at[i].size_kb)
            return at[i - 1].slowdown + (at[i].slowdown - at[i - 1].slowdown) *
                                            log(kb / at[i - 1].size_kb) /
                                            log(at[i].size_kb / at[i - 1].size_kb);
    return at[count - 1].slowdown;
}

static double remoteness(const struct sim_machine *machine, int distance) {
    int farthest = 10;
    for (int i = 0; i < machine->node_count * machine->node_count; i++)
        farthest = machine->distances[i] > farthest ? machine->distances[i] : farthest;
    return farthest > 10 ? (double)(distance - 10) / (farthest - 10) : 0;
}

static void start_launch(struct sim_stream *stream, const struct sim_command *command) {
    struct sim_device *device = stream->device;
    const struct sim_model *model = device->gpu->model;
    const struct lab_cost *cost = &command->launch.cost;
    double clock = device->condition.clock_mhz / model->clock_mhz;
    const struct sim_world *world = device->world;
    double compute_s = (1 + world->longer_compute) * cost->flops /
                       (1e12 * model->tflops[command->launch.dtype] * clock);
    double memory_s = (1 + world->longer_memory) * (cost->bytes_read + cost->bytes_written) /
                      (1e9 * model->memory_gb_s);
    double fixed_s = 1e-6 * (command->graph_node ? model->graph_kernel_us : model->kernel_us);
    double whole_s = (fixed_s + fmax(compute_s, memory_s)) * factor_of(device, false);
    double stall_s =
        sim_chance_stall_s(&device->chance, &device->machine->noise, device->world->time_ns);
    stream->busy = SIM_COMPUTING;
    stream->start_ns = device->world->time_ns;
    stream->end_ns = later(stream->start_ns, whole_s + stall_s);
    stream->compute = fmin(1, compute_s / (whole_s + stall_s));
    stream->memory = fmin(1, memory_s / (whole_s + stall_s));
    device->computing++;
}

double sim_peer_bytes_per_s(const struct sim_machine *machine, int from, int to) {
    const struct sim_gpu *a = &machine->gpus[from], *b = &machine->gpus[to];
    double nvlink = fmin(a->model->nvlink_gb_s, b->model->nvlink_gb_s);
    bool dead = (a->fault.dead >> (unsigned)to & 1) || (b->fault.dead >> (unsigned)from & 1);
    return 1e9 * (nvlink > 0 && !dead
                      ? nvlink
                      : fmin(machine->links[sim_slot_link(machine, from)].bandwidth_gb_s,
                             machine->links[sim_slot_link(machine, to)].bandwidth_gb_s));
}

/* Which way, and over which links; on the device alone, or on the host alone, over none but
 * memory. */
static void route_copy(struct sim_stream *stream, const struct sim_command *command) {
    struct sim_device *device = stream->device;
    const struct sim_machine *machine = device->machine;
    const struct sim_model *model = device->gpu->model;
    bool pageable = command->copy.to_kind == LAB_MEMORY_HOST_PAGEABLE ||
                    command->copy.from_kind == LAB_MEMORY_HOST_PAGEABLE;
    stream->route = (struct sim_route){.distance = 10};
    stream->flow = (struct sim_flow){.route = &stream->route,
                                     .most_bytes_per_s =
                                         pageable ? 1e9 * model->pageable_gb_s : (double)INFINITY};
    if (command->copy.peer_bytes_per_s > 0) {
        stream->flow.most_bytes_per_s = command->copy.peer_bytes_per_s;
    } else if (stream->to_device && stream->from_device) { /* read and written */
        stream->flow.most_bytes_per_s = 0.5e9 * model->memory_gb_s;
    } else if (stream->to_device || stream->from_device) {
        sim_route(machine, command->copy.node, device->unit, stream->to_device, &stream->route);
    } else {
        stream->route.hops[stream->route.count++] =
            (struct sim_hop){sim_memory_link(machine, command->copy.node), 0};
    }
}

static void start_copy(struct sim_stream *stream, const struct sim_command *command) {
    struct sim_device *device = stream->device;
    const struct sim_machine *machine = device->machine;
    route_copy(stream, command);
    double remote =
        remote_slowdown(machine, command->copy.bytes) * remoteness(machine, stream->route.distance);
    double factor = factor_of(device, true) * (1 + remote);
    double stall_s = sim_chance_stall_s(&device->chance, &machine->noise, device->world->time_ns);
    stream->flow.bytes_left = command->copy.bytes * factor;
    stream->busy = SIM_STARTING;
    stream->start_ns = device->world->time_ns;
    stream->end_ns = later(stream->start_ns,
                           (stream->route.latency_s + command->copy.fixed_s) * factor + stall_s);
    device->copies_to += stream->to_device;
    device->copies_from += !stream->to_device;
}

/* --- what can start --- */

/* Half of the engines serve each direction; a single one serves both in turn. */
static bool has_engine(const struct sim_device *device, bool to_device) {
    int engines = (int)device->gpu->model->copy_engines;
    int each = engines > 1 ? engines / 2 : 1;
    if (device->copies_to + device->copies_from >= engines)
        return false;
    return (to_device ? device->copies_to : device->copies_from) < each;
}

static bool same_queue(const struct sim_stream *a, const struct sim_stream *b) {
    return head_of(a)->kind == head_of(b)->kind &&
           (head_of(a)->kind != SIM_COPY || a->to_device == b->to_device ||
            a->device->gpu->model->copy_engines == 1);
}

/* Who was ready first goes first. */
static bool is_first(const struct sim_stream *stream) {
    const struct sim_device *device = stream->device;
    for (int i = 0; i < device->stream_count; i++) {
        const struct sim_stream *other = device->streams[i];
        if (other == stream || other->busy != SIM_WAITING || !same_queue(stream, other))
            continue;
        if (other->ready_ns < stream->ready_ns ||
            (other->ready_ns == stream->ready_ns && other->index < stream->index))
            return false;
    }
    return true;
}

static void become_ready(struct sim_stream *stream) {
    const struct sim_command *command = head_of(stream);
    if (stream->busy != SIM_IDLE)
        return;
    stream->busy = SIM_WAITING;
    stream->ready_ns = stream->device->world->time_ns;
    if (command->kind == SIM_COPY) {
        stream->to_device = command->copy.to_kind == LAB_MEMORY_DEVICE;
        stream->from_device = command->copy.from_kind == LAB_MEMORY_DEVICE;
    }
}

/* Whether anything happened to the command at the stream's head. */
static bool try_start(struct sim_stream *stream) {
    struct sim_device *device = stream->device;
    if (stream->count == 0 || stream->busy > SIM_WAITING ||
        head_of(stream)->issue_ns > device->world->time_ns)
        return false;
    const struct sim_command *command = head_of(stream);
    switch (command->kind) {
    case SIM_RECORD:
        sim_event_pass(command->mark.event, command->mark.number, device->world->time_ns);
        pop(stream);
        return true;
    case SIM_WAIT:
        if (!sim_point_is_passed(command->mark.point))
            return false;
        pop(stream);
        return true;
    case SIM_LAUNCH:
        if (device->computing > 0 || !is_first(stream))
            return false;
        start_launch(stream, command);
        return true;
    case SIM_COPY:
        if (!has_engine(device, stream->to_device) || !is_first(stream))
            return false;
        start_copy(stream, command);
        return true;
    }
    return false;
}

static void start_all(struct sim_world *world) {
    for (bool changed = true; changed;) {
        changed = false;
        /* all that are ready are known before one is chosen */
        for (int i = 0; i < world->device_count; i++)
            for (int k = 0; k < world->devices[i]->stream_count; k++) {
                struct sim_stream *stream = world->devices[i]->streams[k];
                if (stream->count > 0 && head_of(stream)->issue_ns <= world->time_ns)
                    become_ready(stream);
            }
        for (int i = 0; i < world->device_count; i++)
            for (int k = 0; k < world->devices[i]->stream_count; k++)
                changed |= try_start(world->devices[i]->streams[k]);
    }
}

/* --- what ends --- */

static void share_links(struct sim_world *world) {
    struct sim_flow *flows[SIM_GPUS_MAX * 16];
    int count = 0, most = (int)(sizeof flows / sizeof *flows);
    if (world->neighbour.active)
        flows[count++] = &world->neighbour;
    for (int i = 0; i < world->device_count; i++)
        for (int k = 0; k < world->devices[i]->stream_count && count < most; k++)
            if (world->devices[i]->streams[k]->flow.active)
                flows[count++] = &world->devices[i]->streams[k]->flow;
    sim_flow_share(world->machine, flows, count);
}

static void trace(const struct sim_stream *stream, const struct sim_command *command,
                  int64_t end_ns) {
    struct lab_trace_log_item item = {.start_ns = stream->start_ns,
                                      .end_ns = end_ns,
                                      .stream = (uint32_t)stream->index +
                                                1, /* 0 is CUDA's default stream */
                                      .correlation = command->correlation,
                                      .graph_node = command->graph_node};
    if (command->kind == SIM_COPY) {
        item.kind = LAB_TRACE_LOG_COPY;
        item.amount = (int64_t)command->copy.bytes;
        item.to_kind = command->copy.to_kind;
        item.from_kind = command->copy.from_kind;
    } else {
        item.kind = LAB_TRACE_LOG_LAUNCH;
        item.name = lab_op_get(command->launch.op)->name;
        item.amount = 1;
    }
    lab_trace_log_add(&stream->device->base, &item);
}

static void finish(struct sim_stream *stream) {
    struct sim_device *device = stream->device;
    const struct sim_command *command = head_of(stream);
    int64_t now_ns = device->world->time_ns;
    if (command->kind == SIM_LAUNCH) {
        struct lab_op_time *time = &device->op_times[command->launch.op];
        time->launches++;
        time->time_ns += now_ns - stream->start_ns;
        time->flops += command->launch.cost.flops;
        device->computing--;
    } else {
        device->copies_to -= stream->to_device;
        device->copies_from -= !stream->to_device;
        if (stream->to_device != stream->from_device)
            *(stream->to_device ? &device->to_bytes : &device->from_bytes) += command->copy.bytes;
    }
    if (device->base.trace_log)
        trace(stream, command, now_ns);
    pop(stream);
}

/* Whether the links have to be shared anew. */
static bool end_one(struct sim_stream *stream, int64_t now_ns) {
    switch (stream->busy) {
    case SIM_COMPUTING:
        if (stream->end_ns <= now_ns)
            finish(stream);
        return false;
    case SIM_STARTING:
        if (stream->end_ns > now_ns)
            return false;
        stream->busy = SIM_FLOWING;
        stream->flow.active = true;
        return true;
    case SIM_FLOWING:
        if (stream->flow.bytes_left > BYTES_EPSILON + 1e-9 * stream->flow.bytes_per_s)
            return false;
        stream->flow.active = false;
        finish(stream);
        return true;
    case SIM_IDLE:
    case SIM_WAITING:
        break;
    }
    return false;
}

static void end_all(struct sim_world *world) {
    bool changed = false;
    for (int i = 0; i < world->device_count; i++)
        for (int k = 0; k < world->devices[i]->stream_count; k++)
            changed |= end_one(world->devices[i]->streams[k], world->time_ns);
    if (changed)
        share_links(world);
}

/* --- time --- */

static int64_t due_of(const struct sim_stream *stream, int64_t now_ns) {
    switch (stream->busy) {
    case SIM_COMPUTING:
    case SIM_STARTING:
        return stream->end_ns;
    case SIM_FLOWING:
        return later(now_ns, stream->flow.bytes_left / stream->flow.bytes_per_s);
    case SIM_IDLE:
        return stream->count > 0 ? head_of(stream)->issue_ns : NEVER_NS;
    case SIM_WAITING: /* for something that is looked at itself */
        break;
    }
    return NEVER_NS;
}

static int64_t next_time(const struct sim_world *world) {
    int64_t next_ns = NEVER_NS;
    for (int i = 0; i < world->device_count; i++)
        for (int k = 0; k < world->devices[i]->stream_count; k++) {
            int64_t due_ns = due_of(world->devices[i]->streams[k], world->time_ns);
            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    if (next_ns == NEVER_NS) /* ticks alone lead nowhere */
        return NEVER_NS;
    next_ns = world->tick_ns < next_ns ? world->tick_ns : next_ns;
    if (world->machine->neighbour.there && world->neighbour_ns < next_ns)
        next_ns = world->neighbour_ns;
    return next_ns > world->time_ns ? next_ns : world->time_ns;
}

static void pass_time(struct sim_device *device, double time_s) {
    struct sim_load *load = &device->load;
    double compute = 0, memory = 0;
    for (int i = 0; i < device->stream_count; i++) {
        struct sim_stream *stream = device->streams[i];
        if (stream->busy == SIM_COMPUTING) {
            load->busy_s += time_s;
            compute += stream->compute;
            memory += stream->memory;
        } else if (stream->busy == SIM_FLOWING) {
            double bytes = fmin(stream->flow.bytes_per_s * time_s, stream->flow.bytes_left);
            stream->flow.bytes_left -= bytes;
            if (stream->to_device != stream->from_device)
                *(stream->to_device ? &load->to_bytes : &load->from_bytes) += bytes;
            memory += bytes / time_s / (1e9 * device->gpu->model->memory_gb_s);
        }
    }
    load->compute_s += fmin(1, compute) * time_s;
    load->memory_s += fmin(1, memory) * time_s;
    double clock = device->condition.clock_mhz / device->gpu->model->clock_mhz;
    load->energy_j +=
        time_s * (sim_power_w(device->gpu->model, compute, memory, device->condition.clock_mhz) +
                  device->world->extra_w * clock * clock * clock);
}

static void advance(struct sim_world *world, int64_t to_ns) {
    double time_s = 1e-9 * (double)(to_ns - world->time_ns);
    if (time_s > 0) {
        for (int i = 0; i < world->device_count; i++)
            pass_time(world->devices[i], time_s);
        world->neighbour_s += world->neighbour.active ? time_s : 0;
    }
    world->time_ns = to_ns;
}

/* Comes, stays a while, goes, stays away a while. */
static void tend_neighbour(struct sim_world *world) {
    const struct sim_neighbour *neighbour = &world->machine->neighbour;
    if (!neighbour->there || world->time_ns < world->neighbour_ns)
        return;
    world->neighbour.active = !world->neighbour.active;
    double mean_s = world->neighbour.active ? neighbour->on_s : neighbour->off_s;
    world->neighbour_ns =
        1 + later(world->time_ns,
                  sim_random_exponential(world->neighbour_seed, &world->neighbour_drawn, mean_s));
    share_links(world);
}

static bool release_hosts(struct sim_world *world) {
    bool any = false;
    for (int i = 0; i < world->device_count; i++) {
        struct sim_device *device = world->devices[i];
        struct sim_host *host = &device->host;
        if (host->state != SIM_HOST_BLOCKED || !sim_point_is_passed(host->wait))
            continue;
        host->state = SIM_HOST_RUNNING;
        if (host->time_ns < world->time_ns) {
            host->time_ns = world->time_ns;
            sim_host_spend(device, 1e-6 * device->gpu->model->sync_us);
        }
        any = true;
    }
    return any;
}

bool sim_engine_run(struct sim_world *world) {
    for (;;) {
        start_all(world);
        if (release_hosts(world))
            return true;
        int64_t next_ns = next_time(world);
        if (next_ns == NEVER_NS)
            return false;
        advance(world, next_ns);
        end_all(world);
        tend_neighbour(world);
        if (world->time_ns >= world->tick_ns)
            sim_sample_tick(world);
    }
}
