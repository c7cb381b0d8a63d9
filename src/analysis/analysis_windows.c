/*
 * analysis_windows.c: a resource and the iterations beside it, window by window.
 *
 * A reading tells of the time since the one before it, so windows lie between readings of the
 * resource itself; clocks of different probes need not agree. Sums from the first iteration on make
 * a window's mean and spread a matter of two searches, whatever the number of iterations.
 * Iterations with which a pipeline began afresh are none of the pace.
 */
#include "analysis/analysis_resource.h"

#include <math.h>
#include <string.h>

#define SECOND_NS    1000000000LL
#define SLOW_NS      900000000LL /* readings farther apart than this have windows of their own */
#define REFRESH_NS   500000000LL /* a value that changes no oftener than this is slow */
#define GAP_READINGS 3   /* a stretch without readings that is longer belongs to no window */
#define SPREAD_LEAST 4   /* iterations that have a spread */
#define EARLY_SHARE  0.1 /* of a window's length that it may end too early */

/* --- the pace of iterations --- */

static int64_t took_ns(const struct lab_span *span) {
    return span->end_ns - span->start_ns;
}

static void make_sums(struct lab_rank_time *rank_time, struct lab_arena *arena) {
    const struct lab_study_rank *rank = rank_time->rank;
    const struct lab_span *spans = lab_study_spans(rank, arena, &rank_time->count);
    size_t count = rank_time->count;
    rank_time->spans = spans;
    rank_time->from_ns = rank->iterations[0].end_ns;
    rank_time->until_ns = rank->iterations[rank->iteration_count - 1].end_ns;
    int64_t total_ns = 0;
    for (size_t i = 0; i < count; i++)
        total_ns += took_ns(&spans[i]);
    rank_time->mean_s = 1e-9 * (double)total_ns / (double)count;
    rank_time->sums = lab_arena_alloc(arena, count + 1, sizeof *rank_time->sums);
    rank_time->squares = lab_arena_alloc(arena, count + 1, sizeof *rank_time->squares);
    rank_time->middles_ns = lab_arena_alloc(arena, count, sizeof *rank_time->middles_ns);
    for (size_t i = 0; i < count; i++) {
        double off = 1e-9 * (double)took_ns(&spans[i]) - rank_time->mean_s;
        rank_time->sums[i + 1] = rank_time->sums[i] + off;
        rank_time->squares[i + 1] = rank_time->squares[i] + off * off;
        rank_time->middles_ns[i] = spans[i].start_ns + took_ns(&spans[i]) / 2;
    }
}

static bool same_point(const struct lab_study_run *a, const struct lab_study_run *b) {
    return strcmp(a->point, b->point) == 0 && strcmp(a->phase, b->phase) == 0;
}

static void set_points(struct lab_rank_times *rank_times) {
    for (int i = 0; i < rank_times->count; i++) {
        struct lab_rank_time *rank_time = &rank_times->items[i];
        rank_time->point = -1;
        for (int k = 0; k < i && rank_time->point < 0; k++)
            if (same_point(rank_time->run, rank_times->items[k].run))
                rank_time->point = rank_times->items[k].point;
        if (rank_time->point < 0)
            rank_time->point = rank_times->point_count++;
    }
    for (int i = 0; i < rank_times->count; i++) {
        double total_s = 0, count = 0;
        for (int k = 0; k < rank_times->count; k++) {
            if (rank_times->items[k].point != rank_times->items[i].point)
                continue;
            total_s += rank_times->items[k].mean_s * (double)rank_times->items[k].count;
            count += (double)rank_times->items[k].count;
        }
        rank_times->items[i].point_s = total_s / count;
    }
}

void lab_rank_times_make(const struct lab_study_run *const *runs, int run_count, int gpu_id,
                         struct lab_arena *arena, struct lab_rank_times *ret_rank_times) {
    int ranks = 0;
    for (int i = 0; i < run_count; i++)
        ranks += runs[i]->rank_count;
    *ret_rank_times = (struct lab_rank_times){
        .items = lab_arena_alloc(arena, (size_t)ranks + 1, sizeof *ret_rank_times->items),
        .gpu_id = gpu_id,
        .gpu = -1,
        .device = ""};
    for (int i = 0; i < run_count; i++) {
        for (int r = 0; r < runs[i]->rank_count; r++) {
            const struct lab_study_rank *rank = &runs[i]->ranks[r];
            if (rank->gpu_id != gpu_id)
                continue;
            ret_rank_times->gpu = lab_resource_gpu(rank);
            ret_rank_times->device = lab_study_device_title(rank->device, arena);
            bool iterations = rank->iterations && rank->iteration_count > 1;
            ret_rank_times->without_iterations += !iterations;
            ret_rank_times->without_samples += iterations && !runs[i]->recording;
            if (!iterations || !runs[i]->recording)
                continue;
            struct lab_rank_time *rank_time = &ret_rank_times->items[ret_rank_times->count];
            *rank_time = (struct lab_rank_time){.run = runs[i], .rank = rank};
            make_sums(rank_time, arena);
            ret_rank_times->count += rank_time->mean_s > 0;
        }
    }
    set_points(ret_rank_times);
}

/* --- the iterations of a window --- */

/* The first time from `first` on whose middle lies behind `time_ns`; `count` if none does. In
 * growing steps, since the next window is near. */
static size_t find_behind(const struct lab_rank_time *rank_time, size_t first, int64_t time_ns) {
    size_t low = first, step = 1;
    while (low + step < rank_time->count && rank_time->middles_ns[low + step] <= time_ns) {
        low += step;
        step *= 2;
    }
    size_t high = low + step < rank_time->count ? low + step : rank_time->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rank_time->middles_ns[middle] > time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void grow(struct lab_windows *windows) {
    size_t room = windows->capacity ? 2 * windows->capacity : 1024;
    windows->capacity = room;
    windows->x = lab_mem_resize(windows->x, room, sizeof *windows->x);
    windows->time = lab_mem_resize(windows->time, room, sizeof *windows->time);
    windows->spread = lab_mem_resize(windows->spread, room, sizeof *windows->spread);
    windows->rank_time = lab_mem_resize(windows->rank_time, room, sizeof *windows->rank_time);
}

static void add_window(struct lab_windows *windows, const struct lab_rank_times *rank_times,
                       int number, size_t first, size_t behind, double x) {
    const struct lab_rank_time *rank_time = &rank_times->items[number];
    if (behind <= first || isnan(x))
        return;
    if (windows->count == windows->capacity)
        grow(windows);
    double n = (double)(behind - first), sum = rank_time->sums[behind] - rank_time->sums[first],
           squares = rank_time->squares[behind] - rank_time->squares[first];
    double variance = n < SPREAD_LEAST ? (double)NAN : fmax(0, squares - sum * sum / n) / (n - 1);
    size_t at = windows->count++;
    windows->x[at] = x;
    windows->time[at] = (rank_time->mean_s + sum / n) / rank_time->point_s;
    windows->spread[at] = sqrt(variance) / rank_time->point_s;
    windows->rank_time[at] = number;
}

/* --- readings --- */

struct column { /* of one recording */
    const struct lab_track *track;
    const int64_t *values;
    const uint8_t *valid;
    size_t first, behind; /* ticks that matter */
    const struct lab_metric *metric;
    uint64_t bit;
};

static size_t find_tick(const struct lab_track *track, int64_t time_ns) {
    size_t low = 0, high = track->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (track->times_ns[middle] >= time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool find_column(const struct lab_rank_time *rank_time, const struct lab_resource *resource,
                        struct column *ret_column) {
    const struct lab_recording *recording = rank_time->run->recording;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        bool gpu = track->entity.kind == LAB_ENTITY_GPU || track->entity.kind == LAB_ENTITY_MIG;
        if (track->entity.kind != resource->kind || (gpu && track->entity.index != resource->index))
            continue;
        int column = lab_entity_column(&track->entity, resource->metric, resource->instance);
        if (column < 0 || !track->values[column])
            continue;
        *ret_column = (struct column){.track = track,
                                      .values = track->values[column],
                                      .valid = track->valid[column],
                                      .first = find_tick(track, rank_time->from_ns),
                                      .behind = find_tick(track, rank_time->until_ns),
                                      .metric = lab_metric(resource->metric),
                                      .bit = resource->bit};
        if (ret_column->behind > ret_column->first)
            return true; /* else another recording may have seen it */
    }
    return false;
}

/* What the reading says of the time since the one before; NaN for a counter that started anew. */
static double value_of(const struct column *column, size_t tick, size_t before) {
    int64_t raw = column->values[tick];
    switch (column->metric->kind) {
    case LAB_METRIC_FLAGS:
        return ((uint64_t)raw & column->bit) != 0;
    case LAB_METRIC_COUNTER:
        return raw < column->values[before]
                   ? (double)NAN
                   : 1e9 * (double)(raw - column->values[before]) * column->metric->scale /
                         (double)(column->track->times_ns[tick] - column->track->times_ns[before]);
    case LAB_METRIC_GAUGE:
        break;
    }
    return (double)raw * column->metric->scale;
}

/* How far apart readings are, and how long a window has to be so that it holds something new. */
static int64_t spacing_ns(const struct column *column, int64_t *ret_least_ns) {
    size_t readings = 0, changes = 0, last = column->first;
    const int64_t *times_ns = column->track->times_ns;
    int64_t first_ns = 0, last_ns = 0;
    for (size_t i = column->first; i < column->behind; i++) {
        if (!column->valid[i])
            continue;
        if (readings == 0)
            first_ns = times_ns[i];
        else
            changes += column->values[i] != column->values[last];
        readings++;
        last = i;
        last_ns = times_ns[i];
    }
    int64_t span_ns = last_ns - first_ns;
    int64_t apart_ns = readings > 1 ? span_ns / (int64_t)(readings - 1) : 0;
    bool slow = apart_ns < SLOW_NS && column->metric->kind == LAB_METRIC_GAUGE &&
                span_ns / (int64_t)(changes + 1) >= REFRESH_NS;
    *ret_least_ns = slow ? SECOND_NS : apart_ns;
    return apart_ns;
}

/* --- windows --- */

/* Between readings; several together where one is too short. */
static void fill_by_readings(struct lab_windows *windows, const struct lab_rank_times *rank_times,
                             int number, const struct column *column, int64_t apart_ns,
                             int64_t least_ns) {
    const struct lab_rank_time *rank_time = &rank_times->items[number];
    const int64_t *times_ns = column->track->times_ns;
    int64_t early_ns = (int64_t)(EARLY_SHARE * (double)apart_ns), from_ns = 0;
    size_t before = column->behind, start = 0;
    double sum = 0, count = 0;
    for (size_t i = column->first; i < column->behind; i++) {
        if (!column->valid[i])
            continue;
        bool gap = before == column->behind || times_ns[i] <= times_ns[before] ||
                   times_ns[i] - times_ns[before] > GAP_READINGS * apart_ns;
        double value = gap ? (double)NAN : value_of(column, i, before);
        before = i;
        if (isnan(value)) {
            from_ns = times_ns[i];
            start = find_behind(rank_time, start, from_ns);
            sum = count = 0;
            continue;
        }
        sum += value;
        count++;
        if (times_ns[i] - from_ns < least_ns - early_ns)
            continue;
        size_t behind = find_behind(rank_time, start, times_ns[i]);
        add_window(windows, rank_times, number, start, behind, sum / count);
        from_ns = times_ns[i];
        start = behind;
        sum = count = 0;
    }
}

/* Each iteration a window: of the readings within it. */
static void fill_by_iterations(struct lab_windows *windows, const struct lab_rank_times *rank_times,
                               int number, const struct column *column) {
    const struct lab_rank_time *rank_time = &rank_times->items[number];
    const int64_t *times_ns = column->track->times_ns;
    size_t before = column->behind, i = column->first;
    for (size_t k = 0; k < rank_time->count; k++) {
        double sum = 0, count = 0;
        for (; i < column->behind && times_ns[i] <= rank_time->spans[k].end_ns; i++) {
            if (!column->valid[i])
                continue;
            double value = before < column->behind && times_ns[i] > times_ns[before]
                               ? value_of(column, i, before)
                               : (double)NAN;
            before = i;
            if (isnan(value) || times_ns[i] <= rank_time->spans[k].start_ns)
                continue;
            sum += value;
            count++;
        }
        add_window(windows, rank_times, number, k, k + 1, count > 0 ? sum / count : (double)NAN);
    }
}

void lab_windows_init(struct lab_windows *windows) {
    memset(windows, 0, sizeof *windows);
}

void lab_windows_release(struct lab_windows *windows) {
    lab_mem_free(windows->x);
    lab_mem_free(windows->time);
    lab_mem_free(windows->spread);
    lab_mem_free(windows->rank_time);
    lab_windows_init(windows);
}

bool lab_windows_fill(struct lab_windows *windows, const struct lab_rank_times *rank_times,
                      const struct lab_resource *resource, int64_t least_ns) {
    windows->count = 0;
    windows->length_s = 0;
    for (int p = 0; p < rank_times->count; p++) {
        struct column column;
        int64_t own_ns;
        if (!find_column(&rank_times->items[p], resource, &column))
            continue;
        int64_t apart_ns = spacing_ns(&column, &own_ns);
        int64_t length_ns = own_ns > least_ns ? own_ns : least_ns;
        if (apart_ns <= 0)
            continue;
        bool long_ones = rank_times->items[p].mean_s > 1e-9 * (double)length_ns;
        if (long_ones)
            fill_by_iterations(windows, rank_times, p, &column);
        else
            fill_by_readings(windows, rank_times, p, &column, apart_ns, length_ns);
        windows->length_s = fmax(windows->length_s, long_ones ? rank_times->items[p].mean_s
                                                              : 1e-9 * (double)length_ns);
    }
    return windows->count > 0;
}

#define CONSTANT 1e-9 /* of the largest value: what rounding leaves */

/* Points differ in how much they vary as they do in how long they take: each is held against
 * itself. */
static void scale_spread(struct lab_windows *windows, const struct lab_rank_times *rank_times) {
    LAB_AUTO_FREE double *sums =
        lab_mem_alloc(2 * (size_t)rank_times->point_count + 1, sizeof *sums);
    double *counts = sums + rank_times->point_count;
    for (size_t i = 0; i < windows->count; i++) {
        int point = rank_times->items[windows->rank_time[i]].point;
        if (isnan(windows->spread[i]))
            continue;
        sums[point] += windows->spread[i];
        counts[point]++;
    }
    for (size_t i = 0; i < windows->count; i++) {
        int point = rank_times->items[windows->rank_time[i]].point;
        if (sums[point] > 0)
            windows->spread[i] /= sums[point] / counts[point];
    }
}

bool lab_windows_centre(struct lab_windows *windows, const struct lab_rank_times *rank_times) {
    LAB_AUTO_FREE double *sums =
        lab_mem_alloc(2 * (size_t)rank_times->point_count + 1, sizeof *sums);
    double *counts = sums + rank_times->point_count, largest = 0, farthest = 0;
    for (size_t i = 0; i < windows->count; i++) {
        int point = rank_times->items[windows->rank_time[i]].point;
        sums[point] += windows->x[i];
        counts[point]++;
        largest = fmax(largest, fabs(windows->x[i]));
    }
    for (size_t i = 0; i < windows->count; i++) {
        int point = rank_times->items[windows->rank_time[i]].point;
        windows->x[i] -= sums[point] / counts[point];
        farthest = fmax(farthest, fabs(windows->x[i]));
    }
    scale_spread(windows, rank_times);
    return farthest > CONSTANT * largest;
}
