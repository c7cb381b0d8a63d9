/* numa/charts.c: the map of penalties, and penalties against how much a model computes. */
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
    int room = 1, count = 0;
    for (int d = 0; d < grid->device_count; d++)
        room += grid->devices[d].node_count;
    struct feed *feeds = lab_arena_alloc(arena, (size_t)room, sizeof *feeds);
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++)
            if (n != grid->devices[d].reference && grid->devices[d].nodes[n].compared > 0)
                feeds[count++] = (struct feed){&grid->devices[d], n};
    *ret_feeds = feeds;
    return count;
}

static const char *feed_name(const struct feed *feed, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s from node %d", feed->device->title,
                            feed->device->nodes[feed->node].number);
}

static const char *chart_name(const char *name, int number, struct lab_arena *arena) {
    return number == 0 ? name : lab_arena_printf(arena, "%s_%d", name, number + 1);
}

/* --- the map --- */

static const char *cell_text(const struct lab_numa_cell *cell, struct lab_arena *arena) {
    if (isnan(cell->ratio.ratio))
        return "";
    if (cell->ratio.verdict == LAB_STUDY_SAME)
        return lab_arena_printf(arena, "≤ %.1f",
                                lab_words_bound_percent(lab_numa_bound(&cell->ratio)));
    double percent = 100 * lab_numa_penalty(cell);
    return lab_arena_printf(arena, "%.1f%s", fabs(percent) < 0.05 ? 0 : percent,
                            cell->ratio.verdict == LAB_STUDY_UNDECIDED ? "?" : "");
}

static struct lab_chart make_map(const struct lab_numa_grid *grid, const struct feed *feeds,
                                 int feed_count, struct lab_arena *arena) {
    size_t cells = (size_t)(feed_count * grid->model_count);
    double *values = lab_arena_alloc(arena, cells, sizeof *values);
    const char **texts = lab_arena_alloc(arena, cells, sizeof *texts);
    const char **columns = lab_arena_alloc(arena, (size_t)feed_count, sizeof *columns);
    const char **rows = lab_arena_alloc(arena, (size_t)grid->model_count, sizeof *rows);
    struct lab_chart_heat *heat = lab_arena_alloc(arena, 1, sizeof *heat);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    for (int f = 0; f < feed_count; f++)
        columns[f] = feed_name(&feeds[f], arena);
    for (int m = 0; m < grid->model_count; m++) {
        rows[m] = grid->models[m].name;
        for (int f = 0; f < feed_count; f++) {
            const struct lab_numa_cell *cell = lab_numa_cell_at(feeds[f].device, m, feeds[f].node);
            values[m * feed_count + f] = 100 * lab_numa_penalty(cell);
            texts[m * feed_count + f] = cell_text(cell, arena);
        }
    }
    *heat = (struct lab_chart_heat){.values = values,
                                    .texts = texts,
                                    .low = NAN,
                                    .high = NAN,
                                    .diverging = true,
                                    .title = "Throughput lost [%]"};
    *panel = (struct lab_chart_panel){.x = {.title = "Device, and the node that feeds it",
                                            .low = NAN,
                                            .high = NAN,
                                            .names = columns,
                                            .name_count = feed_count},
                                      .y = {.title = "Model, by work of a sample",
                                            .low = NAN,
                                            .high = NAN,
                                            .names = rows,
                                            .name_count = grid->model_count},
                                      .heat = heat};
    return (struct lab_chart){.title = "What another node costs",
                              .caption = "Throughput lost where a device is fed from that node "
                                         "instead of its own or best one. ≤: can't be told from "
                                         "none, and isn't larger; ?: too few runs for a verdict.",
                              .panels = panel,
                              .panel_count = 1,
                              .simulated = grid->study->simulated};
}

/* --- against complexity --- */

static void set_point(struct lab_chart_series *series, double complexity, double penalty,
                      double low, double high) {
    if (!(complexity > 0) || isnan(penalty))
        return; /* what computes nothing has no place on a logarithmic axis */
    size_t i = series->count++;
    ((double *)series->x)[i] = complexity / 1e9;
    ((double *)series->y)[i] = 100 * penalty;
    ((double *)series->low)[i] = 100 * low;
    ((double *)series->high)[i] = 100 * high;
}

static struct lab_chart_series empty_series(const char *title, int room, struct lab_arena *arena) {
    return (struct lab_chart_series){
        .title = title,
        .mark = LAB_CHART_LINE_POINTS,
        .x = lab_arena_alloc(arena, (size_t)room, sizeof(double)),
        .y = lab_arena_alloc(arena, (size_t)room, sizeof(double)),
        .low = lab_arena_alloc(arena, (size_t)room, sizeof(double)),
        .high = lab_arena_alloc(arena, (size_t)room, sizeof(double)),
        .colour = -1,
    };
}

static int lines_by_feed(const struct lab_numa_grid *grid, const struct feed *feeds, int count,
                         struct lab_arena *arena, struct lab_chart_series *series) {
    for (int f = 0; f < count; f++) {
        series[f] = empty_series(feed_name(&feeds[f], arena), grid->model_count, arena);
        for (int m = 0; m < grid->model_count; m++) {
            const struct lab_numa_cell *cell = lab_numa_cell_at(feeds[f].device, m, feeds[f].node);
            set_point(&series[f], grid->models[m].complexity, lab_numa_penalty(cell),
                      1 - cell->ratio.high, 1 - cell->ratio.low);
        }
    }
    return count;
}

static int lines_by_distance(const struct lab_numa_grid *grid, struct lab_arena *arena,
                             struct lab_chart_series *series) {
    struct lab_numa_sensitivity *rows;
    int row_count = lab_numa_sensitivities(grid, arena, &rows), count = 0;
    for (int i = 0; i < row_count; i++) {
        if (i == 0 || rows[i].distance != rows[i - 1].distance) {
            if (count == LINES_MAX)
                break;
            series[count++] = empty_series(
                rows[i].distance > 0
                    ? lab_arena_printf(arena, "distance %d, mean of %d device%s", rows[i].distance,
                                       rows[i].devices, rows[i].devices == 1 ? "" : "s")
                    : "distance unknown",
                grid->model_count, arena);
        }
        set_point(&series[count - 1], grid->models[rows[i].model].complexity, rows[i].penalty,
                  rows[i].low, rows[i].high);
    }
    return count;
}

static bool make_lines(const struct lab_numa_grid *grid, const struct feed *feeds, int feed_count,
                       struct lab_arena *arena, struct lab_chart *ret_chart) {
    struct lab_chart_series *series = lab_arena_alloc(arena, LINES_MAX, sizeof *series);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    int count = feed_count <= LINES_MAX ? lines_by_feed(grid, feeds, feed_count, arena, series)
                                        : lines_by_distance(grid, arena, series);
    size_t points = 0;
    for (int i = 0; i < count; i++)
        points += series[i].count;
    if (points == 0)
        return false;
    *panel = (struct lab_chart_panel){
        .x = {.title = "Work of a sample [GFLOP]", .log = true, .low = NAN, .high = NAN},
        .y = {.title = "Throughput lost [%]", .low = NAN, .high = NAN},
        .series = series,
        .series_count = count};
    *ret_chart =
        (struct lab_chart){.title = "What another node costs, by how much a model computes",
                           .caption = "Whiskers are intervals at 95 %. Models that only "
                                      "copy have no place on the axis.",
                           .panels = panel,
                           .panel_count = 1,
                           .simulated = grid->study->simulated};
    return true;
}

void lab_numa_charts(const struct lab_numa_grid *grid, int number, struct lab_arena *arena,
                     struct lab_chart *charts, int *count) {
    struct feed *feeds;
    int feed_count = collect_data_paths(grid, arena, &feeds);
    if (feed_count == 0)
        return;
    charts[*count] = make_map(grid, feeds, feed_count, arena);
    charts[(*count)++].name = chart_name("numa_sensitivity", number, arena);
    if (make_lines(grid, feeds, feed_count, arena, &charts[*count]))
        charts[(*count)++].name = chart_name("numa_penalty", number, arena);
}
