/* chart.c: how much longer kernels take in each phase, and what is left of the resources, side by
 * side. */
#include "analysis/analysis_build.h"
#include "analysis/contention/contention.h"

#include <math.h>

/* Bars of each phase, with whiskers. */
static void add_panel(struct lab_chart *chart, const struct contention *made, bool resources) {
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
    if (resources && count == 0)
        return;
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, NULL, lab_axis_names(resources ? "Resource" : "Kernel", names, count),
        lab_axis(resources ? "More or less of it [%]" : "Time, longer or shorter [%]"), arena);
    for (int s = 0; s < made->shown; s++) {
        int p = made->order[s];
        struct lab_series series = {.arena = arena};
        for (int i = 0; i < count; i++) {
            const struct contention_effect *effect =
                resources ? &made->left[p][which[i]] : &made->kernels[which[i]].times[p];
            bool shown = effect->high / effect->low <= CONTENTION_UNEVEN;
            lab_series_add(&series, i, 100 * (effect->ratio - 1),
                           shown ? 100 * (effect->low - 1) : (double)NAN,
                           shown ? 100 * (effect->high - 1) : (double)NAN);
        }
        lab_panel_add_series(
            panel, lab_series_chart(&series, made->list[p].name, LAB_CHART_BARS, s), arena);
    }
}

void contention_add_chart(struct lab_analysis_result *result, const struct contention *made) {
    if (made->main < 0 || made->phases.pair_count == 0)
        return;
    struct lab_chart *chart = lab_analysis_add_chart(
        result,
        (struct lab_chart){
            .name = "contention",
            .title = "Phases against the baseline",
            .caption =
                "Above by how much longer kernels take, below by how much more or less is left of "
                "the resources; whiskers span the 95 % interval over blocks, and are left out "
                "where blocks are too uneven to tell.",
            .simulated = made->phases.simulated},
        made->arena);
    add_panel(chart, made, false);
    add_panel(chart, made, true);
}
