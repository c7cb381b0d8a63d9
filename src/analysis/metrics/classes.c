/*
 * classes.c: settings of a workload of gpulab's whose samples take different work: a smaller
 * model's higher throughput is no reason to choose it. Settings are compared within a model.
 */
#include "analysis/analysis_group.h"
#include "analysis/metrics/metrics.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define ANSWERS_MOST 2
#define WORKS_ALIKE  1.5 /* times: an update's share of a sample depends on the batch */

static const struct lab_study_run *first_run(const struct metrics_value *value) {
    return value->setting->point.runs[0];
}

/* NaN = unknown, which is work like any other that is. */
static bool is_of_class(const struct metrics_value *value, double work) {
    double own = lab_study_complexity(first_run(value));
    return (own <= work * WORKS_ALIKE && work <= own * WORKS_ALIKE) || (isnan(own) && isnan(work));
}

static int find_works(const struct metrics_metric *metric, struct lab_arena *arena,
                      double **ret_works) {
    double *works = NULL;
    int count = 0;
    for (int v = 0; v < metric->count; v++) {
        bool known = false;
        for (int w = 0; w < count; w++)
            known |= is_of_class(&metric->values[v], works[w]);
        if (!known)
            LAB_ADD(works, count, arena) = lab_study_complexity(first_run(&metric->values[v]));
    }
    *ret_works = works;
    return count;
}

static struct metrics_metric make_class(const struct metrics_metric *metric, double work,
                                        struct lab_arena *arena) {
    struct metrics_metric made = *metric;
    made.values = NULL;
    made.classes = NULL;
    made.by_key = false;
    made.count = made.class_count = 0;
    for (int v = 0; v < metric->count; v++)
        if (is_of_class(&metric->values[v], work))
            LAB_ADD(made.values, made.count, arena) = metric->values[v];
    made.drawn = made.compared = made.count;
    metrics_compare(&made, arena);
    return made;
}

bool metrics_compare_classes(struct metrics_metric *metric, struct lab_arena *arena) {
    double *works;
    int count = metric->own ? find_works(metric, arena, &works) : 0, kept = 0;
    if (count < 2)
        return false;
    for (int w = 0; w < count; w++)
        LAB_ADD(metric->classes, metric->class_count, arena) = make_class(metric, works[w], arena);
    metric->lead = lab_claim_none;
    for (int c = 0; c < count; c++)
        for (int v = 0; v < metric->classes[c].count; v++)
            metric->values[kept++] = metric->classes[c].values[v];
    return true;
}

const char *metrics_class_answer(const struct metrics_metric *metric,
                                 const struct metrics_settings *settings, struct lab_arena *arena) {
    int compared = 0;
    LAB_AUTO(str, text);
    for (int c = 0; c < metric->class_count; c++) {
        if (metric->classes[c].compared < 2)
            continue;
        if (compared++ < ANSWERS_MOST)
            lab_str_printf(&text, "%s%s", text.length ? " " : "",
                           metrics_answer(&metric->classes[c], settings, true, arena));
    }
    if (compared > ANSWERS_MOST)
        lab_str_printf(&text, " Models compared in the table: %d more.", compared - ANSWERS_MOST);
    if (compared == 0)
        lab_str_printf(&text, "%s: each setting is another model, so none is best.",
                       metrics_named(metric, arena));
    return lab_arena_strdup(arena, text.text);
}

/* The largest batch size, where that is the best one's and others are smaller; 0 = it isn't. */
static double largest_batch(const struct metrics_metric *class) {
    double best = lab_study_setting_number(first_run(&class->values[0]), "batch_size");
    bool smaller = false;
    for (int v = 1; v < class->count; v++) {
        double other = lab_study_setting_number(first_run(&class->values[v]), "batch_size");
        if (other > best)
            return 0;
        smaller |= other < best;
    }
    return smaller ? best : 0;
}

const char *metrics_class_action(const struct metrics_metric *metric, struct lab_arena *arena) {
    double largest = NAN;
    int count = 0;
    LAB_AUTO(str, text);
    for (int c = 0; c < metric->class_count; c++) {
        const struct metrics_metric *class = &metric->classes[c];
        if (!class->best)
            continue;
        double own = largest_batch(class);
        largest = count++ == 0 || own == largest ? own : 0;
        lab_str_printf(&text, "%s%s", count > 1 ? "; " : "By model, use: ", class->best);
    }
    if (largest > 0)
        lab_str_printf(&text, ". Larger batches than %g: not tested", largest);
    return count ? lab_arena_strdup(arena, text.text) : NULL;
}
