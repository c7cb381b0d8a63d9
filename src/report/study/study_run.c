/* study_run.c: one run in full: options, result, ranks, warnings. */
#include "report/study/study_run.h"

#include "base/clock.h"
#include "model/result.h"
#include "report/study/study_internal.h"
#include "store/study/results.h"

#include <math.h>
#include <string.h>

/* --- words --- */

/* Three digits, or all of a larger number. */
static void add_figure(struct lab_str *out, double value) {
    if (isfinite(value))
        lab_str_printf(out, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
    else
        lab_str_add_double(out, value);
}

/* "310 samples/s [305, 314]"; nothing where there is no rate. */
static void add_rate(struct lab_str *out, const struct lab_run *run) {
    if (run->state != LAB_RUN_DONE || isnan(run->rate))
        return;
    add_figure(out, run->rate);
    lab_str_printf(out, " %s", run->rate_unit);
    if (isnan(run->rate_low) || isnan(run->rate_high))
        return;
    lab_str_add(out, " [");
    add_figure(out, run->rate_low);
    lab_str_add(out, ", ");
    add_figure(out, run->rate_high);
    lab_str_add(out, "]");
}

static void add_duration(struct lab_str *out, const struct lab_run *run) {
    if (run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED)
        lab_str_add_time(out, (double)(run->end_ns - run->start_ns) / (double)LAB_NS_PER_S);
}

/* What a worker or a program of the user's said may hold anything; here it stays on its line. */
static void add_visible(struct lab_str *out, const char *text) {
    for (; *text; text++)
        lab_str_add_bytes(out, (unsigned char)*text < ' ' || *text == 0x7f ? " " : text, 1);
}

static const char *state_word(const struct lab_run *run, const struct lab_study_info *study) {
    if (run->state == LAB_RUN_RUNNING && !study->running)
        return "interrupted";
    if (run->state == LAB_RUN_DONE && !run->valid)
        return "done, invalid";
    return lab_run_state_name(run->state);
}

static void add_places(const struct lab_run *run, struct lab_str *devices, struct lab_str *nodes) {
    for (int i = 0; i < run->rank_count; i++) {
        lab_str_printf(devices, "%s%s", i ? "+" : "", run->ranks[i].device);
        if (run->ranks[i].numa_node < 0)
            lab_str_printf(nodes, "%sany", i ? "+" : "");
        else
            lab_str_printf(nodes, "%s%d", i ? "+" : "", run->ranks[i].numa_node);
    }
}

/* --- all of them --- */

/* An error is told in full with its run; here it must not push the figures apart. */
static void add_short_error(struct lab_str *out, const char *error, bool unicode) {
    enum { COLUMNS = 40 };
    LAB_AUTO(str, text);
    add_visible(&text, error);
    if (lab_str_columns(text.text) > COLUMNS)
        lab_text_fit(text.text, COLUMNS, unicode, out);
    else
        lab_str_add(out, text.text);
}

/* Names are there to be copied, so nothing is cut; they say the places, too. */
void lab_show_add_runs(struct lab_doc *doc, const struct lab_study_info *study, bool unicode) {
    const struct lab_doc_column columns[] = {
        {NULL, "Run"},
        {NULL, "Device", .yields = 1},
        {NULL, "Node", LAB_UNIT_FIGURE, .yields = 1},
        {NULL, "State"},
        {NULL, "Took", LAB_UNIT_FIGURE},
        {NULL, study->simulated ? "Rate (simulated)" : "Rate"}};
    lab_doc_rows(doc, NULL, NULL, lab_arena_copy(lab_doc_arena(doc), columns, 6, sizeof *columns),
                 6)
        ->uncut = true;
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_run *run = &study->runs[i];
        LAB_AUTO(str, devices);
        LAB_AUTO(str, nodes);
        LAB_AUTO(str, took);
        LAB_AUTO(str, rate);
        add_places(run, &devices, &nodes);
        add_duration(&took, run);
        if (run->state == LAB_RUN_FAILED)
            add_short_error(&rate, run->error, unicode);
        add_rate(&rate, run);
        lab_doc_cell(doc, "%s", run->id);
        lab_doc_cell(doc, "%s", devices.text);
        lab_doc_cell(doc, "%s", nodes.text);
        lab_doc_cell(doc, "%s", state_word(run, study));
        lab_doc_cell(doc, "%s", took.text);
        lab_doc_cell(doc, "%s", rate.text);
    }
}

/* --- one of them --- */

#define LABEL_COLUMNS 14

/* A map as the words that would set it. */
static void add_words(struct lab_doc *doc, const char *label, const char *json) {
    const struct lab_value *map = lab_result_json(json, lab_doc_arena(doc));
    LAB_AUTO(str, text);
    for (int i = 0; map->type == LAB_VALUE_MAP && i < map->count; i++) {
        lab_str_printf(&text, "%s%s=", i ? " " : "", map->keys[i]);
        lab_value_write(map->items[i], &text);
    }
    lab_doc_line(doc, label, "%s", text.text);
}

static void add_value(struct lab_str *out, const struct lab_value *value) {
    if (value->type == LAB_VALUE_INT)
        lab_str_printf(out, "%lld", (long long)value->integer);
    else if (value->type == LAB_VALUE_FLOAT)
        add_figure(out, value->number);
    else if (value->type == LAB_VALUE_STRING)
        add_visible(out, value->string);
    else
        lab_value_write(value, out);
}

/* A result's member in one line: a figure; a map's figures ("mean 1.2, p95 1.4"); a sentence. */
static void add_member(struct lab_doc *doc, const char *key, const struct lab_value *value) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s: ", key);
    size_t begin = text.length;
    if (value->type == LAB_VALUE_MAP)
        for (int i = 0; i < value->count; i++) {
            if (value->items[i]->type == LAB_VALUE_NULL)
                continue;
            lab_str_printf(&text, "%s%s ", text.length > begin ? ", " : "", value->keys[i]);
            add_value(&text, value->items[i]);
        }
    else if (value->type == LAB_VALUE_LIST)
        for (int i = 0; i < value->count; i++) {
            lab_str_add(&text, i ? "; " : "");
            add_value(&text, value->items[i]);
        }
    else if (value->type != LAB_VALUE_NULL)
        add_value(&text, value);
    if (text.length > begin)
        lab_doc_text(doc, LAB_DOC_CHOICE, "%s", text.text);
}

static void add_result(struct lab_doc *doc, const struct lab_run *run) {
    if (run->state != LAB_RUN_DONE || !run->result)
        return;
    const struct lab_value *map =
        lab_result_value(run->result, LAB_RESULT_RUN_VIEW, NULL, lab_doc_arena(doc));
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_TITLE, "Result");
    for (int i = 0; i < map->count; i++)
        add_member(doc, map->keys[i], map->items[i]);
}

/* Each rank with its own rate, where the result has one. */
static void add_ranks(struct lab_doc *doc, const struct lab_run *run) {
    static const struct lab_doc_column columns[] = {{NULL, "Rank", LAB_UNIT_COUNT},
                                                    {NULL, "GPU id", LAB_UNIT_COUNT},
                                                    {NULL, "Device"},
                                                    {NULL, "Node", LAB_UNIT_FIGURE},
                                                    {NULL, "Rate"}};
    const struct lab_result *result = lab_run_result(run);
    LAB_AUTO(str, text);
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, 5);
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_result *own =
            i < result->rank_count ? &result->ranks[i] : &lab_result_none;
        lab_str_clear(&text);
        if (!isnan(own->rate)) {
            add_figure(&text, own->rate);
            lab_str_printf(&text, " %s", own->rate_unit ? own->rate_unit : "");
        }
        lab_doc_figure(doc, i);
        lab_doc_figure(doc, run->ranks[i].gpu_id);
        lab_doc_cell(doc, "%s", run->ranks[i].device);
        if (run->ranks[i].numa_node < 0)
            lab_doc_cell(doc, "any");
        else
            lab_doc_cell(doc, "%d", run->ranks[i].numa_node);
        lab_doc_cell(doc, "%s", text.text);
    }
}

/* --- metrics: a training program writes thousands, so a row for each name and rank --- */

struct metric_row {
    const struct lab_store_metric *last;
    double low, high;
    int count;
};

static int gather_metrics(const struct lab_show_run *shown, struct lab_arena *arena,
                          struct metric_row **ret_rows) {
    struct metric_row *rows = lab_arena_alloc(arena, (size_t)shown->metric_count + 1, sizeof *rows);
    int count = 0;
    for (int i = 0; i < shown->metric_count; i++) {
        const struct lab_store_metric *metric = &shown->metrics[i];
        int at = 0;
        while (at < count && (rows[at].last->rank != metric->rank ||
                              !lab_str_equal(rows[at].last->name, metric->name)))
            at++;
        if (at == count)
            rows[count++] = (struct metric_row){.low = NAN, .high = NAN};
        rows[at].last = metric;
        rows[at].count++;
        rows[at].low = fmin(rows[at].low, metric->value);
        rows[at].high = fmax(rows[at].high, metric->value);
    }
    *ret_rows = rows;
    return count;
}

static void add_figure_cell(struct lab_doc *doc, double value) {
    LAB_AUTO(str, text);
    add_figure(&text, value);
    lab_doc_cell(doc, "%s", text.text);
}

static void add_metrics(struct lab_doc *doc, const struct lab_show_run *shown) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Metric"},
        {NULL, "Rank", LAB_UNIT_FIGURE},
        {NULL, "Values", LAB_UNIT_COUNT},
        {NULL, "Last", LAB_UNIT_FIGURE},
        {NULL, "Min", LAB_UNIT_FIGURE},
        {NULL, "Max", LAB_UNIT_FIGURE},
        {NULL, "Unit"},
    };
    struct metric_row *rows;
    int count = gather_metrics(shown, lab_doc_arena(doc), &rows);
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        LAB_AUTO(str, name);
        add_visible(&name, rows[i].last->name);
        lab_doc_cell(doc, "%s", name.text);
        lab_doc_cell(doc, rows[i].last->rank < 0 ? "all" : "%d", rows[i].last->rank);
        lab_doc_figure(doc, rows[i].count);
        add_figure_cell(doc, rows[i].last->value);
        add_figure_cell(doc, rows[i].low);
        add_figure_cell(doc, rows[i].high);
        lab_doc_cell(doc, "%s", rows[i].last->unit);
    }
}

/* --- the whole --- */

static void add_heading(struct lab_doc *doc, const struct lab_show_run *shown) {
    LAB_AUTO(str, rate);
    add_rate(&rate, shown->run);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s%s: %s%s%s", shown->run->id,
                 shown->study->simulated ? " (simulated)" : "",
                 state_word(shown->run, shown->study), rate.length ? ", " : "", rate.text);
}

static void add_times(struct lab_doc *doc, const struct lab_run *run, bool simulated) {
    LAB_AUTO(str, text);
    if (!run->epoch)
        return;
    lab_str_add_clock(&text, run->start_wall_ns, LAB_STR_DATE);
    lab_str_add(&text, simulated ? " of simulated time" : "");
    if (run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED) {
        lab_str_add(&text, ", took ");
        add_duration(&text, run);
    }
    if (run->attempts > 1)
        lab_str_printf(&text, ", attempt %d", run->attempts);
    if (run->concurrent)
        lab_str_add(&text, ", with other runs of the study at the same time");
    lab_doc_line(doc, "Started", "%s", text.text);
}

static struct lab_value *run_value(const struct lab_show_run *shown, struct lab_arena *arena);

void lab_show_add_run(struct lab_doc *doc, const struct lab_show_run *shown) {
    const struct lab_run *run = shown->run;
    LAB_AUTO(str, error);
    LAB_AUTO(str, hint);
    add_visible(&error, run->error);
    lab_report_hint(run->hint, run->options, run->error, &hint);
    lab_doc_data(doc, NULL, run_value(shown, lab_doc_arena(doc)));
    lab_doc_set_labels(doc, LABEL_COLUMNS);
    add_heading(doc, shown);
    lab_doc_line(doc, "Error", "%s", error.text);
    lab_doc_line(doc, "Hint", "%s", hint.text);
    add_times(doc, run, shown->study->simulated);
    lab_doc_line(doc, "Workload", "%s, %s", run->workload, run->label);
    add_words(doc, "Options", run->options);
    add_words(doc, "Test", run->test);
    lab_doc_line(doc, "Iterations", "%lld, after %lld to warm up", (long long)run->iterations,
                 (long long)run->warmup_iterations);
    /* paths are there to be copied, so they aren't wrapped */
    for (int i = 0; i < 2 * run->rank_count && run->epoch; i++) {
        const char *path = study_log_path(shown->study, run, i / 2, i % 2 ? "stderr" : "stdout",
                                          lab_doc_arena(doc));
        if (path)
            lab_doc_line_whole(doc, i ? "" : "Logs", "%s", path);
    }
    if (run->state == LAB_RUN_FAILED)
        study_add_log_end(doc, shown->study, run);
    add_ranks(doc, run);
    add_result(doc, run);
    add_metrics(doc, shown);
}

static struct lab_value *run_value(const struct lab_show_run *shown, struct lab_arena *arena) {
    struct lab_value *map = lab_results_run(shown->run, arena), *list = lab_value_list(arena);
    LAB_AUTO(str, hint);
    bool any = lab_report_hint(shown->run->hint, shown->run->options, shown->run->error, &hint);
    lab_value_set_string(arena, map, "hint", any ? hint.text : NULL);
    for (int i = 0; i < shown->metric_count; i++) {
        const struct lab_store_metric *metric = &shown->metrics[i];
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "name", metric->name);
        lab_value_set_string(arena, item, "unit", metric->unit);
        if (metric->rank >= 0)
            lab_value_set_int(arena, item, "rank", metric->rank);
        else
            lab_value_set_string(arena, item, "rank", NULL);
        lab_value_set_float(arena, item, "value", metric->value);
        if (metric->time_ns >= 0)
            lab_value_set_int(arena, item, "time_ns", metric->time_ns);
        lab_value_set_float(arena, item, "step", metric->step);
        lab_value_append(arena, list, item);
    }
    lab_value_set(arena, map, "metrics", list);
    lab_value_set_string(arena, map, "folder", shown->study->folder);
    return map;
}
