/* lost.c: settings without a value: those that diverged, and those whose runs failed. */
#include "analysis/metrics/metrics.h"

#include "base/str.h"

#include <math.h>

#define NAMED_MOST 3 /* settings of a list */

int metrics_lost(const struct metrics_setting *setting, const struct metrics_metric *metric) {
    int lost = 0;
    for (int r = 0; r < setting->point.count; r++) {
        const struct lab_study_run *run = setting->point.runs[r];
        bool found = false;
        for (int i = 0; i < run->metric_count && !found; i++)
            found = lab_str_equal(run->metrics[i].name, metric->name) &&
                    !isfinite(run->metrics[i].value);
        lost += found;
    }
    return lost;
}

/* --- "sgd (3 of 3 runs), lion (1 of 3 runs) and 2 more" --- */

struct list {
    const char *text; /* NULL = empty */
    int count;
};

static void add(struct list *list, const char *name, int runs, int of, struct lab_arena *arena) {
    if (runs > 0 && list->count++ < NAMED_MOST)
        list->text =
            lab_arena_printf(arena, "%s%s%s (%d of %d run%s)", list->text ? list->text : "",
                             list->text ? ", " : "", name, runs, of, of == 1 ? "" : "s");
}

static const char *sentence(const struct list *list, const char *before, struct lab_arena *arena) {
    if (!list->text)
        return "";
    return list->count > NAMED_MOST ? lab_arena_printf(arena, " %s: %s and %d more.", before,
                                                       list->text, list->count - NAMED_MOST)
                                    : lab_arena_printf(arena, " %s: %s.", before, list->text);
}

const char *metrics_lost_words(const struct metrics_metric *metric,
                               const struct metrics_settings *settings, struct lab_arena *arena) {
    struct list diverged = {0}, failed = {0};
    for (int i = 0; i < settings->count && metric->count > 0; i++)
        add(&diverged, settings->items[i].name, metrics_lost(&settings->items[i], metric),
            settings->items[i].point.count, arena);
    for (int i = 0; i < settings->failed_count; i++)
        add(&failed, settings->failed[i].name, settings->failed[i].runs, settings->failed[i].of,
            arena);
    const char *what = lab_arena_printf(arena, "Diverged (%s NaN or infinite)", metric->name);
    return lab_arena_printf(arena, "%s%s", sentence(&diverged, what, arena),
                            sentence(&failed, "Failed", arena));
}

const char *metrics_diverged_words(const struct metrics_metric *metric, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%s: NaN or infinite in %d of %d runs. %s diverged.",
                            metric->name, metric->lost, metric->reported,
                            metric->reported_by == 1   ? "The setting"
                            : metric->reported_by == 2 ? "Both settings"
                                                       : "All settings");
}
