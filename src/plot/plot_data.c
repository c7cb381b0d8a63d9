/*
 * plot_data.c: a chart's figures as gnuplot reads them: a block for each series, with a line before
 * it that says what it is. Long series keep their extremes alone: a picture has no room for more,
 * and a page that holds it none either.
 */
#include "plot/plot_internal.h"

#include <math.h>
#include <string.h>

static void add_number(struct lab_str *out, double value) {
    if (isfinite(value))
        lab_str_printf(out, " %.8g", value);
    else
        lab_str_add(out, " NaN");
}

/* Within gnuplot's quotes of data, where nothing can be escaped. */
static void add_word(struct lab_str *out, const char *text) {
    lab_str_add(out, " \"");
    for (const char *c = text; *c; c++)
        lab_str_add_bytes(out, (unsigned char)*c < ' ' ? " " : *c == '"' ? "'" : c, 1);
    lab_str_add(out, "\"");
}

static void add_comment(struct lab_str *out, int panel, const char *what, const char *text) {
    lab_str_printf(out, "# panel %d, %s ", panel + 1, what);
    for (const char *c = text ? text : "–"; *c; c++)
        lab_str_add_bytes(out, (unsigned char)*c < ' ' ? " " : c, 1);
    lab_str_add(out, "\n");
}

static void add_point(const struct lab_chart_series *series, size_t i, struct lab_str *out) {
    const double *columns[] = {series->x,    series->y,     series->low,
                               series->high, series->least, series->most};
    size_t count = series->least && series->most ? 6 : 4;
    for (size_t c = 0; c < count; c++)
        add_number(out, columns[c] ? columns[c][i] : (double)NAN);
    lab_str_add(out, "\n");
}

static double figure(const struct lab_chart_series *series, size_t i) {
    return series->y ? series->y[i] : series->high ? series->high[i] : (double)NAN;
}

/* First, least, most and last of a stretch, in their order. */
static void add_segment(const struct lab_chart_series *series, size_t from, size_t until,
                        struct lab_str *out) {
    size_t least = from, most = from;
    for (size_t i = from; i < until; i++) {
        double value = figure(series, i);
        if (isnan(figure(series, least)) || value < figure(series, least))
            least = i;
        if (isnan(figure(series, most)) || value > figure(series, most))
            most = i;
    }
    size_t kept[] = {from, least < most ? least : most, least < most ? most : least, until - 1};
    for (size_t k = 0; k < 4; k++)
        if (k == 0 || kept[k] > kept[k - 1])
            add_point(series, kept[k], out);
}

static void add_series(const struct lab_chart_series *series, size_t most, struct lab_str *out) {
    bool whole =
        series->count <= most || series->mark == LAB_CHART_BARS || series->mark == LAB_CHART_BOXES;
    size_t segments = most / 4;
    for (size_t i = 0; whole && i < series->count; i++)
        add_point(series, i, out);
    for (size_t k = 0; !whole && k < segments; k++)
        add_segment(series, series->count * k / segments, series->count * (k + 1) / segments, out);
    if (series->count == 0)
        lab_str_add(out, " NaN NaN NaN NaN NaN NaN\n"); /* a block without a line is none */
}

/* --- heat maps --- */

static void heat_range(const struct lab_chart_panel *panel, double *ret_low, double *ret_high) {
    const struct lab_chart_heat *heat = panel->heat;
    double low = NAN, high = NAN;
    for (int i = 0; i < panel->x.name_count * panel->y.name_count; i++) {
        low = fmin(low, heat->values[i]);
        high = fmax(high, heat->values[i]);
    }
    *ret_low = isfinite(heat->low) ? heat->low : low;
    *ret_high = isfinite(heat->high) ? heat->high : high;
}

void plot_heat_range(const struct lab_chart_panel *panel, double *ret_low, double *ret_high) {
    heat_range(panel, ret_low, ret_high);
    if (isnan(*ret_low) || isnan(*ret_high)) {
        *ret_low = 0;
        *ret_high = 1;
    }
    if (panel->heat->diverging) {
        double far = fmax(fabs(*ret_low), fabs(*ret_high));
        *ret_low = far > 0 ? -far : -1;
        *ret_high = far > 0 ? far : 1;
    }
    if (!(*ret_low < *ret_high))
        *ret_high = *ret_low + (*ret_low != 0 ? fabs(*ret_low) : 1);
}

static void add_heat(const struct lab_chart_panel *panel, struct lab_str *out) {
    const struct lab_chart_heat *heat = panel->heat;
    double low, high;
    plot_heat_range(panel, &low, &high);
    for (int y = 0; y < panel->y.name_count; y++)
        for (int x = 0; x < panel->x.name_count; x++) {
            int i = y * panel->x.name_count + x;
            double value = heat->values[i], share = (value - low) / (high - low);
            bool strong = heat->diverging ? fabs(share - 0.5) > 0.36 : share > 0.55;
            lab_str_printf(out, "%d %d", x, y);
            add_number(out, value);
            add_word(out, heat->texts && heat->texts[i] ? heat->texts[i] : "");
            lab_str_add(out, strong ? " 0xffffff\n" : " 0x212121\n"); /* no page changes these */
        }
    if (panel->x.name_count * panel->y.name_count == 0)
        lab_str_add(out, "NaN NaN NaN \"\" 0\n");
}

void lab_plot_data(const struct lab_chart *chart, struct lab_str *out) {
    size_t most = plot_points_most(chart);
    lab_str_printf(out, "# %s: x y low high least most, where there are any\n", chart->name);
    for (int p = 0; p < chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &chart->panels[p];
        if (panel->heat) {
            add_comment(out, p, "cells: x y value text colour; value is", panel->heat->title);
            add_heat(panel, out);
            lab_str_add(out, "\n\n");
        }
        for (int s = 0; s < panel->series_count; s++) {
            add_comment(out, p, "series", panel->series[s].title);
            add_series(&panel->series[s], most, out);
            lab_str_add(out, "\n\n");
        }
    }
}
