/*
 * scaling.c: `gpulab analyze scaling`: how throughput and memory follow the depth and the width of
 * a model; as laws with their intervals, and as what they say of models that weren't run.
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

static const struct lab_doc_column figure_columns[FIGURES] = {
    [MODELS] = {"models", "Models", LAB_UNIT_COUNT},
    [OVERHEAD] = {"overhead_ms", "Overhead", LAB_UNIT_TIME, "Overhead", true},
    [FLOP_RATE] = {"rate_flops_per_s", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [FLOP_RATE_TEXT] = {NULL, "Compute rate", LAB_UNIT_TEXT, "Compute rate"},
    [BANDWIDTH] = {"bandwidth_gb_per_s", "Bandwidth", LAB_UNIT_RATE, .with_interval = true},
    [R_SQUARED] = {"r_squared", "R²", LAB_UNIT_NUMBER},
    [LEAVE_ONE_OUT] = {"leave_one_out_error", "Leave-one-out", LAB_UNIT_SHARE, "Error"},
    [EXPONENT] = {"exponent", NULL, LAB_UNIT_NUMBER, .with_interval = true},
    [EXPONENT_TEXT] = {NULL, "Power law", LAB_UNIT_TEXT},
    [MEMORY_BASE] = {"memory_base_mib", "Memory, base", LAB_UNIT_MEBIBYTES, NULL, true},
    [MEMORY_SLOPE] = {"memory_bytes_per_parameter", "Bytes/parameter", LAB_UNIT_NUMBER, NULL, true},
    [BEST_LAW] = {"best_law", "Predicts best", LAB_UNIT_TEXT},
};

/* --- one group --- */

static void fill_law_figures(const struct scaling_part *part, struct lab_doc_cell *cells) {
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    if (!law)
        return;
    struct lab_effect rate = scaling_law_coefficient(law, SCALING_PER_FLOP);
    cells[OVERHEAD] = lab_analysis_effect(
        (struct lab_effect){law->fit.coefficients[SCALING_OVERHEAD],
                            lab_fit_interval(&law->fit, SCALING_OVERHEAD, SCALING_CONFIDENCE)});
    if (cells[OVERHEAD].value == 0)
        cells[OVERHEAD].text = lab_arena_printf(part->arena, "at most %s",
                                                lab_words_time(cells[OVERHEAD].high, part->arena));
    cells[FLOP_RATE] = lab_analysis_effect(rate);
    cells[FLOP_RATE_TEXT] = lab_cell_text(lab_words_rate(rate, "FLOP/s", part->arena));
    cells[R_SQUARED] = lab_cell_figure(law->fit.r_squared);
    cells[LEAVE_ONE_OUT] = lab_cell_figure(law->leave_one_out);
    if (law->kind == SCALING_ROOFLINE) {
        cells[BANDWIDTH] = lab_analysis_effect(scaling_law_coefficient(law, SCALING_PER_BYTE));
        cells[BANDWIDTH].text =
            part->rows.bytes == SCALING_DEVICE_BYTES ? "of the device's memory" : "of the copies";
    }
}

static void set_figures(const struct scaling_part *part, struct lab_doc_cell *cells) {
    cells[MODELS] = lab_cell_figure(part->rows.count);
    fill_law_figures(part, cells);
    const struct scaling_law *power = &part->laws.items[SCALING_POWER],
                             *best = scaling_laws_best(&part->laws);
    if (!power->lacks) {
        struct lab_effect exponent = {
            power->fit.coefficients[SCALING_EXPONENT],
            lab_fit_interval(&power->fit, SCALING_EXPONENT, SCALING_CONFIDENCE)};
        cells[EXPONENT] = lab_analysis_effect(exponent);
        cells[EXPONENT_TEXT] = lab_cell_text(lab_arena_printf(
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
        cells[BEST_LAW] = lab_cell_text(scaling_law_words(best->kind));
}

/* --- sentences --- */

/* "350 µs [340, 360] and its work at ". What may as well be nothing has no figure but the most it
 * is. */
static void add_overhead(const struct lab_fit *fit, struct lab_arena *arena, struct lab_str *text) {
    double overhead_s = fit->coefficients[SCALING_OVERHEAD];
    struct lab_interval known = lab_fit_interval(fit, SCALING_OVERHEAD, SCALING_CONFIDENCE);
    if (!(overhead_s > 0))
        lab_str_add(text, "as long as its work at ");
    else if (isnan(known.low))
        lab_str_printf(text, "%s and its work at ", lab_words_time(overhead_s, arena));
    else if (known.low <= 0)
        lab_str_printf(text, "no more than %s, perhaps nothing, and its work at ",
                       lab_words_time(known.high, arena));
    else
        lab_str_printf(text, "%s [%s, %s] and its work at ", lab_words_time(overhead_s, arena),
                       lab_words_time(known.low, arena), lab_words_time(known.high, arena));
}

/* "An iteration takes 350 µs and 1 s for each 12.3 TFLOP [11.9, 12.7] …" */
static void add_law(const struct scaling_part *part, struct lab_str *text) {
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    const struct scaling_law *power = &part->laws.items[SCALING_POWER];
    if (!law) {
        lab_str_printf(text, "no law can be told: %s", part->laws.items[SCALING_LINE].lacks);
        return;
    }
    lab_str_add(text, "an iteration takes ");
    add_overhead(&law->fit, part->arena, text);
    lab_str_add(text, lab_words_rate(scaling_law_coefficient(law, SCALING_PER_FLOP), "FLOP/s",
                                     part->arena));
    if (law->kind == SCALING_ROOFLINE && law->fit.coefficients[SCALING_PER_BYTE] > 0)
        lab_str_printf(
            text, ", then its bytes at %s",
            lab_words_rate(scaling_law_coefficient(law, SCALING_PER_BYTE), "B/s", part->arena));
    lab_str_printf(text, " (R² %.4f, %.1f %% wrong about models it hasn't seen)",
                   law->fit.r_squared, 100 * law->leave_one_out);
    if (!power->lacks) {
        struct lab_interval b = lab_fit_interval(&power->fit, SCALING_EXPONENT, SCALING_CONFIDENCE);
        lab_str_printf(text, "; throughput goes as FLOPs^%.2f [%.2f, %.2f]",
                       power->fit.coefficients[SCALING_EXPONENT], b.low, b.high);
    }
}

static const char *make_answer(const struct scaling_part *part) {
    static const char *const by[SCALING_KEYS] = {"By depth", "By width"};
    LAB_AUTO(str, text);
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
                           scaling_rate_words(&made->rate, part->arena),
                           made->beyond ? ", if the law holds beyond what was run" : "");
    }
    return lab_arena_strdup(part->arena, text.text);
}

static void add_notes(const char *const **notes, const struct scaling_part *part,
                      const struct lab_study_table *study) {
    struct lab_arena *arena = part->arena;
    const struct scaling_law *law = scaling_laws_fullest(&part->laws);
    if (law && law->kind == SCALING_LINE)
        lab_analysis_note(notes, arena, "Bytes have no term of their own: %s.",
                          part->laws.items[SCALING_ROOFLINE].lacks);
    if (law && law->kind == SCALING_ROOFLINE &&
        lab_fit_interval(&law->fit, SCALING_PER_BYTE, SCALING_CONFIDENCE).low == 0) {
        struct lab_effect bandwidth = scaling_law_coefficient(law, SCALING_PER_BYTE);
        lab_analysis_note(
            notes, arena,
            "The time that bytes take can't be told from none: bandwidth is at least %s.",
            lab_words_si(bandwidth.interval.low, "B/s", arena));
    }
    if (law && law->fit.degrees_of_freedom < 3)
        lab_analysis_note(notes, arena,
                          "%d models leave the law little to be tested by: its intervals are wide.",
                          part->rows.count);
    if (part->rows.left_out > 0)
        lab_analysis_note(notes, arena,
                          "%d point%s without arithmetic or without a rate%s left out.",
                          part->rows.left_out, part->rows.left_out == 1 ? "" : "s",
                          part->rows.left_out == 1 ? " is" : " are");
    if (!study->work_of && law)
        lab_analysis_note(
            notes, arena,
            "Models that weren't run can't be predicted here: nobody counts their work.");
}

static void add_part(struct lab_analysis_result *result, const struct scaling_part *part,
                     const struct lab_study_table *study, const char *name) {
    struct lab_analysis_part *to = lab_analysis_add_part(result, name, part->arena);
    for (int k = 0; k < SCALING_KEYS; k++)
        if (part->series[k].count >= 2)
            scaling_add_series_table(to, part, &part->series[k]);
    scaling_add_law_table(to, part);
    if (part->prediction_count > 0)
        scaling_add_prediction_table(to, part);
    to->about = lab_arena_printf(part->arena, "%d models", part->rows.count);
    to->answer = make_answer(part);
    set_figures(part, to->cells);
    add_notes(&to->notes, part, study);
}

/* --- the whole --- */

#define MODELS_LEAST   2
#define GROUPS_CHARTED 2 /* of a study: the same models from every node would be the same picture */

static int add_study(const struct scaling_config *config, const struct lab_analysis_input *input,
                     const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_analysis_result *result, struct lab_err *err) {
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int point_count = lab_study_points(study, arena, &points);
    int group_count = lab_study_groups(points, point_count, model_keys, arena, &groups);
    int before = result->part_count;
    for (int g = 0; g < group_count; g++) {
        struct scaling_part part = {.group = &groups[g],
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
        const char *name = lab_arena_printf(arena, "%s%s", lab_analysis_prefix(input, study, arena),
                                            groups[g].name);
        if (result->part_count - before < GROUPS_CHARTED)
            scaling_add_charts(result, name, lab_analysis_suffix(result->part_count, arena), &part,
                               study->simulated);
        add_part(result, &part, study, name);
    }
    lab_study_add_notes(study, "", &result->notes, arena);
    return 0;
}

static int scaling_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    if (lab_analysis_open(input, LAB_RESULT("groups", figure_columns), ret_result, err) < 0)
        return -1;
    for (int i = 0; i < input->study_count; i++)
        if (add_study(opaque, input, &input->studies[i], arena, ret_result, err) < 0)
            return -1;
    ret_result->answer =
        ret_result->part_count > 0
            ? ret_result->parts[0].answer
            : "There is nothing to fit: a law takes models of several depths or widths "
              "that ran on the same device from the same node.";
    return 0;
}

/* A whole series says most; models that differ in several keys still make a law. */
static int scaling_interest(const struct lab_study_table *study) {
    LAB_AUTO(arena, arena);
    struct lab_study_point *points;
    struct lab_study_group *groups;
    int most = 0;
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
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = scaling_interest,
    .run = scaling_run,
};
