/* comparison.c: one device and several, batch by batch, with what to do; and what was published
 * of such models. */
#include "analysis/training/training.h"

#include "analysis/analysis_published.h"
#include "analysis/speedup/gang.h"
#include "base/str.h"

#include <math.h>

enum {
    MODEL,
    BATCH,
    SCALING,
    DEVICES,
    ONE,
    MANY,
    SPEEDUP,
    SPEEDUP_TEXT,
    EFFICIENCY,
    SHOULD,
    COLUMNS
};

static const struct lab_doc_column comparison_columns[COLUMNS] = {
    [MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [BATCH] = {"batch_size", "Batch", LAB_UNIT_COUNT},
    [SCALING] = {"scaling", "Scaling", LAB_UNIT_TEXT},
    [DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [ONE] = {"one_per_s", "One", LAB_UNIT_COUNT},
    [MANY] = {"many_per_s", "Several", LAB_UNIT_COUNT},
    [SPEEDUP] = {"speedup", NULL, LAB_UNIT_RATIO, NULL, true},
    [SPEEDUP_TEXT] = {NULL, "Speed-up, 95 %", LAB_UNIT_FIGURE},
    [EFFICIENCY] = {"efficiency", "Efficiency", LAB_UNIT_SHARE},
    [SHOULD] = {"recommendation", "Use", LAB_UNIT_TEXT},
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

struct lab_doc_table training_comparison_table(const struct training_part *part) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)part->test_count * COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < part->test_count; i++) {
        struct lab_doc_cell *cell = &cells[(ptrdiff_t)i * COLUMNS];
        const struct training_test *test = &part->tests[i];
        const struct lab_study_ratio *ratio = &test->measured;
        cell[MODEL] = lab_cell_text(test->row->model);
        cell[BATCH] = lab_cell_figure(test->row->work.batch);
        cell[SCALING] = training_scaling_cell(test->row);
        cell[DEVICES] = lab_cell_figure(test->row->work.devices);
        cell[ONE] = lab_cell_figure(rate_of(test->base));
        cell[MANY] = lab_cell_figure(rate_of(test->row));
        cell[SPEEDUP] = (struct lab_doc_cell){.value = ratio->ratio,
                                              .low = ratio->low,
                                              .high = ratio->high,
                                              .confidence = ratio->confidence};
        cell[SPEEDUP_TEXT] = lab_cell_text(
            isnan(ratio->low) ? lab_arena_printf(part->arena, "%.2f×", ratio->ratio)
                              : lab_arena_printf(part->arena, "%.2f× [%.2f, %.2f]", ratio->ratio,
                                                 ratio->low, ratio->high));
        cell[EFFICIENCY] = lab_cell_figure(ratio->ratio / test->row->work.devices);
        cell[SHOULD] = lab_cell_text(recommendation(ratio));
    }
    return (struct lab_doc_table){.key = "comparison",
                                  .title = "One device and several, samples a second",
                                  .columns = lab_analysis_shown(comparison_columns, COLUMNS, cells,
                                                                part->test_count, part->arena),
                                  .column_count = COLUMNS,
                                  .cells = cells,
                                  .row_count = part->test_count};
}

/* --- published --- */

enum { P_MODEL, P_BATCH, P_ONE, P_TWO, P_SPEEDUP, P_HERE, P_COLUMNS };

static const struct lab_doc_column published_columns[P_COLUMNS] = {
    [P_MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [P_BATCH] = {"batch_size", "Batch", LAB_UNIT_COUNT},
    [P_ONE] = {"one_per_s", "One", LAB_UNIT_COUNT},
    [P_TWO] = {"two_per_s", "Two", LAB_UNIT_COUNT},
    [P_SPEEDUP] = {"speedup", "Speed-up", LAB_UNIT_RATIO},
    [P_HERE] = {"here", "Here", LAB_UNIT_RATIO},
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

struct lab_doc_table training_published_table(const struct training_part *part) {
    int count = 0;
    for (const struct lab_published *row = lab_published; row->model; row++)
        count += has_model(part, row->model);
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)count * P_COLUMNS + 1, sizeof *cells);
    struct lab_doc_cell *cell = cells;
    for (const struct lab_published *row = lab_published; row->model; row++) {
        if (!has_model(part, row->model))
            continue;
        cell[P_MODEL] = lab_cell_text(row->model);
        cell[P_BATCH] = lab_cell_figure(row->batch);
        cell[P_ONE] = lab_cell_figure(row->one);
        cell[P_TWO] = lab_cell_figure(row->two);
        cell[P_SPEEDUP] = lab_cell_figure(row->two / row->one);
        cell[P_HERE] = lab_cell_figure(here(part, row));
        cell += P_COLUMNS;
    }
    return (struct lab_doc_table){
        .key = "published",
        .title = "Published for models of these names, on two RTX 4070 Ti SUPER with TensorFlow",
        .columns = published_columns,
        .column_count = P_COLUMNS,
        .cells = cells,
        .row_count = count};
}
