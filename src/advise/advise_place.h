/*
 * advise_place.h: a place that was measured, as lines that start PROGRAM there.
 *
 * A line has the GPU, the cores and the memory, or there is none: with the cores alone a program
 * runs on the driver's first GPU, far from them. GPUs have their UUIDs, which mean the same
 * whatever the order or the job; else their numbers in PCI order, with the variable that makes CUDA
 * count so.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "base/mem.h"
#include "model/machine.h"

struct lab_advice_place {
    const char *missing; /* why no line can be made, a sentence without full stop; NULL = it can */
    const char *gpus;    /* a list as CUDA_VISIBLE_DEVICES takes it; NULL = no rank has a GPU */
    bool by_number;      /* `gpus` are numbers in PCI order */
    const char *bind;    /* "numactl --cpunodebind=3 --membind=3", of all ranks */
    const char *cpus;    /* "16-19": of the one node; NULL = unknown, or several nodes */
    int node;            /* the one that its cores belong to; -1 = several */
    const struct lab_study_rank *ranks;
    int rank_count;
    const struct lab_machine *machine;
};

/*
 * Where these ranks ran. `machine` is the one that they ran on, NULL = unknown; of a simulated one
 * the CPUs' numbers aren't used, since they are made up. All strings lie in the arena.
 */
struct lab_advice_place lab_advice_place_make(const struct lab_study_rank *ranks, int count,
                                              const struct lab_machine *machine, bool simulated,
                                              struct lab_arena *arena);

/* --- lines; only of a place that isn't `missing` --- */

/* "CUDA_VISIBLE_DEVICES=GPU-… numactl --cpunodebind=3 --membind=3 PROGRAM", of one rank. */
const char *lab_advice_place_line(const struct lab_advice_place *place, struct lab_arena *arena);

/* A process for each rank, with its cores and memory; by `gpulab bind` where these are each GPU's
 * own, else with its own GPU, too. Variables are set behind the launcher: Slurm replaces
 * what it finds in the job's. NULL = torchrun can't express it. */
const char *lab_advice_place_torchrun(const struct lab_advice_place *place,
                                      struct lab_arena *arena);
const char *lab_advice_place_mpi(const struct lab_advice_place *place, struct lab_arena *arena);
const char *lab_advice_place_slurm(const struct lab_advice_place *place, struct lab_arena *arena);
