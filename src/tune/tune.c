/* tune.c: a tuning from start to end, its budget and its progress. */
#include "tune/tune_internal.h"

#include "base/str.h"

#include <math.h>

const char *const lab_tune_strategies[] = {"successive_halving", "exhaustive", "random", NULL};

/* Of the time, where a phase begins and how much of it there is; for the bar alone. */
static const double phase_begins[TUNE_PHASES] = {0, 0.2, 0.6};
static const double phase_takes[TUNE_PHASES] = {0.2, 0.4, 0.4};
static const char *const phase_names[TUNE_PHASES] = {"verifying", "narrowing", "finals"};

int lab_tune_strategy_parse(const char *name, enum lab_tune_strategy *ret_strategy,
                            struct lab_err *err) {
    int found = lab_str_find(name, lab_tune_strategies);
    LAB_AUTO(str, text);
    lab_str_add_list(&text, lab_tune_strategies, "or");
    if (found < 0)
        return lab_err_set(err, LAB_ERR_USER, "unknown strategy '%s': must be %s", name, text.text);
    *ret_strategy = (enum lab_tune_strategy)found;
    return 0;
}

double tune_elapsed_s(const struct tuner *tuner) {
    return 1e-9 * (double)(lab_clock_now(lab_clock_system()) - tuner->start_ns);
}

void tune_keep(const struct tuner *tuner, const struct lab_trial *trial) {
    if (tuner->plan->keep)
        tuner->plan->keep(trial, tuner->plan->state);
}

void tune_warn(struct tuner *tuner, const char *sentence) {
    if (tuner->warning_count + 1 < (int)(sizeof tuner->warnings / sizeof *tuner->warnings))
        tuner->warnings[tuner->warning_count++] = lab_arena_strdup(tuner->arena, sentence);
}

/* The fastest so far; NULL = none was timed. */
static const struct lab_trial *leader(const struct tuner *tuner) {
    const struct lab_trial *best = NULL;
    for (int i = 0; i < tuner->count; i++) {
        const struct lab_trial *trial = tuner->entrants[i].trial;
        if (trial->state == LAB_TRIAL_MEASURED && (!best || trial->median_s < best->median_s))
            best = trial;
    }
    return best;
}

bool tune_tell(struct tuner *tuner, int done, int total, double share) {
    if (!tuner->plan->progress)
        return false;
    const struct lab_trial *best = leader(tuner);
    double elapsed_s = tune_elapsed_s(tuner);
    double fraction = phase_begins[tuner->phase] + phase_takes[tuner->phase] * fmin(share, 1);
    tuner->fraction = fmax(tuner->fraction, fraction);
    struct lab_tune_progress progress = {
        .phase = phase_names[tuner->phase],
        .done = done,
        .total = total,
        .fraction = tuner->fraction,
        .left_s = tuner->fraction > 0.05 ? fmin(elapsed_s * (1 - tuner->fraction) / tuner->fraction,
                                                fmax(0, tuner->plan->budget_s - elapsed_s))
                                         : NAN,
        .best = best ? best->config : NULL,
        .best_s = best ? best->median_s : NAN,
    };
    if (tuner->plan->progress(&progress, tuner->plan->state))
        tuner->stopped = true;
    return tuner->stopped;
}

/* --- the whole --- */

static void describe(struct tuner *tuner, const struct lab_device_identity *identity) {
    const struct lab_tune_plan *plan = tuner->plan;
    const struct lab_workload *workload = tuner->session->workload;
    struct lab_tuning_result *result = tuner->result;
    *result = (struct lab_tuning_result){
        .kernel = workload->name,
        .label = lab_workload_label(workload, tuner->session->config, tuner->arena),
        .space = lab_arena_printf(tuner->arena, "%s %s", tuner->tunable->kernel,
                                  tuner->tunable->version),
        .device = lab_arena_strdup(tuner->arena, tuner->place.ref->name),
        .model = identity->model,
        .dtype = lab_dtype_name(tuner->launch.out.dtype),
        .strategy = lab_tune_strategies[plan->strategy],
        .best = -1,
        .speedup = NAN,
        .speedup_low = NAN,
        .speedup_high = NAN,
        .confidence = tuner->confidence,
        .budget_s = plan->budget_s,
        .warm = plan->warm,
        .start_wall_ns = lab_clock_wall_ns(),
        .start_mono_ns = tuner->start_ns,
    };
}

static int prepare(struct tuner *tuner, struct lab_err *err) {
    const struct lab_workload *workload = tuner->session->workload;
    const struct lab_device *device = tuner->session->device;
    struct lab_device_identity identity;
    if (!workload->launch || !workload->configure)
        return lab_err_set(err, LAB_ERR_USER, "%s is not a tunable kernel", workload->name);
    workload->launch(tuner->session->config, &tuner->launch);
    tuner->place = (struct lab_tunable_place){device->machine, &device->ref};
    if (lab_launch_complete(&tuner->launch, err))
        return -1;
    tuner->tunable = lab_tunable_find(&tuner->place, &tuner->launch);
    if (!tuner->tunable)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%s has no configurations of %s in %s to choose from", device->ref.name,
                           workload->name, lab_dtype_name(tuner->launch.out.dtype));
    if (lab_device_identity(&tuner->place, tuner->arena, &identity, err))
        return -1;
    describe(tuner, &identity);
    return tune_list(tuner, err);
}

static int race(struct tuner *tuner, struct lab_err *err) {
    struct finals finals = {0};
    tuner->phase = TUNE_VERIFY;
    if (tune_verify(tuner, err))
        return -1;
    tuner->phase = TUNE_NARROW;
    if (!tuner->stopped && tune_narrow(tuner, err))
        return -1;
    tuner->phase = TUNE_FINALS;
    if (!tuner->stopped && tune_finals(tuner, &finals, err))
        return -1;
    tune_judge(tuner, &finals);
    if (tuner->result->best < 0)
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped before anything was timed");
    return 0;
}

/* The workload's own memory is opened once, so that all configurations meet the same pages. */
static int open_and_race(struct tuner *tuner, struct lab_err *err) {
    struct lab_session *session = tuner->session;
    session->listener =
        (struct lab_session_listener){.progress = tune_race_progress, .sink.state = tuner};
    if (lab_session_open(session, err))
        return -1;
    int result = tuner->plan->warm ? 0 : tune_flusher_open(tuner, err);
    session->before = tuner->flusher.stream ? tune_flush : NULL;
    if (result == 0)
        result = race(tuner, err);
    tune_flusher_close(&tuner->flusher);
    session->before = NULL;
    lab_session_close_workload(session);
    return result;
}

int lab_tune(const struct lab_tune_plan *plan, struct lab_arena *arena,
             struct lab_tuning_result *ret_result, struct lab_err *err) {
    struct lab_tuning_result result = {0};
    struct tuner tuner = {
        .plan = plan,
        .session = plan->session,
        .arena = arena,
        .result = &result,
        .start_ns = lab_clock_now(lab_clock_system()),
        .confidence = plan->confidence > 0 ? plan->confidence : 0.95,
        .yardstick_min_s = NAN,
        .yardstick_max_s = NAN,
    };
    if (prepare(&tuner, err) || open_and_race(&tuner, err))
        return -1;
    result.duration_s = tune_elapsed_s(&tuner);
    result.warnings =
        lab_arena_copy(arena, tuner.warnings, (size_t)tuner.warning_count, sizeof *result.warnings);
    *ret_result = result;
    return 0;
}
