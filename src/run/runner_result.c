/*
 * runner_result.c: one object for the run from its ranks' objects. Rates add up; what has no sum
 * (the times of an iteration) is that of the slowest rank, since a gang is as fast as that.
 */
#include "run/runner_internal.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

#define OVERLAP_LEAST 0.9 /* below it, a gang's ranks can't be said to have run together */

struct merge {
    struct lab_arena *arena;
    struct lab_value **ranks;
    struct lab_value **gpus; /* by rank: what its GPU did meanwhile; NULL = nothing is known */
    const struct lab_run_rank *places;
    int count;
    bool shared; /* one process has all ranks */
    const struct lab_value *slowest;
    struct lab_value *map;
};

/* NaN where there is none. */
static double number(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    if (value && value->type == LAB_VALUE_INT)
        return (double)value->integer;
    if (value && value->type == LAB_VALUE_FLOAT)
        return value->number;
    return NAN;
}

static int check_number(const struct lab_value *map, const char *key, bool required,
                        struct lab_err *err) {
    const struct lab_value *value = lab_value_get(map, key);
    if (value ? value->type == LAB_VALUE_NULL || isfinite(number(map, key)) : !required)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "its %s is neither a finite number nor null", key);
}

static int check_sentences(const struct lab_value *map, const char *key, struct lab_err *err) {
    const struct lab_value *list = lab_value_get(map, key);
    bool fits = !list || list->type == LAB_VALUE_NULL || list->type == LAB_VALUE_LIST;
    for (int i = 0; fits && list && i < list->count; i++)
        fits = list->items[i]->type == LAB_VALUE_STRING;
    if (fits)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "its %s are no list of sentences", key);
}

static int read_rank(const char *text, struct lab_arena *arena, struct lab_value **ret_value,
                     struct lab_err *err) {
    struct lab_value *value = NULL;
    if (lab_json_parse(text, strlen(text), NULL, arena, &value, err) < 0) {
        err->code = LAB_ERR_SYSTEM;
        return -1;
    }
    if (value->type != LAB_VALUE_MAP)
        return lab_err_set(err, LAB_ERR_SYSTEM, "it is %s where an object should be",
                           lab_value_type_name(value->type));
    if (check_number(value, "rate", true, err) < 0 ||
        check_number(value, "rate_low", false, err) < 0 ||
        check_number(value, "rate_high", false, err) < 0 ||
        check_sentences(value, "warnings", err) < 0 || check_sentences(value, "invalid", err) < 0)
        return -1;
    *ret_value = value;
    return 0;
}

/* --- figures --- */

static bool is_somewhere(const struct merge *merge, const char *key) {
    bool found = false;
    for (int i = 0; i < merge->count && !found; i++)
        found = lab_value_get(merge->ranks[i], key) != NULL;
    return found;
}

/* null where a rank has none: a sum of some would pass for the whole. */
static double sum(const struct merge *merge, const char *key) {
    double total = 0;
    for (int i = 0; i < merge->count; i++)
        total += number(merge->ranks[i], key);
    return isfinite(total) ? total : NAN;
}

static void set_sum(struct merge *merge, const char *key) {
    if (!is_somewhere(merge, key))
        return;
    bool whole = true;
    for (int i = 0; i < merge->count && whole; i++) {
        const struct lab_value *value = lab_value_get(merge->ranks[i], key);
        whole = value && value->type == LAB_VALUE_INT;
    }
    double total = sum(merge, key);
    if (whole && fabs(total) < 9e15)
        lab_value_set_int(merge->arena, merge->map, key, (int64_t)total);
    else
        lab_value_set_float(merge->arena, merge->map, key, total);
}

/* A rank tells what its whole process has: ranks that share one must not be added up. */
static void set_peak_memory(struct merge *merge) {
    static const char key[] = "peak_memory_mb";
    double most = NAN;
    if (!merge->shared) {
        set_sum(merge, key);
        return;
    }
    if (!is_somewhere(merge, key))
        return;
    for (int i = 0; i < merge->count; i++)
        most = fmax(most, number(merge->ranks[i], key));
    lab_value_set_float(merge->arena, merge->map, key, most);
}

/* The one with the least rate; among such that have none, the one that ended last. */
static const struct lab_value *find_slowest(const struct merge *merge) {
    const struct lab_value *slowest = merge->ranks[0];
    for (int i = 1; i < merge->count; i++) {
        const struct lab_value *rank = merge->ranks[i];
        double rate = number(rank, "rate"), least = number(slowest, "rate");
        if (rate < least ||
            (isnan(rate) && isnan(least) && number(rank, "last_ns") > number(slowest, "last_ns")))
            slowest = rank;
    }
    return slowest;
}

static void set_slowest(struct merge *merge, const char *key) {
    struct lab_value *value = lab_value_get(merge->slowest, key);
    if (value)
        lab_value_set(merge->arena, merge->map, key, value);
}

/* false if it is for any rank, true if it is for all that can tell, else null. */
static void set_all(struct merge *merge, const char *key) {
    bool any_true = false, any_false = false;
    if (!is_somewhere(merge, key))
        return;
    for (int i = 0; i < merge->count; i++) {
        const struct lab_value *value = lab_value_get(merge->ranks[i], key);
        bool tells = value && value->type == LAB_VALUE_BOOL;
        any_true |= tells && value->boolean;
        any_false |= tells && !value->boolean;
    }
    if (any_true || any_false)
        lab_value_set_bool(merge->arena, merge->map, key, !any_false);
    else
        lab_value_set(merge->arena, merge->map, key, lab_value_null(merge->arena));
}

/* --- what GPUs did meanwhile --- */

static void add_sentences(const struct merge *merge, struct lab_value *rank, const char *key,
                          const struct lab_value *more) {
    struct lab_value *list = lab_value_get(rank, key);
    if (!list || list->type != LAB_VALUE_LIST) {
        list = lab_value_list(merge->arena);
        lab_value_set(merge->arena, rank, key, list);
    }
    for (int i = 0; i < more->count; i++)
        lab_value_append(merge->arena, list, more->items[i]);
}

/* Its sentences become the rank's, its figures an object of their own. */
static void add_gpu(const struct merge *merge, struct lab_value *rank,
                    const struct lab_value *gpu) {
    struct lab_value *figures = lab_value_map(merge->arena);
    for (int i = 0; i < gpu->count; i++) {
        bool sentences =
            lab_str_equal(gpu->keys[i], "invalid") || lab_str_equal(gpu->keys[i], "warnings");
        if (sentences)
            add_sentences(merge, rank, gpu->keys[i], gpu->items[i]);
        else
            lab_value_set(merge->arena, figures, gpu->keys[i], gpu->items[i]);
    }
    lab_value_set(merge->arena, rank, "gpu", figures);
}

static void ask_watch(struct merge *merge, struct lab_run_monitor *monitor,
                      const struct lab_run_monitor_question *question) {
    int64_t *first_ns = lab_arena_alloc(merge->arena, (size_t)merge->count, sizeof *first_ns);
    int64_t *last_ns = lab_arena_alloc(merge->arena, (size_t)merge->count, sizeof *last_ns);
    struct lab_run_monitor_question whole = *question;
    whole.first_ns = first_ns;
    whole.last_ns = last_ns;
    merge->gpus = lab_arena_alloc(merge->arena, (size_t)merge->count, sizeof(struct lab_value *));
    for (int i = 0; i < merge->count; i++) {
        double first = number(merge->ranks[i], "first_ns"),
               last = number(merge->ranks[i], "last_ns");
        bool sound = first >= (double)question->start_ns && last <= (double)question->now_ns;
        first_ns[i] = sound ? (int64_t)first : 0;
        last_ns[i] = sound ? (int64_t)last : 0;
    }
    lab_run_monitor_answer(monitor, &whole, merge->arena, merge->gpus);
    for (int i = 0; i < merge->count; i++)
        if (merge->gpus[i])
            add_gpu(merge, merge->ranks[i], merge->gpus[i]);
}

/* A GPU whose slices serve several ranks counts once. */
static bool is_counted(const struct merge *merge, int rank) {
    size_t length = strcspn(merge->places[rank].device, "/");
    for (int i = 0; i < rank; i++)
        if (merge->gpus[i] && strcspn(merge->places[i].device, "/") == length &&
            strncmp(merge->places[i].device, merge->places[rank].device, length) == 0)
            return true;
    return false;
}

static void set_gpu_sum(struct merge *merge, const char *key) {
    double total = 0;
    bool any = false;
    for (int i = 0; i < merge->count; i++) {
        if (!merge->gpus[i] || is_counted(merge, i))
            continue;
        total += number(merge->gpus[i], key);
        any = true;
    }
    lab_value_set_float(merge->arena, merge->map, key, any ? total : NAN);
}

/* The worst of each reason. */
static struct lab_value *merge_throttling(const struct merge *merge) {
    struct lab_value *all = lab_value_map(merge->arena);
    for (int i = 0; i < merge->count; i++) {
        const struct lab_value *one =
            merge->gpus[i] ? lab_value_get(merge->gpus[i], "throttled_s") : NULL;
        for (int j = 0; one && j < one->count; j++) {
            double before = number(all, one->keys[j]);
            lab_value_set_float(merge->arena, all, one->keys[j],
                                fmax(one->items[j]->number, before));
        }
    }
    return all;
}

static bool has_process(const struct lab_value *list, int64_t pid) {
    for (int i = 0; i < list->count; i++)
        if (lab_value_get(list->items[i], "pid")->integer == pid)
            return true;
    return false;
}

static struct lab_value *merge_strangers(const struct merge *merge) {
    struct lab_value *all = lab_value_list(merge->arena);
    for (int i = 0; i < merge->count; i++) {
        const struct lab_value *list =
            merge->gpus[i] ? lab_value_get(merge->gpus[i], "foreign_processes") : NULL;
        for (int j = 0; list && j < list->count; j++)
            if (!has_process(all, lab_value_get(list->items[j], "pid")->integer))
                lab_value_append(merge->arena, all, list->items[j]);
    }
    return all;
}

static void set_gpu_figures(struct merge *merge) {
    bool any = false;
    double clock = NAN;
    for (int i = 0; i < merge->count; i++) {
        any |= merge->gpus[i] != NULL;
        if (merge->gpus[i])
            clock = fmin(clock, number(merge->gpus[i], "sm_clock_mhz"));
    }
    if (!any)
        return;
    set_gpu_sum(merge, "energy_j");
    set_gpu_sum(merge, "power_w");
    set_gpu_sum(merge, "gpu_memory_peak_mb");
    lab_value_set_float(merge->arena, merge->map, "sm_clock_mhz", clock);
    lab_value_set(merge->arena, merge->map, "throttled_s", merge_throttling(merge));
    lab_value_set(merge->arena, merge->map, "foreign_processes", merge_strangers(merge));
}

/* --- gangs --- */

/* The time in which all ranks measured, as a part of that in which any did; NaN = unknown. */
static double find_overlap(struct merge *merge) {
    double first_min = INFINITY, first_max = -INFINITY, last_min = INFINITY, last_max = -INFINITY;
    for (int i = 0; i < merge->count; i++) {
        double first = number(merge->ranks[i], "first_ns");
        double last = number(merge->ranks[i], "last_ns");
        if (isnan(first) || isnan(last))
            return NAN;
        first_min = fmin(first_min, first);
        first_max = fmax(first_max, first);
        last_min = fmin(last_min, last);
        last_max = fmax(last_max, last);
    }
    if (!(last_max > first_min))
        return NAN;
    return fmax(0, (last_min - first_max) / (last_max - first_min));
}

/* --- sentences --- */

static bool says(const struct lab_value *list, const char *sentence) {
    for (int i = 0; list && i < list->count; i++)
        if (lab_str_equal(list->items[i]->string, sentence))
            return true;
    return false;
}

static bool all_say(const struct merge *merge, const char *key, const char *sentence) {
    for (int i = 0; i < merge->count; i++)
        if (!says(lab_value_get(merge->ranks[i], key), sentence))
            return false;
    return true;
}

/* Each sentence once. What not all ranks of a gang say is said by whom. */
static struct lab_value *gather(const struct merge *merge, const char *key) {
    struct lab_value *all = lab_value_list(merge->arena);
    for (int i = 0; i < merge->count; i++) {
        const struct lab_value *list = lab_value_get(merge->ranks[i], key);
        for (int j = 0; list && j < list->count; j++) {
            const char *sentence = list->items[j]->string;
            if (!all_say(merge, key, sentence))
                sentence = lab_arena_printf(merge->arena, "rank %d: %s", i, sentence);
            if (!says(all, sentence))
                lab_value_append(merge->arena, all, lab_value_string(merge->arena, sentence));
        }
    }
    return all;
}

static void set_sentences(struct merge *merge, const char *profiler, struct lab_run *outcome) {
    struct lab_value *invalid = gather(merge, "invalid"), *warnings = gather(merge, "warnings");
    if (profiler)
        lab_value_append(
            merge->arena, warnings,
            lab_value_string(merge->arena, lab_arena_printf(merge->arena,
                                                            "%s recorded it meanwhile: its times "
                                                            "include what that costs",
                                                            profiler)));
    if (merge->count > 1) {
        double overlap = find_overlap(merge);
        lab_value_set_float(merge->arena, merge->map, "gang_overlap", overlap);
        if (overlap < OVERLAP_LEAST)
            lab_value_append(
                merge->arena, warnings,
                lab_value_string(merge->arena,
                                 lab_arena_printf(merge->arena,
                                                  "its ranks measured at the same time for only "
                                                  "%.0f %% of the time",
                                                  100 * overlap)));
    }
    outcome->valid = invalid->count == 0;
    lab_value_set_bool(merge->arena, merge->map, "valid", outcome->valid);
    lab_value_set(merge->arena, merge->map, "invalid", invalid);
    lab_value_set(merge->arena, merge->map, "warnings", warnings);
}

static const char *const summed[] = {"samples_per_second", "flops_per_second", "h2d_gb_per_s",
                                     "d2h_gb_per_s", "samples"};
static const char *const of_slowest[] = {"iterations",
                                         "warmup_iterations",
                                         "compute_utilization",
                                         "overlap",
                                         "latency_ms",
                                         "interval_ms",
                                         "setup_s",
                                         "first_iteration_ms",
                                         "verification",
                                         "conditions",
                                         "forward_ms",
                                         "backward_ms",
                                         "gradient_ms",
                                         "update_ms",
                                         "trace",
                                         "communication_time_ms",
                                         "exposed_communication_ms"};
static const char *const of_all[] = {"steady", "placement_proven"};

static void set_figures(struct merge *merge, struct lab_run *outcome) {
    outcome->rate = sum(merge, "rate");
    outcome->rate_low = sum(merge, "rate_low");
    outcome->rate_high = sum(merge, "rate_high");
    const struct lab_value *unit = lab_value_get(merge->slowest, "rate_unit");
    bool has_unit = unit && unit->type == LAB_VALUE_STRING && !isnan(outcome->rate);
    outcome->rate_unit = has_unit ? unit->string : "";
    lab_value_set_float(merge->arena, merge->map, "rate", outcome->rate);
    lab_value_set_float(merge->arena, merge->map, "rate_low", outcome->rate_low);
    lab_value_set_float(merge->arena, merge->map, "rate_high", outcome->rate_high);
    lab_value_set_string(merge->arena, merge->map, "rate_unit", has_unit ? unit->string : NULL);
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        set_sum(merge, summed[i]);
    set_peak_memory(merge);
    for (size_t i = 0; i < sizeof of_slowest / sizeof *of_slowest; i++)
        set_slowest(merge, of_slowest[i]);
    for (size_t i = 0; i < sizeof of_all / sizeof *of_all; i++)
        set_all(merge, of_all[i]);
}

static void set_simulated(struct merge *merge, struct lab_run *outcome) {
    bool any = false;
    for (int i = 0; i < merge->count; i++) {
        const struct lab_value *value = lab_value_get(merge->ranks[i], "simulated");
        const struct lab_value *end = lab_value_get(merge->ranks[i], "end_ns");
        bool simulated = value && value->type == LAB_VALUE_BOOL && value->boolean;
        if (simulated && end && end->type == LAB_VALUE_INT && end->integer > outcome->end_ns)
            outcome->end_ns = end->integer;
        any |= simulated;
    }
    lab_value_set_bool(merge->arena, merge->map, "simulated", any);
}

int runner_result_merge(const struct runner_rank *ranks, int count, bool shared,
                        const char *profiler, struct lab_run_monitor *monitor,
                        const struct lab_run_monitor_question *question, struct lab_arena *arena,
                        struct lab_run *outcome, struct lab_err *err) {
    struct merge merge = {.arena = arena,
                          .count = count,
                          .shared = shared,
                          .places = question->ranks,
                          .map = lab_value_map(arena)};
    merge.ranks = lab_arena_alloc(arena, (size_t)count, sizeof *merge.ranks);
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        if (read_rank(ranks[i].result, arena, &merge.ranks[i], err) < 0)
            return count > 1 ? lab_err_context(err, "the RESULT of rank %d", i)
                             : lab_err_context(err, "its RESULT");
        lab_value_append(arena, list, merge.ranks[i]);
    }
    ask_watch(&merge, monitor, question);
    merge.slowest = find_slowest(&merge);
    set_figures(&merge, outcome);
    set_gpu_figures(&merge);
    set_sentences(&merge, profiler, outcome);
    lab_value_set(arena, merge.map, "ranks", list);
    set_simulated(&merge, outcome);
    struct lab_str text;
    lab_str_init(&text);
    lab_json_write(merge.map, 0, &text);
    outcome->result = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return 0;
}
