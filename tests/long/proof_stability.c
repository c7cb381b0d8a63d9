/*
 * proof_stability.c: a GPU grows slower while it runs. Does `stability` see it, and does it keep
 * quiet where there is nothing to be seen?
 */
#include "proof.h"

/* Drifts are planted over a run of 3 s, in times the noise: what wanders can't be told from
 * less. */
static const struct {
    double drift;
    int iterations; /* of about a millisecond */
} plants[] = {{0, 3000}, {0, 200}, {25, 3000}, {50, 3000}};
static const double noises[] = {0.002, 0.01}, memories_s[] = {0, 0.01, 0.1, 1}; /* 0 = not rough */
#define PLANTS          4
#define NOISES          2
#define MEMORIES        4
#define RUNS            3
#define RUNS_PER_MINUTE 20

static struct proof_truth truth_at(int cell) {
    double memory_s = memories_s[cell / PLANTS / NOISES], noise = noises[cell / PLANTS % NOISES];
    return (struct proof_truth){.nodes = 2,
                                .drift = RUNS_PER_MINUTE * noise * plants[cell % PLANTS].drift,
                                .noise = noise,
                                .rough = memory_s > 0,
                                .memory_s = memory_s};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    const char *rough =
        truth.rough ? lab_arena_printf(arena, ", rough for %.0f ms", 1e3 * truth.memory_s) : "";
    return lab_arena_printf(arena, "drift of %.0f%% a minute in %.1f s, noise %.1f%%%s",
                            100 * truth.drift, 1e-3 * plants[cell % PLANTS].iterations,
                            100 * truth.noise, rough);
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point point = {.patch = 16,
                                .depth = 2,
                                .dim = 384,
                                .batch = 10,
                                .iterations = plants[cell->index % PLANTS].iterations};
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        proof_study_begin(&study, cell->machine, "proof", "stability", cell->seed + (uint64_t)i);
        int status = 0;
        for (int r = 0; r < RUNS && status == 0; r++)
            status = proof_study_add(&study, &point, r, err);
        if (status == 0)
            status = proof_analyse(&study, "stability", &result, err);
        bool unsteady = false;
        for (int c = 0; status == 0 && c < result.claim_count; c++)
            unsteady |= result.claims[c].verdict == LAB_CLAIM_YES;
        if (status == 0)
            proof_count_hit(&counts[truth.drift > 0], unsteady);
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_stability = {
    .name = "stability",
    .about =
        "A GPU takes longer by the share planted for each minute that it runs; three runs of the "
        "given time. Rough noise is autocorrelated within runs over the given time and has stalls "
        "with a heavy tail. It gives each run a slope of its own of about 1% a minute.",
    .claims = {{"a steady run is called unsteady", PROOF_ALARMS},
               {"a run that grows slower is called unsteady", PROOF_FINDS}},
    .claim_count = 2,
    .cell_count = PLANTS * NOISES * MEMORIES,
    .studies = 60,
    .studies_in_sample = 4,
    .sample_step = 7,
    .label = label,
    .run = run,
};
