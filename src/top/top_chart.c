/*
 * top_chart.c: one or two metrics over time. A cell holds 2 × 4 dots of braille; where only ASCII
 * can be shown, a sign for each column. The second line is dotted, so that it differs without
 * colour.
 */
#include "top/top_internal.h"

#include <math.h>

#define GUTTER 6 /* "100%│" and a space before it */

struct plot {
    const struct lab_top_history *history;
    const struct lab_top_view *view;
    const struct top_entity *entity;
    struct lab_top_grid *grid;
    int row, column, width, height; /* of the drawing itself */
    double most;
};

/* The points of a line; NULL where it has none. */
static const struct top_column *charted(const struct top_entity *entity,
                                        const struct top_chart *chart, int line) {
    return chart->lines[line].label
               ? top_charted(entity, chart->lines[line].metric, chart->node_from_1 - 1)
               : NULL;
}

bool top_chart_has_data(const struct top_entity *entity, const struct top_chart *chart) {
    return charted(entity, chart, 0) || charted(entity, chart, 1);
}

/* --- values --- */

static const char *unit_of(char letter) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i][0] == letter)
            return units[i];
    return "B";
}

/* Of whole numbers: behind a value, and at the axis. */
static const char *const whole_units[][2] = {[TOP_CHART_POWER] = {" W", "W"},
                                             [TOP_CHART_HEAT] = {"°C", "°"},
                                             [TOP_CHART_CLOCK] = {" MHz", ""}};

static const char *value_text(const struct top_chart *chart, double value, char text[TOP_TEXT]) {
    char figure[TOP_TEXT];
    if (chart->scale == TOP_CHART_PERCENT)
        return top_percent(value, text);
    if (chart->scale == TOP_CHART_MEMORY)
        return top_size(value, text);
    if (chart->scale != TOP_CHART_RATE)
        return top_whole(value, whole_units[chart->scale][0], text);
    top_rate(value, figure);
    if (isnan(value) || value < 0.5)
        snprintf(text, TOP_TEXT, "%s", figure);
    else /* "2.5 GB/s" */
        snprintf(text, TOP_TEXT, "%.*s %s/s", (int)strlen(figure) - 1, figure,
                 unit_of(figure[strlen(figure) - 1]));
    return text;
}

/* What stands at the upper end of the axis, in four columns. */
static const char *axis_text(const struct top_chart *chart, double value, char text[TOP_TEXT]) {
    if (chart->scale == TOP_CHART_PERCENT)
        return top_percent(value, text);
    if (chart->scale == TOP_CHART_MEMORY)
        return top_size(value, text);
    if (chart->scale != TOP_CHART_RATE)
        return top_whole(value, whole_units[chart->scale][1], text);
    if (value >= 1e9)
        return top_whole(value * 1e-9, "G", text);
    return value >= 1e6 ? top_whole(value * 1e-6, "M", text) : top_whole(value * 1e-3, "k", text);
}

/* The point at `back` points before now; several of the history's where the view is zoomed out. */
static double point(const struct plot *plot, const struct top_column *column, int back) {
    int step = 1 << plot->view->zoom;
    double sum = 0;
    int count = 0;
    for (int i = 0; i < step; i++) {
        double value =
            top_point(plot->history, plot->entity, column, plot->view->now_ns, back * step + i);
        if (!isnan(value)) {
            sum += value;
            count++;
        }
    }
    return count ? sum / count : (double)NAN;
}

static double most_shown(const struct plot *plot, const struct top_chart *chart) {
    double most = 0;
    for (int i = 0; i < TOP_LINES; i++) {
        const struct top_column *column = charted(plot->entity, chart, i);
        for (int back = 0; column && back < 2 * plot->width; back++)
            most = fmax(most, point(plot, column, back));
    }
    return most;
}

/* The next of 1, 2, 5, 10, 20, … */
static double round_up(double value) {
    double step = pow(10, floor(log10(value)));
    return value <= step       ? step
           : value <= 2 * step ? 2 * step
           : value <= 5 * step ? 5 * step
                               : 10 * step;
}

static double upper_end(const struct plot *plot, const struct top_chart *chart, double limit) {
    double total;
    switch (chart->scale) {
    case TOP_CHART_PERCENT:
    case TOP_CHART_HEAT:
        return 100;
    case TOP_CHART_MEMORY:
        total = top_latest(plot->entity, LAB_METRIC_MEMORY_TOTAL, -1);
        if (isnan(total))
            total = top_latest(plot->entity, LAB_METRIC_HOST_TOTAL, -1);
        return isnan(total) ? fmax(most_shown(plot, chart), 1) : total;
    case TOP_CHART_POWER:
        return fmax(fmax(most_shown(plot, chart), limit), 1);
    case TOP_CHART_CLOCK:
        return fmax(100 * ceil(most_shown(plot, chart) / 100), 100);
    case TOP_CHART_RATE:
        break;
    }
    return round_up(fmax(most_shown(plot, chart), 1000));
}

/* --- drawing --- */

/* A code point of three bytes in UTF-8: braille's 0x2800 and the dots. */
void top_put_dots(struct lab_top_grid *grid, int row, int column, unsigned dots,
                  enum lab_top_style style) {
    char glyph[4] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)), 0};
    top_put(grid, row, column, 1, style, glyph);
}

unsigned top_dot(int x, int y) {
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    return bits[y % 4][x % 2];
}

static void draw_braille(struct plot *plot, const struct top_column *column, bool second,
                         uint8_t *dots) {
    int high = 4 * plot->height, before = -1;
    enum lab_top_style style = second ? LAB_TOP_SECOND : LAB_TOP_FIRST;
    for (int x = 0; x < 2 * plot->width; x++) {
        double value = point(plot, column, 2 * plot->width - 1 - x);
        if (isnan(value)) {
            before = -1;
            continue;
        }
        int y = (int)lround(fmin(fmax(value / plot->most, 0), 1) * (high - 1));
        int from = before < 0 || second ? y : before < y ? before + 1 : before > y ? before - 1 : y;
        before = y;
        if (second && x % 2)
            continue;
        for (int at = from < y ? from : y; at <= (from < y ? y : from); at++) {
            int cell_y = (high - 1 - at) / 4, cell_x = x / 2;
            uint8_t *cell = &dots[cell_y * plot->width + cell_x];
            *cell |= (uint8_t)top_dot(x, high - 1 - at);
            top_put_dots(plot->grid, plot->row + cell_y, plot->column + cell_x, *cell, style);
        }
    }
}

static void draw_ascii(struct plot *plot, const struct top_column *column, bool second) {
    for (int x = 0; x < plot->width; x++) {
        double newer = point(plot, column, 2 * (plot->width - 1 - x));
        double older = point(plot, column, 2 * (plot->width - 1 - x) + 1);
        double value = isnan(newer) ? older : isnan(older) ? newer : (newer + older) / 2;
        if (isnan(value))
            continue;
        int y = (int)lround(fmin(fmax(value / plot->most, 0), 1) * (plot->height - 1));
        top_put(plot->grid, plot->row + plot->height - 1 - y, plot->column + x, 1,
                second ? LAB_TOP_SECOND : LAB_TOP_FIRST, second ? "o" : "*");
    }
}

static void draw_axis(struct plot *plot, const struct top_chart *chart, double limit) {
    char text[TOP_TEXT];
    int axis = plot->column - 1;
    for (int y = 0; y < plot->height; y++)
        top_put(plot->grid, plot->row + y, axis, 1, LAB_TOP_DIM, "│");
    top_right(plot->grid, plot->row, plot->column - GUTTER, GUTTER - 1, LAB_TOP_DIM,
              axis_text(chart, plot->most, text));
    if (plot->height > 1)
        top_right(plot->grid, plot->row + plot->height - 1, plot->column - GUTTER, GUTTER - 1,
                  LAB_TOP_DIM, "0");
    if (isnan(limit))
        return;
    int y = plot->height - 1 - (int)(fmin(limit / plot->most, 1) * plot->height - 0.01);
    for (int x = 0; x < plot->width; x++)
        top_put(plot->grid, plot->row + (y < 0 ? 0 : y), plot->column + x, 1, LAB_TOP_DIM, "─");
}

static void draw_heading(struct plot *plot, const struct top_chart *chart, double limit, int row,
                         int column, int width) {
    char text[TOP_TEXT], reason[200];
    bool gap = top_gap(plot->history, plot->entity, plot->view->now_ns, reason, sizeof reason);
    int end = column + width;
    column = top_put(plot->grid, row, column, width, LAB_TOP_BOLD, chart->title) + 1;
    for (int i = 0; i < TOP_LINES; i++) {
        const struct top_line *line = &chart->lines[i];
        if (!charted(plot->entity, chart, i))
            continue;
        double value =
            gap ? (double)NAN : top_latest(plot->entity, line->metric, chart->node_from_1 - 1);
        enum lab_top_style style = i ? LAB_TOP_SECOND : LAB_TOP_FIRST;
        column = top_put(plot->grid, row, column, end - column, style, i ? "┅" : "━");
        if (*line->label)
            column =
                top_print(plot->grid, row, column, end - column, LAB_TOP_PLAIN, " %s", line->label);
        column = top_print(plot->grid, row, column, end - column, LAB_TOP_PLAIN, " %s",
                           value_text(chart, value, text)) +
                 1;
    }
    if (!isnan(limit))
        column = top_print(plot->grid, row, column, end - column, LAB_TOP_DIM, "%s %s",
                           chart->scale == TOP_CHART_POWER ? "─ limit" : "of",
                           value_text(chart, limit, text));
    double span_s =
        (double)(2 * plot->width << plot->view->zoom) * (double)plot->history->bucket_ns * 1e-9;
    char span[TOP_TEXT + 8];
    snprintf(span, sizeof span, "last %s", top_seconds(span_s, text));
    const char *shown = column + lab_str_columns(span) <= end ? span : text;
    if (column + lab_str_columns(shown) <= end)
        top_right(plot->grid, row, column, end - column, LAB_TOP_DIM, shown);
}

void top_draw_chart(const struct lab_top_history *history, const struct lab_top_view *view,
                    const struct top_entity *entity, const struct top_chart *chart, int row,
                    int column, int width, int height, struct lab_top_grid *grid) {
    struct plot plot = {history,         view,           entity,     grid, row + 1,
                        column + GUTTER, width - GUTTER, height - 1, 0};
    if (plot.width < 4 || plot.height < 1)
        return;
    double limit = chart->scale == TOP_CHART_POWER ? top_latest(entity, LAB_METRIC_POWER_LIMIT, -1)
                                                   : (double)NAN;
    plot.most = upper_end(&plot, chart, limit);
    draw_heading(&plot, chart, chart->scale == TOP_CHART_MEMORY ? plot.most : limit, row, column,
                 width);
    draw_axis(&plot, chart, limit);
    LAB_AUTO_FREE uint8_t *dots = lab_mem_alloc((size_t)plot.width * (size_t)plot.height, 1);
    for (int i = TOP_LINES - 1; i >= 0; i--) { /* the first on top */
        const struct top_column *past = charted(entity, chart, i);
        if (past && view->unicode)
            draw_braille(&plot, past, i > 0, dots);
        else if (past)
            draw_ascii(&plot, past, i > 0);
    }
}
