/*
 * export.h: a study's data for other programs: tables in a format of rows, the whole as one JSON
 * document.
 *
 * Everything is handed on in pieces as it is made, so that no table has to fit into memory. A sink
 * that refuses one ends the export, which then returns -1 and leaves `err` as it is.
 */
#pragma once

#include "base/err.h"
#include "doc/stream.h"
#include "model/run.h"
#include "store/store.h"

#include <stdbool.h>

/*
 * A row for each run: what was asked for, what became of it, its figures; then a column `test.KEY`
 * and `option.KEY` for every key that any of the runs has, ascending. Lists are joined by
 * semicolons.
 */
int lab_export_runs(const struct lab_run *runs, int count, const struct lab_doc_format *format,
                    struct lab_doc_sink *sink);

/* A row for each iteration of each rank: run_id, rank, iteration, start_ns, end_ns, h2d_ms,
 * compute_ms, d2h_ms, latency_ms. */
int lab_export_iterations(struct lab_store *store, const struct lab_run *runs, int count,
                          const struct lab_doc_format *format, struct lab_doc_sink *sink,
                          struct lab_err *err);

/* A row for each metric: run_id, rank (none = of the whole run), name, unit, value, time_ns, step,
 * time_s (since the run began). In CSV, values that aren't finite are inf, -inf and nan. */
int lab_export_metrics(struct lab_store *store, const struct lab_run *runs, int count,
                       const struct lab_doc_format *format, struct lab_doc_sink *sink,
                       struct lab_err *err);

/*
 * {study, machine, summary, runs}. A run has the fields of results.json (results.h) and its
 * metrics, in whatever state it is; with `iterations` also `iteration_times`: for each rank a row
 * for every iteration.
 */
int lab_export_json(struct lab_store *store, const struct lab_run *runs, int count, bool iterations,
                    struct lab_doc_sink *sink, struct lab_err *err);
