/*
 * proof_power.c: throughput follows a power of a model's work. Does the interval of `scaling`'s
 * exponent hold the planted one, and do models that weren't run come out where it says?
 */
#include "proof.h"

#include "base/random.h"

#include <math.h>

static const double noises[] = {0.002, 0.01, 0.03}, exponents[] = {-0.6, -0.9};
static const int repeats[] = {2, 5};
#define NOISES    3
#define EXPONENTS 2
#define REPEATS   2
#define SCALE     1e8 /* samples a second at one operation each, by the power −0.6 */

/* As scaling_study, in two series that share a model. */
static const struct {
    int depth, dim;
} models[] = {{2, 512}, {4, 512}, {6, 512}, {8, 512}, {12, 512}, {6, 256}, {6, 768}, {6, 1024}};
#define MODELS (int)(sizeof models / sizeof *models)

struct power {
    double exponent, noise;
    int repeats;
    uint64_t seed, drawn;
};

static struct power power_at(int cell) {
    return (struct power){.exponent = exponents[cell % EXPONENTS],
                          .noise = noises[cell / EXPONENTS % NOISES],
                          .repeats = repeats[cell / EXPONENTS / NOISES]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct power power = power_at(cell);
    return lab_arena_printf(arena,
                            "FLOPs to the power of %.1f, noise %.1f %%, %d runs of %d models",
                            power.exponent, 100 * power.noise, power.repeats, MODELS);
}

static double normal(struct power *power) {
    double u = lab_random_uniform(power->seed, power->drawn++),
           v = lab_random_uniform(power->seed, power->drawn++);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double draw_rate(struct power *power, double flops_of_one) {
    return SCALE * pow(flops_of_one, power->exponent) * exp(power->noise * normal(power));
}

static double time_s(const struct lab_study_work *work, void *state) {
    return work->samples / draw_rate(state, work->flops / work->samples);
}

/* A model is measured as often as the others were. */
static double measure_again(struct power *power, double flops_of_one) {
    double sum = 0;
    for (int r = 0; r < power->repeats; r++)
        sum += draw_rate(power, flops_of_one);
    return sum / power->repeats;
}

static void judge(const struct lab_analysis_result *result, struct power *power,
                  struct proof_count *counts) {
    const struct lab_doc_table *predictions = proof_table(&result->parts[0], "predictions");
    proof_count_cover(&counts[0], proof_figure(result, 0, "exponent"), power->exponent);
    for (int i = 0; predictions && i < predictions->row_count; i++)
        proof_count_cover(
            &counts[1], proof_cell_at(predictions, i, "rate_per_s"),
            measure_again(power, proof_cell_at(predictions, i, "flops_per_sample")->value));
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct power power = power_at(cell->index);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        int status = 0;
        power.seed = cell->seed + (uint64_t)i;
        power.drawn = 0;
        proof_study_begin(&study, cell->machine, "law", "scaling_study", power.seed);
        for (int r = 0; r < power.repeats && status == 0; r++)
            for (int m = 0; m < MODELS && status == 0; m++) {
                struct proof_point point = {.patch = 32,
                                            .depth = models[m].depth,
                                            .dim = models[m].dim,
                                            .batch = 10,
                                            .iterations = 100};
                status = proof_study_draw(&study, &point, r, time_s, &power, err);
            }
        if (status == 0)
            status = proof_analyse(&study, "scaling", &result, err);
        if (status == 0 && result.part_count > 0)
            judge(&result, &power, counts);
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_power = {
    .name = "power law",
    .about = "Throughput is a power of the operations of a sample, times the noise of the run. "
             "`scaling` "
             "predicts a model twice as deep as any that was run, by the law that suits it best; "
             "it is then "
             "measured. Runs are drawn from that law, not simulated.",
    .claims = {{"exponent lies in its interval", PROOF_COVERS},
               {"a model that wasn't run lies in its interval", PROOF_COVERS}},
    .claim_count = 2,
    .cell_count = NOISES * EXPONENTS * REPEATS,
    .studies = 200,
    .studies_in_sample = 15,
    .sample_step = 5,
    .label = label,
    .run = run,
};
