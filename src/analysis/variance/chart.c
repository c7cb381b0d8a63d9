/* chart.c: how iteration times are distributed, by device and phase, a panel for each kernel. */
#include "analysis/analysis_build.h"
#include "analysis/variance/phases.h"
#include "stats/stats.h"

#include "base/list.h"

#include <string.h>

#define PANELS_MAX  12
#define VALUES_MAX  50000 /* of a box: every so manieth iteration of more */
#define DEVICES_MAX 64

struct boxes { /* medians with their quartiles, and what the whiskers span */
    struct lab_series middle, whiskers;
};

/* All runs of the point together. */
static size_t collect(const struct lab_study_point *point, double *values) {
    size_t total = 0, n = 0, seen = 0;
    for (int i = 0; i < point->count; i++)
        total += point->runs[i]->ranks[0].iteration_count;
    size_t step = total / VALUES_MAX + 1;
    LAB_AUTO(arena, scratch);
    for (int i = 0; i < point->count; i++) {
        size_t count;
        const double *times_s = lab_study_intervals(&point->runs[i]->ranks[0], &scratch, &count);
        for (size_t k = 0; k < count; k++)
            if (seen++ % step == 0)
                values[n++] = 1e3 * times_s[k];
    }
    return n;
}

static void add_box(struct boxes *boxes, double x, const struct lab_study_point *point) {
    LAB_AUTO_FREE double *values =
        lab_mem_resize(NULL, (size_t)2 * (VALUES_MAX + 1), sizeof *values);
    double *sorted = values + VALUES_MAX + 1;
    size_t n = collect(point, values);
    if (n > 1 && lab_stats_sort(values, n, sorted)) {
        double median = lab_stats_quantile_sorted(sorted, n, 0.5);
        lab_series_add(&boxes->middle, x, median, lab_stats_quantile_sorted(sorted, n, 0.25),
                       lab_stats_quantile_sorted(sorted, n, 0.75));
        lab_series_add(&boxes->whiskers, x, median, lab_stats_quantile_sorted(sorted, n, 0.05),
                       lab_stats_quantile_sorted(sorted, n, 0.95));
    }
}

static void add_panel(struct lab_chart *chart, const struct lab_phases *phases, const char *kernel,
                      struct lab_arena *arena) {
    const struct lab_phase_unit *units[DEVICES_MAX];
    int count = 0;
    for (int u = 0; u < phases->unit_count && count < DEVICES_MAX; u++)
        if (strcmp(phases->units[u].kernel, kernel) == 0)
            units[count++] = &phases->units[u];
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = units[i]->device;
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, kernel, lab_axis_names("Device", names, count),
                            lab_axis("Iteration time [ms]"), arena);
    for (int p = 0; p < phases->count; p++) {
        struct boxes boxes = {{.arena = arena}, {.arena = arena}};
        for (int i = 0; i < count; i++)
            add_box(&boxes, i, &units[i]->points[p].time);
        struct lab_chart_series series =
            lab_series_chart(&boxes.middle, phases->names[p], LAB_CHART_BOXES, p);
        series.least = boxes.whiskers.low;
        series.most = boxes.whiskers.high;
        if (series.count > 0)
            lab_panel_add_series(panel, series, arena);
    }
    chart->panel_count -= panel->series_count == 0;
}

void lab_phases_add_chart(struct lab_analysis_result *result, const struct lab_phases *phases) {
    struct lab_arena *arena = phases->arena;
    struct lab_chart chart = {.name = "variance",
                              .title = "Iteration times by phase",
                              .caption =
                                  "Boxes: middle half of the iterations; whiskers: 5% to 95%.",
                              .simulated = phases->simulated};
    for (int u = 0; u < phases->unit_count && chart.panel_count < PANELS_MAX; u++) {
        if (LAB_FIND(phases->units, u, kernel, phases->units[u].kernel) < 0)
            add_panel(&chart, phases, phases->units[u].kernel, arena);
    }
    chart.columns = chart.panel_count > 2 ? 2 : 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
