/*
 * carry.c: a campaign, study by study: which comes next and which beside it, what to do where a GPU
 * is busy or hot, when to stop.
 */
#include "command/campaign/course.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/tty/fork.h"
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

/* Without a word about what it found: that is in its files. */
static int execute(struct course *course, int phase, int study, bool impatient, bool verbose,
                   struct attempt *ret_attempt, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_command_call call = *course->call;
    struct lab_study_execution execution = {.verbose = verbose,
                                            .silent = true,
                                            .impatient = impatient,
                                            .failed_most = failures_left(course, phase)};
    struct lab_study_executed done;
    struct lab_plan plan;
    call.arena = &arena;
    *ret_attempt = (struct attempt){0};
    if (course_study_plan(course, study, &arena, &plan, &execution.words, &execution.overrides,
                          err) < 0)
        return -1;
    int result = lab_study_execute(&call, &plan, &execution, &done, err);
    ret_attempt->busy = done.busy;
    ret_attempt->interrupted = lab_stop_level() > 0;
    return result < 0 && !done.busy ? -1 : 0;
}

/* What its files show; of a simulated one the time that it took here is measured. */
static int take_result(struct course *course, int study, int64_t start_ns, struct lab_err *err) {
    struct lab_campaign_found *found = &course->found[study];
    double before_s = isnan(found->taken_s) ? 0 : found->taken_s;
    found->again = false;
    if (course_read_study(course, study, err) < 0)
        return -1;
    if (course->simulated)
        found->taken_s = before_s + (double)(lab_clock_now(lab_clock_system()) - start_ns) / 1e9;
    return 0;
}

static int run_study(struct course *course, int phase, int study, bool impatient, bool verbose,
                     struct attempt *ret_attempt, struct lab_err *err) {
    int64_t start_ns = lab_clock_now(lab_clock_system());
    int result = execute(course, phase, study, impatient, verbose, ret_attempt, err);
    course->found[study].again = false;
    return result < 0 ? -1 : take_result(course, study, start_ns, err);
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

/* `beside` NULL: it runs alone, or is the first of several. */
static void say_study(const struct course *course, const struct choice *choice,
                      const struct choice *beside) {
    const struct lab_console *console = course->call->console;
    const struct lab_campaign_phase *phases = course->campaign.phases;
    if (!console->quiet && !console->json)
        lab_console_note("phase %s%s%s: %s", phases[choice->phase].name,
                         beside ? ", at the same time as phase " : "",
                         beside ? phases[beside->phase].name : "",
                         course->studies[choice->study].title);
    if (!console->quiet && !console->json && course->studies[choice->study].why)
        lab_console_note("%s", course->studies[choice->study].why);
}

/* The first that finds its devices free; where none does, the first waits. */
static int run_one_of(struct course *course, const struct choice *choices, int count, bool verbose,
                      struct choice *ret_choice, struct attempt *ret_attempt, struct lab_err *err) {
    for (int i = 0; count > 0 && i <= count; i++) {
        const struct choice *choice = &choices[i % count];
        course_wait_for_heat(course);
        say_study(course, choice, NULL);
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

/* --- beside it ---
 *
 * Studies on other devices, each in a process of its own, which ends with this one. What it leaves
 * is a study's files as always, so that a campaign that was killed resumes.
 */

struct beside {
    struct course *course;
    struct choice choice;
    struct lab_fork fork;
    int64_t start_ns;
};

enum { BESIDE_DONE, BESIDE_BUSY };

/* In the process of its own. */
static int run_beside(void *opaque, struct lab_err *err) {
    const struct beside *beside = opaque;
    struct course *course = beside->course;
    struct lab_console console = *course->call->console;
    struct lab_command_call call = *course->call;
    struct attempt attempt;
    lab_file_close(&course->lock_fd);
    console.quiet = true;
    call.console = &console;
    course->call = &call;
    if (execute(course, beside->choice.phase, beside->choice.study, true, false, &attempt, err) < 0)
        return -1;
    return attempt.busy ? BESIDE_BUSY : BESIDE_DONE;
}

/* Reads what it left. */
static int end_beside(struct beside *beside, bool *left, struct lab_err *err) {
    struct course *course = beside->course;
    int status = lab_fork_wait(&beside->fork, err);
    course_forget_claims(course, beside->choice.phase);
    if (status < 0)
        return lab_err_context(err, "phase %s", course->campaign.phases[beside->choice.phase].name);
    if (status == BESIDE_BUSY)
        return 0;
    if (take_result(course, beside->choice.study, beside->start_ns, err) < 0)
        return -1;
    *left |= !lab_campaign_has_ended(&course->found[beside->choice.study]);
    return 0;
}

/* Whether it may run with the first of the choices and with those that were started. */
static bool fits(const struct course *course, const struct choice *first,
                 const struct beside *besides, int count, const struct choice *other) {
    const struct lab_campaign_found *found = course->found;
    bool fit =
        other->phase != first->phase &&
        lab_campaign_runs_beside(&course->campaign, &found[first->study], &found[other->study]);
    for (int i = 0; i < count && fit; i++)
        fit = other->phase != besides[i].choice.phase &&
              lab_campaign_runs_beside(&course->campaign, &found[besides[i].choice.study],
                                       &found[other->study]);
    return fit;
}

/* Starts those that may run beside the first, and takes them out of the choices. */
static int start_besides(struct course *course, struct choice *choices, int *count,
                         struct beside *besides, int *ret_started, struct lab_err *err) {
    int kept = 0;
    *ret_started = 0;
    for (int i = 0; i < *count; i++)
        if (!course->found[choices[i].study].use.devices && /* it refines: known by now */
            course_find_use(course, choices[i].study, err) < 0)
            return -1;
    for (int i = 0; i < *count; i++) {
        if (i == 0 || *ret_started >= LAB_CAMPAIGN_BESIDE_MOST - 1 ||
            !fits(course, &choices[0], besides, *ret_started, &choices[i])) {
            choices[kept++] = choices[i];
            continue;
        }
        say_study(course, &choices[i], &choices[0]);
        struct beside *beside = &besides[*ret_started];
        *beside = (struct beside){
            .course = course, .choice = choices[i], .start_ns = lab_clock_now(lab_clock_system())};
        if (lab_fork_start(run_beside, beside, &beside->fork, err) < 0)
            return -1;
        (*ret_started)++;
    }
    *count = kept;
    return 0;
}

/* One study, and those beside it. */
static int run_batch(struct course *course, struct choice *choices, int count, bool verbose,
                     bool *interrupted, bool *left, struct lab_err *err) {
    struct beside besides[LAB_CAMPAIGN_BESIDE_MOST];
    struct attempt attempt = {0};
    struct choice choice = choices[0];
    int started = 0;
    int result = start_besides(course, choices, &count, besides, &started, err);
    if (result == 0)
        result = run_one_of(course, choices, count, verbose, &choice, &attempt, err);
    if (result == 0) {
        *left = !lab_campaign_has_ended(&course->found[choice.study]);
        course_forget_claims(course, choice.phase);
    }
    for (int i = 0; i < started; i++) {
        struct lab_err *own = result == 0 ? err : NULL; /* the first error is told */
        if (end_beside(&besides[i], left, own) < 0)
            result = -1;
    }
    *interrupted = attempt.interrupted || lab_stop_level() > 0;
    return result;
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
        struct choice *choices;
        if (course_refine(course, err) < 0)
            return -1;
        now = lab_campaign_decide(&course->campaign, &known, course->arena);
        say_changes(course, before, now);
        before = now;
        if (course_write(course, now, false, err) < 0)
            return -1;
        int count = find_choices(course, now, course->arena, &choices);
        /* where a study left runs by its own keys, trying it again would go on for ever; one of a
         * phase that was stopped isn't tried again */
        if (count == 0 || interrupted || (left && lab_campaign_is_begun(&course->campaign, now)))
            break;
        if (run_batch(course, choices, count, verbose, &interrupted, &left, err) < 0)
            return -1;
    }
    for (int p = 0; p < course->campaign.phase_count; p++)
        if (now[p].state == LAB_CAMPAIGN_STOPPED || now[p].state == LAB_CAMPAIGN_RUNS)
            *ret_status = 1;
    if (interrupted)
        *ret_status =
            lab_stop_signal() ? 128 + lab_stop_signal() : lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return 0;
}
