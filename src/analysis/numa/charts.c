/* charts.c: throughput on remote NUMA nodes, as maps of the machine and by the size of models. */
#include "analysis/analysis_build.h"
#include "analysis/claims/rows.h"
#include "analysis/numa/numa.h"

#include "base/list.h"

#include <math.h>

#define LINES_MAX  6   /* more in one chart are illegible: then they are pooled */
#define PANELS_MAX 12  /* models; more of them are rows */
#define ROWS_MAX   120 /* those with the largest changes */

struct remote { /* a model on a device, from a NUMA node */
    const char *device, *node, *model, *feed;
    double gflop;
    struct lab_claim change;
};

static const struct lab_field remote_fields[] = {
    LAB_FIELD(struct remote, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, node, "node", "NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, feed, "feed", "Device, NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct remote, change, "change", "Throughput", LAB_UNIT_CHANGE),
};

static const struct lab_field pooled_fields[] = {
    LAB_FIELD(struct lab_numa_pooled, title, "distance", "Distance", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_numa_pooled, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_numa_pooled, claim, "change", "Throughput", LAB_UNIT_CHANGE),
};

/* --- maps --- */

struct cells {
    struct remote *items;
    int count;
};

/* Those of a model on a device, nodes by their distance. */
static void add_cells(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                      int model, struct cells *cells, struct lab_arena *arena) {
    struct lab_numa_node *nodes =
        lab_arena_copy(arena, device->nodes, (size_t)device->node_count, sizeof *nodes);
    LAB_SORT(nodes, device->node_count, LAB_BY(nodes, distance), LAB_BY(nodes, number));
    for (int i = 0; i < device->node_count; i++) {
        int n = 0;
        while (device->nodes[n].number != nodes[i].number)
            n++;
        struct remote row = {.device = device->title,
                             .node = lab_arena_printf(arena, "%d", nodes[i].number),
                             .model = grid->models[model].name,
                             .change = lab_numa_cell_at(device, model, n)->claim};
        if (n == device->reference) { /* nothing to compare with itself */
            row.change = lab_claim_none;
            row.change.subject = row.change.reference =
                nodes[i].number == device->home ? "local" : "ref";
        }
        LAB_ADD(cells->items, cells->count, arena) = row;
    }
}

/* By their local nodes. */
static const struct lab_numa_device **sort_devices(const struct lab_numa_grid *grid,
                                                   struct lab_arena *arena) {
    size_t count = (size_t)grid->device_count;
    const struct lab_numa_device **order = lab_arena_alloc(arena, count + 1, sizeof *order);
    for (size_t d = 0; d < count; d++)
        order[d] = &grid->devices[d];
    LAB_SORT_REFS(order, count, LAB_BY(*order, home));
    return order;
}

/* The largest change of a model, to choose by. */
static double weight(const struct lab_numa_grid *grid, int model) {
    double most = 0;
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++)
            most = fmax(most, fabs(lab_numa_cell_at(&grid->devices[d], model, n)->claim.effect));
    return most;
}

static bool is_shown(const struct lab_numa_grid *grid, int model) {
    int before = 0;
    for (int m = 0; m < grid->model_count; m++)
        before += weight(grid, m) > weight(grid, model) ||
                  (weight(grid, m) == weight(grid, model) && m < model);
    return before < ROWS_MAX;
}

/* Whether some device's reference isn't its local node, which wasn't tested. */
static bool has_other_reference(const struct lab_numa_grid *grid) {
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        if (device->node_count > 0 && device->nodes[device->reference].number != device->home)
            return true;
    }
    return false;
}

static void add_map(struct lab_chart *chart, const char *title, const struct cells *cells,
                    const char *across, struct lab_arena *arena) {
    struct lab_rows rows = LAB_ROWS(remote_fields, cells->items, cells->count);
    lab_rows_set_heat(lab_chart_add_panel(chart, title, lab_axis("NUMA node"), lab_axis(""), arena),
                      &rows, "node", across, "change", "Change of throughput [%]", arena);
}

static void add_model_panels(struct lab_chart *chart, const struct lab_numa_grid *grid,
                             struct lab_arena *arena) {
    const struct lab_numa_device **devices = sort_devices(grid, arena);
    for (int m = 0; m < grid->model_count; m++) {
        struct cells cells = {0};
        for (int d = 0; d < grid->device_count; d++)
            add_cells(grid, devices[d], m, &cells, arena);
        add_map(chart, grid->models[m].name, &cells, "device", arena);
    }
}

/* Many models are rows of their devices' panels. */
static void add_device_panels(struct lab_chart *chart, const struct lab_numa_grid *grid,
                              struct lab_arena *arena) {
    const struct lab_numa_device **devices = sort_devices(grid, arena);
    for (int d = 0; d < grid->device_count; d++) {
        struct cells cells = {0};
        for (int m = 0; m < grid->model_count; m++)
            if (is_shown(grid, m))
                add_cells(grid, devices[d], m, &cells, arena);
        add_map(chart, devices[d]->title, &cells, "model", arena);
    }
}

static void add_maps(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                     const char *suffix, struct lab_arena *arena) {
    struct lab_chart chart = {
        .name = lab_arena_printf(arena, "numa_sensitivity%s", suffix),
        .title = has_other_reference(grid) ? "Throughput on NUMA nodes compared with the nearest "
                                             "one tested"
                                           : "Throughput on remote NUMA nodes compared with the "
                                             "local one",
        .caption = lab_arena_printf(arena, "Models are ordered by FLOPs per sample.%s",
                                    has_other_reference(grid)
                                        ? " ref: reference; the local NUMA node was not tested."
                                        : ""),
        .simulated = grid->study->simulated};
    if (grid->model_count > PANELS_MAX)
        add_device_panels(&chart, grid, arena);
    else
        add_model_panels(&chart, grid, arena);
    if (grid->model_count > ROWS_MAX)
        chart.title =
            lab_arena_printf(arena, "%s, %d of %s", chart.title, ROWS_MAX,
                             lab_study_count_words(grid->study, grid->model_count, arena));
    lab_analysis_add_chart(result, chart, arena);
}

/* --- by work --- */

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
                LAB_ADD(rows, count, arena) = (struct remote){
                    .feed = lab_arena_printf(arena, "%s, NUMA node %d", device->title,
                                             device->nodes[n].number),
                    .gflop = grid->models[m].complexity / 1e9,
                    .change = lab_numa_cell_at(device, m, n)->claim};
            }
    return LAB_ROWS(remote_fields, rows, count);
}

/* Whether models of the same work differ in something else, as in batch: no line joins those. */
static bool has_equal_works(const struct lab_numa_grid *grid) {
    for (int m = 0; m < grid->model_count; m++)
        for (int k = 0; k < m; k++)
            if (grid->models[m].complexity == grid->models[k].complexity)
                return true;
    return false;
}

void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena) {
    int feeds;
    struct lab_rows remote = collect(grid, arena, &feeds),
                    pooled = LAB_ROWS(pooled_fields, grid->pooled, grid->pooled_count);
    if (feeds == 0)
        return;
    add_maps(result, grid, suffix, arena);
    struct lab_chart lines = {.name = lab_arena_printf(arena, "numa_penalty%s", suffix),
                              .title = "Throughput on remote NUMA nodes, by model size",
                              .caption = "0: copies only.",
                              .intervals = "95% intervals over runs",
                              .simulated = grid->study->simulated};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&lines, NULL, lab_axis_log("Work of a sample [GFLOP]"),
                            lab_axis("Change of throughput [%]"), arena);
    bool single = feeds <= LINES_MAX;
    lab_rows_add_series(panel, single ? &remote : &pooled, "gflop", "change",
                        single ? "feed" : "distance",
                        has_equal_works(grid) ? LAB_CHART_POINTS : LAB_CHART_LINE_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, lines, arena);
}
