/*
 * balance.c: `gpulab analyze balance`: whether the GPUs of a recording carry the same load, in
 * memory, utilisation and power, all through it, and what to do where they don't. GPUs that did
 * next to nothing are not graded, nor are recordings too short for a mean.
 */
#include "analysis/claims/rows.h"
#include "analysis/recording/recording_stats_chart.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

struct balance_config {
    struct lab_recording_stats_config stats;
    double window_s;
};

static const struct lab_option balance_options[] = {
    LAB_RECORDING_STATS_OPTIONS(balance_config),
    {"window", LAB_OPTION_DURATION, offsetof(struct balance_config, window_s), .fallback = "0",
     .max = 1e9, .help = "averaging window of the balance over time; 0 = a tenth of the recording"},
    {NULL},
};

#define BALANCED 3 /* metrics: memory, utilisation, power, as lab_recording_stats_metric counts */

/* --- over time --- */

struct window {
    double from_s, until_s, cv[BALANCED];
};

static const struct lab_field window_fields[] = {
    LAB_FIELD(struct window, from_s, "from_s", "From", LAB_UNIT_DURATION),
    LAB_FIELD(struct window, until_s, "until_s", "To", LAB_UNIT_DURATION),
    LAB_FIELD(struct window, cv[0], "memory_cv", "Memory CV", LAB_UNIT_SHARE),
    LAB_FIELD(struct window, cv[1], "utilization_cv", "Utilisation CV", LAB_UNIT_SHARE),
    LAB_FIELD(struct window, cv[2], "power_cv", "Power CV", LAB_UNIT_SHARE),
};

struct figures { /* of a recording */
    double duration_s;
    int gpus;
    struct lab_doc_cell rate, rate_unit;
    double together[BALANCED], cv[BALANCED];
    const char *grades[BALANCED]; /* NULL = not graded */
    int drift[BALANCED];          /* 1 = grows apart, -1 = comes together, 0 = no trend */
    const char *advice;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, duration_s, "duration_s", NULL, LAB_UNIT_DURATION),
    LAB_FIELD(struct figures, gpus, "gpus", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, rate, "rate_per_s", "Throughput", LAB_UNIT_PER_SECOND, "Throughput"),
    LAB_FIELD(struct figures, rate_unit, "rate_unit", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, together[0], "memory_total_mib", NULL, LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct figures, together[1], "utilization_mean_percent", NULL, LAB_UNIT_PERCENT),
    LAB_FIELD(struct figures, together[2], "power_total_w", NULL, LAB_UNIT_WATTS),
    LAB_FIELD(struct figures, cv[0], "memory_cv", NULL, LAB_UNIT_SHARE, "Memory CV"),
    LAB_FIELD(struct figures, cv[1], "utilization_cv", NULL, LAB_UNIT_SHARE, "Utilisation CV"),
    LAB_FIELD(struct figures, cv[2], "power_cv", NULL, LAB_UNIT_SHARE, "Power CV"),
    LAB_FIELD(struct figures, grades[0], "memory_grade", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, grades[1], "utilization_grade", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, grades[2], "power_grade", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct figures, drift[0], "memory_drift", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, drift[1], "utilization_drift", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, drift[2], "power_drift", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, advice, NULL, "Advice", LAB_UNIT_TEXT),
};

struct balance { /* of one recording */
    const struct lab_recording_stats *stats;
    struct figures figures;
    struct window *windows;
    int window_count;
    bool steady; /* no window differs from the whole by a point, and there is no trend */
};

#define WINDOWS    10 /* of a recording, unless told otherwise */
#define CONFIDENCE 0.95
#define LEAST_S    1.0 /* of a recording that is graded: utilisation is a mean over some of that */
#define POINT      0.01
#define ALPHA      0.05

static bool is_graded(const struct lab_recording_stats *stats) {
    return !stats->idle && stats->duration_s >= LEAST_S;
}

static int count_windows(const struct lab_recording_stats *stats, double window_s) {
    int most = lab_recording_stats_rows(stats);
    double windows = window_s > 0 ? ceil(stats->duration_s / window_s) : WINDOWS;
    return windows > most ? most : windows < 1 ? 1 : (int)windows;
}

/* None while a GPU is away that has values otherwise. Unused ones don't count. */
static double cv_of_window(const struct lab_recording_stats *stats, int metric, double *values) {
    for (int g = 0; g < stats->gpu_count; g++) {
        values[g] = stats->gpus[g].unused ? (double)NAN : values[g];
        if (isnan(values[g]) && !stats->gpus[g].unused && stats->gpus[g].figures[metric].count > 0)
            return NAN;
    }
    return lab_recording_stats_cv(values, stats->gpu_count);
}

/* By Mann and Kendall's test; thirds that differ by less than a point matter to nobody. */
static int drift_of(const struct window *windows, int count, int metric) {
    LAB_AUTO_FREE double *there = lab_mem_alloc((size_t)count + 1, sizeof *there);
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        there[n] = windows[i].cv[metric];
        n += !isnan(there[n]);
    }
    struct lab_trend_test test = lab_stats_mann_kendall(there, n);
    size_t third = n / 3 > 0 ? n / 3 : n;
    bool far = n > 0 && fabs(lab_stats_median(there + n - third, third) -
                             lab_stats_median(there, third)) >= POINT;
    return test.p < ALPHA && far ? (test.s > 0 ? 1 : -1) : 0;
}

static struct balance make_balance(const struct lab_recording_stats *stats, double window_s,
                                   struct lab_arena *arena) {
    struct balance balance = {
        .stats = stats, .window_count = count_windows(stats, window_s), .steady = true};
    struct figures *figures = &balance.figures;
    double length_s = stats->duration_s / balance.window_count;
    figures->duration_s = stats->duration_s;
    figures->gpus = stats->gpu_count;
    lab_recording_stats_set_rate(stats->source->rate, stats->source->rate_unit, &figures->rate,
                                 &figures->rate_unit);
    balance.windows = lab_arena_alloc(arena, (size_t)balance.window_count, sizeof *balance.windows);
    for (int m = 0; m < BALANCED; m++) {
        double *grid = lab_recording_stats_grid(stats, m, balance.window_count, arena);
        figures->together[m] = lab_recording_stats_together(stats, m);
        figures->cv[m] = lab_recording_stats_cv_of(stats, m);
        figures->grades[m] = is_graded(stats) ? lab_recording_stats_grade(figures->cv[m]) : NULL;
        for (int w = 0; w < balance.window_count; w++) {
            struct window *window = &balance.windows[w];
            window->from_s = w * length_s;
            window->until_s = (w + 1) * length_s;
            window->cv[m] = cv_of_window(stats, m, grid + (ptrdiff_t)w * stats->gpu_count);
            balance.steady &= !(fabs(window->cv[m] - figures->cv[m]) >= POINT);
        }
        figures->drift[m] =
            is_graded(stats) ? drift_of(balance.windows, balance.window_count, m) : 0;
        balance.steady &= figures->drift[m] == 0;
    }
    return balance;
}

/* The metric with the largest CV, or -1: nothing is graded. */
static int worst_metric(const struct balance *balance) {
    int worst = -1;
    for (int m = 0; m < BALANCED; m++)
        if (balance->figures.grades[m] &&
            (worst < 0 || balance->figures.cv[m] > balance->figures.cv[worst]))
            worst = m;
    return worst;
}

/* --- words --- */

static const char *make_advice(const struct balance *balance, struct lab_arena *arena) {
    int worst = worst_metric(balance), gpus = balance->stats->used_count;
    if (worst < 0)
        return NULL;
    double cv = balance->figures.cv[worst];
    const char *title = lab_recording_stats_kinds[worst].title;
    for (int m = 0; m < BALANCED && cv < 0.05; m++)
        if (balance->figures.drift[m] > 0)
            return lab_arena_printf(arena, "nothing to change yet; %s diverges",
                                    lab_recording_stats_kinds[m].noun);
    if (cv < 0.05)
        return "nothing to change";
    if (cv < 0.20)
        return lab_arena_printf(
            arena, "%s: use a batch size that %d divides, and as many workers for each rank", title,
            gpus);
    return lab_arena_printf(arena,
                            "%s: check that each rank has its own GPU and a batch that %d divides, "
                            "and for other processes on these GPUs",
                            title, gpus);
}

/* GPUs that the grades are of. */
static int graded_count(const struct lab_recording_stats *stats) {
    int count = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        bool known = false;
        for (int m = 0; m < BALANCED; m++)
            known |= stats->gpus[g].figures[m].count > 0;
        count += known && !stats->gpus[g].unused;
    }
    return count > 1 ? count : stats->used_count;
}

/* " GPU 2,3 was not used." */
static void add_unused(const struct lab_recording_stats *stats, struct lab_str *out) {
    const char *before = " GPU ";
    for (int g = 0; g < stats->gpu_count; g++)
        if (stats->gpus[g].unused) {
            lab_str_printf(out, "%s%d", before, stats->gpus[g].track->entity.index);
            before = ",";
        }
    lab_str_add(out, stats->used_count < stats->gpu_count ? " was not used." : "");
}

/* The grade that all metrics have, or NULL. */
static const char *same_grade(const struct balance *balance) {
    const char *grade = NULL;
    for (int m = 0; m < BALANCED; m++) {
        const char *own = balance->figures.grades[m];
        if (own && grade && !lab_str_equal(own, grade))
            return NULL;
        grade = own ? own : grade;
    }
    return grade;
}

static const char *make_answer(const struct balance *balance, struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    if (stats->gpu_count == 0)
        return "No GPU was recorded: balance needs two.";
    if (stats->gpu_count == 1)
        return lab_arena_printf(arena, "Only %s was recorded: balance needs two.",
                                stats->gpus[0].name);
    if (stats->idle)
        return lab_arena_printf(arena, "Not graded: no GPU was used above %.0f%%.",
                                LAB_RECORDING_STATS_IDLE);
    if (!is_graded(stats))
        return lab_arena_printf(arena, "Not graded: %.0f ms recorded, %.0f s needed.",
                                1000 * stats->duration_s, LEAST_S);
    const char *grade = same_grade(balance);
    LAB_AUTO(str, text);
    int told = 0;
    if (stats->used_count < 2) {
        lab_str_add(&text, "Not graded: balance needs two GPUs in use.");
        add_unused(stats, &text);
        return lab_arena_strdup(arena, text.text);
    }
    lab_str_printf(&text, "The balance of %d GPUs is %s%s", graded_count(stats), grade ? grade : "",
                   grade ? ": " : "");
    for (int m = 0; m < BALANCED; m++) {
        double cv = 100 * balance->figures.cv[m];
        const char *noun = lab_recording_stats_kinds[m].noun;
        if (isnan(cv))
            continue;
        lab_str_add(&text, told++ ? ", " : grade ? "CV " : "");
        if (grade)
            lab_str_printf(&text, "%.1f%% in %s", cv, noun);
        else
            lab_str_printf(&text, "%s in %s (CV %.1f%%)", balance->figures.grades[m], noun, cv);
    }
    lab_str_add(&text, told ? "." : "unknown: neither memory nor load was recorded.");
    add_unused(stats, &text);
    return lab_arena_strdup(arena, text.text);
}

/* Mean CV over the recordings that are graded, with its interval over them; how many. */
static int pool(const struct balance *balances, int count, int metric, struct lab_arena *arena,
                double *ret_mean, struct lab_interval *ret_interval) {
    double *values = lab_arena_alloc(arena, (size_t)count + 1, sizeof *values);
    int n = 0;
    for (int i = 0; i < count; i++)
        if (balances[i].figures.grades[metric])
            values[n++] = balances[i].figures.cv[metric];
    *ret_mean = n > 0 ? lab_stats_mean(values, (size_t)n) : (double)NAN;
    *ret_interval = lab_stats_mean_interval(values, (size_t)n, CONFIDENCE);
    return n;
}

/* One that holds at both ends of the interval. */
static const char *pooled_grade(double mean, const struct lab_interval *interval) {
    const char *grade = lab_recording_stats_grade(mean);
    bool sure = isnan(interval->low) ||
                (lab_str_equal(lab_recording_stats_grade(fmax(0, interval->low)), grade) &&
                 lab_str_equal(lab_recording_stats_grade(interval->high), grade));
    return sure ? grade : "inconclusive";
}

/* "Not graded: 800 recordings, 400 with fewer than 2 GPUs, 400 shorter than 1 s." */
static const char *why_none(const struct balance *balances, int count, struct lab_arena *arena) {
    int single = 0, idle = 0, brief = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_recording_stats *stats = balances[i].stats;
        single += stats->used_count < 2;
        idle += stats->used_count > 1 && stats->idle;
        brief += stats->used_count > 1 && !stats->idle && stats->duration_s < LEAST_S;
    }
    struct {
        int count;
        const char *what;
    } const reasons[] = {{single, "with fewer than 2 GPUs in use"},
                         {idle, lab_arena_printf(arena, "with no GPU above %.0f%% utilisation",
                                                 LAB_RECORDING_STATS_IDLE)},
                         {brief, lab_arena_printf(arena, "shorter than %.0f s", LEAST_S)},
                         {count - single - idle - brief, "without samples to compare"}};
    LAB_AUTO(str, text);
    for (int i = 0; i < LAB_COUNT_OF(reasons); i++)
        if (reasons[i].count)
            lab_str_printf(&text, ", %d %s", reasons[i].count, reasons[i].what);
    return lab_arena_printf(arena, "Not graded: %d recordings%s.", count, text.text);
}

/* "Balance, mean of 3 recordings: poor in utilisation (CV 30.0%, 95% CI [28.1, 31.9]%), excellent
 * in memory (…)." The worst metric first; the worst recording is in the table. */
static const char *answer_for_all(const struct balance *balances, int count,
                                  struct lab_arena *arena) {
    struct {
        double mean;
        struct lab_interval interval;
        int n;
    } pooled[BALANCED];
    bool told[BALANCED] = {0};
    int most = 0, parts = 0;
    LAB_AUTO(str, text);
    for (int m = 0; m < BALANCED; m++) {
        pooled[m].n = pool(balances, count, m, arena, &pooled[m].mean, &pooled[m].interval);
        most = pooled[m].n > most ? pooled[m].n : most;
    }
    if (most == 0)
        return why_none(balances, count, arena);
    lab_str_printf(&text, "Balance, mean of %d recording%s", most, most == 1 ? "" : "s");
    if (most < count)
        lab_str_printf(&text, " of several GPUs that were used, of %d", count);
    lab_str_add(&text, ": ");
    for (int i = 0; i < BALANCED; i++) {
        int worst = -1;
        for (int m = 0; m < BALANCED; m++)
            if (!told[m] && pooled[m].n > 0 && (worst < 0 || pooled[m].mean > pooled[worst].mean))
                worst = m;
        if (worst < 0)
            break;
        told[worst] = true;
        lab_str_printf(&text, "%s%s in %s (CV %.1f%%", parts++ ? ", " : "",
                       pooled_grade(pooled[worst].mean, &pooled[worst].interval),
                       lab_recording_stats_kinds[worst].noun, 100 * pooled[worst].mean);
        if (pooled[worst].n > 1)
            lab_str_printf(&text, ", 95%% CI [%.1f, %.1f]%%",
                           100 * fmax(0, pooled[worst].interval.low),
                           100 * pooled[worst].interval.high);
        lab_str_add(&text, ")");
    }
    return lab_arena_printf(arena, "%s.", text.text);
}

/* --- tables --- */

struct gpu_row {
    int gpu;
    struct lab_recording_stats_figures values;
};

/* One table for each metric: keys differ by their unit. */
#define GPU_FIELDS(unit_key, unit)                                                                 \
    {                                                                                              \
        LAB_FIELD(struct gpu_row, gpu, "gpu", "GPU", LAB_UNIT_COUNT),                              \
            LAB_FIELD(struct gpu_row, values.mean, "mean_" unit_key, "Mean", unit),                \
            LAB_FIELD(struct gpu_row, values.deviation, "deviation_" unit_key, "±", unit),         \
            LAB_FIELD(struct gpu_row, values.peak, "peak_" unit_key, "Peak", unit),                \
    }
static const struct lab_field gpu_fields[BALANCED][4] = {
    [LAB_RECORDING_STATS_MEMORY] = GPU_FIELDS("mib", LAB_UNIT_MEBIBYTES),
    [LAB_RECORDING_STATS_UTILIZATION] = GPU_FIELDS("percent", LAB_UNIT_PERCENT),
    [LAB_RECORDING_STATS_POWER] = GPU_FIELDS("w", LAB_UNIT_WATTS),
};

static const char *balance_line(const struct balance *balance, int metric,
                                struct lab_arena *arena) {
    double cv = balance->figures.cv[metric];
    const char *grade = balance->figures.grades[metric];
    if (balance->stats->gpu_count < 2)
        return "Balance: needs two GPUs";
    if (isnan(cv))
        return "Balance: – (nothing to compare)";
    return lab_arena_printf(arena, "Balance: CV = %.1f%% (%s)", 100 * cv,
                            grade ? grade : "not graded");
}

/*
 *     GPU 0: 12800.0 MiB (±45.2)
 *     Total:  51155.0 MiB
 *     Balance: CV = 0.2 % (excellent)
 */
static const char *const *metric_lines(const struct balance *balance, int metric,
                                       struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    const struct lab_recording_stats_kind *kind = &lab_recording_stats_kinds[metric];
    const char **lines = lab_arena_alloc(arena, (size_t)stats->gpu_count + 3, sizeof *lines);
    const char *gap = *kind->unit == '%' ? "" : " "; /* 84.0%, 100.0 W */
    int count = 0, label = 0, width = 0;
    for (int g = 0; g < stats->gpu_count; g++) {
        double mean = stats->gpus[g].figures[metric].mean;
        int name = (int)strlen(stats->gpus[g].name) + 1,
            digits = isnan(mean) ? 0 : snprintf(NULL, 0, "%.1f", mean);
        label = name > label ? name : label;
        width = digits > width ? digits : width;
    }
    for (int g = 0; g < stats->gpu_count; g++) {
        const struct lab_recording_stats_figures *figures = &stats->gpus[g].figures[metric];
        const char *name = lab_arena_printf(arena, "%s:", stats->gpus[g].name);
        lines[count++] = figures->count == 0
                             ? lab_arena_printf(arena, "%-*s –", label, name)
                             : lab_arena_printf(arena, "%-*s %*.1f%s%s (±%.1f)", label, name, width,
                                                figures->mean, gap, kind->unit, figures->deviation);
    }
    int known = lab_recording_stats_known(stats, metric);
    const char *part = known < stats->gpu_count
                           ? lab_arena_printf(arena, " (%d of %d GPUs)", known, stats->gpu_count)
                           : "";
    lines[count++] = lab_arena_printf(arena, "%s  %.1f%s%s%s", kind->adds_up ? "Total:" : "Mean: ",
                                      balance->figures.together[metric], gap, kind->unit, part);
    lines[count++] = balance_line(balance, metric, arena);
    return lines;
}

static void add_metric_table(struct lab_analysis_part *part, const struct balance *balance,
                             int metric, struct lab_arena *arena) {
    int count = balance->stats->gpu_count;
    struct gpu_row *rows = lab_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    for (int g = 0; g < count; g++)
        rows[g] = (struct gpu_row){balance->stats->gpus[g].track->entity.index,
                                   balance->stats->gpus[g].figures[metric]};
    lab_rows_add_table(part, lab_recording_stats_kinds[metric].key,
                       lab_recording_stats_kinds[metric].title,
                       &LAB_ROWS(gpu_fields[metric], rows, count), arena)
        ->lines = metric_lines(balance, metric, arena);
}

static void add_part(struct lab_analysis_result *result, struct balance *balance,
                     struct lab_arena *arena) {
    const struct lab_recording_stats *stats = balance->stats;
    struct lab_analysis_part *part = lab_analysis_add_part(result, stats->source->name, arena);
    balance->figures.advice = make_advice(balance, arena);
    LAB_PART_FIGURES(part, figure_fields, &balance->figures, arena);
    for (int m = 0; m < BALANCED; m++)
        if (!isnan(balance->figures.together[m]))
            add_metric_table(part, balance, m, arena);
    if (balance->window_count > 1 && worst_metric(balance) >= 0)
        lab_rows_add_table(part, "windows", balance->steady ? NULL : "Over time",
                           &LAB_ROWS(window_fields, balance->windows, balance->window_count),
                           arena);
    part->about = lab_recording_stats_about(&stats, 1, arena);
    part->answer = make_answer(balance, arena);
    lab_recording_stats_add_notes(&stats, 1, &part->notes, arena);
}

/* Of several, those that are graded: lines of grades would say something of the others. */
static void add_charts(struct lab_analysis_result *result, const struct balance *balances,
                       const struct lab_recording_stats *all_stats, int count,
                       struct lab_arena *arena) {
    struct lab_recording_stats *graded = lab_arena_alloc(arena, (size_t)count + 1, sizeof *graded);
    int graded_count = 0;
    for (int i = 0; i < count; i++)
        if (count == 1 || worst_metric(&balances[i]) >= 0)
            graded[graded_count++] = all_stats[i];
    lab_recording_stats_chart_balance(graded, graded_count, arena, result);
    lab_recording_stats_chart_breakdown(all_stats, count, arena, result);
}

static int balance_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    const struct balance_config *config = input->config;
    struct lab_arena *arena = result->arena;
    struct lab_recording_stats *all_stats;
    if (lab_recording_stats_all(input, &config->stats, arena, &all_stats, err) < 0)
        return -1;
    int count = input->recording_count;
    struct balance *balances = lab_arena_alloc(arena, (size_t)count, sizeof *balances);
    for (int i = 0; i < count; i++)
        balances[i] = make_balance(&all_stats[i], config->window_s, arena);
    for (int pass = 0; pass < 2; pass++) /* what has a balance first */
        for (int i = 0; i < count; i++)
            if ((all_stats[i].gpu_count > 1) == (pass == 0))
                add_part(result, &balances[i], arena);
    result->answer = count == 1 ? result->parts[0].answer : answer_for_all(balances, count, arena);
    add_charts(result, balances, all_stats, count, arena);
    return 0;
}

const struct lab_analysis lab_analysis_balance = {
    .name = "balance",
    .summary = "load balance between GPUs: memory, utilisation, power",
    .description =
        "Of each recording: every GPU's mean with its deviation, and the coefficient of variation "
        "between them (population standard deviation over mean). Below 5% is excellent, below 10% "
        "good, below 20% fair, else poor. The same over time. GPUs that did nothing while others "
        "were used don't count, unless gpus= names them. Where no GPU was used above 5%, or less "
        "than 1 s was recorded, nothing is graded. A path is a recording, a file of another "
        "monitor, a study, or a folder of them.",
    .options = balance_options,
    .config_size = sizeof(struct balance_config),
    .source = LAB_ANALYSIS_OF_RECORDINGS,
    LAB_PARTS_OF("recordings", figure_fields),
    .run = balance_run,
};
