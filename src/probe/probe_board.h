/* probe_board.h: the sampler's side of the board (probe.h): GPUs come onto it, and tell who is there. */
#ifndef LAB_PROBE_PROBE_BOARD_H
#define LAB_PROBE_PROBE_BOARD_H

#include "probe/probe.h"

struct lab_probe_board *lab_probe_board_open(void);
void lab_probe_board_close(struct lab_probe_board *board); /* accepts NULL */

/* A GPU or MIG instance under its number for the sampler's sink; again = as it is now. */
void lab_probe_board_add(struct lab_probe_board *board, int entity,
                         const struct lab_entity *details);

/* Who is on it, in place of what was told before; nobody for a GPU that is away. */
void lab_probe_board_tell(struct lab_probe_board *board, int entity,
                          const struct lab_gpu_process *items, int count);

#endif
