/*
 * plan_estimate.h: what a plan will take of time, energy and disk, before it starts.
 */
#pragma once

#include "model/plan.h"
#include "run/history.h"

/*
 * expected_s shares the runs' time among as many workers as can be busy at once: at most
 * max_workers, and no more than the devices have room for (runs_per_device on each). A study with a
 * `duration` takes at least that for each run, whatever its iterations took before. Behind the
 * `budget` no further run starts.
 *
 * most_s: every attempt of every run ends by its timeout, one after the other: Σ timeout_s × (1 +
 * max_retries), and the cool-downs. With a budget: that, and the run that was under way, if this is
 * less.
 *
 * energy_j: the power of earlier runs × the runs' time, however many are under way at once.
 *
 * disk_bytes: what the folder holds when the study has ended, its report and traces included.
 * Without logs of programs that talk much, whose length nobody knows.
 *
 * `history` may be NULL: nothing is known.
 */
struct lab_plan_estimate lab_run_plan_estimate(const struct lab_plan *plan,
                                               const struct lab_history *history);

/* Then its runs' own times are simulated; estimates are of ours. */
bool lab_run_plan_is_simulated(const struct lab_plan *plan);

/*
 * Which of these amounts of work, ascending, run for an estimate, and in this order: first steps
 * from the smallest up, since the time ends long before all have run and a run that only copies
 * says nothing about computing; then the others, evenly. Returns how many.
 */
int lab_run_plan_calibrate_order(const double *works, int count, int most, int *ret_order);

/*
 * Carries out a few short runs of the plan, at most one of each kind of work that history doesn't
 * know, in some seconds, and adds what they took as earlier runs. How many; 0 = all is known. -1
 * with an error where none could be done: another study measures on the device, say.
 */
int lab_run_plan_calibrate(const struct lab_plan *plan, struct lab_history *history,
                           struct lab_err *err);

/*
 * One run: expected seconds (NaN = unknown), cool-down excluded. `record` is
 * lab_run_plan_record's. A time without a basis is the duration that was asked for.
 */
double lab_run_plan_estimate_run(const struct lab_plan *plan, const struct lab_run *record,
                                 const struct lab_history *history,
                                 enum lab_history_basis *ret_basis);
