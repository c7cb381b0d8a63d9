/*
 * trace.h: traces as files in the layout of Nsight Systems' SQLite export, so that whatever
 * reads those reads ours.
 */
#pragma once

#include "base/err.h"
#include "model/trace.h"

/*
 * Writes all of the trace, or nothing: the file is put in its place when it is whole and on the
 * disk, over one that was there before. The folder must exist.
 */
int lab_trace_write(const char *path, const struct lab_trace *trace, struct lab_err *err);
