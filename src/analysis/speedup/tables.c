/* tables.c: gangs of devices as tables, claims, notes and charts. */
#include "analysis/analysis_build.h"
#include "analysis/analysis_words.h"
#include "analysis/claims/rows.h"
#include "analysis/speedup/gang.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static const struct lab_field gang_fields[] = {
    LAB_FIELD(struct lab_gang, work, "work", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, title, NULL, "Workload", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE),
    LAB_FIELD(struct lab_gang, model, "model", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, batch, "batch_size", NULL, LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_gang, scaling, "scaling", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_gang, gpus, "gpu_ids", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, which, NULL, "GPUs", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_gang, series, "series", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, bridge, "pcie_bridge", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, one_per_s, "one_per_s", "One device", LAB_UNIT_COUNT, .yields = 1),
    LAB_FIELD(struct lab_gang, many_per_s, "many_per_s", "Several devices", LAB_UNIT_COUNT,
              .yields = 1),
    LAB_FIELD(struct lab_gang, speedup, "speedup", NULL, LAB_UNIT_RATIO, .with_interval = true),
    LAB_FIELD(struct lab_gang, times, NULL, "Speed-up, 95% CI", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_gang, efficiency, "efficiency", "Efficiency", LAB_UNIT_SHARE),
    LAB_FIELD(struct lab_gang, communication, "communication", "All-reduce share", LAB_UNIT_SHARE,
              .yields = 2),
    LAB_FIELD(struct lab_gang, claim, "change", NULL, LAB_UNIT_CHANGE),
    LAB_FIELD(struct lab_gang, grade, "grade", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang, graded, NULL, "Grade", LAB_UNIT_TEXT, .align = LAB_ALIGN_WHOLE,
              .yields = 3),
};

static const struct lab_field pool_fields[] = {
    LAB_FIELD(struct lab_gang_pool, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_gang_pool, cells, "points", "Points", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_gang_pool, times, NULL, "Speed-up, 95% CI", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_gang_pool, claim, "change", NULL, LAB_UNIT_CHANGE),
};

static const struct lab_field rival_fields[] = {
    LAB_FIELD(struct lab_gang_rival, gangs, "gang", "Devices", LAB_UNIT_TEXT,
              .align = LAB_ALIGN_WHOLE),
    LAB_FIELD(struct lab_gang_rival, reference, "reference", "Compared with", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang_rival, claim, "change", "Throughput each", LAB_UNIT_CHANGE),
};

static const struct lab_field model_fields[] = {
    LAB_FIELD(struct lab_gang_model, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang_model, transfer_bound, "transfer_bound", NULL, LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_gang_model, claim, "change", "Throughput each", LAB_UNIT_CHANGE),
};

static const struct lab_field even_fields[] = {
    LAB_FIELD(struct lab_break_even, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct lab_break_even, over, "over", "Over", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_break_even, where, "where", "For", LAB_UNIT_TEXT),
    LAB_FIELD(struct lab_break_even, from, "tested_from", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_break_even, until, "tested_until", NULL, LAB_UNIT_NUMBER),
    LAB_FIELD(struct lab_break_even, words, NULL, "Break-even, 95% CI", LAB_UNIT_FIGURE),
    LAB_FIELD(struct lab_break_even, claim, "break_even", NULL, LAB_UNIT_NUMBER),
};

/* --- a matrix: model and batch, number of devices --- */

#define FIXED 3 /* model, batch, one device */

static struct lab_doc_column *overview_columns(const struct lab_gangs *gangs,
                                               struct lab_arena *arena) {
    struct lab_doc_column *columns =
        lab_arena_alloc(arena, FIXED + (size_t)gangs->pool_count, sizeof *columns);
    bool several = false;
    for (int i = 1; i < gangs->count; i++)
        several |= !lab_str_equal(gangs->items[i].model, gangs->items[0].model);
    columns[0] = (struct lab_doc_column){"model", several ? "Model" : NULL, LAB_UNIT_TEXT};
    columns[1] = (struct lab_doc_column){"batch_size", "Batch", LAB_UNIT_COUNT};
    columns[2] = (struct lab_doc_column){
        "one_per_s",
        lab_arena_printf(arena, "1 %s, %s", gangs->unit, lab_analysis_rate_unit(gangs->study)),
        LAB_UNIT_FIGURE};
    for (int p = 0; p < gangs->pool_count; p++)
        columns[FIXED + p] = (struct lab_doc_column){
            lab_arena_printf(arena, "speedup_%d", gangs->pools[p].devices),
            lab_arena_printf(arena, "%d %ss", gangs->pools[p].devices, gangs->unit),
            LAB_UNIT_FIGURE};
    return columns;
}

/* "776", "2.30k", "1.87M" */
static struct lab_doc_cell rate_cell(double value, struct lab_arena *arena) {
    const char *text = lab_words_si(value, "", arena), *space = strchr(text, ' ');
    struct lab_doc_cell cell = lab_cell_text(
        !(value > 0)    ? NULL
        : value < 999.5 ? lab_arena_printf(arena, "%.3g", value)
        : space         ? lab_arena_printf(arena, "%.*s%s", (int)(space - text), text, space + 1)
                        : text);
    cell.data = value > 0 ? lab_value_float(arena, value) : NULL;
    return cell;
}

/* "3.21×", "1.01×, inconclusive" */
static struct lab_doc_cell overview_cell(const struct lab_gang *gang, struct lab_arena *arena) {
    bool open = gang->claim.verdict == LAB_CLAIM_INCONCLUSIVE && gang->claim.n > 1;
    double value = gang->speedup.value;
    struct lab_doc_cell cell = lab_cell_text(lab_arena_printf(
        arena, "%s%s", lab_speedup_times(value, NAN, NAN, arena), open ? ", inconclusive" : ""));
    cell.data = isnan(value) ? NULL : lab_value_float(arena, value);
    return cell;
}

/* One gang of each size and workload, which differ by model and batch alone. */
static bool has_overview(const struct lab_gangs *gangs) {
    for (int i = 0; i < gangs->count; i++)
        for (int k = 0; k < gangs->count; k++) {
            const struct lab_gang *a = &gangs->items[i], *b = &gangs->items[k];
            bool same = lab_str_equal(a->model, b->model) && a->batch == b->batch;
            if (!(a->batch > 0) || same != lab_str_equal(a->work, b->work) ||
                (i != k && same && a->devices == b->devices))
                return false;
        }
    return gangs->pool_count > 0 && lab_gangs_count(gangs, "independent") == 0;
}

bool lab_gangs_add_overview(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                            struct lab_arena *arena) {
    const struct lab_gang **rows = NULL;
    int count = 0, columns = FIXED + gangs->pool_count;
    if (!has_overview(gangs))
        return false;
    struct lab_doc_table *table = lab_analysis_add_table(
        part, "by_batch", "Speed-up by batch", overview_columns(gangs, arena), columns, arena);
    for (int i = 0; i < gangs->count; i++)
        if (LAB_FIND(gangs->items, i, work, gangs->items[i].work) < 0)
            LAB_ADD(rows, count, arena) = &gangs->items[i];
    LAB_SORT_REFS(rows, count, LAB_BY(*rows, order), LAB_BY(*rows, model), LAB_BY(*rows, batch));
    for (int r = 0; r < count; r++) {
        struct lab_doc_cell *cells = lab_arena_alloc(arena, (size_t)columns, sizeof *cells);
        cells[0] = lab_cell_text(rows[r]->model);
        cells[1] = lab_cell_figure(rows[r]->batch);
        cells[2] = rate_cell(rows[r]->one_per_s, arena);
        for (int p = 0; p < gangs->pool_count; p++)
            cells[FIXED + p] = lab_cell_text(NULL);
        for (int i = 0; i < gangs->count; i++)
            for (int p = 0; p < gangs->pool_count; p++)
                if (gangs->items[i].devices == gangs->pools[p].devices &&
                    lab_str_equal(gangs->items[i].work, rows[r]->work))
                    cells[FIXED + p] = overview_cell(&gangs->items[i], arena);
        lab_analysis_add_row(table, cells, (size_t)columns, arena);
    }
    return true;
}

/* --- the others --- */

static struct lab_doc_table *add_table(struct lab_analysis_result *result,
                                       struct lab_analysis_part *part, const char *key,
                                       const char *title, struct lab_rows rows,
                                       struct lab_arena *arena) {
    struct lab_doc_table *table = lab_rows_add_table(part, key, title, &rows, arena);
    lab_analysis_hide_columns(table, arena);
    lab_rows_add_claims(result, &rows, arena);
    return table;
}

/* "One GPU, samples/s", "Several GPUs, samples/s" */
static void title_rates(struct lab_doc_table *table, const struct lab_gangs *gangs,
                        struct lab_arena *arena) {
    const char *unit = lab_analysis_rate_unit(gangs->study);
    lab_analysis_title_column(table, "One device",
                              lab_arena_printf(arena, "One %s, %s", gangs->unit, unit), arena);
    lab_analysis_title_column(table, "Several devices",
                              lab_arena_printf(arena, "Several %ss, %s", gangs->unit, unit), arena);
}

void lab_gangs_add(struct lab_analysis_result *result, struct lab_analysis_part *part,
                   const struct lab_gangs *gangs, struct lab_arena *arena) {
    int missing = lab_gangs_count(gangs, "not tested");
    add_table(result, part, "pooled", gangs->pool_count > 1 ? "By number of devices" : NULL,
              LAB_ROWS(pool_fields, gangs->pools, gangs->pool_count), arena);
    title_rates(add_table(result, part, "speedups", "Speed-up of several devices over one",
                          LAB_ROWS(gang_fields, gangs->items, gangs->count), arena),
                gangs, arena);
    add_table(result, part, "gangs", "Devices compared with others, as many",
              LAB_ROWS(rival_fields, gangs->rivals, gangs->rival_count), arena);
    if (gangs->model_count > 0) {
        lab_analysis_add_claim(result, &gangs->transfer_bound, arena);
        add_table(result, part, "gang_models",
                  lab_arena_printf(arena, "%s compared with %s, by model",
                                   gangs->rivals[0].gang->names, gangs->rivals[0].reference),
                  LAB_ROWS(model_fields, gangs->models, gangs->model_count), arena);
    }
    if (gangs->advised)
        lab_analysis_add_claim(result, &gangs->advised->claim, arena);
    add_table(result, part, "break_even", "Break-even within the tested range",
              LAB_ROWS(even_fields, gangs->break_even, gangs->break_even_count), arena);
    if (missing > 0 && missing < gangs->count)
        lab_analysis_note(&part->notes, arena, "%d of %d points on several %ss: not run on one.",
                          missing, gangs->count, gangs->unit);
    int above = 0;
    for (int i = 0; i < gangs->count; i++)
        above += lab_gang_is_above_ideal(&gangs->items[i]);
    if (above > 0)
        lab_analysis_note(&part->notes, arena,
                          "Efficiency above 100%%, by more than its interval, at %d of %d points: "
                          "%sa share of the work may fit caches that the whole doesn't.",
                          above, gangs->count,
                          gangs->study->simulated
                              ? ""
                              : "other processes may have slowed the runs on one device, or ");
    if (gangs->count > 0 && gangs->items[0].scaling)
        lab_analysis_note(&part->notes, arena,
                          "scaling=weak: n %ss train with n times the batch of one.", gangs->unit);
}

/* --- charts --- */

#define SERIES_MAX 12
#define LOG_FROM   12 /* times the lowest speed-up that the highest is */

static int count_series(const struct lab_gangs *gangs) {
    int count = 0;
    for (int i = 0; i < gangs->count; i++) {
        count += LAB_FIND(gangs->items, i, series, gangs->items[i].series) < 0;
    }
    return count;
}

static struct lab_chart chart_of(const struct lab_gangs *gangs, const char *name) {
    return (struct lab_chart){.name = name,
                              .title = "Speed-up of several devices over one",
                              .intervals = "95% intervals over runs",
                              .columns = 1,
                              .simulated = gangs->study->simulated};
}

void lab_gangs_add_chart(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                         const char *name, struct lab_arena *arena) {
    if (gangs->pool_count == 0)
        return;
    struct lab_rows rows = LAB_ROWS(gang_fields, gangs->items, gangs->count);
    bool bars = count_series(gangs) <= SERIES_MAX;
    struct lab_chart *chart = lab_analysis_add_chart(result, chart_of(gangs, name), arena);
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, NULL, lab_axis("Workload"), lab_axis_from("Speed-up over one device [×]", 0), arena);
    lab_rows_add_series(panel, &rows, "work", "speedup", bars ? "series" : NULL,
                        bars ? LAB_CHART_BARS : LAB_CHART_POINTS, arena);
    lab_panel_add_series(panel,
                         lab_series_level("One device", -0.5, panel->x.name_count - 0.5, 1,
                                          panel->series_count, arena),
                         arena);
}

/* Whether a batch is one device's or that of all of them. */
static const char *batch_title(const struct lab_gang *gang) {
    return gang->scaling || gang->independent ? "Batch of each device [samples]"
                                              : "Batch, shared by all devices [samples]";
}

/* Whether a linear axis would press some speed-ups to its foot. */
static bool far_apart(const struct lab_gangs *gangs) {
    double low = 1, high = 1;
    for (int i = 0; i < gangs->count; i++) {
        low = fmin(low, gangs->items[i].speedup.value); /* fmin passes NaN over */
        high = fmax(high, gangs->items[i].speedup.value);
    }
    return high > LOG_FROM * low;
}

void lab_gangs_add_batch_chart(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                               const char *name, struct lab_arena *arena) {
    struct lab_chart chart = chart_of(gangs, name);
    for (int i = 0, next; i < gangs->count; i = next) {
        const struct lab_gang *first = &gangs->items[i];
        double low = INFINITY, high = 0;
        for (next = i; next < gangs->count && lab_str_equal(gangs->items[next].model, first->model);
             next++) {
            low = fmin(low, gangs->items[next].batch);
            high = fmax(high, gangs->items[next].batch);
        }
        struct lab_rows rows = LAB_ROWS(gang_fields, first, next - i);
        static const char title[] = "Speed-up over one device [×]";
        struct lab_chart_panel *panel =
            lab_chart_add_panel(&chart, first->model, lab_axis_log(batch_title(first)),
                                far_apart(gangs) ? lab_axis_log(title) : lab_axis(title), arena);
        lab_rows_add_series(panel, &rows, "batch_size", "speedup", "series", LAB_CHART_LINE_POINTS,
                            arena);
        lab_panel_add_series(
            panel, lab_series_level("One device", low, high, 1, panel->series_count, arena), arena);
    }
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    if (gangs->pool_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
