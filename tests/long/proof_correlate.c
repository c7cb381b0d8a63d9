/*
 * proof_correlate.c: somebody comes and goes on the way between a GPU and its node's memory. Is that
 * neighbour what `correlate` names first? And where the neighbour is at another GPU and disturbs nobody,
 * is it left in peace?
 */
#include "proof.h"

#include <stdio.h>

static const double shares_gb_s[] = {6, 10, 16}, noises[] = {0.002, 0.01};
#define SHARES 3
#define NOISES 2
#define ROUGH  2
#define WHERE  2 /* beside the GPU that is measured, or beside another */

static struct proof_truth truth_at(int cell) {
    return (struct proof_truth){.nodes = 2,
                                .noise = noises[cell / SHARES % NOISES],
                                .rough = cell / SHARES / NOISES % ROUGH,
                                .neighbour_gb_s = shares_gb_s[cell % SHARES],
                                .neighbour_node = cell / SHARES / NOISES / ROUGH % WHERE};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct proof_truth truth = truth_at(cell);
    return lab_arena_printf(arena, "%.0f GB/s %s, noise %.1f %%%s", truth.neighbour_gb_s,
                            truth.neighbour_node ? "at another GPU" : "beside it",
                            100 * truth.noise, truth.rough ? ", rough" : "");
}

/* What the neighbour leaves in the samples: cores at work. */
static bool is_neighbour(const char *resource, int node) {
    char own[32];
    snprintf(own, sizeof own, "node_utilization:%d", node);
    return lab_str_equal(resource, own) || lab_str_equal(resource, "cpu_utilization");
}

static void judge(const struct lab_analysis_result *result, const struct proof_truth *truth,
                  struct proof_count *counts) {
    const struct lab_analysis_part *part = &result->parts[0];
    const struct lab_analysis_table *findings = proof_table(part, "findings"),
                                    *tested = proof_table(part, "tested");
    if (truth->neighbour_node == 0) {
        const struct lab_analysis_cell *first = proof_cell_at(findings, 0, "resource");
        proof_count_hit(&counts[0], first && is_neighbour(first->text, 0));
        return;
    }
    for (int i = 0; tested && i < tested->row_count; i++)
        if (is_neighbour(proof_cell_at(tested, i, "resource")->text, 1))
            proof_count_hit(&counts[1], proof_cell_at(tested, i, "p_adjusted")->value <= 0.05);
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point point = {
        .patch = 32, .depth = 0, .dim = 64, .batch = 10, .iterations = 20000, .sampled = true};
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        proof_study_begin(&study, cell->machine, "proof", "stability", cell->seed + (uint64_t)i);
        int status = proof_study_add(&study, &point, 0, err);
        if (status == 0)
            status = proof_analyse(&study, "correlate", &result, err);
        if (status == 0 && result.part_count > 0)
            judge(&result, &truth, counts);
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_correlate = {
    .name = "correlate",
    .about =
        "Somebody takes bandwidth on a GPU's way to memory, and cores of its node, for 0.4 s at a "
        "time with 0.6 s between. One run of about six seconds is held against its samples. "
        "False alarms are counted over the single tests of cores that disturb nobody.",
    .claims = {{"the noisy neighbour is named first", PROOF_FINDS},
               {"a neighbour who disturbs nobody is named", PROOF_ALARMS}},
    .claim_count = 2,
    .cell_count = SHARES * NOISES * ROUGH * WHERE,
    .studies = 40,
    .studies_in_sample = 2,
    .sample_step = 5,
    .label = label,
    .run = run,
};
