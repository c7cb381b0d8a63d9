/*
 * advise_place.h: a place that was measured, as lines that start PROGRAM there.
 *
 * A line has the GPU, the cores and the memory, or there is none: with the cores alone a program
 * runs on the driver's first GPU, far from them. GPUs have their UUIDs, which mean the same
 * whatever the order or the job; else their numbers in PCI order, with the variable that makes CUDA
 * count so.
 */
#ifndef LAB_ADVISE_ADVISE_PLACE_H
#define LAB_ADVISE_ADVISE_PLACE_H

#include "analysis/analysis_study.h"
#include "base/mem.h"
#include "model/machine.h"

struct lab_advice_place {
    const char *missing; /* why no line can be made, a sentence without full stop; NULL = it can */
    const char *gpus;    /* a list as CUDA_VISIBLE_DEVICES takes it; NULL = no rank has a GPU */
    bool by_number;      /* `gpus` are numbers in PCI order */
    bool is_mig;
    bool split;       /* ranks need a process each: they have different nodes, or MIG instances */
    const char *tool; /* "numactl"; "taskset" where the kernel has no NUMA nodes; "mpirun": split */
    const char *bind; /* "numactl --cpunodebind=3 --membind=3", of all ranks */
    const char *cpus; /* "16-19": of the one node; NULL = unknown, or several nodes */
    int node;         /* the one that its cores belong to; -1 = several */
    int core_count;   /* of that node; 0 = unknown */
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

/* "CUDA_VISIBLE_DEVICES=GPU-… numactl --cpunodebind=3 --membind=3 PROGRAM"; that of MPI where it is
 * split. `more` are further assignments ("OMP_NUM_THREADS=4"), or NULL. */
const char *lab_advice_place_line(const struct lab_advice_place *place, const char *more,
                                  struct lab_arena *arena);
/* The same cores by taskset, which leaves memory to first touch; NULL where `cpus` are unknown, or
 * memory of another node is meant. */
const char *lab_advice_place_taskset(const struct lab_advice_place *place, struct lab_arena *arena);
/* A task of Slurm; split, one for each rank. The variable is set in the task: Slurm replaces what
 * it finds in the job's. */
const char *lab_advice_place_slurm(const struct lab_advice_place *place, struct lab_arena *arena);
/* A process of MPI for each rank, each with its own GPU, cores and memory. */
const char *lab_advice_place_mpi(const struct lab_advice_place *place, struct lab_arena *arena);
/* An MPS daemon on the GPU, and PROGRAM as its client; NULL = the place isn't one whole GPU. */
const char *lab_advice_place_mps(const struct lab_advice_place *place, struct lab_arena *arena);
/* "nvidia-smi -i GPU-… ARGUMENTS": a setting of the GPU; NULL likewise. */
const char *lab_advice_place_smi(const struct lab_advice_place *place, const char *arguments,
                                 struct lab_arena *arena);

#endif
