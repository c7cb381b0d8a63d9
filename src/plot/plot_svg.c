/*
 * plot_svg.c: a scene as SVG. Within a page its colours are the page's variables, so that it is
 * dark where the page is; a file of its own has them as they are in light.
 */
#include "plot/plot_internal.h"

#include "base/tty/safe_text.h"

#include <math.h>
#include <string.h>

#define LEAST_SCALE 0.62 /* a narrow page scrolls before texts are too small to be read */
#define FONTS       "system-ui,Helvetica,Arial,'DejaVu Sans',sans-serif"

struct writing {
    struct lab_str *out;
    bool inlined;
};

static const char *const names[] = {
#define X(name, css, light, dark) css,
    LAB_PALETTE(X)
#undef X
};

/* --- parts --- */

static void add_escaped(struct lab_str *out, const char *text) {
    bool printable;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = lab_str_next(text, left, &printable);
        if (!printable)
            lab_str_add(out, " ");
        else if (*text == '&')
            lab_str_add(out, "&amp;");
        else if (*text == '<')
            lab_str_add(out, "&lt;");
        else if (*text == '"')
            lab_str_add(out, "&quot;");
        else
            lab_str_add_bytes(out, text, length);
    }
}

/* Tenths of a pixel, shortly: "12", "0.5" as ".5". */
static void add_tenths(struct lab_str *out, long tenths) {
    long whole = labs(tenths) / 10, rest = labs(tenths) % 10;
    lab_str_add(out, tenths < 0 ? "-" : "");
    if (whole || !rest)
        lab_str_printf(out, "%ld", whole);
    if (rest)
        lab_str_printf(out, ".%ld", rest);
}

static void add_attribute(const struct writing *w, const char *name, double value) {
    lab_str_printf(w->out, " %s=\"", name);
    add_tenths(w->out, lround(10 * value));
    lab_str_add(w->out, "\"");
}

/* Within a page as style, which rules of the page don't change; ink is the picture's. */
static void add_colour(const struct writing *w, const struct plot_mark *mark) {
    const char *what = mark->kind == PLOT_LINE ? "stroke" : "fill";
    if (w->inlined && mark->kind == PLOT_TEXT && mark->colour == LAB_COLOUR_INK)
        return;
    if (w->inlined)
        lab_str_printf(w->out, " style=\"%s%s:var(--%s)",
                       mark->kind == PLOT_LINE ? "fill:none;" : "", what, names[mark->colour]);
    else
        lab_str_printf(w->out, "%s %s=\"%s", mark->kind == PLOT_LINE ? " fill=\"none\"" : "", what,
                       lab_plot_colours[mark->colour]);
    if (mark->opacity > 0 && mark->opacity < 1)
        lab_str_printf(w->out, w->inlined ? ";%s-opacity:%.2g" : "\" %s-opacity=\"%.2g", what,
                       mark->opacity);
    lab_str_add(w->out, "\"");
}

/* Areas with relative steps, which are short; lines with absolute ones, which scripts read. */
static void add_path(const struct writing *w, const struct plot_mark *mark, bool area) {
    long x = 0, y = 0;
    bool open = false;
    lab_str_add(w->out, " d=\"");
    for (int i = 0; i < mark->count; i++) {
        const double *point = mark->points + (ptrdiff_t)2 * i;
        if (isnan(point[0]) || isnan(point[1])) {
            lab_str_add(w->out, open && area ? "z" : "");
            open = false;
            continue;
        }
        long next_x = lround(10 * point[0]), next_y = lround(10 * point[1]);
        const char *how = !open ? "M" : !area ? "L" : next_y == y ? "h" : next_x == x ? "v" : "l";
        lab_str_add(w->out, how);
        if (*how != 'v')
            add_tenths(w->out, open && area ? next_x - x : next_x);
        if (*how != 'v' && *how != 'h')
            lab_str_add(w->out, " ");
        if (*how != 'h')
            add_tenths(w->out, open && area ? next_y - y : next_y);
        open = true;
        x = next_x;
        y = next_y;
    }
    lab_str_add(w->out, open && area ? "z\"" : "\"");
}

/* --- marks --- */

static void end(const struct writing *w, const char *element, const char *text) {
    if (text && *text) {
        LAB_AUTO(str, shown);
        lab_safe_text_add_signed(&shown, text);
        lab_str_add(w->out, "><title>");
        add_escaped(w->out, shown.text);
        lab_str_printf(w->out, "</title></%s>\n", element);
    } else {
        lab_str_add(w->out, "/>\n");
    }
}

static void add_text(const struct writing *w, const struct plot_mark *mark) {
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    double turn = mark->angle * 3.14159265358979 / 180, rise = 0.35 * mark->size;
    double x = mark->x + rise * sin(turn), y = mark->y + rise * cos(turn);
    lab_str_add(w->out, "<text");
    add_attribute(w, "x", x);
    add_attribute(w, "y", y);
    if (mark->size != plot_page.small)
        lab_str_printf(w->out, " font-size=\"%gpx\"", mark->size);
    lab_str_add(w->out, anchors[mark->anchor]);
    if (mark->bold)
        lab_str_add(w->out, " font-weight=\"600\"");
    if (mark->angle)
        lab_str_printf(w->out, " transform=\"rotate(%d %.1f %.1f)\"", -mark->angle, x, y);
    add_colour(w, mark);
    lab_str_add(w->out, ">");
    add_escaped(w->out, mark->text);
    lab_str_add(w->out, "</text>\n");
}

static void add_sign(const struct writing *w, const struct plot_mark *mark) {
    double corners[2 * PLOT_CORNERS];
    struct plot_mark area = {.points = corners};
    bool round = mark->shape % 5 == 0;
    lab_str_add(w->out, round ? "<circle" : "<path");
    if (round) {
        add_attribute(w, "cx", mark->x);
        add_attribute(w, "cy", mark->y);
        add_attribute(w, "r", mark->size);
    } else {
        area.count = plot_sign_corners(mark, corners);
        add_path(w, &area, true);
    }
    add_colour(w, mark);
    end(w, round ? "circle" : "path", mark->text);
}

static void add_range(const struct writing *w, char name, const struct plot_axis *axis,
                      const struct lab_chart_axis *of, double from, double until) {
    LAB_AUTO(arena, arena);
    struct plot_unit unit = plot_unit_of(of->title, &arena);
    lab_str_printf(w->out, " data-%c=\"%.6g %.6g %.1f %.1f %d|", name, axis->low, axis->high, from,
                   until,
                   of->names   ? 2
                   : axis->log ? 1
                               : 0);
    add_escaped(w->out, name == 'x' ? unit.before : ""); /* of y the series says it */
    lab_str_add(w->out, "|");
    add_escaped(w->out, unit.after);
    lab_str_add(w->out, "\"");
}

static void add_group(const struct writing *w, const struct plot_mark *mark) {
    const struct plot_panel *made = mark->panel;
    if (mark->group == PLOT_PANEL) {
        lab_str_add(w->out, "<g class=\"p\"");
        add_range(w, 'x', &made->x, &made->panel->x, made->left, made->right);
        add_range(w, 'y', &made->y, &made->panel->y, made->bottom, made->top);
    } else if (mark->group == PLOT_KEY) {
        lab_str_printf(w->out, "<g class=\"k\" data-s=\"%d\"", mark->series);
    } else {
        lab_str_printf(w->out, "<g class=\"s s%d\" data-t=\"", mark->series);
        add_escaped(w->out, mark->text ? mark->text : "");
        lab_str_add(w->out, "\"");
    }
    lab_str_add(w->out, ">\n");
}

static void add_mark(const struct writing *w, const struct plot_mark *mark) {
    switch (mark->kind) {
    case PLOT_RECT:
        lab_str_add(w->out, "<rect");
        add_attribute(w, "x", mark->x);
        add_attribute(w, "y", mark->y);
        add_attribute(w, "width", mark->width);
        add_attribute(w, "height", mark->height);
        add_colour(w, mark);
        end(w, "rect", mark->text);
        break;
    case PLOT_LINE:
        lab_str_add(w->out, mark->series ? "<path class=\"l\"" : "<path");
        add_path(w, mark, false);
        add_colour(w, mark);
        if (mark->width != 1)
            add_attribute(w, "stroke-width", mark->width);
        if (mark->beneath)
            lab_str_printf(w->out, " stroke-dasharray=\"%d %d\"", PLOT_SEEN,
                           PLOT_SEEN * mark->beneath);
        else if (mark->dash)
            lab_str_printf(w->out, " stroke-dasharray=\"%d 4\"", 3 + 3 * mark->dash);
        end(w, "path", mark->text);
        break;
    case PLOT_AREA:
        lab_str_add(w->out, "<path");
        add_path(w, mark, true);
        add_colour(w, mark);
        end(w, "path", mark->text);
        break;
    case PLOT_SIGN:
        add_sign(w, mark);
        break;
    case PLOT_TEXT:
        add_text(w, mark);
        break;
    case PLOT_GROUP:
        add_group(w, mark);
        break;
    case PLOT_END:
        lab_str_add(w->out, "</g>\n");
    }
}

void lab_plot_svg(const struct lab_chart *chart, struct lab_plot_view view, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct plot_scene scene;
    struct lab_chart shown = *chart;
    struct plot_format format = plot_format_of(view, &shown);
    plot_scene_make(&shown, &format, &arena, &scene);
    struct writing w = {out, view.inlined};
    lab_str_printf(out, "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"",
                   scene.width, scene.height);
    add_escaped(out, chart->title ? chart->title : "");
    if (view.inlined)
        lab_str_printf(out, "\" style=\"font-size:%gpx;fill:var(--ink);min-width:%dpx\">\n",
                       format.small, (int)(scene.width * LEAST_SCALE));
    else
        lab_str_printf(out,
                       "\" xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                       "font-size=\"%g\" font-family=\"%s\">\n<rect width=\"100%%\" "
                       "height=\"100%%\" fill=\"%s\"/>\n",
                       scene.width, scene.height, format.small, FONTS,
                       lab_plot_colours[LAB_COLOUR_GROUND]);
    for (int i = 0; i < scene.count; i++)
        add_mark(&w, &scene.marks[i]);
    lab_str_add(out, "</svg>\n");
}
