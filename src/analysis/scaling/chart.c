/* chart.c: throughput by work, by depth and by width, measured and by the cost model; memory. */
#include "analysis/scaling/scaling.h"

#include "analysis/claims/rows.h"
#include "base/list.h"

#include <math.h>

static const struct lab_field fields[] = {
    LAB_FIELD(struct scaling_model, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, depth, "depth", "Depth", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, dim, "dim", "Width", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, rate, "rate", "Samples/s", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, million_parameters, "parameters", "Parameters",
              LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, memory_mib, "memory", "Memory", LAB_UNIT_NUMBER),
};

struct fitted { /* the cost model at a model, with the interval of a prediction */
    double gflop, depth, dim;
    struct lab_effect rate;
    bool outside; /* of what was run */
};

static const struct lab_field fitted_fields[] = {
    LAB_FIELD(struct fitted, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct fitted, depth, "depth", "Depth", LAB_UNIT_NUMBER),
    LAB_FIELD(struct fitted, dim, "dim", "Width", LAB_UNIT_NUMBER),
    LAB_FIELD(struct fitted, rate, "rate", "Samples/s", LAB_UNIT_NUMBER),
};

static struct fitted fitted_of(const struct scaling_prediction *prediction, double depth,
                               double dim) {
    const struct lab_claim *time = &prediction->time;
    double samples = prediction->rate * time->effect;
    return (struct fitted){
        prediction->gflop,
        depth,
        dim,
        {prediction->rate, {samples / time->high, samples / time->low, time->confidence}},
        prediction->outside};
}

/* Of the models that were run (of a series alone, where one is given), or of those that weren't;
 * those of a series share its other key. */
static struct lab_rows fit(const struct scaling_group *group, const struct scaling_prediction *more,
                           int more_count, const struct lab_stage_series *series,
                           struct lab_arena *arena) {
    struct fitted *rows = NULL;
    int count = 0;
    bool by_depth = series == &group->depth;
    double other = NAN;
    for (int m = 0; m < group->count && group->fits; m++) {
        const struct scaling_model *model = &group->models[m];
        bool within = !series;
        for (int i = 0; series && i < series->count; i++)
            within |= series->points[i] == model->point;
        if (!within)
            continue;
        other = by_depth ? model->dim : model->depth;
        struct scaling_prediction made =
            scaling_predict_work(group, &model->point->runs[0]->work, model->name, arena);
        LAB_ADD(rows, count, arena) = fitted_of(&made, model->depth, model->dim);
    }
    for (int i = 0; i < more_count; i++)
        if (!series || (by_depth ? more[i].dim : more[i].depth) == other)
            LAB_ADD(rows, count, arena) = fitted_of(&more[i], more[i].depth, more[i].dim);
    LAB_SORT(rows, count, LAB_BY(rows, gflop));
    return LAB_ROWS(fitted_fields, rows, count);
}

/* The models of these points, in their order. */
static struct lab_rows rows_of(const struct scaling_group *group,
                               const struct lab_stage_series *series, struct lab_arena *arena) {
    struct scaling_model *rows = NULL;
    int count = 0;
    for (int i = 0; i < series->count; i++)
        for (int m = 0; m < group->count; m++)
            if (group->models[m].point == series->points[i])
                LAB_ADD(rows, count, arena) = group->models[m];
    return LAB_ROWS(fields, rows, count);
}

static void add_series(struct lab_chart_panel *panel, const struct lab_rows *rows, const char *x,
                       enum lab_chart_mark mark, const char *title, int colour,
                       struct lab_arena *arena) {
    struct lab_chart_series *made = lab_rows_add_series(panel, rows, x, "rate", NULL, mark, arena);
    if (made) {
        made->title = title;
        made->colour = colour;
    }
}

/* The rows within the tested range, and where they end. */
static struct lab_rows rows_within(const struct lab_rows *fitted, int *ret_from, int *ret_until) {
    const struct fitted *rows = fitted->items;
    int from = 0, until = fitted->count;
    while (from < until && rows[from].outside)
        from++;
    while (until > from && rows[until - 1].outside)
        until--;
    *ret_from = from;
    *ret_until = until;
    return LAB_ROWS(fitted_fields, rows + from, until - from);
}

static void add_model(struct lab_chart_panel *panel, const struct lab_rows *fitted, const char *x,
                      struct lab_arena *arena) {
    static const char *const beyond = "cost model, outside the tested range";
    const struct fitted *rows = fitted->items;
    int from, until;
    if (fitted->count == 0)
        return;
    struct lab_rows within = rows_within(fitted, &from, &until);
    add_series(panel, &within, x, LAB_CHART_DASHES, "cost model", 1, arena);
    add_series(panel, fitted, x, LAB_CHART_BAND, "95% interval of a prediction", 1, arena);
    if (from > 0 && until > from)
        add_series(panel, &LAB_ROWS(fitted_fields, rows, from + 1), x, LAB_CHART_DASHES, beyond, 5,
                   arena);
    if (until > from && until < fitted->count)
        add_series(panel, &LAB_ROWS(fitted_fields, rows + until - 1, fitted->count - until + 1), x,
                   LAB_CHART_DASHES, beyond, 5, arena);
}

static void add_panel(struct lab_chart *chart, const struct lab_rows *rows,
                      const struct lab_rows *fitted, bool line, const struct lab_rows *predicted,
                      const char *x, const char *title, struct lab_arena *arena) {
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis_log(title), lab_axis_log("Samples/s"), arena);
    add_series(panel, rows, x, LAB_CHART_POINTS, "measured", 0, arena);
    if (line)
        add_model(panel, fitted, x, arena);
    add_series(panel, predicted, x, LAB_CHART_POINTS, "not run, predicted", 5, arena);
}

void scaling_add_charts(struct lab_analysis_result *result, const struct scaling_group *group,
                        const struct scaling_prediction *predictions, int prediction_count,
                        const char *suffix, struct lab_arena *arena) {
    static const struct {
        const char *key, *title;
    } axes[] = {
        {"depth", "Depth [blocks]"}, {"dim", "Width"}, {"gflop", "Work of a sample [GFLOP]"}};
    struct lab_chart chart = {.name = lab_arena_printf(arena, "scaling_throughput%s", suffix),
                              .title =
                                  lab_arena_printf(arena, "Throughput by model, %s", group->title),
                              .intervals = "95% intervals over runs",
                              .simulated = group->simulated};
    struct scaling_group none = {0}; /* its models: what wasn't run, alone */
    struct lab_rows all = LAB_ROWS(fields, group->models, group->count);
    const struct lab_stage_series *series[] = {&group->depth, &group->width, NULL};
    for (int a = 0; a < LAB_COUNT_OF(axes); a++) {
        struct lab_rows rows = series[a] ? rows_of(group, series[a], arena) : all;
        struct lab_rows fitted = fit(group, predictions, prediction_count, series[a], arena);
        struct lab_rows predicted =
            fit(&none, predictions, series[a] ? 0 : prediction_count, NULL, arena);
        /* models of two series have no order by work that a line could follow */
        bool line = series[a] || group->depth.count == 0 || group->width.count == 0;
        const char *title = series[a] ? lab_arena_printf(arena, "%s, %s", axes[a].title,
                                                         scaling_fixed(series[a], arena))
                                      : axes[a].title;
        if (!series[a] || rows.count > 1)
            add_panel(&chart, &rows, &fitted, line, &predicted, axes[a].key, title, arena);
    }
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    lab_analysis_add_chart(result, chart, arena);
    struct lab_chart memory = {.name = lab_arena_printf(arena, "scaling_memory%s", suffix),
                               .title =
                                   lab_arena_printf(arena, "Memory by model, %s", group->title),
                               .simulated = group->simulated};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&memory, NULL, lab_axis_from("Parameters [million]", 0),
                            lab_axis_from("Peak memory [MiB]", 0), arena);
    lab_rows_add_series(panel, &all, "parameters", "memory", NULL, LAB_CHART_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, memory, arena);
}
