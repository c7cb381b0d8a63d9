/* table.c: the figures of a group's series, laws and predictions as tables. */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>

static const struct lab_doc_column law_columns[] = {
    {"law", NULL, LAB_UNIT_TEXT},
    {NULL, "Law", LAB_UNIT_TEXT},
    {"r_squared", "R²", LAB_UNIT_NUMBER},
    {"leave_one_out_error", "Leave-one-out error", LAB_UNIT_SHARE},
    {"lacks", " ", LAB_UNIT_TEXT},
};

static const struct lab_doc_column step_columns[] = {
    {"value", "", LAB_UNIT_COUNT},
    {"model", NULL, LAB_UNIT_TEXT},
    {"flops_per_sample", NULL, LAB_UNIT_NUMBER},
    {"rate_per_s", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {NULL, "Samples/s", LAB_UNIT_FIGURE},
    {"flops_per_s", NULL, LAB_UNIT_NUMBER},
    {NULL, "Reached", LAB_UNIT_FIGURE},
    {"memory_mib", NULL, LAB_UNIT_MEBIBYTES},
    {"work_ratio", "Work", LAB_UNIT_RATIO},
    {"time_ratio", "Time", LAB_UNIT_RATIO, .with_interval = true},
    {"elasticity", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    {"regime", "Since the last", LAB_UNIT_TEXT},
};

static const struct lab_doc_column model_columns[] = {
    {"model", "Model", LAB_UNIT_TEXT},
    {"flops_per_sample", NULL, LAB_UNIT_NUMBER},
    {NULL, "Work", LAB_UNIT_FIGURE},
    {"rate_per_s", NULL, LAB_UNIT_PER_SECOND, .with_interval = true},
    {NULL, "Samples/s", LAB_UNIT_FIGURE},
    {"memory_mib", "Memory", LAB_UNIT_MEBIBYTES, .with_interval = true},
    {"law", NULL, LAB_UNIT_TEXT},
    {"remark", " ", LAB_UNIT_TEXT},
};

void scaling_add_law_table(struct lab_analysis_part *to, const struct scaling_part *part) {
    struct lab_doc_table *table = LAB_TABLE(to, "laws", "Laws", law_columns, part->arena);
    for (int i = 0; i < SCALING_LAWS; i++) {
        const struct scaling_law *law = &part->laws.items[i];
        LAB_ROW(table, part->arena, lab_cell_text(scaling_law_key(law->kind)),
                lab_cell_text(scaling_law_words(law->kind)),
                lab_cell_figure(law->lacks ? NAN : law->fit.r_squared),
                lab_cell_figure(law->leave_one_out), lab_cell_text(law->lacks));
    }
    lab_analysis_hide_columns(table, part->arena);
}

void scaling_add_series_table(struct lab_analysis_part *to, const struct scaling_part *part,
                              const struct scaling_series *series) {
    static const char *const keys[SCALING_KEYS] = {"depth", "width"};
    static const char *const titles[SCALING_KEYS] = {"Depth", "Width"};
    static const struct scaling_step none = {
        .work = NAN, .time = {NAN, NAN, NAN, .confidence = 0}, .elasticity = NAN, NAN, NAN};
    struct lab_arena *arena = part->arena;
    struct lab_doc_table *table =
        LAB_TABLE(to, keys[series->key], series->key == SCALING_DEPTH ? "By depth" : "By width",
                  step_columns, arena);
    struct lab_doc_column *columns = lab_analysis_own_columns(table, arena);
    columns[0].key = keys[series->key];
    columns[0].title = titles[series->key];
    for (int i = 0; i < series->count; i++) {
        const struct scaling_row *model = series->rows[i];
        const struct scaling_step *step = i > 0 ? &series->steps[i - 1] : &none;
        double work = model->flops / model->samples, achieved = work * model->rate.value;
        LAB_ROW(table, arena, lab_cell_figure(scaling_series_value(model, series->key)),
                lab_cell_text(model->model), lab_cell_figure(work),
                lab_analysis_effect(model->rate),
                lab_cell_text(lab_words_effect(model->rate, arena)), lab_cell_figure(achieved),
                lab_cell_text(lab_words_si(achieved, "FLOP/s", arena)),
                lab_cell_figure(model->memory_mib), lab_cell_figure(step->work),
                lab_cell_interval(step->time.ratio, step->time.low, step->time.high,
                                  step->time.confidence),
                lab_cell_interval(step->elasticity, step->low, step->high, step->time.confidence),
                lab_cell_text(i > 0 ? scaling_regime_words(step->regimes) : NULL));
    }
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

void scaling_add_prediction_table(struct lab_analysis_part *to, const struct scaling_part *part) {
    struct lab_arena *arena = part->arena;
    struct lab_doc_table *table = LAB_TABLE(
        to, "predictions", "Models that weren't run, as the law has them", model_columns, arena);
    for (int i = 0; i < part->prediction_count; i++) {
        const struct scaling_prediction *made = &part->predictions[i];
        LAB_ROW(table, arena, lab_cell_text(made->model), lab_cell_figure(made->flops_per_sample),
                lab_cell_text(lab_words_si(made->flops_per_sample, "FLOP", arena)),
                lab_analysis_effect((struct lab_effect){made->rate.value, made->rate.next}),
                lab_cell_text(scaling_rate_words(&made->rate, arena)),
                isnan(made->memory.value) ? lab_cell_figure(NAN)
                                          : lab_analysis_effect((struct lab_effect){
                                                made->memory.value, made->memory.next}),
                lab_cell_text(scaling_law_key(made->law->kind)),
                lab_cell_text(made->run      ? "it was run: see above"
                              : made->beyond ? "beyond what was run"
                                             : ""));
    }
}
