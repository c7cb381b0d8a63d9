/*
 * crossover.c: `gpulab analyze crossover`: which models wait for copies and which for compute, and
 * how much work a sample has to be before that turns. The figures are made in crossover/.
 */
#include "analysis/crossover/crossover.h"

#include "base/str.h"

#include <math.h>

enum { TURN, BELOW, ABOVE, MODELS, FIGURES };

static const struct lab_doc_column figure_columns[FIGURES] = {
    [TURN] = {"turn_gflop_per_sample", "Turns at", LAB_UNIT_NUMBER, "Turns at [GFLOP]",
              .with_interval = true},
    [BELOW] = {"largest_by_copies", "Copies up to", LAB_UNIT_TEXT, "Copies up to"},
    [ABOVE] = {"smallest_by_compute", "Compute from", LAB_UNIT_TEXT, "Compute from"},
    [MODELS] = {"models_known", NULL, LAB_UNIT_COUNT},
};

enum {
    MODEL,
    COMPLEXITY,
    COMPUTE,
    COPIES,
    COMPUTE_SHOWN, /* people find the interval of the ratio beside them */
    COPIES_SHOWN,
    RATIO,
    BOUND,
    RUNS,
    SOURCE,
    P_VALUE,
    MODEL_COLUMNS
};

static const struct lab_doc_column model_columns[MODEL_COLUMNS] = {
    [MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [COMPLEXITY] = {"gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER},
    [COMPUTE] = {"compute_ms", NULL, LAB_UNIT_TIME, .with_interval = true},
    [COPIES] = {"copies_ms", NULL, LAB_UNIT_TIME, .with_interval = true},
    [COMPUTE_SHOWN] = {NULL, "Compute", LAB_UNIT_TIME},
    [COPIES_SHOWN] = {NULL, "Copies", LAB_UNIT_TIME},
    [RATIO] = {"compute_over_copies", "Compute/copies", LAB_UNIT_RATIO, .with_interval = true},
    [BOUND] = {"bound_by", "Bound by", LAB_UNIT_TEXT},
    [RUNS] = {"runs", "Runs", LAB_UNIT_COUNT},
    [SOURCE] = {"source", NULL, LAB_UNIT_TEXT},
    [P_VALUE] = {"p", NULL, LAB_UNIT_NUMBER},
};

static struct lab_doc_cell figure(double value, double low, double high) {
    bool known = isfinite(low) && isfinite(high);
    return (struct lab_doc_cell){.value = isfinite(value) ? value : (double)NAN,
                                 .low = known ? low : (double)NAN,
                                 .high = known ? high : (double)NAN,
                                 .confidence = 0.95};
}

static struct lab_doc_table model_table(const struct lab_crossover_feed *feed,
                                        struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)(feed->model_count * MODEL_COLUMNS) + 1, sizeof *cells);
    for (int m = 0; m < feed->model_count; m++) {
        const struct lab_crossover_model *model = &feed->models[m];
        struct lab_doc_cell *row = cells + (ptrdiff_t)m * MODEL_COLUMNS;
        row[MODEL] = lab_cell_text(model->name);
        row[COMPLEXITY] = lab_cell_figure(model->complexity / 1e9);
        row[COMPUTE] = figure(model->compute_s, model->compute_low, model->compute_high);
        row[COPIES] = figure(model->copy_s, model->copy_low, model->copy_high);
        row[COMPUTE_SHOWN] = lab_cell_figure(model->compute_s > 0 ? model->compute_s : (double)NAN);
        row[COPIES_SHOWN] = lab_cell_figure(model->copy_s > 0 ? model->copy_s : (double)NAN);
        row[RATIO] = figure(model->ratio > 0 ? model->ratio : (double)NAN, model->low, model->high);
        row[BOUND] = lab_cell_text(lab_crossover_bound_name(model->bound));
        row[RUNS] = lab_cell_figure(model->runs);
        row[SOURCE] = lab_cell_text(lab_crossover_source_name(model->source));
        row[P_VALUE] = lab_cell_figure(model->p);
    }
    return (struct lab_doc_table){.key = "models",
                                  .title = "By model, of a sample",
                                  .columns = model_columns,
                                  .column_count = MODEL_COLUMNS,
                                  .cells = cells,
                                  .row_count = feed->model_count};
}

static struct lab_analysis_part make_part(const struct lab_crossover_feed *feed,
                                          struct lab_arena *arena) {
    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *table = lab_arena_alloc(arena, 1, sizeof *table);
    int known = 0;
    for (int m = 0; m < feed->model_count; m++)
        known += feed->models[m].bound != LAB_CROSSOVER_UNKNOWN;
    cells[TURN] = figure(feed->crossover.at / 1e9, feed->crossover.interval.low / 1e9,
                         feed->crossover.interval.high / 1e9);
    cells[TURN].text = "GFLOP a sample";
    cells[BELOW] = lab_cell_text(feed->below < 0 ? NULL : feed->models[feed->below].name);
    cells[ABOVE] = lab_cell_text(feed->above < 0 ? NULL : feed->models[feed->above].name);
    cells[MODELS] = lab_cell_figure(known);
    *table = model_table(feed, arena);
    return (struct lab_analysis_part){.name = feed->name,
                                      .answer = lab_crossover_feed_answer(feed, arena),
                                      .cells = cells,
                                      .tables = table,
                                      .table_count = 1};
}

/* --- notes --- */

static bool any_source(const struct lab_crossover_feed *data_paths, int count,
                       enum lab_crossover_source source) {
    for (int i = 0; i < count; i++)
        for (int m = 0; m < data_paths[i].model_count; m++)
            if (data_paths[i].models[m].source == source)
                return true;
    return false;
}

static const char *const *make_notes(const struct lab_analysis_input *input,
                                     const struct lab_crossover_feed *data_paths, int count,
                                     struct lab_arena *arena) {
    enum { OF_A_STUDY = 8, OWN = 4 };
    const char **notes =
        lab_arena_alloc(arena, (size_t)(input->study_count * OF_A_STUDY) + OWN, sizeof *notes);
    int made = 0;
    for (int s = 0; s < input->study_count; s++) {
        const char **own = lab_study_notes(&input->studies[s], 0, arena);
        for (int i = 0; i < OF_A_STUDY && own[i]; i++)
            notes[made++] = input->study_count == 1
                                ? own[i]
                                : lab_arena_printf(arena, "%s: %s", input->studies[s].name, own[i]);
    }
    if (any_source(data_paths, count, LAB_CROSSOVER_TIMINGS))
        notes[made++] = "Where a run left no spans, copies are taken from its bandwidths, one "
                        "direction after the other: where both overlap, they take less.";
    if (count > 0)
        notes[made++] = "Times are busy times: of compute, and of copies in either direction, "
                        "those at once counted once. Between two models both are taken to lie "
                        "on straight lines; the turn is where those cross, with its interval at "
                        "95 % over the runs. What happens between the models is no part of it: "
                        "a model in between would tell.";
    return notes;
}

static int crossover_run(const void *config, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    (void)config;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to analyse: no study");
    struct lab_crossover_feed *all = NULL;
    int count = 0, capacity = 0;
    bool simulated = false;
    for (int s = 0; s < input->study_count; s++) {
        const struct lab_study_table *study = &input->studies[s];
        const char *prefix =
            input->study_count == 1 ? "" : lab_arena_printf(arena, "%s: ", study->name);
        struct lab_crossover_feed *data_paths;
        int own = lab_crossover_data_paths(study, prefix, arena, &data_paths);
        simulated |= study->simulated;
        for (int i = 0; i < own; i++) {
            LAB_MEM_GROW(&all, count, &capacity);
            all[count++] = data_paths[i];
        }
    }
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count + 1, sizeof *parts);
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    for (int i = 0; i < count; i++)
        parts[i] = make_part(&all[i], arena);
    bool drawn = lab_crossover_chart(all, count, simulated, arena, chart);
    *ret_result = (struct lab_analysis_result){.answer = lab_crossover_answer(all, count, arena),
                                               .part_key = "feeds",
                                               .columns = figure_columns,
                                               .column_count = FIGURES,
                                               .parts = parts,
                                               .part_count = count,
                                               .simulated = simulated,
                                               .notes = make_notes(input, all, count, arena),
                                               .charts = chart,
                                               .chart_count = drawn};
    lab_mem_free(all);
    return 0;
}

/* --- the analysis --- */

/* Models of different work that copy something; of two or more there is something to tell. */
static int crossover_interest(const struct lab_study_table *study) {
    double seen[3];
    int count = 0;
    for (int i = 0; i < study->run_count && count < 3; i++) {
        const struct lab_study_run *run = &study->runs[i];
        double complexity = lab_study_complexity(run);
        bool known = isnan(complexity) || run->work.h2d_bytes + run->work.d2h_bytes <= 0;
        for (int k = 0; k < count; k++)
            known |= seen[k] == complexity;
        if (!known)
            seen[count++] = complexity;
    }
    return count < 2 ? 0 : count == 2 ? 20 : 30;
}

static const struct lab_option crossover_options[] = {{NULL}};

const struct lab_analysis lab_analysis_crossover = {
    .name = "crossover",
    .summary = "which models wait for copies, which for compute, and where that turns",
    .description =
        "For each device and node of a study, how long each model computes and copies, from the "
        "spans of its stages; where a run left none, from its trace, or from its own bandwidths "
        "and "
        "utilisation. A pipeline that overlaps them is as fast as the longer of the two allows.\n\n"
        "Where a model is bound by copies and a larger one by compute, the straight lines between "
        "the models there, over the operations of a sample, say how much work a sample has to be "
        "before compute takes longer.",
    .options = crossover_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = crossover_interest,
    .run = crossover_run,
};
