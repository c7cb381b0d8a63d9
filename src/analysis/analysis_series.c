/* analysis_series.c: points with their intervals, as charts have them. */
#include "analysis/analysis_series.h"

#include <assert.h>

void lab_series_init(struct lab_series *series, size_t room, struct lab_arena *arena) {
    double *memory = lab_arena_alloc(arena, 4 * room + 1, sizeof *memory);
    *series = (struct lab_series){.x = memory,
                                  .y = memory + room,
                                  .low = memory + 2 * room,
                                  .high = memory + 3 * room,
                                  .room = room};
}

void lab_series_add(struct lab_series *series, double x, double y, double low, double high) {
    assert(series->count < series->room);
    size_t at = series->count++;
    series->x[at] = x;
    series->y[at] = y;
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
