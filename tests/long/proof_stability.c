/*
 * proof_stability.c: a GPU grows slower while it runs. Does `stability` see it, and does it keep quiet
 * where there is nothing to be seen?
 */
#include "proof.h"

static const double drifts[] = {0, 0.5, 2}, noises[] = {0.002, 0.01};
#define DRIFTS 3
#define NOISES 2
#define ROUGH  2

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){.nodes = 2,
                                .drift = drifts[cell % DRIFTS],
                                .noise = noises[cell / DRIFTS % NOISES],
                                .rough = cell / DRIFTS / NOISES % ROUGH};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "drift of %.0f %% a minute, noise %.1f %%%s", 100 * truth.drift,
                            100 * truth.noise, truth.rough ? ", rough" : "");
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point point = {
        .patch = 16, .depth = 2, .dim = 384, .batch = 10, .iterations = 3000};
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        proof_study_begin(&study, cell->machine, "proof", "stability", cell->seed + (uint64_t)i);
        int status = proof_study_add(&study, &point, 0, err);
        if (status == 0)
            status = proof_analyse(&study, "stability", &result, err);
        if (status == 0 && result.part_count > 0)
            proof_count_hit(&counts[truth.drift > 0],
                            proof_figure(&result, 0, "unsteady")->value > 0);
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_stability = {
    .name = "stability",
    .about =
        "A GPU takes longer by the share planted for each minute that it runs; one run of about "
        "three seconds. Rough noise wanders within runs, forgotten after 5 ms, has stalls with a "
        "heavy tail, and gives each run a slope of its own of about 1 % a minute.",
    .claims = {{"a steady run is called unsteady", PROOF_ALARMS},
               {"a run that grows slower is called unsteady", PROOF_FINDS}},
    .claim_count = 2,
    .cell_count = DRIFTS * NOISES * ROUGH,
    .studies = 100,
    .studies_in_sample = 6,
    .sample_step = 5,
    .label = label,
    .run = run,
};
