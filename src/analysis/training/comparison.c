/* comparison.c: one device and several, batch by batch, with what to do; and what was published
 * of such models. */
#include "analysis/training/training.h"

#include "analysis/analysis_published.h"
#include "analysis/speedup/gang.h"
#include "base/str.h"

#include <math.h>

static const struct lab_doc_column comparison_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"batch_size", "Batch", LAB_UNIT_COUNT},
    {"scaling", "Scaling", LAB_UNIT_TEXT},
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"one_per_s", "One", LAB_UNIT_COUNT},
    {"many_per_s", "Several", LAB_UNIT_COUNT},
    {"speedup", NULL, LAB_UNIT_RATIO, NULL, true},
    {NULL, "Speed-up, 95 %", LAB_UNIT_FIGURE},
    {"efficiency", "Efficiency", LAB_UNIT_SHARE},
    {"recommendation", "Use", LAB_UNIT_TEXT},
};

static const char *recommendation(const struct lab_study_ratio *ratio) {
    switch (lab_speedup_grade(ratio)) {
    case LAB_SPEEDUP_PAYS:
        return "several";
    case LAB_SPEEDUP_MAYBE:
        return "either";
    case LAB_SPEEDUP_STAY:
        return "one";
    case LAB_SPEEDUP_AMBIGUOUS:
        return "unclear";
    case LAB_SPEEDUP_APART:
    case LAB_SPEEDUP_UNKNOWN:
        break;
    }
    return "unknown";
}

static double rate_of(const struct lab_training_row *row) {
    return lab_study_estimate(row->point->rates, row->point->count).value;
}

void training_add_comparison_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table =
        LAB_TABLE(to, "comparison", "One device and several, samples a second", comparison_columns,
                  part->arena);
    for (int i = 0; i < part->test_count; i++) {
        const struct training_test *test = &part->tests[i];
        const struct lab_study_ratio *ratio = &test->measured;
        LAB_ROW(table, part->arena, lab_cell_text(test->row->model),
                lab_cell_figure(test->row->work.batch), training_scaling_cell(test->row),
                lab_cell_figure(test->row->work.devices), lab_cell_figure(rate_of(test->base)),
                lab_cell_figure(rate_of(test->row)),
                lab_cell_interval(ratio->ratio, ratio->low, ratio->high, ratio->confidence),
                lab_cell_text(lab_words_times(ratio->ratio, ratio->low, ratio->high, part->arena)),
                lab_cell_figure(ratio->ratio / test->row->work.devices),
                lab_cell_text(recommendation(ratio)));
    }
    lab_analysis_hide_columns(table, part->arena);
}

/* --- published --- */

static const struct lab_doc_column published_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},       {"batch_size", "Batch", LAB_UNIT_COUNT},
    {"one_per_s", "One", LAB_UNIT_COUNT},    {"two_per_s", "Two", LAB_UNIT_COUNT},
    {"speedup", "Speed-up", LAB_UNIT_RATIO}, {"here", "Here", LAB_UNIT_RATIO},
};

static bool has_model(const struct training_part *part, const char *model) {
    for (int i = 0; i < part->test_count; i++)
        if (lab_str_equal(part->tests[i].row->model, model))
            return true;
    return false;
}

static double here(const struct training_part *part, const struct lab_published *row) {
    for (int i = 0; i < part->test_count; i++) {
        const struct lab_training_row *ours = part->tests[i].row;
        if (lab_str_equal(ours->model, row->model) && ours->work.batch == row->batch &&
            ours->work.devices == 2 && !ours->work.weak)
            return part->tests[i].measured.ratio;
    }
    return NAN;
}

void training_add_published_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table =
        LAB_TABLE(to, "published",
                  "Published for models of these names, on two RTX 4070 Ti SUPER with TensorFlow",
                  published_columns, part->arena);
    for (const struct lab_published *row = lab_published; row->model; row++) {
        if (!has_model(part, row->model))
            continue;
        LAB_ROW(table, part->arena, lab_cell_text(row->model), lab_cell_figure(row->batch),
                lab_cell_figure(row->one), lab_cell_figure(row->two),
                lab_cell_figure(row->two / row->one), lab_cell_figure(here(part, row)));
    }
}
