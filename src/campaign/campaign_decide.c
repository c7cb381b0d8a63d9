/* campaign_decide.c: what becomes of each phase, from what was found, and when each study runs. */
#include "campaign/campaign_internal.h"

#include "base/str.h"

#include <math.h>

const char *const lab_campaign_state_names[] = {"waits",   "ready",   "begun",  "done",
                                                "skipped", "stopped", "blocked"};

bool lab_campaign_has_ended(const struct lab_campaign_found *found) {
    return found->begun && !found->again && found->done + found->failed >= found->planned;
}

struct campaign_counts campaign_count(const struct lab_campaign *campaign, int phase,
                                      const struct lab_campaign_known *known) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    struct campaign_counts sum = {.ended = true};
    for (int i = 0; i < own->study_count; i++) {
        const struct lab_campaign_found *found = &known->studies[own->first_study + i];
        sum.planned += found->planned;
        sum.done += found->done;
        sum.failed += found->again ? 0 : found->failed; /* these are tried again */
        sum.invalid += found->invalid;
        sum.begun |= found->begun;
        sum.error = sum.error ? sum.error : found->error;
        sum.ended &= lab_campaign_has_ended(found);
    }
    return sum;
}

/* --- gates --- */

/* Why the phase is stopped; NULL = it isn't. `planned` runs count, so that a phase that can't reach
 * its share any more is stopped at once. */
static const char *find_fault(const struct lab_campaign *campaign,
                              const struct lab_campaign_phase *phase,
                              const struct campaign_counts *counts, struct lab_arena *arena) {
    double most = campaign->failures_most;
    if (phase->gate.success > 0 && (most == 0 || 1 - phase->gate.success < most))
        most = 1 - phase->gate.success;
    double failed = counts->planned ? (double)counts->failed / counts->planned : 0;
    const char *of = counts->error ? ", the first: " : "", *error = counts->error;
    if (counts->ended && counts->planned > 0 && counts->done == 0)
        return counts->planned == 1 ? lab_arena_printf(arena, "its run failed%s%s",
                                                       error ? ": " : "", error ? error : "")
                                    : lab_arena_printf(arena, "all %d runs failed%s%s",
                                                       counts->planned, of, error ? error : "");
    if ((campaign->failures_most > 0 || phase->gate.success > 0) && failed > most + 1e-12)
        return lab_arena_printf(arena, "%d of %d runs failed (%.1f%%, at most %.3g%% may)%s%s",
                                counts->failed, counts->planned, 100 * failed, 100 * most, of,
                                error ? error : "");
    double valid = counts->done ? 1 - (double)counts->invalid / counts->done : 1;
    if (counts->ended && valid < phase->gate.valid)
        return lab_arena_printf(arena, "%.1f%% of its results are valid, at least %.3g%% must be",
                                100 * valid, 100 * phase->gate.valid);
    return NULL;
}

/* --- states --- */

static const char *name_of(const struct lab_campaign *campaign, int phase) {
    return campaign->phases[phase].name;
}

/* By the phases before it; READY = they have ended. */
static struct lab_campaign_status by_those_before(const struct lab_campaign *campaign, int phase,
                                                  const struct lab_campaign_status *statuses,
                                                  struct lab_arena *arena) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    struct lab_campaign_status status = {LAB_CAMPAIGN_READY, NULL};
    for (int i = 0; i < own->after_count; i++) {
        enum lab_campaign_state state = statuses[own->after[i]].state;
        if (state == LAB_CAMPAIGN_STOPPED || state == LAB_CAMPAIGN_BLOCKED)
            return (struct lab_campaign_status){
                LAB_CAMPAIGN_BLOCKED,
                lab_arena_printf(arena, "phase %s %s", name_of(campaign, own->after[i]),
                                 state == LAB_CAMPAIGN_STOPPED ? "was stopped" : "is blocked")};
        if (state < LAB_CAMPAIGN_DONE && status.state == LAB_CAMPAIGN_READY)
            status = (struct lab_campaign_status){
                LAB_CAMPAIGN_WAITS,
                lab_arena_printf(arena, "for phase %s", name_of(campaign, own->after[i]))};
    }
    return status;
}

/* Whether the phase's condition holds, and a sentence about it; true and NULL where it has none. */
static enum lab_campaign_truth judge_when(const struct lab_campaign *campaign, int phase,
                                          const struct lab_campaign_known *known,
                                          struct lab_arena *arena, const char **ret_why) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    const char *why;
    *ret_why = NULL;
    if (!own->when)
        return LAB_CAMPAIGN_TRUE;
    enum lab_campaign_truth truth =
        lab_campaign_judge(campaign, own->when, phase, known, arena, &why);
    *ret_why = lab_arena_printf(arena,
                                truth == LAB_CAMPAIGN_UNKNOWN ? "'%s' is undecided, so it runs (%s)"
                                : truth == LAB_CAMPAIGN_TRUE  ? "'%s' holds (%s)"
                                                              : "'%s' doesn't hold (%s)",
                                own->when_text, why);
    return truth;
}

static struct lab_campaign_status decide_one(const struct lab_campaign *campaign, int phase,
                                             const struct lab_campaign_known *known,
                                             const struct lab_campaign_status *statuses,
                                             struct lab_arena *arena) {
    const struct lab_campaign_phase *own = &campaign->phases[phase];
    struct campaign_counts counts = campaign_count(campaign, phase, known);
    const char *why;
    enum lab_campaign_truth truth = judge_when(campaign, phase, known, arena, &why);
    if (counts.begun) {
        const char *fault = find_fault(campaign, own, &counts, arena);
        if (fault)
            return (struct lab_campaign_status){LAB_CAMPAIGN_STOPPED, fault};
        return (struct lab_campaign_status){counts.ended ? LAB_CAMPAIGN_DONE : LAB_CAMPAIGN_RUNS,
                                            why};
    }
    struct lab_campaign_status status = by_those_before(campaign, phase, statuses, arena);
    if (status.state != LAB_CAMPAIGN_READY)
        return status;
    return (struct lab_campaign_status){
        truth == LAB_CAMPAIGN_FALSE ? LAB_CAMPAIGN_SKIPPED : LAB_CAMPAIGN_READY, why};
}

/* Phases that have not begun and whose studies were dropped for lack of room. */
static void apply_budget(const struct lab_campaign *campaign,
                         const struct lab_campaign_known *known, struct lab_arena *arena,
                         struct lab_campaign_status *statuses) {
    struct lab_campaign_schedule schedule;
    if ((campaign->budget_s <= 0 && campaign->budget_bytes <= 0) ||
        lab_campaign_make_schedule(campaign, known, arena, &schedule, NULL) < 0)
        return;
    for (int i = 0; i < schedule.slot_count; i++) {
        struct lab_campaign_status *status = &statuses[schedule.slots[i].phase];
        if (schedule.slots[i].dropped && status->state <= LAB_CAMPAIGN_READY)
            *status =
                (struct lab_campaign_status){LAB_CAMPAIGN_SKIPPED, "the budget has no room for it"};
    }
}

const struct lab_campaign_status *lab_campaign_decide(const struct lab_campaign *campaign,
                                                      const struct lab_campaign_known *known,
                                                      struct lab_arena *arena) {
    struct lab_campaign_status *statuses =
        lab_arena_alloc(arena, (size_t)campaign->phase_count + 1, sizeof *statuses);
    for (int i = 0; i < campaign->phase_count; i++) {
        int phase = campaign->order[i];
        statuses[phase] = decide_one(campaign, phase, known, statuses, arena);
    }
    apply_budget(campaign, known, arena, statuses);
    return statuses;
}

bool lab_campaign_is_begun(const struct lab_campaign *campaign,
                           const struct lab_campaign_status *statuses) {
    int next = lab_campaign_next(campaign, statuses);
    return next >= 0 && statuses[next].state == LAB_CAMPAIGN_RUNS;
}

int lab_campaign_next(const struct lab_campaign *campaign,
                      const struct lab_campaign_status *statuses) {
    static const enum lab_campaign_state wanted[] = {LAB_CAMPAIGN_RUNS, LAB_CAMPAIGN_READY};
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < campaign->phase_count; i++)
            if (statuses[campaign->order[i]].state == wanted[w])
                return campaign->order[i];
    return -1;
}

/* --- the schedule --- */

struct cost { /* of a phase, done and left */
    double seconds;
    int64_t bytes;
    bool begun, dropped;
};

static double study_seconds(const struct lab_campaign_found *found) {
    double left = lab_campaign_has_ended(found) ? 0 : found->expected_s;
    return (found->begun && !isnan(found->taken_s) ? found->taken_s : 0) + left;
}

/* What is done is measured, or not known. */
static double study_energy_j(const struct lab_campaign_found *found) {
    double left_j = lab_campaign_has_ended(found) ? 0 : found->expected_j;
    double done_j = found->energy_runs == found->done ? found->energy_j : (double)NAN;
    return (found->begun && found->done > 0 ? done_j : 0) + left_j;
}

static int64_t study_bytes(const struct lab_campaign_found *found) {
    return found->begun && found->bytes > found->expected_bytes ? found->bytes
                                                                : found->expected_bytes;
}

/* Of the studies whose time is known, done or expected. */
static double mean_run_s(const struct lab_campaign *campaign,
                         const struct lab_campaign_known *known) {
    double seconds = 0;
    int runs = 0;
    for (int i = 0; i < campaign->study_count; i++) {
        double own = study_seconds(&known->studies[i]);
        seconds += isnan(own) ? 0 : own;
        runs += isnan(own) ? 0 : known->studies[i].planned;
    }
    return runs ? seconds / runs : 0;
}

/* The runs of a study that refines: the most that it may have, until they are known. */
static int runs_of(const struct lab_campaign_study *study, const struct lab_campaign_found *found) {
    bool first = study->strategy == LAB_CAMPAIGN_BISECT && study->step == 0;
    return found->planned > 0 || found->begun ? found->planned : first ? (int)study->runs : 0;
}

static struct cost *find_costs(const struct lab_campaign *campaign,
                               const struct lab_campaign_known *known, struct lab_arena *arena) {
    double run_s = mean_run_s(campaign, known);
    struct cost *costs = lab_arena_alloc(arena, (size_t)campaign->phase_count + 1, sizeof *costs);
    for (int p = 0; p < campaign->phase_count; p++)
        for (int s = 0; s < campaign->phases[p].study_count; s++) {
            const struct lab_campaign_found *found =
                &known->studies[campaign->phases[p].first_study + s];
            const struct lab_campaign_study *study = &campaign->phases[p].studies[s];
            double seconds = study_seconds(found);
            bool refines = study->strategy != LAB_CAMPAIGN_AS_WRITTEN;
            costs[p].seconds += !isnan(seconds) ? seconds
                                : refines       ? run_s * runs_of(study, found)
                                                : 0;
            costs[p].bytes += study_bytes(found);
            costs[p].begun |= found->begun;
        }
    return costs;
}

/* The phase to drop next: -1 = none can be. The first one that runs never is. */
static int find_least(const struct lab_campaign *campaign, const struct cost *costs,
                      const bool *needed) {
    int least = -1;
    for (int i = 1; i < campaign->phase_count; i++) {
        int phase = campaign->order[i];
        if (costs[phase].begun || costs[phase].dropped || needed[phase])
            continue;
        if (least < 0 || campaign->phases[phase].priority >= campaign->phases[least].priority)
            least = phase;
    }
    return least;
}

static bool is_over(const struct lab_campaign *campaign, double seconds, int64_t bytes) {
    return (campaign->budget_s > 0 && seconds > campaign->budget_s) ||
           (campaign->budget_bytes > 0 && bytes > campaign->budget_bytes);
}

static int refuse_budget(const struct lab_campaign *campaign, double seconds, int64_t bytes,
                         struct lab_err *err) {
    LAB_AUTO(str, text);
    bool time = campaign->budget_s > 0 && seconds > campaign->budget_s;
    if (time)
        lab_str_add_duration(&text, seconds, LAB_DURATION_ROUNDED);
    else
        lab_str_add_bytes_binary(&text, (double)bytes);
    lab_str_printf(&text, " expected, %s has ", time ? "budget.time" : "budget.disk");
    if (time && campaign->budget_s < 1)
        lab_str_add_time(&text, campaign->budget_s);
    else if (time)
        lab_str_add_duration(&text, campaign->budget_s, LAB_DURATION_ROUNDED);
    else
        lab_str_add_bytes_binary(&text, (double)campaign->budget_bytes);
    return lab_err_set(err, LAB_ERR_USER, "the budget is too small for the first phase, %s: %s",
                       name_of(campaign, campaign->order[0]), text.text);
}

/* What was dropped before a longer phase and has room now; in the order in which phases run. */
static void take_back(const struct lab_campaign *campaign, struct cost *costs, double seconds,
                      int64_t bytes) {
    for (int i = 0; i < campaign->phase_count; i++) {
        const struct lab_campaign_phase *phase = &campaign->phases[campaign->order[i]];
        struct cost *own = &costs[campaign->order[i]];
        bool fits = own->dropped && !is_over(campaign, seconds + own->seconds, bytes + own->bytes);
        for (int k = 0; k < phase->after_count; k++)
            fits &= !costs[phase->after[k]].dropped;
        if (!fits)
            continue;
        own->dropped = false;
        seconds += own->seconds;
        bytes += own->bytes;
    }
}

/* Marks phases as dropped until the rest fits. */
static int drop_phases(const struct lab_campaign *campaign, struct cost *costs,
                       struct lab_arena *arena, struct lab_err *err) {
    bool *needed = lab_arena_alloc(arena, (size_t)campaign->phase_count + 1, sizeof *needed);
    double seconds = 0;
    int64_t bytes = 0;
    for (int p = 0; p < campaign->phase_count; p++) {
        seconds += costs[p].seconds;
        bytes += costs[p].bytes;
    }
    while (is_over(campaign, seconds, bytes)) {
        for (int p = 0; p < campaign->phase_count; p++)
            needed[p] = false;
        for (int p = 0; p < campaign->phase_count; p++)
            for (int i = 0; i < campaign->phases[p].after_count && !costs[p].dropped; i++)
                needed[campaign->phases[p].after[i]] = true;
        int least = find_least(campaign, costs, needed);
        if (least < 0)
            break;
        costs[least].dropped = true;
        seconds -= costs[least].seconds;
        bytes -= costs[least].bytes;
    }
    take_back(campaign, costs, seconds, bytes);
    const struct cost *first = &costs[campaign->order[0]];
    if (!first->begun && is_over(campaign, first->seconds, first->bytes))
        return refuse_budget(campaign, first->seconds, first->bytes, err);
    return 0;
}

/* --- side by side --- */

bool lab_campaign_runs_beside(const struct lab_campaign *campaign,
                              const struct lab_campaign_found *one,
                              const struct lab_campaign_found *other) {
    const struct lab_campaign_use *a = &one->use, *b = &other->use;
    bool simulated = a->simulated && b->simulated;
    bool wanted = campaign->side_by_side < 0 ? simulated : campaign->side_by_side;
    return wanted && a->devices && b->devices && !(a->devices & b->devices) &&
           (simulated || !(a->nodes & b->nodes));
}

struct timetable {
    const struct lab_campaign *campaign;
    const struct lab_campaign_known *known;
    struct lab_campaign_slot *slots;
    int *first, *next; /* of each phase: its first slot, its next study */
    bool *over;        /* it has ended, or is dropped */
};

static bool is_ready(const struct timetable *table, int phase) {
    const struct lab_campaign_phase *own = &table->campaign->phases[phase];
    bool ready = !table->over[phase];
    for (int i = 0; i < own->after_count; i++)
        ready &= table->over[own->after[i]];
    return ready;
}

static const struct lab_campaign_found *next_of(const struct timetable *table, int phase) {
    return &table->known->studies[table->campaign->phases[phase].first_study + table->next[phase]];
}

/* The first phase that is ready, and those that may run beside it; how many. */
static int find_batch(const struct timetable *table, int phases[LAB_CAMPAIGN_BESIDE_MOST]) {
    int count = 0;
    for (int i = 0; i < table->campaign->phase_count && count < LAB_CAMPAIGN_BESIDE_MOST; i++) {
        int phase = table->campaign->order[i];
        bool fits = is_ready(table, phase);
        for (int k = 0; k < count && fits; k++)
            fits = lab_campaign_runs_beside(table->campaign, next_of(table, phases[k]),
                                            next_of(table, phase));
        if (fits)
            phases[count++] = phase;
        if (count == 1 && !next_of(table, phases[0])->use.devices)
            break;
    }
    return count;
}

/* When each slot begins: the next ones once all that run at the same time have ended. Returns when
 * the last one has. */
static double set_starts(struct timetable *table) {
    double now_s = 0;
    int phases[LAB_CAMPAIGN_BESIDE_MOST], count;
    while ((count = find_batch(table, phases)) > 0) {
        double longest_s = 0;
        for (int k = 0; k < count; k++) {
            struct lab_campaign_slot *slot =
                &table->slots[table->first[phases[k]] + table->next[phases[k]]++];
            slot->start_s = now_s;
            longest_s = fmax(longest_s, slot->seconds); /* NaN is passed over */
        }
        now_s += longest_s;
        for (int k = 0; k < count; k++)
            table->over[phases[k]] =
                table->next[phases[k]] >= table->campaign->phases[phases[k]].study_count;
    }
    return now_s;
}

int lab_campaign_make_schedule(const struct lab_campaign *campaign,
                               const struct lab_campaign_known *known, struct lab_arena *arena,
                               struct lab_campaign_schedule *ret_schedule, struct lab_err *err) {
    struct lab_campaign_schedule made = {
        .slots = lab_arena_alloc(arena, (size_t)campaign->study_count + 1, sizeof *made.slots)};
    struct cost *costs = find_costs(campaign, known, arena);
    size_t phase_count = (size_t)campaign->phase_count + 1;
    struct timetable table = {.campaign = campaign,
                              .known = known,
                              .slots = made.slots,
                              .first = lab_arena_alloc(arena, phase_count, sizeof *table.first),
                              .next = lab_arena_alloc(arena, phase_count, sizeof *table.next),
                              .over = lab_arena_alloc(arena, phase_count, sizeof *table.over)};
    if (drop_phases(campaign, costs, arena, err) < 0)
        return -1;
    for (int i = 0; i < campaign->phase_count; i++) {
        int phase = campaign->order[i];
        table.first[phase] = made.slot_count;
        table.over[phase] = costs[phase].dropped || campaign->phases[phase].study_count == 0;
        for (int s = 0; s < campaign->phases[phase].study_count; s++) {
            const struct lab_campaign_found *found =
                &known->studies[campaign->phases[phase].first_study + s];
            struct lab_campaign_slot *slot = &made.slots[made.slot_count++];
            *slot = (struct lab_campaign_slot){.phase = phase,
                                               .study = s,
                                               .seconds = study_seconds(found),
                                               .energy_j = study_energy_j(found),
                                               .bytes = study_bytes(found),
                                               .dropped = costs[phase].dropped};
            if (slot->dropped)
                continue;
            made.unknown += isnan(slot->seconds) && found->planned > 0;
            made.energy_j += isnan(slot->energy_j) ? 0 : slot->energy_j;
            made.energy_unknown += isnan(slot->energy_j) && found->planned > 0;
            made.bytes += slot->bytes;
        }
    }
    made.seconds = set_starts(&table);
    *ret_schedule = made;
    return 0;
}
