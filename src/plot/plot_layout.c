/*
 * plot_layout.c: how large a chart is and where its panels lie: from above to below the title, rows
 * of panels, the lowest of a column with the x axis that the others share; to the right of a panel
 * its key.
 */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

#define COLUMN_PIXELS 6.8 /* of a character, on average */
#define TIC_PIXELS    7.4 /* digits are wide */
#define TITLE_PIXELS  38
#define EDGE_PIXELS   14
#define LINE_PIXELS   17
#define SIGN_PIXELS   48 /* of the key: line and sign before the text */
#define COLOURS_WIDTH 96 /* of a heat map: bar, figures and title */

const char *const plot_shades[PLOT_SHADES] = {"#dfe9f3", "#f7ead2", "#e2efe2", "#efe2ee"};

void plot_cut(const char *text, int columns, struct lab_str *out) {
    int all = lab_str_columns(text);
    if (all <= columns) {
        lab_str_add(out, text);
        return;
    }
    int head = (columns - 1) * 2 / 3, tail = columns - 1 - head, at = 0;
    for (size_t i = 0, left = strlen(text), length; left > 0; i += length, left -= length, at++) {
        bool printable;
        length = lab_str_next(text + i, left, &printable);
        if (at < head || at >= all - tail)
            lab_str_add_bytes(out, text + i, length);
        else if (at == head)
            lab_str_add(out, "…");
    }
}

int plot_colour(const struct lab_chart_panel *panel, int series) {
    int next = 0;
    for (int s = 0; s < panel->series_count; s++) {
        if (panel->series[s].colour >= 0) {
            if (s == series)
                return panel->series[s].colour;
            continue;
        }
        bool taken = true;
        while (taken) {
            taken = false;
            for (int k = 0; k < panel->series_count; k++)
                taken |= panel->series[k].colour == next;
            next += taken;
        }
        if (s == series)
            return next;
        next++;
    }
    return 0;
}

bool plot_has_whiskers(const struct lab_chart_series *series) {
    return series->low && series->high &&
           (series->mark == LAB_CHART_POINTS || series->mark == LAB_CHART_LINE_POINTS ||
            series->mark == LAB_CHART_BARS);
}

#define POINTS_OF_CHART 16000
#define POINTS_MOST     2000
#define POINTS_LEAST    200

size_t plot_points_most(const struct lab_chart *chart) {
    size_t series = 1;
    for (int p = 0; p < chart->panel_count; p++)
        series += (size_t)chart->panels[p].series_count;
    size_t most = POINTS_OF_CHART / series;
    return most > POINTS_MOST ? POINTS_MOST : most < POINTS_LEAST ? POINTS_LEAST : most;
}

const char *plot_shade_title(const struct lab_chart_panel *panel, int colour) {
    const char *title = NULL;
    for (int i = 0; i < panel->shade_count; i++) {
        const struct lab_chart_shade *shade = &panel->shades[i];
        if (shade->colour != colour || !shade->title || !*shade->title)
            continue;
        if (title && strcmp(title, shade->title) != 0)
            return NULL;
        title = shade->title;
    }
    return title;
}

/* The least distance of two x at which bars stand, so that they don't touch. */
static double find_step(const struct lab_chart_panel *panel) {
    double step = NAN;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        if (series->mark != LAB_CHART_BARS && series->mark != LAB_CHART_BOXES)
            continue;
        for (size_t i = 1; i < series->count; i++) {
            double gap = fabs(series->x[i] - series->x[i - 1]);
            if (gap > 0)
                step = fmin(step, gap);
        }
    }
    return isnan(step) || panel->x.names ? 1 : step;
}

/* Whether points of two series stand at one place, and would hide each other. */
static bool share_places(const struct lab_chart_panel *panel) {
    for (int a = 0; a < panel->series_count; a++)
        for (int b = 0; b < a; b++) {
            const struct lab_chart_series *x = &panel->series[a], *y = &panel->series[b];
            if (x->mark != LAB_CHART_POINTS || y->mark != LAB_CHART_POINTS)
                continue;
            for (size_t i = 0; i < x->count; i++)
                for (size_t k = 0; k < y->count; k++)
                    if (x->x[i] == y->x[k] && isfinite(x->y[i]) && isfinite(y->y[k]))
                        return true;
        }
    return false;
}

/* --- keys --- */

/* Which colour the panel draws what is so called in; shades count below -1. -1 = it has none
 * such. */
static int colour_of(const struct lab_chart_panel *panel, const char *title) {
    for (int s = 0; s < panel->series_count; s++)
        if (lab_str_equal(panel->series[s].title, title))
            return plot_colour(panel, s);
    for (int c = 0; c < PLOT_SHADES; c++)
        if (lab_str_equal(plot_shade_title(panel, c), title))
            return -2 - c;
    return -1;
}

bool plot_in_key(const struct plot_layout *layout, const struct plot_panel *made,
                 const char *title) {
    if (!title || !*title)
        return false;
    for (const struct plot_panel *above = layout->panels; layout->columns == 1 && above < made;
         above++)
        if (colour_of(above->panel, title) == colour_of(made->panel, title))
            return false;
    return true;
}

static void count_entry(const struct plot_layout *layout, struct plot_panel *made,
                        const char *title) {
    if (!plot_in_key(layout, made, title))
        return;
    int columns = lab_str_columns(title);
    columns = columns > PLOT_KEY_MOST ? PLOT_KEY_MOST : columns;
    made->key_count++;
    made->key_columns = columns > made->key_columns ? columns : made->key_columns;
}

static void describe(const struct plot_layout *layout, struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        count_entry(layout, made, series->title);
        made->bars += series->mark == LAB_CHART_BARS;
        made->boxes += series->mark == LAB_CHART_BOXES;
        made->dodged += series->mark == LAB_CHART_POINTS && panel->x.names;
    }
    if (made->dodged && !share_places(panel))
        made->dodged = 0;
    for (int c = 0; c < PLOT_SHADES; c++)
        count_entry(layout, made, plot_shade_title(panel, c));
    made->step = find_step(panel);
}

/* Whether what has one title has one colour, wherever it is. */
static bool keys_agree(const struct plot_layout *layout) {
    for (int p = 0; p < layout->chart->panel_count; p++) {
        const struct lab_chart_panel *panel = layout->panels[p].panel;
        for (int s = 0; s < panel->series_count; s++)
            for (int q = 0; q < layout->chart->panel_count && panel->series[s].title; q++) {
                int colour = colour_of(layout->panels[q].panel, panel->series[s].title);
                if (colour != -1 && colour != plot_colour(panel, s))
                    return false;
            }
    }
    return true;
}

const struct lab_chart_series *plot_next_guest(const struct plot_layout *layout,
                                               const struct plot_panel *made, int *state,
                                               const struct lab_chart_panel **ret_panel) {
    int number = 0;
    if (made != layout->panels + layout->key_panel || layout->key_panel < 0)
        return NULL;
    for (int p = 0; p < layout->chart->panel_count; p++) {
        const struct lab_chart_panel *panel = layout->panels[p].panel;
        for (int s = 0; s < panel->series_count; s++, number++) {
            const char *title = panel->series[s].title;
            bool known = !title || !*title || colour_of(made->panel, title) != -1;
            for (int q = 0; q < p && !known; q++)
                known = colour_of(layout->panels[q].panel, title) != -1;
            if (known || number < *state)
                continue;
            *state = number + 1;
            *ret_panel = panel;
            return &panel->series[s];
        }
    }
    return NULL;
}

/* Beside each other, one key is enough where none contradicts another: at the end of the first
 * row. */
static void choose_keys(struct plot_layout *layout) {
    int count = layout->chart->panel_count, state = 0;
    const struct lab_chart_panel *panel;
    layout->key_panel = layout->columns > 1 && keys_agree(layout) ? layout->columns - 1 : -1;
    for (int p = 0; p < count; p++) {
        struct plot_panel *made = &layout->panels[p];
        const struct lab_chart_series *guest;
        while ((guest = plot_next_guest(layout, made, &state, &panel)))
            count_entry(layout, made, guest->title);
        made->with_key = made->key_count > 0 && (layout->key_panel < 0 || p == layout->key_panel);
    }
}

/* --- sizes --- */

static int area_height(const struct plot_layout *layout, const struct plot_panel *made) {
    const struct lab_chart_panel *panel = made->panel;
    int height = layout->columns > 1 ? 200 : layout->rows > 1 ? 150 : 340;
    if (panel->heat || panel->y.names) {
        int each = layout->rows * layout->columns > 1 ? 34 : 44;
        height = panel->y.name_count * each;
        height = height < 130 ? 130 : height > 900 ? 900 : height;
    }
    int key = made->with_key ? made->key_count * LINE_PIXELS : 0;
    return key > height ? key : height;
}

static int key_width(const struct plot_panel *made) {
    if (made->panel->heat)
        return COLOURS_WIDTH;
    return made->with_key ? SIGN_PIXELS + (int)(made->key_columns * COLUMN_PIXELS) + EDGE_PIXELS
                          : EDGE_PIXELS;
}

static int below(const struct plot_panel *made) {
    int texts =
        made->x.angle == 0
            ? 22
            : 14 + (int)(made->x.longest * COLUMN_PIXELS * sin(made->x.angle * 3.14159265 / 180));
    return texts + (made->panel->x.title && *made->panel->x.title ? 30 : 8);
}

static double length_of(const struct lab_chart_panel *panel) {
    struct plot_axis axis;
    plot_axis_make(&panel, 1, true, 300, &axis);
    return panel->x.log ? log(axis.high / axis.low) : axis.high - axis.low;
}

/* In a grid, panels are things of their own: one that would be a speck beside another isn't drawn
 * so. */
static bool shares_x(const struct plot_layout *layout, const struct lab_chart_panel *a,
                     const struct lab_chart_panel *b) {
    if (!lab_str_equal(a->x.title, b->x.title) || a->x.log != b->x.log ||
        a->x.names != b->x.names || !a->heat != !b->heat)
        return false;
    if (layout->columns == 1 || a->x.names)
        return true;
    double ratio = length_of(a) / length_of(b);
    return ratio > 0.4 && ratio < 2.5;
}

/* x of a column: one range for neighbours that share it, texts at the lowest of them. */
static void make_x_axes(struct plot_layout *layout, int column, int pixels) {
    const struct lab_chart_panel **group =
        lab_mem_alloc((size_t)layout->chart->panel_count, sizeof *group);
    int count = layout->chart->panel_count, step = layout->columns;
    for (int first = column; first < count;) {
        int members = 0, last = first;
        for (int p = first;
             p < count && shares_x(layout, layout->panels[first].panel, layout->panels[p].panel);
             p += step) {
            group[members++] = layout->panels[p].panel;
            last = p;
        }
        plot_axis_make(group, members, true, pixels, &layout->panels[first].x);
        for (int p = first; p <= last; p += step) {
            layout->panels[p].x = layout->panels[first].x;
            layout->panels[p].with_x = p == last;
        }
        first = last + step;
    }
    lab_mem_free(group);
}

/* How far to the left of the area the first slanted name of a column reaches. */
static int slanted_width(const struct plot_layout *layout, int column, int pixels) {
    int most = 0;
    for (int p = column; p < layout->chart->panel_count; p += layout->columns) {
        const struct lab_chart_panel *panel = layout->panels[p].panel;
        struct plot_axis axis;
        if (!panel->x.names || panel->x.name_count == 0)
            continue;
        plot_axis_make(&panel, 1, true, pixels, &axis);
        int reach = (int)(axis.longest * COLUMN_PIXELS * 0.77) - pixels / panel->x.name_count / 2;
        if (axis.angle == PLOT_SLANTED && reach + 8 > most)
            most = reach + 8;
    }
    return most;
}

static void place_columns(struct plot_layout *layout) {
    int columns = layout->columns, count = layout->chart->panel_count, left = 0;
    int each = columns == 1 ? 860 : columns == 2 ? 500 : columns == 3 ? 410 : 340;
    for (int c = 0; c < columns; c++) {
        int before = 0, behind = EDGE_PIXELS;
        for (int p = c; p < count; p += columns) {
            struct plot_panel *made = &layout->panels[p];
            const struct lab_chart_panel *panel = made->panel;
            plot_axis_make(&panel, 1, false, area_height(layout, made), &made->y);
            bool titled = panel->y.title && *panel->y.title;
            int own = 14 + (int)(made->y.longest * TIC_PIXELS) + (titled ? 32 : 0);
            before = own > before ? own : before;
            behind = key_width(made) > behind ? key_width(made) : behind;
        }
        before = before < 56 ? 56 : before;
        int texts = before, slanted = slanted_width(layout, c, each - before - behind);
        before = slanted > before ? slanted : before;
        int area = columns == 1 ? each - before - behind : each - before;
        area = area < 260 ? 260 : area;
        for (int p = c; p < count; p += columns) {
            layout->panels[p].edge = left + before - texts;
            layout->panels[p].left = left + before;
            layout->panels[p].right = left + before + area;
        }
        make_x_axes(layout, c, area);
        left += before + area + behind;
    }
    layout->width = left;
}

static void place_rows(struct plot_layout *layout) {
    int count = layout->chart->panel_count, columns = layout->columns;
    int top = layout->chart->title && *layout->chart->title ? TITLE_PIXELS : EDGE_PIXELS;
    for (int row = 0; row < layout->rows; row++) {
        int height = 0, under = EDGE_PIXELS, above = 8;
        for (int p = row * columns; p < count && p < (row + 1) * columns; p++) {
            struct plot_panel *made = &layout->panels[p];
            int own = area_height(layout, made);
            height = own > height ? own : height;
            made->under = below(made);
            under = made->with_x && made->under > under ? made->under : under;
            above = made->panel->title && *made->panel->title ? 26 : above;
        }
        for (int p = row * columns; p < count && p < (row + 1) * columns; p++) {
            layout->panels[p].top = top + above;
            layout->panels[p].bottom = top + above + height;
        }
        top += above + height + under;
    }
    layout->height = top + 6;
}

void plot_layout_make(const struct lab_chart *chart, struct plot_layout *ret) {
    int columns = chart->columns > 0 ? chart->columns : 1;
    columns = columns > chart->panel_count ? chart->panel_count : columns;
    *ret = (struct plot_layout){
        .chart = chart,
        .columns = columns > 0 ? columns : 1,
        .panels = lab_mem_alloc((size_t)chart->panel_count + 1, sizeof *ret->panels)};
    ret->rows = (chart->panel_count + ret->columns - 1) / ret->columns;
    for (int p = 0; p < chart->panel_count; p++)
        ret->panels[p].panel = &chart->panels[p];
    for (int p = 0; p < chart->panel_count; p++)
        describe(ret, &ret->panels[p]);
    choose_keys(ret);
    place_columns(ret);
    place_rows(ret);
}
