/* chart.c: the rates of all places, held against the fastest, a panel for each model. */
#include "analysis/analysis_build.h"
#include "analysis/recommend/recommend.h"

#include <math.h>

#define PANELS_MAX  12
#define COLUMNS_TWO 3 /* from so many panels on */

enum { BEST, ALIKE, SLOWER, KINDS };

static int kind_of(const struct lab_place_group *group, int place) {
    return place == 0                                                    ? BEST
           : group->places[place].against_best.verdict != LAB_STUDY_LESS ? ALIKE
                                                                         : SLOWER;
}

/* The interval that the verdict went by: of a place against the fastest, whose own doubt is in
 * it. */
static struct lab_chart_series make_series(const struct lab_place_group *group, int kind,
                                           struct lab_arena *arena) {
    static const char *const titles[KINDS] = {"fastest", "can't be told from the fastest",
                                              "slower"};
    struct lab_series series = {.arena = arena};
    double best = group->places[0].rate;
    for (int i = 0; i < group->count; i++) {
        const struct lab_place *place = &group->places[i];
        if (kind_of(group, i) == kind)
            lab_series_add(&series, i, place->rate,
                           kind == BEST ? (double)NAN : best * place->against_best.low,
                           kind == BEST ? (double)NAN : best * place->against_best.high);
    }
    return lab_series_chart(&series, titles[kind], LAB_CHART_POINTS, kind);
}

static bool some_is_within(const struct lab_place_group *group) {
    for (int i = 1; i < group->count; i++)
        if (group->places[i].against_best.within)
            return true;
    return false;
}

/* "3 ← 1": device from node, short enough for an axis */
static const char *axis_name(const struct lab_place_group *group, const struct lab_place *place,
                             struct lab_arena *arena) {
    const char *name = lab_arena_printf(arena, "%s ← %s", place->devices, place->nodes);
    if (group->varies_batch)
        name = lab_arena_printf(arena, "%s, %.0f", name, place->batch);
    return group->varies_compile && place->compiled ? lab_arena_printf(arena, "%s, compiled", name)
                                                    : name;
}

static void add_panel(struct lab_chart *chart, const struct lab_place_group *group,
                      struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)group->count, sizeof *names);
    for (int i = 0; i < group->count; i++)
        names[i] = axis_name(group, &group->places[i], arena);
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, group->name,
        lab_axis_names(group->varies_batch ? "Device ← node, batch" : "Device ← node", names,
                       group->count),
        lab_axis("Throughput [samples/s]"), arena);
    for (int kind = 0; kind < KINDS; kind++) {
        struct lab_chart_series series = make_series(group, kind, arena);
        if (series.count > 0)
            lab_panel_add_series(panel, series, arena);
    }
    /* behind them: the best's rate, and how near to it one run each tells nothing */
    double best = group->places[0].rate, until = group->count - 0.5;
    lab_panel_add_series(panel, lab_series_level(NULL, -0.5, until, best, BEST, arena), arena);
    if (some_is_within(group))
        lab_panel_add_series(panel,
                             lab_series_level("nearer than 2 %, one run each can't tell", -0.5,
                                              until, best * (1 - LAB_STUDY_WITHIN_LEAST), ALIKE,
                                              arena),
                             arena);
}

void lab_place_add_chart(struct lab_analysis_result *result, const struct lab_place_group *groups,
                         int count, struct lab_arena *arena) {
    struct lab_chart chart = {
        .name = "best_places",
        .title = "Throughput of every place, fastest first",
        .caption =
            "Whiskers are 95 % intervals of a place against the fastest, whose own doubt is in "
            "them: a place whose whisker reaches the line can't be told from it."};
    for (int i = 0; i < count && chart.panel_count < PANELS_MAX; i++) {
        if (groups[i].count < 2)
            continue;
        add_panel(&chart, &groups[i], arena);
        chart.simulated |= groups[i].study->simulated;
    }
    chart.columns = chart.panel_count >= COLUMNS_TWO ? 2 : 1;
    if (chart.panel_count > 0)
        lab_analysis_add_chart(result, chart, arena);
}
