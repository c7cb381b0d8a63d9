/*
 * variance.c: `gpulab analyze variance`: whether running next to others changes what is measured:
 * how long kernels take and how much that varies, for each kernel and device, phase by phase
 * against the baseline; and the five indicators of contention.
 */
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "analysis/contention/contention.h"

#include <math.h>
#include <string.h>

struct figures { /* of a phase */
    struct lab_claim time, spread;
    int slower, pairs;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, time, "time_change", "Time", LAB_UNIT_CHANGE, "Time"),
    LAB_FIELD(struct figures, spread, "spread_change", "Spread", LAB_UNIT_CHANGE, "Spread"),
    LAB_FIELD(struct figures, slower, "slower", "Slower", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, pairs, "comparisons", "Comparisons", LAB_UNIT_COUNT),
};

struct pair { /* a kernel on a device */
    const char *kernel, *device;
    int gpu_id;
    double base_s, time_s, base_spread, spread;
    struct lab_claim change, spread_change;
    const char *chosen; /* by its tuner */
};

static const struct lab_field pair_fields[] = {
    LAB_FIELD(struct pair, kernel, "kernel", "Kernel", LAB_UNIT_TEXT),
    LAB_FIELD(struct pair, device, "device", "Device", LAB_UNIT_TEXT),
    LAB_FIELD(struct pair, gpu_id, "gpu_id", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct pair, base_s, "baseline_ms", "Baseline", LAB_UNIT_TIME),
    LAB_FIELD(struct pair, time_s, "time_ms", NULL, LAB_UNIT_TIME),
    LAB_FIELD(struct pair, change, "change", "Time", LAB_UNIT_CHANGE),
    LAB_FIELD(struct pair, base_spread, "baseline_spread", NULL, LAB_UNIT_SHARE),
    LAB_FIELD(struct pair, spread, "spread", NULL, LAB_UNIT_SHARE),
    LAB_FIELD(struct pair, spread_change, "spread_change", "Spread", LAB_UNIT_CHANGE),
    LAB_FIELD(struct pair, chosen, "chosen", "Chosen", LAB_UNIT_TEXT),
};

static const struct lab_field indicator_fields[] = {
    LAB_FIELD(struct lab_indicator, key, "indicator", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_indicator, title, NULL, "Indicator", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_indicator, state, "state", "State", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_indicator, evidence, NULL, "Evidence", LAB_UNIT_TEXT),
};

/* --- a phase --- */

static double mean_of(const double *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i] / count;
    return sum;
}

static struct lab_claim spread_claim(const struct lab_phases *phases, int phase, int unit) {
    struct lab_phase_question question = {.kind = "variance.spread",
                                          .quantity = "spread of iteration times",
                                          .phase = phase,
                                          .against = phases->base,
                                          .unit = unit + 1,
                                          .spread = true};
    if (unit >= 0) {
        question.kind = "variance.device_spread";
        question.what = lab_arena_printf(phases->arena, "%s on %s", phases->units[unit].kernel,
                                         phases->units[unit].device);
    }
    return lab_phases_ask(phases, &question);
}

static struct pair make_pair(const struct lab_phases *phases, int phase,
                             const struct contention_row *row) {
    const struct lab_phase_unit *unit = &phases->units[row->unit];
    const struct lab_phase_point *base = &unit->points[phases->base], *other = &unit->points[phase];
    struct pair pair = {.kernel = unit->kernel,
                        .device = unit->device,
                        .gpu_id = unit->gpu_id,
                        .base_s = mean_of(base->times_s, base->time.count),
                        .time_s = mean_of(other->times_s, other->time.count),
                        .base_spread = mean_of(base->spreads, base->time.count),
                        .spread = mean_of(other->spreads, other->time.count),
                        .change = row->change,
                        .spread_change = spread_claim(phases, phase, row->unit),
                        .chosen = lab_phases_chosen(base, other)};
    pair.change.kind = "variance.device_time";
    return pair;
}

struct phase {
    struct figures figures;
    struct pair *pairs;
    int count;
};

static struct phase make_phase(const struct lab_phases *phases,
                               const struct contention_phase *from) {
    struct phase phase = {.figures = {.time = from->slowdown,
                                      .spread = spread_claim(phases, from->number, -1),
                                      .pairs = from->device_count}};
    phase.figures.time.kind = "variance.time";
    for (int i = 0; i < from->device_count; i++) {
        LAB_ADD(phase.pairs, phase.count, phases->arena) =
            make_pair(phases, from->number, &from->devices[i]);
        phase.figures.slower += contention_is_slower(&from->devices[i].change);
    }
    return phase;
}

/* Verdicts of all spreads hold together; those of times are of `gpulab analyze contention`. */
static void adjust(struct phase *list, int count, struct lab_arena *arena) {
    struct lab_claim **spreads = NULL;
    int n = 0;
    for (int p = 0; p < count; p++) {
        LAB_ADD(spreads, n, arena) = &list[p].figures.spread;
        for (int i = 0; i < list[p].count; i++)
            LAB_ADD(spreads, n, arena) = &list[p].pairs[i].spread_change;
    }
    lab_claim_adjust(spreads, n);
}

/* --- the whole --- */

static void add_part(struct lab_analysis_result *result, const struct lab_phases *phases,
                     int number, const struct phase *phase) {
    struct lab_arena *arena = phases->arena;
    struct lab_analysis_part *part = lab_analysis_add_part(result, phases->names[number], arena);
    part->answer = lab_arena_printf(arena, "%s.", lab_claim_sentence(&phase->figures.time, arena));
    LAB_PART_FIGURES(part, figure_fields, &phase->figures, arena);
    struct lab_rows rows = LAB_ROWS(pair_fields, phase->pairs, phase->count);
    lab_analysis_hide_columns(
        lab_rows_add_table(part, "comparisons",
                           lab_arena_printf(arena, "Compared with %s", phases->names[phases->base]),
                           &rows, arena),
        arena);
    lab_analysis_add_claim(result, &phase->figures.time, arena);
    lab_analysis_add_claim(result, &phase->figures.spread, arena);
    lab_rows_add_claims(result, &rows, arena);
}

/* "Signs of contention: higher variance of iteration times (not found on average, inconclusive in 5
 * of 6 pairs of kernel and device), CPU use … (inconclusive); 3 of 5 not testable." */
static const char *signs_words(const struct phase *main, const struct lab_indicator *indicators,
                               struct lab_arena *arena) {
    static const enum lab_claim_verdict order[] = {LAB_CLAIM_YES, LAB_CLAIM_NO,
                                                   LAB_CLAIM_INCONCLUSIVE};
    static const char *const states[] = {"found", "not found", "inconclusive"};
    LAB_AUTO(str, text);
    int named = 0, open = 0;
    for (int i = 0; i < main->count; i++)
        open += main->pairs[i].spread_change.verdict == LAB_CLAIM_INCONCLUSIVE;
    const char *single = lab_arena_printf(arena,
                                          " on average, inconclusive in %d of %d pairs of "
                                          "kernel and device",
                                          open, main->count);
    for (int v = 0; v < LAB_COUNT_OF(order); v++)
        for (int i = 0; i < LAB_INDICATORS; i++)
            if (indicators[i].verdict == order[v])
                lab_str_printf(&text, "%s%s (%s%s)", named++ ? ", " : "",
                               lab_claim_within(indicators[i].title, arena), states[v],
                               i == 0 && order[v] == LAB_CLAIM_NO && open > 0 ? single : "");
    if (named == 0)
        return "Signs of contention: none could be tested.";
    if (named < LAB_INDICATORS)
        lab_str_printf(&text, "; %d of %d not testable", LAB_INDICATORS - named, LAB_INDICATORS);
    return lab_arena_printf(arena, "Signs of contention: %s.", text.text);
}

static const char *make_answer(const struct phase *main, const struct lab_indicator *indicators,
                               struct lab_arena *arena) {
    const struct lab_claim *time = &main->figures.time;
    double reach = 0, bound = time->verdict == LAB_CLAIM_NO ? time->bound : INFINITY;
    for (int i = 0; i < main->count; i++)
        reach = lab_words_reach(reach, &main->pairs[i].change);
    return lab_arena_printf(arena, "%s%s. %s", lab_claim_sentence(time, arena),
                            lab_words_beyond(bound, reach, "kernel and device", arena),
                            signs_words(main, indicators, arena));
}

static void add_parts(struct lab_analysis_result *result, const struct contention *made) {
    struct lab_arena *arena = made->arena;
    struct lab_indicator *indicators = lab_arena_alloc(arena, LAB_INDICATORS, sizeof *indicators);
    struct phase list[LAB_PHASES_MAX];
    for (int p = 0; p < made->count; p++)
        list[p] = make_phase(&made->phases, &made->list[p]);
    adjust(list, made->count, arena);
    lab_phases_indicators(&made->phases, &list[0].figures.spread, &made->list[0].tuning,
                          indicators);
    result->answer = make_answer(&list[0], indicators, arena);
    for (int p = 0; p < made->count; p++)
        if (list[p].count > 0)
            add_part(result, &made->phases, made->list[p].number, &list[p]);
    lab_rows_add_table(&result->parts[0], "indicators", "Indicators of contention",
                       &LAB_ROWS(indicator_fields, indicators, LAB_INDICATORS), arena);
    for (int i = 0; i < LAB_INDICATORS; i++)
        lab_analysis_add_claim(result, &indicators[i].claim, arena);
}

static int variance_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                        struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    struct contention made = contention_make(input, arena);
    result->untested = lab_phases_lack(&made.phases);
    result->lacks = made.count == 0;
    if (made.count > 0) {
        add_parts(result, &made);
        lab_phases_add_chart(result, &made.phases);
    }
    lab_study_add_notes(&input->studies[0], "", &result->notes, arena);
    return 0;
}

static int variance_interest(const struct lab_study_table *study) {
    for (int i = 1; i < study->run_count; i++)
        if (strcmp(study->runs[i].phase, study->runs[0].phase) != 0)
            return lab_study_has_phases(study) ? 95 : 85;
    return 0;
}

const struct lab_analysis lab_analysis_variance = {
    .name = "variance",
    .summary = "whether running next to others changes iteration times and their spread",
    .description =
        "Each phase of a study compared with its baseline, block by block: iteration time and its "
        "spread. First pooled over all kernels and devices, then for each. Intervals are over "
        "blocks, at "
        "95%; verdicts hold together. Five indicators of contention are met, not met, "
        "inconclusive or not testable. Several studies without phases are taken as phases, the "
        "first as the baseline.",
    .kinds =
        (const struct lab_analysis_kind[]){{"variance.time"},
                                           {"variance.spread"},
                                           {"variance.device_time"},
                                           {"variance.device_spread"},
                                           {"variance.higher_variance"},
                                           {"variance.different_configurations", LAB_KIND_PROBED},
                                           {"variance.pcie_correlation", LAB_KIND_WITHIN},
                                           {"variance.cpu_spikes", LAB_KIND_WITHIN},
                                           {"variance.suboptimal_convergence", LAB_KIND_PROBED},
                                           {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .needs = LAB_STUDY_WITH_ITERATIONS | LAB_STUDY_WITH_SAMPLES | LAB_STUDY_WITH_FILES,
    .interest = variance_interest,
    LAB_PARTS_OF("phases", figure_fields),
    .run = variance_run,
};
