/*
 * worker_series.c: which values belong together: those of one name and rank. What a name means is
 * worked out once then, however many values it has. They come in the same order mostly: the next is
 * looked for behind the one before.
 */
#include "worker/worker_internal.h"

#include "base/hash.h"
#include "model/metric_name.h"

#include <string.h>

static bool is_of(const struct worker_series *series, const struct lab_reported_metric *metric) {
    return series->rank == metric->rank && strcmp(series->name, metric->name) == 0;
}

static int find_told_row(const char *name) {
    for (int i = 0; i < LAB_RESULT_ROW_COUNT; i++)
        if ((lab_result_rows[i].shown & LAB_RESULT_TOLD) == LAB_RESULT_TOLD &&
            strcmp(lab_result_rows[i].key, name) == 0)
            return i;
    return -1;
}

/* Its index; -1 = it is new and there are too many. */
static int find(struct rank *rank, const struct lab_reported_metric *metric) {
    int count = rank->series_count,
        next = rank->series_last + 1 < count ? rank->series_last + 1 : 0;
    if (next < count && is_of(&rank->series[next], metric))
        return next;
    uint64_t hash = lab_hash_bytes(lab_hash_text(LAB_HASH_START, metric->name), &metric->rank,
                                   sizeof metric->rank);
    int *slot = &rank->series_slots[(hash ^ hash >> 32) % WORKER_SERIES_SLOTS];
    for (int i = *slot - 1; i >= 0; i = rank->series[i].next - 1)
        if (is_of(&rank->series[i], metric))
            return i;
    if (count == WORKER_SERIES_MOST)
        return -1;
    LAB_ADD(rank->series, rank->series_count, &rank->arena) =
        (struct worker_series){.name = lab_arena_strdup(&rank->arena, metric->name),
                               .rank = metric->rank,
                               .next = *slot,
                               .told_row = find_told_row(metric->name),
                               .program = worker_find_program(rank, metric->rank)};
    return (*slot = rank->series_count) - 1;
}

struct worker_series *worker_find_series(struct rank *rank,
                                         const struct lab_reported_metric *metric) {
    int found = find(rank, metric);
    if (found < 0)
        return NULL;
    rank->series_last = found;
    struct worker_series *series = &rank->series[found];
    if (!lab_str_equal(series->unit, metric->unit)) {
        series->unit = lab_arena_strdup(&rank->arena, metric->unit);
        series->rate_unit = lab_metric_rate_unit(metric->name, metric->unit);
    }
    return series;
}
