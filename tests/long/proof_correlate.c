/*
 * proof_correlate.c: somebody comes and goes on the way between a GPU and its node's memory. Is
 * that neighbour what `correlate` names first? And where the neighbour is at another GPU and
 * disturbs nobody, or where there is none, does it name no cause at all?
 *
 * What counts is what is printed: the findings that may be a cause, and the spikes. Noise that is
 * remembered for long goes together with anything by chance; hence cells up to a sixth of the run.
 */
#include "proof.h"

enum place { BESIDE_IT, AT_ANOTHER, NOWHERE };
static const struct {
    double gb_s;
    enum place place;
} neighbours[] = {{2, BESIDE_IT}, {6, BESIDE_IT}, {16, BESIDE_IT}, {10, AT_ANOTHER}, {0, NOWHERE}};
static const double noises[] = {0.002, 0.01}, memories_s[] = {0, 0.01, 0.1, 1}; /* 0 = not rough */
#define NEIGHBOURS 5
#define NOISES     2
#define MEMORIES   4

static enum place place_at(int cell) {
    return neighbours[cell % NEIGHBOURS].place;
}

static struct proof_truth truth_at(int cell) {
    double memory_s = memories_s[cell / NEIGHBOURS / NOISES];
    return (struct proof_truth){.nodes = 2,
                                .noise = noises[cell / NEIGHBOURS % NOISES],
                                .rough = memory_s > 0,
                                .memory_s = memory_s,
                                .neighbour_gb_s = neighbours[cell % NEIGHBOURS].gb_s,
                                .neighbour_node = place_at(cell) == AT_ANOTHER};
}

static const char *label(int cell, struct lab_arena *arena) {
    static const char *const places[] = {[BESIDE_IT] = " on its NUMA node",
                                         [AT_ANOTHER] = " at another GPU",
                                         [NOWHERE] = " anywhere"};
    struct proof_truth truth = truth_at(cell);
    const char *rough =
        truth.rough ? lab_arena_printf(arena, ", rough for %.0f ms", 1e3 * truth.memory_s) : "";
    return lab_arena_printf(arena, "%.0f GB/s%s, noise %.1f%%%s", truth.neighbour_gb_s,
                            places[place_at(cell)], 100 * truth.noise, rough);
}

/* What the neighbour leaves in the samples: cores at work. */
static bool is_neighbour(const char *resource) {
    return lab_str_equal(resource, "node_utilization:0") ||
           lab_str_equal(resource, "cpu_utilization");
}

static bool names_a_cause(const struct lab_analysis_part *part) {
    const struct lab_doc_table *findings = proof_table(part, "findings"),
                               *spikes = proof_table(part, "spikes");
    bool any = spikes && spikes->row_count > 0;
    for (int i = 0; findings && i < findings->row_count; i++)
        any |= lab_str_equal(proof_cell_at(findings, i, "role")->text, "possible cause");
    return any;
}

static void judge(const struct lab_analysis_part *part, enum place place,
                  struct proof_count *counts) {
    const struct lab_doc_cell *first = proof_cell_at(proof_table(part, "findings"), 0, "resource");
    if (place == BESIDE_IT)
        proof_count_hit(&counts[0], first && is_neighbour(first->text));
    else
        proof_count_hit(&counts[1], names_a_cause(part));
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct proof_truth truth = truth_at(cell->index);
    struct proof_point point = {
        .patch = 32, .depth = 0, .dim = 64, .batch = 40, .iterations = 5000, .sampled = true};
    proof_define("proof", &truth);
    for (int i = 0; i < cell->studies; i++) {
        struct proof_study study;
        struct lab_analysis_result result = {0};
        proof_study_begin(&study, cell->machine, "proof", "stability", cell->seed + (uint64_t)i);
        int status = proof_study_add(&study, &point, 0, err);
        if (status == 0)
            status = proof_analyse(&study, "correlate", &result, err);
        if (status == 0 && result.part_count > 0)
            judge(&result.parts[0], place_at(cell->index), counts);
        proof_study_end(&study);
        if (status < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_correlate = {
    .name = "correlate",
    .about =
        "A co-located process takes bandwidth on a GPU's path to memory, and cores of its NUMA "
        "node. It does so for 0.4 s at a time with 0.6 s between. One run of about six seconds is "
        "compared with its samples. Rough noise is forgotten after the given time. A false alarm "
        "is a study in which anything is printed as a possible cause, or any spikes are.",
    .claims = {{"the noisy neighbour is named first", PROOF_FINDS},
               {"a cause is named where there is none", PROOF_ALARMS}},
    .claim_count = 2,
    .cell_count = NEIGHBOURS * NOISES * MEMORIES,
    .studies = 60,
    .studies_in_sample = 3,
    .sample_step = 13,
    .label = label,
    .run = run,
};
