/* numa/charts.c: the map of penalties, and penalties against how much a model computes. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/numa/numa.h"

#include "base/str.h"

#include <math.h>

#define LINES_MAX 6 /* more in one picture can't be told apart: then they are taken together */

struct feed { /* a device from a node that isn't its reference */
    const struct lab_numa_device *device;
    int node;
};

static int collect_data_paths(const struct lab_numa_grid *grid, struct lab_arena *arena,
                              struct feed **ret_feeds) {
    struct feed *feeds = NULL;
    int count = 0;
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++)
            if (n != grid->devices[d].reference && !isnan(grid->devices[d].nodes[n].claim.effect))
                LAB_ADD(feeds, count, arena) = (struct feed){&grid->devices[d], n};
    *ret_feeds = feeds;
    return count;
}

static const char *feed_name(const struct feed *feed, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s, node %d", feed->device->title,
                            feed->device->nodes[feed->node].number);
}

/* --- the map --- */

static const char *cell_text(const struct lab_numa_cell *cell, struct lab_arena *arena) {
    const struct lab_claim *claim = &cell->claim;
    if (claim->verdict == LAB_CLAIM_NOT_TESTED)
        return "";
    if (claim->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, "≤ %.1f", lab_words_bound_percent(claim->bound));
    double percent = -100 * claim->effect;
    return lab_arena_printf(arena, "%.1f%s", fabs(percent) < 0.05 ? 0 : percent,
                            claim->verdict == LAB_CLAIM_INCONCLUSIVE ? "?" : "");
}

static void add_map(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                    const struct feed *feeds, int feed_count, const char *suffix,
                    struct lab_arena *arena) {
    size_t cells = (size_t)(feed_count * grid->model_count);
    double *values = lab_arena_alloc(arena, cells, sizeof *values);
    const char **texts = lab_arena_alloc(arena, cells, sizeof *texts);
    const char **columns = lab_arena_alloc(arena, (size_t)feed_count, sizeof *columns);
    const char **rows = lab_arena_alloc(arena, (size_t)grid->model_count, sizeof *rows);
    struct lab_chart_heat *heat = lab_arena_alloc(arena, 1, sizeof *heat);
    for (int f = 0; f < feed_count; f++)
        columns[f] = feed_name(&feeds[f], arena);
    for (int m = 0; m < grid->model_count; m++) {
        rows[m] = grid->models[m].name;
        for (int f = 0; f < feed_count; f++) {
            const struct lab_numa_cell *cell = lab_numa_cell_at(feeds[f].device, m, feeds[f].node);
            values[m * feed_count + f] = -100 * cell->claim.effect;
            texts[m * feed_count + f] = cell_text(cell, arena);
        }
    }
    *heat = (struct lab_chart_heat){values, texts, NAN, NAN, true, "Throughput lost [%]"};
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = lab_arena_printf(arena, "numa_sensitivity%s", suffix),
                           .title = "Throughput lost on remote NUMA nodes",
                           .caption = "Throughput lost with memory on that node instead of the "
                                      "local one. ≤: no larger difference; ?: inconclusive.",
                           .simulated = grid->study->simulated},
        arena);
    lab_chart_add_panel(chart, NULL, lab_axis_names("Device, NUMA node", columns, feed_count),
                        lab_axis_names("Model, by work of a sample", rows, grid->model_count),
                        arena)
        ->heat = heat;
}

/* --- against complexity --- */

static void add_point(struct lab_series *series, double complexity, double penalty, double low,
                      double high) {
    if (complexity > 0 && !isnan(penalty)) /* a logarithmic axis has no place for 0 */
        lab_series_add(series, complexity / 1e9, 100 * penalty, 100 * low, 100 * high);
}

static void add_line(struct lab_chart_panel *panel, const struct lab_series *series,
                     const char *title, struct lab_arena *arena) {
    lab_panel_add_series(panel, lab_series_chart(series, title, LAB_CHART_LINE_POINTS, -1), arena);
}

static void add_lines_by_feed(struct lab_chart_panel *panel, const struct lab_numa_grid *grid,
                              const struct feed *feeds, int count, struct lab_arena *arena) {
    for (int f = 0; f < count; f++) {
        struct lab_series series = {.arena = arena};
        for (int m = 0; m < grid->model_count; m++) {
            const struct lab_numa_cell *cell = lab_numa_cell_at(feeds[f].device, m, feeds[f].node);
            add_point(&series, grid->models[m].complexity, -cell->claim.effect, -cell->claim.high,
                      -cell->claim.low);
        }
        add_line(panel, &series, feed_name(&feeds[f], arena), arena);
    }
}

static void add_lines_by_distance(struct lab_chart_panel *panel, const struct lab_numa_grid *grid,
                                  struct lab_arena *arena) {
    const struct lab_numa_pooled *rows = grid->pooled;
    for (int i = 0; i < grid->pooled_count && panel->series_count < LINES_MAX;) {
        const struct lab_numa_pooled *first = &rows[i];
        struct lab_series series = {.arena = arena};
        for (; i < grid->pooled_count && rows[i].distance == first->distance; i++)
            add_point(&series, grid->models[rows[i].model].complexity, -rows[i].claim.effect,
                      -rows[i].claim.high, -rows[i].claim.low);
        add_line(panel, &series,
                 first->distance > 0
                     ? lab_arena_printf(arena, "distance %d, mean of %d device%s", first->distance,
                                        first->devices, first->devices == 1 ? "" : "s")
                     : "distance unknown",
                 arena);
    }
}

static void add_lines(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                      const struct feed *feeds, int feed_count, const char *suffix,
                      struct lab_arena *arena) {
    struct lab_chart chart = {.name = lab_arena_printf(arena, "numa_penalty%s", suffix),
                              .title = "Throughput lost on remote NUMA nodes, by model size",
                              .caption = "Whiskers are intervals at 95 %. Models that only "
                                         "copy have no place on the axis.",
                              .simulated = grid->study->simulated};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&chart, NULL, lab_axis_log("Work of a sample [GFLOP]"),
                            lab_axis("Throughput lost [%]"), arena);
    if (feed_count <= LINES_MAX)
        add_lines_by_feed(panel, grid, feeds, feed_count, arena);
    else
        add_lines_by_distance(panel, grid, arena);
    size_t points = 0;
    for (int i = 0; i < panel->series_count; i++)
        points += panel->series[i].count;
    if (points > 0)
        lab_analysis_add_chart(result, chart, arena);
}

void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena) {
    struct feed *feeds;
    int feed_count = collect_data_paths(grid, arena, &feeds);
    if (feed_count == 0)
        return;
    add_map(result, grid, feeds, feed_count, suffix, arena);
    add_lines(result, grid, feeds, feed_count, suffix, arena);
}
