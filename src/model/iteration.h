/*
 * model/iteration.h: what a workload's run leaves: a record per iteration. docs/NUMBERS.md defines
 * every figure that is derived from them.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

enum lab_stage { LAB_STAGE_H2D, LAB_STAGE_COMPUTE, LAB_STAGE_D2H, LAB_STAGE_COUNT };

struct lab_span { /* on the device, CLOCK_MONOTONIC; both 0 = the stage doesn't exist */
    int64_t start_ns, end_ns;
};

/* Sorts them and joins those that touch or overlap, in place; returns how many remain. */
size_t lab_spans_join(struct lab_span *spans, size_t count);

struct lab_iteration {
    int64_t start_ns, end_ns; /* start of the first stage, end of the last */
    struct lab_span stages[LAB_STAGE_COUNT];
};

/*
 * A series of iterations as few bytes: a version byte, the count, then each time as the step from
 * the one before it, less the same step an iteration ago (variable-length, zigzag). Exact; about 10
 * bytes an iteration instead of 64, at most 81. Appends to `out`.
 */
void lab_iterations_pack(const struct lab_iteration *items, size_t count, struct lab_str *out);

/* Bytes that were not packed so, or are cut off, or claim more than `max_count`, are an error. */
int lab_iterations_unpack(const void *bytes, size_t length, size_t max_count,
                          struct lab_arena *arena, struct lab_iteration **ret_items,
                          size_t *ret_count, struct lab_err *err);
