/*
 * proof_speedup.c: two GPUs feed through one link, and two through links of their own. Does
 * `speedup` say how much the second one brings, grade it right, and name the pair that shares
 * nothing?
 *
 * The pipeline copies one way only, over slots without latency. Otherwise a pair without noise runs
 * in step, and the link is idle whenever both pause; with noise one uses it while the other pauses,
 * so that the quiet machine's speed-up, which is the truth here, would be below that of all noisy
 * ones.
 */
#include "proof.h"

#include <string.h>

static const double links[] = {26, 28, 34, 42}; /* GB/s; one GPU's slot takes 25 */
static const double noises[] = {0.003, 0.01, 0.03};
#define LINKS   4
#define NOISES  3
#define ROUGH   2
#define REPEATS 4

enum { SHARED, APART, GRADE, PAIR, ALARM, CLAIMS };

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){.nodes = 2,
                                .shared_gb_s = links[cell % LINKS],
                                .noise = noises[cell / LINKS % NOISES],
                                .rough = cell / LINKS / NOISES % ROUGH};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "link of %.0f GB/s, noise %.1f%%%s", truth.shared_gb_s,
                            100 * truth.noise, truth.rough ? ", rough" : "");
}

static struct proof_point point_at(int gpu) {
    return (struct proof_point){.gpu = gpu,
                                .node = gpu == 2,
                                .patch = 32,
                                .depth = 1,
                                .dim = 64,
                                .batch = 10,
                                .iterations = 20};
}

/* GPU 0 alone, with 1 behind the same link, with 2 on the other node. */
static int ranks_of(int kind, struct proof_point *points) {
    points[0] = point_at(0);
    points[1] = point_at(kind);
    return kind == 0 ? 1 : 2;
}

/* As documented. */
static const char *grade_of(double speedup) {
    return speedup >= 1.10 ? "beneficial" : speedup >= 1 ? "marginal" : "stay single";
}

/* The pair with the higher throughput, by the claim about the two. */
static bool names_pair(const struct lab_analysis_result *result, const char *device) {
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        if (lab_str_equal(claim->kind, "speedup.gang"))
            return claim->verdict == LAB_CLAIM_YES &&
                   strstr(claim->effect > 0 ? claim->subject : claim->reference, device);
    }
    return false;
}

static void judge(const struct lab_analysis_result *result, const double *speedups,
                  struct proof_count *counts) {
    const struct lab_doc_table *table = proof_table(&result->parts[0], "speedups");
    for (int row = 0; row < table->row_count; row++) {
        const struct lab_doc_cell *speedup = proof_cell_at(table, row, "speedup");
        const char *grade = proof_cell_at(table, row, "grade")->text;
        bool apart = lab_str_equal(proof_cell_at(table, row, "gpu_ids")->text, "0+2");
        double truth = speedups[apart ? 2 : 1];
        proof_count_cover(&counts[apart ? APART : SHARED], speedup, truth);
        if (!lab_str_equal(grade, "inconclusive"))
            proof_count_hit(&counts[GRADE], lab_str_equal(grade, "faster")
                                                ? truth > 1
                                                : lab_str_equal(grade, grade_of(truth)));
        if (apart)
            proof_count_hit(&counts[ALARM], proof_cell_at(table, row, "efficiency")->high < 1);
    }
    proof_count_hit(&counts[PAIR], names_pair(result, "+2"));
}

static int one_study(const struct proof_cell *cell, uint64_t seed, const double *speedups,
                     struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "throughput_study", seed);
    for (int r = 0; r < REPEATS && status == 0; r++)
        for (int i = 0; i < 3 && status == 0; i++) {
            struct proof_point points[2];
            int count = ranks_of((i + r) % 3, points);
            status = proof_study_add_gang(&study, points, count, r, err);
        }
    if (status == 0)
        status = proof_analyse(&study, "speedup", &result, err);
    if (status == 0)
        judge(&result, speedups, counts);
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    double rates[3], speedups[3];
    for (int kind = 0; kind < 3; kind++) {
        struct proof_point points[2];
        int count = ranks_of(kind, points);
        rates[kind] = proof_true_gang_rate(cell->machine, &truth, points, count, err);
        if (rates[kind] < 0)
            return -1;
        speedups[kind] = rates[kind] / rates[0];
    }
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++)
        if (one_study(cell, cell->seed + (uint64_t)i, speedups, counts, err) < 0)
            return -1;
    return 0;
}

const struct proof_experiment proof_speedup = {
    .name = "speedup",
    .about =
        "Contention by a shared link: a transfer-bound model runs on one GPU, on two that share a "
        "link, and on two that don't. There are four runs of each. One GPU takes 25 GB/s alone. "
        "Two reach 1.05 to 1.68 times its throughput on a shared link, twice it on separate links. "
        "The truth is the same machine's without noise. A grade counts where it isn't "
        "inconclusive.",
    .claims = {[SHARED] = {"speed-up of the pair that shares lies in its interval", PROOF_COVERS},
               [APART] = {"speed-up of the other pair lies in its interval", PROOF_COVERS},
               [GRADE] = {"a grade that is given is right", PROOF_FINDS},
               [PAIR] = {"the pair that shares nothing is named as the faster", PROOF_FINDS},
               [ALARM] = {"a loss is claimed where nothing is shared", PROOF_ALARMS}},
    .claim_count = CLAIMS,
    .cell_count = LINKS * NOISES * ROUGH,
    .studies = 90,
    .studies_in_sample = 5,
    .sample_step = 9,
    .label = label,
    .run = run,
};
