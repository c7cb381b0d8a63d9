/*
 * study.h: a plan carried out: from its folder, through the runner, to the files that it leaves.
 *
 *     <folder>/config.yaml  overrides.yaml  machine.json     written before it has its name
 *              study.db                                      the truth; everything below comes from
 *                                                            it
 *              results.json  experiment_summary.json         rewritten whole, at most once a second
 *              logs/experiment.log                           a line for each thing that happened
 *              logs/<run id>.stdout  .stderr                 what the workers printed; further
 *              logs/<run id>.rank1.stdout  …                 processes of a gang: their own
 *
 * The same plan on the same machine goes on in the folder that it left unfinished.
 */
#pragma once

#include "model/plan.h"
#include "run/folder.h"
#include "run/runner.h"
#include "session/lease.h"

struct lab_study_request {
    const struct lab_plan *plan; /* outlives the study */
    const struct lab_machine *machine;
    const char *const *words;     /* of the command line behind `gpulab run`; NULL-terminated */
    const char *const *overrides; /* those of them that are overrides */
    const char *command;          /* the line itself, for whoever finds the folder held */
    const char *machine_json;     /* the content of machine.json */
    bool passing;                 /* it is removed at its end: no list of studies has it */
};

struct lab_results_metrics; /* store/study/results.h */

struct lab_study {
    struct lab_plan plan; /* with the seed that the folder remembers */
    const struct lab_machine *machine;
    const char *command;
    struct lab_folder folder;
    struct lab_store *store;
    struct lab_results_metrics *metrics; /* what runs reported, for results.json */
    int64_t epoch;
    struct lab_runner_item *items; /* what is left to do, in its order */
    int item_count;
    struct lab_run *runs; /* all of them as they were when the study was opened */
    int run_count;
    /* what follows is study.c's */
    struct lab_lease lease;
    int log_fd;
    int64_t written_ns, write_cost_ns; /* of results.json */
    bool stale;                        /* a run has ended since */
    bool complained;                   /* that it could not be written */
};

/* Finds or makes the folder, with its files and its store. Nothing runs yet. */
int lab_study_open(const struct lab_study_request *request, struct lab_arena *arena,
                   struct lab_study *ret_study, struct lab_err *err);

/*
 * Writes results.json and experiment_summary.json of the study of this name from its store;
 * `metrics` keeps what was read of runs that are done, for the next time.
 */
int lab_study_write_results(struct lab_store *store, const char *folder, const char *name,
                            struct lab_results_metrics *metrics, struct lab_err *err);

/* Accepts a zeroed one. Files are up to date and the database is one file again. */
void lab_study_close(struct lab_study *study);

struct lab_study_listener { /* both may be NULL */
    int (*stop)(void *state);
    void (*event)(const struct lab_runner_event *event, void *state);
    /* another study measures on this device: false = give up */
    bool (*wait)(const char *device, const struct lab_holder *holder, void *state);
    void *state;
};

/* Leases the devices and carries out what is left. As lab_runner_run; it also fails if the files
 * can't be brought up to date at its end. */
int lab_study_run(struct lab_study *study, const struct lab_study_listener *listener,
                  struct lab_runner_outcome *ret_outcome, struct lab_err *err);
