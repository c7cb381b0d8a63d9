/*
 * worker_phase.c: what a rank of a study with phases does beside measuring: it tunes its kernel under the
 * phase's conditions, times what several phases chose side by side, and probes what is left of its
 * device's resources. The cache of tuned configurations plays no part in any of it.
 */
#include "study/worker_internal.h"

#include "base/clock.h"
#include "base/random.h"
#include "device/tunable.h"
#include "study/tune.h"

#include <math.h>

#define TIMINGS_MOST 500 /* of a tuning that are kept: the last ones, which decided */
#define CONFIDENCE   0.95

void worker_warn(struct rank *rank, const char *sentence) {
    if (rank->phase_warning_count <
        (int)(sizeof rank->phase_warnings / sizeof *rank->phase_warnings))
        rank->phase_warnings[rank->phase_warning_count++] =
            lab_arena_strdup(&rank->arena, sentence);
}

int worker_bind(const struct rank *rank, struct lab_err *err) {
    struct lab_cpus cpus = {(int *)(uintptr_t)rank->job->cpus, rank->job->cpu_count};
    if (cpus.count == 0)
        return 0;
    return lab_bind_cpus(rank->worker->machine, &cpus, false, err) < 0
               ? lab_err_context(err, "CPUs of its own")
               : 0;
}

/* --- tuning --- */

static bool on_tuning(const struct lab_tune_progress *progress, void *state) {
    (void)progress;
    const struct rank *rank = state;
    return atomic_load(&rank->worker->stopping);
}

/* Without the many single timings of races that were lost long before the end. */
static struct lab_value *tuning_value(const struct lab_tuning_result *result,
                                      struct lab_arena *arena) {
    struct lab_value *map = lab_tune_result_value(result, arena);
    const struct lab_value *all = lab_value_get(map, "detailed_timings");
    if (!all || all->type != LAB_VALUE_LIST || all->count <= TIMINGS_MOST)
        return map;
    struct lab_value *last = lab_value_list(arena);
    for (int i = all->count - TIMINGS_MOST; i < all->count; i++)
        lab_value_append(arena, last, all->items[i]);
    lab_value_set(arena, map, "detailed_timings", last);
    return map;
}

int worker_tune(struct rank *rank, struct lab_err *err) {
    struct worker *worker = rank->worker;
    struct lab_tuning_result result;
    struct lab_err why = LAB_ERR_INIT;
    struct lab_tune_plan plan = {.workload = worker->workload,
                                 .config = worker->config,
                                 .rank = worker_place(rank),
                                 .budget_s = worker->job.tune_s,
                                 .warm = true, /* as the runs are measured */
                                 .progress = on_tuning,
                                 .state = rank};
    /* the same for a device in every phase: what is tried first must not make phases differ */
    plan.rank.seed = lab_random_bits(worker->job.seed, (uint64_t)rank->job->gpu_id);
    if (lab_tune(&plan, &rank->arena, &result, &why) == 0) {
        rank->tuning = tuning_value(&result, &rank->arena);
        rank->configuration = result.trials[result.best].config;
        for (int i = 0; result.warnings && result.warnings[i]; i++)
            worker_warn(rank, lab_arena_printf(&rank->arena, "tuning: %s", result.warnings[i]));
        return 0;
    }
    if (atomic_load(&worker->stopping))
        return 0;
    if (why.code != LAB_ERR_UNSUPPORTED && why.code != LAB_ERR_INTERRUPTED)
        return lab_err_set(err, why.code, "tuning: %s", why.text);
    worker_warn(rank, lab_arena_printf(&rank->arena, "it was not tuned: %s", why.text));
    return 0;
}

/* --- configurations --- */

static int parse(const struct rank *rank, const char *text, struct lab_tuning *ret_tuning,
                 struct lab_err *err) {
    const struct worker *worker = rank->worker;
    struct lab_tunable_place place = {rank->device->machine, &rank->device->ref};
    struct lab_launch launch;
    worker->workload->launch(worker->config, &launch);
    if (lab_launch_complete(&launch, err) < 0)
        return -1;
    const struct lab_tunable *tunable = lab_tunable_find(&place, &launch);
    if (!tunable)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has no configurations to choose from",
                           worker->workload->name);
    if (lab_tuning_parse(tunable, &place, &launch, text, ret_tuning, err) < 0)
        return -1;
    return lab_tuning_check(tunable, &place, &launch, ret_tuning, err);
}

int worker_configure(struct rank *rank, struct lab_err *err) {
    const struct lab_workload *workload = rank->worker->workload;
    struct lab_tuning tuning;
    if (rank->job->choice_count > 0)
        rank->configuration = rank->job->choices[0].config;
    else if (rank->job->config)
        rank->configuration = rank->job->config;
    if (!rank->configuration || !workload->launch)
        return 0;
    if (parse(rank, rank->configuration, &tuning, err) < 0 ||
        workload->configure(rank->state, &tuning, err) < 0)
        return lab_err_context(err, "configuration %s", rank->configuration);
    return 0;
}

/* --- choices side by side --- */

struct contender {
    struct rank *rank;
    struct lab_tuning tuning;
    bool first;
};

static int run_contender(void *state, int count, struct lab_iteration *records,
                         struct lab_err *err) {
    struct contender *contender = state;
    struct rank *rank = contender->rank;
    const struct lab_workload *workload = rank->worker->workload;
    if (workload->configure(rank->state, &contender->tuning, err) < 0 ||
        workload->run(rank->state, count, records, err) < 0)
        return -1;
    /* the first one's are the run's own iterations */
    rank->stretch = records;
    rank->stretch_count = contender->first ? count : 0;
    return 0;
}

static double round_median(const struct lab_measurement *m, int round, double *scratch) {
    int begin = round ? m->round_ends[round - 1] : 0, count = m->round_ends[round] - begin;
    for (int i = 0; i < count; i++)
        scratch[i] = (double)(m->iterations[begin + i].end_ns - m->iterations[begin + i].start_ns);
    return lab_stats_median(scratch, (size_t)count);
}

/* By rounds, so that whatever slows the device down hits both. */
static void compare(const struct lab_measurement *base, const struct lab_measurement *other,
                    struct regret *regret) {
    int rounds = base->round_count < other->round_count ? base->round_count : other->round_count;
    size_t most = base->count > other->count ? base->count : other->count;
    double *logs = lab_mem_alloc((size_t)rounds + most + 1, sizeof *logs);
    int known = 0;
    for (int i = 0; i < rounds; i++) {
        double ratio =
            log(round_median(other, i, logs + rounds) / round_median(base, i, logs + rounds));
        if (isfinite(ratio))
            logs[known++] = ratio;
    }
    regret->rounds = known;
    if (known > 0) {
        struct lab_interval interval = lab_stats_median_interval(logs, (size_t)known, CONFIDENCE);
        regret->ratio = exp(lab_stats_median(logs, (size_t)known));
        if (interval.confidence >= CONFIDENCE) {
            regret->low = exp(interval.low);
            regret->high = exp(interval.high);
        }
    }
    lab_mem_free(logs);
}

/* One contender for each configuration, however many phases chose it. */
static int find_contender(const struct contender *contenders, int count,
                          const struct lab_tuning *tuning) {
    for (int i = 0; i < count; i++)
        if (lab_tuning_equal(&contenders[i].tuning, tuning))
            return i;
    return -1;
}

/* Each as often as one alone would be. */
static int warm_up(struct contender *contenders, int count, int64_t iterations,
                   struct lab_err *err) {
    struct lab_iteration unused;
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < iterations; k++)
            if (run_contender(&contenders[i], 1, &unused, err) < 0)
                return -1;
    contenders[0].rank->stretch_count = 0;
    return 0;
}

int worker_measure_choices(struct rank *rank, const struct lab_measure_plan *plan,
                           void (*ready)(struct rank *rank), struct lab_err *err) {
    const struct lab_job_rank *job = rank->job;
    struct lab_arena *arena = &rank->arena;
    size_t most = (size_t)job->choice_count;
    struct contender *contenders = lab_arena_alloc(arena, most, sizeof *contenders);
    struct lab_subject *subjects = lab_arena_alloc(arena, most, sizeof *subjects);
    struct lab_measurement *found = lab_arena_alloc(arena, most, sizeof *found);
    int *whose = lab_arena_alloc(arena, most, sizeof *whose), count = 0;
    for (int i = 0; i < job->choice_count; i++) {
        struct lab_tuning tuning;
        if (parse(rank, job->choices[i].config, &tuning, err) < 0)
            return lab_err_context(err, "what phase %s chose", job->choices[i].phase);
        whose[i] = find_contender(contenders, count, &tuning);
        if (whose[i] >= 0)
            continue;
        whose[i] = count;
        contenders[count] = (struct contender){rank, tuning, count == 0};
        subjects[count] =
            (struct lab_subject){job->choices[i].config, run_contender, &contenders[count]};
        count++;
    }
    struct lab_measure_plan own = *plan;
    own.stretch_s = fmin(own.stretch_s, fmax(own.duration_s, 0.2) / (40 * count));
    own.warmup_iterations = 0;
    if (warm_up(contenders, count, plan->warmup_iterations, err) < 0)
        return -1;
    ready(rank);
    if (atomic_load(&rank->worker->stopping))
        return 0;
    if (lab_measure(&own, subjects, count, arena, found, err) < 0)
        return -1;
    rank->measurement = found[0];
    rank->regrets = lab_arena_alloc(arena, most, sizeof *rank->regrets);
    for (int i = 1; i < job->choice_count; i++) {
        struct regret *regret = &rank->regrets[rank->regret_count++];
        *regret = (struct regret){.phase = job->choices[i].phase,
                                  .config = job->choices[i].config,
                                  .ratio = NAN,
                                  .low = NAN,
                                  .high = NAN,
                                  .same = whose[i] == 0};
        if (regret->same)
            regret->ratio = regret->low = regret->high = 1;
        else
            compare(&found[0], &found[whose[i]], regret);
    }
    return 0;
}

/* --- what is left of the device's resources --- */

#define PROBE_ROUNDS 8
#define PROBE_NS     (15 * LAB_NS_PER_MS) /* of each in each round: several of a scheduler's turns */
/* Units between two waits of the host, some milliseconds: waking up must not be what is measured. */
#define COMPUTE_AT_ONCE 32
#define BYTES_AT_ONCE   4
#define SIDE_CPU        256 /* a product that stays in a core's cache */
#define SIDE_GPU        2048
#define BYTES_CPU       ((int64_t)64 << 20)
#define BYTES_GPU       ((int64_t)256 << 20)
#define BYTES_MOST      ((int64_t)512 << 20)
#define COPY_BYTES      ((int64_t)32 << 20)

enum { PROBE_COMPUTE, PROBE_MEMORY, PROBE_H2D, PROBE_D2H, PROBES };

struct prober {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer matrix[3], memory, host;
    struct lab_launch product, sum;
    bool copies;
    double rates[PROBES][PROBE_ROUNDS];
    double clock_mhz; /* sum over what was read behind products */
    int clock_count;
};

static int64_t largest_cache(const struct lab_machine *machine) {
    int64_t largest = 0;
    for (int i = 0; i < machine->cache_count; i++)
        if (machine->caches[i].size_bytes > largest)
            largest = machine->caches[i].size_bytes;
    return largest;
}

static int prober_open(struct prober *prober, enum lab_dtype dtype, int node, struct lab_err *err) {
    struct lab_device *device = prober->device;
    bool cpus = device->ref.cpus.count > 0;
    int64_t side = cpus ? SIDE_CPU : SIDE_GPU, bytes = cpus ? BYTES_CPU : BYTES_GPU;
    if (cpus && bytes < 4 * largest_cache(device->machine))
        bytes = 4 * largest_cache(device->machine);
    bytes = bytes < BYTES_MOST ? bytes : BYTES_MOST;
    prober->copies = !cpus; /* a CPU's copies are its memory once more */
    struct lab_tensor *tensors[3] = {&prober->product.in[0], &prober->product.in[1],
                                     &prober->product.out};
    if (lab_stream_open(device, LAB_STREAM_COMPUTE, &prober->stream, err) < 0)
        return -1;
    prober->product.op = LAB_OP_GEMM;
    for (int i = 0; i < 3; i++) {
        *tensors[i] = lab_tensor_matrix(NULL, dtype, side, side);
        if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensors[i]),
                            &prober->matrix[i], err) < 0)
            return -1;
        tensors[i]->data = prober->matrix[i].data;
        struct lab_launch clear = {.op = LAB_OP_FILL, .out = *tensors[i], .value = 0.5f};
        if (lab_launch(prober->stream, &clear, err) < 0)
            return -1;
    }
    if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)bytes, &prober->memory, err) < 0)
        return -1;
    int64_t half = bytes / 2 / (int64_t)sizeof(float);
    struct lab_tensor sum = lab_tensor_vector(prober->memory.data, LAB_FP32, half);
    prober->sum = (struct lab_launch){
        .op = LAB_OP_ADD,
        .in = {sum, lab_tensor_vector((float *)prober->memory.data + half, LAB_FP32, half)},
        .out = sum};
    struct lab_launch clear = {.op = LAB_OP_FILL,
                               .out = lab_tensor_vector(prober->memory.data, LAB_FP32, 2 * half),
                               .value = 0.0f};
    if (lab_launch(prober->stream, &clear, err) < 0)
        return -1;
    if (prober->copies &&
        lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, node, COPY_BYTES, &prober->host, err) < 0)
        return -1;
    return lab_stream_sync(prober->stream, err);
}

static void prober_close(struct prober *prober) {
    lab_stream_close(prober->stream);
    for (int i = 0; i < 3; i++)
        lab_buffer_close(&prober->matrix[i]);
    lab_buffer_close(&prober->memory);
    lab_buffer_close(&prober->host);
}

/* Puts one unit of a probe on the stream; returns how much it is. */
static int enqueue(struct prober *prober, int probe, double *ret_amount, struct lab_err *err) {
    double side = (double)prober->product.out.shape[0];
    switch (probe) {
    case PROBE_COMPUTE:
        *ret_amount = 2 * side * side * side;
        return lab_launch(prober->stream, &prober->product, err);
    case PROBE_MEMORY:
        *ret_amount = 1.5 * (double)prober->memory.size_bytes; /* two halves read, one written */
        return lab_launch(prober->stream, &prober->sum, err);
    case PROBE_H2D:
        *ret_amount = COPY_BYTES;
        return lab_copy(prober->stream, prober->memory.data, prober->host.data, COPY_BYTES,
                        LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, err);
    default:
        *ret_amount = COPY_BYTES;
        return lab_copy(prober->stream, prober->host.data, prober->memory.data, COPY_BYTES,
                        LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err);
    }
}

/* `round` < 0: it isn't counted. */
static int run_probe(struct prober *prober, int probe, int round, struct lab_err *err) {
    const struct lab_clock *clock = prober->device->clock;
    int64_t start_ns = lab_clock_now(clock), now_ns;
    double total = 0;
    do {
        for (int i = 0; i < (probe == PROBE_COMPUTE ? COMPUTE_AT_ONCE : BYTES_AT_ONCE); i++) {
            double amount = 0;
            if (enqueue(prober, probe, &amount, err) < 0)
                return -1;
            total += amount;
        }
        if (lab_stream_sync(prober->stream, err) < 0)
            return -1;
        now_ns = lab_clock_now(clock);
    } while (round >= 0 && now_ns - start_ns < PROBE_NS);
    if (round >= 0)
        prober->rates[probe][round] = total / (1e-9 * (double)(now_ns - start_ns));
    return 0;
}

static void read_clock(struct prober *prober) {
    double clock_mhz = lab_device_clock_mhz(prober->device);
    prober->clock_mhz += clock_mhz > 0 ? clock_mhz : 0;
    prober->clock_count += clock_mhz > 0;
}

static int run_probes(struct prober *prober, struct lab_err *err) {
    for (int round = -1; round < PROBE_ROUNDS; round++) { /* the first time isn't counted */
        for (int probe = 0; probe < (prober->copies ? PROBES : PROBE_H2D); probe++) {
            if (run_probe(prober, probe, round, err) < 0)
                return -1;
            if (probe == PROBE_COMPUTE && round >= 0)
                read_clock(prober);
        }
    }
    return 0;
}

/*
 * Medians over the rounds, which a neighbour's bursts don't move. Memory by its ratio to the product of
 * the same round: what takes the device away for a while takes it from both.
 */
static struct capacity summarize(const struct prober *prober) {
    double ratios[PROBE_ROUNDS], medians[PROBES];
    for (int i = 0; i < PROBE_ROUNDS; i++)
        ratios[i] = prober->rates[PROBE_MEMORY][i] / prober->rates[PROBE_COMPUTE][i];
    for (int i = 0; i < PROBES; i++)
        medians[i] = i < PROBE_H2D || prober->copies
                         ? lab_stats_median(prober->rates[i], PROBE_ROUNDS)
                         : (double)NAN;
    return (struct capacity){
        medians[PROBE_COMPUTE], medians[PROBE_COMPUTE] * lab_stats_median(ratios, PROBE_ROUNDS),
        medians[PROBE_H2D], medians[PROBE_D2H],
        prober->clock_count > 0 ? prober->clock_mhz / prober->clock_count : (double)NAN};
}

void worker_probe(struct rank *rank) {
    struct prober prober = {.device = rank->device};
    struct lab_err err = LAB_ERR_INIT;
    if (!rank->device)
        return;
    enum lab_dtype dtype = rank->worker->cost.dtype;
    int node = rank->job->numa_node >= 0 ? rank->job->numa_node : rank->device->ref.node;
    if (prober_open(&prober, dtype, node, &err) == 0 && run_probes(&prober, &err) == 0) {
        rank->capacity = summarize(&prober);
        rank->probed = true;
    } else {
        worker_warn(rank,
                    lab_arena_printf(&rank->arena, "what is left of its resources isn't known: %s",
                                     err.text));
    }
    prober_close(&prober);
}
