/*
 * placement.h: is a process where its GPU is? Judged from what the kernel says of its threads and
 * its memory, and answered with the line that would put it right.
 */
#ifndef LAB_PROBE_PLACEMENT_H
#define LAB_PROBE_PLACEMENT_H

#include "base/mem.h"
#include "model/machine.h"
#include "model/sample.h"

/*
 * Fills `placement` and `advice` (in the arena) of a process whose other fields are known.
 * `gpu_nodes` are the nodes of its gpus, in their order, -1 = unknown. One that uses GPUs of
 * several nodes is local on any of them. Memory counts once more than half of 64 MiB or more lies
 * elsewhere.
 */
void lab_placement_judge(const struct lab_machine *machine, const int *gpu_nodes,
                         struct lab_arena *arena, struct lab_process_sample *process);

const char *lab_placement_words(enum lab_placement placement); /* "wrong cores" */

#endif
