/*
 * rate_series.c: drift, changes and what held the device back, from iterations and samples.
 *
 * Long series are taken as medians of blocks: single slow iterations are outliers, not changes.
 * Pace wanders by itself, and what it did a while ago it still remembers: how long, the run's own
 * times have to say, as far as they can (stats/trend_test.h). A drift or a change for good is
 * larger than what is asked for by its whole interval, under every memory that the run leaves
 * plausible; of a change that interval holds for all the places where it could have been. So a
 * short run can show a large change at once, but not a slow one.
 */
#include "analysis/stability/rate_series.h"

#include "analysis/analysis_resource.h"
#include "analysis/analysis_timeline.h"
#include "base/str.h"
#include "stats/trend_test.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE    0.95
#define LEVEL         0.05
#define VALUES_LEAST  20   /* fewer have no course */
#define BLOCKS_MAX    400  /* that changes are sought in: the time grows with their square */
#define TREND_BLOCKS  200  /* that a drift is judged from, at most */
#define CHANGE_SURE   0.99 /* of the intervals of all places together */
#define SEGMENT_LEAST 5    /* blocks */
#define SEGMENT_SHARE 100  /* a segment is at least this part of the series */
#define HELD_MORE     0.3  /* of the time, after a change than before: what explains it */
#define HELD_HARMLESS 0.01
/* half the interval of a drift: a run that leaves so much open tells nothing */
#define BLIND 0.1

/* --- blocks --- */

struct blocks {
    double *middle_s; /* since the first end */
    double *median_s;
    size_t count, size;
};

static struct blocks make_blocks(const double *values, const double *ends_s, size_t n,
                                 size_t most) {
    size_t size = n > most ? (n + most - 1) / most : 1;
    struct blocks blocks = {.count = n / size, .size = size};
    blocks.middle_s = lab_mem_resize(NULL, blocks.count + 1, sizeof *blocks.middle_s);
    blocks.median_s = lab_mem_resize(NULL, blocks.count + 1, sizeof *blocks.median_s);
    for (size_t b = 0; b < blocks.count; b++) {
        size_t first = b * size, last = first + size - 1;
        double start_s = first > 0 ? ends_s[first - 1] : 0;
        blocks.middle_s[b] = (start_s + ends_s[last]) / 2;
        blocks.median_s[b] = size == 1 ? values[first] : lab_stats_median(values + first, size);
    }
    return blocks;
}

static void release_blocks(struct blocks *blocks) {
    lab_mem_free(blocks->middle_s);
    lab_mem_free(blocks->median_s);
}

/* --- drift --- */

/* Logarithms: so much of the time in each second, however large the drift. */
static double *take_logs(const struct blocks *blocks) {
    double *logs = lab_mem_resize(NULL, blocks->count + 1, sizeof *logs);
    for (size_t i = 0; i < blocks->count; i++)
        logs[i] = log(blocks->median_s[i]);
    return logs;
}

static void find_drift(struct lab_rate_series *rate_series, const double *values,
                       const double *ends_s) {
    struct blocks blocks = make_blocks(values, ends_s, rate_series->count, TREND_BLOCKS);
    double *logs = take_logs(&blocks);
    struct lab_trend_series series = {blocks.middle_s, logs, blocks.count};
    struct lab_trend_effect slope = lab_trend_slope(&series, CONFIDENCE);
    rate_series->drift = expm1(slope.value * rate_series->duration_s);
    rate_series->drift_low = expm1(slope.low * rate_series->duration_s);
    rate_series->drift_high = expm1(slope.high * rate_series->duration_s);
    rate_series->drift_p = slope.p;
    rate_series->memory_s = slope.memory_s;
    rate_series->blind = (slope.high - slope.low) / 2 * rate_series->duration_s > BLIND;
    lab_mem_free(logs);
    release_blocks(&blocks);
}

/* --- changes --- */

struct segments {
    const double *values;
    size_t count;   /* values */
    size_t *starts; /* of all segments but the first */
    size_t start_count;
};

static double level(const struct segments *segments, size_t number) {
    size_t first = number > 0 ? segments->starts[number - 1] : 0;
    size_t behind = number < segments->start_count ? segments->starts[number] : segments->count;
    return lab_stats_median(segments->values + first, behind - first);
}

/* Takes out the smallest change, until all are as large as is asked for. */
static void drop_small(struct segments *segments, double least) {
    for (;;) {
        double smallest = INFINITY;
        size_t which = 0;
        for (size_t i = 0; i < segments->start_count; i++) {
            double before = level(segments, i), after = level(segments, i + 1);
            double change = fabs(after / before - 1);
            if (change < smallest) {
                smallest = change;
                which = i;
            }
        }
        if (segments->start_count == 0 || smallest >= least)
            return;
        memmove(segments->starts + which, segments->starts + which + 1,
                (segments->start_count - which - 1) * sizeof *segments->starts);
        segments->start_count--;
    }
}

/* By how much the change is larger than `least` for certain; below 0: it isn't. */
static double certain(const struct segments *segments, const struct lab_trend_series *series,
                      size_t change, double least) {
    struct lab_trend_effect step = lab_trend_step(series, segments->starts, segments->start_count,
                                                  change, CHANGE_SURE, segments->count);
    return fmax(step.low, -step.high) - log1p(least);
}

/* Takes out the least certain change, until all are. */
static void drop_uncertain(struct segments *segments, const struct blocks *blocks, double least) {
    double *logs = take_logs(blocks);
    struct lab_trend_series series = {blocks->middle_s, logs, blocks->count};
    while (segments->start_count > 0) {
        double weakest = INFINITY;
        size_t which = 0;
        for (size_t i = 0; i < segments->start_count; i++) {
            double margin = certain(segments, &series, i, least);
            if (margin < weakest) {
                weakest = margin;
                which = i;
            }
        }
        if (weakest >= 0)
            break;
        memmove(segments->starts + which, segments->starts + which + 1,
                (segments->start_count - which - 1) * sizeof *segments->starts);
        segments->start_count--;
    }
    lab_mem_free(logs);
}

static void find_changes(struct lab_rate_series *rate_series, const double *values,
                         const double *ends_s, double least, struct lab_arena *arena) {
    struct blocks blocks = make_blocks(values, ends_s, rate_series->count, BLOCKS_MAX);
    size_t segment = blocks.count / SEGMENT_SHARE;
    struct lab_changes_options options = {.cost = LAB_CHANGES_MEAN_VARIANCE,
                                          .segment_min =
                                              segment > SEGMENT_LEAST ? segment : SEGMENT_LEAST};
    struct segments segments = {.values = blocks.median_s, .count = blocks.count};
    segments.starts = lab_mem_resize(NULL, blocks.count + 1, sizeof *segments.starts);
    if (lab_changes_find(blocks.median_s, blocks.count, &options, segments.starts,
                         &segments.start_count)) {
        size_t before;
        do { /* what is taken out changes the levels beside it: those left have to be both */
            before = segments.start_count;
            drop_small(&segments, least);
            drop_uncertain(&segments, &blocks, least);
        } while (segments.start_count > 0 && segments.start_count < before);
        struct lab_steadiness steadiness = lab_changes_classify(
            blocks.median_s, blocks.count, segments.starts, segments.start_count);
        rate_series->steady = steadiness.steady;
        if (rate_series->steady == LAB_STEADY_FLAT) /* levels differ by less than iterations vary */
            segments.start_count = 0;
        if (steadiness.from > 0 && steadiness.from < blocks.count)
            rate_series->steady_from_s = ends_s[steadiness.from * blocks.size - 1];
        rate_series->changes =
            lab_arena_alloc(arena, segments.start_count + 1, sizeof *rate_series->changes);
        for (size_t i = 0; i < segments.start_count; i++)
            rate_series->changes[rate_series->change_count++] = (struct lab_rate_series_change){
                .at_s = ends_s[segments.starts[i] * blocks.size - 1],
                .before_s = level(&segments, i),
                .after_s = level(&segments, i + 1),
                .clock_before = NAN,
                .clock_after = NAN,
                .held_before = NAN,
                .held_after = NAN};
    }
    lab_mem_free(segments.starts);
    release_blocks(&blocks);
}

/* --- what held it back --- */

static void find_held(struct lab_rate_series *rate_series, const struct lab_track *track) {
    int64_t from_ns = rate_series->rank->iterations[0].end_ns;
    int64_t until_ns = rate_series->rank->iterations[rate_series->rank->iteration_count - 1].end_ns;
    double most_s = 0;
    rate_series->held_s = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS,
                                           lab_clock_harmful(UINT64_MAX), from_ns, until_ns);
    for (int i = 0; lab_clock_reasons[i].bit; i++) {
        double held_s = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, lab_clock_reasons[i].bit,
                                         from_ns, until_ns);
        if (!lab_clock_reasons[i].harmful || !(held_s > most_s))
            continue;
        most_s = held_s;
        rate_series->held_why = lab_clock_reasons[i].words;
    }
}

/* Without samples, from what the run said of itself: the worst reason's time, of all its ranks. */
static void find_held_in_result(struct lab_rate_series *rate_series) {
    const struct lab_result *result = rate_series->run->result;
    for (int i = 0; i < result->throttled_s.count; i++) {
        const struct lab_result_throttle *throttle = &result->throttled_s.items[i];
        double held_s = isnan(throttle->seconds) ? 0 : throttle->seconds;
        if (isnan(rate_series->held_s) || held_s > rate_series->held_s)
            rate_series->held_s = held_s;
        for (int r = 0; held_s > 0 && lab_clock_reasons[r].bit; r++)
            if (held_s == rate_series->held_s &&
                lab_str_equal(lab_clock_reasons[r].name, throttle->reason))
                rate_series->held_why = lab_clock_reasons[r].words;
    }
}

static double held_share(const struct lab_track *track, uint64_t bits, int64_t from_ns,
                         int64_t until_ns) {
    double held_s = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, bits, from_ns, until_ns);
    return held_s / (1e-9 * (double)(until_ns - from_ns));
}

/* On both sides of each change, up to the neighbouring ones. */
static void explain_changes(struct lab_rate_series *rate_series, const struct lab_track *track) {
    int64_t start_ns = rate_series->rank->iterations[0].end_ns;
    int64_t end_ns = rate_series->rank->iterations[rate_series->rank->iteration_count - 1].end_ns;
    for (int i = 0; i < rate_series->change_count; i++) {
        struct lab_rate_series_change *change = &rate_series->changes[i];
        int64_t at_ns = start_ns + (int64_t)(1e9 * change->at_s);
        int64_t from_ns = i > 0 ? start_ns + (int64_t)(1e9 * change[-1].at_s) : start_ns;
        int64_t until_ns =
            i + 1 < rate_series->change_count ? start_ns + (int64_t)(1e9 * change[1].at_s) : end_ns;
        double most = HELD_MORE;
        change->clock_before = lab_track_between(track, LAB_METRIC_SM_CLOCK, from_ns, at_ns).mean;
        change->clock_after = lab_track_between(track, LAB_METRIC_SM_CLOCK, at_ns, until_ns).mean;
        change->held_before = held_share(track, lab_clock_harmful(UINT64_MAX), from_ns, at_ns);
        change->held_after = held_share(track, lab_clock_harmful(UINT64_MAX), at_ns, until_ns);
        for (int r = 0; lab_clock_reasons[r].bit; r++) {
            uint64_t bit = lab_clock_reasons[r].bit;
            double more =
                held_share(track, bit, at_ns, until_ns) - held_share(track, bit, from_ns, at_ns);
            if (!lab_clock_reasons[r].harmful || !(more > most))
                continue;
            most = more;
            change->reason = lab_clock_reasons[r].words;
        }
    }
}

/* --- the whole --- */

/* When each of the times ended, since the first end: by the clock, since samples go by it; as if
 * they followed each other where they don't. */
static double *find_ends(const struct lab_study_rank *rank, const struct lab_span *spans,
                         size_t count, struct lab_arena *arena) {
    double *ends_s = lab_arena_alloc(arena, count, sizeof *ends_s), sum_s = 0;
    for (size_t i = 0; i < count; i++) {
        sum_s += 1e-9 * (double)(spans[i].end_ns - spans[i].start_ns);
        ends_s[i] =
            rank->apart ? sum_s : 1e-9 * (double)(spans[i].end_ns - rank->iterations[0].end_ns);
    }
    return ends_s;
}

static const char *make_name(const struct lab_rate_series *rate_series, struct lab_arena *arena) {
    return rate_series->run->rank_count > 1
               ? lab_arena_printf(arena, "%s on %s", rate_series->run->run->id, rate_series->device)
               : rate_series->run->run->id;
}

void lab_rate_series_make(const struct lab_study_run *run, const struct lab_study_rank *rank,
                          double least, struct lab_arena *arena,
                          struct lab_rate_series *ret_rate_series) {
    struct lab_rate_series rate_series = {.run = run,
                                          .rank = rank,
                                          .device = lab_study_device_title(rank->device, arena),
                                          .duration_s = NAN,
                                          .median_s = NAN,
                                          .steady_from_s = NAN,
                                          .drift = NAN,
                                          .drift_low = NAN,
                                          .drift_high = NAN,
                                          .drift_p = NAN,
                                          .drift_p_adjusted = NAN,
                                          .memory_s = NAN,
                                          .held_s = NAN};
    LAB_AUTO(arena, scratch);
    rate_series.name = make_name(&rate_series, arena);
    const struct lab_span *spans = lab_study_spans(rank, &scratch, &rate_series.count);
    const double *values = lab_study_intervals(rank, &scratch, &rate_series.count);
    int gpu = lab_resource_gpu(rank);
    const struct lab_track *track =
        run->recording && gpu >= 0 ? lab_recording_gpu(run->recording, gpu) : NULL;
    if (rate_series.count > 0) {
        const double *ends_s = find_ends(rank, spans, rate_series.count, &scratch);
        rate_series.duration_s = ends_s[rate_series.count - 1];
        rate_series.median_s = lab_stats_median(values, rate_series.count);
        if (rate_series.count >= VALUES_LEAST && rate_series.median_s > 0) {
            find_drift(&rate_series, values, ends_s);
            find_changes(&rate_series, values, ends_s, least, arena);
        }
        struct lab_points points =
            lab_points_thin(ends_s, values, rate_series.count, LAB_TIMELINE_POINTS, 0, arena);
        rate_series.shown_x_s = points.x;
        rate_series.shown_y_s = points.y;
        rate_series.shown_count = points.count;
    }
    if (track && rate_series.count > 0) {
        find_held(&rate_series, track);
        explain_changes(&rate_series, track);
    }
    if (isnan(rate_series.held_s))
        find_held_in_result(&rate_series);
    *ret_rate_series = rate_series;
}

void lab_rate_series_adjust(struct lab_rate_series *all_rate_series, int count, double least) {
    double *p = lab_mem_resize(NULL, (size_t)count + 1, sizeof *p);
    for (int i = 0; i < count; i++)
        p[i] = all_rate_series[i].drift_p;
    lab_stats_adjust_bh(p, (size_t)count, p);
    for (int i = 0; i < count; i++) {
        struct lab_rate_series *rate_series = &all_rate_series[i];
        rate_series->drift_p_adjusted = p[i];
        rate_series->drifts =
            p[i] <= LEVEL && (rate_series->drift_low >= least || rate_series->drift_high <= -least);
    }
    lab_mem_free(p);
}

bool lab_rate_series_is_steady(const struct lab_rate_series *rate_series) {
    bool held = rate_series->held_s > HELD_HARMLESS * rate_series->duration_s;
    return rate_series->steady != LAB_STEADY_SLOWDOWN && rate_series->steady != LAB_STEADY_NONE &&
           !rate_series->drifts && !held;
}
