/*
 * plot_series.c: a panel's data as marks. What lies outside of the axes is cut there; a long line
 * keeps the extremes of every pixel, and its gaps.
 */
#include "plot/plot_internal.h"

#include "base/list.h"

#include <math.h>
#include <string.h>

#define BAR_SHARE 0.8 /* of the distance between neighbours that bars fill */
#define BOX_SHARE 0.7
#define WIDEST    56   /* pixels of a bar */
#define BUCKET    1.5  /* pixels along x of which a line keeps two points */
#define BAND      0.2  /* opacity of an interval */
#define SIGN      3.5  /* pixels, radius */
#define LINES     1.25 /* from one upright value to the next, in sizes of its letters */
#define CAP       3    /* of a whisker, to each side */
#define NO_POINTS 2000 /* more than these of a series are drawn without texts under the pointer */

struct drawing {
    struct plot_scene *scene;
    const struct plot_layout *layout;
    const struct plot_panel *made;
    const struct lab_chart_series *series;
    enum lab_colour colour;
    int look, number; /* of its colour; in the panel */
};

bool plot_has_values(const struct lab_chart_panel *panel) {
    for (int i = 0; panel->heat && i < panel->x.name_count * panel->y.name_count; i++)
        if (isfinite(panel->heat->values[i]))
            return true;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *series = &panel->series[s];
        const double *values = series->y ? series->y : series->low;
        for (size_t i = 0; i < series->count; i++)
            if (values && isfinite(values[i]))
                return true;
    }
    return false;
}

/* --- places --- */

static double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

static double at_x(const struct drawing *d, double x) {
    const struct plot_panel *made = d->made;
    return made->left + plot_axis_share(&made->x, x) * (made->right - made->left);
}

/* Within the area; NaN stays NaN. */
static double at_y(const struct drawing *d, double y) {
    const struct plot_panel *made = d->made;
    double share = made->y.log && y <= 0 ? 0 : plot_axis_share(&made->y, y);
    return made->bottom - clamp(share, 0, 1) * (made->bottom - made->top);
}

static double value_of(const double *values, size_t i) {
    return values ? values[i] : (double)NAN;
}

static void add_rect(const struct drawing *d, double x0, double y0, double x1, double y1,
                     const char *text) {
    plot_add_rect(d->scene, fmin(x0, x1), fmin(y0, y1), fabs(x1 - x0), fabs(y1 - y0), d->colour)
        ->text = text;
}

/* --- texts --- */

/* "GPU 0, Batch size 64: 12.1 [11.8, 12.4] GB/s" */
static const char *describe(const struct drawing *d, size_t i) {
    const struct lab_chart_series *series = d->series;
    const struct lab_chart_axis *axis = &d->made->panel->x;
    if (series->count > NO_POINTS)
        return NULL;
    struct plot_unit of_x = plot_unit_of(axis->title, d->scene->arena),
                     of_y = plot_unit_of(d->made->panel->y.title, d->scene->arena);
    LAB_AUTO(str, text);
    if (series->title)
        lab_str_printf(&text, "%s, ", series->title);
    int index = (int)series->x[i];
    if (axis->names && index >= 0 && index < axis->name_count)
        lab_str_add(&text, axis->names[index]);
    else
        lab_str_printf(&text, "%s%.5g%s", of_x.before, series->x[i], of_x.after);
    lab_str_printf(&text, ": %.4g", value_of(series->y, i));
    if (isfinite(value_of(series->low, i)) && isfinite(value_of(series->high, i)))
        lab_str_printf(&text, " [%.4g, %.4g]", series->low[i], series->high[i]);
    lab_str_add(&text, of_y.after);
    return lab_arena_strdup(d->scene->arena, text.text);
}

/* --- lines --- */

struct path {
    double *points;
    int count;
};

static struct path path_of(const struct drawing *d, size_t points) {
    return (struct path){lab_arena_alloc(d->scene->arena, 2 * points + 2, sizeof(double)), 0};
}

static void add_point(struct path *path, double x, double y) {
    double *point = path->points + (ptrdiff_t)2 * path->count++;
    point[0] = x;
    point[1] = y;
}

/* Of the points [from, until), which lie within a bucket: the uppermost and the lowest. */
static void add_bucket(struct path *path, const double *xy, size_t from, size_t until) {
    size_t low = from, high = from;
    for (size_t i = from; i < until; i++) {
        low = xy[2 * i + 1] > xy[2 * low + 1] ? i : low;
        high = xy[2 * i + 1] < xy[2 * high + 1] ? i : high;
    }
    size_t first = low < high ? low : high, second = low < high ? high : low;
    add_point(path, xy[2 * first], xy[2 * first + 1]);
    if (second != first)
        add_point(path, xy[2 * second], xy[2 * second + 1]);
}

/* A line needs two ends: one value between gaps is a short one. */
static struct path show_single(const struct drawing *d, const struct path *path) {
    struct path shown = path_of(d, 2 * (size_t)path->count);
    for (ptrdiff_t i = 0; i < path->count; i++) {
        double x = path->points[2 * i], y = path->points[2 * i + 1];
        bool single = (i == 0 || isnan(path->points[2 * i - 2])) &&
                      (i + 1 == path->count || isnan(path->points[2 * i + 2]));
        if (single && !isnan(x))
            add_point(&shown, x - SIGN, y);
        add_point(&shown, single ? x + SIGN : x, y);
    }
    return shown;
}

static struct path thin(const struct drawing *d, const double *xy, size_t count) {
    struct path path = path_of(d, count);
    for (size_t i = 0; i < count;) {
        size_t from = i;
        if (isnan(xy[2 * i + 1]) || isnan(xy[2 * i])) {
            if (path.count > 0 && !isnan(path.points[2 * path.count - 1]))
                add_point(&path, NAN, NAN);
            i++;
            continue;
        }
        for (; i < count && xy[2 * i] - xy[2 * from] < BUCKET && !isnan(xy[2 * i + 1]);)
            i++;
        add_bucket(&path, xy, from, i > from ? i : from + 1);
        i = i > from ? i : from + 1;
    }
    return show_single(d, &path);
}

/* What lies beyond an end of x is a gap. */
static double *project(const struct drawing *d, const double *values) {
    const struct lab_chart_series *series = d->series;
    double *xy = lab_arena_alloc(d->scene->arena, 2 * series->count + 2, sizeof *xy);
    for (size_t i = 0; i < series->count; i++) {
        double x = at_x(d, series->x[i]);
        bool inside = x >= d->made->left - 0.5 && x <= d->made->right + 0.5;
        xy[2 * i] = inside ? x : (double)NAN;
        double value = value_of(values, i); /* only intervals may have no end */
        xy[2 * i + 1] = at_y(d, values == series->y && isinf(value) ? (double)NAN : value);
    }
    return xy;
}

/* Whether what was measured stands on that line of the same name. */
static bool joins_points(const struct drawing *d) {
    const struct lab_chart_panel *panel = d->made->panel;
    for (int s = 0; s < panel->series_count; s++)
        if (panel->series[s].mark == LAB_CHART_POINTS &&
            lab_str_equal(panel->series[s].title, d->series->title))
            return true;
    return false;
}

static void add_line(const struct drawing *d) {
    struct path path = thin(d, project(d, d->series->y), d->series->count);
    bool dashes = d->series->mark == LAB_CHART_DASHES;
    if (path.count == 0)
        return;
    struct plot_mark *line = plot_add_path(d->scene, PLOT_LINE, path.points, path.count, d->colour);
    line->width = d->series->count > 500 ? 1 : 1.8;
    line->dash = dashes ? 1 : d->look / LAB_COLOUR_CATEGORIES;
    int key = LAB_FIND(d->layout->keys, d->layout->key_count, title, d->series->title);
    line->beneath = key < 0 ? d->made->beneath[d->number] : d->layout->keys[key].beneath;
    line->series = !dashes || !joins_points(d);
}

/* From low to high, a polygon for each stretch without a gap. */
static void add_band(const struct drawing *d) {
    const struct lab_chart_series *series = d->series;
    double *low = project(d, series->low), *high = project(d, series->high);
    struct path path = path_of(d, 3 * series->count + 2);
    for (size_t i = 0; i < series->count;) {
        size_t from = i;
        while (i < series->count && isfinite(low[2 * i + 1]) && isfinite(high[2 * i + 1]) &&
               isfinite(low[2 * i]))
            i++;
        if (i - from > 1) {
            for (size_t k = from; k < i; k++)
                add_point(&path, low[2 * k], low[2 * k + 1]);
            for (size_t k = i; k-- > from;)
                add_point(&path, high[2 * k], high[2 * k + 1]);
            add_point(&path, NAN, NAN);
        }
        i = i > from ? i : i + 1;
    }
    if (path.count > 0)
        plot_add_path(d->scene, PLOT_AREA, path.points, path.count, d->colour)->opacity = BAND;
}

/* --- points --- */

/* Adds to a path, which draw_whiskers draws; `x` is a pixel. */
static void add_whisker(const struct drawing *d, struct path *path, double x, double low,
                        double high) {
    if (!isfinite(low) || !isfinite(high))
        return;
    double y0 = at_y(d, low), y1 = at_y(d, high); /* cut at the edge, it has no end */
    /* an arrow's head lies within the chart */
    double head0 = low < d->made->y.low ? 4 : 0, head1 = high > d->made->y.high ? 4 : 0;
    const double points[] = {
        x - CAP, y0 - head0, x, y0, x + CAP, y0 - head0, NAN, NAN, x, y0, x, y1, NAN, NAN,
        x - CAP, y1 + head1, x, y1, x + CAP, y1 + head1, NAN, NAN};
    for (size_t i = 0; i < sizeof points / sizeof *points; i += 2)
        add_point(path, points[i], points[i + 1]);
}

static struct path whiskers_of(const struct drawing *d) {
    return path_of(d, 11 * d->series->count);
}

static void draw_whiskers(const struct drawing *d, const struct path *path,
                          enum lab_colour colour) {
    if (path->count > 0)
        plot_add_path(d->scene, PLOT_LINE, path->points, path->count, colour)->width = 1.2;
}

/* Where the intervals are a band: one that no neighbour continues, and one that leaves the area. */
static bool needs_whisker(const struct drawing *d, size_t i) {
    const struct lab_chart_series *series = d->series;
    bool before = i > 0 && isfinite(series->high[i - 1] - series->low[i - 1]),
         after = i + 1 < series->count && isfinite(series->high[i + 1] - series->low[i + 1]);
    return (!before && !after) || series->low[i] < d->made->y.low ||
           series->high[i] > d->made->y.high;
}

static void add_points(const struct drawing *d, double moved, bool band) {
    const struct lab_chart_series *series = d->series;
    struct path path = whiskers_of(d);
    double size = series->count > 60 ? 2 : SIGN;
    for (size_t i = 0; plot_has_whiskers(series) && i < series->count; i++)
        if ((!band || needs_whisker(d, i)) &&
            fabs(at_y(d, series->high[i]) - at_y(d, series->low[i])) >= 2 * size)
            add_whisker(d, &path, at_x(d, series->x[i] + moved), series->low[i], series->high[i]);
    draw_whiskers(d, &path, d->colour);
    for (size_t i = 0; i < series->count; i++) {
        double x = at_x(d, series->x[i] + moved), y = at_y(d, value_of(series->y, i));
        if (!(x >= d->made->left - 1 && x <= d->made->right + 1) ||
            !isfinite(value_of(series->y, i)))
            continue;
        plot_add_sign(d->scene, x, y, size, d->look)->text = describe(d, i);
    }
}

/* Intervals of a curve are a band; of single points, and of categories, whiskers. */
static void add_curve(const struct drawing *d) {
    bool band = plot_has_band(d->made->panel, d->series);
    if (band)
        add_band(d);
    add_line(d);
    add_points(d, 0, band);
}

/* --- bars and boxes --- */

static double moved_by(int at, int count, double width) {
    return (at - (count - 1) / 2.0) * width;
}

/* How wide each of so many is that share the distance to their neighbours: few aren't drawn as
 * walls. */
static double share_of(const struct plot_panel *made, double share, int count) {
    double most = WIDEST * (made->x.high - made->x.low) / (made->right - made->left);
    return fmin(share * made->step / (count ? count : 1), most);
}

/* A text's middle: beyond the level that would cross it, of a limit that is drawn as dashes. */
static double clear_of_levels(const struct drawing *d, double y, bool up, double size) {
    const struct lab_chart_panel *panel = d->made->panel;
    for (int s = 0; s < panel->series_count; s++) {
        const struct lab_chart_series *level = &panel->series[s];
        if (level->mark != LAB_CHART_DASHES || level->count == 0 ||
            level->y[0] != level->y[level->count - 1])
            continue;
        double at = at_y(d, level->y[0]), reach = 0.5 * size + 2;
        double moved = up ? at - reach : at + reach;
        if (fabs(at - y) < reach && moved - reach > d->made->top && moved + reach < d->made->bottom)
            return moved;
    }
    return y;
}

/* Where an upright text begins: above levels that would cross it, where there is room. */
static double above_levels(const struct drawing *d, double y, double width) {
    const struct lab_chart_panel *panel = d->made->panel;
    double begin = y;
    for (int pass = 0; pass < panel->series_count; pass++)
        for (int s = 0; s < panel->series_count; s++) {
            const struct lab_chart_series *level = &panel->series[s];
            if (level->mark != LAB_CHART_DASHES || level->count == 0 ||
                level->y[0] != level->y[level->count - 1])
                continue;
            double at = at_y(d, level->y[0]);
            if (at < begin + 2 && at > begin - width - 2)
                begin = at - 3;
        }
    return begin - width < d->made->top ? y : begin;
}

/* In as many decimals as the axis asks for; two digits of what these would round off. */
static void write_value(double value, double most, char text[PLOT_TIC_BYTES]) {
    int decimals = most < 10 ? 2 : most < 200 ? 1 : 0;
    double step = pow(10, -decimals), size = fabs(value);
    if (decimals == 2 && size >= 0.01 * step && size < 10 * step)
        snprintf(text, PLOT_TIC_BYTES, "%.2g", value);
    else
        snprintf(text, PLOT_TIC_BYTES, "%.*f", decimals,
                 size < 0.5 * step ? 0 : value); /* never "-0.0" */
}

/* The value at the bar's end: along it where that is wide enough, else upright, else not. Next to a
 * whisker where there is room: at the whisker's end it would look like that end's value. */
static void add_value(const struct drawing *d, size_t i, double x, double slot, double base) {
    const struct lab_chart_series *series = d->series;
    double size = d->layout->format->small, value = series->y[i];
    char text[PLOT_TIC_BYTES];
    if (!series->valued)
        return;
    double most = fmax(fabs(d->made->y.low), fabs(d->made->y.high));
    write_value(value, most, text);
    double width = plot_text_width(text, size), end = at_y(d, value);
    double far = value_of(value < 0 ? series->low : series->high, i);
    bool whisker = plot_has_whiskers(series) && isfinite(far);
    char longest[PLOT_TIC_BYTES]; /* of the panel: all of its values stand alike */
    write_value(d->made->y.low < 0 ? -most : most, most, longest);
    if (whisker && plot_text_width(longest, size) + 4 <= slot / 2)
        x += width / 2 + 4;
    else if (whisker)
        end = value < 0 ? fmax(end, at_y(d, far)) : fmin(end, at_y(d, far));
    bool upright = width > slot - 5; /* closer, neighbours read as one number */
    bool up = end <= base;
    double need = (upright ? width : size) + 4;
    if (slot < (upright ? LINES : 0.85) * size)
        return;
    if (up ? end - need < d->made->top - 2 : end + need > d->made->bottom + 2) {
        if (end != at_y(d, value)) /* next to a whisker that leaves the chart */
            x += width / 2 + 4;
        end = at_y(d, value);
        if (upright || (up ? end - need < d->made->top : end + need > d->made->bottom))
            return;
    }
    double y = end + (up ? -1 : 1) * (upright ? 3 : size * 0.5 + 3);
    if (upright && up)
        y = above_levels(d, y, width);
    plot_scene_add(d->scene, (struct plot_mark){.kind = PLOT_TEXT,
                                                .x = x,
                                                .y = upright ? y : clear_of_levels(d, y, up, size),
                                                .size = size,
                                                .anchor = !upright ? PLOT_MIDDLE
                                                          : up     ? PLOT_START
                                                                   : PLOT_STOP,
                                                .angle = upright ? 90 : 0,
                                                .colour = LAB_COLOUR_INK,
                                                .text = lab_arena_strdup(d->scene->arena, text)});
}

static void add_bars(const struct drawing *d, double moved, double width) {
    const struct lab_chart_series *series = d->series;
    double base = at_y(d, d->made->y.log ? d->made->y.low : 0);
    struct path whiskers = whiskers_of(d);
    for (size_t i = 0; i < series->count; i++) {
        double x0 = at_x(d, series->x[i] + moved - width / 2),
               x1 = at_x(d, series->x[i] + moved + width / 2);
        if (!isfinite(series->y[i]))
            continue;
        add_rect(d, x0 + 0.5, base, x1 - 0.5, at_y(d, series->y[i]), describe(d, i));
        if (plot_has_whiskers(series))
            add_whisker(d, &whiskers, (x0 + x1) / 2, series->low[i], series->high[i]);
        add_value(d, i, (x0 + x1) / 2, x1 - x0, base);
    }
    draw_whiskers(d, &whiskers, LAB_COLOUR_INK);
}

/* Above the last part, where its series is valued: what all parts are together. */
static void add_total(const struct drawing *d, double x, double slot, double total) {
    const struct lab_chart_panel *panel = d->made->panel;
    double size = d->layout->format->small, most = d->made->y.high;
    char text[PLOT_TIC_BYTES];
    for (int s = d->number + 1; s < panel->series_count; s++)
        if (panel->series[s].mark == LAB_CHART_STACK)
            return;
    write_value(total, most, text);
    bool upright = plot_text_width(text, size) > slot;
    double end = at_y(d, total), need = (upright ? plot_text_width(text, size) : size) + 4;
    if (!d->series->valued || slot < LINES * size || end - need < d->made->top - 2)
        return;
    plot_scene_add(d->scene, (struct plot_mark){.kind = PLOT_TEXT,
                                                .x = x,
                                                .y = end - (upright ? 3 : size * 0.5 + 3),
                                                .size = size,
                                                .anchor = upright ? PLOT_START : PLOT_MIDDLE,
                                                .angle = upright ? 90 : 0,
                                                .colour = LAB_COLOUR_INK,
                                                .text = lab_arena_strdup(d->scene->arena, text)});
}

/* On the sum of the series before it at the same x. */
static void add_stack(const struct drawing *d, double width) {
    const struct lab_chart_panel *panel = d->made->panel;
    for (size_t i = 0; i < d->series->count; i++) {
        double below = 0, x = d->series->x[i], value = d->series->y[i];
        for (int s = 0; s < d->number; s++)
            for (size_t k = 0; k < panel->series[s].count; k++)
                if (panel->series[s].mark == LAB_CHART_STACK && panel->series[s].x[k] == x &&
                    isfinite(panel->series[s].y[k]))
                    below += panel->series[s].y[k];
        if (isfinite(value))
            add_rect(d, at_x(d, x - width / 2), at_y(d, below), at_x(d, x + width / 2),
                     at_y(d, below + value), describe(d, i));
        if (isfinite(value))
            add_total(d, at_x(d, x), at_x(d, x + width) - at_x(d, x), below + value);
    }
}

static void add_boxes(const struct drawing *d, double moved, double width) {
    const struct lab_chart_series *series = d->series;
    struct path whiskers = whiskers_of(d);
    for (size_t i = 0; i < series->count; i++)
        if (isfinite(value_of(series->y, i)))
            add_whisker(d, &whiskers, at_x(d, series->x[i] + moved), value_of(series->least, i),
                        value_of(series->most, i));
    draw_whiskers(d, &whiskers, d->colour);
    for (size_t i = 0; i < series->count; i++) {
        double x0 = at_x(d, series->x[i] + moved - width / 2),
               x1 = at_x(d, series->x[i] + moved + width / 2);
        double y = at_y(d, value_of(series->y, i));
        if (!isfinite(value_of(series->y, i)))
            continue;
        add_rect(d, x0, at_y(d, series->low[i]), x1, at_y(d, series->high[i]), describe(d, i));
        const double line[] = {x0, y, x1, y};
        plot_add_path(d->scene, PLOT_LINE, lab_arena_copy(d->scene->arena, line, 4, sizeof *line),
                      2, LAB_COLOUR_GROUND)
            ->width = 1.5;
    }
}

/* --- rows of readings --- */

struct level {
    double from, until, height;
};

static const char *describe_row(const struct drawing *d) {
    double sum = 0, most = NAN, count = 0;
    for (size_t i = 0; i < d->series->count; i++)
        if (isfinite(d->series->y[i])) {
            sum += d->series->y[i];
            most = fmax(most, d->series->y[i]);
            count++;
        }
    struct plot_unit unit = plot_unit_of(d->made->panel->y.title, d->scene->arena);
    return lab_arena_printf(d->scene->arena, "%s: mean %.3g%s, peak %.3g%s",
                            d->series->title ? d->series->title : "", count ? sum / count : NAN,
                            unit.after, most, unit.after);
}

/* A reading holds until the next. The most of each bucket of pixels, in halves of them: neighbours
 * that look alike are one. */
static int make_levels(const struct drawing *d, double room, struct level *levels) {
    const struct lab_chart_series *series = d->series;
    int count = 0;
    for (size_t i = 0; i < series->count; i++) {
        double x = at_x(d, series->x[i]), next = x + 1;
        if (!isfinite(series->y[i]) || !isfinite(x))
            continue;
        if (i + 1 < series->count && isfinite(series->y[i + 1]))
            next = at_x(d, series->x[i + 1]);
        else if (i > 0 &&
                 isfinite(series->y[i - 1])) /* the last before a pause: as the one before */
            next = fmax(next, 2 * x - at_x(d, series->x[i - 1]));
        double share = d->made->row_high > 0 ? series->y[i] / d->made->row_high : 0;
        double height = round(2 * clamp(share, 0, 1) * room) / 2;
        struct level *last = count > 0 ? &levels[count - 1] : NULL;
        bool follows = last && x <= last->until + 0.5;
        if (follows && last->height == height) {
            last->until = fmax(last->until, next);
        } else if (follows && next - last->from < BUCKET) {
            last->until = fmax(last->until, next);
            last->height = fmax(last->height, height);
        } else {
            levels[count++] = (struct level){follows ? last->until : x, next, height};
        }
    }
    return count;
}

static void add_row(const struct drawing *d) {
    const struct plot_panel *made = d->made;
    double each = (made->bottom - made->top) / fmax(made->panel->y.name_count, 1);
    double base = made->top + (d->number + 1) * each - 1;
    struct level *levels = lab_arena_alloc(d->scene->arena, d->series->count + 1, sizeof *levels);
    int count = make_levels(d, each - 3, levels);
    struct path path = path_of(d, 5 * (size_t)count + 1);
    for (int i = 0; i < count; i++) {
        bool first = i == 0 || levels[i].from > levels[i - 1].until + 0.5;
        bool last = i + 1 == count || levels[i + 1].from > levels[i].until + 0.5;
        double y = base - fmax(levels[i].height, 0.5);
        if (first)
            add_point(&path, levels[i].from, base);
        add_point(&path, levels[i].from, y);
        add_point(&path, fmin(levels[i].until, made->right), y);
        if (last) {
            add_point(&path, fmin(levels[i].until, made->right), base);
            add_point(&path, NAN, NAN);
        }
    }
    if (path.count > 0)
        plot_add_path(d->scene, PLOT_AREA, path.points, path.count, d->colour)->text =
            describe_row(d);
}

/* --- all --- */

/* Among bars, of the series with that number in its panel. */
static int bar_number(const struct plot_panel *made, int series) {
    int number = 0;
    for (int s = 0; s < series; s++)
        number += made->panel->series[s].mark == LAB_CHART_BARS;
    return number;
}

static void add_one(const struct drawing *d, int *bar, int *box, int *dodged) {
    const struct plot_panel *made = d->made;
    double bars = share_of(made, BAR_SHARE, made->bars),
           boxes = share_of(made, BOX_SHARE, made->boxes);
    switch (d->series->mark) {
    case LAB_CHART_BARS:
        add_bars(d, moved_by((*bar)++, made->bars, bars), bars);
        break;
    case LAB_CHART_BOXES:
        add_boxes(d, moved_by((*box)++, made->boxes, boxes), 0.85 * boxes);
        break;
    case LAB_CHART_STACK:
        add_stack(d, share_of(made, BAR_SHARE, 1));
        break;
    case LAB_CHART_POINTS:
        add_points(d,
                   d->series->on ? moved_by(bar_number(made, d->series->on - 1), made->bars, bars)
                   : made->dodged
                       ? moved_by((*dodged)++, made->dodged, fmin(0.14, 0.7 / made->dodged))
                       : 0,
                   false);
        break;
    case LAB_CHART_LINE_POINTS:
        add_curve(d);
        break;
    case LAB_CHART_BAND:
        add_band(d);
        break;
    case LAB_CHART_ROW:
        add_row(d);
        break;
    default:
        add_line(d);
    }
}

void plot_add_series(struct plot_scene *scene, const struct plot_layout *layout,
                     const struct plot_panel *made) {
    int bar = 0, box = 0, dodged = 0;
    for (int s = 0; s < made->panel->series_count; s++) {
        int look = plot_series_look(layout, made->panel, s);
        struct drawing d = {.scene = scene,
                            .layout = layout,
                            .made = made,
                            .series = &made->panel->series[s],
                            .colour = LAB_COLOUR_C0 + look % LAB_COLOUR_CATEGORIES,
                            .look = look,
                            .number = s};
        plot_scene_add(scene, (struct plot_mark){.kind = PLOT_GROUP,
                                                 .text = d.series->title,
                                                 .series = LAB_FIND(layout->keys, layout->key_count,
                                                                    title, d.series->title)});
        add_one(&d, &bar, &box, &dodged);
        plot_scene_add(scene, (struct plot_mark){.kind = PLOT_END});
    }
}
