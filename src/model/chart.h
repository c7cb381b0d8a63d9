/*
 * model/chart.h: a picture as plain data: what is drawn, not how. Analyses make charts beside their
 * tables; the report layer draws them all in one way (gnuplot's PNG and SVG). Arrays and strings
 * live as long as the arena of whoever made the chart.
 */
#ifndef LAB_MODEL_CHART_H
#define LAB_MODEL_CHART_H

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
    LAB_CHART_STEPS,       /* a reading that holds until the next */
    LAB_CHART_BAND,        /* the area from low to high; y isn't drawn */
    LAB_CHART_BARS,        /* beside those of other series at the same x; whiskers likewise */
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
    int colour; /* of the palette, from 0; -1 = the next one that isn't taken */
    /* of bars: how their figures stand above them where there is room, "%.1f"; NULL = not at all */
    const char *figures;
};

struct lab_chart_shade { /* a stretch of the x axis behind the data: a phase of a run */
    double from, until;
    const char *title; /* "" = none */
    int colour;        /* 0, 1, …: equal ones are shaded alike */
};

/* Values in cells by category: x and y of the panel have names. */
struct lab_chart_heat {
    const double *values;     /* row by row (y), NaN = empty */
    const char *const *texts; /* written into the cells; NULL = none */
    double low, high;         /* of the colours; NaN = as the data ask for */
    bool diverging;           /* around 0: two hues; else one */
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
    const struct lab_chart_panel *panels;
    int panel_count;
    int columns;    /* of panels; 0 = 1. Panels of one column share the x axis where titles agree */
    bool simulated; /* the word is drawn into the picture */
};

#endif
