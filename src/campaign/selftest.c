/* selftest.c: how often verdicts on nothing find something. */
#include "campaign/selftest.h"

#include "analysis/analysis.h"
#include "base/random.h"
#include "stats/stats.h"

#include <math.h>

/* --- two names for the same thing --- */

struct side {
    const struct lab_study_run **runs;
    double *rates, *times_s;
    int count;
};

static struct side side_make(int room, struct lab_arena *arena) {
    return (struct side){lab_arena_alloc(arena, (size_t)room + 1, sizeof(struct lab_study_run *)),
                         lab_arena_alloc(arena, (size_t)room + 1, sizeof(double)),
                         lab_arena_alloc(arena, (size_t)room + 1, sizeof(double)), 0};
}

static void side_add(struct side *side, const struct lab_study_run *run) {
    side->runs[side->count] = run;
    side->rates[side->count] = run->rate;
    side->times_s[side->count++] = run->time_s;
}

static struct lab_study_ratio compare(const struct side *a, const struct side *b) {
    struct lab_study_point first = {"A", a->runs, a->count, a->rates, a->times_s},
                           second = {"B", b->runs, b->count, b->rates, b->times_s};
    return lab_study_compare(&first, &second, LAB_STUDY_RATE);
}

static bool is_alarm(const struct lab_study_ratio *ratio) {
    return ratio->verdict == LAB_STUDY_MORE || ratio->verdict == LAB_STUDY_LESS;
}

static void add_bound(struct lab_selftest_tally *tally, double bound) {
    LAB_MEM_GROW(&tally->bounds, tally->studies, &tally->capacity);
    tally->bounds[tally->studies] = bound;
}

/* --- spread, as `analyze variance` judges it --- */

unsigned lab_selftest_needs(void) {
    return LAB_STUDY_WITH_ITERATIONS;
}

static void name_phases(const struct side *side, const char *phase, struct lab_study_table *table) {
    for (int i = 0; i < side->count; i++) {
        table->runs[table->run_count] = *side->runs[i];
        table->runs[table->run_count++].phase = phase;
    }
}

static void judge_spread(const struct lab_study_table *table, const struct side sides[2],
                         struct lab_selftest_tally *tally, struct lab_arena *arena) {
    const struct lab_analysis *variance = lab_analysis_find("variance", NULL);
    struct lab_study_table named = *table;
    struct lab_analysis_input input = {.studies = &named, .study_count = 1};
    struct lab_analysis_result result;
    named.runs = lab_arena_alloc(arena, (size_t)table->run_count + 1, sizeof *named.runs);
    named.run_count = 0;
    name_phases(&sides[0], "baseline", &named);
    name_phases(&sides[1], "concurrent", &named);
    if (!variance ||
        variance->run(lab_analysis_config(variance, arena), &input, arena, &result, NULL) < 0)
        return;
    for (int i = 0; i < result.claim_count; i++) {
        const struct lab_claim *claim = &result.claims[i];
        if (!lab_str_equal(claim->kind, "variance.spread"))
            continue;
        tally->spreads++;
        tally->alarms_spread += claim->verdict == LAB_CLAIM_YES && claim->effect > 0;
    }
}

static bool judge(const struct lab_study_table *table, uint64_t seed,
                  struct lab_selftest_tally *tally, struct lab_arena *arena) {
    size_t pairs = 0, count = 0;
    struct side sides[2] = {side_make(table->run_count, arena), side_make(table->run_count, arena)},
                turns[2] = {side_make(table->run_count, arena), side_make(table->run_count, arena)};
    const struct lab_study_run **used =
        lab_arena_alloc(arena, (size_t)table->run_count + 1, sizeof *used);
    for (int i = 0; i < table->run_count; i++)
        if (table->runs[i].used && table->runs[i].rate > 0)
            used[count++] = &table->runs[i];
    for (; 2 * pairs + 1 < count; pairs++) {
        uint64_t first = lab_random_below(seed, pairs, 2);
        side_add(&sides[first], used[2 * pairs]);
        side_add(&sides[1 - first], used[2 * pairs + 1]);
    }
    if (pairs < 2)
        return false;
    for (size_t i = 0; i < 2 * pairs; i++)
        side_add(&turns[i >= pairs], used[i]);
    struct lab_study_ratio interleaved = compare(&sides[0], &sides[1]),
                           in_turn = compare(&turns[0], &turns[1]);
    add_bound(tally, interleaved.bound);
    tally->studies++;
    tally->alarms += is_alarm(&interleaved);
    tally->alarms_in_turn += is_alarm(&in_turn);
    judge_spread(table, sides, tally, arena);
    return true;
}

bool lab_selftest_judge(const struct lab_study_table *table, uint64_t seed,
                        struct lab_selftest_tally *tally) {
    LAB_AUTO(arena, arena);
    bool judged = judge(table, seed, tally, &arena);
    tally->failed_runs += table->failed_count;
    return judged;
}

void lab_selftest_release(struct lab_selftest_tally *tally) {
    lab_mem_free(tally->bounds);
    *tally = (struct lab_selftest_tally){0};
}

/* --- the verdict on our verdicts --- */

#define BOTH_SIDES 0.98 /* its lower end is the bound on one side at 99 % */

bool lab_selftest_holds(int alarms, int studies) {
    return studies == 0 ||
           lab_stats_binomial_interval(alarms, studies, BOTH_SIDES).low <= LAB_SELFTEST_LEVEL;
}

const char *lab_selftest_answer(const struct lab_selftest_tally *tally, int runs,
                                struct lab_arena *arena) {
    if (tally->studies == 0)
        return "No A/A study could be judged: its runs failed or weren't valid.";
    struct lab_interval interval = lab_stats_binomial_interval(tally->alarms, tally->studies, 0.95);
    double share = 100.0 * tally->alarms / tally->studies;
    const char *words =
        !lab_selftest_holds(tally->alarms, tally->studies)
            ? "more than the 5 % they promise: don't trust verdicts on this machine "
              "until it is quiet, or take more runs"
        : interval.high <= 2 * LAB_SELFTEST_LEVEL
            ? "consistent with the 5 % they promise"
            : "consistent with the 5 % they promise, though so few studies can't "
              "rule out more";
    return lab_arena_printf(arena,
                            "Verdicts on nothing found a difference in %d of %d A/A studies of %d "
                            "and %d runs (%.1f %%, [%.1f, %.1f] at 95 %%): %s.",
                            tally->alarms, tally->studies, runs, runs, share, 100 * interval.low,
                            100 * interval.high, words);
}
