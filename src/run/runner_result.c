/*
 * runner_result.c: one result for the run from its ranks'. How each value combines stands in its
 * row of model/result.h: rates add up, but for those of all-reduces; what has no sum (the times of
 * an iteration) is that of the slowest rank, since a gang is as fast as that. Lists and verdicts
 * have rules of their own.
 */
#include "run/runner_internal.h"

#include "base/list.h"
#include "model/metric_name.h"

#include <math.h>
#include <string.h>

#define OVERLAP_LEAST 0.9 /* below it, a gang's ranks can't be said to have run together */

struct merge {
    struct lab_arena *arena;
    struct lab_result *ranks;
    const struct lab_run_rank *places;
    int count;
    int measured; /* ranks that have values of their own: all, or the first one of a launcher */
    bool shared;  /* one process has all ranks */
    const struct lab_result *slowest;
    struct lab_result *run;
};

/* --- what GPUs did meanwhile --- */

/* Workers don't know that. */
static void clear_gpu(struct lab_result *rank) {
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++) {
        const struct lab_result_row *row = &lab_result_rows[i];
        const size_t sizes[] = {[LAB_RESULT_NUMBER] = sizeof(double),
                                [LAB_RESULT_COUNT] = sizeof(int64_t),
                                [LAB_RESULT_FLAG] = sizeof(signed char),
                                [LAB_RESULT_TEXT] = sizeof(char *),
                                [LAB_RESULT_JSON] = sizeof(char *),
                                [LAB_RESULT_LIST] = sizeof(struct lab_result_list)};
        if (lab_str_starts(row->key, "gpu."))
            memcpy(lab_result_member(rank, row), lab_result_get(&lab_result_none, row),
                   sizes[row->type]);
    }
}

static void ask_watch(struct merge *merge, struct lab_run_monitor *monitor,
                      const struct lab_run_monitor_question *question) {
    int64_t *first_ns = lab_arena_alloc(merge->arena, (size_t)merge->count, sizeof *first_ns);
    int64_t *last_ns = lab_arena_alloc(merge->arena, (size_t)merge->count, sizeof *last_ns);
    struct lab_run_monitor_question whole = *question;
    whole.first_ns = first_ns;
    whole.last_ns = last_ns;
    for (int i = 0; i < merge->count; i++) {
        const struct lab_result *rank = &merge->ranks[i];
        bool sound = rank->first_ns >= question->start_ns && rank->last_ns <= question->now_ns &&
                     rank->last_ns != LAB_RESULT_NO_COUNT;
        first_ns[i] = sound ? rank->first_ns : 0;
        last_ns[i] = sound ? rank->last_ns : 0;
        clear_gpu(&merge->ranks[i]);
    }
    lab_run_monitor_answer(monitor, &whole, merge->arena, merge->ranks);
}

static bool is_watched(const struct lab_result *rank) {
    return rank->whole_gpu != LAB_RESULT_NO_FLAG;
}

/* A GPU whose slices serve several ranks counts once. */
static bool is_counted(const struct merge *merge, int rank) {
    size_t length = strcspn(merge->places[rank].device, "/");
    for (int i = 0; i < rank; i++)
        if (is_watched(&merge->ranks[i]) && strcspn(merge->places[i].device, "/") == length &&
            strncmp(merge->places[i].device, merge->places[rank].device, length) == 0)
            return true;
    return false;
}

/* The worst of each reason. */
static void merge_throttling(const struct merge *merge, const struct lab_result *rank) {
    struct lab_result *run = merge->run;
    for (int i = 0; i < rank->throttled_s.count; i++) {
        const struct lab_result_throttle *one = &rank->throttled_s.items[i];
        struct lab_result_throttle *of_run = NULL;
        for (int at = 0; at < run->throttled_s.count && !of_run; at++)
            if (lab_str_equal(run->throttled_s.items[at].reason, one->reason))
                of_run = &run->throttled_s.items[at];
        if (!of_run)
            of_run = LAB_RESULT_ADD(run, throttled_s, merge->arena);
        if (!(of_run->seconds >= one->seconds))
            *of_run = *one;
    }
}

static void merge_strangers(const struct merge *merge, const struct lab_result *rank) {
    struct lab_result *run = merge->run;
    for (int i = 0; i < rank->foreign_processes.count; i++) {
        const struct lab_result_process *one = &rank->foreign_processes.items[i];
        int at = 0;
        while (at < run->foreign_processes.count &&
               run->foreign_processes.items[at].pid != one->pid)
            at++;
        if (at < run->foreign_processes.count)
            continue;
        struct lab_result_process *added = LAB_RESULT_ADD(run, foreign_processes, merge->arena);
        *added = *one;
    }
}

/* --- values --- */

/* The one with the least rate; among such that have none, the one that ended last. */
static const struct lab_result *find_slowest(const struct merge *merge) {
    const struct lab_result *slowest = &merge->ranks[0];
    for (int i = 1; i < merge->count; i++) {
        const struct lab_result *rank = &merge->ranks[i];
        if (rank->rate < slowest->rate ||
            (isnan(rank->rate) && isnan(slowest->rate) && rank->last_ns > slowest->last_ns))
            slowest = rank;
    }
    return slowest;
}

static double number(const struct merge *merge, int rank, const struct lab_result_row *row) {
    return *(const double *)lab_result_get(&merge->ranks[rank], row);
}

static double sum_numbers(const struct merge *merge, const struct lab_result_row *row) {
    double total = 0;
    for (int i = 0; i < merge->measured; i++)
        total += number(merge, i, row);
    return isfinite(total) ? total : NAN;
}

static int64_t sum_counts(const struct merge *merge, const struct lab_result_row *row) {
    int64_t total = 0;
    for (int i = 0; i < merge->measured; i++) {
        int64_t count = *(const int64_t *)lab_result_get(&merge->ranks[i], row);
        if (count == LAB_RESULT_NO_COUNT || __builtin_add_overflow(total, count, &total))
            return LAB_RESULT_NO_COUNT;
    }
    return total;
}

/* A rank tells what its whole process has: ranks that share one must not be added up. */
static double of_processes(const struct merge *merge, const struct lab_result_row *row) {
    double most = NAN;
    for (int i = 0; i < merge->count; i++)
        most = fmax(most, number(merge, i, row));
    return merge->shared ? most : sum_numbers(merge, row);
}

static double of_gpus(const struct merge *merge, const struct lab_result_row *row) {
    double total = 0, least = NAN;
    bool any = false;
    for (int i = 0; i < merge->count; i++) {
        if (!is_watched(&merge->ranks[i]))
            continue;
        any = true;
        least = fmin(least, number(merge, i, row));
        total += is_counted(merge, i) ? 0 : number(merge, i, row);
    }
    if (row->combine == LAB_COMBINE_GPU_MIN)
        return least;
    return any ? total : (double)NAN;
}

static signed char of_flags(const struct merge *merge, const struct lab_result_row *row) {
    bool any_true = false, any_false = false;
    for (int i = 0; i < merge->count; i++) {
        signed char flag = *(const signed char *)lab_result_get(&merge->ranks[i], row);
        any_true |= flag > 0;
        any_false |= flag == 0;
    }
    if (row->combine == LAB_COMBINE_ANY)
        return any_true;
    return any_true || any_false ? !any_false : LAB_RESULT_NO_FLAG;
}

static void take_slowest(const struct merge *merge, const struct lab_result_row *row) {
    const void *from = lab_result_get(merge->slowest, row);
    void *to = lab_result_member(merge->run, row);
    if (row->type == LAB_RESULT_NUMBER)
        *(double *)to = *(const double *)from;
    else if (row->type == LAB_RESULT_COUNT)
        *(int64_t *)to = *(const int64_t *)from;
    else if (row->type == LAB_RESULT_FLAG)
        *(signed char *)to = *(const signed char *)from;
    else
        *(const char **)to = *(const char *const *)from;
}

static void combine(const struct merge *merge, const struct lab_result_row *row) {
    void *to = lab_result_member(merge->run, row);
    switch (row->combine) {
    case LAB_COMBINE_SUM:
        if (row->type == LAB_RESULT_COUNT)
            *(int64_t *)to = sum_counts(merge, row);
        else
            *(double *)to = sum_numbers(merge, row);
        break;
    case LAB_COMBINE_PROCESS:
        *(double *)to = of_processes(merge, row);
        break;
    case LAB_COMBINE_SLOWEST:
        take_slowest(merge, row);
        break;
    case LAB_COMBINE_ALL:
    case LAB_COMBINE_ANY:
        *(signed char *)to = of_flags(merge, row);
        break;
    case LAB_COMBINE_GPU_SUM:
    case LAB_COMBINE_GPU_MIN:
        *(double *)to = of_gpus(merge, row);
        break;
    case LAB_COMBINE_NONE:
    case LAB_COMBINE_OWN:
        break;
    }
}

/* An all-reduce is one iteration of all ranks together: their rates don't add up. */
static void set_collective_rate(const struct merge *merge) {
    const struct lab_result *slowest = merge->slowest;
    if (!merge->run->allreduce || merge->run->samples_per_second > 0)
        return;
    merge->run->rate = slowest->rate;
    merge->run->rate_low = slowest->rate_low;
    merge->run->rate_high = slowest->rate_high;
}

/* --- gangs --- */

/* The time in which all ranks measured, as a part of that in which any did; NaN = unknown. */
static double find_overlap(const struct merge *merge) {
    double first_min = INFINITY, first_max = -INFINITY, last_min = INFINITY, last_max = -INFINITY;
    for (int i = 0; i < merge->count; i++) {
        const struct lab_result *rank = &merge->ranks[i];
        if (rank->first_ns == LAB_RESULT_NO_COUNT || rank->last_ns == LAB_RESULT_NO_COUNT)
            return NAN;
        first_min = fmin(first_min, (double)rank->first_ns);
        first_max = fmax(first_max, (double)rank->first_ns);
        last_min = fmin(last_min, (double)rank->last_ns);
        last_max = fmax(last_max, (double)rank->last_ns);
    }
    if (!(last_max > first_min))
        return NAN;
    return fmax(0, (last_min - first_max) / (last_max - first_min));
}

/* --- sentences --- */

static bool says(const void *result, const struct lab_result_row *row, const char *sentence) {
    struct lab_result_list list = lab_result_items(result, row);
    const struct lab_result_text *items = list.items;
    return LAB_FIND(items, list.count, text, sentence) >= 0;
}

static bool all_say(const struct merge *merge, const struct lab_result_row *row,
                    const char *sentence) {
    for (int i = 0; i < merge->count; i++)
        if (!says(&merge->ranks[i], row, sentence))
            return false;
    return true;
}

/* Each sentence once. What not all ranks of a gang say is said by whom. */
static void gather(const struct merge *merge, const char *key) {
    const struct lab_result_row *row = lab_result_row(key);
    for (int i = 0; i < merge->count; i++) {
        struct lab_result_list list = lab_result_items(&merge->ranks[i], row);
        const struct lab_result_text *items = list.items;
        for (int j = 0; j < list.count; j++) {
            const char *sentence = items[j].text ? items[j].text : "";
            if (!all_say(merge, row, items[j].text))
                sentence = lab_result_of_rank(i, sentence, merge->arena);
            if (!says(merge->run, row, sentence))
                ((struct lab_result_text *)lab_result_add(merge->run, row, merge->arena))->text =
                    sentence;
        }
    }
}

static void add_sentences(const struct merge *merge, const char *profiler) {
    struct lab_result *run = merge->run;
    gather(merge, "invalid");
    gather(merge, "warnings");
    if (profiler)
        lab_result_warn(run, merge->arena,
                        lab_arena_printf(merge->arena,
                                         "profiled by %s: its times include the profiler's "
                                         "overhead",
                                         profiler));
    if (merge->measured > 1)
        run->gang_overlap = find_overlap(merge);
    if (run->gang_overlap < OVERLAP_LEAST)
        lab_result_warn(run, merge->arena,
                        lab_arena_printf(merge->arena,
                                         "its ranks did not overlap for %.0f%% of the time",
                                         100 * (1 - run->gang_overlap)));
    run->valid = run->invalid.count == 0;
}

/* A program's ranks do one thing together, and print its pace: it isn't added up. Of those who say
 * most of it, the slowest. */
static void set_program_rate(const struct merge *merge) {
    static const char *const units[] = {LAB_RATE_TOKENS, LAB_RATE_WORDS, LAB_RATE_STEPS,
                                        LAB_RATE_EPOCHS, LAB_RATE_RUNS};
    const struct lab_result *found = NULL;
    if (merge->run->samples_per_second > 0) /* a workload of gpulab's */
        return;
    for (size_t u = 0; u < sizeof units / sizeof *units && !found; u++)
        for (int i = 0; i < merge->count; i++) {
            const struct lab_result *rank = &merge->ranks[i];
            if (lab_str_equal(rank->rate_unit, units[u]) && (!found || rank->rate < found->rate))
                found = rank;
        }
    if (!found)
        return;
    merge->run->rate = found->rate;
    merge->run->rate_low = found->rate_low;
    merge->run->rate_high = found->rate_high;
    merge->run->rate_unit = found->rate_unit;
}

/* --- all of it --- */

static void set_outcome(const struct merge *merge, struct lab_run *outcome) {
    const struct lab_result *run = merge->run;
    outcome->result = run;
    outcome->rate = run->rate;
    outcome->rate_low = run->rate_low;
    outcome->rate_high = run->rate_high;
    outcome->rate_unit = run->rate_unit ? run->rate_unit : "";
    outcome->valid = run->valid;
    for (int i = 0; i < merge->count; i++)
        if (merge->ranks[i].simulated > 0 && merge->ranks[i].end_ns > outcome->end_ns)
            outcome->end_ns = merge->ranks[i].end_ns;
}

void runner_result_merge(const struct runner_rank *ranks, int count,
                         enum lab_plan_processes processes, const char *profiler,
                         struct lab_run_monitor *monitor,
                         const struct lab_run_monitor_question *question, struct lab_arena *arena,
                         struct lab_run *outcome) {
    struct merge merge = {.arena = arena, .count = count, .places = question->ranks};
    merge.shared = processes != LAB_PLAN_PER_RANK;
    merge.measured = processes == LAB_PLAN_LAUNCHER ? 1 : count;
    merge.ranks = lab_arena_alloc(arena, (size_t)count, sizeof *merge.ranks);
    merge.run = lab_arena_alloc(arena, 1, sizeof *merge.run);
    *merge.run = lab_result_none;
    merge.run->ranks = merge.ranks;
    merge.run->rank_count = count;
    for (int i = 0; i < count; i++)
        merge.ranks[i] = *ranks[i].result;
    ask_watch(&merge, monitor, question);
    merge.slowest = find_slowest(&merge);
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        combine(&merge, &lab_result_rows[i]);
    set_collective_rate(&merge);
    set_program_rate(&merge);
    if (isnan(merge.run->rate))
        merge.run->rate_unit = NULL;
    for (int i = 0; i < count; i++) {
        merge_throttling(&merge, &merge.ranks[i]);
        merge_strangers(&merge, &merge.ranks[i]);
    }
    add_sentences(&merge, profiler);
    set_outcome(&merge, outcome);
}
