/* chart.c: speed-ups over the batch as measured and as the law has them, and what steps are made
 * of. */
#include "analysis/analysis_build.h"
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

/* --- speed-ups --- */

static struct lab_chart_series measured_series(const struct training_part *part,
                                               const struct lab_training_row *model, int size,
                                               int colour) {
    struct lab_series series = {.arena = part->arena};
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
static void add_law(struct lab_chart_panel *panel, const struct training_part *part,
                    const struct lab_training_row *model, int size, int colour) {
    const struct lab_training_range *range = &part->training.batch;
    struct lab_series series = {.arena = part->arena};
    for (int i = 0; i < CURVE; i++) {
        struct lab_training_work work = model->work;
        /* whole shares: the law's own steps of a row would be teeth here */
        double at = range->low * pow(range->high / range->low, i / (CURVE - 1.0)) / size;
        work.batch = fmax(1, round(at)) * size;
        work.devices = size;
        struct lab_training_speedup made = lab_training_predict(&part->training, &work);
        lab_series_add(&series, work.batch, made.value, made.low, made.high);
    }
    lab_panel_add_series(panel, lab_series_chart(&series, NULL, LAB_CHART_BAND, colour),
                         part->arena);
    struct lab_chart_series line =
        lab_series_chart(&series, lab_arena_printf(part->arena, "%d devices, by the law", size),
                         LAB_CHART_DASHES, colour);
    line.low = line.high = NULL;
    lab_panel_add_series(panel, line, part->arena);
}

static void add_speedup_panel(struct lab_chart *chart, const struct training_part *part,
                              const struct lab_training_row *model) {
    int sizes[SIZES_MAX], size_count = find_sizes(part, model, sizes);
    const struct lab_training_range *batch = &part->training.batch;
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart,
        lab_arena_printf(part->arena, "%s%s", model->model,
                         model->work.weak ? ", a batch each" : ""),
        lab_axis_log("Batch [samples]"), lab_axis("Speed-up over one device [×]"), part->arena);
    bool has_law = part->training.law_count > 0 && batch->high > batch->low;
    for (int i = 0; i < size_count && has_law; i++)
        add_law(panel, part, model, sizes[i], i);
    for (int i = 0; i < size_count; i++)
        lab_panel_add_series(panel, measured_series(part, model, sizes[i], i), part->arena);
    lab_panel_add_series(
        panel, lab_series_level("one device", batch->low, batch->high, 1, SIZES_MAX, part->arena),
        part->arena);
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

/* Whether there was something to draw. */
static bool add_step_panel(struct lab_chart *chart, const struct training_part *part,
                           const struct lab_training_row *model) {
    const struct lab_training_row **rows = training_order(part);
    int count = 0;
    bool any = false;
    struct lab_series series[STEP_PARTS] = {{0}};
    const char **names =
        lab_arena_alloc(part->arena, (size_t)part->training.row_count + 1, sizeof *names);
    for (int i = 0; i < part->training.row_count; i++) {
        if (!is_of(rows[i], model))
            continue;
        for (int p = 0; p < STEP_PARTS; p++) {
            double value = lab_study_point_figure(rows[i]->point, step_parts[p].offset, 1).value;
            series[p].arena = part->arena;
            lab_series_add_point(&series[p], count, value);
            any |= !isnan(value);
        }
        names[count++] =
            lab_arena_printf(part->arena, "%.0f on %d", rows[i]->work.batch, rows[i]->work.devices);
    }
    struct lab_chart_panel *panel =
        lab_chart_add_panel(chart, model->model, lab_axis_names("Batch on devices", names, count),
                            lab_axis_from("Time of a step [ms]", 0), part->arena);
    for (int p = 0; p < STEP_PARTS; p++)
        lab_panel_add_series(panel,
                             lab_series_chart(&series[p], step_parts[p].title, LAB_CHART_BARS, p),
                             part->arena);
    return any;
}

void training_add_charts(struct lab_analysis_result *result, const struct training_part *part,
                         const char *suffix) {
    struct models models = find_models(part);
    int columns = models.count > 1 ? 2 : 1;
    struct lab_chart speedups = {
        .name = lab_arena_printf(part->arena, "training_law%s", suffix),
        .title = "Several devices against one, measured and by the law",
        .caption =
            "Whiskers are 95 % intervals of what was measured; the band holds 90 % of speed-ups "
            "that the law hasn't seen, by what it got wrong about points left out.",
        .columns = columns,
        .simulated = part->simulated};
    struct lab_chart steps = {
        .name = lab_arena_printf(part->arena, "training_step%s", suffix),
        .title = "What a training step is made of",
        .caption = "The all-reduce counts as far as the backward pass doesn't hide it.",
        .columns = columns,
        .simulated = part->simulated};
    bool any = false;
    for (int i = 0; i < models.count; i++) {
        add_speedup_panel(&speedups, part, models.items[i]);
        any |= add_step_panel(&steps, part, models.items[i]);
    }
    if (part->test_count > 0)
        lab_analysis_add_chart(result, speedups, part->arena);
    if (any)
        lab_analysis_add_chart(result, steps, part->arena);
}
