/* numa/grid.c: a study's points as devices × models × nodes, compared with the reference of
 * each. */
#include "analysis/numa/numa.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- who is there --- */

static int by_complexity(const void *a, const void *b) {
    const struct lab_numa_model *x = a, *y = b;
    return lab_study_order(x->complexity, x->name, y->complexity, y->name);
}

static void add_model(struct lab_numa_grid *grid, const struct lab_study_point *point,
                      struct lab_arena *arena) {
    const char *name = lab_study_point_model(point, arena);
    for (int i = 0; i < grid->model_count; i++)
        if (lab_str_equal(grid->models[i].name, name))
            return;
    grid->models[grid->model_count++] =
        (struct lab_numa_model){name, lab_study_complexity(point->runs[0])};
}

static struct lab_numa_device *find_device(struct lab_numa_grid *grid, const char *prefix,
                                           const struct lab_study_rank *rank,
                                           struct lab_arena *arena) {
    const char *name = lab_arena_printf(arena, "%s%s", prefix, rank->device);
    for (int i = 0; i < grid->device_count; i++)
        if (lab_str_equal(grid->devices[i].name, name))
            return &grid->devices[i];
    grid->devices[grid->device_count] =
        (struct lab_numa_device){.name = name,
                                 .title = lab_study_device_title(rank->device, arena),
                                 .home = rank->device_node,
                                 .study = grid->study};
    return &grid->devices[grid->device_count++];
}

static int by_number(const void *a, const void *b) {
    const struct lab_numa_node *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void add_node(struct lab_numa_device *device, const struct lab_study_rank *rank, int room,
                     struct lab_arena *arena) {
    if (!device->nodes)
        device->nodes = lab_arena_alloc(arena, (size_t)room, sizeof *device->nodes);
    for (int i = 0; i < device->node_count; i++)
        if (device->nodes[i].number == rank->numa_node)
            return;
    device->nodes[device->node_count++] =
        (struct lab_numa_node){.number = rank->numa_node, .distance = rank->distance};
}

static int by_title(const void *a, const void *b) {
    const struct lab_numa_device *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static void place_point(struct lab_numa_grid *grid, const char *prefix,
                        const struct lab_study_point *point, struct lab_arena *arena) {
    const struct lab_study_rank *rank = &point->runs[0]->ranks[0];
    const struct lab_numa_device *device = find_device(grid, prefix, rank, arena);
    const char *name = lab_study_point_model(point, arena);
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++)
            if (lab_str_equal(grid->models[m].name, name) &&
                device->nodes[n].number == rank->numa_node)
                lab_numa_cell_at(device, m, n)->point = point;
}

/* --- the reference --- */

/* Mean of the logarithms of the rates on models that every node of the device has a run of. */
static double speed_of(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                       int node) {
    double sum = 0;
    for (int m = 0; m < grid->model_count; m++) {
        bool all = true;
        for (int n = 0; n < device->node_count; n++)
            all &= lab_numa_cell_at(device, m, n)->point != NULL;
        if (!all)
            continue;
        const struct lab_study_point *point = lab_numa_cell_at(device, m, node)->point;
        double rate = lab_stats_median(point->rates, (size_t)point->count);
        sum += rate > 0 ? log(rate) : 0;
    }
    return sum;
}

/* The device's own node, or the only one that is known to be nearer than all others; or -1. */
static int nearest_node(const struct lab_numa_device *device) {
    int nearest = 0;
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].number == device->home)
            return n;
    for (int n = 1; n < device->node_count; n++)
        if (device->nodes[n].distance < device->nodes[nearest].distance)
            nearest = n;
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].distance <= 0 ||
            (n != nearest && device->nodes[n].distance == device->nodes[nearest].distance))
            return -1;
    return nearest;
}

static void choose_reference(const struct lab_numa_grid *grid, struct lab_numa_device *device) {
    int nearest = nearest_node(device), fastest = 0;
    for (int n = 1; n < device->node_count; n++)
        if (speed_of(grid, device, n) > speed_of(grid, device, fastest))
            fastest = n;
    device->by_distance = nearest >= 0;
    device->reference = nearest >= 0 ? nearest : fastest;
}

/* --- comparisons --- */

static void compare_device(const struct lab_numa_grid *grid, struct lab_numa_device *device) {
    for (int m = 0; m < grid->model_count; m++) {
        const struct lab_study_point *base = lab_numa_cell_at(device, m, device->reference)->point;
        for (int n = 0; n < device->node_count; n++) {
            struct lab_numa_cell *cell = lab_numa_cell_at(device, m, n);
            cell->ratio = (struct lab_study_ratio){
                .ratio = NAN, .low = NAN, .high = NAN, .bound = NAN, .p = NAN, .spread = NAN};
            if (n != device->reference && base && cell->point)
                cell->ratio = lab_study_compare(base, cell->point, LAB_STUDY_RATE);
        }
    }
}

static int cell_count(const struct lab_numa_grid *grid, const struct lab_numa_device *device) {
    return grid->model_count * device->node_count;
}

/* Verdicts of the whole study together; then counts what they say of each node. */
static void adjust(struct lab_numa_grid *grid, struct lab_arena *arena) {
    int count = 0, at = 0;
    for (int d = 0; d < grid->device_count; d++)
        count += cell_count(grid, &grid->devices[d]);
    struct lab_study_ratio *ratios = lab_arena_alloc(arena, (size_t)count + 1, sizeof *ratios);
    for (int d = 0; d < grid->device_count; d++)
        for (int i = 0; i < cell_count(grid, &grid->devices[d]); i++)
            ratios[at++] = grid->devices[d].cells[i].ratio;
    lab_study_adjust(ratios, count);
    at = 0;
    for (int d = 0; d < grid->device_count; d++) {
        struct lab_numa_device *device = &grid->devices[d];
        for (int n = 0; n < device->node_count; n++)
            device->nodes[n].slower = device->nodes[n].faster = device->nodes[n].compared = 0;
        for (int i = 0; i < cell_count(grid, device); i++) {
            struct lab_numa_node *node = &device->nodes[i % device->node_count];
            device->cells[i].ratio = ratios[at++];
            node->slower += device->cells[i].ratio.verdict == LAB_STUDY_LESS;
            node->faster += device->cells[i].ratio.verdict == LAB_STUDY_MORE;
            node->compared += !isnan(device->cells[i].ratio.ratio);
        }
    }
}

/* A node that is faster for certain, and nowhere slower, is the better reference. */
static bool change_reference(const struct lab_numa_grid *grid, struct lab_numa_device *device) {
    int best = device->reference;
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].faster > 0 && device->nodes[n].slower == 0 &&
            (best == device->reference || speed_of(grid, device, n) > speed_of(grid, device, best)))
            best = n;
    if (best == device->reference)
        return false;
    device->reference = best;
    device->by_distance = false;
    compare_device(grid, device);
    return true;
}

struct lab_numa_grid lab_numa_grid_make(const struct lab_study_table *study, const char *prefix,
                                        struct lab_arena *arena) {
    struct lab_numa_grid grid = {.study = study};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points), kept = 0;
    for (int i = 0; i < count; i++) { /* of one device each */
        if (points[i].runs[0]->rank_count == 1)
            points[kept++] = points[i];
        else
            grid.gangs++;
    }
    grid.models = lab_arena_alloc(arena, (size_t)kept + 1, sizeof *grid.models);
    grid.devices = lab_arena_alloc(arena, (size_t)kept + 1, sizeof *grid.devices);
    for (int i = 0; i < kept; i++) {
        const struct lab_study_rank *rank = &points[i].runs[0]->ranks[0];
        add_model(&grid, &points[i], arena);
        add_node(find_device(&grid, prefix, rank, arena), rank, kept, arena);
    }
    qsort(grid.models, (size_t)grid.model_count, sizeof *grid.models, by_complexity);
    qsort(grid.devices, (size_t)grid.device_count, sizeof *grid.devices, by_title);
    for (int d = 0; d < grid.device_count; d++) {
        struct lab_numa_device *device = &grid.devices[d];
        qsort(device->nodes, (size_t)device->node_count, sizeof *device->nodes, by_number);
        device->cells =
            lab_arena_alloc(arena, (size_t)cell_count(&grid, device) + 1, sizeof *device->cells);
    }
    for (int i = 0; i < kept; i++)
        place_point(&grid, prefix, &points[i], arena);
    for (int d = 0; d < grid.device_count; d++) {
        choose_reference(&grid, &grid.devices[d]);
        compare_device(&grid, &grid.devices[d]);
    }
    adjust(&grid, arena);
    bool changed = false;
    for (int d = 0; d < grid.device_count; d++)
        changed |= change_reference(&grid, &grid.devices[d]);
    if (changed)
        adjust(&grid, arena);
    return grid;
}
