/* results_metrics.c: what programs reported, as results.json shows it: last and best of each. */
#include "store/study/results_internal.h"

#include "model/metric_name.h"

#include <math.h>

struct lab_results_metrics {
    struct lab_arena arena;
    struct lab_value **lists; /* by the run's number; of runs that are done, which report no more */
    size_t count;
};

struct lab_results_metrics *lab_results_metrics_open(void) {
    struct lab_results_metrics *metrics = lab_mem_alloc(1, sizeof *metrics);
    lab_arena_init(&metrics->arena);
    return metrics;
}

void lab_results_metrics_close(struct lab_results_metrics *metrics) {
    if (!metrics)
        return;
    lab_arena_release(&metrics->arena);
    lab_mem_free(metrics->lists);
    lab_mem_free(metrics);
}

static struct lab_value *describe(const struct lab_metric_curve *metric,
                                  const struct lab_value *settings, struct lab_arena *arena) {
    const struct lab_curve *curve = &metric->curve;
    enum lab_direction better = lab_metric_direction(metric->name, settings);
    bool high = better == LAB_DIRECTION_HIGHER, none = better == LAB_DIRECTION_NONE;
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", metric->name);
    lab_value_set_string(arena, map, "unit", metric->unit);
    lab_value_set(arena, map, "rank",
                  metric->rank < 0 ? lab_value_null(arena) : lab_value_int(arena, metric->rank));
    if (isfinite(curve->last))
        lab_value_set_float(arena, map, "last", curve->last);
    else /* JSON has no word for it, and null is unknown */
        lab_value_set_string(arena, map, "last",
                             isnan(curve->last) ? "nan"
                             : curve->last > 0  ? "inf"
                                                : "-inf");
    lab_value_set_float(arena, map, "last_step", curve->last_step);
    lab_value_set_float(arena, map, "best", none ? NAN : high ? curve->most : curve->least);
    lab_value_set_float(arena, map, "best_step",
                        none   ? NAN
                        : high ? curve->step_most
                               : curve->step_least);
    lab_value_set_float(arena, map, "min", curve->least);
    lab_value_set_float(arena, map, "max", curve->most);
    lab_value_set_float(arena, map, "mean",
                        curve->finite ? curve->sum / (double)curve->finite : NAN);
    lab_value_set_int(arena, map, "values", curve->values);
    return map;
}

static struct lab_value *read_run(struct lab_store *store, const struct lab_run *run,
                                  struct lab_arena *arena) {
    LAB_AUTO(arena, scratch);
    struct lab_metric_curves curves = {.arena = &scratch};
    struct lab_value *list = lab_value_list(arena);
    if (lab_store_read_curves(store, run->number, run->start_ns, &curves, NULL) < 0)
        return list;
    struct lab_results_asked asked = {0};
    if (curves.count > 0)
        lab_results_asked(run, &scratch, &asked);
    for (int i = 0; i < curves.count; i++)
        lab_value_append(
            arena, list,
            describe(&curves.items[i], lab_value_get(asked.options, "metrics"), arena));
    return list;
}

const struct lab_value *results_metrics(struct lab_results_metrics *metrics,
                                        struct lab_store *store, const struct lab_run *run,
                                        struct lab_arena *arena) {
    size_t number = (size_t)run->number;
    if (run->state != LAB_RUN_DONE)
        return read_run(store, run, arena);
    if (number >= metrics->count) {
        metrics->lists = lab_mem_resize(metrics->lists, 2 * number + 1, sizeof *metrics->lists);
        while (metrics->count < 2 * number + 1)
            metrics->lists[metrics->count++] = NULL;
    }
    if (!metrics->lists[number])
        metrics->lists[number] = read_run(store, run, &metrics->arena);
    return metrics->lists[number];
}
