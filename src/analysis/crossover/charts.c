/* crossover/charts.c: compute and copies over the work of a sample; where they cross is shaded. */
#include "analysis/analysis_build.h"
#include "analysis/crossover/crossover.h"

#include <math.h>

#define PANELS_MAX 6
#define LINE_STEPS 48

static bool is_drawn(const struct lab_crossover_model *model) {
    return model->complexity > 0 && (model->compute_s > 0 || model->copy_s > 0);
}

static int drawn_models(const struct lab_crossover_feed *feed) {
    int count = 0;
    for (int m = 0; m < feed->model_count; m++)
        count += is_drawn(&feed->models[m]);
    return count;
}

static double in_us(double seconds) {
    return seconds > 0 ? 1e6 * seconds : (double)NAN;
}

static struct lab_chart_series points(const struct lab_crossover_feed *feed, bool compute,
                                      struct lab_arena *arena) {
    struct lab_series series = {.arena = arena};
    for (int m = 0; m < feed->model_count; m++) {
        const struct lab_crossover_model *model = &feed->models[m];
        if (is_drawn(model))
            lab_series_add(&series, model->complexity / 1e9,
                           in_us(compute ? model->compute_s : model->copy_s),
                           in_us(compute ? model->compute_low : model->copy_low),
                           in_us(compute ? model->compute_high : model->copy_high));
    }
    return lab_series_chart(&series, compute ? "compute" : "copies", LAB_CHART_POINTS,
                            compute ? 0 : 1);
}

/*
 * Two models with both times have a line between them. Not so where more work comes with far
 * shorter copies: such models differ in their input, and nothing lies between them.
 */
static bool is_lined(const struct lab_crossover_feed *feed) {
    int count = 0;
    double before_s = 0;
    for (int m = 0; m < feed->model_count; m++) {
        count += !isnan(lab_crossover_time_at(feed, true, feed->models[m].complexity));
        if (!is_drawn(&feed->models[m]))
            continue;
        if (feed->models[m].copy_s < before_s / 2)
            return false;
        before_s = feed->models[m].copy_s;
    }
    return count > 1;
}

static struct lab_chart_series line(const struct lab_crossover_feed *feed, bool compute,
                                    struct lab_arena *arena) {
    double first = NAN, last = NAN;
    for (int m = 0; m < feed->model_count; m++)
        if (is_drawn(&feed->models[m])) {
            first = isnan(first) ? feed->models[m].complexity : first;
            last = feed->models[m].complexity;
        }
    struct lab_series series = {.arena = arena};
    for (int i = 0; i <= LINE_STEPS; i++) {
        double at = first * pow(last / first, (double)i / LINE_STEPS);
        lab_series_add_point(&series, at / 1e9, in_us(lab_crossover_time_at(feed, compute, at)));
    }
    return lab_series_chart(&series, compute ? "compute, between models" : "copies, between models",
                            LAB_CHART_DASHES, compute ? 0 : 1);
}

static void add_panel(struct lab_chart *chart, const struct lab_crossover_feed *feed,
                      struct lab_arena *arena) {
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, feed->title, lab_axis_log("Work of a sample [GFLOP]"),
                            lab_axis_log("Time of a sample [µs]"), arena);
    struct lab_chart_shade *shade = lab_arena_alloc(arena, 1, sizeof *shade);
    *shade = (struct lab_chart_shade){feed->crossover.interval.low / 1e9,
                                      feed->crossover.interval.high / 1e9, "they cross", 0};
    panel->shades = shade;
    panel->shade_count = !isnan(feed->crossover.at);
    lab_panel_add_series(panel, points(feed, true, arena), arena);
    lab_panel_add_series(panel, points(feed, false, arena), arena);
    if (is_lined(feed)) {
        lab_panel_add_series(panel, line(feed, true, arena), arena);
        lab_panel_add_series(panel, line(feed, false, arena), arena);
    }
}

void lab_crossover_add_chart(struct lab_analysis_result *result,
                             const struct lab_crossover_feed *data_paths, int count,
                             struct lab_arena *arena) {
    struct lab_chart chart = {
        .name = "crossover", .title = "Computing against copying", .simulated = result->simulated};
    int drawn = 0;
    for (int i = 0; i < count; i++)
        if (drawn_models(&data_paths[i]) >= 2 && drawn++ < PANELS_MAX)
            add_panel(&chart, &data_paths[i], arena);
    int made = chart.panel_count;
    if (made == 0)
        return;
    const char *more = "";
    if (drawn > made) {
        more = lab_arena_printf(arena, " Drawn are the first %d of %d devices and nodes.", made,
                                drawn);
        chart.title = lab_arena_printf(arena, "%s, %d of %d shown", chart.title, made, drawn);
    }
    chart.caption = lab_arena_printf(
        arena,
        "Busy times of a sample. Where compute lies above copies, a pipeline that overlaps them "
        "waits for compute. Between models: straight over the work, so bent on these axes.%s",
        more);
    chart.columns = made > 1 ? 2 : 1;
    lab_analysis_add_chart(result, chart, arena);
}
