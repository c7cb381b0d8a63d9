/* tuning.c: the verdict first, then what it rests on. */
#include "report/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_COLUMNS  19
#define SHOWN_REJECTED 5 /* of those that were ruled out */
#define SHOWN_TIMES    8 /* of the table */

struct lines {
    const struct lab_tuning_result *result;
    struct lab_style style;
    struct lab_str *out;
};

static void add_line(const struct lines *lines, const char *label, const char *text) {
    lab_str_add(lines->out, "  ");
    if (lines->style.colour && *label)
        lab_str_printf(lines->out, "\033[1m%s\033[0m", label);
    else
        lab_str_add(lines->out, label);
    lab_str_add_repeat(lines->out, " ", LABEL_COLUMNS - 2 - lab_str_columns(label));
    lab_text_wrap(text, LABEL_COLUMNS, LABEL_COLUMNS, lines->style.columns, lines->out);
    lab_str_add(lines->out, "\n");
}

static void add_time(struct lab_str *text, const struct lab_trial *trial, double confidence) {
    size_t from = text->length;
    lab_str_add_time(text, trial->median_s);
    if (isfinite(trial->low_s) && isfinite(trial->high_s)) {
        lab_str_add(text, " [");
        lab_str_add_time(text, trial->low_s);
        lab_str_add(text, ", ");
        lab_str_add_time(text, trial->high_s);
        lab_str_printf(text, "] at %.0f %%", 100 * confidence);
    }
    lab_text_keep(text, from);
}

static void add_verdict(const struct lines *lines) {
    const struct lab_tuning_result *result = lines->result;
    const struct lab_trial *best = &result->trials[result->best];
    bool is_default = result->best == 0;
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "%s, ", best->config);
    add_time(&text, best, result->confidence);
    if (result->interrupted) {
        lab_str_add(&text, "; the finals didn't come to their end, so nothing is decided");
        add_line(lines, "Fastest so far", text.text);
    } else if (result->certain) {
        lab_str_add(&text, is_default ? "; it is the default" : "");
        add_line(lines, "Winner", text.text);
    } else {
        lab_str_printf(&text, "; %d configurations can't be told apart, so %s", result->alike_count,
                       is_default ? "the default stays" : "the fastest of them is taken");
        add_line(lines, "No winner", text.text);
    }
    lab_str_clear(&text);
    if (isfinite(result->speedup)) {
        lab_str_printf(&text, "%.2f × as fast as the default", result->speedup);
        if (isfinite(result->speedup_high))
            lab_str_printf(&text, " [%.2f, %.2f] at %.0f %%", result->speedup_low,
                           result->speedup_high, 100 * result->confidence);
        add_line(lines, "", text.text);
    }
    lab_str_release(&text);
}

static void add_tried(const struct lines *lines) {
    const struct lab_tuning_result *result = lines->result;
    struct lab_str text;
    lab_str_init(&text);
    static const struct {
        enum lab_trial_state state;
        const char *words;
    } parts[] = {{LAB_TRIAL_MEASURED, "timed"},
                 {LAB_TRIAL_VERIFIED, "right but not timed"},
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
        lab_str_printf(&text, "; %lld more can't do this shape here (such as %s)",
                       (long long)result->illegal, result->illegal_reason);
    add_line(lines, "Tried", text.text);
    lab_str_clear(&text);
    int shown = 0;
    for (int i = 0; i < result->trial_count; i++) {
        const struct lab_trial *trial = &result->trials[i];
        if (!trial->reason || shown++ >= SHOWN_REJECTED)
            continue;
        lab_str_clear(&text);
        lab_str_printf(&text, "%s: %s", trial->config, trial->reason);
        add_line(lines, shown == 1 ? "Ruled out" : "", text.text);
    }
    if (shown > SHOWN_REJECTED) {
        lab_str_clear(&text);
        lab_str_printf(&text, "and %d more (--json names all)", shown - SHOWN_REJECTED);
        add_line(lines, "", text.text);
    }
    lab_str_release(&text);
}

/* Finalists first, then by time. */
static int by_place(const void *a, const void *b) {
    const struct lab_trial *x = *(const struct lab_trial *const *)a;
    const struct lab_trial *y = *(const struct lab_trial *const *)b;
    if (x->final != y->final)
        return x->final ? -1 : 1;
    return (x->median_s > y->median_s) - (x->median_s < y->median_s);
}

static void cell_time(struct lab_table *table, double seconds) {
    struct lab_str text;
    lab_str_init(&text);
    if (isfinite(seconds))
        lab_str_add_time(&text, seconds);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

static bool is_alike(const struct lab_tuning_result *result, const struct lab_trial *trial) {
    for (int i = 0; i < result->alike_count; i++)
        if (&result->trials[result->alike[i]] == trial)
            return true;
    return false;
}

static void add_times(const struct lines *lines) {
    const struct lab_tuning_result *result = lines->result;
    const struct lab_trial **list =
        lab_mem_alloc((size_t)result->trial_count, sizeof(const struct lab_trial *));
    int count = 0;
    for (int i = 0; i < result->trial_count; i++)
        if (result->trials[i].state == LAB_TRIAL_MEASURED)
            list[count++] = &result->trials[i];
    qsort(list, (size_t)count, sizeof(const struct lab_trial *), by_place);
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "configuration", LAB_ALIGN_WHOLE);
    lab_table_column(table, "median", LAB_ALIGN_RIGHT);
    lab_table_column(table, "from", LAB_ALIGN_RIGHT);
    lab_table_column(table, "to", LAB_ALIGN_RIGHT);
    lab_table_column(table, "", LAB_ALIGN_LEFT);
    for (int i = 0; i < count && i < SHOWN_TIMES; i++) {
        const struct lab_trial *trial = list[i];
        lab_table_cell(table, "%s", trial->config);
        cell_time(table, trial->median_s);
        cell_time(table, trial->low_s);
        cell_time(table, trial->high_s);
        const char *place = !trial->final             ? "narrowed out"
                            : is_alike(result, trial) ? "finalist, alike"
                                                      : "finalist, slower";
        if (trial == &result->trials[result->best] && result->certain)
            place = "winner";
        lab_table_cell(table, "%s%s", place, trial == &result->trials[0] ? ", default" : "");
    }
    lab_str_add(lines->out, "\n");
    lab_table_write(table, lines->style, lines->out);
    lab_table_close(table);
    lab_mem_free(list);
}

void lab_report_tuning(const struct lab_tuning_result *result, struct lab_style style,
                       struct lab_str *out) {
    struct lines lines = {result, style, out};
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "%s on %s (%s), %s", result->label, result->device, result->model,
                   result->dtype);
    lab_text_heading(text.text, style, out);
    add_verdict(&lines);
    add_tried(&lines);
    lab_str_clear(&text);
    lab_str_add_time(&text, result->duration_s);
    lab_str_add(&text, " of a budget of ");
    lab_str_add_time(&text, result->budget_s);
    lab_str_printf(&text, ", %s", result->strategy);
    add_line(&lines, "Took", text.text);
    add_times(&lines);
    lab_str_release(&text);
    if (result->warnings && result->warnings[0])
        lab_str_add(out, "\n");
    for (int i = 0; result->warnings && result->warnings[i]; i++) {
        lab_str_add(out, style.colour ? "  \033[33mWarning:\033[0m " : "  Warning: ");
        lab_text_wrap(result->warnings[i], 11, 4, style.columns, out);
        lab_str_add(out, "\n");
    }
}
