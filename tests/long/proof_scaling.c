/*
 * proof_scaling.c: a law is planted: an iteration takes an overhead, its operations at a rate, its
 * bytes at a bandwidth, and each run its own deviation. Do the intervals of `scaling` hold all
 * three?
 *
 * Its runs are drawn from the law itself: the simulator overlaps copies and kernels, as devices do,
 * so that its times have no such three figures.
 */
#include "proof.h"

#include "base/random.h"

#include <math.h>

static const double noises[] = {0.002, 0.01, 0.03}, overheads_s[] = {1e-3, 8e-3};
static const int repeats[] = {2, 5};
#define NOISES    3
#define OVERHEADS 2
#define REPEATS   2
#define RATE      5e12 /* operations a second */
#define BANDWIDTH 3e11 /* bytes a second */

/* As scaling_extended, in two series that share a model. */
static const struct {
    int depth, dim;
} models[] = {{2, 512},  {4, 512}, {6, 512}, {8, 512}, {12, 512}, {16, 512},
              {20, 512}, {6, 128}, {6, 256}, {6, 768}, {6, 1024}, {6, 1280}};
#define MODELS  (int)(sizeof models / sizeof *models)
#define DEEPEST 40 /* that is predicted: twice as deep as any */

struct law {
    double overhead_s, noise;
    int repeats;
    uint64_t seed, drawn;
};

static struct law law_at(int cell) {
    return (struct law){.overhead_s = overheads_s[cell % OVERHEADS],
                        .noise = noises[cell / OVERHEADS % NOISES],
                        .repeats = repeats[cell / OVERHEADS / NOISES]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct law law = law_at(cell);
    return lab_arena_printf(arena, "overhead %.0f ms, noise %.1f %%, %d runs of %d models",
                            1e3 * law.overhead_s, 100 * law.noise, law.repeats, MODELS);
}

static double normal(struct law *law) {
    double u = lab_random_uniform(law->seed, law->drawn++),
           v = lab_random_uniform(law->seed, law->drawn++);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double time_s(const struct lab_study_work *work, void *state) {
    struct law *law = state;
    double exact = law->overhead_s + work->flops / RATE + work->memory_bytes / BANDWIDTH;
    return exact * exp(law->noise * normal(law));
}

/* The model that is predicted is measured as often as the others were. */
static int judge_prediction(struct proof_study *study, const struct lab_analysis_result *result,
                            struct law *law, struct proof_count *count, struct lab_err *err) {
    struct lab_value *options = lab_value_copy(&study->arena, study->table.runs[0].options);
    struct lab_study_work work = {0};
    double sum = 0;
    lab_value_set_int(&study->arena, options, "depth", DEEPEST);
    if (study->table.work_of("vit", options, &study->arena, &work, err) < 0)
        return -1;
    for (int r = 0; r < law->repeats; r++)
        sum += work.samples / time_s(&work, law);
    proof_count_cover(count,
                      proof_cell_at(proof_table(&result->parts[0], "predictions"), 0, "rate_per_s"),
                      sum / law->repeats);
    return 0;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct law law = law_at(cell->index);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        int status = 0;
        law.seed = cell->seed + (uint64_t)i;
        law.drawn = 0;
        proof_study_begin(&study, cell->machine, "law", "scaling_study", law.seed);
        for (int r = 0; r < law.repeats && status == 0; r++)
            for (int m = 0; m < MODELS && status == 0; m++) {
                struct proof_point point = {.patch = 32,
                                            .depth = models[m].depth,
                                            .dim = models[m].dim,
                                            .batch = 10,
                                            .iterations = 100};
                status = proof_study_draw(&study, &point, r, time_s, &law, err);
            }
        if (status == 0)
            status = proof_analyse(&study, "scaling", &result, err);
        if (status == 0) {
            proof_count_cover(&counts[0], proof_figure(&result, 0, "overhead_ms"), law.overhead_s);
            proof_count_cover(&counts[1], proof_figure(&result, 0, "rate_flops_per_s"), RATE);
            proof_count_cover(&counts[2], proof_figure(&result, 0, "bandwidth_gb_per_s"),
                              BANDWIDTH);
            status = judge_prediction(&study, &result, &law, &counts[3], err);
        }
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_scaling = {
    .name = "scaling",
    .about = "Iterations take an overhead + operations / 5 TFLOP/s + bytes / 300 GB/s, times the "
             "noise of the run. Runs are drawn from that law, not simulated.",
    .claims = {{"overhead lies in its interval", PROOF_COVERS},
               {"compute rate lies in its interval", PROOF_COVERS},
               {"bandwidth lies in its interval", PROOF_COVERS},
               {"a model that wasn't run lies in its interval", PROOF_COVERS}},
    .claim_count = 4,
    .cell_count = NOISES * OVERHEADS * REPEATS,
    .studies = 200,
    .studies_in_sample = 20,
    .sample_step = 4,
    .label = label,
    .run = run,
};
