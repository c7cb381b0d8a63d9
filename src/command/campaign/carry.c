/*
 * carry.c: a campaign, study by study: which comes next, what to do where a GPU is busy or hot,
 * when to stop.
 */
#include "command/campaign/course.h"

#include "base/clock.h"
#include "base/tty/stop.h"
#include "command/run/execute.h"

#include <limits.h>
#include <math.h>

/* --- one study --- */

/* Runs of the phase that may still fail before it is stopped. */
static int failures_left(const struct course *course, int phase) {
    const struct lab_campaign_phase *own = &course->campaign.phases[phase];
    double most = course->campaign.failures_most > 0 ? course->campaign.failures_most : 1;
    if (own->gate.success > 0 && 1 - own->gate.success < most)
        most = 1 - own->gate.success;
    int planned = 0, failed = 0;
    for (int s = 0; s < own->study_count; s++) {
        const struct lab_campaign_found *found = &course->found[own->first_study + s];
        planned += found->planned;
        failed += found->again ? 0 : found->failed;
    }
    return most >= 1 ? INT_MAX : (int)floor(most * planned + 1e-9) - failed;
}

struct attempt {
    bool busy, interrupted;
};

static int run_study(struct course *course, int phase, int study, bool impatient, bool verbose,
                     struct attempt *ret_attempt, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_command_call call = *course->call;
    struct lab_study_execution execution = {.verbose = verbose,
                                            .silent = true,
                                            .impatient = impatient,
                                            .failed_most = failures_left(course, phase)};
    struct lab_study_executed done;
    struct lab_plan plan;
    struct lab_campaign_found *found = &course->found[study];
    call.arena = &arena;
    *ret_attempt = (struct attempt){0};
    if (course_study_plan(course, study, &arena, &plan, &execution.words, &execution.overrides,
                          err) < 0)
        return -1;
    int64_t start_ns = lab_clock_now(lab_clock_system());
    double before_s = isnan(found->taken_s) ? 0 : found->taken_s;
    int result = lab_study_execute(&call, &plan, &execution, &done, err);
    ret_attempt->busy = done.busy;
    ret_attempt->interrupted = lab_stop_level() > 0;
    found->again = false;
    if (result < 0 && !done.busy)
        return -1;
    if (course_read_study(course, study, err) < 0)
        return -1;
    if (course->simulated)
        found->taken_s = before_s + (double)(lab_clock_now(lab_clock_system()) - start_ns) / 1e9;
    return 0;
}

/* --- which --- */

struct choice {
    int phase, study;
};

/* Every study that could run now, in the order in which they should. */
static int find_choices(const struct course *course, const struct lab_campaign_status *statuses,
                        struct lab_arena *arena, struct choice **ret_choices) {
    const struct lab_campaign *campaign = &course->campaign;
    struct choice *choices = NULL;
    int count = 0;
    for (int round = 0; round < 2; round++) /* phases that have begun come first */
        for (int i = 0; i < campaign->phase_count; i++) {
            int phase = campaign->order[i];
            const struct lab_campaign_phase *own = &campaign->phases[phase];
            if (statuses[phase].state != (round ? LAB_CAMPAIGN_READY : LAB_CAMPAIGN_RUNS))
                continue;
            for (int s = 0; s < own->study_count; s++)
                if (course->studies[own->first_study + s].refined &&
                    !lab_campaign_has_ended(&course->found[own->first_study + s]))
                    LAB_ADD(choices, count, arena) = (struct choice){phase, own->first_study + s};
        }
    *ret_choices = choices;
    return count;
}

static void say_study(const struct course *course, const struct choice *choice) {
    const struct lab_console *console = course->call->console;
    if (!console->quiet && !console->json)
        lab_console_note("phase %s: %s", course->campaign.phases[choice->phase].name,
                         course->studies[choice->study].title);
    if (!console->quiet && !console->json && course->studies[choice->study].why)
        lab_console_note("%s", course->studies[choice->study].why);
}

/* The first that finds its devices free; where none does, the first waits. */
static int run_one_of(struct course *course, const struct choice *choices, int count, bool verbose,
                      struct choice *ret_choice, struct attempt *ret_attempt, struct lab_err *err) {
    for (int i = 0; i <= count; i++) {
        const struct choice *choice = &choices[i % count];
        course_wait_for_heat(course);
        say_study(course, choice);
        *ret_choice = *choice;
        if (run_study(course, choice->phase, choice->study, i < count && count > 1, verbose,
                      ret_attempt, err) < 0)
            return -1;
        if (!ret_attempt->busy)
            return 0;
        *err = LAB_ERR_INIT;
        if (!course->call->console->quiet)
            lab_console_note("its devices are busy: %s",
                             i + 1 < count ? "another study goes first" : "waiting for them");
    }
    return 0;
}

/* --- all --- */

/* What failed before is tried again, once in each call. */
static void try_again(struct course *course, const struct lab_campaign_status *statuses) {
    for (int p = 0; p < course->campaign.phase_count; p++) {
        const struct lab_campaign_phase *phase = &course->campaign.phases[p];
        for (int s = 0; statuses[p].state == LAB_CAMPAIGN_STOPPED && s < phase->study_count; s++) {
            struct lab_campaign_found *found = &course->found[phase->first_study + s];
            found->again = found->begun && found->done < found->planned;
        }
    }
}

static void say_changes(const struct course *course, const struct lab_campaign_status *before,
                        const struct lab_campaign_status *now) {
    for (int p = 0; p < course->campaign.phase_count && !course->call->console->quiet; p++)
        if (now[p].state >= LAB_CAMPAIGN_SKIPPED && before[p].state != now[p].state)
            lab_console_note("phase %s %s%s%s", course->campaign.phases[p].name,
                             now[p].state == LAB_CAMPAIGN_SKIPPED   ? "is skipped"
                             : now[p].state == LAB_CAMPAIGN_STOPPED ? "is stopped"
                                                                    : "is blocked",
                             now[p].why ? ": " : "", now[p].why ? now[p].why : "");
}

int course_run(struct course *course, bool verbose, int *ret_status, struct lab_err *err) {
    struct lab_campaign_known known = course_known(course);
    const struct lab_campaign_status *now =
        lab_campaign_decide(&course->campaign, &known, course->arena);
    try_again(course, now);
    const struct lab_campaign_status *before =
        lab_arena_alloc(course->arena, (size_t)course->campaign.phase_count + 1, sizeof *before);
    bool interrupted = false, left = false;
    for (;;) {
        struct choice *choices, choice = {0};
        struct attempt attempt = {0};
        if (course_refine(course, err) < 0)
            return -1;
        now = lab_campaign_decide(&course->campaign, &known, course->arena);
        say_changes(course, before, now);
        before = now;
        if (course_write(course, now, false, err) < 0)
            return -1;
        int count = find_choices(course, now, course->arena, &choices);
        /* where a study left runs by its own keys, trying it again would go on for ever */
        if (count == 0 || interrupted || left)
            break;
        if (run_one_of(course, choices, count, verbose, &choice, &attempt, err) < 0)
            return -1;
        interrupted = attempt.interrupted;
        left = !lab_campaign_has_ended(&course->found[choice.study]);
        course_forget_claims(course, choice.phase);
    }
    for (int p = 0; p < course->campaign.phase_count; p++)
        if (now[p].state == LAB_CAMPAIGN_STOPPED || now[p].state == LAB_CAMPAIGN_RUNS)
            *ret_status = 1;
    if (interrupted)
        *ret_status =
            lab_stop_signal() ? 128 + lab_stop_signal() : lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return 0;
}
