/*
 * proof_variance.c: kernels take longer in one phase than in another, by a known share. Does the
 * interval of `variance` hold it, and does it keep quiet where phases are the same?
 */
#include "proof.h"

static const double effects[] = {0, 0.03, 0.15}, noises[] = {0.003, 0.01, 0.03};
#define EFFECTS 3
#define NOISES  3
#define ROUGH   2
#define REPEATS 5

static struct proof_truth truth_at(int cell, bool concurrent) {
    return (struct proof_truth){.nodes = 2,
                                .slow_gpu = concurrent ? effects[cell % EFFECTS] : 0,
                                .noise = noises[cell / EFFECTS % NOISES],
                                .rough = cell / EFFECTS / NOISES % ROUGH};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell, true);
    return lab_arena_printf(arena, "%.0f %% slower, noise %.1f %%%s", 100 * truth.slow_gpu,
                            100 * truth.noise, truth.rough ? ", rough" : "");
}

static const struct proof_point point = {
    .gpu = 1, .node = 1, .patch = 16, .depth = 2, .dim = 768, .batch = 10, .iterations = 20};

static int add_runs(struct proof_study *study, int cell, struct lab_err *err) {
    for (int r = 0; r < REPEATS; r++)
        for (int i = 0; i < 2; i++) {
            bool concurrent = (i + r) % 2;
            struct proof_truth truth = truth_at(cell, concurrent);
            proof_define("proof", &truth);
            if (proof_study_add(study, &point, r, err) < 0)
                return -1;
            study->table.runs[study->table.run_count - 1].phase =
                concurrent ? "concurrent" : "baseline";
        }
    return 0;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth alone = truth_at(cell->index, false), beside = truth_at(cell->index, true);
    double fast = proof_true_rate(cell->machine, &alone, &point, err),
           slow = fast < 0 ? -1 : proof_true_rate(cell->machine, &beside, &point, err);
    int status = slow < 0 ? -1 : 0;
    for (int i = 0; i < cell->studies && status == 0; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        proof_study_begin(&study, cell->machine, "proof", "contention", cell->seed + (uint64_t)i);
        status = add_runs(&study, cell->index, err);
        if (status == 0)
            status = proof_analyse(&study, "variance", &result, err);
        if (status == 0 && result.part_count > 0) {
            proof_count_cover(&counts[0], proof_figure(&result, 0, "time_change"), fast / slow - 1);
            if (beside.slow_gpu == 0)
                proof_count_hit(&counts[1], result.claims[0].verdict == LAB_CLAIM_YES);
        }
        proof_study_end(&study);
    }
    return status;
}

const struct proof_experiment proof_variance = {
    .name = "variance",
    .about = "A GPU computes slower in the concurrent phase than in the baseline by the share "
             "planted, with five runs of each.",
    .claims = {{"how much longer it takes lies in its interval", PROOF_COVERS},
               {"contention is claimed where there is none", PROOF_ALARMS}},
    .claim_count = 2,
    .cell_count = EFFECTS * NOISES * ROUGH,
    .studies = 120,
    .studies_in_sample = 10,
    .sample_step = 5,
    .label = label,
    .run = run,
};
