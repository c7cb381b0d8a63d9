/* chart.c: iteration times over time, with the levels between changes: the run that takes longest,
 * as it shows a drift best, and the worst by change points and by their longest iteration. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "analysis/stability/rate_series.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PANELS_MAX 6
#define COLUMNS    2 /* of panels, from four on */

/* Its largest change. */
static double weight(const struct lab_rate_series *series) {
    double most = 0;
    for (int i = 0; i < series->change_count; i++)
        most = fmax(most, fabs(log(series->changes[i].after_s / series->changes[i].before_s)));
    return most;
}

static int by_longest(const void *a, const void *b) {
    const struct lab_rate_series *x = *(const struct lab_rate_series *const *)a,
                                 *y = *(const struct lab_rate_series *const *)b;
    if (x->longest != y->longest)
        return x->longest > y->longest ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_weight(const void *a, const void *b) {
    double of_x = weight(*(const struct lab_rate_series *const *)a),
           of_y = weight(*(const struct lab_rate_series *const *)b);
    return of_x != of_y ? (of_x > of_y ? -1 : 1) : by_longest(a, b);
}

static struct lab_chart_series time_series(const struct lab_rate_series *series, double unit_s,
                                           struct lab_arena *arena) {
    struct lab_series points = {.arena = arena};
    for (size_t i = 0; i < series->shown_count; i++)
        lab_series_add_point(&points, series->shown_x_s[i] / unit_s, 1e3 * series->shown_y_s[i]);
    return lab_series_chart(&points, "Iteration", LAB_CHART_LINE, 0);
}

/* From one change to the next, broken in between; solid, since dashes are lost among the
 * iterations. */
static struct lab_chart_series level_series(const struct lab_rate_series *series, double unit_s,
                                            struct lab_arena *arena) {
    struct lab_series points = {.arena = arena};
    for (int i = 0; i <= series->change_count; i++) {
        double from_s = i > 0 ? series->changes[i - 1].at_s : 0;
        double until_s = i < series->change_count ? series->changes[i].at_s : series->duration_s;
        double level_s = series->change_count == 0 ? series->median_s
                         : i > 0                   ? series->changes[i - 1].after_s
                                                   : series->changes[0].before_s;
        lab_series_add_point(&points, from_s / unit_s, 1e3 * level_s);
        lab_series_add_point(&points, until_s / unit_s, 1e3 * level_s);
        lab_series_add_point(&points, until_s / unit_s, NAN);
    }
    return lab_series_chart(&points, "Level between change points", LAB_CHART_LINE, 1);
}

/* "vit0x0x0, GPU 2, NUMA node 2": what differs first, since a long one is cut behind it; a NUMA
 * node that all share is left out. */
static const char *title_of(const struct lab_rate_series *series, bool nodes,
                            struct lab_arena *arena) {
    const char *title = lab_arena_printf(arena, "%s, %s", series->model,
                                         lab_study_device_title(series->rank->device, arena));
    int numa = series->rank->numa_node; /* as short as in tables: titles of panels are cut */
    const char *node = nodes && numa >= 0 ? lab_arena_printf(arena, ", NUMA %d", numa) : "";
    return lab_arena_printf(arena, "%s%s", title, node);
}

static bool has_title(const struct lab_chart *chart, const char *title) {
    for (int p = 0; p < chart->panel_count; p++)
        if (lab_str_equal(chart->panels[p].title, title))
            return true;
    return false;
}

const char *lab_rate_series_counted(const struct lab_rate_series *all, int count) {
    for (int i = 0; i < count; i++)
        if (all[i].run->rank_count > 1)
            return "per-device time series";
    return "runs";
}

/* Of runs that take about as long, the first. */
static int longest_run(const struct lab_rate_series *const *order, int count) {
    int found = 0;
    for (int i = 1; i < count; i++)
        if (order[i]->duration_s > 1.01 * order[found]->duration_s)
            found = i;
    return found;
}

/* The one that takes longest: before all others, or after the first where that has changes that
 * are its point's. A change of few of a point's runs may be chance, and comes last. */
static void sort_runs(const struct lab_rate_series **order, int count, bool changed) {
    qsort(order, (size_t)count, sizeof *order, changed ? by_weight : by_longest);
    int at = longest_run(order, count), first = changed && at > 0 ? 1 : 0;
    const struct lab_rate_series *longest = order[at];
    memmove(&order[first + 1], &order[first], (size_t)(at - first) * sizeof *order);
    order[first] = longest;
}

void lab_rate_series_add_chart(struct lab_analysis_result *result,
                               const struct lab_rate_series *all, int count, const char *name,
                               bool changed, bool simulated, struct lab_arena *arena) {
    const struct lab_rate_series **order = lab_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    int shown = 0;
    double longest_s = 0;
    bool nodes = false;
    for (int i = 0; i < count; i++) {
        nodes |= all[i].rank->numa_node != all[0].rank->numa_node;
        if (all[i].shown_count == 0)
            continue;
        order[shown++] = &all[i];
        longest_s = fmax(longest_s, all[i].duration_s);
    }
    if (shown == 0)
        return;
    sort_runs(order, shown, changed);
    const char *time_title;
    double unit_s = lab_timeline_unit(longest_s, &time_title);
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = name, .title = "Iteration times over time", .simulated = simulated},
        arena);
    for (int i = 0; i < shown && chart->panel_count < PANELS_MAX; i++) {
        const char *title = title_of(order[i], nodes, arena);
        if (has_title(chart, title)) /* a run of each point */
            continue;
        struct lab_chart_panel *panel = lab_chart_add_panel(
            chart, title, lab_axis_from(time_title, 0), lab_axis("Iteration time [ms]"), arena);
        lab_panel_add_series(panel, time_series(order[i], unit_s, arena), arena);
        lab_panel_add_series(panel, level_series(order[i], unit_s, arena), arena);
    }
    int made = chart->panel_count;
    chart->columns = made > COLUMNS ? COLUMNS : 1;
    if (shown > made)
        chart->caption = lab_arena_printf(
            arena,
            changed ? "Of %d %s: those with the largest change points, and the longest run."
                    : "Of %d %s: the longest run, then those with the longest iterations.",
            shown, lab_rate_series_counted(all, count));
}
