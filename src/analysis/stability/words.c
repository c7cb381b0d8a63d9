/* words.c: what stability.c found, in sentences; and the shortest test that would find more. */
#include "analysis/analysis_words.h"
#include "analysis/stability/stability.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define HEATED_S  120  /* a GPU that throttles has begun to */
#define HEATED    0.95 /* of that time measured is enough */
#define UNCERTAIN 0.1  /* of the runs, that may change without showing it: more deserve a word */

/* Of runs whose drift is known: "6.44 s", "122 ms to 6.44 s". */
static const char *duration_words(const struct stability *made) {
    double shortest_s = NAN, longest_s = NAN;
    for (int i = 0; i < made->count; i++)
        if (!isnan(made->series[i].drift)) {
            shortest_s = fmin(shortest_s, made->series[i].duration_s);
            longest_s = fmax(longest_s, made->series[i].duration_s);
        }
    const char *most = lab_words_time(longest_s, made->arena);
    return shortest_s > 0.9 * longest_s
               ? most
               : lab_arena_printf(made->arena, "%s to %s", lab_words_time(shortest_s, made->arena),
                                  most);
}

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
    return series->throttled_s > STABILITY_HARMLESS * series->duration_s;
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

/* Runs of a point whose drift is known. */
static int count_tested(const struct stability_row *row) {
    int count = 0;
    for (int r = 0; r < row->runs; r++)
        count += !isnan(row->series[r].drift);
    return count;
}

static int count_tested_rows(const struct stability *made) {
    int count = 0;
    for (int i = 0; i < made->row_count; i++)
        count += count_tested(&made->rows[i]) > 0;
    return count;
}

/* The only one of a device's points that was tested; NULL = all were, or several. */
static const struct stability_row *only_tested(const struct stability *made, const char *device) {
    const struct stability_row *only = NULL;
    int count = 0, tested = 0;
    for (int i = 0; i < made->row_count; i++) {
        if (!lab_str_equal(made->rows[i].device, device))
            continue;
        count++;
        if (count_tested(&made->rows[i]) > 0) {
            only = &made->rows[i];
            tested++;
        }
    }
    return tested == 1 && count > 1 ? only : NULL;
}

/* What a row is: a point's runs may have several. */
static const char *rows_noun(const struct stability *made) {
    return made->row_count > made->points ? "ranks" : "points";
}

/* "6 points", "2 of 6 points", "170 ranks of 17 points" */
static const char *points_words(const struct stability *made) {
    int tested = count_tested_rows(made);
    const char *part = tested == made->row_count
                           ? lab_arena_printf(made->arena, "%d", tested)
                           : lab_arena_printf(made->arena, "%d of %d", tested, made->row_count);
    return made->row_count > made->points
               ? lab_arena_printf(made->arena, "%s ranks of %d point%s", part, made->points,
                                  made->points == 1 ? "" : "s")
               : lab_arena_printf(made->arena, "%s points", part);
}

/* Of points that were tested: "5", "7 to 8". */
static const char *repeats_words(const struct stability *made) {
    int least = 0, most = 0;
    for (int i = 0; i < made->row_count; i++) {
        int runs = count_tested(&made->rows[i]);
        least = runs > 0 && (least == 0 || runs < least) ? runs : least;
        most = runs > most ? runs : most;
    }
    return least < most ? lab_arena_printf(made->arena, "%d to %d", least, most)
                        : lab_arena_printf(made->arena, "%d", least);
}

/* Of the point that was throttled for longest. */
static const char *throttling_reason(const struct stability *made) {
    const struct stability_row *most = NULL;
    for (int i = 0; i < made->row_count; i++)
        if (made->rows[i].throttled_by && (!most || made->rows[i].throttled_s > most->throttled_s))
            most = &made->rows[i];
    return most ? most->throttled_by : "an unknown reason";
}

const char *stability_why_untested(const struct stability *made) {
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
    /* then the device's mean is that point's result */
    const struct stability_row *only = only_tested(made, made->devices[last].name);
    const char *sentence =
        lab_claim_sentence(only ? &only->drift : &made->devices[last].drift, made->arena);
    if (count == 1 && !(text->text && strstr(text->text, sentence)))
        lab_str_printf(text, " %s.", sentence);
    else if (count > 1)
        lab_str_printf(text, " %s drift, of %d devices.",
                       lab_words_devices(names, count, made->arena), made->device_count);
}

/* What the mean may hide: the largest drift of a point, or how large one could be unnoticed. */
static void add_worst(const struct stability *made, struct lab_str *text) {
    const struct stability_row *worst = NULL, *widest = NULL;
    double most = 0;
    int bounded = 0, open = 0;
    for (int i = 0; i < made->row_count; i++) {
        const struct stability_row *row = &made->rows[i];
        if (row->drift.verdict == LAB_CLAIM_YES) {
            if (!worst || fabs(row->drift.effect) > fabs(worst->drift.effect))
                worst = row;
        } else if (row->drift.verdict == LAB_CLAIM_NO) {
            most = fmax(most, stability_bound(&row->drift));
            bounded++;
        } else if (row->drift.verdict == LAB_CLAIM_INCONCLUSIVE) {
            if (!widest || stability_bound(&row->drift) > stability_bound(&widest->drift))
                widest = row;
            open++;
        }
    }
    if (worst) {
        lab_str_printf(text, " %s.", lab_claim_sentence(&worst->drift, made->arena));
        return;
    }
    if (made->row_count < 2 || bounded == 0)
        return;
    if (bounded == made->row_count)
        lab_str_printf(text, " Each %s alone: within ±%.1f%%.",
                       made->row_count > made->points ? "rank" : "point",
                       lab_words_bound_percent(most));
    else
        lab_str_printf(text, " %d of %d %s alone: within ±%.1f%%.", bounded, made->row_count,
                       rows_noun(made), lab_words_bound_percent(most));
    if (widest && isfinite(stability_bound(&widest->drift)))
        lab_str_printf(text, " %d %s inconclusive: drift of up to %.1f%% isn't excluded (%s).",
                       open, open == 1 ? "is" : "are", 100 * stability_bound(&widest->drift),
                       widest->name);
}

/* Whether a run was flagged for its outliers. */
static bool is_any_warned(const struct stability *made) {
    bool any = false;
    for (int i = 0; i < made->count; i++) {
        struct lab_result_list list =
            lab_result_items(lab_run_result(made->series[i].run->run), lab_result_row("warnings"));
        const struct lab_result_text *items = list.items;
        for (int k = 0; k < list.count; k++)
            any |= lab_run_warning_kind(lab_run_warning_of_rank(items[k].text)) ==
                   LAB_RUN_WARNING_OUTLIERS;
    }
    return any;
}

/* "Longest iteration of all runs: 1.54× its run's median (GPU 2, …); p99 at most 1.05×." */
static void add_spikes(const struct stability *made, struct lab_str *text) {
    const struct stability_row *most = NULL;
    double p99 = NAN;
    for (int i = 0; i < made->row_count; i++) {
        p99 = fmax(p99, made->rows[i].p99);
        if (made->rows[i].longest > (most ? most->longest : 0))
            most = &made->rows[i];
    }
    if (!most)
        return;
    lab_str_printf(text, " Longest iteration of all runs: %s its run's median",
                   lab_words_ratio(most->longest, made->arena));
    if (made->row_count > 1)
        lab_str_printf(text, " (%s)", most->name);
    if (!isnan(p99))
        lab_str_printf(text, "; p99 at most %s", lab_words_ratio(p99, made->arena));
    lab_str_add(text, ".");
    if (is_any_warned(made))
        lab_str_add(text, " A run is flagged if 1% or more of its times are severe outliers.");
}

static bool is_throttled_device(const struct stability *made, const char *device) {
    bool throttled = false;
    for (int i = 0; i < made->row_count; i++)
        for (int r = 0; r < made->rows[i].runs; r++)
            throttled |= lab_str_equal(made->rows[i].device, device) &&
                         is_throttled(&made->rows[i].series[r]);
    return throttled;
}

/* "GPU 1", "GPUs 0–3" */
static const char *throttled_devices(const struct stability *made) {
    const char **names = NULL;
    int count = 0;
    for (int i = 0; i < made->device_count; i++)
        if (is_throttled_device(made, made->devices[i].device))
            LAB_ADD(names, count, made->arena) = made->devices[i].name;
    return lab_words_devices(names, count, made->arena);
}

const char *stability_answer(const struct stability *made) {
    LAB_AUTO(str, text);
    const char *counted = lab_rate_series_counted(made->series, made->count);
    const char *over =
        lab_arena_printf(made->arena, "(runs of %s, %s %s)", duration_words(made),
                         repeats_words(made), made->points > 1 ? "per point" : "in all");
    const char *of = made->row_count > 1
                         ? lab_arena_printf(made->arena, ", mean of %s", points_words(made))
                         : "";
    const char *next = lab_claim_next(&made->drift, made->arena);
    if (made->throttling.verdict == LAB_CLAIM_YES) /* it is why times drift */
        lab_str_printf(&text, "%s throttled by %s in %d of %d runs, %.1f s in total. ",
                       throttled_devices(made), throttling_reason(made),
                       count_runs(made, is_throttled), count_runs(made, is_known),
                       made->throttled_s);
    if (made->drift.verdict == LAB_CLAIM_NO) {
        lab_str_printf(
            &text, "No drift of iteration times in runs of %s: %s (%s%s%s%s runs%s).",
            duration_words(made), lab_claim_short(&made->drift, made->arena),
            made->row_count > 1 ? "mean of " : "", made->row_count > 1 ? points_words(made) : "",
            made->row_count > 1 ? ", " : "", repeats_words(made), made->points > 1 ? " each" : "");
        add_worst(made, &text);
    } else if (made->drift.verdict == LAB_CLAIM_INCONCLUSIVE) {
        lab_str_printf(
            &text,
            "Inconclusive%s: iteration times drift by %s from start to end of a run%s %s%s%s.",
            lab_claim_is_corrected(&made->drift) ? " after correction for all comparisons" : "",
            lab_claim_effect(&made->drift, made->arena), of, over, *next ? "; " : "", next);
    } else {
        lab_str_printf(&text, "Iteration times drift by %s from start to end of a run%s %s.",
                       lab_claim_effect(&made->drift, made->arena), of, over);
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
    else if (made->uncertain > UNCERTAIN * made->known)
        lab_str_printf(
            &text,
            " No certain change point: in %d of %d %s times drift or wander too much to show one.",
            made->uncertain, made->known, counted);
    else
        lab_str_add(&text, made->blocks > 1 ? " No point has a lasting change of 1% or more in "
                                              "over half of its runs."
                                            : " No change point of 1% or more.");
    add_spikes(made, &text);
    if (made->throttling.verdict != LAB_CLAIM_YES && made->throttling_known == made->count)
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

/* The shortest that would throttle, where nothing has: of each device the heaviest model, from the
 * local NUMA node, with as many runs as a verdict on its drift needs. */
void stability_test_longer(struct lab_analysis_result *result, const struct stability *made) {
    if (made->count == 0 || !(made->longest_s < HEATED * HEATED_S) ||
        made->throttling.verdict == LAB_CLAIM_YES)
        return;
    struct lab_claim longer = lab_claim_named(
        lab_claim_none, "stability.longer",
        lab_arena_printf(made->arena, "%s over minutes (runs longer than %s)",
                         made->throttling_known > 0 ? "drift and throttling" : "drift",
                         lab_words_time(made->longest_s, made->arena)),
        "", "");
    lab_analysis_add_claim(result, &longer, made->arena);
    LAB_AUTO(str, total);
    const struct lab_study_run *run = heaviest(made->study);
    const char *model = model_key(run, made->arena);
    int runs = LAB_CLAIM_RUNS_LEAST * (*model ? made->device_count : made->points);
    lab_str_add_duration(&total, runs * HEATED_S, LAB_DURATION_ROUNDED);
    result->further = lab_arena_printf(
        made->arena, "experiment.duration=%ds experiment.repeat=%d%s%s", HEATED_S,
        LAB_CLAIM_RUNS_LEAST, *model ? " experiment.hardware.numa_nodes=local" : "", model);
    result->tests = lab_arena_printf(
        made->arena, "Test for drift%s over minutes: %d runs of %d s%s%s, %s of %s",
        made->throttling_known > 0 ? " and throttling" : "", runs, HEATED_S, *model ? " with " : "",
        *model ? run->model : "", total.text,
        made->study->simulated ? "simulated time" : "measuring");
}

/* Twice as many iterations as show a drift: some that are planned aren't kept. */
void stability_test_all(struct lab_analysis_result *result, const struct stability *made) {
    int untested = made->row_count - count_tested_rows(made);
    size_t least = SIZE_MAX;
    for (int i = 0; i < made->count; i++)
        if (isnan(made->series[i].drift) && made->series[i].count > 0 &&
            made->series[i].count < least)
            least = made->series[i].count;
    if (untested == 0 || least >= LAB_RATE_SERIES_LEAST)
        return;
    result->longer = (int)ceil(2.0 * LAB_RATE_SERIES_LEAST / (double)least);
    result->why_longer =
        lab_arena_printf(made->arena, "Runs %d times as long also test the other %d of %d %s",
                         result->longer, untested, made->row_count, rows_noun(made));
}

const char *stability_action(const struct stability *made) {
    if (made->throttling.verdict == LAB_CLAIM_YES)
        return lab_arena_printf(made->arena, "Check cooling and power limit of %s: throttled by %s",
                                throttled_devices(made), throttling_reason(made));
    bool steady = made->known > 0 && made->drift.verdict == LAB_CLAIM_NO && !largest_change(made);
    for (int i = 0; i < made->device_count; i++)
        steady &= made->devices[i].drift.verdict != LAB_CLAIM_YES;
    for (int i = 0; i < made->row_count; i++)
        steady &= made->rows[i].drift.verdict != LAB_CLAIM_YES;
    return steady ? "No drift to correct" : NULL;
}

void stability_notes(const struct stability *made, const char *prefix,
                     struct lab_analysis_result *result) {
    struct lab_arena *arena = made->arena;
    if (made->known > 0 && made->known < made->count)
        lab_analysis_note(&result->notes, arena, "%s%d of %d runs kept fewer than 21 iterations.",
                          prefix, count_runs(made, is_short), count_runs(made, is_any));
    if (made->throttling_known < made->count)
        lab_analysis_note(&result->notes, arena, "%sThrottling unknown in %d of %d runs.", prefix,
                          count_runs(made, is_unknown), count_runs(made, is_any));
}
