/*
 * stability.c: `gpulab analyze stability`: whether runs stay as fast as they began: drift over the
 * runs of each point, change points, spikes, throttling.
 */
#include "analysis/stability/stability.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define LONG_RUN 100 /* iterations */

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
    LAB_FIELD(struct stability_row, name, "point", "Point", LAB_UNIT_TEXT),
    LAB_FIELD(struct stability_row, runs, "runs", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct stability_row, median_s, "iteration_ms", "Iteration", LAB_UNIT_TIME,
              .yields = 1),
    LAB_FIELD(struct stability_row, drift, "drift", "Drift", LAB_UNIT_CHANGE),
    LAB_FIELD(struct stability_row, p99, "p99_over_median", "p99/median", LAB_UNIT_RATIO,
              .yields = 1),
    LAB_FIELD(struct stability_row, longest, "longest_over_median", "Max/median", LAB_UNIT_RATIO),
    LAB_FIELD(struct stability_row, changed, "changed_runs", "Runs with change points",
              LAB_UNIT_COUNT, .yields = 2),
    LAB_FIELD(struct stability_row, throttled_s, "throttled_s", "Throttled", LAB_UNIT_DURATION,
              .yields = 3),
    LAB_FIELD(struct stability_row, throttled_by, "throttled_by", NULL, LAB_UNIT_TEXT),
};

static const struct lab_field device_fields[] = {
    LAB_FIELD(struct stability_row, name, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct stability_row, drift, "drift", "Drift, mean of its points", LAB_UNIT_CHANGE),
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

/* --- drift --- */

/* Mean over the ranks of points in `rows` on that device (NULL = on all), block by block. */
static struct lab_claim claim_drift(const struct stability *made, const struct stability_row *rows,
                                    int count, const char *device, const char *kind,
                                    const char *subject) {
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

static void claim_drifts(struct stability *made) {
    struct lab_arena *arena = made->arena;
    for (int i = 0; i < made->row_count; i++) {
        struct stability_row *row = &made->rows[i];
        bool listed = false;
        row->drift = claim_drift(made, row, 1, NULL, "stability.point", row->name);
        for (int d = 0; d < made->device_count; d++)
            listed |= lab_str_equal(made->devices[d].device, row->device);
        if (!listed)
            LAB_ADD(made->devices, made->device_count, arena) = (struct stability_row){
                .name = row->device,
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

static void count_in(struct stability *made, struct stability_row *row,
                     const struct lab_rate_series *series) {
    row->changed += series->change_count > 0;
    row->uncertain += series->uncertain;
    row->p99 = fmax(row->p99, series->p99);
    row->longest = fmax(row->longest, series->longest);
    made->known += series->steady != LAB_STEADY_UNKNOWN;
    made->shortest_s = fmin(made->shortest_s, series->duration_s);
    made->longest_s = fmax(made->longest_s, series->duration_s);
    if (isnan(series->throttled_s))
        return;
    made->throttling_known++;
    made->throttled += series->throttled_s > STABILITY_HARMLESS * series->duration_s;
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
    const char *model = lab_study_point_model(point, made->arena);
    struct stability_row row = {
        .name =
            lab_arena_printf(made->arena, "%s%s, %s", rank_title(point->runs[0], rank, made->arena),
                             lab_words_node(first->numa_node, made->arena), model),
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
        series->model = model;
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
        const struct stability_row *row = &made->rows[i];
        bool most = 2 * row->changed > row->runs;
        made->changed += most ? row->changed : 0;
        made->uncertain += 2 * (row->changed + row->uncertain) > row->runs ? row->uncertain : 0;
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

double stability_bound(const struct lab_claim *drift) {
    return isnan(drift->low) ? INFINITY : fmax(-drift->low, drift->high);
}

/* The largest drift, then what may drift most: a table that is cut shows these. */
static void sort_worst_first(struct stability *made) {
    static const int ranks[] = {[LAB_CLAIM_NOT_TESTED] = 0,
                                [LAB_CLAIM_NO] = 1,
                                [LAB_CLAIM_INCONCLUSIVE] = 2,
                                [LAB_CLAIM_YES] = 3};
    for (int i = 0; i < made->row_count; i++) {
        struct stability_row *row = &made->rows[i];
        row->rank = ranks[row->drift.verdict];
        row->most = row->rank == 3   ? fabs(row->drift.effect)
                    : row->rank == 0 ? 0
                                     : stability_bound(&row->drift);
    }
    LAB_SORT(made->rows, made->row_count, LAB_BY_MOST(made->rows, rank),
             LAB_BY_MOST(made->rows, most), LAB_BY_MOST(made->rows, longest),
             LAB_BY(made->rows, name));
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
    part->untested = stability_why_untested(made);
    part->answer = part->untested ? NULL : stability_answer(made);
    lab_analysis_hide_columns(
        lab_rows_add_table(part, "points", "By point, the largest drift first", &rows, arena),
        arena);
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
                              lab_arena_printf(arena, "stability%s", suffix), made->changed > 0,
                              made->study->simulated, arena);
    lab_study_add_notes(made->study, prefix, &result->notes, arena);
    stability_notes(made, prefix, result);
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
        stability_test_longer(result, &made);
        stability_test_all(result, &made);
        result->by_point =
            "Drift: of iteration times, from start to end of a run, 95% CI over runs. p99/median: "
            "of these, largest of all runs. Max/median: longest iteration over its run's median, "
            "largest of all runs. Certain drift comes first, then inconclusive, then the widest "
            "bound.";
        result->action = result->further ? NULL : stability_action(&made);
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
