/*
 * proof_compile.c: compiling a model makes its launches cheaper by what the machine's description
 * says. Does the interval of what `compile` says it gains hold the truth?
 */
#include "proof.h"

static const double noises[] = {0.002, 0.01, 0.03};
static const int depths[] = {2, 6}, repeats[] = {3, 6};
#define NOISES  3
#define DEPTHS  2
#define REPEATS 2
#define ROUGH   2

struct planted {
    struct proof_truth truth;
    int depth, repeats;
};

static struct planted planted_at(int cell) {
    return (struct planted){.truth = {.nodes = 2,
                                      .noise = noises[cell % NOISES],
                                      .rough = cell / NOISES / DEPTHS / REPEATS % ROUGH},
                            .depth = depths[cell / NOISES % DEPTHS],
                            .repeats = repeats[cell / NOISES / DEPTHS % REPEATS]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct planted planted = planted_at(cell);
    return lab_arena_printf(arena, "depth %d, noise %.1f %%%s, %d runs", planted.depth,
                            100 * planted.truth.noise, planted.truth.rough ? ", rough" : "",
                            planted.repeats);
}

static struct proof_point point_at(const struct planted *planted, bool compiled) {
    return (struct proof_point){.patch = 32,
                                .depth = planted->depth,
                                .dim = 128,
                                .batch = 2,
                                .compiled = compiled,
                                .iterations = 40};
}

static int one_study(const struct proof_cell *cell, const struct planted *planted, uint64_t seed,
                     double gain, struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "compile_study", seed);
    for (int r = 0; r < planted->repeats && status == 0; r++)
        for (int i = 0; i < 2 && status == 0; i++) {
            struct proof_point point = point_at(planted, (i + r) % 2);
            status = proof_study_add(&study, &point, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "compile", &result, err);
    if (status == 0 && result.claim_count > 0)
        proof_count_claim(&counts[0], &result.claims[0], gain);
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct planted planted = planted_at(cell->index);
    struct proof_point plain = point_at(&planted, false), compiled = point_at(&planted, true);
    double before = proof_true_rate(cell->machine, &planted.truth, &plain, err),
           after = before < 0 ? -1 : proof_true_rate(cell->machine, &planted.truth, &compiled, err);
    if (after < 0)
        return -1;
    proof_define("proof", &planted.truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, &planted, cell->seed + (uint64_t)i, after / before - 1, counts, err) <
            0)
            return -1;
    return 0;
}

const struct proof_experiment proof_compile = {
    .name = "compile",
    .about = "Small models, whose time is that of their launches, compiled and not.",
    .claims = {{"what compiling gains lies in its interval", PROOF_COVERS}},
    .claim_count = 1,
    .cell_count = NOISES * DEPTHS * REPEATS * ROUGH,
    .studies = 100,
    .studies_in_sample = 8,
    .sample_step = 5,
    .label = label,
    .run = run,
};
