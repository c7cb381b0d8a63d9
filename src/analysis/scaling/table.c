/* table.c: the figures of a group's series, laws and predictions as tables. */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>

enum { LAW_KEY, LAW_WORDS, LAW_R_SQUARED, LAW_ERROR, LAW_LACKS, LAW_COLUMNS };
static const struct lab_doc_column law_columns[LAW_COLUMNS] = {
    [LAW_KEY] = {"law", NULL, LAB_UNIT_TEXT},
    [LAW_WORDS] = {NULL, "Law", LAB_UNIT_TEXT},
    [LAW_R_SQUARED] = {"r_squared", "R²", LAB_UNIT_NUMBER},
    [LAW_ERROR] = {"leave_one_out_error", "Leave-one-out error", LAB_UNIT_SHARE},
    [LAW_LACKS] = {"lacks", " ", LAB_UNIT_TEXT},
};

enum {
    STEP_VALUE,
    STEP_MODEL,
    STEP_WORK,
    STEP_RATE,
    STEP_RATE_TEXT,
    STEP_ACHIEVED,
    STEP_ACHIEVED_TEXT,
    STEP_MEMORY,
    STEP_WORK_RATIO,
    STEP_TIME_RATIO,
    STEP_ELASTICITY,
    STEP_REGIME,
    STEP_COLUMNS
};
static const struct lab_doc_column step_columns[STEP_COLUMNS] = {
    [STEP_VALUE] = {"value", "", LAB_UNIT_COUNT},
    [STEP_MODEL] = {"model", NULL, LAB_UNIT_TEXT},
    [STEP_WORK] = {"flops_per_sample", NULL, LAB_UNIT_NUMBER},
    [STEP_RATE] = {"rate_per_s", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [STEP_RATE_TEXT] = {NULL, "Samples/s", LAB_UNIT_FIGURE},
    [STEP_ACHIEVED] = {"flops_per_s", NULL, LAB_UNIT_NUMBER},
    [STEP_ACHIEVED_TEXT] = {NULL, "Reached", LAB_UNIT_FIGURE},
    [STEP_MEMORY] = {"memory_mib", NULL, LAB_UNIT_MEBIBYTES},
    [STEP_WORK_RATIO] = {"work_ratio", "Work", LAB_UNIT_RATIO},
    [STEP_TIME_RATIO] = {"time_ratio", "Time", LAB_UNIT_RATIO, .with_interval = true},
    [STEP_ELASTICITY] = {"elasticity", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [STEP_REGIME] = {"regime", "Since the last", LAB_UNIT_TEXT},
};

enum {
    MODEL,
    MODEL_WORK,
    MODEL_WORK_TEXT,
    MODEL_RATE,
    MODEL_RATE_TEXT,
    MODEL_MEMORY,
    MODEL_LAW,
    MODEL_BEYOND,
    MODEL_COLUMNS
};
static const struct lab_doc_column model_columns[MODEL_COLUMNS] = {
    [MODEL] = {"model", "Model", LAB_UNIT_TEXT},
    [MODEL_WORK] = {"flops_per_sample", NULL, LAB_UNIT_NUMBER},
    [MODEL_WORK_TEXT] = {NULL, "Work", LAB_UNIT_FIGURE},
    [MODEL_RATE] = {"rate_per_s", NULL, LAB_UNIT_PER_SECOND, .with_interval = true},
    [MODEL_RATE_TEXT] = {NULL, "Samples/s", LAB_UNIT_FIGURE},
    [MODEL_MEMORY] = {"memory_mib", "Memory", LAB_UNIT_MEBIBYTES, .with_interval = true},
    [MODEL_LAW] = {"law", NULL, LAB_UNIT_TEXT},
    [MODEL_BEYOND] = {"remark", " ", LAB_UNIT_TEXT},
};

struct lab_doc_table scaling_law_table(const struct scaling_part *part) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(part->arena, (size_t)SCALING_LAWS * LAW_COLUMNS, sizeof *cells);
    for (int i = 0; i < SCALING_LAWS; i++) {
        const struct scaling_law *law = &part->laws.items[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * LAW_COLUMNS;
        row[LAW_KEY] = lab_cell_text(scaling_law_key(law->kind));
        row[LAW_WORDS] = lab_cell_text(scaling_law_words(law->kind));
        row[LAW_R_SQUARED] = lab_cell_figure(law->lacks ? NAN : law->fit.r_squared);
        row[LAW_ERROR] = lab_cell_figure(law->leave_one_out);
        row[LAW_LACKS] = lab_cell_text(law->lacks);
    }
    return (struct lab_doc_table){
        .key = "laws",
        .title = "Laws",
        .columns = lab_analysis_shown(law_columns, LAW_COLUMNS, cells, SCALING_LAWS, part->arena),
        .column_count = LAW_COLUMNS,
        .cells = cells,
        .row_count = SCALING_LAWS};
}

static void fill_step(const struct scaling_step *step, struct lab_doc_cell *row,
                      struct lab_arena *arena) {
    row[STEP_WORK_RATIO] = lab_cell_figure(step->work);
    row[STEP_TIME_RATIO] = (struct lab_doc_cell){.value = step->time.ratio,
                                                 .low = step->time.low,
                                                 .high = step->time.high,
                                                 .confidence = step->time.confidence};
    row[STEP_ELASTICITY] = (struct lab_doc_cell){.value = step->elasticity,
                                                 .low = step->low,
                                                 .high = step->high,
                                                 .confidence = step->time.confidence};
    row[STEP_REGIME] = lab_cell_text(lab_arena_strdup(arena, scaling_regime_words(step->regimes)));
}

struct lab_doc_table scaling_series_table(const struct scaling_part *part,
                                          const struct scaling_series *series) {
    static const char *const keys[SCALING_KEYS] = {"depth", "width"};
    static const char *const titles[SCALING_KEYS] = {"Depth", "Width"};
    struct lab_arena *arena = part->arena;
    struct lab_doc_column *columns = lab_arena_alloc(arena, STEP_COLUMNS, sizeof *columns);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)series->count * STEP_COLUMNS + 1, sizeof *cells);
    for (int c = 0; c < STEP_COLUMNS; c++)
        columns[c] = step_columns[c];
    columns[STEP_VALUE].key = keys[series->key];
    columns[STEP_VALUE].title = titles[series->key];
    for (int i = 0; i < series->count; i++) {
        const struct scaling_row *model = series->rows[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * STEP_COLUMNS;
        double work = model->flops / model->samples, achieved = work * model->rate.value;
        row[STEP_VALUE] = lab_cell_figure(scaling_series_value(model, series->key));
        row[STEP_MODEL] = lab_cell_text(model->model);
        row[STEP_WORK] = lab_cell_figure(work);
        row[STEP_RATE] = lab_analysis_effect(model->rate);
        row[STEP_RATE_TEXT] = lab_cell_text(lab_words_effect(model->rate, arena));
        row[STEP_ACHIEVED] = lab_cell_figure(achieved);
        row[STEP_ACHIEVED_TEXT] = lab_cell_text(lab_words_si(achieved, "FLOP/s", arena));
        row[STEP_MEMORY] = lab_cell_figure(model->memory_mib);
        if (i > 0)
            fill_step(&series->steps[i - 1], row, arena);
        else
            row[STEP_WORK_RATIO] = row[STEP_TIME_RATIO] = row[STEP_ELASTICITY] =
                lab_cell_figure(NAN);
    }
    return (struct lab_doc_table){.key = keys[series->key],
                                  .title = series->key == SCALING_DEPTH ? "By depth" : "By width",
                                  .columns = columns,
                                  .column_count = STEP_COLUMNS,
                                  .cells = cells,
                                  .row_count = series->count};
}

const char *scaling_rate_words(const struct scaling_rate *rate, struct lab_arena *arena) {
    const char *value = lab_words_number(rate->value, arena);
    if (isnan(rate->next.low))
        return value;
    if (isinf(rate->next.high))
        return lab_arena_printf(arena, "%s, at least %s", value,
                                lab_words_number(rate->next.low, arena));
    return lab_arena_printf(arena, "%s [%s, %s]", value, lab_words_number(rate->next.low, arena),
                            lab_words_number(rate->next.high, arena));
}

struct lab_doc_table scaling_prediction_table(const struct scaling_part *part) {
    struct lab_arena *arena = part->arena;
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)part->prediction_count * MODEL_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < part->prediction_count; i++) {
        const struct scaling_prediction *made = &part->predictions[i];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * MODEL_COLUMNS;
        row[MODEL] = lab_cell_text(made->model);
        row[MODEL_WORK] = lab_cell_figure(made->flops_per_sample);
        row[MODEL_WORK_TEXT] = lab_cell_text(lab_words_si(made->flops_per_sample, "FLOP", arena));
        row[MODEL_RATE] =
            lab_analysis_effect((struct lab_effect){made->rate.value, made->rate.next});
        row[MODEL_RATE_TEXT] = lab_cell_text(scaling_rate_words(&made->rate, arena));
        row[MODEL_MEMORY] =
            isnan(made->memory.value)
                ? lab_cell_figure(NAN)
                : lab_analysis_effect((struct lab_effect){made->memory.value, made->memory.next});
        row[MODEL_LAW] = lab_cell_text(scaling_law_key(made->law->kind));
        row[MODEL_BEYOND] = lab_cell_text(made->run      ? "it was run: see above"
                                          : made->beyond ? "beyond what was run"
                                                         : "");
    }
    return (struct lab_doc_table){.key = "predictions",
                                  .title = "Models that weren't run, as the law has them",
                                  .columns = model_columns,
                                  .column_count = MODEL_COLUMNS,
                                  .cells = cells,
                                  .row_count = part->prediction_count};
}
