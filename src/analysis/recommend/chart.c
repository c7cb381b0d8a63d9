/* chart.c: the rates of all places, held against the fastest, a panel for each model. */
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

/* The interval that the verdict went by: of a place against the fastest, whose own doubt is in it. */
static struct lab_chart_series make_series(const struct lab_place_group *group, int kind,
                                           struct lab_arena *arena) {
    static const char *const titles[KINDS] = {"fastest", "can't be told from the fastest",
                                              "slower"};
    size_t room = (size_t)group->count;
    double *x = lab_arena_alloc(arena, room, sizeof *x),
           *y = lab_arena_alloc(arena, room, sizeof *y),
           *low = lab_arena_alloc(arena, room, sizeof *low),
           *high = lab_arena_alloc(arena, room, sizeof *high);
    double best = group->places[0].rate;
    size_t count = 0;
    for (int i = 0; i < group->count; i++) {
        if (kind_of(group, i) != kind)
            continue;
        const struct lab_place *place = &group->places[i];
        x[count] = i;
        y[count] = place->rate;
        low[count] = kind == BEST ? (double)NAN : best * place->against_best.low;
        high[count++] = kind == BEST ? (double)NAN : best * place->against_best.high;
    }
    return (struct lab_chart_series){.title = titles[kind],
                                     .mark = LAB_CHART_POINTS,
                                     .x = x,
                                     .y = y,
                                     .low = low,
                                     .high = high,
                                     .count = count,
                                     .colour = kind};
}

static struct lab_chart_series make_line(const struct lab_place_group *group, const char *title,
                                         double at, int colour, struct lab_arena *arena) {
    double *x = lab_arena_alloc(arena, 2, sizeof *x), *y = lab_arena_alloc(arena, 2, sizeof *y);
    x[0] = -0.5;
    x[1] = group->count - 0.5;
    y[0] = y[1] = at;
    return (struct lab_chart_series){
        .title = title, .mark = LAB_CHART_DASHES, .x = x, .y = y, .count = 2, .colour = colour};
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
