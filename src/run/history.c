/*
 * history.c: durations of runs that are done, grouped by the very same work, by the same options,
 * and by workload. A group's answer is its median: one run that a neighbour disturbed doesn't move
 * it.
 *
 * A run's time is a fixed part (starting, opening, checking the results) and one for each
 * iteration, or short runs would make long ones look far too long. What an iteration took is known
 * from the span of those that were measured; the rest is fixed. Options that never ran are expected
 * by how much they compute and copy (history_cost.h), the fixed part as well: results are checked.
 *
 * Runs of the study itself outweigh earlier ones: they are asked first, and the ratio of what they
 * took to what earlier ones had made expect corrects what only earlier ones know.
 *
 * Groups are found by a hash of what their runs share; with a million of them the chance that two
 * fall together is 3 in 10⁸, and the harm a wrong number of minutes.
 */
#include "run/history.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/result.h"
#include "run/estimate/history_cost.h"
#include "run/folder.h"
#include "stats/stats.h"
#include "store/store.h"
#include "workload/workload.h"

#include <math.h>
#include <string.h>

#define FIRST_SLOTS   64   /* a power of two */
#define OWN_PROGRESS  0.05 /* of a run's measured iterations: from there on it speaks for itself */
#define NS_TO_S(time) ((double)(time) / (double)LAB_NS_PER_S)

/* --- groups --- */

struct group {
    uint64_t key;
    double *values;
    int count;
    double median;
    int median_count; /* of how many values it was taken */
    struct history_cost step, fixed;
};

struct groups {
    struct group **slots; /* open hashing; a power of two, at most half full */
    int slot_count, count;
};

static struct group **find_slot(const struct groups *groups, uint64_t key) {
    uint64_t mask = (uint64_t)groups->slot_count - 1;
    uint64_t at = (key ^ (key >> 29)) & mask;
    while (groups->slots[at] && groups->slots[at]->key != key)
        at = (at + 1) & mask;
    return &groups->slots[at];
}

static void grow(struct groups *groups, struct lab_arena *arena) {
    struct groups larger = {.slot_count = groups->slot_count * 2, .count = groups->count};
    if (!groups->slot_count)
        larger.slot_count = FIRST_SLOTS;
    larger.slots = lab_arena_alloc(arena, (size_t)larger.slot_count, sizeof *larger.slots);
    for (int i = 0; i < groups->slot_count; i++)
        if (groups->slots[i])
            *find_slot(&larger, groups->slots[i]->key) = groups->slots[i];
    *groups = larger;
}

/* The group with this key; a new one where there was none. */
static struct group *take_group(struct groups *groups, uint64_t key, struct lab_arena *arena) {
    if (2 * groups->count >= groups->slot_count)
        grow(groups, arena);
    struct group **slot = find_slot(groups, key);
    if (!*slot) {
        *slot = lab_arena_alloc(arena, 1, sizeof **slot);
        (*slot)->key = key;
        groups->count++;
    }
    return *slot;
}

static void add_value(struct groups *groups, uint64_t key, double value, struct lab_arena *arena) {
    struct group *group = take_group(groups, key, arena);
    LAB_ADD(group->values, group->count, arena) = value;
}

/* NaN where there is no such group. */
static double median_of(const struct groups *groups, uint64_t key) {
    struct group *group = groups->count ? *find_slot(groups, key) : NULL;
    if (!group)
        return NAN;
    if (group->median_count != group->count) {
        group->median = lab_stats_median(group->values, (size_t)group->count);
        group->median_count = group->count;
    }
    return group->median;
}

/* --- what runs share --- */

/* With its length, so that "ab","c" and "a","bc" differ. Eight bytes at a time: plans of 100,000
 * runs are looked up, each with some hundred bytes of options. Nothing is stored by it. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    text = text ? text : "";
    size_t length = strlen(text), at = 0;
    uint64_t word;
    hash = lab_hash_bytes(hash, &length, sizeof length);
    for (; at + sizeof word <= length; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return lab_hash_bytes(hash, text + at, length - at);
}

struct keys {
    uint64_t workload, kind, options, same; /* kind: so many ranks of the workload */
};

/* A program of the user's is known by its command: what another one took says nothing of it. */
static uint64_t hash_program(uint64_t hash, const struct lab_run *run) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, command);
    struct lab_value *options;
    if (!run->options || !lab_workload_is_external(run->workload) ||
        lab_json_parse(run->options, strlen(run->options), "options", &arena, &options, NULL) < 0)
        return hash;
    if (lab_value_get(options, "command"))
        lab_json_write(lab_value_get(options, "command"), 0, &command);
    return hash_text(hash, command.text);
}

static struct keys keys_of(const struct lab_run *run) {
    struct keys keys;
    keys.workload = hash_program(hash_text(LAB_HASH_START, run->workload), run);
    keys.kind = lab_hash_bytes(keys.workload, &run->rank_count, sizeof run->rank_count);
    keys.options = hash_text(keys.kind, run->options);
    keys.same = lab_hash_bytes(keys.options, &run->iterations, sizeof run->iterations);
    keys.same = lab_hash_bytes(keys.same, &run->warmup_iterations, sizeof run->warmup_iterations);
    for (int i = 0; i < run->rank_count && !run->spread; i++) {
        keys.same = hash_text(keys.same, run->ranks[i].device);
        keys.same = lab_hash_bytes(keys.same, &run->ranks[i].numa_node, sizeof(int));
    }
    return keys;
}

static double steps_of(const struct lab_run *run) {
    return (double)(run->iterations + run->warmup_iterations);
}

/* --- what one run says --- */

/* The span of its measured iterations on the device's clock; 0 = unknown. */
static double span_s(const struct lab_run *run, int64_t *ret_first_ns, int64_t *ret_last_ns) {
    const struct lab_result *result = lab_run_result(run);
    *ret_first_ns = INT64_MAX;
    *ret_last_ns = 0;
    for (int i = 0; i < result->rank_count; i++) {
        const struct lab_result *rank = &result->ranks[i];
        if (rank->first_ns != LAB_RESULT_NO_COUNT && rank->first_ns < *ret_first_ns)
            *ret_first_ns = rank->first_ns;
        if (rank->last_ns > *ret_last_ns)
            *ret_last_ns = rank->last_ns;
    }
    return *ret_last_ns > *ret_first_ns ? NS_TO_S(*ret_last_ns - *ret_first_ns) : 0;
}

/* Seconds for each iteration; all of the run's time where nothing is known of the span. */
static double step_s(const struct lab_run *run, double duration_s) {
    int64_t first_ns, last_ns;
    double measured_s = span_s(run, &first_ns, &last_ns), all_s = duration_s / steps_of(run);
    if (measured_s > 0 && first_ns >= run->start_ns && last_ns <= run->end_ns)
        return fmin(measured_s / (double)run->iterations, all_s);
    return all_s;
}

/* --- life --- */

enum tier { OWN, EARLIER, TIER_COUNT };

struct known {
    struct groups same, workload; /* seconds */
    struct groups step, fixed;    /* by options: of each iteration, and besides them */
    struct groups costs;          /* by kind: the same, by what an iteration does */
};

struct lab_history {
    struct lab_arena *arena; /* of all groups */
    struct known tiers[TIER_COUNT];
    struct groups *amounts;       /* by options: of an iteration, computed and copied; filled when
                                   * it is asked for */
    struct groups device_step;    /* by options: seconds on the device's clock */
    struct groups power;          /* by options, and by kind: W, over the run's time */
    struct groups seen;           /* runs, so that none counts twice */
    int brief;                    /* measured for the estimate */
    double own_s, own_expected_s; /* what own runs took, and what earlier ones had made expect */
};

/* What an iteration computes and copies; a byte of memory weighs as much as the FLOPs that a device
 * of the day does meanwhile. None = unknown. */
static struct history_amount count_amount(const struct lab_run *run) {
    enum { PER_BYTE = 10 };
    LAB_AUTO(arena, arena);
    struct lab_value *options;
    const void *config;
    struct lab_workload_cost cost = {0};
    struct history_amount none = {0};
    const struct lab_workload *workload = lab_workload_find(run->workload, NULL);
    if (!workload || !workload->cost || !run->options ||
        lab_json_parse(run->options, strlen(run->options), "options", &arena, &options, NULL) < 0 ||
        lab_workload_read(workload, options, &arena, &config, NULL) < 0)
        return none;
    workload->cost(config, &cost);
    return (struct history_amount){
        .computed =
            cost.compute.flops + PER_BYTE * (cost.compute.bytes_read + cost.compute.bytes_written),
        .copied = cost.h2d_bytes + cost.d2h_bytes};
}

static struct history_amount amount_of(const struct lab_history *history, const struct lab_run *run,
                                       uint64_t options) {
    struct group *group = take_group(history->amounts, options, history->arena);
    if (!group->count) {
        /* to simulate an iteration takes as long, whatever is in it */
        bool simulated = run->rank_count > 0 && lab_run_device_is_simulated(run->ranks[0].device);
        struct history_amount amount = {.computed = 1};
        if (!simulated)
            amount = count_amount(run);
        add_value(history->amounts, options, amount.computed, history->arena);
        add_value(history->amounts, options, amount.copied, history->arena);
    }
    return (struct history_amount){.computed = group->values[0], .copied = group->values[1]};
}

static double expect_by(const struct lab_history *history, enum tier tier,
                        const struct lab_run *run, const struct keys *keys,
                        enum lab_history_basis *ret_basis);

/* Of the study itself, it takes as long again at least, under the same limit; an earlier study's
 * limit may have been any. */
static bool has_timed_out(const struct lab_run *run) {
    return run->state == LAB_RUN_FAILED && run->error &&
           lab_str_starts(run->error, LAB_RUN_TIMED_OUT);
}

static void add(struct lab_history *history, enum tier tier, const struct lab_run *run) {
    struct lab_arena *arena = history->arena;
    double duration_s = NS_TO_S(run->end_ns - run->start_ns);
    bool counts = run->state == LAB_RUN_DONE || (tier == OWN && has_timed_out(run));
    if (!counts || !(duration_s > 0))
        return;
    /* a study may be read among the known ones and added by whoever works on it */
    uint64_t one = lab_hash_bytes(run->identity, &run->start_wall_ns, sizeof run->start_wall_ns);
    one = lab_hash_bytes(one, &run->start_ns, sizeof run->start_ns);
    one = lab_hash_bytes(one, &tier, sizeof tier);
    if (take_group(&history->seen, one, arena)->count++)
        return;
    struct keys keys = keys_of(run);
    struct known *known = &history->tiers[tier];
    enum lab_history_basis basis;
    double expected_s = tier == OWN ? expect_by(history, EARLIER, run, &keys, &basis) : NAN;
    if (!isnan(expected_s)) {
        history->own_s += duration_s;
        history->own_expected_s += expected_s;
    }
    double energy_j = lab_run_result(run)->energy_j;
    if (energy_j > 0) {
        add_value(&history->power, keys.options, energy_j / duration_s, arena);
        add_value(&history->power, keys.kind, energy_j / duration_s, arena);
    }
    add_value(&known->same, keys.same, duration_s, arena);
    add_value(&known->workload, keys.workload, duration_s, arena);
    if (!(steps_of(run) > 0))
        return;
    int64_t first_ns, last_ns;
    double each_s = step_s(run, duration_s), device_s = span_s(run, &first_ns, &last_ns);
    add_value(&known->step, keys.options, each_s, arena);
    add_value(&known->fixed, keys.options, duration_s - each_s * steps_of(run), arena);
    struct history_amount amount = amount_of(history, run, keys.options);
    struct group *costs = take_group(&known->costs, keys.kind, arena);
    history_cost_add(&costs->step, amount, each_s, arena);
    history_cost_add(&costs->fixed, amount, duration_s - each_s * steps_of(run), arena);
    if (device_s > 0 && run->iterations > 0 && run->rank_count > 0 &&
        !lab_run_device_is_simulated(run->ranks[0].device))
        add_value(&history->device_step, keys.options, device_s / (double)run->iterations, arena);
}

void lab_history_add(struct lab_history *history, const struct lab_run *run) {
    add(history, OWN, run);
}

void lab_history_add_earlier(struct lab_history *history, const struct lab_run *run) {
    add(history, EARLIER, run);
}

void lab_history_add_brief(struct lab_history *history, const struct lab_run *run) {
    add(history, EARLIER, run);
    history->brief++;
}

int lab_history_count(const struct lab_history *history, int *ret_others) {
    int brief = history ? history->brief : 0;
    *ret_others = history ? history->seen.count - brief : 0;
    return brief;
}

static const char *const result_keys[] = {"first_ns", "last_ns", "gpu.energy_j", NULL};

/* Whether it was of this machine. */
static bool read_study(struct lab_history *history, const char *path, uint64_t machine_identity) {
    LAB_AUTO(arena, arena);
    struct lab_store *store = NULL;
    struct lab_store_study study;
    struct lab_run *runs;
    int count = 0;
    const char *database = lab_arena_printf(&arena, "%s/study.db", path);
    bool ours = lab_store_open(database, LAB_STORE_READ, &store, NULL) == 0 &&
                lab_store_study(store, &arena, &study, NULL) == 0 &&
                study.machine_identity == machine_identity &&
                lab_store_runs_with(store, result_keys, &arena, &runs, &count, NULL) == 0;
    for (int i = 0; ours && i < count; i++)
        add(history, EARLIER, &runs[i]);
    lab_store_close(store);
    return ours;
}

struct lab_history *lab_history_open(uint64_t machine_identity, int max_studies, const char *own) {
    struct lab_history *history = lab_mem_alloc(1, sizeof *history);
    history->arena = lab_mem_alloc(1, sizeof *history->arena);
    history->amounts = lab_arena_alloc(history->arena, 1, sizeof *history->amounts);
    LAB_AUTO(arena, arena);
    const char *const *paths;
    int count = 0;
    if (max_studies > 0)
        lab_folder_known(&arena, &paths, &count);
    for (int i = 0; i < count && max_studies > 0; i++)
        max_studies -=
            lab_str_equal(paths[i], own) || read_study(history, paths[i], machine_identity);
    return history;
}

void lab_history_close(struct lab_history *history) {
    if (!history)
        return;
    lab_arena_release(history->arena);
    lab_mem_free(history->arena);
    lab_mem_free(history);
}

/* --- answers --- */

static struct group *find_group(const struct groups *groups, uint64_t key) {
    return groups->count ? *find_slot(groups, key) : NULL;
}

static double expect_by_work(const struct lab_history *history, const struct known *known,
                             const struct lab_run *run, const struct keys *keys) {
    struct group *costs = find_group(&known->costs, keys->kind);
    if (!costs || !(steps_of(run) > 0))
        return NAN;
    struct history_amount amount = amount_of(history, run, keys->options);
    return history_cost_expect(&costs->fixed, amount) +
           history_cost_expect(&costs->step, amount) * steps_of(run);
}

static double mean_of(const struct groups *groups, uint64_t key) {
    const struct group *group = find_group(groups, key);
    double sum = 0;
    for (int i = 0; group && i < group->count; i++)
        sum += group->values[i];
    return group && group->count ? sum / group->count : NAN;
}

static double expect_by(const struct lab_history *history, enum tier tier,
                        const struct lab_run *run, const struct keys *keys,
                        enum lab_history_basis *ret_basis) {
    const struct known *known = &history->tiers[tier];
    *ret_basis = LAB_HISTORY_NONE;
    if (known->workload.count == 0)
        return NAN;
    double duration_s = median_of(&known->same, keys->same);
    *ret_basis = LAB_HISTORY_SAME;
    if (isnan(duration_s) && steps_of(run) > 0) {
        duration_s = median_of(&known->fixed, keys->options) +
                     median_of(&known->step, keys->options) * steps_of(run);
        *ret_basis = LAB_HISTORY_SCALED;
    }
    if (isnan(duration_s)) {
        duration_s = expect_by_work(history, known, run, keys);
        *ret_basis = LAB_HISTORY_WORK;
    }
    if (isnan(duration_s)) {
        duration_s = mean_of(&known->workload, keys->workload);
        *ret_basis = LAB_HISTORY_SIMILAR;
    }
    if (isnan(duration_s))
        *ret_basis = LAB_HISTORY_NONE;
    return duration_s;
}

double lab_history_expect(const struct lab_history *history, const struct lab_run *run,
                          enum lab_history_basis *ret_basis) {
    enum lab_history_basis own, earlier, basis;
    struct keys keys = keys_of(run);
    double own_s = expect_by(history, OWN, run, &keys, &own);
    double earlier_s = expect_by(history, EARLIER, run, &keys, &earlier);
    if (history->own_expected_s > 0)
        earlier_s *= fmin(fmax(history->own_s / history->own_expected_s, 0.1), 10);
    /* of the same rank the own run; an earlier one of the same work is better than own others */
    bool by_own = own != LAB_HISTORY_NONE &&
                  (earlier == LAB_HISTORY_NONE || own <= earlier || own <= LAB_HISTORY_SCALED);
    basis = by_own ? own : earlier;
    if (ret_basis)
        *ret_basis = basis;
    return by_own ? own_s : earlier_s;
}

void lab_history_add_device_step(struct lab_history *history, const struct lab_run *run,
                                 double seconds) {
    add_value(&history->device_step, keys_of(run).options, seconds, history->arena);
}

double lab_history_power_w(const struct lab_history *history, const struct lab_run *run) {
    if (history->power.count == 0)
        return NAN;
    struct keys keys = keys_of(run);
    double own_w = median_of(&history->power, keys.options);
    return isnan(own_w) ? median_of(&history->power, keys.kind) : own_w;
}

double lab_history_work(const struct lab_history *history, const struct lab_run *run) {
    return history_amount_work(amount_of(history, run, keys_of(run).options));
}

double lab_history_device_step_s(const struct lab_history *history, const struct lab_run *run) {
    return history->device_step.count ? median_of(&history->device_step, keys_of(run).options)
                                      : NAN;
}

/*
 * What a run that measures has still to do, from what it has done; NaN before 5 %. Warm-up
 * iterations cost as much as measured ones, so the time from its start to the last word from it, t,
 * was spent on warm-up + done iterations:
 *
 *     left = t · (total − done) / (warm-up + done) − (now − last word)
 *
 * Opening the device and checking the results are in t too. So it is a little too long at first,
 * and right at the end.
 */
static double left_by_progress(const struct lab_run *run, const struct lab_run_progress *progress,
                               int64_t now_ns) {
    if (!progress || !lab_str_equal(progress->phase, "measuring") || progress->total <= 0 ||
        progress->done > progress->total ||
        (double)progress->done < OWN_PROGRESS * (double)progress->total)
        return NAN;
    double spent_s = NS_TO_S(progress->time_ns - run->start_ns);
    double per_step_s = spent_s / (double)(run->warmup_iterations + progress->done);
    double left_s = per_step_s * (double)(progress->total - progress->done);
    return fmax(0, left_s - fmax(0, NS_TO_S(now_ns - progress->time_ns)));
}

struct outlook {
    double spent_s; /* of a run under way */
    double total_s; /* NaN = unknown */
    double left_s;
    bool guessed; /* from other work than its own */
};

static struct outlook look_ahead(const struct lab_history *history, const struct lab_run *run,
                                 const struct lab_run_progress *progress, int64_t now_ns) {
    struct outlook outlook = {0};
    if (run->state == LAB_RUN_RUNNING) {
        outlook.spent_s = fmax(0, NS_TO_S(now_ns - run->start_ns));
        outlook.left_s = left_by_progress(run, progress, now_ns);
        outlook.total_s = outlook.spent_s + outlook.left_s;
        if (!isnan(outlook.left_s))
            return outlook;
    }
    enum lab_history_basis basis;
    outlook.total_s = lab_history_expect(history, run, &basis);
    outlook.guessed = basis == LAB_HISTORY_NONE || basis == LAB_HISTORY_SIMILAR;
    outlook.left_s = isnan(outlook.total_s) ? NAN : fmax(0, outlook.total_s - outlook.spent_s);
    return outlook;
}

struct sums {
    double left_s, longest_s;
    double known_s; /* Σ of what is known about whole runs, for the mean of the others */
    int known, open;
};

static void count_run(struct sums *sums, double left_s) {
    sums->left_s += left_s;
    sums->longest_s = fmax(sums->longest_s, left_s);
}

struct lab_estimate lab_history_estimate(const struct lab_history *history,
                                         const struct lab_run *runs, int count,
                                         const struct lab_run_progress *progress,
                                         int progress_count, int64_t now_ns, int max_workers) {
    struct lab_estimate estimate = {0};
    LAB_AUTO_FREE struct outlook *unknown = lab_mem_alloc((size_t)count + 1, sizeof *unknown);
    struct sums sums = {0};
    int done = 0;
    for (int i = 0; i < count; i++) {
        if (runs[i].state == LAB_RUN_DONE) {
            estimate.elapsed_s += NS_TO_S(runs[i].end_ns - runs[i].start_ns);
            done++;
            continue;
        }
        sums.open++;
        struct outlook outlook =
            look_ahead(history, &runs[i],
                       lab_run_find_progress(progress, progress_count, runs[i].number), now_ns);
        estimate.guessed += outlook.guessed;
        if (isnan(outlook.total_s)) {
            unknown[estimate.unknown++] = outlook;
            continue;
        }
        count_run(&sums, outlook.left_s);
        sums.known_s += outlook.total_s;
        sums.known++;
    }
    if (!sums.known && done) { /* other workloads' runs are better than nothing */
        sums.known_s = estimate.elapsed_s;
        sums.known = done;
    }
    double mean_s = sums.known ? sums.known_s / sums.known : NAN;
    for (int i = 0; i < estimate.unknown && sums.known; i++)
        count_run(&sums, fmax(0, mean_s - unknown[i].spent_s));
    /* a run can't be shared: the longest one ends last, however many work */
    estimate.left_s = fmax(sums.left_s / (max_workers > 1 ? max_workers : 1), sums.longest_s);
    if (sums.open > 0 && !sums.known)
        estimate.left_s = NAN;
    return estimate;
}
