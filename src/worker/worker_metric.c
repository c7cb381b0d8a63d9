/*
 * worker_metric.c: metrics on their way to the runner, at a pace that it keeps up with. A program
 * may print thousands of them a second, or for ever. It waits for its own output then, as it would
 * for a slow terminal; how long stands in the result, since it costs the program time.
 */
#include "worker/worker_internal.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

#define WINDOW_NS   (100 * LAB_NS_PER_MS)
#define WINDOW_MOST 1000    /* frames of all ranks: half of what the runner takes for a flood */
#define RANK_MOST   1000000 /* kept of a rank: about 40 MB on the disk */

#define HELD_SHARE 0.01 /* of its time: from there on it is said */
#define HELD_NS    (50 * LAB_NS_PER_MS)

/* Takes a place in this window, or waits for the next. */
static void take_place(struct worker *worker) {
    const struct lab_clock *clock = lab_clock_system();
    LAB_AUTO_LOCK(&worker->metric_mutex);
    int64_t now_ns = lab_clock_now(clock), end_ns = worker->metric_window_ns + WINDOW_NS;
    if (now_ns < end_ns && worker->metric_count >= WINDOW_MOST) {
        if (!atomic_load(&worker->stopping))
            clock->sleep_until(clock, end_ns);
        now_ns = lab_clock_now(clock);
    }
    if (now_ns >= end_ns) {
        worker->metric_window_ns = now_ns;
        worker->metric_count = 0;
    }
    worker->metric_count++;
}

/* Some also stand in the result, as means over what was measured. */
static void keep(struct rank *rank, const struct worker_series *series, double value) {
    if (series->told_row < 0 || !rank->go)
        return;
    rank->told[series->told_row].total += value;
    rank->told[series->told_row].count++;
}

/* A built-in workload waits until its metrics are passed on; a program only for its pipe. */
static void note_held(struct rank *rank, int64_t start_ns) {
    if (atomic_load(&rank->worker->external))
        return;
    int64_t now_ns = lab_clock_now(lab_clock_system());
    rank->told_ns = rank->told_ns ? rank->told_ns : start_ns;
    rank->held_ns += now_ns - start_ns;
    rank->whole_ns = now_ns - rank->told_ns;
}

/* Of more values than are kept: the lowest, the highest and the last of each name. */
static void keep_beyond(struct worker_series *series, const struct lab_reported_metric *metric) {
    struct lab_reported_metric named = *metric;
    named.name = series->name;
    named.unit = series->unit;
    if (!series->beyond || named.value < series->low.value || isnan(series->low.value))
        series->low = named;
    if (!series->beyond || named.value > series->high.value || isnan(series->high.value))
        series->high = named;
    series->last = named;
    series->beyond = true;
}

static void send_metrics(struct rank *rank, const struct lab_reported_metric *items, size_t count) {
    take_place(rank->worker);
    worker_send(rank->worker, &(struct lab_frame){.type = LAB_FRAME_METRICS,
                                                  .rank = rank->job->index,
                                                  .metrics = {items, count}});
}

void worker_tell_last_metrics(struct rank *rank) {
    for (int i = 0; i < rank->series_count; i++) {
        struct worker_series *item = &rank->series[i];
        if (!item->beyond)
            continue;
        if (item->low.value < item->last.value)
            send_metrics(rank, &item->low, 1);
        if (item->high.value > item->last.value)
            send_metrics(rank, &item->high, 1);
        send_metrics(rank, &item->last, 1);
        item->beyond = false;
    }
}

void worker_tell_metrics(struct rank *rank, const struct lab_reported_metric *items, size_t count) {
    int64_t room = RANK_MOST - rank->metric_count, start_ns = lab_clock_now(lab_clock_system());
    size_t left = room < 0 ? 0 : (int64_t)count < room ? count : (size_t)room;
    for (size_t i = 0; i < count; i++) {
        struct worker_series *series = worker_find_series(rank, &items[i]);
        if (!series)
            continue;
        keep(rank, series, items[i].value);
        worker_follow_program(rank, &items[i], series);
        if (i >= left)
            keep_beyond(series, &items[i]);
    }
    rank->metric_count += (int64_t)count;
    for (size_t sent; left > 0; items += sent, left -= sent) {
        sent = left < LAB_FRAME_MAX_METRICS ? left : LAB_FRAME_MAX_METRICS;
        send_metrics(rank, items, sent);
    }
    note_held(rank, start_ns);
}

void worker_add_metric_warnings(const struct rank *rank, struct lab_arena *arena,
                                struct lab_result *result) {
    double held_s = 1e-9 * (double)rank->held_ns, whole_s = 1e-9 * (double)rank->whole_ns;
    if (rank->held_ns > HELD_NS && held_s > HELD_SHARE * whole_s)
        lab_result_warn(
            result, arena,
            lab_arena_printf(arena,
                             "its output and %lld values kept it waiting for %.2g s of %.2g s "
                             "at most (wall time); print fewer",
                             (long long)rank->metric_count, held_s, whole_s));
    if (rank->metric_count > RANK_MOST)
        lab_result_warn(
            result, arena,
            lab_arena_printf(arena,
                             "it printed %lld values; the first %d are kept, and of the "
                             "others the lowest, highest and last of each name; print "
                             "fewer",
                             (long long)rank->metric_count, RANK_MOST));
}
