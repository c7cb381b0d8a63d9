/*
 * world.c: hosts that wait for each other. sim.h tells how; here are the lock, the condition and
 * the question who may move the world on. A host that hasn't come yet counts as running: what it
 * will do first may be the earliest thing to happen.
 */
#include "base/cond.h"
#include "base/random.h"
#include "base/str.h"
#include "device/sim/sim.h"

#include <math.h>
#include <string.h>

#define LOOK_NS       (20 * LAB_NS_PER_MS) /* between two looks whether all was stopped */
#define TICK_FIRST_NS (10 * LAB_NS_PER_MS)
/* Which of the seed's numbers are whose. */
#define CHANCE_OF_NEIGHBOUR 999
#define CHANCE_OF_GPUS      1000 /* and on */
#define CHANCE_OF_HOSTS     2000 /* and on */

static pthread_mutex_t worlds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_world *worlds; /* those that wait for somebody to join */

static bool is_stopped(const struct sim_world *world) {
    return world->stopped && atomic_load(world->stopped);
}

/* --- life --- */

/* What a neighbour on purpose takes. */
#define TAKEN_SM     0.6 /* kernels take turns with its own: 60 % longer, whatever they do */
#define TAKEN_MEMORY 0.8 /* of what reading and writing take */
#define TAKEN_POWER  0.7 /* of the most that a GPU draws for computing */
#define TAKEN_SLOT   0.7 /* of each GPU's own link, both ways */

/* It stays for the whole run, in the place of one that the machine's description plants. */
static void disturb(struct sim_world *world, const char *kind, int gpu) {
    const struct sim_machine *machine = world->machine;
    const struct sim_model *model = machine->gpus[gpu].model;
    world->longer_compute = lab_str_equal(kind, "sm") ? TAKEN_SM : 0;
    world->longer_memory = lab_str_equal(kind, "sm")      ? TAKEN_SM
                           : lab_str_equal(kind, "membw") ? TAKEN_MEMORY
                                                          : 0;
    world->extra_w =
        lab_str_equal(kind, "power")
            ? TAKEN_POWER * model->power.compute_w +
                  fmax(0, model->power.limit_w - model->power.idle_w - model->power.compute_w)
            : 0;
    if (!lab_str_equal(kind, "pcie"))
        return;
    double slowest = INFINITY;
    world->neighbour_route = (struct sim_route){.distance = 10};
    for (int i = 0; i < machine->gpu_count && i < SIM_PATH_MAX; i++)
        for (int way = 0; way < 2; way++) {
            int link = sim_slot_link(machine, i);
            world->neighbour_route.hops[world->neighbour_route.count++] =
                (struct sim_hop){link, way};
            slowest = fmin(slowest, machine->links[link].bandwidth_gb_s);
        }
    world->neighbour = (struct sim_flow){.active = true,
                                         .route = &world->neighbour_route,
                                         .bytes_left = 1,
                                         .most_bytes_per_s = 1e9 * TAKEN_SLOT * slowest};
    world->neighbour_ns = INT64_MAX;
}

static int open_world(const struct sim_device *device, const struct lab_device_setup *setup,
                      struct sim_world **ret_world, struct lab_err *err) {
    struct sim_world *world = lab_mem_alloc(1, sizeof *world);
    const char *definition = device->base.ref.definition;
    struct sim_machine *machine;
    lab_arena_init(&world->arena);
    const char *source = device->base.ref.machine->source;
    if (sim_describe(source + strlen("sim:"), definition, strlen(definition), source, &world->arena,
                     &machine, err) < 0) {
        lab_arena_release(&world->arena);
        lab_mem_free(world);
        return -1;
    }
    lab_cond_init(&world->moved);
    pthread_mutex_init(&world->lock, NULL);
    world->machine = machine;
    world->expected = setup->gang > 1 ? setup->gang : 1;
    world->seed = setup->seed;
    world->start_ns = setup->start_ns ? setup->start_ns : lab_clock_now(lab_clock_system());
    world->time_ns = world->last_tick_ns = world->start_ns;
    world->tick_ns = world->start_ns + TICK_FIRST_NS;
    world->stopped = setup->stopped;
    const struct sim_neighbour *neighbour = &machine->neighbour;
    for (int i = 0; i < neighbour->link_count; i++)
        world->neighbour_route.hops[world->neighbour_route.count++] =
            (struct sim_hop){neighbour->links[i], 0};
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].number == neighbour->node && neighbour->there)
            world->neighbour_route.hops[world->neighbour_route.count++] =
                (struct sim_hop){sim_memory_link(machine, i), 0};
    world->neighbour = (struct sim_flow){.route = &world->neighbour_route,
                                         .bytes_left = 1,
                                         .most_bytes_per_s = 1e9 * neighbour->gb_s};
    world->neighbour_seed = lab_random_bits(world->seed, CHANCE_OF_NEIGHBOUR);
    world->neighbour_ns =
        world->start_ns +
        (int64_t)(1e9 * sim_random_exponential(world->neighbour_seed, &world->neighbour_drawn,
                                               neighbour->off_s));
    if (setup->disturb)
        disturb(world, setup->disturb, device->unit);
    sim_sample_init(world);
    *ret_world = world;
    return 0;
}

static void close_world(struct sim_world *world) {
    sim_sample_release(world);
    pthread_mutex_destroy(&world->lock);
    pthread_cond_destroy(&world->moved);
    lab_arena_release(&world->arena);
    lab_mem_free(world);
}

static bool fits(const struct sim_world *world, const struct sim_device *device,
                 const struct lab_device_setup *setup) {
    for (int i = 0; i < world->device_count; i++)
        if (world->devices[i]->unit == device->unit)
            return false;
    return world->expected == setup->gang && world->seed == setup->seed &&
           lab_str_equal(world->machine->definition, device->base.ref.definition);
}

/* The world that the device's gang gathers in, made if it is the first; under the list's lock. */
static int find_world(const struct sim_device *device, const struct lab_device_setup *setup,
                      struct sim_world **ret_world, struct lab_err *err) {
    for (struct sim_world *world = worlds; world; world = world->next)
        if (fits(world, device, setup)) {
            *ret_world = world;
            return 0;
        }
    if (open_world(device, setup, ret_world, err) < 0)
        return -1;
    (*ret_world)->next = worlds;
    worlds = *ret_world;
    return 0;
}

static void unlist(struct sim_world *world) {
    struct sim_world **at = &worlds;
    while (*at && *at != world)
        at = &(*at)->next;
    if (*at)
        *at = world->next;
}

static void add_device(struct sim_world *world, struct sim_device *device) {
    int at = world->device_count++;
    for (; at > 0 && world->devices[at - 1]->unit > device->unit; at--)
        world->devices[at] = world->devices[at - 1];
    world->devices[at] = device;
    device->world = world;
    device->machine = world->machine;
    device->gpu = &world->machine->gpus[device->unit];
    device->host = (struct sim_host){.state = SIM_HOST_RUNNING, .time_ns = world->start_ns};
    uint64_t seed = lab_random_bits(world->seed, CHANCE_OF_GPUS + (uint64_t)device->unit);
    sim_chance_init(&device->chance, &world->machine->noise, seed, world->start_ns);
    seed = lab_random_bits(world->seed, CHANCE_OF_HOSTS + (uint64_t)device->unit);
    sim_chance_init(&device->host_chance, &world->machine->noise, seed, world->start_ns);
    sim_condition_init(&device->condition, device->gpu->model);
    world->joined++;
}

int sim_world_join(struct sim_device *device, const struct lab_device_setup *setup,
                   struct lab_err *err) {
    struct sim_world *world = NULL;
    pthread_mutex_lock(&worlds_lock);
    int result = find_world(device, setup, &world, err);
    if (result == 0) {
        pthread_mutex_lock(&world->lock);
        add_device(world, device);
        if (world->joined == world->expected)
            unlist(world);
        pthread_cond_broadcast(&world->moved);
        pthread_mutex_unlock(&world->lock);
    }
    pthread_mutex_unlock(&worlds_lock);
    return result;
}

/* Where all was stopped, streams of others may still wait for commands of one that goes. */
static void forget_waits(struct sim_world *world, const struct sim_device *device) {
    for (int i = 0; i < world->device_count; i++)
        for (int k = 0; k < world->devices[i]->stream_count; k++) {
            struct sim_stream *stream = world->devices[i]->streams[k];
            for (size_t c = 0; c < stream->count; c++) {
                struct sim_command *command = &stream->queue[(stream->head + c) % stream->capacity];
                if (command->kind == SIM_WAIT && command->mark.point.stream &&
                    command->mark.point.stream->device == device)
                    command->mark.point.stream = NULL;
            }
        }
}

void sim_world_leave(struct sim_device *device) {
    struct sim_world *world = device->world;
    int at = 0;
    pthread_mutex_lock(&worlds_lock);
    pthread_mutex_lock(&world->lock);
    device->host.state = SIM_HOST_GONE;
    while (world->devices[at] != device)
        at++;
    memmove(&world->devices[at], &world->devices[at + 1],
            (size_t)(world->device_count - at - 1) * sizeof(struct sim_device *));
    world->device_count--;
    forget_waits(world, device);
    /* those who haven't come yet will, unless all was stopped */
    bool last = world->device_count == 0 && (world->joined == world->expected || is_stopped(world));
    if (last)
        unlist(world);
    pthread_cond_broadcast(&world->moved);
    pthread_mutex_unlock(&world->lock);
    pthread_mutex_unlock(&worlds_lock);
    if (last)
        close_world(world);
}

/* --- waiting --- */

static bool may_move(const struct sim_world *world) {
    if (world->joined < world->expected)
        return false;
    for (int i = 0; i < world->device_count; i++)
        if (world->devices[i]->host.state == SIM_HOST_RUNNING)
            return false;
    return true;
}

static void look_again_soon(struct sim_world *world) {
    lab_cond_wait_until(&world->moved, &world->lock, lab_clock_now(lab_clock_system()) + LOOK_NS);
}

int sim_world_wait(struct sim_device *device, struct sim_point point, struct lab_err *err) {
    struct sim_world *world = device->world;
    struct sim_host *host = &device->host;
    int result = 0;
    sim_host_spend(device, 1e-6 * device->gpu->model->call_us);
    LAB_AUTO_LOCK(&world->lock);
    host->wait = point;
    host->state = sim_point_is_passed(point) ? SIM_HOST_RUNNING : SIM_HOST_BLOCKED;
    while (host->state == SIM_HOST_BLOCKED) {
        if (may_move(world)) {
            if (!sim_engine_run(world)) {
                result = lab_err_set(err, LAB_ERR_SYSTEM, "%s waits for an event that never comes",
                                     device->base.ref.name);
                break;
            }
            pthread_cond_broadcast(&world->moved);
        } else if (is_stopped(world)) {
            result = lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped: another rank has failed");
            break;
        } else {
            look_again_soon(world);
        }
    }
    host->state = SIM_HOST_RUNNING;
    return result;
}

void sim_world_rest(struct lab_device *base) {
    struct sim_device *device = (struct sim_device *)base;
    struct sim_world *world = device->world;
    LAB_AUTO_LOCK(&world->lock);
    device->host.state = SIM_HOST_RESTING;
    pthread_cond_broadcast(&world->moved);
}

/* The first to wake wakes all: those whose threads are still on their way hold the world
 * already. */
void sim_world_wake(struct lab_device *base) {
    struct sim_device *device = (struct sim_device *)base;
    struct sim_world *world = device->world;
    LAB_AUTO_LOCK(&world->lock);
    int64_t time_ns = world->time_ns;
    if (device->host.state == SIM_HOST_RESTING) {
        for (int i = 0; i < world->device_count; i++) {
            const struct sim_host *host = &world->devices[i]->host;
            if (host->state == SIM_HOST_RESTING && host->time_ns > time_ns)
                time_ns = host->time_ns;
        }
        for (int i = 0; i < world->device_count; i++) {
            struct sim_host *host = &world->devices[i]->host;
            if (host->state != SIM_HOST_RESTING)
                continue;
            host->state = SIM_HOST_RUNNING;
            host->time_ns = time_ns;
        }
    }
}
