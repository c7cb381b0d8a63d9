/*
 * plan.h: from composed configs to the runs that will be carried out. Pure: it reads trees and the
 * list of devices, starts nothing and writes nothing, so `--dry-run` shows exactly what would
 * happen.
 *
 *   job    one composed config of a sweep (config.h); without -m there is one
 *   point  one place of a job in its axes or series: a gang of ranks, a workload with its options
 *   run    what is carried out: points that are the same run share it, and each is done `repeat`
 *          times
 *
 * Axes. `axes` lists what is crossed, the last one fastest. An entry is the path of a list below
 * `experiment`; of a map, whose list-valued keys are an axis each; or a map of paths to lists of
 * one length, which move together. `hardware.gpu_ids` and `hardware.numa_nodes` are always axes; an
 * inner list in gpu_ids is a gang, whose ranks start together, and one in numa_nodes has a node for
 * each of the gang's ranks.
 *
 * Series are named parts: each takes the points that meet its `where`, and one that has `axes`
 * crosses these points with them (a path that is an axis already is replaced). A point that two
 * series take counts twice and runs once; what no series takes runs all the same, in none.
 * docs/STUDIES.md has examples.
 *
 * Keys of `test` that aren't the study's are handed to the workload, as are those of the elements
 * of an axis such as vit_configs. There a `name` is accepted and ignored: names are derived. A key
 * that begins with '_' is nobody's and may hold what others interpolate.
 *
 * A key directly below `experiment` that is one of the workload's options is the workload's. Where
 * such an option is a map (`matrix` of the workload command), an axis below it (matrix.lr) sets one
 * key of it, and keys that the workload doesn't use are left out: they make no other run. A
 * workload that runs a program of the user's does so once (num_samples 1, no warm-up) unless told
 * otherwise.
 *
 * `workload` may be a list: each is planned in turn, with the keys of the map that has its name
 * (experiment.gemm.m). gpu_ids may be `all`.
 *
 * Spread. With `spread` an element of gpu_ids is a slot, not a point: each point runs once, at the
 * slot that is free when its turn comes. Its NUMA node is the device's own unless numa_nodes names
 * one. Slots have as many devices of one kind, and the identity has that kind in place of devices.
 *
 * Phases. A study that compares how devices do alone and side by side has `phases`, and no series:
 * each point is done once in each phase, on each of gpu_ids alone or on all of them at once, and
 * the kernel is tuned afresh in each run. Phases place the ranks themselves: numa_nodes plays no
 * part. docs/CONTENTION.md has the phases that are known by name, and the keys of others. A phase
 * that can't be had here is left out, and a note says why. `duration` is that of a phase on a
 * device: its kernels and repeats share it.
 *
 * A run's identity is a hash of what makes its result what it is: workload and its options, ranks
 * (device and node), iterations, workload version, repeat index. Paths, order, seed, timeouts and
 * times are not in it, so that an interrupted study finds its finished runs again. It is FNV-1a (64
 * bits) of the text
 *
 *     workload vit version 1 NL (KEY=VALUE NL)… by ascending key, defaults included; lists without
 *     brackets (3,224,224), texts behind their length in bytes (4:fp32); trees in the value
 *     grammar, a map's keys ascending and behind their length ({2:lr:0.1,9:max_iters:500}), (rank
 *     DEVICE NODE NL)… iterations N NL warmup N NL [phase NAME TEXT NL] repeat N NL
 *
 * with the options in the form that the workload calls canonical, so that two ways of writing the
 * same work are one run. A spread study has "rank any KIND NODE", such as "rank any cuda local".
 */
#pragma once

#include "base/option.h"
#include "compose/config.h"
#include "model/plan.h"

#define LAB_PLAN_POINTS_MAX 100000 /* of one plan; so are its runs. More is an error, not a wait */
#define LAB_PLAN_ID_MAX     200    /* bytes of a run's id: file names are made of it */

/* The study's own keys (hardware, test, engine): the only schema for them. Workloads have
 * theirs. */
extern const struct lab_option lab_plan_keys[];

/*
 * Plans a sweep. Checks every key against its schema (unknown: the nearest; out of bounds: what is
 * right; with file:line or the override), devices, nodes and memory against the machine. A study
 * that asks for devices, nodes or memory that aren't here is LAB_ERR_USER, names what is here and
 * prints the overrides that would run it here.
 */
int lab_plan_make(const struct lab_machine *machine, const struct lab_config_path *path,
                  const struct lab_sweep *sweep, struct lab_arena *arena, struct lab_plan *ret_plan,
                  struct lab_err *err);

/* --- gpu_mode=auto: how many devices are worth a run --- */

struct lab_plan_question {             /* so much work on so many devices, against one */
    const struct lab_machine *machine; /* where the devices are */
    const char *device;                /* the first of them */
    const char *workload;
    const struct lab_value *options;
    double parameters, layers, batch; /* layers 0 = unknown */
    int devices;
};

enum lab_plan_choice {
    LAB_PLAN_UNKNOWN, /* no measurement */
    LAB_PLAN_ONE,     /* one is as fast, significantly */
    LAB_PLAN_SEVERAL, /* several are faster, significantly */
    LAB_PLAN_TRY,     /* inconclusive */
};

/* Devices of a plan before, for those that select the same ones; zeroed at first. */
struct lab_plan_devices {
    const char *selector;
    struct lab_device_list list;
    struct lab_arena *arena; /* of the list; outlives all these plans */
};

/* Access to earlier measurements: planning itself reads no studies. */
struct lab_plan_strategy {
    /* `ret_why`: what was found and where, for a sentence; in the arena. Not for
     * LAB_PLAN_UNKNOWN. */
    enum lab_plan_choice (*choose)(void *state, const struct lab_plan_question *question,
                                   struct lab_arena *arena, const char **ret_why);
    void *state;
    struct lab_plan_devices *devices; /* NULL = none are kept */
};

/* The same as lab_plan_make; where gpu_mode=auto asks, `strategy` answers first. NULL = nobody
 * does. */
int lab_plan_make_by(const struct lab_plan_strategy *strategy, const struct lab_machine *machine,
                     const struct lab_config_path *path, const struct lab_sweep *sweep,
                     struct lab_arena *arena, struct lab_plan *ret_plan, struct lab_err *err);

/*
 * What it goes by where nothing was measured: the rules of a published study of training on two
 * GPUs. Why one device will do, or NULL where several may pay.
 */
const char *lab_plan_why_one(double parameters, double batch);
