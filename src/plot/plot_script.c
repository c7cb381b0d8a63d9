/*
 * plot_script.c: scenes as gnuplot's script, which paints marks at pixels: the PNG as wide as a
 * page, the PDF as a column of a paper, 85 mm.
 */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

#define PNG_SCALE  2
#define PNG_POINTS 0.75 /* of a pixel: 96 to the inch */
#define PAPER_CM   8.5
#define CM_POINTS  28.346 /* of a centimetre */

const char *const lab_plot_colours[] = {
#define X(name, css, light, dark) light,
    LAB_PALETTE(X)
#undef X
};

/* In single quotes nothing but the quote itself means anything. */
static void add_quoted(struct lab_str *out, const char *text) {
    bool printable;
    lab_str_add(out, "'");
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = lab_str_next(text, left, &printable);
        if (!printable)
            lab_str_add(out, " ");
        else if (*text == '\'')
            lab_str_add(out, "''");
        else
            lab_str_add_bytes(out, text, length);
    }
    lab_str_add(out, "'");
}

/* --- figures --- */

static bool is_drawn(const struct plot_mark *mark) {
    return mark->kind <= PLOT_SIGN;
}

static bool is_filled(const struct plot_mark *mark) {
    return mark->kind != PLOT_LINE;
}

static bool alike(const struct plot_mark *a, const struct plot_mark *b) {
    return is_filled(a) == is_filled(b) && a->colour == b->colour && a->opacity == b->opacity &&
           (is_filled(a) ||
            (a->width == b->width && a->dash == b->dash && a->beneath == b->beneath));
}

static void add_points(struct lab_str *out, const struct plot_mark *mark) {
    double corners[2 * PLOT_CORNERS] = {mark->x,
                                        mark->y,
                                        mark->x + mark->width,
                                        mark->y,
                                        mark->x + mark->width,
                                        mark->y + mark->height,
                                        mark->x,
                                        mark->y + mark->height};
    const double *points =
        mark->kind <= PLOT_AREA && mark->kind != PLOT_RECT ? mark->points : corners;
    int count = mark->kind == PLOT_RECT   ? 4
                : mark->kind == PLOT_SIGN ? plot_sign_corners(mark, corners)
                                          : mark->count;
    bool broken = false, any = false; /* an empty line between points, never two */
    for (ptrdiff_t i = 0; i < count; i++) {
        bool gap = isnan(points[2 * i]) || isnan(points[2 * i + 1]);
        if (!gap)
            lab_str_printf(out, "%s%.1f %.1f\n", broken && any ? "\n" : "", points[2 * i],
                           points[2 * i + 1]);
        any |= !gap;
        broken = gap;
    }
}

/* Marks that follow each other and look alike are one block, parted by empty lines. */
static void add_blocks(struct lab_str *out, const struct plot_scene *scene) {
    const struct plot_mark *last = NULL;
    lab_str_add(out, "$marks << END\n");
    for (int i = 0; i < scene->count; i++) {
        const struct plot_mark *mark = &scene->marks[i];
        if (!is_drawn(mark))
            continue;
        if (last)
            lab_str_add(out, alike(last, mark) ? "\n" : "\n\n");
        add_points(out, mark);
        last = mark;
    }
    lab_str_add(out, "END\n");
}

static const char *dash_type(const struct plot_mark *mark, char *text, size_t size) {
    if (!mark->beneath)
        return mark->dash ? "(8,5)" : "1";
    snprintf(text, size, "(%d,%d)", PLOT_SEEN, PLOT_SEEN * mark->beneath);
    return text;
}

static void add_plot(struct lab_str *out, const struct plot_scene *scene, double scale) {
    const struct plot_mark *last = NULL;
    int index = 0;
    char dashes[32];
    for (int i = 0; i < scene->count; i++) {
        const struct plot_mark *mark = &scene->marks[i];
        if (!is_drawn(mark) || (last && alike(last, mark)))
            continue;
        int clear = mark->opacity > 0 ? (int)lround(255 * (1 - mark->opacity)) : 0;
        lab_str_printf(out, "%s$marks index %d with ", last ? ", \\\n    " : "plot ", index++);
        if (is_filled(mark))
            lab_str_printf(out,
                           "filledcurves closed fillstyle solid noborder fillcolor rgb "
                           "'#%02x%s'",
                           clear, lab_plot_colours[mark->colour] + 1);
        else
            lab_str_printf(out, "lines linewidth %.2f dashtype %s linecolor rgb '%s'",
                           mark->width * scale, dash_type(mark, dashes, sizeof dashes),
                           lab_plot_colours[mark->colour]);
        last = mark;
    }
    lab_str_add(out, last ? "\n" : "plot NaN\n");
}

static void add_labels(struct lab_str *out, const struct plot_scene *scene, double points) {
    static const char *const anchors[] = {"left", "center", "right"};
    for (int i = 0; i < scene->count; i++) {
        const struct plot_mark *mark = &scene->marks[i];
        if (mark->kind != PLOT_TEXT)
            continue;
        lab_str_add(out, "set label ");
        add_quoted(out, mark->text);
        lab_str_printf(out, " at %.1f,%.1f %s front font '%s,%.2f' textcolor rgb '%s'", mark->x,
                       mark->y, anchors[mark->anchor], mark->bold ? "Sans:Bold" : "Sans",
                       mark->size * points, lab_plot_colours[mark->colour]);
        if (mark->angle)
            lab_str_printf(out, " rotate by %d", mark->angle);
        lab_str_add(out, "\n");
    }
}

static void add_picture(const struct lab_chart *chart, const struct plot_format *format,
                        const char *name, const char *ending, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct plot_scene scene;
    bool png = strcmp(ending, "png") == 0;
    plot_scene_make(chart, format, &arena, &scene);
    double points = png ? PNG_POINTS * PNG_SCALE : PAPER_CM * CM_POINTS / scene.width;
    if (png)
        lab_str_printf(out, "set terminal pngcairo noenhanced size %d,%d background rgb '%s'\n",
                       scene.width * PNG_SCALE, scene.height * PNG_SCALE,
                       lab_plot_colours[LAB_COLOUR_GROUND]);
    else /* whose letters are pixels of 96 to the inch */
        lab_str_printf(out, "set terminal pdfcairo noenhanced size %.3fcm,%.3fcm fontscale 0.75\n",
                       PAPER_CM, PAPER_CM * scene.height / scene.width);
    lab_str_printf(out, "set output '%s.%s'\nset xrange [0:%d]\nset yrange [%d:0]\nunset label\n",
                   name, ending, scene.width, scene.height);
    add_blocks(out, &scene);
    add_labels(out, &scene, points);
    add_plot(out, &scene, png ? PNG_SCALE : points);
    lab_str_add(out, "unset output\n");
}

void lab_plot_script(const struct lab_chart *chart, const char *name, struct lab_str *out) {
    lab_str_printf(
        out,
        "# %s, for gnuplot 5.2 or newer: `gnuplot %s.gp`, here, draws PNG and PDF anew.\n"
        "set encoding utf8\nset decimalsign '.'\nset margins 0,0,0,0\n"
        "unset border\nunset tics\nunset key\n",
        name, name);
    add_picture(chart, &plot_page, name, "png", out);
    add_picture(chart, &plot_paper, name, "pdf", out);
}
