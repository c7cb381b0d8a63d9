/* chart.c: speed-ups over the batch as measured and as the law has them, and what steps are made
 * of. */
#include "analysis/analysis_series.h"
#include "analysis/training/training.h"

#include <math.h>
#include <string.h>

#define PANELS_MAX 4
#define SIZES_MAX  3  /* of gangs, in one panel */
#define CURVE      48 /* places of a curve */

/* --- models and sizes --- */

struct models {
    const struct lab_training_row *items[PANELS_MAX]; /* one of each */
    int count;
};

static struct models find_models(const struct training_part *part) {
    const struct lab_training_row **rows = training_order(part);
    struct models models = {.count = 0};
    for (int i = 0; i < part->training.row_count; i++) {
        bool known = false;
        for (int k = 0; k < models.count; k++)
            known |= strcmp(models.items[k]->model, rows[i]->model) == 0 &&
                     models.items[k]->work.weak == rows[i]->work.weak;
        if (!known && models.count < PANELS_MAX)
            models.items[models.count++] = rows[i];
    }
    return models;
}

static bool is_of(const struct lab_training_row *row, const struct lab_training_row *model) {
    return strcmp(row->model, model->model) == 0 && row->work.weak == model->work.weak;
}

/* Sizes of gangs, ascending; returns how many. */
static int find_sizes(const struct training_part *part, const struct lab_training_row *model,
                      int *ret_sizes) {
    int count = 0;
    for (int size = 2; size <= part->training.devices_most && count < SIZES_MAX; size++)
        for (int i = 0; i < part->test_count; i++)
            if (is_of(part->tests[i].row, model) && part->tests[i].row->work.devices == size) {
                ret_sizes[count++] = size;
                break;
            }
    return count;
}

static double *room(const struct training_part *part, size_t count) {
    return lab_arena_alloc(part->arena, count + 1, sizeof(double));
}

/* --- speed-ups --- */

static struct lab_chart_series measured_series(const struct training_part *part,
                                               const struct lab_training_row *model, int size,
                                               int colour) {
    struct lab_series series;
    lab_series_init(&series, (size_t)part->test_count, part->arena);
    for (int i = 0; i < part->test_count; i++) {
        const struct training_test *test = &part->tests[i];
        if (is_of(test->row, model) && test->row->work.devices == size)
            lab_series_add(&series, test->row->work.batch, test->measured.ratio, test->measured.low,
                           test->measured.high);
    }
    return lab_series_chart(&series, lab_arena_printf(part->arena, "%d devices, measured", size),
                            LAB_CHART_POINTS, colour);
}

/* The law and its interval, as a band and dashes. */
static void add_law(const struct training_part *part, const struct lab_training_row *model,
                    int size, int colour, struct lab_chart_series *ret_pair) {
    const struct lab_training_range *range = &part->training.batch;
    struct lab_series series;
    lab_series_init(&series, CURVE, part->arena);
    for (int i = 0; i < CURVE; i++) {
        struct lab_training_work work = model->work;
        /* whole shares: the law's own steps of a row would be teeth here */
        double at = range->low * pow(range->high / range->low, i / (CURVE - 1.0)) / size;
        work.batch = fmax(1, round(at)) * size;
        work.devices = size;
        struct lab_training_speedup made = lab_training_predict(&part->training, &work);
        lab_series_add(&series, work.batch, made.value, made.low, made.high);
    }
    ret_pair[0] = lab_series_chart(&series, NULL, LAB_CHART_BAND, colour);
    ret_pair[1] =
        lab_series_chart(&series, lab_arena_printf(part->arena, "%d devices, by the law", size),
                         LAB_CHART_DASHES, colour);
    ret_pair[1].low = ret_pair[1].high = NULL;
}

static struct lab_chart_panel speedup_panel(const struct training_part *part,
                                            const struct lab_training_row *model) {
    int sizes[SIZES_MAX], size_count = find_sizes(part, model, sizes), count = 0;
    struct lab_chart_series *series =
        lab_arena_alloc(part->arena, 3 * (size_t)SIZES_MAX + 1, sizeof *series);
    bool has_law =
        part->training.law_count > 0 && part->training.batch.high > part->training.batch.low;
    for (int i = 0; i < size_count && has_law; i++) {
        add_law(part, model, sizes[i], i, &series[count]);
        count += 2;
    }
    for (int i = 0; i < size_count; i++)
        series[count++] = measured_series(part, model, sizes[i], i);
    series[count++] = lab_series_level("one device", part->training.batch.low,
                                       part->training.batch.high, 1, SIZES_MAX, part->arena);
    return (struct lab_chart_panel){
        .title = lab_arena_printf(part->arena, "%s%s", model->model,
                                  model->work.weak ? ", a batch each" : ""),
        .x = {.title = "Batch [samples]", .log = true, .low = NAN, .high = NAN},
        .y = {.title = "Speed-up over one device [×]", .low = NAN, .high = NAN},
        .series = series,
        .series_count = count};
}

/* --- parts of a step --- */

enum { STEP_PARTS = 4 };

static const struct {
    size_t offset;
    const char *title;
} step_parts[STEP_PARTS] = {
    {offsetof(struct lab_result, forward_ms), "forward"},
    {offsetof(struct lab_result, backward_ms), "backward"},
    {offsetof(struct lab_result, exposed_communication_ms), "all-reduce, exposed"},
    {offsetof(struct lab_result, update_ms), "update"}};

static struct lab_chart_panel step_panel(const struct training_part *part,
                                         const struct lab_training_row *model, bool *ret_any) {
    const struct lab_training_row **rows = training_order(part);
    size_t most = (size_t)part->training.row_count, count = 0;
    struct lab_chart_series *series = lab_arena_alloc(part->arena, STEP_PARTS, sizeof *series);
    const char **names = lab_arena_alloc(part->arena, most + 1, sizeof *names);
    for (int p = 0; p < STEP_PARTS; p++)
        series[p] = (struct lab_chart_series){.title = step_parts[p].title,
                                              .mark = LAB_CHART_BARS,
                                              .x = room(part, most),
                                              .y = room(part, most),
                                              .colour = p};
    for (size_t i = 0; i < most; i++) {
        if (!is_of(rows[i], model))
            continue;
        for (int p = 0; p < STEP_PARTS; p++) {
            double value = lab_study_point_figure(rows[i]->point, step_parts[p].offset, 1).value;
            ((double *)series[p].x)[count] = (double)count;
            ((double *)series[p].y)[count] = value;
            *ret_any |= !isnan(value);
        }
        names[count++] =
            lab_arena_printf(part->arena, "%.0f on %d", rows[i]->work.batch, rows[i]->work.devices);
    }
    for (int p = 0; p < STEP_PARTS; p++)
        series[p].count = count;
    return (struct lab_chart_panel){.title = model->model,
                                    .x = {.title = "Batch on devices",
                                          .low = NAN,
                                          .high = NAN,
                                          .names = names,
                                          .name_count = (int)count},
                                    .y = {.title = "Time of a step [ms]", .low = 0, .high = NAN},
                                    .series = series,
                                    .series_count = STEP_PARTS};
}

/* --- both --- */

static struct lab_chart make_chart(const struct training_part *part, const char *name,
                                   const char *suffix, struct lab_chart_panel *panels, int count) {
    return (struct lab_chart){.name = lab_arena_printf(part->arena, "%s%s", name, suffix),
                              .panels = panels,
                              .panel_count = count,
                              .columns = count > 1 ? 2 : 1,
                              .simulated = part->simulated};
}

int training_charts(const struct training_part *part, const char *suffix,
                    struct lab_chart *ret_charts) {
    struct models models = find_models(part);
    struct lab_chart_panel *speedups = lab_arena_alloc(part->arena, PANELS_MAX, sizeof *speedups);
    struct lab_chart_panel *steps = lab_arena_alloc(part->arena, PANELS_MAX, sizeof *steps);
    int count = 0;
    bool any = false;
    for (int i = 0; i < models.count; i++) {
        speedups[i] = speedup_panel(part, models.items[i]);
        steps[i] = step_panel(part, models.items[i], &any);
    }
    if (part->test_count > 0) {
        ret_charts[count] = make_chart(part, "training_law", suffix, speedups, models.count);
        ret_charts[count].title = "Several devices against one, measured and by the law";
        ret_charts[count++].caption =
            "Whiskers are 95 % intervals of what was measured; the band holds 90 % of speed-ups "
            "that the law hasn't seen, by what it got wrong about points left out.";
    }
    if (any) {
        ret_charts[count] = make_chart(part, "training_step", suffix, steps, models.count);
        ret_charts[count].title = "What a training step is made of";
        ret_charts[count++].caption =
            "The all-reduce counts as far as the backward pass doesn't hide it.";
    }
    return count;
}
