/* chart.c: iteration times over time, with the levels between changes; the worst runs first. */
#include "analysis/analysis_timeline.h"
#include "analysis/stability/rate_series.h"

#include <math.h>
#include <stdlib.h>

#define PANELS_MAX 12
#define COLUMNS    3 /* of panels, from four on */

/* How much there is to see: no steady state before slow-downs, then drifts. */
static double weight(const struct lab_rate_series *rate_series) {
    double change = 0;
    for (int i = 0; i < rate_series->change_count; i++)
        change = fmax(
            change, fabs(log(rate_series->changes[i].after_s / rate_series->changes[i].before_s)));
    return (lab_rate_series_is_steady(rate_series) ? 0 : 10) + change +
           (rate_series->drifts ? fabs(rate_series->drift) : 0);
}

static int by_weight(const void *a, const void *b) {
    const struct lab_rate_series *x = *(const struct lab_rate_series *const *)a,
                                 *y = *(const struct lab_rate_series *const *)b;
    double of_x = weight(x), of_y = weight(y);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static struct lab_chart_series time_series(const struct lab_rate_series *rate_series, double unit_s,
                                           struct lab_arena *arena) {
    double *x = lab_arena_alloc(arena, rate_series->shown_count, sizeof *x);
    double *y = lab_arena_alloc(arena, rate_series->shown_count, sizeof *y);
    for (size_t i = 0; i < rate_series->shown_count; i++) {
        x[i] = rate_series->shown_x_s[i] / unit_s;
        y[i] = 1e3 * rate_series->shown_y_s[i];
    }
    return (struct lab_chart_series){.title = "Iteration",
                                     .mark = LAB_CHART_LINE,
                                     .x = x,
                                     .y = y,
                                     .count = rate_series->shown_count,
                                     .colour = 0};
}

/* From one change to the next, broken in between; solid, since dashes are lost among the
 * iterations. */
static struct lab_chart_series level_series(const struct lab_rate_series *rate_series,
                                            double unit_s, struct lab_arena *arena) {
    size_t segments = (size_t)rate_series->change_count + 1, n = 0;
    double *x = lab_arena_alloc(arena, 3 * segments, sizeof *x);
    double *y = lab_arena_alloc(arena, 3 * segments, sizeof *y);
    for (size_t i = 0; i < segments; i++) {
        double from_s = i > 0 ? rate_series->changes[i - 1].at_s : 0;
        double until_s = (int)i < rate_series->change_count ? rate_series->changes[i].at_s
                                                            : rate_series->duration_s;
        double level_s = rate_series->change_count == 0 ? rate_series->median_s
                         : i > 0                        ? rate_series->changes[i - 1].after_s
                                                        : rate_series->changes[0].before_s;
        x[n] = from_s / unit_s;
        y[n++] = 1e3 * level_s;
        x[n] = until_s / unit_s;
        y[n++] = 1e3 * level_s;
        x[n] = until_s / unit_s;
        y[n++] = NAN;
    }
    return (struct lab_chart_series){
        .title = "Level", .mark = LAB_CHART_LINE, .x = x, .y = y, .count = n, .colour = 1};
}

bool lab_rate_series_chart(const struct lab_rate_series *all_rate_series, int count,
                           const char *name, bool simulated, struct lab_arena *arena,
                           struct lab_chart *ret_chart) {
    const struct lab_rate_series **order = lab_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    struct lab_chart_panel *panels = lab_arena_alloc(arena, PANELS_MAX, sizeof *panels);
    int shown = 0, made = 0;
    double longest_s = 0;
    for (int i = 0; i < count; i++) {
        if (all_rate_series[i].shown_count == 0)
            continue;
        order[shown++] = &all_rate_series[i];
        longest_s = fmax(longest_s, all_rate_series[i].duration_s);
    }
    if (shown > 1)
        qsort(order, (size_t)shown, sizeof *order, by_weight);
    const char *time_title;
    double unit_s = lab_timeline_unit(longest_s, &time_title);
    for (; made < shown && made < PANELS_MAX; made++) {
        struct lab_chart_series *series = lab_arena_alloc(arena, 2, sizeof *series);
        series[0] = time_series(order[made], unit_s, arena);
        series[1] = level_series(order[made], unit_s, arena);
        panels[made] =
            (struct lab_chart_panel){.title = order[made]->name,
                                     .x = {.title = time_title, .low = 0, .high = NAN},
                                     .y = {.title = "Iteration time [ms]", .low = NAN, .high = NAN},
                                     .series = series,
                                     .series_count = 2};
    }
    *ret_chart = (struct lab_chart){
        .name = name,
        .title = shown > made ? lab_arena_printf(arena, "Iteration times over time, %d of %d shown",
                                                 made, shown)
                              : "Iteration times over time",
        .caption = shown > made
                       ? lab_arena_printf(arena, "The %d of %d with the most to see.", made, shown)
                       : NULL,
        .panels = panels,
        .panel_count = made,
        .columns = made > COLUMNS ? COLUMNS : 1,
        .simulated = simulated};
    return made > 0;
}
