/* plot_caption.c: what stands below a chart: its caption, and what its intervals are. A band or a
 * whisker that its mark covers is not promised. */
#include "plot/plot_internal.h"

#include <math.h>

#define SEEN_POINT  8 /* pixels of an interval that show beyond a sign */
#define SEEN_BAR    3
#define CARD_HEIGHT 200 /* of a panel on the first screen */
#define PANEL_LEAST 260 /* pixels of a panel that stands next to another */

bool plot_has_band(const struct lab_chart_panel *panel, const struct lab_chart_series *series) {
    return series->mark == LAB_CHART_LINE_POINTS && plot_has_whiskers(series) && !panel->x.names &&
           series->count > 1;
}

struct plot_format plot_format_of(struct lab_plot_view view, struct lab_chart *chart) {
    struct plot_format format = plot_page;
    if (view.width > 0)
        format.width = view.width;
    if (format.columns > format.width / PANEL_LEAST)
        format.columns = format.width / PANEL_LEAST;
    if (view.panels_most > 0)
        format.alone = CARD_HEIGHT;
    if (view.panels_most > 0 && chart->panel_count > view.panels_most)
        chart->panel_count = view.panels_most;
    format.titled = !view.untitled;
    return format;
}

struct found { /* intervals of a chart */
    bool any, band, bars, seen;
    bool hidden; /* some lies within its mark */
    bool beyond; /* some end lies outside of the axis */
    bool bare;   /* some mark has none */
};

/* `single`: each interval is of a mark of its own. */
static void look_at(const struct plot_panel *made, const struct lab_chart_series *series,
                    bool single, struct found *found) {
    double height = made->bottom - made->top;
    double least = series->mark == LAB_CHART_BARS ? SEEN_BAR : SEEN_POINT;
    for (size_t i = 0; i < series->count; i++) {
        if (!isfinite(series->low[i]) || !isfinite(series->high[i])) {
            found->bare |= isfinite(series->y[i]);
            continue;
        }
        double low = plot_axis_share(&made->y, series->low[i]),
               high = plot_axis_share(&made->y, series->high[i]);
        found->any = true;
        found->beyond |= series->low[i] < made->y.low || series->high[i] > made->y.high;
        bool hidden = fabs(high - low) * height < least; /* NaN: it leaves the area */
        found->hidden |= hidden && single;
        found->seen |= !hidden;
    }
}

/* Whether panels of one quantity have ranges of their own: heights don't compare. */
static bool has_own_ranges(const struct plot_layout *layout) {
    const struct plot_panel *first = &layout->panels[0];
    bool own = false;
    for (int p = 1; p < layout->chart->panel_count; p++) {
        const struct plot_panel *made = &layout->panels[p];
        own |= lab_str_equal(made->panel->y.title, first->panel->y.title) &&
               (made->y.low != first->y.low || made->y.high != first->y.high);
    }
    return own;
}

const char *lab_plot_caption(const struct lab_chart *chart, struct lab_plot_view view,
                             struct lab_arena *arena) {
    struct lab_chart shown = *chart;
    struct plot_format format = plot_format_of(view, &shown);
    struct plot_layout layout;
    struct found found = {0};
    if (!chart->intervals || chart->panel_count < 1)
        return chart->caption;
    LAB_AUTO(arena, scratch);
    plot_layout_make(&shown, &format, &scratch, &layout);
    for (int p = 0; p < shown.panel_count; p++)
        for (int s = 0; s < shown.panels[p].series_count; s++) {
            const struct lab_chart_series *series = &shown.panels[p].series[s];
            if (!plot_has_whiskers(series)) /* lines of a model, bands */
                continue;
            bool band = plot_has_band(&shown.panels[p], series);
            found.band |= band;
            found.bars |= series->mark == LAB_CHART_BARS;
            look_at(&layout.panels[p], series, !band && series->mark != LAB_CHART_BARS, &found);
        }
    const char *before = chart->caption ? chart->caption : "", *space = *before ? " " : "";
    const char *ranges = has_own_ranges(&layout) ? " Ranges of y differ." : "";
    if (!found.any)
        return found.bare
                   ? lab_arena_printf(arena, "%s%sNo intervals: too few runs.", before, space)
                   : chart->caption;
    if (!found.seen)
        return lab_arena_printf(arena, "%s%s%s are %s.%s", before, space, chart->intervals,
                                found.bars ? "too narrow to see" : "narrower than the marks",
                                ranges);
    return lab_arena_printf(
        arena, "%s%s%s are %s.%s%s%s", before, space, found.band ? "Bands" : "Whiskers",
        chart->intervals, found.beyond ? " Arrows: beyond the axis." : "",
        found.bare && found.hidden ? " Marks without one: too few runs, or narrower than the mark."
        : found.bare               ? " Marks without one: too few runs."
        : found.hidden             ? " Marks without one: narrower than the mark."
                                   : "",
        ranges);
}
