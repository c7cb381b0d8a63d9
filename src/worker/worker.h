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
 *                  <── PROGRESS, ITERATIONS, METRIC   between stretches, never inside the timed
 *                                                     part
 *                  <── ENTITY, TICKS                  simulated: what a sampler would have seen
 *                  <─────  RESULT (each rank), or     proves where its memory lay, traces; waits
 *                          FAILURE: the last word
 *       ACK        ───────────────────────────────>   ends with status 0
 *
 * A rank's RESULT is a JSON object; docs/NUMBERS.md defines the figures, null = there is none:
 *
 *     device, numa_node, iterations, warmup_iterations, samples       what was done (samples: in
 *                                                                     all)
 *     device_node, distance                   the node that the device sits on; the kernel's
 *                                             distance from numa_node, 10 = local
 *     device_uuid                             of GPUs that have one: "GPU-…", "MIG-…"
 *     simulated                               true, of a simulated device alone
 *     rate, rate_low, rate_high, rate_unit                            "samples/s" or
 *                                                                     "iterations/s"; the interval
 *                                                                     within the run
 *     samples_per_second, flops_per_second, h2d_gb_per_s, d2h_gb_per_s, compute_utilization,
 *     overlap latency_ms, interval_ms                 {mean, median, p90, p95, p99, min, max} of
 *     each first_ns, last_ns                       start of the first and end of the last measured
 *     one end_ns                                  simulated: when all was done, by the simulated
 *     clock setup_s, first_iteration_ms, steady, peak_memory_mb, device_memory_mb forward_ms,
 *     backward_ms, gradient_ms, update_ms, communication_time_ms, exposed_communication_ms: if
 *                                             the workload tells them
 *     verification                            {applicable, passed, relative_error, tolerance, text}
 *     placement_proven                        true, false, or null where there is nothing to prove
 *     conditions                              {load_before, foreign_cpu, steal, …}
 *     warnings, invalid                       lists of sentences; a run with an `invalid` one is
 *                                             done but must not be used
 *     configuration                           of a kernel that can be tuned: what it ran with
 *     of a study with phases, where there is such a thing:
 *     disturbed                               the neighbour on purpose that it had
 *     best_config, best_time_ms, winner_is_certain, tuning     what tuning ended with; all of it
 *     regret                                  [{phase, config, same, ratio, low, high, rounds}]:
 *                                             what was chosen in that phase against what was chosen
 *                                             alone, as times
 *     capacity                                {flops_per_second, memory_gb_per_s, h2d_gb_per_s,
 *                                             d2h_gb_per_s, clock_mhz, power_w, power_limit_w}:
 *                                             what the device's resources gave just behind the
 *                                             timed pass; power is the whole GPU's
 *     trace                                   {path, iterations, overhead}; path below the study's
 *                                             folder; overhead 0.01: an iteration took 1 % longer
 *
 * Results that fail their verification are a FAILURE (LAB_ERR_WRONG), not a result.
 *
 * A worker dies with its runner, and takes with it whatever its workload has started: when the
 * socket closes or the parent ends, a thread of its own kills all descendants and the process
 * group. SIGTERM does the same, but a workload that is a program gets it too, and a second to end
 * in.
 */
#ifndef LAB_WORKER_WORKER_H
#define LAB_WORKER_WORKER_H

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

#endif
