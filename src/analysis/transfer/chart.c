/* chart.c: bandwidth by size, throughput by batch and pool, the price of a far node by pool. */
#include "analysis/analysis_build.h"
#include "analysis/transfer/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_MAX 8 /* more would be a tangle; those left out are in the table */
#define MILLION    1e6
#define GIGA       1e9

struct look {
    const char *name, *title, *x, *y, *caption;
};

static const struct look looks[TRANSFER_QUESTIONS] = {
    [TRANSFER_H2D] = {"transfer_h2d", "Bandwidth to the device by size of the copy",
                      "Copy to the device [MB]", "Bandwidth while copying [GB/s]",
                      "Small copies seem slow because each waits before it moves anything."},
    [TRANSFER_D2H] = {"transfer_d2h", "Bandwidth to the host by size of the model's output",
                      "Copy to the host [MB]", "Bandwidth while copying [GB/s]",
                      "What comes back is the model's output: its size follows the model's width."},
    [TRANSFER_BATCH] = {"transfer_batch", "Throughput by batch", "Batch [images]",
                        "Throughput [samples/s]",
                        "Larger batches share what each iteration costs."},
    [TRANSFER_POOL] = {"transfer_pool", "Throughput by size of the input pool", "Pool [MiB]",
                       "Throughput [samples/s]",
                       "A pool beyond the caches comes from the node's memory each time."},
};

static struct lab_chart_series draw_set(const struct transfer_set *set,
                                        enum transfer_question question, int colour,
                                        struct lab_arena *arena) {
    bool copies = transfer_is_copies(question);
    double scale = copies ? GIGA : 1;
    struct lab_series series = {.arena = arena};
    for (int i = 0; i < set->count; i++) {
        const struct transfer_row *row = &set->rows[i];
        const struct lab_effect *effect = copies ? &row->bandwidth : &row->rate;
        lab_series_add(&series, copies ? row->x / MILLION : row->x, effect->value / scale,
                       effect->interval.low / scale, effect->interval.high / scale);
    }
    return lab_series_chart(&series, set->group->name, LAB_CHART_LINE_POINTS, colour);
}

static struct lab_chart_series draw_pressure(const struct transfer_pressure *pressure, int colour,
                                             struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int i = 0; i < pressure->count; i++) {
        const struct lab_study_ratio *penalty = &pressure->penalty[i];
        lab_series_add(&series, pressure->pools_mib[i], 100 * (1 - penalty->ratio),
                       100 * (1 - penalty->high), 100 * (1 - penalty->low));
    }
    return lab_series_chart(&series, pressure->group->name, LAB_CHART_LINE_POINTS, colour);
}

/* --- which ones --- */

struct choice { /* a series that could be drawn */
    const struct lab_study_group *group;
    int points;
    int index;
};

/* By model and settings, then by place: neighbours in the key are those that are compared. */
static int by_group(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    int order = strverscmp(x->group->what, y->group->what);
    order = order ? order : strverscmp(x->group->place, y->group->place);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int by_points(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    return x->points != y->points ? (x->points < y->points) - (x->points > y->points)
                                  : by_group(a, b);
}

/* Those with the most sizes, in order. Returns how many. */
static int choose(struct choice *choices, int count) {
    int chosen = count < SERIES_MAX ? count : SERIES_MAX;
    if (count > 1) {
        qsort(choices, (size_t)count, sizeof *choices, by_points);
        qsort(choices, (size_t)chosen, sizeof *choices, by_group);
    }
    return chosen;
}

/* A chart whose only panel has room for `drawn` of `count` series. */
static struct lab_chart_panel *open_chart(struct lab_analysis_result *result,
                                          const struct look *look, const char *suffix,
                                          struct lab_chart_axis y, int drawn, int count,
                                          bool simulated, struct lab_arena *arena) {
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = lab_arena_printf(arena, "%s%s", look->name, suffix),
                           .title = look->title,
                           .caption = look->caption,
                           .simulated = simulated},
        arena);
    if (drawn < count) {
        chart->title = lab_arena_printf(arena, "%s, %d of %d shown", look->title, drawn, count);
        chart->caption = lab_arena_printf(
            arena, "%s Drawn are %d of %d, those with the most sizes; the table has all.",
            look->caption, drawn, count);
    }
    return lab_chart_add_panel(chart, NULL, lab_axis_log(look->x), y, arena);
}

static void add_question(const struct transfer_sets *sets, enum transfer_question question,
                         const char *suffix, bool simulated, struct lab_arena *arena,
                         struct lab_analysis_result *result) {
    struct choice *choices = lab_arena_alloc(arena, (size_t)sets->count, sizeof *choices);
    const struct look *look = &looks[question];
    for (int i = 0; i < sets->count; i++)
        choices[i] = (struct choice){sets->items[i].group, sets->items[i].count, i};
    int drawn = choose(choices, sets->count);
    struct lab_chart_panel *panel =
        open_chart(result, look, suffix,
                   transfer_is_copies(question) ? lab_axis_from(look->y, 0) : lab_axis_log(look->y),
                   drawn, sets->count, simulated, arena);
    for (int i = 0; i < drawn; i++)
        lab_panel_add_series(panel, draw_set(&sets->items[choices[i].index], question, i, arena),
                             arena);
}

static void add_pressures(const struct transfer_pressure *pressures, int count, const char *suffix,
                          bool simulated, struct lab_arena *arena,
                          struct lab_analysis_result *result) {
    static const struct look look = {
        "transfer_pressure", "What a far node costs, by size of the input pool", "Pool [MiB]",
        "Throughput lost [%]",
        "A line that rises is memory pressure: far memory costs more of it."};
    struct choice *choices = lab_arena_alloc(arena, (size_t)count, sizeof *choices);
    for (int i = 0; i < count; i++)
        choices[i] = (struct choice){pressures[i].group, pressures[i].count, i};
    int drawn = choose(choices, count);
    struct lab_chart_panel *panel =
        open_chart(result, &look, suffix, lab_axis(look.y), drawn, count, simulated, arena);
    for (int i = 0; i < drawn; i++)
        lab_panel_add_series(panel, draw_pressure(&pressures[choices[i].index], i, arena), arena);
}

void transfer_add_charts(const struct transfer_sets *sets,
                         const struct transfer_pressure *pressures, int pressure_count,
                         const char *suffix, bool simulated, struct lab_arena *arena,
                         struct lab_analysis_result *result) {
    for (int q = 0; q < TRANSFER_QUESTIONS; q++)
        if (sets[q].count > 0)
            add_question(&sets[q], (enum transfer_question)q, suffix, simulated, arena, result);
    if (pressure_count > 0)
        add_pressures(pressures, pressure_count, suffix, simulated, arena, result);
}
