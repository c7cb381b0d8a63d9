/*
 * rate_series.c: drift, change points and throttling of a run, from iterations and samples.
 *
 * Long series are taken as medians of blocks: single slow iterations are outliers, not changes.
 * Iteration times are autocorrelated, with a memory that only the run itself shows
 * (stats/trend_test.h). A change is larger than LEAST by its whole interval, under every memory
 * that the run leaves plausible, and for all places where it could have been. So a short run can
 * show a large change at once, but not a slow one.
 */
#include "analysis/stability/rate_series.h"

#include "analysis/analysis_resource.h"
#include "analysis/analysis_timeline.h"
#include "analysis/analysis_words.h"
#include "base/str.h"
#include "stats/trend_test.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE    0.95
#define LEAST         0.01 /* a smaller change doesn't count */
#define P99_LEAST     100  /* fewer have no p99 but the longest */
#define BLOCKS_MAX    400  /* that changes are sought in: the time grows with their square */
#define TREND_BLOCKS  200  /* that a drift is judged from, at most */
#define WINDOW        5 /* neighbouring iterations, among which one or two slow ones are single */
#define CHANGE_SURE   0.99   /* of one run; of many more */
#define SEGMENT_LEAST 5      /* blocks */
#define SEGMENT_SHARE 100    /* a segment is at least this part of the series */
#define NEAR          (-1e2) /* a margin below it: levels alike, or made by single iterations */
#define THROTTLED     0.3    /* of the time, after a change more than before: what explains it */

/* --- blocks --- */

struct blocks {
    double *middle_s; /* since the first end */
    double *median_s, *logs;
    size_t count, size;
    struct lab_trend_series trend; /* of the logarithms */
};

static struct blocks make_blocks(const double *values, const double *ends_s, size_t n, size_t most,
                                 struct lab_arena *arena) {
    size_t size = n > most ? (n + most - 1) / most : 1;
    struct blocks blocks = {.count = n / size, .size = size};
    blocks.middle_s = lab_arena_alloc(arena, blocks.count + 1, sizeof *blocks.middle_s);
    blocks.median_s = lab_arena_alloc(arena, blocks.count + 1, sizeof *blocks.median_s);
    blocks.logs = lab_arena_alloc(arena, blocks.count + 1, sizeof *blocks.logs);
    for (size_t b = 0; b < blocks.count; b++) {
        size_t first = b * size, last = first + size - 1;
        double start_s = first > 0 ? ends_s[first - 1] : 0;
        blocks.middle_s[b] = (start_s + ends_s[last]) / 2;
        blocks.median_s[b] = size == 1 ? values[first] : lab_stats_median(values + first, size);
        blocks.logs[b] = log(blocks.median_s[b]);
    }
    blocks.trend = (struct lab_trend_series){blocks.middle_s, blocks.logs, blocks.count};
    return blocks;
}

/*
 * Without single slow iterations (Hampel's filter): those far from the median of their neighbours,
 * by Tukey's outer fences and by LEAST, become that median. A host that waits for its device every
 * so often does so once its queue is full and not before: a few pauses, all in the later part of a
 * short run, would tilt its slope. What changes for longer stays.
 */
static const double *without_single(const double *values, size_t n, struct lab_arena *arena) {
    double *medians = lab_arena_alloc(arena, n, sizeof *medians),
           *away = lab_arena_alloc(arena, n, sizeof *away);
    enum lab_outlier *marks = lab_arena_alloc(arena, n, sizeof *marks);
    for (size_t i = 0; i < n; i++) {
        size_t first = i > WINDOW / 2 ? i - WINDOW / 2 : 0, last = n - WINDOW;
        medians[i] = lab_stats_median(values + (first < last ? first : last), WINDOW);
        away[i] = values[i] - medians[i];
    }
    lab_stats_tukey(away, n, marks);
    for (size_t i = 0; i < n; i++)
        if (marks[i] != LAB_OUTLIER_SEVERE || fabs(away[i]) < LEAST * medians[i])
            medians[i] = values[i];
    return medians;
}

static void find_drift(struct lab_rate_series *series, const double *values, const double *ends_s,
                       struct lab_arena *arena) {
    const double *steady = without_single(values, series->count, arena);
    struct blocks blocks = make_blocks(steady, ends_s, series->count, TREND_BLOCKS, arena);
    struct lab_trend_effect slope = lab_trend_slope(&blocks.trend, CONFIDENCE);
    series->drift = expm1(slope.value * series->duration_s);
}

/* --- changes --- */

struct segments {
    const struct blocks *blocks;
    size_t *starts; /* of all segments but the first */
    size_t count;
    double sure;
    bool uncertain; /* one was taken out though its values are apart: they wander too much */
};

static double level(const struct segments *segments, size_t number) {
    size_t first = number > 0 ? segments->starts[number - 1] : 0;
    size_t end = number < segments->count ? segments->starts[number] : segments->blocks->count;
    return lab_stats_median(segments->blocks->median_s + first, end - first);
}

static struct lab_trend_effect step(const struct segments *segments, size_t change) {
    return lab_trend_step(&segments->blocks->trend, segments->starts, segments->count, change,
                          segments->sure, segments->blocks->count);
}

/* By how much the change is larger than LEAST for certain; below 0: it isn't. Levels that are too
 * close come last of all, and so do those that single slow iterations make. */
static double margin(const struct segments *segments, size_t change) {
    double size = log(level(segments, change + 1) / level(segments, change));
    if (fabs(size) < log1p(LEAST))
        return fabs(size) - 1e6;
    struct lab_trend_effect effect = step(segments, change);
    if (!(effect.low <= size && size <= effect.high))
        return -1e3;
    return fmax(effect.low, -effect.high) - log1p(LEAST);
}

/* Takes out the least certain change, until all are. */
static void drop_uncertain(struct segments *segments) {
    while (segments->count > 0) {
        double weakest = INFINITY;
        size_t which = 0;
        for (size_t i = 0; i < segments->count; i++) {
            double of_change = margin(segments, i);
            if (of_change < weakest) {
                weakest = of_change;
                which = i;
            }
        }
        if (weakest >= 0)
            return;
        segments->uncertain |= weakest > NEAR;
        memmove(segments->starts + which, segments->starts + which + 1,
                (segments->count - which - 1) * sizeof *segments->starts);
        segments->count--;
    }
}

static struct lab_rate_series_change make_change(const struct lab_rate_series *series,
                                                 const struct segments *segments, size_t number,
                                                 double at_s, struct lab_arena *arena) {
    struct lab_trend_effect effect = step(segments, number);
    struct lab_rate_series_change change = {.run = series->name,
                                            .at_s = at_s,
                                            .at = lab_words_time(at_s, arena),
                                            .before_s = level(segments, number),
                                            .after_s = level(segments, number + 1),
                                            .claim = lab_claim_none,
                                            .clock_before = NAN,
                                            .clock_after = NAN};
    struct lab_claim *claim = &change.claim;
    *claim = lab_claim_named(*claim, "stability.change",
                             lab_arena_printf(arena, "%s, from %s on", series->name, change.at),
                             "before", "iteration time");
    claim->effect = change.after_s / change.before_s - 1;
    claim->low = expm1(effect.low);
    claim->high = expm1(effect.high);
    claim->confidence = segments->sure;
    claim->n = 1;
    claim->p = effect.p;
    claim->verdict = LAB_CLAIM_YES;
    return change;
}

static void find_changes(struct lab_rate_series *series, const struct blocks *blocks,
                         const double *ends_s, double sure, struct lab_arena *arena) {
    size_t segment = blocks->count / SEGMENT_SHARE;
    struct lab_changes_options options = {.cost = LAB_CHANGES_MEAN_VARIANCE,
                                          .segment_min =
                                              segment > SEGMENT_LEAST ? segment : SEGMENT_LEAST};
    struct segments segments = {.blocks = blocks, .sure = sure};
    segments.starts = lab_arena_alloc(arena, blocks->count + 1, sizeof *segments.starts);
    if (!lab_changes_find(blocks->median_s, blocks->count, &options, segments.starts,
                          &segments.count))
        return;
    drop_uncertain(&segments);
    series->uncertain = segments.uncertain && segments.count == 0;
    series->steady =
        lab_changes_classify(blocks->median_s, blocks->count, segments.starts, segments.count)
            .steady;
    if (series->steady == LAB_STEADY_FLAT) /* levels differ by less than iterations vary */
        segments.count = 0;
    for (size_t i = 0; i < segments.count; i++)
        LAB_ADD(series->changes, series->change_count, arena) =
            make_change(series, &segments, i, ends_s[segments.starts[i] * blocks->size - 1], arena);
}

/* --- throttling --- */

static double flag_s(const struct lab_track *track, uint64_t bits, int64_t from_ns,
                     int64_t until_ns) {
    return lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, bits, from_ns, until_ns);
}

static void find_throttling(struct lab_rate_series *series, const struct lab_track *track) {
    int64_t from_ns = series->rank->iterations[0].end_ns;
    int64_t until_ns = series->rank->iterations[series->rank->iteration_count - 1].end_ns;
    double most_s = 0;
    series->throttled_s = flag_s(track, lab_clock_harmful(UINT64_MAX), from_ns, until_ns);
    for (int i = 0; lab_clock_reasons[i].bit; i++) {
        double throttled_s = flag_s(track, lab_clock_reasons[i].bit, from_ns, until_ns);
        if (!lab_clock_reasons[i].harmful || !(throttled_s > most_s))
            continue;
        most_s = throttled_s;
        series->throttled_by = lab_clock_reasons[i].words;
    }
}

/* Without samples, from what the run said of itself: the worst reason's time, of all its ranks. */
static void read_throttling(struct lab_rate_series *series) {
    const struct lab_result *result = series->run->result;
    for (int i = 0; i < result->throttled_s.count; i++) {
        const struct lab_result_throttle *throttle = &result->throttled_s.items[i];
        double seconds = isnan(throttle->seconds) ? 0 : throttle->seconds;
        if (isnan(series->throttled_s) || seconds > series->throttled_s)
            series->throttled_s = seconds;
        for (int r = 0; seconds > 0 && lab_clock_reasons[r].bit; r++)
            if (seconds == series->throttled_s &&
                lab_str_equal(lab_clock_reasons[r].name, throttle->reason))
                series->throttled_by = lab_clock_reasons[r].words;
    }
}

/* On both sides of each change, up to the neighbouring ones. */
static void explain_changes(struct lab_rate_series *series, const struct lab_track *track) {
    int64_t start_ns = series->rank->iterations[0].end_ns;
    for (int i = 0; i < series->change_count; i++) {
        struct lab_rate_series_change *change = &series->changes[i];
        double end_s = i + 1 < series->change_count ? change[1].at_s : series->duration_s;
        int64_t at_ns = start_ns + (int64_t)(1e9 * change->at_s),
                from_ns = i > 0 ? start_ns + (int64_t)(1e9 * change[-1].at_s) : start_ns,
                until_ns = start_ns + (int64_t)(1e9 * end_s);
        double before_ns = (double)(at_ns - from_ns), after_ns = (double)(until_ns - at_ns),
               most = THROTTLED;
        change->clock_before = lab_track_between(track, LAB_METRIC_SM_CLOCK, from_ns, at_ns).mean;
        change->clock_after = lab_track_between(track, LAB_METRIC_SM_CLOCK, at_ns, until_ns).mean;
        for (int r = 0; lab_clock_reasons[r].bit; r++) {
            uint64_t bit = lab_clock_reasons[r].bit;
            double more = 1e9 * flag_s(track, bit, at_ns, until_ns) / after_ns -
                          1e9 * flag_s(track, bit, from_ns, at_ns) / before_ns;
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

static void look_at(struct lab_rate_series *series, double sure, struct lab_arena *arena) {
    LAB_AUTO(arena, scratch);
    const struct lab_span *spans = lab_study_spans(series->rank, &scratch, &series->count);
    const double *values = lab_study_intervals(series->rank, &scratch, &series->count);
    if (series->count == 0)
        return;
    const double *ends_s = find_ends(series->rank, spans, series->count, &scratch);
    series->duration_s = ends_s[series->count - 1];
    series->median_s = lab_stats_median(values, series->count);
    if (series->median_s > 0) {
        if (series->count >= P99_LEAST)
            series->p99 = lab_stats_quantile(values, series->count, 0.99) / series->median_s;
        series->longest = lab_stats_quantile(values, series->count, 1) / series->median_s;
    }
    if (series->count >= LAB_RATE_SERIES_LEAST && series->median_s > 0) {
        struct blocks blocks = make_blocks(values, ends_s, series->count, BLOCKS_MAX, &scratch);
        find_drift(series, values, ends_s, &scratch);
        find_changes(series, &blocks, ends_s, sure, arena);
    }
    struct lab_points points =
        lab_points_thin(ends_s, values, series->count, LAB_TIMELINE_POINTS, 0, arena);
    series->shown_x_s = points.x;
    series->shown_y_s = points.y;
    series->shown_count = points.count;
}

struct lab_rate_series lab_rate_series_make(const struct lab_study_run *run,
                                            const struct lab_study_rank *rank, int runs,
                                            struct lab_arena *arena) {
    struct lab_rate_series series = {.run = run,
                                     .rank = rank,
                                     .name = run->run->id,
                                     .duration_s = NAN,
                                     .median_s = NAN,
                                     .p99 = NAN,
                                     .longest = NAN,
                                     .drift = NAN,
                                     .throttled_s = NAN};
    int gpu = lab_resource_gpu(rank);
    const struct lab_track *track =
        run->recording && gpu >= 0 ? lab_recording_gpu(run->recording, gpu) : NULL;
    if (run->rank_count > 1)
        series.name = lab_arena_printf(arena, "%s on %s", series.name,
                                       lab_study_device_title(rank->device, arena));
    look_at(&series, fmax(CHANGE_SURE, 1 - (1 - CONFIDENCE) / runs), arena);
    if (track && series.count > 0) {
        find_throttling(&series, track);
        explain_changes(&series, track);
    }
    if (isnan(series.throttled_s))
        read_throttling(&series);
    return series;
}
