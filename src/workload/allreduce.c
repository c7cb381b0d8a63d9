/*
 * allreduce.c: the sum of a vector over several devices, which each of them then has: what data-parallel
 * training does with its gradients in every step. Here through host memory, in a ring (ring/ring.h).
 *
 * The workload is opened for one device and opens the others itself: the slices of the same device, or
 * those that `devices` names. Each has a thread that drives it; the caller's is that of the first.
 */
#include "machine/machine.h"
#include "workload/ring/ring.h"
#include "workload/workload.h"

#include "base/random.h"

#include <math.h>
#include <pthread.h>

struct allreduce_config {
    int64_t bytes, slice;
    const char *devices;
    double wait;
};

#define AT(field) offsetof(struct allreduce_config, field)

static const struct lab_option options[] = {
    {"bytes", LAB_OPTION_SIZE, AT(bytes), .fallback = "8MiB", .min = 4, .max = 0x1p36,
     .unit = "bytes", .help = "of the vector on each device, fp32; rounded down to whole values"},
    {"slice", LAB_OPTION_SIZE, AT(slice), .fallback = "256KiB", .min = 4, .max = 0x1p30,
     .unit = "bytes", .help = "bytes that travel at once"},
    {"devices", LAB_OPTION_STRING, AT(devices), .value_name = "SELECTOR",
     .help = "devices that take part, this one among them; none: all slices of this one's device"},
    {"wait", LAB_OPTION_DURATION, AT(wait), .fallback = "10s", .min = 0.001, .max = 3600,
     .unit = "seconds", .help = "how long a device waits for another before all give up"},
    {NULL},
};

struct member {
    struct allreduce *all;
    int index;
    struct lab_device_ref ref;
    struct lab_device *device;
    bool owns_device;
    struct lab_buffer data;
    struct ring_member *end;
    pthread_t thread;
    bool started;
    struct lab_span *spans; /* of the run under way */
    int span_capacity;
    int failed;
    struct lab_err err;
};

struct allreduce {
    const struct allreduce_config *config;
    const struct lab_sink *sink;
    struct lab_arena arena;
    struct ring *ring;
    struct member *members;
    int count;
    int64_t values;
    int numa_node;
    pthread_mutex_t mutex; /* of what follows: how the caller's thread and the others take turns */
    pthread_cond_t changed;
    uint64_t runs;  /* begun so far */
    int sums;       /* of the one under way */
    int still_busy; /* threads that aren't through with it */
    bool ending;
};

/* --- the members' threads --- */

/* `sums` sums, with their times; a failure ends those of all others. */
static int sum_some(struct member *member, struct lab_err *err) {
    const struct allreduce *all = member->all;
    const struct lab_clock *clock = member->device->clock;
    for (int i = 0; i < all->sums; i++) {
        member->spans[i].start_ns = lab_clock_now(clock);
        if (ring_sum(member->end, member->data.data, all->values, err))
            return lab_err_context(err, "%s", member->ref.name);
        member->spans[i].end_ns = lab_clock_now(clock);
    }
    return 0;
}

/* Waits for the next run; false: there will be none. */
static bool next_run(struct allreduce *all, uint64_t seen) {
    pthread_mutex_lock(&all->mutex);
    while (all->runs == seen && !all->ending)
        pthread_cond_wait(&all->changed, &all->mutex);
    bool ending = all->ending;
    pthread_mutex_unlock(&all->mutex);
    return !ending;
}

static void *member_main(void *argument) {
    struct member *member = argument;
    struct allreduce *all = member->all;
    for (uint64_t seen = 0; next_run(all, seen); seen++) {
        member->err = (struct lab_err)LAB_ERR_INIT;
        member->failed = sum_some(member, &member->err);
        pthread_mutex_lock(&all->mutex);
        if (--all->still_busy == 0)
            pthread_cond_broadcast(&all->changed);
        pthread_mutex_unlock(&all->mutex);
    }
    return NULL;
}

/* --- life --- */

/* "cpu:0/4.1" stands among "cpu:0/4". */
static const char *sisters_of(const struct lab_device_ref *ref, struct lab_arena *arena) {
    char *name = lab_arena_strdup(arena, ref->name);
    char *point = ref->slices > 1 ? strrchr(name, '.') : NULL;
    if (point)
        *point = '\0';
    return name;
}

static int find_members(struct allreduce *all, const struct lab_device *device,
                        struct lab_err *err) {
    struct lab_device_list list = {0};
    const struct lab_device_ref *own = &device->ref;
    bool alone = own->simulated && !all->config->devices;
    const char *selector =
        all->config->devices ? all->config->devices : sisters_of(own, &all->arena);
    if (!alone && lab_device_select(device->machine, selector, &all->arena, &list, err))
        return -1;
    int place = 0;
    while (place < list.count && !lab_str_equal(list.items[place].name, own->name))
        place++;
    if (!alone && place == list.count)
        return lab_err_set(err, LAB_ERR_USER, "devices=%s: %s must be among them", selector,
                           own->name);
    all->count = alone ? 1 : list.count;
    all->members = lab_arena_alloc(&all->arena, (size_t)all->count, sizeof *all->members);
    for (int i = 0; i < all->count; i++) {
        /* this one first, the others in their order around it */
        struct lab_device_ref ref = alone ? *own : list.items[(place + i) % list.count];
        if (i > 0 && ref.simulated)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "%s: simulated devices have no content that could be summed",
                               ref.name);
        all->members[i] = (struct member){.all = all, .index = i, .ref = ref};
    }
    return 0;
}

static int open_member(struct allreduce *all, struct member *member, struct lab_device *own,
                       struct lab_err *err) {
    member->owns_device = member->index > 0;
    if (!member->owns_device)
        member->device = own;
    else if (lab_device_open(own->machine, &member->ref, LAB_DEVICE_SETUP, &member->device, err))
        return -1;
    if (lab_data_require(member->device, LAB_OP_ADD, LAB_FP32, err) ||
        lab_buffer_open(member->device, LAB_MEMORY_DEVICE, -1, (size_t)all->values * sizeof(float),
                        &member->data, err))
        return -1;
    return ring_join(all->ring, member->index, member->device, all->numa_node, &member->end, err);
}

static int start_threads(struct allreduce *all, struct lab_err *err) {
    for (int i = 1; i < all->count; i++) {
        struct member *member = &all->members[i];
        if (pthread_create(&member->thread, NULL, member_main, member))
            return lab_err_set(err, LAB_ERR_SYSTEM, "no thread can be started for %s",
                               member->ref.name);
        member->started = true;
    }
    return 0;
}

static void end_threads(struct allreduce *all) {
    pthread_mutex_lock(&all->mutex);
    all->ending = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
    for (int i = 1; i < all->count; i++)
        if (all->members[i].started)
            pthread_join(all->members[i].thread, NULL);
}

static void allreduce_close(void *state) {
    struct allreduce *all = state;
    if (!all)
        return;
    end_threads(all);
    for (int i = 0; i < all->count; i++) {
        struct member *member = &all->members[i];
        ring_leave(member->end);
        lab_buffer_close(&member->data);
        if (member->owns_device)
            lab_device_close(member->device);
        lab_mem_free(member->spans);
    }
    ring_close(all->ring);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
    lab_arena_release(&all->arena);
    lab_mem_free(all);
}

/* Zeros stay what they are however often they are summed. */
static int fill(struct allreduce *all, struct lab_err *err) {
    for (int i = 0; i < all->count; i++)
        if (lab_data_upload(ring_stream(all->members[i].end), all->members[i].data.data, LAB_FP32,
                            all->values, lab_data_constant, &(float){0}, err))
            return -1;
    return 0;
}

static int allreduce_open(const void *config, const struct lab_rank *rank, void **ret_state,
                          struct lab_err *err) {
    struct allreduce *all = lab_mem_alloc(1, sizeof *all);
    all->config = config;
    all->sink = rank->sink;
    all->values = all->config->bytes / (int64_t)sizeof(float);
    all->numa_node = rank->numa_node;
    lab_arena_init(&all->arena);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->changed, NULL);
    if (rank->count > 1) {
        lab_err_set(err, LAB_ERR_UNSUPPORTED,
                    "one rank drives all devices; name them with devices=… and run it alone");
        goto fail;
    }
    if (find_members(all, rank->device, err))
        goto fail;
    struct ring_setup setup = {.members = all->count,
                               .slice_bytes = (size_t)all->config->slice / 4 * 4,
                               .limit_s = all->config->wait};
    if (ring_open(&setup, &all->ring, err))
        goto fail;
    for (int i = 0; i < all->count; i++)
        if (open_member(all, &all->members[i], rank->device, err))
            goto fail;
    if (fill(all, err) || start_threads(all, err))
        goto fail;
    *ret_state = all;
    return 0;
fail:
    allreduce_close(all);
    return -1;
}

/* --- running --- */

/* The caller's thread is that of the first member. */
static int run_all(struct allreduce *all, int count, struct lab_err *err) {
    pthread_mutex_lock(&all->mutex);
    all->sums = count;
    all->still_busy = all->count - 1;
    all->runs++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
    struct member *first = &all->members[0];
    first->err = (struct lab_err)LAB_ERR_INIT;
    first->failed = sum_some(first, &first->err);
    pthread_mutex_lock(&all->mutex);
    while (all->still_busy > 0)
        pthread_cond_wait(&all->changed, &all->mutex);
    pthread_mutex_unlock(&all->mutex);
    const struct member *told = NULL;
    for (int i = 0; i < all->count; i++) {
        const struct member *member = &all->members[i];
        /* the one that only heard of a failure says least */
        if (member->failed && (!told || strstr(told->err.text, "another member")))
            told = member;
    }
    if (told)
        *err = told->err;
    return told ? -1 : 0;
}

/* From the first member's start to the last one's end. */
static struct lab_iteration record_of(const struct allreduce *all, int index) {
    struct lab_span span = all->members[0].spans[index];
    for (int i = 1; i < all->count; i++) {
        const struct lab_span *other = &all->members[i].spans[index];
        span.end_ns = other->end_ns > span.end_ns ? other->end_ns : span.end_ns;
    }
    struct lab_iteration record = {.start_ns = span.start_ns, .end_ns = span.end_ns};
    record.stages[LAB_STAGE_COMPUTE] = span;
    return record;
}

static void tell(const struct allreduce *all, const char *name, const char *unit, double value,
                 int64_t time_ns) {
    if (all->sink && all->sink->metric)
        all->sink->metric(all->sink->state, name, unit, value, time_ns);
}

/* As nccl-tests has them: the vector's bytes over the time of a sum, and what each link carried. */
static void tell_rates(const struct allreduce *all, const struct lab_iteration *records,
                       int count) {
    double s = 1e-9 * (double)(records[count - 1].end_ns - records[0].start_ns) / count;
    double bytes = (double)all->values * sizeof(float);
    int64_t now_ns = records[count - 1].end_ns;
    tell(all, "ranks", "", all->count, now_ns);
    if (!(s > 0) || all->count == 1)
        return;
    tell(all, "algorithm_gb_per_s", "GB/s", 1e-9 * bytes / s, now_ns);
    tell(all, "bus_gb_per_s", "GB/s", 1e-9 * ring_bus_bytes(bytes, all->count) / s, now_ns);
}

/* Before anything is timed, and only when a run is longer than all before it. */
static void make_room(struct allreduce *all, int count) {
    for (int i = 0; i < all->count; i++) {
        struct member *member = &all->members[i];
        if (member->span_capacity >= count)
            continue;
        member->spans = lab_mem_resize(member->spans, (size_t)count, sizeof *member->spans);
        member->span_capacity = count;
    }
}

static int run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    struct allreduce *all = state;
    make_room(all, count);
    if (run_all(all, count, err))
        return -1;
    for (int i = 0; i < count; i++)
        records[i] = record_of(all, i);
    tell_rates(all, records, count);
    return 0;
}

/* --- being right --- */

#define CHECKED_MOST ((int64_t)1 << 22) /* values of a vector that are looked at */

static uint64_t seed_of(uint64_t seed, int member) {
    return lab_random_bits(seed, (uint64_t)member);
}

/* Every member has the sum, and all have the same bits. */
static int compare(struct allreduce *all, uint64_t seed, struct lab_verification *ret,
                   struct lab_err *err) {
    int64_t count = all->values < CHECKED_MOST ? all->values : CHECKED_MOST;
    int64_t first = all->values - count; /* the end is where parts and slices don't come out even */
    float *found = lab_mem_alloc((size_t)count, sizeof *found);
    float *before = lab_mem_alloc((size_t)count, sizeof *before);
    double *sums = lab_mem_alloc((size_t)count, sizeof *sums);
    int failed = 0;
    for (int i = 0; i < all->count; i++)
        for (int64_t v = 0; v < count; v++)
            sums[v] += (double)lab_random_symmetric(seed_of(seed, i), (uint64_t)(first + v));
    for (int i = 0; i < all->count && !failed; i++) {
        const float *data = all->members[i].data.data;
        failed = lab_data_download(ring_stream(all->members[i].end), data + first, LAB_FP32, count,
                                   found, err);
        if (failed)
            break;
        lab_verify_compare(found, sums, count, LAB_POISON, lab_verify_tolerance(LAB_FP32), ret);
        if (ret->passed && i > 0 && memcmp(found, before, (size_t)count * sizeof *found) != 0) {
            ret->passed = false;
            snprintf(ret->text, sizeof ret->text, "%s has other sums than its neighbour",
                     all->members[i].ref.name);
        }
        if (!ret->passed)
            break;
        memcpy(before, found, (size_t)count * sizeof *found);
    }
    lab_mem_free(found);
    lab_mem_free(before);
    lab_mem_free(sums);
    return failed ? -1 : 0;
}

static int verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct allreduce *all = state;
    const struct lab_device *device = all->members[0].device;
    struct lab_iteration record;
    if (lab_verify_skip(device, ret))
        return 0;
    if (lab_verify_room(device, (double)CHECKED_MOST * 2 * (sizeof(float) + sizeof(double)), err))
        return -1;
    for (int i = 0; i < all->count; i++) {
        uint64_t own = seed_of(seed, i);
        if (lab_data_upload(ring_stream(all->members[i].end), all->members[i].data.data, LAB_FP32,
                            all->values, lab_data_random, &own, err))
            return -1;
    }
    const struct lab_sink *sink = all->sink;
    all->sink = NULL;
    int failed = run(all, 1, &record, err) || compare(all, seed, ret, err) || fill(all, err);
    all->sink = sink;
    return failed ? -1 : 0;
}

static void cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct allreduce_config *config = opaque;
    *ret_cost = (struct lab_workload_cost){.device_bytes = config->bytes + config->slice,
                                           .host_bytes = RING_SLOTS * config->slice,
                                           .dtype = LAB_FP32};
}

const struct lab_workload lab_workload_allreduce = {
    .name = "allreduce",
    .help = "the sum of a vector over several devices, through host memory",
    .description =
        "An iteration is one ring all-reduce of a vector on each device: cut into as many parts "
        "as\n"
        "there are devices, which go round twice, through slots in host memory. The devices are\n"
        "the slices of the one it runs on (--device cpu:0/2), or those that devices=… names.\n"
        "\n"
        "algorithm_gb_per_s and bus_gb_per_s are algbw and busbw of nccl-tests: bytes of a vector "
        "over\n"
        "the time, and 2·(n − 1)/n times that.",
    .options = options,
    .config_size = sizeof(struct allreduce_config),
    .cost = cost,
    .open = allreduce_open,
    .close = allreduce_close,
    .run = run,
    .verify = verify,
};
