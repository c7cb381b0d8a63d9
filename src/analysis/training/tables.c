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

enum {
    MODEL,
    BATCH,
    SCALING,
    DEVICES,
    STEP,
    FORWARD,
    BACKWARD,
    GRADIENT, /* instead of the two, of compiled models */
    SUMS,
    EXPOSED,
    UPDATE,
    PARTS
};

static const struct lab_doc_column timeline_columns[PARTS] = {
    [MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [BATCH] = {"batch_size", "Batch", LAB_UNIT_COUNT},
    [SCALING] = {"scaling", "Scaling", LAB_UNIT_TEXT},
    [DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [STEP] = {"step_ms", "Step", LAB_UNIT_TIME},
    [FORWARD] = {"forward_ms", "Forward", LAB_UNIT_TIME},
    [BACKWARD] = {"backward_ms", "Backward", LAB_UNIT_TIME},
    [GRADIENT] = {"gradient_ms", "Forward and backward", LAB_UNIT_TIME},
    [SUMS] = {"communication_ms", "All-reduce", LAB_UNIT_TIME},
    [EXPOSED] = {"exposed_ms", "Exposed", LAB_UNIT_TIME},
    [UPDATE] = {"update_ms", "Update", LAB_UNIT_TIME},
};

static struct lab_doc_cell part_of(const struct lab_training_row *row, size_t offset) {
    return lab_cell_figure(lab_study_point_figure(row->point, offset, 1e-3).value);
}

struct lab_doc_table training_timeline_table(const struct training_part *part) {
    int count = part->training.row_count;
    const struct lab_training_row **rows = training_order(part);
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)count * PARTS + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        struct lab_doc_cell *cell = &cells[(ptrdiff_t)i * PARTS];
        const struct lab_training_work *work = &rows[i]->work;
        cell[MODEL] = lab_cell_text(rows[i]->model);
        cell[BATCH] = lab_cell_figure(work->batch);
        cell[SCALING] = training_scaling_cell(rows[i]);
        cell[DEVICES] = lab_cell_figure(work->devices);
        cell[STEP] = lab_cell_figure(rows[i]->time_s);
        cell[FORWARD] = part_of(rows[i], offsetof(struct lab_result, forward_ms));
        cell[BACKWARD] = part_of(rows[i], offsetof(struct lab_result, backward_ms));
        cell[GRADIENT] = part_of(rows[i], offsetof(struct lab_result, gradient_ms));
        cell[SUMS] = part_of(rows[i], offsetof(struct lab_result, communication_time_ms));
        cell[EXPOSED] = part_of(rows[i], offsetof(struct lab_result, exposed_communication_ms));
        cell[UPDATE] = part_of(rows[i], offsetof(struct lab_result, update_ms));
    }
    return (struct lab_doc_table){
        .key = "timeline",
        .title = "What a step is made of",
        .columns = lab_analysis_shown(timeline_columns, PARTS, cells, count, part->arena),
        .column_count = PARTS,
        .cells = cells,
        .row_count = count};
}

/* --- predicted against measured --- */

enum {
    T_MODEL,
    T_BATCH,
    T_SCALING,
    T_DEVICES,
    T_MEASURED,
    T_PREDICTED,
    T_MEASURED_TEXT,
    T_PREDICTED_TEXT,
    T_WITHIN,
    TESTS
};

static const struct lab_doc_column test_columns[TESTS] = {
    [T_MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [T_BATCH] = {"batch_size", "Batch", LAB_UNIT_COUNT},
    [T_SCALING] = {"scaling", "Scaling", LAB_UNIT_TEXT},
    [T_DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [T_MEASURED] = {"measured", NULL, LAB_UNIT_RATIO, NULL, true},
    [T_PREDICTED] = {"predicted", NULL, LAB_UNIT_RATIO, NULL, true},
    [T_MEASURED_TEXT] = {NULL, "Measured, 95 %", LAB_UNIT_FIGURE},
    [T_PREDICTED_TEXT] = {NULL, "Predicted, 90 %", LAB_UNIT_FIGURE},
    [T_WITHIN] = {"within", "Within", LAB_UNIT_TEXT},
};

/* In full where two of them are to be held against each other. */
static const char *times_words(double value, double low, double high, struct lab_arena *arena) {
    if (isnan(value))
        return "–";
    return isnan(low) ? lab_arena_printf(arena, "%.3f×", value)
                      : lab_arena_printf(arena, "%.3f× [%.3f, %.3f]", value, low, high);
}

struct lab_doc_table training_test_table(const struct training_part *part) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)part->test_count * TESTS + 1, sizeof *cells);
    for (int i = 0; i < part->test_count; i++) {
        struct lab_doc_cell *cell = &cells[(ptrdiff_t)i * TESTS];
        const struct training_test *test = &part->tests[i];
        const struct lab_study_ratio *measured = &test->measured;
        cell[T_MODEL] = lab_cell_text(test->row->model);
        cell[T_BATCH] = lab_cell_figure(test->row->work.batch);
        cell[T_SCALING] = training_scaling_cell(test->row);
        cell[T_DEVICES] = lab_cell_figure(test->row->work.devices);
        cell[T_MEASURED] = (struct lab_doc_cell){.value = measured->ratio,
                                                 .low = measured->low,
                                                 .high = measured->high,
                                                 .confidence = measured->confidence};
        cell[T_PREDICTED] = (struct lab_doc_cell){.value = test->left_out.value,
                                                  .low = test->left_out.low,
                                                  .high = test->left_out.high,
                                                  .confidence = LAB_TRAINING_CONFIDENCE};
        cell[T_MEASURED_TEXT] =
            lab_cell_text(times_words(measured->ratio, measured->low, measured->high, part->arena));
        cell[T_PREDICTED_TEXT] = lab_cell_text(times_words(test->left_out.value, test->left_out.low,
                                                           test->left_out.high, part->arena));
        cell[T_WITHIN] = lab_cell_text(!test->told ? "–" : test->within ? "yes" : "no");
    }
    return (struct lab_doc_table){
        .key = "predicted",
        .title = "Speed-ups as predicted from all other points, and as measured",
        .columns = lab_analysis_shown(test_columns, TESTS, cells, part->test_count, part->arena),
        .column_count = TESTS,
        .cells = cells,
        .row_count = part->test_count};
}

/* --- the law --- */

enum { L_TERM, L_COST, L_VALUE, LAWS };

static const struct lab_doc_column law_columns[LAWS] = {
    [L_TERM] = {"term", "Term", LAB_UNIT_TEXT},
    [L_COST] = {NULL, "Cost", LAB_UNIT_TEXT},
    [L_VALUE] = {"seconds", NULL, LAB_UNIT_NUMBER, NULL, true},
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

struct lab_doc_table training_law_table(const struct training_part *part) {
    const struct lab_training_law *law = &part->training.laws[0];
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)LAB_TRAINING_TERMS * LAWS, sizeof *cells);
    size_t column = 0;
    int count = 0;
    for (int t = 0; t < LAB_TRAINING_TERMS; t++) {
        const char *words = training_term_words(law, (enum lab_training_term)t, part->arena);
        if (!words)
            continue;
        struct lab_doc_cell *cell = &cells[(ptrdiff_t)count++ * LAWS];
        struct lab_interval interval = lab_fit_interval(&law->fit, column, 0.95);
        cell[L_TERM] = lab_cell_text(term_names[t]);
        cell[L_COST] = lab_cell_text(words);
        cell[L_VALUE] =
            lab_analysis_effect((struct lab_effect){law->fit.coefficients[column++], interval});
    }
    return (struct lab_doc_table){.key = "law",
                                  .title = "The law, fitted to all points",
                                  .columns = law_columns,
                                  .column_count = LAWS,
                                  .cells = cells,
                                  .row_count = count};
}

/* --- break-even --- */

enum { E_DEVICES, E_OVER, E_AT, E_WORDS, E_VALUE, EVENS };

static const struct lab_doc_column even_columns[EVENS] = {
    [E_DEVICES] = {"devices", "Devices", LAB_UNIT_COUNT},
    [E_OVER] = {"over", "Over", LAB_UNIT_TEXT},
    [E_AT] = {"where", "For", LAB_UNIT_TEXT},
    [E_WORDS] = {"answer", "They pay", LAB_UNIT_TEXT},
    [E_VALUE] = {"break_even", NULL, LAB_UNIT_NUMBER, NULL, true},
};

struct break_even {
    struct lab_doc_cell *cells;
    int count;
};

static void add_even(const struct training_part *part, struct break_even *break_even,
                     const struct lab_training_work *work, bool batch, const char *where) {
    struct lab_training_break_even even =
        batch ? lab_training_break_even_batch(&part->training, work)
              : lab_training_break_even_parameters(&part->training, work);
    struct lab_doc_cell *cell = &break_even->cells[(ptrdiff_t)break_even->count++ * EVENS];
    cell[E_DEVICES] = lab_cell_figure(work->devices);
    cell[E_OVER] = lab_cell_text(batch ? "batch" : "parameters");
    cell[E_AT] = lab_cell_text(where);
    cell[E_WORDS] =
        lab_cell_text(lab_training_break_even_figure(&part->training, &even, batch, part->arena));
    cell[E_VALUE] = (struct lab_doc_cell){.value = even.at,
                                          .low = isfinite(even.low) ? even.low : (double)NAN,
                                          .high = isfinite(even.high) ? even.high : (double)NAN,
                                          .confidence = LAB_TRAINING_CONFIDENCE};
}

static bool is_first(const struct training_part *part, const struct lab_training_row **rows, int at,
                     bool batch) {
    (void)part;
    for (int i = 0; i < at; i++)
        if (rows[i]->work.devices == rows[at]->work.devices &&
            rows[i]->work.weak == rows[at]->work.weak &&
            (batch ? rows[i]->work.batch == rows[at]->work.batch
                   : strcmp(rows[i]->model, rows[at]->model) == 0))
            return false;
    return true;
}

struct lab_doc_table training_even_table(const struct training_part *part) {
    const struct lab_training_row **rows = training_order(part);
    int count = part->training.row_count;
    struct break_even break_even = {
        lab_arena_alloc(part->arena, (size_t)count * 2 * EVENS + 1, sizeof *break_even.cells), 0};
    for (int i = 0; i < count; i++) {
        const struct lab_training_work *work = &rows[i]->work;
        if (work->devices > 1 && is_first(part, rows, i, false))
            add_even(part, &break_even, work, true,
                     work->weak ? lab_arena_printf(part->arena, "%s, weak", rows[i]->model)
                                : rows[i]->model);
    }
    for (int i = 0; i < count && part->training.model_count > 1; i++) {
        const struct lab_training_work *work = &rows[i]->work;
        if (work->devices > 1 && is_first(part, rows, i, true))
            add_even(part, &break_even, work, false,
                     lab_arena_printf(part->arena, "batch %.0f%s", work->batch,
                                      work->weak ? " a device" : ""));
    }
    return (struct lab_doc_table){.key = "break_even",
                                  .title = "Where several devices begin to pay",
                                  .columns = even_columns,
                                  .column_count = EVENS,
                                  .cells = break_even.cells,
                                  .row_count = break_even.count};
}
