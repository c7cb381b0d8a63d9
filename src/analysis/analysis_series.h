/*
 * analysis_series.h: points with their intervals as a series of a chart. An analysis gives them one
 * by one, and has a series whose arrays live in the arena.
 */
#ifndef LAB_ANALYSIS_ANALYSIS_SERIES_H
#define LAB_ANALYSIS_ANALYSIS_SERIES_H

#include "base/mem.h"
#include "model/chart.h"

struct lab_series { /* {.arena = …} = empty */
    struct lab_arena *arena;
    double *x, *y, *low, *high;
    size_t count, room;
};

/* Without an interval; all of a series, or none. */
void lab_series_add_point(struct lab_series *series, double x, double y);
/* Ends of NaN: no interval. */
void lab_series_add(struct lab_series *series, double x, double y, double low, double high);
struct lab_chart_series lab_series_chart(const struct lab_series *series, const char *title,
                                         enum lab_chart_mark mark, int colour);

/* A dashed level: a limit, or what others are held against. */
struct lab_chart_series lab_series_level(const char *title, double from, double until, double at,
                                         int colour, struct lab_arena *arena);

#endif
