/* chart.c: throughput by work, by depth and by width, measured and by the cost model; memory. */
#include "analysis/scaling/scaling.h"

#include "analysis/claims/rows.h"

static const struct lab_field fields[] = {
    LAB_FIELD(struct scaling_model, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, depth, "depth", "Depth", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, dim, "dim", "Width", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, rate, "rate", "Samples/s", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, predicted_rate, "model", "Samples/s", LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, million_parameters, "parameters", "Parameters",
              LAB_UNIT_NUMBER),
    LAB_FIELD(struct scaling_model, memory_mib, "memory", "Memory", LAB_UNIT_NUMBER),
};

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

static void add_panel(struct lab_chart *chart, const struct lab_rows *rows, const char *x,
                      const char *title, struct lab_arena *arena) {
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis_log(title), lab_axis_log("Samples/s"), arena);
    lab_rows_add_series(panel, rows, x, "rate", NULL, LAB_CHART_POINTS, arena);
    lab_rows_add_series(panel, rows, x, "model", NULL, LAB_CHART_DASHES, arena);
    for (int s = 0; s < panel->series_count; s++)
        ((struct lab_chart_series *)panel->series)[s].title = s == 0 ? "measured" : "cost model";
}

void scaling_add_charts(struct lab_analysis_result *result, const struct scaling_group *group,
                        const char *suffix, struct lab_arena *arena) {
    struct lab_chart chart = {.name = lab_arena_printf(arena, "scaling_throughput%s", suffix),
                              .title =
                                  lab_arena_printf(arena, "Throughput by model, %s", group->title),
                              .caption = "Whiskers are intervals at 95% over runs.",
                              .simulated = group->simulated};
    struct lab_rows all = LAB_ROWS(fields, group->models, group->count);
    struct lab_rows depth = rows_of(group, &group->depth, arena),
                    width = rows_of(group, &group->width, arena);
    add_panel(&chart, &all, "gflop", "Work of a sample [GFLOP]", arena);
    if (depth.count > 1)
        add_panel(&chart, &depth, "depth", "Depth [blocks]", arena);
    if (width.count > 1)
        add_panel(&chart, &width, "dim", "Width [values]", arena);
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
