/*
 * tune_race.c: configurations timed side by side. Each iteration stands alone, behind a fill of
 * more memory than the caches hold, so that none profits from what it or another left there; rounds
 * are the measuring loop's (measure.h).
 */
#include "tune/tune_internal.h"

#include <math.h>
#include <stdlib.h>

#define FINALISTS        4 /* beside the default, where it isn't one of them */
#define RUNG_ITERATIONS  3 /* of each, in the first */
#define RUNG_MOST        48
#define NARROW_SHARE     0.6 /* of the budget: the finals need the rest */
#define EXHAUSTIVE_LEAST 5

#define FINAL_PRECISION  0.005
#define FINAL_ITERATIONS 20 /* at least, of each */
#define FINAL_MOST       400
#define FINAL_LIMIT_S    0.5 /* at least, whatever is left of the budget */

/* --- empty caches --- */

#define FLUSH_LEAST ((int64_t)16 << 20)
#define FLUSH_MOST  ((int64_t)512 << 20)
#define FLUSH_GPU   ((int64_t)192 << 20) /* no GPU has a larger cache */

/* Twice the largest cache there is. */
static int64_t flush_bytes(const struct lab_device *device) {
    int64_t largest = 0;
    if (!device->ref.cpus.count)
        return FLUSH_GPU;
    for (int i = 0; i < device->machine->cache_count; i++)
        if (device->machine->caches[i].size_bytes > largest)
            largest = device->machine->caches[i].size_bytes;
    int64_t bytes = 2 * largest;
    return bytes < FLUSH_LEAST ? FLUSH_LEAST : bytes > FLUSH_MOST ? FLUSH_MOST : bytes;
}

int tune_flusher_open(struct tuner *tuner, struct lab_err *err) {
    struct flusher *flusher = &tuner->flusher;
    struct lab_device *device = tuner->session->device;
    int64_t bytes = flush_bytes(device);
    if (device->ref.simulated)
        return 0;
    if (lab_stream_open(device, LAB_STREAM_COMPUTE, &flusher->stream, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)bytes, &flusher->memory, err))
        return lab_err_context(err, "memory to empty the caches with");
    flusher->launch = (struct lab_launch){
        .op = LAB_OP_FILL,
        .out = lab_tensor_vector(flusher->memory.data, LAB_FP32, bytes / (int64_t)sizeof(float)),
        .value = 1.0f};
    return 0;
}

void tune_flusher_close(struct flusher *flusher) {
    lab_stream_close(flusher->stream);
    lab_buffer_close(&flusher->memory);
    *flusher = (struct flusher){0};
}

int tune_flush(void *state, struct lab_err *err) {
    struct tuner *tuner = state;
    struct flusher *flusher = &tuner->flusher;
    flusher->launch.value = -flusher->launch.value;
    return lab_launch(flusher->stream, &flusher->launch, err) ||
                   lab_stream_sync(flusher->stream, err)
               ? -1
               : 0;
}

/* --- one race --- */

struct heat {        /* the measuring loop's progress in ours */
    double until_s;  /* elapsed: it ends then, finished or not; INFINITY = when it is finished */
    double from, to; /* shares of the phase */
    int entrants;
};

bool tune_race_progress(void *state, const struct lab_measure_progress *now) {
    struct tuner *tuner = state;
    const struct heat *heat = tuner->heat;
    double share = now->phase == LAB_MEASURE_WARMUP ? 0 : now->fraction;
    int done = (int)(share * heat->entrants);
    return tune_tell(tuner, done, heat->entrants, heat->from + (heat->to - heat->from) * share) ||
           tune_elapsed_s(tuner) > heat->until_s;
}

static double clock_mhz(void *device) {
    return lab_device_clock_mhz(device);
}

static int measure_once(struct tuner *tuner, struct heat *heat, struct lab_measure_plan *plan,
                        struct entrant *const *entrants, int count, struct lab_arena *arena,
                        struct lab_measurement *ret, struct lab_err *err) {
    LAB_AUTO_FREE struct lab_session_choice *choices =
        lab_mem_alloc((size_t)count, sizeof *choices);
    for (int i = 0; i < count; i++)
        choices[i] = (struct lab_session_choice){entrants[i]->trial->config, entrants[i]->tuning};
    heat->entrants = count;
    tuner->heat = heat;
    plan->warmup_iterations = 1;
    plan->chunk_iterations = 1;
    plan->min_time_s = 0;
    plan->confidence = tuner->confidence;
    plan->seed = tuner->session->rank.seed;
    plan->clock_mhz = clock_mhz;
    plan->clock_state = tuner->session->device;
    return lab_session_measure(tuner->session, plan, choices, count, arena, ret, err);
}

static bool is_standing(const struct entrant *entrant) {
    return entrant->trial->state == LAB_TRIAL_VERIFIED ||
           entrant->trial->state == LAB_TRIAL_MEASURED;
}

/* Drops those that have failed; returns how many remain. */
static int leave_out(struct entrant **entrants, int count) {
    int left = 0;
    for (int i = 0; i < count; i++)
        if (is_standing(entrants[i]))
            entrants[left++] = entrants[i];
    return left;
}

/*
 * One that worked when it was verified may still fail: it is out, and the others begin anew, so
 * that all of them have met the same rounds. `entrants` and *count are then those that are left.
 */
static int measure(struct tuner *tuner, struct heat *heat, struct lab_measure_plan *plan,
                   struct entrant **entrants, int *count, struct lab_arena *arena,
                   struct lab_measurement *ret, struct lab_err *err) {
    const struct lab_session *session = tuner->session;
    while (*count) {
        struct lab_err why = LAB_ERR_INIT;
        if (measure_once(tuner, heat, plan, entrants, *count, arena, ret, &why) == 0)
            return 0;
        if (session->failed < 0)
            return lab_err_set(err, why.code, "%s stopped working; earlier results are kept: %s",
                               tuner->place.ref->name, why.text);
        if (tune_drop(tuner, entrants[session->failed], &session->failure, err))
            return -1;
        *count = leave_out(entrants, *count);
    }
    return 0;
}

/* The measurement's times become the trial's. */
static void take_times(struct tuner *tuner, struct entrant *entrant,
                       const struct lab_measurement *m, bool final) {
    struct lab_trial *trial = entrant->trial;
    if (m->count == 0)
        return;
    trial->state = LAB_TRIAL_MEASURED;
    trial->rung++;
    trial->final = final;
    trial->median_s = m->latency.median;
    trial->low_s = m->latency.median_interval.low;
    trial->high_s = m->latency.median_interval.high;
    trial->times = lab_arena_alloc(tuner->arena, m->count, sizeof *trial->times);
    trial->time_count = (int)m->count;
    for (size_t i = 0; i < m->count; i++)
        trial->times[i] = (struct lab_trial_time){
            m->iterations[i].start_ns,
            1e-9 * (double)(m->iterations[i].end_ns - m->iterations[i].start_ns)};
    if (entrant == tuner->entrants) {
        tuner->yardstick_min_s = fmin(tuner->yardstick_min_s, trial->median_s);
        tuner->yardstick_max_s = fmax(tuner->yardstick_max_s, trial->median_s);
    }
    tune_keep(tuner, trial);
}

/* --- narrowing --- */

int tune_standing(const struct tuner *tuner, struct entrant **ret) {
    int count = 0;
    for (int i = 0; i < tuner->order_count; i++) {
        struct entrant *entrant = &tuner->entrants[tuner->order[i]];
        if (is_standing(entrant))
            ret[count++] = entrant;
    }
    return count;
}

/* By time; those without any come last. */
static int by_time(const void *a, const void *b) {
    double x = (*(struct entrant *const *)a)->trial->median_s;
    double y = (*(struct entrant *const *)b)->trial->median_s;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

/* Times those that this rung hasn't seen yet; an interrupted tuning may have done some. */
static int run_rung(struct tuner *tuner, struct entrant *const *standing, int count, int rung,
                    int64_t iterations, double from, double to, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO_FREE struct entrant **fresh = lab_mem_alloc((size_t)count, sizeof(struct entrant *));
    int fresh_count = 0;
    for (int i = 0; i < count; i++)
        if (standing[i]->trial->rung < rung)
            fresh[fresh_count++] = standing[i];
    LAB_AUTO_FREE struct lab_measurement *found =
        lab_mem_alloc((size_t)(fresh_count ? fresh_count : 1), sizeof *found);
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    struct heat heat = {.until_s = NARROW_SHARE * tuner->plan->budget_s, .from = from, .to = to};
    plan.iterations = iterations;
    int result =
        fresh_count ? measure(tuner, &heat, &plan, fresh, &fresh_count, &arena, found, err) : 0;
    for (int i = 0; i < fresh_count && result == 0; i++)
        take_times(tuner, fresh[i], &found[i], false);
    return result;
}

static bool has_time(const struct tuner *tuner) {
    return tune_elapsed_s(tuner) < NARROW_SHARE * tuner->plan->budget_s;
}

/* Each time half of them, twice as often. */
static int halve(struct tuner *tuner, struct entrant **standing, int count, struct lab_err *err) {
    double from = 0;
    for (int rung = 1; count > FINALISTS && !tuner->stopped && has_time(tuner); rung++) {
        int64_t iterations = (int64_t)RUNG_ITERATIONS << (rung - 1);
        if (run_rung(tuner, standing, count, rung, iterations < RUNG_MOST ? iterations : RUNG_MOST,
                     from, (from + 1) / 2, err))
            return -1;
        count = leave_out(standing, count);
        qsort(standing, (size_t)count, sizeof(struct entrant *), by_time);
        from = (from + 1) / 2;
        count = count / 2 > FINALISTS ? (count + 1) / 2 : FINALISTS;
    }
    return 0;
}

/* All alike, as often as the time allows; a first pass of each tells how long one takes. */
static int time_all(struct tuner *tuner, struct entrant **standing, int count,
                    struct lab_err *err) {
    int64_t before_ns = lab_clock_now(lab_clock_system());
    if (run_rung(tuner, standing, count, 1, 1, 0, 0.1, err))
        return -1;
    if (tuner->stopped)
        return 0;
    double pass_s = 0.5e-9 * (double)(lab_clock_now(lab_clock_system()) - before_ns);
    double left_s = NARROW_SHARE * tuner->plan->budget_s - tune_elapsed_s(tuner);
    int64_t iterations = pass_s > 0 ? (int64_t)(left_s / pass_s) - 1 : RUNG_MOST;
    iterations = iterations < EXHAUSTIVE_LEAST ? EXHAUSTIVE_LEAST
                 : iterations > RUNG_MOST      ? RUNG_MOST
                                               : iterations;
    count = leave_out(standing, count);
    return has_time(tuner) ? run_rung(tuner, standing, count, 2, iterations, 0.1, 1, err) : 0;
}

int tune_narrow(struct tuner *tuner, struct lab_err *err) {
    struct entrant **standing =
        lab_arena_alloc(tuner->arena, (size_t)tuner->count, sizeof *standing);
    int count = tune_standing(tuner, standing);
    if (count <= FINALISTS)
        return 0;
    return tuner->plan->strategy == LAB_TUNE_HALVING ? halve(tuner, standing, count, err)
                                                     : time_all(tuner, standing, count, err);
}

/* --- the finals --- */

/* Those that came furthest, of them the fastest; and the default, to compare with. */
static int by_rung_and_time(const void *a, const void *b) {
    const struct lab_trial *x = (*(struct entrant *const *)a)->trial;
    const struct lab_trial *y = (*(struct entrant *const *)b)->trial;
    return x->rung != y->rung ? (x->rung < y->rung) - (x->rung > y->rung) : by_time(a, b);
}

static int choose_finalists(const struct tuner *tuner, struct entrant **ret) {
    int count = tune_standing(tuner, ret), kept = count < FINALISTS ? count : FINALISTS;
    qsort(ret, (size_t)count, sizeof(struct entrant *), by_rung_and_time);
    for (int i = kept; i < count; i++)
        if (ret[i] == tuner->entrants)
            ret[kept++] = ret[i];
    return kept;
}

/* Finalists are drawn by lot where the budget ended before anybody was timed: that must be said. */
static void warn_of_untimed(struct tuner *tuner) {
    int untimed = lab_tuning_result_count(tuner->result, LAB_TRIAL_VERIFIED);
    if (untimed && !tuner->stopped)
        tune_warn(tuner, lab_arena_printf(tuner->arena,
                                          "the budget was too short to time %d correct "
                                          "configurations: one of them may be faster",
                                          untimed));
}

/* What the conditions were; one finalist's stand for all, since they ran in turn. */
static void warn_of_conditions(struct tuner *tuner, const struct lab_measurement *m) {
    static const enum lab_measure_warning asked[] = {LAB_WARN_LOAD, LAB_WARN_STEAL, LAB_WARN_CLOCK,
                                                     LAB_WARN_SHORT};
    LAB_AUTO(str, text);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        lab_str_clear(&text);
        lab_measure_explain(m, asked[i], &text);
        if (text.length)
            tune_warn(tuner, text.text);
    }
}

int tune_finals(struct tuner *tuner, struct finals *ret_finals, struct lab_err *err) {
    struct entrant **entrants =
        lab_arena_alloc(tuner->arena, (size_t)tuner->count, sizeof(struct entrant *));
    struct lab_measurement *found = lab_arena_alloc(tuner->arena, FINALISTS + 1, sizeof *found);
    int count;
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    struct heat heat = {.until_s = INFINITY, .from = 0, .to = 1};
    plan.precision = FINAL_PRECISION;
    plan.min_iterations = FINAL_ITERATIONS;
    plan.max_iterations = FINAL_MOST;
    do { /* once, unless all of them fail */
        count = choose_finalists(tuner, entrants);
        if (!count)
            return tune_refuse(tuner, err);
        plan.limit_s = fmax(FINAL_LIMIT_S, tuner->plan->budget_s - tune_elapsed_s(tuner));
        if (measure(tuner, &heat, &plan, entrants, &count, tuner->arena, found, err))
            return -1;
    } while (!count);
    for (int i = 0; i < count; i++)
        take_times(tuner, entrants[i], &found[i], true);
    warn_of_untimed(tuner);
    warn_of_conditions(tuner, &found[0]);
    *ret_finals = (struct finals){entrants, found, count};
    return 0;
}
