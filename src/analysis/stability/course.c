/*
 * course.c: drift, changes and what held the device back, from iterations and samples.
 *
 * Long series are taken as medians of blocks: single slow iterations are outliers, not changes. Pace
 * wanders by itself, and what it did a while ago it still remembers: how long, the run's own times have to
 * say, as far as they can (stats/wander.h). A drift or a change for good is larger than what is asked for by
 * its whole interval, under every memory that the run leaves plausible; of a change that interval holds for
 * all the places where it could have been. So a short run can show a large change at once, but not a slow one.
 */
#include "analysis/stability/course.h"

#include "analysis/analysis_resource.h"
#include "analysis/analysis_timeline.h"
#include "base/str.h"
#include "stats/wander.h"

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
#define BLIND         0.1 /* half the interval of a drift: a run that leaves so much open tells nothing */

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

static void find_drift(struct lab_course *course, const double *values, const double *ends_s) {
    struct blocks blocks = make_blocks(values, ends_s, course->count, TREND_BLOCKS);
    double *logs = take_logs(&blocks);
    struct lab_wander_series series = {blocks.middle_s, logs, blocks.count};
    struct lab_wander_effect slope = lab_wander_slope(&series, CONFIDENCE);
    course->drift = expm1(slope.value * course->duration_s);
    course->drift_low = expm1(slope.low * course->duration_s);
    course->drift_high = expm1(slope.high * course->duration_s);
    course->drift_p = slope.p;
    course->memory_s = slope.memory_s;
    course->blind = (slope.high - slope.low) / 2 * course->duration_s > BLIND;
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
static double certain(const struct segments *segments, const struct lab_wander_series *series,
                      size_t change, double least) {
    struct lab_wander_effect step = lab_wander_step(series, segments->starts, segments->start_count,
                                                    change, CHANGE_SURE, segments->count);
    return fmax(step.low, -step.high) - log1p(least);
}

/* Takes out the least certain change, until all are. */
static void drop_uncertain(struct segments *segments, const struct blocks *blocks, double least) {
    double *logs = take_logs(blocks);
    struct lab_wander_series series = {blocks->middle_s, logs, blocks->count};
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

static void find_changes(struct lab_course *course, const double *values, const double *ends_s,
                         double least, struct lab_arena *arena) {
    struct blocks blocks = make_blocks(values, ends_s, course->count, BLOCKS_MAX);
    size_t segment = blocks.count / SEGMENT_SHARE;
    struct lab_changes_options options = {.cost = LAB_CHANGES_MEAN_VARIANCE,
                                          .segment_min =
                                              segment > SEGMENT_LEAST ? segment : SEGMENT_LEAST};
    struct segments segments = {.values = blocks.median_s, .count = blocks.count};
    segments.starts = lab_mem_resize(NULL, blocks.count + 1, sizeof *segments.starts);
    if (lab_changes_find(blocks.median_s, blocks.count, &options, segments.starts,
                         &segments.start_count)) {
        size_t before;
        do { /* what is taken out changes the levels beside it: those that are left have to be both */
            before = segments.start_count;
            drop_small(&segments, least);
            drop_uncertain(&segments, &blocks, least);
        } while (segments.start_count > 0 && segments.start_count < before);
        struct lab_steadiness steadiness = lab_changes_classify(
            blocks.median_s, blocks.count, segments.starts, segments.start_count);
        course->steady = steadiness.steady;
        if (course->steady == LAB_STEADY_FLAT) /* levels differ by less than iterations vary */
            segments.start_count = 0;
        if (steadiness.from > 0 && steadiness.from < blocks.count)
            course->steady_from_s = ends_s[steadiness.from * blocks.size - 1];
        course->changes = lab_arena_alloc(arena, segments.start_count + 1, sizeof *course->changes);
        for (size_t i = 0; i < segments.start_count; i++)
            course->changes[course->change_count++] =
                (struct lab_course_change){.at_s = ends_s[segments.starts[i] * blocks.size - 1],
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

static uint64_t harmful_bits(void) {
    uint64_t bits = 0;
    for (int i = 0; lab_clock_reasons[i].bit; i++)
        bits |= lab_clock_reasons[i].harmful ? lab_clock_reasons[i].bit : 0;
    return bits;
}

static void find_held(struct lab_course *course, const struct lab_track *track) {
    int64_t from_ns = course->rank->iterations[0].end_ns;
    int64_t until_ns = course->rank->iterations[course->rank->iteration_count - 1].end_ns;
    double most_s = 0;
    course->held_s =
        lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, harmful_bits(), from_ns, until_ns);
    for (int i = 0; lab_clock_reasons[i].bit; i++) {
        double held_s = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, lab_clock_reasons[i].bit,
                                         from_ns, until_ns);
        if (!lab_clock_reasons[i].harmful || !(held_s > most_s))
            continue;
        most_s = held_s;
        course->held_why = lab_clock_reasons[i].words;
    }
}

/* Without samples, from what the run said of itself: the worst reason's time, of all its ranks. */
static void find_held_in_result(struct lab_course *course) {
    const struct lab_value *map = lab_value_get(course->run->result, "throttled_s");
    for (int i = 0; map && map->type == LAB_VALUE_MAP && i < map->count; i++) {
        const struct lab_value *item = map->items[i];
        double held_s = item->type == LAB_VALUE_FLOAT ? item->number
                        : item->type == LAB_VALUE_INT ? (double)item->integer
                                                      : 0;
        if (isnan(course->held_s) || held_s > course->held_s)
            course->held_s = held_s;
        for (int r = 0; held_s > 0 && lab_clock_reasons[r].bit; r++)
            if (held_s == course->held_s && lab_str_equal(lab_clock_reasons[r].name, map->keys[i]))
                course->held_why = lab_clock_reasons[r].words;
    }
}

static double held_share(const struct lab_track *track, uint64_t bits, int64_t from_ns,
                         int64_t until_ns) {
    double held_s = lab_track_flag_s(track, LAB_METRIC_CLOCK_REASONS, bits, from_ns, until_ns);
    return held_s / (1e-9 * (double)(until_ns - from_ns));
}

/* On both sides of each change, up to the neighbouring ones. */
static void explain_changes(struct lab_course *course, const struct lab_track *track) {
    int64_t start_ns = course->rank->iterations[0].end_ns;
    int64_t end_ns = course->rank->iterations[course->rank->iteration_count - 1].end_ns;
    for (int i = 0; i < course->change_count; i++) {
        struct lab_course_change *change = &course->changes[i];
        int64_t at_ns = start_ns + (int64_t)(1e9 * change->at_s);
        int64_t from_ns = i > 0 ? start_ns + (int64_t)(1e9 * change[-1].at_s) : start_ns;
        int64_t until_ns =
            i + 1 < course->change_count ? start_ns + (int64_t)(1e9 * change[1].at_s) : end_ns;
        double most = HELD_MORE;
        change->clock_before = lab_track_between(track, LAB_METRIC_SM_CLOCK, from_ns, at_ns).mean;
        change->clock_after = lab_track_between(track, LAB_METRIC_SM_CLOCK, at_ns, until_ns).mean;
        change->held_before = held_share(track, harmful_bits(), from_ns, at_ns);
        change->held_after = held_share(track, harmful_bits(), at_ns, until_ns);
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

/* When each of the times ended, since the first end: by the clock, since samples go by it; as if they
 * followed each other where they don't. */
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

static const char *make_name(const struct lab_course *course, struct lab_arena *arena) {
    return course->run->rank_count > 1
               ? lab_arena_printf(arena, "%s on %s", course->run->run->id, course->device)
               : course->run->run->id;
}

void lab_course_make(const struct lab_study_run *run, const struct lab_study_rank *rank,
                     double least, struct lab_arena *arena, struct lab_course *ret_course) {
    struct lab_course course = {.run = run,
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
    struct lab_arena scratch;
    lab_arena_init(&scratch);
    course.name = make_name(&course, arena);
    const struct lab_span *spans = lab_study_spans(rank, &scratch, &course.count);
    const double *values = lab_study_intervals(rank, &scratch, &course.count);
    int gpu = lab_resource_gpu(rank);
    const struct lab_track *track =
        run->recording && gpu >= 0 ? lab_recording_gpu(run->recording, gpu) : NULL;
    if (course.count > 0) {
        const double *ends_s = find_ends(rank, spans, course.count, &scratch);
        course.duration_s = ends_s[course.count - 1];
        course.median_s = lab_stats_median(values, course.count);
        if (course.count >= VALUES_LEAST && course.median_s > 0) {
            find_drift(&course, values, ends_s);
            find_changes(&course, values, ends_s, least, arena);
        }
        struct lab_points points =
            lab_points_thin(ends_s, values, course.count, LAB_TIMELINE_POINTS, 0, arena);
        course.shown_x_s = points.x;
        course.shown_y_s = points.y;
        course.shown_count = points.count;
    }
    if (track && course.count > 0) {
        find_held(&course, track);
        explain_changes(&course, track);
    }
    if (isnan(course.held_s))
        find_held_in_result(&course);
    lab_arena_release(&scratch);
    *ret_course = course;
}

void lab_courses_adjust(struct lab_course *courses, int count, double least) {
    double *p = lab_mem_resize(NULL, (size_t)count + 1, sizeof *p);
    for (int i = 0; i < count; i++)
        p[i] = courses[i].drift_p;
    lab_stats_adjust_bh(p, (size_t)count, p);
    for (int i = 0; i < count; i++) {
        struct lab_course *course = &courses[i];
        course->drift_p_adjusted = p[i];
        course->drifts =
            p[i] <= LEVEL && (course->drift_low >= least || course->drift_high <= -least);
    }
    lab_mem_free(p);
}

bool lab_course_is_steady(const struct lab_course *course) {
    bool held = course->held_s > HELD_HARMLESS * course->duration_s;
    return course->steady != LAB_STEADY_SLOWDOWN && course->steady != LAB_STEADY_NONE &&
           !course->drifts && !held;
}
