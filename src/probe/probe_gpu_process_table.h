/* probe_gpu_process_table.h: the sampler's side of the board (probe.h): GPUs come onto it, and tell
 * who is there. */
#pragma once

#include "probe/probe.h"

struct lab_gpu_process_table *lab_gpu_process_table_open(void);
void lab_gpu_process_table_close(struct lab_gpu_process_table *table); /* accepts NULL */

/* A GPU or MIG instance under its number for the sampler's sink; again = as it is now. */
void lab_gpu_process_table_add(struct lab_gpu_process_table *table, int entity,
                               const struct lab_entity *details);

/* Who is on it, in place of what was told before; nobody for a GPU that is away. */
void lab_gpu_process_table_tell(struct lab_gpu_process_table *table, int entity,
                                const struct lab_gpu_process *items, int count);
