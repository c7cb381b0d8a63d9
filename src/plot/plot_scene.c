/* plot_scene.c: a chart as marks: titles, key, axes, shades; plot_series.c adds the data. */
#include "plot/plot_internal.h"

#include "base/list.h"
#include "base/tty/safe_text.h"

#include <math.h>
#include <string.h>

#define TIC         4 /* pixels */
#define SHADE_LEAST 2

struct plot_mark *plot_scene_add(struct plot_scene *scene, struct plot_mark mark) {
    if (scene->count == scene->room) {
        scene->room = scene->room ? 2 * scene->room : 256;
        struct plot_mark *more = lab_arena_alloc(scene->arena, (size_t)scene->room, sizeof *more);
        if (scene->count > 0)
            memcpy(more, scene->marks, (size_t)scene->count * sizeof *more);
        scene->marks = more;
    }
    if (mark.text) {
        LAB_AUTO(str, text);
        lab_safe_text_add_signed(&text, mark.text);
        if (text.length && strcmp(text.text, mark.text) != 0)
            mark.text = lab_arena_strdup(scene->arena, text.text);
    }
    scene->marks[scene->count] = mark;
    return &scene->marks[scene->count++];
}

struct plot_mark *plot_add_rect(struct plot_scene *scene, double x, double y, double width,
                                double height, enum lab_colour colour) {
    struct plot_mark mark = {PLOT_RECT, x, y, width, height, .colour = colour};
    return plot_scene_add(scene, mark);
}

struct plot_mark *plot_add_path(struct plot_scene *scene, enum plot_kind kind, const double *points,
                                int count, enum lab_colour colour) {
    struct plot_mark mark = {kind, .width = 1, .points = points, .count = count, .colour = colour};
    return plot_scene_add(scene, mark);
}

struct plot_mark *plot_add_sign(struct plot_scene *scene, double x, double y, double size,
                                int look) {
    struct plot_mark mark = {PLOT_SIGN, x, y, .size = size, .shape = look};
    mark.colour = LAB_COLOUR_C0 + look % LAB_COLOUR_CATEGORIES;
    return plot_scene_add(scene, mark);
}

void plot_add_text(struct plot_scene *scene, const char *text, double x, double y, double size,
                   enum plot_anchor anchor, enum lab_colour colour) {
    struct plot_mark mark = {PLOT_TEXT, x, y, .size = size, .anchor = anchor, .colour = colour};
    mark.text = text;
    if (text && *text)
        plot_scene_add(scene, mark);
}

int plot_sign_corners(const struct plot_mark *sign, double *ret) {
    static const struct {
        int corners;
        double turn, size;
    } shapes[] = {{16, 0, 1}, {4, 0.25, 1.2}, {3, -0.5, 1.35}, {4, 0, 1.3}, {3, 0.5, 1.35}};
    int shape = sign->shape % 5, corners = shapes[shape].corners;
    for (ptrdiff_t i = 0; i < corners; i++) {
        double angle = 3.14159265358979 * (2.0 * (double)i / corners + shapes[shape].turn);
        ret[2 * i] = sign->x + sign->size * shapes[shape].size * cos(angle);
        ret[2 * i + 1] = sign->y + sign->size * shapes[shape].size * sin(angle);
    }
    return corners;
}

static struct plot_mark *add_line(struct plot_scene *scene, double x0, double y0, double x1,
                                  double y1, enum lab_colour colour) {
    const double points[] = {x0, y0, x1, y1};
    struct plot_mark *line = plot_add_path(
        scene, PLOT_LINE, lab_arena_copy(scene->arena, points, 4, sizeof *points), 2, colour);
    line->width = colour == LAB_COLOUR_GRID ? 0.8 : 1;
    return line;
}

/* --- above the panels --- */

static void add_headline(struct plot_scene *scene, const struct plot_layout *layout) {
    const struct plot_format *format = layout->format;
    double line = 1.35 * format->title;
    for (int i = 0; i < layout->title_lines; i++)
        plot_add_text(scene, layout->title[i], PLOT_EDGE, PLOT_EDGE + (i + 0.5) * line,
                      format->title, PLOT_START, LAB_COLOUR_INK);
    if (layout->chart->simulated)
        plot_add_text(scene, "simulated", layout->width - PLOT_EDGE, PLOT_EDGE + line / 2,
                      format->title, PLOT_STOP, LAB_COLOUR_WARN);
}

static void add_sample(struct plot_scene *scene, const struct plot_entry *entry) {
    bool filled = entry->shade || entry->mark == LAB_CHART_BARS || entry->mark == LAB_CHART_BAND ||
                  entry->mark == LAB_CHART_BOXES || entry->mark == LAB_CHART_STACK;
    bool sign = entry->mark == LAB_CHART_POINTS || entry->mark == LAB_CHART_LINE_POINTS;
    enum lab_colour colour = entry->shade ? LAB_COLOUR_SHADE0 + entry->look % LAB_COLOUR_SHADES
                                          : LAB_COLOUR_C0 + entry->look % LAB_COLOUR_CATEGORIES;
    if (filled) {
        struct plot_mark *rect = plot_add_rect(scene, entry->x + 4, entry->y - 5, 14, 10, colour);
        rect->opacity = entry->mark == LAB_CHART_BAND && !entry->shade ? 0.25 : 0;
    } else if (entry->mark != LAB_CHART_POINTS) {
        struct plot_mark *line =
            add_line(scene, entry->x, entry->y, entry->x + 20, entry->y, colour);
        line->width = 1.8;
        line->dash = entry->mark == LAB_CHART_DASHES
                         ? 1
                         : entry->look / LAB_COLOUR_CATEGORIES; /* as drawn */
        line->beneath = entry->beneath;
    }
    if (sign)
        plot_add_sign(scene, entry->x + 10, entry->y, 3.5, entry->look);
}

static void add_keys(struct plot_scene *scene, const struct plot_layout *layout) {
    for (int i = 0; i < layout->key_count; i++) {
        const struct plot_entry *entry = &layout->keys[i];
        plot_scene_add(scene,
                       (struct plot_mark){.kind = PLOT_GROUP, .group = PLOT_KEY, .series = i});
        add_sample(scene, entry);
        plot_add_text(scene, entry->shown, entry->x + 26, entry->y, layout->format->small,
                      PLOT_START, LAB_COLOUR_INK);
        plot_scene_add(scene, (struct plot_mark){.kind = PLOT_END});
    }
}

/* --- around an area --- */

static double across(const struct plot_panel *made, double at) {
    return made->left + plot_axis_share(&made->x, at) * (made->right - made->left);
}

static double down(const struct plot_panel *made, double at) {
    return made->bottom - plot_axis_share(&made->y, at) * (made->bottom - made->top);
}

static void add_x_axis(struct plot_scene *scene, const struct plot_layout *layout,
                       const struct plot_panel *made) {
    bool names = made->panel->x.names, heat = made->panel->heat;
    double size = layout->format->small;
    for (int i = 0; i < made->x.tic_count; i++) {
        double x = across(made, made->x.tics[i].at);
        if (!names && !heat)
            add_line(scene, x, made->top, x, made->bottom, LAB_COLOUR_GRID);
        if (!heat)
            add_line(scene, x, made->bottom, x, made->bottom + TIC, LAB_COLOUR_AXIS);
        if (!made->x_texts)
            continue;
        struct plot_mark text = {.kind = PLOT_TEXT,
                                 .x = x,
                                 .y = made->bottom + 7 + (made->x.angle ? size * 0.3 : size / 2),
                                 .size = size,
                                 .anchor = made->x.angle ? PLOT_STOP : PLOT_MIDDLE,
                                 .angle = made->x.angle,
                                 .colour = LAB_COLOUR_AXIS,
                                 .text = lab_arena_strdup(scene->arena, made->x.tics[i].text)};
        plot_scene_add(scene, text);
    }
    if (made->x_title && made->panel->x.title) {
        double room = fmax(made->right - made->left, 90);
        plot_add_text(
            scene, plot_text_cut(made->panel->x.title, layout->format->small, room, scene->arena),
            (made->left + made->right) / 2, made->bottom + made->under, layout->format->small,
            PLOT_MIDDLE, LAB_COLOUR_INK);
    }
}

static void add_y_axis(struct plot_scene *scene, const struct plot_layout *layout,
                       const struct plot_panel *made) {
    for (int i = 0; i < made->y.tic_count; i++) {
        double y = down(made, made->y.tics[i].at);
        if (!made->panel->y.names)
            add_line(scene, made->left, y, made->right, y,
                     made->y.tics[i].at == 0 ? LAB_COLOUR_AXIS : LAB_COLOUR_GRID);
        if (made->y_texts)
            plot_add_text(scene, lab_arena_strdup(scene->arena, made->y.tics[i].text),
                          made->left - 6, y, layout->format->small, PLOT_STOP, LAB_COLOUR_AXIS);
    }
    if (made->panel->heat)
        return;
    add_line(scene, made->left, made->top, made->left, made->bottom, LAB_COLOUR_AXIS);
    add_line(scene, made->left, made->bottom, made->right, made->bottom, LAB_COLOUR_AXIS);
}

/* From where the ticks' texts begin: what is above them is free. */
static void add_titles(struct plot_scene *scene, const struct plot_layout *layout,
                       const struct plot_panel *made, double until) {
    const struct lab_chart_panel *panel = made->panel;
    double small = layout->format->small, text = layout->format->text,
           y = made->top - PLOT_TITLE_GAP;
    const char *title = panel->y.title;
    double left = made->edge;
    if (made->y_title) {
        if (made->row_high > 0 && panel->y.names)
            title = lab_arena_printf(scene->arena, "%s; a row: 0 to %.*f", title,
                                     made->row_high < 10    ? 2
                                     : made->row_high < 100 ? 1
                                                            : 0,
                                     made->row_high);
        plot_add_text(scene, plot_text_cut(title, small, until - left, scene->arena), left,
                      y - small * 0.6, small, PLOT_START, LAB_COLOUR_AXIS);
    }
    bool above = false; /* someone of the row has one: titles of panels are at one height */
    for (int p = 0; p < layout->chart->panel_count; p++)
        above |= layout->panels[p].top == made->top && layout->panels[p].y_title;
    for (int i = 0; i < made->title_lines; i++)
        plot_scene_add(scene,
                       (struct plot_mark){.kind = PLOT_TEXT,
                                          .x = left,
                                          .y = y - (above ? 1.35 * small : 0) -
                                               text * (0.6 + 1.35 * (made->title_lines - 1 - i)),
                                          .size = text,
                                          .bold = true,
                                          .colour = LAB_COLOUR_INK,
                                          .text = made->title[i]});
    if (!plot_has_values(panel))
        plot_add_text(scene, "no data", (made->left + made->right) / 2,
                      (made->top + made->bottom) / 2, text, PLOT_MIDDLE, LAB_COLOUR_AXIS);
}

static void add_shades(struct plot_scene *scene, const struct plot_layout *layout,
                       const struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    double size = layout->format->small, free_from = made->left;
    for (int i = 0; i < panel->shade_count; i++) {
        const struct lab_chart_shade *shade = &panel->shades[i];
        int colour = (shade->colour < 0 ? 0 : shade->colour) % LAB_COLOUR_SHADES;
        double from = fmax(across(made, shade->from), made->left),
               until = fmin(across(made, shade->until), made->right);
        if (!(from <= until))
            continue;
        const char *title = plot_shade_title(panel, colour);
        plot_scene_add(scene, (struct plot_mark){.kind = PLOT_GROUP,
                                                 .text = title,
                                                 .series = LAB_FIND(layout->keys, layout->key_count,
                                                                    title, title)});
        plot_add_rect(scene, from, made->top, fmax(until - from, SHADE_LEAST),
                      made->bottom - made->top, LAB_COLOUR_SHADE0 + colour)
            ->text = shade->title;
        plot_scene_add(scene, (struct plot_mark){.kind = PLOT_END});
        double width = shade->title ? plot_text_width(shade->title, size) : 0;
        if (width == 0 || plot_shade_title(panel, colour) || until - from < width + 4 ||
            from < free_from || panel->y.names)
            continue;
        plot_add_text(scene, shade->title, (from + until) / 2, made->top + size * 0.7, size,
                      PLOT_MIDDLE, LAB_COLOUR_AXIS);
        free_from = until;
    }
}

void plot_scene_make(const struct lab_chart *chart, const struct plot_format *format,
                     struct lab_arena *arena, struct plot_scene *ret) {
    struct plot_layout layout;
    struct lab_chart *shortened = lab_arena_alloc(arena, 1, sizeof *shortened);
    *shortened = plot_shorten(chart, arena);
    plot_layout_make(shortened, format, arena, &layout);
    *ret = (struct plot_scene){.width = layout.width, .height = layout.height, .arena = arena};
    add_headline(ret, &layout);
    add_keys(ret, &layout);
    if (chart->panel_count > 0 && chart->panels[0].heat)
        plot_add_scale(ret, &layout);
    for (int p = 0; p < chart->panel_count; p++) {
        const struct plot_panel *made = &layout.panels[p];
        plot_scene_add(ret,
                       (struct plot_mark){.kind = PLOT_GROUP, .group = PLOT_PANEL, .panel = made});
        add_shades(ret, &layout, made);
        add_x_axis(ret, &layout, made);
        add_y_axis(ret, &layout, made);
        add_titles(ret, &layout, made, plot_titles_end(&layout, p));
        if (made->panel->heat)
            plot_add_heat(ret, &layout, made);
        plot_add_series(ret, &layout, made);
        plot_scene_add(ret, (struct plot_mark){.kind = PLOT_END});
    }
}
