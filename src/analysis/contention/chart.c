/* chart.c: how much longer kernels take in each phase, and what is left of the resources, side by
 * side. */
#include "analysis/analysis_series.h"
#include "analysis/contention/contention.h"

#include <math.h>

/* Bars of a phase, with whiskers; `effects` are NULL where there is none. */
static struct lab_chart_series bars(const char *title,
                                    const struct contention_effect *const *effects, int count,
                                    int colour, struct lab_arena *arena) {
    struct lab_series series;
    lab_series_init(&series, (size_t)count, arena);
    for (int i = 0; i < count; i++) {
        bool shown = effects[i]->high / effects[i]->low <= CONTENTION_UNEVEN;
        lab_series_add(&series, i, 100 * (effects[i]->ratio - 1),
                       shown ? 100 * (effects[i]->low - 1) : (double)NAN,
                       shown ? 100 * (effects[i]->high - 1) : (double)NAN);
    }
    return lab_series_chart(&series, title, LAB_CHART_BARS, colour);
}

static struct lab_chart_panel make_panel(const struct contention *made, bool resources) {
    struct lab_arena *arena = made->arena;
    int most = resources ? CONTENTION_RESOURCES : made->kernel_count, count = 0;
    const char **names = lab_arena_alloc(arena, (size_t)most + 1, sizeof *names);
    int *which = lab_arena_alloc(arena, (size_t)most + 1, sizeof *which);
    for (int i = 0; i < most; i++) {
        if (resources && isnan(made->left[made->main][i].ratio))
            continue;
        which[count] = i;
        names[count++] = resources ? contention_resource_key(made, i) : made->kernels[i].name;
    }
    struct lab_chart_series *series =
        lab_arena_alloc(arena, (size_t)made->phases.count + 1, sizeof *series);
    for (int s = 0; s < made->shown; s++) {
        int p = made->order[s];
        const struct contention_effect **effects =
            lab_arena_alloc(arena, (size_t)count + 1, sizeof *effects);
        for (int i = 0; i < count; i++)
            effects[i] = resources ? &made->left[p][which[i]] : &made->kernels[which[i]].times[p];
        series[s] = bars(made->list[p].name, effects, count, s, arena);
    }
    return (struct lab_chart_panel){
        .x = {.title = resources ? "Resource" : "Kernel",
              .low = NAN,
              .high = NAN,
              .names = names,
              .name_count = count},
        .y = {.title = resources ? "More or less of it [%]" : "Time, longer or shorter [%]",
              .low = NAN,
              .high = NAN},
        .series = series,
        .series_count = made->shown};
}

bool contention_chart(const struct contention *made, struct lab_chart *ret_chart) {
    if (made->main < 0 || made->phases.pair_count == 0)
        return false;
    struct lab_chart_panel *panels = lab_arena_alloc(made->arena, 2, sizeof *panels);
    panels[0] = make_panel(made, false);
    panels[1] = make_panel(made, true);
    *ret_chart = (struct lab_chart){
        .name = "contention",
        .title = "Phases against the baseline",
        .caption =
            "Above by how much longer kernels take, below by how much more or less is left of "
            "the resources; whiskers span the 95 % interval over blocks, and are left out where "
            "blocks are too "
            "uneven to tell.",
        .panels = panels,
        .panel_count = panels[1].x.name_count > 0 ? 2 : 1,
        .simulated = made->phases.simulated};
    return true;
}
