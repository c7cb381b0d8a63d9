/*
 * allreduce.c: the sum of a vector over several devices, which each of them then has: what
 * data-parallel training does with its gradients in every step.
 *
 * In a gang each rank is one end of it, and the gang's group is where they meet. Opened for one
 * device alone the workload opens the others itself: the slices of the same device, or those that
 * `devices` names. Each then has a thread that drives it; the caller's is that of the first.
 */
#include "workload/allreduce/allreduce.h"

#include "base/cond.h"
#include "base/list.h"
#include "base/random.h"

#include <math.h>

#include <string.h>

#define AT(field) offsetof(struct allreduce_config, field)

static const struct lab_option options[] = {
    {"bytes", LAB_OPTION_SIZE, AT(bytes), .fallback = "8MiB", .min = 4, .max = 0x1p36,
     .unit = "bytes", .help = "of the vector on each device, fp32; rounded down to whole values"},
    {"allreduce", LAB_OPTION_CHOICE, AT(allreduce), .fallback = "auto", .choices = lab_sum_ways,
     .help = "how they are summed; auto: what suits the devices"},
    {"graph", LAB_OPTION_INT, AT(graph), .fallback = "16", .max = 256, .unit = "sums",
     .help = "sums that are launched at once, where a graph can hold them, and timed together; 0: "
             "each by itself, as the host keeps up"},
    {"flush", LAB_OPTION_FLAG, AT(flush), .fallback = "false",
     .help = "each sum on another vector, in turn, so that caches hold nothing of it"},
    {"devices", LAB_OPTION_STRING, AT(devices), .value_name = "SELECTOR",
     .help = "devices that take part, this one among them; none: all slices of this one's device"},
    {"wait", LAB_OPTION_DURATION, AT(wait), .fallback = "10s", .min = 0.001, .max = 3600,
     .unit = "seconds", .help = "time limit of waiting for another device"},
    NCCL_OPTIONS(AT(nccl)),
    {NULL},
};

struct allreduce;

struct member {
    struct allreduce *all;
    struct lab_device_ref ref;
    bool owns_device;
    struct allreduce_end end;
    pthread_t thread;
    bool started;
    struct lab_iteration *records; /* of the run under way; the first one's are the caller's */
    int record_capacity;
    uint64_t seed;
    struct lab_verification verification;
    int failed;
    struct lab_err err;
};

struct allreduce {
    const struct allreduce_config *config;
    const struct lab_sink *sink;
    struct lab_arena arena;
    struct lab_group *own_group; /* NULL: the gang's is used */
    struct member *members;      /* of this process */
    int count;
    pthread_mutex_t mutex; /* of what follows: how the caller's thread and the others take turns */
    pthread_cond_t changed;
    uint64_t tasks; /* begun so far */
    int (*task)(struct member *member, struct lab_err *err);
    int sums;       /* of a run */
    int still_busy; /* threads that aren't through with it */
    bool ending;
};

static int allreduce_check(void *config, struct lab_err *err) {
    return nccl_settings_check(&((struct allreduce_config *)config)->nccl, err);
}

/* Settings of what isn't asked for make no other run. */
static void allreduce_canonical(void *opaque) {
    struct allreduce_config *config = opaque;
    if (lab_str_equal(config->allreduce, "nccl") || lab_str_equal(config->allreduce, "auto"))
        return;
    config->nccl = (struct nccl_settings){"auto", "auto", "auto", "auto", "auto", "auto", 0, 0, 0};
}

static const char *const *allreduce_environment(const void *config, struct lab_arena *arena) {
    return nccl_settings_words(&((const struct allreduce_config *)config)->nccl, arena);
}

/* --- the members' threads --- */

/* A failure ends what all others do. */
static void do_task(struct member *member) {
    member->err = (struct lab_err)LAB_ERR_INIT;
    member->failed = member->all->task(member, &member->err);
    if (member->failed)
        lab_group_fail(member->end.group, member->end.rank, &member->err);
}

/* Waits for the next task; false: there will be none. */
static bool next_task(struct allreduce *all, uint64_t seen) {
    LAB_AUTO_LOCK(&all->mutex);
    while (all->tasks == seen && !all->ending)
        pthread_cond_wait(&all->changed, &all->mutex);
    return !all->ending;
}

static void *member_main(void *argument) {
    struct member *member = argument;
    struct allreduce *all = member->all;
    for (uint64_t seen = 0; next_task(all, seen); seen++) {
        do_task(member);
        pthread_mutex_lock(&all->mutex);
        if (--all->still_busy == 0)
            pthread_cond_broadcast(&all->changed);
        pthread_mutex_unlock(&all->mutex);
    }
    return NULL;
}

/* On all members at once, the first one's in this thread; tells what the first to fail said. */
static int on_all(struct allreduce *all, int (*task)(struct member *, struct lab_err *),
                  struct lab_err *err) {
    pthread_mutex_lock(&all->mutex);
    all->task = task;
    all->still_busy = all->count - 1;
    all->tasks++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
    do_task(&all->members[0]);
    pthread_mutex_lock(&all->mutex);
    while (all->still_busy > 0)
        pthread_cond_wait(&all->changed, &all->mutex);
    pthread_mutex_unlock(&all->mutex);
    int first = lab_group_failed_rank(all->members[0].end.group);
    const struct member *told = NULL;
    for (int i = 0; i < all->count; i++) /* the others may only have heard of it */
        if (all->members[i].failed && (!told || all->members[i].end.rank == first))
            told = &all->members[i];
    if (told && err)
        *err = told->err;
    return told ? lab_err_context(err, "%s", told->ref.name) : 0;
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

/* --- who takes part --- */

/* "cpu:0/4.1" stands among "cpu:0/4". */
static const char *sisters_of(const struct lab_device_ref *ref, struct lab_arena *arena) {
    char *name = lab_arena_strdup(arena, ref->name);
    char *point = ref->slices > 1 ? strrchr(name, '.') : NULL;
    if (point)
        *point = '\0';
    return name;
}

/* A rank of a study has the devices that the plan gave it. */
static bool is_single(const struct allreduce *all, const struct lab_rank *rank) {
    return rank->group || (!all->config->devices && (rank->device->ref.simulated || rank->run_id));
}

static int list_devices(struct allreduce *all, const struct lab_rank *rank,
                        struct lab_device_list *list, struct lab_err *err) {
    const struct lab_device_ref *own = &rank->device->ref;
    if (is_single(all, rank)) {
        *lab_device_list_add(list, &all->arena) = *own;
        return 0;
    }
    const char *selector =
        all->config->devices ? all->config->devices : sisters_of(own, &all->arena);
    if (lab_device_select(rank->device->machine, selector, &all->arena, list, err))
        return -1;
    int place = LAB_FIND(list->items, list->count, name, own->name);
    if (place < 0)
        return lab_err_set(err, LAB_ERR_USER, "devices=%s: %s must be among them", selector,
                           own->name);
    /* this one first, the others in their order around it */
    struct lab_device_ref *around =
        lab_arena_alloc(&all->arena, (size_t)list->count, sizeof *around);
    for (int i = 0; i < list->count; i++)
        around[i] = list->items[(place + i) % list->count];
    list->items = around;
    return 0;
}

static int find_members(struct allreduce *all, const struct lab_rank *rank, struct lab_err *err) {
    struct lab_device_list list = {0};
    if (list_devices(all, rank, &list, err))
        return -1;
    if (!rank->group)
        all->own_group = lab_group_open(
            &(struct lab_group_setup){.ranks = list.count, .limit_s = all->config->wait});
    all->members = lab_arena_alloc(&all->arena, (size_t)list.count, sizeof *all->members);
    all->count = list.count;
    for (int i = 0; i < list.count; i++) {
        if (i > 0 && list.items[i].simulated)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "%s: simulated devices sum in a study alone, as a gang",
                               list.items[i].name);
        all->members[i] = (struct member){
            .all = all,
            .ref = list.items[i],
            .owns_device = i > 0,
            .end = {.config = all->config,
                    .group = rank->group ? rank->group : all->own_group,
                    .rank = rank->group ? rank->index : i,
                    .ranks = rank->group ? lab_group_ranks(rank->group) : list.count,
                    .device = i == 0 ? rank->device : NULL,
                    .numa_node = rank->numa_node},
        };
    }
    return 0;
}

/* --- life --- */

static int open_member(struct member *member, struct lab_err *err) {
    return allreduce_end_open(&member->end, err);
}

static int close_member(struct member *member, struct lab_err *err) {
    (void)err;
    if (member->end.device)
        allreduce_end_close(&member->end);
    return 0;
}

static int open_devices(struct allreduce *all, struct lab_device *own, struct lab_err *err) {
    for (int i = 1; i < all->count; i++)
        if (lab_device_open(own->machine, &all->members[i].ref, LAB_DEVICE_SETUP,
                            &all->members[i].end.device, err))
            return lab_err_context(err, "%s", all->members[i].ref.name);
    return 0;
}

/* Ends wait for each other when they close: only where all of them have a thread. */
static bool all_run(const struct allreduce *all) {
    for (int i = 1; i < all->count; i++)
        if (!all->members[i].started)
            return false;
    return all->count > 0;
}

static void allreduce_close(void *state) {
    struct allreduce *all = state;
    if (!all)
        return;
    if (all_run(all))
        on_all(all, close_member, NULL);
    end_threads(all);
    for (int i = 0; i < all->count; i++) {
        if (all->members[i].owns_device)
            lab_device_close(all->members[i].end.device);
        lab_mem_free(all->members[i].records);
    }
    lab_group_close(all->own_group);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
    lab_arena_release(&all->arena);
    lab_mem_free(all);
}

/* A benchmark of one device would time nothing. */
static int refuse_single(const struct allreduce *all, const struct lab_rank *rank,
                         struct lab_err *err) {
    const struct member *first = &all->members[0];
    if (first->end.ranks > 1 || rank->run_id || !rank->sink)
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       first->ref.simulated
                           ? "%s has nothing to sum: simulated devices sum in a study, such as "
                             "gpulab run train_scaling"
                           : "%s has nothing to sum: name several devices, such as --device "
                             "cpu:0/2 or --device cuda:0/4, slices of one",
                       first->ref.name);
}

static int open_all(struct allreduce *all, const struct lab_rank *rank, struct lab_err *err) {
    if (rank->count > 1 && !rank->group)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "ranks sum as threads of one process; leave experiment.processes out");
    if (find_members(all, rank, err) || refuse_single(all, rank, err) ||
        open_devices(all, rank->device, err) || start_threads(all, err) ||
        on_all(all, open_member, err))
        return -1;
    const char *note = lab_sum_note(all->members[0].end.sum);
    if (note && rank->index == 0 && all->sink && all->sink->warning)
        all->sink->warning(all->sink->state, note);
    return 0;
}

static int allreduce_open(const void *config, const struct lab_rank *rank, void **ret_state,
                          struct lab_err *err) {
    struct allreduce *all = lab_mem_alloc(1, sizeof *all);
    all->config = config;
    all->sink = rank->sink;
    lab_arena_init(&all->arena);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->changed, NULL);
    if (open_all(all, rank, err)) {
        allreduce_close(all);
        return -1;
    }
    *ret_state = all;
    return 0;
}

/* --- running --- */

static int run_member(struct member *member, struct lab_err *err) {
    return allreduce_end_run(&member->end, member->all->sums, member->records, err);
}

static void tell(const struct allreduce *all, const char *name, const char *unit, double value,
                 int64_t time_ns) {
    const struct lab_reported_metric metric = {name, unit, value, (double)NAN, -1, time_ns};
    if (all->sink && all->sink->metrics)
        all->sink->metrics(all->sink->state, &metric, 1);
}

/* As nccl-tests has them: the vector's bytes over the time of a sum, and what each link carried. */
static void tell_rates(const struct allreduce *all, const struct lab_iteration *records,
                       int count) {
    const struct allreduce_end *end = &all->members[0].end;
    double bytes = (double)allreduce_values(all->config) * sizeof(float), s = 0;
    int64_t now_ns = records[count - 1].end_ns;
    for (int i = 0; i < count; i++)
        s += 1e-9 * (double)(records[i].end_ns - records[i].start_ns) / count;
    tell(all, "ranks", "", end->ranks, now_ns);
    if (!(s > 0) || end->ranks == 1)
        return;
    tell(all, "algorithm_gb_per_s", "GB/s", 1e-9 * bytes / s, now_ns);
    tell(all, "bus_gb_per_s", "GB/s", 1e-9 * allreduce_bus_bytes(bytes, end->ranks) / s, now_ns);
}

/* Before anything is timed, and only when a run is longer than all before it. */
static void make_room(struct allreduce *all, int count) {
    for (int i = 1; i < all->count; i++) {
        struct member *member = &all->members[i];
        if (member->record_capacity >= count)
            continue;
        member->records = lab_mem_resize(member->records, (size_t)count, sizeof *member->records);
        member->record_capacity = count;
    }
}

/* A sum is over when the last rank has it: on the first that shows by the next one's beginning at
 * the latest. */
static int allreduce_run(void *state, int count, struct lab_iteration *records,
                         struct lab_err *err) {
    struct allreduce *all = state;
    make_room(all, count);
    all->sums = count;
    all->members[0].records = records;
    int failed = on_all(all, run_member, err);
    all->members[0].records = NULL;
    if (failed)
        return -1;
    tell_rates(all, records, count);
    return 0;
}

static int verify_member(struct member *member, struct lab_err *err) {
    member->verification = (struct lab_verification){0};
    return allreduce_end_verify(&member->end, member->seed, &member->verification, err);
}

static int allreduce_verify(void *state, uint64_t seed, struct lab_verification *ret,
                            struct lab_err *err) {
    struct allreduce *all = state;
    for (int i = 0; i < all->count; i++)
        all->members[i].seed = lab_random_bits(seed, (uint64_t)i);
    if (on_all(all, verify_member, err))
        return -1;
    *ret = all->members[0].verification;
    for (int i = 1; i < all->count && ret->passed; i++)
        *ret = all->members[i].verification;
    return 0;
}

static void allreduce_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct allreduce_config *config = opaque;
    *ret_cost = (struct lab_workload_cost){.device_bytes =
                                               3 * config->bytes + (config->flush ? 256 << 20 : 0),
                                           .host_bytes = 2 * config->bytes,
                                           .dtype = LAB_FP32};
}

const struct lab_workload lab_workload_allreduce = {
    .name = "allreduce",
    .help = "all-reduce: the sum of a vector over several devices, on each of them",
    .description =
        "An iteration is one all-reduce of a vector on each device. Slices of one GPU sum in its\n"
        "memory, by a kernel each. GPUs use NCCL where it is installed. CPUs, and GPUs without "
        "NCCL,\n"
        "use a ring through host memory: each device sums a part, which then go round.\n"
        "hierarchical: the first device gathers all, sums and distributes the result.\n"
        "\n"
        "The devices are the ranks of a study's gang. In a benchmark they are those that --device "
        "names\n"
        "(cuda, cuda:0/4), or devices=…; one slice stands for all slices of its GPU. One device "
        "is\n"
        "refused, and so are simulated ones, which sum in a study alone.\n"
        "\n"
        "algorithm_gb_per_s and bus_gb_per_s are algbw and busbw of nccl-tests: bytes of a vector\n"
        "over the time, and 2·(n − 1)/n times that. With flush=true vectors take turns, so that\n"
        "none is in a cache when its sum begins. Where the host can't launch as fast as devices\n"
        "sum, graph=N does N sums in one launch; each counts as the N-th part.",
    .options = options,
    .config_size = sizeof(struct allreduce_config),
    .version = 2,
    .collective = true,
    .check = allreduce_check,
    .canonical = allreduce_canonical,
    .environment = allreduce_environment,
    .cost = allreduce_cost,
    .open = allreduce_open,
    .close = allreduce_close,
    .run = allreduce_run,
    .verify = allreduce_verify,
};
