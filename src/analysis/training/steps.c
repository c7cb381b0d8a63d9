/* steps.c: what a training step is made of, as measured. */
#include "analysis/training/training.h"

#include "base/str.h"

#include <math.h>

#define PANELS_MAX 4

struct step {
    const char *model, *scaling, *label; /* "128 on 2" */
    double batch;
    int devices;
    double step_s, forward_s, backward_s, gradient_s, communication_s, exposed_s, update_s;
};

static const struct lab_field step_fields[] = {
    LAB_FIELD(struct step, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct step, batch, "batch_size", "Batch", LAB_UNIT_COUNT),
    LAB_FIELD(struct step, scaling, "scaling", "Scaling", LAB_UNIT_TEXT),
    LAB_FIELD(struct step, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct step, step_s, "step_ms", "Step", LAB_UNIT_TIME),
    LAB_FIELD(struct step, forward_s, "forward_ms", "Forward", LAB_UNIT_TIME),
    LAB_FIELD(struct step, backward_s, "backward_ms", "Backward", LAB_UNIT_TIME),
    LAB_FIELD(struct step, gradient_s, "gradient_ms", "Forward and backward", LAB_UNIT_TIME),
    LAB_FIELD(struct step, communication_s, "communication_ms", "All-reduce", LAB_UNIT_TIME),
    LAB_FIELD(struct step, exposed_s, "exposed_ms", "Exposed", LAB_UNIT_TIME),
    LAB_FIELD(struct step, update_s, "update_ms", "Update", LAB_UNIT_TIME),
};

struct bar { /* a part of a step */
    const char *label, *part;
    double ms;
};

static const struct lab_field bar_fields[] = {
    LAB_FIELD(struct bar, label, "label", "Batch, devices", LAB_UNIT_TEXT),
    LAB_FIELD(struct bar, part, "part", "Part", LAB_UNIT_TEXT),
    LAB_FIELD(struct bar, ms, "ms", "ms", LAB_UNIT_NUMBER),
};

static double part_s(const struct lab_training_row *row, size_t offset) {
    return lab_study_point_figure(row->point, offset, 1e-3).value;
}

static struct step make_step(const struct lab_training_row *row, struct lab_arena *arena) {
    return (struct step){
        .model = row->model,
        .scaling = row->work.weak ? "weak" : NULL,
        .label = lab_arena_printf(arena, "batch %.0f, %d device%s", row->work.batch,
                                  row->work.devices, row->work.devices == 1 ? "" : "s"),
        .batch = row->work.batch,
        .devices = row->work.devices,
        .step_s = row->time_s,
        .forward_s = part_s(row, offsetof(struct lab_result, forward_ms)),
        .backward_s = part_s(row, offsetof(struct lab_result, backward_ms)),
        .gradient_s = part_s(row, offsetof(struct lab_result, gradient_ms)),
        .communication_s = part_s(row, offsetof(struct lab_result, communication_time_ms)),
        .exposed_s = part_s(row, offsetof(struct lab_result, exposed_communication_ms)),
        .update_s = part_s(row, offsetof(struct lab_result, update_ms))};
}

static bool add_panel(struct lab_chart *chart, const struct step *steps, int count,
                      struct lab_arena *arena) {
    struct bar *bars = NULL;
    int bar_count = 0;
    bool any = false;
    for (int i = 0; i < count; i++) {
        const struct bar all[] = {{steps[i].label, "forward", 1e3 * steps[i].forward_s},
                                  {steps[i].label, "backward", 1e3 * steps[i].backward_s},
                                  {steps[i].label, "all-reduce, exposed", 1e3 * steps[i].exposed_s},
                                  {steps[i].label, "update", 1e3 * steps[i].update_s}};
        for (int p = 0; p < LAB_COUNT_OF(all); p++) {
            LAB_ADD(bars, bar_count, arena) = all[p];
            any |= !isnan(all[p].ms);
        }
    }
    struct lab_chart_panel *panel = lab_chart_add_panel(
        chart, steps[0].model, lab_axis(""), lab_axis_from("Time of a step [ms]", 0), arena);
    struct lab_chart_series *parts =
        lab_rows_add_series(panel, &LAB_ROWS(bar_fields, bars, bar_count), "label", "ms", "part",
                            LAB_CHART_STACK, arena);
    for (int s = 0; s < panel->series_count; s++)
        parts[s].valued = true;
    return any;
}

void training_add_steps(struct lab_analysis_result *result, struct lab_analysis_part *part,
                        const struct lab_training_set *set, bool simulated, const char *suffix,
                        struct lab_arena *arena) {
    struct step *steps = lab_arena_alloc(arena, (size_t)set->count + 1, sizeof *steps);
    for (int i = 0; i < set->count; i++)
        steps[i] = make_step(&set->rows[i], arena);
    lab_analysis_hide_columns(lab_rows_add_table(part, "timeline",
                                                 "What a step is made of, as measured",
                                                 &LAB_ROWS(step_fields, steps, set->count), arena),
                              arena);
    struct lab_chart chart = {.name = lab_arena_printf(arena, "training_step%s", suffix),
                              .title = "Parts of a training step",
                              .caption =
                                  "All-reduce: the part that the backward pass does not hide.",
                              .simulated = simulated};
    bool any = false;
    for (int i = 0, next; i < set->count && chart.panel_count < PANELS_MAX; i = next) {
        for (next = i; next < set->count && lab_str_equal(steps[next].model, steps[i].model);)
            next++;
        any |= add_panel(&chart, steps + i, next - i, arena);
    }
    chart.columns = chart.panel_count > 1 ? 2 : 1;
    if (any)
        lab_analysis_add_chart(result, chart, arena);
}
