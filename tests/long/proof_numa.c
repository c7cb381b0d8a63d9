/*
 * proof_numa.c: a penalty for feeding a GPU from the other node is planted. Does the interval that
 * `numa` gives hold what it costs, and does it keep quiet where it costs nothing?
 */
#include "proof.h"

static const double penalties[] = {0, 0.02, 0.1, 0.3}, noises[] = {0.002, 0.01, 0.03};
static const int repeats[] = {3, 6};
#define PENALTIES 4
#define NOISES    3
#define REPEATS   2
#define ROUGH     2

struct planted {
    struct proof_truth truth;
    int repeats;
};

static struct planted planted_at(int cell) {
    return (struct planted){.truth = {.nodes = 2,
                                      .remote = penalties[cell % PENALTIES],
                                      .noise = noises[cell / PENALTIES % NOISES],
                                      .rough = cell / PENALTIES / NOISES / REPEATS % ROUGH},
                            .repeats = repeats[cell / PENALTIES / NOISES % REPEATS]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct planted planted = planted_at(cell);
    return lab_arena_printf(arena, "copies %.0f %% slower, noise %.1f %%%s, %d runs",
                            100 * planted.truth.remote, 100 * planted.truth.noise,
                            planted.truth.rough ? ", rough" : "", planted.repeats);
}

/* Copies alone: what they cost is what there is. */
static struct proof_point point_at(int node) {
    return (struct proof_point){
        .node = node, .patch = 32, .depth = 0, .dim = 64, .batch = 10, .iterations = 60};
}

static int one_study(const struct proof_cell *cell, const struct planted *planted, uint64_t seed,
                     double penalty, struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    proof_study_begin(&study, cell->machine, "proof", "numa_study", seed);
    int status = 0;
    for (int r = 0; r < planted->repeats && status == 0; r++)
        for (int i = 0; i < 2 && status == 0; i++) {
            struct proof_point point = point_at((i + r) % 2);
            status = proof_study_add(&study, &point, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "numa", &result, err);
    for (int i = 0; i < result.claim_count; i++) {
        if (!lab_str_equal(result.claims[i].kind, "numa.cell"))
            continue;
        proof_count_claim(&counts[0], &result.claims[i], -penalty);
        if (planted->truth.remote == 0)
            proof_count_hit(&counts[1], result.claims[i].verdict == LAB_CLAIM_YES);
    }
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct planted planted = planted_at(cell->index);
    struct proof_point near = point_at(0), far = point_at(1);
    double local = proof_true_rate(cell->machine, &planted.truth, &near, err),
           remote = local < 0 ? -1 : proof_true_rate(cell->machine, &planted.truth, &far, err);
    if (remote < 0)
        return -1;
    proof_define("proof", &planted.truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, &planted, cell->seed + (uint64_t)i, 1 - remote / local, counts, err) <
            0)
            return -1;
    return 0;
}

const struct proof_experiment proof_numa = {
    .name = "numa",
    .about =
        "Copies from the other node take longer by the share planted. Studies feed one GPU from "
        "both nodes; the noise is the spread between runs. Rough noise is autocorrelated, "
        "heavy-tailed and drifting within runs besides.",
    .claims = {{"penalty's interval holds the truth", PROOF_COVERS},
               {"a penalty is claimed where there is none", PROOF_ALARMS}},
    .claim_count = 2,
    .cell_count = PENALTIES * NOISES * REPEATS * ROUGH,
    .studies = 200,
    .studies_in_sample = 15,
    .sample_step = 5,
    .label = label,
    .run = run,
};
