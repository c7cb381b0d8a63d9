/*
 * proof_recommend.c: one node of four is the best to feed a GPU from. Is it the one recommended,
 * and does what it gains lie in the interval given?
 */
#include "proof.h"

#include <math.h>

/* Effects in units of the noise; from twice the noise on the best has to be named. */
static const double ratios[] = {2.5, 4, 10}, noises[] = {0.003, 0.01, 0.03};
static const int repeats[] = {3, 5};
#define RATIOS  3
#define NOISES  3
#define REPEATS 2
#define ROUGH   2
#define NODES   4
#define HOME    2

struct planted {
    struct proof_truth truth;
    double ratio;
    int repeats;
};

static struct planted planted_at(int cell) {
    double noise = noises[cell / RATIOS % NOISES];
    /* the nearest other node is half as far as the farthest: it has to be worse by the ratio too */
    return (struct planted){.truth = {.nodes = NODES,
                                      .remote = 2 * ratios[cell % RATIOS] * noise,
                                      .noise = noise,
                                      .rough = cell / RATIOS / NOISES / REPEATS % ROUGH},
                            .ratio = ratios[cell % RATIOS],
                            .repeats = repeats[cell / RATIOS / NOISES % REPEATS]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct planted planted = planted_at(cell);
    return lab_arena_printf(arena, "effect %.1f × noise of %.1f %%%s, %d runs", planted.ratio,
                            100 * planted.truth.noise, planted.truth.rough ? ", rough" : "",
                            planted.repeats);
}

static struct proof_point point_at(int node) {
    return (struct proof_point){.gpu = HOME,
                                .node = node,
                                .patch = 32,
                                .depth = 0,
                                .dim = 64,
                                .batch = 10,
                                .iterations = 40};
}

static void judge(const struct lab_analysis_result *result, const double *rates,
                  struct proof_count *counts) {
    const struct lab_doc_table *placements = proof_table(&result->parts[0], "placements");
    const struct lab_claim *remote = &result->claims[0];
    proof_count_hit(&counts[0],
                    !(remote->verdict == LAB_CLAIM_YES && remote->effect > 0) &&
                        lab_str_equal(proof_figure(result, 0, "numa_nodes")->text, "2"));
    for (int i = 0; i < placements->row_count; i++) {
        int node = proof_cell_at(placements, i, "numa_nodes")->text[0] - '0';
        if (node != HOME)
            proof_count_cover(&counts[1], proof_cell_at(placements, i, "change"),
                              rates[node] / rates[HOME] - 1);
    }
}

static int one_study(const struct proof_cell *cell, const struct planted *planted, uint64_t seed,
                     const double *rates, struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "numa_study", seed);
    for (int r = 0; r < planted->repeats && status == 0; r++)
        for (int i = 0; i < NODES && status == 0; i++) {
            struct proof_point point = point_at((i + r) % NODES);
            status = proof_study_add(&study, &point, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "recommend", &result, err);
    if (status == 0)
        judge(&result, rates, counts);
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct planted planted = planted_at(cell->index);
    double rates[NODES];
    for (int node = 0; node < NODES; node++) {
        struct proof_point point = point_at(node);
        rates[node] = proof_true_rate(cell->machine, &planted.truth, &point, err);
        if (rates[node] < 0)
            return -1;
    }
    proof_define("proof", &planted.truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, &planted, cell->seed + (uint64_t)i, rates, counts, err) < 0)
            return -1;
    return 0;
}

const struct proof_experiment proof_recommend = {
    .name = "recommend",
    .about = "A GPU on one of four nodes is fed from each. Copies from the neighbouring nodes take "
             "longer by at least the multiple of the noise that is given, and from the farthest by "
             "twice that.",
    .claims = {{"the best node is recommended, or none", PROOF_FINDS},
               {"what another costs lies in its interval", PROOF_COVERS}},
    .claim_count = 2,
    .cell_count = RATIOS * NOISES * REPEATS * ROUGH,
    .studies = 60,
    .studies_in_sample = 10,
    .sample_step = 7,
    .label = label,
    .run = run,
};
