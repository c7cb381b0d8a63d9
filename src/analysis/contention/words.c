/* words.c: the verdict in sentences that claim no more than the figures do. */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

const char *contention_resource_title(const struct contention *made, int resource) {
    switch (resource) {
    case CONTENTION_COMPUTE:
        return made->cpus ? "time on the CPU cores" : "time on the multiprocessors";
    case CONTENTION_MEMORY:
        return "memory bandwidth";
    case CONTENTION_PCIE:
        return "PCIe bandwidth";
    default:
        return "clock speed, which power or heat holds back";
    }
}

const char *contention_resource_key(const struct contention *made, int resource) {
    static const char *const keys[] = {
        [CONTENTION_MEMORY] = "membw", [CONTENTION_PCIE] = "pcie", [CONTENTION_CLOCK] = "power"};
    return resource == CONTENTION_COMPUTE ? (made->cpus ? "cpu" : "sm") : keys[resource];
}

const char *contention_percent(const struct contention_effect *effect, struct lab_arena *arena) {
    double sign = effect->ratio < 1 ? -1 : 1;
    double low = 100 * sign * (effect->low - 1), high = 100 * sign * (effect->high - 1);
    return lab_arena_printf(arena, "%.1f %% [%.1f, %.1f]%s", 100 * sign * (effect->ratio - 1),
                            fmin(low, high), fmax(low, high),
                            effect->within ? " within one run each" : "");
}

static const char *number_word(int count, struct lab_arena *arena) {
    static const char *const words[] = {"No",  "One",   "Two",   "Three", "Four", "Five",
                                        "Six", "Seven", "Eight", "Nine",  "Ten"};
    return count <= 10 ? words[count] : lab_arena_printf(arena, "%d", count);
}

/* "Four GPUs at once slow", "A neighbour on purpose (membw) slows", "Phase numa slows" */
static const char *subject(const struct contention *made, int phase) {
    const struct contention_phase *it = &made->list[phase];
    if (it->disturb[0])
        return lab_arena_printf(made->arena, "A neighbour on purpose (%s) slows", it->disturb);
    if (it->together && !it->apart[0])
        return lab_arena_printf(made->arena, "%s %s at once slow",
                                number_word(it->ranks, made->arena),
                                made->cpus ? "devices" : "GPUs");
    return lab_arena_printf(made->arena, "Phase %s slows", it->name);
}

static int worst_kernel(const struct contention *made, int phase) {
    int worst = -1;
    for (int k = 0; k < made->kernel_count; k++) {
        const struct contention_effect *effect = &made->kernels[k].times[phase];
        if (effect->more && (worst < 0 || effect->low > made->kernels[worst].times[phase].low))
            worst = k;
    }
    return worst;
}

/* --- sentences --- */

static void add_slowed(const struct contention *made, int phase, int worst, struct lab_str *out) {
    int slowed = 0, best = contention_best_mitigation(made);
    for (int k = 0; k < made->kernel_count; k++)
        slowed += made->kernels[k].times[phase].more;
    lab_str_printf(out, "%s %s by %s", subject(made, phase), made->kernels[worst].name,
                   contention_percent(&made->kernels[worst].times[phase], made->arena));
    if (made->kernel_count > 1)
        lab_str_printf(out, ", and %d of %d kernels in all", slowed, made->kernel_count);
    if (phase == made->main && best >= 0) {
        const struct contention_effect *left = &made->kernels[worst].times[best];
        if (left->more)
            lab_str_printf(out, "; %s takes back all but %s", made->list[best].name,
                           contention_percent(left, made->arena));
        else if (left->less || contention_is_same(left))
            lab_str_printf(out, "; %s takes all of it back", made->list[best].name);
        else if (left->high > 1 && left->high - 1 <= LAB_WORDS_BOUND_MOST)
            lab_str_printf(out, "; %s takes back all but %.1f %% at most", made->list[best].name,
                           lab_words_bound_percent(left->high - 1));
    }
    lab_str_add(out, ".");
}

/* How much slower a kernel may be at most; NaN = of some it isn't known. */
static double bound_of(const struct contention *made, int phase) {
    double bound = 0;
    for (int k = 0; k < made->kernel_count; k++) {
        double high = made->kernels[k].times[phase].high;
        bound = isnan(high) || isnan(bound) ? (double)NAN : fmax(bound, high - 1);
    }
    return bound;
}

/* What would tell whether anything is slowed, of the kernel that needs most. */
static const char *what_would_tell(const struct contention *made, int phase) {
    int most = 0;
    for (int k = 0; k < made->kernel_count; k++) {
        const struct contention_effect *effect = &made->kernels[k].times[phase];
        int needed = contention_blocks_needed(effect);
        if (effect->high - 1 <= CONTENTION_SAME)
            continue;
        if (needed == 0)
            return lab_arena_printf(
                made->arena,
                "the blocks differ too much among themselves, as where something else uses the "
                "machine; a quieter one would tell, or more than repeat=%d",
                CONTENTION_BLOCKS_MOST);
        most = needed > most ? needed : most;
    }
    return lab_arena_printf(made->arena, "about repeat=%d would tell, if blocks differ as these do",
                            most);
}

static bool is_within(const struct contention *made, int phase) {
    bool within = false;
    for (int k = 0; k < made->kernel_count; k++)
        within |= made->kernels[k].times[phase].within;
    return within;
}

/* Nothing was found: how much there could be all the same. */
static void add_same(const struct contention *made, int phase, struct lab_str *out) {
    double bound = bound_of(made, phase);
    if (isnan(bound))
        lab_str_printf(out, "%s nothing that can be told: more blocks would tell (repeat=%d).",
                       subject(made, phase), CONTENTION_BLOCKS_LEAST);
    else if (bound <= CONTENTION_SAME && is_within(made, phase))
        lab_str_printf(out,
                       "%s nothing: no slow-down larger than %.1f %% within one run each; how far "
                       "runs differ only more blocks would tell (repeat=%d).",
                       subject(made, phase),
                       lab_words_bound_percent(fmax(bound, LAB_STUDY_WITHIN_LEAST)),
                       CONTENTION_BLOCKS_LEAST);
    else if (bound <= CONTENTION_SAME)
        lab_str_printf(out, "%s nothing: no slow-down larger than %.1f %%.", subject(made, phase),
                       lab_words_bound_percent(bound));
    else if (bound <= LAB_WORDS_BOUND_MOST)
        lab_str_printf(out,
                       "%s nothing for certain, but a slow-down of up to %.1f %% can't be ruled "
                       "out: %s.",
                       subject(made, phase), lab_words_bound_percent(bound),
                       what_would_tell(made, phase));
    else
        lab_str_printf(out,
                       "%s nothing for certain, but a slow-down can't be ruled out either: %s.",
                       subject(made, phase), what_would_tell(made, phase));
}

static bool is_probed(const struct contention *made, int phase) {
    bool probed = false;
    for (int r = 0; r < CONTENTION_RESOURCES; r++)
        probed |= !isnan(made->left[phase][r].ratio);
    return probed;
}

static void add_resource(const struct contention *made, int phase, struct lab_str *out) {
    int first = contention_first_resource(made, phase);
    if (first < 0 && worst_kernel(made, phase) >= 0 && is_probed(made, phase))
        lab_str_add(out, " What it takes wasn't found: of nothing that was probed less is left for "
                         "certain.");
    if (first < 0)
        return;
    const char *less = contention_percent(&made->left[phase][first], made->arena);
    double lost = 1 - made->left[phase][first].ratio;
    if (!made->left[phase][first].less && lost < CONTENTION_LIKELY)
        lab_str_printf(out,
                       " Most likely it is the %s: of nothing else that was probed less is left.",
                       contention_resource_title(made, first));
    else if (!made->left[phase][first].less)
        lab_str_printf(
            out,
            " Most likely it is the %s: %.1f %% less of it is left, though that isn't certain.",
            contention_resource_title(made, first), 100 * lost);
    else if (worst_kernel(made, phase) >= 0)
        lab_str_printf(out, " What goes with it is the %s: %s less of it is left.",
                       contention_resource_title(made, first), less);
    else
        lab_str_printf(out, " Less is left of the %s all the same: by %s.",
                       contention_resource_title(made, first), less);
    const struct contention_power *power = &made->power[phase],
                                  *base = &made->power[made->phases.base];
    if (first == CONTENTION_CLOCK && power->drawn_w > 0 && power->limit_w > 0 && base->drawn_w > 0)
        lab_str_printf(out, " The GPU draws %.0f W instead of %.0f W, and its limit is %.0f W.",
                       power->drawn_w, base->drawn_w, power->limit_w);
}

static void add_choices(const struct contention *made, int phase, struct lab_str *out) {
    const struct contention_regret *regret = &made->regrets[phase];
    if (regret->tunings == 0)
        return;
    if (regret->other == 0) {
        lab_str_printf(out, " The auto-tuner chose the same in all %d tunings.", regret->tunings);
        return;
    }
    lab_str_printf(out, " The auto-tuner chose another configuration in %d of %d tunings",
                   regret->other, regret->tunings);
    double share = (double)regret->other / regret->tunings;
    if (made->own_pairs > 0 && (double)made->own_other / made->own_pairs >= share)
        lab_str_add(out, ", no more often than alone it differs from itself");
    if (regret->cost.more)
        lab_str_printf(out, "; on the idle device that costs %s on the whole",
                       contention_percent(&regret->cost, made->arena));
    else if (!isnan(regret->cost.high))
        lab_str_printf(out, "; on the idle device that costs no more than %.1f %% on the whole",
                       lab_words_bound_percent(fmax(regret->cost.high - 1, 0)));
    lab_str_add(out, ".");
}

static void add_phase(const struct contention *made, int phase, struct lab_str *out) {
    int worst = worst_kernel(made, phase);
    if (worst >= 0)
        add_slowed(made, phase, worst, out);
    else
        add_same(made, phase, out);
    add_resource(made, phase, out);
    add_choices(made, phase, out);
}

const char *contention_answer(const struct contention *made) {
    if (made->phases.run_count == 0)
        return "The runs have no phases to compare: 'gpulab run contention' has.";
    if (made->main < 0)
        return lab_arena_printf(made->arena,
                                "There is but one phase, %s: nothing to hold it against.",
                                made->phases.names[0]);
    if (made->phases.pair_count == 0)
        return "No kernel ran on the same device in two phases: nothing to compare.";
    LAB_AUTO(str, text);
    add_phase(made, made->main, &text);
    for (int p = 0; p < made->phases.count; p++)
        if (p != made->main && made->list[p].disturb[0]) {
            lab_str_add(&text, " ");
            add_phase(made, p, &text);
        }
    return lab_arena_strdup(made->arena, text.text);
}

/* --- what to do --- */

static const char *how_to(const char *apart) {
    static const char *const rows[][2] = {
        {"process", "run each device's work in a process of its own"},
        {"affinity", "pin each process to cores of its own (taskset -c)"},
        {"numa", "bind each to its device's node (numactl --cpunodebind --membind)"},
        {"topology", "run at the same time only on devices that share no switch or node"},
        {"tuning_cache", "tune on the idle device and keep the result (gpulab tune)"},
        {"mps", "let an MPS daemon serve the GPU (nvidia-cuda-mps-control -d)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(apart, rows[i][0], strcspn(apart, ",")) == 0 &&
            strlen(rows[i][0]) == strcspn(apart, ","))
            return rows[i][1];
    return NULL;
}

static const char *neighbour_words(const struct contention *made) {
    int first = contention_first_resource(made, made->main);
    const char *found = first >= 0 ? contention_resource_key(made, first) : "";
    if (strcmp(found, made->list[made->main].disturb) == 0)
        return "The neighbour was there on purpose, and what it takes was found.";
    switch (contention_finding(made)) {
    case LAB_ANALYSIS_FINDS:
        return "The neighbour was there on purpose; that there is one was found, but not what it "
               "takes.";
    case LAB_ANALYSIS_CANT_TELL:
        return "The neighbour was there on purpose; whether these kernels feel it can't be told.";
    default:
        break;
    }
    return "The neighbour was there on purpose and wasn't felt by these kernels.";
}

const char *contention_recommendation(const struct contention *made) {
    if (made->main < 0 || made->phases.pair_count == 0)
        return NULL;
    bool slowed = worst_kernel(made, made->main) >= 0;
    int best = contention_best_mitigation(made);
    LAB_AUTO(str, text);
    if (made->list[made->main].disturb[0])
        lab_str_add(&text, neighbour_words(made));
    else if (!slowed && !(bound_of(made, made->main) <= CONTENTION_SAME))
        lab_str_add(&text,
                    "Run it again with more blocks, or on a quieter machine, before anything "
                    "is decided.");
    else if (!slowed)
        lab_str_add(&text, "Nothing needs to be kept apart for these kernels; tuning side by side "
                           "is as good as tuning alone, as far as this study can tell.");
    else if (best < 0)
        lab_str_printf(&text,
                       "No phase that keeps the devices apart takes the slow-down back: tune and "
                       "measure on one device at a time%s.",
                       made->cpus ? ""
                                  : "; MIG instances, or nvidia-smi -c EXCLUSIVE_PROCESS as "
                                    "root, keep others off a GPU");
    else {
        lab_str_add(&text, "Keep them apart: ");
        int said = 0;
        for (const char *at = made->list[best].apart; *at;) {
            const char *what = how_to(at);
            if (what)
                lab_str_printf(&text, "%s%s", said++ ? "; " : "", what);
            at += strcspn(at, ",");
            at += strspn(at, ", ");
        }
        lab_str_add(&text, ".");
    }
    const struct contention_regret *regret = &made->regrets[made->main];
    if (regret->cost.more)
        lab_str_add(&text, " Tune on an idle device: what is chosen under load is slower there.");
    return lab_arena_strdup(made->arena, text.text);
}
