/*
 * metrics.c: `gpulab analyze metrics`: what programs of the user's own reported (test_matrix), by
 * setting: which is best by the objective, what it takes, and the curves.
 */
#include "analysis/metrics/metrics.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define METRICS_MOST 512 /* a part of the report each */

struct metrics_config {
    const char *objective;
    const char *at;
};

static const struct lab_option metrics_options[] = {
    {"objective", LAB_OPTION_STRING, offsetof(struct metrics_config, objective),
     .value_name = "METRIC",
     .help =
         "what settings are chosen by: a metric, or METRIC:min, METRIC:max; as the study has it "
         "if not given"},
    {"at", LAB_OPTION_CHOICE, offsetof(struct metrics_config, at), .fallback = "common",
     .choices = (const char *const[]){"common", "end", NULL},
     .help = "where settings of different lengths are compared: at the last step that all have "
             "(common), or at their ends"},
    {NULL},
};

const char *metrics_title(const struct metrics_metric *metric, struct lab_arena *arena) {
    const char *name = metrics_named(metric, arena);
    return *metric->unit ? lab_arena_printf(arena, "%s [%s]", name, metric->unit) : name;
}

/* --- what they reported --- */

static const struct lab_field value_fields[] = {
    LAB_FIELD(struct metrics_value, name, "setting", "Setting", LAB_UNIT_TEXT),
    LAB_FIELD(struct metrics_value, last, "value", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct metrics_value, low, "low", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct metrics_value, high, "high", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct metrics_value, memory_mib, "peak_memory_mib", NULL, LAB_UNIT_MEBIBYTES),
    LAB_FIELD(struct metrics_value, cell, "mean", NULL, LAB_UNIT_NUMBER, .with_interval = true),
    LAB_FIELD(struct metrics_value, text, NULL, "Value", LAB_UNIT_FIGURE),
    LAB_FIELD(struct metrics_value, at_text, NULL, "At a common step", LAB_UNIT_FIGURE),
    LAB_FIELD(struct metrics_value, best, "best", NULL, LAB_UNIT_NUMBER, .with_interval = true),
    LAB_FIELD(struct metrics_value, best_step, "best_step", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct metrics_value, best_text, NULL, "Best (step)", LAB_UNIT_FIGURE),
    LAB_FIELD(struct metrics_value, runs, "runs", "Runs", LAB_UNIT_COUNT),
    LAB_FIELD(struct metrics_value, change, "change", "Change", LAB_UNIT_CHANGE),
};

static const struct lab_field metric_fields[] = {
    LAB_FIELD(struct metrics_metric, count, "settings", "Settings", LAB_UNIT_COUNT),
    LAB_FIELD(struct metrics_metric, best, "best", "Use", LAB_UNIT_TEXT),
};

/* Of its points, each of which stands for equally many values; NaN = none is finite. */
static double median_of(const struct lab_study_metric *said) {
    const struct lab_curve *curve = &said->curve;
    LAB_AUTO_FREE double *values = lab_mem_alloc((size_t)curve->count + 1, sizeof *values);
    size_t count = 0;
    for (int i = 0; i < curve->count; i++) {
        values[count] = curve->points[i].value;
        count += isfinite(values[count]);
    }
    double median = count ? lab_stats_median(values, count) : said->value; /* not read: the last */
    return median;
}

/* The run's own rate, where the metric is what that was made of: it has one definition. */
static bool is_rate_of_run(const struct lab_study_run *run, const struct metrics_metric *metric) {
    const char *unit = metric->rate ? lab_metric_rate_unit(metric->name, metric->unit) : NULL;
    return metric->own || (unit && run->run && lab_str_equal(run->run->rate_unit, unit));
}

double metrics_run_value(const struct lab_study_run *run, const struct metrics_metric *metric) {
    double sum = 0, least = NAN;
    int count = 0;
    if (is_rate_of_run(run, metric))
        return run->rate;
    for (int i = 0; i < run->metric_count; i++) {
        const struct lab_study_metric *said = &run->metrics[i];
        if (!lab_str_equal(said->name, metric->name))
            continue;
        double value = metric->rate ? median_of(said) : said->value;
        if (isfinite(value)) {
            sum += value;
            least = fmin(least, value); /* fmin passes NaN over */
            count++;
        }
    }
    return metric->rate ? least : count ? sum / count : (double)NAN;
}

static bool reports(const struct lab_study_run *run, const struct metrics_metric *metric) {
    for (int i = 0; i < run->metric_count; i++)
        if (lab_str_equal(run->metrics[i].name, metric->name))
            return true;
    return false;
}

static void describe_last(const struct metrics_metric *metric, bool of_gpu,
                          struct metrics_value *made, struct lab_arena *arena) {
    const struct lab_study_point *point = &made->setting->point;
    struct metrics_metric last = {.name = metric->name}; /* of a rate, too */
    double *values = lab_arena_alloc(arena, (size_t)point->count, sizeof *values),
           *memory = lab_arena_alloc(arena, (size_t)point->count, sizeof *memory);
    size_t count = 0, memory_count = 0;
    for (int i = 0; i < point->count; i++) {
        values[count] = metrics_run_value(point->runs[i], &last);
        count += !isnan(values[count]);
        memory[memory_count] = metrics_memory_all(point->runs[i], of_gpu);
        memory_count += !isnan(memory[memory_count]);
    }
    struct lab_analysis_summary summary = lab_analysis_summarize(values, count);
    made->last = summary.median;
    made->low = count > 1 ? summary.low : (double)NAN;
    made->high = count > 1 ? summary.high : (double)NAN;
    made->memory_mib = lab_analysis_summarize(memory, memory_count).median;
}

static struct metrics_value describe(const struct metrics_setting *setting, bool of_gpu,
                                     const struct metrics_metric *metric, struct lab_arena *arena) {
    const struct lab_study_point *point = &setting->point;
    double *values = lab_arena_alloc(arena, (size_t)point->count, sizeof *values);
    size_t count = 0;
    struct metrics_value made = {.setting = setting, .name = setting->name};
    for (int i = 0; i < point->count; i++) {
        values[count] = metrics_run_value(point->runs[i], metric);
        count += !isnan(values[count]);
    }
    made.runs = (int)count;
    made.cell = metrics_cell(values, (int)count, arena);
    made.text = metrics_cell_text(&made.cell, LAB_UNIT_NUMBER, arena);
    made.value = made.cell.value;
    describe_last(metric, of_gpu, &made, arena);
    metrics_describe_best(setting, metric, &made, arena);
    return made;
}

/* --- metrics --- */

/* As a study says, or by the metric's name. */
static enum lab_direction better_of(const char *name, const struct metrics_settings *settings) {
    const struct lab_value *said = NULL;
    for (int i = 0; i < settings->count && !said; i++)
        said = lab_value_get(settings->items[i].point.runs[0]->options, "metrics");
    return lab_metric_direction(name, said);
}

/* What settings are compared by, where that isn't their end. */
static void add_compared(struct metrics_metric *metric, struct lab_arena *arena) {
    for (int v = 0; v < metric->count && !isnan(metric->at); v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        double *values = lab_arena_alloc(arena, (size_t)point->count, sizeof *values);
        for (int r = 0; r < point->count; r++) {
            values[r] = metrics_compared_value(point->runs[r], metric);
            metric->differs |= values[r] <= 0;
        }
        struct lab_doc_cell cell = metrics_cell(values, point->count, arena);
        metric->values[v].value = cell.value;
        metric->values[v].at_text = metrics_cell_text(&cell, LAB_UNIT_NUMBER, arena);
    }
}

static void add_values(struct metrics_metric *metric, const struct metrics_settings *settings,
                       struct lab_arena *arena) {
    struct metrics_value *lost_values = NULL;
    int lost_count = 0;
    for (int i = 0; i < settings->count; i++) {
        const struct metrics_setting *setting = &settings->items[i];
        struct metrics_value value = describe(setting, settings->of_gpu, metric, arena);
        int reported = 0;
        for (int r = 0; r < setting->point.count; r++) {
            reported += reports(setting->point.runs[r], metric);
            metric->differs |= metrics_run_value(setting->point.runs[r], metric) <= 0;
        }
        metric->reported += reported;
        metric->reported_by += reported > 0;
        int lost = metrics_lost(setting, metric);
        metric->lost += lost;
        value.diverged = lost > 0 && 2 * lost >= setting->point.count;
        metric->compared += value.runs > 0 && !value.diverged;
        if (value.runs > 0)
            LAB_ADD(metric->values, metric->count, arena) = value;
        else if (lost > 0)
            LAB_ADD(lost_values, lost_count, arena) = value;
    }
    metric->drawn = metric->count;
    for (int i = 0; i < lost_count; i++)
        LAB_ADD(metric->values, metric->drawn, arena) = lost_values[i];
    metric->compared = metric->compared ? metric->compared : metric->count;
    metric->start = metrics_start(metric);
    metric->quantity = metric->name;
    metric->at = NAN;
}

static struct metrics_metric make_metric(const struct lab_study_metric *said,
                                         const struct metrics_settings *settings,
                                         struct lab_arena *arena) {
    struct metrics_metric metric = {.name = said->name,
                                    .unit = said->unit ? said->unit : "",
                                    .better = better_of(said->name, settings),
                                    .rate = lab_metric_name_is_rate(said->name, said->unit)};
    if (metric.rate && metric.better == LAB_DIRECTION_NONE)
        metric.better = LAB_DIRECTION_HIGHER;
    add_values(&metric, settings, arena);
    return metric;
}

/* Of a workload of gpulab's, which reports nothing else: how fast it is. */
static struct metrics_metric make_own(const struct metrics_settings *settings,
                                      struct lab_arena *arena) {
    const struct lab_run *run = settings->items[0].point.runs[0]->run;
    struct metrics_metric metric = {.name = "throughput",
                                    .unit = run->rate_unit ? run->rate_unit : "",
                                    .better = LAB_DIRECTION_HIGHER,
                                    .rate = true,
                                    .own = true};
    add_values(&metric, settings, arena);
    return metric;
}

/* Those of all runs, by name, in the order in which they came. */
static int find_reported(const struct metrics_settings *settings, struct lab_arena *arena,
                         struct lab_study_metric **ret_reported) {
    struct lab_study_metric *reported = NULL;
    int count = 0;
    for (int i = 0; i < settings->count; i++)
        for (int r = 0; r < settings->items[i].point.count; r++) {
            const struct lab_study_run *run = settings->items[i].point.runs[r];
            for (int m = 0; m < run->metric_count; m++)
                if (LAB_FIND(reported, count, name, run->metrics[m].name) < 0)
                    LAB_ADD(reported, count, arena) = run->metrics[m];
        }
    *ret_reported = reported;
    return count;
}

/* Whether settings may be chosen by it. */
static bool may_decide(const char *name, const struct metrics_settings *settings,
                       const char *asked) {
    size_t length;
    enum lab_direction better;
    return better_of(name, settings) != LAB_DIRECTION_NONE ||
           (asked && lab_metric_objective_read(asked, &length, &better, NULL) == 0 &&
            strlen(name) == length && strncasecmp(name, asked, length) == 0);
}

/* At most METRICS_MOST, those that may decide before others; `ret_left_out`: how many aren't. */
static int keep_reported(struct lab_study_metric *reported, int count,
                         const struct metrics_settings *settings, const char *asked,
                         int *ret_left_out) {
    int deciding = 0, kept = 0, others;
    for (int i = 0; i < count; i++)
        deciding += may_decide(reported[i].name, settings, asked);
    others = deciding < METRICS_MOST ? METRICS_MOST - deciding : 0;
    for (int i = 0; i < count; i++)
        if (may_decide(reported[i].name, settings, asked) || others-- > 0)
            reported[kept++] = reported[i];
    *ret_left_out = count - kept;
    return kept;
}

/* Those that some run has a value of come first; `ret_valued`: how many. The others diverged in all
 * runs. */
static int find_metrics(const struct metrics_settings *settings, const char *asked,
                        struct lab_analysis_result *result, struct metrics_metric **ret_metrics,
                        int *ret_valued) {
    struct lab_arena *arena = result->arena;
    struct metrics_metric *metrics = NULL, *lost = NULL;
    struct lab_study_metric *reported;
    int count = 0, lost_count = 0, left_out, kept = find_reported(settings, arena, &reported);
    kept = keep_reported(reported, kept, settings, asked, &left_out);
    for (int i = 0; i < kept; i++) {
        struct metrics_metric metric = make_metric(&reported[i], settings, arena);
        if (metric.count > 0)
            LAB_ADD(metrics, count, arena) = metric;
        else
            LAB_ADD(lost, lost_count, arena) = metric;
    }
    if (left_out > 0)
        lab_analysis_note(&result->notes, arena,
                          "%d of %d metrics are left out here, all without a better direction; "
                          "export has their values.",
                          left_out, kept + left_out);
    if (count == 0 && settings->of_workload) {
        struct metrics_metric metric = make_own(settings, arena);
        if (metric.count > 0)
            LAB_ADD(metrics, count, arena) = metric;
    }
    *ret_valued = count;
    for (int i = 0; i < lost_count; i++)
        LAB_ADD(metrics, count, arena) = lost[i];
    *ret_metrics = metrics;
    return count;
}

static void note_lost(struct lab_analysis_result *result, const struct metrics_metric *metric,
                      struct lab_arena *arena) {
    if (metric->lost > 0 && metric->count > 0)
        lab_analysis_note(&result->notes, arena,
                          "%s ended as NaN or infinite in %d run%s, left out of its values.",
                          metric->name, metric->lost, metric->lost == 1 ? "" : "s");
}

/* --- the whole --- */

/* For the picture of memory: an accuracy before a loss. */
static const struct metrics_metric *find_quality(const struct metrics_metric *metrics, int count) {
    for (int i = 0; i < count; i++)
        if (metrics[i].better == LAB_DIRECTION_HIGHER && !metrics[i].rate)
            return &metrics[i];
    for (int i = 0; i < count; i++)
        if (metrics[i].better == LAB_DIRECTION_LOWER)
            return &metrics[i];
    return NULL;
}

static void add_part(struct lab_analysis_result *result, const struct metrics_settings *settings,
                     const struct metrics_metric *metrics, int count, int index, bool chosen,
                     struct lab_arena *arena) {
    const struct metrics_metric *metric = &metrics[index];
    struct lab_analysis_part *part = lab_analysis_add_part(result, metric->name, arena);
    struct lab_rows rows = LAB_ROWS(value_fields, metric->values, metric->count);
    bool directed = metric->better != LAB_DIRECTION_NONE;
    if (chosen)
        metrics_add_summary(part, settings, metrics, count, directed ? index : -1, arena);
    rows.field_count -= !directed; /* no change: the last one */
    if (!chosen || !directed)      /* else the summary has it */
        lab_analysis_hide_columns(
            lab_rows_add_table(part, "by_setting", "By setting", &rows, arena), arena);
    metrics_keys_add_table(part, metric, arena);
    part->answer = metrics_answer(metric, settings, chosen, arena);
    LAB_PART_FIGURES(part, metric_fields, metric, arena);
    note_lost(result, metric, arena);
}

/* Whether two claims compare the same settings, whichever way round. */
static bool is_same_pair(const struct lab_claim *a, const struct lab_claim *b) {
    return (lab_str_equal(a->subject, b->subject) && lab_str_equal(a->reference, b->reference)) ||
           (lab_str_equal(a->subject, b->reference) && lab_str_equal(a->reference, b->subject));
}

/* Of the objective: the one that the answer states comes first. */
static void add_claims(struct lab_analysis_result *result, const struct metrics_metric *metric,
                       struct lab_arena *arena) {
    for (int c = 0; c < metric->class_count; c++)
        add_claims(result, &metric->classes[c], arena);
    if (metric->class_count > 0)
        return;
    const struct lab_claim *lead = &metric->lead,
                           *by_key = metric->best ? NULL : metrics_keys_worst(metric),
                           *stated = metric->best ? lead : metrics_worst(metric);
    if (by_key)
        metrics_keys_add_claims(result, metric, arena);
    if (stated)
        lab_analysis_add_claim(result, stated, arena);
    if (stated != lead && lead->verdict != LAB_CLAIM_NOT_TESTED &&
        !(stated && is_same_pair(lead, stated)))
        lab_analysis_add_claim(result, lead, arena);
    for (int i = 0; i < metric->count; i++) {
        const struct lab_claim *change = &metric->values[i].change;
        if (change->verdict != LAB_CLAIM_NOT_TESTED && !is_same_pair(change, lead) &&
            !(stated && is_same_pair(change, stated)))
            lab_analysis_add_claim(result, change, arena);
    }
    if (!by_key)
        metrics_keys_add_claims(result, metric, arena);
}

#define DIVERGED                                                                                   \
    "Lower the learning rate, clip gradients or use bf16 or fp32; check the input for NaN"

/* The best of the settings that the choice leaves, as a line to paste. */
static void use(struct lab_analysis_result *result, const struct metrics_setting *setting,
                const char *choice, struct lab_arena *arena) {
    const struct lab_value *command = lab_value_get(setting->point.runs[0]->options, "command");
    result->command = metrics_command(setting, arena);
    bool numbered = result->command && command && strstr(command->string, "{repeat}");
    result->action = lab_arena_printf(arena, "%s%s", choice,
                                      numbered ? " (SEED: the study's repeat number)" : "");
}

/* What to use: the settings that the answer names. */
static void add_action(struct lab_analysis_result *result, const struct metrics_metric *metric,
                       struct lab_arena *arena) {
    if (metric->count == 0) {
        result->action = DIVERGED;
    } else if (metric->class_count > 0) {
        result->action = metrics_class_action(metric, arena);
    } else {
        const char *by_key = metrics_keys_choice(metric, arena),
                   *choice = metric->best ? lab_arena_printf(arena, "Use %s", metric->best)
                             : by_key     ? by_key
                                          : metrics_choice(metric, arena);
        const struct metrics_setting *setting =
            by_key && !metric->best ? metric->keys->advised : metric->values[0].setting;
        if (choice)
            use(result, setting, choice, arena);
        else if (metrics_withheld(metric))
            result->action = lab_words_capital(metrics_withheld(metric), arena);
    }
}

static bool has_energy(const struct metrics_settings *settings) {
    for (int i = 0; i < settings->count; i++)
        if (!isnan(metrics_energy(settings->items[i].point.runs[0])))
            return true;
    return false;
}

static bool is_repeated(const struct metrics_settings *settings) {
    for (int i = 0; i < settings->count; i++)
        if (settings->items[i].point.count > 1)
            return true;
    return false;
}

/* The objective's part first, in the order of the others; of those that diverged in all runs, the
 * objective's alone. */
static void add_parts(struct lab_analysis_result *result, const struct metrics_settings *settings,
                      struct metrics_metric *metrics, int valued, int first,
                      struct lab_arena *arena) {
    for (int i = 0; i < valued; i++) {
        metrics_align(&metrics[i], settings->at_end, arena);
        add_compared(&metrics[i], arena);
        metrics[i].by_key = i == first;
        if (!metrics_compare_classes(&metrics[i], arena))
            metrics_compare(&metrics[i], arena);
    }
    add_part(result, settings, metrics, valued, first, true, arena);
    for (int i = 0; i < valued; i++)
        if (i != first)
            add_part(result, settings, metrics, valued, i, false, arena);
    if (metrics[first].better != LAB_DIRECTION_NONE)
        result->by_point = lab_arena_printf(
            arena, "%s%s%s",
            !is_repeated(settings)   ? "1 run each."
            : metrics[first].differs ? "Mean over runs. ±: 95% interval of that mean."
                                     : "Geometric mean over runs. ±: 95% interval of that mean.",
            settings->of_workload ? " Time per iteration: mean over a run, as its throughput." : "",
            is_repeated(settings) && settings->study_count == 1
                ? " Change: runs with the same repeat number (seed) are compared; what they share "
                  "cancels."
                : "");
}

/* What is said of the objective, or of the first metric where there is none. */
static void add_answer(struct lab_analysis_result *result, const struct metrics_settings *settings,
                       const struct metrics_metric *metric, struct lab_arena *arena) {
    struct lab_claim energy = lab_claim_none;
    if (metric->better != LAB_DIRECTION_NONE)
        energy = metrics_energy_claim(metric, arena);
    result->answer = lab_arena_printf(arena, "%s%s", metrics_answer(metric, settings, true, arena),
                                      metrics_lost_words(metric, settings, arena));
    add_claims(result, metric, arena);
    if (energy.verdict == LAB_CLAIM_YES) {
        result->answer =
            lab_arena_printf(arena, "%s %s.", result->answer, lab_claim_sentence(&energy, arena));
        lab_analysis_add_claim(result, &energy, arena);
    }
    add_action(result, metric, arena);
    metrics_note_steps(result, metric, arena);
    if (is_repeated(settings))
        lab_analysis_note(&result->notes, arena,
                          "Values are geometric means over runs (plain ones where some aren't "
                          "positive); ± is the farther end of the 95%% interval.");
    if (has_energy(settings))
        metrics_note_per_kj(result, metric, arena);
    if (settings->again > 0)
        lab_analysis_note(&result->notes, arena,
                          "%d run%s another study's repeat value for value (the same seed): "
                          "counted once.",
                          settings->again, settings->again == 1 ? " is" : "s are");
}

static bool holds_maps(const struct lab_value *value) {
    return value->type == LAB_VALUE_MAP || (value->type == LAB_VALUE_LIST && value->count > 0 &&
                                            value->items[0]->type == LAB_VALUE_MAP);
}

/* Keys of the matrix without an effect: a workload of gpulab's has no such option. */
static void claim_unused(struct lab_analysis_result *result, const struct lab_study_table *study,
                         struct lab_arena *arena) {
    LAB_AUTO(str, keys);
    const struct lab_study_run *run = study->runs;
    if (result->claim_count == 0 || study->run_count == 0 || !metrics_is_of_workload(study, run))
        return;
    for (int i = 0; i < study->matrix->count; i++) {
        const struct lab_value *value = study->matrix->items[i];
        if (value->type != LAB_VALUE_NULL && !holds_maps(value) &&
            !lab_value_get(run->options, study->matrix->keys[i]))
            lab_str_printf(&keys, "%s%s", keys.length ? ", " : "", study->matrix->keys[i]);
    }
    if (!keys.length)
        return;
    struct lab_claim unused = lab_claim_named(
        lab_claim_none, "metrics.unused",
        lab_arena_printf(arena, "%s (no option of %s)", keys.text, run->run->workload), "", "");
    lab_analysis_add_claim(result, &unused, arena);
}

static int metrics_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    struct lab_arena *arena = result->arena;
    const struct metrics_config *config = input->config;
    const char *asked = config ? config->objective : NULL;
    bool simulated = false, typed = asked != NULL;
    struct metrics_settings settings = metrics_settings_make(input, arena);
    settings.at_end = config && lab_str_equal(config->at, "end");
    struct metrics_metric *metrics;
    for (int i = 0; i < input->study_count; i++) {
        const struct lab_study_table *study = &input->studies[i];
        asked = asked ? asked : study->objective;
        simulated |= study->simulated;
        lab_study_add_notes(study, lab_analysis_prefix(input, study, arena), &result->notes, arena);
    }
    int valued, count = find_metrics(&settings, asked, result, &metrics, &valued);
    result->answer =
        "No run reported a number: experiment.metrics.patterns sets how they are read.";
    if (count == 0)
        return 0;
    int objective = metrics_objective(metrics, count, &settings, asked);
    bool missing = asked && objective < 0;
    if (missing && typed)
        return metrics_refuse_objective(metrics, count, asked, err);
    int first = missing ? metrics_objective(metrics, count, &settings, NULL) : objective;
    first = first < 0 ? 0 : first;
    add_parts(result, &settings, metrics, valued, first, arena);
    if (missing) /* by what else settings are chosen isn't for us to say */
        result->answer =
            lab_arena_printf(arena, "No run reported '%s', which settings are chosen by.", asked);
    else
        add_answer(result, &settings, &metrics[first], arena);
    for (int i = 0; i < input->study_count; i++)
        claim_unused(result, &input->studies[i], arena);
    if (!asked && objective >= 0)
        metrics_note_objective(result, metrics, count, objective, &settings, arena);
    metrics_add_curves(result, metrics, count, objective, simulated, arena);
    metrics_add_value_charts(result, &settings, &metrics[first], find_quality(metrics, valued),
                             simulated, arena);
    return 0;
}

/* A program's metrics are what its study was made for; of a matrix over a workload of gpulab's, its
 * rate. */
static int metrics_interest(const struct lab_study_table *study) {
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].metric_count > 0 || metrics_is_of_workload(study, &study->runs[i]))
            return 70;
    return 0;
}

const struct lab_analysis lab_analysis_metrics = {
    .name = "metrics",
    .summary = "which setting gives the best values, and what it takes",
    .description =
        "For studies of programs (test_matrix): the last printed value of each metric by setting; "
        "of a rate, the median of the run. With it come the time, rate, memory and energy that a "
        "setting takes, and curves over steps and time. The best is first where the metric's name "
        "implies a "
        "direction (accuracy, loss, …). The objective is experiment.objective, or objective=METRIC "
        "here; "
        "if not given, a reward or return, else the metric that most settings and runs reported. "
        "Of "
        "equal ones, a validation metric comes before others, a loss before an accuracy. Of "
        "several studies, settings are compared with each other.",
    .options = metrics_options,
    .config_size = sizeof(struct metrics_config),
    .kinds = (const struct lab_analysis_kind[]){{"metrics.best", LAB_KIND_PROGRAM},
                                                {"metrics.setting", LAB_KIND_PROGRAM},
                                                {"metrics.worse", LAB_KIND_PROGRAM},
                                                {"metrics.key", LAB_KIND_PROGRAM},
                                                {"metrics.interaction", LAB_KIND_PROGRAM},
                                                {"metrics.energy", LAB_KIND_PROGRAM},
                                                {"metrics.unused", LAB_KIND_OBSERVED},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_CURVES,
    .interest = metrics_interest,
    LAB_PARTS_OF("metrics", metric_fields),
    .run = metrics_run,
};
