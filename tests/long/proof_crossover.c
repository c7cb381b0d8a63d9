/*
 * proof_crossover.c: light models are transfer-bound, heavy ones compute-bound. Does the interval of
 * the crossover hold the truth?
 *
 * The truth is worked out here, from the stages of the same models on the machine without noise:
 * where compute passes copies on the way from one model to the next, by as much as each is away
 * from it. What the machine would do between two models is not asked: a pipeline with two buffers
 * has a stretch there in which neither bounds it alone. The models keep clear of that stretch.
 */
#include "proof.h"

#include <math.h>

static const double rates[] = {16, 20, 40}; /* TFLOP/s: the faster, the later the crossover */
static const double noises[] = {0.003, 0.01, 0.03};
static const int repeats[] = {3, 5}, depths[] = {1, 2, 4, 8};
#define RATES   3
#define NOISES  3
#define REPEATS 2
#define ROUGH   2
#define DEPTHS  (int)(sizeof depths / sizeof *depths)

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){.nodes = 2,
                                .tflops = rates[cell % RATES],
                                .noise = noises[cell / RATES % NOISES],
                                .rough = cell / RATES / NOISES / REPEATS % ROUGH};
}

static int repeats_at(int cell) {
    return repeats[cell / RATES / NOISES % REPEATS];
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "%.0f TFLOP/s, noise %.1f%%%s, %d runs", truth.tflops,
                            100 * truth.noise, truth.rough ? ", rough" : "", repeats_at(cell));
}

static int add_model(struct proof_study *study, int depth, int repeat, struct lab_err *err) {
    struct proof_point point = {
        .patch = 32, .depth = depth, .dim = 256, .batch = 10, .iterations = 20};
    return proof_study_add(study, &point, repeat, err);
}

/* --- the truth --- */

/* How much longer than the longer copy the compute stage takes, in ns; without noise all iterations
 * but the first few are alike. */
static double excess_of(const struct lab_study_run *run) {
    const struct lab_span *stages =
        run->ranks[0].iterations[run->ranks[0].iteration_count / 2].stages;
    double lengths[LAB_STAGE_COUNT];
    for (int s = 0; s < LAB_STAGE_COUNT; s++)
        lengths[s] = (double)(stages[s].end_ns - stages[s].start_ns);
    return lengths[LAB_STAGE_COMPUTE] - fmax(lengths[LAB_STAGE_H2D], lengths[LAB_STAGE_D2H]);
}

static int find_truth(const struct proof_cell *cell, double *ret_gflop, struct lab_err *err) {
    struct proof_truth quiet = {.nodes = 2, .tflops = truth_at(cell->index).tflops};
    struct proof_study study;
    double before = NAN, work_before = NAN;
    int status = 0;
    *ret_gflop = NAN;
    proof_define("proof-quiet", &quiet);
    proof_study_begin(&study, cell->machine, "proof-quiet", "scaling_study", 1);
    for (int m = 0; m < DEPTHS && isnan(*ret_gflop) && status == 0; m++) {
        status = add_model(&study, depths[m], 0, err);
        if (status < 0)
            break;
        const struct lab_study_run *last = &study.table.runs[study.table.run_count - 1];
        double excess = excess_of(last), work = 1e-9 * last->work.flops / last->work.samples;
        if (before < 0 && excess >= 0)
            *ret_gflop = work_before + (work - work_before) * before / (before - excess);
        before = excess;
        work_before = work;
    }
    proof_study_end(&study);
    if (status == 0 && isnan(*ret_gflop))
        return lab_err_set(err, LAB_ERR_SYSTEM, "no crossover between any two models");
    return status;
}

/* --- studies --- */

static int one_study(const struct proof_cell *cell, uint64_t seed, double truth,
                     struct proof_count *counts, struct lab_err *err) {
    struct lab_analysis_result result = {0};
    struct proof_study study;
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "scaling_study", seed);
    for (int r = 0; r < repeats_at(cell->index) && status == 0; r++)
        for (int m = 0; m < DEPTHS && status == 0; m++)
            status = add_model(&study, depths[m], r, err);
    if (status == 0)
        status = proof_analyse(&study, "crossover", &result, err);
    if (status == 0) {
        const struct lab_claim *found = &result.claims[0];
        proof_count_hit(&counts[1], found->verdict == LAB_CLAIM_YES);
        proof_count_claim(&counts[0], found, 1e9 * truth);
    }
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    double gflop;
    int status = find_truth(cell, &gflop, err);
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies && status == 0; i++)
        status = one_study(cell, cell->seed + (uint64_t)i, gflop, counts, err);
    return status;
}

const struct proof_experiment proof_crossover = {
    .name = "crossover",
    .about =
        "Models of four depths, transfer-bound to compute-bound, on GPUs of several rates. The "
        "truth "
        "is the machine's without noise: the work at which compute time passes transfer time, on "
        "straight lines between its models.",
    .claims = {{"the crossover lies in its interval", PROOF_COVERS},
               {"a crossover is found", PROOF_FINDS}},
    .claim_count = 2,
    .cell_count = RATES * NOISES * REPEATS * ROUGH,
    .studies = 60,
    .studies_in_sample = 5,
    .sample_step = 13,
    .label = label,
    .run = run,
};
