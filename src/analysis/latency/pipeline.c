/*
 * analysis/latency/pipeline.c: from commands to figures, a pipeline at a time: what counts, the
 * stages' busy times and what follows from them, batches, streams.
 */
#include "analysis/latency/pipeline.h"

#include "analysis/latency/span.h"
#include "analysis/latency/work.h"
#include "base/list.h"

#include <math.h>

#define SECONDS(ns) ((double)(ns) / 1e9)

struct selection { /* the commands of a pipeline that count, by their start */
    struct lab_latency_work *items;
    size_t count;
    const struct lab_work_ranges *ranges;
    struct lab_arena *arena; /* of the result */
};

static double ratio(int64_t part, int64_t whole) {
    return whole > 0 ? (double)part / (double)whole : NAN;
}

/* --- stages --- */

/* The stretches in which the stage (-1 = any) was busy, apart from each other. Freed by the
 * caller. */
static size_t busy_spans(const struct selection *selection, int stage,
                         struct lab_span **ret_spans) {
    struct lab_span *spans = lab_mem_resize(NULL, selection->count + 1, sizeof *spans);
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++)
        if (stage < 0 || selection->items[i].stage == stage)
            spans[count++] =
                (struct lab_span){selection->items[i].start_ns, selection->items[i].end_ns};
    *ret_spans = spans;
    return lab_spans_join(spans, count);
}

static const char *const stage_names[LAB_PIPELINE_STAGES] = {"H2D", "compute", "D2H", "other"};

static void measure_stages(const struct selection *selection, struct lab_pipeline *pipeline) {
    struct lab_span *spans[LAB_PIPELINE_STAGES], *all;
    size_t counts[LAB_PIPELINE_STAGES];
    int64_t window_ns = pipeline->end_ns - pipeline->start_ns, sum_ns = 0;
    for (int stage = 0; stage < LAB_PIPELINE_STAGES; stage++) {
        counts[stage] = busy_spans(selection, stage, &spans[stage]);
        pipeline->stages[stage].name = stage_names[stage];
        pipeline->stages[stage].busy_ns = lab_spans_busy_ns(spans[stage], counts[stage]);
        pipeline->stages[stage].busy = ratio(pipeline->stages[stage].busy_ns, window_ns);
        sum_ns += pipeline->stages[stage].busy_ns;
    }
    for (size_t i = 0; i < selection->count; i++) {
        pipeline->stages[selection->items[i].stage].commands++;
        pipeline->stages[selection->items[i].stage].bytes += (double)selection->items[i].size_bytes;
        pipeline->whole_graphs += selection->items[i].whole_graph;
    }
    pipeline->stages[LAB_STAGE_COMPUTE].bytes = NAN;
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++)
        if (pipeline->stages[stage].busy_ns > pipeline->stages[pipeline->longest].busy_ns)
            pipeline->longest = (enum lab_stage)stage;
    int64_t under_ns = 0, copies_ns = 0;
    for (int stage = 0; stage < LAB_PIPELINE_STAGES; stage++) {
        struct lab_pipeline_stage *figures = &pipeline->stages[stage];
        bool copies = stage == LAB_STAGE_H2D || stage == LAB_STAGE_D2H;
        figures->bytes_per_s =
            copies && figures->busy_ns > 0 ? figures->bytes / SECONDS(figures->busy_ns) : NAN;
        if (!copies)
            continue;
        copies_ns += figures->busy_ns;
        under_ns += lab_spans_common_ns(spans[stage], counts[stage], spans[LAB_STAGE_COMPUTE],
                                        counts[LAB_STAGE_COMPUTE]);
    }
    bool computes = pipeline->stages[LAB_STAGE_COMPUTE].commands > 0;
    pipeline->overlap = computes ? ratio(under_ns, copies_ns) : NAN;
    pipeline->compute_utilization = ratio(pipeline->stages[LAB_STAGE_COMPUTE].busy_ns, window_ns);
    pipeline->efficiency = ratio(pipeline->stages[pipeline->longest].busy_ns, window_ns);
    pipeline->compression = ratio(sum_ns, window_ns);
    size_t all_count = busy_spans(selection, -1, &all);
    pipeline->idle = 1 - ratio(lab_spans_busy_ns(all, all_count), window_ns);
    for (int stage = 0; stage < LAB_PIPELINE_STAGES; stage++)
        lab_mem_free(spans[stage]);
    lab_mem_free(all);
}

/* --- batches --- */

struct part { /* of a batch: one stage */
    int64_t id;
    int stage;
    int64_t start_ns, end_ns;
    int64_t moving_ns, size_bytes;
};

/* Joins the commands of each batch's stages; returns how many such parts there are. */
static size_t join_parts(struct part *parts, size_t count) {
    size_t last = 0;
    if (count == 0)
        return 0;
    LAB_SORT(parts, count, LAB_BY(parts, id), LAB_BY(parts, stage));
    for (size_t i = 1; i < count; i++) {
        if (parts[i].id != parts[last].id || parts[i].stage != parts[last].stage) {
            parts[++last] = parts[i];
            continue;
        }
        struct part *into = &parts[last];
        into->start_ns = parts[i].start_ns < into->start_ns ? parts[i].start_ns : into->start_ns;
        into->end_ns = parts[i].end_ns > into->end_ns ? parts[i].end_ns : into->end_ns;
        into->moving_ns += parts[i].moving_ns;
        into->size_bytes += parts[i].size_bytes;
    }
    return last + 1;
}

static size_t collect_parts(const struct selection *selection, struct part *parts) {
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const struct lab_latency_work *work = &selection->items[i];
        int64_t id = lab_work_batch(selection->ranges, work);
        if (id >= 0)
            parts[count++] = (struct part){.id = id,
                                           .stage = work->stage,
                                           .start_ns = work->start_ns,
                                           .end_ns = work->end_ns,
                                           .moving_ns = work->end_ns - work->start_ns,
                                           .size_bytes = work->size_bytes};
    }
    return join_parts(parts, count);
}

static struct lab_analysis_summary batch_latency(const struct part *parts, size_t count,
                                                 double *values, size_t *ret_batches) {
    size_t batches = 0;
    for (size_t i = 0; i < count;) {
        int64_t start_ns = parts[i].start_ns, end_ns = parts[i].end_ns;
        size_t next = i + 1;
        for (; next < count && parts[next].id == parts[i].id; next++) {
            start_ns = parts[next].start_ns < start_ns ? parts[next].start_ns : start_ns;
            end_ns = parts[next].end_ns > end_ns ? parts[next].end_ns : end_ns;
        }
        values[batches++] = SECONDS(end_ns - start_ns);
        i = next;
    }
    *ret_batches = batches;
    return lab_analysis_summarize(values, batches);
}

static void measure_stage_of_batches(const struct part *parts, size_t count, int stage,
                                     double *values, struct lab_pipeline_stage *figures) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].stage == stage)
            values[found++] = SECONDS(parts[i].end_ns - parts[i].start_ns);
    figures->time = lab_analysis_summarize(values, found);
    found = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].stage == stage && parts[i].moving_ns > 0 && parts[i].size_bytes > 0)
            values[found++] = (double)parts[i].size_bytes / SECONDS(parts[i].moving_ns);
    figures->bandwidth = lab_analysis_summarize(values, found);
}

static struct lab_analysis_summary copy_bandwidth(const struct selection *selection, int stage,
                                                  double *values) {
    size_t found = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const struct lab_latency_work *work = &selection->items[i];
        if (work->stage == stage && work->end_ns > work->start_ns && work->size_bytes > 0)
            values[found++] = (double)work->size_bytes / SECONDS(work->end_ns - work->start_ns);
    }
    return lab_analysis_summarize(values, found);
}

static void measure_batches(const struct selection *selection, struct lab_pipeline *pipeline) {
    LAB_AUTO_FREE struct part *parts = lab_mem_resize(NULL, selection->count + 1, sizeof *parts);
    LAB_AUTO_FREE double *values = lab_mem_resize(NULL, selection->count + 1, sizeof *values);
    size_t count = collect_parts(selection, parts);
    pipeline->latency = batch_latency(parts, count, values, &pipeline->batch_count);
    for (int stage = 0; stage < LAB_PIPELINE_STAGES; stage++) {
        struct lab_pipeline_stage *figures = &pipeline->stages[stage];
        measure_stage_of_batches(parts, count, stage, values, figures);
        if ((stage == LAB_STAGE_H2D || stage == LAB_STAGE_D2H) && figures->bandwidth.count == 0)
            figures->bandwidth = copy_bandwidth(selection, stage, values);
    }
}

/* --- preparation --- */

/* From the return of the call to the start of what it asked for; a graph's first command counts. */
static void measure_preparation(const struct selection *selection, const struct lab_trace *trace,
                                struct lab_pipeline *pipeline) {
    LAB_AUTO_FREE double *values = lab_mem_resize(NULL, selection->count + 1, sizeof *values);
    LAB_AUTO_FREE bool *seen = lab_mem_alloc(trace->call_count + 1, sizeof *seen);
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const struct lab_latency_work *work = &selection->items[i];
        if (work->stage != LAB_STAGE_COMPUTE || !work->call || seen[work->call - trace->calls])
            continue;
        seen[work->call - trace->calls] = true;
        int64_t wait_ns = work->start_ns - work->call->end_ns;
        values[count++] = wait_ns > 0 ? SECONDS(wait_ns) : 0;
    }
    pipeline->preparation = lab_analysis_summarize(values, count);
}

/* --- streams --- */

static void measure_stream(const struct lab_latency_work *work, size_t count, int64_t gap_ns,
                           int64_t window_ns, double *values,
                           struct lab_pipeline_stream *ret_stream) {
    struct lab_pipeline_stream stream = {.stream = (int)work->stream, .commands = (int)count};
    int64_t end_ns = work->start_ns, busy_ns = 0;
    size_t gaps = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t idle_ns = work[i].start_ns - end_ns;
        if (idle_ns > gap_ns) {
            values[gaps++] = SECONDS(idle_ns);
            stream.over_10us += idle_ns > 10000;
            stream.over_100us += idle_ns > 100000;
        }
        int64_t from_ns = work[i].start_ns > end_ns ? work[i].start_ns : end_ns;
        if (work[i].end_ns > from_ns)
            busy_ns += work[i].end_ns - from_ns;
        end_ns = work[i].end_ns > end_ns ? work[i].end_ns : end_ns;
    }
    stream.busy = ratio(busy_ns, window_ns);
    stream.gap_count = (int)gaps;
    stream.gaps = lab_analysis_summarize(values, gaps);
    *ret_stream = stream;
}

/* Sorts the selection: to be done last. */
static void measure_streams(struct selection *selection, int64_t gap_ns,
                            struct lab_pipeline *pipeline) {
    LAB_SORT(selection->items, selection->count, LAB_BY(selection->items, stream),
             LAB_BY(selection->items, start_ns));
    int count = 0;
    for (size_t i = 0; i < selection->count; i++)
        count += i == 0 || selection->items[i].stream != selection->items[i - 1].stream;
    pipeline->streams = lab_arena_alloc(selection->arena, (size_t)count, sizeof *pipeline->streams);
    LAB_AUTO_FREE double *values = lab_mem_resize(NULL, selection->count, sizeof *values);
    for (size_t i = 0; i < selection->count;) {
        size_t next = i + 1;
        while (next < selection->count &&
               selection->items[next].stream == selection->items[i].stream)
            next++;
        measure_stream(selection->items + i, next - i, gap_ns,
                       pipeline->end_ns - pipeline->start_ns, values,
                       &pipeline->streams[pipeline->stream_count++]);
        i = next;
    }
}

/* --- one pipeline, all of them --- */

static bool make_pipeline(const struct lab_trace *trace, const char *window, int64_t gap_ns,
                          const struct lab_latency_work *work, size_t count,
                          struct lab_arena *arena, struct lab_pipeline *ret_pipeline) {
    LAB_AUTO(arena, scratch);
    struct lab_work_ranges ranges;
    lab_work_ranges(trace, window, work, count, &scratch, &ranges);
    struct selection selection = {lab_mem_resize(NULL, count, sizeof *selection.items), 0, &ranges,
                                  arena};
    for (size_t i = 0; i < count; i++)
        if (lab_work_is_within(&ranges, &work[i]))
            selection.items[selection.count++] = work[i];
    if (selection.count > 0) {
        struct lab_pipeline pipeline = {.device = work->device,
                                        .context = work->context,
                                        .green = work->green,
                                        .has_window = ranges.window_count > 0,
                                        .start_ns = selection.items[0].start_ns,
                                        .end_ns = INT64_MIN};
        for (size_t i = 0; i < selection.count; i++)
            if (selection.items[i].end_ns > pipeline.end_ns)
                pipeline.end_ns = selection.items[i].end_ns;
        measure_stages(&selection, &pipeline);
        measure_batches(&selection, &pipeline);
        measure_preparation(&selection, trace, &pipeline);
        measure_streams(&selection, gap_ns, &pipeline);
        pipeline.window_s = SECONDS(pipeline.end_ns - pipeline.start_ns);
        pipeline.batches = pipeline.batch_count > 0 ? (double)pipeline.batch_count : NAN;
        *ret_pipeline = pipeline;
    }
    lab_mem_free(selection.items);
    return selection.count > 0;
}

void lab_pipelines_make(const struct lab_trace *trace, const char *window, int64_t gap_ns,
                        struct lab_arena *arena, struct lab_pipelines *ret_pipelines) {
    LAB_AUTO(arena, scratch);
    struct lab_work_list list;
    lab_work_collect(trace, &scratch, &list);
    int most = 0;
    for (size_t i = 0; i < list.count; i++)
        most += i == 0 || !lab_work_same_pipeline(&list.items[i], &list.items[i - 1]);
    struct lab_pipelines pipelines = {
        .items = lab_arena_alloc(arena, (size_t)most + 1, sizeof *pipelines.items),
        .broken = list.broken};
    for (size_t i = 0; i < list.count;) {
        size_t next = i + 1;
        while (next < list.count && lab_work_same_pipeline(&list.items[next], &list.items[i]))
            next++;
        pipelines.count += make_pipeline(trace, window, gap_ns, list.items + i, next - i, arena,
                                         &pipelines.items[pipelines.count]);
        i = next;
    }
    *ret_pipelines = pipelines;
}
