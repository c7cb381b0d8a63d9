/* numa/words.c: what the grid means, in sentences for whoever owns the machine. */
#include "analysis/analysis_words.h"
#include "analysis/numa/numa.h"

#include "base/str.h"

#include <math.h>

#define DEVICES_MIN 3 /* fewer have an interval over them, but a very wide one */

/* "None larger than" has to hold. */
static double round_up(double share) {
    return lab_words_bound_percent(share);
}

static double half_width(const struct lab_study_ratio *ratio) {
    return fmax(ratio->ratio - ratio->low, ratio->high - ratio->ratio);
}

const char *lab_numa_penalty_words(const struct lab_numa_cell *cell, struct lab_arena *arena) {
    const struct lab_study_ratio *ratio = &cell->ratio;
    if (isnan(ratio->ratio))
        return "unknown";
    if (ratio->verdict == LAB_STUDY_SAME)
        return round_up(lab_numa_bound(ratio)) == 0
                   ? "none"
                   : lab_arena_printf(arena, "at most %.1f %%", round_up(lab_numa_bound(ratio)));
    double percent = 100 * lab_numa_penalty(cell);
    if (fabs(percent) < 0.05)
        percent = 0;
    if (isnan(ratio->low))
        return lab_arena_printf(arena, "%.1f %%, how sure is unknown", percent);
    return lab_arena_printf(arena, "%.1f %% ± %.1f %%%s", percent, 100 * half_width(ratio),
                            ratio->verdict == LAB_STUDY_UNDECIDED ? ", undecided" : "");
}

/* The penalty without its sign: whether it is cost or gain is said before it. */
static const char *amount(const struct lab_numa_cell *cell, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%.1f %% ± %.1f %%%s", 100 * fabs(lab_numa_penalty(cell)),
                            100 * half_width(&cell->ratio),
                            cell->ratio.within ? " (within one run each)" : "");
}

/* Of those with that verdict, the one that is farthest from 1. */
static const struct lab_numa_cell *farthest(const struct lab_numa_grid *grid,
                                            const struct lab_numa_device *device,
                                            enum lab_study_verdict verdict, int *ret_model,
                                            int *ret_node) {
    const struct lab_numa_cell *found = NULL;
    *ret_model = *ret_node = 0;
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++) {
            const struct lab_numa_cell *cell = lab_numa_cell_at(device, m, n);
            if (isnan(cell->ratio.ratio) || cell->ratio.verdict != verdict ||
                (found && fabs(lab_numa_penalty(cell)) <= fabs(lab_numa_penalty(found))))
                continue;
            found = cell;
            *ret_model = m;
            *ret_node = n;
        }
    return found;
}

const struct lab_numa_cell *lab_numa_worst(const struct lab_numa_grid *grid,
                                           const struct lab_numa_device *device, int *ret_model,
                                           int *ret_node) {
    return farthest(grid, device, LAB_STUDY_LESS, ret_model, ret_node);
}

/* What is known of all cells from a model on: how many, how many without a verdict, and the largest
 * difference that those with one leave open. */
struct rest {
    int known, undecided;
    double bound;
};

static struct rest rest_from(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                             int from) {
    struct rest rest = {0};
    for (int m = from; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++) {
            const struct lab_study_ratio *ratio = &lab_numa_cell_at(device, m, n)->ratio;
            if (isnan(ratio->ratio))
                continue;
            rest.known++;
            rest.undecided += ratio->verdict == LAB_STUDY_UNDECIDED;
            if (ratio->verdict == LAB_STUDY_SAME)
                rest.bound = fmax(rest.bound, lab_numa_bound(ratio));
        }
    return rest;
}

const char *lab_numa_best_nodes(const struct lab_numa_device *device, struct lab_arena *arena) {
    const char **words = lab_arena_alloc(arena, (size_t)device->node_count + 1, sizeof *words);
    int count = 0;
    for (int n = 0; n < device->node_count; n++)
        if (n == device->reference ||
            (device->nodes[n].compared > 0 && device->nodes[n].slower == 0))
            words[count++] = lab_arena_printf(arena, "%d", device->nodes[n].number);
    LAB_AUTO(str, text);
    lab_str_add_list(&text, words, "or");
    return lab_arena_strdup(arena, text.text);
}

/* ", none larger than 0.8 % above vit16x8x768": of models with more work a sample than any with a
 * penalty. Without an order by work there is no "above". */
static void add_above(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                      struct lab_str *text) {
    int last = -1;
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++)
            if (lab_numa_cell_at(device, m, n)->ratio.verdict == LAB_STUDY_LESS)
                last = m;
    struct rest rest = rest_from(grid, device, last + 1);
    if (last + 1 >= grid->model_count || rest.known == 0 ||
        !(grid->models[last + 1].complexity > grid->models[last].complexity))
        return;
    if (rest.undecided > 0)
        lab_str_printf(text, ", too little to tell above %s", grid->models[last].name);
    else if (round_up(rest.bound) == 0)
        lab_str_printf(text, ", nothing above %s", grid->models[last].name);
    else
        lab_str_printf(text, ", none larger than %.1f %% above %s", round_up(rest.bound),
                       grid->models[last].name);
}

static void add_nothing_found(const struct lab_numa_grid *grid,
                              const struct lab_numa_device *device, struct lab_str *text) {
    struct rest rest = rest_from(grid, device, 0);
    int m, n;
    const struct lab_numa_cell *open = farthest(grid, device, LAB_STUDY_UNDECIDED, &m, &n);
    if (open && isnan(open->ratio.low))
        lab_str_printf(text,
                       "Which node feeds %s best can't be told: one run each says nothing of their "
                       "spread",
                       device->title);
    else if (open)
        lab_str_printf(text,
                       "Which node feeds %s best can't be told: the largest difference is %.1f %%, "
                       "within one run each, and below 2 %% only repeats would tell",
                       device->title, 100 * fabs(lab_numa_penalty(open)));
    else if (round_up(rest.bound) == 0)
        lab_str_printf(text, "Which node feeds %s makes no difference", device->title);
    else
        lab_str_printf(text, "Which node feeds %s makes no difference larger than %.1f %%",
                       device->title, round_up(rest.bound));
}

/* A best of the nodes that were tried may not be the best of all. */
static bool is_home_untried(const struct lab_numa_device *device) {
    for (int n = 0; n < device->node_count; n++)
        if (device->nodes[n].number == device->home)
            return false;
    return device->home >= 0;
}

static void add_device(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                       struct lab_arena *arena, struct lab_str *text) {
    int model, node, other_model, other_node;
    const struct lab_numa_cell *worst = lab_numa_worst(grid, device, &model, &node);
    const struct lab_numa_cell *best =
        farthest(grid, device, LAB_STUDY_MORE, &other_model, &other_node);
    if (device->node_count < 2)
        lab_str_printf(text, "%s was fed from node %d alone: there is nothing to compare",
                       device->title, device->nodes[0].number);
    else if (rest_from(grid, device, 0).known == 0)
        lab_str_printf(text, "%s has no model that was run from two nodes", device->title);
    else if (worst && best)
        lab_str_printf(text,
                       "Which node feeds %s best depends on the model: instead of node %d, node %d "
                       "costs %s on %s, and node %d gains %s on %s",
                       device->title, device->nodes[device->reference].number,
                       device->nodes[node].number, amount(worst, arena), grid->models[model].name,
                       device->nodes[other_node].number, amount(best, arena),
                       grid->models[other_model].name);
    else if (worst) {
        lab_str_printf(text, "%s is best fed from node %s: node %d costs %s on %s", device->title,
                       lab_numa_best_nodes(device, arena), device->nodes[node].number,
                       amount(worst, arena), grid->models[model].name);
        add_above(grid, device, text);
    } else {
        add_nothing_found(grid, device, text);
    }
    if (is_home_untried(device))
        lab_str_printf(text, "; its own node %d wasn't tried", device->home);
}

const char *lab_numa_device_answer(const struct lab_numa_grid *grid,
                                   const struct lab_numa_device *device, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    add_device(grid, device, arena, &text);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

/* --- all devices --- */

struct tally {
    const struct lab_numa_grid *grid; /* where the largest penalty is */
    const struct lab_numa_device *device;
    double penalty;
    int devices, compared, decided, undecided, models;
    double bound; /* over all that were compared and found alike */
};

static struct tally count_devices(const struct lab_numa_grid *grids, int count) {
    struct tally tally = {.penalty = -1};
    for (int g = 0; g < count; g++)
        for (int d = 0; d < grids[g].device_count; d++) {
            const struct lab_numa_device *device = &grids[g].devices[d];
            int model, node;
            const struct lab_numa_cell *worst = lab_numa_worst(&grids[g], device, &model, &node);
            struct rest rest = rest_from(&grids[g], device, 0);
            tally.devices++;
            tally.compared += rest.known > 0;
            tally.decided += worst != NULL;
            tally.undecided += rest.undecided > 0;
            tally.bound = fmax(tally.bound, rest.bound);
            tally.models =
                grids[g].model_count > tally.models ? grids[g].model_count : tally.models;
            double penalty = worst ? lab_numa_penalty(worst) : 0;
            if (penalty > tally.penalty) {
                tally.penalty = penalty;
                tally.grid = &grids[g];
                tally.device = device;
            }
        }
    return tally;
}

/* "; the own node 1 of GPU 3 wasn't tried" */
static void add_untried(const struct lab_numa_device *const *devices, int count,
                        struct lab_str *text) {
    for (int i = 0; i < count; i++)
        if (is_home_untried(devices[i]))
            lab_str_printf(text, "; the own node %d of %s wasn't tried", devices[i]->home,
                           devices[i]->title);
}

/*
 * " Over all 4 devices it is 12.2 % [10.7, 13.8]." The largest of many penalties is large by chance
 * as well, and one run each says nothing of what another run would give; several devices do.
 */
static void add_over_devices(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                             struct lab_arena *arena, struct lab_str *text) {
    int model, node;
    const struct lab_numa_cell *worst = lab_numa_worst(grid, device, &model, &node);
    if (!worst || !worst->ratio.within)
        return;
    struct lab_numa_sensitivity *rows;
    int count = lab_numa_sensitivities(grid, arena, &rows);
    for (int i = 0; i < count; i++)
        if (rows[i].model == model && rows[i].distance == device->nodes[node].distance &&
            rows[i].devices >= DEVICES_MIN && !isnan(rows[i].low))
            lab_str_printf(text, " Over %d devices the same distance costs %.1f %% [%.1f, %.1f].",
                           rows[i].devices, 100 * rows[i].penalty, 100 * rows[i].low,
                           100 * rows[i].high);
}

/* " GPU 0 and GPU 1 are best fed from node 0.", of those with a penalty, by node; `first` was
 * named before, and isn't again by itself. */
static void add_groups(const struct lab_numa_grid *grid, const struct lab_numa_device *first,
                       struct lab_arena *arena, struct lab_str *text) {
    bool *told = lab_arena_alloc(arena, (size_t)grid->device_count + 1, sizeof *told);
    const char **names = lab_arena_alloc(arena, (size_t)grid->device_count + 1, sizeof *names);
    const struct lab_numa_device **members =
        lab_arena_alloc(arena, (size_t)grid->device_count + 1, sizeof *members);
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        int model, node, count = 0;
        if (told[d] || !lab_numa_worst(grid, device, &model, &node))
            continue;
        const char *nodes = lab_numa_best_nodes(device, arena);
        for (int k = d; k < grid->device_count; k++) {
            const struct lab_numa_device *other = &grid->devices[k];
            if (told[k] || !lab_numa_worst(grid, other, &model, &node) ||
                !lab_str_equal(lab_numa_best_nodes(other, arena), nodes))
                continue;
            told[k] = true;
            members[count] = other;
            names[count++] = other->title;
        }
        names[count] = NULL;
        if (count == 1 && device == first)
            continue;
        lab_str_add(text, " ");
        if (count > 1 && count == grid->device_count)
            lab_str_printf(text, "All %d devices", count);
        else
            lab_str_add_list(text, names, "and");
        lab_str_printf(text, " %s best fed from node %s", count == 1 ? "is" : "are", nodes);
        add_untried(members, count, text);
        lab_str_add(text, ".");
    }
}

static void add_all_alike(const struct tally *tally, struct lab_str *text) {
    if (tally->undecided > 0)
        lab_str_printf(text,
                       "Which node feeds which device best can't be told: no difference is certain "
                       "on %d devices, and some need more runs.",
                       tally->compared);
    else
        lab_str_printf(text,
                       "Which node feeds a device makes no difference larger than %.1f %%, on %d "
                       "devices and %d model%s.",
                       round_up(tally->bound), tally->compared, tally->models,
                       tally->models == 1 ? "" : "s");
}

const char *lab_numa_answer(const struct lab_numa_grid *grids, int count, struct lab_arena *arena) {
    struct tally tally = count_devices(grids, count);
    LAB_AUTO(str, text);
    if (!tally.device)
        lab_str_add(&text, "There is nothing to compare: no run on a single device is done.");
    else if (tally.compared == 0 && tally.devices > 1)
        lab_str_add(&text, "There is nothing to compare: each device was fed from one node. "
                           "experiment.hardware.numa_nodes=[0,1] would try two.");
    else if (tally.devices > 1 && tally.decided == 0)
        add_all_alike(&tally, &text);
    else {
        add_device(tally.grid, tally.device, arena, &text);
        lab_str_add(&text, ".");
        if (tally.devices > 1 && count == 1) {
            add_over_devices(tally.grid, tally.device, arena, &text);
            add_groups(tally.grid, tally.device, arena, &text);
        }
    }
    return lab_arena_strdup(arena, text.text);
}
