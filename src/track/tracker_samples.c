/*
 * tracker_samples.c: samples of a run's GPUs and their host, as trackers take them: all at one
 * time. GPUs are read one after the other, so each has times of its own. A sample is what was read
 * within half an interval, at most one reading of each GPU: none is lost, none is sent twice.
 */
#include "track/tracker_internal.h"

#include "base/clock.h"
#include "load/recordings.h"
#include "model/iteration.h"
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

static bool is_gpu(const struct lab_track *track) {
    return track->entity.kind == LAB_ENTITY_GPU;
}

/* Where no GPU was read, the host gives the times. */
static bool has_gpu_ticks(const struct lab_recording *recording) {
    bool any = false;
    for (int i = 0; i < recording->track_count; i++)
        any |= is_gpu(&recording->tracks[i]) && recording->tracks[i].count > 0;
    return any;
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

static int read_samples(const struct track_feed *feed, const struct lab_recording_query *query,
                        struct lab_arena *arena, struct lab_recording *ret_recording,
                        struct lab_err *err) {
    return feed->store ? lab_recording_read_store(feed->store, query, arena, ret_recording, err)
                       : lab_recording_read(feed->recording, query, arena, ret_recording, err);
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
    if (read_samples(feed, &query, arena, &recording, err) < 0)
        return -1;
    for (int i = 0; i < of->track_count; i++) {
        const struct lab_track *track = NULL;
        first[i] = (double)NAN;
        if (is_gpu(&of->tracks[i]))
            track = lab_recording_gpu(&recording, of->tracks[i].entity.index);
        int column = track ? lab_entity_column(&track->entity, LAB_METRIC_ENERGY, -1) : -1;
        for (size_t t = 0; column >= 0 && t < track->count && isnan(first[i]); t++)
            if (track->valid[column][t])
                first[i] = (double)track->values[column][t] * lab_metric(LAB_METRIC_ENERGY)->scale;
    }
    return 0;
}

/* The last time that all GPUs have been heard of: while the run goes on, more of one may come. */
static int64_t last_common(const struct lab_recording *recording) {
    int64_t until_ns = INT64_MAX;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if ((is_gpu(track) || is_host(track)) && track->count &&
            track->times_ns[track->count - 1] < until_ns)
            until_ns = track->times_ns[track->count - 1];
    }
    return until_ns;
}

struct cursor {
    const struct lab_recording *recording;
    size_t *next;        /* by track */
    const double *first; /* energy as the run began, likewise */
    bool by_gpus;
    int64_t until_ns; /* where what was read ends */
    struct lab_track_gpu *gpus;
};

/* What the next sample covers, both included; false = there is no reading left. */
static bool next_span(const struct cursor *cursor, struct lab_span *ret_span) {
    const struct lab_recording *recording = cursor->recording;
    struct lab_span span = {INT64_MAX, INT64_MAX};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < recording->track_count; i++) {
            const struct lab_track *track = &recording->tracks[i];
            size_t at = cursor->next[i] + (size_t)pass;
            if (!(cursor->by_gpus ? is_gpu(track) : is_host(track)) || at >= track->count)
                continue;
            if (pass == 0 && track->times_ns[at] < span.start_ns)
                span.start_ns = track->times_ns[at];
            else if (pass == 1 && track->times_ns[at] <= span.end_ns)
                span.end_ns =
                    track->times_ns[at] - 1; /* a second reading of it is another sample */
        }
        if (span.start_ns == INT64_MAX)
            return false;
        if (pass == 0)
            span.end_ns = span.start_ns + recording->interval_ns / 2;
        if (span.end_ns > cursor->until_ns)
            span.end_ns = cursor->until_ns;
    }
    *ret_span = span;
    return true;
}

/* Of a recording around a command: from when its processes use the GPU. Those that it uses first
 * count from the beginning; if it uses none, all do. */
static bool is_used(const struct track_feed *feed, int gpu, int64_t time_ns) {
    const struct track_usage *usage = feed->usage;
    if (!usage || usage->first_ns == INT64_MAX)
        return true;
    int64_t used_ns = gpu < usage->count ? usage->used_ns[gpu] : INT64_MAX;
    return used_ns <= (time_ns > usage->first_ns ? time_ns : usage->first_ns);
}

static void write_sample(struct track_feed *feed, struct cursor *cursor, struct lab_span span) {
    struct lab_track_sample sample = {.number = feed->at.rows++,
                                      .wall_ns = track_feed_wall(feed, span.start_ns),
                                      .gpus = cursor->gpus};
    clear(sample.host);
    for (int i = 0; i < cursor->recording->track_count; i++) {
        const struct lab_track *track = &cursor->recording->tracks[i];
        if (is_host(track))
            take_until(track, &cursor->next[i], span.end_ns, sample.host);
        if (!is_gpu(track))
            continue;
        struct lab_track_gpu *gpu = &cursor->gpus[sample.gpu_count];
        gpu->index = track->entity.index;
        clear(gpu->values);
        take_until(track, &cursor->next[i], span.end_ns, gpu->values);
        sample.gpu_count += is_used(feed, gpu->index, span.start_ns);
        gpu->values[LAB_METRIC_ENERGY] -= cursor->first[i];
    }
    lab_track_add_sample(feed->tracker, feed->about, &sample, &feed->out);
    feed->points++;
    feed->at.sample_ns = span.end_ns;
}

static void write_samples(struct track_feed *feed, const struct lab_recording *recording,
                          const double first[], int64_t read_ns, struct lab_arena *arena) {
    size_t track_count = (size_t)recording->track_count + 1;
    struct cursor cursor = {.recording = recording,
                            .next = lab_arena_alloc(arena, track_count, sizeof *cursor.next),
                            .first = first,
                            .by_gpus = has_gpu_ticks(recording),
                            .until_ns = read_ns,
                            .gpus = lab_arena_alloc(arena, track_count, sizeof *cursor.gpus)};
    int64_t until_ns = feed->ended ? INT64_MAX : last_common(recording);
    struct lab_span span;
    while (next_span(&cursor, &span) && span.end_ns <= until_ns)
        write_sample(feed, &cursor, span);
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
    if (read_samples(feed, &query, &arena, &whole, err) < 0)
        return -1;
    const struct lab_recording *recording = feed->at.all_gpus || !feed->store
                                                ? &whole
                                                : lab_recordings_of_run(&whole, feed->run, &arena);
    int64_t before = feed->at.rows;
    double *first = lab_arena_alloc(&arena, (size_t)recording->track_count + 1, sizeof *first);
    if (read_energy(feed, &arena, first, recording, err) < 0)
        return -1;
    write_samples(feed, recording, first, until_ns, &arena);
    return feed->at.rows - before;
}

int64_t track_feed_samples(struct track_feed *feed, struct lab_err *err) {
    int64_t end_ns = feed->bound.attempt ? feed->bound.sample_ns : feed->until_ns, written = 0;
    int64_t from_ns = feed->at.sample_ns > 0 ? feed->at.sample_ns + 1 : feed->run->start_ns;
    feed->more_samples = false;
    if (feed->store && feed->run->epoch == 0)
        return 0;
    if (feed->usage && feed->usage->first_ns == INT64_MAX && !feed->ended)
        return 0; /* which GPUs are its own isn't known yet */
    while (written == 0 && from_ns <= end_ns) {
        int64_t until_ns = end_ns - from_ns > WINDOW_NS ? from_ns + WINDOW_NS : end_ns;
        written = read_window(feed, from_ns, until_ns, err);
        feed->more_samples = until_ns < end_ns;
        if (!feed->more_samples)
            break;
        from_ns = until_ns + 1;
    }
    return written;
}
