/*
 * job.h: what one worker is told to do: the frozen config. Everything is decided before it starts;
 * a worker reads no file, no cache and no environment to find out what to run.
 *
 * It travels as JSON in the first frame that the runner sends (frame.h: JOB).
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_job_choice { /* a configuration, and which phase chose it */
    const char *phase, *config;
};

struct lab_job_rank {
    int index;          /* in its gang, from 0: the rank that its frames name */
    int gpu_id;         /* position in the study's list of devices */
    const char *device; /* member name: "cpu:0/2.1" */
    int numa_node;
    const int *cpus; /* that its host thread is bound to; none = its node's, or all */
    int cpu_count;
    const char *config; /* of its kernel, instead of what the options say; NULL = as they say */
    /* these are timed side by side instead of one alone, the first as what the others are held
     * against */
    const struct lab_job_choice *choices;
    int choice_count;
};

struct lab_job {
    const char *run_id; /* "gpu0_numa1_vit32x6x512" */
    const char *folder; /* the study's, absolute; "" = none */
    const char *workload;
    struct lab_value *options;        /* every key of the workload: a map */
    const struct lab_job_rank *ranks; /* those that this worker carries out, a thread each */
    int rank_count;
    int gang_size; /* ranks of the whole run, in all its workers */
    int64_t iterations, warmup_iterations;
    double duration_s; /* > 0: measures so long instead of a number of iterations */
    uint64_t seed;     /* below 2^53 */
    int repeat;        /* of its point, from 0 */
    int port;          /* of programs: a free one, the same for the whole gang; 0 = none */
    bool launcher;     /* one program for all ranks, which the first one starts */
    /* simulated devices: the machine's name and description (NULL = real ones), this run's chance
     * (below 2^53) and what its clock begins with */
    const char *machine, *definition;
    uint64_t chance;
    int64_t start_ns;
    bool verify; /* check the results before they are timed */
    bool trace;  /* a short traced pass behind the timed one; its file goes into `folder` */
    /* of a phase: */
    bool probe;          /* the device's available resources, behind the timed pass */
    double tune_s;       /* > 0: the kernel is tuned first, so long at most */
    const char *disturb; /* a neighbour on purpose, beside all of it; NULL = none */
};

void lab_job_write(const struct lab_job *job, struct lab_str *out);

/* Content lives in the arena. What is missing, of another type or out of bounds is an error. */
int lab_job_read(const char *text, size_t length, struct lab_arena *arena, struct lab_job *ret_job,
                 struct lab_err *err);
