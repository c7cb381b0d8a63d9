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

/* Where there are more than fit: from the lowest crossover to the highest. */
static int choose(const struct crossover_group *groups, int count, struct lab_arena *arena,
                  const struct crossover_series ***ret_series, int *ret_all) {
    const struct crossover_series **list = NULL;
    int all = 0;
    for (int g = 0; g < count; g++)
        for (int s = 0; s < groups[g].series_count; s++)
            if (groups[g].series[s].count > 1)
                LAB_ADD(list, all, arena) = &groups[g].series[s];
    if (all > PANELS_MAX) {
        LAB_SORT_REFS(list, all, LAB_BY(*list, claim.effect));
        for (int i = 0; i < PANELS_MAX; i++)
            list[i] = list[i * (all - 1) / (PANELS_MAX - 1)];
    }
    *ret_series = list;
    *ret_all = all;
    return all < PANELS_MAX ? all : PANELS_MAX;
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
    if (all > shown)
        chart.title =
            lab_arena_printf(arena, "%s, %d of %d shown, from the lowest crossover to the highest",
                             chart.title, shown, all);
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
