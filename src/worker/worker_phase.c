/*
 * worker_phase.c: what a rank of a study with phases does beside measuring: it tunes its kernel
 * under the phase's conditions, and times what several phases chose side by side. The cache of
 * tuned configurations plays no part in any of it.
 */
#include "worker/worker_internal.h"

#include "base/json.h"
#include "base/random.h"
#include "device/tunable.h"
#include "model/run.h"
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
    struct lab_session session = rank->session; /* on the same device */
    struct lab_tune_plan plan = {.session = &session,
                                 .budget_s = worker->job.tune_s,
                                 .warm = true, /* as the runs are measured */
                                 .progress = on_tuning,
                                 .state = rank};
    /* the same for a device in every phase: what is tried first must not make phases differ */
    session.rank.seed = lab_random_bits(worker->job.seed, (uint64_t)rank->job->gpu_id);
    if (lab_tune(&plan, &rank->arena, &result, &why) == 0) {
        const struct lab_value *value = tuning_value(&result, &rank->arena);
        const struct lab_result *best = lab_result_read(value, &rank->arena);
        rank->result.best_config = best->best_config;
        rank->result.best_time_ms = best->best_time_ms;
        rank->result.winner_is_certain = best->winner_is_certain;
        rank->result.tuning = lab_json_text(value, &rank->arena);
        rank->configuration = result.trials[result.best].config;
        for (int i = 0; result.warnings && result.warnings[i]; i++)
            worker_warn(rank,
                        lab_arena_printf(&rank->arena, LAB_WARNS_TUNING "%s", result.warnings[i]));
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

int worker_configure(struct rank *rank, struct lab_err *err) {
    struct lab_session *session = &rank->session;
    struct lab_tuning tuning;
    if (rank->job->choice_count > 0)
        rank->configuration = rank->job->choices[0].config;
    else if (rank->job->config)
        rank->configuration = rank->job->config;
    if (!rank->configuration || !session->workload->launch)
        return 0;
    if (lab_session_parse(session, rank->configuration, &tuning, err) < 0 ||
        lab_session_configure(session, &tuning, err) < 0)
        return lab_err_context(err, "configuration %s", rank->configuration);
    return 0;
}

/* --- choices side by side --- */

static double round_median(const struct lab_measurement *m, int round, double *scratch) {
    int begin = round ? m->round_ends[round - 1] : 0, count = m->round_ends[round] - begin;
    for (int i = 0; i < count; i++)
        scratch[i] = (double)(m->iterations[begin + i].end_ns - m->iterations[begin + i].start_ns);
    return lab_stats_median(scratch, (size_t)count);
}

/* By rounds, so that whatever slows the device down hits both. */
static void compare(const struct lab_measurement *base, const struct lab_measurement *other,
                    struct lab_result_regret *regret) {
    int rounds = base->round_count < other->round_count ? base->round_count : other->round_count;
    size_t most = base->count > other->count ? base->count : other->count;
    LAB_AUTO_FREE double *logs = lab_mem_alloc((size_t)rounds + most + 1, sizeof *logs);
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
}

/* Each configuration once, however many phases chose it: the choices, and whose each is. */
static int gather(struct rank *rank, struct lab_session_choice *choices, int *whose,
                  struct lab_err *err) {
    const struct lab_job_rank *job = rank->job;
    int count = 0;
    for (int i = 0; i < job->choice_count; i++) {
        struct lab_session_choice *choice = &choices[count];
        choice->name = job->choices[i].config;
        if (lab_session_parse(&rank->session, choice->name, &choice->tuning, err) < 0)
            return lab_err_context(err, "what phase %s chose", job->choices[i].phase);
        whose[i] = 0;
        while (!lab_tuning_equal(&choices[whose[i]].tuning, &choice->tuning))
            whose[i]++;
        count += whose[i] == count;
    }
    return count;
}

/* Each as often as one alone would be. */
static int warm_up(struct rank *rank, const struct lab_session_choice *choices, int count,
                   int64_t iterations, struct lab_err *err) {
    struct lab_iteration unused;
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < iterations; k++)
            if (lab_session_run(&rank->session, &choices[i].tuning, 1, &unused, err) < 0)
                return -1;
    return 0;
}

static void add_regrets(struct rank *rank, const struct lab_measurement *found, const int *whose) {
    const struct lab_job_rank *job = rank->job;
    for (int i = 1; i < job->choice_count; i++) {
        struct lab_result_regret *regret = LAB_RESULT_ADD(&rank->result, regret, &rank->arena);
        *regret = (struct lab_result_regret){.phase = job->choices[i].phase,
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
}

int worker_measure_choices(struct rank *rank, const struct lab_measure_plan *plan,
                           void (*ready)(struct rank *rank), struct lab_err *err) {
    struct lab_arena *arena = &rank->arena;
    size_t most = (size_t)rank->job->choice_count;
    struct lab_session_choice *choices = lab_arena_alloc(arena, most, sizeof *choices);
    struct lab_measurement *found = lab_arena_alloc(arena, most, sizeof *found);
    int *whose = lab_arena_alloc(arena, most, sizeof *whose);
    int count = gather(rank, choices, whose, err);
    if (count < 0)
        return -1;
    struct lab_measure_plan own = *plan;
    own.chunk_s = fmin(own.chunk_s, fmax(own.duration_s, 0.2) / (40 * count));
    own.warmup_iterations = 0;
    if (warm_up(rank, choices, count, plan->warmup_iterations, err) < 0)
        return -1;
    ready(rank);
    if (atomic_load(&rank->worker->stopping))
        return 0;
    if (lab_session_measure(&rank->session, &own, choices, count, arena, found, err) < 0)
        return -1;
    rank->measurement = found[0];
    add_regrets(rank, found, whose);
    return 0;
}
