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

enum {
    PHASE_KERNELS,
    PHASE_SLOWED,
    PHASE_CHANGE,
    PHASE_BACK,
    PHASE_RESOURCE,
    PHASE_TUNINGS,
    PHASE_OTHER,
    PHASE_REGRET,
    PHASE_FIGURES
};
static const struct lab_doc_column phase_columns[PHASE_FIGURES] = {
    [PHASE_KERNELS] = {"kernels", "Kernels", LAB_UNIT_COUNT},
    [PHASE_SLOWED] = {"slowed", "Slowed", LAB_UNIT_COUNT, "Slowed"},
    [PHASE_CHANGE] = {"change", "Time", LAB_UNIT_CHANGE, "Time", .with_interval = true},
    [PHASE_BACK] = {"taken_back", "Taken back", LAB_UNIT_SHARE, "Taken back"},
    [PHASE_RESOURCE] = {"resource", "Least is left of", LAB_UNIT_TEXT, "Least left"},
    [PHASE_TUNINGS] = {"tunings", "Tunings", LAB_UNIT_COUNT},
    [PHASE_OTHER] = {"other_choices", "Other choices", LAB_UNIT_COUNT, "Other choices"},
    [PHASE_REGRET] = {"regret", "Costs when idle", LAB_UNIT_CHANGE, .with_interval = true},
};

enum {
    ROW_KERNEL,
    ROW_DEVICE,
    ROW_GPU_ID,
    ROW_CHANGE,
    ROW_TEXT,
    ROW_VERDICT,
    ROW_CONFIG,
    ROW_COLUMNS
};
static const struct lab_doc_column row_columns[ROW_COLUMNS] = {
    [ROW_KERNEL] = {"kernel", "Kernel", LAB_UNIT_TEXT},
    [ROW_DEVICE] = {"device", "Device", LAB_UNIT_TEXT},
    [ROW_GPU_ID] = {"gpu_id", NULL, LAB_UNIT_COUNT},
    [ROW_CHANGE] = {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [ROW_TEXT] = {NULL, "Time", LAB_UNIT_FIGURE},
    [ROW_VERDICT] = {"verdict", "Verdict", LAB_UNIT_TEXT},
    [ROW_CONFIG] = {"other_choices", "Other choices", LAB_UNIT_TEXT},
};

enum { LEFT_KEY, LEFT_TITLE, LEFT_SHARE, LEFT_TEXT, LEFT_VERDICT, LEFT_COLUMNS };
static const struct lab_doc_column left_columns[LEFT_COLUMNS] = {
    [LEFT_KEY] = {"resource", NULL, LAB_UNIT_TEXT},
    [LEFT_TITLE] = {NULL, "Resource", LAB_UNIT_TEXT},
    [LEFT_SHARE] = {"left", NULL, LAB_UNIT_RATIO, .with_interval = true},
    [LEFT_TEXT] = {NULL, "Left of it", LAB_UNIT_FIGURE},
    [LEFT_VERDICT] = {"verdict", "Verdict", LAB_UNIT_TEXT},
};

/* --- cells --- */

static struct lab_doc_cell change_cell(const struct contention_effect *effect) {
    return (struct lab_doc_cell){.value = effect->ratio - 1,
                                 .low = effect->low - 1,
                                 .high = effect->high - 1,
                                 .confidence = effect->confidence};
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
static void fill_kernel(const struct contention *made, int kernel, int phase,
                        struct lab_doc_cell *row) {
    const struct contention_effect *effect = &made->kernels[kernel].times[phase];
    row[ROW_KERNEL] = lab_cell_text(made->kernels[kernel].name);
    row[ROW_DEVICE] = lab_cell_text(effect->within ? "worst" : "all");
    row[ROW_GPU_ID] = lab_cell_figure(NAN);
    row[ROW_CHANGE] = change_cell(effect);
    row[ROW_TEXT] = lab_cell_text(change_text(effect, made->arena));
    row[ROW_VERDICT] = lab_cell_text(verdict_of(effect, "slower", "faster"));
    row[ROW_CONFIG] = lab_cell_text("");
}

static void fill_pair(const struct contention *made, const struct lab_phase_pair *pair,
                      struct lab_doc_cell *row) {
    const struct lab_phase_unit *unit = &made->phases.units[pair->unit];
    struct contention_effect effect = {.ratio = pair->time.ratio,
                                       .low = pair->time.low,
                                       .high = pair->time.high,
                                       .confidence = CONFIDENCE,
                                       .more = pair->time.verdict == LAB_STUDY_MORE,
                                       .less = pair->time.verdict == LAB_STUDY_LESS};
    row[ROW_KERNEL] = lab_cell_text(unit->kernel);
    row[ROW_DEVICE] = lab_cell_text(unit->device);
    row[ROW_GPU_ID] = lab_cell_figure(unit->gpu_id);
    row[ROW_CHANGE] = change_cell(&effect);
    row[ROW_TEXT] = lab_cell_text(change_text(&effect, made->arena));
    row[ROW_VERDICT] = lab_cell_text(verdict_of(&effect, "slower", "faster"));
    row[ROW_CONFIG] =
        lab_cell_text(!pair->tuned ? ""
                                   : lab_arena_printf(made->arena, "%d of %d",
                                                      pair->blocks_differing, pair->blocks));
}

static struct lab_doc_table kernel_table(const struct contention *made, int phase) {
    int most = made->kernel_count + made->phases.pair_count, count = 0;
    struct lab_doc_cell *cells =
        lab_arena_alloc(made->arena, (size_t)(most + 1) * ROW_COLUMNS, sizeof *cells);
    for (int k = 0; k < made->kernel_count; k++) {
        int devices = 0;
        fill_kernel(made, k, phase, cells + (ptrdiff_t)count++ * ROW_COLUMNS);
        for (int i = 0; i < made->phases.pair_count; i++) {
            const struct lab_phase_pair *pair = &made->phases.pairs[i];
            if (pair->phase != phase ||
                strcmp(made->phases.units[pair->unit].kernel, made->kernels[k].name) != 0)
                continue;
            fill_pair(made, pair, cells + (ptrdiff_t)count++ * ROW_COLUMNS);
            devices++;
        }
        if (devices == 0)
            count--;
    }
    return (struct lab_doc_table){.key = "comparisons",
                                  .title = "Against the baseline",
                                  .columns = row_columns,
                                  .column_count = ROW_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

/* No resource of its own: whether it is at its limit tells whether power is what holds clocks
 * back. */
static int fill_power(const struct contention *made, int phase, struct lab_doc_cell *row) {
    const struct contention_power *power = &made->power[phase],
                                  *base = &made->power[made->phases.base];
    if (!(power->drawn_w > 0) || !(base->drawn_w > 0) || !(power->limit_w > 0))
        return 0;
    row[LEFT_KEY] = lab_cell_text("power_drawn");
    row[LEFT_TITLE] =
        lab_cell_text(lab_arena_printf(made->arena, "power drawn, of %.0f W", power->limit_w));
    row[LEFT_SHARE] = lab_cell_figure(power->drawn_w / power->limit_w);
    row[LEFT_TEXT] = lab_cell_text(
        lab_arena_printf(made->arena, "%.0f W, alone %.0f W", power->drawn_w, base->drawn_w));
    row[LEFT_VERDICT] =
        lab_cell_text(power->drawn_w >= CONTENTION_AT_LIMIT * power->limit_w ? "at its limit"
                                                                             : "below its limit");
    return 1;
}

static struct lab_doc_table resource_table(const struct contention *made, int phase) {
    struct lab_doc_cell *cells = lab_arena_alloc(
        made->arena, (size_t)(CONTENTION_RESOURCES + 1) * LEFT_COLUMNS, sizeof *cells);
    int count = 0;
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct contention_effect *left = &made->left[phase][r];
        struct lab_doc_cell *row = cells + (ptrdiff_t)count * LEFT_COLUMNS;
        if (isnan(left->ratio))
            continue;
        row[LEFT_KEY] = lab_cell_text(contention_resource_key(made, r));
        row[LEFT_TITLE] = lab_cell_text(contention_resource_title(made, r));
        row[LEFT_SHARE] = (struct lab_doc_cell){.value = left->ratio,
                                                .low = left->low,
                                                .high = left->high,
                                                .confidence = left->confidence};
        row[LEFT_TEXT] = lab_cell_text(change_text(left, made->arena));
        row[LEFT_VERDICT] = lab_cell_text(verdict_of(left, "more", "less"));
        count++;
    }
    if (count > 0)
        count += fill_power(made, phase, cells + (ptrdiff_t)count * LEFT_COLUMNS);
    return (struct lab_doc_table){.key = "resources",
                                  .title = count ? "What is left of the resources" : NULL,
                                  .columns = left_columns,
                                  .column_count = LEFT_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
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

static struct lab_analysis_part make_part(const struct contention *made, int phase) {
    struct lab_doc_cell *cells = lab_arena_alloc(made->arena, PHASE_FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(made->arena, 2, sizeof *tables);
    const struct contention_regret *regret = &made->regrets[phase];
    int slowed = 0, kernels = 0, first = contention_first_resource(made, phase);
    for (int k = 0; k < made->kernel_count; k++) {
        kernels += !isnan(made->kernels[k].times[phase].ratio);
        slowed += made->kernels[k].times[phase].more;
    }
    cells[PHASE_KERNELS] = lab_cell_figure(kernels);
    cells[PHASE_SLOWED] = lab_cell_figure(slowed);
    cells[PHASE_CHANGE] = change_cell(&made->overall[phase]);
    cells[PHASE_BACK] = lab_cell_figure(taken_back(made, phase));
    cells[PHASE_RESOURCE] =
        lab_cell_text(first < 0 ? none_less(made, phase) : contention_resource_key(made, first));
    cells[PHASE_TUNINGS] = lab_cell_figure(regret->tunings ? regret->tunings : (double)NAN);
    cells[PHASE_OTHER] = lab_cell_figure(regret->tunings ? regret->other : (double)NAN);
    cells[PHASE_REGRET] = change_cell(&regret->cost);
    tables[0] = kernel_table(made, phase);
    tables[1] = resource_table(made, phase);
    return (struct lab_analysis_part){.name = made->list[phase].name,
                                      .about = about(made, phase),
                                      .answer = part_answer(made, phase),
                                      .cells = cells,
                                      .tables = tables,
                                      .table_count = 2};
}

/* --- the whole --- */

/* What the plan had to say, which every run of it repeats. */
static int add_plan_notes(const struct lab_study_table *study, const char **notes, int count,
                          int most) {
    const struct lab_value *list =
        study->run_count ? lab_value_get(study->runs[0].test, "notes") : NULL;
    for (int i = 0; list && list->type == LAB_VALUE_LIST && i < list->count && count < most; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            notes[count++] = list->items[i]->string;
    return count;
}

static const char *const *make_notes(const struct contention *made) {
    enum { MORE = 16 };
    const char **notes = lab_study_notes(made->study, MORE + 1, made->arena);
    const char *advice = contention_recommendation(made);
    int count = 0;
    while (notes[count])
        count++;
    int most = count + MORE;
    if (advice)
        notes[count++] = advice;
    return add_plan_notes(made->study, notes, count, most), notes;
}

static int contention_run(const void *config, const struct lab_analysis_input *input,
                          struct lab_arena *arena, struct lab_analysis_result *ret_result,
                          struct lab_err *err) {
    (void)config;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    struct contention *made = lab_arena_alloc(arena, 1, sizeof *made);
    contention_make(&input->studies[0], input, arena, made);
    struct lab_analysis_part *parts =
        lab_arena_alloc(arena, (size_t)made->phases.count + 1, sizeof *parts);
    struct lab_analysis_result result = {.answer = contention_answer(made),
                                         .part_key = "phases",
                                         .columns = phase_columns,
                                         .column_count = PHASE_FIGURES,
                                         .parts = parts,
                                         .simulated = made->phases.simulated,
                                         .notes = make_notes(made)};
    for (int i = 0; i < made->shown && made->phases.pair_count > 0; i++)
        parts[result.part_count++] = make_part(made, made->order[i]);
    result.lacks = result.part_count == 0;
    if (!result.lacks)
        result.finding = contention_finding(made);
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    result.charts = chart;
    result.chart_count = contention_chart(made, chart);
    *ret_result = result;
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
