/*
 * bind.h: where a rank of the user's program belongs: on the cores and memory next to its GPU.
 *
 * A launcher gives each process its local rank by a variable; rank r uses the r-th GPU that it can
 * see. Nothing here fails: where no better placement is known, `note` says why and the program runs
 * as it would have.
 */
#pragma once

#include "base/mem.h"
#include "model/device_ref.h"

#include <stdbool.h>

struct lab_bind_rank {
    int rank, ranks;      /* on this host; -1 = unknown */
    const char *variable; /* that it comes from; NULL = none */
    const char *note;     /* of a variable that has no number in it; NULL = none */
};

/* The innermost launcher's: torchrun and its relatives, Open MPI, Slurm, MPICH, MVAPICH, PALS. */
struct lab_bind_rank lab_bind_find_rank(struct lab_arena *arena);

struct lab_bind_place {
    const struct lab_device_ref *device; /* NULL = not one alone */
    int node;                            /* the kernel's number; -1 = none, nothing to bind */
    struct lab_cpus cpus;                /* empty = nothing to bind */
    const char *note;                    /* why it isn't bound, or not as asked; NULL = it is */
};

/*
 * `allowed` are the CPUs that this process may use. With `exclusive` the ranks whose GPUs share a
 * NUMA node divide its cores; else each may use all of them.
 */
struct lab_bind_place lab_bind_place_make(const struct lab_machine *machine,
                                          const struct lab_device_list *devices,
                                          const struct lab_bind_rank *rank,
                                          const struct lab_cpus *allowed, bool exclusive,
                                          struct lab_arena *arena);
