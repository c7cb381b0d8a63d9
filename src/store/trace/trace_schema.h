/*
 * trace_schema.h: the tables of a trace file: how they are made and filled. Columns have the names
 * that Nsight Systems gives them (2022 to 2026) and stand in its order; of its many tables those
 * are there that have a meaning for us.
 *
 * The inserts bind their parameters in the order of the columns.
 */
#pragma once

enum trace_insert {
    TRACE_INSERT_STRING,
    TRACE_INSERT_KERNEL,
    TRACE_INSERT_COPY,
    TRACE_INSERT_FILL,
    TRACE_INSERT_CALL,
    TRACE_INSERT_RANGE,
    TRACE_INSERT_GPU,
    TRACE_INSERT_NOTE,
    TRACE_INSERT_PROCESS,
    TRACE_INSERT_SPAN,
    TRACE_INSERT_COUNT,
};

extern const char lab_trace_schema[];
extern const char *const lab_trace_inserts[TRACE_INSERT_COUNT];
