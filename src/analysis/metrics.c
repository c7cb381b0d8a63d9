/*
 * metrics.c: `gpulab analyze metrics`: what programs of the user's own reported last (test_matrix),
 * by setting, compared with the first setting, and the memory that it takes.
 */
#include "analysis/analysis_words.h"
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"
#include "model/reported_metric.h"

#include <math.h>

#define METRICS_MOST 64
#define SERIES_MOST  8 /* settings that have a colour of their own */
#define MIB_OF_GIB   1024.0

enum direction {
    EITHER = LAB_DIRECTION_NONE,
    HIGHER = LAB_DIRECTION_HIGHER,
    LOWER = LAB_DIRECTION_LOWER
};

/* As the study's runs say, or by the metric's name. */
static enum direction better_of(const char *name, const struct lab_study_table *study) {
    const struct lab_value *settings = NULL;
    for (int i = 0; i < study->run_count && !settings; i++)
        settings = lab_value_get(study->runs[i].options, "metrics");
    return (enum direction)lab_metric_direction(name, settings);
}

/* --- what they reported --- */

struct setting { /* one point of the matrix */
    const struct lab_study_point *point;
    const char *name;
    double value, low, high; /* median over its runs, with its interval; NaN = none */
    int runs;
    double memory_mib;       /* median of its runs; NaN = unknown */
    struct lab_claim change; /* "metrics.setting": against the first setting */
};

static const struct lab_field setting_fields[] = {
    LAB_FIELD(struct setting, name, "setting", "Setting", LAB_UNIT_TEXT),
    LAB_FIELD(struct setting, value, "value", "Last value", LAB_UNIT_NUMBER),
    LAB_FIELD(struct setting, low, "low", "From", LAB_UNIT_NUMBER, .optional = true),
    LAB_FIELD(struct setting, high, "high", "To", LAB_UNIT_NUMBER, .optional = true),
    LAB_FIELD(struct setting, runs, "runs", "Runs", LAB_UNIT_COUNT),
    LAB_FIELD(struct setting, memory_mib, "peak_memory_mib", "Peak memory", LAB_UNIT_MEBIBYTES,
              .optional = true),
    LAB_FIELD(struct setting, change, "change", "Change", LAB_UNIT_CHANGE),
};

struct metric {
    const char *name, *unit;
    enum direction better;
    struct setting *settings; /* those that reported it, the best first */
    int count;
    const char *best; /* by a claim; the first setting where none is better; NULL = unknown */
};

static const struct lab_field metric_fields[] = {
    LAB_FIELD(struct metric, count, "settings", "Settings", LAB_UNIT_COUNT),
    LAB_FIELD(struct metric, best, "best", "Use", LAB_UNIT_TEXT, "Use"),
};

/* Of all ranks that reported it, the mean. */
static double value_of(const struct lab_study_run *run, const void *name) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < run->metric_count; i++)
        if (lab_str_equal(run->metrics[i].name, name) && isfinite(run->metrics[i].value)) {
            sum += run->metrics[i].value;
            count++;
        }
    return count ? sum / count : (double)NAN;
}

/* Of the GPUs where any was sampled, else of the program itself. */
static double memory_of(const struct lab_study_run *run, bool of_gpu) {
    return of_gpu ? run->result->gpu_memory_peak_mb : run->result->peak_memory_mb;
}

static bool has_gpu_memory(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (!isnan(memory_of(&study->runs[i], true)))
            return true;
    return false;
}

static struct setting describe(const struct lab_study_point *point, const char *name, bool of_gpu,
                               struct lab_arena *arena) {
    double *values = lab_arena_alloc(arena, (size_t)point->count, sizeof *values),
           *memory = lab_arena_alloc(arena, (size_t)point->count, sizeof *memory);
    size_t count = 0, memory_count = 0;
    for (int i = 0; i < point->count; i++) {
        values[count] = value_of(point->runs[i], name);
        count += !isnan(values[count]);
        memory[memory_count] = memory_of(point->runs[i], of_gpu);
        memory_count += !isnan(memory[memory_count]);
    }
    struct lab_analysis_summary summary = lab_analysis_summarize(values, count);
    return (struct setting){.point = point,
                            .name = lab_study_point_model(point, arena),
                            .value = summary.median,
                            .low = count > 1 ? summary.low : (double)NAN,
                            .high = count > 1 ? summary.high : (double)NAN,
                            .runs = (int)count,
                            .memory_mib = lab_analysis_summarize(memory, memory_count).median};
}

/* The first setting of the study is the reference. */
static void compare(struct metric *metric, struct lab_arena *arena) {
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)metric->count, sizeof *claims);
    for (int i = 0; i < metric->count; i++) {
        struct setting *setting = &metric->settings[i];
        struct lab_contrast contrast = {.arena = arena, .value = value_of, .context = metric->name};
        if (i > 0)
            lab_contrast_add_pair(&contrast, metric->settings[0].point, setting->point, 1);
        setting->change =
            lab_claim_named(lab_claim_estimate(&contrast, LAB_STUDY_RATE), "metrics.setting",
                            setting->name, metric->settings[0].name, metric->name);
        claims[i] = &setting->change;
    }
    lab_claim_adjust(claims, metric->count);
    double most = 0;
    metric->best = metric->better == EITHER ? NULL : metric->settings[0].name;
    for (int i = 1; i < metric->count && metric->best; i++) {
        double gain = metric->settings[i].change.effect * (metric->better == HIGHER ? 1 : -1);
        if (metric->settings[i].change.verdict == LAB_CLAIM_YES && gain > most) {
            most = gain;
            metric->best = metric->settings[i].name;
        }
    }
}

static struct metric make_metric(const struct lab_study_metric *said,
                                 const struct lab_study_table *study,
                                 const struct lab_study_point *points, int point_count,
                                 struct lab_arena *arena) {
    struct metric metric = {.name = said->name,
                            .unit = said->unit ? said->unit : "",
                            .better = better_of(said->name, study)};
    for (int i = 0; i < point_count; i++) {
        struct setting setting = describe(&points[i], said->name, has_gpu_memory(study), arena);
        if (setting.runs > 0)
            LAB_ADD(metric.settings, metric.count, arena) = setting;
    }
    if (metric.count == 0)
        return metric;
    compare(&metric, arena);
    LAB_SORT(metric.settings, metric.count,
             LAB_LIST_KEY(metric.settings, value, metric.better == HIGHER));
    return metric;
}

static int find_metrics(const struct lab_study_table *study, struct lab_arena *arena,
                        struct metric **ret_metrics) {
    struct lab_study_point *points;
    int point_count = lab_study_points(study, arena, &points), count = 0;
    struct metric *metrics = NULL;
    for (int i = 0; i < study->run_count; i++)
        for (int m = 0; m < study->runs[i].metric_count && study->runs[i].used; m++) {
            const struct lab_study_metric *said = &study->runs[i].metrics[m];
            if (count == METRICS_MOST || LAB_FIND(metrics, count, name, said->name) >= 0)
                continue;
            struct metric metric = make_metric(said, study, points, point_count, arena);
            if (metric.count > 0)
                LAB_ADD(metrics, count, arena) = metric;
        }
    *ret_metrics = metrics;
    return count;
}

/* --- words --- */

static const char *value_text(const struct metric *metric, double value, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%.4g%s%s", value, *metric->unit ? " " : "", metric->unit);
}

/* What a claim says of the best; else the range of the values. */
static const char *make_answer(const struct metric *metric, struct lab_arena *arena) {
    const struct setting *best = &metric->settings[0], *last = &metric->settings[metric->count - 1];
    const char *from = value_text(metric, best->value, arena),
               *to = value_text(metric, last->value, arena);
    double bound = 0;
    int same = 0, fewest = best->runs;
    for (int i = 0; i < metric->count; i++) {
        const struct setting *setting = &metric->settings[i];
        if (setting->change.verdict == LAB_CLAIM_YES && setting->name == metric->best)
            return lab_arena_printf(arena, "%s.", lab_claim_sentence(&setting->change, arena));
        same += setting->change.verdict == LAB_CLAIM_NO;
        bound = fmax(bound, setting->change.bound); /* fmax passes NaN over */
        fewest = setting->runs < fewest ? setting->runs : fewest;
    }
    if (metric->count == 1)
        return lab_arena_printf(arena, "%s: %s with %s, the only setting.", metric->name, from,
                                best->name);
    if (same == metric->count - 1)
        return lab_arena_printf(arena,
                                "No difference larger than %.1f%% in %s between %d settings.",
                                lab_words_bound_percent(bound), metric->name, metric->count);
    return lab_arena_printf(arena, "%s from %s (%s) to %s (%s): %s (%d run%s each).", metric->name,
                            from, best->name, to, last->name,
                            metric->better == EITHER ? "no direction is better"
                            : fewest < 2             ? "no verdict"
                                                     : "inconclusive",
                            fewest, fewest == 1 ? "" : "s");
}

/* --- memory and what it is spent for --- */

/* The first that shows how good a setting is: an accuracy before a loss. */
static const struct metric *find_quality(const struct metric *metrics, int count) {
    for (int i = 0; i < count; i++)
        if (metrics[i].better == HIGHER)
            return &metrics[i];
    for (int i = 0; i < count; i++)
        if (metrics[i].better == LOWER)
            return &metrics[i];
    return NULL;
}

struct run_row {
    double memory, value;
    const char *setting;
};

static const struct lab_field run_fields[] = {
    LAB_FIELD(struct run_row, memory, "memory", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct run_row, value, "value", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct run_row, setting, "setting", NULL, LAB_UNIT_TEXT),
};

static void add_chart(struct lab_analysis_result *result, const struct metric *metric,
                      const struct lab_study_table *study, struct lab_arena *arena) {
    bool of_gpu = has_gpu_memory(study);
    double most = 0;
    struct run_row *rows = NULL;
    int count = 0;
    for (int i = 0; i < metric->count; i++)
        most = fmax(most, metric->settings[i].memory_mib); /* fmax passes NaN over */
    double unit_mib = most >= MIB_OF_GIB ? MIB_OF_GIB : 1;
    for (int i = 0; i < metric->count; i++)
        for (int k = 0; k < metric->settings[i].point->count; k++) {
            const struct lab_study_run *run = metric->settings[i].point->runs[k];
            bool shared = metric->count > SERIES_MOST && i >= SERIES_MOST - 1;
            LAB_ADD(rows, count, arena) =
                (struct run_row){memory_of(run, of_gpu) / unit_mib, value_of(run, metric->name),
                                 shared ? "others" : metric->settings[i].name};
        }
    struct lab_chart chart = {
        .name = "memory_vs_accuracy_scatter",
        .title = lab_arena_printf(arena, "Memory and %s", metric->name),
        .caption = lab_arena_printf(arena, "A point for each run; %s and to the left is better.",
                                    metric->better == HIGHER ? "up" : "down"),
        .simulated = study->simulated};
    struct lab_chart_panel *panel = lab_chart_add_panel(
        &chart, NULL,
        lab_axis(lab_arena_printf(arena, "Peak memory of the %s [%s]", of_gpu ? "GPUs" : "program",
                                  unit_mib > 1 ? "GiB" : "MiB")),
        lab_axis(*metric->unit ? lab_arena_printf(arena, "%s [%s]", metric->name, metric->unit)
                               : metric->name),
        arena);
    lab_rows_add_series(panel, &LAB_ROWS(run_fields, rows, count), "memory", "value", "setting",
                        LAB_CHART_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}

/* --- the whole --- */

static int metrics_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    struct lab_arena *arena = result->arena;
    if (input->study_count > 1)
        return lab_err_set(err, LAB_ERR_USER,
                           "metrics is about one study, not %d: settings of several have the same "
                           "names",
                           input->study_count);
    const struct lab_study_table *study = &input->studies[0];
    struct metric *metrics;
    int count = find_metrics(study, arena, &metrics);
    const struct metric *quality = find_quality(metrics, count);
    for (int i = 0; i < count; i++) {
        struct lab_analysis_part *part = lab_analysis_add_part(result, metrics[i].name, arena);
        struct lab_rows rows = LAB_ROWS(setting_fields, metrics[i].settings, metrics[i].count);
        lab_rows_add_table(part, "by_setting", "By setting", &rows, arena);
        part->answer = make_answer(&metrics[i], arena);
        LAB_PART_FIGURES(part, metric_fields, &metrics[i], arena);
        for (int k = 0; k < metrics[i].count; k++)
            if (metrics[i].settings[k].change.verdict != LAB_CLAIM_NOT_TESTED)
                lab_analysis_add_claim(result, &metrics[i].settings[k].change, arena);
    }
    result->answer =
        count ? make_answer(quality ? quality : metrics, arena)
              : "No run reported a number: experiment.metrics.patterns sets how they are read.";
    lab_study_add_notes(study, "", &result->notes, arena);
    if (quality)
        add_chart(result, quality, study, arena);
    return 0;
}

/* A program's figures are what its study was made for. */
static int metrics_interest(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].metric_count > 0)
            return 70;
    return 0;
}

const struct lab_analysis lab_analysis_metrics = {
    .name = "metrics",
    .summary = "which setting of your own program gives the best values, and for what memory",
    .description =
        "For a study of programs (test_matrix): the last printed value of each metric by setting, "
        "the spread of its repeats, and the peak memory. The best is first where the metric's name "
        "implies a direction (accuracy, loss, …) or experiment.metrics.direction sets one.",
    .kinds = (const struct lab_analysis_kind[]){{"metrics.setting", LAB_KIND_PROGRAM}, {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = metrics_interest,
    LAB_PARTS_OF("metrics", metric_fields),
    .run = metrics_run,
};
