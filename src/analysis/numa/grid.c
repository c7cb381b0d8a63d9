/* grid.c: a study's points by device, model and NUMA node, and what they show together. */
#include "analysis/analysis_build.h"
#include "analysis/numa/numa.h"
#include "analysis/stages/stages.h"

#include "base/list.h"
#include "base/str.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* --- who is there --- */

static void add_model(struct lab_numa_grid *grid, const struct lab_study_point *point,
                      struct lab_arena *arena) {
    const char *name = lab_study_point_model(point, arena);
    if (LAB_FIND(grid->models, grid->model_count, name, name) >= 0)
        return;
    const char *whole = point->runs[0]->model;
    const char *rest = lab_str_starts(name, whole) ? name + strlen(whole) : "";
    bool split = (*rest == '_' || lab_str_starts(rest, ", "));
    grid->models[grid->model_count++] =
        (struct lab_numa_model){.name = name,
                                .whole = split ? whole : name,
                                .setting = split ? rest + (*rest == '_' ? 1 : 2) : "",
                                .complexity = lab_study_complexity(point->runs[0])};
}

/* The rank's device, with room for so many nodes, and its NUMA node, where they are new. */
static void add_node(struct lab_numa_grid *grid, const char *prefix,
                     const struct lab_study_rank *rank, int room, struct lab_arena *arena) {
    const char *name = lab_arena_printf(arena, "%s%s", prefix, rank->device);
    int found = LAB_FIND(grid->devices, grid->device_count, name, name);
    struct lab_numa_device *device = &grid->devices[found < 0 ? grid->device_count++ : found];
    if (found < 0)
        *device = (struct lab_numa_device){
            .name = name,
            .title = lab_study_device_title(rank->device, arena),
            .home = rank->device_node,
            .nodes = lab_arena_alloc(arena, (size_t)room, sizeof *device->nodes)};
    for (int i = 0; i < device->node_count; i++)
        if (device->nodes[i].number == rank->numa_node)
            return;
    device->nodes[device->node_count++] =
        (struct lab_numa_node){.number = rank->numa_node, .distance = rank->distance};
}

static void place_point(const struct lab_numa_grid *grid, const char *prefix,
                        const struct lab_study_point *point, struct lab_arena *arena) {
    const struct lab_study_rank *rank = &point->runs[0]->ranks[0];
    const char *name = lab_arena_printf(arena, "%s%s", prefix, rank->device);
    int d = LAB_FIND(grid->devices, grid->device_count, name, name);
    int m = LAB_FIND(grid->models, grid->model_count, name, lab_study_point_model(point, arena));
    assert(d >= 0 && m >= 0);
    const struct lab_numa_device *device = &grid->devices[d];
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].number == rank->numa_node)
            lab_numa_cell_at(device, m, n)->point = point;
}

/* --- the reference --- */

bool lab_numa_home_tested(const struct lab_numa_device *device) {
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].number == device->home)
            return true;
    return device->home < 0;
}

static int choose_reference(const struct lab_numa_device *device) {
    int nearest = 0;
    for (int n = 0; n < device->node_count; n++) {
        int distance = device->nodes[n].distance, least = device->nodes[nearest].distance;
        if (device->nodes[n].number == device->home)
            return n;
        if (distance > 0 && (least <= 0 || distance < least))
            nearest = n;
    }
    return nearest;
}

int lab_numa_best_node(const struct lab_numa_device *device) {
    int best = device->reference;
    double most = 0;
    for (int n = 0; n < device->node_count; n++) {
        const struct lab_claim *claim = &device->nodes[n].claim;
        if (claim->verdict == LAB_CLAIM_YES && claim->effect > most) {
            most = claim->effect;
            best = n;
        }
    }
    return best;
}

/* --- claims --- */

static struct lab_claim make_claim(const struct lab_contrast *contrast, const char *kind,
                                   const char *subject, const char *reference) {
    return lab_claim_named(lab_claim_estimate(contrast, LAB_STUDY_RATE), kind, subject, reference,
                           "throughput");
}

/* Whether the node can be compared on that model. */
static bool has_pair(const struct lab_numa_device *device, int model, int node) {
    return node != device->reference && lab_numa_cell_at(device, model, node)->point &&
           lab_numa_cell_at(device, model, device->reference)->point;
}

static void add_pair(struct lab_contrast *contrast, const struct lab_numa_device *device, int model,
                     int node, double weight) {
    lab_contrast_add_pair(contrast, lab_numa_cell_at(device, model, device->reference)->point,
                          lab_numa_cell_at(device, model, node)->point, weight);
}

static const char *node_title(int number, struct lab_arena *arena) {
    return lab_arena_printf(arena, "NUMA node %d", number);
}

static void claim_device(const struct lab_numa_grid *grid, struct lab_numa_device *device,
                         struct lab_arena *arena) {
    const char *reference = node_title(device->nodes[device->reference].number, arena);
    for (int n = 0; n < device->node_count; n++) {
        struct lab_contrast all = {.arena = arena};
        const char *node = node_title(device->nodes[n].number, arena);
        int models = 0;
        for (int m = 0; m < grid->model_count; m++)
            models += has_pair(device, m, n);
        for (int m = 0; m < grid->model_count; m++) {
            struct lab_contrast one = {.arena = arena};
            if (has_pair(device, m, n)) {
                add_pair(&all, device, m, n, 1.0 / models);
                add_pair(&one, device, m, n, 1);
            }
            const char *subject =
                lab_arena_printf(arena, "%s, %s, %s", device->title, grid->models[m].name, node);
            lab_numa_cell_at(device, m, n)->claim = make_claim(
                &one, "numa.cell", n == device->reference ? reference : subject, reference);
        }
        device->nodes[n].claim = make_claim(
            &all, "numa.device",
            n == device->reference ? reference
                                   : lab_arena_printf(arena, "%s, %s", device->title, node),
            reference);
    }
}

/* That the node's claims are against: "the local node". */
static const char *pooled_reference(bool local) {
    return local ? "the local node" : "the nearest node tested";
}

/* The model's pairs of all devices from nodes so far away; returns of how many devices. `ret_local`
 * becomes false where a reference isn't the device's local node. */
static int add_pairs(const struct lab_numa_grid *grid, int model, int distance,
                     struct lab_contrast *contrast, bool *ret_local) {
    int devices = 0;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        int nodes = 0;
        for (int n = 0; n < device->node_count; n++)
            if (device->nodes[n].distance == distance && has_pair(device, model, n)) {
                add_pair(contrast, device, model, n, 1);
                nodes++;
            }
        devices += nodes > 0;
        if (nodes > 0 && device->nodes[device->reference].number != device->home)
            *ret_local = false;
    }
    return devices;
}

static void divide(struct lab_contrast *contrast) {
    double pairs = 0;
    for (int t = 0; t < contrast->count; t++)
        pairs += fmax(contrast->terms[t].weight, 0);
    for (int t = 0; t < contrast->count && pairs > 0; t++)
        contrast->terms[t].weight /= pairs;
}

/* A model's mean over all devices and nodes that are so far away. */
static struct lab_numa_pooled pool(const struct lab_numa_grid *grid, int model, int distance,
                                   struct lab_arena *arena) {
    struct lab_numa_pooled pooled = {.model = grid->models[model].name,
                                     .gflop = grid->models[model].complexity / 1e9,
                                     .distance = distance,
                                     .far = distance > 0 ? distance : (double)NAN};
    struct lab_contrast contrast = {.arena = arena};
    bool local = true;
    pooled.devices = add_pairs(grid, model, distance, &contrast, &local);
    divide(&contrast);
    const char *who =
        pooled.devices == 1 ? "1 device" : lab_arena_printf(arena, "%d devices", pooled.devices);
    const char *nodes = distance > 0
                            ? lab_arena_printf(arena, "NUMA nodes at distance %d", distance)
                            : "Other NUMA nodes";
    pooled.title = distance > 0 ? lab_arena_printf(arena, "distance %d, mean of %s", distance, who)
                                : "distance unknown";
    pooled.claim = make_claim(&contrast, "numa.penalty",
                              lab_arena_printf(arena, "%s, %s, %s", nodes, pooled.model, who),
                              pooled_reference(local));
    return pooled;
}

/* --- transfer-bound models --- */

/* By the stages' times from the reference nodes, not by what was found of remote ones. */
static bool is_transfer_bound(const struct lab_numa_grid *grid, int model,
                              struct lab_arena *arena) {
    const struct lab_study_point **points = NULL;
    int count = 0;
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        const struct lab_study_point *point =
            lab_numa_cell_at(device, model, device->reference)->point;
        if (point)
            LAB_ADD(points, count, arena) = point;
    }
    return lab_stage_is_transfer_bound(points, count, arena);
}

/* "NUMA node 2" where all devices have that one so far away, or as their reference; else NULL. */
static const char *common_node(const struct lab_numa_grid *grid, int distance, bool reference,
                               struct lab_arena *arena) {
    int number = -1;
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++) {
            const struct lab_numa_device *device = &grid->devices[d];
            if ((n == device->reference) != reference ||
                (!reference && device->nodes[n].distance != distance))
                continue;
            if (number >= 0 && device->nodes[n].number != number)
                return NULL;
            number = device->nodes[n].number;
        }
    return number < 0 ? NULL : node_title(number, arena);
}

static struct lab_claim claim_transfer_bound(struct lab_numa_grid *grid, struct lab_arena *arena) {
    struct lab_contrast contrast = {.arena = arena};
    const char **names = NULL;
    int distance = grid->pooled[0].distance, models = 0;
    bool local = true;
    for (int m = 0; m < grid->model_count; m++)
        if (is_transfer_bound(grid, m, arena) &&
            add_pairs(grid, m, distance, &contrast, &local) > 0) {
            LAB_ADD(names, models, arena) = grid->models[m].name;
            for (int i = 0; i < grid->pooled_count; i++)
                grid->pooled[i].transfer_bound |=
                    lab_str_equal(grid->pooled[i].model, grid->models[m].name);
        }
    divide(&contrast);
    const char *node = common_node(grid, distance, false, arena),
               *reference = common_node(grid, distance, true, arena);
    struct lab_claim claim =
        make_claim(&contrast, "numa.transfer_bound",
                   node           ? node
                   : distance > 0 ? lab_arena_printf(arena, "NUMA nodes at distance %d", distance)
                                  : "Other NUMA nodes",
                   reference ? reference : pooled_reference(local));
    const char *counted =
        lab_study_counted(grid->study, models, grid->model_count, "transfer-bound ", arena);
    if (models > 0)
        claim.quantity = lab_arena_printf(arena, "throughput on %s",
                                          lab_stage_bound_words(names, models, counted, arena));
    return claim;
}

/* --- bindings --- */

int lab_numa_add_pairs(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                       int chosen, double weight, struct lab_contrast *contrast) {
    int pairs = 0;
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++) {
            const struct lab_study_point *base = lab_numa_cell_at(device, m, n)->point,
                                         *other = lab_numa_cell_at(device, m, chosen)->point;
            if (n == chosen || !base || !other)
                continue;
            pairs++;
            if (contrast)
                lab_contrast_add_pair(contrast, base, other, weight);
        }
    return pairs;
}

struct lab_claim lab_numa_claim_binding(const struct lab_numa_grid *grid,
                                        const struct lab_numa_device *device, int chosen,
                                        struct lab_arena *arena) {
    struct lab_contrast contrast = {.arena = arena};
    int pairs = lab_numa_add_pairs(grid, device, chosen, 0, NULL);
    if (pairs > 0)
        lab_numa_add_pairs(grid, device, chosen, 1.0 / pairs, &contrast);
    return make_claim(
        &contrast, "advise.bind",
        lab_arena_printf(arena, "%s, NUMA node %d", device->title, device->nodes[chosen].number),
        device->node_count == 2 ? node_title(device->nodes[1 - chosen].number, arena)
                                : "the other NUMA nodes");
}

/* A family of their own; none is more certain than that some node differs. */
static void claim_bindings(struct lab_numa_grid *grid, struct lab_arena *arena) {
    struct lab_claim **family = NULL;
    int count = 0;
    for (int d = 0; d < grid->device_count; d++) {
        struct lab_numa_device *device = &grid->devices[d];
        device->binding = lab_numa_claim_binding(grid, device, lab_numa_best_node(device), arena);
        if (device->binding.verdict != LAB_CLAIM_NOT_TESTED)
            LAB_ADD(family, count, arena) = &device->binding;
    }
    lab_claim_adjust(family, count);
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        bool certain = false;
        for (int n = 0; n < device->node_count; n++)
            certain |= device->nodes[n].claim.verdict == LAB_CLAIM_YES;
        if (!certain && device->binding.verdict == LAB_CLAIM_YES)
            grid->devices[d].binding.verdict = LAB_CLAIM_INCONCLUSIVE;
    }
}

/* The largest distance below `below` of a node that isn't a reference; -1 = there is none. */
static int next_distance(const struct lab_numa_grid *grid, int below) {
    int next = -1;
    for (int d = 0; d < grid->device_count; d++)
        for (int n = 0; n < grid->devices[d].node_count; n++) {
            int distance = grid->devices[d].nodes[n].distance;
            if (n != grid->devices[d].reference && distance < below && distance > next)
                next = distance;
        }
    return next;
}

static void claim_all(struct lab_numa_grid *grid, struct lab_arena *arena) {
    struct lab_claim **family = NULL;
    int count = 0;
    for (int d = 0; d < grid->device_count; d++) {
        struct lab_numa_device *device = &grid->devices[d];
        claim_device(grid, device, arena);
        for (int i = 0; i < grid->model_count * device->node_count; i++)
            LAB_ADD(family, count, arena) = &device->cells[i].claim;
        for (int n = 0; n < device->node_count; n++)
            LAB_ADD(family, count, arena) = &device->nodes[n].claim;
    }
    for (int distance = INT_MAX; (distance = next_distance(grid, distance)) >= 0;)
        for (int m = 0; m < grid->model_count; m++) {
            struct lab_numa_pooled one = pool(grid, m, distance, arena);
            if (one.devices > 0)
                LAB_ADD(grid->pooled, grid->pooled_count, arena) = one;
        }
    for (int i = 0; i < grid->pooled_count; i++)
        LAB_ADD(family, count, arena) = &grid->pooled[i].claim;
    if (grid->pooled_count > 0) {
        grid->transfer_bound = claim_transfer_bound(grid, arena);
        LAB_ADD(family, count, arena) = &grid->transfer_bound;
    }
    lab_claim_adjust(family, count);
}

struct lab_numa_grid lab_numa_grid_make(const struct lab_study_table *study, const char *prefix,
                                        struct lab_arena *arena) {
    struct lab_numa_grid grid = {.study = study, .transfer_bound = lab_claim_none};
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points), kept = 0;
    for (int i = 0; i < count; i++) { /* of one device each */
        const struct lab_study_run *run = points[i].runs[0];
        if (run->rank_count != 1)
            grid.gangs++;
        else if (run->ranks[0].placed)
            grid.spread++;
        else
            points[kept++] = points[i];
    }
    grid.models = lab_arena_alloc(arena, (size_t)kept + 1, sizeof *grid.models);
    grid.devices = lab_arena_alloc(arena, (size_t)kept + 1, sizeof *grid.devices);
    for (int i = 0; i < kept; i++) {
        const struct lab_study_rank *rank = &points[i].runs[0]->ranks[0];
        add_model(&grid, &points[i], arena);
        add_node(&grid, prefix, rank, kept, arena);
    }
    LAB_SORT(grid.models, grid.model_count, LAB_BY(grid.models, complexity),
             LAB_BY(grid.models, name));
    LAB_SORT(grid.devices, grid.device_count, LAB_BY(grid.devices, name));
    for (int d = 0; d < grid.device_count; d++) {
        struct lab_numa_device *device = &grid.devices[d];
        LAB_SORT(device->nodes, device->node_count, LAB_BY(device->nodes, number));
        device->cells = lab_arena_alloc(arena, (size_t)(grid.model_count * device->node_count) + 1,
                                        sizeof *device->cells);
    }
    for (int i = 0; i < kept; i++)
        place_point(&grid, prefix, &points[i], arena);
    for (int d = 0; d < grid.device_count; d++)
        grid.devices[d].reference = choose_reference(&grid.devices[d]);
    claim_all(&grid, arena);
    claim_bindings(&grid, arena);
    return grid;
}
