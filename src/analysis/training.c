/*
 * training.c: `gpulab analyze training`: whether several devices train a model faster than one,
 * where break-even lies, what a step is made of, and whether gpu_mode=auto chose well. Speed-ups
 * are speedup/'s claims; what a step costs is training/'s.
 */
#include "analysis/training/training.h"

#include "analysis/analysis_published.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

struct figures {
    int points, speedups;
    double error, within;
};

static const struct lab_field figure_fields[] = {
    LAB_FIELD(struct figures, points, "points", "Points", LAB_UNIT_COUNT, "Points"),
    LAB_FIELD(struct figures, speedups, "speedups", "Speed-ups", LAB_UNIT_COUNT),
    LAB_FIELD(struct figures, error, "leave_one_out_error", "Prediction error", LAB_UNIT_SHARE,
              "Error"),
    LAB_FIELD(struct figures, within, "within_interval", "Within interval", LAB_UNIT_SHARE),
};

/* --- speed-ups of points that the cost model hasn't seen --- */

struct prediction {
    const char *model, *scaling, *measured_times, *predicted_times;
    double batch;
    int devices;
    struct lab_effect measured, predicted;
    bool within;
};

static const struct lab_field prediction_fields[] = {
    LAB_FIELD(struct prediction, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct prediction, batch, "batch_size", "Batch", LAB_UNIT_COUNT),
    LAB_FIELD(struct prediction, scaling, "scaling", "Scaling", LAB_UNIT_TEXT),
    LAB_FIELD(struct prediction, devices, "devices", "Devices", LAB_UNIT_COUNT),
    LAB_FIELD(struct prediction, measured, "measured", NULL, LAB_UNIT_RATIO, NULL, true),
    LAB_FIELD(struct prediction, predicted, "predicted", NULL, LAB_UNIT_RATIO, NULL, true),
    LAB_FIELD(struct prediction, measured_times, NULL, "Measured, 95% CI", LAB_UNIT_FIGURE),
    LAB_FIELD(struct prediction, predicted_times, NULL, "Predicted, 95%", LAB_UNIT_FIGURE),
    LAB_FIELD(struct prediction, within, "within", NULL, LAB_UNIT_TEXT),
};

static const struct lab_gang *gang_of(const struct lab_gangs *gangs,
                                      const struct lab_training_row *row) {
    for (int i = 0; i < gangs->count; i++)
        if (gangs->items[i].point->runs[0]->run == row->point->runs[0]->run)
            return &gangs->items[i];
    return NULL;
}

static void add_predictions(struct lab_analysis_part *part, const struct lab_training *training,
                            const struct lab_gangs *gangs, struct figures *figures,
                            struct lab_arena *arena) {
    struct prediction *rows = NULL;
    int count = 0, within = 0;
    for (int i = 0; i < training->row_count && training->law_count > 0; i++) {
        const struct lab_training_row *row = &training->rows[i],
                                      *base = lab_training_base(training, row);
        const struct lab_gang *gang = gang_of(gangs, row);
        if (row->work.devices == 1 || !base || !gang)
            continue;
        struct lab_training_speedup made = lab_training_leave_out(training, row);
        double speedup = lab_training_measured(base, row);
        if (isnan(made.low))
            continue;
        struct prediction one = {
            .model = row->model,
            .batch = row->work.batch,
            .scaling = gang->scaling,
            .devices = row->work.devices,
            .measured = gang->speedup,
            .measured_times = gang->times,
            .predicted = {made.value, {made.low, made.high, LAB_TRAINING_CONFIDENCE}},
            .predicted_times = lab_speedup_times(made.value, made.low, made.high, arena),
            .within = speedup >= made.low && speedup <= made.high};
        within += one.within;
        LAB_ADD(rows, count, arena) = one;
    }
    figures->within = count > 0 ? (double)within / count : (double)NAN;
    lab_analysis_hide_columns(lab_rows_add_table(part, "predicted",
                                                 "Predicted from all other points, and measured",
                                                 &LAB_ROWS(prediction_fields, rows, count), arena),
                              arena);
}

/* --- published --- */

struct published {
    const char *model;
    int batch;
    double one, two, speedup, here;
};

static const struct lab_field published_fields[] = {
    LAB_FIELD(struct published, model, "model", "Model", LAB_UNIT_TEXT),
    LAB_FIELD(struct published, batch, "batch_size", "Batch", LAB_UNIT_COUNT),
    LAB_FIELD(struct published, one, "one_per_s", "One GPU, samples/s", LAB_UNIT_COUNT),
    LAB_FIELD(struct published, two, "two_per_s", "Two GPUs, samples/s", LAB_UNIT_COUNT),
    LAB_FIELD(struct published, speedup, "speedup", "Speed-up", LAB_UNIT_RATIO),
    LAB_FIELD(struct published, here, "here", "Here", LAB_UNIT_RATIO),
};

static void add_published(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                          struct lab_arena *arena) {
    struct published *rows = NULL;
    int count = 0;
    for (const struct lab_published *row = lab_published; row->model; row++) {
        bool has_model = false;
        double here = NAN;
        for (int i = 0; i < gangs->count; i++) {
            const struct lab_gang *gang = &gangs->items[i];
            bool same = lab_str_equal(gang->model, row->model) && !gang->independent;
            has_model |= same;
            if (same && gang->batch == row->batch && gang->devices == 2 && !gang->scaling)
                here = gang->speedup.value;
        }
        if (has_model)
            LAB_ADD(rows, count, arena) = (struct published){
                row->model, row->batch, row->one, row->two, row->two / row->one, here};
    }
    lab_rows_add_table(part, "published",
                       "Published for models of these names: two RTX 4070 Ti SUPER, TensorFlow",
                       &LAB_ROWS(published_fields, rows, count), arena);
}

/* --- what to test next --- */

#define RISING 1.2 /* times the speed-up at the smallest batch */
#define NEAR   0.5 /* a speed-up from which a few times the batch may pay off */

/* Where no number of devices pays off, and the speed-up of some model rises with the batch and is
 * near 1: larger ones. */
static void test_larger(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                        struct lab_arena *arena) {
    const struct lab_gang *last = NULL;
    double largest = 0;
    if (gangs->pool_count == 0 || lab_gangs_best(gangs) || lab_gangs_unshared(gangs->study))
        return;
    for (int i = 0; i < gangs->count; i++)
        largest = fmax(largest, gangs->items[i].batch);
    for (int i = 0; i < gangs->count; i++)
        for (int k = 0; k < gangs->count; k++) {
            const struct lab_gang *small = &gangs->items[i], *large = &gangs->items[k];
            if (large->batch == largest && small->batch < largest &&
                large->devices == gangs->pools[0].devices && small->devices == large->devices &&
                !large->independent && lab_str_equal(small->model, large->model) &&
                large->speedup.value > fmax(NEAR, RISING * small->speedup.value) &&
                (!last || large->speedup.value > last->speedup.value))
                last = large;
        }
    if (!last)
        return;
    result->further = lab_arena_printf(arena, "experiment.batch_sizes=[%.0f,%.0f,%.0f]",
                                       2 * largest, 4 * largest, 8 * largest);
    result->tests =
        lab_arena_printf(arena,
                         "Test larger batches: for %s the speed-up of %d %ss rises with "
                         "the batch, to %s at %.0f",
                         last->model, last->devices, gangs->unit, last->times, largest);
    result->further_first = false;
}

/* --- parts --- */

static void add_part(struct lab_analysis_result *result, const struct lab_study_table *study,
                     struct lab_training_set *set, struct lab_arena *arena) {
    const char *suffix = lab_analysis_suffix(result->part_count, arena);
    int before = result->claim_count;
    const char *name =
        set->what[0] ? lab_arena_printf(arena, "%s, %s", study->name, set->what) : study->name;
    struct lab_study_table *own = lab_arena_alloc(arena, 1, sizeof *own);
    struct lab_training training;
    *own = lab_training_set_study(study, set, arena);
    struct lab_gangs gangs = lab_gangs_make(own, "training", arena);
    lab_training_fit(set->rows, set->count, &training);
    struct lab_analysis_part *part = lab_analysis_add_part(result, name, arena);
    const char *chosen = training_add_auto(result, part, &gangs, set, arena);
    struct figures figures = {training.row_count, training.pair_count, training.error, NAN};
    part->untested = chosen ? NULL : lab_gangs_untested(&gangs, arena);
    const char *answer = gangs.pool_count > 0 ? lab_gangs_answer(&gangs, arena) : NULL;
    bool limited =
        !lab_training_lacks_nvlink(study) || (answer && strstr(answer, "No answer for "));
    part->answer =
        answer ? lab_arena_printf(arena, "%s%s%s%s", chosen ? chosen : "", chosen ? " " : "",
                                  answer, limited ? "" : " " LAB_TRAINING_SIMULATED_SUMS)
               : chosen;
    lab_gangs_add_command(result, &gangs, arena);
    if (own->simulated && gangs.pool_count > 0 && !lab_gangs_unshared(own) &&
        (lab_gangs_best(&gangs) || !lab_gangs_lack_nvlink(&gangs))) {
        result->further = "device=cuda";
        result->tests = LAB_GANGS_REAL;
        result->further_first = lab_gangs_lack_nvlink(&gangs);
    }
    test_larger(result, &gangs, arena);
    if (lab_gangs_add_overview(part, &gangs, arena) && result->part_count == 1)
        result->by_point = lab_arena_printf(
            arena, "Speed-up over one %s at that batch, mean over runs.", gangs.unit);
    lab_gangs_add(result, part, &gangs, arena);
    lab_gangs_add_batch_chart(result, &gangs, lab_arena_printf(arena, "training_speedup%s", suffix),
                              arena);
    training_add_steps(result, part, set, study->simulated, suffix, arena);
    add_predictions(part, &training, &gangs, &figures, arena);
    add_published(part, &gangs, arena);
    LAB_PART_FIGURES(part, figure_fields, &figures, arena);
    lab_analysis_drop_empty(part);
    if (training.pair_count > 0 && training.law_count == 0)
        lab_analysis_note(&part->notes, arena, "No predictions: %s.", training.lacks);
    for (int i = before; i < result->claim_count && set->what[0]; i++) /* one set of several */
        result->claims[i].subject =
            lab_arena_printf(arena, "%s, %s", result->claims[i].subject, set->what);
}

static int training_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                        struct lab_err *err) {
    (void)err;
    struct lab_arena *arena = result->arena;
    for (int i = 0; i < input->study_count; i++) {
        struct lab_training_set *sets;
        int count = lab_training_sets(&input->studies[i], arena, &sets);
        for (int k = 0; k < count; k++) {
            add_part(result, &input->studies[i], &sets[k], arena);
            const struct lab_analysis_part *part = &result->parts[0];
            if (result->part_count == 1 && count > 1 && part->answer)
                result->answer = lab_arena_printf(arena, "%s: %s", sets[k].what, part->answer);
        }
    }
    result->lacks = result->part_count == 0;
    if (result->lacks)
        result->untested = "no run trains a model.";
    lab_study_add_notes(&input->studies[0], "", &result->notes, arena);
    return 0;
}

#define INTEREST 95

static int training_interest(const struct lab_study_table *study) {
    bool trains = lab_study_trains(study);
    for (int i = 0; i < study->run_count && lab_str_equal(study->gpu_mode, "auto"); i++)
        trains |= study->runs[i].work.layers > 0 && study->runs[i].work.parameters > 0;
    return trains && !lab_study_has_phases(study) ? INTEREST : 0;
}

const struct lab_analysis lab_analysis_training = {
    .name = "training",
    .summary = "whether several devices train a model faster than one",
    .description =
        "Throughput of several devices compared with one, by model and batch: first pooled, then "
        "each, with intervals over runs at 95%. Break-even over batches and sizes of models is "
        "given within the tested range. What a step is made of is measured: forward, backward, "
        "all-reduce as far as the backward pass doesn't hide it, update. With gpu_mode=auto, the "
        "number of devices that it chose is compared with one device.\n"
        "\n"
        "A cost model of a step (launches, arithmetic, rounds and bytes of the all-reduce) is "
        "checked by predicting each point from all the others. 'gpulab advise --workload mlp' uses "
        "it within the tested range.",
    .kinds = (const struct lab_analysis_kind[]){{"training.devices"},
                                                {"training.cell"},
                                                {"training.gang"},
                                                {"training.auto", LAB_KIND_PLANNED},
                                                {"training.break_even", LAB_KIND_ESTIMATE},
                                                {NULL}},
    .source = LAB_ANALYSIS_OF_STUDIES,
    .interest = training_interest,
    LAB_PARTS_OF("sets", figure_fields),
    .run = training_run,
};
