/*
 * balance.c: `gpulab analyze balance`: whether the GPUs of a recording carry the same load, in memory,
 * utilisation and power, all through it, and what to do where they don't.
 */
#include "analysis/analysis_watch.h"
#include "analysis/balance/drift.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define WINDOWS 10 /* of a recording, unless told otherwise */

struct balance_config {
    struct lab_watch_config watch;
    double window_s;
};

static const struct lab_option balance_options[] = {
    LAB_WATCH_OPTIONS(balance_config),
    {"window", LAB_OPTION_DURATION, offsetof(struct balance_config, window_s), .fallback = "0",
     .max = 1e9,
     .help = "how long a stretch of time is that has a balance of its own; 0 takes a "
             "tenth of the recording"},
    {NULL},
};

#define BALANCED 3 /* metrics: memory, utilisation, power */

enum {
    DURATION,
    GPUS,
    RATE,
    TOGETHER, /* of each metric: all GPUs, their CV, its grade */
    CV = TOGETHER + BALANCED,
    GRADE = CV + BALANCED,
    DRIFT = GRADE + BALANCED,
    ADVICE,
    FIGURES
};

static const struct lab_analysis_column figure_columns[FIGURES] = {
    [DURATION] = {"duration_s", NULL, LAB_ANALYSIS_DURATION},
    [GPUS] = {"gpus", NULL, LAB_ANALYSIS_COUNT},
    [TOGETHER + LAB_WATCH_MEMORY] = {"memory_total_mib", NULL, LAB_ANALYSIS_MEBIBYTES},
    [TOGETHER + LAB_WATCH_UTILIZATION] = {"utilization_mean_percent", NULL, LAB_ANALYSIS_PERCENT},
    [TOGETHER + LAB_WATCH_POWER] = {"power_total_w", NULL, LAB_ANALYSIS_WATTS},
    [CV + LAB_WATCH_MEMORY] = {"memory_cv", NULL, LAB_ANALYSIS_SHARE, "Memory CV"},
    [CV + LAB_WATCH_UTILIZATION] = {"utilization_cv", NULL, LAB_ANALYSIS_SHARE, "Utilisation CV"},
    [CV + LAB_WATCH_POWER] = {"power_cv", NULL, LAB_ANALYSIS_SHARE, "Power CV"},
    [GRADE + LAB_WATCH_MEMORY] = {"memory_grade", NULL, LAB_ANALYSIS_TEXT},
    [GRADE + LAB_WATCH_UTILIZATION] = {"utilization_grade", NULL, LAB_ANALYSIS_TEXT},
    [GRADE + LAB_WATCH_POWER] = {"power_grade", NULL, LAB_ANALYSIS_TEXT},
    [RATE] = {"rate_per_s", "Throughput", LAB_ANALYSIS_PER_SECOND, "Throughput"},
    [DRIFT] = {"over_time", "Over time", LAB_ANALYSIS_TEXT},
    [ADVICE] = {"advice", "Advice", LAB_ANALYSIS_TEXT},
};

/* One table for each metric: keys differ by their unit. */
#define GPU_COLUMNS 4
#define METRIC_COLUMNS(unit_key, unit)                                                             \
    {                                                                                              \
        {"gpu", "GPU", LAB_ANALYSIS_COUNT}, {"mean_" unit_key, "Mean", unit},                      \
            {"deviation_" unit_key, "±", unit}, {                                                  \
            "peak_" unit_key, "Peak", unit                                                         \
        }                                                                                          \
    }
static const struct lab_analysis_column gpu_columns[BALANCED][GPU_COLUMNS] = {
    [LAB_WATCH_MEMORY] = METRIC_COLUMNS("mib", LAB_ANALYSIS_MEBIBYTES),
    [LAB_WATCH_UTILIZATION] = METRIC_COLUMNS("percent", LAB_ANALYSIS_PERCENT),
    [LAB_WATCH_POWER] = METRIC_COLUMNS("w", LAB_ANALYSIS_WATTS),
};

enum { WINDOW_FROM, WINDOW_UNTIL, WINDOW_CV, WINDOW_COLUMNS = WINDOW_CV + BALANCED };
static const struct lab_analysis_column window_columns[WINDOW_COLUMNS] = {
    [WINDOW_FROM] = {"from_s", "From", LAB_ANALYSIS_DURATION},
    [WINDOW_UNTIL] = {"until_s", "To", LAB_ANALYSIS_DURATION},
    [WINDOW_CV + LAB_WATCH_MEMORY] = {"memory_cv", "Memory CV", LAB_ANALYSIS_SHARE},
    [WINDOW_CV + LAB_WATCH_UTILIZATION] = {"utilization_cv", "Utilisation CV", LAB_ANALYSIS_SHARE},
    [WINDOW_CV + LAB_WATCH_POWER] = {"power_cv", "Power CV", LAB_ANALYSIS_SHARE},
};

/* --- the whole time --- */

struct balance { /* of one recording */
    const struct lab_watch *watch;
    double cv[BALANCED];
    int windows;
    double *window_cv[BALANCED];
    struct lab_drift drift[BALANCED];
};

static double cv_of_means(const struct lab_watch *watch, int metric, struct lab_arena *arena) {
    double *means = lab_arena_alloc(arena, (size_t)watch->gpu_count + 1, sizeof *means);
    for (int g = 0; g < watch->gpu_count; g++)
        means[g] = watch->gpus[g].figures[metric].mean;
    return lab_watch_cv(means, watch->gpu_count);
}

/* None while a GPU is away that is there at other times: fewer GPUs have another balance. */
static double cv_of_window(const struct lab_watch *watch, int metric, const double *row) {
    for (int g = 0; g < watch->gpu_count; g++)
        if (isnan(row[g]) && watch->gpus[g].figures[metric].count > 0)
            return NAN;
    return lab_watch_cv(row, watch->gpu_count);
}

static int count_windows(const struct lab_watch *watch, double window_s) {
    int most = lab_watch_rows(watch);
    double windows = window_s > 0 ? ceil(watch->duration_s / window_s) : WINDOWS;
    return windows > most ? most : windows < 1 ? 1 : (int)windows;
}

static struct balance make_balance(const struct lab_watch *watch, double window_s,
                                   struct lab_arena *arena) {
    struct balance balance = {.watch = watch, .windows = count_windows(watch, window_s)};
    for (int m = 0; m < BALANCED; m++) {
        double *grid = lab_watch_grid(watch, m, balance.windows, arena);
        balance.cv[m] = cv_of_means(watch, m, arena);
        balance.window_cv[m] =
            lab_arena_alloc(arena, (size_t)balance.windows, sizeof *balance.window_cv[m]);
        for (int w = 0; w < balance.windows; w++)
            balance.window_cv[m][w] =
                cv_of_window(watch, m, grid + (ptrdiff_t)w * watch->gpu_count);
        balance.drift[m] = lab_drift_make(balance.window_cv[m], balance.windows);
    }
    return balance;
}

#define POINT 0.01

/* No trend, and no window that differs from the whole by a point: nothing for people to look at. */
static bool is_steady(const struct balance *balance) {
    for (int m = 0; m < BALANCED; m++) {
        if (balance->drift[m].direction != 0)
            return false;
        for (int w = 0; w < balance->windows; w++)
            if (fabs(balance->window_cv[m][w] - balance->cv[m]) >= POINT)
                return false;
    }
    return true;
}

/* --- tables --- */

static int label_columns(const struct lab_watch *watch) {
    int most = 0;
    for (int g = 0; g < watch->gpu_count; g++) {
        int columns = (int)strlen(watch->gpus[g].name) + 1;
        most = columns > most ? columns : most;
    }
    return most;
}

static int value_columns(const struct lab_watch *watch, int metric) {
    int most = 0;
    for (int g = 0; g < watch->gpu_count; g++) {
        char text[64];
        int length = snprintf(text, sizeof text, "%.1f", watch->gpus[g].figures[metric].mean);
        most = length > most && !isnan(watch->gpus[g].figures[metric].mean) ? length : most;
    }
    return most;
}

static const char *balance_line(double cv, const struct lab_watch *watch, struct lab_arena *arena) {
    if (!isnan(cv))
        return lab_arena_printf(arena, "Balance: CV = %.1f %% (%s)", 100 * cv, lab_watch_grade(cv));
    return watch->gpu_count < 2 ? "Balance: needs two GPUs" : "Balance: – (nothing to compare)";
}

/*
 *     GPU 0: 12800.0 MB (±45.2)
 *     Total:  51155.0 MB
 *     Balance: CV = 0.2 % (excellent)
 */
static const char *const *metric_lines(const struct balance *balance, int metric,
                                       struct lab_arena *arena) {
    const struct lab_watch *watch = balance->watch;
    const struct lab_watch_kind *kind = &lab_watch_kinds[metric];
    const char **lines = lab_arena_alloc(arena, (size_t)watch->gpu_count + 3, sizeof *lines);
    int count = 0, label = label_columns(watch), width = value_columns(watch, metric);
    for (int g = 0; g < watch->gpu_count; g++) {
        const struct lab_watch_gpu *gpu = &watch->gpus[g];
        const struct lab_watch_figures *figures = &gpu->figures[metric];
        const char *name = lab_arena_printf(arena, "%s:", gpu->name);
        lines[count++] = figures->count == 0
                             ? lab_arena_printf(arena, "%-*s –", label, name)
                             : lab_arena_printf(arena, "%-*s %*.1f %s (±%.1f)", label, name, width,
                                                figures->mean, kind->unit, figures->deviation);
    }
    lines[count++] = lab_arena_printf(arena, "%s  %.1f %s", kind->adds_up ? "Total:" : "Mean: ",
                                      lab_watch_together(watch, metric), kind->unit);
    lines[count++] = balance_line(balance->cv[metric], watch, arena);
    return lines;
}

static struct lab_analysis_table metric_table(const struct balance *balance, int metric,
                                              struct lab_arena *arena) {
    const struct lab_watch *watch = balance->watch;
    struct lab_analysis_cell *cells =
        lab_arena_alloc(arena, (size_t)watch->gpu_count * GPU_COLUMNS, sizeof *cells);
    for (int g = 0; g < watch->gpu_count; g++) {
        const struct lab_watch_gpu *gpu = &watch->gpus[g];
        struct lab_analysis_cell *row = cells + (ptrdiff_t)g * GPU_COLUMNS;
        row[0] = lab_analysis_figure(gpu->track->entity.index);
        row[1] = lab_analysis_figure(gpu->figures[metric].mean);
        row[2] = lab_analysis_figure(gpu->figures[metric].deviation);
        row[3] = lab_analysis_figure(gpu->figures[metric].peak);
    }
    return (struct lab_analysis_table){
        .key = lab_watch_kinds[metric].key,
        .title = lab_watch_kinds[metric].title,
        .columns = gpu_columns[metric],
        .column_count = GPU_COLUMNS,
        .cells = cells,
        .row_count = watch->gpu_count,
        .lines = metric_lines(balance, metric, arena),
    };
}

static struct lab_analysis_table window_table(const struct balance *balance,
                                              struct lab_arena *arena) {
    double length_s = balance->watch->duration_s / balance->windows;
    struct lab_analysis_cell *cells =
        lab_arena_alloc(arena, (size_t)balance->windows * WINDOW_COLUMNS, sizeof *cells);
    for (int w = 0; w < balance->windows; w++) {
        struct lab_analysis_cell *row = cells + (ptrdiff_t)w * WINDOW_COLUMNS;
        row[WINDOW_FROM] = lab_analysis_figure(w * length_s);
        row[WINDOW_UNTIL] = lab_analysis_figure((w + 1) * length_s);
        for (int m = 0; m < BALANCED; m++)
            row[WINDOW_CV + m] = lab_analysis_figure(balance->window_cv[m][w]);
    }
    return (struct lab_analysis_table){.key = "windows",
                                       .title = is_steady(balance) ? NULL : "Over time",
                                       .columns = window_columns,
                                       .column_count = WINDOW_COLUMNS,
                                       .cells = cells,
                                       .row_count = balance->windows};
}

/* --- words --- */

/* The metric that is worst balanced, or -1. Nearly idle GPUs say little by their utilisation. */
static int worst_metric(const struct balance *balance) {
    int worst = -1;
    for (int m = 0; m < BALANCED; m++)
        if (!isnan(balance->cv[m]) && (worst < 0 || balance->cv[m] > balance->cv[worst]))
            worst = m;
    return worst;
}

static const char *make_advice(const struct balance *balance, struct lab_arena *arena) {
    int worst = worst_metric(balance), gpus = balance->watch->gpu_count;
    if (worst < 0)
        return NULL;
    double cv = balance->cv[worst];
    const char *title = lab_watch_kinds[worst].title;
    if (cv < 0.05)
        return "nothing to change";
    if (cv < 0.10)
        return lab_arena_printf(arena,
                                "%s: watch the trend; there is little to gain. A batch size that "
                                "%d divides gives each GPU the same share",
                                title, gpus);
    if (cv < 0.20)
        return lab_arena_printf(arena,
                                "%s: review the batch split and the loading of data: a batch size "
                                "that %d divides, as many samples and workers for each rank",
                                title, gpus);
    return lab_arena_printf(
        arena,
        "%s: check that each rank has a GPU of its own and its share of the batch (a size that %d "
        "divides), DDP's settings (find_unused_parameters off), fragmented memory, and contexts "
        "that processes hold on GPUs which aren't theirs (all of them on GPU 0, often)",
        title, gpus);
}

static void add_window(struct lab_str *text, const struct balance *balance, int window) {
    double length_s = balance->watch->duration_s / balance->windows;
    lab_analysis_add_duration(text, window * length_s);
    lab_str_add(text, " to ");
    lab_analysis_add_duration(text, (window + 1) * length_s);
}

/* What the windows say: which metric drifts; else, that none does, and the worst of them. */
static const char *describe_windows(const struct balance *balance, struct lab_arena *arena) {
    struct lab_str text;
    int worst = -1;
    bool drifts = false;
    lab_str_init(&text);
    for (int m = 0; m < BALANCED; m++) {
        const struct lab_drift *drift = &balance->drift[m];
        if (drift->worst >= 0 &&
            (worst < 0 || balance->window_cv[m][drift->worst] >
                              balance->window_cv[worst][balance->drift[worst].worst]))
            worst = m;
        if (drift->direction == 0)
            continue;
        lab_str_printf(&text, "%s gets %s: CV %.1f %% at first, %.1f %% at last; ",
                       lab_watch_kinds[m].title, drift->direction > 0 ? "worse" : "better",
                       100 * drift->first, 100 * drift->last);
        drifts = true;
    }
    if (worst < 0 || balance->windows < 2) {
        lab_str_release(&text);
        return NULL;
    }
    if (is_steady(balance)) {
        lab_str_release(&text);
        return "the same throughout";
    }
    if (!drifts)
        lab_str_add(&text, "no drift; ");
    lab_str_add(&text, "worst from ");
    add_window(&text, balance, balance->drift[worst].worst);
    double cv = balance->window_cv[worst][balance->drift[worst].worst];
    lab_str_printf(&text, ": %s, CV %.1f %% (%s)", lab_watch_kinds[worst].noun, 100 * cv,
                   lab_watch_grade(cv));
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* The grade that all metrics have, or NULL. */
static const char *same_grade(const struct balance *balance) {
    const char *grade = NULL;
    for (int m = 0; m < BALANCED; m++) {
        const char *own = lab_watch_grade(balance->cv[m]);
        if (own && grade && !lab_str_equal(own, grade))
            return NULL;
        grade = own ? own : grade;
    }
    return grade;
}

static const char *make_answer(const struct balance *balance, struct lab_arena *arena) {
    const struct lab_watch *watch = balance->watch;
    if (watch->gpu_count == 0)
        return "No GPU was recorded: balance needs two.";
    if (watch->gpu_count == 1)
        return lab_arena_printf(arena, "Only %s was recorded: balance needs two.",
                                watch->gpus[0].name);
    const char *grade = same_grade(balance);
    struct lab_str text;
    int told = 0;
    lab_str_init(&text);
    lab_str_printf(&text, "The balance of %d GPUs is %s", watch->gpu_count, grade ? grade : "");
    lab_str_add(&text, grade ? ": " : "");
    for (int m = 0; m < BALANCED; m++) {
        if (isnan(balance->cv[m]))
            continue;
        lab_str_add(&text, told++ ? ", " : grade ? "CV " : "");
        if (grade)
            lab_str_printf(&text, "%.1f %% in %s", 100 * balance->cv[m], lab_watch_kinds[m].noun);
        else
            lab_str_printf(&text, "%s in %s (CV %.1f %%)", lab_watch_grade(balance->cv[m]),
                           lab_watch_kinds[m].noun, 100 * balance->cv[m]);
    }
    lab_str_add(&text, told ? "." : "unknown: neither memory nor load was recorded.");
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* --- notes --- */

#define IDLE_PERCENT  1.0 /* less utilisation than this, and less memory than a tenth of the most: */
#define UNUSED_MEMORY 0.1 /* nobody works there */
#define LOW_PERCENT   5.0 /* of utilisation: differences of a point are large shares */

static const char *note_unused(const struct lab_watch *watch, struct lab_arena *arena) {
    struct lab_str unused, used;
    int unused_count = 0, used_count = 0;
    double most = 0;
    lab_str_init(&unused);
    lab_str_init(&used);
    for (int g = 0; g < watch->gpu_count; g++)
        most = fmax(most, watch->gpus[g].figures[LAB_WATCH_MEMORY].mean);
    for (int g = 0; g < watch->gpu_count; g++) {
        const struct lab_watch_gpu *gpu = &watch->gpus[g];
        bool idle = gpu->figures[LAB_WATCH_UTILIZATION].mean < IDLE_PERCENT &&
                    gpu->figures[LAB_WATCH_MEMORY].mean < UNUSED_MEMORY * most;
        struct lab_str *list = idle ? &unused : &used;
        int *count = idle ? &unused_count : &used_count;
        lab_str_printf(list, "%s%d", (*count)++ ? "," : "", gpu->track->entity.index);
    }
    const char *note = NULL;
    if (unused_count > 0 && used_count > 1)
        note = lab_arena_printf(arena,
                                "nobody seems to use GPU %s: gpus=[%s] gives the balance of the "
                                "others",
                                unused.text, used.text);
    lab_str_release(&unused);
    lab_str_release(&used);
    return note;
}

static const char *const *make_notes(const struct lab_watch *watch, struct lab_arena *arena) {
    const char **notes = lab_watch_notes(&watch, 1, 3, arena);
    const char *unused = note_unused(watch, arena);
    double utilization = lab_watch_together(watch, LAB_WATCH_UTILIZATION);
    if (unused)
        lab_watch_add_note(notes, unused);
    else if (watch->gpu_count > 1 && utilization < LOW_PERCENT)
        lab_watch_add_note(notes, lab_arena_printf(arena,
                                                   "the GPUs are nearly idle (%.1f %%): the CV of "
                                                   "utilisation and power says little",
                                                   utilization));
    return notes;
}

/* --- the whole --- */

static struct lab_analysis_part make_part(const struct balance *balance, struct lab_arena *arena) {
    const struct lab_watch *watch = balance->watch;
    struct lab_analysis_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_analysis_table *tables = lab_arena_alloc(arena, BALANCED + 1, sizeof *tables);
    int table_count = 0;
    for (int m = 0; m < BALANCED; m++) {
        cells[TOGETHER + m] = lab_analysis_figure(lab_watch_together(watch, m));
        cells[CV + m] = lab_analysis_figure(balance->cv[m]);
        cells[GRADE + m] = lab_analysis_text(lab_watch_grade(balance->cv[m]));
        if (!isnan(lab_watch_together(watch, m)))
            tables[table_count++] = metric_table(balance, m, arena);
    }
    bool windows = balance->windows > 1 && worst_metric(balance) >= 0;
    if (windows)
        tables[table_count++] = window_table(balance, arena);
    cells[DURATION] = lab_analysis_figure(watch->duration_s);
    cells[GPUS] = lab_analysis_figure(watch->gpu_count);
    cells[RATE] = lab_analysis_figure(watch->source->rate);
    cells[DRIFT] = lab_analysis_text(windows ? describe_windows(balance, arena) : NULL);
    cells[ADVICE] = lab_analysis_text(make_advice(balance, arena));
    return (struct lab_analysis_part){
        .name = watch->source->name,
        .about = lab_watch_about(&watch, 1, arena),
        .answer = make_answer(balance, arena),
        .cells = cells,
        .tables = tables,
        .table_count = table_count,
        .notes = make_notes(watch, arena),
    };
}

/* "3 recordings: the worst balance is that of b: poor in utilisation (CV 24.0 %)." */
static const char *answer_for_all(const struct balance *balances, int count,
                                  struct lab_arena *arena) {
    const struct balance *worst = NULL;
    int metric = -1;
    for (int i = 0; i < count; i++) {
        int own = worst_metric(&balances[i]);
        if (own >= 0 && (!worst || balances[i].cv[own] > worst->cv[metric])) {
            worst = &balances[i];
            metric = own;
        }
    }
    if (!worst)
        return lab_arena_printf(arena, "%d recordings, none with two GPUs to compare.", count);
    return lab_arena_printf(
        arena, "%d recordings: the worst balance is that of %s: %s in %s (CV %.1f %%).", count,
        worst->watch->source->name, lab_watch_grade(worst->cv[metric]),
        lab_watch_kinds[metric].noun, 100 * worst->cv[metric]);
}

/* Whether runs of one label are slower where they are less balanced. */
static void add_rate_note(const struct balance *balances, int count, const char **notes,
                          struct lab_arena *arena) {
    double *cvs = lab_arena_alloc(arena, (size_t)count, sizeof *cvs);
    double *rates = lab_arena_alloc(arena, (size_t)count, sizeof *rates);
    int n = 0;
    for (int i = 0; i < count; i++) {
        const struct lab_analysis_recording *source = balances[i].watch->source;
        if (!lab_str_equal(source->label, balances[0].watch->source->label))
            return; /* different work: its rates aren't comparable */
        if (isnan(source->rate) || isnan(balances[i].cv[LAB_WATCH_UTILIZATION]))
            continue;
        cvs[n] = balances[i].cv[LAB_WATCH_UTILIZATION];
        rates[n++] = source->rate;
    }
    struct lab_rank_correlation found = lab_rank_correlation_make(cvs, rates, n);
    if (isnan(found.coefficient))
        return;
    lab_watch_add_note(notes,
                       lab_arena_printf(arena,
                                        "Throughput against the CV of utilisation, %d runs: rank "
                                        "correlation %+.2f, %s.",
                                        n, found.coefficient,
                                        !found.significant      ? "which chance explains"
                                        : found.coefficient < 0 ? "the less balanced, the slower"
                                                                : "the less balanced, the faster"));
}

static int run(const void *opaque, const struct lab_analysis_input *input, struct lab_arena *arena,
               struct lab_analysis_result *ret_result, struct lab_err *err) {
    const struct balance_config *config = opaque;
    struct lab_watch *watches;
    if (lab_watch_all(input, &config->watch, arena, &watches, err) < 0)
        return -1;
    int count = input->recording_count;
    struct balance *balances = lab_arena_alloc(arena, (size_t)count, sizeof *balances);
    struct lab_analysis_part *parts = lab_arena_alloc(arena, (size_t)count, sizeof *parts);
    const char **notes = lab_arena_alloc(arena, 4, sizeof *notes);
    for (int i = 0; i < count; i++) {
        balances[i] = make_balance(&watches[i], config->window_s, arena);
        parts[i] = make_part(&balances[i], arena);
    }
    add_rate_note(balances, count, notes, arena);
    *ret_result = (struct lab_analysis_result){
        .answer = count == 1 ? parts->answer : answer_for_all(balances, count, arena),
        .part_key = "recordings",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = parts,
        .part_count = count,
        .simulated = lab_watch_simulated(input),
        .notes = notes,
    };
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
    .run = run,
};
