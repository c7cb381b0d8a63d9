/*
 * support/report_training.c: files beside the report of a study that trains models on one device and on
 * several, under the names and with the fields of a published study of two GPUs:
 * benchmark_<model>_<single|multi>_gpu.json, comparison_report_<model>.md.
 *
 * That study's own figures stand beside models of the same name. It gave them sizes that their layers don't
 * have; what is told here are true counts.
 */
#include "command/support/report_internal.h"

#include "analysis/analysis_published.h"
#include "analysis/analysis_study.h"
#include "analysis/analysis_training.h"
#include "analysis/analysis_training_words.h"
#include "base/json.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODELS_MAX 16
#define CONFIDENCE 0.95

/* --- runs --- */

/* "medium" of "mlp_medium_batch128"; NULL = it is no such run. */
static const char *model_of(const struct lab_study_run *run, struct lab_arena *arena) {
    static const char start[] = "mlp_";
    const char *end = strstr(run->model, "_batch");
    if (!lab_str_starts(run->model, start) || !end)
        return NULL;
    return lab_arena_strndup(arena, run->model + sizeof start - 1,
                             (size_t)(end - run->model) - (sizeof start - 1));
}

static double batch_of(const struct lab_study_run *run) {
    return lab_study_number(run, "options.batch_size");
}

static double training_time_ms(const struct lab_study_run *run) {
    return 1e3 * run->time_s;
}

static double memory_mb(const struct lab_study_run *run) {
    double gpu = lab_study_number(run, "result.gpu_memory_peak_mb");
    return isnan(gpu) ? lab_study_number(run, "result.peak_memory_mb") : gpu;
}

static double communication_ms(const struct lab_study_run *run) {
    return run->rank_count > 1 ? lab_study_number(run, "result.communication_time_ms") : 0;
}

/* Share of a step in which the device computes, in percent. */
static double utilization(const struct lab_study_run *run) {
    return 100 * lab_study_number(run, "result.compute_utilization");
}

static double rate(const struct lab_study_run *run) {
    return run->rate;
}

static double mean_of(const struct lab_study_point *point,
                      double (*figure)(const struct lab_study_run *)) {
    double total = 0;
    for (int i = 0; i < point->count; i++)
        total += figure(point->runs[i]);
    return total / point->count;
}

/* --- benchmark_….json --- */

static struct lab_value *run_value(const struct lab_study_run *run, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "run", run->run->repeat);
    lab_value_set_float(arena, map, "samples_per_second", run->rate);
    lab_value_set_float(arena, map, "training_time_ms", training_time_ms(run));
    lab_value_set_float(arena, map, "memory_usage_mb", memory_mb(run));
    lab_value_set_float(arena, map, "gpu_utilization", utilization(run));
    lab_value_set_float(arena, map, "communication_time_ms", communication_ms(run));
    lab_value_set_int(arena, map, "model_parameters", (int64_t)run->work.parameters);
    return map;
}

static struct lab_value *point_value(const struct lab_study_point *point, const char *model,
                                     bool simulated, struct lab_arena *arena) {
    const struct lab_study_run *first = point->runs[0];
    struct lab_value *map = lab_value_map(arena), *ends = lab_value_list(arena);
    struct lab_value *runs = lab_value_list(arena);
    struct lab_interval interval =
        lab_stats_mean_interval(point->rates, (size_t)point->count, CONFIDENCE);
    lab_value_append(arena, ends, lab_value_float(arena, interval.low));
    lab_value_append(arena, ends, lab_value_float(arena, interval.high));
    for (int i = 0; i < point->count; i++)
        lab_value_append(arena, runs, run_value(point->runs[i], arena));
    lab_value_set_int(arena, map, "batch_size", (int64_t)batch_of(first));
    lab_value_set_string(arena, map, "model_type", model);
    lab_value_set_string(arena, map, "scaling", lab_study_text(first, "options.scaling"));
    lab_value_set_bool(arena, map, "multi_gpu", first->rank_count > 1);
    lab_value_set_int(arena, map, "devices", first->rank_count);
    lab_value_set_bool(arena, map, "simulated", simulated);
    lab_value_set_int(arena, map, "num_runs", point->count);
    lab_value_set_float(arena, map, "mean_samples_per_sec", mean_of(point, rate));
    lab_value_set_float(arena, map, "std_samples_per_sec",
                        lab_stats_stddev(point->rates, (size_t)point->count));
    lab_value_set(arena, map, "confidence_interval_95", ends);
    lab_value_set_float(arena, map, "mean_training_time_ms", mean_of(point, training_time_ms));
    lab_value_set_float(arena, map, "mean_memory_mb", mean_of(point, memory_mb));
    lab_value_set_float(arena, map, "mean_gpu_utilization", mean_of(point, utilization));
    lab_value_set_float(arena, map, "mean_communication_ms", mean_of(point, communication_ms));
    lab_value_set_int(arena, map, "model_parameters", (int64_t)first->work.parameters);
    lab_value_set(arena, map, "detailed_runs", runs);
    return map;
}

static void add_file(struct report_found *found, const char *name, const struct lab_str *text) {
    found->files[found->file_count++] =
        (struct report_file){name, lab_arena_strdup(found->arena, text->text)};
}

static int by_name(const void *a, const void *b) {
    const struct lab_study_point *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static void add_benchmark(struct report_found *found, const struct lab_study_point *points,
                          int count, const char *model, bool multi, bool simulated) {
    struct lab_arena *arena = found->arena;
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = points[i].runs[0];
        if ((run->rank_count > 1) == multi && lab_str_equal(model_of(run, arena), model))
            lab_value_append(arena, list, point_value(&points[i], model, simulated, arena));
    }
    if (list->count == 0)
        return;
    struct lab_str text;
    lab_str_init(&text);
    lab_json_write(list, 1, &text);
    lab_str_add(&text, "\n");
    add_file(found,
             lab_arena_printf(arena, "benchmark_%s_%s_gpu.json", model, multi ? "multi" : "single"),
             &text);
    lab_str_release(&text);
}

/* --- comparison_report_….md --- */

static const struct lab_analysis_table *find_speedups(const struct report_found *found) {
    for (int i = 0; i < found->count; i++) {
        const struct lab_analysis_result *result = found->items[i].result;
        if (!result || !lab_str_equal(found->items[i].name, "speedup") || result->part_count == 0)
            continue;
        for (int t = 0; t < result->parts[0].table_count; t++)
            if (lab_str_equal(result->parts[0].tables[t].key, "speedups"))
                return &result->parts[0].tables[t];
    }
    return NULL;
}

static const struct lab_analysis_cell *cell_of(const struct lab_analysis_table *table, int row,
                                               const char *key) {
    static const struct lab_analysis_cell none = {.value = NAN, .low = NAN, .high = NAN};
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].key && lab_str_equal(table->columns[c].key, key))
            return &table->cells[row * table->column_count + c];
    return &none;
}

static const char *recommendation(const char *grade) {
    static const struct {
        const char *grade, *words;
    } all[] = {{"beneficial", "Several devices beneficial"},
               {"marginal", "Marginal difference"},
               {"stay single", "Single device preferred"},
               {"ambiguous", "Ambiguous: more runs would tell"},
               {"apart", "Single device: several train a model each"}};
    for (size_t i = 0; grade && i < sizeof all / sizeof *all; i++)
        if (lab_str_equal(all[i].grade, grade))
            return all[i].words;
    return "Unknown: there is no interval";
}

static void add_share(struct lab_str *text, double share) {
    if (isnan(share))
        lab_str_add(text, " – |");
    else
        lab_str_printf(text, " %.1f %% |", 100 * share);
}

/* The batch of a row whose work is this model's, as it stands in its name ("128", "128_weak"), or NULL. */
static const char *batch_of_row(const struct lab_analysis_table *table, int row, const char *model,
                                struct lab_arena *arena) {
    const char *work = cell_of(table, row, "work")->text;
    const char *start = lab_arena_printf(arena, "mlp_%s_batch", model);
    return work && lab_str_starts(work, start) ? work + strlen(start) : NULL;
}

static void add_row(struct lab_str *text, const struct lab_analysis_table *table, int row,
                    const char *batch) {
    const struct lab_analysis_cell *speedup = cell_of(table, row, "speedup");
    size_t digits = strspn(batch, "0123456789");
    const char *rest = lab_str_equal(batch + digits, "_weak") ? " a device" : batch + digits;
    lab_str_printf(text, "| %.*s%s | %.0f | %.0f | %.0f | %.2fx", (int)digits, batch, rest,
                   cell_of(table, row, "devices")->value, cell_of(table, row, "one_per_s")->value,
                   cell_of(table, row, "many_per_s")->value, speedup->value);
    if (!isnan(speedup->low))
        lab_str_printf(text, " [%.2f, %.2f]", speedup->low, speedup->high);
    lab_str_add(text, " |");
    add_share(text, cell_of(table, row, "efficiency")->value);
    add_share(text, cell_of(table, row, "communication")->value);
    lab_str_printf(text, " %s |\n", recommendation(cell_of(table, row, "grade")->text));
}

/* The speed-up of two devices here at that batch, training one model; NaN = none. */
static double here(const struct lab_analysis_table *table, const char *model, int batch,
                   struct lab_arena *arena) {
    const char *wanted = lab_arena_printf(arena, "%d", batch);
    for (int row = 0; row < table->row_count; row++)
        if (lab_str_equal(batch_of_row(table, row, model, arena), wanted) &&
            cell_of(table, row, "devices")->value == 2 &&
            !lab_str_equal(cell_of(table, row, "grade")->text, "apart"))
            return cell_of(table, row, "speedup")->value;
    return NAN;
}

static void add_published(struct lab_str *text, const struct lab_analysis_table *table,
                          const char *model, double parameters, struct lab_arena *arena) {
    const char *claimed = lab_published_size(model);
    if (!claimed)
        return;
    double least_ms = INFINITY, most_ms = 0;
    for (const struct lab_published *row = lab_published; row->model; row++)
        if (lab_str_equal(row->model, model)) {
            least_ms = fmin(least_ms, 1e3 * row->batch / row->one);
            most_ms = fmax(most_ms, 1e3 * row->batch / row->one);
        }
    lab_str_printf(
        text,
        "\n## Published figures of a model of this name\n\nTwo RTX 4070 Ti SUPER without "
        "peer access, with TensorFlow, in samples a second. The model was said to have %s "
        "parameters; its layers have %.0f. A step on one GPU took %.1f to %.1f ms there: "
        "the less time a step takes, the more its sums weigh.\n\n"
        "| Batch Size | One | Two | Speedup | Here |\n|---:|---:|---:|---:|---:|\n",
        claimed, parameters, least_ms, most_ms);
    for (const struct lab_published *row = lab_published; row->model; row++) {
        if (!lab_str_equal(row->model, model))
            continue;
        double ours = here(table, model, row->batch, arena);
        lab_str_printf(text, "| %d | %.0f | %.0f | %.2fx |", row->batch, row->one, row->two,
                       row->two / row->one);
        lab_str_add(text, isnan(ours) ? " – |\n" : lab_arena_printf(arena, " %.2fx |\n", ours));
    }
}

struct findings {
    double log_sum; /* of speed-ups, whose mean is the geometric one: ratios multiply */
    int count, pay, stay, marginal;
    int weak;  /* each device has a batch of its own */
    int apart; /* devices of a gang don't sum: each trains a model of its own */
};

static void count_finding(struct findings *found, double speedup, const char *grade) {
    found->log_sum += log(speedup);
    found->count++;
    found->pay += lab_str_equal(grade, "beneficial");
    found->stay += lab_str_equal(grade, "stay single");
    found->marginal += lab_str_equal(grade, "marginal");
    found->apart += lab_str_equal(grade, "apart");
}

/* Rests on the verdicts: a mean of what can't be told tells nothing. */
static const char *conclude(const struct findings *found, struct lab_arena *arena) {
    int open = found->count - found->pay - found->stay - found->marginal - found->apart;
    if (found->apart == found->count)
        return "with allreduce=none each device trains a model of its own: several do as many "
               "trainings at once, and none of them is faster; for one training stay on one";
    if (found->pay == found->count)
        return "several devices train it faster";
    if (found->stay == found->count)
        return "one device trains it faster; stay on one";
    if (found->marginal == found->count)
        return "there is hardly a difference; one device will do";
    if (open == found->count)
        return "it can't be told which trains it faster; more runs would tell";
    const struct {
        int count;
        const char *words;
    } parts[] = {{found->pay, "several devices are faster"},
                 {found->stay, "one is faster"},
                 {found->marginal, "there is hardly a difference"},
                 {found->apart, "each device trains a model of its own"},
                 {open, "it can't be told"}};
    const char *text = lab_arena_printf(arena, "of %d comparisons", found->count), *link = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count > 0) {
            text = lab_arena_printf(arena, "%s%s in %d %s", text, link, parts[i].count,
                                    parts[i].words);
            link = ",";
        }
    return text;
}

static void add_findings(struct lab_str *text, const struct findings *found,
                         struct lab_arena *arena) {
    const char *weak = found->weak > 0 && found->apart < found->count
                           ? "; with scaling=weak that is another training, since the batch grows "
                             "with the devices"
                           : "";
    lab_str_printf(text,
                   "\n## Key Findings\n\n**Conclusion**: %s%s\n\n**Average %s**: %.2fx "
                   "(geometric mean of %d)\n",
                   conclude(found, arena), weak,
                   found->apart == found->count ? "Throughput of All Devices" : "Speedup",
                   exp(found->log_sum / found->count), found->count);
}

/* What the law of a step's time says of this model: where so many devices begin to pay. */
static void add_law(struct lab_str *text, const struct lab_study_table *study, const char *model,
                    struct lab_arena *arena) {
    struct lab_training_set *sets;
    struct lab_training training;
    const struct lab_training_row *last = NULL;
    if (lab_training_sets(study, arena, &sets) == 0)
        return;
    lab_training_fit(sets[0].rows, sets[0].count, &training);
    for (int i = 0; i < training.row_count; i++) {
        const struct lab_training_row *row = &training.rows[i];
        if (row->work.devices > 1 && lab_str_equal(row->model, model) &&
            (!last || row->work.batch > last->work.batch))
            last = row;
    }
    if (!last)
        return;
    lab_str_printf(text, "\n**Break-even**: %s",
                   lab_training_evens_words(&training, &last->work, arena));
    if (training.law_count > 0)
        lab_str_printf(text, ". Points left out of the law's fit were predicted %.1f %% wrong",
                       100 * training.laws[0].error);
    lab_str_add(text, ".\n");
}

static void add_comparison(struct report_found *found, const struct lab_analysis_table *table,
                           const struct lab_study_table *study, const char *model,
                           double parameters) {
    bool simulated = study->simulated;
    struct lab_arena *arena = found->arena;
    struct lab_str text;
    struct findings findings = {0};
    lab_str_init(&text);
    lab_str_printf(&text,
                   "# %s: one device and several%s\n\n%.0f parameters. Throughput in samples a "
                   "second, speed-ups with 95 %% intervals, communication as a share of a "
                   "step.\n\n## Summary\n\n"
                   "| Batch Size | Devices | Single | Multi | Speedup | Efficiency | Communication "
                   "| Recommendation |\n|---:|---:|---:|---:|---:|---:|---:|---|\n",
                   model, simulated ? " (simulated)" : "", parameters);
    for (int row = 0; row < table->row_count; row++) {
        const char *batch = batch_of_row(table, row, model, arena);
        double speedup = cell_of(table, row, "speedup")->value;
        if (!batch || !(speedup > 0))
            continue;
        add_row(&text, table, row, batch);
        findings.weak += strstr(batch, "_weak") != NULL;
        count_finding(&findings, speedup, cell_of(table, row, "grade")->text);
    }
    if (findings.count > 0) {
        add_findings(&text, &findings, arena);
        add_law(&text, study, model, arena);
        add_published(&text, table, model, parameters, arena);
        add_file(found, lab_arena_printf(arena, "comparison_report_%s.md", model), &text);
    }
    lab_str_release(&text);
}

/* --- the whole --- */

void report_training_files(struct report_found *found, const struct lab_study_table *study) {
    struct lab_study_point *points;
    const char *models[MODELS_MAX];
    double parameters[MODELS_MAX];
    int model_count = 0;
    if (lab_study_has_phases(study))
        return;
    int count = lab_study_points(study, found->arena, &points);
    qsort(points, (size_t)count, sizeof *points, by_name);
    for (int i = 0; i < count; i++) {
        const char *model = model_of(points[i].runs[0], found->arena);
        int at = 0;
        while (model && at < model_count && !lab_str_equal(models[at], model))
            at++;
        if (!model || at < model_count || model_count == MODELS_MAX)
            continue;
        parameters[model_count] = points[i].runs[0]->work.parameters;
        models[model_count++] = model;
    }
    if (model_count == 0)
        return;
    const struct lab_analysis_table *table = find_speedups(found);
    found->files = lab_arena_alloc(found->arena, 3 * (size_t)model_count + 1, sizeof *found->files);
    for (int m = 0; m < model_count; m++) {
        add_benchmark(found, points, count, models[m], false, study->simulated);
        add_benchmark(found, points, count, models[m], true, study->simulated);
        if (table)
            add_comparison(found, table, study, models[m], parameters[m]);
    }
}
