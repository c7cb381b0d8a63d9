/*
 * proof_training.c: machines are drawn whose steps take launches, parameters, arithmetic and sums,
 * and in half of the cells also what no cost model has: tiles of other sizes, sums that hide, a
 * deviation of each point. Do measured speed-ups lie in the intervals that `training`'s cost models
 * gave them without having seen them?
 *
 * Points are drawn and not simulated, so that a study has many machines' worth of kinds.
 */
#include "proof.h"

#include "../unit/analysis/training_machines.h"

static const double batches[] = {8, 16, 32, 64, 128};
#define BATCHES        5
#define BATCHES_OF_TWO 4 /* as train_scaling has them, from the second on */
#define OTHERS         (int)(sizeof drawn_others / sizeof *drawn_others)

enum { LEFT_OUT, OTHER_BATCH, OTHER_MODEL, CLAIMS };

struct study {
    const struct drawn_model *models;
    int model_count;
    const double *batches;
    int batch_count;
    bool misfit;
};

static struct study study_at(int cell) {
    static const struct study kinds[] = {
        {drawn_two, 1, batches, BATCHES, false},
        {drawn_two, 2, batches + 1, BATCHES_OF_TWO, false},
        {drawn_four, 4, batches, BATCHES, false},
    };
    struct study study = kinds[cell / 2];
    study.misfit = cell % 2;
    return study;
}

static const char *label(int cell, struct lab_arena *arena) {
    struct study study = study_at(cell);
    return lab_arena_printf(arena, "%d model%s, %d batches, machines %s", study.model_count,
                            study.model_count == 1 ? "" : "s", study.batch_count,
                            study.misfit ? "that deviate from it" : "as the cost model has them");
}

static void count_in(struct proof_count *count, const struct lab_training_speedup *made,
                     double measured) {
    if (isnan(made->low))
        return;
    count->trials++;
    count->hits += measured >= made->low && measured <= made->high;
}

/* Is the speed-up of something that wasn't run, once it is, where it was said to be? */
static void ask(struct drawn_machine *machine, const struct lab_training *training,
                const struct study *study, const struct drawn_model *model,
                struct proof_count *count) {
    double last = study->batches[study->batch_count - 1];
    struct lab_training_work work = {model->parameters, model->layers,
                                     floor(drawn_between(machine, study->batches[0], last)), 2,
                                     false};
    struct lab_training_speedup made = lab_training_predict(training, &work);
    double many_s = drawn_time_s(machine, &work);
    work.devices = 1;
    count_in(count, &made, drawn_time_s(machine, &work) / many_s);
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    (void)err;
    struct study study = study_at(cell->index);
    for (int i = 0; i < cell->studies; i++) {
        struct drawn_machine machine = draw_machine(cell->seed + (uint64_t)i, study.misfit);
        struct lab_training_row rows[DRAWN_ROWS];
        struct lab_training training;
        int count = draw_rows(&machine, study.models, study.model_count, study.batches,
                              study.batch_count, rows);
        lab_training_fit(rows, count, &training);
        /* not at the ends: nothing is predicted outside of what was run */
        int batch = 1 + (int)(drawn_uniform(&machine) * (study.batch_count - 2));
        int model = (int)(drawn_uniform(&machine) * study.model_count);
        const struct lab_training_row *many = &rows[2 * (model * study.batch_count + batch) + 1];
        struct lab_training_speedup made = lab_training_leave_out(&training, many);
        count_in(&counts[LEFT_OUT], &made,
                 lab_training_measured(lab_training_base(&training, many), many));
        int other = (int)(drawn_uniform(&machine) * OTHERS);
        ask(&machine, &training, &study, &study.models[model], &counts[OTHER_BATCH]);
        for (int k = 0; k < 2 && study.model_count >= LAB_TRAINING_MODELS; k++)
            ask(&machine, &training, &study, &drawn_others[(other + k) % OTHERS],
                &counts[OTHER_MODEL]);
    }
    return 0;
}

const struct proof_experiment proof_training = {
    .name = "training",
    .about = "Machines are drawn at random: what a step costs by step, layer, parameter, "
             "arithmetic, round and byte of a sum spans three decades. Half of the cells have "
             "what the cost model lacks. Rows come in tiles of 4 to 32; up to 60% of the "
             "arithmetic hides sums. Each of their points deviates by up to 3%. A speed-up of "
             "two devices is predicted and then drawn; intervals are at 95%. Points are drawn, "
             "not simulated.",
    .claims = {{"a point left out lies in its interval", PROOF_PREDICTS},
               {"a batch that wasn't run lies in its interval", PROOF_PREDICTS},
               {"a model that wasn't run lies in its interval", PROOF_PREDICTS}},
    .claim_count = CLAIMS,
    .cell_count = 6,
    .studies = 600,
    .studies_in_sample = 40,
    .sample_step = 5,
    .label = label,
    .run = run,
};
