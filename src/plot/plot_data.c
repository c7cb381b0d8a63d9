/* plot_data.c: a chart's values as CSV, for other programs that draw. */
#include "plot/plot_internal.h"

#include "base/tty/safe_text.h"

#include <math.h>

static void add_text(struct lab_str *out, const char *text) {
    lab_safe_text_add_csv(out, text ? text : "", true);
}

static void add_value(struct lab_str *out, double value) {
    lab_str_add(out, ",");
    if (isfinite(value))
        lab_str_printf(out, "%.8g", value);
}

static void add_place(struct lab_str *out, const struct lab_chart_axis *axis, double at) {
    if (axis->names && at >= 0 && at < axis->name_count) {
        lab_str_add(out, ",");
        add_text(out, axis->names[(int)at]);
    } else {
        add_value(out, at);
    }
}

/* A band has no title: that of the line that it belongs to, which has its colour. */
static void add_name(const struct lab_chart_panel *panel, const struct lab_chart_series *series,
                     struct lab_str *out) {
    const char *title = series->title;
    for (int i = 0; i < panel->series_count && !title && series->mark == LAB_CHART_BAND; i++)
        if (panel->series[i].title && panel->series[i].colour == series->colour)
            title = panel->series[i].title;
    LAB_AUTO(str, name);
    lab_str_printf(&name, "%s%s", title ? title : "", title && !series->title ? " (band)" : "");
    add_text(out, name.text);
}

static void add_series(const struct lab_chart_panel *panel, const char *title, size_t number,
                       struct lab_str *out) {
    const struct lab_chart_series *series = &panel->series[number];
    for (size_t i = 0; i < series->count; i++) {
        add_text(out, title);
        lab_str_add(out, ",");
        add_name(panel, series, out);
        add_place(out, &panel->x, series->x[i]);
        const double *columns[] = {series->y, series->low, series->high};
        for (size_t c = 0; c < 3; c++)
            add_value(out, columns[c] ? columns[c][i] : (double)NAN);
        lab_str_add(out, "\n");
    }
}

static void add_heat(const struct lab_chart_panel *panel, struct lab_str *out) {
    for (int i = 0; i < panel->x.name_count * panel->y.name_count; i++) {
        add_text(out, panel->title);
        lab_str_add(out, ",");
        add_text(out, panel->y.names[i / panel->x.name_count]);
        add_place(out, &panel->x, i % panel->x.name_count);
        const double *columns[] = {panel->heat->values, panel->heat->low, panel->heat->high};
        for (size_t c = 0; c < 3; c++)
            add_value(out, columns[c] ? columns[c][i] : (double)NAN);
        lab_str_add(out, "\n");
    }
}

void lab_plot_data(const struct lab_chart *chart, struct lab_str *out) {
    lab_str_add(out, "panel,series,x,y,low,high\n");
    for (int p = 0; p < chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &chart->panels[p];
        const char *title = panel->title ? panel->title : panel->y.title;
        if (panel->heat)
            add_heat(panel, out);
        for (int s = 0; s < panel->series_count; s++)
            add_series(panel, title, (size_t)s, out);
    }
}
