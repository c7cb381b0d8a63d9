/*
 * plot_layout.c: where everything of a chart lies, for one width. From above: title, key, rows of
 * panels. A panel has its title and the title of y above its area, where neither covers ticks; the
 * lowest of a column has the x axis that the others share.
 */
#include "plot/plot_internal.h"

#include "base/list.h"

#include <math.h>
#include <string.h>

#define LINE       1.35 /* from a line of text to the next, in sizes of its letters */
#define KEY_SAMPLE 26   /* pixels of an entry before its text */
#define KEY_GAP    14
#define TIC_GAP    7  /* between the area and its ticks' texts */
#define ROW_GAP    14 /* between rows of panels */
#define CELL_MOST  64 /* pixels of a map's cell */
#define CELL_LEAST 12
#define SHRUNK     0.78 /* letters of cells, at least, of those of other texts */

const struct plot_format plot_page = {.width = 800,
                                      .text = 12,
                                      .small = 11,
                                      .title = 15,
                                      .titled = true,
                                      .columns = 4,
                                      .alone = 290,
                                      .stacked = 130,
                                      .grid = 150,
                                      .row = 22};
const struct plot_format plot_paper = {.width = 320,
                                       .text = 10,
                                       .small = 9,
                                       .title = 11,
                                       .columns = 1,
                                       .alone = 190,
                                       .stacked = 90,
                                       .grid = 100,
                                       .row = 12};

bool plot_has_whiskers(const struct lab_chart_series *series) {
    return series->low && series->high &&
           (series->mark == LAB_CHART_POINTS || series->mark == LAB_CHART_LINE_POINTS ||
            series->mark == LAB_CHART_BARS);
}

const char *plot_shade_title(const struct lab_chart_panel *panel, int colour) {
    const char *title = NULL;
    for (int i = 0; i < panel->shade_count; i++) {
        const struct lab_chart_shade *shade = &panel->shades[i];
        if (shade->colour % LAB_COLOUR_SHADES != colour || !shade->title || !*shade->title)
            continue;
        if (title && strcmp(title, shade->title) != 0)
            return NULL;
        title = shade->title;
    }
    return title;
}

static bool has_text(const char *text) {
    return text && *text;
}

/* --- the key --- */

static struct plot_entry *find_entry(const struct plot_layout *layout, const char *title) {
    int found = LAB_FIND(layout->keys, layout->key_count, title, title);
    return found < 0 ? NULL : (struct plot_entry *)&layout->keys[found];
}

static bool is_taken(const struct lab_chart *chart, const struct plot_layout *layout, int look) {
    bool taken = false;
    for (int i = 0; i < layout->key_count; i++)
        taken |= !layout->keys[i].shade && layout->keys[i].look == look;
    for (int p = 0; p < chart->panel_count; p++)
        for (int s = 0; s < chart->panels[p].series_count; s++)
            taken |= chart->panels[p].series[s].colour == look;
    return taken;
}

static void add_entry(struct plot_layout *layout, const char *title, int look,
                      enum lab_chart_mark mark, bool shade) {
    if (!has_text(title) || find_entry(layout, title))
        return;
    if (layout->key_count == PLOT_KEYS_MOST)
        return;
    for (int next = 0; look < 0; next++)
        if (!is_taken(layout->chart, layout, next))
            look = next;
    layout->keys[layout->key_count++] =
        (struct plot_entry){.title = title, .look = look, .mark = mark, .shade = shade};
}

#define BAND_SEEN 3 /* pixels */

/* Whether an area is wide enough somewhere to be seen next to its line. */
static bool is_seen(const struct plot_layout *layout, const struct lab_chart_panel *panel,
                    const struct lab_chart_series *series) {
    struct plot_axis axis;
    if (series->mark != LAB_CHART_BAND || !series->low || !series->high)
        return true;
    plot_axis_make(&panel, 1, false, layout->format->grid, layout->format->small, &axis);
    for (size_t i = 0; i < series->count; i++)
        if (fabs(plot_axis_share(&axis, series->high[i]) - plot_axis_share(&axis, series->low[i])) *
                layout->format->grid >=
            BAND_SEEN)
            return true;
    return false;
}

static void collect_keys(struct plot_layout *layout) {
    for (int p = 0; p < layout->chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &layout->chart->panels[p];
        for (int s = 0; s < panel->series_count; s++)
            if (panel->series[s].mark != LAB_CHART_ROW && /* the row's name is at the axis */
                is_seen(layout, panel, &panel->series[s]))
                add_entry(layout, panel->series[s].title, panel->series[s].colour,
                          panel->series[s].mark, false);
    }
    for (int p = 0; p < layout->chart->panel_count; p++)
        for (int c = 0; c < LAB_COLOUR_SHADES; c++)
            add_entry(layout, plot_shade_title(&layout->chart->panels[p], c), c, LAB_CHART_BAND,
                      true);
}

int plot_series_look(const struct plot_layout *layout, const struct lab_chart_panel *panel,
                     int series) {
    const struct lab_chart_series *own = &panel->series[series];
    const struct plot_entry *entry = has_text(own->title) ? find_entry(layout, own->title) : NULL;
    if (entry && !entry->shade)
        return entry->look;
    return own->colour >= 0 ? own->colour : own->mark == LAB_CHART_ROW ? 0 : series;
}

/* Entries flow as words do; returns where they end. */
static double place_keys(struct plot_layout *layout, double top) {
    double x = PLOT_EDGE, line = LINE * layout->format->small + 2, y = top + line / 2;
    for (int i = 0; i < layout->key_count; i++) {
        struct plot_entry *entry = &layout->keys[i];
        entry->shown = plot_text_cut(entry->title, layout->format->small,
                                     layout->width - 2 * PLOT_EDGE - KEY_SAMPLE, layout->arena);
        double own = KEY_SAMPLE + plot_text_width(entry->shown, layout->format->small);
        if (x > PLOT_EDGE && x + own > layout->width - PLOT_EDGE) {
            x = PLOT_EDGE;
            y += line;
        }
        entry->x = x;
        entry->y = y;
        x += own + KEY_GAP;
    }
    return layout->key_count ? y + line / 2 + 4 : top;
}

/* --- what a panel has --- */

/* The least distance of two x at which bars stand, so that they don't touch. */
static double find_step(const struct lab_chart_panel *panel) {
    double step = NAN;
    for (int s = 0; s < panel->series_count && !panel->x.names; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        bool beside = series->mark == LAB_CHART_BARS || series->mark == LAB_CHART_BOXES ||
                      series->mark == LAB_CHART_STACK;
        for (size_t i = 1; beside && i < series->count; i++) {
            double gap = fabs(series->x[i] - series->x[i - 1]);
            step = gap > 0 ? fmin(step, gap) : step;
        }
    }
    return isnan(step) ? 1 : step;
}

/* Whether points of two series stand at one place, and would hide each other. */
static bool share_places(const struct lab_chart_panel *panel) {
    for (int a = 0; a < panel->series_count; a++)
        for (int b = 0; b < a; b++) {
            const struct lab_chart_series *x = &panel->series[a], *y = &panel->series[b];
            if (x->mark != LAB_CHART_POINTS || y->mark != LAB_CHART_POINTS || x->on || y->on)
                continue;
            for (size_t i = 0; i < x->count; i++)
                for (size_t k = 0; k < y->count; k++)
                    if (x->x[i] == y->x[k] && isfinite(x->y[i]) && isfinite(y->y[k]))
                        return true;
        }
    return false;
}

static void describe(struct plot_layout *layout, struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        made->bars += series->mark == LAB_CHART_BARS;
        made->boxes += series->mark == LAB_CHART_BOXES;
        made->dodged += series->mark == LAB_CHART_POINTS && panel->x.names && !series->on;
        for (size_t i = 0; series->mark == LAB_CHART_ROW && i < series->count; i++)
            made->row_high =
                isfinite(series->y[i]) ? fmax(made->row_high, series->y[i]) : made->row_high;
    }
    if (made->dodged && !share_places(panel))
        made->dodged = 0;
    if (isfinite(panel->y.high))
        made->row_high = panel->y.high;
    made->step = find_step(panel);
    const struct lab_chart_heat *heat = panel->heat;
    for (int i = 0; heat && i < panel->x.name_count * panel->y.name_count; i++) {
        bool open = heat->open && heat->open[i];
        layout->heat_open |= open;
        layout->heat_bounds |= heat->texts && lab_str_starts(heat->texts[i], "≤");
        if (isfinite(heat->values[i]) && !open)
            layout->heat_most = fmax(layout->heat_most, fabs(heat->values[i]));
    }
}

/* --- columns --- */

/* Of letters of size 1. */
static double heat_text_width(const struct plot_layout *layout) {
    double most = 0;
    for (int p = 0; p < layout->chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &layout->chart->panels[p];
        const struct lab_chart_heat *heat = panel->heat;
        for (int i = 0; heat && heat->texts && i < panel->x.name_count * panel->y.name_count; i++)
            most = fmax(most, plot_text_width(heat->texts[i], 1));
    }
    return most;
}

static double tic_width(const struct plot_layout *layout, const struct lab_chart_panel *panel) {
    struct plot_axis axis;
    plot_axis_make(&panel, 1, false, layout->format->grid, layout->format->small, &axis);
    return axis.longest;
}

#define TITLE_MOST 30 /* sizes of its letters: no title asks for more */

/* Of the widest title of a map: cut ones would look alike. */
static double map_title_width(const struct plot_layout *layout) {
    double most = 0, size = layout->format->text;
    for (int p = 0; p < layout->chart->panel_count; p++)
        if (has_text(layout->chart->panels[p].title))
            most = fmax(most, plot_text_width(layout->chart->panels[p].title, size * PLOT_BOLD));
    return fmin(most, TITLE_MOST * size) + size + 6;
}

/* Maps: as many next to each other as leave room for the values in their cells and for their
 * titles. */
static void choose_columns(struct plot_layout *layout) {
    const struct lab_chart *chart = layout->chart;
    int columns = chart->columns > 0 ? chart->columns : 1, names = 1;
    layout->columns = columns < layout->format->columns ? columns : layout->format->columns;
    if (chart->panel_count > 0 && chart->panels[0].heat) {
        double text = heat_text_width(layout),
               room = layout->width - 2 * PLOT_EDGE - TIC_GAP - tic_width(layout, chart->panels);
        for (int p = 0; p < chart->panel_count; p++)
            names = chart->panels[p].x.name_count > names ? chart->panels[p].x.name_count : names;
        double size = fmin(layout->format->small, (room / names - 4) / fmax(text, 1));
        layout->heat_size = text > 0 && size >= SHRUNK * layout->format->small ? size : 0;
        double cell = layout->heat_size > 0 ? text * layout->heat_size + 4 : CELL_LEAST;
        double least = fmax(names * cell, map_title_width(layout));
        layout->columns = (int)((room + ROW_GAP) / (least + ROW_GAP));
    }
    if (layout->columns > chart->panel_count)
        layout->columns = chart->panel_count;
    if (layout->columns < 1)
        layout->columns = 1;
    layout->rows = (chart->panel_count + layout->columns - 1) / layout->columns;
    if (layout->rows > 0) /* 3 and 3 rather than 4 and 2 */
        layout->columns = (chart->panel_count + layout->rows - 1) / layout->rows;
}

static double area_height(const struct plot_layout *layout, const struct lab_chart_panel *panel) {
    if (panel->y.names)
        return fmax(panel->y.name_count * layout->format->row, 2 * layout->format->row);
    return layout->columns > 1                               ? layout->format->grid
           : layout->rows == 1                               ? layout->format->alone
           : layout->chart->columns > 1 || layout->rows <= 2 ? layout->format->grid
                                                             : layout->format->stacked;
}

static double length_of(const struct lab_chart_panel *panel) {
    struct plot_axis axis;
    plot_axis_make(&panel, 1, true, 300, plot_page.small, &axis);
    return panel->x.log ? log(axis.high / axis.low) : axis.high - axis.low;
}

static bool same_names(const struct lab_chart_axis *a, const struct lab_chart_axis *b) {
    bool same = !a->names == !b->names && a->name_count == b->name_count;
    for (int i = 0; a->names && same && i < a->name_count; i++)
        same = lab_str_equal(a->names[i], b->names[i]);
    return same;
}

/* In a grid, panels are things of their own: one that would be a speck next to another isn't drawn
 * so. */
static bool shares_x(const struct lab_chart *chart, const struct lab_chart_panel *a,
                     const struct lab_chart_panel *b) {
    if (!lab_str_equal(a->x.title, b->x.title) || a->x.log != b->x.log ||
        !same_names(&a->x, &b->x) || !a->heat != !b->heat)
        return false;
    if (chart->columns <= 1 || a->x.names)
        return true;
    double ratio = length_of(a) / length_of(b);
    return ratio > 0.4 && ratio < 2.5;
}

#define ROWS_LABELLED 2 /* of long names: more rows are a screen away from them */

/* x of a column: one range for neighbours that share it, texts at the lowest of them. */
static void make_x_axes(struct plot_layout *layout, int column, double pixels) {
    const struct lab_chart *chart = layout->chart;
    const struct lab_chart_panel **group =
        lab_arena_alloc(layout->arena, (size_t)chart->panel_count, sizeof *group);
    int step = layout->columns;
    for (int first = column; first < chart->panel_count;) {
        int members = 0, last = first;
        for (int p = first; p < chart->panel_count &&
                            shares_x(chart, layout->panels[first].panel, layout->panels[p].panel);
             p += step) {
            group[members++] = layout->panels[p].panel;
            last = p;
        }
        struct plot_axis *axis = &layout->panels[first].x;
        plot_axis_make(group, members, true, pixels, layout->format->small, axis);
        for (int p = first, row = 0; p <= last; p += step, row++) {
            bool far = axis->angle && row % ROWS_LABELLED == ROWS_LABELLED - 1 && members > 2;
            layout->panels[p].x = *axis;
            layout->panels[p].x_texts = p == last || far;
            layout->panels[p].x_title = p == last;
        }
        first = last + step;
    }
}

/* Next to a panel with texts, one of another range has its own: it would be read by the other's. */
static void label_other_ranges(struct plot_layout *layout) {
    int count = layout->chart->panel_count, columns = layout->columns;
    for (int p = 0; p < count; p++)
        for (int k = p - p % columns; k < count && k < p - p % columns + columns; k++) {
            const struct plot_axis *own = &layout->panels[p].x, *other = &layout->panels[k].x;
            if (layout->panels[k].x_texts && (own->low != other->low || own->high != other->high))
                layout->panels[p].x_texts = layout->panels[p].x_title = true;
        }
}

/* How far to the left of the area the first slanted name reaches. */
static double slanted_width(const struct plot_layout *layout, int column, double pixels) {
    double most = 0;
    for (int p = column; p < layout->chart->panel_count; p += layout->columns) {
        const struct lab_chart_panel *panel = layout->panels[p].panel;
        struct plot_axis axis;
        if (!panel->x.names || panel->x.name_count == 0)
            continue;
        plot_axis_make(&panel, 1, true, pixels, layout->format->small, &axis);
        if (axis.angle == PLOT_SLANTED)
            most = fmax(most, plot_text_width(axis.tics[0].text, layout->format->small) * 0.77 -
                                  pixels / panel->x.name_count / 2 + 4);
    }
    return most;
}

#define SHARED_LEAST 0.3 /* of a common range that each panel's own one fills */

/* Panels of one quantity have one range, so that heights compare, unless that would press what one
 * of them shows into a line. */
static int group_y(const struct plot_layout *layout, const struct plot_panel *of,
                   const struct lab_chart_panel **group) {
    const struct lab_chart_axis *y = &of->panel->y;
    int count = 0;
    group[count++] = of->panel; /* it gives title and limits */
    for (int p = 0; p < layout->chart->panel_count && !y->names; p++) {
        const struct lab_chart_panel *other = &layout->chart->panels[p];
        if (other != of->panel && !other->y.names && other->y.log == y->log && has_text(y->title) &&
            lab_str_equal(other->y.title, y->title) && plot_has_values(other))
            group[count++] = other;
    }
    struct plot_axis all, own;
    double size = layout->format->small;
    plot_axis_make(group, count, false, layout->format->grid, size, &all);
    for (int i = 0; i < count; i++) {
        plot_axis_make(&group[i], 1, false, layout->format->grid, size, &own);
        if (plot_axis_share(&all, own.high) - plot_axis_share(&all, own.low) < SHARED_LEAST)
            return 1;
    }
    return count;
}

static double left_of(const struct plot_layout *layout, int column) {
    const struct lab_chart_panel **group =
        lab_arena_alloc(layout->arena, (size_t)layout->chart->panel_count + 1, sizeof *group);
    double most = 0;
    for (int p = column; p < layout->chart->panel_count; p += layout->columns) {
        struct plot_panel *made = &layout->panels[p];
        const struct lab_chart_panel *panel = made->panel;
        const struct plot_panel *before = column > 0 ? made - 1 : NULL;
        made->y_texts = !(before && panel->y.names && same_names(&panel->y, &before->panel->y));
        made->y_title = has_text(panel->y.title) &&
                        !(before && lab_str_equal(before->panel->y.title, panel->y.title));
        plot_axis_make(group, group_y(layout, made, group), false, area_height(layout, panel),
                       layout->format->small, &made->y);
        if (made->y_texts)
            most = fmax(most, made->y.longest + TIC_GAP);
    }
    return most;
}

static void place_columns(struct plot_layout *layout) {
    int columns = layout->columns, count = layout->chart->panel_count;
    bool heat = count > 0 && layout->chart->panels[0].heat;
    double *lefts = lab_arena_alloc(layout->arena, (size_t)columns + 1, sizeof *lefts), all = 0;
    for (int c = 0; c < columns; c++) {
        lefts[c] = left_of(layout, c);
        all += lefts[c];
    }
    double gap = heat ? ROW_GAP : ROW_GAP + 6;
    double area = (layout->width - 2.0 * PLOT_EDGE - 6 - all - (columns - 1) * gap) / columns;
    for (int c = 0; c < columns; c++) {
        double slanted = slanted_width(layout, c, area);
        if (slanted > lefts[c]) { /* all alike: what one has less, each has */
            area -= (slanted - lefts[c]) / columns;
            lefts[c] = slanted;
        }
    }
    double x = PLOT_EDGE;
    for (int c = 0; c < columns; c++) {
        double own = area, texts = left_of(layout, c);
        x += lefts[c];
        for (int p = c; p < count; p += columns) {
            const struct lab_chart_panel *panel = layout->panels[p].panel;
            if (panel->heat)
                own = fmin(area, fmax(panel->x.name_count, 1) * CELL_MOST);
            layout->panels[p].left = x;
            layout->panels[p].edge = x - texts;
            layout->panels[p].right = x + own;
        }
        make_x_axes(layout, c, own);
        x += (heat ? fmin(area, fmax(own, map_title_width(layout))) : own) + gap;
    }
    label_other_ranges(layout);
}

/* --- rows --- */

static double tic_height(const struct plot_layout *layout, const struct plot_axis *axis) {
    double size = layout->format->small;
    return TIC_GAP + (axis->angle == 0 ? size
                                       : axis->longest * sin(axis->angle * 3.14159265 / 180) +
                                             (axis->angle == 90 ? 0 : size * 0.8));
}

double plot_titles_end(const struct plot_layout *layout, int panel) {
    bool last =
        panel % layout->columns == layout->columns - 1 || panel == layout->chart->panel_count - 1;
    return last ? layout->width - PLOT_EDGE : layout->panels[panel + 1].edge - 6;
}

/* In two lines where one is too short: what is cut may be what differs. */
static void wrap_title(const struct plot_layout *layout, int number) {
    struct plot_panel *made = &layout->panels[number];
    const char *title = made->panel->title;
    double size = layout->format->text * PLOT_BOLD,
           room = plot_titles_end(layout, number) - made->edge - layout->format->text;
    size_t first = 0;
    if (!has_text(title))
        return;
    if (plot_text_width(title, size) > room)
        for (size_t i = 1; title[i]; i++)
            if (title[i] == ' ' &&
                plot_text_width(lab_arena_strndup(layout->arena, title, i), size) <= room)
                first = i;
    if (first > 0)
        made->title[made->title_lines++] = lab_arena_strndup(layout->arena, title, first);
    made->title[made->title_lines++] =
        plot_text_cut(title + first + (first > 0), size, room, layout->arena);
}

static void place_rows(struct plot_layout *layout, double top) {
    int count = layout->chart->panel_count, columns = layout->columns;
    double line = LINE * layout->format->text, small = LINE * layout->format->small;
    for (int row = 0; row < layout->rows; row++) {
        double height = 0, below = 0, title = 0, y_title = 0;
        struct plot_panel *first = &layout->panels[(ptrdiff_t)row * columns], *end = first;
        for (; end < layout->panels + count && end < first + columns; end++) {
            height = fmax(height, area_height(layout, end->panel));
            wrap_title(layout, (int)(end - layout->panels));
            title = fmax(title, end->title_lines * line);
            y_title = end->y_title ? small : y_title;
            end->under = tic_height(layout, &end->x) + layout->format->text * 0.9;
            if (end->x_texts)
                below = fmax(below,
                             end->under + (has_text(end->panel->x.title) ? line / 2 : -line / 2));
        }
        for (struct plot_panel *made = first; made < end; made++) {
            made->top = top + title + y_title + PLOT_TITLE_GAP;
            made->bottom = made->top + height;
        }
        top += title + y_title + PLOT_TITLE_GAP + height + fmax(below, 0) + ROW_GAP;
    }
    layout->height = (int)ceil(top - ROW_GAP + PLOT_EDGE);
}

/* A title of up to three lines, next to the word that no simulated value is shown without. */
static double place_title(struct plot_layout *layout) {
    const char *title = layout->chart->title;
    double size = layout->format->title, line = LINE * size;
    double room = layout->width - 2 * PLOT_EDGE;
    double word = layout->chart->simulated ? plot_text_width("simulated", size) + 2 * size : 0;
    if (!layout->format->titled || !has_text(title))
        return layout->chart->simulated ? PLOT_EDGE + line : PLOT_EDGE;
    while (*title && layout->title_lines < 3) {
        size_t length = strlen(title), end = length;
        double fits = layout->title_lines == 0 ? room - word : room;
        const char *part = title;
        while (end > 0 && plot_text_width(part, size) > fits) {
            while (end > 0 && title[--end] != ' ')
                ;
            part = lab_arena_strndup(layout->arena, title, end);
        }
        bool whole = end == 0 || layout->title_lines == 2;
        part = whole ? plot_text_cut(title, size, fits, layout->arena) : part;
        layout->title[layout->title_lines++] = part;
        title += whole ? length : end + (title[end] == ' ');
    }
    return PLOT_EDGE + layout->title_lines * line;
}

void plot_layout_make(const struct lab_chart *chart, const struct plot_format *format,
                      struct lab_arena *arena, struct plot_layout *ret) {
    *ret = (struct plot_layout){
        .chart = chart, .format = format, .arena = arena, .width = format->width};
    ret->panels = lab_arena_alloc(arena, (size_t)chart->panel_count + 1, sizeof *ret->panels);
    for (int p = 0; p < chart->panel_count; p++) {
        ret->panels[p].panel = &chart->panels[p];
        describe(ret, &ret->panels[p]);
    }
    collect_keys(ret);
    choose_columns(ret);
    double top = place_keys(ret, place_title(ret) + 2);
    if (chart->panel_count > 0 && chart->panels[0].heat) {
        ret->heat_x = PLOT_EDGE;
        ret->heat_y = top + format->small;
        bool notes = ret->heat_open || ret->heat_bounds;
        top += (notes ? 2 : 1) * LINE * format->small + (notes ? 15 : 8);
    }
    place_columns(ret);
    place_rows(ret, top);
    plot_find_overlaps(ret);
}
