/* charts.c: what remote NUMA nodes cost, as a map and against the size of the models. */
#include "analysis/analysis_build.h"
#include "analysis/claims/rows.h"
#include "analysis/numa/numa.h"

#include <math.h>

#define LINES_MAX 6 /* more in one picture can't be told apart: then they are taken together */

struct remote { /* a model on a device, from a node that isn't its reference */
    const char *feed, *model;
    double gflop;
    struct lab_claim change;
};

static const struct lab_field remote_fields[] = {
    LAB_FIELD(struct remote, feed, "feed", "Device, NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct remote, change, "change", "Throughput", LAB_UNIT_CHANGE),
};

/* A model that only copies has no place on a logarithmic axis. */
static double on_axis(double gflop) {
    return gflop > 0 ? gflop : (double)NAN;
}

static const struct lab_field pooled_fields[] = {
    LAB_FIELD(struct lab_numa_pooled, title, "distance", "Distance", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_numa_pooled, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_numa_pooled, claim, "change", "Throughput", LAB_UNIT_CHANGE),
};

/* Model by model; `ret_feeds`: how many there are of a model. */
static struct lab_rows collect(const struct lab_numa_grid *grid, struct lab_arena *arena,
                               int *ret_feeds) {
    struct remote *rows = NULL;
    int count = 0;
    *ret_feeds = 0;
    for (int m = 0; m < grid->model_count; m++)
        for (int d = 0; d < grid->device_count; d++)
            for (int n = 0; n < grid->devices[d].node_count; n++) {
                const struct lab_numa_device *device = &grid->devices[d];
                if (n == device->reference || isnan(device->nodes[n].claim.effect))
                    continue;
                *ret_feeds += m == 0;
                LAB_ADD(rows, count, arena) =
                    (struct remote){.feed = lab_arena_printf(arena, "%s, node %d", device->title,
                                                             device->nodes[n].number),
                                    .model = grid->models[m].name,
                                    .gflop = on_axis(grid->models[m].complexity / 1e9),
                                    .change = lab_numa_cell_at(device, m, n)->claim};
            }
    return LAB_ROWS(remote_fields, rows, count);
}

static struct lab_rows pooled_rows(const struct lab_numa_grid *grid, struct lab_arena *arena) {
    struct lab_numa_pooled *rows =
        lab_arena_copy(arena, grid->pooled, (size_t)grid->pooled_count, sizeof *rows);
    for (int i = 0; i < grid->pooled_count; i++)
        rows[i].gflop = on_axis(rows[i].gflop);
    return LAB_ROWS(pooled_fields, rows, grid->pooled_count);
}

void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena) {
    int feeds;
    struct lab_rows remote = collect(grid, arena, &feeds), pooled = pooled_rows(grid, arena);
    if (feeds == 0)
        return;
    struct lab_chart map = {.name = lab_arena_printf(arena, "numa_sensitivity%s", suffix),
                            .title = "Throughput on remote NUMA nodes",
                            .caption = "Change of throughput with memory on that node instead of "
                                       "the local one. ≤: no larger difference; ?: inconclusive.",
                            .simulated = grid->study->simulated};
    lab_rows_set_heat(lab_chart_add_panel(&map, NULL, lab_axis("Device, NUMA node"),
                                          lab_axis("Model, by work of a sample"), arena),
                      &remote, "feed", "model", "change", "Change of throughput [%]", arena);
    lab_analysis_add_chart(result, map, arena);
    struct lab_chart lines = {.name = lab_arena_printf(arena, "numa_penalty%s", suffix),
                              .title = "Throughput on remote NUMA nodes, by model size",
                              .caption = "Whiskers are intervals at 95 %. Models that only "
                                         "copy have no place on the axis.",
                              .simulated = grid->study->simulated};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&lines, NULL, lab_axis_log("Work of a sample [GFLOP]"),
                            lab_axis("Change of throughput [%]"), arena);
    bool single = feeds <= LINES_MAX;
    lab_rows_add_series(panel, single ? &remote : &pooled, "gflop", "change",
                        single ? "feed" : "distance", LAB_CHART_LINE_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, lines, arena);
}
