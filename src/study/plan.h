/*
 * plan.h: from composed configs to the runs that will be carried out. Pure: it reads trees and the
 * list of devices, starts nothing and writes nothing, so `--dry-run` shows exactly what would happen.
 *
 *   job    one composed config of a sweep (config.h); without -m there is one
 *   point  one place of a job in its axes or series: a gang of ranks, a workload with its options
 *   run    what is carried out: points that are the same run share it, and each is done `repeat` times
 *
 * A run's identity is a hash of what makes its result what it is: workload and its options, ranks
 * (device and node), dtype, workload version, repeat index. Paths, order, seed, timeouts and times
 * are not in it, so that an interrupted study finds its finished runs again.
 */
#ifndef LAB_STUDY_PLAN_H
#define LAB_STUDY_PLAN_H

#include "device/device.h"
#include "study/config.h"
#include "workload/workload.h"

struct lab_plan_rank {
    int gpu_id;         /* index into the selector's list */
    const char *device; /* its member name: "cpu:0/2.1" */
    int numa_node;
};

enum lab_plan_processes { LAB_PLAN_PER_RANK, LAB_PLAN_SHARED };

struct lab_plan_run {
    const char *id; /* "gpu0_numa1_vit32x6x512_compiled", unique in the plan */
    uint64_t identity;
    const struct lab_workload *workload;
    struct lab_value *options;   /* every key of the workload: a map */
    const void *workload_config; /* the same, filled and checked */
    const char *label;           /* "vit32x6x512" */
    struct lab_plan_rank *ranks;
    int rank_count;
    int repeat; /* from 0 */
    int64_t iterations, warmup_iterations;
    double timeout_s;
    int64_t device_bytes, host_bytes; /* of one rank */
    const char *const *series;        /* names of those it belongs to; NULL-terminated */
    int point_count;                  /* points that it serves */
};

struct lab_plan {
    const char *study;        /* directory name: "numa_locality_study" */
    const char *option;       /* what was asked for: "numa_study" */
    struct lab_value *config; /* of the first job, for config.yaml */
    struct lab_device_list devices;
    struct lab_plan_run *runs; /* in the order in which they will run */
    int run_count;
    int64_t point_count;
    uint64_t seed;
    bool ordered_as_given;
    /* engine keys */
    bool resume, fail_fast, trace;
    int max_workers, runs_per_device, max_retries, repeat;
    double cooldown_s, budget_s; /* 0 = none */
    enum lab_plan_processes processes;
    uint64_t identity; /* of the set of runs: the same command finds its directory by it */
};

/* The study's own keys (hardware, test, engine): the only schema for them. Workloads have theirs. */
extern const struct lab_option lab_plan_keys[];

/*
 * Plans a sweep. Checks every key against its schema (unknown: the nearest; out of bounds: what is
 * right; with file:line or the override's column), devices and nodes against the machine. A study
 * that asks for devices or nodes that aren't here is LAB_ERR_USER, names what is here and prints the
 * overrides that would run it here.
 */
int lab_plan_make(const struct lab_machine *machine, const struct lab_config_path *path,
                  const struct lab_sweep *sweep, struct lab_arena *arena, struct lab_plan *ret_plan,
                  struct lab_err *err);

#endif
