/* plan_estimate.c: time, energy and disk that a plan takes, from earlier runs. */
#include "run/estimate/plan_estimate.h"

#include "base/yaml/yaml.h"
#include "run/plan_record.h"

#include <math.h>
#include <string.h>

bool lab_run_plan_is_simulated(const struct lab_plan *plan) {
    return plan->run_count > 0 && plan->runs[0].rank_count > 0 &&
           lab_run_device_is_simulated(plan->runs[0].ranks[0].device);
}

/* --- time --- */

/* Of a processor, for the report: the page, charts by points, tables by runs, what is read. From
 * reports of shipped studies, 3 to 2304 runs and 0.1 to 25 MB. */
#define REPORT_S       0.3
#define REPORT_POINT_S 0.02
#define REPORT_RUN_S   0.0012
#define REPORT_BYTE_S  0.18e-6
#define REPORT_MOST_S  45  /* its time limit, and files */
#define PHASE_BESIDE_S 1.5 /* opening, verifying, and probing what resources are left */

/* A run that measures for a time, on the device's clock; 0 = it counts iterations. */
static double asked_s(const struct lab_plan *plan, const struct lab_plan_run *run) {
    return run->phase && run->duration_s > 0 ? run->duration_s : plan->duration_s;
}

/* How many iterations it will do, of each rank. */
static double count_iterations(const struct lab_plan *plan, const struct lab_run *record,
                               const struct lab_history *history) {
    double seconds = asked_s(plan, &plan->runs[record->position]);
    double step_s = history && seconds > 0 ? lab_history_device_step_s(history, record) : NAN;
    return step_s > 0 ? fmax(seconds / step_s, (double)record->iterations)
                      : (double)record->iterations;
}

double lab_run_plan_estimate_run(const struct lab_plan *plan, const struct lab_run *record,
                                 const struct lab_history *history,
                                 enum lab_history_basis *ret_basis) {
    const struct lab_plan_run *run = &plan->runs[record->position];
    double seconds = asked_s(plan, run);
    *ret_basis = LAB_HISTORY_NONE;
    if (seconds > 0 && lab_run_plan_is_simulated(plan)) { /* it takes what it simulates */
        struct lab_run counted = *record;
        counted.iterations = (int64_t)count_iterations(plan, record, history);
        return history ? lab_history_expect(history, &counted, ret_basis) : NAN;
    }
    double expected_s = history ? lab_history_expect(history, record, ret_basis) : NAN;
    bool phased = run->phase && run->duration_s > 0; /* of another length than its like elsewhere */
    if (!phased && !(plan->duration_s > 0 && !(expected_s > plan->duration_s)))
        return expected_s;
    *ret_basis = LAB_HISTORY_NONE;
    return phased ? run->duration_s + run->tune_s + PHASE_BESIDE_S : plan->duration_s;
}

/* How many runs can be under way at once: a gang takes a place on a device for each of its
 * ranks. */
static double busy_workers(const struct lab_plan *plan) {
    LAB_AUTO_FREE bool *used = lab_mem_alloc((size_t)plan->devices.count + 1, sizeof *used);
    int64_t ranks = 0;
    int devices = 0;
    for (int i = 0; i < plan->run_count; i++) {
        int count;
        const struct lab_run_rank *places = lab_plan_run_places(&plan->runs[i], &count);
        ranks += plan->runs[i].rank_count;
        for (int k = 0; k < count; k++) {
            int id = places[k].gpu_id;
            devices += !used[id];
            used[id] = true;
        }
    }
    double places = (double)devices * plan->runs_per_device;
    double gangs = ranks ? places * plan->run_count / (double)ranks : 1;
    return fmax(1, fmin(fmin(plan->max_workers, plan->run_count), floor(gangs)));
}

/* The pauses between runs: each worker's own, so that those of several pass together. */
static double cooldowns_s(const struct lab_plan *plan, double workers) {
    bool shortened = plan->run_count > 0 && plan->runs[0].phase &&
                     !lab_run_uses_gpu(plan->runs[0].ranks, plan->runs[0].rank_count);
    if (shortened ||
        lab_run_plan_is_simulated(plan)) /* CPUs and simulations have no heat that is waited for */
        return 0;
    return plan->cooldown_s * fmax(0, ceil(plan->run_count / workers) - 1);
}

static double most_s(const struct lab_plan *plan) {
    double sum = 0, longest = 0;
    for (int i = 0; i < plan->run_count; i++) {
        double attempts_s = plan->runs[i].timeout_s * (1 + plan->max_retries);
        sum += attempts_s;
        longest = fmax(longest, attempts_s);
    }
    sum += cooldowns_s(plan, 1);
    return plan->budget_s > 0 ? fmin(sum, plan->budget_s + longest) : sum;
}

/* --- disk ---
 *
 * Measured on shipped studies, on simulated machines and CPU slices, 3 to 450 runs:
 * tests/unit/run/test_plan_estimate.c compares with files that the store writes and with recorded
 * sizes of whole folders. */
enum {
    /* A page for each table and index, and the header. */
    STORE_EMPTY_BYTES = 26 * 4096,
    /* A packed iteration: of one stage, and of those that copy, which have three and jitter. */
    ITERATION_BYTES = 5,
    ITERATION_COPYING_BYTES = 14,
    /* Chunks are a row and an index entry; there is one about each second. Short runs have few. */
    CHUNK_BYTES = 64,
    /* A run's fixed columns, its index entries, and the share of a page that no row fits into. */
    RUN_BYTES = 512,
    RANK_BYTES = 48,
    RESULT_BYTES = 700, /* of a rank, with its part of the run's */
    /* What training says of each step. */
    METRIC_BYTES = 50,
    /* Samples, each second: of the host, and of each device. */
    HOST_SAMPLE_BYTES = 2500,
    DEVICE_SAMPLE_BYTES = 500,
    /* A run in results.json, and each of its ranks. */
    RESULTS_RUN_BYTES = 2000,
    RESULTS_RANK_BYTES = 2200,
    /* Lines of experiment.log, which name the run about nine times, and entries of logs/. */
    LOG_BYTES = 380,
    LOG_NAMES = 9,
    /* A trace, each iteration in it, each of that one's launches. */
    TRACE_BYTES = 20 << 10,
    TRACE_ITERATIONS = 32,
    TRACE_ITERATION_BYTES = 200,
    TRACE_LAUNCH_BYTES = 100,
    /* The page and its texts; charts, of which there are more where more is compared; rows. */
    REPORT_BYTES = 100 << 10,
    REPORT_POINT_BYTES = 120 << 10,
    REPORT_POINTS_MOST = 24,
    REPORT_RUN_BYTES = 2 << 10,
    /* machine.json, overrides.yaml, experiment_summary.json, the lock; and the directories. */
    FOLDER_BYTES = 40 * 1024,
};

static double config_bytes(const struct lab_plan *plan) {
    LAB_AUTO(str, text);
    lab_yaml_write(plan->config, &text);
    return (double)text.length;
}

/* What of the run's texts is written wherever it is. */
static double text_bytes(const struct lab_run *run) {
    return (double)(strlen(run->id) + strlen(run->options) + strlen(run->series) +
                    strlen(run->test));
}

static double sampled_bytes(const struct lab_plan *plan, const struct lab_run *run,
                            const struct lab_history *history, double iterations,
                            double expected_s) {
    double step_s = history ? lab_history_device_step_s(history, run) : NAN;
    double seconds = step_s > 0 ? step_s * iterations : expected_s,
           asked = asked_s(plan, &plan->runs[run->position]);
    if (asked > 0 && !(seconds > asked))
        seconds = asked;
    if (!plan->monitor || isnan(seconds))
        return 0;
    return seconds * (HOST_SAMPLE_BYTES + (double)DEVICE_SAMPLE_BYTES * plan->devices.count);
}

static double trace_bytes(int launches, double iterations) {
    double traced = 2 + fmin(iterations, TRACE_ITERATIONS);
    return TRACE_BYTES + traced * (TRACE_ITERATION_BYTES + (double)TRACE_LAUNCH_BYTES * launches);
}

/* That make charts larger, and more of them. */
static int64_t report_points(const struct lab_plan *plan) {
    return plan->point_count < REPORT_POINTS_MOST ? plan->point_count : REPORT_POINTS_MOST;
}

static double report_bytes(const struct lab_plan *plan) {
    return REPORT_BYTES + (double)REPORT_POINT_BYTES * (double)report_points(plan) +
           (double)REPORT_RUN_BYTES * plan->run_count;
}

static double report_s(const struct lab_plan *plan, double store_bytes) {
    double charts_s = REPORT_S + REPORT_POINT_S * (double)report_points(plan);
    return fmin(charts_s + REPORT_RUN_S * plan->run_count + REPORT_BYTE_S * store_bytes,
                REPORT_MOST_S);
}

/* What a run adds to study.db, and to the other files. */
static void count_bytes(const struct lab_plan *plan, const struct lab_run *run,
                        const struct lab_history *history, double expected_s, double *in_store,
                        double *elsewhere) {
    const struct lab_plan_run *planned = &plan->runs[run->position];
    double iterations = count_iterations(plan, run, history);
    double chunks = isnan(expected_s) ? 1 : 1 + expected_s;
    double each =
        planned->copies && !planned->collective ? ITERATION_COPYING_BYTES : ITERATION_BYTES;
    double of_rank = RANK_BYTES + RESULT_BYTES + iterations * each + chunks * CHUNK_BYTES;
    *in_store += RUN_BYTES + text_bytes(run) + run->rank_count * of_rank +
                 (planned->collective ? METRIC_BYTES * iterations : 0) +
                 sampled_bytes(plan, run, history, iterations, expected_s);
    *elsewhere += RESULTS_RUN_BYTES + (double)RESULTS_RANK_BYTES * run->rank_count + LOG_BYTES +
                  (double)LOG_NAMES * (double)strlen(run->id);
    if (plan->trace && run->repeat == 0 && !planned->phase)
        *elsewhere += run->rank_count * trace_bytes(planned->launches, iterations);
}

/* 10¹² samples in each of 100,000 runs can be asked for. */
static int64_t whole(double bytes) {
    return bytes < 0x1p62 ? (int64_t)bytes : INT64_C(1) << 62;
}

/* --- both --- */

struct lab_plan_estimate lab_run_plan_estimate(const struct lab_plan *plan,
                                               const struct lab_history *history) {
    struct lab_plan_estimate estimate = {.expected_s = NAN, .most_s = most_s(plan)};
    double known_s = 0, longest_s = 0, config = config_bytes(plan);
    double in_store = STORE_EMPTY_BYTES + config;
    double elsewhere = FOLDER_BYTES + config + report_bytes(plan);
    int others;
    estimate.brief = lab_history_count(history, &others);
    estimate.earlier = others > 0;
    LAB_AUTO(arena, arena);
    struct lab_plan_texts texts = {.count = 0};
    for (int i = 0; i < plan->run_count; i++) {
        struct lab_run run = lab_run_plan_record_with(plan, i, &texts, &arena);
        enum lab_history_basis basis;
        double expected_s = lab_run_plan_estimate_run(plan, &run, history, &basis);
        estimate.unknown += isnan(expected_s);
        estimate.guessed += isnan(expected_s) || basis == LAB_HISTORY_SIMILAR;
        estimate.by_duration += !isnan(expected_s) && basis == LAB_HISTORY_NONE;
        estimate.energy_j += history ? expected_s * lab_history_power_w(history, &run) : NAN;
        known_s += isnan(expected_s) ? 0 : expected_s;
        longest_s = fmax(longest_s, expected_s); /* NaN is passed over */
        count_bytes(plan, &run, history, expected_s, &in_store, &elsewhere);
    }
    estimate.store_bytes = whole(in_store);
    estimate.disk_bytes = whole(in_store + elsewhere);
    estimate.report_s = report_s(plan, in_store);
    int known = plan->run_count - estimate.unknown;
    if (known == 0)
        return estimate;
    double workers = busy_workers(plan), mean_s = known_s / known;
    double shared_s = (known_s + mean_s * estimate.unknown) / workers;
    /* a run can't be shared: the longest one ends last, however many work */
    estimate.expected_s = fmax(shared_s, longest_s) + cooldowns_s(plan, workers);
    if (plan->budget_s > 0)
        estimate.expected_s = fmin(estimate.expected_s, plan->budget_s + mean_s);
    estimate.expected_s += estimate.report_s;
    return estimate;
}
