/*
 * tracker_samples.c: samples of a run's GPUs and their host, as trackers take them: all at one
 * time. GPUs are read one after the other, so each has times of its own; the GPU with most readings
 * gives the times, and the others what they reported until then.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "load/recordings.h"
#include "store/recording/recording.h"

#include <math.h>

#define WINDOW_NS (600 * LAB_NS_PER_S) /* read at once */

static const enum lab_metric_id wanted[] = {
    LAB_METRIC_UTILIZATION,
    LAB_METRIC_MEMORY_UTILIZATION,
    LAB_METRIC_MEMORY_USED,
    LAB_METRIC_MEMORY_TOTAL,
    LAB_METRIC_POWER,
    LAB_METRIC_TEMPERATURE,
    LAB_METRIC_SM_CLOCK,
    LAB_METRIC_MEMORY_CLOCK,
    LAB_METRIC_FAN,
    LAB_METRIC_SM_ACTIVE,
    LAB_METRIC_PERFORMANCE_STATE,
    LAB_METRIC_SM_OCCUPANCY,
    LAB_METRIC_DRAM_ACTIVE,
    LAB_METRIC_TENSOR_ACTIVE,
    LAB_METRIC_ENERGY,
    LAB_METRIC_POWER_LIMIT,
    LAB_METRIC_CPU_UTILIZATION,
    LAB_METRIC_HOST_AVAILABLE,
};
#define WANTED (sizeof wanted / sizeof *wanted)

static bool is_host(const struct lab_track *track) {
    return track->entity.kind == LAB_ENTITY_CPU || track->entity.kind == LAB_ENTITY_MEMORY;
}

static const struct lab_track *find_leader(const struct lab_recording *recording) {
    const struct lab_track *leader = NULL;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        bool gpu = track->entity.kind == LAB_ENTITY_GPU;
        bool leads_gpu = leader && leader->entity.kind == LAB_ENTITY_GPU;
        if (track->count && (gpu || is_host(track)) &&
            (!leader || gpu > leads_gpu || (gpu == leads_gpu && track->count > leader->count)))
            leader = track;
    }
    return leader;
}

/* Values of one entity up to a time; the latest of each counts. */
static void take_until(const struct lab_track *track, size_t *next, int64_t time_ns,
                       double *values) {
    for (; *next < track->count && track->times_ns[*next] <= time_ns; (*next)++)
        for (size_t m = 0; m < WANTED; m++) {
            int column = lab_entity_column(&track->entity, wanted[m], -1);
            if (column >= 0 && track->values[column] && track->valid[column][*next])
                values[wanted[m]] =
                    (double)track->values[column][*next] * lab_metric(wanted[m])->scale;
        }
}

static void clear(double *values) {
    for (int m = 0; m < LAB_METRIC_COUNT; m++)
        values[m] = (double)NAN;
}

/* Energy of each GPU as the run began, by track; NaN = unknown. */
static int read_energy(struct track_feed *feed, struct lab_arena *arena, double first[],
                       const struct lab_recording *of, struct lab_err *err) {
    static const enum lab_metric_id energy[] = {LAB_METRIC_ENERGY};
    struct lab_recording recording;
    struct lab_recording_query query = {.metrics = energy,
                                        .metric_count = 1,
                                        .from_ns = feed->run->start_ns,
                                        .until_ns = feed->run->start_ns + 30 * LAB_NS_PER_S,
                                        .epoch = feed->run->epoch,
                                        .without_processes = true};
    if (lab_recording_read_store(feed->store, &query, arena, &recording, err) < 0)
        return -1;
    for (int i = 0; i < of->track_count; i++) {
        const struct lab_track *track = NULL;
        first[i] = (double)NAN;
        if (of->tracks[i].entity.kind == LAB_ENTITY_GPU)
            track = lab_recording_gpu(&recording, of->tracks[i].entity.index);
        int column = track ? lab_entity_column(&track->entity, LAB_METRIC_ENERGY, -1) : -1;
        for (size_t t = 0; column >= 0 && t < track->count && isnan(first[i]); t++)
            if (track->valid[column][t])
                first[i] = (double)track->values[column][t] * lab_metric(LAB_METRIC_ENERGY)->scale;
    }
    return 0;
}

/* The last time that all GPUs have been heard of: while the run goes on, more of one may come. */
static int64_t last_common(const struct lab_recording *recording, int64_t until_ns) {
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->entity.kind == LAB_ENTITY_GPU && track->count &&
            track->times_ns[track->count - 1] < until_ns)
            until_ns = track->times_ns[track->count - 1];
    }
    return until_ns;
}

static void write_samples(struct track_feed *feed, const struct lab_recording *recording,
                          const struct lab_track *leader, const double first[],
                          struct lab_arena *arena) {
    size_t track_count = (size_t)recording->track_count;
    size_t *next = lab_arena_alloc(arena, track_count + 1, sizeof *next);
    struct lab_track_gpu *gpus = lab_arena_alloc(arena, track_count + 1, sizeof *gpus);
    int64_t until_ns = feed->ended ? INT64_MAX : last_common(recording, INT64_MAX);
    int64_t half_ns = recording->interval_ns / 2;
    for (size_t t = 0; t < leader->count && leader->times_ns[t] <= until_ns; t++) {
        struct lab_track_sample sample = {.number = feed->at.rows++,
                                          .wall_ns = track_feed_wall(feed, leader->times_ns[t]),
                                          .gpus = gpus};
        clear(sample.host);
        for (size_t i = 0; i < track_count; i++) {
            const struct lab_track *track = &recording->tracks[i];
            int64_t time_ns = leader->times_ns[t] + (track == leader ? 0 : half_ns);
            if (is_host(track))
                take_until(track, &next[i], time_ns, sample.host);
            if (track->entity.kind != LAB_ENTITY_GPU)
                continue;
            struct lab_track_gpu *gpu = &gpus[sample.gpu_count++];
            gpu->index = track->entity.index;
            clear(gpu->values);
            take_until(track, &next[i], time_ns, gpu->values);
            gpu->values[LAB_METRIC_ENERGY] -= first[i];
        }
        feed->tracker->sample(feed->about, &sample, &feed->out);
        feed->points++;
        feed->at.sample_ns = leader->times_ns[t];
    }
}

/* Of one window: how many samples were written; -1 = failure. */
static int64_t read_window(struct track_feed *feed, int64_t from_ns, int64_t until_ns,
                           struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_recording whole;
    struct lab_recording_query query = {.metrics = wanted,
                                        .metric_count = WANTED,
                                        .from_ns = from_ns,
                                        .until_ns = until_ns,
                                        .epoch = feed->run->epoch,
                                        .without_processes = true};
    if (lab_recording_read_store(feed->store, &query, &arena, &whole, err) < 0)
        return -1;
    const struct lab_recording *recording =
        feed->all_gpus ? &whole : lab_recordings_of_run(&whole, feed->run, &arena);
    const struct lab_track *leader = find_leader(recording);
    if (!leader)
        return 0;
    int64_t before = feed->at.rows;
    double *first = lab_arena_alloc(&arena, (size_t)recording->track_count, sizeof *first);
    if (read_energy(feed, &arena, first, recording, err) < 0)
        return -1;
    write_samples(feed, recording, leader, first, &arena);
    return feed->at.rows - before;
}

int64_t track_feed_samples(struct track_feed *feed, struct lab_err *err) {
    int64_t end_ns = feed->until_ns, written = 0;
    int64_t from_ns = feed->at.sample_ns > 0 ? feed->at.sample_ns + 1 : feed->run->start_ns;
    if (feed->run->epoch == 0)
        return 0;
    while (written == 0 && from_ns <= end_ns) {
        int64_t until_ns = end_ns - from_ns > WINDOW_NS ? from_ns + WINDOW_NS : end_ns;
        written = read_window(feed, from_ns, until_ns, err);
        if (until_ns == end_ns)
            break;
        from_ns = until_ns + 1;
    }
    return written;
}
