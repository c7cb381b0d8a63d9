/*
 * variance.c: `gpulab analyze variance`: whether running beside others changes what is measured:
 * how long kernels take, how much that varies, and what an auto-tuner makes of it; for each kernel
 * and each device, phase by phase against the baseline.
 */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/variance/phases.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- columns --- */

static const struct lab_doc_column figure_columns[] = {
    {"comparisons", "Comparisons", LAB_UNIT_COUNT, "Comparisons"},
    {"slowed", "Slowed", LAB_UNIT_COUNT, "Slowed"},
    {"more_spread", "More spread", LAB_UNIT_COUNT},
    {"mismatches", "Mismatches", LAB_UNIT_COUNT},
    {"indicators_met", "Indicators met", LAB_UNIT_COUNT, "Met"},
};

static const struct lab_doc_column pair_columns[] = {
    {"kernel", "Kernel", LAB_UNIT_TEXT},
    {"device", "Device", LAB_UNIT_TEXT},
    {"gpu_id", NULL, LAB_UNIT_COUNT},
    {"phase", "Phase", LAB_UNIT_TEXT},
    {"baseline_ms", NULL, LAB_UNIT_TIME},
    {"time_ms", NULL, LAB_UNIT_TIME},
    {"change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
    {NULL, "Difference", LAB_UNIT_FIGURE},
    {"within_one_run", NULL, LAB_UNIT_TEXT},
    {"verdict", NULL, LAB_UNIT_TEXT},
    {"baseline_spread", NULL, LAB_UNIT_SHARE},
    {"spread", NULL, LAB_UNIT_SHARE},
    {"spread_ratio", NULL, LAB_UNIT_RATIO, .with_interval = true},
    {NULL, "Spread", LAB_UNIT_FIGURE},
    {"configuration", NULL, LAB_UNIT_TEXT},
    {"best_time_change", NULL, LAB_UNIT_CHANGE, .with_interval = true},
};

static const struct lab_doc_column difference_columns[] = {
    {"kernel", "Kernel", LAB_UNIT_TEXT},     {"device", "Device", LAB_UNIT_TEXT},
    {"phase", "Phase", LAB_UNIT_TEXT},       {"key", "Key", LAB_UNIT_TEXT},
    {"baseline", "Baseline", LAB_UNIT_TEXT}, {"here", "Here", LAB_UNIT_TEXT},
};

static const struct lab_doc_column sign_columns[] = {
    {"indicator", NULL, LAB_UNIT_TEXT},
    {NULL, "Indicator of contention", LAB_UNIT_TEXT},
    {"state", "State", LAB_UNIT_TEXT},
    {"evidence", NULL, LAB_UNIT_TEXT},
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
    return lab_cell_interval(ratio->ratio - 1, ratio->low - 1, ratio->high - 1, CONFIDENCE);
}

#define UNEVEN 100 /* an interval whose ends are so far apart says nothing */

static const char *spread_text(const struct lab_study_ratio *ratio, struct lab_arena *arena) {
    if (ratio->high / ratio->low > UNEVEN)
        return lab_arena_printf(arena, "%.2f×, uneven", ratio->ratio);
    return lab_words_times(ratio->ratio, ratio->low, ratio->high, arena);
}

static const char *configuration_text(const struct lab_phase_pair *pair, struct lab_arena *arena) {
    if (pair->differing == 0)
        return "same";
    const char *what = pair->tuned ? "another" : "asked for another";
    return pair->pairs == 1 ? what
                            : lab_arena_printf(arena, "%s in %d of %d pairs of runs", what,
                                               pair->differing, pair->pairs);
}

static void add_pair_table(struct lab_analysis_part *part, const struct lab_phases *phases,
                           struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "comparisons", "Phases against the baseline", pair_columns, arena);
    for (int i = 0; i < phases->pair_count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[i];
        const struct lab_phase_unit *unit = &phases->units[pair->unit];
        const struct lab_phase_point *base = pair->base, *other = pair->other;
        struct lab_study_ratio brief = pair->time;
        brief.within = false; /* a note says so of all that were run once; here it fills the line */
        LAB_ROW(
            table, arena, lab_cell_text(unit->kernel), lab_cell_text(unit->device),
            lab_cell_figure(unit->gpu_id), lab_cell_text(phases->names[pair->phase]),
            lab_cell_figure(median_of(base->times_s, base->point.count)),
            lab_cell_figure(median_of(other->times_s, other->point.count)),
            change_cell(&pair->time), lab_cell_text(lab_study_ratio_words(&brief, arena)),
            lab_cell_text(pair->time.within ? "yes" : "no"),
            lab_cell_text(lab_words_verdict(pair->time.verdict, "slower", "faster")),
            lab_cell_figure(median_of(base->spreads, base->point.count)),
            lab_cell_figure(median_of(other->spreads, other->point.count)),
            lab_cell_interval(pair->spread.ratio, pair->spread.low, pair->spread.high, CONFIDENCE),
            lab_cell_text(spread_text(&pair->spread, arena)),
            lab_cell_text(configuration_text(pair, arena)), change_cell(&pair->best));
    }
    lab_analysis_hide_empty(table);
}

static void add_difference_table(struct lab_analysis_part *part, const struct lab_phases *phases,
                                 const struct lab_phase_difference *differences, int count,
                                 struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "configurations", "Where configurations differ", difference_columns, arena);
    for (int i = 0; i < count; i++) {
        const struct lab_phase_pair *pair = &phases->pairs[differences[i].pair];
        LAB_ROW(table, arena, lab_cell_text(phases->units[pair->unit].kernel),
                lab_cell_text(phases->units[pair->unit].device),
                lab_cell_text(phases->names[pair->phase]), lab_cell_text(differences[i].key),
                lab_cell_text(differences[i].base), lab_cell_text(differences[i].other));
    }
    lab_analysis_hide_empty(table);
}

/* Evidence is too long for a table: people read it below. */
static void add_signs(struct lab_analysis_part *part, const struct lab_indicator *indicators,
                      bool shown, struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "indicators", shown ? "Indicators" : NULL, sign_columns, arena);
    for (int i = 0; i < LAB_INDICATORS; i++) {
        const struct lab_indicator *sign = &indicators[i];
        const char *state = lab_indicator_state_name(sign->state);
        LAB_ROW(table, arena, lab_cell_text(sign->key), lab_cell_text(sign->title),
                lab_cell_text(state), lab_cell_text(sign->evidence));
        if (shown)
            lab_analysis_note(&part->notes, arena, "%s, %s: %s.", sign->title, state,
                              sign->evidence);
    }
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
            "Phase %s: inconclusive (1 run each); the differences within these runs are at most "
            "%.1f %%",
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

static void add_notes(struct lab_analysis_result *result, const struct lab_phases *phases,
                      struct lab_arena *arena) {
    int alone = 0;
    if (phases->base < 0 || phases->pair_count == 0)
        return;
    for (int u = 0; u < phases->unit_count; u++) {
        int there = 0;
        for (int p = 0; p < phases->count; p++)
            there += p != phases->base && phases->units[u].points[p].point.count > 0;
        alone += there == 0 || phases->units[u].points[phases->base].point.count == 0;
    }
    if (alone > 0)
        lab_analysis_note(
            &result->notes, arena,
            "%d of %d kernels on a device weren't run in both phases and are left out.", alone,
            phases->unit_count);
    if (strcmp(phases->names[phases->base], "baseline") != 0)
        lab_analysis_note(&result->notes, arena,
                          "No phase is called baseline: all are held against %s, which ran first.",
                          phases->names[phases->base]);
}

static void add_part(struct lab_analysis_result *result, const char *name,
                     struct lab_phases *phases, int run_count, struct lab_arena *arena) {
    struct lab_analysis_part *part = lab_analysis_add_part(result, name, arena);
    struct lab_indicator *indicators = lab_arena_alloc(arena, LAB_INDICATORS, sizeof *indicators);
    struct lab_phase_difference *differences;
    int difference_count = lab_phases_configurations(phases, arena, &differences), met = 0;
    struct counts counts = count_pairs(phases, -1);
    lab_phases_indicators(phases, arena, indicators);
    for (int i = 0; i < LAB_INDICATORS; i++)
        met += indicators[i].state == LAB_INDICATOR_MET;
    part->answer = make_answer(phases, run_count, arena);
    LAB_FIGURES(
        part, lab_cell_remark(counts.pairs, "of a kernel on a device in a phase with the baseline"),
        lab_cell_figure(counts.slowed), lab_cell_figure(counts.spread),
        lab_cell_remark(counts.tuned ? counts.mismatches : (double)NAN, "of what the tuner chose"),
        lab_cell_remark(phases->pair_count > 0 ? met : (double)NAN, "of five"));
    add_signs(part, indicators, phases->pair_count > 0, arena);
    add_pair_table(part, phases, arena);
    add_difference_table(part, phases, differences, difference_count, arena);
}

static int variance_run(const void *config, const struct lab_analysis_input *input,
                        struct lab_arena *arena, struct lab_analysis_result *ret_result,
                        struct lab_err *err) {
    (void)config;
    if (lab_analysis_open(input, LAB_RESULT("studies", figure_columns), ret_result, err) < 0)
        return -1;
    struct lab_phases *phases = lab_arena_alloc(arena, 1, sizeof *phases);
    int run_count = 0;
    for (int s = 0; s < input->study_count; s++)
        run_count += input->studies[s].run_count;
    lab_phases_make(input, arena, phases);
    ret_result->simulated = phases->simulated;
    add_part(ret_result, input->studies[0].name, phases, run_count, arena);
    ret_result->answer = ret_result->parts[0].answer;
    lab_study_add_notes(&input->studies[0], "", &ret_result->notes, arena);
    add_notes(ret_result, phases, arena);
    if (phases->count > 1)
        lab_phases_add_chart(ret_result, phases, arena);
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
