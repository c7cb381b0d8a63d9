/* charts.c: throughput on remote NUMA nodes, as maps of the machine and by the size of models. */
#include "analysis/analysis_build.h"
#include "analysis/claims/rows.h"
#include "analysis/numa/numa.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define LINES_MAX     6   /* more in one chart are illegible: then they are pooled */
#define PANELS_MAX    12  /* models; more of them are rows */
#define ROWS_MAX      120 /* those with the largest changes */
#define HALF_ROWS_MAX 40

struct remote { /* a model on a device, from a NUMA node */
    const char *device, *node, *model, *feed, *work;
    double gflop;
    struct lab_claim change;
};

static const struct lab_field remote_fields[] = {
    LAB_FIELD(struct remote, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, node, "node", "NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, feed, "feed", "Device, NUMA node", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, work, "work", "GFLOP", LAB_UNIT_TEXT),
    LAB_FIELD(struct remote, gflop, "gflop", "GFLOP", LAB_UNIT_NUMBER),
    LAB_FIELD(struct remote, change, "change", "Throughput", LAB_UNIT_CHANGE),
};

/* --- maps --- */

struct cells {
    struct remote *items;
    int count;
};

/* Those of a model on a device, nodes by their distance. */
static void add_cells(const struct lab_numa_device *device, int model, const char *title,
                      struct cells *cells, struct lab_arena *arena) {
    struct lab_numa_node *nodes =
        lab_arena_copy(arena, device->nodes, (size_t)device->node_count, sizeof *nodes);
    LAB_SORT(nodes, device->node_count, LAB_BY(nodes, distance), LAB_BY(nodes, number));
    for (int i = 0; i < device->node_count; i++) {
        int n = 0;
        while (device->nodes[n].number != nodes[i].number)
            n++;
        struct remote row = {.device = device->title,
                             .node = lab_arena_printf(arena, "%d", nodes[i].number),
                             .model = title,
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
            add_cells(devices[d], m, grid->models[m].name, &cells, arena);
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
                add_cells(devices[d], m, grid->models[m].name, &cells, arena);
        add_map(chart, devices[d]->title, &cells, "model", arena);
    }
}

static const char *setting_words(const struct lab_numa_grid *grid, int model) {
    const char *setting = grid->models[model].setting;
    for (int m = 0; m < grid->model_count && !*setting; m++)
        if (lab_str_equal(grid->models[m].setting, "compiled"))
            return "uncompiled";
    return setting;
}

struct parted { /* models by one half of their names: panels; rows are the other half */
    bool by_setting;
    const char **panels;
    int panel_count, row_count;
};

static const char *half_of(const struct lab_numa_grid *grid, int model, bool setting) {
    return setting ? setting_words(grid, model) : grid->models[model].whole;
}

static struct parted part_models(const struct lab_numa_grid *grid, struct lab_arena *arena) {
    const char **halves[2] = {NULL, NULL};
    int counts[2] = {0, 0};
    for (int m = 0; m < grid->model_count; m++)
        for (int h = 0; h < 2; h++)
            if (lab_list_find_text(halves[h], counts[h], half_of(grid, m, h)) < 0)
                LAB_ADD(halves[h], counts[h], arena) = half_of(grid, m, h);
    int panels = counts[1] <= counts[0]; /* the half that varies less */
    return (struct parted){panels, halves[panels], counts[panels], counts[!panels]};
}

/* Models in many settings: a panel for each, whose rows are the other half of their names. */
static void add_half_panels(struct lab_chart *chart, const struct lab_numa_grid *grid,
                            const struct parted *parted, struct lab_arena *arena) {
    const struct lab_numa_device **devices = sort_devices(grid, arena);
    for (int i = 0; i < grid->device_count * parted->panel_count; i++) {
        const struct lab_numa_device *device = devices[i / parted->panel_count];
        const char *panel = parted->panels[i % parted->panel_count];
        struct cells cells = {0};
        for (int m = 0; m < grid->model_count; m++)
            if (lab_str_equal(half_of(grid, m, parted->by_setting), panel))
                add_cells(device, m, half_of(grid, m, !parted->by_setting), &cells, arena);
        if (!parted->by_setting) /* panels have the same order: models are ordered by their work */
            LAB_SORT(cells.items, cells.count, LAB_BY(cells.items, model));
        add_map(chart, lab_arena_printf(arena, "%s, %s", device->title, panel), &cells, "model",
                arena);
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
    struct parted parted = part_models(grid, arena);
    bool halves = grid->model_count > PANELS_MAX && parted.panel_count > 1 &&
                  parted.row_count > 1 && parted.row_count <= HALF_ROWS_MAX &&
                  parted.panel_count * grid->device_count <= PANELS_MAX;
    if (halves && !parted.by_setting)
        chart.caption = NULL;
    if (halves)
        add_half_panels(&chart, grid, &parted, arena);
    else if (grid->model_count > PANELS_MAX)
        add_device_panels(&chart, grid, arena);
    else
        add_model_panels(&chart, grid, arena);
    if (!halves && grid->model_count > ROWS_MAX)
        chart.title =
            lab_arena_printf(arena, "%s, %d of %s", chart.title, ROWS_MAX,
                             lab_study_count_words(grid->study, grid->model_count, arena));
    lab_analysis_add_chart(result, chart, arena);
}

/* --- by work --- */

enum detail { OF_FEED, OF_FIRST_SETTING, OF_SETTINGS, DETAILS }; /* what has a series of its own */

/* "GPU 0, NUMA node 2, batch 4" */
static const char *series_title(const struct lab_numa_grid *grid, const char *feed, int model,
                                enum detail detail, struct lab_arena *arena) {
    const char *setting = setting_words(grid, model);
    size_t length = strlen(setting);
    if (detail == OF_FIRST_SETTING && strstr(setting, ", "))
        length = (size_t)(strstr(setting, ", ") - setting);
    if (detail == OF_FEED || length == 0)
        return feed;
    return lab_arena_printf(arena, "%s, %.*s", feed, (int)length, setting);
}

static struct remote make_mark(const struct lab_numa_grid *grid, const char *feed, int model,
                               enum detail detail, const struct lab_claim *change,
                               struct lab_arena *arena) {
    double gflop = grid->models[model].complexity / 1e9;
    return (struct remote){.feed = series_title(grid, feed, model, detail, arena),
                           .work = isnan(gflop) ? NULL : lab_arena_printf(arena, "%.3g", gflop),
                           .gflop = gflop,
                           .change = *change};
}

/* Model by model, of each device and node; `ret_feeds`: how many there are of a model. */
static struct lab_rows collect(const struct lab_numa_grid *grid, enum detail detail,
                               struct lab_arena *arena, int *ret_feeds) {
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
                const char *feed = lab_arena_printf(arena, "%s, NUMA node %d", device->title,
                                                    device->nodes[n].number);
                LAB_ADD(rows, count, arena) =
                    make_mark(grid, feed, m, detail, &lab_numa_cell_at(device, m, n)->claim, arena);
            }
    return LAB_ROWS(remote_fields, rows, count);
}

/* Over all devices, by distance. */
static struct lab_rows collect_pooled(const struct lab_numa_grid *grid, enum detail detail,
                                      struct lab_arena *arena) {
    struct remote *rows = NULL;
    int count = 0;
    for (int i = 0; i < grid->pooled_count; i++) {
        const struct lab_numa_pooled *pooled = &grid->pooled[i];
        int model = LAB_FIND(grid->models, grid->model_count, name, pooled->model);
        if (model >= 0)
            LAB_ADD(rows, count, arena) =
                make_mark(grid, pooled->title, model, detail, &pooled->claim, arena);
    }
    return LAB_ROWS(remote_fields, rows, count);
}

static int count_series(const struct lab_rows *rows, struct lab_arena *arena) {
    const struct remote *items = rows->items;
    const char **titles = NULL;
    int count = 0;
    for (int i = 0; i < rows->count; i++)
        if (lab_list_find_text(titles, count, items[i].feed) < 0)
            LAB_ADD(titles, count, arena) = items[i].feed;
    return count;
}

/* Whether a series has several models of the same work: no line joins those. */
static bool has_equal_works(const struct lab_rows *rows) {
    const struct remote *items = rows->items;
    for (int i = 0; i < rows->count; i++)
        for (int k = 0; k < i; k++)
            if (items[i].gflop == items[k].gflop && lab_str_equal(items[i].feed, items[k].feed))
                return true;
    return false;
}

/* Settings that change the penalty of one work, as the batch does, have series of their own where
 * these aren't too many. Those of the same work that are left stand next to each other. */
void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena) {
    int feeds;
    struct lab_rows rows = collect(grid, OF_FEED, arena, &feeds);
    bool single = feeds <= LINES_MAX;
    if (feeds == 0)
        return;
    add_maps(result, grid, suffix, arena);
    for (enum detail detail = DETAILS; detail-- > OF_FEED;) {
        rows = single ? collect(grid, detail, arena, &feeds) : collect_pooled(grid, detail, arena);
        if (count_series(&rows, arena) <= LINES_MAX)
            break;
    }
    struct lab_chart lines = {.name = lab_arena_printf(arena, "numa_penalty%s", suffix),
                              .title = "Throughput on remote NUMA nodes, by model size",
                              .caption = "0: copies only.",
                              .intervals = "95% intervals over runs",
                              .simulated = grid->study->simulated};
    static const char work[] = "Work of a sample [GFLOP]";
    bool equal = has_equal_works(&rows);
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&lines, NULL, equal ? lab_axis(work) : lab_axis_log(work),
                            lab_axis("Change of throughput [%]"), arena);
    lab_rows_add_series(panel, &rows, equal ? "work" : "gflop", "change", "feed",
                        equal ? LAB_CHART_POINTS : LAB_CHART_LINE_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, lines, arena);
}
