/* chart.c: the rates of all places, held against the fastest, a panel for each model. */
#include "analysis/analysis_series.h"
#include "analysis/recommend/recommend.h"

#include <math.h>

#define PANELS_MAX  12
#define COLUMNS_TWO 3 /* from so many panels on */

enum { BEST, ALIKE, SLOWER, KINDS };
#define LINES 2 /* behind them: the best's rate, and how near to it one run each tells nothing */

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
    struct lab_series series;
    lab_series_init(&series, (size_t)group->count, arena);
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

static struct lab_chart_series make_line(const struct lab_place_group *group, const char *title,
                                         double at, int colour, struct lab_arena *arena) {
    return lab_series_level(title, -0.5, group->count - 0.5, at, colour, arena);
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

static struct lab_chart_panel make_panel(const struct lab_place_group *group,
                                         struct lab_arena *arena) {
    struct lab_chart_series *series = lab_arena_alloc(arena, KINDS + LINES, sizeof *series);
    const char **names = lab_arena_alloc(arena, (size_t)group->count, sizeof *names);
    int count = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        series[count] = make_series(group, kind, arena);
        count += series[count].count > 0;
    }
    double best = group->places[0].rate;
    series[count++] = make_line(group, NULL, best, BEST, arena);
    if (some_is_within(group))
        series[count++] = make_line(group, "nearer than 2 %, one run each can't tell",
                                    best * (1 - LAB_STUDY_WITHIN_LEAST), ALIKE, arena);
    for (int i = 0; i < group->count; i++)
        names[i] = axis_name(group, &group->places[i], arena);
    return (struct lab_chart_panel){
        .title = group->name,
        .x = {.title = group->varies_batch ? "Device ← node, batch" : "Device ← node",
              .low = NAN,
              .high = NAN,
              .names = names,
              .name_count = group->count},
        .y = {.title = "Throughput [samples/s]", .low = NAN, .high = NAN},
        .series = series,
        .series_count = count};
}

bool lab_place_chart(const struct lab_place_group *groups, int count, struct lab_arena *arena,
                     struct lab_chart *ret_chart) {
    struct lab_chart_panel *panels = lab_arena_alloc(arena, PANELS_MAX, sizeof *panels);
    int made = 0;
    bool simulated = false;
    for (int i = 0; i < count && made < PANELS_MAX; i++) {
        if (groups[i].count < 2)
            continue;
        panels[made++] = make_panel(&groups[i], arena);
        simulated = simulated || groups[i].study->simulated;
    }
    *ret_chart = (struct lab_chart){
        .name = "best_places",
        .title = "Throughput of every place, fastest first",
        .caption =
            "Whiskers are 95 % intervals of a place against the fastest, whose own doubt is in "
            "them: a place whose whisker reaches the line can't be told from it.",
        .panels = panels,
        .panel_count = made,
        .columns = made >= COLUMNS_TWO ? 2 : 1,
        .simulated = simulated};
    return made > 0;
}
