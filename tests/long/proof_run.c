/*
 * proof_run.c: one run without its process. A rank opens a simulated device and measures the
 * pipeline on it by the same loop as a worker does; ranks of a gang share a simulated world, in a
 * thread each.
 */
#include "proof_run.h"
#include "proof_samples.h"

#include "base/random.h"
#include "measure/measure.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define WARMUP  5
#define IMAGE   224
#define POOL_MB 64

void *proof_run_config(const struct lab_workload *workload, const struct proof_point *point,
                       struct lab_arena *arena, struct lab_err *err) {
    int image = point->image ? point->image : IMAGE;
    int heads = point->heads ? point->heads : point->dim >= 64 ? point->dim / 64 : 1;
    const char *pipeline[] = {
        lab_arena_printf(arena, "patch_size=%d", point->patch),
        lab_arena_printf(arena, "depth=%d", point->depth),
        lab_arena_printf(arena, "heads=%d", heads),
        lab_arena_printf(arena, "dim=%d", point->dim),
        lab_arena_printf(arena, "batch_size=%d", point->batch),
        lab_arena_printf(arena, "compile_model=%s", point->compiled ? "true" : "false"),
        lab_arena_printf(arena, "memory_size_mb=%d", point->memory_mb ? point->memory_mb : POOL_MB),
        lab_arena_printf(arena, "tensor_shape=[3,%d,%d]", image, image),
        NULL};
    const char *const *words = point->workload ? point->options : pipeline;
    void *config = lab_workload_config(workload, arena);
    for (int i = 0; words[i]; i++)
        if (lab_options_set_word(workload->options, config, arena, words[i], err) < 0)
            return NULL;
    return workload->check && workload->check(config, err) < 0 ? NULL : config;
}

struct gang {
    struct proof_study *study;
    const struct lab_workload *workload;
    const void *config;
    int count;
    struct lab_device_setup setup; /* but for the node */
    struct lab_group *group;       /* of a workload whose ranks work together; NULL = it isn't */
    pthread_barrier_t barrier;
};

struct rank {
    struct gang *gang;
    const struct proof_point *point;
    int index;
    struct lab_arena arena; /* a thread's own */
    struct lab_device *device;
    void *state; /* the workload's */
    bool met;
    int64_t shown[2], *others[PROOF_RANKS_MAX]; /* sizes of stretches, to agree on the least */
    int shown_next;
    struct proof_measured *measured;
    int result;
    struct lab_err err;
    pthread_t thread;
};

/* From here on all go together. One that fails comes too, so that nobody waits for it. */
static void meet(struct rank *rank) {
    if (rank->met)
        return;
    rank->met = true;
    lab_device_rest(rank->device);
    pthread_barrier_wait(&rank->gang->barrier);
    lab_device_wake(rank->device);
}

static int run_stretch(void *opaque, int count, struct lab_iteration *records,
                       struct lab_err *err) {
    struct rank *rank = opaque;
    return rank->gang->workload->run(rank->state, count, records, err);
}

static bool on_progress(const struct lab_measure_progress *now, void *opaque) {
    if (now->phase == LAB_MEASURE_WARMUP && now->iterations >= WARMUP)
        meet(opaque);
    return false;
}

/* Ranks that work together have the same stretches. */
static int agree(void *opaque, int64_t own, int64_t *ret_size, struct lab_err *err) {
    struct rank *rank = opaque;
    *ret_size = own;
    if (!rank->gang->group)
        return 0;
    int64_t *shown = &rank->shown[rank->shown_next];
    *shown = own;
    rank->shown_next = !rank->shown_next;
    if (lab_group_exchange(rank->gang->group, rank->index, rank->device, shown,
                           (void **)rank->others, err) < 0)
        return -1;
    for (int i = 0; i < rank->gang->count; i++)
        *ret_size = *rank->others[i] < *ret_size ? *rank->others[i] : *ret_size;
    return 0;
}

static struct lab_result make_result(const struct lab_measurement *measurement,
                                     const struct lab_rates *rates) {
    struct lab_result result = lab_result_none;
    result.latency_ms_median = 1e3 * measurement->latency.median;
    result.interval_ms_median = 1e3 * measurement->interval.median;
    result.first_iteration_ms = 1e3 * measurement->first_s;
    result.h2d_gb_per_s = 1e-9 * rates->h2d_bytes_per_s;
    result.d2h_gb_per_s = 1e-9 * rates->d2h_bytes_per_s;
    return result;
}

static void read_figures(const struct lab_measurement *measurement, struct rank *rank) {
    const struct lab_workload *workload = rank->gang->workload;
    struct lab_workload_cost cost = {0};
    workload->cost(rank->gang->config, &cost);
    if (rank->gang->group && workload->share)
        workload->share(rank->gang->config, rank->index, rank->gang->count, &cost);
    struct lab_work work = {
        .samples = cost.samples, .h2d_bytes = cost.h2d_bytes, .d2h_bytes = cost.d2h_bytes};
    struct lab_rates rates = lab_measure_rates(measurement, &work);
    struct proof_measured *measured = rank->measured;
    measured->rate = work.samples > 0 ? rates.samples_per_s : rates.iterations_per_s;
    measured->time_s = lab_measure_primary(measurement)->median;
    measured->rate_interval = lab_measure_rate_interval(measurement, measured->rate);
    measured->iterations = measurement->iterations;
    measured->iteration_count = measurement->count;
    measured->result = make_result(measurement, &rates);
}

static int measure(struct rank *rank) {
    const struct lab_workload *workload = rank->gang->workload;
    struct lab_rank place = {.device = rank->device,
                             .ref = &rank->measured->ref,
                             .numa_node = rank->point->node,
                             .index = rank->index,
                             .count = rank->gang->count,
                             .seed = 1,
                             .gpu_id = rank->point->gpu,
                             .group = rank->gang->group};
    int64_t began_ns = lab_clock_now(rank->device->clock);
    if (workload->open(rank->gang->config, &place, &rank->state, &rank->err) < 0)
        return -1;
    double setup_s = 1e-9 * (double)(lab_clock_now(rank->device->clock) - began_ns);
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.iterations = rank->point->iterations;
    plan.warmup_iterations = WARMUP;
    plan.clock = rank->device->clock;
    plan.progress = on_progress;
    plan.progress_state = rank;
    plan.agree = agree;
    plan.agree_state = rank;
    struct lab_subject subject = {"proof", run_stretch, rank};
    struct lab_measurement measurement;
    int result = lab_measure(&plan, &subject, 1, &rank->arena, &measurement, &rank->err);
    if (result == 0)
        read_figures(&measurement, rank);
    rank->measured->result.setup_s = setup_s;
    workload->close(rank->state);
    rank->measured->end_ns = lab_clock_now(rank->device->clock);
    if (result == 0 && rank->point->sampled)
        rank->measured->recording = proof_samples_read(rank->device, &rank->gang->study->arena);
    return result;
}

static void *rank_main(void *opaque) {
    struct rank *rank = opaque;
    struct lab_device_setup setup = rank->gang->setup;
    setup.host_node = rank->point->node;
    rank->result = lab_device_open(rank->gang->study->host, &rank->measured->ref, setup,
                                   &rank->device, &rank->err);
    if (rank->result == 0)
        rank->result = measure(rank);
    if (rank->result < 0)
        lab_group_fail(rank->gang->group, rank->index, &rank->err);
    meet(rank);
    lab_device_close(rank->device);
    return NULL;
}

/* Into the study's arena, which no thread of a gang may touch. */
static int hand_over(struct rank *rank, struct lab_err *err) {
    struct proof_measured *measured = rank->measured;
    if (rank->result == 0) {
        struct lab_iteration *iterations = lab_arena_alloc(
            &rank->gang->study->arena, measured->iteration_count + 1, sizeof *iterations);
        memcpy(iterations, measured->iterations, measured->iteration_count * sizeof *iterations);
        measured->iterations = iterations;
    } else {
        lab_err_set(err, rank->err.code, "%s", rank->err.text);
    }
    lab_arena_release(&rank->arena);
    return rank->result;
}

static int select_device(struct proof_study *study, int gpu, struct lab_device_ref *ret_ref,
                         struct lab_err *err) {
    struct lab_device_list list = {0};
    const char *selector = lab_arena_printf(&study->arena, "sim:%s:%d", study->name, gpu);
    if (lab_device_select(study->host, selector, &study->arena, &list, err) < 0)
        return -1;
    *ret_ref = list.items[0];
    return 0;
}

int proof_run_measure(struct proof_study *study, const struct proof_point *points, int count,
                      const struct lab_workload *workload, const void *config,
                      struct proof_measured *ret_measured, struct lab_err *err) {
    struct gang gang = {.study = study,
                        .workload = workload,
                        .config = config,
                        .count = count,
                        .setup = LAB_DEVICE_SETUP};
    struct rank ranks[PROOF_RANKS_MAX];
    assert(count >= 1 && count <= PROOF_RANKS_MAX);
    if (workload->collective && count > 1 && !points[0].phase)
        gang.group =
            lab_group_open(&(struct lab_group_setup){.ranks = count, .limit_s = LAB_GROUP_LIMIT_S});
    gang.setup.gang = count;
    gang.setup.seed = lab_random_bits(study->seed, study->run_count);
    gang.setup.start_ns = study->time_ns;
    for (int i = 0; i < count; i++) {
        if (select_device(study, points[i].gpu, &ret_measured[i].ref, err) < 0)
            return -1;
        ranks[i] = (struct rank){.gang = &gang,
                                 .point = &points[i],
                                 .index = i,
                                 .measured = &ret_measured[i],
                                 .err = LAB_ERR_INIT};
    }
    pthread_barrier_init(&gang.barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        lab_arena_init(&ranks[i].arena);
    for (int i = 1; i < count; i++)
        pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]);
    rank_main(&ranks[0]);
    for (int i = 1; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    pthread_barrier_destroy(&gang.barrier);
    lab_group_close(gang.group);
    int result = 0;
    for (int i = 0; i < count; i++)
        result = hand_over(&ranks[i], err) < 0 ? -1 : result;
    return result;
}
