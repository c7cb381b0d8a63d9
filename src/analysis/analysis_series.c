/* analysis_series.c: points with their intervals, as charts have them. */
#include "analysis/analysis_series.h"

#include <string.h>

#define FIRST 16 /* points that there is room for at first */

static double *grow(const double *values, const struct lab_series *series) {
    double *larger = lab_arena_alloc(series->arena, series->room, sizeof *larger);
    if (series->count > 0)
        memcpy(larger, values, series->count * sizeof *larger);
    return larger;
}

static size_t add(struct lab_series *series, double x, double y, bool with_interval) {
    if (series->count == series->room) {
        series->room = series->room ? 2 * series->room : FIRST;
        series->x = grow(series->x, series);
        series->y = grow(series->y, series);
        series->low = with_interval ? grow(series->low, series) : NULL;
        series->high = with_interval ? grow(series->high, series) : NULL;
    }
    series->x[series->count] = x;
    series->y[series->count] = y;
    return series->count++;
}

void lab_series_add_point(struct lab_series *series, double x, double y) {
    add(series, x, y, false);
}

void lab_series_add(struct lab_series *series, double x, double y, double low, double high) {
    size_t at = add(series, x, y, true);
    series->low[at] = low;
    series->high[at] = high;
}

struct lab_chart_series lab_series_chart(const struct lab_series *series, const char *title,
                                         enum lab_chart_mark mark, int colour) {
    return (struct lab_chart_series){.title = title,
                                     .mark = mark,
                                     .x = series->x,
                                     .y = series->y,
                                     .low = series->low,
                                     .high = series->high,
                                     .count = series->count,
                                     .colour = colour};
}

struct lab_chart_series lab_series_level(const char *title, double from, double until, double at,
                                         int colour, struct lab_arena *arena) {
    double *x = lab_arena_alloc(arena, 4, sizeof *x), *y = x + 2;
    x[0] = from;
    x[1] = until;
    y[0] = y[1] = at;
    return (struct lab_chart_series){
        .title = title, .mark = LAB_CHART_DASHES, .x = x, .y = y, .count = 2, .colour = colour};
}
