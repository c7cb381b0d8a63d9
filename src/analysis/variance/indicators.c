/*
 * indicators.c: the five indicators of contention, each a claim: met, not met with a bound, or
 * inconclusive; or not testable, and why.
 */
#include "analysis/variance/phases.h"

#include "analysis/analysis_resource.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define MORE_SPREAD 0.5    /* a spread larger by no more doesn't meet the first one */
#define SLOWER      0.05   /* likewise a choice that takes longer, the last one */
#define SEEN        0.5    /* a correlation that would have been detected is at most this */
#define BUDGET      300000 /* windows × resources of all devices */
#define DEVICES_MAX 64

/* Only more of it meets the indicator; it isn't met where no more than `most` is possible. The
 * claim is of both directions, and so is its bound. */
static void judge_rise(struct lab_indicator *indicator, double most) {
    struct lab_claim *claim = &indicator->claim;
    double farther = fmax(fabs(claim->low), fabs(claim->high));
    bool open = claim->verdict == LAB_CLAIM_INCONCLUSIVE;
    indicator->verdict = open && claim->high <= most                             ? LAB_CLAIM_NO
                         : claim->verdict == LAB_CLAIM_YES && claim->effect <= 0 ? LAB_CLAIM_NO
                                                                                 : claim->verdict;
    if (open && farther <= most) {
        claim->verdict = LAB_CLAIM_NO;
        claim->bound = farther;
    }
}

static const char *rise_words(const struct lab_indicator *indicator, const char *what,
                              const char *lacking, struct lab_arena *arena) {
    const struct lab_claim *claim = &indicator->claim;
    if (indicator->verdict == LAB_CLAIM_NOT_TESTED)
        return lacking;
    if (indicator->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, "%s at most %.1f%% higher", what,
                                100 * fmax(claim->high, 0));
    if (isnan(claim->low))
        return lab_arena_printf(arena, "%s %+.1f%%", what, 100 * claim->effect);
    return lab_arena_printf(arena, "%s %+.1f%% [%.1f, %.1f]", what, 100 * claim->effect,
                            100 * claim->low, 100 * claim->high);
}

static void judge_spread(const struct lab_phases *phases, const struct lab_claim *spread,
                         struct lab_indicator *indicator) {
    indicator->claim = *spread;
    judge_rise(indicator, MORE_SPREAD);
    indicator->evidence =
        rise_words(indicator, "spread", "no iterations kept, or they don't vary", phases->arena);
}

/* --- tuning --- */

static void judge_tuning(const struct lab_phases *phases, const struct lab_phase_tuning *tuning,
                         struct lab_indicator *choices, struct lab_indicator *cost) {
    const char *lacking = lab_phases_untuned(phases, tuning);
    choices->claim = tuning->choices;
    choices->verdict = tuning->choices.verdict;
    choices->evidence = tuning->tunings > 0
                            ? lab_arena_printf(phases->arena, "another in %d of %d tunings",
                                               tuning->other, tuning->tunings)
                            : lacking;
    cost->claim = tuning->cost;
    judge_rise(cost, SLOWER);
    cost->evidence = rise_words(cost, "time on the idle device", lacking, phases->arena);
}

/* --- resources --- */

struct sampled { /* correlations in the concurrent phase */
    struct lab_resource_correlations correlations[DEVICES_MAX];
    int device_count;
};

static void sample(const struct lab_phases *phases, struct sampled *sampled) {
    struct lab_arena *arena = phases->arena;
    const struct lab_study_run **runs =
        lab_arena_alloc(arena, (size_t)phases->run_count + 1, sizeof *runs);
    int ids[DEVICES_MAX] = {0}, count = 0;
    for (int i = 0; i < phases->run_count; i++)
        if (strcmp(phases->run_phases[i], phases->names[phases->concurrent]) == 0)
            runs[count++] = phases->runs[i];
    sampled->device_count = lab_resource_devices(runs, count, ids, DEVICES_MAX);
    for (int d = 0; d < sampled->device_count; d++)
        lab_resource_correlations_make(runs, count, ids[d],
                                       (size_t)(BUDGET / sampled->device_count), arena,
                                       &sampled->correlations[d]);
}

/* Traffic of the GPU itself follows from its pace. What others of the same run do doesn't raise
 * with its spread by that: when all slow down together, their traffic falls. */
static bool is_traffic(const struct lab_resource_correlations *of,
                       const struct lab_resource_correlation *item) {
    return lab_resource_is_pcie(&item->resource) && item->figure == LAB_TIE_SPREAD &&
           item->resource.index != of->rank_times.gpu;
}

/* Whether any traffic of another GPU was read: such values correlate with nothing if constant. */
static bool has_traffic(const struct lab_rank_times *rank_times) {
    for (int p = 0; p < rank_times->count; p++) {
        const struct lab_recording *recording = rank_times->items[p].run->recording;
        for (int t = 0; t < recording->track_count; t++) {
            const struct lab_entity *entity = &recording->tracks[t].entity;
            for (int c = 0; c < entity->column_count && recording->tracks[t].count > 0; c++) {
                struct lab_resource resource = {.metric =
                                                    (enum lab_metric_id)entity->columns[c].metric};
                if (lab_resource_is_pcie(&resource) && entity->index != rank_times->gpu &&
                    recording->tracks[t].values[c] && recording->tracks[t].valid[c])
                    return true;
            }
        }
    }
    return false;
}

static const char *why_no_traffic(const struct sampled *sampled) {
    for (int d = 0; d < sampled->device_count; d++)
        if (has_traffic(&sampled->correlations[d].rank_times))
            return "PCIe traffic of other GPUs never changed, or has too few windows";
    return "PCIe traffic of other GPUs was not sampled";
}

static bool is_cpu(const struct lab_resource_correlations *of,
                   const struct lab_resource_correlation *item) {
    (void)of;
    return lab_resource_is_cpu(&item->resource) && item->figure == LAB_TIE_TIME;
}

struct candidate { /* what rises with the times, corrected over all that were asked */
    const struct lab_resource_correlation *best;
    const struct lab_resource_correlations *of;
    double p, effective; /* fewest windows */
    int count;
};

static struct candidate choose(const struct sampled *sampled,
                               bool (*is)(const struct lab_resource_correlations *,
                                          const struct lab_resource_correlation *),
                               struct lab_arena *arena) {
    struct candidate chosen = {.effective = NAN, .p = NAN};
    double *p = NULL;
    int at = 0;
    for (int d = 0; d < sampled->device_count; d++)
        for (int i = 0; i < sampled->correlations[d].count; i++) {
            const struct lab_resource_correlation *item = &sampled->correlations[d].items[i];
            if (!is(&sampled->correlations[d], item))
                continue;
            double of_item = item->spearman.r > 0 ? item->spearman.p : 1;
            chosen.effective = fmin(chosen.effective, item->effective);
            if (!chosen.best || of_item < p[at]) {
                chosen.best = item;
                chosen.of = &sampled->correlations[d];
                at = chosen.count;
            }
            LAB_ADD(p, chosen.count, arena) = of_item;
        }
    lab_stats_adjust_bh(p, (size_t)chosen.count, p);
    if (chosen.best)
        chosen.p = p[at];
    return chosen;
}

/* With one run of each point there is no verdict, as in `correlate`, however many points. */
static void judge_correlation(const struct lab_phases *phases, const struct candidate *chosen,
                              const char *all, const char *lacking,
                              struct lab_indicator *indicator) {
    struct lab_arena *arena = phases->arena;
    indicator->claim = lab_claim_none;
    indicator->evidence = lacking;
    if (chosen->count == 0)
        return;
    double least = lab_correlation_detectable(chosen->effective, chosen->count);
    struct lab_claim *claim = &indicator->claim;
    *claim = lab_claim_of_correlation(chosen->of, chosen->best, arena);
    bool seen = chosen->p <= LAB_CLAIM_LEVEL && chosen->best->spearman.r >= LAB_TIE_LEAST;
    bool none = !seen && fmax(least, claim->high) <= SEEN;
    bool open = claim->n < 2 || !phases->repeated || (!seen && !none);
    claim->verdict = open ? LAB_CLAIM_INCONCLUSIVE : seen ? LAB_CLAIM_YES : LAB_CLAIM_NO;
    claim->bound = claim->verdict == LAB_CLAIM_NO ? fmax(least, claim->high) : (double)NAN;
    if (claim->verdict == LAB_CLAIM_NO) /* of all, not of the nearest one alone */
        claim->subject = all;
    indicator->verdict = claim->verdict;
    indicator->evidence =
        seen ? lab_arena_printf(arena, "%s, %s", claim->subject, lab_claim_short(claim, arena))
             : lab_arena_printf(arena, "none of %d (|ρ| ≥ %.2f detectable)", chosen->count, least);
}

/* Spikes that cost time, over all CPU resources. */
static bool find_spikes(const struct lab_phases *phases, const struct sampled *sampled,
                        struct lab_indicator *indicator) {
    struct lab_arena *arena = phases->arena;
    int n = 0, at = 0;
    double *p = NULL;
    const struct lab_spikes *best = NULL;
    const struct lab_resource_correlations *of = NULL;
    for (int d = 0; d < sampled->device_count; d++)
        for (int i = 0; i < sampled->correlations[d].spike_count; i++) {
            const struct lab_spikes *spikes = &sampled->correlations[d].spikes[i];
            if (!lab_resource_is_cpu(&spikes->resource))
                continue;
            if (spikes->rise > 0 && (!best || spikes->p < best->p)) {
                best = spikes;
                of = &sampled->correlations[d];
                at = n;
            }
            LAB_ADD(p, n, arena) = spikes->p;
        }
    lab_stats_adjust_bh(p, (size_t)n, p);
    if (!best || !(p[at] <= LAB_CLAIM_LEVEL))
        return false;
    indicator->claim = lab_claim_of_spikes(of, best, arena);
    if (!phases->repeated)
        indicator->claim.verdict = LAB_CLAIM_INCONCLUSIVE;
    indicator->verdict = indicator->claim.verdict;
    indicator->evidence =
        lab_arena_printf(arena, "%s: time %s in %d spikes", indicator->claim.subject,
                         lab_claim_short(&indicator->claim, arena), best->events);
    return true;
}

/* --- all of them --- */

void lab_phases_indicators(const struct lab_phases *phases, const struct lab_claim *spread,
                           const struct lab_phase_tuning *tuning,
                           struct lab_indicator *ret_indicators) {
    static const struct lab_indicator asked[LAB_INDICATORS] = {
        {.key = "higher_variance", .title = "Higher variance of iteration times"},
        {.key = "different_configurations", .title = "Different configurations chosen"},
        {.key = "pcie_correlation", .title = "PCIe traffic correlates with variance"},
        {.key = "cpu_spikes", .title = "CPU use correlates with slow iterations"},
        {.key = "suboptimal_convergence", .title = "Suboptimal tuning under load"},
    };
    static const char *const states[] = {[LAB_CLAIM_NOT_TESTED] = "not testable",
                                         [LAB_CLAIM_YES] = "met",
                                         [LAB_CLAIM_NO] = "not met",
                                         [LAB_CLAIM_INCONCLUSIVE] = "inconclusive"};
    struct lab_arena *arena = phases->arena;
    struct sampled *sampled = lab_arena_alloc(arena, 1, sizeof *sampled);
    memcpy(ret_indicators, asked, sizeof asked);
    sample(phases, sampled);
    judge_spread(phases, spread, &ret_indicators[0]);
    judge_tuning(phases, tuning, &ret_indicators[1], &ret_indicators[4]);
    struct candidate pcie = choose(sampled, is_traffic, arena),
                     cpu = choose(sampled, is_cpu, arena);
    judge_correlation(phases, &pcie, "any PCIe traffic of other GPUs", why_no_traffic(sampled),
                      &ret_indicators[2]);
    if (!find_spikes(phases, sampled, &ret_indicators[3]))
        judge_correlation(phases, &cpu, "any CPU resource",
                          "CPU use was not sampled, or never changed", &ret_indicators[3]);
    for (int i = 0; i < LAB_INDICATORS; i++) {
        ret_indicators[i].claim.kind = lab_arena_printf(arena, "variance.%s", asked[i].key);
        ret_indicators[i].state = states[ret_indicators[i].verdict];
        if (ret_indicators[i].verdict == LAB_CLAIM_NOT_TESTED)
            ret_indicators[i].claim.reason = ret_indicators[i].evidence;
    }
}
