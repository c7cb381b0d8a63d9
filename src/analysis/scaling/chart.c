/* chart.c: throughput and memory over depth, width and work, with the laws drawn through them. */
#include "analysis/analysis_series.h"
#include "analysis/scaling/scaling.h"

#include <math.h>

#define STEPS      32  /* of a drawn law between two models */
#define MARGIN     1.6 /* of axes beyond what was measured, as a factor */
#define SERIES_MAX 6   /* in a panel */
#define PANELS_MAX (SCALING_KEYS + 1)
#define MILLION    1e6
#define GIGA       1e9

enum colour { MEASURED, LAW, POWER }; /* alike in all panels */

struct sketch { /* a panel that is being made */
    struct lab_arena *arena;
    struct lab_chart_series *series;
    int count;
    double low, high; /* of y; intervals end there */
};

static double *room(struct lab_arena *arena, size_t count) {
    return lab_arena_alloc(arena, count + 1, sizeof(double));
}

/* Of a band: it ends at the panel's edge. */
static double within(double value, const struct sketch *sketch) {
    return isnan(value) ? value : fmin(fmax(value, sketch->low), sketch->high);
}

/* Of a line: it leaves the panel, it doesn't run along its edge. */
static double inside(double value, const struct sketch *sketch) {
    return value >= sketch->low && value <= sketch->high ? value : (double)NAN;
}

static void add_series(struct sketch *sketch, struct lab_chart_series series) {
    if (sketch->count < SERIES_MAX && series.count > 0)
        sketch->series[sketch->count++] = series;
}

static struct sketch open_sketch(const struct scaling_row *const *rows, int count, bool memory,
                                 struct lab_arena *arena) {
    struct sketch sketch = {arena, lab_arena_alloc(arena, SERIES_MAX, sizeof *sketch.series), 0,
                            INFINITY, 0};
    for (int i = 0; i < count; i++) {
        double value = memory ? rows[i]->memory_mib : rows[i]->rate.value;
        if (!(value > 0))
            continue;
        sketch.low = fmin(sketch.low, value / MARGIN);
        sketch.high = fmax(sketch.high, value * MARGIN);
    }
    return sketch;
}

/* --- throughput --- */

typedef double place(const struct scaling_row *row, enum scaling_key key);

static double by_key(const struct scaling_row *row, enum scaling_key key) {
    return scaling_series_value(row, key);
}

static double by_work(const struct scaling_row *row, enum scaling_key key) {
    (void)key;
    return row->flops / row->samples / GIGA;
}

static double between(double from, double to, double share) {
    return from > 0 && to > 0 ? from * pow(to / from, share) : from + share * (to - from);
}

/* The law from the first to the last of the rows; what lies between is taken geometrically. */
static void add_law(struct sketch *sketch, const struct scaling_law *law,
                    const struct scaling_rows *rows, const struct scaling_row *const *members,
                    int count, place *where, enum scaling_key key, bool main) {
    size_t total = (size_t)(count - 1) * STEPS + 1;
    double *x = room(sketch->arena, total), *y = room(sketch->arena, total),
           *low = room(sketch->arena, total), *high = room(sketch->arena, total);
    for (size_t i = 0; i < total; i++) {
        size_t at = i / STEPS < (size_t)count - 1 ? i / STEPS : (size_t)count - 2;
        double share = (double)(i - at * STEPS) / STEPS;
        const struct scaling_row *from = members[at], *to = members[at + 1];
        struct scaling_rate rate =
            scaling_law_rate(law, rows, between(from->flops, to->flops, share),
                             between(from->bytes, to->bytes, share), from->samples);
        x[i] = between(where(from, key), where(to, key), share);
        y[i] = inside(rate.value, sketch);
        low[i] = within(rate.next.low, sketch);
        high[i] = within(rate.next.high, sketch);
    }
    if (main && !isnan(low[0]))
        add_series(sketch, (struct lab_chart_series){.title = "where the next falls, 95 %",
                                                     .mark = LAB_CHART_BAND,
                                                     .x = x,
                                                     .y = y,
                                                     .low = low,
                                                     .high = high,
                                                     .count = total,
                                                     .colour = LAW});
    add_series(sketch, (struct lab_chart_series){
                           .title = scaling_law_words(law->kind),
                           .mark = main ? LAB_CHART_LINE : LAB_CHART_DASHES,
                           .x = x,
                           .y = y,
                           .count = total,
                           .colour = law->kind == SCALING_POWER ? POWER : LAW,
                       });
}

/* The law that predicts best, as the answer has it, and the power law that it is held against. */
static void add_laws(struct sketch *sketch, const struct scaling_laws *laws,
                     const struct scaling_rows *rows, const struct scaling_row *const *members,
                     int count, place *where, enum scaling_key key) {
    const struct scaling_law *best = scaling_laws_best(laws), *power = &laws->items[SCALING_POWER];
    if (best)
        add_law(sketch, best, rows, members, count, where, key, true);
    if (best != power && !power->lacks)
        add_law(sketch, power, rows, members, count, where, key, false);
}

static void add_measured(struct sketch *sketch, const struct scaling_row *const *members, int count,
                         place *where, enum scaling_key key) {
    struct lab_series series;
    lab_series_init(&series, (size_t)count, sketch->arena);
    for (int i = 0; i < count; i++)
        lab_series_add(&series, where(members[i], key), members[i]->rate.value,
                       members[i]->rate.interval.low, members[i]->rate.interval.high);
    add_series(sketch, lab_series_chart(&series, "measured", LAB_CHART_POINTS, MEASURED));
}

static struct lab_chart_axis log_axis(const char *title, double low, double high) {
    return (struct lab_chart_axis){.title = title, .log = true, .low = low, .high = high};
}

static struct lab_chart_panel close_sketch(const struct sketch *sketch, const char *title,
                                           const char *x_title, const char *y_title) {
    return (struct lab_chart_panel){
        .title = title,
        .x = log_axis(x_title, NAN, NAN),
        .y = log_axis(y_title, sketch->low, sketch->high),
        .series = sketch->series,
        .series_count = sketch->count,
    };
}

static struct lab_chart_panel series_panel(const struct scaling_rows *rows,
                                           const struct scaling_laws *laws,
                                           const struct scaling_series *series,
                                           struct lab_arena *arena) {
    static const char *const axes[SCALING_KEYS] = {"Depth [blocks]", "Width [values a token]"};
    struct sketch sketch = open_sketch(series->rows, series->count, false, arena);
    add_laws(&sketch, laws, rows, series->rows, series->count, by_key, series->key);
    add_measured(&sketch, series->rows, series->count, by_key, series->key);
    const struct scaling_row *first = series->rows[0];
    const char *title = series->key == SCALING_DEPTH
                            ? lab_arena_printf(arena, "By depth, width %g", first->dim)
                            : lab_arena_printf(arena, "By width, depth %g", first->depth);
    return close_sketch(&sketch, title, axes[series->key], "Throughput [samples/s]");
}

static struct lab_chart_panel work_panel(const struct scaling_rows *rows,
                                         const struct scaling_laws *laws,
                                         const struct scaling_row *const *all,
                                         struct lab_arena *arena) {
    struct sketch sketch = open_sketch(all, rows->count, false, arena);
    add_laws(&sketch, laws, rows, all, rows->count, by_work, SCALING_DEPTH);
    add_measured(&sketch, all, rows->count, by_work, SCALING_DEPTH);
    return close_sketch(&sketch, "By work", "Work [GFLOP a sample]", "Throughput [samples/s]");
}

/* --- memory --- */

static struct lab_chart_panel memory_panel(const struct scaling_rows *rows,
                                           const struct lab_fit *fit,
                                           const struct scaling_row *const *all,
                                           struct lab_arena *arena) {
    struct sketch sketch = open_sketch(all, rows->count, true, arena);
    size_t total = (size_t)(rows->count - 1) * STEPS + 1;
    double *x = room(arena, total), *y = room(arena, total), *low = room(arena, total),
           *high = room(arena, total), *mx = room(arena, total), *my = room(arena, total);
    double least = INFINITY, most = 0;
    for (int i = 0; i < rows->count; i++) {
        mx[i] = all[i]->parameters / MILLION;
        my[i] = all[i]->memory_mib;
        least = fmin(least, mx[i]);
        most = fmax(most, mx[i]);
    }
    for (size_t i = 0; i < total; i++) {
        x[i] = between(least, most, (double)i / (double)(total - 1));
        struct lab_fit_prediction made = lab_fit_predict(fit, &x[i], 1, SCALING_CONFIDENCE);
        y[i] = inside(made.value, &sketch);
        low[i] = within(made.next.low, &sketch);
        high[i] = within(made.next.high, &sketch);
    }
    add_series(&sketch, (struct lab_chart_series){.title = "where the next falls, 95 %",
                                                  .mark = LAB_CHART_BAND,
                                                  .x = x,
                                                  .y = y,
                                                  .low = low,
                                                  .high = high,
                                                  .count = total,
                                                  .colour = LAW});
    add_series(&sketch, (struct lab_chart_series){.title = "base + bytes × parameters",
                                                  .mark = LAB_CHART_LINE,
                                                  .x = x,
                                                  .y = y,
                                                  .count = total,
                                                  .colour = LAW});
    add_series(&sketch, (struct lab_chart_series){.title = "measured",
                                                  .mark = LAB_CHART_POINTS,
                                                  .x = mx,
                                                  .y = my,
                                                  .count = (size_t)rows->count,
                                                  .colour = MEASURED});
    return close_sketch(&sketch, NULL, "Parameters [million]",
                        rows->device_memory ? "Peak device memory [MiB]"
                                            : "Peak host memory [MiB]");
}

/* --- both --- */

int scaling_charts(const char *title, const char *suffix, const struct scaling_rows *rows,
                   const struct scaling_laws *laws, const struct scaling_series *series,
                   bool simulated, struct lab_arena *arena, struct lab_chart *ret_charts) {
    struct lab_chart_panel *panels = lab_arena_alloc(arena, PANELS_MAX + 1, sizeof *panels);
    const struct scaling_row **all = lab_arena_alloc(arena, (size_t)rows->count + 1, sizeof *all);
    int panel_count = 0, count = 0;
    if (rows->count < 2)
        return 0;
    for (int i = 0; i < rows->count; i++)
        all[i] = &rows->items[i];
    for (int k = 0; k < SCALING_KEYS; k++)
        if (series[k].count >= 2)
            panels[panel_count++] = series_panel(rows, laws, &series[k], arena);
    panels[panel_count++] = work_panel(rows, laws, all, arena);
    ret_charts[count++] = (struct lab_chart){
        .name = lab_arena_printf(arena, "scaling_throughput%s", suffix),
        .title = lab_arena_printf(arena, "Throughput as the model grows: %s", title),
        .caption = "A straight line is a power law; where it bends towards the left, what doesn't "
                   "depend on the model takes the time.",
        .panels = panels,
        .panel_count = panel_count,
        .columns = panel_count,
        .simulated = simulated};
    if (!laws->memory_fitted)
        return count;
    panels[panel_count] = memory_panel(rows, &laws->memory, all, arena);
    ret_charts[count++] = (struct lab_chart){
        .name = lab_arena_printf(arena, "scaling_memory%s", suffix),
        .title = lab_arena_printf(arena, "Peak memory as the model grows: %s", title),
        .caption = "The slope is bytes a parameter, the level at the left what is needed anyway.",
        .panels = &panels[panel_count],
        .panel_count = 1,
        .simulated = simulated};
    return count;
}
