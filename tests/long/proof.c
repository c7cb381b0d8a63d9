/*
 * proof.c: `proof [--sample] [--seed N] [--only NAME] [--jobs N] [--write FILE]`: runs random
 * studies, then the experiments, and says which claims hold. Exit status 1 if one doesn't.
 * tools/proof gives it a fresh seed. `--only claims` runs the random studies alone, `--studies N`
 * says how many, and `--study N` shows one of them with all its claims.
 *
 * Every cell has a seed of its own, so that jobs, which are processes, share them out and the
 * outcome is the same for any number of them.
 */
#include "proof_claims.h"

#include "base/file/file.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct proof_experiment *const experiments[] = {
    &proof_crossover, &proof_speedup,   &proof_scaling, &proof_transfer,
    &proof_stability, &proof_correlate, &proof_training};
#define EXPERIMENTS (int)(sizeof experiments / sizeof *experiments)

struct request {
    bool sample;
    uint64_t seed;
    const char *only, *write;
    int jobs;
    int studies; /* that are drawn at random; 0 = as many as it takes */
    int64_t study;
};

#define CLAIMS          "claims"
#define STUDIES         30000
#define STUDIES_SAMPLED 900
#define SAMPLE_LIMIT_S  35.0

#define JOBS_MAX 64

struct drawn { /* a cell, as a job hands it over */
    int experiment, cell;
    struct proof_count counts[PROOF_CLAIMS_MAX];
    bool redrawn;
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

static int draw_cell(struct drawn *drawn, const struct request *request,
                     const struct lab_machine *machine, struct lab_err *err) {
    const struct proof_experiment *experiment = experiments[drawn->experiment];
    uint64_t seed = lab_random_bits(lab_random_bits(request->seed, (uint64_t)drawn->experiment),
                                    (uint64_t)drawn->cell);
    int result = run_cell(experiment, drawn->cell, seed, request, machine, drawn->counts, err);
    if (result == 0 && !cell_holds(experiment, drawn->counts, request->sample)) {
        drawn->redrawn = true;
        result = run_cell(experiment, drawn->cell, lab_random_bits(seed, 1), request, machine,
                          drawn->counts, err);
    }
    return result < 0 ? lab_err_context(err, "%s, cell %d", experiment->name, drawn->cell) : 0;
}

static void add_cell(struct proof_tally *tally, const struct drawn *drawn) {
    const struct proof_experiment *experiment = experiments[drawn->experiment];
    for (int c = 0; c < experiment->claim_count; c++) {
        struct proof_outcome *outcome = &LAB_PUSH(tally->outcomes, tally->count);
        *outcome = (struct proof_outcome){.experiment = experiment,
                                          .claim = c,
                                          .cell = drawn->cell,
                                          .count = drawn->counts[c],
                                          .redrawn = drawn->redrawn};
        outcome->holds = proof_cell_holds(experiment->claims[c].kind, &drawn->counts[c],
                                          tally->sample, &outcome->p);
    }
}

/* --- all cells, in jobs --- */

static int list_cells(const struct request *request, struct drawn **ret_cells) {
    int count = 0;
    *ret_cells = NULL;
    for (int e = 0; e < EXPERIMENTS; e++) {
        if (request->only && strcmp(request->only, experiments[e]->name) != 0)
            continue;
        for (int cell = 0; cell < experiments[e]->cell_count;
             cell += request->sample ? experiments[e]->sample_step : 1)
            LAB_PUSH(*ret_cells, count) = (struct drawn){.experiment = e, .cell = cell};
    }
    return count;
}

/* Every so many-th cell, handed over as soon as it is drawn. A job that fails says why and ends
 * early. */
static int run_job(int job, const struct request *request, struct drawn *cells, int count, int to) {
    struct lab_machine *machine = NULL;
    struct lab_err err = LAB_ERR_INIT;
    int result = lab_machine_open(NULL, &machine, &err);
    for (int i = job; i < count && result == 0; i += request->jobs) {
        result = draw_cell(&cells[i], request, machine, &err);
        if (result == 0 && write(to, &cells[i], sizeof cells[i]) != (ssize_t)sizeof cells[i])
            result = lab_err_set(&err, LAB_ERR_SYSTEM, "a job could not hand over its cells");
    }
    if (result < 0)
        fprintf(stderr, "proof: %s\n", err.text);
    lab_machine_close(machine);
    return result < 0 ? 1 : 0;
}

/* A pipe holds far more than the cells of a job, so that they are read one job after the other. */
static void collect(int job, int jobs, int from, struct drawn *cells, int count, bool *complete) {
    for (int i = job; i < count; i += jobs)
        if (read(from, &cells[i], sizeof cells[i]) != (ssize_t)sizeof cells[i])
            *complete = false;
    close(from);
}

static int run_all(const struct request *request, struct proof_tally *tally, struct lab_err *err) {
    struct drawn *cells;
    int count = list_cells(request, &cells), from[JOBS_MAX];
    pid_t children[JOBS_MAX];
    bool complete = true;
    for (int job = 0; job < request->jobs; job++) {
        int ends[2];
        if (pipe(ends) < 0 || (children[job] = fork()) < 0)
            return lab_err_set(err, LAB_ERR_SYSTEM, "no job could be started");
        if (children[job] == 0) {
            close(ends[0]);
            _exit(run_job(job, request, cells, count, ends[1]));
        }
        close(ends[1]);
        from[job] = ends[0];
    }
    for (int job = 0; job < request->jobs; job++) {
        int status;
        collect(job, request->jobs, from[job], cells, count, &complete);
        waitpid(children[job], &status, 0);
    }
    for (int i = 0; i < count; i++)
        add_cell(tally, &cells[i]);
    lab_mem_free(cells);
    return complete ? 0 : lab_err_set(err, LAB_ERR_SYSTEM, "not all cells could be drawn");
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
        else if (strcmp(argv[i], "--studies") == 0 && !last)
            request->studies = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--study") == 0 && !last)
            request->study = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--jobs") == 0 && !last)
            request->jobs = (int)strtol(argv[++i], NULL, 10);
        else
            return false;
    }
    return request->jobs >= 1 && request->jobs <= JOBS_MAX;
}

static bool wants_claims(const struct request *request) {
    return !request->only || strcmp(request->only, CLAIMS) == 0;
}

static int run_claims(const struct request *request, struct proof_claims *claims,
                      struct lab_err *err) {
    int studies = request->sample ? STUDIES_SAMPLED : STUDIES;
    struct proof_claims_request drawn = {.seed = request->seed,
                                         .studies = request->studies ? request->studies : studies,
                                         .jobs = request->jobs,
                                         .limit_s = request->sample ? SAMPLE_LIMIT_S : 0,
                                         .only = request->study};
    return wants_claims(request) ? proof_claims_run(&drawn, claims, err) : 0;
}

static int report(const struct request *request, const struct proof_claims *claims,
                  const struct proof_tally *tally, struct lab_err *err) {
    LAB_AUTO(str, text);
    if (wants_claims(request))
        proof_claims_text(claims, request->sample, &text);
    proof_write_text(tally, &text);
    printf("seed %llu%s\n%s", (unsigned long long)request->seed,
           request->sample ? ", a sample" : "", text.text);
    if (!request->write)
        return 0;
    lab_str_clear(&text);
    if (wants_claims(request))
        proof_claims_page(claims, request->sample, request->seed, &text);
    proof_write_markdown(tally, &text);
    return lab_file_write_atomic(request->write, text.text, text.length, err);
}

int main(int argc, char **argv) {
    struct request request = {.seed = 1, .jobs = 1, .study = -1};
    struct lab_err err = LAB_ERR_INIT;
    if (!parse(argc, argv, &request)) {
        fprintf(stderr, "proof [--sample] [--seed N] [--only NAME] [--studies N] [--study N] "
                        "[--jobs N] [--write FILE]\n");
        return 2;
    }
    struct proof_tally tally = {.sample = request.sample, .seed = request.seed};
    struct proof_claims *claims = lab_mem_alloc(1, sizeof *claims);
    int result = run_claims(&request, claims, &err);
    if (result == 0)
        result = run_all(&request, &tally, &err);
    if (result == 0)
        result = report(&request, claims, &tally, &err);
    if (result < 0)
        fprintf(stderr, "proof: %s\n", err.text);
    bool holds = result == 0;
    if (wants_claims(&request))
        holds = holds && proof_claims_hold(claims, request.sample);
    if (!request.only || !wants_claims(&request))
        holds = holds && proof_all_hold(&tally);
    lab_mem_free(tally.outcomes);
    lab_mem_free(claims);
    return holds ? 0 : 1;
}
