/* crossover/charts.c: compute and copies over the work of a sample; where they cross is shaded. */
#include "analysis/analysis_series.h"
#include "analysis/crossover/crossover.h"

#include <math.h>

#define PANELS_MAX 6
#define LINE_STEPS 48
#define SERIES     4

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
    struct lab_series series;
    lab_series_init(&series, (size_t)feed->model_count, arena);
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
    double *x = lab_arena_alloc(arena, 2 * (size_t)(LINE_STEPS + 1), sizeof *x),
           *y = x + LINE_STEPS + 1;
    for (int i = 0; i <= LINE_STEPS; i++) {
        double at = first * pow(last / first, (double)i / LINE_STEPS);
        x[i] = at / 1e9;
        y[i] = in_us(lab_crossover_time_at(feed, compute, at));
    }
    return (struct lab_chart_series){.title = compute ? "compute, between models"
                                                      : "copies, between models",
                                     .mark = LAB_CHART_DASHES,
                                     .x = x,
                                     .y = y,
                                     .count = LINE_STEPS + 1,
                                     .colour = compute ? 0 : 1};
}

static struct lab_chart_panel make_panel(const struct lab_crossover_feed *feed,
                                         struct lab_arena *arena) {
    struct lab_chart_series *series = lab_arena_alloc(arena, SERIES, sizeof *series);
    struct lab_chart_shade *shade = lab_arena_alloc(arena, 1, sizeof *shade);
    int count = 0;
    bool turns = !isnan(feed->crossover.at);
    series[count++] = points(feed, true, arena);
    series[count++] = points(feed, false, arena);
    if (is_lined(feed)) {
        series[count++] = line(feed, true, arena);
        series[count++] = line(feed, false, arena);
    }
    *shade = (struct lab_chart_shade){feed->crossover.interval.low / 1e9,
                                      feed->crossover.interval.high / 1e9, "they cross", 0};
    return (struct lab_chart_panel){
        .title = feed->title,
        .x = {.title = "Work of a sample [GFLOP]", .log = true, .low = NAN, .high = NAN},
        .y = {.title = "Time of a sample [µs]", .log = true, .low = NAN, .high = NAN},
        .series = series,
        .series_count = count,
        .shades = shade,
        .shade_count = turns};
}

bool lab_crossover_chart(const struct lab_crossover_feed *data_paths, int count, bool simulated,
                         struct lab_arena *arena, struct lab_chart *ret_chart) {
    struct lab_chart_panel *panels = lab_arena_alloc(arena, PANELS_MAX, sizeof *panels);
    int made = 0, left_out = 0;
    for (int i = 0; i < count; i++) {
        if (drawn_models(&data_paths[i]) < 2)
            continue;
        if (made < PANELS_MAX)
            panels[made++] = make_panel(&data_paths[i], arena);
        else
            left_out++;
    }
    if (made == 0)
        return false;
    const char *more = "", *title = "Computing against copying";
    if (left_out) {
        more = lab_arena_printf(arena, " Drawn are the first %d of %d devices and nodes.", made,
                                made + left_out);
        title = lab_arena_printf(arena, "%s, %d of %d shown", title, made, made + left_out);
    }
    *ret_chart =
        (struct lab_chart){.name = "crossover",
                           .title = title,
                           .caption = lab_arena_printf(
                               arena,
                               "Busy times of a sample. Where compute lies above copies, a "
                               "pipeline that overlaps them waits for compute. Between models: "
                               "straight over the work, so bent on these axes.%s",
                               more),
                           .panels = panels,
                           .panel_count = made,
                           .columns = made > 1 ? 2 : 1,
                           .simulated = simulated};
    return true;
}
