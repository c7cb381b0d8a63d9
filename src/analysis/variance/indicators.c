/*
 * indicators.c: the signs by which contention is told, each met, not met or undecided, with what
 * speaks for it. Not met is a claim too: it needs figures that would have shown it.
 */
#include "analysis/variance/phases.h"

#include "analysis/analysis_resource.h"
#include "analysis/analysis_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL       0.05
#define SPREAD_TOLD 10     /* how far a bound of it says something */
#define MORE_SPREAD 1.5    /* a spread that may be larger than this isn't known to be the same */
#define SLOWER      1.05   /* likewise a best time */
#define SEEN        0.5    /* a correlation that would have been seen is at most this */
#define BUDGET      300000 /* windows × resources of all devices */
#define DEVICES_MAX 64

const char *lab_indicator_state_name(enum lab_indicator_state state) {
    switch (state) {
    case LAB_INDICATOR_MET:
        return "met";
    case LAB_INDICATOR_NOT_MET:
        return "not met";
    case LAB_INDICATOR_UNDECIDED:
        break;
    }
    return "undecided";
}

/* "softmax on GPU 1" */
static const char *place(const struct lab_phases *phases, const struct lab_phase_pair *pair,
                         struct lab_arena *arena) {
    const struct lab_phase_unit *unit = &phases->units[pair->unit];
    return lab_arena_printf(arena, "%s on %s", unit->kernel, unit->device);
}

/* --- ratios: spread, and the best time that tuning found --- */

struct tally {
    int known, more;
    double bound; /* the largest high end */
    const struct lab_phase_pair *worst;
};

static const struct lab_study_ratio *ratio_of(const struct lab_phase_pair *pair, bool spread) {
    return spread ? &pair->spread : &pair->best;
}

static struct tally count_ratios(const struct lab_phases *phases, bool spread) {
    struct tally tally = {.bound = 0};
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        const struct lab_study_ratio *ratio = ratio_of(pair, spread);
        if (pair->phase != phases->concurrent || isnan(ratio->low))
            continue;
        tally.known++;
        tally.bound = fmax(tally.bound, ratio->high);
        if (ratio->verdict != LAB_STUDY_MORE)
            continue;
        tally.more++;
        if (!tally.worst || ratio->low > ratio_of(tally.worst, spread)->low)
            tally.worst = pair;
    }
    return tally;
}

static void judge_spread(const struct lab_phases *phases, struct lab_arena *arena,
                         struct lab_indicator *indicator) {
    struct tally tally = count_ratios(phases, true);
    if (tally.worst) {
        const struct lab_study_ratio *ratio = &tally.worst->spread;
        indicator->state = LAB_INDICATOR_MET;
        indicator->evidence = lab_arena_printf(
            arena, "in %d of %d the spread grew, most for %s: %.2f× [%.2f, %.2f]%s", tally.more,
            tally.known, place(phases, tally.worst, arena), ratio->ratio, ratio->low, ratio->high,
            ratio->within ? " within one run each" : "");
    } else if (tally.known == 0) {
        indicator->evidence = "the spread of iterations isn't known: none were kept, or they don't "
                              "vary";
    } else if (tally.bound <= MORE_SPREAD) {
        indicator->state = LAB_INDICATOR_NOT_MET;
        indicator->evidence = lab_arena_printf(arena, "nowhere did it grow to more than %.2f×",
                                               ceil(100 * tally.bound) / 100);
    } else {
        indicator->evidence =
            tally.bound <= SPREAD_TOLD
                ? lab_arena_printf(
                      arena,
                      "none grew for certain, but it may be up to %.2f×: more runs would tell",
                      tally.bound)
                : "none grew for certain, but the runs differ too much to tell: more would";
    }
}

static void judge_convergence(const struct lab_phases *phases, struct lab_arena *arena,
                              struct lab_indicator *indicator) {
    struct tally tally = count_ratios(phases, false);
    const struct lab_phase_pair *slowest = NULL;
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        if (pair->phase == phases->concurrent && !isnan(pair->best.ratio) &&
            (!slowest || pair->best.ratio > slowest->best.ratio))
            slowest = pair;
    }
    if (tally.worst) {
        indicator->state = LAB_INDICATOR_MET;
        indicator->evidence = lab_arena_printf(
            arena,
            "in %d of %d tuning ended with a slower best, most for %s: %+.1f %% [%.1f, %.1f]",
            tally.more, tally.known, place(phases, tally.worst, arena),
            100 * (tally.worst->best.ratio - 1), 100 * (tally.worst->best.low - 1),
            100 * (tally.worst->best.high - 1));
    } else if (!slowest) {
        indicator->evidence = "the runs weren't tuned";
    } else if (tally.known == 0) {
        indicator->evidence = lab_arena_printf(
            arena,
            "one tuning each: the best time differs by at most %+.1f %% (%s), more would tell "
            "whether that is chance",
            100 * (slowest->best.ratio - 1), place(phases, slowest, arena));
    } else if (tally.bound <= SLOWER) {
        indicator->state = LAB_INDICATOR_NOT_MET;
        indicator->evidence =
            lab_arena_printf(arena,
                             "the best time that tuning found is nowhere more than %.1f %% "
                             "longer",
                             ceil(1000 * (tally.bound - 1)) / 10);
    } else {
        indicator->evidence =
            tally.bound - 1 <= LAB_WORDS_BOUND_MOST
                ? lab_arena_printf(
                      arena,
                      "none is slower for certain, but by up to %.1f %%: more runs would tell",
                      100 * (tally.bound - 1))
                : "none is slower for certain, but the tunings differ too much to tell: more would";
    }
}

/* --- configurations --- */

static void judge_configurations(const struct lab_phases *phases, struct lab_arena *arena,
                                 struct lab_indicator *indicator) {
    int tuned = 0, differing = 0, pairs = 0, own = 0, own_pairs = 0;
    double share = 0, own_share = 0;
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        if (pair->phase != phases->concurrent || !pair->tuned)
            continue;
        tuned++;
        differing += pair->differing > 0;
        pairs += pair->pairs;
        share += pair->differing;
        own_pairs += pair->own_pairs;
        own += pair->own_differing;
    }
    share = pairs > 0 ? share / pairs : 0;
    own_share = own_pairs > 0 ? (double)own / own_pairs : 0;
    if (tuned == 0) {
        indicator->evidence = "the runs weren't tuned";
    } else if (differing == 0) {
        indicator->state = LAB_INDICATOR_NOT_MET;
        indicator->evidence = lab_arena_printf(
            arena, "the tuner chose the same for all %d kernels on a device", tuned);
    } else if (own > 0 && own_share >= share) {
        indicator->evidence = lab_arena_printf(
            arena,
            "the tuner chose otherwise for %d of %d kernels on a device, but alone it doesn't "
            "agree with itself either (%.0f %% of its repeats differ)",
            differing, tuned, 100 * own_share);
    } else {
        indicator->state = LAB_INDICATOR_MET;
        indicator->evidence = lab_arena_printf(
            arena, "the tuner chose another configuration for %d of %d kernels on a device%s",
            differing, tuned,
            own_pairs == 0 ? "; whether it agrees with itself alone isn't known" : "");
    }
}

/* --- resources --- */

struct sampled { /* what goes together in the concurrent phase */
    struct lab_resource_correlations correlations[DEVICES_MAX];
    int device_count;
};

static void sample(const struct lab_phases *phases, struct lab_arena *arena,
                   struct sampled *sampled) {
    const struct lab_study_run **runs =
        lab_arena_alloc(arena, (size_t)phases->run_count + 1, sizeof *runs);
    int ids[DEVICES_MAX] = {0}, count = 0;
    sampled->device_count = 0;
    for (int i = 0; i < phases->run_count && phases->concurrent >= 0; i++)
        if (strcmp(phases->run_phases[i], phases->names[phases->concurrent]) == 0)
            runs[count++] = phases->runs[i];
    for (int i = 0; i < count; i++)
        for (int r = 0; r < runs[i]->rank_count; r++) {
            bool seen = false;
            for (int k = 0; k < sampled->device_count; k++)
                seen |= ids[k] == runs[i]->ranks[r].gpu_id;
            if (!seen && sampled->device_count < DEVICES_MAX)
                ids[sampled->device_count++] = runs[i]->ranks[r].gpu_id;
        }
    for (int d = 0; d < sampled->device_count; d++)
        lab_resource_correlations_make(runs, count, ids[d],
                                       (size_t)(BUDGET / sampled->device_count), arena,
                                       &sampled->correlations[d]);
}

typedef bool is_asked(const struct lab_resource *resource);

struct asked { /* of some resources and one figure */
    const struct lab_resource_correlation *best;
    const struct lab_resource_correlations *whose;
    int count;
    int mates;        /* left out: of GPUs of the run itself, whose figures follow its own pace */
    double effective; /* fewest windows */
    double p;         /* of the best, over all that were asked */
};

/* The most significant one that rises with the resource, and its p over all of them. What follows
 * from the device's own pace says nothing of others. */
static struct asked ask(const struct sampled *sampled, is_asked *is,
                        enum lab_resource_correlation_figure figure, struct lab_arena *arena) {
    struct asked asked = {.effective = NAN, .p = NAN};
    int n = 0, chosen = 0;
    double *p = NULL;
    for (int d = 0; d < sampled->device_count; d++)
        for (int i = 0; i < sampled->correlations[d].count; i++) {
            const struct lab_resource_correlation *correlation = &sampled->correlations[d].items[i];
            if (!is(&correlation->resource))
                continue;
            asked.mates += correlation->role == LAB_RESOURCE_OWN &&
                           correlation->resource.index != sampled->correlations[d].rank_times.gpu;
            if (correlation->figure != figure || correlation->role == LAB_RESOURCE_OWN)
                continue;
            asked.effective = fmin(asked.effective, correlation->effective);
            if (correlation->spearman.r > 0 &&
                (!asked.best || correlation->spearman.p < asked.best->spearman.p ||
                 (correlation->spearman.p == asked.best->spearman.p &&
                  correlation->spearman.r > asked.best->spearman.r))) {
                asked.best = correlation;
                asked.whose = &sampled->correlations[d];
                chosen = n;
            }
            LAB_ADD(p, n, arena) = correlation->spearman.r > 0 ? correlation->spearman.p : 1;
        }
    asked.count = n;
    lab_stats_adjust_bh(p, (size_t)n, p);
    if (asked.best)
        asked.p = p[chosen];
    return asked;
}

/* The weakest correlation that would have been seen in four of five cases. */
static double least_seen(const struct asked *asked) {
    if (!(asked->effective > 3))
        return 1;
    double error = 1 / sqrt(asked->effective - 3);
    double threshold = lab_stats_normal_quantile(1 - LEVEL / 2 / asked->count) * error;
    return tanh(fmax(threshold, atanh(LAB_TIE_LEAST)) + lab_stats_normal_quantile(0.8) * error);
}

static void judge_correlation(const struct asked *asked, const char *what, const char *noun,
                              struct lab_arena *arena, struct lab_indicator *indicator) {
    if (asked->count == 0 && asked->mates > 0) {
        indicator->evidence = lab_arena_printf(
            arena,
            "not testable here: %s was sampled, but only of GPUs of the same run, which keep its "
            "pace",
            what);
    } else if (asked->count == 0) {
        indicator->evidence =
            lab_arena_printf(arena, "%s was not sampled beside enough iterations to tell", what);
    } else if (asked->p <= LEVEL && asked->best->spearman.r >= LAB_TIE_LEAST) {
        const struct lab_correlation *found = &asked->best->spearman;
        indicator->state = LAB_INDICATOR_MET;
        indicator->evidence = lab_arena_printf(
            arena, "the %s goes together with the %s on %s: ρ = %.2f [%.2f, %.2f], %zu windows",
            lab_resource_title(&asked->best->resource, arena), noun,
            asked->whose->rank_times.device, found->r, found->interval.low, found->interval.high,
            asked->best->windows);
    } else if (least_seen(asked) <= SEEN) {
        indicator->state = LAB_INDICATOR_NOT_MET;
        indicator->evidence = lab_arena_printf(
            arena, "none of %d, and a correlation of %.2f would mostly have been seen",
            asked->count, least_seen(asked));
    } else {
        indicator->evidence = lab_arena_printf(
            arena, "none of %d for certain, but the runs are too short to see less than ρ = %.2f",
            asked->count, least_seen(asked));
    }
}

/* Spikes that cost time, over all CPU resources. */
static bool find_spikes(const struct sampled *sampled, struct lab_arena *arena,
                        struct lab_indicator *indicator) {
    int n = 0, chosen = 0;
    double *p = NULL;
    const struct lab_spikes *best = NULL;
    const struct lab_resource_correlations *whose = NULL;
    for (int d = 0; d < sampled->device_count; d++)
        for (int i = 0; i < sampled->correlations[d].spike_count; i++) {
            const struct lab_spikes *spikes = &sampled->correlations[d].spikes[i];
            if (!lab_resource_is_cpu(&spikes->resource))
                continue;
            if (spikes->rise > 0 && (!best || spikes->p < best->p)) {
                best = spikes;
                whose = &sampled->correlations[d];
                chosen = n;
            }
            LAB_ADD(p, n, arena) = spikes->p;
        }
    lab_stats_adjust_bh(p, (size_t)n, p);
    if (!best || !(p[chosen] <= LEVEL))
        return false;
    indicator->state = LAB_INDICATOR_MET;
    indicator->evidence = lab_arena_printf(
        arena, "iterations on %s take %.1f %% [%.1f, %.1f] longer during %d spikes of the %s",
        whose->rank_times.device, 100 * best->rise, 100 * best->interval.low,
        100 * best->interval.high, best->events, lab_resource_title(&best->resource, arena));
    return true;
}

/* --- all of them --- */

void lab_phases_indicators(const struct lab_phases *phases, struct lab_arena *arena,
                           struct lab_indicator *ret_indicators) {
    static const struct lab_indicator asked[LAB_INDICATORS] = {
        {.key = "higher_variance", .title = "Times vary more beside others"},
        {.key = "different_configurations", .title = "Tuning ends with other configurations"},
        {.key = "pcie_correlation", .title = "PCIe traffic goes together with the spread of times"},
        {.key = "cpu_spikes", .title = "CPU spikes go together with slow iterations"},
        {.key = "suboptimal_convergence", .title = "Tuning ends with a slower best"},
    };
    struct sampled *sampled = lab_arena_alloc(arena, 1, sizeof *sampled);
    memcpy(ret_indicators, asked, sizeof asked);
    sample(phases, arena, sampled);
    judge_spread(phases, arena, &ret_indicators[0]);
    judge_configurations(phases, arena, &ret_indicators[1]);
    struct asked pcie = ask(sampled, lab_resource_is_pcie, LAB_TIE_SPREAD, arena);
    judge_correlation(&pcie, "PCIe traffic of others", "spread of iterations", arena,
                      &ret_indicators[2]);
    struct asked cpu = ask(sampled, lab_resource_is_cpu, LAB_TIE_TIME, arena);
    if (!find_spikes(sampled, arena, &ret_indicators[3]))
        judge_correlation(&cpu, "CPU utilisation", "time of iterations", arena, &ret_indicators[3]);
    judge_convergence(phases, arena, &ret_indicators[4]);
}
