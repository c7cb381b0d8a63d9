/*
 * numa.c: `gpulab analyze numa`: which node feeds which device best, what another one costs, and
 * which models mind. The figures are made in numa/; here they become a result.
 */
#include "analysis/numa/numa.h"
#include "analysis/analysis_words.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

static const struct lab_doc_column figure_columns[] = {
    {"best_nodes", "Best node", LAB_UNIT_TEXT, "Best node"},
    {"device_node", "Sits on node", LAB_UNIT_COUNT},
    {"largest_penalty", "Largest penalty", LAB_UNIT_CHANGE, "Largest penalty",
     .with_interval = true},
    {"largest_penalty_model", "  on", LAB_UNIT_TEXT, "On"},
    {"largest_penalty_node", "  from node", LAB_UNIT_COUNT},
    {"none_larger_than", "Others at most", LAB_UNIT_SHARE, "Others at most"},
    {"comparisons", NULL, LAB_UNIT_COUNT},
};

enum { RUNS = 6 };
static const struct lab_doc_column penalty_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"gflop_per_sample", "GFLOP", LAB_UNIT_NUMBER},
    {"node", "Node", LAB_UNIT_COUNT},
    {"distance", "Distance", LAB_UNIT_COUNT},
    {"rate_per_s", NULL, LAB_UNIT_PER_SECOND},
    {NULL, "Per second", LAB_UNIT_FIGURE},
    {"runs", "Runs", LAB_UNIT_COUNT},
    {"penalty", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Penalty", LAB_UNIT_FIGURE},
    {"verdict", NULL, LAB_UNIT_TEXT},
    {"p", NULL, LAB_UNIT_NUMBER},
    {"needed_runs", NULL, LAB_UNIT_COUNT},
};

static const struct lab_doc_column sensitivity_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER},
    {"distance", "Distance", LAB_UNIT_COUNT},
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"penalty", "Mean penalty", LAB_UNIT_CHANGE, .with_interval = true},
};

/* --- tables --- */

static double known(int number) {
    return number > 0 ? number : (double)NAN;
}

static struct lab_doc_cell penalty_cell(const struct lab_study_ratio *ratio) {
    return lab_cell_interval(1 - ratio->ratio, 1 - ratio->high, 1 - ratio->low, ratio->confidence);
}

static double median_rate(const struct lab_study_point *point) {
    return lab_analysis_summarize(point->rates, (size_t)point->count).median;
}

static const char *rate_words(double rate, struct lab_arena *arena) {
    return lab_arena_printf(arena, rate >= 1000 ? "%.0f" : "%.4g", rate);
}

static void add_penalty(struct lab_doc_table *table, const struct lab_numa_grid *grid,
                        const struct lab_numa_device *device, int model, int node,
                        struct lab_arena *arena) {
    const struct lab_numa_cell *cell = lab_numa_cell_at(device, model, node);
    bool reference = node == device->reference;
    double rate = median_rate(cell->point);
    LAB_ROW(table, arena, lab_cell_text(grid->models[model].name),
            lab_cell_figure(grid->models[model].complexity / 1e9),
            lab_cell_figure(device->nodes[node].number),
            lab_cell_figure(known(device->nodes[node].distance)), lab_cell_figure(rate),
            lab_cell_text(rate_words(rate, arena)), lab_cell_figure(cell->point->count),
            penalty_cell(&cell->ratio),
            lab_cell_text(reference ? "reference" : lab_numa_penalty_words(cell, arena)),
            lab_cell_text(reference ? "reference"
                          : isnan(cell->ratio.ratio)
                              ? "unknown"
                              : lab_words_verdict(cell->ratio.verdict, "faster", "slower")),
            lab_cell_figure(cell->ratio.p), lab_cell_figure(known(cell->ratio.needed)));
}

static void add_penalty_table(struct lab_analysis_part *part, const struct lab_numa_grid *grid,
                              const struct lab_numa_device *device, struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(
        part, "penalties", "By model, in GFLOP a sample, and node", penalty_columns, arena);
    bool repeated = false;
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++) {
            const struct lab_study_point *point = lab_numa_cell_at(device, m, n)->point;
            if (!point)
                continue;
            repeated |= point->count > 1;
            add_penalty(table, grid, device, m, n, arena);
        }
    if (!repeated) /* a note says so, and the room is needed */
        lab_analysis_own_columns(table, arena)[RUNS].title = NULL;
}

static void add_sensitivity_table(struct lab_analysis_part *part, const struct lab_numa_grid *grid,
                                  struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "sensitivity", "Over all devices, by distance", sensitivity_columns, arena);
    struct lab_numa_sensitivity *rows;
    int count = lab_numa_sensitivities(grid, arena, &rows);
    for (int i = 0; i < count; i++) {
        const struct lab_numa_model *model = &grid->models[rows[i].model];
        LAB_ROW(table, arena, lab_cell_text(model->name), lab_cell_figure(model->complexity / 1e9),
                lab_cell_figure(known(rows[i].distance)), lab_cell_figure(rows[i].devices),
                lab_cell_interval(rows[i].penalty, rows[i].low, rows[i].high, 0.95));
    }
}

/* --- parts --- */

static double bound_of(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                       int *ret_compared) {
    double bound = NAN;
    *ret_compared = 0;
    for (int i = 0; i < grid->model_count * device->node_count; i++) {
        const struct lab_study_ratio *ratio = &device->cells[i].ratio;
        *ret_compared += !isnan(ratio->ratio);
        if (ratio->verdict == LAB_STUDY_SAME && !isnan(ratio->ratio))
            bound = fmax(bound, lab_numa_bound(ratio));
    }
    return bound;
}

static struct lab_analysis_part *add_part(struct lab_analysis_result *result,
                                          const struct lab_numa_grid *grid,
                                          const struct lab_numa_device *device,
                                          struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, device->name, arena);
    int model = 0, node = 0, compared;
    const struct lab_numa_cell *worst = lab_numa_worst(grid, device, &model, &node);
    double bound = bound_of(grid, device, &compared);
    part->answer = lab_numa_device_answer(grid, device, arena);
    LAB_FIGURES(part, lab_cell_text(compared ? lab_numa_best_nodes(device, arena) : NULL),
                lab_cell_figure(device->home >= 0 ? device->home : (double)NAN),
                worst ? penalty_cell(&worst->ratio) : lab_cell_figure(NAN),
                lab_cell_text(worst ? grid->models[model].name : NULL),
                lab_cell_figure(worst ? device->nodes[node].number : (double)NAN),
                /* as the sentences round it */
                lab_cell_figure(isnan(bound) ? bound : lab_words_bound_percent(bound) / 100),
                lab_cell_figure(compared));
    add_penalty_table(part, grid, device, arena);
    return part;
}

static void add_notes(struct lab_analysis_result *result, const struct lab_analysis_input *input,
                      const struct lab_numa_grid *grids, struct lab_arena *arena) {
    int compared = 0;
    for (int g = 0; g < input->study_count; g++) {
        lab_study_add_notes(grids[g].study, lab_analysis_prefix(input, grids[g].study, arena),
                            &result->notes, arena);
        if (grids[g].gangs > 0)
            lab_analysis_note(&result->notes, arena,
                              "%d point%s of several devices at once %s left out.", grids[g].gangs,
                              grids[g].gangs == 1 ? "" : "s", grids[g].gangs == 1 ? "is" : "are");
        for (int d = 0; d < grids[g].device_count; d++)
            for (int n = 0; n < grids[g].devices[d].node_count; n++)
                compared += grids[g].devices[d].nodes[n].compared;
    }
    if (compared > 0)
        lab_analysis_note(&result->notes, arena,
                          "A penalty is the share of throughput that is lost against the "
                          "reference: the device's own node, or the nearest or best one that was "
                          "tried. Intervals are at 95 %%, verdicts hold for all %d comparison%s "
                          "together.",
                          compared, compared == 1 ? "" : "s");
}

static int numa_run(const void *config, const struct lab_analysis_input *input,
                    struct lab_arena *arena, struct lab_analysis_result *ret_result,
                    struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("devices", figure_columns), ret_result, err) < 0)
        return -1;
    int count = input->study_count;
    struct lab_numa_grid *grids = lab_arena_alloc(arena, (size_t)count, sizeof *grids);
    for (int g = 0; g < count; g++) {
        const struct lab_study_table *study = &input->studies[g];
        grids[g] = lab_numa_grid_make(study, lab_analysis_prefix(input, study, arena), arena);
        for (int d = 0; d < grids[g].device_count; d++) {
            struct lab_analysis_part *part =
                add_part(ret_result, &grids[g], &grids[g].devices[d], arena);
            if (d == 0 && grids[g].device_count > 1) { /* what no single device has */
                add_sensitivity_table(part, &grids[g], arena);
                lab_analysis_drop_empty(part);
            }
        }
        lab_numa_add_charts(ret_result, &grids[g], lab_analysis_suffix(g, arena), arena);
    }
    ret_result->answer = lab_numa_answer(grids, count, arena);
    add_notes(ret_result, input, grids, arena);
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

static const struct lab_option numa_options[] = {{NULL}};

const struct lab_analysis lab_analysis_numa = {
    .name = "numa",
    .summary = "which NUMA node feeds which device best, and what another one costs",
    .description =
        "For each device and model of a study, the throughput from each node that fed it, against "
        "the device's own node, or the nearest one that was tried. A penalty is only claimed where "
        "the runs carry it, all comparisons judged together; otherwise it says how large it could "
        "be at most.\n\n"
        "Run with repeats, e.g. gpulab run numa_study experiment.repeat=5: with one run each, "
        "differences below 2 % get no verdict.",
    .options = numa_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = numa_interest,
    .run = numa_run,
};
