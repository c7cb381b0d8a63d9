/* tune_trial.c: which configurations there are, and which of them compute rightly. */
#include "tune/tune_internal.h"

#include "base/random.h"

#include <math.h>

#define VERIFY_SHARE 0.5 /* of the budget, at most */
#define RANDOM_SHARE 4   /* one in so many */
#define RANDOM_LEAST 8
#define VERIFY_DRAW  7 /* which number of the rank's seed draws the data */
#define ORDER_DRAW   8

static const char *text_of(const struct tuner *tuner, const struct lab_tuning *tuning) {
    LAB_AUTO(str, text);
    lab_tuning_write(tuner->tunable, tuning, &text);
    return lab_arena_strdup(tuner->arena, text.text);
}

/* What an interrupted tuning knew of it; the reason and so on are the caller's. */
static void remember(const struct tuner *tuner, struct lab_trial *trial) {
    for (int i = 0; i < tuner->plan->known_count; i++) {
        const struct lab_trial *known = &tuner->plan->known[i];
        if (!lab_str_equal(known->config, trial->config))
            continue;
        *trial = *known;
        trial->config = lab_arena_strdup(tuner->arena, known->config);
        trial->reason = known->reason ? lab_arena_strdup(tuner->arena, known->reason) : NULL;
        trial->final = false; /* finals are always run anew, side by side */
        trial->times = NULL;
        trial->time_count = 0;
    }
}

static void add(struct tuner *tuner, struct lab_tuning tuning) {
    struct lab_trial *trial = &tuner->result->trials[tuner->count];
    *trial = (struct lab_trial){
        .config = text_of(tuner, &tuning), .median_s = NAN, .low_s = NAN, .high_s = NAN};
    remember(tuner, trial);
    tuner->entrants[tuner->count++] = (struct entrant){.trial = trial, .tuning = tuning};
}

/* The default, then the others in an order drawn from the seed, as many as the strategy takes. */
static void draw_order(struct tuner *tuner) {
    uint64_t seed = lab_random_bits(tuner->session->rank.seed, ORDER_DRAW);
    tuner->order = lab_arena_alloc(tuner->arena, (size_t)tuner->count, sizeof *tuner->order);
    for (int i = 0; i < tuner->count; i++)
        tuner->order[i] = i;
    for (int i = tuner->count - 1; i > 1; i--) {
        int j = 1 + (int)lab_random_below(seed, (uint64_t)i, (uint64_t)i);
        int keep = tuner->order[i];
        tuner->order[i] = tuner->order[j];
        tuner->order[j] = keep;
    }
    tuner->order_count = tuner->count;
    if (tuner->plan->strategy == LAB_TUNE_RANDOM && tuner->count > RANDOM_LEAST) {
        int some = (tuner->count + RANDOM_SHARE - 1) / RANDOM_SHARE;
        tuner->order_count = some > RANDOM_LEAST ? some : RANDOM_LEAST;
    }
}

int tune_list(struct tuner *tuner, struct lab_err *err) {
    int64_t size = lab_tunable_size(tuner->tunable);
    struct lab_err why = LAB_ERR_INIT;
    struct lab_tuning_result *result = tuner->result;
    struct lab_tuning fallback = {0};
    result->trials = lab_arena_alloc(tuner->arena, (size_t)size + 1, sizeof *result->trials);
    tuner->entrants = lab_arena_alloc(tuner->arena, (size_t)size + 1, sizeof *tuner->entrants);
    tuner->tunable->fallback(&tuner->place, &tuner->launch, &fallback);
    if (lab_tuning_check(tuner->tunable, &tuner->place, &tuner->launch, &fallback, &why) == 0)
        add(tuner, fallback);
    for (int64_t i = 0; i < size; i++) {
        struct lab_tuning tuning = lab_tunable_at(tuner->tunable, i);
        if (lab_tuning_equal(&tuning, &fallback) && tuner->count)
            continue;
        if (lab_tuning_check(tuner->tunable, &tuner->place, &tuner->launch, &tuning, &why) == 0)
            add(tuner, tuning);
        else
            result->illegal++;
    }
    if (why.code)
        result->illegal_reason = lab_arena_strdup(tuner->arena, why.text);
    if (!tuner->count)
        return lab_err_set(
            err, LAB_ERR_UNSUPPORTED, "no configuration of %s is legal on %s; the last of %lld: %s",
            tuner->tunable->kernel, tuner->place.ref->name, (long long)result->illegal, why.text);
    result->trial_count = tuner->count;
    draw_order(tuner);
    return 0;
}

/* --- verifying --- */

/* All of them at once, so that a device that compiles does it in parallel, ahead of us. */
static void prepare_all(const struct tuner *tuner) {
    LAB_AUTO_FREE struct lab_launch *launches =
        lab_mem_alloc((size_t)tuner->order_count, sizeof *launches);
    int count = 0;
    for (int i = 0; i < tuner->order_count; i++) {
        const struct entrant *entrant = &tuner->entrants[tuner->order[i]];
        if (entrant->trial->state != LAB_TRIAL_UNTRIED)
            continue;
        launches[count] = tuner->launch;
        launches[count++].tuning = entrant->tuning;
    }
    lab_prepare(tuner->session->device, launches, count);
}

static int check_device(const struct tuner *tuner, const struct entrant *failed,
                        const struct lab_err *why, struct lab_err *err) {
    struct lab_iteration record;
    for (int i = 0; i < tuner->count; i++) {
        const struct entrant *entrant = &tuner->entrants[i];
        struct lab_err again = LAB_ERR_INIT;
        if (entrant == failed || (entrant->trial->state != LAB_TRIAL_VERIFIED &&
                                  entrant->trial->state != LAB_TRIAL_MEASURED))
            continue;
        if (lab_session_run(tuner->session, &entrant->tuning, 1, &record, &again))
            return lab_err_set(err, LAB_ERR_SYSTEM,
                               "%s has stopped working (%s); what was found out until then is kept",
                               tuner->place.ref->name, why->text);
        return 0;
    }
    return 0;
}

int tune_drop(struct tuner *tuner, struct entrant *entrant, const struct lab_err *why,
              struct lab_err *err) {
    if (check_device(tuner, entrant, why, err))
        return -1;
    entrant->trial->state = LAB_TRIAL_FAILED;
    entrant->trial->reason = lab_arena_strdup(tuner->arena, why->text);
    tune_keep(tuner, entrant->trial);
    return 0;
}

static int verify_one(struct tuner *tuner, struct entrant *entrant, struct lab_err *err) {
    struct lab_session *session = tuner->session;
    const struct lab_verification *found = &session->verification;
    struct lab_trial *trial = entrant->trial;
    struct lab_err why = LAB_ERR_INIT;
    uint64_t seed = lab_random_bits(tuner->session->rank.seed, VERIFY_DRAW);
    if (lab_session_configure(session, &entrant->tuning, &why) ||
        lab_session_verify(session, seed, &why)) {
        if (why.code == LAB_ERR_MEMORY)
            return lab_err_set(err, why.code, "verifying: %s", why.text);
        return tune_drop(tuner, entrant, &why, err);
    }
    if (found->applicable && !found->passed) {
        trial->state = LAB_TRIAL_WRONG;
        trial->reason = lab_arena_strdup(tuner->arena, found->text);
    } else {
        trial->state = LAB_TRIAL_VERIFIED;
    }
    tune_keep(tuner, trial);
    return 0;
}

int tune_refuse(const struct tuner *tuner, struct lab_err *err) {
    for (int i = 0; i < tuner->order_count; i++) {
        const struct lab_trial *trial = tuner->entrants[tuner->order[i]].trial;
        if (trial->state == LAB_TRIAL_FAILED || trial->state == LAB_TRIAL_WRONG)
            return lab_err_set(
                err, trial->state == LAB_TRIAL_WRONG ? LAB_ERR_WRONG : LAB_ERR_UNSUPPORTED,
                "none of %d configurations works; %s: %s", tuner->order_count, trial->config,
                trial->reason);
    }
    return lab_err_set(err, LAB_ERR_INTERRUPTED, "stopped before any configuration was verified");
}

int tune_verify(struct tuner *tuner, struct lab_err *err) {
    struct entrant **standing =
        lab_arena_alloc(tuner->arena, (size_t)tuner->count, sizeof *standing);
    int done = 0;
    prepare_all(tuner);
    for (; done < tuner->order_count; done++) {
        struct entrant *entrant = &tuner->entrants[tuner->order[done]];
        if (tune_tell(tuner, done, tuner->order_count, (double)done / tuner->order_count))
            break;
        if (entrant->trial->state == LAB_TRIAL_UNTRIED && verify_one(tuner, entrant, err))
            return -1;
        if (tune_elapsed_s(tuner) > VERIFY_SHARE * tuner->plan->budget_s && done + 1 >= 2)
            break;
    }
    if (done + 1 < tuner->order_count && !tuner->stopped)
        tune_warn(
            tuner,
            lab_arena_printf(
                tuner->arena,
                "the budget was too short: %d of %d configurations verified, the others not tried",
                done + 1, tuner->order_count));
    return tune_standing(tuner, standing) ? 0 : tune_refuse(tuner, err);
}
