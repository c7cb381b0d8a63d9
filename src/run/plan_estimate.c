/* plan_estimate.c: time and disk that a plan takes, from earlier runs. */
#include "run/plan_estimate.h"

#include "base/yaml/yaml.h"
#include "run/plan_record.h"

#include <math.h>
#include <string.h>

/* --- time --- */

#define PHASE_BESIDE_S 1.5 /* opening, verifying, and probing what resources are left */

double lab_run_plan_estimate_run(const struct lab_plan *plan, const struct lab_run *record,
                                 const struct lab_history *history,
                                 enum lab_history_basis *ret_basis) {
    *ret_basis = LAB_HISTORY_NONE;
    double expected_s = history ? lab_history_expect(history, record, ret_basis) : NAN;
    const struct lab_plan_run *run = &plan->runs[record->position];
    bool phased = run->phase && run->duration_s > 0; /* of another length than its like elsewhere */
    if (!phased && !(plan->duration_s > 0 && !(expected_s > plan->duration_s)))
        return expected_s;
    *ret_basis = LAB_HISTORY_NONE;
    return phased ? run->duration_s + run->tune_s + PHASE_BESIDE_S : plan->duration_s;
}

/* How many runs can be under way at once: a gang takes a place on a device for each of its
 * ranks. */
static double busy_workers(const struct lab_plan *plan) {
    bool *used = lab_mem_alloc((size_t)plan->devices.count + 1, sizeof *used);
    int64_t ranks = 0;
    int devices = 0;
    for (int i = 0; i < plan->run_count; i++) {
        ranks += plan->runs[i].rank_count;
        for (int k = 0; k < plan->runs[i].rank_count; k++) {
            int id = plan->runs[i].ranks[k].gpu_id;
            devices += !used[id];
            used[id] = true;
        }
    }
    lab_mem_free(used);
    double places = (double)devices * plan->runs_per_device;
    double gangs = ranks ? places * plan->run_count / (double)ranks : 1;
    return fmax(1, fmin(fmin(plan->max_workers, plan->run_count), floor(gangs)));
}

/* The pauses between runs: each worker's own, so that those of several pass together. */
static double cooldowns_s(const struct lab_plan *plan, double workers) {
    bool shortened = plan->run_count > 0 && plan->runs[0].phase &&
                     !lab_run_uses_gpu(plan->runs[0].ranks, plan->runs[0].rank_count);
    if (shortened) /* CPUs have no heat that is waited for */
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
 * Measured on files that the store wrote (tests/unit/run/test_plan_estimate.c builds such ones and
 * compares): */
enum {
    /* A page for each table and index, and the header. */
    STORE_EMPTY_BYTES = 26 * 4096,
    /* A packed iteration: 7 bytes with one stage and a steady clock, 14 with three and jitter. */
    ITERATION_BYTES = 12,
    /* Chunks are a row and an index entry; there is one about each second. Short runs have few. */
    CHUNK_BYTES = 64,
    /* A run's fixed columns, its index entries, and the share of a page that no row fits into. */
    RUN_BYTES = 512,
    RANK_BYTES = 48,
    /* A rank's result with its summaries, conditions and a warning or two, and its part of the
     * run's. */
    RESULT_BYTES = 1600,
    /* What results.json adds to a run's texts: names of its fields, logs' paths, indentation. */
    RESULTS_JSON_BYTES = 1024,
    /* stdout and stderr, each a block where a library says a word: about one of two. */
    LOG_BYTES = 4096,
    /* A row of report.md, lines of experiment.log. */
    REPORT_BYTES = 512,
    /* machine.json, overrides.yaml, experiment_summary.json, the report's head, the lock; and the
     * directories. */
    FOLDER_BYTES = 40 * 1024,
};

static double config_bytes(const struct lab_plan *plan) {
    LAB_AUTO(str, text);
    lab_yaml_write(plan->config, &text);
    return (double)text.length;
}

/* What the run's texts take wherever they are written: the plan's part, then what it finds. */
static double text_bytes(const struct lab_run *run) {
    return (double)(strlen(run->id) + strlen(run->options) + strlen(run->series) +
                    strlen(run->test)) +
           (double)RESULT_BYTES * run->rank_count;
}

static double store_bytes(const struct lab_run *run, double expected_s) {
    double chunks = isnan(expected_s) ? 1 : 1 + expected_s;
    double iterations = (double)run->iterations * ITERATION_BYTES + chunks * CHUNK_BYTES;
    return RUN_BYTES + text_bytes(run) + run->rank_count * (RANK_BYTES + iterations);
}

/* 10¹² samples in each of 100,000 runs can be asked for. */
static int64_t whole(double bytes) {
    return bytes < 0x1p62 ? (int64_t)bytes : INT64_C(1) << 62;
}

/* --- both --- */

struct lab_plan_estimate lab_run_plan_estimate(const struct lab_plan *plan,
                                               const struct lab_history *history) {
    struct lab_plan_estimate estimate = {.expected_s = NAN, .most_s = most_s(plan)};
    double known_s = 0, longest_s = 0, in_store = STORE_EMPTY_BYTES + config_bytes(plan);
    double beside = FOLDER_BYTES + config_bytes(plan);
    for (int i = 0; i < plan->run_count; i++) {
        LAB_AUTO(arena, arena);
        struct lab_run run = lab_run_plan_record(plan, i, &arena);
        enum lab_history_basis basis;
        double expected_s = lab_run_plan_estimate_run(plan, &run, history, &basis);
        estimate.unknown += isnan(expected_s);
        estimate.guessed += isnan(expected_s) || basis == LAB_HISTORY_SIMILAR;
        estimate.by_duration += !isnan(expected_s) && basis == LAB_HISTORY_NONE;
        known_s += isnan(expected_s) ? 0 : expected_s;
        longest_s = fmax(longest_s, expected_s); /* NaN is passed over */
        in_store += store_bytes(&run, expected_s);
        beside += RESULTS_JSON_BYTES + text_bytes(&run) + LOG_BYTES + REPORT_BYTES;
    }
    estimate.disk_bytes = whole(in_store + beside);
    int known = plan->run_count - estimate.unknown;
    if (known == 0)
        return estimate;
    double workers = busy_workers(plan), mean_s = known_s / known;
    double shared_s = (known_s + mean_s * estimate.unknown) / workers;
    /* a run can't be shared: the longest one ends last, however many work */
    estimate.expected_s = fmax(shared_s, longest_s) + cooldowns_s(plan, workers);
    if (plan->budget_s > 0)
        estimate.expected_s = fmin(estimate.expected_s, plan->budget_s + mean_s);
    return estimate;
}
