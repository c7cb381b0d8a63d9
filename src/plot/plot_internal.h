/*
 * plot_internal.h: a chart laid out: ranges, ticks, margins and keys, worked out here and not by
 * gnuplot, so that every version of it draws the same and long names are known before there is no
 * room for them. Lengths are pixels of the SVG.
 */
#ifndef LAB_PLOT_PLOT_INTERNAL_H
#define LAB_PLOT_PLOT_INTERNAL_H

#include "plot/plot.h"

#define PLOT_INK    "#222222"
#define PLOT_AXIS   "#555555"
#define PLOT_GRID   "#dddddd"
#define PLOT_BACK   "#ffffff"
#define PLOT_WARN   "#d55e00" /* "simulated" */
#define PLOT_SHADES 4
extern const char *const plot_shades[PLOT_SHADES];

#define PLOT_TIC_BYTES 64
#define PLOT_NAME_FITS                                                                             \
    30 /* columns of a category's name or of an entry of the key: no need to shorten */
#define PLOT_NAME_MOST 38 /* of a category's name; longer ones are cut */
#define PLOT_KEY_MOST  40 /* of an entry of the key */
#define PLOT_TICS_MOST 128
#define PLOT_SLANTED   40 /* degrees */

struct plot_tic {
    double at;
    char text[PLOT_TIC_BYTES];
};

struct plot_axis {
    double low, high;
    struct plot_tic tics[PLOT_TICS_MOST];
    int tic_count;
    int longest; /* columns of the longest text */
    int angle;   /* of the texts: 0, PLOT_SLANTED or 90 degrees */
};

struct plot_panel {
    const struct lab_chart_panel *panel;
    struct plot_axis x, y;
    bool with_x; /* its own ticks' texts and title of x; else those of the one below */
    bool with_key;
    int key_count, key_columns;   /* entries; columns of the longest */
    int left, right, top, bottom; /* edges of the area, from the left and from the top */
    int edge;                     /* where its column begins: the title of y stands there */
    int under;                    /* from its area down to the title of x */
    int bars, boxes, dodged;      /* series of that kind that stand beside each other */
    double step;                  /* between neighbours of them on x */
};

struct plot_layout {
    const struct lab_chart *chart;
    int width, height;
    struct plot_panel *panels;
    int columns, rows;
    int key_panel; /* beside each other: whose key is that of all; -1 = each has its own */
};

/* Ends with lab_mem_free of its panels. */
void plot_layout_make(const struct lab_chart *chart, struct plot_layout *ret);

/* Range and ticks of one axis of panels that share it. `pixels` long; texts lie along it (x) or
 * across (y). */
void plot_axis_make(const struct lab_chart_panel *const *panels, int count, bool of_x, int pixels,
                    struct plot_axis *ret);

/* Colour of a series: its own, or the next that no other of the panel has taken. */
int plot_colour(const struct lab_chart_panel *panel, int series);

/* How many points of a series are kept in a picture: all, or the extremes of as many stretches. */
size_t plot_points_most(const struct lab_chart *chart);

bool plot_has_whiskers(const struct lab_chart_series *series);

/*
 * The chart with the names that stand beside each other in it shortened to what tells them apart:
 * entries of the key, categories of an axis, titles of panels. Cutting alone would leave what they
 * share.
 */
struct lab_chart plot_shorten(const struct lab_chart *chart, struct lab_arena *arena);

/* Text cut in its middle to so many columns. */
void plot_cut(const char *text, int columns, struct lab_str *out);

/* Whether an entry of that title stands in the panel's key: no, if a panel above it has it
 * already. */
bool plot_in_key(const struct plot_layout *layout, const struct plot_panel *made,
                 const char *title);

/* A series of another panel that stands in this one's key; `state` counts them, from 0. NULL = no
 * more. */
const struct lab_chart_series *plot_next_guest(const struct plot_layout *layout,
                                               const struct plot_panel *made, int *state,
                                               const struct lab_chart_panel **ret_panel);

/* The ends of a heat map's colours. */
void plot_heat_range(const struct lab_chart_panel *panel, double *ret_low, double *ret_high);

/* The title of a shade's colour where all that have it agree on it; else NULL. */
const char *plot_shade_title(const struct lab_chart_panel *panel, int colour);

#endif
