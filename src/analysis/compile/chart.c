/* chart.c: what compiling gains, as bars by model and place. */
#include "analysis/analysis_build.h"
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
    struct lab_series series = {.arena = arena};
    for (int k = 0; k < name_count; k++)
        lab_series_add(&series, k, NAN, NAN, NAN);
    for (int i = 0; i < place->count; i++) {
        const struct compile_pair *pair = place->pairs[i];
        int k = 0;
        while (!lab_str_equal(names[k], pair->plain->runs[0]->model))
            k++;
        series.y[k] = 100 * (pair->gain.ratio - 1);
        series.low[k] = 100 * (pair->gain.low - 1);
        series.high[k] = 100 * (pair->gain.high - 1);
    }
    return lab_series_chart(&series, place->name, LAB_CHART_BARS, colour);
}

void compile_add_chart(struct lab_analysis_result *result, const struct compile_place *places,
                       int count, int pair_count, struct lab_arena *arena) {
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){.name = "compile_benefit",
                           .title = "What compiling the model gains",
                           .caption = "Whiskers span the 95 % interval; where they hold 0, "
                                      "compiling may do nothing.",
                           .simulated = result->simulated},
        arena);
    const char **names = lab_arena_alloc(arena, (size_t)pair_count + 1, sizeof *names);
    int name_count = list_models(places, count, names);
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, NULL, lab_axis_names("Model, the least work first", names, name_count),
        lab_axis("Throughput gained by compiling [%]"), arena);
    for (int i = 0; i < count; i++)
        lab_panel_add_series(panel, bars(&places[i], names, name_count, i, arena), arena);
}
