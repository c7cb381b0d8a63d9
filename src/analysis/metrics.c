/*
 * metrics.c: `gpulab analyze metrics`: what programs of the user's own said last (test_matrix):
 * which setting gives the best value of each metric, and what memory it takes.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"

#include "base/str.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MOST 64
#define SERIES_MOST  8 /* settings that have a colour of their own */
#define MIB_OF_GIB   1024.0

static const struct lab_option metrics_options[] = {{NULL}};

enum direction { EITHER, HIGHER, LOWER };

/* Words that a metric's name is made of tell which way is better; others tell nothing. */
static const struct {
    const char *word;
    enum direction better;
} words[] = {
    {"acc", HIGHER},       {"accuracy", HIGHER}, {"auc", HIGHER},   {"bleu", HIGHER},
    {"f1", HIGHER},        {"iou", HIGHER},      {"map", HIGHER},   {"precision", HIGHER},
    {"recall", HIGHER},    {"reward", HIGHER},   {"score", HIGHER}, {"throughput", HIGHER},
    {"top1", HIGHER},      {"top5", HIGHER},     {"error", LOWER},  {"latency", LOWER},
    {"loss", LOWER},       {"mae", LOWER},       {"mse", LOWER},    {"nll", LOWER},
    {"perplexity", LOWER}, {"ppl", LOWER},       {"rmse", LOWER},   {"wer", LOWER},
};

static enum direction better_of(const char *name) {
    char word[64];
    size_t length = 0;
    for (const char *c = name;; c++) {
        if (*c && (isalnum((unsigned char)*c) && length < sizeof word - 1)) {
            word[length++] = (char)tolower((unsigned char)*c);
            continue;
        }
        word[length] = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (lab_str_equal(words[i].word, word))
                return words[i].better;
        length = 0;
        if (!*c)
            return EITHER;
    }
}

/* --- what they said --- */

struct setting { /* one point of the matrix */
    const struct lab_study_point *point;
    struct lab_analysis_summary value;
    double memory_mib; /* median of its runs; NaN = unknown */
};

struct metric {
    const char *name, *unit;
    enum direction better;
    struct setting *settings; /* those that said it, the best first */
    int count;
};

/* Of all ranks that said it, the mean. */
static double value_of(const struct lab_study_run *run, const char *name) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < run->metric_count; i++)
        if (lab_str_equal(run->metrics[i].name, name) && isfinite(run->metrics[i].value)) {
            sum += run->metrics[i].value;
            count++;
        }
    return count ? sum / count : (double)NAN;
}

/* Of the GPUs where any was watched, else of the program itself. */
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
        double value = value_of(point->runs[i], name), mib = memory_of(point->runs[i], of_gpu);
        if (!isnan(value))
            values[count++] = value;
        if (!isnan(mib))
            memory[memory_count++] = mib;
    }
    return (struct setting){point, lab_analysis_summarize(values, count),
                            lab_analysis_summarize(memory, memory_count).median};
}

static int by_value(const void *a, const void *b) {
    const struct setting *x = a, *y = b;
    return (x->value.median > y->value.median) - (x->value.median < y->value.median);
}

static int by_value_down(const void *a, const void *b) {
    return by_value(b, a);
}

static struct metric make_metric(const struct lab_study_metric *said,
                                 const struct lab_study_point *points, int point_count, bool of_gpu,
                                 struct lab_arena *arena) {
    struct metric metric = {
        .name = said->name,
        .unit = said->unit ? said->unit : "",
        .better = better_of(said->name),
        .settings = lab_arena_alloc(arena, (size_t)point_count + 1, sizeof *metric.settings)};
    for (int i = 0; i < point_count; i++) {
        struct setting setting = describe(&points[i], said->name, of_gpu, arena);
        if (setting.value.count > 0)
            metric.settings[metric.count++] = setting;
    }
    qsort(metric.settings, (size_t)metric.count, sizeof *metric.settings,
          metric.better == HIGHER ? by_value_down : by_value);
    return metric;
}

static int find_metrics(const struct lab_study_table *study, struct metric ret[METRICS_MOST],
                        struct lab_arena *arena) {
    struct lab_study_point *points;
    int point_count = lab_study_points(study, arena, &points), count = 0;
    bool of_gpu = has_gpu_memory(study);
    for (int i = 0; i < study->run_count; i++)
        for (int m = 0; m < study->runs[i].metric_count && study->runs[i].used; m++) {
            const struct lab_study_metric *said = &study->runs[i].metrics[m];
            bool known = false;
            for (int k = 0; k < count; k++)
                known |= lab_str_equal(ret[k].name, said->name);
            if (known || count == METRICS_MOST)
                continue;
            struct metric metric = make_metric(said, points, point_count, of_gpu, arena);
            if (metric.count > 0)
                ret[count++] = metric;
        }
    return count;
}

/* --- words --- */

static void add_value(struct lab_str *out, double value, const char *unit) {
    lab_str_printf(out, "%.4g%s%s", value, *unit ? " " : "", unit);
}

/* Whether another run might as well have put the second first. */
static bool is_sure(const struct metric *metric) {
    const struct lab_analysis_summary *best = &metric->settings[0].value,
                                      *next = &metric->settings[1].value;
    if (best->count < 2 || next->count < 2)
        return false;
    return metric->better == HIGHER ? best->low > next->high : best->high < next->low;
}

static bool is_tie(const struct metric *metric) {
    return metric->settings[0].value.median == metric->settings[metric->count - 1].value.median;
}

/* "accuracy is highest with lr0.01: 0.913; next lr0.1 with 0.902, too near to tell them apart." */
static const char *make_answer(const struct metric *metric, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const struct setting *best = &metric->settings[0], *last = &metric->settings[metric->count - 1];
    if (metric->count == 1) {
        lab_str_printf(&text, "%s ended at ", metric->name);
        add_value(&text, best->value.median, metric->unit);
        lab_str_printf(&text, " with %s, the only setting that said it.", best->point->name);
    } else if (is_tie(metric)) {
        lab_str_printf(&text, "%s ended at ", metric->name);
        add_value(&text, best->value.median, metric->unit);
        lab_str_add(&text, " with all settings.");
    } else if (metric->better == EITHER) {
        lab_str_printf(&text, "%s ended between ", metric->name);
        add_value(&text, best->value.median, metric->unit);
        lab_str_printf(&text, " (%s) and ", best->point->name);
        add_value(&text, last->value.median, metric->unit);
        lab_str_printf(&text, " (%s).", last->point->name);
    } else {
        lab_str_printf(&text, "%s is %s with %s: ", metric->name,
                       metric->better == HIGHER ? "highest" : "lowest", best->point->name);
        add_value(&text, best->value.median, metric->unit);
        lab_str_printf(&text, "; next is %s with ", metric->settings[1].point->name);
        add_value(&text, metric->settings[1].value.median, metric->unit);
        lab_str_add(&text,
                    is_sure(metric) ? "." : ", which so few runs can't tell apart for sure.");
    }
    return lab_arena_strdup(arena, text.text);
}

/* --- the result --- */

static const struct lab_doc_column figure_columns[] = {
    {"settings", "Settings", LAB_UNIT_COUNT},
    {"best", "Best", LAB_UNIT_TEXT, "Best"},
    {"first_value", "Best value, or least", LAB_UNIT_NUMBER, "Best or least"},
    {"last_value", "Worst value, or most", LAB_UNIT_NUMBER, "Worst or most"},
};

static const struct lab_doc_column setting_columns[] = {
    {"setting", "Setting", LAB_UNIT_TEXT}, {"value", "Last value", LAB_UNIT_NUMBER},
    {"low", "From", LAB_UNIT_NUMBER},      {"high", "To", LAB_UNIT_NUMBER},
    {"runs", "Runs", LAB_UNIT_COUNT},      {"peak_memory_mib", "Peak memory", LAB_UNIT_MEBIBYTES},
};

static void add_part(struct lab_analysis_result *result, const struct metric *metric,
                     struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, metric->name, arena);
    struct lab_doc_table *table =
        LAB_TABLE(part, "by_setting", "By setting", setting_columns, arena);
    for (int i = 0; i < metric->count; i++) {
        const struct setting *setting = &metric->settings[i];
        bool several = setting->value.count > 1;
        LAB_ROW(table, arena, lab_cell_text(setting->point->name),
                lab_cell_figure(setting->value.median),
                lab_cell_figure(several ? setting->value.low : (double)NAN),
                lab_cell_figure(several ? setting->value.high : (double)NAN),
                lab_cell_figure((double)setting->value.count),
                lab_cell_figure(setting->memory_mib));
    }
    part->answer = make_answer(metric, arena);
    LAB_FIGURES(part, lab_cell_figure(metric->count),
                lab_cell_text(metric->better == EITHER || is_tie(metric)
                                  ? NULL
                                  : metric->settings[0].point->name),
                lab_cell_figure(metric->settings[0].value.median),
                lab_cell_figure(metric->settings[metric->count - 1].value.median));
}

/* --- memory against what it is spent for --- */

/* The first that tells how good a setting is: an accuracy before a loss. */
static const struct metric *find_quality(const struct metric *metrics, int count) {
    for (int i = 0; i < count; i++)
        if (metrics[i].better == HIGHER)
            return &metrics[i];
    for (int i = 0; i < count; i++)
        if (metrics[i].better == LOWER)
            return &metrics[i];
    return NULL;
}

/* All runs of a setting; `rest` = of all settings from there on, which have no colour of their
 * own. */
static struct lab_chart_series run_points(const struct metric *metric, int from, bool rest,
                                          bool of_gpu, double unit_mib, struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int i = from; i < (rest ? metric->count : from + 1); i++)
        for (int k = 0; k < metric->settings[i].point->count; k++) {
            const struct lab_study_run *run = metric->settings[i].point->runs[k];
            double x = memory_of(run, of_gpu) / unit_mib, y = value_of(run, metric->name);
            if (!isnan(x) && !isnan(y))
                lab_series_add_point(&series, x, y);
        }
    return lab_series_chart(&series, rest ? "others" : metric->settings[from].point->name,
                            LAB_CHART_POINTS, from);
}

static double most_memory(const struct metric *metric) {
    double most = 0;
    for (int i = 0; i < metric->count; i++)
        most = fmax(most, metric->settings[i].memory_mib); /* fmax passes NaN over */
    return most;
}

static void add_chart(struct lab_analysis_result *result, const struct metric *metric,
                      const struct lab_study_table *study, struct lab_arena *arena) {
    bool of_gpu = has_gpu_memory(study), rest = metric->count > SERIES_MOST;
    int lines = rest ? SERIES_MOST : metric->count;
    bool large = most_memory(metric) >= MIB_OF_GIB;
    size_t points = 0;
    struct lab_chart chart = {.name = "memory_vs_accuracy_scatter",
                              .title = lab_arena_printf(arena, "Memory against %s", metric->name),
                              .caption =
                                  metric->better == HIGHER
                                      ? "A point for each run; up and to the left is better."
                                      : "A point for each run; down and to the left is better.",
                              .simulated = study->simulated};
    struct lab_chart_panel *panel = lab_chart_add_panel(
        &chart, NULL,
        lab_axis(lab_arena_printf(arena, "Peak memory of the %s [%s]", of_gpu ? "GPUs" : "program",
                                  large ? "GiB" : "MiB")),
        lab_axis(*metric->unit ? lab_arena_printf(arena, "%s [%s]", metric->name, metric->unit)
                               : metric->name),
        arena);
    for (int i = 0; i < lines; i++)
        points += lab_panel_add_series(panel,
                                       run_points(metric, i, rest && i == lines - 1, of_gpu,
                                                  large ? MIB_OF_GIB : 1, arena),
                                       arena)
                      ->count;
    if (points > 0)
        lab_analysis_add_chart(result, chart, arena);
}

/* --- the whole --- */

static int metrics_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    (void)opaque;
    if (lab_analysis_open(input, LAB_RESULT("metrics", figure_columns), ret_result, err) < 0)
        return -1;
    if (input->study_count > 1)
        return lab_err_set(err, LAB_ERR_USER,
                           "metrics is about one study, not %d: settings of several can't be told "
                           "apart by their names",
                           input->study_count);
    const struct lab_study_table *study = &input->studies[0];
    struct metric *metrics = lab_arena_alloc(arena, METRICS_MOST, sizeof *metrics);
    int count = find_metrics(study, metrics, arena);
    const struct metric *quality = find_quality(metrics, count);
    for (int i = 0; i < count; i++)
        add_part(ret_result, &metrics[i], arena);
    ret_result->answer =
        count ? make_answer(quality ? quality : metrics, arena)
              : "No run said a number that could be read: experiment.metrics.patterns tells how.";
    lab_study_add_notes(study, "", &ret_result->notes, arena);
    if (quality)
        add_chart(ret_result, quality, study, arena);
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
        "Of a study that runs programs (test_matrix): the last value of each metric that they "
        "printed, by setting, the best first where the metric's name tells which way is better "
        "(accuracy, loss, …), with the spread of its repeats, and the memory that it took.",
    .options = metrics_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = metrics_interest,
    .run = metrics_run,
};
