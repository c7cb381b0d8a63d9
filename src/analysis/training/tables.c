/* tables.c: rows of `training`: what a step is made of, predicted against measured, the law,
 * break-even. */
#include "analysis/training/analysis_training_words.h"
#include "analysis/training/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- order --- */

static int compare_rows(const void *a, const void *b) {
    const struct lab_training_work *x = &(*(const struct lab_training_row *const *)a)->work;
    const struct lab_training_work *y = &(*(const struct lab_training_row *const *)b)->work;
    if (x->parameters != y->parameters)
        return x->parameters < y->parameters ? -1 : 1;
    if (x->weak != y->weak)
        return x->weak ? 1 : -1;
    if (x->batch != y->batch)
        return x->batch < y->batch ? -1 : 1;
    return x->devices - y->devices;
}

const struct lab_training_row **training_order(const struct training_part *part) {
    int count = part->training.row_count;
    const struct lab_training_row **order =
        lab_arena_alloc(part->arena, (size_t)count + 1, sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = &part->training.rows[i];
    qsort(order, (size_t)count, sizeof *order, compare_rows);
    return order;
}

static int compare_tests(const void *a, const void *b) {
    const struct training_test *x = a, *y = b;
    return compare_rows(&x->row, &y->row);
}

void training_part_make(const struct lab_training_set *set, struct training_part *part) {
    part->set = set;
    lab_training_fit(set->rows, set->count, &part->training);
    part->tests = lab_arena_alloc(part->arena, (size_t)set->count + 1, sizeof *part->tests);
    for (int i = 0; i < set->count; i++) {
        const struct lab_training_row *row = &set->rows[i];
        const struct lab_training_row *base = lab_training_base(&part->training, row);
        if (row->work.devices == 1 || !base)
            continue;
        struct training_test *test = &part->tests[part->test_count++];
        *test = (struct training_test){
            .row = row,
            .base = base,
            .measured = lab_study_compare(base->point, row->point, LAB_STUDY_RATE),
            .left_out = lab_training_leave_out(&part->training, row)};
        double speedup = lab_training_measured(base, row);
        test->told = !isnan(test->left_out.low);
        test->within =
            test->told && speedup >= test->left_out.low && speedup <= test->left_out.high;
        part->told_count += test->told;
        part->within_count += test->within;
    }
    qsort(part->tests, (size_t)part->test_count, sizeof *part->tests, compare_tests);
}

struct lab_doc_cell training_scaling_cell(const struct lab_training_row *row) {
    return lab_cell_text(row->work.weak ? "weak" : NULL);
}

/* --- the parts of a step --- */

static const struct lab_doc_column timeline_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"batch_size", "Batch", LAB_UNIT_COUNT},
    {"scaling", "Scaling", LAB_UNIT_TEXT},
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"step_ms", "Step", LAB_UNIT_TIME},
    {"forward_ms", "Forward", LAB_UNIT_TIME},
    {"backward_ms", "Backward", LAB_UNIT_TIME},
    {"gradient_ms", "Forward and backward", LAB_UNIT_TIME},
    {"communication_ms", "All-reduce", LAB_UNIT_TIME},
    {"exposed_ms", "Exposed", LAB_UNIT_TIME},
    {"update_ms", "Update", LAB_UNIT_TIME},
};

static struct lab_doc_cell part_of(const struct lab_training_row *row, size_t offset) {
    return lab_cell_figure(lab_study_point_figure(row->point, offset, 1e-3).value);
}

void training_add_timeline_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table =
        LAB_TABLE(to, "timeline", "What a step is made of", timeline_columns, part->arena);
    int count = part->training.row_count;
    const struct lab_training_row **rows = training_order(part);
    for (int i = 0; i < count; i++) {
        const struct lab_training_work *work = &rows[i]->work;
        LAB_ROW(table, part->arena, lab_cell_text(rows[i]->model), lab_cell_figure(work->batch),
                training_scaling_cell(rows[i]), lab_cell_figure(work->devices),
                lab_cell_figure(rows[i]->time_s),
                part_of(rows[i], offsetof(struct lab_result, forward_ms)),
                part_of(rows[i], offsetof(struct lab_result, backward_ms)),
                part_of(rows[i], offsetof(struct lab_result, gradient_ms)),
                part_of(rows[i], offsetof(struct lab_result, communication_time_ms)),
                part_of(rows[i], offsetof(struct lab_result, exposed_communication_ms)),
                part_of(rows[i], offsetof(struct lab_result, update_ms)));
    }
    lab_analysis_hide_columns(table, part->arena);
}

/* --- predicted against measured --- */

static const struct lab_doc_column test_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"batch_size", "Batch", LAB_UNIT_COUNT},
    {"scaling", "Scaling", LAB_UNIT_TEXT},
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"measured", NULL, LAB_UNIT_RATIO, NULL, true},
    {"predicted", NULL, LAB_UNIT_RATIO, NULL, true},
    {NULL, "Measured, 95 %", LAB_UNIT_FIGURE},
    {NULL, "Predicted, 90 %", LAB_UNIT_FIGURE},
    {"within", "Within", LAB_UNIT_TEXT},
};

/* In full where two of them are to be held against each other. */
static const char *times_words(double value, double low, double high, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return isnan(low) ? lab_arena_printf(arena, "%.3f×", value)
                      : lab_arena_printf(arena, "%.3f× [%.3f, %.3f]", value, low, high);
}

void training_add_test_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table =
        LAB_TABLE(to, "predicted", "Speed-ups as predicted from all other points, and as measured",
                  test_columns, part->arena);
    for (int i = 0; i < part->test_count; i++) {
        const struct training_test *test = &part->tests[i];
        const struct lab_study_ratio *measured = &test->measured;
        LAB_ROW(
            table, part->arena, lab_cell_text(test->row->model),
            lab_cell_figure(test->row->work.batch), training_scaling_cell(test->row),
            lab_cell_figure(test->row->work.devices),
            lab_cell_interval(measured->ratio, measured->low, measured->high, measured->confidence),
            lab_cell_interval(test->left_out.value, test->left_out.low, test->left_out.high,
                              LAB_TRAINING_CONFIDENCE),
            lab_cell_text(times_words(measured->ratio, measured->low, measured->high, part->arena)),
            lab_cell_text(times_words(test->left_out.value, test->left_out.low, test->left_out.high,
                                      part->arena)),
            lab_cell_text(!test->told    ? "–"
                          : test->within ? "yes"
                                         : "no"));
    }
    lab_analysis_hide_columns(table, part->arena);
}

/* --- the law --- */

static const struct lab_doc_column law_columns[] = {
    {"term", "Term", LAB_UNIT_TEXT},
    {NULL, "Cost", LAB_UNIT_TEXT},
    {"seconds", NULL, LAB_UNIT_NUMBER, NULL, true},
};

static const char *const term_names[LAB_TRAINING_TERMS] = {
    [LAB_TRAINING_STEP] = "each step",
    [LAB_TRAINING_LAYER] = "each layer",
    [LAB_TRAINING_PARAMETER] = "each parameter",
    [LAB_TRAINING_COMPUTE] = "each parameter and row",
    [LAB_TRAINING_ROUND] = "each round of a sum",
    [LAB_TRAINING_ROUND_LAYER] = "each layer's round of a sum",
    [LAB_TRAINING_BYTE] = "each byte that is sent",
    [LAB_TRAINING_HINDRANCE] = "the same, beside others",
};

void training_add_law_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table =
        LAB_TABLE(to, "law", "The law, fitted to all points", law_columns, part->arena);
    const struct lab_training_law *law = &part->training.laws[0];
    size_t column = 0;
    for (int t = 0; t < LAB_TRAINING_TERMS; t++) {
        const char *words = training_term_words(law, (enum lab_training_term)t, part->arena);
        if (!words)
            continue;
        struct lab_effect cost = {law->fit.coefficients[column],
                                  lab_fit_interval(&law->fit, column, 0.95)};
        column++;
        LAB_ROW(table, part->arena, lab_cell_text(term_names[t]), lab_cell_text(words),
                lab_analysis_effect(cost));
    }
}

/* --- break-even --- */

static const struct lab_doc_column even_columns[] = {
    {"devices", "Devices", LAB_UNIT_COUNT},
    {"over", "Over", LAB_UNIT_TEXT},
    {"where", "For", LAB_UNIT_TEXT},
    {"answer", "They pay", LAB_UNIT_TEXT},
    {"break_even", NULL, LAB_UNIT_NUMBER, NULL, true},
};

static void add_even(struct lab_doc_table *table, const struct training_part *part,
                     const struct lab_training_work *work, bool batch, const char *where) {
    struct lab_training_break_even even =
        batch ? lab_training_break_even_batch(&part->training, work)
              : lab_training_break_even_parameters(&part->training, work);
    LAB_ROW(
        table, part->arena, lab_cell_figure(work->devices),
        lab_cell_text(batch ? "batch" : "parameters"), lab_cell_text(where),
        lab_cell_text(lab_training_break_even_figure(&part->training, &even, batch, part->arena)),
        lab_cell_interval(even.at, isfinite(even.low) ? even.low : (double)NAN,
                          isfinite(even.high) ? even.high : (double)NAN, LAB_TRAINING_CONFIDENCE));
}

static bool is_first(const struct lab_training_row **rows, int at, bool batch) {
    for (int i = 0; i < at; i++)
        if (rows[i]->work.devices == rows[at]->work.devices &&
            rows[i]->work.weak == rows[at]->work.weak &&
            (batch ? rows[i]->work.batch == rows[at]->work.batch
                   : strcmp(rows[i]->model, rows[at]->model) == 0))
            return false;
    return true;
}

void training_add_even_table(struct lab_analysis_part *to, const struct training_part *part) {
    struct lab_doc_table *table = LAB_TABLE(to, "break_even", "Where several devices begin to pay",
                                            even_columns, part->arena);
    const struct lab_training_row **rows = training_order(part);
    int count = part->training.row_count;
    for (int i = 0; i < count; i++) {
        const struct lab_training_work *work = &rows[i]->work;
        if (work->devices > 1 && is_first(rows, i, false))
            add_even(table, part, work, true,
                     work->weak ? lab_arena_printf(part->arena, "%s, weak", rows[i]->model)
                                : rows[i]->model);
    }
    for (int i = 0; i < count && part->training.model_count > 1; i++) {
        const struct lab_training_work *work = &rows[i]->work;
        if (work->devices > 1 && is_first(rows, i, true))
            add_even(table, part, work, false,
                     lab_arena_printf(part->arena, "batch %.0f%s", work->batch,
                                      work->weak ? " a device" : ""));
    }
}
