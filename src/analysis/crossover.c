/*
 * crossover.c: `gpulab analyze crossover`: which models wait for copies and which for compute, and
 * how much work a sample has to be before that turns. The figures are made in crossover/.
 */
#include "analysis/crossover/crossover.h"
#include "analysis/analysis_build.h"

#include "base/str.h"

#include <math.h>

static const struct lab_doc_column figure_columns[] = {
    {"turn_gflop_per_sample", "Turns at", LAB_UNIT_NUMBER, "Turns at [GFLOP]",
     .with_interval = true},
    {"largest_by_copies", "Copies up to", LAB_UNIT_TEXT, "Copies up to"},
    {"smallest_by_compute", "Compute from", LAB_UNIT_TEXT, "Compute from"},
    {"models_known", NULL, LAB_UNIT_COUNT},
};

static const struct lab_doc_column model_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"gflop_per_sample", "GFLOP/sample", LAB_UNIT_NUMBER},
    {"compute_ms", NULL, LAB_UNIT_TIME, .with_interval = true},
    {"copies_ms", NULL, LAB_UNIT_TIME, .with_interval = true},
    {NULL, "Compute", LAB_UNIT_TIME},
    {NULL, "Copies", LAB_UNIT_TIME},
    {"compute_over_copies", "Compute/copies", LAB_UNIT_RATIO, .with_interval = true},
    {"bound_by", "Bound by", LAB_UNIT_TEXT},
    {"runs", "Runs", LAB_UNIT_COUNT},
    {"source", NULL, LAB_UNIT_TEXT},
    {"p", NULL, LAB_UNIT_NUMBER},
};

static struct lab_doc_cell figure(double value, double low, double high) {
    bool known = isfinite(low) && isfinite(high);
    return lab_cell_interval(isfinite(value) ? value : (double)NAN, known ? low : (double)NAN,
                             known ? high : (double)NAN, 0.95);
}

static void add_model_table(struct lab_analysis_part *part, const struct lab_crossover_feed *feed,
                            struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "models", "By model, of a sample", model_columns, arena);
    for (int m = 0; m < feed->model_count; m++) {
        const struct lab_crossover_model *model = &feed->models[m];
        LAB_ROW(table, arena, lab_cell_text(model->name), lab_cell_figure(model->complexity / 1e9),
                figure(model->compute_s, model->compute_low, model->compute_high),
                figure(model->copy_s, model->copy_low, model->copy_high),
                lab_cell_figure(model->compute_s > 0 ? model->compute_s : (double)NAN),
                lab_cell_figure(model->copy_s > 0 ? model->copy_s : (double)NAN),
                figure(model->ratio > 0 ? model->ratio : (double)NAN, model->low, model->high),
                lab_cell_text(lab_crossover_bound_name(model->bound)), lab_cell_figure(model->runs),
                lab_cell_text(lab_crossover_source_name(model->source)), lab_cell_figure(model->p));
    }
}

static void add_part(struct lab_analysis_result *result, const struct lab_crossover_feed *feed,
                     struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, feed->name, arena);
    struct lab_doc_cell turn = figure(feed->crossover.at / 1e9, feed->crossover.interval.low / 1e9,
                                      feed->crossover.interval.high / 1e9);
    int known = 0;
    for (int m = 0; m < feed->model_count; m++)
        known += feed->models[m].bound != LAB_CROSSOVER_UNKNOWN;
    turn.text = "GFLOP a sample";
    LAB_FIGURES(part, turn, lab_cell_text(feed->below < 0 ? NULL : feed->models[feed->below].name),
                lab_cell_text(feed->above < 0 ? NULL : feed->models[feed->above].name),
                lab_cell_figure(known));
    part->answer = lab_crossover_feed_answer(feed, arena);
    add_model_table(part, feed, arena);
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

static void add_notes(struct lab_analysis_result *result, const struct lab_analysis_input *input,
                      const struct lab_crossover_feed *data_paths, int count,
                      struct lab_arena *arena) {
    for (int s = 0; s < input->study_count; s++) {
        const struct lab_study_table *study = &input->studies[s];
        lab_study_add_notes(study, lab_analysis_prefix(input, study, arena), &result->notes, arena);
    }
    if (any_source(data_paths, count, LAB_CROSSOVER_TIMINGS))
        lab_analysis_note(&result->notes, arena,
                          "Where a run left no spans, copies are taken from its bandwidths, one "
                          "direction after the other: where both overlap, they take less.");
    if (count > 0)
        lab_analysis_note(&result->notes, arena,
                          "Times are busy times: of compute, and of copies in either direction, "
                          "those at once counted once. Between two models both are taken to lie "
                          "on straight lines; the turn is where those cross, with its interval at "
                          "95 %% over the runs. What happens between the models is no part of it: "
                          "a model in between would tell.");
}

static int crossover_run(const void *config, const struct lab_analysis_input *input,
                         struct lab_arena *arena, struct lab_analysis_result *ret_result,
                         struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("feeds", figure_columns), ret_result, err) < 0)
        return -1;
    struct lab_crossover_feed *all = NULL;
    int count = 0;
    for (int s = 0; s < input->study_count; s++) {
        const struct lab_study_table *study = &input->studies[s];
        struct lab_crossover_feed *data_paths;
        int own = lab_crossover_data_paths(study, lab_analysis_prefix(input, study, arena), arena,
                                           &data_paths);
        for (int i = 0; i < own; i++) {
            LAB_ADD(all, count, arena) = data_paths[i];
            add_part(ret_result, &data_paths[i], arena);
        }
    }
    ret_result->answer = lab_crossover_answer(all, count, arena);
    lab_crossover_add_chart(ret_result, all, count, arena);
    add_notes(ret_result, input, all, count, arena);
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
