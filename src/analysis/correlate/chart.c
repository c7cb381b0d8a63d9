/*
 * chart.c: iteration times over the resource, of the run that has the most windows.
 */
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "analysis/correlate/correlate.h"

#define WINDOWS_LEAST 8 /* fewer dots show no relation */

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

static void add_panel(struct lab_chart *chart, const struct lab_resource_correlation *item,
                      const struct lab_windows *windows, struct shown shown,
                      struct lab_arena *arena) {
    bool of_time = item->figure == LAB_TIE_TIME;
    const double *figure = of_time ? windows->time : windows->spread;
    struct scaled scale = scale_of(&item->resource, arena);
    double *x = lab_arena_alloc(arena, 2 * shown.count, sizeof *x), *y = x + shown.count;
    for (size_t i = 0; i < shown.count; i++) {
        x[i] = windows->x[shown.first + i] / scale.divisor;
        y[i] = 1e3 * figure[shown.first + i] * shown.rank_time->point_s;
    }
    struct lab_points points = lab_points_thin(x, y, shown.count, LAB_TIMELINE_POINTS, 0, arena);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, NULL, lab_axis(axis_title(item, scale.unit, arena)),
                            lab_axis(of_time ? "Iteration time [ms]" : "Its spread [ms]"), arena);
    lab_panel_add_series(
        panel,
        (struct lab_chart_series){
            .mark = LAB_CHART_POINTS, .x = points.x, .y = points.y, .count = points.count},
        arena);
}

void correlate_add_chart(struct lab_analysis_result *result, struct correlate_finding finding,
                         const struct lab_claim *rho, const char *suffix, bool simulated,
                         struct lab_arena *arena) {
    const struct lab_resource_correlations *of = finding.of;
    struct lab_windows windows;
    lab_windows_init(&windows);
    lab_windows_fill(&windows, &of->rank_times, &finding.item->resource,
                     of->merged ? (int64_t)(1e9 * of->window_s) : 0);
    struct shown shown = longest_run(&windows, &of->rank_times);
    if (shown.count >= WINDOWS_LEAST) {
        struct lab_chart chart = {
            .name = lab_arena_printf(arena, "correlate_top%s", suffix),
            .title = lab_arena_printf(arena, "Strongest correlation, %s", of->rank_times.device),
            .caption = lab_arena_printf(arena, "One run. All runs: %s %s.", rho->quantity,
                                        lab_claim_short(rho, arena)),
            .columns = 1,
            .simulated = simulated};
        add_panel(lab_analysis_add_chart(result, chart, arena), finding.item, &windows, shown,
                  arena);
    }
    lab_windows_release(&windows);
}
