/*
 * results.h: what a study has found, as the files beside its database show it: results.json, an
 * array with a map for each run that has ended, and experiment_summary.json. Names and meanings of
 * the fields are those that the published guides use, and docs/NUMBERS.md for the others.
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "doc/stream.h"
#include "store/store.h"

/* One run, in any state. */
struct lab_value *lab_results_run(const struct lab_run *run, struct lab_arena *arena);

/*
 * What runs reported, as results.json has it: a map for each metric and rank with `last` and `best`
 * (null where no direction is better), `min`, `max`, their steps and the number of values. Those of
 * a run that is done are read once.
 */
struct lab_results_metrics;
struct lab_results_metrics *lab_results_metrics_open(void);
void lab_results_metrics_close(struct lab_results_metrics *metrics); /* accepts NULL */

/* Appends the whole of results.json; `metrics` NULL = without what runs reported. */
void lab_results_write(const struct lab_run *runs, int count, struct lab_store *store,
                       struct lab_results_metrics *metrics, struct lab_str *out);

/* One run's fields, into the map that is open. */
void lab_results_add_run(const struct lab_run *run, struct lab_doc_tree *tree);

/* What a run was asked for, as its map has it; empty where a stored text is no JSON. */
struct lab_results_asked {
    struct lab_value *options, *test; /* maps */
    struct lab_value *series;         /* a list */
};
void lab_results_asked(const struct lab_run *run, struct lab_arena *arena,
                       struct lab_results_asked *ret_asked);

/* Whether a device of it is. */
bool lab_results_is_simulated(const struct lab_run *run);

/* Appends a time as the fields give it: ISO 8601, local, "2026-11-15T10:42:03.123456+01:00". */
void lab_results_add_time(int64_t wall_ns, struct lab_str *out);

/* experiment_summary.json: success_rate in percent of the runs that ended, average_duration of
 * those that succeeded, in seconds; vit_configs_tested is their number. `runs` are all of the
 * study's, in any state. */
struct lab_value *lab_results_summary(const char *study, const struct lab_run *runs, int count,
                                      struct lab_arena *arena);
