/*
 * trace_log.h: the trace of a backend that is its own profiler: what its streams did, and when, by
 * the device's clock. Records go into room that was set aside before, at a place that an atomic
 * counter gives out, so that tracing a command costs two looks at the clock and a store.
 */
#pragma once

#include "device/device.h"

struct lab_trace_log_item {
    enum { LAB_TRACE_LOG_LAUNCH, LAB_TRACE_LOG_COPY, LAB_TRACE_LOG_CALL, LAB_TRACE_LOG_KINDS } kind;
    int64_t start_ns, end_ns;
    uint32_t stream, correlation;
    uint64_t graph_node;
    const char *name; /* launch: the op's, call: the function's */
    int64_t amount;   /* launch: units, copy: bytes */
    enum lab_memory_kind to_kind, from_kind;
};

/* The slot of lab_device_ops: sets `trace_log`. */
int lab_trace_log_begin(struct lab_device *device, size_t capacity, struct lab_err *err);
void lab_trace_log_free(struct lab_device *device); /* also where there is none */

/* What a stream did; only where the device has a log. */
void lab_trace_log_add(const struct lab_device *device, const struct lab_trace_log_item *item);

/* The host's side: around a call that enqueues; all zero and nothing done where there is no log. */
struct lab_trace_log_call {
    int64_t start_ns;
    uint32_t correlation;
};
struct lab_trace_log_call lab_trace_log_enter(const struct lab_stream *stream);
void lab_trace_log_leave(const struct lab_stream *stream, struct lab_trace_log_call call,
                         const char *name);

/* Hands it over as the trace of one device, `green` as in lab_trace_place, and drops it. */
int lab_trace_log_end(struct lab_device *device, const struct lab_trace_gpu *gpu, uint32_t green,
                      const char *source, struct lab_arena *arena, struct lab_trace *ret_trace,
                      struct lab_err *err);
