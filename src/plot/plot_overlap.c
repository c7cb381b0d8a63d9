/*
 * plot_overlap.c: lines that lie on each other. The later one of a panel would hide the earlier: it
 * is drawn with gaps, in which the other one is seen.
 */
#include "plot/plot_internal.h"

#include <math.h>

#define NEAR        2.5 /* pixels between two lines that hide each other */
#define HIDDEN_PART 0.4 /* of a line's points that lie on another, from which on it has gaps */

static bool is_line(const struct lab_chart_series *series) {
    return series->mark == LAB_CHART_LINE || series->mark == LAB_CHART_LINE_POINTS;
}

/* At an x, between its neighbours; NaN outside of them and in gaps. `from` goes on with x. */
static double value_at(const struct lab_chart_series *series, double x, size_t *from) {
    while (*from + 1 < series->count && series->x[*from + 1] < x)
        ++*from;
    size_t i = *from;
    if (i >= series->count || !(series->x[i] <= x))
        return NAN;
    if (series->x[i] == x || i + 1 == series->count)
        return series->x[i] == x ? series->y[i] : (double)NAN;
    double share = (x - series->x[i]) / (series->x[i + 1] - series->x[i]);
    return series->y[i] + share * (series->y[i + 1] - series->y[i]);
}

static bool lies_on(const struct plot_panel *made, const struct lab_chart_series *upper,
                    const struct lab_chart_series *lower) {
    double height = made->bottom - made->top;
    size_t from = 0, near = 0, count = 0;
    for (size_t i = 0; i < upper->count; i++) {
        double other = value_at(lower, upper->x[i], &from),
               apart =
                   fabs(plot_axis_share(&made->y, upper->y[i]) - plot_axis_share(&made->y, other)) *
                   height;
        count += isfinite(upper->y[i]);
        near += apart < NEAR;
    }
    return count > 1 && (double)near >= HIDDEN_PART * (double)count;
}

static int count_beneath(const struct plot_panel *made, int series, const int *beneath) {
    const struct lab_chart_series *all = made->panel->series;
    int most = 0;
    for (int s = 0; s < series && is_line(&all[series]); s++)
        if (is_line(&all[s]) && beneath[s] >= most && lies_on(made, &all[series], &all[s]))
            most = beneath[s] + 1;
    return most;
}

void plot_find_overlaps(struct plot_layout *layout) {
    for (int p = 0; p < layout->chart->panel_count; p++) {
        struct plot_panel *made = &layout->panels[p];
        int count = made->panel->series_count,
            *beneath = lab_arena_alloc(layout->arena, (size_t)count + 1, sizeof *beneath);
        for (int s = 0; s < count; s++) {
            beneath[s] = count_beneath(made, s, beneath);
            for (int k = 0; k < layout->key_count && made->panel->series[s].title; k++)
                if (lab_str_equal(layout->keys[k].title, made->panel->series[s].title) &&
                    beneath[s] > layout->keys[k].beneath)
                    layout->keys[k].beneath = beneath[s];
        }
        made->beneath = beneath;
    }
}
