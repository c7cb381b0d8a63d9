/*
 * worker.h: the other end of the runner: one process that carries out one run, or some of its
 * ranks, and tells on a socket (frame.h) what happens.
 *
 *     runner                                          worker
 *       JOB        ───────────────────────────────>   binds each rank's thread, opens device,
 *                                                     workload
 *                  <─────────────  HELLO, PHASE…      verifies, warms up
 *                  <─────────────  READY (each rank)  waits, its device idle
 *       GO         ───────────────────────────────>   all ranks of the gang measure from here on
 *                  <── PROGRESS, ITERATIONS, METRICS  between chunks, never inside the timed
 *                                                     part
 *                  <── ENTITY, TICKS                  simulated: what a sampler would have seen
 *                  <─────────────  MEET (each worker) of a phase: ready for the next probe
 *       MEET       ───────────────────────────────>   all workers of the gang start it
 *                  <─────  RESULT (each rank), or     proves where its memory lay, traces; waits
 *                          FAILURE: the last word
 *       ACK        ───────────────────────────────>   ends with status 0
 *
 * A rank's RESULT has the values of model/result.h that a worker knows; what its GPU did comes from
 * the runner. docs/NUMBERS.md defines them.
 *
 * Results that fail their verification are a FAILURE (LAB_ERR_WRONG), not a result.
 *
 * A worker dies with its runner, and takes with it whatever its workload has started: when the
 * socket closes or the parent ends, a thread of its own kills all descendants and the process
 * group. SIGTERM does the same, but a workload that is a program gets it too, and a second to end
 * in.
 */
#pragma once

#include "base/err.h"

/*
 * Carries out the job that comes on `fd`. Returns the exit status: 0 after ACK, 1 after a FAILURE
 * that was sent or where no ACK came within a minute. -1 with an error only if there is no
 * conversation: `fd` is no socket, no job came.
 *
 * The process is the worker's own: it becomes a subreaper, SIGUSR2 and SIGTERM are blocked in it,
 * and at the end all its descendants are killed.
 */
int lab_worker_run(int fd, struct lab_err *err);
