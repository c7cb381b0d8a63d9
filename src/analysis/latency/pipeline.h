/*
 * analysis/latency/pipeline.h: the figures of one pipeline in a trace. A pipeline is all that one
 * context of a device did: a device, or a slice of one. docs/NUMBERS.md ("A pipeline in a trace")
 * defines each figure.
 *
 * The window is given by ranges of a name. Ranges in traces of ours follow the device; ranges of
 * programs that call NVTX follow the host, which runs ahead of the device. So a command belongs to
 * a range by its own start in the former, and by the start of the call that asked for it in the
 * latter: what was asked for within the range counts to its end, however late that is.
 */
#pragma once

#include "analysis/analysis.h"
#include "model/iteration.h"
#include "model/trace.h"

/* The stages of an iteration, and what is none: fills, copies within the device. */
enum { LAB_PIPELINE_OTHER = LAB_STAGE_COUNT, LAB_PIPELINE_STAGES };

struct lab_pipeline_stage {
    const char *name;
    int commands;
    int64_t busy_ns; /* in which any of them ran */
    double busy;     /* of the window */
    double bytes;
    double bytes_per_s;                    /* over busy_ns; NaN = no copies */
    struct lab_analysis_summary time;      /* of a batch, seconds */
    struct lab_analysis_summary bandwidth; /* of a batch; of a copy where batches are unknown */
};

struct lab_pipeline_stream {
    int stream, commands;
    double busy; /* of the window */
    int gap_count;
    struct lab_analysis_summary gaps; /* seconds, those longer than `gap_ns` */
    int over_10us, over_100us;
};

struct lab_pipeline {
    int32_t device;
    uint32_t context, green;
    bool has_window;          /* a range gave it; false: all that the trace holds */
    int64_t start_ns, end_ns; /* first start and last end of what counts */
    double window_s, batches; /* NaN = ranges don't tell */
    struct lab_pipeline_stage stages[LAB_PIPELINE_STAGES];
    enum lab_stage longest; /* the stage that is busy for longest */
    double compute_utilization, efficiency, overlap, compression, idle;
    struct lab_analysis_summary preparation; /* seconds */
    struct lab_analysis_summary latency;     /* of a batch, seconds */
    size_t batch_count;
    size_t whole_graphs;
    struct lab_pipeline_stream *streams; /* ascending */
    int stream_count;
};

struct lab_pipelines {
    struct lab_pipeline *items; /* by device, context, slice; none of them empty */
    int count;
    size_t broken; /* commands without valid times, left out */
};

/* Everything lies in the arena. */
void lab_pipelines_make(const struct lab_trace *trace, const char *window, int64_t gap_ns,
                        struct lab_arena *arena, struct lab_pipelines *ret_pipelines);
