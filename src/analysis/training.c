/*
 * training.c: `gpulab analyze training`: when a second device pays, as a law of a step's time that
 * was fitted to a study's runs, with what it says of batches and models that weren't run, and how
 * often it was right about points that it hadn't seen.
 */
#include "analysis/training/training.h"

#include "analysis/analysis_published.h"
#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training_words.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum { POINTS, SPEEDUPS, ERROR, WITHIN, FIGURES };

static const struct lab_doc_column figure_columns[FIGURES] = {
    [POINTS] = {"points", "Points", LAB_UNIT_COUNT, "Points"},
    [SPEEDUPS] = {"speedups", "Speed-ups", LAB_UNIT_COUNT},
    [ERROR] = {"leave_one_out_error", "Prediction error", LAB_UNIT_SHARE, "Error"},
    [WITHIN] = {"within_interval", "In the interval", LAB_UNIT_SHARE, "Within"},
};

static const struct lab_doc_cell *make_figures(const struct training_part *part) {
    struct lab_doc_cell *cells = lab_arena_alloc(part->arena, FIGURES, sizeof *cells);
    const struct lab_training *training = &part->training;
    cells[POINTS] = lab_cell_figure(training->row_count);
    cells[SPEEDUPS] = lab_cell_figure(training->pair_count);
    cells[ERROR] = lab_cell_figure(training->law_count > 0 ? training->laws[0].error : (double)NAN);
    cells[WITHIN] = lab_cell_figure(
        part->told_count > 0 ? (double)part->within_count / part->told_count : (double)NAN);
    cells[POINTS].text = "of model, batch and devices";
    cells[SPEEDUPS].text = "of several devices over one";
    cells[ERROR].text = "of speed-ups predicted from all other points";
    if (part->told_count > 0)
        cells[WITHIN].text =
            lab_arena_printf(part->arena, "%d of %d; %.0f %% is what it claims", part->within_count,
                             part->told_count, 100 * LAB_TRAINING_CONFIDENCE);
    return cells;
}

/* "… medium was said to have 258 K parameters and has 54403, …" */
static const char *sizes_words(const struct training_part *part) {
    const char *words = NULL;
    const struct lab_training_row **rows = training_order(part);
    for (int i = 0; i < part->training.row_count; i++) {
        const char *claimed = lab_published_size(rows[i]->model);
        if (!claimed || (i > 0 && lab_str_equal(rows[i]->model, rows[i - 1]->model)))
            continue;
        words = lab_arena_printf(part->arena,
                                 "%s%s was said to have %s parameters, and its layers have %.0f",
                                 words ? lab_arena_printf(part->arena, "%s; ", words) : "",
                                 rows[i]->model, claimed, rows[i]->work.parameters);
    }
    return words ? lab_arena_printf(part->arena,
                                    "Sizes that were published: %s. Here true counts stand.", words)
                 : NULL;
}

static const char *const *make_notes(const struct training_part *part) {
    enum { NOTES_MAX = 6 };
    const char **notes = lab_arena_alloc(part->arena, NOTES_MAX + 1, sizeof *notes);
    const struct lab_training *training = &part->training;
    int count = 0;
    if (training->law_count > 0)
        notes[count++] = training_law_words(part);
    const char *sizes = sizes_words(part);
    if (sizes)
        notes[count++] = sizes;
    if (training->law_count == 0)
        notes[count++] = lab_arena_printf(part->arena, "There is no law: %s.", training->lacks);
    if (training->law_count > 0 && training->model_count < 2)
        notes[count++] = "A single model was run: how a step's time follows the size of a model is "
                         "a guess.";
    else if (training->law_count > 0 && training->model_count == 2)
        notes[count++] = "Two models were run: what is said of others hasn't been tested on any. "
                         "A third model would do that.";
    return notes;
}

static struct lab_analysis_part make_part(const struct training_part *part, const char *answer) {
    enum { TABLES = 6 };
    struct lab_doc_table *tables = lab_arena_alloc(part->arena, TABLES, sizeof *tables);
    int count = 0;
    if (part->test_count > 0)
        tables[count++] = training_comparison_table(part);
    tables[count++] = training_timeline_table(part);
    if (part->training.law_count > 0)
        tables[count++] = training_test_table(part);
    if (part->test_count > 0)
        tables[count++] = training_even_table(part);
    if (part->training.law_count > 0)
        tables[count++] = training_law_table(part);
    tables[count] = training_published_table(part);
    count += tables[count].row_count > 0;
    return (struct lab_analysis_part){.name = part->name,
                                      .answer = answer,
                                      .cells = make_figures(part),
                                      .tables = tables,
                                      .table_count = count,
                                      .notes = make_notes(part)};
}

/* What was measured first, then what follows from it; of the runs of its set alone. */
static const char *make_answer(const struct lab_study_table *study,
                               const struct training_part *part) {
    struct lab_gangs gangs;
    struct lab_study_table own = lab_training_set_study(study, part->set, part->arena);
    lab_gangs_make(&own, part->arena, &gangs);
    gangs.even_count = 0; /* the law's is better: it knows what a step is made of */
    const char *measured = lab_gangs_answer(&gangs, part->arena);
    const char *even = training_even_words(part);
    size_t length = strlen(measured);
    if (!even || length == 0 || part->test_count == 0)
        return measured;
    return lab_arena_printf(part->arena, "%.*s; %s.%s", (int)length - 1, measured, even,
                            part->simulated ? " " LAB_TRAINING_SIMULATED_SUMS : "");
}

/* The largest speed-up that was measured; 0 = none was. */
static double best_speedup(const struct training_part *part) {
    double best = 0;
    for (int i = 0; i < part->test_count; i++)
        best = fmax(best, part->tests[i].measured.ratio);
    return best;
}

struct whole {
    struct lab_analysis_part *parts;
    struct lab_chart *charts;
    int part_count, chart_count;
    const char *answer;
};

static void add_study(const struct lab_study_table *study, struct lab_arena *arena,
                      struct whole *whole) {
    struct lab_training_set *sets;
    int count = lab_training_sets(study, arena, &sets);
    bool is_first = !whole->answer;
    double best = -1;
    for (int i = 0; i < count; i++) {
        const char *what = sets[i].what[0] ? lab_arena_printf(arena, ", %s", sets[i].what) : "";
        struct training_part part = {.name = lab_arena_printf(arena, "%s%s", study->name, what),
                                     .simulated = study->simulated,
                                     .arena = arena};
        training_part_make(&sets[i], &part);
        const char *suffix =
            whole->part_count ? lab_arena_printf(arena, "_%d", whole->part_count + 1) : "";
        const char *answer = make_answer(study, &part);
        if (is_first && best_speedup(&part) > best) {
            best = best_speedup(&part);
            whole->answer = sets[i].what[0]
                                ? lab_arena_printf(arena, "%s, where several devices do best: %s",
                                                   sets[i].what, answer)
                                : answer;
        }
        whole->chart_count += training_charts(&part, suffix, &whole->charts[whole->chart_count]);
        whole->parts[whole->part_count++] = make_part(&part, answer);
    }
}

static int training_run(const void *config, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    (void)config;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    size_t room = 1;
    bool simulated = false;
    for (int i = 0; i < input->study_count; i++) {
        room += (size_t)input->studies[i].run_count;
        simulated |= input->studies[i].simulated;
    }
    struct whole whole = {.parts = lab_arena_alloc(arena, room, sizeof *whole.parts),
                          .charts =
                              lab_arena_alloc(arena, TRAINING_CHARTS * room, sizeof *whole.charts)};
    for (int i = 0; i < input->study_count; i++)
        add_study(&input->studies[i], arena, &whole);
    *ret_result = (struct lab_analysis_result){
        .answer = whole.answer ? whole.answer
                               : "No run trains a model: there is nothing to fit a law to.",
        .lacks = !whole.answer,
        .part_key = "sets",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = whole.parts,
        .part_count = whole.part_count,
        .simulated = simulated,
        .notes = lab_study_notes(&input->studies[0], 0, arena),
        .charts = whole.charts,
        .chart_count = whole.chart_count};
    return 0;
}

#define INTEREST 95

static int training_interest(const struct lab_study_table *study) {
    return lab_study_trains(study) && !lab_study_has_phases(study) ? INTEREST : 0;
}

static const struct lab_option training_options[] = {{NULL}};

const struct lab_analysis lab_analysis_training = {
    .name = "training",
    .summary = "when a second device pays for training, by a law of a step's time",
    .description =
        "Fits what a step takes to a study that trained models on one device and on several: "
        "launches, parameters, arithmetic, and for several devices the rounds and bytes of their "
        "sums as far as the backward pass doesn't hide them; no cost is below 0. Each point is "
        "predicted from all the others; how wrong these predictions are is how wide the intervals "
        "of new ones become. Tells where several devices begin to pay, over batches and over "
        "sizes of models, and what a step is made of. 'gpulab advise --workload mlp' asks the "
        "same law about a model that wasn't run.",
    .options = training_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = training_interest,
    .run = training_run,
};
