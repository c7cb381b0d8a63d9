/*
 * recording_stats_gpu.c: what a recording tells of one GPU: means and peaks of its columns, its
 * energy, when it was held back, when it gave nothing.
 */
#include "analysis/recording/recording_stats.h"

#include "base/list.h"
#include "stats/stats.h"

#include <math.h>

#define MIB           1048576.0
#define GAP_INTERVALS 3 /* a stretch without values that is longer than so many ticks */

static const struct {
    enum lab_metric_id metric;
    double divisor;
} columns[LAB_RECORDING_STATS_METRICS] = {
    [LAB_RECORDING_STATS_MEMORY] = {LAB_METRIC_MEMORY_USED, MIB},
    [LAB_RECORDING_STATS_UTILIZATION] = {LAB_METRIC_UTILIZATION, 1},
    [LAB_RECORDING_STATS_POWER] = {LAB_METRIC_POWER, 1},
    [LAB_RECORDING_STATS_TEMPERATURE] = {LAB_METRIC_TEMPERATURE, 1},
    [LAB_RECORDING_STATS_CLOCK] = {LAB_METRIC_SM_CLOCK, 1},
};

/* --- columns --- */

int lab_recording_stats_column(const struct lab_track *track, enum lab_metric_id metric) {
    int column = lab_entity_column(&track->entity, metric, -1);
    return column >= 0 && track->values[column] && track->valid[column] ? column : -1;
}

/* Where the mean over a second isn't given, the power of the instant will do. */
static int find_watched(const struct lab_track *track, enum lab_recording_stats_metric metric,
                        double *ret_scale) {
    enum lab_metric_id id = columns[metric].metric;
    if (metric == LAB_RECORDING_STATS_POWER && lab_recording_stats_column(track, id) < 0)
        id = LAB_METRIC_POWER_INSTANT;
    *ret_scale = lab_metric(id)->scale / columns[metric].divisor;
    return lab_recording_stats_column(track, id);
}

size_t lab_recording_stats_read(const struct lab_recording_stats_gpu *gpu,
                                enum lab_recording_stats_metric metric, double *ret_values,
                                int64_t *ret_times_ns) {
    const struct lab_track *track = gpu->track;
    double scale;
    int column = find_watched(track, metric, &scale);
    size_t count = 0;
    for (size_t i = 0; column >= 0 && i < track->count; i++) {
        if (!track->valid[column][i])
            continue;
        ret_values[count] = (double)track->values[column][i] * scale;
        ret_times_ns[count++] = track->times_ns[i];
    }
    return count;
}

static double last_value(const struct lab_track *track, enum lab_metric_id metric) {
    int column = lab_recording_stats_column(track, metric);
    for (size_t i = track->count; column >= 0 && i-- > 0;)
        if (track->valid[column][i])
            return (double)track->values[column][i] * lab_metric(metric)->scale;
    return NAN;
}

/* --- gaps --- */

/* A tick counts if it has anything of what is read at every one. */
static bool is_there(const struct lab_track *track, const int *fast, size_t tick) {
    for (int m = 0; m <= LAB_RECORDING_STATS_TEMPERATURE; m++)
        if (fast[m] >= 0 && track->valid[fast[m]][tick])
            return true;
    return false;
}

/* As it was asked for, or as it is where that is slower: the median of some differences. */
static int64_t find_interval(const struct lab_track *track, const int *fast, int64_t asked_ns) {
    enum { MOST = 1024 };
    int64_t differences[MOST], last_ns = 0;
    int count = 0;
    bool any = false;
    for (size_t i = 0; i < track->count && count < MOST; i++) {
        if (!is_there(track, fast, i))
            continue;
        if (any)
            differences[count++] = track->times_ns[i] - last_ns;
        last_ns = track->times_ns[i];
        any = true;
    }
    if (count == 0)
        return asked_ns;
    LAB_SORT_NUMBERS(differences, count);
    int64_t median_ns = differences[count / 2];
    return median_ns > asked_ns ? median_ns : asked_ns;
}

static bool is_gap(int64_t length_ns, int64_t interval_ns) {
    return interval_ns > 0 && length_ns > GAP_INTERVALS * interval_ns;
}

static void add_gap(struct lab_recording_stats_gpu *gpu, int64_t from_ns, int64_t to_ns,
                    int64_t interval_ns, bool at_an_end) {
    int64_t length_ns = to_ns - from_ns;
    if (!is_gap(length_ns, interval_ns))
        return;
    gpu->missing_s += (double)(length_ns - (at_an_end ? 0 : interval_ns)) / 1e9;
    gpu->gap_count++;
}

static void find_gaps(struct lab_recording_stats_gpu *gpu, const struct lab_recording_stats *stats,
                      const int *fast, int64_t interval_ns) {
    const struct lab_track *track = gpu->track;
    int64_t last_ns = stats->start_ns;
    bool any = false;
    for (size_t i = 0; i < track->count; i++) {
        if (!is_there(track, fast, i))
            continue;
        add_gap(gpu, last_ns, track->times_ns[i], interval_ns, !any);
        last_ns = track->times_ns[i];
        any = true;
    }
    if (any) {
        add_gap(gpu, last_ns, stats->end_ns, interval_ns, true);
    } else {
        gpu->missing_s = stats->duration_s;
        gpu->gap_count = 1;
    }
}

/* --- figures of a GPU --- */

static struct lab_recording_stats_figures describe(const double *values, size_t count) {
    struct lab_recording_stats_figures figures = {count, NAN, NAN, NAN};
    if (count > 0) {
        figures.mean = lab_stats_mean(values, count);
        figures.deviation = count > 1 ? lab_stats_stddev(values, count) : 0;
        figures.peak = lab_stats_max(values, count);
    }
    return figures;
}

/*
 * The time of the ticks at which something held the clocks back: several reasons at once count
 * once. Where the reasons weren't recorded, the longest of the driver's counters: they overlap, so
 * that their sum would be too much.
 */
static void find_throttling(struct lab_recording_stats_gpu *gpu,
                            const struct lab_recording_stats *stats, int64_t interval_ns) {
    static const enum lab_metric_id counters[] = {
        LAB_METRIC_THROTTLED_POWER, LAB_METRIC_THROTTLED_SYNC, LAB_METRIC_THROTTLED_THERMAL,
        LAB_METRIC_THROTTLED_HW_THERMAL, LAB_METRIC_THROTTLED_BRAKE};
    const struct lab_track *track = gpu->track;
    int column = lab_recording_stats_column(track, LAB_METRIC_CLOCK_REASONS);
    gpu->throttled_s = NAN;
    for (size_t i = 0, last = track->count; column >= 0 && i < track->count; i++) {
        if (!track->valid[column][i])
            continue;
        uint64_t reasons = lab_clock_harmful((uint64_t)track->values[column][i]);
        if (isnan(gpu->throttled_s))
            gpu->throttled_s = 0;
        int64_t since_ns = last < i ? track->times_ns[i] - track->times_ns[last] : 0;
        if (reasons && !is_gap(since_ns, interval_ns))
            gpu->throttled_s += (double)since_ns / 1e9;
        gpu->reasons |= reasons;
        last = i;
    }
    for (size_t i = 0; column < 0 && i < sizeof counters / sizeof *counters; i++) {
        double growth = lab_track_growth(track, counters[i], stats->start_ns, stats->end_ns);
        if (!isnan(growth))
            gpu->throttled_s = fmax(gpu->throttled_s, growth); /* fmax passes NaN over */
    }
}

void lab_recording_stats_gpu_describe(struct lab_recording_stats_gpu *gpu,
                                      const struct lab_recording_stats *stats,
                                      struct lab_arena *arena) {
    const struct lab_track *track = gpu->track;
    int fast[LAB_RECORDING_STATS_METRICS];
    double scale;
    for (int m = 0; m < LAB_RECORDING_STATS_METRICS; m++)
        fast[m] = find_watched(track, m, &scale);
    int64_t interval_ns = find_interval(track, fast, stats->source->recording->interval_ns);
    double *values = lab_mem_resize(NULL, track->count + 1, sizeof *values);
    int64_t *times = lab_mem_resize(NULL, track->count + 1, sizeof *times);
    gpu->name = lab_arena_printf(arena, "GPU %d", track->entity.index);
    struct lab_energy energy = lab_track_energy(track, stats->source->recording->interval_ns,
                                                stats->start_ns, stats->end_ns);
    gpu->energy_j = energy.joules;
    gpu->energy_integrated = energy.estimated;
    for (int m = 0; m < LAB_RECORDING_STATS_METRICS; m++) {
        size_t count = lab_recording_stats_read(gpu, m, values, times);
        gpu->figures[m] = describe(values, count);
    }
    gpu->capacity_mib = last_value(track, LAB_METRIC_MEMORY_TOTAL) / MIB;
    find_throttling(gpu, stats, interval_ns);
    find_gaps(gpu, stats, fast, interval_ns);
    lab_mem_free(values);
    lab_mem_free(times);
}
