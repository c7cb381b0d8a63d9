/*
 * balance.c: `gpulab analyze balance`: whether the GPUs of a recording carry the same load, in
 * memory, utilisation and power, all through it, and what to do where they don't.
 */
#include "analysis/balance/balance.h"
#include "analysis/recording/recording_stats_chart.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

struct balance_config {
    struct lab_recording_stats_config stats;
    double window_s;
};

static const struct lab_option balance_options[] = {
    LAB_RECORDING_STATS_OPTIONS(balance_config),
    {"window", LAB_OPTION_DURATION, offsetof(struct balance_config, window_s), .fallback = "0",
     .max = 1e9,
     .help = "how long a stretch of time is that has a balance of its own; 0 takes a "
             "tenth of the recording"},
    {NULL},
};

enum {
    DURATION,
    GPUS,
    RATE,
    RATE_UNIT,
    TOGETHER, /* of each metric: all GPUs, their CV, its grade */
    CV = TOGETHER + LAB_BALANCED,
    GRADE = CV + LAB_BALANCED,
    DRIFT = GRADE + LAB_BALANCED,
    ADVICE,
    FIGURES
};

static const struct lab_doc_column figure_columns[FIGURES] = {
    [DURATION] = {"duration_s", NULL, LAB_UNIT_DURATION},
    [GPUS] = {"gpus", NULL, LAB_UNIT_COUNT},
    [TOGETHER + LAB_RECORDING_STATS_MEMORY] = {"memory_total_mib", NULL, LAB_UNIT_MEBIBYTES},
    [TOGETHER +
        LAB_RECORDING_STATS_UTILIZATION] = {"utilization_mean_percent", NULL, LAB_UNIT_PERCENT},
    [TOGETHER + LAB_RECORDING_STATS_POWER] = {"power_total_w", NULL, LAB_UNIT_WATTS},
    [CV + LAB_RECORDING_STATS_MEMORY] = {"memory_cv", NULL, LAB_UNIT_SHARE, "Memory CV"},
    [CV + LAB_RECORDING_STATS_UTILIZATION] = {"utilization_cv", NULL, LAB_UNIT_SHARE,
                                              "Utilisation CV"},
    [CV + LAB_RECORDING_STATS_POWER] = {"power_cv", NULL, LAB_UNIT_SHARE, "Power CV"},
    [GRADE + LAB_RECORDING_STATS_MEMORY] = {"memory_grade", NULL, LAB_UNIT_TEXT},
    [GRADE + LAB_RECORDING_STATS_UTILIZATION] = {"utilization_grade", NULL, LAB_UNIT_TEXT},
    [GRADE + LAB_RECORDING_STATS_POWER] = {"power_grade", NULL, LAB_UNIT_TEXT},
    [RATE] = {"rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, "Throughput"},
    [RATE_UNIT] = {"rate_unit", NULL, LAB_UNIT_TEXT},
    [DRIFT] = {"over_time", "Over time", LAB_UNIT_TEXT},
    [ADVICE] = {"advice", "Advice", LAB_UNIT_TEXT},
};

/* One table for each metric: keys differ by their unit. */
#define GPU_COLUMNS 4
#define METRIC_COLUMNS(unit_key, unit)                                                             \
    {                                                                                              \
        {"gpu", "GPU", LAB_UNIT_COUNT}, {"mean_" unit_key, "Mean", unit},                          \
            {"deviation_" unit_key, "±", unit}, {                                                  \
            "peak_" unit_key, "Peak", unit                                                         \
        }                                                                                          \
    }
static const struct lab_doc_column gpu_columns[LAB_BALANCED][GPU_COLUMNS] = {
    [LAB_RECORDING_STATS_MEMORY] = METRIC_COLUMNS("mib", LAB_UNIT_MEBIBYTES),
    [LAB_RECORDING_STATS_UTILIZATION] = METRIC_COLUMNS("percent", LAB_UNIT_PERCENT),
    [LAB_RECORDING_STATS_POWER] = METRIC_COLUMNS("w", LAB_UNIT_WATTS),
};

static const struct lab_doc_column window_columns[] = {
    {"from_s", "From", LAB_UNIT_DURATION},
    {"until_s", "To", LAB_UNIT_DURATION},
    {"memory_cv", "Memory CV", LAB_UNIT_SHARE},
    {"utilization_cv", "Utilisation CV", LAB_UNIT_SHARE},
    {"power_cv", "Power CV", LAB_UNIT_SHARE},
};

/* --- tables --- */

static int label_columns(const struct lab_recording_stats *stats) {
    int most = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        int columns = (int)strlen(stats->gpus[g].name) + 1;
        most = columns > most ? columns : most;
    }
    return most;
}

static int value_columns(const struct lab_recording_stats *stats, int metric) {
    int most = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        char text[64];
        int length = snprintf(text, sizeof text, "%.1f", stats->gpus[g].figures[metric].mean);
        most = length > most && !isnan(stats->gpus[g].figures[metric].mean) ? length : most;
    }
    return most;
}

static const char *balance_line(double cv, const struct lab_recording_stats *stats,
                                struct lab_arena *arena) {
    if (!isnan(cv))
        return lab_arena_printf(arena, "Balance: CV = %.1f %% (%s)", 100 * cv,
                                lab_recording_stats_grade(cv));
    return stats->gpu_count < 2 ? "Balance: needs two GPUs" : "Balance: – (nothing to compare)";
}

/*
 *     GPU 0: 12800.0 MB (±45.2)
 *     Total:  51155.0 MB
 *     Balance: CV = 0.2 % (excellent)
 */
static const char *const *metric_lines(const struct lab_balance *balance, int metric,
                                       struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    const struct lab_recording_stats_kind *kind = &lab_recording_stats_kinds[metric];
    const char **lines = lab_arena_alloc(arena, (size_t)stats->gpu_count + 3, sizeof *lines);
    int count = 0, label = label_columns(stats), width = value_columns(stats, metric);
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_recording_stats_gpu *gpu = &stats->gpus[g];
        const struct lab_recording_stats_figures *figures = &gpu->figures[metric];
        const char *name = lab_arena_printf(arena, "%s:", gpu->name);
        lines[count++] = figures->count == 0
                             ? lab_arena_printf(arena, "%-*s –", label, name)
                             : lab_arena_printf(arena, "%-*s %*.1f %s (±%.1f)", label, name, width,
                                                figures->mean, kind->unit, figures->deviation);
    }
    lines[count++] = lab_arena_printf(arena, "%s  %.1f %s", kind->adds_up ? "Total:" : "Mean: ",
                                      lab_recording_stats_together(stats, metric), kind->unit);
    lines[count++] = balance_line(balance->cv[metric], stats, arena);
    return lines;
}

static void add_metric_table(struct lab_analysis_part *part, const struct lab_balance *balance,
                             int metric, struct lab_arena *arena) {
    const struct lab_recording_stats_kind *kind = &lab_recording_stats_kinds[metric];
    struct lab_doc_table *table =
        LAB_TABLE(part, kind->key, kind->title, gpu_columns[metric], arena);
    for (int g = 0; g < balance->stats->gpu_count; g++) {
        const struct lab_recording_stats_gpu *gpu = &balance->stats->gpus[g];
        const struct lab_recording_stats_figures *figures = &gpu->figures[metric];
        LAB_ROW(table, arena, lab_cell_figure(gpu->track->entity.index),
                lab_cell_figure(figures->mean), lab_cell_figure(figures->deviation),
                lab_cell_figure(figures->peak));
    }
    table->lines = metric_lines(balance, metric, arena);
}

static void add_window_table(struct lab_analysis_part *part, const struct lab_balance *balance,
                             struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "windows", lab_balance_is_steady(balance) ? NULL : "Over time",
                  window_columns, arena);
    double length_s = balance->stats->duration_s / balance->windows;
    double *const *cv = balance->window_cv;
    for (int w = 0; w < balance->windows; w++)
        LAB_ROW(table, arena, lab_cell_figure(w * length_s), lab_cell_figure((w + 1) * length_s),
                lab_cell_figure(cv[LAB_RECORDING_STATS_MEMORY][w]),
                lab_cell_figure(cv[LAB_RECORDING_STATS_UTILIZATION][w]),
                lab_cell_figure(cv[LAB_RECORDING_STATS_POWER][w]));
}

static void add_part(struct lab_analysis_result *result, const struct lab_balance *balance,
                     struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    struct lab_analysis_part *part = lab_analysis_add_part(result, stats->source->name, arena);
    struct lab_doc_cell *cells = part->cells;
    for (int m = 0; m < LAB_BALANCED; m++) {
        cells[TOGETHER + m] = lab_cell_figure(lab_recording_stats_together(stats, m));
        cells[CV + m] = lab_cell_figure(balance->cv[m]);
        cells[GRADE + m] = lab_cell_text(lab_recording_stats_grade(balance->cv[m]));
        if (!isnan(cells[TOGETHER + m].value))
            add_metric_table(part, balance, m, arena);
    }
    bool windows = balance->windows > 1 && lab_balance_worst(balance) >= 0;
    if (windows)
        add_window_table(part, balance, arena);
    cells[DURATION] = lab_cell_figure(stats->duration_s);
    cells[GPUS] = lab_cell_figure(stats->gpu_count);
    lab_recording_stats_set_rate(stats->source->rate, stats->source->rate_unit, &cells[RATE],
                                 &cells[RATE_UNIT]);
    cells[DRIFT] = lab_cell_text(windows ? lab_balance_over_time(balance, arena) : NULL);
    cells[ADVICE] = lab_cell_text(lab_balance_advice(balance, arena));
    part->about = lab_recording_stats_about(&stats, 1, arena);
    part->answer = lab_balance_answer(balance, arena);
    lab_balance_add_notes(stats, &part->notes, arena);
}

static int balance_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    const struct balance_config *config = opaque;
    struct lab_recording_stats *all_stats;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = input->recording_count;
    struct lab_balance *balances = lab_arena_alloc(arena, (size_t)count, sizeof *balances);
    *ret_result = LAB_RESULT("recordings", figure_columns);
    ret_result->simulated = lab_recording_stats_simulated(input);
    for (int i = 0; i < count; i++) {
        balances[i] = lab_balance_make(&all_stats[i], config->window_s, arena);
        add_part(ret_result, &balances[i], arena);
    }
    lab_balance_add_rate_note(balances, count, &ret_result->notes, arena);
    ret_result->answer = count == 1 ? ret_result->parts[0].answer
                                    : lab_balance_answer_for_all(balances, count, arena);
    lab_recording_stats_chart_balance(all_stats, count, arena, ret_result);
    lab_recording_stats_chart_breakdown(all_stats, count, arena, ret_result);
    return 0;
}

const struct lab_analysis lab_analysis_balance = {
    .name = "balance",
    .summary = "whether GPUs carry the same load: memory, utilisation, power",
    .description =
        "Of each recording: every GPU's mean with its deviation, and the coefficient of variation "
        "between them (population standard deviation over mean): below 5 % excellent, below 10 % "
        "good, below 20 % fair, else poor; the same over time. A path is a recording, a file of "
        "another monitor, a study, or a folder of them.",
    .options = balance_options,
    .config_size = sizeof(struct balance_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    .run = balance_run,
};
