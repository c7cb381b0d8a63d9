/*
 * variance.c: `gpulab analyze variance`: whether running beside others changes what is measured:
 * how long kernels take, how much that varies, and what an auto-tuner makes of it; for each kernel
 * and each device, phase by phase against the baseline.
 */
#include "analysis/analysis.h"
#include "analysis/analysis_words.h"
#include "analysis/variance/phases.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- columns --- */

enum { COMPARISONS, SLOWED, SPREAD_MORE, MISMATCHES, MET, FIGURES };
static const struct lab_doc_column figure_columns[FIGURES] = {
    [COMPARISONS] = {"comparisons", "Comparisons", LAB_UNIT_COUNT, "Comparisons"},
    [SLOWED] = {"slowed", "Slowed", LAB_UNIT_COUNT, "Slowed"},
    [SPREAD_MORE] = {"more_spread", "More spread", LAB_UNIT_COUNT},
    [MISMATCHES] = {"mismatches", "Mismatches", LAB_UNIT_COUNT},
    [MET] = {"indicators_met", "Indicators met", LAB_UNIT_COUNT, "Met"},
};

enum {
    PAIR_KERNEL,
    PAIR_DEVICE,
    PAIR_GPU_ID,
    PAIR_PHASE,
    PAIR_BASE_TIME,
    PAIR_TIME,
    PAIR_CHANGE,
    PAIR_CHANGE_TEXT,
    PAIR_WITHIN,
    PAIR_VERDICT,
    PAIR_BASE_SPREAD,
    PAIR_SPREAD,
    PAIR_SPREAD_RATIO,
    PAIR_SPREAD_TEXT,
    PAIR_CONFIGURATION,
    PAIR_BEST,
    PAIR_COLUMNS
};

static const struct lab_doc_column pair_columns[PAIR_COLUMNS] = {
    [PAIR_KERNEL] = {"kernel", "Kernel", LAB_UNIT_TEXT},
    [PAIR_DEVICE] = {"device", "Device", LAB_UNIT_TEXT},
    [PAIR_GPU_ID] = {"gpu_id", NULL, LAB_UNIT_COUNT},
    [PAIR_PHASE] = {"phase", "Phase", LAB_UNIT_TEXT},
    [PAIR_BASE_TIME] = {"baseline_ms", NULL, LAB_UNIT_TIME},
    [PAIR_TIME] = {"time_ms", NULL, LAB_UNIT_TIME},
    [PAIR_CHANGE] = {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    [PAIR_CHANGE_TEXT] = {NULL, "Difference", LAB_UNIT_FIGURE},
    [PAIR_WITHIN] = {"within_one_run", NULL, LAB_UNIT_TEXT},
    [PAIR_VERDICT] = {"verdict", NULL, LAB_UNIT_TEXT},
    [PAIR_BASE_SPREAD] = {"baseline_spread", NULL, LAB_UNIT_SHARE},
    [PAIR_SPREAD] = {"spread", NULL, LAB_UNIT_SHARE},
    [PAIR_SPREAD_RATIO] = {"spread_ratio", NULL, LAB_UNIT_RATIO, .with_interval = true},
    [PAIR_SPREAD_TEXT] = {NULL, "Spread", LAB_UNIT_FIGURE},
    [PAIR_CONFIGURATION] = {"configuration", NULL, LAB_UNIT_TEXT},
    [PAIR_BEST] = {"best_time_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
};

enum { DIFF_KERNEL, DIFF_DEVICE, DIFF_PHASE, DIFF_KEY, DIFF_BASE, DIFF_OTHER, DIFF_COLUMNS };
static const struct lab_doc_column difference_columns[DIFF_COLUMNS] = {
    [DIFF_KERNEL] = {"kernel", "Kernel", LAB_UNIT_TEXT},
    [DIFF_DEVICE] = {"device", "Device", LAB_UNIT_TEXT},
    [DIFF_PHASE] = {"phase", "Phase", LAB_UNIT_TEXT},
    [DIFF_KEY] = {"key", "Key", LAB_UNIT_TEXT},
    [DIFF_BASE] = {"baseline", "Baseline", LAB_UNIT_TEXT},
    [DIFF_OTHER] = {"here", "Here", LAB_UNIT_TEXT},
};

enum { SIGN_KEY, SIGN_TITLE, SIGN_STATE, SIGN_EVIDENCE, SIGN_COLUMNS };
static const struct lab_doc_column sign_columns[SIGN_COLUMNS] = {
    [SIGN_KEY] = {"indicator", NULL, LAB_UNIT_TEXT},
    [SIGN_TITLE] = {NULL, "Indicator of contention", LAB_UNIT_TEXT},
    [SIGN_STATE] = {"state", "State", LAB_UNIT_TEXT},
    [SIGN_EVIDENCE] = {"evidence", NULL, LAB_UNIT_TEXT},
};

/* --- tables --- */

static double median_of(const double *values, int count) {
    double *known = lab_mem_resize(NULL, (size_t)count + 1, sizeof *known);
    size_t n = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(values[i]))
            known[n++] = values[i];
    double median = n > 0 ? lab_stats_median(known, n) : (double)NAN;
    lab_mem_free(known);
    return median;
}

static struct lab_doc_cell change_cell(const struct lab_study_ratio *ratio) {
    return (struct lab_doc_cell){.value = ratio->ratio - 1,
                                 .low = ratio->low - 1,
                                 .high = ratio->high - 1,
                                 .confidence = CONFIDENCE};
}

static const char *verdict_name(enum lab_study_verdict verdict) {
    switch (verdict) {
    case LAB_STUDY_MORE:
        return "slower";
    case LAB_STUDY_LESS:
        return "faster";
    case LAB_STUDY_SAME:
        return "same";
    case LAB_STUDY_UNDECIDED:
        break;
    }
    return "undecided";
}

#define UNEVEN 100 /* an interval whose ends are so far apart says nothing */

static const char *spread_text(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    if (isnan(ratio->ratio))
        return "–";
    if (ratio->high / ratio->low > UNEVEN)
        return lab_arena_printf(arena, "%.2f×, uneven", ratio->ratio);
    return isnan(ratio->low) ? lab_arena_printf(arena, "%.2f×", ratio->ratio)
                             : lab_arena_printf(arena, "%.2f× [%.2f, %.2f]", ratio->ratio,
                                                ratio->low, ratio->high);
}

static const char *configuration_text(const struct lab_phase_pair *pair, struct lab_arena *arena) {
    if (pair->differing == 0)
        return "same";
    const char *what = pair->tuned ? "another" : "asked for another";
    return pair->pairs == 1 ? what
                            : lab_arena_printf(arena, "%s in %d of %d pairs of runs", what,
                                               pair->differing, pair->pairs);
}

static void fill_pair(struct lab_doc_cell *row, const struct lab_phases *phases,
                      const struct lab_phase_pair *pair, struct lab_arena *arena) {
    const struct lab_phase_unit *unit = &phases->units[pair->unit];
    const struct lab_phase_point *base = pair->base, *other = pair->other;
    row[PAIR_KERNEL] = lab_cell_text(unit->kernel);
    row[PAIR_DEVICE] = lab_cell_text(unit->device);
    row[PAIR_GPU_ID] = lab_cell_figure(unit->gpu_id);
    row[PAIR_PHASE] = lab_cell_text(phases->names[pair->phase]);
    row[PAIR_BASE_TIME] = lab_cell_figure(median_of(base->times_s, base->point.count));
    row[PAIR_TIME] = lab_cell_figure(median_of(other->times_s, other->point.count));
    row[PAIR_CHANGE] = change_cell(&pair->time);
    struct lab_study_ratio brief = pair->time;
    brief.within =
        false; /* a note says so of all that were run once; here it would fill the line */
    row[PAIR_CHANGE_TEXT] = lab_cell_text(lab_study_ratio_words(&brief, arena));
    row[PAIR_WITHIN] = lab_cell_text(pair->time.within ? "yes" : "no");
    row[PAIR_VERDICT] = lab_cell_text(verdict_name(pair->time.verdict));
    row[PAIR_BASE_SPREAD] = lab_cell_figure(median_of(base->spreads, base->point.count));
    row[PAIR_SPREAD] = lab_cell_figure(median_of(other->spreads, other->point.count));
    row[PAIR_SPREAD_RATIO] = (struct lab_doc_cell){.value = pair->spread.ratio,
                                                   .low = pair->spread.low,
                                                   .high = pair->spread.high,
                                                   .confidence = CONFIDENCE};
    row[PAIR_SPREAD_TEXT] = lab_cell_text(spread_text(&pair->spread, arena));
    row[PAIR_CONFIGURATION] = lab_cell_text(configuration_text(pair, arena));
    row[PAIR_BEST] = change_cell(&pair->best);
}

static struct lab_doc_table pair_table(const struct lab_phases *phases, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)phases->pair_count * PAIR_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < phases->pair_count; i++)
        fill_pair(cells + (ptrdiff_t)i * PAIR_COLUMNS, phases, &phases->pairs[i], arena);
    return (struct lab_doc_table){.key = "comparisons",
                                  .title =
                                      phases->pair_count ? "Phases against the baseline" : NULL,
                                  .columns = pair_columns,
                                  .column_count = PAIR_COLUMNS,
                                  .cells = cells,
                                  .row_count = phases->pair_count};
}

static struct lab_doc_table difference_table(const struct lab_phases *phases,
                                             const struct lab_phase_difference *differences,
                                             int count, struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)count * DIFF_COLUMNS + 1, sizeof *cells);
    for (int i = 0; i < count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[differences[i].pair];
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * DIFF_COLUMNS;
        row[DIFF_KERNEL] = lab_cell_text(phases->units[pair->unit].kernel);
        row[DIFF_DEVICE] = lab_cell_text(phases->units[pair->unit].device);
        row[DIFF_PHASE] = lab_cell_text(phases->names[pair->phase]);
        row[DIFF_KEY] = lab_cell_text(differences[i].key);
        row[DIFF_BASE] = lab_cell_text(differences[i].base);
        row[DIFF_OTHER] = lab_cell_text(differences[i].other);
    }
    return (struct lab_doc_table){.key = "configurations",
                                  .title = count ? "Where configurations differ" : NULL,
                                  .columns = difference_columns,
                                  .column_count = DIFF_COLUMNS,
                                  .cells = cells,
                                  .row_count = count};
}

/* Evidence is too long for a table: people read it below. */
static const char *const *sign_notes(const struct lab_indicator *indicators,
                                     struct lab_arena *arena) {
    const char **notes = lab_arena_alloc(arena, LAB_INDICATORS + 1, sizeof *notes);
    for (int i = 0; i < LAB_INDICATORS; i++)
        notes[i] =
            lab_arena_printf(arena, "%s, %s: %s.", indicators[i].title,
                             lab_indicator_state_name(indicators[i].state), indicators[i].evidence);
    return notes;
}

static struct lab_doc_table sign_table(const struct lab_indicator *indicators, bool shown,
                                       struct lab_arena *arena) {
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)LAB_INDICATORS * SIGN_COLUMNS, sizeof *cells);
    for (int i = 0; i < LAB_INDICATORS; i++) {
        struct lab_doc_cell *row = cells + (ptrdiff_t)i * SIGN_COLUMNS;
        row[SIGN_KEY] = lab_cell_text(indicators[i].key);
        row[SIGN_TITLE] = lab_cell_text(indicators[i].title);
        row[SIGN_STATE] = lab_cell_text(lab_indicator_state_name(indicators[i].state));
        row[SIGN_EVIDENCE] = lab_cell_text(indicators[i].evidence);
    }
    return (struct lab_doc_table){.key = "indicators",
                                  .title = shown ? "Indicators" : NULL,
                                  .columns = sign_columns,
                                  .column_count = SIGN_COLUMNS,
                                  .cells = cells,
                                  .row_count = LAB_INDICATORS};
}

/* --- words --- */

struct counts {
    int pairs, slowed, undecided, spread, tuned, mismatches;
    double bound; /* of those that are the same: none is farther off; NaN = unknown */
    const struct lab_phase_pair *worst;
};

/* Of one phase; of all with -1. */
static struct counts count_pairs(const struct lab_phases *phases, int phase) {
    struct counts counts = {.bound = NAN};
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        if (phase >= 0 && pair->phase != phase)
            continue;
        counts.pairs++;
        counts.spread += pair->spread.verdict == LAB_STUDY_MORE;
        counts.tuned += pair->tuned;
        counts.mismatches += pair->tuned && pair->differing > 0;
        counts.undecided += pair->time.verdict == LAB_STUDY_UNDECIDED;
        counts.bound = fmax(counts.bound, pair->time.bound);
        if (pair->time.verdict != LAB_STUDY_MORE)
            continue;
        counts.slowed++;
        if (!counts.worst || pair->time.low > counts.worst->time.low)
            counts.worst = pair;
    }
    return counts;
}

/* "concurrent slows softmax on GPU 2 by 18.0 % [15.1, 21.0], and 3 of 4 in all" */
static void add_slowdown(struct lab_str *text, const struct lab_phases *phases,
                         const struct counts *counts) {
    const struct lab_phase_pair *pair = counts->worst;
    const struct lab_phase_unit *unit = &phases->units[pair->unit];
    lab_str_printf(text, "Phase %s slows %s on %s by %.1f %% [%.1f, %.1f]%s",
                   phases->names[pair->phase], unit->kernel, unit->device,
                   100 * (pair->time.ratio - 1), 100 * (pair->time.low - 1),
                   100 * (pair->time.high - 1), pair->time.within ? " within one run each" : "");
    if (counts->pairs > 1)
        lab_str_printf(text, ", and %d of %d in all", counts->slowed, counts->pairs);
}

/* What other phases leave of the worst slow-down. */
static void add_others(struct lab_str *text, const struct lab_phases *phases,
                       const struct lab_phase_pair *worst, struct lab_arena *arena) {
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        if (pair->unit == worst->unit && pair->phase != worst->phase)
            lab_str_printf(text, "; %s leaves %s", phases->names[pair->phase],
                           lab_study_ratio_words(&pair->time, arena));
    }
}

static void add_same(struct lab_str *text, const struct lab_phases *phases,
                     const struct counts *counts) {
    const char *phase = phases->names[phases->concurrent];
    if (counts->bound > LAB_WORDS_BOUND_MOST)
        lab_str_printf(text,
                       "Whether phase %s slows anything can't be told: its runs differ too much "
                       "from each other, or there are too few",
                       phase);
    else if (counts->undecided == 0 && !isnan(counts->bound))
        lab_str_printf(text, "Phase %s slows nothing: no difference larger than %.1f %%", phase,
                       ceil(1000 * counts->bound) / 10);
    else if (!isnan(counts->bound) && counts->undecided == counts->pairs)
        lab_str_printf(
            text,
            "Whether phase %s slows anything can't be told: no difference is larger than "
            "%.1f %% within one run each, and below 2 %% only repeats would tell",
            phase, ceil(1000 * counts->bound) / 10);
    else if (!isnan(counts->bound))
        lab_str_printf(text,
                       "Phase %s slows nothing for certain: no difference is larger than %.1f %%, "
                       "but %d of %d are undecided",
                       phase, ceil(1000 * counts->bound) / 10, counts->undecided, counts->pairs);
    else
        lab_str_printf(text,
                       "Whether phase %s slows anything can't be told: one run each, and no "
                       "iterations were kept",
                       phase);
}

static const char *make_answer(const struct lab_phases *phases, int run_count,
                               struct lab_arena *arena) {
    if (run_count == 0)
        return "There is no run to look at.";
    if (phases->count == 0)
        return "The runs have no phases to compare: 'gpulab run contention' has, and so have two "
               "studies given together.";
    if (phases->count == 1)
        return lab_arena_printf(arena, "There is but one phase, %s: nothing to hold it against.",
                                phases->names[0]);
    if (phases->pair_count == 0)
        return "No kernel ran on the same device in two phases: nothing to compare.";
    struct counts counts = count_pairs(phases, phases->concurrent);
    LAB_AUTO(str, text);
    if (counts.worst) {
        add_slowdown(&text, phases, &counts);
        add_others(&text, phases, counts.worst, arena);
    } else {
        add_same(&text, phases, &counts);
    }
    lab_str_add(&text, ".");
    if (counts.mismatches > 0)
        lab_str_printf(
            &text, " The auto-tuner chose another configuration for %d of %d kernels on a device.",
            counts.mismatches, counts.tuned);
    return lab_arena_strdup(arena, text.text);
}

/* --- the whole --- */

static const char *const *make_notes(const struct lab_analysis_input *input,
                                     const struct lab_phases *phases, struct lab_arena *arena) {
    const char **notes = lab_study_notes(&input->studies[0], 3, arena);
    int count = 0, alone = 0;
    while (notes[count])
        count++;
    for (int u = 0; u < phases->unit_count && phases->base >= 0; u++) {
        int there = 0;
        for (int p = 0; p < phases->count; p++)
            there += p != phases->base && phases->units[u].points[p].point.count > 0;
        alone += there == 0 || phases->units[u].points[phases->base].point.count == 0;
    }
    if (alone > 0 && phases->pair_count > 0)
        notes[count++] = lab_arena_printf(
            arena, "%d of %d kernels on a device weren't run in both phases and are left out.",
            alone, phases->unit_count);
    if (phases->base >= 0 && strcmp(phases->names[phases->base], "baseline") != 0 &&
        phases->pair_count > 0)
        notes[count++] = lab_arena_printf(
            arena, "No phase is called baseline: all are held against %s, which ran first.",
            phases->names[phases->base]);
    return notes;
}

static int variance_run(const void *config, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    (void)config;
    if (input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study");
    struct lab_phases *phases = lab_arena_alloc(arena, 1, sizeof *phases);
    struct lab_indicator *indicators = lab_arena_alloc(arena, LAB_INDICATORS, sizeof *indicators);
    struct lab_phase_difference *differences;
    int run_count = 0;
    for (int s = 0; s < input->study_count; s++)
        run_count += input->studies[s].run_count;
    lab_phases_make(input, arena, phases);
    int difference_count = lab_phases_configurations(phases, arena, &differences);
    lab_phases_indicators(phases, arena, indicators);

    struct lab_doc_cell *cells = lab_arena_alloc(arena, FIGURES, sizeof *cells);
    struct lab_doc_table *tables = lab_arena_alloc(arena, 3, sizeof *tables);
    struct lab_analysis_part *part = lab_arena_alloc(arena, 1, sizeof *part);
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    struct counts counts = count_pairs(phases, -1);
    int met = 0;
    for (int i = 0; i < LAB_INDICATORS; i++)
        met += indicators[i].state == LAB_INDICATOR_MET;
    cells[COMPARISONS] = lab_cell_figure(counts.pairs);
    cells[SLOWED] = lab_cell_figure(counts.slowed);
    cells[SPREAD_MORE] = lab_cell_figure(counts.spread);
    cells[MISMATCHES] = lab_cell_figure(counts.tuned ? counts.mismatches : (double)NAN);
    cells[MET] = lab_cell_figure(phases->pair_count > 0 ? met : (double)NAN);
    cells[COMPARISONS].text = "of a kernel on a device in a phase with the baseline";
    cells[MISMATCHES].text = "of what the tuner chose";
    cells[MET].text = "of five";
    tables[0] = sign_table(indicators, phases->pair_count > 0, arena);
    tables[1] = pair_table(phases, arena);
    tables[2] = difference_table(phases, differences, difference_count, arena);
    *part = (struct lab_analysis_part){
        .name = input->studies[0].name,
        .answer = make_answer(phases, run_count, arena),
        .cells = cells,
        .tables = tables,
        .table_count = 3,
        .notes = phases->pair_count > 0 ? sign_notes(indicators, arena) : NULL};
    *ret_result = (struct lab_analysis_result){
        .answer = part->answer,
        .part_key = "studies",
        .columns = figure_columns,
        .column_count = FIGURES,
        .parts = part,
        .part_count = 1,
        .simulated = phases->simulated,
        .notes = make_notes(input, phases, arena),
        .charts = chart,
        .chart_count = phases->count > 1 && lab_phases_chart(phases, arena, chart)};
    return 0;
}

static int variance_interest(const struct lab_study_table *study) {
    for (int i = 1; i < study->run_count; i++)
        if (strcmp(study->runs[i].phase, study->runs[0].phase) != 0)
            return lab_study_has_phases(study) ? 95 : 85;
    return 0;
}

static const struct lab_option variance_options[] = {{NULL}};

const struct lab_analysis lab_analysis_variance = {
    .name = "variance",
    .summary = "whether running beside others changes what is measured",
    .description =
        "Phases of a study against its baseline, for each kernel and device: the difference of the "
        "median iteration time with its interval, the ratio of spreads, what a tuner chose key by "
        "key, "
        "and five indicators of contention, each met, not met or undecided. Several studies "
        "without "
        "phases are taken as phases, the first as the baseline.",
    .options = variance_options,
    .config_size = 1,
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_FILES,
    .interest = variance_interest,
    .run = variance_run,
};
