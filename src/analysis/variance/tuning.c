/*
 * tuning.c: whether tuning under load ends with other configurations, and what these cost on the
 * idle device. Kernels whose tunings tried fewer than three configurations don't count: a tie
 * keeps the default, so that they agree whatever the load.
 */
#include "analysis/variance/phases.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define BLOCKS_MAX 256
#define CONFIDENCE 0.95
#define RARE       0.05 /* a share of other choices that isn't larger is none to act upon */

static const struct lab_value *choice_of(const struct lab_study_run *run, struct lab_arena *arena) {
    const struct lab_value *best = lab_result_json(run->result->best_config, arena);
    return best->type == LAB_VALUE_MAP ? best : NULL;
}

/* 0 = it wasn't tuned. */
static int tried_by(const struct lab_study_run *run, struct lab_arena *arena) {
    const struct lab_value *tuning = lab_result_json(run->result->tuning, arena);
    double tried = tuning->type == LAB_VALUE_MAP
                       ? lab_study_value(lab_value_get(tuning, "num_configs_tested"))
                       : (double)NAN;
    if (!choice_of(run, arena))
        return 0;
    return isnan(tried) ? LAB_TUNING_UNKNOWN : (int)tried;
}

/* The fewest of all tunings of the point. */
static int tried_in(const struct lab_study_point *point, struct lab_arena *arena) {
    int fewest = point->count > 0 ? tried_by(point->runs[0], arena) : 0;
    for (int i = 1; i < point->count; i++) {
        int tried = tried_by(point->runs[i], arena);
        fewest = tried < fewest ? tried : fewest;
    }
    return fewest;
}

/* The order of keys doesn't matter. */
static bool differ(const struct lab_value *a, const struct lab_value *b) {
    for (int i = 0; i < a->count; i++) {
        const struct lab_value *other = lab_value_get(b, a->keys[i]);
        if (!other || !lab_value_equal(a->items[i], other))
            return true;
    }
    return a->count != b->count;
}

struct tally { /* pairs of tunings in a block */
    int pairs, other;
};

static void count_pair(struct tally *tally, const struct lab_study_run *a,
                       const struct lab_study_run *b, struct lab_arena *arena) {
    tally->pairs++;
    tally->other += differ(choice_of(a, arena), choice_of(b, arena));
}

/* A unit's choices of the phase, and of the baseline itself in other blocks. */
static void count_unit(const struct lab_study_point *base, const struct lab_study_point *other,
                       struct tally *phase, struct tally *own, struct lab_arena *arena) {
    for (int i = 0; i < base->count; i++) {
        int block = base->runs[i]->run->repeat;
        if (block >= BLOCKS_MAX)
            continue;
        for (int k = 0; k < other->count; k++)
            if (other->runs[k]->run->repeat == block)
                count_pair(&phase[block], base->runs[i], other->runs[k], arena);
        for (int k = 0; k < base->count; k++)
            if (k != i)
                count_pair(&own[block], base->runs[i], base->runs[k], arena);
    }
}

static struct lab_claim judge_choices(const struct tally *phase, const struct tally *own) {
    struct lab_claim claim = lab_claim_none;
    double values[BLOCKS_MAX], alone = 0;
    size_t n = 0;
    for (int b = 0; b < BLOCKS_MAX; b++) {
        double share = (double)phase[b].other / phase[b].pairs;
        alone = phase[b].pairs > 0 ? share : alone;
        if (phase[b].pairs > 0 && own[b].pairs > 0)
            values[n++] = share - (double)own[b].other / own[b].pairs;
    }
    claim.effect = n > 0 ? lab_stats_mean(values, n) : alone;
    claim.n = n > 0 ? (int)n : 1;
    claim.verdict = LAB_CLAIM_INCONCLUSIVE;
    if (n < 2)
        return claim;
    double error = lab_stats_stddev(values, n) / sqrt((double)n);
    struct lab_interval interval = lab_stats_mean_interval(values, n, CONFIDENCE);
    claim.low = error > 0 ? interval.low : claim.effect;
    claim.high = error > 0 ? interval.high : claim.effect;
    claim.confidence = CONFIDENCE;
    claim.p = error > 0 ? lab_stats_t_two_sided(claim.effect / error, (double)n - 1)
                        : (claim.effect != 0 ? 0 : 1);
    if (claim.low > 0)
        claim.verdict = LAB_CLAIM_YES;
    else if (claim.high <= RARE) {
        claim.verdict = LAB_CLAIM_NO;
        claim.bound = fmax(claim.high, 0);
    }
    return claim;
}

/* --- what was chosen, on the idle device --- */

static bool is_run_of(const struct lab_phase_unit *unit, const struct lab_study_run *run,
                      int base) {
    return run->ranks[0].gpu_id == unit->gpu_id &&
           lab_str_equal(run->model, unit->points[base].time.runs[0]->model);
}

static void add_costs(const struct lab_study_run *run, const char *phase, double *sums,
                      int *counts) {
    int block = run->run->repeat;
    for (int r = 0; r < run->result->rank_count && block < BLOCKS_MAX; r++)
        for (int i = 0; i < run->result->ranks[r].regret.count; i++) {
            const struct lab_result_regret *regret = &run->result->ranks[r].regret.items[i];
            if (!lab_str_equal(regret->phase, phase) || !(regret->ratio > 0))
                continue;
            sums[block] += log(regret->ratio);
            counts[block]++;
        }
}

static struct lab_claim judge_cost(const struct lab_phases *phases,
                                   const struct lab_analysis_input *input, int phase,
                                   const bool *tuned) {
    double sums[BLOCKS_MAX] = {0};
    int counts[BLOCKS_MAX] = {0};
    for (int s = 0; s < input->study_count; s++)
        for (int i = 0; i < input->studies[s].run_count; i++) {
            const struct lab_study_run *run = &input->studies[s].runs[i];
            bool counted = false;
            for (int u = 0; u < phases->unit_count; u++)
                counted |= tuned[u] && is_run_of(&phases->units[u], run, phases->base);
            if (run->used && counted && strcmp(run->phase, LAB_PHASE_REGRET) == 0)
                add_costs(run, phases->names[phase], sums, counts);
        }
    for (int b = 0; b < BLOCKS_MAX; b++)
        sums[b] = counts[b] > 0 ? sums[b] / counts[b] : (double)NAN;
    return lab_claim_from_blocks(sums, BLOCKS_MAX, NULL);
}

struct lab_phase_tuning lab_phases_tuning(const struct lab_phases *phases,
                                          const struct lab_analysis_input *input, int phase) {
    struct lab_phase_tuning tuning = {.choices = lab_claim_none, .cost = lab_claim_none};
    LAB_AUTO(arena, scratch);
    struct tally of_phase[BLOCKS_MAX] = {0}, own[BLOCKS_MAX] = {0};
    bool *tuned = lab_arena_alloc(&scratch, (size_t)phases->unit_count + 1, sizeof *tuned);
    bool any = false;
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_phase_point *points = phases->units[u].points;
        const struct lab_study_point *base = &points[phases->base].time,
                                     *other = &points[phase].time;
        int tried = tried_in(base, &scratch), there = tried_in(other, &scratch);
        tried = there < tried ? there : tried;
        tuned[u] = tried >= LAB_TUNING_LEAST;
        if (tried > 0 && (tuning.tried == 0 || (tuned[u] ? !any || tried < tuning.tried : !any)))
            tuning.tried = tried;
        any |= tuned[u];
        if (tuned[u])
            count_unit(base, other, of_phase, own, &scratch);
    }
    for (int b = 0; b < BLOCKS_MAX; b++) {
        tuning.tunings += of_phase[b].pairs;
        tuning.other += of_phase[b].other;
    }
    if (tuning.tunings > 0) {
        tuning.choices = judge_choices(of_phase, own);
        tuning.cost = judge_cost(phases, input, phase, tuned);
    }
    tuning.choices.quantity = "share of other configurations chosen";
    tuning.cost.quantity = tuning.tunings > 0 ? "time on the idle device" : "";
    tuning.choices.subject = tuning.cost.subject = lab_arena_printf(
        phases->arena, "%s %s%s", tuning.tunings > 0 ? "kernels tuned" : "auto-tuning",
        phases->disturb[phase][0]                   ? ""
        : strstr(phases->titles[phase], " at once") ? "with "
                                                    : "in phase ",
        phases->titles[phase]);
    tuning.choices.reference = tuning.cost.reference = "kernels tuned alone";
    tuning.choices.simulated = tuning.cost.simulated = phases->simulated;
    return tuning;
}

const char *lab_phases_untuned(const struct lab_phases *phases,
                               const struct lab_phase_tuning *tuning) {
    if (tuning->tried == 0)
        return phases->simulated ? "simulated kernels are not tuned" : "the runs were not tuned";
    return tuning->tried < LAB_TUNING_LEAST
               ? lab_arena_printf(phases->arena, "tunings tried %d configuration%s, %d needed",
                                  tuning->tried, tuning->tried == 1 ? "" : "s", LAB_TUNING_LEAST)
               : "phase regret was not run";
}

const char *lab_phases_chosen(const struct lab_phase_point *base,
                              const struct lab_phase_point *other) {
    LAB_AUTO(arena, scratch);
    struct tally phase[BLOCKS_MAX] = {0}, own[BLOCKS_MAX] = {0};
    int differing = 0;
    if (tried_in(&base->time, &scratch) == 0 || tried_in(&other->time, &scratch) == 0)
        return NULL;
    count_unit(&base->time, &other->time, phase, own, &scratch);
    for (int b = 0; b < BLOCKS_MAX; b++)
        differing += phase[b].other;
    return differing > 0 ? "other" : "same";
}
