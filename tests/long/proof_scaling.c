/*
 * proof_scaling.c: a GPU's compute rate, launch overhead and memory bandwidth are planted, and
 * models of several depths and widths are simulated. Do the intervals of `scaling` hold all three,
 * and the iteration time of a model that wasn't run?
 */
#include "proof.h"

#include <math.h>

enum { PREDICTION = 3, SHAPE, CLAIMS }; /* of the claims below */

static const double rates[] = {12, 40}, noises[] = {0.002, 0.005}; /* TFLOP/s */
static const int repeats[] = {3, 5};
#define RATES     2
#define NOISES    2
#define REPEATS   2
#define ROUGH     2
#define LAUNCH    2e-6 /* what machines have that don't say otherwise */
#define BANDWIDTH 500  /* GB/s: norms are memory-bound, products compute-bound */

/* As scaling_study and one more; the last one is predicted. */
static const struct {
    int depth, dim;
} models[] = {{2, 512}, {4, 512}, {6, 512},  {8, 512},  {12, 512},
              {6, 256}, {6, 768}, {6, 1024}, {3, 1024}, {24, 512}};
#define MODELS (int)(sizeof models / sizeof *models - 1)
/* Of about the same FLOPs: vit32x12x512 and vit32x3x1024. */
#define DEEPER 4
#define WIDER  8

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){.nodes = 2,
                                .tflops = rates[cell % RATES],
                                .memory_gb_s = BANDWIDTH,
                                .noise = noises[cell / RATES % NOISES],
                                .rough = cell / RATES / NOISES / REPEATS % ROUGH};
}

static int repeats_at(int cell) {
    return repeats[cell / RATES / NOISES % REPEATS];
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "%.0f TFLOP/s, noise %.1f%%%s, %d runs of %d models",
                            truth.tflops, 100 * truth.noise, truth.rough ? ", rough" : "",
                            repeats_at(cell), MODELS);
}

static int add_model(struct proof_study *study, int model, int repeat, struct lab_err *err) {
    struct proof_point point = {.patch = 32,
                                .depth = models[model].depth,
                                .dim = models[model].dim,
                                .batch = 10,
                                .iterations = 20};
    return proof_study_add(study, &point, repeat, err);
}

/* Of an iteration of the model that is predicted, without noise. */
static int find_truth(const struct proof_cell *cell, double *ret_time_s, struct lab_err *err) {
    struct proof_truth quiet = truth_at(cell->index);
    quiet.noise = 0;
    quiet.rough = false;
    struct proof_study study;
    proof_define("proof-quiet", &quiet);
    proof_study_begin(&study, cell->machine, "proof-quiet", "scaling_study", 1);
    int status = add_model(&study, MODELS, 0, err);
    if (status == 0)
        *ret_time_s = study.table.runs[0].time_s;
    proof_study_end(&study);
    return status;
}

#define MANY 300 /* runs, whose mean is far better known than that of a study's */

/* The mean rate of a model's runs, with the noise that they have: where stages of a pipeline take
 * about as long, noise costs time, which no quiet run shows. */
static int find_rate(const struct proof_cell *cell, int model, double *ret_rate,
                     struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_study study;
    double logs = 0;
    int status = 0;
    proof_define("proof-many", &truth);
    proof_study_begin(&study, cell->machine, "proof-many", "scaling_study", 2);
    for (int r = 0; r < MANY && status == 0; r++)
        status = add_model(&study, model, r, err);
    for (int r = 0; r < MANY && status == 0; r++)
        logs += log(study.table.runs[r].rate);
    *ret_rate = exp(logs / MANY);
    proof_study_end(&study);
    return status;
}

static int one_study(const struct proof_cell *cell, uint64_t seed, double time_s, double shape,
                     struct proof_count *counts, struct lab_err *err) {
    const struct {
        const char *kind;
        double truth;
    } planted[] = {{"scaling.compute_rate", 1e12 * truth_at(cell->index).tflops},
                   {"scaling.launch", LAUNCH},
                   {"scaling.bandwidth", 1e9 * BANDWIDTH},
                   {"scaling.prediction", time_s},
                   {"scaling.shape", shape}};
    struct lab_analysis_result result = {0};
    struct proof_study study;
    int status = 0;
    proof_study_begin(&study, cell->machine, "proof", "scaling_study", seed);
    for (int r = 0; r < repeats_at(cell->index) && status == 0; r++)
        for (int m = 0; m < MODELS && status == 0; m++)
            status = add_model(&study, m, r, err);
    if (status == 0)
        status = proof_analyse(&study, "scaling", &result, err);
    for (int k = 0; k < CLAIMS && status == 0; k++)
        for (int i = 0; i < result.claim_count; i++)
            if (lab_str_equal(result.claims[i].kind, planted[k].kind) &&
                (result.claims[i].verdict == LAB_CLAIM_YES || k == SHAPE)) {
                if (k != PREDICTION)
                    proof_count_claim(&counts[k], &result.claims[i], planted[k].truth);
                else /* has the cost model's own error besides */
                    proof_count_hit(&counts[k], result.claims[i].low <= planted[k].truth &&
                                                    planted[k].truth <= result.claims[i].high);
                break;
            }
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    double time_s = NAN, deeper = NAN, wider = NAN;
    bool failed = find_truth(cell, &time_s, err) || find_rate(cell, DEEPER, &deeper, err) ||
                  find_rate(cell, WIDER, &wider, err);
    int status = failed ? -1 : 0;
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies && status == 0; i++)
        status = one_study(cell, cell->seed + (uint64_t)i, time_s, wider / deeper - 1, counts, err);
    return status;
}

const struct proof_experiment proof_scaling = {
    .name = "scaling",
    .about = "Models of several depths and widths on GPUs of several compute rates. A kernel takes "
             "its launch, then the larger of its compute and its memory time.",
    .claims = {{"compute rate lies in its interval", PROOF_COVERS},
               {"launch overhead lies in its interval", PROOF_COVERS},
               {"memory bandwidth lies in its interval", PROOF_COVERS},
               {"iteration time of a model not run lies in its interval", PROOF_FINDS},
               {"throughput of a wider model over a deeper one lies in its interval",
                PROOF_COVERS}},
    .claim_count = CLAIMS,
    .cell_count = RATES * NOISES * REPEATS * ROUGH,
    .studies = 140,
    .studies_in_sample = 5,
    .sample_step = 5,
    .label = label,
    .run = run,
};
