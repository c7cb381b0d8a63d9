/*
 * export.h: a study's data for other programs: tables as CSV, the whole as one JSON document.
 *
 * Everything is handed on in pieces as it is made, so that no table has to fit into memory. CSV has
 * a header line, RFC 4180's quotes where they are needed, and lines that end with a line feed. A
 * field that has no value is empty.
 */
#ifndef LAB_STORE_EXPORT_EXPORT_H
#define LAB_STORE_EXPORT_EXPORT_H

#include "base/err.h"
#include "model/run.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct lab_export {
    /* takes a piece; anything but 0 ends the export, which then returns -1 and leaves `err` as it
     * is */
    int (*write)(void *state, const char *bytes, size_t length);
    void *state;
};

/*
 * A line for each run: what was asked for, what became of it, its figures; then a column `test.KEY`
 * and `option.KEY` for every key that any of the runs has, ascending. Lists are joined by
 * semicolons.
 */
int lab_export_csv(const struct lab_run *runs, int count, const struct lab_export *out,
                   struct lab_err *err);

/* A line for each iteration of each rank: run_id, rank, iteration, start_ns, end_ns, h2d_ms,
 * compute_ms, d2h_ms, latency_ms. */
int lab_export_iterations_csv(struct lab_store *store, const struct lab_run *runs, int count,
                              const struct lab_export *out, struct lab_err *err);

/* A line for each metric: run_id, rank (empty = of the whole run), name, unit, value, time_ns.
 * Values that aren't finite are inf, -inf and nan. */
int lab_export_metrics_csv(struct lab_store *store, const struct lab_run *runs, int count,
                           const struct lab_export *out, struct lab_err *err);

/*
 * {study, machine, summary, runs}. A run has the fields of results.json (results.h) and its
 * metrics, in whatever state it is; with `iterations` also `iteration_times`: for each rank a row
 * for every iteration.
 */
int lab_export_json(struct lab_store *store, bool iterations, const struct lab_export *out,
                    struct lab_err *err);

#endif
