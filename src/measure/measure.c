/*
 * measure.c: the loop. Two phases, warm-up and measurement, of rounds; in a round every subject
 * that still needs it runs one stretch, in an order drawn anew, and is judged by what it left.
 *
 * Warm-up is dropped altogether, even what came after the point where it ended: a stretch that
 * helped to decide that a series is steady is no fair sample of it.
 */
#include "measure/measure_internal.h"

#include "base/random.h"
#include "model/trace.h"
#include "vendor/nvtx.h"

#include <math.h>
#include <string.h>

/* Warm-up may take this share of the limit: the larger part must remain for what counts. */
#define WARMUP_SHARE (1.0 / 3)
/* Values that the warm-up test needs before it is asked; and the most it gets, as means of
 * neighbours: with short iterations the course of time matters, not each of them. */
#define WARMUP_VALUES_LEAST 10
#define WARMUP_VALUES_MOST  512

/* A pipeline of a few iterations is full and stays so for most of ten. */
#define STRETCH_LEAST 10
/* Ten long iterations may be too long; no stretch should take a larger share of the limit, but two
 * iterations are the least that have an interval. */
#define STRETCH_LIMIT_SHARE 0.1
#define STRETCH_LONG_LEAST  2
/* A first guess may be far off, so stretches grow stepwise. */
#define STRETCH_GROWTH 10
#define STRETCH_MOST   100000

/* All records are kept, 64 bytes each. After a million the median is known as well as it ever will
 * be; what it still does is drift. */
#define ITERATIONS_MOST 1000000

/* Sorting all values after every stretch would cost more than the stretches; after every tenth more
 * of them it doesn't. */
#define CHECK_GROWTH 1.1

struct values {
    double *s;
    size_t count, capacity;
};

struct track { /* a subject on its way */
    const struct lab_subject *subject;
    struct lab_iteration *records; /* measured; during the warm-up, the last stretch's */
    size_t count, capacity;
    int *ends;
    int end_count;
    int *round_ends;
    int round_count;
    double clock_min_mhz, clock_max_mhz;

    struct values warm_intervals, warm_latencies;
    int64_t warmup_iterations;
    double warmup_s;
    bool warm, steady;

    double first_s;
    int64_t chunk;      /* of the last round, before the limit cut it */
    double iteration_s; /* of the last stretch, by the clock; NaN = nothing ran yet */
    double measured_s;
    size_t checked; /* count when precision was computed */
    double median_s, precision;
    bool enough, precise;
};

struct loop {
    const struct lab_measure_plan *plan;
    const struct lab_clock *clock;
    struct track *tracks;
    int count;
    int *order;
    uint64_t drawn; /* random numbers used for orders */
    int64_t start_ns, phase_start_ns;
    enum lab_measure_phase phase;
    double fraction;
    bool stopped;
};

static double seconds_since(const struct loop *loop, int64_t time_ns) {
    return (double)(lab_clock_now(loop->clock) - time_ns) * 1e-9;
}

static bool counted(const struct loop *loop) {
    return loop->plan->iterations > 0;
}

static bool timed(const struct loop *loop) {
    return !counted(loop) && loop->plan->duration_s > 0;
}

/* How much time the measuring may still take. */
static double left_to_measure_s(const struct loop *loop) {
    if (counted(loop))
        return INFINITY;
    if (timed(loop))
        return loop->plan->duration_s - seconds_since(loop, loop->phase_start_ns);
    return loop->plan->limit_s - seconds_since(loop, loop->start_ns);
}

static void add_values(struct values *values, const double *s, size_t count) {
    size_t need = values->count + count;
    if (need > values->capacity) {
        values->capacity = 2 * need;
        values->s = lab_mem_resize(values->s, values->capacity, sizeof *values->s);
    }
    if (count > 0)
        memcpy(values->s + values->count, s, count * sizeof *s);
    values->count = need;
}

/* Fisher and Yates. */
static void shuffle(struct loop *loop) {
    for (int i = 0; i < loop->count; i++)
        loop->order[i] = i;
    for (int i = loop->count - 1; i > 0; i--) {
        int j = (int)lab_random_below(loop->plan->seed, loop->drawn++, (uint64_t)i + 1);
        int keep = loop->order[i];
        loop->order[i] = loop->order[j];
        loop->order[j] = keep;
    }
}

/* How many iterations the next stretch should have if time were no matter. */
static int64_t wanted_chunk(const struct loop *loop, const struct track *track) {
    if (loop->plan->chunk_iterations > 0)
        return loop->plan->chunk_iterations;
    if (isnan(track->iteration_s))
        return 1;
    double limit_s = timed(loop) ? loop->plan->duration_s : loop->plan->limit_s;
    double share_s = limit_s / loop->count * STRETCH_LIMIT_SHARE;
    double least = fmin(STRETCH_LEAST, floor(share_s / track->iteration_s));
    least = fmax(least, STRETCH_LONG_LEAST);
    double wanted = fmax(loop->plan->chunk_s / track->iteration_s, least);
    double most = fmin(STRETCH_MOST, (double)track->chunk * STRETCH_GROWTH);
    int64_t size = (int64_t)fmin(wanted, most);
    /* stretches of one length compare best: small changes aren't followed */
    bool near = 2 * size >= track->chunk && size <= 2 * track->chunk;
    return near && track->chunk > 1 ? track->chunk : size;
}

/* The next stretch within `left_s` and `left_count`; 0 = nothing more fits. */
static int next_chunk(const struct loop *loop, struct track *track, double left_s,
                      int64_t left_count, int *ret_size, struct lab_err *err) {
    const struct lab_measure_plan *plan = loop->plan;
    int64_t size = wanted_chunk(loop, track);
    if (plan->agree && plan->agree(plan->agree_state, size, &size, err) != 0)
        return lab_err_context(err, "%s", track->subject->name);
    track->chunk = size;
    if ((double)size * track->iteration_s > left_s)
        size = left_s < track->iteration_s ? 0 : (int64_t)(left_s / track->iteration_s);
    *ret_size = (int)(size < left_count ? size : left_count);
    return 0;
}

static int check_records(const struct lab_iteration *records, int count, struct lab_err *err) {
    for (int i = 0; i < count; i++) {
        if (records[i].end_ns < records[i].start_ns)
            return lab_err_set(err, LAB_ERR_WRONG,
                               "iteration %d of a chunk ends %lld ns before it starts", i,
                               (long long)(records[i].start_ns - records[i].end_ns));
    }
    return 0;
}

/* As the subject's `run`, or one by one where something comes before each. */
static int run_subject(const struct lab_subject *subject, int size, struct lab_iteration *records,
                       struct lab_err *err) {
    if (!subject->before)
        return subject->run(subject->state, size, records, err);
    for (int i = 0; i < size; i++)
        if (subject->before(subject->state, err) != 0 ||
            subject->run(subject->state, 1, &records[i], err) != 0)
            return -1;
    return 0;
}

static void watch_clock(const struct loop *loop, struct track *track) {
    double mhz = loop->plan->clock_mhz ? loop->plan->clock_mhz(loop->plan->clock_state) : 0;
    if (!(mhz > 0))
        return;
    track->clock_min_mhz = fmin(track->clock_min_mhz, mhz); /* fmin and fmax drop NaN */
    track->clock_max_mhz = fmax(track->clock_max_mhz, mhz);
}

/* Runs one stretch; its records lie behind the `count` kept so far, which stays as it is. */
static int run_chunk(struct loop *loop, struct track *track, int size, struct lab_err *err) {
    if (track->count + (size_t)size > track->capacity) {
        track->capacity = 2 * track->count + (size_t)size;
        track->records = lab_mem_resize(track->records, track->capacity, sizeof *track->records);
    }
    struct lab_iteration *records = track->records + track->count;
    memset(records, 0, (size_t)size * sizeof *records);
    int64_t before = lab_clock_now(loop->clock);
    bool warming = loop->phase == LAB_MEASURE_WARMUP;
    int depth = lab_nvtx_push("%s", warming ? LAB_TRACE_WARMUP : LAB_TRACE_WINDOW);
    int failed = run_subject(track->subject, size, records, err);
    lab_nvtx_pop_to(depth);
    if (failed || check_records(records, size, err) != 0)
        return lab_err_context(err, "%s", track->subject->name);
    double clocked_s = seconds_since(loop, before);
    double recorded_s = (double)(records[size - 1].end_ns - records[0].start_ns) * 1e-9;
    track->iteration_s = fmax(clocked_s, recorded_s) / size;
    if (isnan(track->first_s))
        track->first_s = (double)(records[0].end_ns - records[0].start_ns) * 1e-9;
    return 0;
}

static double warmup_budget_s(const struct loop *loop) {
    return loop->plan->limit_s * WARMUP_SHARE / loop->count;
}

/* Means of equal groups of neighbours, at most WARMUP_VALUES_MOST; a last, incomplete group
 * goes. */
static size_t condense(const struct values *values, double *ret) {
    size_t group = (values->count + WARMUP_VALUES_MOST - 1) / WARMUP_VALUES_MOST;
    size_t groups = group ? values->count / group : 0;
    for (size_t g = 0; g < groups; g++)
        ret[g] = lab_stats_mean(values->s + g * group, group);
    return groups;
}

static bool warmed_up(const struct track *track, size_t least) {
    const struct values *values =
        lab_measure_by_intervals(track->warm_intervals.count, track->warm_latencies.count)
            ? &track->warm_intervals
            : &track->warm_latencies;
    double condensed[WARMUP_VALUES_MOST];
    size_t count = condense(values, condensed);
    bool steady = false;
    if (count >= least)
        lab_stats_warmup(condensed, count, &steady);
    return steady;
}

static int warm_once(struct loop *loop, struct track *track, struct lab_err *err) {
    bool by_test = loop->plan->warmup_iterations < 0;
    double left_s = by_test ? warmup_budget_s(loop) - track->warmup_s : INFINITY;
    int64_t left_count =
        by_test ? INT32_MAX : loop->plan->warmup_iterations - track->warmup_iterations;
    int size = 0;
    if (next_chunk(loop, track, left_s, left_count, &size, err) != 0)
        return -1;
    if (size == 0) {
        /* few, long iterations: better judged by few than not at all */
        track->warm = true;
        track->steady = !by_test || warmed_up(track, 0);
        return 0;
    }
    if (run_chunk(loop, track, size, err) != 0)
        return -1;
    track->warmup_iterations += size;
    track->warmup_s += track->iteration_s * size;
    if (!by_test) {
        track->warm = track->warmup_iterations >= loop->plan->warmup_iterations;
        return 0;
    }
    LAB_AUTO_FREE double *series = lab_mem_resize(NULL, (size_t)size, sizeof *series);
    add_values(&track->warm_latencies, series,
               lab_measure_latencies(track->records, (size_t)size, series));
    if (!track->subject->before)
        add_values(&track->warm_intervals, series,
                   lab_measure_intervals(track->records, &size, 1, series));
    /* clocks take tens of milliseconds to rise: a whole stretch must have passed before it is asked
     * (or a clock that hardly moves have been read often enough) */
    if (track->warmup_s >= loop->plan->chunk_s || track->warmup_iterations >= STRETCH_MOST)
        track->warm = track->steady = warmed_up(track, WARMUP_VALUES_LEAST);
    return 0;
}

static int64_t max_iterations(const struct loop *loop) {
    return loop->plan->max_iterations > 0 ? loop->plan->max_iterations : ITERATIONS_MOST;
}

/* Whether it may stop as soon as it is precise. */
static bool enough(const struct loop *loop, const struct track *track) {
    return (int64_t)track->count >= max_iterations(loop) ||
           ((int64_t)track->count >= loop->plan->min_iterations &&
            track->measured_s >= loop->plan->min_time_s);
}

/* Median and precision so far, by the interval that will be reported. */
static void check_precision(const struct loop *loop, struct track *track) {
    track->checked = track->count;
    LAB_AUTO_FREE double *x = lab_mem_resize(NULL, 2 * track->count, sizeof *x);
    double *sorted = x + track->count;
    size_t n = lab_measure_intervals(track->records, track->ends, track->end_count, x);
    if (!lab_measure_by_intervals(n, track->count))
        n = lab_measure_latencies(track->records, track->count, x);
    lab_stats_sort(x, n, sorted);
    double effective = lab_stats_effective_size(x, n), confidence = loop->plan->confidence;
    track->median_s = lab_stats_quantile_sorted(sorted, n, 0.5);
    struct lab_interval interval = lab_measure_interval_of(sorted, n, effective, confidence);
    track->precision = lab_measure_relative_width(interval, track->median_s);
    track->precise = enough(loop, track) && interval.confidence >= confidence &&
                     track->precision <= loop->plan->precision;
}

static bool done(const struct loop *loop, const struct track *track) {
    if (counted(loop))
        return (int64_t)track->count >= loop->plan->iterations;
    if (timed(loop)) /* what would not fit any more isn't begun */
        return left_to_measure_s(loop) < track->iteration_s;
    return track->precise;
}

/* What runs one by one is as many stretches: there are no intervals between its iterations. */
static void keep_stretch(struct track *track, int size) {
    int step = track->subject->before || track->subject->apart ? 1 : size;
    for (int i = 0; i < size; i += step) {
        const struct lab_iteration *chunk = track->records + track->count;
        track->measured_s += (double)(chunk[step - 1].end_ns - chunk[0].start_ns) * 1e-9;
        track->count += (size_t)step;
        LAB_PUSH(track->ends, track->end_count) = (int)track->count;
    }
    LAB_PUSH(track->round_ends, track->round_count) = (int)track->count;
}

/* `ret_ran` tells whether there was room for a stretch at all. */
static int measure_once(struct loop *loop, struct track *track, bool *ret_ran,
                        struct lab_err *err) {
    const struct lab_measure_plan *plan = loop->plan;
    int64_t most = counted(loop) ? plan->iterations : max_iterations(loop);
    int64_t left_count = most - (int64_t)track->count;
    int size = 0;
    if (next_chunk(loop, track, left_to_measure_s(loop), left_count, &size, err) != 0)
        return -1;
    if (size <= 0 && track->count == 0)
        size = 1; /* whatever the warm-up left of the limit, something is measured */
    *ret_ran = size > 0;
    if (size <= 0)
        return 0;
    if (run_chunk(loop, track, size, err) != 0)
        return -1;
    keep_stretch(track, size);
    watch_clock(loop, track);
    bool was_enough = track->enough;
    track->enough = enough(loop, track);
    if ((double)track->count >= CHECK_GROWTH * (double)track->checked ||
        track->enough != was_enough)
        check_precision(loop, track);
    return 0;
}

/* How far a subject is in this phase, 0 to 1. */
static double track_fraction(const struct loop *loop, const struct track *track) {
    const struct lab_measure_plan *plan = loop->plan;
    if (loop->phase == LAB_MEASURE_WARMUP) {
        if (track->warm)
            return 1;
        return plan->warmup_iterations >= 0
                   ? (double)track->warmup_iterations / (double)plan->warmup_iterations
                   : fmin(1, track->warmup_s / warmup_budget_s(loop));
    }
    if (counted(loop))
        return (double)track->count / (double)plan->iterations;
    if (timed(loop)) /* the clock tells, for all of them alike */
        return fmin(1, seconds_since(loop, loop->phase_start_ns) / plan->duration_s);
    double fraction = fmin((double)track->count / (double)plan->min_iterations,
                           track->measured_s / plan->min_time_s);
    if (!track->precise) /* widths shrink with the root of the time */
        fraction = fmin(fraction, pow(plan->precision / track->precision, 2));
    return isnan(fraction) ? 0 : fmin(1, fraction);
}

/* Tells the caller where it stands; notes whether they want it stopped. */
static void report_progress(struct loop *loop, const struct track *track) {
    const struct lab_measure_plan *plan = loop->plan;
    if (!plan->progress)
        return;
    double fraction = 0, left_s = NAN, elapsed_s = seconds_since(loop, loop->phase_start_ns);
    for (int i = 0; i < loop->count; i++)
        fraction += track_fraction(loop, &loop->tracks[i]) / loop->count;
    double limit_left_s = left_to_measure_s(loop);
    bool measuring = loop->phase == LAB_MEASURE_MEASURE;
    if (measuring && !counted(loop))
        fraction = fmax(fraction, elapsed_s / (elapsed_s + fmax(limit_left_s, 0)));
    loop->fraction = fmin(1, fmax(loop->fraction, fraction));
    /* a warm-up by test may end at any time */
    if (loop->fraction > 0 && (measuring || plan->warmup_iterations >= 0))
        left_s = elapsed_s * (1 - loop->fraction) / loop->fraction;
    if (measuring && !counted(loop))
        left_s = fmin(left_s, fmax(limit_left_s, 0));
    struct lab_measure_progress progress = {
        .phase = loop->phase,
        .name = track->subject->name,
        .fraction = loop->fraction,
        .left_s = left_s,
        .median_s = track->median_s,
        .precision = track->precision,
        .iterations = measuring ? (int64_t)track->count : track->warmup_iterations,
    };
    loop->stopped = plan->progress(&progress, plan->progress_state);
}

static void begin_phase(struct loop *loop, enum lab_measure_phase phase) {
    loop->phase = phase;
    loop->phase_start_ns = lab_clock_now(loop->clock);
    loop->fraction = 0;
}

static int warm_up(struct loop *loop, struct lab_err *err) {
    begin_phase(loop, LAB_MEASURE_WARMUP);
    bool ran = loop->plan->warmup_iterations != 0;
    while (ran && !loop->stopped) {
        ran = false;
        shuffle(loop);
        for (int i = 0; i < loop->count && !loop->stopped; i++) {
            struct track *track = &loop->tracks[loop->order[i]];
            if (track->warm)
                continue;
            if (warm_once(loop, track, err) != 0)
                return -1;
            report_progress(loop, track);
            ran = true;
        }
    }
    return 0;
}

static bool all_done(const struct loop *loop) {
    for (int i = 0; i < loop->count; i++) {
        if (!done(loop, &loop->tracks[i]))
            return false;
    }
    return true;
}

/* Brings every subject's precision up to date: it may be a few stretches old. */
static void check_all(const struct loop *loop) {
    for (int i = 0; i < loop->count; i++) {
        struct track *track = &loop->tracks[i];
        if (track->checked < track->count)
            check_precision(loop, track);
    }
}

static int measure(struct loop *loop, struct lab_err *err) {
    begin_phase(loop, LAB_MEASURE_MEASURE);
    bool ran = true;
    while (ran && !loop->stopped) {
        ran = false;
        shuffle(loop);
        for (int i = 0; i < loop->count && !loop->stopped; i++) {
            struct track *track = &loop->tracks[loop->order[i]];
            bool this_ran;
            if (measure_once(loop, track, &this_ran, err) != 0)
                return -1;
            if (this_ran)
                report_progress(loop, track);
            ran = ran || this_ran;
        }
        if (all_done(loop) || !ran || loop->stopped)
            check_all(loop);
        if (all_done(loop))
            break;
    }
    return 0;
}

static void fill_series(const struct loop *loop, const struct track *track,
                        struct lab_measurement *m) {
    double confidence = loop->plan->confidence;
    LAB_AUTO_FREE double *x = lab_mem_resize(NULL, track->count, sizeof *x);
    size_t n = lab_measure_latencies(m->iterations, m->count, x);
    m->latency = lab_summarize(x, n, confidence);
    double drift = lab_measure_drift(x, n);
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
        n = lab_measure_stages(m->iterations, m->count, (enum lab_stage)stage, x);
        m->stages[stage] = lab_summarize(x, n, confidence);
    }
    n = lab_measure_intervals(m->iterations, m->chunk_ends, m->chunk_count, x);
    m->interval = lab_summarize(x, n, confidence);
    if (lab_measure_by_intervals(n, m->count))
        drift = lab_measure_drift(x, n);
    /* The warm-up's test is strict about spread and seldom passed by a few noisy values; what was
     * measured, once it is enough to show a drift, has the last word. */
    m->steady = drift == 0 && (track->steady || m->count >= LAB_MEASURE_DRIFT_VALUES);
}

static struct lab_measurement finish(const struct loop *loop, const struct track *track,
                                     const struct lab_conditions *conditions,
                                     struct lab_arena *arena) {
    struct lab_measurement m = {
        .name = lab_arena_strdup(arena, track->subject->name),
        .count = track->count,
        .chunk_count = track->end_count,
        .round_count = track->round_count,
        .clock_min_mhz = track->clock_min_mhz,
        .clock_max_mhz = track->clock_max_mhz,
        .warmup_iterations = track->warmup_iterations,
        .warmup_s = track->warmup_s,
        .first_s = track->first_s,
        .wall_s = track->measured_s,
        .simulated = loop->clock != lab_clock_system(),
        .conditions = *conditions,
    };
    m.iterations = lab_arena_copy(arena, track->records, m.count, sizeof *m.iterations);
    m.chunk_ends = lab_arena_copy(arena, track->ends, (size_t)m.chunk_count, sizeof *m.chunk_ends);
    m.round_ends =
        lab_arena_copy(arena, track->round_ends, (size_t)m.round_count, sizeof *m.round_ends);
    fill_series(loop, track, &m);
    m.overlap = lab_measure_overlap(m.iterations, m.count);
    const struct lab_summary *primary = lab_measure_primary(&m);
    m.precision = lab_measure_relative_width(primary->median_interval, primary->median);
    if (done(loop, track))
        m.stop = counted(loop) || timed(loop) ? LAB_MEASURE_COUNTED : LAB_MEASURE_PRECISE;
    else
        m.stop = loop->stopped ? LAB_MEASURE_STOPPED : LAB_MEASURE_LIMIT;
    m.warnings = lab_measure_warn(&m);
    return m;
}

static void release(struct loop *loop) {
    for (int i = 0; i < loop->count; i++) {
        struct track *track = &loop->tracks[i];
        lab_mem_free(track->records);
        lab_mem_free(track->ends);
        lab_mem_free(track->round_ends);
        lab_mem_free(track->warm_intervals.s);
        lab_mem_free(track->warm_latencies.s);
    }
    lab_mem_free(loop->tracks);
    lab_mem_free(loop->order);
}

int lab_measure(const struct lab_measure_plan *plan, const struct lab_subject *subjects, int count,
                struct lab_arena *arena, struct lab_measurement *ret, struct lab_err *err) {
    struct loop loop = {
        .plan = plan,
        .clock = plan->clock ? plan->clock : lab_clock_system(),
        .tracks = lab_mem_alloc((size_t)count, sizeof *loop.tracks),
        .count = count,
        .order = lab_mem_alloc((size_t)count, sizeof *loop.order),
    };
    for (int i = 0; i < count; i++)
        loop.tracks[i] = (struct track){.subject = &subjects[i],
                                        .steady = true,
                                        .first_s = NAN,
                                        .clock_min_mhz = NAN,
                                        .clock_max_mhz = NAN,
                                        .chunk = 1,
                                        .iteration_s = NAN,
                                        .median_s = NAN,
                                        .precision = NAN};
    bool real = loop.clock == lab_clock_system(); /* another clock's time isn't this machine's */
    struct lab_conditions conditions = {NAN, NAN, NAN, NAN, NAN};
    struct lab_conditions_reading before = {0};
    if (real)
        before = lab_conditions_read(plan->parent);
    lab_nvtx_is_on(); /* loads what it needs, if anything: not within the first stretch */
    loop.start_ns = lab_clock_now(loop.clock);
    int result = warm_up(&loop, err);
    if (result == 0 && !loop.stopped)
        result = measure(&loop, err);
    if (result == 0 && real) {
        struct lab_conditions_reading after = lab_conditions_read(plan->parent);
        conditions = lab_conditions_between(&before, &after);
        if (plan->parent >
            0) /* a minute's mean: of the runs before this one, and of other studies */
            conditions.load_before = NAN;
    }
    for (int i = 0; i < count && result == 0; i++)
        ret[i] = finish(&loop, &loop.tracks[i], &conditions, arena);
    release(&loop);
    return result;
}
