/* charts.c: compute and transfer time over the work of a sample; the crossover is shaded. */
#include "analysis/crossover/crossover.h"

#include "analysis/claims/rows.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define PANELS_MAX 6
#define NAMES_MOST 6 /* of marks, in the caption */

struct drawn {
    const char *stage;
    double gflop, time_us;
};

static const struct lab_field fields[] = {
    LAB_FIELD(struct drawn, stage, "stage", "Stage", LAB_UNIT_TEXT),
    LAB_FIELD(struct drawn, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct drawn, time_us, "time_us", "Time", LAB_UNIT_NUMBER),
};

static struct lab_rows rows_of(const struct crossover_series *series, struct lab_arena *arena) {
    struct drawn *rows = NULL;
    int count = 0;
    for (int i = 0; i < 2 * series->count; i++) {
        const struct crossover_model *model = series->models[i % series->count];
        bool compute = i < series->count;
        LAB_ADD(rows, count, arena) =
            (struct drawn){compute ? "compute" : "transfer", model->gflop,
                           1e6 * (compute ? model->compute_s : model->transfer_s)};
    }
    return LAB_ROWS(fields, rows, count);
}

static bool has_series(const struct crossover_group *group, const struct crossover_series *series) {
    for (int s = 0; s < group->series_count; s++)
        if (&group->series[s] == series)
            return true;
    return false;
}

static bool has_model(const struct crossover_series *series, const struct crossover_model *model) {
    for (int i = 0; i < series->count; i++)
        if (series->models[i] == model)
            return true;
    return false;
}

/* Models that only copy, on the device of that series, at no work. */
static struct lab_rows copies_of(const struct crossover_group *groups, int count,
                                 const struct crossover_series *series, struct lab_arena *arena) {
    struct drawn *rows = NULL;
    int row_count = 0;
    for (int g = 0; g < count; g++) {
        for (int m = 0; has_series(&groups[g], series) && m < groups[g].count; m++) {
            const struct crossover_model *model = &groups[g].models[m];
            if (isnan(model->compute_s) && isfinite(model->transfer_s) && model->gflop == 0)
                LAB_ADD(rows, row_count, arena) =
                    (struct drawn){"transfer", 0, 1e6 * model->transfer_s};
        }
    }
    return LAB_ROWS(fields, rows, row_count);
}

#define STEPS 8 /* of a line between two models */

/* The straight lines that the crossover is found on, which logarithmic axes bend. */
static struct lab_rows lines_of(const struct lab_rows *models, struct lab_arena *arena) {
    const struct drawn *from = models->items;
    struct drawn *rows = NULL;
    int count = 0;
    for (int i = 0; i < models->count; i++) {
        bool last = i + 1 == models->count || from[i + 1].stage != from[i].stage;
        for (int k = 0; k < (last ? 1 : STEPS); k++) {
            double part = (double)k / STEPS;
            LAB_ADD(rows, count, arena) =
                last
                    ? from[i]
                    : (struct drawn){
                          from[i].stage, from[i].gflop + part * (from[i + 1].gflop - from[i].gflop),
                          from[i].time_us + part * (from[i + 1].time_us - from[i].time_us)};
        }
    }
    return LAB_ROWS(fields, rows, count);
}

/* Where there are more than fit: of those that have a crossover, from the lowest to the highest. */
static int choose(const struct crossover_group *groups, int count, struct lab_arena *arena,
                  const struct crossover_series ***ret_series, int *ret_all) {
    const struct crossover_series **list = NULL;
    int all = 0;
    for (int g = 0; g < count; g++)
        for (int s = 0; s < groups[g].series_count; s++)
            if (groups[g].series[s].count > 1)
                LAB_ADD(list, all, arena) = &groups[g].series[s];
    int shown = all;
    if (all > PANELS_MAX) {
        int found = 0;
        for (int i = 0; i < all; i++)
            if (list[i]->claim.verdict == LAB_CLAIM_YES)
                list[found++] = list[i];
        shown = found > 0 ? found : all;
        LAB_SORT_REFS(list, shown, LAB_BY(*list, claim.effect));
        for (int i = 0; i < PANELS_MAX && shown > PANELS_MAX; i++)
            list[i] = list[i * (shown - 1) / (PANELS_MAX - 1)];
    }
    *ret_series = list;
    *ret_all = all;
    return shown < PANELS_MAX ? shown : PANELS_MAX;
}

static void add_panel(struct lab_chart *chart, const struct crossover_series *series,
                      const struct lab_rows *copies, struct lab_arena *arena) {
    struct lab_rows rows = rows_of(series, arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, series->claim.subject, lab_axis_log("Work of a sample [GFLOP]"),
                            lab_axis_log("Time of a sample [µs]"), arena);
    struct lab_rows lines = lines_of(&rows, arena);
    lab_rows_add_series(panel, &rows, "gflop", "time_us", "stage", LAB_CHART_POINTS, arena);
    int stages = panel->series_count;
    struct lab_chart_series *dashes =
        lab_rows_add_series(panel, &lines, "gflop", "time_us", "stage", LAB_CHART_DASHES, arena);
    for (int s = 0; stages + s < panel->series_count; s++)
        dashes[s].colour = panel->series[s].colour;
    if (copies->count > 0)
        lab_rows_add_series(panel, copies, "gflop", "time_us", "stage", LAB_CHART_POINTS, arena);
    if (series->claim.verdict != LAB_CLAIM_YES)
        return;
    struct lab_chart_shade *shade = lab_arena_alloc(arena, 1, sizeof *shade);
    *shade = (struct lab_chart_shade){1e-9 * series->claim.low, 1e-9 * series->claim.high,
                                      "crossover, 95% interval", 0};
    panel->shades = shade;
    panel->shade_count = 1;
}

/* "vit32x2x256, vit32x4x512"; NULL = there are too many to be found by counting, or panels have
 * different ones. */
static const char *mark_names(const struct crossover_series *const *series, int count,
                              struct lab_arena *arena) {
    const char *names = "";
    if (series[0]->count > NAMES_MOST)
        return NULL;
    for (int s = 0; s < count; s++)
        for (int m = 0; m < series[0]->count; m++) {
            const char *name = series[0]->models[m]->name;
            if (series[s]->count != series[0]->count ||
                !lab_str_equal(series[s]->models[m]->name, name))
                return NULL;
            if (s == 0)
                names = lab_arena_printf(arena, "%s%s%s", names, m ? ", " : "", name);
        }
    return names;
}

/* "vit16x8x768", "5 models": of the groups that are shown, what is in none of their series; "" =
 * nothing. */
static const char *left_out(const struct crossover_group *groups, int count,
                            struct lab_arena *arena) {
    const char **names = NULL;
    int name_count = 0;
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++) {
            const struct crossover_model *model = &groups[g].models[m];
            const char *name = model->point->runs[0]->model;
            bool drawn = !(model->gflop > 0) || isnan(model->excess.effect);
            for (int s = 0; s < groups[g].series_count; s++)
                drawn |= has_model(&groups[g].series[s], model);
            if (!drawn && lab_list_find_text(names, name_count, name) < 0)
                LAB_ADD(names, name_count, arena) = name;
        }
    if (name_count > NAMES_MOST)
        return lab_arena_printf(arena, "%d models", name_count);
    LAB_AUTO(str, list);
    LAB_ADD(names, name_count, arena) = NULL;
    lab_str_add_list(&list, names, "and");
    return lab_arena_strdup(arena, list.text);
}

#define SHORTFALL_LEAST 0.02

/* How far the throughput of a model stays below what its longer stage alone allows: a run fills and
 * drains the pipeline, and an iteration waits for one of two buffers. */
static double shortfall_most(const struct crossover_group *groups, int count,
                             const struct crossover_series *const *series, int series_count) {
    double most = 0;
    for (int g = 0; g < count; g++)
        for (int m = 0; m < groups[g].count; m++) {
            const struct crossover_model *model = &groups[g].models[m];
            const struct lab_study_point *point = model->point;
            bool drawn = false;
            for (int s = 0; s < series_count; s++)
                drawn |= model->gflop == 0 ? has_series(&groups[g], series[s])
                                           : has_model(series[s], model);
            double rate = lab_study_estimate(point->rates, point->count).value;
            if (drawn)
                most = fmax(most, 1 - rate * fmax(model->compute_s, model->transfer_s));
        }
    return most;
}

void crossover_add_chart(struct lab_analysis_result *result, const struct crossover_group *groups,
                         int count, struct lab_arena *arena) {
    struct lab_chart chart = {.name = "crossover",
                              .title = "Compute and transfer time",
                              .caption = "The longer of the two bounds the pipeline. Marks: "
                                         "measured. Dashes: interpolated between them.",
                              .simulated = result->simulated};
    const struct crossover_series **chosen;
    int all, shown = choose(groups, count, arena, &chosen, &all);
    bool copied = false;
    for (int s = 0; s < shown; s++) {
        struct lab_rows copies = copies_of(groups, count, chosen[s], arena);
        add_panel(&chart, chosen[s], &copies, arena);
        copied |= copies.count > 0;
    }
    const char *names = shown > 0 ? mark_names(chosen, shown, arena) : NULL;
    if (names)
        chart.caption = lab_arena_printf(arena, "Marks, from the left: %s%s. %s",
                                         copied ? "copies only, " : "", names,
                                         "Dashes: interpolated. The longer of the two bounds the "
                                         "pipeline.");
    else if (copied)
        chart.caption = lab_arena_printf(arena, "%s 0: copies only.", chart.caption);
    double shortfall = shortfall_most(groups, count, chosen, shown);
    if (shortfall >= SHORTFALL_LEAST)
        chart.caption = lab_arena_printf(
            arena,
            "%s Throughput is up to %.1f%% below 1 / time: filling and draining the pipeline, "
            "waits for its two buffers.",
            chart.caption, 100 * shortfall);
    const char *rest = left_out(groups, count, arena);
    if (*rest)
        chart.caption = lab_arena_printf(arena, "%s Not shown, of other depth and width: %s.",
                                         chart.caption, rest);
    if (all > shown)
        chart.title =
            lab_arena_printf(arena, "%s, %d of %d shown, from the lowest crossover to the highest",
                             chart.title, shown, all);
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
