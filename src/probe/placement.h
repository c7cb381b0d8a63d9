/*
 * placement.h: is a process where its GPU is? Judged from what the kernel says of its threads and
 * its memory, and answered with the line that would put it right.
 */
#pragma once

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

/* Adds the bytes of a process's own memory on each NUMA node, by index; false = it can't be read:
 * another user's, or ended. Takes as long as it takes: seconds for hundreds of gigabytes. */
bool lab_placement_add_pages(const struct lab_machine *machine, int32_t pid, int64_t *bytes);
