/*
 * proof_device.c: one of two GPUs computes slower. Is the other recommended, and is the slower
 * one's loss in its interval?
 */
#include "proof.h"

static const double ratios[] = {2.5, 5}, noises[] = {0.003, 0.01, 0.03};
#define RATIOS  2
#define NOISES  3
#define ROUGH   2
#define REPEATS 5

static struct proof_truth truth_at(int cell) {
    double noise = noises[cell / RATIOS % NOISES];
    return (struct proof_truth){.nodes = 2,
                                .slow_gpu = ratios[cell % RATIOS] * noise,
                                .noise = noise,
                                .rough = cell / RATIOS / NOISES % ROUGH};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "GPU 1 slower by %.1f × noise of %.1f %%%s",
                            ratios[cell % RATIOS], 100 * truth.noise, truth.rough ? ", rough" : "");
}

/* Enough to compute that copies hide behind it. */
static struct proof_point point_at(int gpu) {
    return (struct proof_point){.gpu = gpu,
                                .node = gpu,
                                .patch = 16,
                                .depth = 2,
                                .dim = 768,
                                .batch = 10,
                                .iterations = 20};
}

static int one_study(const struct proof_cell *cell, uint64_t seed, double loss,
                     struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "numa_study", seed);
    for (int r = 0; r < REPEATS && status == 0; r++)
        for (int i = 0; i < 2 && status == 0; i++) {
            struct proof_point point = point_at((i + r) % 2);
            status = proof_study_add(&study, &point, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "recommend", &result, err);
    if (status == 0) {
        const struct lab_claim *claim = &result.claims[0];
        proof_count_hit(&counts[0], !(claim->verdict == LAB_CLAIM_YES && claim->effect > 0));
        proof_count_claim(&counts[1], claim, loss);
    }
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point fast = point_at(0), slow = point_at(1);
    double best = proof_true_rate(cell->machine, &truth, &fast, err),
           other = best < 0 ? -1 : proof_true_rate(cell->machine, &truth, &slow, err);
    if (other < 0)
        return -1;
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, cell->seed + (uint64_t)i, other / best - 1, counts, err) < 0)
            return -1;
    return 0;
}

const struct proof_experiment proof_device = {
    .name = "device",
    .about =
        "Two GPUs, of which one computes slower by the multiple of the noise that is given, with "
        "five runs of each; `recommend` must not name it.",
    .claims = {{"the faster GPU is recommended, or none", PROOF_FINDS},
               {"what the slower one loses lies in its interval", PROOF_COVERS}},
    .claim_count = 2,
    .cell_count = RATIOS * NOISES * ROUGH,
    .studies = 300,
    .studies_in_sample = 10,
    .sample_step = 5,
    .label = label,
    .run = run,
};
