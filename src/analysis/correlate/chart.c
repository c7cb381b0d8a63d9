/*
 * chart.c: iteration times over the resource, and both over time, of the run that has the most
 * windows.
 */
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "analysis/correlate/correlate.h"

#include <math.h>

struct shown { /* windows of one run */
    size_t first, count;
    const struct lab_rank_time *rank_time;
};

static struct shown longest_run(const struct lab_windows *windows,
                                const struct lab_rank_times *rank_times) {
    struct shown best = {0};
    for (size_t i = 0; i < windows->count;) {
        size_t start = i;
        while (i < windows->count && windows->rank_time[i] == windows->rank_time[start])
            i++;
        if (i - start > best.count)
            best = (struct shown){start, i - start, &rank_times->items[windows->rank_time[start]]};
    }
    return best;
}

struct scaled { /* bytes are drawn as millions of them, or gibibytes */
    double divisor;
    const char *unit;
};

static struct scaled scale_of(const struct lab_resource *resource, struct lab_arena *arena) {
    const char *unit = lab_resource_unit(resource, arena);
    if (unit[0] == 'B' && unit[1] == '/')
        return (struct scaled){1e6, "MB/s"};
    if (unit[0] == 'B' && unit[1] == '\0')
        return (struct scaled){1073741824.0, "GiB"};
    return (struct scaled){1, unit};
}

static const char *axis_title(const struct lab_resource_correlation *correlation, const char *unit,
                              struct lab_arena *arena) {
    const char *title = lab_words_capital(lab_resource_title(&correlation->resource, arena), arena);
    return unit[0] ? lab_arena_printf(arena, "%s [%s]", title, unit) : title;
}

static void add_panel(struct lab_chart *chart, const char *x_title, const char *y_title,
                      enum lab_chart_mark mark, struct lab_points points, int colour,
                      struct lab_arena *arena) {
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(x_title), lab_axis(y_title), arena);
    lab_panel_add_series(
        panel,
        (struct lab_chart_series){
            .mark = mark, .x = points.x, .y = points.y, .count = points.count, .colour = colour},
        arena);
}

static void add_panels(struct lab_chart *chart, const struct lab_resource_correlation *correlation,
                       const struct lab_windows *windows, struct shown shown,
                       struct lab_arena *arena) {
    bool of_time = correlation->figure == LAB_TIE_TIME;
    const double *figure = of_time ? windows->time : windows->spread;
    double *x = lab_arena_alloc(arena, 3 * shown.count, sizeof *x), *y = x + shown.count,
           *t = y + shown.count;
    const char *time_title, *y_title = of_time ? "Iteration time [ms]" : "Its spread [ms]";
    double span_s = 1e-9 * (double)(shown.rank_time->until_ns - shown.rank_time->from_ns);
    double unit_s = lab_timeline_unit(span_s, &time_title);
    struct scaled scale = scale_of(&correlation->resource, arena);
    for (size_t i = 0; i < shown.count; i++) {
        size_t w = shown.first + i;
        x[i] = windows->x[w] / scale.divisor;
        y[i] = 1e3 * figure[w] * shown.rank_time->point_s;
        t[i] = 1e-9 * (double)(windows->until_ns[w] - shown.rank_time->from_ns) / unit_s;
    }
    const char *x_title = axis_title(correlation, scale.unit, arena);
    add_panel(chart, x_title, y_title, LAB_CHART_POINTS,
              lab_points_thin(x, y, shown.count, LAB_TIMELINE_POINTS, 0, arena), 0, arena);
    add_panel(chart, time_title, y_title, LAB_CHART_LINE,
              lab_points_thin(t, y, shown.count, LAB_TIMELINE_POINTS, 0, arena), 0, arena);
    add_panel(chart, time_title, x_title, LAB_CHART_LINE,
              lab_points_thin(t, x, shown.count, LAB_TIMELINE_POINTS, 0, arena), 1, arena);
}

void correlate_add_chart(struct lab_analysis_result *result, struct correlate_finding finding,
                         const char *suffix, bool simulated, struct lab_arena *arena) {
    const struct lab_resource_correlations *of = finding.of;
    struct lab_windows windows;
    lab_windows_init(&windows);
    lab_windows_fill(&windows, &of->rank_times, &finding.item->resource,
                     of->merged ? (int64_t)(1e9 * of->window_s) : 0);
    struct shown shown = longest_run(&windows, &of->rank_times);
    if (shown.count > 0) {
        struct lab_claim claim = lab_claim_of_correlation(of, finding.item, arena);
        struct lab_chart chart = {
            .name = lab_arena_printf(arena, "correlate_top%s", suffix),
            .title = lab_arena_printf(arena, "Strongest correlation, %s", of->rank_times.device),
            .caption = lab_arena_printf(arena, "One run. All runs: %s %s.", claim.quantity,
                                        lab_claim_short(&claim, arena)),
            .columns = 1,
            .simulated = simulated};
        add_panels(lab_analysis_add_chart(result, chart, arena), finding.item, &windows, shown,
                   arena);
    }
    lab_windows_release(&windows);
}
