/*
 * scaling.c: `gpulab analyze scaling`: how throughput and memory follow the depth and the width of a
 * model; as laws with their intervals, and as what they say of models that weren't run.
 */
#include "analysis/scaling/scaling.h"

#include "base/str.h"

#include <math.h>

static const char *const bytes_choices[] = {"auto", "device", "copies", "none", NULL};

#define AT(field) offsetof(struct scaling_config, field)

static const struct lab_option scaling_options[] = {
    {"predict", LAB_OPTION_VALUE, AT(predict), .fallback = "auto", .value_name = "MODELS",
     .help =
         "models that weren't run: vit32x10x512, or a list in brackets; auto = twice the deepest "
         "and twice the widest of a series; none"},
    {"predict_depth", LAB_OPTION_INT, AT(predict_depth), .fallback = "0", .min = 0, .max = 1024,
     .unit = "blocks", .help = "depth of one more such model; 0 = as the one that comes nearest"},
    {"predict_dim", LAB_OPTION_INT, AT(predict_dim), .fallback = "0", .min = 0, .max = 65536,
     .unit = "values", .help = "its width; 0 likewise"},
    {"predict_patch_size", LAB_OPTION_INT, AT(predict_patch_size), .fallback = "0", .min = 0,
     .max = 4096, .unit = "pixels", .help = "its patches; 0 likewise"},
    {"bytes", LAB_OPTION_CHOICE, AT(bytes), .fallback = "auto", .choices = bytes_choices,
     .help = "which bytes the law counts: of the device's memory, of the copies; auto = the first "
             "of these that are known"},
    {NULL},
};

static const char *const model_keys[] = {"model", "patch_size", "depth",  "heads",
                                         "dim",   "mlp_dim",    "series", NULL};

/* --- columns --- */

enum {
    MODELS,
    OVERHEAD,
    FLOP_RATE,
    FLOP_RATE_TEXT,
    BANDWIDTH,
    R_SQUARED,
    LEAVE_ONE_OUT,
    EXPONENT,
    EXPONENT_TEXT,
    MEMORY_BASE,
    MEMORY_SLOPE,
    BEST_LAW,
    FIGURES
};

static const struct lab_analysis_column figure_columns[FIGURES] = {
    [MODELS] = {"models", "Models", LAB_ANALYSIS_COUNT, "Models"},
    [OVERHEAD] = {"overhead_ms", "Overhead", LAB_ANALYSIS_TIME, "Overhead", true},
    [FLOP_RATE] = {"rate_flops_per_s", NULL, LAB_ANALYSIS_NUMBER, .with_interval = true},
    [FLOP_RATE_TEXT] = {NULL, "Compute rate", LAB_ANALYSIS_TEXT, "Compute rate"},
    [BANDWIDTH] = {"bandwidth_gb_per_s", "Bandwidth", LAB_ANALYSIS_RATE, "Bandwidth", true},
    [R_SQUARED] = {"r_squared", "R²", LAB_ANALYSIS_NUMBER, "R²"},
    [LEAVE_ONE_OUT] = {"leave_one_out_error", "Leave-one-out", LAB_ANALYSIS_SHARE, "Error"},
    [EXPONENT] = {"exponent", NULL, LAB_ANALYSIS_NUMBER, .with_interval = true},
    [EXPONENT_TEXT] = {NULL, "Power law", LAB_ANALYSIS_TEXT},
    [MEMORY_BASE] = {"memory_base_mib", "Memory, base", LAB_ANALYSIS_MEBIBYTES, NULL, true},
    [MEMORY_SLOPE] = {"memory_bytes_per_parameter", "Bytes/parameter", LAB_ANALYSIS_NUMBER, NULL,
                      true},
    [BEST_LAW] = {"best_law", "Predicts best", LAB_ANALYSIS_TEXT},
};

enum { LAW_KEY, LAW_WORDS, LAW_R_SQUARED, LAW_ERROR, LAW_LACKS, LAW_COLUMNS };
static const struct lab_analysis_column law_columns[LAW_COLUMNS] = {
    [LAW_KEY] = {"law", NULL, LAB_ANALYSIS_TEXT},
    [LAW_WORDS] = {NULL, "Law", LAB_ANALYSIS_TEXT},
    [LAW_R_SQUARED] = {"r_squared", "R²", LAB_ANALYSIS_NUMBER},
    [LAW_ERROR] = {"leave_one_out_error", "Leave-one-out error", LAB_ANALYSIS_SHARE},
    [LAW_LACKS] = {"lacks", " ", LAB_ANALYSIS_TEXT},
};

enum {
    STEP_VALUE,
    STEP_MODEL,
    STEP_WORK,
    STEP_RATE,
    STEP_ACHIEVED,
    STEP_ACHIEVED_TEXT,
    STEP_MEMORY,
    STEP_WORK_RATIO,
    STEP_TIME_RATIO,
    STEP_ELASTICITY,
    STEP_REGIME,
    STEP_COLUMNS
};
static const struct lab_analysis_column step_columns[STEP_COLUMNS] = {
    [STEP_VALUE] = {"value", "", LAB_ANALYSIS_COUNT},
    [STEP_MODEL] = {"model", NULL, LAB_ANALYSIS_TEXT},
    [STEP_WORK] = {"flops_per_sample", NULL, LAB_ANALYSIS_NUMBER},
    [STEP_RATE] = {"rate_per_s", "Samples/s", LAB_ANALYSIS_NUMBER, .with_interval = true},
    [STEP_ACHIEVED] = {"flops_per_s", NULL, LAB_ANALYSIS_NUMBER},
    [STEP_ACHIEVED_TEXT] = {NULL, "Reached", LAB_ANALYSIS_FIGURE},
    [STEP_MEMORY] = {"memory_mib", NULL, LAB_ANALYSIS_MEBIBYTES},
    [STEP_WORK_RATIO] = {"work_ratio", "Work", LAB_ANALYSIS_RATIO},
    [STEP_TIME_RATIO] = {"time_ratio", "Time", LAB_ANALYSIS_RATIO, .with_interval = true},
    [STEP_ELASTICITY] = {"elasticity", NULL, LAB_ANALYSIS_NUMBER, .with_interval = true},
    [STEP_REGIME] = {"regime", "Since the last", LAB_ANALYSIS_TEXT},
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
static const struct lab_analysis_column model_columns[MODEL_COLUMNS] = {
    [MODEL] = {"model", "Model", LAB_ANALYSIS_TEXT},
    [MODEL_WORK] = {"flops_per_sample", NULL, LAB_ANALYSIS_NUMBER},
    [MODEL_WORK_TEXT] = {NULL, "Work", LAB_ANALYSIS_FIGURE},
    [MODEL_RATE] = {"rate_per_s", NULL, LAB_ANALYSIS_PER_SECOND, .with_interval = true},
    [MODEL_RATE_TEXT] = {NULL, "Samples/s", LAB_ANALYSIS_FIGURE},
    [MODEL_MEMORY] = {"memory_mib", "Memory", LAB_ANALYSIS_MEBIBYTES, .with_interval = true},
    [MODEL_LAW] = {"law", NULL, LAB_ANALYSIS_TEXT},
    [MODEL_BEYOND] = {"remark", " ", LAB_ANALYSIS_TEXT},
};

/* --- words for figures --- */

static const char *si(double value, const char *unit, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    if (isnan(value))
        lab_str_add(&text, "–");
    else
        lab_str_add_si(&text, value, unit);
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

static const char *time_words(double seconds, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add_time(&text, seconds);
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* "12.3 [11.9, 12.7] TFLOP/s", "at least 9.1 TFLOP/s" */
static const char *rate_words(struct lab_effect rate, const char *unit, struct lab_arena *arena) {
    if (!isfinite(rate.value) || (isinf(rate.interval.high) && rate.interval.low > 0))
        return lab_arena_printf(arena, "at least %s", si(rate.interval.low, unit, arena));
    if (!isfinite(rate.interval.low) || !isfinite(rate.interval.high))
        return si(rate.value, unit, arena);
    static const char prefixes[] = {'k', 'M', 'G', 'T', 'P'};
    double scale = 1;
    int steps = 0;
    while (rate.value / scale >= 1000 && steps < (int)sizeof prefixes) {
        scale *= 1000;
        steps++;
    }
    return lab_arena_printf(arena, "%.3g [%.3g, %.3g] %.*s%s", rate.value / scale,
                            rate.interval.low / scale, rate.interval.high / scale, steps > 0,
                            steps > 0 ? &prefixes[steps - 1] : "", unit);
}

/* What the law has as seconds a unit, as units a second. */
static struct lab_effect coefficient_rate(const struct scaling_law *law, size_t i) {
    struct lab_interval seconds = lab_fit_interval(&law->fit, i, SCALING_CONFIDENCE);
    return (struct lab_effect){1 / law->fit.coefficients[i], lab_fit_reciprocal(seconds)};
}

static struct lab_analysis_cell finite_cell(struct lab_effect effect) {
    struct lab_analysis_cell cell = lab_analysis_effect(effect);
    if (!isfinite(cell.value))
        cell.value = NAN;
    return cell;
}

/* --- one group --- */

struct part {
    const struct lab_study_group *group;
    struct scaling_rows rows;
    struct scaling_laws laws;
    struct scaling_series series[SCALING_KEYS];
    struct scaling_prediction *predictions;
    int prediction_count;
    struct lab_arena *arena;
};

static void fill_law_figures(const struct part *part, struct lab_analysis_cell *cells) {
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    if (!law)
        return;
    struct lab_effect rate = coefficient_rate(law, SCALING_PER_FLOP);
    cells[OVERHEAD] = lab_analysis_effect(
        (struct lab_effect){law->fit.coefficients[SCALING_OVERHEAD],
                            lab_fit_interval(&law->fit, SCALING_OVERHEAD, SCALING_CONFIDENCE)});
    if (cells[OVERHEAD].value == 0)
        cells[OVERHEAD].text = lab_arena_printf(part->arena, "at most %s",
                                                time_words(cells[OVERHEAD].high, part->arena));
    cells[FLOP_RATE] = finite_cell(rate);
    cells[FLOP_RATE_TEXT] = lab_analysis_text(rate_words(rate, "FLOP/s", part->arena));
    cells[R_SQUARED] = lab_analysis_figure(law->fit.r_squared);
    cells[LEAVE_ONE_OUT] = lab_analysis_figure(law->leave_one_out);
    if (law->kind == SCALING_ROOFLINE) {
        cells[BANDWIDTH] = finite_cell(coefficient_rate(law, SCALING_PER_BYTE));
        cells[BANDWIDTH].text =
            part->rows.bytes == SCALING_DEVICE_BYTES ? "of the device's memory" : "of the copies";
    }
}

static const struct lab_analysis_cell *make_figures(const struct part *part) {
    struct lab_analysis_cell *cells = lab_arena_alloc(part->arena, FIGURES, sizeof *cells);
    for (int i = 0; i < FIGURES; i++)
        cells[i] = lab_analysis_figure(NAN);
    cells[MODELS] = lab_analysis_figure(part->rows.count);
    fill_law_figures(part, cells);
    const struct scaling_law *power = &part->laws.items[SCALING_POWER],
                             *best = scaling_laws_best(&part->laws);
    if (!power->lacks) {
        struct lab_effect exponent = {
            power->fit.coefficients[SCALING_EXPONENT],
            lab_fit_interval(&power->fit, SCALING_EXPONENT, SCALING_CONFIDENCE)};
        cells[EXPONENT] = lab_analysis_effect(exponent);
        cells[EXPONENT_TEXT] = lab_analysis_text(lab_arena_printf(
            part->arena, "samples/s falls as FLOPs^%.2f [%.2f, %.2f], R² %.4f", exponent.value,
            exponent.interval.low, exponent.interval.high, power->fit.r_squared));
    }
    if (part->laws.memory_fitted) {
        const struct lab_fit *fit = &part->laws.memory;
        struct lab_interval slope = lab_fit_interval(fit, 1, SCALING_CONFIDENCE);
        double bytes = 0x1p20 / 1e6; /* MiB a million parameters, as bytes a parameter */
        cells[MEMORY_BASE] = lab_analysis_effect((struct lab_effect){
            fit->coefficients[0], lab_fit_interval(fit, 0, SCALING_CONFIDENCE)});
        cells[MEMORY_SLOPE] = lab_analysis_effect(
            (struct lab_effect){bytes * fit->coefficients[1],
                                {bytes * slope.low, bytes * slope.high, slope.confidence}});
    }
    if (best)
        cells[BEST_LAW] = lab_analysis_text(scaling_law_words(best->kind));
    return cells;
}

/* --- tables --- */

static struct lab_analysis_table law_table(const struct part *part) {
    struct lab_analysis_cell *cells =
        lab_arena_alloc(part->arena, (size_t)SCALING_LAWS * LAW_COLUMNS, sizeof *cells);
    for (int i = 0; i < SCALING_LAWS; i++) {
        const struct scaling_law *law = &part->laws.items[i];
        struct lab_analysis_cell *row = cells + (ptrdiff_t)i * LAW_COLUMNS;
        row[LAW_KEY] = lab_analysis_text(scaling_law_key(law->kind));
        row[LAW_WORDS] = lab_analysis_text(scaling_law_words(law->kind));
        row[LAW_R_SQUARED] = lab_analysis_figure(law->lacks ? NAN : law->fit.r_squared);
        row[LAW_ERROR] = lab_analysis_figure(law->leave_one_out);
        row[LAW_LACKS] = lab_analysis_text(law->lacks);
    }
    return (struct lab_analysis_table){.key = "laws",
                                       .title = "Laws",
                                       .columns = law_columns,
                                       .column_count = LAW_COLUMNS,
                                       .cells = cells,
                                       .row_count = SCALING_LAWS};
}

static void fill_step(const struct scaling_step *step, struct lab_analysis_cell *row,
                      struct lab_arena *arena) {
    row[STEP_WORK_RATIO] = lab_analysis_figure(step->work);
    row[STEP_TIME_RATIO] = (struct lab_analysis_cell){.value = step->time.ratio,
                                                      .low = step->time.low,
                                                      .high = step->time.high,
                                                      .confidence = step->time.confidence};
    row[STEP_ELASTICITY] = (struct lab_analysis_cell){.value = step->elasticity,
                                                      .low = step->low,
                                                      .high = step->high,
                                                      .confidence = step->time.confidence};
    row[STEP_REGIME] =
        lab_analysis_text(lab_arena_strdup(arena, scaling_regime_words(step->regimes)));
}

static struct lab_analysis_table series_table(const struct part *part,
                                              const struct scaling_series *series) {
    static const char *const keys[SCALING_KEYS] = {"depth", "width"};
    static const char *const titles[SCALING_KEYS] = {"Depth", "Width"};
    struct lab_arena *arena = part->arena;
    struct lab_analysis_column *columns = lab_arena_alloc(arena, STEP_COLUMNS, sizeof *columns);
    struct lab_analysis_cell *cells =
        lab_arena_alloc(arena, (size_t)series->count * STEP_COLUMNS + 1, sizeof *cells);
    for (int c = 0; c < STEP_COLUMNS; c++)
        columns[c] = step_columns[c];
    columns[STEP_VALUE].key = keys[series->key];
    columns[STEP_VALUE].title = titles[series->key];
    for (int i = 0; i < series->count; i++) {
        const struct scaling_row *model = series->rows[i];
        struct lab_analysis_cell *row = cells + (ptrdiff_t)i * STEP_COLUMNS;
        double work = model->flops / model->samples, achieved = work * model->rate.value;
        row[STEP_VALUE] = lab_analysis_figure(scaling_series_value(model, series->key));
        row[STEP_MODEL] = lab_analysis_text(model->model);
        row[STEP_WORK] = lab_analysis_figure(work);
        row[STEP_RATE] = lab_analysis_effect(model->rate);
        row[STEP_ACHIEVED] = lab_analysis_figure(achieved);
        row[STEP_ACHIEVED_TEXT] = lab_analysis_text(si(achieved, "FLOP/s", arena));
        row[STEP_MEMORY] = lab_analysis_figure(model->memory_mib);
        if (i > 0)
            fill_step(&series->steps[i - 1], row, arena);
        else
            row[STEP_WORK_RATIO] = row[STEP_TIME_RATIO] = row[STEP_ELASTICITY] =
                lab_analysis_figure(NAN);
    }
    return (struct lab_analysis_table){.key = keys[series->key],
                                       .title =
                                           series->key == SCALING_DEPTH ? "By depth" : "By width",
                                       .columns = columns,
                                       .column_count = STEP_COLUMNS,
                                       .cells = cells,
                                       .row_count = series->count};
}

/* "812 [790, 834]", "at least 700" */
static const char *prediction_words(const struct scaling_rate *rate, struct lab_arena *arena) {
    if (isnan(rate->next.low))
        return lab_arena_printf(arena, "%.4g", rate->value);
    if (isinf(rate->next.high))
        return lab_arena_printf(arena, "%.4g, at least %.4g", rate->value, rate->next.low);
    return lab_arena_printf(arena, "%.4g [%.4g, %.4g]", rate->value, rate->next.low,
                            rate->next.high);
}

static struct lab_analysis_table prediction_table(const struct part *part) {
    struct lab_arena *arena = part->arena;
    struct lab_analysis_cell *cells =
        lab_arena_alloc(arena, (size_t)part->prediction_count * MODEL_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < part->prediction_count; i++) {
        const struct scaling_prediction *made = &part->predictions[i];
        struct lab_analysis_cell *row = cells + (ptrdiff_t)i * MODEL_COLUMNS;
        row[MODEL] = lab_analysis_text(made->model);
        row[MODEL_WORK] = lab_analysis_figure(made->flops_per_sample);
        row[MODEL_WORK_TEXT] = lab_analysis_text(si(made->flops_per_sample, "FLOP", arena));
        row[MODEL_RATE] =
            lab_analysis_effect((struct lab_effect){made->rate.value, made->rate.next});
        row[MODEL_RATE_TEXT] = lab_analysis_text(prediction_words(&made->rate, arena));
        row[MODEL_MEMORY] =
            isnan(made->memory.value)
                ? lab_analysis_figure(NAN)
                : lab_analysis_effect((struct lab_effect){made->memory.value, made->memory.next});
        row[MODEL_LAW] = lab_analysis_text(scaling_law_key(made->law->kind));
        row[MODEL_BEYOND] = lab_analysis_text(made->run      ? "it was run: see above"
                                              : made->beyond ? "beyond what was run"
                                                             : "");
    }
    return (struct lab_analysis_table){.key = "predictions",
                                       .title = "Models that weren't run, as the law has them",
                                       .columns = model_columns,
                                       .column_count = MODEL_COLUMNS,
                                       .cells = cells,
                                       .row_count = part->prediction_count};
}

/* --- sentences --- */

/* "An iteration takes 350 µs and 1 s for each 12.3 TFLOP [11.9, 12.7] …" */
static void add_law(const struct part *part, struct lab_str *text) {
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    const struct scaling_law *power = &part->laws.items[SCALING_POWER];
    if (!law) {
        lab_str_printf(text, "no law can be told: %s", part->laws.items[SCALING_LINE].lacks);
        return;
    }
    double overhead_s = law->fit.coefficients[SCALING_OVERHEAD];
    lab_str_add(text, "an iteration takes ");
    if (overhead_s > 0)
        lab_str_printf(text, "%s and its work at ", time_words(overhead_s, part->arena));
    else
        lab_str_add(text, "as long as its work at ");
    lab_str_add(text, rate_words(coefficient_rate(law, SCALING_PER_FLOP), "FLOP/s", part->arena));
    lab_str_printf(text, " (R² %.4f, %.1f %% wrong about models it hasn't seen)",
                   law->fit.r_squared, 100 * law->leave_one_out);
    if (!power->lacks) {
        struct lab_interval b = lab_fit_interval(&power->fit, SCALING_EXPONENT, SCALING_CONFIDENCE);
        lab_str_printf(text, "; throughput goes as FLOPs^%.2f [%.2f, %.2f]",
                       power->fit.coefficients[SCALING_EXPONENT], b.low, b.high);
    }
}

static const char *make_answer(const struct part *part) {
    static const char *const by[SCALING_KEYS] = {"By depth", "By width"};
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "On %s, ", part->group->name);
    add_law(part, &text);
    lab_str_add(&text, ".");
    for (int k = 0; k < SCALING_KEYS; k++)
        if (part->series[k].count >= 2)
            lab_str_printf(&text, " %s: %s.", by[k],
                           scaling_series_words(&part->series[k], part->arena));
    for (int i = 0; i < part->prediction_count; i++) {
        const struct scaling_prediction *made = &part->predictions[i];
        if (!made->run)
            lab_str_printf(&text, " %s would reach %s samples/s%s.", made->model,
                           prediction_words(&made->rate, part->arena),
                           made->beyond ? ", if the law holds beyond what was run" : "");
    }
    const char *copy = lab_arena_strdup(part->arena, text.text);
    lab_str_release(&text);
    return copy;
}

static const char *const *make_notes(const struct part *part, const struct lab_study_table *study) {
    enum { NOTES_MAX = 6 };
    const char **notes = lab_arena_alloc(part->arena, NOTES_MAX + 1, sizeof *notes);
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    int count = 0;
    if (law && law->kind == SCALING_LINE)
        notes[count++] = lab_arena_printf(part->arena, "Bytes have no term of their own: %s.",
                                          part->laws.items[SCALING_ROOFLINE].lacks);
    if (law && law->kind == SCALING_ROOFLINE &&
        lab_fit_interval(&law->fit, SCALING_PER_BYTE, SCALING_CONFIDENCE).low == 0) {
        struct lab_effect bandwidth = coefficient_rate(law, SCALING_PER_BYTE);
        notes[count++] = lab_arena_printf(
            part->arena,
            "The time that bytes take can't be told from none: bandwidth is at least %s.",
            si(bandwidth.interval.low, "B/s", part->arena));
    }
    if (law && law->fit.degrees_of_freedom < 3)
        notes[count++] = lab_arena_printf(
            part->arena, "%d models leave the law little to be tested by: its intervals are wide.",
            part->rows.count);
    if (part->rows.left_out > 0)
        notes[count++] = lab_arena_printf(
            part->arena, "%d point%s without arithmetic or without a rate%s left out.",
            part->rows.left_out, part->rows.left_out == 1 ? "" : "s",
            part->rows.left_out == 1 ? " is" : " are");
    if (!study->work_of && law)
        notes[count++] =
            "Models that weren't run can't be predicted here: nobody counts their work.";
    return notes;
}

static struct lab_analysis_part make_part(const struct part *part,
                                          const struct lab_study_table *study, const char *name) {
    struct lab_analysis_table *tables =
        lab_arena_alloc(part->arena, SCALING_KEYS + 2, sizeof *tables);
    int count = 0;
    for (int k = 0; k < SCALING_KEYS; k++)
        if (part->series[k].count >= 2)
            tables[count++] = series_table(part, &part->series[k]);
    tables[count++] = law_table(part);
    if (part->prediction_count > 0)
        tables[count++] = prediction_table(part);
    return (struct lab_analysis_part){
        .name = name,
        .about = lab_arena_printf(part->arena, "%d models", part->rows.count),
        .answer = make_answer(part),
        .cells = make_figures(part),
        .tables = tables,
        .table_count = count,
        .notes = make_notes(part, study),
    };
}

/* --- the whole --- */

#define MODELS_LEAST 2

struct parts {
    struct lab_analysis_part *items;
    struct lab_chart *charts;
    const char **notes;
    int count, chart_count, note_count;
};

static int add_study(const struct scaling_config *config, const struct lab_analysis_input *input,
                     const struct lab_study_table *study, struct lab_arena *arena,
                     struct parts *parts, struct lab_err *err) {
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int point_count = lab_study_points(study, arena, &points);
    int group_count = lab_study_groups(points, point_count, model_keys, arena, &groups);
    for (int g = 0; g < group_count; g++) {
        struct part part = {.group = &groups[g],
                            .rows = scaling_rows_make(&groups[g], config->bytes, arena),
                            .arena = arena};
        if (part.rows.count < MODELS_LEAST)
            continue;
        part.laws = scaling_laws_fit(&part.rows);
        for (int k = 0; k < SCALING_KEYS; k++)
            part.series[k] = scaling_series_find(&part.rows, (enum scaling_key)k, arena);
        if (scaling_predict(study, config, &part.rows, &part.laws, part.series, arena,
                            &part.predictions, &part.prediction_count, err) < 0)
            return -1;
        const char *name = input->study_count > 1
                               ? lab_arena_printf(arena, "%s: %s", study->name, groups[g].name)
                               : groups[g].name;
        const char *suffix = parts->count ? lab_arena_printf(arena, "_%d", parts->count + 1) : "";
        parts->chart_count +=
            scaling_charts(name, suffix, &part.rows, &part.laws, part.series, study->simulated,
                           arena, &parts->charts[parts->chart_count]);
        parts->items[parts->count++] = make_part(&part, study, name);
    }
    const char **notes = lab_study_notes(study, 0, arena);
    for (int i = 0; notes[i]; i++)
        parts->notes[parts->note_count++] = notes[i];
    return 0;
}

#define NOTES_OF_STUDY 16

static int run(const void *opaque, const struct lab_analysis_input *input, struct lab_arena *arena,
               struct lab_analysis_result *ret_result, struct lab_err *err) {
    size_t room = 1;
    for (int i = 0; i < input->study_count; i++)
        room += (size_t)input->studies[i].run_count;
    struct parts parts = {.items = lab_arena_alloc(arena, room, sizeof *parts.items),
                          .charts = lab_arena_alloc(arena, 2 * room, sizeof *parts.charts),
                          .notes = lab_arena_alloc(arena,
                                                   (size_t)input->study_count * NOTES_OF_STUDY + 1,
                                                   sizeof *parts.notes)};
    bool simulated = false;
    for (int i = 0; i < input->study_count; i++) {
        simulated |= input->studies[i].simulated;
        if (add_study(opaque, input, &input->studies[i], arena, &parts, err) < 0)
            return -1;
    }
    *ret_result = (struct lab_analysis_result){
        .answer = parts.count > 0
                      ? parts.items[0].answer
                      : "There is nothing to fit: a law takes models of several depths or widths "
                        "that ran on the same device from the same node.",
        .part_key = "groups",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts.items,
        .part_count = parts.count,
        .simulated = simulated,
        .notes = parts.notes,
        .charts = parts.charts,
        .chart_count = parts.chart_count,
    };
    return 0;
}

/* A whole series says most; models that differ in several keys still make a law. */
static int interest(const struct lab_study_table *study) {
    struct lab_arena arena;
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int most = 0;
    lab_arena_init(&arena);
    int point_count = lab_study_points(study, &arena, &points);
    int group_count = lab_study_groups(points, point_count, model_keys, &arena, &groups);
    for (int g = 0; g < group_count; g++) {
        struct scaling_rows rows = scaling_rows_make(&groups[g], "auto", &arena);
        int said = rows.count >= 3 ? 20 : 0;
        for (int k = 0; k < SCALING_KEYS; k++)
            if (scaling_series_find(&rows, (enum scaling_key)k, &arena).count >= 3)
                said += 30;
        most = said > most ? said : most;
    }
    lab_arena_release(&arena);
    return most;
}

const struct lab_analysis lab_analysis_scaling = {
    .name = "scaling",
    .summary = "how throughput and memory follow a model's depth and width; models not run",
    .description =
        "Fits laws to the models of a study that ran on the same device from the same node: the "
        "time "
        "of an iteration as overhead + FLOPs/rate + bytes/bandwidth with no term below 0, without "
        "the bytes, and the throughput as a power of the FLOPs; each with R², intervals, and how "
        "wrong it is about a model that it hasn't seen. The best of them predicts models that "
        "weren't "
        "run, with the interval in which such a run would fall. Models that differ in depth or in "
        "width alone are held against their neighbours: linear where time grows as the work does, "
        "super-linear where it grows faster, saturated where it doesn't grow at all.",
    .options = scaling_options,
    .config_size = sizeof(struct scaling_config),
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_ANALYSIS_ITERATIONS,
    .interest = interest,
    .run = run,
};
