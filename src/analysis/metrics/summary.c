/*
 * summary.c: what each setting takes and gives, in one table: the objective, time, rate, memory of
 * its GPUs, energy, and how evenly the memory is spread; and the charts of memory.
 */
#include "analysis/metrics/metrics.h"

#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define MIB_OF_GIB  1024.0
#define SERIES_MOST 8    /* settings that have a colour of their own */
#define BARS_MOST   16   /* settings of the memory comparison */
#define WORKER_MIB  16   /* a program's peak may be the worker's, from which it was started */
#define IDLE_SHARE  0.05 /* of the largest: a GPU with less memory in use does nothing */

/* --- of a run --- */

/* A single one's is the run's. */
static double rank_memory(const struct lab_study_run *run, int rank) {
    if (rank == 0 && run->result->rank_count == 0)
        return run->result->gpu_memory_peak_mb;
    return rank < run->result->rank_count ? run->result->ranks[rank].gpu_memory_peak_mb
                                          : (double)NAN;
}

double metrics_memory_all(const struct lab_study_run *run, bool of_gpu) {
    return of_gpu ? run->result->gpu_memory_peak_mb : run->result->peak_memory_mb;
}

double metrics_memory_most(const struct lab_study_run *run, bool of_gpu) {
    double most = NAN;
    for (int i = 0; of_gpu && i < run->rank_count; i++)
        most = fmax(most, rank_memory(run, i)); /* fmax passes NaN over */
    return isnan(most) ? metrics_memory_all(run, of_gpu) : most;
}

/* Of a workload the mean over the run: its throughput is of the same iterations. */
static double run_time(const struct lab_study_run *run, const void *context) {
    bool mean = *(const bool *)context && run->work.samples > 0 && run->rate > 0;
    return mean ? run->work.samples * run->rank_count / run->rate : run->time_s;
}

static double run_memory(const struct lab_study_run *run, const void *context) {
    return metrics_memory_most(run, *(const bool *)context);
}

static double run_energy(const struct lab_study_run *run, const void *context) {
    (void)context;
    return metrics_energy(run);
}

static double run_metric(const struct lab_study_run *run, const void *context) {
    return context ? metrics_run_value(run, context) : (double)NAN;
}

static double run_compared(const struct lab_study_run *run, const void *context) {
    return context ? metrics_compared_value(run, context) : (double)NAN;
}

/* --- the best value --- */

double metrics_run_best(const struct lab_study_run *run, const struct metrics_metric *metric,
                        double *ret_step) {
    bool high = metric->better == LAB_DIRECTION_HIGHER;
    double sum = 0;
    int count = 0;
    *ret_step = NAN;
    for (int i = 0; i < run->metric_count && !metric->rate && metric->better != LAB_DIRECTION_NONE;
         i++) {
        const struct lab_curve *curve = &run->metrics[i].curve;
        if (!lab_str_equal(run->metrics[i].name, metric->name) || curve->finite == 0)
            continue;
        *ret_step = count ? *ret_step : high ? curve->step_most : curve->step_least;
        sum += high ? curve->most : curve->least;
        count++;
    }
    return count ? sum / count : (double)NAN;
}

void metrics_describe_best(const struct metrics_setting *setting,
                           const struct metrics_metric *metric, struct metrics_value *made,
                           struct lab_arena *arena) {
    size_t count = (size_t)setting->point.count, known = 0;
    double *values = lab_arena_alloc(arena, count, sizeof *values),
           *steps = lab_arena_alloc(arena, count, sizeof *steps);
    for (size_t i = 0; i < count; i++) {
        values[i] = metrics_run_best(setting->point.runs[i], metric, &steps[known]);
        known += !isnan(steps[known]);
    }
    made->best = metrics_cell(values, (int)count, arena);
    LAB_SORT_NUMBERS(steps, known);
    made->best_step = known ? steps[(known - 1) / 2] : (double)NAN;
    made->best_text = metrics_cell_brief(&made->best, LAB_UNIT_NUMBER, arena);
    LAB_AUTO(str, step);
    lab_str_add_digits(&step, made->best_step, 6);
    if (made->best_text && known)
        made->best_text = lab_arena_printf(arena, "%s (%s)", made->best_text, step.text);
}

/* --- balance --- */

/* The coefficient of variation of the memory of GPUs in use, with the population's deviation. */
static double run_balance(const struct lab_study_run *run, const void *context) {
    (void)context;
    double most = metrics_memory_most(run, true), sum = 0, squares = 0;
    int count = 0;
    for (int i = 0; i < run->rank_count; i++) {
        double memory = rank_memory(run, i);
        if (!(memory > IDLE_SHARE * most))
            continue;
        sum += memory;
        squares += memory * memory;
        count++;
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    return count > 1 ? sqrt(fmax(0, variance)) / mean : (double)NAN;
}

/* --- of a setting --- */

typedef double run_figure(const struct lab_study_run *run, const void *context);

static struct lab_doc_cell summarize(const struct metrics_setting *setting, run_figure *figure,
                                     const void *context, struct lab_arena *arena) {
    double *values = lab_arena_alloc(arena, (size_t)setting->point.count, sizeof *values);
    for (int i = 0; i < setting->point.count; i++)
        values[i] = figure(setting->point.runs[i], context);
    return metrics_cell(values, setting->point.count, arena);
}

/* --- the table --- */

static const char *grade(double cv) {
    return isnan(cv)   ? NULL
           : cv < 0.05 ? "excellent"
           : cv < 0.10 ? "good"
           : cv < 0.20 ? "fair"
                       : "poor";
}

/* An interval with 0 in it shows that it is inconclusive; one without may be so over all pairs. */
static const char *change_text(const struct metrics_metric *objective,
                               const struct metrics_setting *setting, struct lab_arena *arena) {
    int found = objective ? LAB_FIND(objective->values, objective->count, name, setting->name) : -1;
    const struct lab_claim *change = found < 0 ? NULL : &objective->values[found].change;
    if (!change || !change->subject || objective->count < 2)
        return NULL;
    if (lab_str_equal(change->subject, change->reference))
        return "reference";
    if (isnan(change->effect))
        return NULL;
    const char *text = lab_claim_short(change, arena), *end = strrchr(text, ']');
    return end && change->low <= 0 && change->high >= 0
               ? lab_arena_strndup(arena, text, (size_t)(end + 1 - text))
               : text;
}

/* Settings in the objective's order, then those that didn't report it. */
static const struct metrics_setting **in_order(const struct metrics_settings *settings,
                                               const struct metrics_metric *objective,
                                               struct lab_arena *arena) {
    const struct metrics_setting **order =
        lab_arena_alloc(arena, (size_t)settings->count + 1, sizeof *order);
    int count = 0;
    for (int i = 0; objective && i < objective->count; i++)
        order[count++] = objective->values[i].setting;
    for (int i = 0; i < settings->count; i++) {
        bool known = false;
        for (int k = 0; k < count && !known; k++)
            known = order[k] == &settings->items[i];
        if (!known)
            order[count++] = &settings->items[i];
    }
    return order;
}

/* The program's: how fast it evaluates is none. */
static const struct metrics_metric *find_rate(const struct metrics_metric *metrics, int count) {
    for (int i = 0; i < count; i++)
        if (metrics[i].rate && !lab_metric_name_is_evaluation(metrics[i].name))
            return &metrics[i];
    return NULL;
}

/* The rate that gpulab counted, where no program reports one: all runs' unit, or none. */
static struct metrics_metric own_rate(const struct metrics_settings *settings) {
    struct metrics_metric rate = {.name = "rate", .unit = "", .rate = true, .own = true};
    for (int i = 0; i < settings->count; i++)
        for (int r = 0; r < settings->items[i].point.count; r++) {
            const struct lab_run *run = settings->items[i].point.runs[r]->run;
            const char *unit = run && run->rate_unit ? run->rate_unit : "";
            bool first = i == 0 && r == 0;
            rate.unit = first || strcmp(unit, rate.unit) == 0 ? unit : "";
            if (!*rate.unit || strcmp(unit, LAB_RATE_RUNS) == 0) /* the time shows that */
                return (struct metrics_metric){.unit = ""};
        }
    return rate;
}

/* Two columns each: the figure for programs, its words for people. */
struct figure {
    const char *key, *title;
    enum lab_unit unit;
    run_figure *of;
    const void *context;
    bool bounded; /* small values are upper bounds */
};

static void add_figure(struct lab_doc_cell *cells, const struct figure *figure,
                       const struct metrics_setting *setting, struct lab_arena *arena) {
    struct lab_doc_cell cell = summarize(setting, figure->of, figure->context, arena);
    const char *text = metrics_cell_brief(&cell, figure->unit, arena);
    if (figure->of == run_memory && figure->bounded && cell.value < WORKER_MIB) {
        struct lab_doc_cell bound = lab_cell_figure(cell.value);
        text = lab_arena_printf(arena, "≤ %s", metrics_cell_brief(&bound, figure->unit, arena));
    }
    if (text && figure->of == run_balance)
        text = lab_arena_printf(arena, "%s, %s", text, grade(cell.value));
    cells[0] = cell;
    cells[1] = lab_cell_text(text);
}

/* Runs that the objective's value rests on: "2 of 3" where others diverged or failed. */
static void add_runs(struct lab_doc_cell *cells, const struct metrics_metric *objective,
                     const struct metrics_setting *setting, struct lab_arena *arena) {
    int runs = setting->point.count, lost = objective ? metrics_lost(setting, objective) : 0,
        known = runs;
    for (int i = 0; objective && i < runs; i++)
        known -= isnan(metrics_run_value(setting->point.runs[i], objective));
    cells[0] = lab_cell_figure(known);
    cells[1] = lab_cell_figure(lost);
    cells[2] = lab_cell_text(known < setting->planned
                                 ? lab_arena_printf(arena, "%d of %d", known, setting->planned)
                                 : lab_arena_printf(arena, "%d", known));
}

/* Behind the setting; the objective's change and best value go between its two and the others. */
static int column_of(int figure) {
    return 1 + 2 * figure + (figure > 1 ? 4 : 0);
}

static void add_best(struct lab_doc_cell *cells, const struct metrics_metric *objective,
                     const struct metrics_setting *setting, struct lab_arena *arena) {
    struct metrics_value made = {.best = lab_cell_figure(NAN), .best_step = NAN};
    if (objective)
        metrics_describe_best(setting, objective, &made, arena);
    cells[0] = made.best;
    cells[1] = lab_cell_figure(made.best_step);
    cells[2] = lab_cell_text(made.best_text);
}

void metrics_add_summary(struct lab_analysis_part *part, const struct metrics_settings *settings,
                         const struct metrics_metric *metrics, int count, int chosen,
                         struct lab_arena *arena) {
    enum { FIGURES = 8, CHANGE = 5, BEST = 6, RUNS = 2 * FIGURES + 5, COLUMNS = RUNS + 3 };
    const struct metrics_metric *objective = chosen < 0 ? NULL : &metrics[chosen],
                                *rate = find_rate(metrics, count);
    bool gain = objective && metrics_gains_from_start(objective),
         lower = objective && objective->better == LAB_DIRECTION_LOWER;
    bool aligned = objective && !isnan(objective->at), of_workload = settings->of_workload;
    const struct metrics_metric own = own_rate(settings);
    rate = !rate && *own.unit ? &own : rate == objective ? NULL : rate;
    const struct figure figures[FIGURES] = {
        {"objective", objective ? metrics_title(objective, arena) : NULL, LAB_UNIT_NUMBER,
         run_metric, objective},
        {"objective_at_step",
         aligned ? lab_arena_printf(arena, "At step %.15g", objective->at) : NULL, LAB_UNIT_NUMBER,
         run_compared, aligned ? objective : NULL},
        {"time", of_workload ? "Time per iteration" : "Time", LAB_UNIT_TIME, run_time,
         &settings->of_workload},
        {"rate",
         !rate         ? NULL
         : *rate->unit ? rate->unit
                       : rate->name,
         LAB_UNIT_NUMBER, run_metric, rate},
        {"peak_memory_mib", settings->of_gpu ? "Peak memory per GPU" : "Peak memory",
         LAB_UNIT_MEBIBYTES, run_memory, &settings->of_gpu,
         .bounded = !settings->of_gpu && !of_workload},
        {"energy_j", of_workload ? "Energy of the run" : "Energy", LAB_UNIT_JOULES, run_energy,
         NULL},
        {"objective_per_kj",
         objective && objective->rate
             ? lab_arena_printf(arena, "%s per kJ", metrics_gain_name(objective, arena))
         : !gain ? "Per kJ"
         : lower ? "Reduction per kJ"
                 : "Gain per kJ",
         LAB_UNIT_NUMBER, metrics_per_kj, objective},
        {"memory_cv", "Memory balance (CV)", LAB_UNIT_SHARE, run_balance, NULL},
    };
    struct lab_doc_column *columns = lab_arena_alloc(arena, COLUMNS, sizeof *columns);
    columns[0] = (struct lab_doc_column){"setting", "Setting", LAB_UNIT_TEXT};
    for (int f = 0; f < FIGURES; f++) {
        int at = column_of(f);
        columns[at] =
            (struct lab_doc_column){figures[f].key, NULL, figures[f].unit, .with_interval = true};
        columns[at + 1] =
            (struct lab_doc_column){NULL, figures[f].title, LAB_UNIT_FIGURE, .optional = true};
    }
    columns[CHANGE] =
        (struct lab_doc_column){"change", "Change", LAB_UNIT_FIGURE, .optional = true};
    columns[BEST] =
        (struct lab_doc_column){"objective_best", NULL, LAB_UNIT_NUMBER, .with_interval = true};
    columns[BEST + 1] = (struct lab_doc_column){"best_step", NULL, LAB_UNIT_NUMBER};
    columns[BEST + 2] =
        (struct lab_doc_column){NULL, "Best (step)", LAB_UNIT_FIGURE, .optional = true};
    columns[RUNS] = (struct lab_doc_column){"runs", NULL, LAB_UNIT_COUNT};
    columns[RUNS + 1] = (struct lab_doc_column){"diverged", NULL, LAB_UNIT_COUNT};
    columns[RUNS + 2] = (struct lab_doc_column){NULL, "Runs", LAB_UNIT_FIGURE};
    struct lab_doc_table *table =
        lab_analysis_add_table(part, "settings", "Settings", columns, COLUMNS, arena);
    table->folds = true;
    const struct metrics_setting **order = in_order(settings, objective, arena);
    for (int i = 0; i < settings->count; i++) {
        struct lab_doc_cell cells[COLUMNS];
        cells[0] = lab_cell_text(order[i]->name);
        for (int f = 0; f < FIGURES; f++)
            add_figure(&cells[column_of(f)], &figures[f], order[i], arena);
        if (objective && !cells[2].text && metrics_lost(order[i], objective))
            cells[2] = lab_cell_text("diverged");
        cells[CHANGE] = lab_cell_text(change_text(objective, order[i], arena));
        add_best(&cells[BEST], objective, order[i], arena);
        add_runs(&cells[RUNS], objective, order[i], arena);
        lab_analysis_add_row(table, cells, COLUMNS, arena);
    }
    lab_analysis_hide_columns(table, arena);
}

/* --- charts --- */

struct run_row {
    double memory, value;
    const char *setting;
};

static const struct lab_field run_fields[] = {
    LAB_FIELD(struct run_row, memory, "memory", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct run_row, value, "value", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct run_row, setting, "setting", NULL, LAB_UNIT_TEXT),
};

static double unit_mib(const struct metrics_settings *settings) {
    double most = 0;
    for (int i = 0; i < settings->count; i++)
        for (int k = 0; k < settings->items[i].point.count; k++)
            most =
                fmax(most, metrics_memory_all(settings->items[i].point.runs[k], settings->of_gpu));
    return most >= MIB_OF_GIB ? MIB_OF_GIB : 1;
}

static void add_scatter(struct lab_analysis_result *result, const struct metrics_settings *settings,
                        const struct metrics_metric *metric, bool simulated,
                        struct lab_arena *arena) {
    struct run_row *rows = NULL;
    int count = 0;
    double unit = unit_mib(settings);
    for (int i = 0; i < metric->count; i++)
        for (int k = 0; k < metric->values[i].setting->point.count; k++) {
            const struct lab_study_run *run = metric->values[i].setting->point.runs[k];
            bool shared = metric->count > SERIES_MOST && i >= SERIES_MOST - 1;
            LAB_ADD(rows, count, arena) = (struct run_row){
                metrics_memory_all(run, settings->of_gpu) / unit, metrics_run_value(run, metric),
                shared ? "others" : metric->values[i].name};
        }
    struct lab_chart chart = {
        .name = "memory_vs_accuracy_scatter",
        .title = lab_arena_printf(arena, "Memory and %s", metric->name),
        .caption = lab_arena_printf(arena, "A point for each run; %s and to the left is better.",
                                    metric->better == LAB_DIRECTION_HIGHER ? "up" : "down"),
        .simulated = simulated};
    struct lab_chart_panel *panel = lab_chart_add_panel(
        &chart, NULL,
        lab_axis(lab_arena_printf(arena, "Peak memory of the %s [%s]",
                                  settings->of_gpu ? "GPUs" : "program", unit > 1 ? "GiB" : "MiB")),
        lab_axis(metrics_title(metric, arena)), arena);
    lab_rows_add_series(panel, &LAB_ROWS(run_fields, rows, count), "memory", "value", "setting",
                        LAB_CHART_POINTS, arena);
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}

static double run_rank_memory(const struct lab_study_run *run, const void *rank) {
    return rank_memory(run, *(const int *)rank);
}

#define NOISE 0.025 /* share of the values: less, without a certain difference, is to look small */

/* Not from the least to the largest where that may be noise. */
static struct lab_chart_axis value_axis(const struct metrics_metric *metric, int count,
                                        struct lab_arena *arena) {
    struct lab_chart_axis axis = lab_axis(metrics_title(metric, arena));
    double low = NAN, high = NAN;
    bool certain = false;
    for (int i = 0; i < count; i++) {
        const struct metrics_value *value = &metric->values[i];
        certain |= value->change.verdict == LAB_CLAIM_YES || value->worse.verdict == LAB_CLAIM_YES;
        low = fmin(low, fmin(value->cell.value, value->cell.low)); /* fmin passes NaN over */
        high = fmax(high, fmax(value->cell.value, value->cell.high));
    }
    double middle = (low + high) / 2, far = NOISE * fabs(middle);
    if (!certain && high - low < far) {
        axis.low = middle - far;
        axis.high = middle + far;
    }
    return axis;
}

/* What the answer is about, where no curve shows it. */
static void add_values(struct lab_analysis_result *result, const struct metrics_metric *metric,
                       bool simulated, struct lab_arena *arena) {
    int count = metric->count < BARS_MOST ? metric->count : BARS_MOST;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    struct lab_series bars = {.arena = arena};
    bool repeated = false;
    for (int i = 0; i < count; i++) {
        const struct lab_doc_cell *cell = &metric->values[i].cell;
        names[i] = metric->values[i].name;
        repeated |= metric->values[i].runs > 1;
        lab_series_add(&bars, i, cell->value, cell->low, cell->high);
    }
    struct lab_chart chart = {
        .name = "metric_comparison",
        .title = lab_arena_printf(arena, "%s by setting", lab_words_capital(metric->name, arena)),
        .caption = repeated ? "Mean over runs." : NULL,
        .intervals = "95% intervals over runs",
        .simulated = simulated};
    struct lab_chart_panel *panel =
        lab_chart_add_panel(&chart, NULL, lab_axis_names("Setting", names, count),
                            value_axis(metric, count, arena), arena);
    lab_panel_add_series(panel, lab_series_chart(&bars, NULL, LAB_CHART_POINTS, -1), arena);
    lab_analysis_add_chart(result, chart, arena);
}

/* A bar for each setting, of its GPUs on top of each other. */
static void add_comparison(struct lab_analysis_result *result,
                           const struct metrics_settings *settings, bool simulated,
                           struct lab_arena *arena) {
    int gpus = 0, count = settings->count < BARS_MOST ? settings->count : BARS_MOST;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = settings->items[i].point.runs[0];
        gpus = run->rank_count > gpus ? run->rank_count : gpus;
        bool told = strstr(settings->items[i].name, "GPU") != NULL;
        names[i] =
            run->rank_count > 1 && !told
                ? lab_arena_printf(arena, "%s (%d GPUs)", settings->items[i].name, run->rank_count)
                : settings->items[i].name;
    }
    double unit = unit_mib(settings);
    struct lab_chart chart = {
        .name = "gpu_memory_comparison",
        .title = "GPU memory by setting",
        .caption = gpus > 1 ? "Peak memory of each GPU, mean over runs; a bar is their sum."
                            : "Peak memory of the GPU, mean over runs.",
        .simulated = simulated};
    struct lab_chart_panel *panel = lab_chart_add_panel(
        &chart, NULL, lab_axis_names("Setting", names, count),
        lab_axis_from(lab_arena_printf(arena, "Peak memory [%s]", unit > 1 ? "GiB" : "MiB"), 0),
        arena);
    for (int g = 0; g < gpus; g++) {
        struct lab_series bars = {.arena = arena};
        for (int i = 0; i < count; i++) {
            double memory = summarize(&settings->items[i], run_rank_memory, &g, arena).value;
            if (!isnan(memory))
                lab_series_add_point(&bars, i, memory / unit);
        }
        if (bars.count == 0)
            continue;
        struct lab_chart_series *series = lab_panel_add_series(
            panel,
            lab_series_chart(&bars, gpus > 1 ? lab_arena_printf(arena, "Rank %d", g) : NULL,
                             gpus > 1 ? LAB_CHART_STACK : LAB_CHART_BARS, -1),
            arena);
        series->valued = gpus == 1;
    }
    if (panel->series_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}

void metrics_add_value_charts(struct lab_analysis_result *result,
                              const struct metrics_settings *settings,
                              const struct metrics_metric *first,
                              const struct metrics_metric *quality, bool simulated,
                              struct lab_arena *arena) {
    if (result->chart_count == 0 && first->compared > 1)
        add_values(result, first, simulated, arena);
    if (settings->of_gpu && settings->count > 1)
        add_comparison(result, settings, simulated, arena);
    if (quality)
        add_scatter(result, settings, quality, simulated, arena);
}
