/*
 * classes.c: settings of a workload of gpulab's whose samples take different work: a smaller
 * model's higher throughput is no reason to choose it. Settings are compared within a model.
 */
#include "analysis/analysis_group.h"
#include "analysis/metrics/metrics.h"
#include "analysis/stages/stages.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define ANSWERS_MOST 2
#define WORKS_ALIKE  1.5 /* times: an update's share of a sample depends on the batch */

static const struct lab_study_run *first_run(const struct metrics_value *value) {
    return value->setting->point.runs[0];
}

/* Of one model, by its keys and by its work, which keys of other workloads change, too. Unknown
 * work is like any other that is. */
static bool is_alike(const struct metrics_value *a, const struct metrics_value *b) {
    const struct lab_study_run *one = first_run(a), *other = first_run(b);
    double work = lab_study_complexity(one), against = lab_study_complexity(other);
    bool alike = work <= against * WORKS_ALIKE && against <= work * WORKS_ALIKE;
    for (int k = 0; lab_stage_model_keys[k]; k++) {
        const struct lab_value *of_one = lab_study_setting(one, lab_stage_model_keys[k]),
                               *of_other = lab_study_setting(other, lab_stage_model_keys[k]);
        if (of_one && of_other ? !lab_value_equal(of_one, of_other) : of_one != of_other)
            return false;
    }
    return alike || (isnan(work) && isnan(against));
}

/* The first value of each class. */
static int find_firsts(const struct metrics_metric *metric, struct lab_arena *arena,
                       const struct metrics_value **ret_firsts) {
    struct metrics_value *firsts = NULL;
    int count = 0;
    for (int v = 0; v < metric->count; v++) {
        bool known = false;
        for (int c = 0; c < count; c++)
            known |= is_alike(&metric->values[v], &firsts[c]);
        if (!known)
            LAB_ADD(firsts, count, arena) = metric->values[v];
    }
    *ret_firsts = firsts;
    return count;
}

static struct metrics_metric make_class(const struct metrics_metric *metric,
                                        const struct metrics_value *first,
                                        struct lab_arena *arena) {
    struct metrics_metric made = *metric;
    made.values = NULL;
    made.classes = NULL;
    made.by_key = false;
    made.count = made.class_count = 0;
    for (int v = 0; v < metric->count; v++)
        if (is_alike(&metric->values[v], first))
            LAB_ADD(made.values, made.count, arena) = metric->values[v];
    made.drawn = made.compared = made.count;
    metrics_compare(&made, arena);
    return made;
}

bool metrics_compare_classes(struct metrics_metric *metric, struct lab_arena *arena) {
    const struct metrics_value *firsts;
    int count = metric->own ? find_firsts(metric, arena, &firsts) : 0, kept = 0;
    if (count < 2)
        return false;
    for (int c = 0; c < count; c++)
        LAB_ADD(metric->classes, metric->class_count, arena) =
            make_class(metric, &firsts[c], arena);
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
