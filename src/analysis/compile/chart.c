/* chart.c: what compiling gains, as bars by model and place. */
#include "analysis/compile/pair.h"

#include "base/str.h"

#include <math.h>

/* Models by the order in which they first come, the least work first. */
static int list_models(const struct compile_place *places, int count, const char **ret_names) {
    int names = 0;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < places[p].count; i++) {
            const char *model = places[p].pairs[i]->plain->runs[0]->model;
            int k = 0;
            while (k < names && !lab_str_equal(ret_names[k], model))
                k++;
            if (k == names)
                ret_names[names++] = model;
        }
    return names;
}

static struct lab_chart_series bars(const struct compile_place *place, const char *const *names,
                                    int name_count, int colour, struct lab_arena *arena) {
    size_t room = (size_t)name_count + 1;
    double *x = lab_arena_alloc(arena, room, sizeof *x),
           *y = lab_arena_alloc(arena, room, sizeof *y),
           *low = lab_arena_alloc(arena, room, sizeof *low),
           *high = lab_arena_alloc(arena, room, sizeof *high);
    for (int k = 0; k < name_count; k++) {
        x[k] = k;
        y[k] = low[k] = high[k] = NAN;
    }
    for (int i = 0; i < place->count; i++) {
        const struct compile_pair *pair = place->pairs[i];
        int k = 0;
        while (!lab_str_equal(names[k], pair->plain->runs[0]->model))
            k++;
        y[k] = 100 * (pair->gain.ratio - 1);
        low[k] = 100 * (pair->gain.low - 1);
        high[k] = 100 * (pair->gain.high - 1);
    }
    return (struct lab_chart_series){.title = place->name,
                                     .mark = LAB_CHART_BARS,
                                     .x = x,
                                     .y = y,
                                     .low = low,
                                     .high = high,
                                     .count = (size_t)name_count,
                                     .colour = colour};
}

struct lab_chart *compile_chart(const struct compile_place *places, int count, int pair_count,
                                bool simulated, struct lab_arena *arena) {
    struct lab_chart *chart = lab_arena_alloc(arena, 1, sizeof *chart);
    struct lab_chart_panel *panel = lab_arena_alloc(arena, 1, sizeof *panel);
    struct lab_chart_series *series = lab_arena_alloc(arena, (size_t)count + 1, sizeof *series);
    const char **names = lab_arena_alloc(arena, (size_t)pair_count + 1, sizeof *names);
    int name_count = list_models(places, count, names);
    for (int i = 0; i < count; i++)
        series[i] = bars(&places[i], names, name_count, i, arena);
    *panel = (struct lab_chart_panel){
        .x = {.title = "Model, the least work first",
              .low = NAN,
              .high = NAN,
              .names = names,
              .name_count = name_count},
        .y = {.title = "Throughput gained by compiling [%]", .low = NAN, .high = NAN},
        .series = series,
        .series_count = count};
    *chart = (struct lab_chart){.name = "compile_benefit",
                                .title = "What compiling the model gains",
                                .caption = "Whiskers span the 95 % interval; where they hold 0, "
                                           "compiling may do nothing.",
                                .panels = panel,
                                .panel_count = 1,
                                .simulated = simulated};
    return chart;
}
