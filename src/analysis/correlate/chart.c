/*
 * chart.c: a finding as a picture: iterations' times over the resource, and both over time. Of the
 * run that has the most windows, since another run may have another pace.
 */
#include "analysis/analysis_timeline.h"
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
    char *title = lab_arena_strdup(arena, lab_resource_title(&correlation->resource, arena));
    if (title[0] >= 'a' && title[0] <= 'z')
        title[0] = (char)(title[0] - 'a' + 'A');
    return unit[0] ? lab_arena_printf(arena, "%s [%s]", title, unit) : title;
}

static struct lab_chart_panel panel(const char *x_title, const char *y_title,
                                    const struct lab_chart_series *series) {
    return (struct lab_chart_panel){.x = {.title = x_title, .low = NAN, .high = NAN},
                                    .y = {.title = y_title, .low = NAN, .high = NAN},
                                    .series = series,
                                    .series_count = 1};
}

static const struct lab_chart_series *series(enum lab_chart_mark mark, struct lab_points points,
                                             int colour, struct lab_arena *arena) {
    struct lab_chart_series *made = lab_arena_alloc(arena, 1, sizeof *made);
    *made = (struct lab_chart_series){
        .mark = mark, .x = points.x, .y = points.y, .count = points.count, .colour = colour};
    return made;
}

bool lab_finding_chart(const struct lab_finding *finding, const char *name, bool simulated,
                       struct lab_arena *arena, struct lab_chart *ret_chart) {
    const struct lab_resource_correlation *correlation = finding->correlation;
    const struct lab_resource_correlations *correlations = finding->correlations;
    struct lab_windows windows;
    lab_windows_init(&windows);
    int64_t least_ns = correlations->merged ? (int64_t)(1e9 * correlations->window_s) : 0;
    lab_windows_fill(&windows, &correlations->rank_times, &correlation->resource, least_ns);
    struct shown shown = longest_run(&windows, &correlations->rank_times);
    struct lab_chart_panel *panels = lab_arena_alloc(arena, 3, sizeof *panels);
    if (shown.count > 0) {
        const double *figure = correlation->figure == LAB_TIE_TIME ? windows.time : windows.spread;
        double *x = lab_arena_alloc(arena, shown.count, sizeof *x);
        double *y = lab_arena_alloc(arena, shown.count, sizeof *y);
        double *t = lab_arena_alloc(arena, shown.count, sizeof *t);
        const char *time_title, *y_title = correlation->figure == LAB_TIE_TIME
                                               ? "Iteration time [ms]"
                                               : "Its spread [ms]";
        double span_s = 1e-9 * (double)(shown.rank_time->until_ns - shown.rank_time->from_ns);
        double unit_s = lab_timeline_unit(span_s, &time_title);
        struct scaled scale = scale_of(&correlation->resource, arena);
        for (size_t i = 0; i < shown.count; i++) {
            size_t w = shown.first + i;
            x[i] = windows.x[w] / scale.divisor;
            y[i] = 1e3 * figure[w] * shown.rank_time->point_s;
            t[i] = 1e-9 * (double)(windows.until_ns[w] - shown.rank_time->from_ns) / unit_s;
        }
        const char *x_title = axis_title(correlation, scale.unit, arena);
        struct lab_points pairs = lab_points_thin(x, y, shown.count, LAB_TIMELINE_POINTS, 0, arena);
        struct lab_points times = lab_points_thin(t, y, shown.count, LAB_TIMELINE_POINTS, 0, arena);
        struct lab_points uses = lab_points_thin(t, x, shown.count, LAB_TIMELINE_POINTS, 0, arena);
        panels[0] = panel(x_title, y_title, series(LAB_CHART_POINTS, pairs, 0, arena));
        panels[1] = panel(time_title, y_title, series(LAB_CHART_LINE, times, 0, arena));
        panels[2] = panel(time_title, x_title, series(LAB_CHART_LINE, uses, 1, arena));
    }
    lab_windows_release(&windows);
    *ret_chart = (struct lab_chart){
        .name = name,
        .title = lab_arena_printf(arena, "What goes together with the pace of %s most",
                                  correlations->rank_times.device),
        .caption = lab_arena_printf(arena, "In one run: %s.", lab_finding_words(finding, arena)),
        .panels = panels,
        .panel_count = 3,
        .columns = 1,
        .simulated = simulated};
    return shown.count > 0;
}
