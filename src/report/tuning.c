/* tuning.c: the verdict first, then what it rests on. */
#include "report/tuning.h"

#include "base/list.h"

#include <math.h>

#define LABEL_COLUMNS  19
#define SHOWN_REJECTED 5 /* of those that were ruled out */
#define SHOWN_TIMES    8 /* of the table */

static void add_time(struct lab_str *text, const struct lab_trial *trial, double confidence) {
    size_t from = text->length;
    lab_str_add_time(text, trial->median_s);
    if (isfinite(trial->low_s) && isfinite(trial->high_s)) {
        lab_str_add(text, " [");
        lab_str_add_time(text, trial->low_s);
        lab_str_add(text, ", ");
        lab_str_add_time(text, trial->high_s);
        lab_str_printf(text, "] at %.0f%%", 100 * confidence);
    }
    lab_text_keep(text, from);
}

static void add_verdict(struct lab_doc *doc, const struct lab_tuning_result *result) {
    const struct lab_trial *best = &result->trials[result->best];
    bool is_default = result->best == 0;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s, ", best->config);
    add_time(&text, best, result->confidence);
    if (result->interrupted) {
        lab_str_add(&text, "; the final round was not completed: no verdict");
        lab_doc_line(doc, "Fastest so far", "%s", text.text);
    } else if (result->certain) {
        lab_str_add(&text, is_default ? "; it is the default" : "");
        lab_doc_line(doc, "Winner", "%s", text.text);
    } else {
        lab_str_printf(&text,
                       "; %d configurations are statistically indistinguishable, so "
                       "%s",
                       result->alike_count,
                       is_default ? "the default stays" : "the fastest of them is used");
        lab_doc_line(doc, "No winner", "%s", text.text);
    }
    lab_str_clear(&text);
    if (isfinite(result->speedup)) {
        lab_str_printf(&text, "%.2f × as fast as the default", result->speedup);
        if (isfinite(result->speedup_high))
            lab_str_printf(&text, " [%.2f, %.2f] at %.0f%%", result->speedup_low,
                           result->speedup_high, 100 * result->confidence);
        lab_doc_line(doc, "", "%s", text.text);
    }
}

static void add_tried(struct lab_doc *doc, const struct lab_tuning_result *result) {
    LAB_AUTO(str, text);
    static const struct {
        enum lab_trial_state state;
        const char *words;
    } parts[] = {{LAB_TRIAL_MEASURED, "timed"},
                 {LAB_TRIAL_VERIFIED, "correct but not timed"},
                 {LAB_TRIAL_FAILED, "failed"},
                 {LAB_TRIAL_WRONG, "with wrong results"},
                 {LAB_TRIAL_UNTRIED, "not tried"}};
    lab_str_printf(&text, "%d configuration%s", result->trial_count,
                   result->trial_count == 1 ? "" : "s");
    for (size_t i = 0, shown = 0; i < sizeof parts / sizeof *parts; i++) {
        int count = lab_tuning_result_count(result, parts[i].state);
        if (count)
            lab_str_printf(&text, "%s%d %s", shown++ ? ", " : ": ", count, parts[i].words);
    }
    if (result->illegal)
        lab_str_printf(&text, "; %lld more are not legal for this shape (such as %s)",
                       (long long)result->illegal, result->illegal_reason);
    lab_doc_line(doc, "Tried", "%s", text.text);
    int shown = 0;
    for (int i = 0; i < result->trial_count; i++) {
        const struct lab_trial *trial = &result->trials[i];
        if (trial->reason && shown++ < SHOWN_REJECTED)
            lab_doc_line(doc, shown == 1 ? "Ruled out" : "", "%s: %s", trial->config,
                         trial->reason);
    }
    if (shown > SHOWN_REJECTED)
        lab_doc_line(doc, "", "and %d more (--json names all)", shown - SHOWN_REJECTED);
}

static bool is_alike(const struct lab_tuning_result *result, const struct lab_trial *trial) {
    for (int i = 0; i < result->alike_count; i++)
        if (&result->trials[result->alike[i]] == trial)
            return true;
    return false;
}

static void add_trial(struct lab_doc *doc, const struct lab_tuning_result *result,
                      const struct lab_trial *trial) {
    const char *place = !trial->final             ? "narrowed out"
                        : is_alike(result, trial) ? "finalist, alike"
                                                  : "finalist, slower";
    if (trial == &result->trials[result->best] && result->certain)
        place = "winner";
    const double times[] = {trial->median_s, trial->low_s, trial->high_s};
    lab_doc_cell(doc, "%s", trial->config);
    for (int i = 0; i < 3; i++) {
        LAB_AUTO(str, text);
        if (isfinite(times[i]))
            lab_str_add_time(&text, times[i]);
        lab_doc_cell(doc, "%s", text.text);
    }
    lab_doc_cell(doc, "%s%s", place, trial == &result->trials[0] ? ", default" : "");
}

static void add_times(struct lab_doc *doc, const struct lab_tuning_result *result) {
    static const struct lab_doc_column columns[] = {
        {NULL, "configuration", .align = LAB_ALIGN_WHOLE},
        {NULL, "median", LAB_UNIT_FIGURE},
        {NULL, "from", LAB_UNIT_FIGURE},
        {NULL, "to", LAB_UNIT_FIGURE},
        {NULL, ""},
    };
    const struct lab_trial **list = lab_arena_alloc(
        lab_doc_arena(doc), (size_t)result->trial_count + 1, sizeof(const struct lab_trial *));
    int count = 0;
    for (int i = 0; i < result->trial_count; i++)
        if (result->trials[i].state == LAB_TRIAL_MEASURED)
            list[count++] = &result->trials[i];
    LAB_SORT_REFS(list, count, LAB_BY_MOST(*list, final), LAB_BY(*list, median_s));
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < count && i < SHOWN_TIMES; i++)
        add_trial(doc, result, list[i]);
}

void lab_report_add_tuning(struct lab_doc *doc, const struct lab_tuning_result *result) {
    LAB_AUTO(str, took);
    lab_str_add_time(&took, result->duration_s);
    lab_str_add(&took, " of a budget of ");
    lab_str_add_time(&took, result->budget_s);
    lab_doc_set_labels(doc, LABEL_COLUMNS);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s on %s (%s), %s", result->label, result->device,
                 result->model, result->dtype);
    add_verdict(doc, result);
    add_tried(doc, result);
    lab_doc_line(doc, "Took", "%s, %s", took.text, result->strategy);
    add_times(doc, result);
    lab_doc_gap(doc);
    for (int i = 0; result->warnings && result->warnings[i]; i++)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%s", result->warnings[i]);
}
