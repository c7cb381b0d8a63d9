/*
 * worker_phase.c: what a rank of a study with phases does beside measuring: it tunes its kernel
 * under the phase's conditions, and times what several phases chose side by side. The cache of
 * tuned configurations plays no part in any of it.
 */
#include "worker/worker_internal.h"

#include "base/clock.h"
#include "base/random.h"
#include "device/tunable.h"
#include "store/tuning/timing_file.h"
#include "tune/tune.h"

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
    struct lab_value *map = lab_timing_file_value(result, arena);
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
    rank->chunk = records;
    rank->chunk_count = contender->first ? count : 0;
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
    contenders[0].rank->chunk_count = 0;
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
    own.chunk_s = fmin(own.chunk_s, fmax(own.duration_s, 0.2) / (40 * count));
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
