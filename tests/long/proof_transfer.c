/*
 * proof_transfer.c: a law of copies is planted: each takes a latency and then its bytes at a
 * bandwidth, and each run has its own deviation. Do the intervals of `transfer` hold both, and what
 * a larger batch gains?
 *
 * Runs are drawn from the law: in a simulated pipeline copies also wait for each other.
 */
#include "proof.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

static const double noises[] = {0.002, 0.01, 0.03}, waits_s[] = {2e-5, 2e-4};
static const int repeats[] = {3, 6}, batches[] = {1, 2, 4, 8, 16, 32};
#define NOISES    3
#define WAITS     2
#define REPEATS   2
#define BATCHES   (int)(sizeof batches / sizeof *batches)
#define BANDWIDTH 2e10 /* bytes a second */

struct copies {
    double wait_s, noise;
    int repeats;
    uint64_t seed, drawn;
    double last_s; /* that was drawn */
};

static struct copies copies_at(int cell) {
    return (struct copies){.wait_s = waits_s[cell % WAITS],
                           .noise = noises[cell / WAITS % NOISES],
                           .repeats = repeats[cell / WAITS / NOISES]};
}

static const char *label(int cell, struct lab_arena *arena) {
    struct copies copies = copies_at(cell);
    return lab_arena_printf(arena, "latency %.0f µs, noise %.1f%%, %d runs of %d sizes",
                            1e6 * copies.wait_s, 100 * copies.noise, copies.repeats, BATCHES);
}

static double normal(struct copies *copies) {
    double u = lab_random_uniform(copies->seed, copies->drawn++),
           v = lab_random_uniform(copies->seed, copies->drawn++);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double exact_s(const struct copies *copies, double bytes) {
    return copies->wait_s + bytes / BANDWIDTH;
}

static double time_s(const struct lab_study_work *work, void *state) {
    struct copies *copies = state;
    return copies->last_s = exact_s(copies, work->h2d_bytes) * exp(copies->noise * normal(copies));
}

static void judge(const struct lab_analysis_result *result, const struct copies *copies,
                  double bytes_of_one, struct proof_count *counts) {
    double first = batches[0] / exact_s(copies, bytes_of_one * batches[0]);
    double last = batches[BATCHES - 1] / exact_s(copies, bytes_of_one * batches[BATCHES - 1]);
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        if (!lab_str_equal(claim->kind, "transfer.batch") && !strstr(claim->subject, "to device"))
            continue;
        if (lab_str_equal(claim->kind, "transfer.latency"))
            proof_count_claim(&counts[0], claim, copies->wait_s);
        if (lab_str_equal(claim->kind, "transfer.bandwidth"))
            proof_count_claim(&counts[1], claim, BANDWIDTH);
        if (lab_str_equal(claim->kind, "transfer.batch"))
            proof_count_claim(&counts[2], claim, last / first - 1);
    }
}

static int one_study(const struct proof_cell *cell, struct copies *copies,
                     struct proof_count *counts, struct lab_err *err) {
    struct proof_study study;
    struct lab_analysis_result result = {0};
    int status = 0;
    proof_study_begin(&study, cell->machine, "law", "transfer_study", copies->seed);
    for (int r = 0; r < copies->repeats && status == 0; r++)
        for (int b = 0; b < BATCHES && status == 0; b++) {
            struct proof_point point = {
                .patch = 32, .depth = 0, .dim = 64, .batch = batches[b], .iterations = 100};
            status = proof_study_draw(&study, &point, r, time_s, copies, err);
            if (status < 0)
                break;
            struct lab_study_run *run = &study.table.runs[study.table.run_count - 1];
            struct lab_result *values = lab_arena_alloc(&study.arena, 1, sizeof *values);
            *values = lab_result_none;
            values->h2d_gb_per_s = 1e-9 * run->work.h2d_bytes / copies->last_s;
            run->result = values;
        }
    double bytes_of_one =
        status == 0 ? study.table.runs[0].work.h2d_bytes / study.table.runs[0].work.samples : 0;
    if (status == 0)
        status = proof_analyse(&study, "transfer", &result, err);
    if (status == 0)
        judge(&result, copies, bytes_of_one, counts);
    proof_study_end(&study);
    return status;
}

static int run(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err) {
    struct copies copies = copies_at(cell->index);
    for (int i = 0; i < cell->studies; i++) {
        copies.seed = cell->seed + (uint64_t)i;
        copies.drawn = 0;
        if (one_study(cell, &copies, counts, err) < 0)
            return -1;
    }
    return 0;
}

const struct proof_experiment proof_transfer = {
    .name = "transfer",
    .about =
        "A copy takes a latency and then moves at 20 GB/s, times the noise of the run; nothing "
        "else takes time. Runs are drawn from that model, not simulated.",
    .claims = {{"the latency of a copy lies in its interval", PROOF_COVERS},
               {"bandwidth lies in its interval", PROOF_COVERS},
               {"what the largest batch gains lies in its interval", PROOF_COVERS}},
    .claim_count = 3,
    .cell_count = NOISES * WAITS * REPEATS,
    .studies = 200,
    .studies_in_sample = 10,
    .sample_step = 5,
    .label = label,
    .run = run,
};
