/*
 * proof_crossover.c: models from light to heavy go from waiting for copies to waiting for compute. Does
 * the interval of where that turns hold the truth?
 *
 * The truth is where `crossover` itself puts it on the machine without noise. Times don't grow on a
 * straight line with the work, which the interval allows for: it is wider than noise alone would make
 * it, so that it has to hold the truth in at least 95 %, not in 93 to 97.
 */
#include "proof.h"

#include <math.h>

static const double noises[] = {0.003, 0.01, 0.03};
static const int repeats[] = {3, 6};
#define NOISES  3
#define REPEATS 2
#define ROUGH   2

static const struct {
    int depth, dim;
} models[] = {{1, 64}, {2, 128}, {2, 256}, {4, 256}, {4, 512}, {8, 512}};
#define MODELS (int)(sizeof models / sizeof *models)

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){
        .nodes = 2, .noise = noises[cell % NOISES], .rough = cell / NOISES / REPEATS % ROUGH};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "noise %.1f %%%s, %d runs of %d models", 100 * truth.noise,
                            truth.rough ? ", rough" : "", repeats[cell / NOISES % REPEATS], MODELS);
}

/* The turn in `ret_turn`, which refers to the study. */
static int make_study(struct proof_study *study, const struct proof_cell *cell, const char *machine,
                      int runs, uint64_t seed, const struct lab_analysis_cell **ret_turn,
                      struct lab_err *err) {
    struct lab_analysis_result result;
    proof_study_begin(study, cell->machine, machine, "scaling_study", seed);
    for (int r = 0; r < runs; r++)
        for (int m = 0; m < MODELS; m++) {
            struct proof_point point = {.patch = 32,
                                        .depth = models[m].depth,
                                        .dim = models[m].dim,
                                        .batch = 10,
                                        .iterations = 20};
            if (proof_study_add(study, &point, r, err) < 0)
                return -1;
        }
    if (proof_analyse(study, "crossover", &result, err) < 0)
        return -1;
    *ret_turn = proof_figure(&result, 0, "turn_gflop_per_sample");
    return 0;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index), quiet = {.nodes = truth.nodes};
    const struct lab_analysis_cell *turn = NULL;
    struct proof_study study;
    proof_define("proof-quiet", &quiet);
    int status = make_study(&study, cell, "proof-quiet", 2, 1, &turn, err);
    double where = turn ? turn->value : (double)NAN;
    proof_study_end(&study);
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies && status == 0; i++) {
        turn = NULL;
        status = make_study(&study, cell, "proof", repeats[cell->index / NOISES % REPEATS],
                            cell->seed + (uint64_t)i, &turn, err);
        if (turn)
            proof_count_cover(&counts[0], turn, where);
        proof_study_end(&study);
    }
    return status;
}

const struct proof_experiment proof_crossover = {
    .name = "crossover",
    .about =
        "Six models from light to heavy on one GPU; where waiting for copies turns into waiting "
        "for compute is taken from the same machine without noise.",
    .claims = {{"where it turns lies in its interval", PROOF_FINDS}},
    .claim_count = 1,
    .cell_count = NOISES * REPEATS * ROUGH,
    .studies = 60,
    .studies_in_sample = 10,
    .sample_step = 5,
    .label = label,
    .run = run,
};
