/* analysis.c: finding analyses, and the figures that all of them give. */
#include "analysis/analysis.h"

#include "analysis/analysis_build.h"

#include "analysis/claims/check.h"
#include "analysis/claims/rows.h"
#include "base/list.h"
#include "base/str.h"
#include "stats/stats.h"

#include <limits.h>
#include <math.h>

#define CONFIDENCE 0.95
/* Below this share of independent values, the interval is that of as many as are; above it, the
 * estimate of how many there are is worth less than the values. */
#define DEPENDENT_SHARE 0.9

const struct lab_analysis *lab_analysis_find(const char *name, struct lab_err *err) {
    int count = 0;
    for (; lab_analyses[count]; count++)
        if (lab_str_equal(lab_analyses[count]->name, name))
            return lab_analyses[count];
    LAB_AUTO_FREE const char **names = lab_mem_alloc((size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = lab_analyses[i]->name;
    LAB_AUTO(str, text);
    const char *nearest = lab_str_nearest(name, names);
    if (nearest)
        lab_str_printf(&text, " (did you mean '%s'?)", nearest);
    lab_str_add(&text, count == 1 ? "; there is " : "; there are ");
    lab_str_add_list(&text, names, "and");
    lab_err_set(err, LAB_ERR_USER, "unknown analysis '%s'%s", name, text.text);
    return NULL;
}

/* --- of a study's report --- */

static bool is_of_reports(const struct lab_analysis *analysis) {
    return analysis->source == LAB_ANALYSIS_OF_STUDIES && analysis->interest;
}

/* Their names in the arena, NULL-terminated. */
static const char *const *report_names(struct lab_arena *arena) {
    int all = 0, count = 0;
    while (lab_analyses[all])
        all++;
    const char **names = lab_arena_alloc(arena, (size_t)all + 1, sizeof *names);
    for (int i = 0; i < all; i++)
        if (is_of_reports(lab_analyses[i]))
            names[count++] = lab_analyses[i]->name;
    return names;
}

static int check_answer(const struct lab_value *value, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    const char *name = lab_value_as_text(value, "");
    const char *const *names = report_names(&arena);
    if (lab_str_find(name, names) >= 0)
        return 0;
    const char *nearest = lab_str_nearest(name, names);
    lab_value_add_place(value, &text);
    lab_str_printf(&text, "experiment.answers: unknown analysis '%.80s'", name);
    if (nearest)
        lab_str_printf(&text, " (did you mean '%s'?)", nearest);
    lab_str_add(&text, "; reports have ");
    lab_str_add_list(&text, names, "and");
    return lab_err_set(err, LAB_ERR_USER, "%s", text.text);
}

int lab_analysis_check_answers(const struct lab_value *names, struct lab_err *err) {
    if (!names || names->type == LAB_VALUE_NULL)
        return 0;
    if (names->type != LAB_VALUE_LIST)
        return check_answer(names, err);
    for (int i = 0; i < names->count; i++)
        if (check_answer(names->items[i], err) < 0)
            return -1;
    return 0;
}

static int find_answer(const struct lab_study_table *study, const char *name) {
    for (int i = 0; study->answers && study->answers[i]; i++)
        if (lab_str_equal(study->answers[i], name))
            return i;
    return INT_MAX;
}

int lab_analysis_choose(const struct lab_study_table *study, int most,
                        struct lab_analysis_choice *ret_choices) {
    int count = 0;
    for (int i = 0; lab_analyses[i] && count < most; i++) {
        const struct lab_analysis *analysis = lab_analyses[i];
        if (!is_of_reports(analysis))
            continue;
        int interest = analysis->interest(study), answer = find_answer(study, analysis->name);
        if (interest > 0 || (interest == LAB_INTEREST_IF_NAMED && answer < INT_MAX))
            ret_choices[count++] = (struct lab_analysis_choice){analysis, answer, interest, i};
    }
    LAB_SORT(ret_choices, count, LAB_BY(ret_choices, answer), LAB_BY_MOST(ret_choices, interest),
             LAB_BY(ret_choices, position));
    return count;
}

void *lab_analysis_config(const struct lab_analysis *analysis, struct lab_arena *arena) {
    if (!analysis->options)
        return NULL;
    void *config = lab_arena_alloc(arena, 1, analysis->config_size);
    lab_options_defaults(analysis->options, config, arena);
    return config;
}

/* --- running one --- */

static enum lab_analysis_finding finding_of(const struct lab_claim *claims, int count) {
    bool none = true;
    for (int i = 0; i < count; i++) {
        if (!lab_str_equal(claims[i].kind, claims[0].kind))
            continue;
        if (claims[i].verdict == LAB_CLAIM_YES)
            return LAB_ANALYSIS_FINDS;
        none = none && claims[i].verdict == LAB_CLAIM_NO;
    }
    return none ? LAB_ANALYSIS_FINDS_NOTHING : LAB_ANALYSIS_CANT_TELL;
}

/* A claim that names no points rests on all that were analysed. */
static void fill_scopes(const struct lab_analysis_input *input, struct lab_claim *const *claims,
                        int count, struct lab_arena *arena) {
    struct lab_claim all = {0};
    for (int s = 0; s < input->study_count; s++)
        for (int i = 0; i < input->studies[s].run_count; i++)
            if (input->studies[s].runs[i].used)
                lab_claim_add_scope(&all, input->studies[s].runs[i].point, arena);
    for (int i = 0; i < input->recording_count && input->study_count == 0; i++)
        lab_claim_add_scope(&all, input->recordings[i].name, arena);
    for (int i = 0; i < count; i++)
        if (claims[i]->scope_count == 0 && claims[i]->verdict != LAB_CLAIM_NOT_TESTED) {
            claims[i]->scope = all.scope;
            claims[i]->scope_count = all.scope_count;
        }
}

const struct lab_analysis_kind *lab_analysis_kind(const struct lab_analysis *analysis,
                                                  const char *name) {
    for (const struct lab_analysis_kind *kind = analysis->kinds; kind && kind->name; kind++)
        if (lab_str_equal(kind->name, name))
            return kind;
    return NULL;
}

/* One that isn't declared would be missing wherever kinds are listed. */
static void check_kinds(const struct lab_analysis *analysis, struct lab_analysis_result *result,
                        struct lab_arena *arena) {
    for (int i = 0; i < result->claim_count; i++)
        if (!lab_analysis_kind(analysis, result->claims[i].kind))
            lab_analysis_note(&result->faults, arena,
                              "Program error: %s declares no claims of kind %s.", analysis->name,
                              result->claims[i].kind);
}

/* What else a reader would take for a contradiction: "+2.1% [0.3, 3.9], inconclusive". */
static void note_corrected(struct lab_analysis_result *result, struct lab_arena *arena) {
    for (int i = 0; i < result->claim_count; i++)
        if (lab_claim_is_corrected(&result->claims[i])) {
            lab_analysis_note(&result->notes, arena, LAB_CLAIM_CORRECTED);
            return;
        }
}

static void complete_answers(struct lab_analysis_result *result, struct lab_arena *arena) {
    for (int i = 0; i < result->part_count; i++)
        if (result->parts[i].untested)
            result->parts[i].answer = lab_analysis_untested(result->parts[i].untested, arena);
    if (result->untested)
        result->answer = lab_analysis_untested(result->untested, arena);
    if (result->answer || result->part_count == 0)
        return;
    result->answer = result->parts[0].answer;
    result->untested = result->parts[0].untested;
}

int lab_analysis_run(const struct lab_analysis *analysis, const void *config,
                     const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_analysis_result *ret_result, struct lab_err *err) {
    struct lab_analysis_input given = *input;
    struct lab_analysis_result result =
        lab_rows_result(analysis->part_key, analysis->figures, analysis->figure_count, arena);
    given.config = config ? config : lab_analysis_config(analysis, arena);
    if (analysis->source == LAB_ANALYSIS_OF_STUDIES && input->study_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "there is nothing to analyse: no study was given");
    for (int i = 0; i < input->study_count; i++)
        result.simulated |= input->studies[i].simulated;
    for (int i = 0; i < input->recording_count; i++)
        result.simulated |= input->recordings[i].recording->simulated;
    if (analysis->run(&given, &result, err) < 0)
        return -1;
    complete_answers(&result, arena);
    *ret_result = result;
    int count = ret_result->claim_count;
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)count + 1, sizeof *claims);
    for (int i = 0; i < count; i++) {
        claims[i] = &ret_result->claims[i];
        claims[i]->simulated = ret_result->simulated;
    }
    struct lab_chart *charts =
        lab_arena_copy(arena, ret_result->charts, (size_t)ret_result->chart_count, sizeof *charts);
    for (int i = 0; i < ret_result->chart_count; i++)
        lab_chart_fit_units(&charts[i], arena);
    ret_result->charts = charts;
    fill_scopes(input, claims, count, arena);
    /* of several studies, the same names are different things */
    lab_claims_check(claims, count, input->study_count <= 1, &ret_result->faults, arena);
    check_kinds(analysis, ret_result, arena);
    note_corrected(ret_result, arena);
    /* unless it says so itself, from several kinds of claims; an estimate in a unit is neither
     * there nor not */
    if (ret_result->finding == LAB_ANALYSIS_NOT_REQUESTED && count > 0 && !claims[0]->unit)
        ret_result->finding = finding_of(ret_result->claims, count);
    return 0;
}

struct lab_analysis_summary lab_analysis_summarize(const double *values, size_t count) {
    struct lab_analysis_summary summary = {
        .count = count, .median = NAN, .low = NAN, .high = NAN, .p95 = NAN};
    LAB_AUTO_FREE double *sorted = lab_mem_resize(NULL, count + 1, sizeof *sorted);
    if (count > 0 && lab_stats_sort(values, count, sorted)) {
        double effective = lab_stats_effective_size(values, count);
        if (!(effective < DEPENDENT_SHARE * (double)count))
            effective = (double)count;
        struct lab_interval interval =
            lab_stats_median_interval_sorted(sorted, count, effective, CONFIDENCE);
        summary.median = lab_stats_quantile_sorted(sorted, count, 0.5);
        summary.p95 = lab_stats_quantile_sorted(sorted, count, 0.95);
        summary.low = interval.low;
        summary.high = interval.high;
        summary.confidence = interval.confidence;
        summary.total = lab_stats_mean(values, count) * (double)count;
    }
    return summary;
}

struct lab_doc_cell lab_cell_interval(double value, double low, double high, double confidence) {
    return (struct lab_doc_cell){
        .value = value, .low = low, .high = high, .confidence = confidence};
}

struct lab_doc_cell lab_cell_remark(double value, const char *remark) {
    struct lab_doc_cell cell = lab_cell_figure(value);
    cell.text = remark;
    return cell;
}
