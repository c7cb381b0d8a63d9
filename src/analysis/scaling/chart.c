/* chart.c: throughput and memory over depth, width and work, with the laws drawn through them. */
#include "analysis/analysis_build.h"
#include "analysis/scaling/scaling.h"

#include <math.h>

#define STEPS   32  /* of a drawn law between two models */
#define MARGIN  1.6 /* of axes beyond what was measured, as a factor */
#define MILLION 1e6
#define GIGA    1e9

enum colour { MEASURED, LAW, POWER }; /* alike in all panels */

struct sketch { /* a panel that is being made */
    struct lab_arena *arena;
    struct lab_chart_panel *panel;
    double low, high; /* of y; intervals end there */
};

/* Of a band: it ends at the panel's edge. */
static double within(double value, const struct sketch *sketch) {
    return isnan(value) ? value : fmin(fmax(value, sketch->low), sketch->high);
}

/* Of a line: it leaves the panel, it doesn't run along its edge. */
static double inside(double value, const struct sketch *sketch) {
    return value >= sketch->low && value <= sketch->high ? value : (double)NAN;
}

static struct sketch open_sketch(struct lab_chart *chart, const struct scaling_row *const *rows,
                                 int count, bool memory, const char *title, const char *x_title,
                                 const char *y_title, struct lab_arena *arena) {
    struct sketch sketch = {arena, NULL, INFINITY, 0};
    for (int i = 0; i < count; i++) {
        double value = memory ? rows[i]->memory_mib : rows[i]->rate.value;
        if (!(value > 0))
            continue;
        sketch.low = fmin(sketch.low, value / MARGIN);
        sketch.high = fmax(sketch.high, value * MARGIN);
    }
    struct lab_chart_axis y = {
        .title = y_title, .log = true, .low = sketch.low, .high = sketch.high};
    sketch.panel = lab_chart_add_panel(chart, title, lab_axis_log(x_title), y, arena);
    return sketch;
}

/* A law as a line, with the band of its interval behind it. */
static void add_curve(struct sketch *sketch, const struct lab_series *series, const char *title,
                      bool band, enum lab_chart_mark mark, enum colour colour) {
    if (band)
        lab_panel_add_series(
            sketch->panel,
            lab_series_chart(series, "where the next falls, 95 %", LAB_CHART_BAND, LAW),
            sketch->arena);
    struct lab_chart_series line = lab_series_chart(series, title, mark, (int)colour);
    line.low = line.high = NULL;
    lab_panel_add_series(sketch->panel, line, sketch->arena);
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
    struct lab_series series = {.arena = sketch->arena};
    for (size_t i = 0; i < total; i++) {
        size_t at = i / STEPS < (size_t)count - 1 ? i / STEPS : (size_t)count - 2;
        double share = (double)(i - at * STEPS) / STEPS;
        const struct scaling_row *from = members[at], *to = members[at + 1];
        struct scaling_rate rate =
            scaling_law_rate(law, rows, between(from->flops, to->flops, share),
                             between(from->bytes, to->bytes, share), from->samples);
        lab_series_add(&series, between(where(from, key), where(to, key), share),
                       inside(rate.value, sketch), within(rate.next.low, sketch),
                       within(rate.next.high, sketch));
    }
    add_curve(sketch, &series, scaling_law_words(law->kind), main && !isnan(series.low[0]),
              main ? LAB_CHART_LINE : LAB_CHART_DASHES, law->kind == SCALING_POWER ? POWER : LAW);
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
    struct lab_series series = {.arena = sketch->arena};
    for (int i = 0; i < count; i++)
        lab_series_add(&series, where(members[i], key), members[i]->rate.value,
                       members[i]->rate.interval.low, members[i]->rate.interval.high);
    lab_panel_add_series(sketch->panel,
                         lab_series_chart(&series, "measured", LAB_CHART_POINTS, MEASURED),
                         sketch->arena);
}

static void add_series_panel(struct lab_chart *chart, const struct scaling_part *part,
                             const struct scaling_series *series) {
    static const char *const axes[SCALING_KEYS] = {"Depth [blocks]", "Width [values a token]"};
    const struct scaling_row *first = series->rows[0];
    const char *title = series->key == SCALING_DEPTH
                            ? lab_arena_printf(part->arena, "By depth, width %g", first->dim)
                            : lab_arena_printf(part->arena, "By width, depth %g", first->depth);
    struct sketch sketch = open_sketch(chart, series->rows, series->count, false, title,
                                       axes[series->key], "Throughput [samples/s]", part->arena);
    add_laws(&sketch, &part->laws, &part->rows, series->rows, series->count, by_key, series->key);
    add_measured(&sketch, series->rows, series->count, by_key, series->key);
}

static void add_work_panel(struct lab_chart *chart, const struct scaling_part *part,
                           const struct scaling_row *const *all) {
    struct sketch sketch =
        open_sketch(chart, all, part->rows.count, false, "By work", "Work [GFLOP a sample]",
                    "Throughput [samples/s]", part->arena);
    add_laws(&sketch, &part->laws, &part->rows, all, part->rows.count, by_work, SCALING_DEPTH);
    add_measured(&sketch, all, part->rows.count, by_work, SCALING_DEPTH);
}

/* --- memory --- */

static void add_memory_panel(struct lab_chart *chart, const struct scaling_part *part,
                             const struct scaling_row *const *all) {
    int count = part->rows.count, steps = (count - 1) * STEPS;
    struct sketch sketch = open_sketch(chart, all, count, true, NULL, "Parameters [million]",
                                       part->rows.device_memory ? "Peak device memory [MiB]"
                                                                : "Peak host memory [MiB]",
                                       part->arena);
    struct lab_series law = {.arena = part->arena}, measured = {.arena = part->arena};
    double least = INFINITY, most = 0;
    for (int i = 0; i < count; i++) {
        double parameters = all[i]->parameters / MILLION;
        lab_series_add_point(&measured, parameters, all[i]->memory_mib);
        least = fmin(least, parameters);
        most = fmax(most, parameters);
    }
    for (int i = 0; i <= steps; i++) {
        double x = between(least, most, (double)i / (double)steps);
        struct lab_fit_prediction made =
            lab_fit_predict(&part->laws.memory, &x, 1, SCALING_CONFIDENCE);
        lab_series_add(&law, x, inside(made.value, &sketch), within(made.next.low, &sketch),
                       within(made.next.high, &sketch));
    }
    add_curve(&sketch, &law, "base + bytes × parameters", true, LAB_CHART_LINE, LAW);
    lab_panel_add_series(sketch.panel,
                         lab_series_chart(&measured, "measured", LAB_CHART_POINTS, MEASURED),
                         part->arena);
}

/* --- both --- */

void scaling_add_charts(struct lab_analysis_result *result, const char *title, const char *suffix,
                        const struct scaling_part *part, bool simulated) {
    struct lab_arena *arena = part->arena;
    int count = part->rows.count;
    const struct scaling_row **all = lab_arena_alloc(arena, (size_t)count + 1, sizeof *all);
    if (count < 2)
        return;
    for (int i = 0; i < count; i++)
        all[i] = &part->rows.items[i];
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = lab_arena_printf(arena, "scaling_throughput%s", suffix),
            .title = lab_arena_printf(arena, "Throughput as the model grows: %s", title),
            .caption = "A straight line is a power law; where it bends towards the left, what "
                       "doesn't depend on the model takes the time.",
            .simulated = simulated},
        arena);
    for (int k = 0; k < SCALING_KEYS; k++)
        if (part->series[k].count >= 2)
            add_series_panel(chart, part, &part->series[k]);
    add_work_panel(chart, part, all);
    chart->columns = chart->panel_count;
    if (!part->laws.memory_fitted)
        return;
    chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = lab_arena_printf(arena, "scaling_memory%s", suffix),
            .title = lab_arena_printf(arena, "Peak memory as the model grows: %s", title),
            .caption =
                "The slope is bytes a parameter, the level at the left what is needed anyway.",
            .simulated = simulated},
        arena);
    add_memory_panel(chart, part, all);
}
