/*
 * record_job.h: a running job as this host sees it: which processes are its own, which rank each
 * has, and what of a recording is the job's. Nothing of the job is touched.
 *
 * A job is a process with all its descendants ("4100"), or what a batch system runs ("job:123"):
 * the processes in a control group job_123, as Slurm makes them, or with SLURM_JOB_ID, PBS_JOBID or
 * LSB_JOBID set to that in their environment.
 *
 * Ranks are what launchers write into the environment: RANK (torchrun, accelerate, deepspeed),
 * OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK (mpirun), SLURM_PROCID (srun), LOCAL_RANK. A variable
 * counts that has different values in the job. Of processes with the same one the first ancestor is
 * the rank: the others are its workers.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_record_job_process {
    int32_t pid, parent;
    uint64_t start;
    const char *rank; /* NULL = unknown */
    bool leads;       /* its parent hasn't the same rank */
};

struct lab_record_job {
    const char *title;    /* "process 4100", "job 123" */
    int32_t root;         /* the process that was named; 0 = none was */
    bool hidden;          /* environments of some belong to another user */
    const char *variable; /* that the ranks are from; NULL = none is known */
    int world;            /* ranks on all hosts, as WORLD_SIZE or the like says; 0 = unknown */
    struct lab_record_job_process *items;
    int count;
};

/* By a process's number, a job's (if no process has it), or "job:ID". LAB_ERR_USER: there is none
 * on this host. */
int lab_record_job_find(const char *word, struct lab_arena *arena, struct lab_record_job *ret_job,
                        struct lab_err *err);

/* NULL = it isn't the job's. */
const struct lab_record_job_process *lab_record_job_process(const struct lab_record_job *job,
                                                            int32_t pid);

/* Those with a rank that are no workers; returns how many. */
int lab_record_job_ranks(const struct lab_record_job *job, struct lab_arena *arena,
                         int32_t **ret_pids);

/* Whether the process that was named has ended, or all that belong to the job have. */
bool lab_record_job_has_ended(const struct lab_record_job *job);

/*
 * The job's part of a recording: GPUs on which a process of it computes, processes of the job with
 * their ranks, and processes of others on those GPUs, which are marked as foreign. Ticks are
 * shared.
 */
void lab_record_job_select(const struct lab_record_job *job, const struct lab_recording *recording,
                           struct lab_arena *arena, struct lab_recording *ret_recording);
