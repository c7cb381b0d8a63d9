/*
 * contention.c: `gpulab analyze contention`: the verdict of a study with phases. Which kernels are
 * slowed beside others, by how much; which resource goes with it; what keeping them apart takes
 * back; whether the tuner chose otherwise, and what that costs on the idle device.
 */
#include "analysis/contention/contention.h"

#include "analysis/analysis_words.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- columns --- */

static const struct lab_doc_column phase_columns[] = {
    {"kernels", "Kernels", LAB_UNIT_COUNT},
    {"slowed", "Slowed", LAB_UNIT_COUNT, "Slowed"},
    {"change", "Time", LAB_UNIT_CHANGE, "Time", .with_interval = true},
    {"taken_back", "Taken back", LAB_UNIT_SHARE, "Taken back"},
    {"resource", "Least is left of", LAB_UNIT_TEXT, "Least left"},
    {"tunings", "Tunings", LAB_UNIT_COUNT},
    {"other_choices", "Other choices", LAB_UNIT_COUNT, "Other choices"},
    {"regret", "Costs when idle", LAB_UNIT_CHANGE, .with_interval = true},
};

static const struct lab_doc_column row_columns[] = {
    {"kernel", "Kernel", LAB_UNIT_TEXT},
    {"device", "Device", LAB_UNIT_TEXT},
    {"gpu_id", NULL, LAB_UNIT_COUNT},
    {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Time", LAB_UNIT_FIGURE},
    {"verdict", "Verdict", LAB_UNIT_TEXT},
    {"other_choices", "Other choices", LAB_UNIT_TEXT},
};

static const struct lab_doc_column left_columns[] = {
    {"resource", NULL, LAB_UNIT_TEXT},
    {NULL, "Resource", LAB_UNIT_TEXT},
    {"left", NULL, LAB_UNIT_RATIO, .with_interval = true},
    {NULL, "Left of it", LAB_UNIT_FIGURE},
    {"verdict", "Verdict", LAB_UNIT_TEXT},
};

/* --- cells --- */

static struct lab_doc_cell change_cell(const struct contention_effect *effect) {
    return lab_cell_interval(effect->ratio - 1, effect->low - 1, effect->high - 1,
                             effect->confidence);
}

static double percent(double ratio) {
    return fabs(ratio - 1) < 0.0005 ? 0 : 100 * (ratio - 1); /* no "-0.0" */
}

static const char *change_text(const struct contention_effect *effect, struct lab_arena *arena) {
    if (isnan(effect->ratio))
        return "–";
    if (isnan(effect->low))
        return lab_arena_printf(arena, "%+.1f %%", percent(effect->ratio));
    if (effect->high / effect->low > CONTENTION_UNEVEN)
        return lab_arena_printf(arena, "%+.1f %%, uneven", percent(effect->ratio));
    return lab_arena_printf(arena, "%+.1f %% [%.1f, %.1f]", percent(effect->ratio),
                            percent(effect->low), percent(effect->high));
}

static const char *verdict_of(const struct contention_effect *effect, const char *more,
                              const char *less) {
    return effect->more                 ? more
           : effect->less               ? less
           : contention_is_same(effect) ? "same"
                                        : "undecided";
}

/* A kernel of all devices. */
static void add_kernel(struct lab_doc_table *table, const struct contention *made, int kernel,
                       int phase) {
    const struct contention_effect *effect = &made->kernels[kernel].times[phase];
    LAB_ROW(table, made->arena, lab_cell_text(made->kernels[kernel].name),
            lab_cell_text(effect->within ? "worst" : "all"), lab_cell_figure(NAN),
            change_cell(effect), lab_cell_text(change_text(effect, made->arena)),
            lab_cell_text(verdict_of(effect, "slower", "faster")), lab_cell_text(""));
}

static void add_pair(struct lab_doc_table *table, const struct contention *made,
                     const struct lab_phase_pair *pair) {
    const struct lab_phase_unit *unit = &made->phases.units[pair->unit];
    struct contention_effect effect = {.ratio = pair->time.ratio,
                                       .low = pair->time.low,
                                       .high = pair->time.high,
                                       .confidence = CONFIDENCE,
                                       .more = pair->time.verdict == LAB_STUDY_MORE,
                                       .less = pair->time.verdict == LAB_STUDY_LESS};
    LAB_ROW(table, made->arena, lab_cell_text(unit->kernel), lab_cell_text(unit->device),
            lab_cell_figure(unit->gpu_id), change_cell(&effect),
            lab_cell_text(change_text(&effect, made->arena)),
            lab_cell_text(verdict_of(&effect, "slower", "faster")),
            lab_cell_text(!pair->tuned ? ""
                                       : lab_arena_printf(made->arena, "%d of %d",
                                                          pair->blocks_differing, pair->blocks)));
}

static void add_kernel_table(struct lab_analysis_part *part, const struct contention *made,
                             int phase) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "comparisons", "Against the baseline", row_columns, made->arena);
    for (int k = 0; k < made->kernel_count; k++) {
        bool any = false;
        for (int i = 0; i < made->phases.pair_count; i++) {
            const struct lab_phase_pair *pair = &made->phases.pairs[i];
            if (pair->phase != phase ||
                strcmp(made->phases.units[pair->unit].kernel, made->kernels[k].name) != 0)
                continue;
            if (!any)
                add_kernel(table, made, k, phase);
            any = true;
            add_pair(table, made, pair);
        }
    }
}

/* No resource of its own: whether it is at its limit tells whether power is what holds clocks
 * back. */
static void add_power(struct lab_doc_table *table, const struct contention *made, int phase) {
    const struct contention_power *power = &made->power[phase],
                                  *base = &made->power[made->phases.base];
    if (!(power->drawn_w > 0) || !(base->drawn_w > 0) || !(power->limit_w > 0))
        return;
    LAB_ROW(table, made->arena, lab_cell_text("power_drawn"),
            lab_cell_text(lab_arena_printf(made->arena, "power drawn, of %.0f W", power->limit_w)),
            lab_cell_figure(power->drawn_w / power->limit_w),
            lab_cell_text(lab_arena_printf(made->arena, "%.0f W, alone %.0f W", power->drawn_w,
                                           base->drawn_w)),
            lab_cell_text(power->drawn_w >= CONTENTION_AT_LIMIT * power->limit_w
                              ? "at its limit"
                              : "below its limit"));
}

static void add_resource_table(struct lab_analysis_part *part, const struct contention *made,
                               int phase) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "resources", "What is left of the resources", left_columns, made->arena);
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct contention_effect *left = &made->left[phase][r];
        if (isnan(left->ratio))
            continue;
        LAB_ROW(table, made->arena, lab_cell_text(contention_resource_key(made, r)),
                lab_cell_text(contention_resource_title(made, r)),
                lab_cell_interval(left->ratio, left->low, left->high, left->confidence),
                lab_cell_text(change_text(left, made->arena)),
                lab_cell_text(verdict_of(left, "more", "less")));
    }
    if (table->row_count > 0)
        add_power(table, made, phase);
    lab_analysis_hide_empty(table);
}

/* --- parts --- */

/* Of the main phase's slow-down, how much this one doesn't have. */
static double taken_back(const struct contention *made, int phase) {
    if (made->main < 0 || phase == made->main || !made->overall[made->main].more ||
        !made->list[phase].apart[0] || !contention_covers(made, phase))
        return NAN;
    double worst = made->overall[made->main].ratio - 1, here = made->overall[phase].ratio - 1;
    return 1 - here / worst;
}

static const char *about(const struct contention *made, int phase) {
    const struct contention_phase *it = &made->list[phase];
    const char *who = it->together ? "all devices at once" : "each device alone";
    if (it->disturb[0])
        return lab_arena_printf(made->arena, "%s, disturbed on purpose: %s", who, it->disturb);
    return it->apart[0] ? lab_arena_printf(made->arena, "%s, kept apart by %s", who, it->apart)
                        : who;
}

static const char *part_answer(const struct contention *made, int phase) {
    const struct contention_effect *effect = &made->overall[phase];
    if (effect->more || effect->less)
        return lab_arena_printf(made->arena, "%s %s by %s.",
                                effect->within ? "The worst kernel is" : "All kernels together are",
                                effect->more ? "slowed" : "faster",
                                contention_percent(effect, made->arena));
    if (!(effect->high - 1 <= LAB_WORDS_BOUND_MOST))
        return "Too few blocks to tell, or they differ too much.";
    if (effect->high - 1 > CONTENTION_SAME)
        return lab_arena_printf(made->arena,
                                "%s: none for certain, but up to %.1f %% can't be ruled out.",
                                effect->within ? "Of all kernels" : "All kernels together",
                                lab_words_bound_percent(effect->high - 1));
    return lab_arena_printf(made->arena, "%s: no slow-down larger than %.1f %%.",
                            effect->within ? "Of all kernels" : "All kernels together",
                            lab_words_bound_percent(fmax(effect->high - 1, 0)));
}

/* That none is less is a claim, which needs figures that would have shown it. */
static const char *none_less(const struct contention *made, int phase) {
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct contention_effect *left = &made->left[phase][r];
        if (contention_counts(made, phase, r) && !isnan(left->ratio) &&
            !(1 / left->low - 1 <= CONTENTION_SAME))
            return "none less for certain";
    }
    return "none less than before";
}

static void add_part(struct lab_analysis_result *result, const struct contention *made, int phase) {
    struct lab_analysis_part *part =
        lab_analysis_add_part(result, made->list[phase].name, made->arena);
    const struct contention_regret *regret = &made->regrets[phase];
    int slowed = 0, kernels = 0, first = contention_first_resource(made, phase);
    for (int k = 0; k < made->kernel_count; k++) {
        kernels += !isnan(made->kernels[k].times[phase].ratio);
        slowed += made->kernels[k].times[phase].more;
    }
    part->about = about(made, phase);
    part->answer = part_answer(made, phase);
    LAB_FIGURES(
        part, lab_cell_figure(kernels), lab_cell_figure(slowed), change_cell(&made->overall[phase]),
        lab_cell_figure(taken_back(made, phase)),
        lab_cell_text(first < 0 ? none_less(made, phase) : contention_resource_key(made, first)),
        lab_cell_figure(regret->tunings ? regret->tunings : (double)NAN),
        lab_cell_figure(regret->tunings ? regret->other : (double)NAN), change_cell(&regret->cost));
    add_kernel_table(part, made, phase);
    add_resource_table(part, made, phase);
}

/* --- the whole --- */

static void add_notes(struct lab_analysis_result *result, const struct contention *made) {
    const struct lab_study_table *study = made->study;
    const char *advice = contention_recommendation(made);
    lab_study_add_notes(study, "", &result->notes, made->arena);
    if (advice)
        lab_analysis_note(&result->notes, made->arena, "%s", advice);
    /* what the plan had to say, which every run of it repeats */
    const struct lab_value *list =
        study->run_count ? lab_value_get(study->runs[0].test, "notes") : NULL;
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            lab_analysis_note(&result->notes, made->arena, "%s", list->items[i]->string);
}

static int contention_run(const void *config, const struct lab_analysis_input *input,
                          struct lab_arena *arena, struct lab_analysis_result *ret_result,
                          struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("phases", phase_columns), ret_result, err) < 0)
        return -1;
    struct contention *made = lab_arena_alloc(arena, 1, sizeof *made);
    contention_make(&input->studies[0], input, arena, made);
    ret_result->simulated = made->phases.simulated;
    ret_result->answer = contention_answer(made);
    for (int i = 0; i < made->shown && made->phases.pair_count > 0; i++)
        add_part(ret_result, made, made->order[i]);
    ret_result->lacks = ret_result->part_count == 0;
    if (!ret_result->lacks)
        ret_result->finding = contention_finding(made);
    contention_add_chart(ret_result, made);
    add_notes(ret_result, made);
    return 0;
}

/* A study whose plan has phases, rather than one whose runs merely have names for them. */
static int contention_interest(const struct lab_study_table *study) {
    for (int i = 1; i < study->run_count && lab_study_has_phases(study); i++)
        if (strcmp(study->runs[i].phase, study->runs[0].phase) != 0)
            return 100;
    return 0;
}

static const struct lab_option contention_options[] = {{NULL}};

const struct lab_analysis lab_analysis_contention = {
    .name = "contention",
    .summary = "what running side by side costs, why, and what takes it back",
    .description =
        "The phases of a study against its baseline, block by block: by how much each kernel is "
        "slowed, "
        "with an interval over the blocks and a false discovery rate of 5 %; how much is left of "
        "each "
        "device's resources (time on its cores or multiprocessors, memory bandwidth beyond that, "
        "PCIe, "
        "clocks), as its runs probed them; how much each way of keeping devices apart takes back; "
        "how "
        "often the auto-tuner chose otherwise, and what its choices cost on the idle device. A "
        "slow-down of less than 1 % is none.",
    .options = contention_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS,
    .interest = contention_interest,
    .run = contention_run,
};
