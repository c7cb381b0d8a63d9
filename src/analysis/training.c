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

static const struct lab_doc_column figure_columns[] = {
    {"points", "Points", LAB_UNIT_COUNT, "Points"},
    {"speedups", "Speed-ups", LAB_UNIT_COUNT},
    {"leave_one_out_error", "Prediction error", LAB_UNIT_SHARE, "Error"},
    {"within_interval", "In the interval", LAB_UNIT_SHARE, "Within"},
};

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

static void add_notes(const char *const **notes, const struct training_part *part) {
    const struct lab_training *training = &part->training;
    struct lab_arena *arena = part->arena;
    const char *sizes = sizes_words(part);
    if (training->law_count > 0)
        lab_analysis_note(notes, arena, "%s", training_law_words(part));
    if (sizes)
        lab_analysis_note(notes, arena, "%s", sizes);
    if (training->law_count == 0)
        lab_analysis_note(notes, arena, "There is no law: %s.", training->lacks);
    else if (training->model_count < 2)
        lab_analysis_note(notes, arena,
                          "A single model was run: how a step's time follows the size of a model "
                          "is a guess.");
    else if (training->model_count == 2)
        lab_analysis_note(notes, arena,
                          "Two models were run: what is said of others hasn't been tested on any. "
                          "A third model would do that.");
}

static void add_part(struct lab_analysis_result *result, const struct training_part *part,
                     const char *answer) {
    struct lab_analysis_part *to = lab_analysis_add_part(result, part->name, part->arena);
    const struct lab_training *training = &part->training;
    int told = part->told_count, within = part->within_count;
    to->answer = answer;
    LAB_FIGURES(to, lab_cell_remark(training->row_count, "of model, batch and devices"),
                lab_cell_remark(training->pair_count, "of several devices over one"),
                lab_cell_remark(training->law_count > 0 ? training->laws[0].error : (double)NAN,
                                "of speed-ups predicted from all other points"),
                told == 0 ? lab_cell_figure(NAN)
                          : lab_cell_remark(
                                (double)within / told,
                                lab_arena_printf(part->arena, "%d of %d; %.0f %% is what it claims",
                                                 within, told, 100 * LAB_TRAINING_CONFIDENCE)));
    if (part->test_count > 0)
        training_add_comparison_table(to, part);
    training_add_timeline_table(to, part);
    if (training->law_count > 0)
        training_add_test_table(to, part);
    if (part->test_count > 0)
        training_add_even_table(to, part);
    if (training->law_count > 0)
        training_add_law_table(to, part);
    training_add_published_table(to, part);
    lab_analysis_drop_empty(to);
    add_notes(&to->notes, part);
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

static void add_study(const struct lab_study_table *study, struct lab_arena *arena,
                      struct lab_analysis_result *result) {
    struct lab_training_set *sets;
    int count = lab_training_sets(study, arena, &sets);
    bool is_first = !result->answer;
    double best = -1;
    for (int i = 0; i < count; i++) {
        const char *what = sets[i].what[0] ? lab_arena_printf(arena, ", %s", sets[i].what) : "";
        struct training_part part = {.name = lab_arena_printf(arena, "%s%s", study->name, what),
                                     .simulated = study->simulated,
                                     .arena = arena};
        training_part_make(&sets[i], &part);
        const char *answer = make_answer(study, &part);
        if (is_first && best_speedup(&part) > best) {
            best = best_speedup(&part);
            result->answer = sets[i].what[0]
                                 ? lab_arena_printf(arena, "%s, where several devices do best: %s",
                                                    sets[i].what, answer)
                                 : answer;
        }
        training_add_charts(result, &part, lab_analysis_suffix(result->part_count, arena));
        add_part(result, &part, answer);
    }
}

static int training_run(const void *config, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("sets", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++)
        add_study(&input->studies[i], arena, ret_result);
    ret_result->lacks = !ret_result->answer;
    if (ret_result->lacks)
        ret_result->answer = "No run trains a model: there is nothing to fit a law to.";
    lab_study_add_notes(&input->studies[0], "", &ret_result->notes, arena);
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
