/*
 * plot.h: charts (model/chart.h) as pictures. gnuplot draws them: NAME.gp and NAME.dat stay
 * beside NAME.png and NAME.svg, so that a picture can be changed and drawn again, on a machine that
 * has gnuplot if this one doesn't. `gnuplot NAME.gp`, from the folder, draws both.
 *
 * Colours can be told apart by the colour-blind; series differ by sign or dashes too. A chart of
 * simulated figures says so in the picture.
 */
#ifndef LAB_PLOT_PLOT_H
#define LAB_PLOT_PLOT_H

#include "base/err.h"
#include "base/file/out_dir.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/chart.h"

#include <stdint.h>

/* Okabe and Ito's (2008), blue and orange first; grey in the place of yellow, which white
 * drowns. */
#define LAB_PLOT_COLOURS 8
extern const char *const lab_plot_colours[LAB_PLOT_COLOURS];

#define LAB_PLOT_GET "apt install gnuplot-nox" /* how gnuplot comes to a machine */

struct lab_plot { /* what became of a chart */
    const struct lab_chart *chart;
    const char *name;   /* of its files, without an ending: the chart's, with a number where others
                          have the same */
    bool written;       /* NAME.gp and NAME.dat are there */
    bool drawn;         /* the pictures, too */
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

/*
 * One line about the pictures that are missing, NULL where all are there: "no pictures: gnuplot
 * isn't installed here (…)".
 */
const char *lab_plot_missing(const struct lab_plot *plots, int count, struct lab_arena *arena);

/* The two files' contents. */
void lab_plot_script(const struct lab_chart *chart, const char *name, struct lab_str *out);
void lab_plot_data(const struct lab_chart *chart, struct lab_str *out);

/* Feeds a script to gnuplot, which starts in the folder: the script holds no path that is only true
 * here. `name` is for messages. LAB_ERR_UNSUPPORTED where there is no gnuplot. `timeout_ns` > 0. */
int lab_plot_run(const char *script, const char *name, const char *folder, int64_t timeout_ns,
                 struct lab_err *err);

/*
 * gnuplot's SVG as a part of a page: no header, no background, ids that begin with `prefix`,
 * colours as CSS variables (--ink, --axis, --grid, --c0 …, --shade0 …) so that the page decides on
 * them.
 */
void lab_plot_inline_svg(const char *svg, const char *prefix, struct lab_str *out);

#endif
