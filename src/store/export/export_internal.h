/* export_internal.h: how an iteration reads, in tables and in the document. */
#pragma once

#include "store/export/export.h"

#include "doc/column.h"
#include "model/iteration.h"

enum { LAB_EXPORT_TIMES = LAB_STAGE_COUNT + 3, LAB_EXPORT_TIMES_FROM = 3 };

/* The columns of the table of iterations; the times are the last of them. */
extern const struct lab_doc_column
    lab_export_iteration_columns[LAB_EXPORT_TIMES_FROM + LAB_EXPORT_TIMES];

/* "start_ns, end_ns, h2d_ms, compute_ms, d2h_ms, latency_ms" of an iteration. */
void lab_export_times(const struct lab_iteration *iteration,
                      struct lab_doc_cell ret_cells[LAB_EXPORT_TIMES]);
