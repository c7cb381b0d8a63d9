/*
 * proof.c: `proof [--sample] [--seed N] [--only NAME] [--write FILE]`: runs the experiments and says
 * which claims hold. Exit status 1 if one doesn't. tools/proof gives it a seed of the commit.
 */
#include "proof.h"

#include "base/file.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct proof_experiment *const experiments[] = {
    &proof_numa,     &proof_recommend, &proof_device,  &proof_compile,   &proof_crossover,
    &proof_variance, &proof_speedup,   &proof_scaling, &proof_stability, &proof_correlate};
#define EXPERIMENTS (int)(sizeof experiments / sizeof *experiments)

struct request {
    bool sample;
    uint64_t seed;
    const char *only, *write;
};

static int run_cell(const struct proof_experiment *experiment, int cell, uint64_t seed,
                    const struct request *request, const struct lab_machine *machine,
                    struct proof_count *counts, struct lab_err *err) {
    struct proof_cell place = {.machine = machine,
                               .index = cell,
                               .studies = request->sample ? experiment->studies_in_sample
                                                          : experiment->studies,
                               .seed = seed};
    for (int c = 0; c < PROOF_CLAIMS_MAX; c++)
        counts[c] = (struct proof_count){0};
    return experiment->run(&place, counts, err);
}

static bool cell_holds(const struct proof_experiment *experiment, const struct proof_count *counts,
                       bool sample) {
    double p;
    for (int c = 0; c < experiment->claim_count; c++)
        if (!proof_cell_holds(experiment->claims[c].kind, &counts[c], sample, &p))
            return false;
    return true;
}

static int add_cell(struct proof_tally *tally, const struct proof_experiment *experiment, int cell,
                    uint64_t seed, const struct request *request, const struct lab_machine *machine,
                    struct lab_err *err) {
    struct proof_count counts[PROOF_CLAIMS_MAX];
    bool redrawn = false;
    if (run_cell(experiment, cell, seed, request, machine, counts, err) < 0)
        return -1;
    if (!cell_holds(experiment, counts, tally->sample)) {
        redrawn = true;
        if (run_cell(experiment, cell, lab_random_bits(seed, 1), request, machine, counts, err) < 0)
            return -1;
    }
    for (int c = 0; c < experiment->claim_count; c++) {
        LAB_MEM_GROW(&tally->outcomes, tally->count, &tally->capacity);
        struct proof_outcome *outcome = &tally->outcomes[tally->count++];
        *outcome = (struct proof_outcome){.experiment = experiment,
                                          .claim = c,
                                          .cell = cell,
                                          .count = counts[c],
                                          .redrawn = redrawn};
        outcome->holds =
            proof_cell_holds(experiment->claims[c].kind, &counts[c], tally->sample, &outcome->p);
    }
    return 0;
}

static int run_all(const struct request *request, const struct lab_machine *machine,
                   struct proof_tally *tally, struct lab_err *err) {
    for (int e = 0; e < EXPERIMENTS; e++) {
        const struct proof_experiment *experiment = experiments[e];
        if (request->only && strcmp(request->only, experiment->name) != 0)
            continue;
        for (int cell = 0; cell < experiment->cell_count;
             cell += request->sample ? experiment->sample_step : 1) {
            uint64_t seed =
                lab_random_bits(lab_random_bits(request->seed, (uint64_t)e), (uint64_t)cell);
            if (add_cell(tally, experiment, cell, seed, request, machine, err) < 0)
                return lab_err_context(err, "%s, cell %d", experiment->name, cell);
        }
        fprintf(stderr, "%s: done\n", experiment->name);
    }
    return 0;
}

static bool parse(int argc, char **argv, struct request *request) {
    for (int i = 1; i < argc; i++) {
        bool last = i + 1 == argc;
        if (strcmp(argv[i], "--sample") == 0)
            request->sample = true;
        else if (strcmp(argv[i], "--seed") == 0 && !last)
            request->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--only") == 0 && !last)
            request->only = argv[++i];
        else if (strcmp(argv[i], "--write") == 0 && !last)
            request->write = argv[++i];
        else
            return false;
    }
    return true;
}

static int report(const struct request *request, const struct proof_tally *tally,
                  struct lab_err *err) {
    struct lab_str text;
    lab_str_init(&text);
    proof_write_text(tally, &text);
    printf("seed %llu%s\n%s", (unsigned long long)request->seed,
           request->sample ? ", a sample" : "", text.text);
    int result = 0;
    if (request->write) {
        lab_str_clear(&text);
        proof_write_markdown(tally, &text);
        result = lab_file_write_atomic(request->write, text.text, text.length, err);
    }
    lab_str_release(&text);
    return result;
}

int main(int argc, char **argv) {
    struct request request = {.seed = 1};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine = NULL;
    if (!parse(argc, argv, &request)) {
        fprintf(stderr, "proof [--sample] [--seed N] [--only NAME] [--write FILE]\n");
        return 2;
    }
    struct proof_tally tally = {.sample = request.sample, .seed = request.seed};
    int result = lab_machine_open(NULL, &machine, &err);
    if (result == 0)
        result = run_all(&request, machine, &tally, &err);
    if (result == 0)
        result = report(&request, &tally, &err);
    if (result < 0)
        fprintf(stderr, "proof: %s\n", err.text);
    bool holds = result == 0 && proof_all_hold(&tally);
    lab_mem_free(tally.outcomes);
    lab_machine_close(machine);
    return holds ? 0 : 1;
}
