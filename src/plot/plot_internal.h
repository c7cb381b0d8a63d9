/*
 * plot_internal.h: a chart on its way to a picture: shortened (plot_names.c), laid out for a width
 * (plot_layout.c, plot_overlap.c), made into a scene of rectangles, lines, areas, signs and texts
 * (plot_scene.c, plot_series.c, plot_heat.c), which SVG (plot_svg.c) and gnuplot (plot_script.c)
 * paint alike. Lengths are pixels of the page; y grows downwards.
 */
#pragma once

#include "base/palette.h"
#include "plot/plot.h"

#define PLOT_TIC_BYTES 64
#define PLOT_NAME_FITS                                                                             \
    30 /* columns of a category's name or of a key's entry that stay as they are */
#define PLOT_TICS_MOST 128
#define PLOT_SLANTED   40 /* degrees */
#define PLOT_KEYS_MOST 32
#define PLOT_TITLE_GAP 8    /* between titles above an area and the text of its highest tick */
#define PLOT_EDGE      10   /* between a picture's edge and what is in it */
#define PLOT_SEEN      8    /* of a line that lies on another, between its gaps */
#define PLOT_BOLD      1.15 /* times as wide as plain letters */

/* --- formats --- */

struct plot_format {
    int width;
    double text, small, title; /* sizes of letters */
    bool titled;               /* a paper has the title in its caption */
    int columns;               /* of panels, at most; maps have as many as fit */
    int alone, stacked, grid;  /* heights of a panel: the only one, one of a column, of a grid */
    int row;                   /* of a category of y */
};

extern const struct plot_format plot_page;  /* of a report */
extern const struct plot_format plot_paper; /* a column of two: 85 mm */

/* --- texts --- */

/* Pixels, of a wide typeface: what fits by it fits in any that a browser or gnuplot takes. */
double plot_text_width(const char *text, double size);
/* Cut in its middle to so many pixels. */
const char *plot_text_cut(const char *text, double size, double pixels, struct lab_arena *arena);

/* What stands before and after a value of an axis with that title: "Batch size " and "" of "Batch
 * size", "" and " GB/s" of "Bandwidth [GB/s]", "" and "%" of "Change [%]". */
struct plot_unit {
    const char *before, *after;
};
struct plot_unit plot_unit_of(const char *title, struct lab_arena *arena);

/* --- scenes --- */

enum plot_kind {
    PLOT_RECT,  /* x, y, width, height */
    PLOT_LINE,  /* points, where NaN breaks it */
    PLOT_AREA,  /* points: polygons, parted by NaN */
    PLOT_SIGN,  /* centre, size = radius, shape */
    PLOT_TEXT,  /* middle of its line at x, y */
    PLOT_GROUP, /* until PLOT_END: a panel, a series, or its entry of the key */
    PLOT_END,
};

enum plot_group { PLOT_SERIES, PLOT_KEY, PLOT_PANEL };

enum plot_anchor { PLOT_START, PLOT_MIDDLE, PLOT_STOP };

struct plot_mark {
    enum plot_kind kind;
    double x, y, width, height; /* of a line: width of its stroke */
    const double *points;       /* x, y, x, y … */
    int count;                  /* of points */
    enum lab_colour colour;
    double opacity; /* 0 = opaque */
    int dash;       /* 0 = solid */
    int beneath;    /* of a line: how many it lies on, which its gaps show */
    int shape;
    double size;
    enum plot_anchor anchor;
    int angle; /* degrees, counter-clockwise */
    bool bold;
    const char *text; /* a text; a series' name; else what is shown under a pointer, or NULL */
    enum plot_group group;
    int series; /* of a group: the number of its name; -1 = none */
    const struct plot_panel *panel;
};

struct plot_scene {
    int width, height;
    struct plot_mark *marks;
    int count, room;
    struct lab_arena *arena;
};

void plot_scene_make(const struct lab_chart *chart, const struct plot_format *format,
                     struct lab_arena *arena, struct plot_scene *ret);
/* Each returns the mark, which can be told more until the next is added. */
struct plot_mark *plot_scene_add(struct plot_scene *scene, struct plot_mark mark);
struct plot_mark *plot_add_rect(struct plot_scene *scene, double x, double y, double width,
                                double height, enum lab_colour colour);
/* A line or an area; the points stay the caller's. */
struct plot_mark *plot_add_path(struct plot_scene *scene, enum plot_kind kind, const double *points,
                                int count, enum lab_colour colour);
struct plot_mark *plot_add_sign(struct plot_scene *scene, double x, double y, double size,
                                int look);
/* Nothing of "". */
void plot_add_text(struct plot_scene *scene, const char *text, double x, double y, double size,
                   enum plot_anchor anchor, enum lab_colour colour);
/* The corners of a sign, x and y of each; `ret` has room for PLOT_CORNERS pairs. */
#define PLOT_CORNERS 16
int plot_sign_corners(const struct plot_mark *sign, double *ret);

/* --- layout --- */

struct plot_tic {
    double at;
    char text[PLOT_TIC_BYTES];
};

struct plot_axis {
    double low, high;
    bool log, reversed;
    bool zero; /* of a logarithmic one: what is 0 stands at its low end */
    struct plot_tic tics[PLOT_TICS_MOST];
    int tic_count;
    double longest; /* pixels of the longest text */
    int angle;      /* of the texts: 0, PLOT_SLANTED or 90 degrees */
};

struct plot_panel {
    const struct lab_chart_panel *panel;
    struct plot_axis x, y;
    bool x_texts, x_title, y_texts, y_title;
    const char *title[2];
    int title_lines;
    double left, right, top, bottom; /* edges of the area */
    double edge;                     /* where its column's texts begin, and titles */
    double under;                    /* from its area down to the middle of x's title */
    double row_high;                 /* of LAB_CHART_ROW: the value that fills a row */
    int bars, boxes, dodged;         /* series of that kind that stand next to each other */
    double step;                     /* between neighbours of them on x */
    const int *beneath;              /* of each series: lines that lie below it, one on another */
};

struct plot_entry {            /* of the key, which is one for all panels */
    const char *title, *shown; /* as it is; cut to the width */
    int look;                  /* number of colour, sign and dashes */
    enum lab_chart_mark mark;
    bool shade;
    int beneath; /* the most of any panel */
    double x, y; /* where it is */
};

struct plot_layout {
    const struct lab_chart *chart;
    const struct plot_format *format;
    struct lab_arena *arena;
    int width, height;
    const char *title[3];
    int title_lines;
    struct plot_panel *panels;
    int columns, rows;
    struct plot_entry keys[PLOT_KEYS_MOST];
    int key_count;
    double heat_most; /* maps: the value of the strongest colour */
    double heat_x, heat_y;
    double heat_size;            /* of the texts in cells; 0 = they don't fit */
    bool heat_open, heat_bounds; /* some cell is inconclusive; says "≤" */
};

void plot_layout_make(const struct lab_chart *chart, const struct plot_format *format,
                      struct lab_arena *arena, struct plot_layout *ret);

/* Where titles above a panel's area end. */
double plot_titles_end(const struct plot_layout *layout, int panel);

/* Of a layout that is made otherwise. */
void plot_find_overlaps(struct plot_layout *layout);

/* Range and ticks of one axis of panels that share it. `pixels` long; texts of `size` lie along it
 * (x) or across (y). */
void plot_axis_make(const struct lab_chart_panel *const *panels, int count, bool of_x,
                    double pixels, double size, struct plot_axis *ret);
/* 0 to 1 from its low end, beyond for what is outside of it. */
double plot_axis_share(const struct plot_axis *axis, double at);

/* The number of a series' colour: that of its title wherever it is in the chart, its own, or the
 * next that isn't taken. */
int plot_series_look(const struct plot_layout *layout, const struct lab_chart_panel *panel,
                     int series);
bool plot_has_whiskers(const struct lab_chart_series *series);
/* Of shades of that colour, where all agree on it; else NULL. */
const char *plot_shade_title(const struct lab_chart_panel *panel, int colour);

/* Whether a series' intervals are an area, and not whiskers. */
bool plot_has_band(const struct lab_chart_panel *panel, const struct lab_chart_series *series);
/* The chart and the format of a view. */
struct plot_format plot_format_of(struct lab_plot_view view, struct lab_chart *chart);

/* --- series --- */

void plot_add_series(struct plot_scene *scene, const struct plot_layout *layout,
                     const struct plot_panel *made);
/* Of maps (plot_heat.c). */
void plot_add_scale(struct plot_scene *scene, const struct plot_layout *layout);
void plot_add_heat(struct plot_scene *scene, const struct plot_layout *layout,
                   const struct plot_panel *made);
bool plot_has_values(const struct lab_chart_panel *panel);

/*
 * The chart with the names that stand next to each other in it shortened to what tells them apart:
 * entries of the key, categories of an axis, titles of panels. Cutting alone would leave what they
 * share.
 */
struct lab_chart plot_shorten(const struct lab_chart *chart, struct lab_arena *arena);
