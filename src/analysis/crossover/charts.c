/* charts.c: compute and transfer time over the work of a sample; the crossover is shaded. */
#include "analysis/crossover/crossover.h"

#include "analysis/claims/rows.h"

#define PANELS_MAX 6

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

void crossover_add_chart(struct lab_analysis_result *result, const struct crossover_group *groups,
                         int count, struct lab_arena *arena) {
    struct lab_chart chart = {.name = "crossover",
                              .title = "Compute and transfer time",
                              .caption = "Of a sample. The longer of the two bounds the pipeline.",
                              .simulated = result->simulated};
    for (int g = 0; g < count; g++)
        for (int s = 0; s < groups[g].series_count && chart.panel_count < PANELS_MAX; s++) {
            const struct crossover_series *series = &groups[g].series[s];
            struct lab_rows rows = rows_of(series, arena);
            if (series->count < 2)
                continue;
            struct lab_chart_panel *panel = lab_chart_add_panel(
                &chart, series->claim.subject, lab_axis_log("Work of a sample [GFLOP]"),
                lab_axis_log("Time of a sample [µs]"), arena);
            lab_rows_add_series(panel, &rows, "gflop", "time_us", "stage", LAB_CHART_LINE_POINTS,
                                arena);
            if (series->claim.verdict != LAB_CLAIM_YES)
                continue;
            struct lab_chart_shade *shade = lab_arena_alloc(arena, 1, sizeof *shade);
            *shade = (struct lab_chart_shade){1e-9 * series->claim.low, 1e-9 * series->claim.high,
                                              "crossover", 0};
            panel->shades = shade;
            panel->shade_count = 1;
        }
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
