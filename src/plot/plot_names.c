/* plot_names.c: names in a chart, shortened where they would be cut. */
#include "plot/plot_internal.h"

#include "base/names.h"

#include <string.h>

#define TITLE_MOST 44 /* columns of a panel's title that fit above it */

static void shorten_key(struct lab_chart_panel *panels, int count, struct lab_arena *arena) {
    int total = 0, at = 0;
    for (int p = 0; p < count; p++)
        total += panels[p].series_count;
    const char **titles = lab_arena_alloc(arena, (size_t)total + 1, sizeof *titles);
    for (int p = 0; p < count; p++)
        for (int s = 0; s < panels[p].series_count; s++)
            titles[at++] = panels[p].series[s].title;
    titles = lab_names_shorten(titles, total, PLOT_NAME_FITS, arena);
    at = 0;
    for (int p = 0; p < count; p++) {
        size_t series_count = (size_t)panels[p].series_count;
        struct lab_chart_series *series = lab_arena_alloc(arena, series_count + 1, sizeof *series);
        if (series_count > 0)
            memcpy(series, panels[p].series, series_count * sizeof *series);
        for (size_t s = 0; s < series_count; s++)
            series[s].title = titles[at++];
        panels[p].series = series;
    }
}

static const struct lab_chart_axis *axis_of(const struct lab_chart_panel *panel, bool of_x) {
    return of_x ? &panel->x : &panel->y;
}

/* Panels that share their names before share them afterwards: that is how axes are known to
 * agree. */
static const char *const *find_shortened(const struct lab_chart *chart,
                                         const struct lab_chart_panel *panels, int at, bool of_x,
                                         struct lab_arena *arena) {
    const struct lab_chart_axis *axis = axis_of(&panels[at], of_x);
    for (int p = 0; p < at; p++)
        if (axis_of(&chart->panels[p], of_x)->names == axis->names &&
            axis_of(&chart->panels[p], of_x)->name_count == axis->name_count)
            return axis_of(&panels[p], of_x)->names;
    return lab_names_shorten(axis->names, axis->name_count, PLOT_NAME_FITS, arena);
}

struct lab_chart plot_shorten(const struct lab_chart *chart, struct lab_arena *arena) {
    size_t count = (size_t)chart->panel_count;
    struct lab_chart shortened = *chart;
    struct lab_chart_panel *panels = lab_arena_alloc(arena, count + 1, sizeof *panels);
    const char **titles = lab_arena_alloc(arena, count + 1, sizeof *titles);
    if (count > 0)
        memcpy(panels, chart->panels, count * sizeof *panels);
    shorten_key(panels, chart->panel_count, arena);
    for (size_t p = 0; p < count; p++) {
        if (panels[p].x.names)
            panels[p].x.names = find_shortened(chart, panels, (int)p, true, arena);
        if (panels[p].y.names)
            panels[p].y.names = find_shortened(chart, panels, (int)p, false, arena);
        titles[p] = panels[p].title;
    }
    titles = lab_names_shorten(titles, chart->panel_count, TITLE_MOST, arena);
    for (size_t p = 0; p < count; p++)
        panels[p].title = titles[p];
    shortened.panels = panels;
    return shortened;
}
