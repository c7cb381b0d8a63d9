/*
 * proof_device.c: one of four GPUs computes slower, or none does. Is it named and no other, and does
 * its loss lie in the interval?
 */
#include "proof.h"

static const double ratios[] = {0, 2.5, 5}, noises[] = {0.003, 0.01, 0.03};
#define RATIOS  3
#define NOISES  3
#define ROUGH   2
#define REPEATS 5
#define GPUS    4
#define SLOW    1

static struct proof_truth truth_at(int cell) {
    double noise = noises[cell / RATIOS % NOISES];
    return (struct proof_truth){.nodes = GPUS,
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

/* A claim on another GPU is wrong, whatever is planted: it is compared with those that don't
 * differ. */
static void judge(const struct lab_analysis_result *result, double loss,
                  struct proof_count *counts) {
    bool wrong = false;
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        bool slow = loss < 0 && lab_str_equal(claim->subject, "GPU 1");
        wrong |= claim->verdict == LAB_CLAIM_YES && (!slow || claim->effect > 0);
        if (slow)
            proof_count_claim(&counts[1], claim, loss);
    }
    proof_count_hit(&counts[0], !wrong);
}

static int one_study(const struct proof_cell *cell, uint64_t seed, double loss,
                     struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "numa_study", seed);
    for (int r = 0; r < REPEATS && status == 0; r++)
        for (int i = 0; i < GPUS && status == 0; i++) {
            struct proof_point point = point_at((i + r) % GPUS);
            status = proof_study_add(&study, &point, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "peers", &result, err);
    if (status == 0)
        judge(&result, loss, counts);
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point fast = point_at(0), slow = point_at(SLOW);
    double best = proof_true_rate(cell->machine, &truth, &fast, err),
           other = best < 0 ? -1 : proof_true_rate(cell->machine, &truth, &slow, err);
    if (other < 0)
        return -1;
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, cell->seed + (uint64_t)i, truth.slow_gpu > 0 ? other / best - 1 : 0,
                      counts, err) < 0)
            return -1;
    return 0;
}

const struct proof_experiment proof_device = {
    .name = "device",
    .about = "Four GPUs, of which one computes slower by the multiple of the noise that is given, "
             "or none does, with five runs of each; `peers` must name no other.",
    .claims = {{"no other GPU is called slow", PROOF_FINDS},
               {"what the slow one loses lies in its interval", PROOF_COVERS}},
    .claim_count = 2,
    .cell_count = RATIOS * NOISES * ROUGH,
    .studies = 300,
    .studies_in_sample = 10,
    .sample_step = 5,
    .label = label,
    .run = run,
};
