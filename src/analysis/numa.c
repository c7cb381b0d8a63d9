/*
 * numa.c: `gpulab analyze numa`: which node feeds which device best, what another one costs, and
 * which models mind. The figures are made in numa/; here they become a result.
 */
#include "analysis/numa/numa.h"
#include "analysis/analysis_words.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

enum { BEST, HOME, WORST, WORST_MODEL, WORST_NODE, BOUND, COMPARED, FIGURES };

static const struct lab_doc_column figure_columns[FIGURES] = {
    [BEST] = {"best_nodes", "Best node", LAB_UNIT_TEXT, "Best node"},
    [HOME] = {"device_node", "Sits on node", LAB_UNIT_COUNT},
    [WORST] = {"largest_penalty", "Largest penalty", LAB_UNIT_CHANGE, "Largest penalty",
               .with_interval = true},
    [WORST_MODEL] = {"largest_penalty_model", "  on", LAB_UNIT_TEXT, "On"},
    [WORST_NODE] = {"largest_penalty_node", "  from node", LAB_UNIT_COUNT},
    [BOUND] = {"none_larger_than", "Others at most", LAB_UNIT_SHARE, "Others at most"},
    [COMPARED] = {"comparisons", NULL, LAB_UNIT_COUNT},
};

enum {
    MODEL,
    COMPLEXITY,
    NODE,
    DISTANCE,
    RATE,
    RATE_WORDS,
    RUNS,
    PENALTY,
    WORDS,
    VERDICT,
    P_VALUE,
    NEEDED,
    PENALTY_COLUMNS
};

static const struct lab_doc_column penalty_columns[PENALTY_COLUMNS] = {
    [MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [COMPLEXITY] = {"gflop_per_sample", "GFLOP", LAB_UNIT_NUMBER},
    [NODE] = {"node", "Node", LAB_UNIT_COUNT},
    [DISTANCE] = {"distance", "Distance", LAB_UNIT_COUNT},
    [RATE] = {"rate_per_s", NULL, LAB_UNIT_PER_SECOND},
    [RATE_WORDS] = {NULL, "Per second", LAB_UNIT_FIGURE},
    [RUNS] = {"runs", "Runs", LAB_UNIT_COUNT},
    [PENALTY] = {"penalty", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [WORDS] = {NULL, "Penalty", LAB_UNIT_FIGURE},
    [VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
    [P_VALUE] = {"p", NULL, LAB_UNIT_NUMBER},
    [NEEDED] = {"needed_runs", NULL, LAB_UNIT_COUNT},
};

enum { OF_MODEL, OF_COMPLEXITY, OF_DISTANCE, OF_DEVICES, OF_PENALTY, SENSITIVITY_COLUMNS };

static const struct lab_doc_column sensitivity_columns[SENSITIVITY_COLUMNS] = {
    [OF_MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [OF_COMPLEXITY] = {"gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER},
    [OF_DISTANCE] = {"distance", "Distance", LAB_UNIT_COUNT},
    [OF_DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [OF_PENALTY] = {"penalty", "Mean penalty", LAB_UNIT_CHANGE, .with_interval = true},
};

/* --- tables --- */

static double known(int number) {
    return number > 0 ? number : (double)NAN;
}

static struct lab_doc_cell penalty_cell(const struct lab_study_ratio *ratio) {
    return (struct lab_doc_cell){.value = 1 - ratio->ratio,
                                 .low = 1 - ratio->high,
                                 .high = 1 - ratio->low,
                                 .confidence = ratio->confidence};
}

static const char *verdict_name(const struct lab_study_ratio *ratio) {
    static const char *const names[] = {[LAB_STUDY_UNDECIDED] = "undecided",
                                        [LAB_STUDY_SAME] = "same",
                                        [LAB_STUDY_MORE] = "faster",
                                        [LAB_STUDY_LESS] = "slower"};
    return isnan(ratio->ratio) ? "unknown" : names[ratio->verdict];
}

static double median_rate(const struct lab_study_point *point) {
    return lab_analysis_summarize(point->rates, (size_t)point->count).median;
}

static const char *rate_words(double rate, struct lab_arena *arena) {
    return lab_arena_printf(arena, rate >= 1000 ? "%.0f" : "%.4g", rate);
}

static void fill_penalty(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                         int model, int node, struct lab_arena *arena, struct lab_doc_cell *row) {
    const struct lab_numa_cell *cell = lab_numa_cell_at(device, model, node);
    bool reference = node == device->reference;
    row[MODEL] = lab_cell_text(grid->models[model].name);
    row[COMPLEXITY] = lab_cell_figure(grid->models[model].complexity / 1e9);
    row[NODE] = lab_cell_figure(device->nodes[node].number);
    row[DISTANCE] = lab_cell_figure(known(device->nodes[node].distance));
    row[RATE] = lab_cell_figure(median_rate(cell->point));
    row[RATE_WORDS] = lab_cell_text(rate_words(row[RATE].value, arena));
    row[RUNS] = lab_cell_figure(cell->point->count);
    row[PENALTY] = penalty_cell(&cell->ratio);
    row[WORDS] = lab_cell_text(reference ? "reference" : lab_numa_penalty_words(cell, arena));
    row[VERDICT] = lab_cell_text(reference ? "reference" : verdict_name(&cell->ratio));
    row[P_VALUE] = lab_cell_figure(cell->ratio.p);
    row[NEEDED] = lab_cell_figure(known(cell->ratio.needed));
}

static struct lab_doc_table penalty_table(const struct lab_numa_grid *grid,
                                          const struct lab_numa_device *device,
                                          struct lab_arena *arena) {
    int count = 0;
    bool repeated = false;
    struct lab_doc_cell *cells = lab_arena_alloc(
        arena, (size_t)(grid->model_count * device->node_count * PENALTY_COLUMNS) + 1,
        sizeof *cells);
    for (int m = 0; m < grid->model_count; m++)
        for (int n = 0; n < device->node_count; n++) {
            const struct lab_study_point *point = lab_numa_cell_at(device, m, n)->point;
            if (!point)
                continue;
            repeated |= point->count > 1;
            fill_penalty(grid, device, m, n, arena, cells + PENALTY_COLUMNS * (size_t)count++);
        }
    struct lab_doc_column *columns = lab_arena_alloc(arena, PENALTY_COLUMNS, sizeof *columns);
    memcpy(columns, penalty_columns, sizeof penalty_columns);
    if (!repeated) /* a note says so, and the room is needed */
        columns[RUNS].title = NULL;
    return (struct lab_doc_table){.key = "penalties",
                                  .title = "By model, in GFLOP a sample, and node",
                                  .columns = columns,
                                  .column_count = PENALTY_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

static struct lab_doc_table sensitivity_table(const struct lab_numa_grid *grid,
                                              struct lab_arena *arena) {
    struct lab_numa_sensitivity *rows;
    int count = lab_numa_sensitivities(grid, arena, &rows);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)(count * SENSITIVITY_COLUMNS) + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        const struct lab_numa_model *model = &grid->models[rows[i].model];
        struct lab_doc_cell *row = cells + SENSITIVITY_COLUMNS * (size_t)i;
        row[OF_MODEL] = lab_cell_text(model->name);
        row[OF_COMPLEXITY] = lab_cell_figure(model->complexity / 1e9);
        row[OF_DISTANCE] = lab_cell_figure(known(rows[i].distance));
        row[OF_DEVICES] = lab_cell_figure(rows[i].devices);
        row[OF_PENALTY] = (struct lab_doc_cell){
            .value = rows[i].penalty, .low = rows[i].low, .high = rows[i].high, .confidence = 0.95};
    }
    return (struct lab_doc_table){.key = "sensitivity",
                                  .title = "Over all devices, by distance",
                                  .columns = sensitivity_columns,
                                  .column_count = SENSITIVITY_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
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

static struct lab_analysis_part make_part(const struct lab_numa_grid *grid,
                                          const struct lab_numa_device *device,
                                          struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 2, sizeof *tables);
    int model = 0, node = 0, compared;
    const struct lab_numa_cell *worst = lab_numa_worst(grid, device, &model, &node);
    double bound = bound_of(grid, device, &compared);
    cells[BEST] = lab_cell_text(compared ? lab_numa_best_nodes(device, arena) : NULL);
    cells[HOME] = lab_cell_figure(device->home >= 0 ? device->home : (double)NAN);
    cells[WORST] = worst ? penalty_cell(&worst->ratio) : lab_cell_figure(NAN);
    cells[WORST_MODEL] = lab_cell_text(worst ? grid->models[model].name : NULL);
    cells[WORST_NODE] = lab_cell_figure(worst ? device->nodes[node].number : (double)NAN);
    /* as the sentences round it */
    cells[BOUND] = lab_cell_figure(isnan(bound) ? bound : lab_words_bound_percent(bound) / 100);
    cells[COMPARED] = lab_cell_figure(compared);
    tables[0] = penalty_table(grid, device, arena);
    return (struct lab_analysis_part){.name = device->name,
                                      .answer = lab_numa_device_answer(grid, device, arena),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = 1};
}

/* What no single device has: added to the study's first. */
static void add_sensitivity(const struct lab_numa_grid *grid, struct lab_analysis_part *part,
                            struct lab_arena *arena) {
    struct lab_doc_table *tables = (struct lab_doc_table *)part->tables;
    tables[1] = sensitivity_table(grid, arena);
    part->table_count += tables[1].row_count > 0;
}

static const char *const *make_notes(const struct lab_numa_grid *grids, int count,
                                     struct lab_arena *arena) {
    enum { OF_A_STUDY = 8 };
    const char **notes = lab_arena_alloc(arena, (size_t)(count * OF_A_STUDY) + 2, sizeof *notes);
    int made = 0, compared = 0;
    for (int g = 0; g < count; g++) {
        const char **own = lab_study_notes(grids[g].study, 0, arena);
        for (int i = 0; i < OF_A_STUDY - 1 && own[i]; i++)
            notes[made++] = count == 1
                                ? own[i]
                                : lab_arena_printf(arena, "%s: %s", grids[g].study->name, own[i]);
        if (grids[g].gangs > 0)
            notes[made++] = lab_arena_printf(
                arena, "%d point%s of several devices at once %s left out.", grids[g].gangs,
                grids[g].gangs == 1 ? "" : "s", grids[g].gangs == 1 ? "is" : "are");
        for (int d = 0; d < grids[g].device_count; d++)
            for (int n = 0; n < grids[g].devices[d].node_count; n++)
                compared += grids[g].devices[d].nodes[n].compared;
    }
    if (compared > 0)
        notes[made++] = lab_arena_printf(
            arena,
            "A penalty is the share of throughput that is lost against the "
            "reference: the device's own node, or the nearest or best one that was "
            "tried. Intervals are at 95 %%, verdicts hold for all %d comparison%s "
            "together.",
            compared, compared == 1 ? "" : "s");
    return notes;
}

static int numa_run(const void *config, const struct lab_analysis_input *input,
                    struct lab_arena *arena, struct lab_analysis_result *ret_result,
                    struct lab_err *err) {
    (void)config;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to analyse: no study");
    int count = input->study_count, parts = 0, charts = 0, part_count = 0;
    bool simulated = false;
    struct lab_numa_grid *grids = lab_arena_alloc(arena, (size_t)count + 1, sizeof *grids);
    for (int g = 0; g < count; g++) {
        const struct lab_study_table *study = &input->studies[g];
        const char *prefix = count == 1 ? "" : lab_arena_printf(arena, "%s: ", study->name);
        grids[g] = lab_numa_grid_make(study, prefix, arena);
        part_count += grids[g].device_count;
        simulated |= study->simulated;
    }
    struct lab_analysis_part *list = lab_arena_alloc(arena, (size_t)part_count + 1, sizeof *list);
    struct lab_chart *pictures =
        lab_arena_alloc(arena, (size_t)(count * LAB_NUMA_CHARTS) + 1, sizeof *pictures);
    for (int g = 0; g < count; g++) {
        int first = parts;
        for (int d = 0; d < grids[g].device_count; d++)
            list[parts++] = make_part(&grids[g], &grids[g].devices[d], arena);
        if (grids[g].device_count > 1)
            add_sensitivity(&grids[g], &list[first], arena);
        lab_numa_charts(&grids[g], g, arena, pictures, &charts);
    }
    *ret_result = (struct lab_analysis_result){.answer = lab_numa_answer(grids, count, arena),
                                               .part_key = "devices",
                                               .columns = figure_columns,
                                               .column_count = FIGURES,
                                               .parts = list,
                                               .part_count = parts,
                                               .simulated = simulated,
                                               .notes = make_notes(grids, count, arena),
                                               .charts = pictures,
                                               .chart_count = charts};
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
