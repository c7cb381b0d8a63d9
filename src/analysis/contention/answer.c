/* answer.c: what the claims about phases say in sentences: the headline, its cause, what helps. */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "base/list.h"
#include "base/str.h"

#include <math.h>

#define AT_LIMIT     0.9 /* of the power limit, as it swings: then power lowers the clock */
#define KERNELS_MOST 3   /* that are named */
#define SLOW_MOST    3   /* likewise, devices whose copies are slow by themselves */
#define SPARED       0.2 /* of the largest fall, in logarithms: devices below it are named */

/* "takes 18.0% longer (95% CI [15.1, 21.0]%)", from a factor of two on "takes 2.47× as long" */
static const char *change_words(const struct lab_claim *claim, struct lab_arena *arena) {
    double sign = claim->effect < 0 ? -1 : 1;
    int places = claim->effect < 8.995 ? 2 : claim->effect < 98.95 ? 1 : 0; /* three digits */
    if (claim->effect >= 1)
        return lab_arena_printf(arena, "takes %.*f× as long (95%% CI [%.*f, %.*f]×)", places,
                                1 + claim->effect, places, 1 + claim->low, places, 1 + claim->high);
    return lab_arena_printf(arena, "takes %.1f%% %s (95%% CI [%.1f, %.1f]%%)",
                            100 * fabs(claim->effect), sign < 0 ? "less time" : "longer",
                            100 * sign * (sign < 0 ? claim->high : claim->low),
                            100 * sign * (sign < 0 ? claim->low : claim->high));
}

/* Kernels with that verdict: "gemm and flash", "all 3 kernels", or from four on "5 kernels"; the
 * largest bound. */
static int list_kernels(const struct contention_phase *phase, enum lab_claim_verdict verdict,
                        struct lab_str *out, double *ret_bound, struct lab_arena *arena) {
    const char **names = NULL;
    int count = 0;
    *ret_bound = 0;
    for (int k = 0; k < phase->kernel_count; k++)
        if (phase->kernels[k].change.verdict == verdict) {
            LAB_ADD(names, count, arena) = phase->kernels[k].kernel;
            *ret_bound = fmax(*ret_bound, phase->kernels[k].change.bound);
        }
    if (count == 0)
        return 0;
    lab_str_add(out,
                out->text[out->length - 1] == ' ' && out->text[out->length - 2] == ':' ? "" : ", ");
    if (count > 1 && count == phase->kernel_count) {
        lab_str_printf(out, "all %d kernels", count);
    } else if (count > KERNELS_MOST) {
        lab_str_printf(out, "%d kernels", count);
    } else {
        int named = count;
        LAB_ADD(names, named, arena) = NULL;
        lab_str_add_list(out, names, "and");
    }
    return count;
}

/* What more runs would show, where something is inconclusive: all kernels together, as in
 * variance; else the kernel that varies most. */
static void add_needed(const struct contention *made, const struct contention_phase *phase,
                       struct lab_str *out) {
    const struct lab_claim *open = &phase->slowdown;
    const char *kernel = NULL;
    for (int k = 0; k < phase->kernel_count; k++) {
        const struct lab_claim *claim = &phase->kernels[k].change;
        if (phase->slowdown.verdict != LAB_CLAIM_INCONCLUSIVE &&
            claim->verdict == LAB_CLAIM_INCONCLUSIVE &&
            (open == &phase->slowdown || claim->needed > open->needed)) {
            open = claim;
            kernel = phase->kernels[k].kernel;
        }
    }
    const char *next = lab_claim_next(open, made->arena);
    bool some = false; /* kernels have a verdict */
    for (int k = 0; k < phase->kernel_count; k++)
        some |= phase->kernels[k].change.verdict != LAB_CLAIM_INCONCLUSIVE;
    if (open->verdict == LAB_CLAIM_INCONCLUSIVE && phase->slowdown.n == 1)
        lab_str_printf(out, " %s.", lab_study_verdict_words(made->study));
    else if (*next && (kernel || some)) /* whose runs these are: others stand before it */
        lab_str_printf(out, " To decide %s: %s.", kernel ? kernel : "the mean of all kernels",
                       next);
    else if (*next)
        lab_str_printf(out, " %s.", lab_words_capital(next, made->arena));
}

/* Of kernels that are inconclusive, the one with the largest effect; NULL = none is. */
static const struct lab_claim *largest_open(const struct contention_phase *phase) {
    const struct lab_claim *largest = NULL;
    for (int k = 0; k < phase->kernel_count; k++) {
        const struct lab_claim *claim = &phase->kernels[k].change;
        if (claim->verdict == LAB_CLAIM_INCONCLUSIVE &&
            (!largest || fabs(claim->effect) > fabs(largest->effect)))
            largest = claim;
    }
    return largest;
}

double contention_bound_percent(const struct contention_phase *phase) {
    double most = 0;
    for (int k = 0; k < phase->kernel_count; k++)
        if (phase->kernels[k].change.verdict == LAB_CLAIM_NO)
            most = fmax(most, phase->kernels[k].change.bound);
    for (int i = 0; i < phase->device_count; i++) {
        int kernel =
            LAB_FIND(phase->kernels, phase->kernel_count, kernel, phase->devices[i].kernel);
        if (kernel >= 0 && phase->kernels[kernel].change.verdict == LAB_CLAIM_NO)
            most = lab_words_reach(most, &phase->devices[i].change);
    }
    return lab_words_bound_percent(most);
}

/* "within ±0.8%"; where single devices are known less well than their mean, "mean of 4 GPUs: within
 * ±0.8%, any one GPU: ±2.9%". */
static const char *within_words(const struct contention *made, const struct contention_phase *phase,
                                double bound) {
    double single = contention_bound_percent(phase), mean = lab_words_bound_percent(bound);
    const char **devices = NULL;
    int count = 0;
    for (int i = 0; i < phase->device_count; i++)
        if (lab_list_find_text(devices, count, phase->devices[i].device) < 0)
            LAB_ADD(devices, count, made->arena) = phase->devices[i].device;
    return single > mean
               ? lab_arena_printf(made->arena,
                                  "mean of %d %ss: within ±%.1f%%, any one %s: ±%.1f%%", count,
                                  made->phases.device, mean, made->phases.device, single)
               : lab_arena_printf(made->arena, "within ±%.1f%%", single);
}

/* "4 GPUs at once: softmax takes 2.47× as long (…), gemm is unchanged (…), 5 runs each." */
static void add_kernels(const struct contention *made, const struct contention_phase *phase,
                        struct lab_str *out) {
    struct lab_arena *arena = made->arena;
    const struct lab_claim *all = &phase->slowdown;
    int changed = 0, count;
    double bound;
    lab_str_printf(out, "%s%s: ", phase->title == phase->name ? "Phase " : "",
                   phase->title == phase->name ? phase->name
                                               : lab_words_capital(phase->title, arena));
    for (int k = 0; k < phase->kernel_count; k++)
        changed += phase->kernels[k].change.verdict == LAB_CLAIM_YES;
    for (int k = 0, n = 0; k < phase->kernel_count && changed <= KERNELS_MOST; k++)
        if (phase->kernels[k].change.verdict == LAB_CLAIM_YES)
            lab_str_printf(out, "%s%s %s", n++ ? ", " : "", phase->kernels[k].kernel,
                           change_words(&phase->kernels[k].change, arena));
    if (changed > KERNELS_MOST) /* then their mean comes first */
        lab_str_printf(out, "the mean of %d kernels %s, %d change", phase->kernel_count,
                       all->verdict == LAB_CLAIM_YES ? change_words(all, arena)
                                                     : lab_claim_short(all, arena),
                       changed);
    if (all->verdict == LAB_CLAIM_NOT_TESTED)
        lab_str_add(out, "not tested");
    count = list_kernels(phase, LAB_CLAIM_NO, out, &bound, arena);
    if (count > 0)
        lab_str_printf(out, " %s unchanged (%s)", count == 1 ? "is" : "are",
                       within_words(made, phase, bound));
    count = list_kernels(phase, LAB_CLAIM_INCONCLUSIVE, out, &bound, arena);
    if (count > 0 && count == phase->kernel_count)
        lab_str_printf(out, " inconclusive%s (%s %s)",
                       lab_claim_is_corrected(all) ? " after correction for all comparisons" : "",
                       count > 1 ? "mean time" : "time", lab_claim_effect(all, arena));
    else if (count > 0)
        lab_str_printf(out, " inconclusive (%s %s)", count > 1 ? "largest: time" : "time",
                       lab_claim_effect(largest_open(phase), arena));
    lab_str_printf(out, ", %d run%s each.", all->n, all->n == 1 ? "" : "s");
}

static const char *than_words(const struct contention *made,
                              const struct contention_resource *resource) {
    const char *than = resource->change.reference;
    return lab_str_equal(than, "alone")
               ? lab_arena_printf(made->arena, "with one %s alone", made->phases.device)
               : than;
}

/* "memory bandwidth 27.0% lower than with one GPU alone", with " (95% CI [25.1, 28.8]%)" where
 * asked for. */
static const char *fall_words(const struct contention *made,
                              const struct contention_resource *resource, bool interval) {
    const char *ends =
        interval ? lab_arena_printf(made->arena, " (95%% CI [%.1f, %.1f]%%)",
                                    -100 * resource->change.high, -100 * resource->change.low)
                 : "";
    return lab_arena_printf(made->arena, "%s %.1f%% lower than %s%s", resource->title,
                            -100 * resource->change.effect, than_words(made, resource), ends);
}

const char *contention_fall_words(const struct contention *made,
                                  const struct contention_resource *resource, bool interval) {
    const char **spared = NULL, *unit = made->phases.device;
    double least = 0, most = -INFINITY, few = 0; /* of those that fall, of the spared ones */
    int count = 0;
    for (int i = 0; i < resource->device_count; i++)
        least = fmin(least, resource->logs[i]);
    for (int i = 0; i < resource->device_count; i++)
        if (resource->logs[i] > SPARED * least) {
            LAB_ADD(spared, count, made->arena) = resource->devices[i];
            few = fmin(few, resource->logs[i]);
        } else {
            most = fmax(most, resource->logs[i]);
        }
    if (resource->device_count < 2)
        return fall_words(made, resource, interval);
    if (count == 0)
        return lab_arena_printf(made->arena, "%s, mean of %d %ss (by %s %.1f%% to %.1f%%)",
                                fall_words(made, resource, interval), resource->device_count, unit,
                                unit, -100 * expm1(most), -100 * expm1(least));
    /* no mean over groups that differ: it is true of neither */
    const char *fall = few > -LAB_CLAIM_NEGLIGIBLE
                           ? "unchanged"
                           : lab_arena_printf(made->arena, "at most %.1f%%", -100 * expm1(few));
    return lab_arena_printf(made->arena, "%s of %d of %d %ss %s lower than %s (%s: %s)",
                            resource->title, resource->device_count - count, resource->device_count,
                            unit, contention_range_words(most, least, made->arena),
                            than_words(made, resource),
                            lab_words_devices(spared, count, made->arena), fall);
}

const struct contention_resource *contention_pcie_fall(const struct contention_phase *phase) {
    const struct contention_resource *pcie = &phase->resources[CONTENTION_PCIE];
    return !phase->copies && pcie->change.verdict == LAB_CLAIM_YES && pcie->change.effect < 0
               ? pcie
               : NULL;
}

/* "PCIe bandwidth of GPUs 0+1, which share a bridge, is 47.1% lower than alone. PCIe bandwidth of
 * GPU 2: unchanged." Where no GPU has its own bridge, with " (mean of 4 GPUs: 30.1 instead of 54.1
 * GB/s, 44.4% lower, 95% CI [43.1, 45.7]%)". */
static const char *pcie_words(const struct contention *made,
                              const struct contention_resource *pcie) {
    struct contention_bridges bridges = contention_bridges_find(made, pcie);
    if (!bridges.shared)
        return lab_arena_printf(made->arena, "%s.", contention_fall_words(made, pcie, true));
    const char *shared = contention_bridges_words(made, pcie, &bridges);
    if (!bridges.own)
        return lab_arena_printf(
            made->arena, "%s (mean of %d %ss: %s, %.1f%% lower, 95%% CI [%.1f, %.1f]%%).", shared,
            pcie->device_count, made->phases.device, contention_values_words(pcie, made->arena),
            -100 * pcie->change.effect, -100 * pcie->change.high, -100 * pcie->change.low);
    const char *own = bridges.own_most < 100 * LAB_CLAIM_NEGLIGIBLE
                          ? "unchanged"
                          : lab_arena_printf(made->arena, "at most %.1f%% lower", bridges.own_most);
    return lab_arena_printf(made->arena, "%s. %s of %s: %s.", shared, pcie->title, bridges.own,
                            own);
}

static void add_cause(const struct contention *made, const struct contention_phase *phase,
                      struct lab_str *out) {
    bool probed = false, slowed = contention_is_slowed(phase);
    for (int r = 0; r < CONTENTION_RESOURCES; r++)
        probed |= phase->resources[r].change.verdict != LAB_CLAIM_NOT_TESTED;
    if (slowed && !phase->explains)
        lab_str_add(out, probed ? " Cause not identified." : " Cause not tested.");
    if (phase->explains || (!slowed && phase->lowest >= 0))
        lab_str_printf(out, " %s: %s.", phase->explains ? "Likely cause" : "Measured",
                       fall_words(made, &phase->resources[phase->lowest], true));
    if (!slowed && phase->lowest < 0 && contention_pcie_fall(phase))
        lab_str_printf(out, " Measured, but not used by these kernels: %s",
                       pcie_words(made, contention_pcie_fall(phase)));
    for (int i = 0; i < made->slow.copy_count && i < SLOW_MOST && phase == &made->list[0]; i++)
        lab_str_printf(out, " %s.", lab_claim_sentence(&made->slow.copies[i], made->arena));
    if (phase->lowest == CONTENTION_CLOCK && phase->power_w >= AT_LIMIT * phase->power_limit_w)
        lab_str_printf(out, " GPUs draw %.0f of %.0f W.", phase->power_w, phase->power_limit_w);
}

static void add_recovery(const struct contention_phase *phase, struct lab_str *out,
                         struct lab_arena *arena) {
    const struct lab_claim *claim = &phase->recovery;
    bool one = phase->kernel_count == 1;
    if (claim->verdict == LAB_CLAIM_YES && claim->effect < 0)
        lab_str_printf(out, " Phase %s: %s %s than at once; %.0f%% of %s slowdown recovered.",
                       phase->title,
                       one ? phase->kernels[0].kernel
                           : lab_arena_printf(arena, "the mean of %d kernels", phase->kernel_count),
                       change_words(claim, arena), fmin(100 * phase->recovered, 100),
                       one ? "its" : "the mean");
    else if (claim->verdict != LAB_CLAIM_NOT_TESTED)
        lab_str_printf(out, " Phase %s: %s.", phase->title,
                       claim->verdict == LAB_CLAIM_INCONCLUSIVE ? "recovery inconclusive"
                                                                : "no recovery");
    if (phase->throughput.verdict == LAB_CLAIM_YES && phase->throughput.effect < 0)
        lab_str_printf(out, " Its total throughput is %.1f%% lower (95%% CI [%.1f, %.1f]%%).",
                       -100 * phase->throughput.effect, -100 * phase->throughput.high,
                       -100 * phase->throughput.low);
}

static void add_tuning(const struct contention *made, struct lab_str *out) {
    const struct lab_phase_tuning *tuning = &made->list[0].tuning;
    if (tuning->tunings == 0)
        lab_str_printf(out, " Auto-tuning was not tested: %s.",
                       lab_phases_untuned(&made->phases, tuning));
    else
        lab_str_printf(out,
                       " Tuning chose otherwise in %d of %d (at least %d configurations tried).",
                       tuning->other, tuning->tunings,
                       tuning->tried < LAB_TUNING_UNKNOWN ? tuning->tried : LAB_TUNING_LEAST);
    if (tuning->cost.verdict == LAB_CLAIM_YES)
        lab_str_printf(out, " On the idle device that %s.",
                       change_words(&tuning->cost, made->arena));
}

const char *contention_answer(const struct contention *made) {
    const struct contention_phase *main = &made->list[0];
    LAB_AUTO(str, text);
    for (int p = 0; p < made->count; p++) {
        const struct contention_phase *phase = &made->list[p];
        if (phase->kernel_count == 0 || (p > 0 && !made->phases.disturb[phase->number][0]))
            continue;
        lab_str_add(&text, text.length ? " " : "");
        add_kernels(made, phase, &text);
        add_cause(made, phase, &text);
    }
    add_tuning(made, &text);
    for (int p = 1; p < made->count && contention_is_slower(&main->slowdown); p++)
        add_recovery(&made->list[p], &text, made->arena);
    for (int p = 0; p < made->count; p++) /* after what is known */
        if (made->list[p].kernel_count > 0 &&
            (p == 0 || made->phases.disturb[made->list[p].number][0]))
            add_needed(made, &made->list[p], &text);
    return lab_arena_strdup(made->arena, text.text);
}
