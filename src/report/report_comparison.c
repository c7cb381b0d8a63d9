/*
 * report_comparison.c: comparison_report_<model>.md: one device and several, batch by batch, with a
 * recommendation for each, where several begin to pay, and what was published for a model of that
 * name.
 *
 * A study may sweep over other keys (allreduce=ring,hierarchical): each such set has its own
 * conclusion and its own law.
 */
#include "report/report_internal.h"

#include "analysis/analysis_published.h"
#include "analysis/analysis_study.h"
#include "analysis/training/analysis_training.h"
#include "analysis/training/analysis_training_words.h"

#include <math.h>
#include <string.h>

struct compared { /* a row of the table of speed-ups */
    int row;
    const struct lab_study_run *run; /* on several devices */
    const char *label;               /* lab_training_label's: which set it is of */
};

struct comparison {
    const struct lab_study_table *study;
    const struct lab_doc_table *table;
    const char *model;
    double parameters;
    struct compared *rows;
    int count;
    const char **labels; /* of the sets, in the order of their first rows */
    int label_count;
    struct lab_arena *arena;
};

/* --- rows --- */

static const struct lab_doc_table *find_speedups(const struct report_found *found) {
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

static const struct lab_doc_cell *cell_of(const struct lab_doc_table *table, int row,
                                          const char *key) {
    static const struct lab_doc_cell none = {.value = NAN, .low = NAN, .high = NAN};
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].key && lab_str_equal(table->columns[c].key, key))
            return &table->cells[row * table->column_count + c];
    return &none;
}

static const struct lab_study_run *find_run(const struct lab_study_point *points, int count,
                                            const char *work, double devices,
                                            struct lab_arena *arena) {
    for (int i = 0; i < count; i++)
        if (points[i].runs[0]->rank_count == (int)devices &&
            lab_str_equal(lab_study_point_model(&points[i], arena), work))
            return points[i].runs[0];
    return NULL;
}

static void add_label(struct comparison *comparison, const char *label) {
    for (int i = 0; i < comparison->label_count; i++)
        if (lab_str_equal(comparison->labels[i], label))
            return;
    comparison->labels[comparison->label_count++] = label;
}

/* Those of the model, in the table's order. */
static void find_rows(struct comparison *comparison) {
    const struct lab_doc_table *table = comparison->table;
    struct lab_arena *arena = comparison->arena;
    struct lab_study_point *points;
    int count = lab_study_points(comparison->study, arena, &points);
    size_t room = (size_t)table->row_count + 1;
    comparison->rows = lab_arena_alloc(arena, room, sizeof *comparison->rows);
    comparison->labels = lab_arena_alloc(arena, room, sizeof *comparison->labels);
    for (int row = 0; row < table->row_count; row++) {
        const char *work = cell_of(table, row, "work")->text;
        const struct lab_study_run *run =
            work ? find_run(points, count, work, cell_of(table, row, "devices")->value, arena)
                 : NULL;
        if (!run || !(cell_of(table, row, "speedup")->value > 0) ||
            !lab_str_equal(lab_study_trained_model(run, arena), comparison->model))
            continue;
        const char *label = lab_training_label(comparison->study, run, arena);
        comparison->rows[comparison->count++] = (struct compared){row, run, label};
        add_label(comparison, label);
    }
}

static bool is_weak(const struct lab_study_run *run) {
    return lab_str_equal(lab_study_text(run, "options.scaling"), "weak");
}

static double batch_of(const struct lab_study_run *run) {
    return lab_study_number(run, "options.batch_size");
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

static void add_row(struct lab_str *text, const struct comparison *comparison,
                    const struct compared *compared) {
    const struct lab_doc_table *table = comparison->table;
    int row = compared->row;
    const struct lab_doc_cell *speedup = cell_of(table, row, "speedup");
    lab_str_printf(text, "| %.0f%s |", batch_of(compared->run),
                   is_weak(compared->run) ? " a device" : "");
    if (comparison->label_count > 1)
        lab_str_printf(text, " %s |", compared->label);
    lab_str_printf(text, " %.0f | %.0f | %.0f | %.2fx", cell_of(table, row, "devices")->value,
                   cell_of(table, row, "one_per_s")->value,
                   cell_of(table, row, "many_per_s")->value, speedup->value);
    if (!isnan(speedup->low))
        lab_str_printf(text, " [%.2f, %.2f]", speedup->low, speedup->high);
    lab_str_add(text, " |");
    add_share(text, cell_of(table, row, "efficiency")->value);
    add_share(text, cell_of(table, row, "communication")->value);
    lab_str_printf(text, " %s |\n", recommendation(cell_of(table, row, "grade")->text));
}

/* Whether simulated devices summed: that needs a word. */
static bool has_sums(const struct comparison *comparison) {
    for (int i = 0; i < comparison->count; i++)
        if (comparison->study->simulated && !lab_training_is_apart(comparison->rows[i].run))
            return true;
    return false;
}

/* What simulated devices say of a shared batch, once: it decides whether several can pay off. */
static void add_share_note(struct lab_str *text, const struct comparison *comparison) {
    for (int i = 0; i < comparison->count; i++) {
        const struct lab_result *result = comparison->rows[i].run->result;
        for (int w = 0; w < result->warnings.count; w++) {
            static const char start[] = "simulated framework: "; /* behind the rank */
            const char *note = strstr(result->warnings.items[w].text, start);
            if (!note)
                continue;
            lab_str_printf(text, "On this simulated machine %s.\n\n", note + strlen(start));
            return;
        }
    }
}

static void add_summary(struct lab_str *text, const struct comparison *comparison) {
    bool sets = comparison->label_count > 1;
    lab_str_printf(text,
                   "# %s: one device and several%s\n\n%.0f parameters. Throughput in samples a "
                   "second, speed-ups with 95 %% intervals, communication as a share of a "
                   "step.%s\n\n",
                   comparison->model, comparison->study->simulated ? " (simulated)" : "",
                   comparison->parameters,
                   has_sums(comparison) ? " " LAB_TRAINING_SIMULATED_SUMS : "");
    add_share_note(text, comparison);
    lab_str_printf(
        text,
        "## Summary\n\n| Batch Size |%s Devices | Single | Multi | Speedup | Efficiency | "
        "Communication | Recommendation |\n|---:|%s---:|---:|---:|---:|---:|---:|---|\n",
        sets ? " With |" : "", sets ? "---|" : "");
    for (int i = 0; i < comparison->count; i++)
        add_row(text, comparison, &comparison->rows[i]);
}

/* --- published --- */

/* The speed-up of two devices here at that batch, training one model; NaN = none. */
static double here(const struct comparison *comparison, int batch, const char *label) {
    for (int i = 0; i < comparison->count; i++) {
        const struct compared *row = &comparison->rows[i];
        if (row->run->rank_count == 2 && batch_of(row->run) == batch && !is_weak(row->run) &&
            lab_str_equal(row->label, label) && !lab_training_is_apart(row->run))
            return cell_of(comparison->table, row->row, "speedup")->value;
    }
    return NAN;
}

static void add_published(struct lab_str *text, const struct comparison *comparison) {
    const char *model = comparison->model;
    struct lab_arena *arena = comparison->arena;
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
        "| Batch Size | One | Two | Speedup |",
        claimed, comparison->parameters, least_ms, most_ms);
    for (int i = 0; i < comparison->label_count; i++)
        lab_str_printf(text, " Here%s%s |", comparison->label_count > 1 ? ", " : "",
                       comparison->label_count > 1 ? comparison->labels[i] : "");
    lab_str_add(text, "\n|---:|---:|---:|---:|");
    for (int i = 0; i < comparison->label_count; i++)
        lab_str_add(text, "---:|");
    lab_str_add(text, "\n");
    for (const struct lab_published *row = lab_published; row->model; row++) {
        if (!lab_str_equal(row->model, model))
            continue;
        lab_str_printf(text, "| %d | %.0f | %.0f | %.2fx |", row->batch, row->one, row->two,
                       row->two / row->one);
        for (int i = 0; i < comparison->label_count; i++) {
            double ours = here(comparison, row->batch, comparison->labels[i]);
            lab_str_add(text, isnan(ours) ? " – |" : lab_arena_printf(arena, " %.2fx |", ours));
        }
        lab_str_add(text, "\n");
    }
}

/* --- findings --- */

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

/* Behind the words of a set, where there are several: " (allreduce=ring)". */
static const char *of_set(const struct comparison *comparison, const char *label) {
    return comparison->label_count > 1 ? lab_arena_printf(comparison->arena, " (%s)", label) : "";
}

static void add_findings(struct lab_str *text, const struct comparison *comparison,
                         const char *label) {
    struct findings found = {0};
    for (int i = 0; i < comparison->count; i++) {
        const struct compared *row = &comparison->rows[i];
        if (!lab_str_equal(row->label, label))
            continue;
        found.weak += is_weak(row->run);
        count_finding(&found, cell_of(comparison->table, row->row, "speedup")->value,
                      cell_of(comparison->table, row->row, "grade")->text);
    }
    const char *weak = found.weak > 0 && found.apart < found.count
                           ? "; with scaling=weak that is another training, since the batch grows "
                             "with the devices"
                           : "";
    lab_str_printf(text,
                   "\n**Conclusion**%s: %s%s\n\n**Average %s**%s: %.2fx (geometric mean of %d)\n",
                   of_set(comparison, label), conclude(&found, comparison->arena), weak,
                   found.apart == found.count ? "Throughput of All Devices" : "Speedup",
                   of_set(comparison, label), exp(found.log_sum / found.count), found.count);
}

/* What the law of this set's steps says of the model: where so many devices begin to pay. */
static void add_law(struct lab_str *text, const struct comparison *comparison,
                    struct lab_training_set *set) {
    struct lab_training training;
    const struct lab_training_row *last = NULL;
    lab_training_fit(set->rows, set->count, &training);
    for (int i = 0; i < training.row_count; i++) {
        const struct lab_training_row *row = &training.rows[i];
        if (row->work.devices > 1 && lab_str_equal(row->model, comparison->model) &&
            (!last || row->work.batch > last->work.batch))
            last = row;
    }
    if (!last)
        return;
    lab_str_printf(text, "\n**Break-even**%s: %s", of_set(comparison, set->what),
                   lab_training_break_evens_words(&training, &last->work, comparison->arena));
    if (training.law_count > 0)
        lab_str_printf(text, ". Points left out of the law's fit were predicted %.1f %% wrong",
                       100 * training.laws[0].error);
    lab_str_add(text, ".\n");
}

static void add_laws(struct lab_str *text, const struct comparison *comparison, const char *label) {
    struct lab_training_set *sets;
    int count = lab_training_sets(comparison->study, comparison->arena, &sets);
    for (int i = 0; i < count; i++)
        if (lab_str_equal(sets[i].what, label))
            add_law(text, comparison, &sets[i]);
}

/* --- the whole --- */

void report_training_comparison(struct report_found *found, const struct lab_study_table *study,
                                const char *model, double parameters) {
    struct comparison comparison = {.study = study,
                                    .table = find_speedups(found),
                                    .model = model,
                                    .parameters = parameters,
                                    .arena = found->arena};
    struct lab_str text;
    if (!comparison.table)
        return;
    find_rows(&comparison);
    if (comparison.count == 0)
        return;
    lab_str_init(&text);
    add_summary(&text, &comparison);
    lab_str_add(&text, "\n## Key Findings\n");
    for (int i = 0; i < comparison.label_count; i++) {
        add_findings(&text, &comparison, comparison.labels[i]);
        add_laws(&text, &comparison, comparison.labels[i]);
    }
    add_published(&text, &comparison);
    report_add_file(found, lab_arena_printf(found->arena, "comparison_report_%s.md", model), &text);
    lab_str_release(&text);
}
