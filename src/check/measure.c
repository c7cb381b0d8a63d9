/*
 * measure.c: rates for a check, through the program's one measuring loop: a workload on one GPU, on
 * all GPUs at once, or copies between two. Each measurement opens its device anew, so that a test
 * again is another sample.
 */
#include "check/check_internal.h"

#include "base/random.h"
#include "machine/machine.h"
#include "session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PAIR_BYTES      ((size_t)64 << 20)
#define PATTERN_BYTES   ((size_t)1 << 20)
#define SIMULATED_SHARE 0.1 /* simulated GPUs have no clocks that take seconds to settle */
#define GANG_CHUNK      16  /* iterations, the same on all GPUs */
#define GANG_WARMUP     16
#define GANG_LIMIT_S    60.0

/* --- leases --- */

static int take_leases(struct check_run *run, struct lab_err *err) {
    int count = run->devices->count;
    if (run->leased || run->devices->items[0].simulated)
        return 0;
    const char **names = lab_arena_alloc(run->arena, (size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = run->devices->items[i].physical;
    struct lab_holder self;
    lab_holder_self("gpulab check", NULL, &self);
    if (lab_lease_take(names, count, &self, NULL, NULL, &run->lease, err) < 0)
        return -1;
    run->leased = true;
    return 0;
}

void check_end_measuring(struct check_run *run) {
    check_close_devices(run);
    if (run->leased)
        lab_lease_release(&run->lease);
}

/* --- one GPU --- */

static int configure(struct check_run *run, const struct check_work *work,
                     const struct lab_workload **ret_workload, void **ret_config,
                     struct lab_err *err) {
    const struct lab_workload *workload = lab_workload_find(work->workload, err);
    if (!workload)
        return -1;
    void *config = lab_workload_config(workload, run->arena);
    for (int i = 0; work->keys[i]; i++)
        if (lab_options_set_word(workload->options, config, run->arena, work->keys[i], err) < 0)
            return -1;
    if (workload->check && workload->check(config, err) < 0)
        return -1;
    *ret_workload = workload;
    *ret_config = config;
    return 0;
}

/* Computing needs libraries beside the driver's; copies don't. */
static int require_compute(struct check_run *run, const struct lab_workload_cost *cost,
                           struct lab_err *err) {
    const char *lacks =
        cost->compute.flops > 0 ? lab_device_lacks(&run->devices->items[0], run->arena) : NULL;
    return lacks ? lab_err_set(err, LAB_ERR_SYSTEM, "%s", lacks) : 0;
}

static struct lab_work work_of(const struct lab_workload_cost *cost) {
    return (struct lab_work){.flops = cost->compute.flops,
                             .memory_bytes = cost->compute.bytes_read + cost->compute.bytes_written,
                             .h2d_bytes = cost->h2d_bytes,
                             .d2h_bytes = cost->d2h_bytes};
}

struct watching {
    const struct check_work *work;
    struct lab_session *session;
};

static bool on_progress(void *opaque, const struct lab_measure_progress *now) {
    struct watching *watching = opaque;
    if (now->phase == LAB_MEASURE_MEASURE && watching->work->watch)
        watching->work->watch(watching->work->state, watching->session->device);
    return false;
}

static struct lab_session session_for(struct check_run *run, int gpu, int node) {
    const struct lab_device_ref *ref = &run->devices->items[gpu];
    struct lab_session session = {
        .machine = run->setup->machine,
        .arena = run->arena,
        .ref = *ref,
        .setup = LAB_DEVICE_SETUP,
        .rank = {.numa_node = node >= 0 ? node : ref->node, .count = 1, .seed = run->setup->seed}};
    session.setup.seed = lab_random_bits(run->setup->seed, ++run->opened);
    return session;
}

static int measure_open(struct lab_session *session, const struct lab_measure_plan *plan,
                        const struct lab_workload_cost *cost, struct check_rates *ret_rates,
                        struct lab_err *err) {
    struct lab_measurement found;
    struct check_rates rates = {0};
    if (lab_session_verify(session, lab_random_bits(plan->seed, 1), err) < 0)
        return lab_err_context(err, "verifying");
    const char *wrong = lab_session_why_wrong(session);
    rates.wrong = wrong ? lab_arena_strdup(session->arena, wrong) : NULL;
    if (lab_session_measure(session, plan, NULL, 1, session->arena, &found, err) < 0)
        return -1;
    lab_session_prove(session);
    if (session->invalid_count > 0)
        return lab_err_set(err, LAB_ERR_WRONG, "%s", session->invalid[0]);
    struct lab_work work = work_of(cost);
    rates.rates = lab_measure_rates(&found, &work);
    rates.median_s = lab_measure_primary(&found)->median;
    *ret_rates = rates;
    return 0;
}

int check_measure(struct check_run *run, int gpu, int node, const struct check_work *work,
                  struct check_rates *ret_rates, struct lab_err *err) {
    struct lab_session session = session_for(run, gpu, node);
    struct watching watching = {work, &session};
    struct lab_workload_cost cost;
    void *config;
    if (take_leases(run, err) < 0 || configure(run, work, &session.workload, &config, err) < 0)
        return -1;
    session.config = config;
    session.workload->cost(config, &cost);
    if (require_compute(run, &cost, err) < 0)
        return -1;
    session.listener =
        (struct lab_session_listener){.progress = on_progress, .sink = {.state = &watching}};
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.min_time_s = work->seconds * (session.ref.simulated ? SIMULATED_SHARE : 1);
    plan.limit_s = fmin(4 * plan.min_time_s + 1, fmax(1, check_left_s(run)));
    plan.precision = 0.005;
    plan.min_iterations = 10;
    plan.chunk_s = fmin(0.05, plan.min_time_s / 4);
    plan.seed = session.setup.seed;
    int result = lab_session_bind(&session, err) < 0 || lab_session_open(&session, err) < 0
                     ? -1
                     : measure_open(&session, &plan, &cost, ret_rates, err);
    lab_session_release(&session);
    return result;
}

/* --- pairs --- */

struct pair {
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_device *to_device;
    struct lab_buffer from, to;
};

static int enqueue_pair(void *opaque, int iteration, struct lab_err *err) {
    struct pair *pair = opaque;
    return lab_spans_start(&pair->spans, iteration, LAB_STAGE_COMPUTE, pair->stream, err) < 0 ||
                   lab_copy_peer(pair->stream, pair->to_device, pair->to.data, pair->from.data,
                                 PAIR_BYTES, err) < 0 ||
                   lab_spans_end(&pair->spans, iteration, LAB_STAGE_COMPUTE, pair->stream, err) < 0
               ? -1
               : 0;
}

static int run_pair(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct pair *pair = opaque;
    return lab_spans_run(&pair->spans, &pair->stream, 1, count, enqueue_pair, pair, records, err);
}

static int open_device(struct check_run *run, int gpu, struct lab_err *err) {
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    setup.seed = lab_random_bits(run->setup->seed, ++run->opened);
    if (run->open[gpu])
        return 0;
    return lab_device_open(run->setup->machine, &run->devices->items[gpu], setup, &run->open[gpu],
                           err);
}

void check_close_devices(struct check_run *run) {
    for (int i = 0; i < run->devices->count; i++) {
        lab_device_close(run->open[i]);
        run->open[i] = NULL;
    }
}

/* A pattern through the pair and back to the host. */
static int verify_pair(struct check_run *run, struct pair *pair, const char **ret_wrong,
                       struct lab_err *err) {
    struct lab_verification found = {0};
    struct lab_stream *back = NULL;
    if (pair->to_device->ref.simulated)
        return 0;
    LAB_AUTO_FREE unsigned char *pattern = lab_mem_alloc(PATTERN_BYTES, 1);
    LAB_AUTO_FREE unsigned char *arrived = lab_mem_alloc(PATTERN_BYTES, 1);
    for (size_t i = 0; i < PATTERN_BYTES; i++)
        pattern[i] = (unsigned char)lab_random_bits(run->setup->seed, i);
    int result = lab_stream_open(pair->to_device, LAB_STREAM_COPY, &back, err) < 0 ||
                         lab_copy(pair->stream, pair->from.data, pattern, PATTERN_BYTES,
                                  LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err) < 0 ||
                         lab_copy_peer(pair->stream, pair->to_device, pair->to.data,
                                       pair->from.data, PATTERN_BYTES, err) < 0 ||
                         lab_stream_sync(pair->stream, err) < 0 ||
                         lab_copy(back, arrived, pair->to.data, PATTERN_BYTES,
                                  LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, err) < 0 ||
                         lab_stream_sync(back, err) < 0
                     ? -1
                     : 0;
    lab_stream_close(back);
    if (result == 0)
        lab_verify_bytes(arrived, pattern, PATTERN_BYTES, &found);
    if (result == 0 && !found.passed)
        *ret_wrong = lab_arena_strdup(run->arena, found.text);
    return result;
}

static int time_pair(struct check_run *run, struct pair *pair, double *ret_bytes_per_s,
                     struct lab_err *err) {
    struct lab_subject subject = {.name = "copies between GPUs", .run = run_pair, .state = pair};
    struct lab_measurement found;
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.min_time_s = pair->to_device->ref.simulated ? 0.004 : 0.05;
    plan.limit_s = 10 * plan.min_time_s;
    plan.chunk_s = plan.min_time_s / 4;
    plan.clock = pair->stream->device->clock;
    if (lab_measure(&plan, &subject, 1, run->arena, &found, err) < 0)
        return -1;
    *ret_bytes_per_s = (double)PAIR_BYTES / lab_measure_primary(&found)->median;
    return 0;
}

int check_measure_pair(struct check_run *run, int from, int to, double *ret_bytes_per_s,
                       const char **ret_wrong, struct lab_err *err) {
    struct pair pair = {0};
    if (take_leases(run, err) < 0 || open_device(run, from, err) < 0 ||
        open_device(run, to, err) < 0)
        return -1;
    struct lab_device *device = run->open[from];
    pair.to_device = run->open[to];
    *ret_wrong = NULL;
    int result =
        lab_stream_open(device, LAB_STREAM_COPY, &pair.stream, err) < 0 ||
                lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, PAIR_BYTES, &pair.from, err) < 0 ||
                lab_buffer_open(pair.to_device, LAB_MEMORY_DEVICE, -1, PAIR_BYTES, &pair.to, err) <
                    0 ||
                lab_spans_open(device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE,
                               &pair.spans, err) < 0 ||
                verify_pair(run, &pair, ret_wrong, err) < 0 ||
                time_pair(run, &pair, ret_bytes_per_s, err) < 0
            ? -1
            : 0;
    lab_stream_close(pair.stream);
    lab_spans_close(&pair.spans);
    lab_buffer_close(&pair.from);
    lab_buffer_close(&pair.to);
    return result;
}

/* --- all GPUs at once --- */

struct gang {
    struct lab_group *group;
    atomic_bool stopped;
    const struct lab_workload_cost *cost;
    int64_t iterations;
};

struct member {
    struct gang *gang;
    struct lab_session session;
    struct watching watching;
    struct lab_arena arena;
    pthread_t thread;
    bool started;
    struct check_rates rates;
    int result;
    struct lab_err err;
};

static int run_member(struct member *member, struct lab_err *err) {
    struct lab_session *session = &member->session;
    struct gang *gang = member->gang;
    struct lab_measurement found;
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.iterations = gang->iterations;
    plan.warmup_iterations = GANG_WARMUP;
    plan.chunk_iterations = GANG_CHUNK;
    if (lab_session_bind(session, err) < 0 || lab_session_open(session, err) < 0 ||
        lab_group_meet(gang->group, session->rank.index, session->device, 1, err) < 0 ||
        lab_session_measure(session, &plan, NULL, 1, session->arena, &found, err) < 0 ||
        lab_group_meet(gang->group, session->rank.index, session->device, 2, err) < 0)
        return -1;
    struct lab_work work = work_of(gang->cost);
    member->rates.rates = lab_measure_rates(&found, &work);
    member->rates.median_s = lab_measure_primary(&found)->median;
    return 0;
}

static void *member_main(void *opaque) {
    struct member *member = opaque;
    member->result = run_member(member, &member->err);
    if (member->result < 0) {
        lab_group_fail(member->gang->group, member->session.rank.index, &member->err);
        atomic_store(&member->gang->stopped, true);
    }
    lab_session_close(&member->session);
    return NULL;
}

static void make_member(struct check_run *run, int index, const struct check_work *work,
                        struct gang *gang, struct member *member) {
    member->gang = gang;
    member->err = (struct lab_err)LAB_ERR_INIT;
    member->session = session_for(run, index, -1);
    lab_arena_init(&member->arena);
    member->session.arena = &member->arena;
    member->session.rank.index = index;
    member->session.rank.count = run->devices->count;
    member->session.rank.group = gang->group;
    member->session.setup.gang = run->devices->count;
    member->session.setup.stopped = &gang->stopped;
    member->watching = (struct watching){work, &member->session};
    member->session.listener = (struct lab_session_listener){.progress = on_progress,
                                                             .sink = {.state = &member->watching}};
}

/* Starts all, waits for all, and tells what the first to fail said. */
static int run_members(struct member *members, int count, struct gang *gang,
                       struct check_rates *ret_rates, struct lab_err *err) {
    int first = -1;
    for (int i = 0; i < count; i++) {
        members[i].started =
            pthread_create(&members[i].thread, NULL, member_main, &members[i]) == 0;
        if (!members[i].started) {
            members[i].result = lab_err_set(&members[i].err, LAB_ERR_SYSTEM, "no thread for it");
            lab_group_fail(gang->group, i, &members[i].err);
            atomic_store(&gang->stopped, true);
        }
    }
    for (int i = 0; i < count; i++)
        if (members[i].started)
            pthread_join(members[i].thread, NULL);
    int failed = lab_group_failed_rank(gang->group);
    for (int i = 0; i < count; i++) {
        if (members[i].result < 0 && (first < 0 || i == failed))
            first = i;
        ret_rates[i] = members[i].rates;
    }
    if (first >= 0 && err)
        *err = members[first].err;
    return first >= 0 ? -1 : 0;
}

int check_measure_all(struct check_run *run, const struct check_work *work, int64_t iterations,
                      struct check_rates *ret_rates, struct lab_err *err) {
    const struct lab_workload *workload;
    struct lab_workload_cost cost;
    void *config;
    int count = run->devices->count;
    if (take_leases(run, err) < 0 || configure(run, work, &workload, &config, err) < 0)
        return -1;
    workload->cost(config, &cost);
    if (require_compute(run, &cost, err) < 0)
        return -1;
    struct gang gang = {.cost = &cost, .iterations = iterations};
    gang.group = lab_group_open(&(struct lab_group_setup){
        .ranks = count, .limit_s = GANG_LIMIT_S + work->seconds, .stopped = &gang.stopped});
    LAB_AUTO_FREE struct member *members = lab_mem_alloc((size_t)count, sizeof *members);
    run->opened++;
    for (int i = 0; i < count; i++) {
        uint64_t opened = run->opened; /* one world: the same chance for all of it */
        make_member(run, i, work, &gang, &members[i]);
        run->opened = opened;
        members[i].session.setup.seed = lab_random_bits(run->setup->seed, opened);
        members[i].session.workload = workload;
        members[i].session.config = config;
    }
    int result = run_members(members, count, &gang, ret_rates, err);
    for (int i = 0; i < count; i++)
        lab_arena_release(&members[i].arena);
    lab_group_close(gang.group);
    return result;
}
