/*
 * numa.c: `gpulab analyze numa`: which NUMA node to bind to, and what a remote one costs. The
 * claims are made in numa/; here they become tables and a headline.
 */
#include "analysis/numa/numa.h"
#include "analysis/analysis_group.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

struct figures {                   /* of a device */
    double best_node, device_node; /* NaN = none is advised; unknown */
    const char *use;               /* "0 (until 1 is tested)"; NULL = none is advised */
    int farthest_node, reference_node;
    struct lab_claim gain, change;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, best_node, "best_node", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, use, NULL, "NUMA node to use", LAB_UNIT_FIGURE, "NUMA node to use"),
    LAB_FIELD(struct figures, gain, "gain", "Throughput on best NUMA node, mean", LAB_UNIT_CHANGE,
              "Throughput on best NUMA node, mean", .yields = 1),
    LAB_FIELD(struct figures, device_node, "device_node", "Local node", LAB_UNIT_COUNT,
              "Local node", .yields = 2),
    LAB_FIELD(struct figures, farthest_node, "farthest_node", "Farthest node tested",
              LAB_UNIT_COUNT, "Farthest node tested"),
    LAB_FIELD(struct figures, change, "change", "Throughput there, mean of models", LAB_UNIT_CHANGE,
              "Throughput there, mean of models"),
    LAB_FIELD(struct figures, reference_node, "reference_node", "Compared with node",
              LAB_UNIT_COUNT, "Compared with node", .yields = 3),
};

struct row { /* a model on a device, bound to a node */
    const char *model;
    double gflop;
    int node;
    double distance, rate;
    const char *per_second;
    int runs;
    struct lab_claim change;
};

static const struct lab_field row_fields[] = {
    LAB_FIELD(struct row, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct row, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER, .yields = 1),
    LAB_FIELD(struct row, node, "node", "Node", LAB_UNIT_COUNT),
    LAB_FIELD(struct row, distance, "distance", "Distance", LAB_UNIT_COUNT, .yields = 2),
    LAB_FIELD(struct row, rate, "rate_per_s", NULL, LAB_UNIT_PER_SECOND),
    LAB_FIELD(struct row, per_second, NULL, "Rate", LAB_UNIT_FIGURE),
    LAB_FIELD(struct row, runs, "runs", "Runs", LAB_UNIT_COUNT, .yields = 3),
    LAB_FIELD(struct row, change, "change", "Throughput", LAB_UNIT_CHANGE),
};

static const struct lab_field pooled_fields[] = {
    LAB_FIELD(struct lab_numa_pooled, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_numa_pooled, gflop, "gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_numa_pooled, far, "distance", "Distance", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_numa_pooled, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_numa_pooled, claim, "change", "Throughput", LAB_UNIT_CHANGE),
};

static double known(int number) {
    return number > 0 ? number : (double)NAN;
}

static struct row make_row(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                           int model, int node, struct lab_arena *arena) {
    const struct lab_numa_cell *cell = lab_numa_cell_at(device, model, node);
    double rate = lab_study_estimate(cell->point->rates, cell->point->count).value;
    return (struct row){.model = grid->models[model].name,
                        .gflop = grid->models[model].complexity / 1e9,
                        .node = device->nodes[node].number,
                        .distance = known(device->nodes[node].distance),
                        .rate = rate,
                        .per_second = lab_words_number(rate, arena),
                        .runs = cell->point->count,
                        .change = cell->claim};
}

/* --- parts --- */

/* By distance, then by number; the reference where there is no other. */
static int farthest_node(const struct lab_numa_device *device) {
    int farthest = -1;
    for (int n = 0; n < device->node_count; n++)
        if (n != device->reference &&
            (farthest < 0 || device->nodes[n].distance > device->nodes[farthest].distance))
            farthest = n;
    return farthest < 0 ? device->reference : farthest;
}

static struct lab_analysis_part *add_part(struct lab_analysis_result *result,
                                          const struct lab_numa_grid *grid,
                                          const struct lab_numa_device *device,
                                          struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, device->name, arena);
    const struct lab_numa_node *far = &device->nodes[farthest_node(device)];
    part->answer = lab_arena_printf(arena, "%s.", lab_claim_sentence(&far->claim, arena));
    int best = device->nodes[lab_numa_best_node(device)].number;
    enum lab_claim_verdict verdict = lab_numa_verdict(device);
    bool open = verdict == LAB_CLAIM_INCONCLUSIVE || /* then no node is advised */
                (verdict != LAB_CLAIM_YES && !lab_numa_home_tested(device));
    const char *until = lab_numa_home_tested(device)
                            ? ""
                            : lab_arena_printf(arena, " (until %d is tested)", device->home);
    struct figures figures = {.best_node = open ? (double)NAN : best,
                              .use = open ? NULL : lab_arena_printf(arena, "%d%s", best, until),
                              .device_node = device->home >= 0 ? device->home : (double)NAN,
                              .farthest_node = far->number,
                              .reference_node = device->nodes[device->reference].number,
                              .gain = device->binding,
                              .change = far->claim};
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    struct row *rows = NULL;
    int count = 0;
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++)
            if (lab_numa_cell_at(device, m, n)->point)
                LAB_ADD(rows, count, arena) = make_row(grid, device, m, n, arena);
    lab_analysis_title_column(lab_rows_add_table(part, "penalties", "By model and NUMA node",
                                                 &LAB_ROWS(row_fields, rows, count), arena),
                              "Rate", lab_words_capital(lab_analysis_rate_unit(grid->study), arena),
                              arena);
    if (!lab_numa_home_tested(device))
        lab_analysis_note(&part->notes, arena, "%s: its local NUMA node (%d) was not tested.",
                          device->title, device->home);
    return part;
}

static const char *why_untested(const struct lab_numa_grid *grids, int count, bool *ret_elsewhere) {
    const struct lab_machine *machine = count == 1 ? grids[0].study->machine : NULL;
    int devices = 0, gangs = 0, spread = 0;
    for (int g = 0; g < count; g++) {
        devices += grids[g].device_count;
        gangs += grids[g].gangs;
        spread += grids[g].spread;
    }
    if (devices == 0 && spread > 0)
        return "each point ran once, on whichever device was free (experiment.spread).";
    if (devices == 0)
        return gangs > 0 ? "all runs are on several devices at once; 'gpulab analyze recommend' "
                           "compares those."
                         : "no run on a single device is done.";
    *ret_elsewhere = machine && machine->node_count == 1;
    if (*ret_elsewhere)
        return "this machine has one NUMA node. Nothing to bind.";
    return "each device was bound to one NUMA node. experiment.hardware.numa_nodes=all tests all.";
}

static void add_claims(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                       struct lab_arena *arena) {
    if (grid->transfer_bound.verdict != LAB_CLAIM_NOT_TESTED)
        lab_analysis_add_claim(result, &grid->transfer_bound, arena);
    for (int i = 0; i < grid->pooled_count; i++)
        lab_analysis_add_claim(result, &grid->pooled[i].claim, arena);
    for (int d = 0; d < grid->device_count; d++) {
        const struct lab_numa_device *device = &grid->devices[d];
        struct lab_claim untested = lab_claim_named(
            lab_claim_none, "numa.local",
            lab_arena_printf(arena, "%s, NUMA node %d (local)", device->title, device->home), "",
            "throughput");
        if (grid->pooled_count > 0 && !lab_numa_home_tested(device))
            lab_analysis_add_claim(result, &untested, arena);
        for (int n = 0; n < device->node_count; n++)
            if (n != device->reference)
                lab_analysis_add_claim(result, &device->nodes[n].claim, arena);
        for (int i = 0; i < grid->model_count * device->node_count; i++)
            if (i % device->node_count != device->reference)
                lab_analysis_add_claim(result, &device->cells[i].claim, arena);
    }
}

static int numa_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                    struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    int count = input->study_count;
    struct lab_numa_grid *grids = lab_arena_alloc(arena, (size_t)count, sizeof *grids);
    for (int g = 0; g < count; g++) {
        const struct lab_study_table *study = &input->studies[g];
        const char *prefix = lab_analysis_prefix(input, study, arena);
        grids[g] = lab_numa_grid_make(study, prefix, arena);
        for (int d = 0; d < grids[g].device_count; d++) {
            struct lab_analysis_part *part =
                add_part(result, &grids[g], &grids[g].devices[d], arena);
            if (d == 0 && grids[g].pooled_count > 0) /* what no single device has */
                lab_rows_add_table(part, "pooled", "Over all devices, by distance",
                                   &LAB_ROWS(pooled_fields, grids[g].pooled, grids[g].pooled_count),
                                   arena);
        }
        add_claims(result, &grids[g], arena);
        lab_numa_add_charts(result, &grids[g], lab_analysis_suffix(g, arena), arena);
        lab_study_add_notes(study, prefix, &result->notes, arena);
        if (grids[g].gangs > 0)
            lab_analysis_note(&result->notes, arena,
                              "%d point%s of several devices at once %s left out.", grids[g].gangs,
                              grids[g].gangs == 1 ? "" : "s", grids[g].gangs == 1 ? "is" : "are");
    }
    result->answer = lab_numa_answer(grids, count, arena);
    if (!result->answer)
        result->untested = why_untested(grids, count, &result->elsewhere);
    if (count == 1)
        lab_numa_test_the_rest(result, &grids[0], arena);
    return 0;
}

/* --- the analysis --- */

/* Whether some device was fed from several nodes. */
static int numa_interest(const struct lab_study_table *study) {
    if (lab_study_has_phases(study))
        return 0;
    for (int i = 0; i < study->run_count; i++)
        for (int k = 0; k < i; k++) {
            const struct lab_study_run *a = &study->runs[i], *b = &study->runs[k];
            if (a->rank_count == 1 && b->rank_count == 1 &&
                a->ranks[0].numa_node != b->ranks[0].numa_node &&
                lab_str_equal(a->ranks[0].device, b->ranks[0].device))
                return 60;
        }
    return 0;
}

const struct lab_analysis lab_analysis_numa = {
    .name = "numa",
    .summary = "which NUMA node to bind each device to, and the penalty of a remote one",
    .description =
        "For each device and model of a study, the throughput from each NUMA node, compared with "
        "the local node, or the nearest one tested. First comes the mean over devices, by "
        "distance; then each device and each cell. Intervals are over runs, at 95%; verdicts "
        "hold for all of them together.\n\n"
        "One run a point gives values and no verdict: gpulab run numa_study experiment.repeat=5 "
        "gives both.",
    .kinds = (const struct lab_analysis_kind[]){{"numa.penalty"},
                                                {"numa.transfer_bound", LAB_KIND_MODELS},
                                                {"numa.device"},
                                                {"numa.cell"},
                                                {"numa.local", LAB_KIND_OBSERVED},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = numa_interest,
    LAB_PARTS_OF("devices", figure_fields),
    .run = numa_run,
};
