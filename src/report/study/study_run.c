/* study_run.c: one run in full: options, result, ranks, warnings. */
#include "report/study/study_run.h"

#include "base/clock.h"
#include "base/json.h"
#include "store/study/results.h"

#include <math.h>
#include <string.h>
#include <time.h>

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
static void add_short_error(struct lab_str *out, const char *error, struct lab_style style) {
    enum { COLUMNS = 40 };
    struct lab_str text;
    lab_str_init(&text);
    add_visible(&text, error);
    if (lab_str_columns(text.text) > COLUMNS)
        lab_text_fit(text.text, COLUMNS, style.unicode, out);
    else
        lab_str_add(out, text.text);
    lab_str_release(&text);
}

/* Wider than any line: names are there to be copied, so nothing is cut. */
#define UNCUT 100000

enum { ID, DEVICE, NODE, STATE, TOOK, RATE, COLUMN_COUNT };

static void fill_cells(const struct lab_run *run, const struct lab_study_info *study,
                       struct lab_style style, struct lab_str cells[COLUMN_COUNT]) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        lab_str_clear(&cells[i]);
    lab_str_add(&cells[ID], run->id);
    add_places(run, &cells[DEVICE], &cells[NODE]);
    lab_str_add(&cells[STATE], state_word(run, study));
    add_duration(&cells[TOOK], run);
    if (run->state == LAB_RUN_FAILED)
        add_short_error(&cells[RATE], run->error, style);
    add_rate(&cells[RATE], run);
}

void lab_show_runs(const struct lab_study_info *study, struct lab_style style,
                   struct lab_str *out) {
    static const enum lab_align aligns[COLUMN_COUNT] = {
        [NODE] = LAB_ALIGN_RIGHT, [TOOK] = LAB_ALIGN_RIGHT};
    const char *titles[COLUMN_COUNT] = {
        "Run", "Device", "Node", "State", "Took", study->simulated ? "Rate (simulated)" : "Rate"};
    struct lab_str cells[COLUMN_COUNT];
    int widths[COLUMN_COUNT], total = 0;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        lab_str_init(&cells[i]);
        widths[i] = lab_str_columns(titles[i]);
    }
    for (int i = 0; i < study->run_count; i++) {
        fill_cells(&study->runs[i], study, style, cells);
        for (int j = 0; j < COLUMN_COUNT; j++)
            widths[j] = lab_str_columns(cells[j].text) > widths[j] ? lab_str_columns(cells[j].text)
                                                                   : widths[j];
    }
    for (int j = 0; j < COLUMN_COUNT; j++)
        total += 2 + widths[j];
    bool places = total <= style.columns; /* the names say them, too */
    struct lab_table *table = lab_table_open();
    for (int j = 0; j < COLUMN_COUNT; j++)
        if (places || (j != DEVICE && j != NODE))
            lab_table_column(table, titles[j], aligns[j]);
    for (int i = 0; i < study->run_count; i++) {
        fill_cells(&study->runs[i], study, style, cells);
        for (int j = 0; j < COLUMN_COUNT; j++)
            if (places || (j != DEVICE && j != NODE))
                lab_table_cell(table, "%s", cells[j].text);
    }
    style.columns = UNCUT;
    lab_table_write(table, style, out);
    for (int i = 0; i < COLUMN_COUNT; i++)
        lab_str_release(&cells[i]);
    lab_table_close(table);
}

/* --- one of them --- */

#define LABEL_COLUMNS 14

/* "  Options     depth=6 dim=512 …", wrapped behind the label; nothing where there is no text. */
static void add_line(const char *label, const char *text, struct lab_style style,
                     struct lab_str *out) {
    if (!*text)
        return;
    lab_str_printf(out, "  %-*s", LABEL_COLUMNS - 2, label);
    lab_text_wrap(text, LABEL_COLUMNS, LABEL_COLUMNS, style.columns, out);
    lab_str_add(out, "\n");
}

static struct lab_value *parse(const char *json, struct lab_arena *arena) {
    struct lab_value *value;
    bool good = json && lab_json_parse(json, strlen(json), NULL, arena, &value, NULL) == 0;
    return good ? value : lab_value_null(arena);
}

/* A map as the words that would set it. */
static void add_words(const char *label, const char *json, struct lab_style style,
                      struct lab_arena *arena, struct lab_str *out) {
    const struct lab_value *map = parse(json, arena);
    struct lab_str text;
    lab_str_init(&text);
    for (int i = 0; map->type == LAB_VALUE_MAP && i < map->count; i++) {
        lab_str_printf(&text, "%s%s=", i ? " " : "", map->keys[i]);
        lab_value_write(map->items[i], &text);
    }
    add_line(label, text.text, style, out);
    lab_str_release(&text);
}

static bool is_number(const struct lab_value *value) {
    return value->type == LAB_VALUE_INT || value->type == LAB_VALUE_FLOAT;
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
static void add_member(const char *key, const struct lab_value *value, struct lab_style style,
                       struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
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
    if (text.length > begin) {
        lab_str_add(out, "  ");
        lab_text_wrap(text.text, 2, 6, style.columns, out);
        lab_str_add(out, "\n");
    }
    lab_str_release(&text);
}

static void add_result(const struct lab_value *result, struct lab_style style,
                       struct lab_str *out) {
    if (result->type != LAB_VALUE_MAP || result->count == 0)
        return;
    lab_str_add(out, "\n");
    lab_text_heading("Result", style, out);
    for (int i = 0; i < result->count; i++)
        if (!lab_str_equal(result->keys[i], "ranks"))
            add_member(result->keys[i], result->items[i], style, out);
}

/* Each rank with its own rate, where the result has one. */
static void add_ranks(const struct lab_run *run, const struct lab_value *result,
                      struct lab_style style, struct lab_str *out) {
    const struct lab_value *ranks = lab_value_get(result, "ranks");
    struct lab_table *table = lab_table_open();
    struct lab_str text;
    lab_str_init(&text);
    lab_table_column(table, "Rank", LAB_ALIGN_RIGHT);
    lab_table_column(table, "GPU id", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Device", LAB_ALIGN_LEFT);
    lab_table_column(table, "Node", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Rate", LAB_ALIGN_LEFT);
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_value *own =
            ranks && ranks->type == LAB_VALUE_LIST && i < ranks->count ? ranks->items[i] : NULL;
        const struct lab_value *rate = lab_value_get(own, "rate");
        const struct lab_value *unit = lab_value_get(own, "rate_unit");
        lab_str_clear(&text);
        if (rate && is_number(rate)) {
            add_value(&text, rate);
            if (unit && unit->type == LAB_VALUE_STRING)
                lab_str_printf(&text, " %s", unit->string);
        }
        lab_table_cell(table, "%d", i);
        lab_table_cell(table, "%d", run->ranks[i].gpu_id);
        lab_table_cell(table, "%s", run->ranks[i].device);
        if (run->ranks[i].numa_node < 0)
            lab_table_cell(table, "any");
        else
            lab_table_cell(table, "%d", run->ranks[i].numa_node);
        lab_table_cell(table, "%s", text.text);
    }
    lab_str_add(out, "\n");
    lab_table_write(table, style, out);
    lab_str_release(&text);
    lab_table_close(table);
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

static void cell_figure(struct lab_table *table, double value) {
    struct lab_str text;
    lab_str_init(&text);
    add_figure(&text, value);
    lab_table_cell(table, "%s", text.text);
    lab_str_release(&text);
}

static void add_metrics(const struct lab_show_run *shown, struct lab_style style,
                        struct lab_arena *arena, struct lab_str *out) {
    struct metric_row *rows;
    int count = gather_metrics(shown, arena, &rows);
    if (count == 0)
        return;
    struct lab_table *table = lab_table_open();
    struct lab_str name;
    lab_str_init(&name);
    lab_table_column(table, "Metric", LAB_ALIGN_LEFT);
    lab_table_column(table, "Rank", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Values", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Last", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Min", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Max", LAB_ALIGN_RIGHT);
    lab_table_column(table, "Unit", LAB_ALIGN_LEFT);
    for (int i = 0; i < count; i++) {
        lab_str_clear(&name);
        add_visible(&name, rows[i].last->name);
        lab_table_cell(table, "%s", name.text);
        if (rows[i].last->rank < 0)
            lab_table_cell(table, "all");
        else
            lab_table_cell(table, "%d", rows[i].last->rank);
        lab_table_cell(table, "%d", rows[i].count);
        cell_figure(table, rows[i].last->value);
        cell_figure(table, rows[i].low);
        cell_figure(table, rows[i].high);
        lab_table_cell(table, "%s", rows[i].last->unit);
    }
    lab_str_add(out, "\n");
    lab_table_write(table, style, out);
    lab_str_release(&name);
    lab_table_close(table);
}

/* --- the whole --- */

static void add_heading(const struct lab_show_run *shown, struct lab_style style,
                        struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_printf(&text, "%s%s: %s", shown->run->id, shown->study->simulated ? " (simulated)" : "",
                   state_word(shown->run, shown->study));
    if (shown->run->state == LAB_RUN_DONE && !isnan(shown->run->rate)) {
        lab_str_add(&text, ", ");
        add_rate(&text, shown->run);
    }
    lab_text_heading(text.text, style, out);
    lab_str_release(&text);
}

static void add_times(const struct lab_run *run, bool simulated, struct lab_style style,
                      struct lab_str *out) {
    time_t start_s = (time_t)(run->start_wall_ns / LAB_NS_PER_S);
    struct tm local;
    char date[32];
    struct lab_str text;
    lab_str_init(&text);
    if (run->epoch && localtime_r(&start_s, &local) &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local)) {
        lab_str_printf(&text, "%s%s", date, simulated ? " of simulated time" : "");
        if (run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED) {
            lab_str_add(&text, ", took ");
            add_duration(&text, run);
        }
        if (run->attempts > 1)
            lab_str_printf(&text, ", attempt %d", run->attempts);
        if (run->concurrent)
            lab_str_add(&text, ", beside other runs of the study");
    }
    add_line("Started", text.text, style, out);
    lab_str_release(&text);
}

static void add_error(const struct lab_run *run, struct lab_style style, struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    add_visible(&text, run->error);
    add_line("Error", text.text, style, out);
    lab_str_clear(&text);
    lab_report_hint(run->hint, run->options, &text);
    add_line("Hint", text.text, style, out);
    lab_str_release(&text);
}

void lab_show_run(const struct lab_show_run *shown, struct lab_style style, struct lab_arena *arena,
                  struct lab_str *out) {
    const struct lab_run *run = shown->run;
    const struct lab_value *result = parse(run->result, arena);
    add_heading(shown, style, out);
    add_error(run, style, out);
    add_times(run, shown->study->simulated, style, out);
    add_line("Workload", lab_arena_printf(arena, "%s, %s", run->workload, run->label), style, out);
    add_words("Options", run->options, style, arena, out);
    add_words("Test", run->test, style, arena, out);
    add_line("Iterations",
             lab_arena_printf(arena, "%lld, after %lld to warm up", (long long)run->iterations,
                              (long long)run->warmup_iterations),
             style, out);
    /* paths are there to be copied, so they aren't wrapped */
    for (int i = 0; i < 2 && run->epoch; i++)
        lab_str_printf(out, "  %-*s%s/logs/%s.%s\n", LABEL_COLUMNS - 2, i ? "" : "Logs",
                       shown->study->folder, run->id, i ? "stderr" : "stdout");
    add_ranks(run, result, style, out);
    add_result(result, style, out);
    add_metrics(shown, style, arena, out);
}

struct lab_value *lab_show_run_value(const struct lab_show_run *shown, struct lab_arena *arena) {
    struct lab_value *map = lab_results_run(shown->run, arena), *list = lab_value_list(arena);
    struct lab_str hint;
    lab_str_init(&hint);
    bool any = lab_report_hint(shown->run->hint, shown->run->options, &hint);
    lab_value_set_string(arena, map, "hint", any ? hint.text : NULL);
    lab_str_release(&hint);
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
        lab_value_set_int(arena, item, "time_ns", metric->time_ns);
        lab_value_append(arena, list, item);
    }
    lab_value_set(arena, map, "metrics", list);
    lab_value_set_string(arena, map, "folder", shown->study->folder);
    return map;
}
