/*
 * analysis/latency/work.h: what a device did as one list, whatever kind each command is of, joined
 * with the calls that asked for it, and what the trace's ranges say about it.
 */
#pragma once

#include "base/mem.h"
#include "model/trace.h"

#include <stdbool.h>

struct lab_latency_work {
    int64_t start_ns, end_ns;
    int64_t size_bytes;
    const struct lab_trace_call *call; /* NULL = not recorded */
    int32_t device;
    uint32_t context, green, stream;
    int stage; /* enum lab_stage, or LAB_PIPELINE_OTHER */
    bool whole_graph;
};

struct lab_work_list {
    struct lab_latency_work *items; /* by device, context, slice, then start */
    size_t count;
    size_t broken; /* left out: they end before they start, or have no times */
};

void lab_work_collect(const struct lab_trace *trace, struct lab_arena *arena,
                      struct lab_work_list *ret_list);

bool lab_work_same_pipeline(const struct lab_latency_work *a, const struct lab_latency_work *b);

/* --- ranges --- */

struct lab_work_batch { /* one stage of one batch, as a range names it */
    int64_t start_ns, end_ns;
    int64_t id;
};

struct lab_work_window {
    int64_t start_ns, end_ns;
    int64_t
        tail_ns; /* until when a command may start that was asked for within it, no call known */
};

struct lab_work_ranges { /* that concern one pipeline */
    bool follow_device;
    struct lab_work_window *windows; /* in order of start */
    size_t window_count;
    struct lab_work_batch *batches[3]; /* by enum lab_stage, in order of start */
    size_t batch_counts[3];
};

void lab_work_ranges(const struct lab_trace *trace, const char *window,
                     const struct lab_latency_work *work, size_t count, struct lab_arena *arena,
                     struct lab_work_ranges *ret_ranges);

/* Whether it counts. */
bool lab_work_is_within(const struct lab_work_ranges *ranges, const struct lab_latency_work *work);

/* The batch that it belongs to, by its stage; -1 = none. */
int64_t lab_work_batch(const struct lab_work_ranges *ranges, const struct lab_latency_work *work);
