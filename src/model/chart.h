/*
 * model/chart.h: a chart as plain data: what is drawn, not how. Analyses make charts next to their
 * tables; src/plot draws them all in one way. Arrays and strings
 * live as long as the arena of its maker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lab_chart_axis {
    const char *title; /* with its unit: "Throughput [samples/s]" */
    bool log;          /* logarithmic */
    double low, high;  /* NaN = as the data ask for */
    /* categories at 0, 1, 2, …: their names; NULL = the axis carries numbers */
    const char *const *names;
    int name_count;
};

enum lab_chart_mark {
    LAB_CHART_LINE,
    LAB_CHART_POINTS,      /* with whiskers where low and high are given */
    LAB_CHART_LINE_POINTS, /* likewise */
    LAB_CHART_BAND,        /* the area from low to high; y isn't drawn */
    LAB_CHART_BARS,        /* next to those of other series at the same x; whiskers likewise */
    LAB_CHART_STACK,       /* on top of those of series before it at the same x */
    LAB_CHART_ROW,         /* readings as an area in a row of its own, from 0; y axis has names */
    LAB_CHART_BOXES,       /* y = median, low and high = quartiles, least and most = whiskers */
    LAB_CHART_DASHES,      /* a line that is a limit or a model, not a measurement */
};

struct lab_chart_series {
    const char *title; /* in the key; NULL = not in it */
    enum lab_chart_mark mark;
    const double *x, *y;        /* NaN = a gap */
    const double *low, *high;   /* NULL = none */
    const double *least, *most; /* of boxes; NULL = none */
    size_t count;
    int colour;  /* of the palette, from 0; -1 = the next one that isn't taken */
    bool valued; /* of bars: values are printed at their ends where there is room; of a stack's
                    last: the sums */
    int on;      /* of points: 1 + the number of the bars that they stand on; 0 = beside others */
};

struct lab_chart_shade { /* a stretch of the x axis behind the data: a phase of a run */
    double from, until;
    const char *title; /* "" = none */
    int colour;        /* 0, 1, …: equal ones are shaded alike */
};

/* Values in cells by category: x and y of the panel have names. Colours diverge from 0; panels of a
 * chart share their scale. */
struct lab_chart_heat {
    const double *values;     /* row by row (y), NaN = empty */
    const double *low, *high; /* NULL = none */
    const bool *open;         /* inconclusive ones are grey and scale no colour; NULL = none is */
    const char *const *texts; /* written into the cells where all of them fit; NULL = none */
    const char *const *tips;  /* under a pointer, behind the cell's names; NULL = the texts */
    const char *title;        /* of the colours, with their unit */
};

struct lab_chart_panel {
    const char *title; /* NULL = none */
    struct lab_chart_axis x, y;
    const struct lab_chart_series *series;
    int series_count;
    const struct lab_chart_shade *shades;
    int shade_count;
    const struct lab_chart_heat *heat; /* NULL = series alone */
};

struct lab_chart {
    const char *name; /* of its files: "numa_sensitivity"; letters, digits, '_' and '-' */
    const char *title;
    const char *caption; /* a sentence that says what is to be seen; NULL = none */
    /* what low and high of its points are: "95% intervals over runs"; NULL = none, or the caption
     * says it. How they are drawn, and whether they can be seen, is known to src/plot alone */
    const char *intervals;
    const struct lab_chart_panel *panels;
    int panel_count;
    int columns;    /* of panels, where the width allows it; 0 = 1. Panels of one column share the x
                       axis where titles agree. Maps choose by themselves */
    bool simulated; /* the word is drawn into the picture */
};
