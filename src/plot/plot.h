/*
 * plot.h: charts (model/chart.h) as pictures. NAME.svg is written here; gnuplot, where it is
 * installed, draws NAME.png (a page wide) and NAME.pdf (a column of a paper, 85 mm) from NAME.gp.
 * NAME.csv has the values.
 *
 * Colours (base/palette.h) can be told apart by the colour-blind; series differ by sign or dashes
 * too. A chart of simulated values says so in the picture.
 */
#pragma once

#include "base/err.h"
#include "base/file/out_dir.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/chart.h"

#include <stdint.h>

#define LAB_PLOT_COLOURS 8
extern const char *const lab_plot_colours[]; /* by enum lab_colour, in light; categories first */

#define LAB_PLOT_GET "apt install gnuplot-nox" /* how gnuplot comes to a machine */

struct lab_plot { /* what became of a chart */
    const struct lab_chart *chart;
    const char *name;   /* of its files, without an ending: the chart's, with a number where others
                          have the same */
    bool written;       /* NAME.svg, NAME.gp and NAME.csv are there */
    bool drawn;         /* NAME.png and NAME.pdf, too */
    bool without;       /* there is no gnuplot here */
    struct lab_err err; /* why it isn't drawn, or written */
};

/*
 * Draws all into the folder, which exists and is private, several at once. None fails the others.
 * What isn't done by `deadline_ns` (CLOCK_MONOTONIC; 0 = none) is given up. `ret_plots` has a place
 * for each; names live in the arena.
 */
void lab_plot_draw(const struct lab_chart *charts, int count, const char *folder,
                   int64_t deadline_ns, struct lab_arena *arena, struct lab_plot *ret_plots);

/* Stages what was written and drawn in `folder`. */
int lab_plot_publish(const struct lab_plot *plots, int count, const char *folder,
                     struct lab_out_dir *into, struct lab_err *err);

/* One line about the pictures that are missing, NULL where all are there: "no PNG and PDF: gnuplot
 * isn't installed here …". */
const char *lab_plot_missing(const struct lab_plot *plots, int count, struct lab_arena *arena);

/* The files' contents. */
void lab_plot_script(const struct lab_chart *chart, const char *name, struct lab_str *out);
void lab_plot_data(const struct lab_chart *chart, struct lab_str *out);

struct lab_plot_view {
    int width;       /* pixels; 0 = 800 */
    int panels_most; /* 0 = all */
    bool untitled;   /* the title is around it */
    bool inlined;    /* a part of a page, whose CSS variables (all of LAB_PALETTE) colour it */
};

/*
 * SVG without ids. What a script of the page finds: <g class="p"> is a panel, whose data-x and
 * data-y are "LOW HIGH FROM UNTIL KIND|BEFORE|AFTER": values, pixels; 0 = linear, 1 = logarithmic,
 * 2 = names; what stands around a value. <g class="s s2" data-t="TITLE"> is a series, or the shades
 * of a title, <g class="k" data-s="2"> its entry of the key, <path class="l"> its line. <title> of
 * a mark has its value, for people.
 */
void lab_plot_svg(const struct lab_chart *chart, struct lab_plot_view view, struct lab_str *out);

/* Below the picture: its caption, and what its intervals are or that they can't be seen: "Bands are
 * 95% intervals over runs." NULL = nothing. */
const char *lab_plot_caption(const struct lab_chart *chart, struct lab_plot_view view,
                             struct lab_arena *arena);

/* One chart as one picture, by the file's ending: .svg, which needs nothing, .pdf, or a PNG.
 * LAB_ERR_UNSUPPORTED where that takes gnuplot, and there is none. */
int lab_plot_save(const struct lab_chart *chart, const char *path, struct lab_err *err);
