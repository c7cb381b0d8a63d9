/*
 * stability.c: `gpulab analyze stability`: whether runs stay as fast as they began: drift over the
 * runs of each point, change points, spikes, throttling.
 */
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
#include "analysis/stability/rate_series.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define LONG_RUN 100  /* iterations */
#define HARMLESS 0.01 /* of the time, throttled */
#define HEATED_S 120  /* a GPU that throttles has begun to */
#define HEATED   0.95 /* of that time measured is enough */

struct row { /* a rank of a point, over its runs; or a device over its points */
    const char *name, *device;
    int runs, changed;
    bool drifts;                  /* for certain */
    double median_s, throttled_s; /* NaN = unknown */
    double p99, longest;          /* over the median of its run; of the run where it is largest */
    const char *throttled_by;
    struct lab_claim drift;               /* "stability.point", "stability.device" */
    const struct lab_rate_series *series; /* one for each run */
};

struct figures {
    int runs, changed;
    double throttled_s;
    struct lab_claim drift;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, runs, "runs", "Runs", LAB_UNIT_COUNT, "Runs"),
    LAB_FIELD(struct figures, drift, "drift", "Drift", LAB_UNIT_CHANGE, "Drift"),
    LAB_FIELD(struct figures, changed, "changed_runs", "Change points", LAB_UNIT_COUNT,
              "Runs with change points"),
    LAB_FIELD(struct figures, throttled_s, "throttled_s", "Throttled", LAB_UNIT_DURATION,
              "Throttled"),
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, name, "point", "Point", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, runs, "runs", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct row, median_s, "iteration_ms", "Iteration", LAB_UNIT_TIME, .yields = 1),
    LAB_FIELD(struct row, drift, "drift", "Drift", LAB_UNIT_CHANGE),
    LAB_FIELD(struct row, p99, "p99_over_median", "p99/median", LAB_UNIT_RATIO),
    LAB_FIELD(struct row, longest, "longest_over_median", "Max/median", LAB_UNIT_RATIO),
    LAB_FIELD(struct row, changed, "changed_runs", "Changed runs", LAB_UNIT_COUNT, .yields = 2),
    LAB_FIELD(struct row, throttled_s, "throttled_s", "Throttled", LAB_UNIT_DURATION, .yields = 3),
    LAB_FIELD(struct row, throttled_by, "throttled_by", NULL, LAB_UNIT_TEXT),
};

static const struct lab_field device_fields[] = {
    LAB_FIELD(struct row, name, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, drift, "drift", "Drift, mean of its points", LAB_UNIT_CHANGE),
};

static const struct lab_field change_fields[] = {
    LAB_FIELD(struct lab_rate_series_change, run, "run", "Run", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_rate_series_change, at_s, "at_s", NULL, LAB_UNIT_DURATION),
    LAB_FIELD(struct lab_rate_series_change, at, NULL, "At", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_rate_series_change, before_s, "before_ms", "Before", LAB_UNIT_TIME),
    LAB_FIELD(struct lab_rate_series_change, after_s, "after_ms", "After", LAB_UNIT_TIME),
    LAB_FIELD(struct lab_rate_series_change, claim, "change", "Iteration time", LAB_UNIT_CHANGE),
    LAB_FIELD(struct lab_rate_series_change, clock_before, "clock_before_mhz", "MHz before",
              LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_rate_series_change, clock_after, "clock_after_mhz", "after",
              LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_rate_series_change, reason, "reason", "Throttled by", LAB_UNIT_TEXT),
};

struct stability { /* of a study */
    const struct lab_study_table *study;
    struct lab_arena *arena;
    struct lab_rate_series *series;
    struct row *rows, *devices;
    struct lab_rate_series_change *changes;
    int count, row_count, device_count, change_count, blocks;
    int points;
    int known, changed, throttled, throttling_known; /* series */
    double throttled_s, watched_s, shortest_s, longest_s;
    struct lab_claim drift, throttling; /* "stability.drift", "stability.throttling" */
};

/* --- drift --- */

/* Mean over the ranks of points in `rows` on that device (NULL = on all), block by block. */
static struct lab_claim claim_drift(const struct stability *made, const struct row *rows, int count,
                                    const char *device, const char *kind, const char *subject) {
    double *values = lab_arena_alloc(made->arena, (size_t)made->blocks + 1, sizeof *values);
    for (int b = 0; b < made->blocks; b++) {
        double sum = 0;
        int found = 0;
        for (int i = 0; i < count; i++)
            for (int r = 0; r < rows[i].runs; r++) {
                const struct lab_rate_series *series = &rows[i].series[r];
                if ((device && !lab_str_equal(rows[i].device, device)) || isnan(series->drift) ||
                    series->run->run->repeat != b)
                    continue;
                sum += log1p(series->drift);
                found++;
            }
        values[b] = found > 0 ? sum / found : (double)NAN;
    }
    struct lab_claim claim = lab_claim_named(
        lab_claim_from_blocks(values, made->blocks, NULL), kind,
        lab_arena_printf(made->arena, "%s, end of run", subject), "its start", "iteration time");
    for (int i = 0; i < count; i++)
        if (!device || lab_str_equal(rows[i].device, device))
            lab_claim_add_scope(&claim, rows[i].series[0].run->point, made->arena);
    return claim;
}

/* "6.44 s", "122 ms to 6.44 s" */
static const char *duration_words(const struct stability *made) {
    const char *most = lab_words_time(made->longest_s, made->arena);
    return made->shortest_s > 0.9 * made->longest_s
               ? most
               : lab_arena_printf(made->arena, "%s to %s",
                                  lab_words_time(made->shortest_s, made->arena), most);
}

static void claim_drifts(struct stability *made) {
    struct lab_arena *arena = made->arena;
    for (int i = 0; i < made->row_count; i++) {
        struct row *row = &made->rows[i];
        bool listed = false;
        row->drift = claim_drift(made, row, 1, NULL, "stability.point", row->name);
        for (int d = 0; d < made->device_count; d++)
            listed |= lab_str_equal(made->devices[d].device, row->device);
        if (!listed)
            LAB_ADD(made->devices, made->device_count, arena) =
                (struct row){.name = row->device,
                             .device = row->device,
                             .drift = claim_drift(made, made->rows, made->row_count, row->device,
                                                  "stability.device", row->device)};
    }
    made->drift =
        claim_drift(made, made->rows, made->row_count, NULL, "stability.drift", "All runs");
    struct lab_claim **family = NULL;
    int count = 0;
    LAB_ADD(family, count, arena) = &made->drift;
    for (int i = 0; i < made->row_count; i++)
        LAB_ADD(family, count, arena) = &made->rows[i].drift;
    for (int i = 0; i < made->device_count; i++)
        LAB_ADD(family, count, arena) = &made->devices[i].drift;
    lab_claim_adjust(family, count);
}

/* It was observed or not: there is nothing to estimate. */
static struct lab_claim claim_throttling(const struct stability *made) {
    struct lab_claim claim =
        lab_claim_named(lab_claim_none, "stability.throttling", "all runs", "", "throttled time");
    claim.n = made->throttling_known;
    claim.effect = made->throttled_s / made->watched_s;
    if (made->throttled > 0) {
        claim.verdict = LAB_CLAIM_YES;
        claim.p = 0; /* it was seen */
    } else if (made->watched_s > 0) {
        claim.verdict = LAB_CLAIM_NO;
        claim.bound = claim.effect;
    }
    return claim;
}

/* --- a study --- */

static void count_in(struct stability *made, struct row *row,
                     const struct lab_rate_series *series) {
    row->changed += series->change_count > 0;
    row->p99 = fmax(row->p99, series->p99);
    row->longest = fmax(row->longest, series->longest);
    made->known += series->steady != LAB_STEADY_UNKNOWN;
    made->shortest_s = fmin(made->shortest_s, series->duration_s);
    made->longest_s = fmax(made->longest_s, series->duration_s);
    if (isnan(series->throttled_s))
        return;
    made->throttling_known++;
    made->throttled += series->throttled_s > HARMLESS * series->duration_s;
    made->throttled_s += series->throttled_s;
    made->watched_s += fmax(0, series->duration_s);
    row->throttled_s = (isnan(row->throttled_s) ? 0 : row->throttled_s) + series->throttled_s;
    if (series->throttled_by)
        row->throttled_by = series->throttled_by;
}

/* "GPU 0"; "GPU 0 of GPUs 0–2" of a gang. */
static const char *rank_title(const struct lab_study_run *run, int rank, struct lab_arena *arena) {
    const char **all = lab_arena_alloc(arena, (size_t)run->rank_count + 1, sizeof *all);
    for (int r = 0; r < run->rank_count; r++)
        all[r] = lab_study_device_title(run->ranks[r].device, arena);
    return run->rank_count == 1 ? all[0]
                                : lab_arena_printf(arena, "%s of %s", all[rank],
                                                   lab_words_devices(all, run->rank_count, arena));
}

static void add_row(struct stability *made, const struct lab_study_point *point, int rank,
                    int runs) {
    const struct lab_study_rank *first = &point->runs[0]->ranks[rank];
    const char *device = lab_study_device_title(first->device, made->arena);
    struct row row = {.name = lab_arena_printf(made->arena, "%s%s, %s",
                                               rank_title(point->runs[0], rank, made->arena),
                                               lab_words_node(first->numa_node, made->arena),
                                               lab_study_point_model(point, made->arena)),
                      .device = device,
                      .throttled_s = NAN,
                      .p99 = NAN,
                      .longest = NAN,
                      .series = &made->series[made->count]};
    double *medians_s = lab_arena_alloc(made->arena, (size_t)point->count, sizeof *medians_s);
    for (int i = 0; i < point->count && rank < point->runs[i]->rank_count; i++) {
        struct lab_rate_series *series = &made->series[made->count++];
        *series =
            lab_rate_series_make(point->runs[i], &point->runs[i]->ranks[rank], runs, made->arena);
        if (point->runs[i]->run->repeat >= made->blocks)
            made->blocks = point->runs[i]->run->repeat + 1;
        medians_s[row.runs++] = series->median_s;
        count_in(made, &row, series);
    }
    row.median_s = lab_stats_median(medians_s, (size_t)row.runs);
    LAB_ADD(made->rows, made->row_count, made->arena) = row;
}

/* A change is one of the point where most of its runs have one; else it may be chance. One run
 * alone gives its value and no verdict. */
static void list_changes(struct stability *made) {
    for (int i = 0; i < made->row_count; i++) {
        const struct row *row = &made->rows[i];
        bool most = 2 * row->changed > row->runs;
        made->changed += most ? row->changed : 0;
        for (int r = 0; r < row->runs; r++)
            for (int c = 0; c < row->series[r].change_count; c++) {
                struct lab_rate_series_change change = row->series[r].changes[c];
                change.common = most;
                change.claim.n = row->runs;
                change.claim.verdict =
                    most && row->changed > 1 ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE;
                if (!most)
                    change.claim.reason = "most runs of the point don't have it";
                LAB_ADD(made->changes, made->change_count, made->arena) = change;
            }
    }
}

/* With runs that aren't valid: throttling, which is looked for here, makes them so. */
static const struct lab_study_table *with_all_runs(const struct lab_study_table *study,
                                                   struct lab_arena *arena) {
    struct lab_study_table *all = lab_arena_copy(arena, study, 1, sizeof *all);
    all->runs = lab_arena_copy(arena, study->runs, (size_t)study->run_count, sizeof *all->runs);
    for (int i = 0; i < all->run_count; i++)
        all->runs[i].used = true;
    all->invalid_count = 0;
    return all;
}

/* Points that drift, then those with the longest iterations: a table that is cut shows these. */
static void sort_worst_first(struct stability *made) {
    for (int i = 0; i < made->row_count; i++)
        made->rows[i].drifts = made->rows[i].drift.verdict == LAB_CLAIM_YES;
    LAB_SORT(made->rows, made->row_count, LAB_BY_MOST(made->rows, drifts),
             LAB_BY_MOST(made->rows, longest), LAB_BY(made->rows, name));
}

static struct stability look_at(const struct lab_study_table *study, struct lab_arena *arena) {
    study = with_all_runs(study, arena);
    struct stability made = {.study = study, .arena = arena, .shortest_s = NAN, .longest_s = NAN};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points), runs = 0;
    made.points = count;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < points[p].count; i++)
            runs += points[p].runs[i]->rank_count;
    made.series = lab_arena_alloc(arena, (size_t)runs + 1, sizeof *made.series);
    for (int p = 0; p < count; p++)
        for (int r = 0; r < points[p].runs[0]->rank_count; r++)
            add_row(&made, &points[p], r, runs);
    LAB_SORT(made.rows, made.row_count, LAB_BY(made.rows, name));
    list_changes(&made);
    claim_drifts(&made);
    sort_worst_first(&made);
    made.throttling = claim_throttling(&made);
    return made;
}

/* --- words --- */

/* Of changes that are their point's, the largest: the one to look at first. NULL = none is. */
static const struct lab_rate_series_change *largest_change(const struct stability *made) {
    const struct lab_rate_series_change *largest = NULL;
    for (int i = 0; i < made->change_count; i++) {
        const struct lab_rate_series_change *change = &made->changes[i];
        if (change->common &&
            (!largest || fabs(log1p(change->claim.effect)) > fabs(log1p(largest->claim.effect))))
            largest = change;
    }
    return largest;
}

static bool is_any(const struct lab_rate_series *series) {
    return series->run != NULL;
}

static bool is_short(const struct lab_rate_series *series) {
    return isnan(series->drift);
}

static bool is_unknown(const struct lab_rate_series *series) {
    return isnan(series->throttled_s);
}

static bool is_known(const struct lab_rate_series *series) {
    return !isnan(series->throttled_s);
}

static bool is_throttled(const struct lab_rate_series *series) {
    return series->throttled_s > HARMLESS * series->duration_s;
}

/* Runs with such a series of a rank. */
static int count_runs(const struct stability *made, bool (*is)(const struct lab_rate_series *)) {
    bool *seen = lab_arena_alloc(made->arena, (size_t)made->study->run_count + 1, sizeof *seen);
    int count = 0;
    for (int i = 0; i < made->count; i++) {
        bool *own = &seen[made->series[i].run - made->study->runs];
        count += is(&made->series[i]) && !*own;
        *own |= is(&made->series[i]);
    }
    return count;
}

/* "5", "7 to 8" */
static const char *repeats_words(const struct stability *made) {
    int least = made->row_count > 0 ? made->rows[0].runs : 0, most = least;
    for (int i = 1; i < made->row_count; i++) {
        least = made->rows[i].runs < least ? made->rows[i].runs : least;
        most = made->rows[i].runs > most ? made->rows[i].runs : most;
    }
    return least < most ? lab_arena_printf(made->arena, "%d to %d", least, most)
                        : lab_arena_printf(made->arena, "%d", least);
}

/* Of the point that was throttled for longest. */
static const char *throttling_reason(const struct stability *made) {
    const struct row *most = NULL;
    for (int i = 0; i < made->row_count; i++)
        if (made->rows[i].throttled_by && (!most || made->rows[i].throttled_s > most->throttled_s))
            most = &made->rows[i];
    return most ? most->throttled_by : "an unknown reason";
}

static const char *why_untested(const struct stability *made) {
    return made->count == 0   ? "no run is done."
           : made->known == 0 ? "fewer than 21 iterations of each run were kept."
                              : NULL;
}

/* Devices that drift for certain, where others don't: their mean tells neither. */
static void add_devices(const struct stability *made, struct lab_str *text) {
    const char **names = NULL;
    int count = 0, last = 0;
    for (int i = 0; i < made->device_count; i++)
        if (made->devices[i].drift.verdict == LAB_CLAIM_YES) {
            LAB_ADD(names, count, made->arena) = made->devices[i].name;
            last = i;
        }
    if (count == 0 || count == made->device_count)
        return;
    if (count == 1)
        lab_str_printf(text, " %s.", lab_claim_sentence(&made->devices[last].drift, made->arena));
    else
        lab_str_printf(text, " %s drift, of %d devices.",
                       lab_words_devices(names, count, made->arena), made->device_count);
}

/* What the mean may hide: the largest drift of a point, or how large one could be unnoticed. */
static void add_worst(const struct stability *made, struct lab_str *text) {
    const struct row *worst = NULL;
    double most = 0;
    for (int i = 0; i < made->row_count; i++) {
        const struct lab_claim *drift = &made->rows[i].drift;
        bool yes = drift->verdict == LAB_CLAIM_YES;
        if (yes && (!worst || fabs(drift->effect) > fabs(worst->drift.effect)))
            worst = &made->rows[i];
        most = fmax(most, isnan(drift->low) ? INFINITY : fmax(-drift->low, drift->high));
    }
    if (worst)
        lab_str_printf(text, " %s.", lab_claim_sentence(&worst->drift, made->arena));
    else if (made->row_count > 1 && isfinite(most))
        lab_str_printf(text, " No single point drifts by more than %.1f%%.",
                       lab_words_bound_percent(most));
}

/* "Spikes: the longest iteration is up to 1.54× its run's median (GPU 2, …), p99 up to 1.05× in
 * any run." */
static void add_spikes(const struct stability *made, struct lab_str *text) {
    const struct row *most = NULL;
    double p99 = NAN;
    for (int i = 0; i < made->row_count; i++) {
        p99 = fmax(p99, made->rows[i].p99);
        if (made->rows[i].longest > (most ? most->longest : 0))
            most = &made->rows[i];
    }
    if (!most)
        return;
    lab_str_printf(text, " Spikes: the longest iteration is up to %.2f× its run's median",
                   most->longest);
    if (made->row_count > 1)
        lab_str_printf(text, " (%s)", most->name);
    if (!isnan(p99))
        lab_str_printf(text, ", p99 up to %.2f× in any run", p99);
    lab_str_add(text, ".");
}

static const char *make_answer(const struct stability *made) {
    LAB_AUTO(str, text);
    const char *counted = lab_rate_series_counted(made->series, made->count);
    const char *over =
        lab_arena_printf(made->arena, "(runs of %s, %s %s)", duration_words(made),
                         repeats_words(made), made->points > 1 ? "per point" : "in all");
    const char *next = lab_claim_next(&made->drift, made->arena);
    if (made->drift.verdict == LAB_CLAIM_NO) {
        lab_str_printf(&text, "No drift larger than %.1f%% from start to end of a run%s %s.",
                       lab_words_bound_percent(made->drift.bound),
                       made->points > 1
                           ? lab_arena_printf(made->arena, ", mean of %d points", made->points)
                           : "",
                       over);
        add_worst(made, &text);
    } else if (made->drift.verdict == LAB_CLAIM_INCONCLUSIVE) {
        lab_str_printf(&text, "Inconclusive: drift of %s from start to end of a run %s%s%s.",
                       lab_claim_effect(&made->drift, made->arena), over, *next ? "; " : "", next);
    } else {
        struct lab_claim drift = made->drift;
        drift.subject =
            lab_arena_printf(made->arena, "Runs of %s, end of run", duration_words(made));
        if (made->row_count > 1)
            drift.mean_of = lab_arena_printf(made->arena, "%d points", made->row_count);
        lab_str_printf(&text, "%s.", lab_claim_sentence(&drift, made->arena));
    }
    add_devices(made, &text);
    const struct lab_rate_series_change *change = largest_change(made);
    if (change)
        lab_str_printf(
            &text,
            " Change points in %d of %d %s; %s: iterations take %.1f%% %s from %s "
            "on%s%s.",
            made->changed, made->known, counted, change->run, 100 * fabs(change->claim.effect),
            change->claim.effect > 0 ? "longer" : "less", change->at,
            change->reason ? ", throttled by " : "", change->reason ? change->reason : "");
    else
        lab_str_add(&text, made->blocks > 1 ? " No point has a lasting change of 1% or more in "
                                              "over half of its runs."
                                            : " No change point of 1% or more.");
    add_spikes(made, &text);
    if (made->throttling.verdict == LAB_CLAIM_YES)
        lab_str_printf(&text, " Throttled by %s in %d of %d runs, %.1f s in total.",
                       throttling_reason(made), count_runs(made, is_throttled),
                       count_runs(made, is_known), made->throttled_s);
    else if (made->throttling_known == made->count)
        lab_str_printf(&text, " No throttling in %d runs; none is longer than %s.",
                       count_runs(made, is_any), lab_words_time(made->longest_s, made->arena));
    return lab_arena_strdup(made->arena, text.text);
}

/* The run that heats its device most: with most arithmetic per sample. */
static const struct lab_study_run *heaviest(const struct lab_study_table *study) {
    const struct lab_study_run *found = &study->runs[0];
    for (int i = 1; i < study->run_count; i++)
        if (lab_study_complexity(&study->runs[i]) > lab_study_complexity(found))
            found = &study->runs[i];
    return found;
}

/* " 'experiment.vit_configs=[{…}]'": that model alone; "" = it has no such options. */
static const char *model_key(const struct lab_study_run *run, struct lab_arena *arena) {
    static const char *const keys[] = {"patch_size", "depth", "heads", "dim", "mlp_dim"};
    LAB_AUTO(str, text);
    for (int i = 0; i < LAB_COUNT_OF(keys); i++) {
        double value = lab_study_number(run, lab_arena_printf(arena, "options.%s", keys[i]));
        if (isnan(value))
            return "";
        lab_str_printf(&text, "%s\"%s\":%.0f", i ? "," : "", keys[i], value);
    }
    return lab_arena_printf(arena, " 'experiment.vit_configs=[{%s}]'", text.text);
}

/* The shortest that would throttle, where nothing has: one run per device, of the heaviest model,
 * from the local NUMA node. */
static void test_longer(struct lab_analysis_result *result, const struct stability *made) {
    if (made->known == 0 || !(made->longest_s < HEATED * HEATED_S) ||
        made->throttling.verdict == LAB_CLAIM_YES)
        return;
    struct lab_claim longer =
        lab_claim_named(lab_claim_none, "stability.longer",
                        lab_arena_printf(made->arena, "runs longer than %s",
                                         lab_words_time(made->longest_s, made->arena)),
                        "", "");
    lab_analysis_add_claim(result, &longer, made->arena);
    LAB_AUTO(str, total);
    const struct lab_study_run *run = heaviest(made->study);
    const char *model = model_key(run, made->arena);
    int runs = *model ? made->device_count : made->points;
    lab_str_add_duration(&total, runs * HEATED_S, LAB_DURATION_ROUNDED);
    result->further =
        lab_arena_printf(made->arena, "experiment.duration=%ds experiment.repeat=1%s%s", HEATED_S,
                         *model ? " experiment.hardware.numa_nodes=local" : "", model);
    result->tests = lab_arena_printf(
        made->arena, "Test for throttling, which takes minutes: %d run%s of %d s%s%s, %s of %s",
        runs, runs == 1 ? "" : "s", HEATED_S, *model ? " with " : "", *model ? run->model : "",
        total.text, made->study->simulated ? "simulated time" : "measuring");
}

/* NULL = nothing can be said. */
static const char *make_action(const struct stability *made) {
    if (made->throttling.verdict == LAB_CLAIM_YES)
        return lab_arena_printf(made->arena, "Throttled by %s: check cooling and power limit",
                                throttling_reason(made));
    bool steady = made->known > 0 && made->drift.verdict == LAB_CLAIM_NO && !largest_change(made);
    for (int i = 0; i < made->device_count; i++)
        steady &= made->devices[i].drift.verdict != LAB_CLAIM_YES;
    for (int i = 0; i < made->row_count; i++)
        steady &= made->rows[i].drift.verdict != LAB_CLAIM_YES;
    return steady ? "No drift to correct" : NULL;
}

/* --- the whole --- */

static void add_study(struct lab_analysis_result *result, const struct stability *made,
                      const char *prefix, const char *suffix) {
    struct lab_arena *arena = made->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, made->study->name, arena);
    struct lab_rows rows = LAB_ROWS(row_fields, made->rows, made->row_count),
                    devices = LAB_ROWS(device_fields, made->devices, made->device_count),
                    changes = LAB_ROWS(change_fields, made->changes, made->change_count);
    struct figures figures = {.runs = made->count,
                              .changed = made->changed,
                              .throttled_s =
                                  made->throttling_known ? made->throttled_s : (double)NAN,
                              .drift = made->drift};
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    part->untested = why_untested(made);
    part->answer = part->untested ? NULL : make_answer(made);
    lab_analysis_hide_columns(
        lab_rows_add_table(part, "points", "By point, the worst first", &rows, arena), arena);
    if (made->device_count > 1)
        lab_rows_add_table(part, "devices", "By device, mean over its points", &devices, arena);
    lab_analysis_hide_columns(
        lab_rows_add_table(part, "change_points", "Change points", &changes, arena), arena);
    lab_analysis_add_claim(result, &made->drift, arena);
    lab_analysis_add_claim(result, &made->throttling, arena);
    if (made->device_count > 1)
        lab_rows_add_claims(result, &devices, arena);
    lab_rows_add_claims(result, &rows, arena);
    lab_rows_add_claims(result, &changes, arena);
    lab_rate_series_add_chart(result, made->series, made->count,
                              lab_arena_printf(arena, "stability%s", suffix),
                              made->study->simulated, arena);
    lab_study_add_notes(made->study, prefix, &result->notes, arena);
    if (made->known > 0 && made->known < made->count)
        lab_analysis_note(&result->notes, arena, "%s%d of %d runs kept fewer than 21 iterations.",
                          prefix, count_runs(made, is_short), count_runs(made, is_any));
    if (made->throttling_known < made->count)
        lab_analysis_note(&result->notes, arena, "%sThrottling unknown in %d of %d runs.", prefix,
                          count_runs(made, is_unknown), count_runs(made, is_any));
}

static int stability_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                         struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        struct stability made = look_at(&input->studies[i], arena);
        add_study(result, &made, lab_analysis_prefix(input, &input->studies[i], arena),
                  lab_analysis_suffix(i, arena));
        if (i > 0)
            continue;
        test_longer(result, &made);
        result->by_point =
            "Drift: from start to end of a run, 95% CI over runs. p99 and max of "
            "iteration times: over their run's median, of the run where they are largest.";
        result->action = result->further ? NULL : make_action(&made);
    }
    return 0;
}

static int stability_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study))
        return 0;
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].run->iterations >= LONG_RUN)
            return 30;
    return study->run_count > 0 ? LAB_INTEREST_IF_NAMED : 0;
}

const struct lab_analysis lab_analysis_stability = {
    .name = "stability",
    .summary = "whether iteration times are stable: drift, throttling, change points",
    .description =
        "Drift: how much longer iterations take at the end of a run than at its start. As the mean "
        "over all points, by device and by point, with intervals over runs at 95%. Change points: "
        "where iteration times of a run change for good by 1% or more (PELT), certain for all runs "
        "together whatever their autocorrelation. Throttling: for how long, and by what.",
    .kinds = (const struct lab_analysis_kind[]){{"stability.drift"},
                                                {"stability.device"},
                                                {"stability.point"},
                                                {"stability.change", LAB_KIND_WITHIN},
                                                {"stability.throttling", LAB_KIND_OBSERVED},
                                                {"stability.longer", LAB_KIND_OBSERVED},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES,
    .interest = stability_interest,
    LAB_PARTS_OF("studies", figure_fields),
    .run = stability_run,
};
