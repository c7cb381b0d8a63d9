/*
 * latency.c: `gpulab analyze latency`: where the time of a pipeline goes: how fast its copies are,
 * how busy its stages, what hides under what, where its streams wait. From traces in Nsight's
 * layout, ours or Nsight's own.
 */
#include "analysis/claims/contrast.h"
#include "analysis/claims/rows.h"
#include "analysis/latency/pipeline.h"

#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct latency_config {
    const char *window;
    double gap_s;
};

static const struct lab_option latency_options[] = {
    {"window", LAB_OPTION_STRING, offsetof(struct latency_config, window),
     .fallback = LAB_TRACE_WINDOW, .value_name = "RANGE",
     .help = "the range that counts; a trace without it counts as a whole"},
    {"gap", LAB_OPTION_DURATION, offsetof(struct latency_config, gap_s), .fallback = "1us",
     .max = 3600, .help = "a stream that waits for longer than this has a gap"},
    {NULL},
};

/* --- columns --- */

#define OF_PIPELINE(member, ...) LAB_FIELD(struct lab_pipeline, member, __VA_ARGS__)
static const struct lab_field figure_fields[] = {
    OF_PIPELINE(window_s, "window_ms", "Window", LAB_UNIT_TIME),
    OF_PIPELINE(batches, "batches", "Batches", LAB_UNIT_COUNT),
    OF_PIPELINE(latency.median, "batch_latency_ms", "Batch latency", LAB_UNIT_TIME),
    OF_PIPELINE(stages[LAB_STAGE_H2D].bytes_per_s, "h2d_gb_per_s", "H2D bandwidth", LAB_UNIT_RATE,
                "H2D"),
    OF_PIPELINE(stages[LAB_STAGE_D2H].bytes_per_s, "d2h_gb_per_s", "D2H bandwidth", LAB_UNIT_RATE,
                "D2H"),
    OF_PIPELINE(compute_utilization, "compute_utilization", "Compute busy", LAB_UNIT_SHARE,
                "Compute"),
    OF_PIPELINE(preparation.median, "preparation_ms", "Preparation", LAB_UNIT_TIME),
    OF_PIPELINE(efficiency, "pipeline_efficiency", "Busiest stage", LAB_UNIT_SHARE, "Busiest"),
    OF_PIPELINE(overlap, "overlap", "Overlap", LAB_UNIT_SHARE, "Overlap"),
    OF_PIPELINE(compression, "temporal_compression", "Compression", LAB_UNIT_RATIO),
    OF_PIPELINE(idle, "idle", "Idle", LAB_UNIT_SHARE),
};

#define OF_STAGE(member, ...) LAB_FIELD(struct lab_pipeline_stage, member, __VA_ARGS__)
static const struct lab_field stage_fields[] = {
    OF_STAGE(name, "stage", "Stage", LAB_UNIT_TEXT),
    OF_STAGE(commands, "commands", NULL, LAB_UNIT_COUNT),
    OF_STAGE(busy, "busy", "Busy", LAB_UNIT_SHARE),
    OF_STAGE(time.median, "batch_ms", "Per batch", LAB_UNIT_TIME),
    OF_STAGE(time.p95, "batch_p95_ms", "p95", LAB_UNIT_TIME),
    OF_STAGE(bytes, "bytes", "Moved", LAB_UNIT_SIZE),
    OF_STAGE(bandwidth.median, "median_gb_per_s", "Median bandwidth", LAB_UNIT_RATE),
};

#define OF_STREAM(member, ...) LAB_FIELD(struct lab_pipeline_stream, member, __VA_ARGS__)
static const struct lab_field stream_fields[] = {
    OF_STREAM(stream, "stream", "Stream", LAB_UNIT_COUNT),
    OF_STREAM(commands, "commands", "Commands", LAB_UNIT_COUNT),
    OF_STREAM(busy, "busy", "Busy", LAB_UNIT_SHARE),
    OF_STREAM(gap_count, "gaps", "Gaps", LAB_UNIT_COUNT),
    OF_STREAM(gaps.median, "gap_ms", "Median", LAB_UNIT_TIME),
    OF_STREAM(gaps.p95, "gap_p95_ms", "p95", LAB_UNIT_TIME),
    OF_STREAM(gaps.total, "gap_total_ms", "Total", LAB_UNIT_TIME),
    OF_STREAM(over_10us, "gaps_over_10us", "> 10 µs", LAB_UNIT_COUNT),
    OF_STREAM(over_100us, "gaps_over_100us", "> 100 µs", LAB_UNIT_COUNT),
};

static void add_tables(struct lab_analysis_part *part, const struct lab_pipeline *pipeline,
                       struct lab_arena *arena) {
    struct lab_pipeline_stage *stages = NULL;
    int count = 0;
    for (int s = 0; s < LAB_PIPELINE_STAGES; s++)
        if (pipeline->stages[s].commands > 0)
            LAB_ADD(stages, count, arena) = pipeline->stages[s];
    lab_rows_add_table(part, "stages", "Stages", &LAB_ROWS(stage_fields, stages, count), arena);
    lab_rows_add_table(part, "streams", "Gaps by stream",
                       &LAB_ROWS(stream_fields, pipeline->streams, pipeline->stream_count), arena);
}

/* --- notes --- */

static const char *find_note(const struct lab_trace *trace, const char *name) {
    for (size_t i = 0; i < trace->note_count; i++)
        if (lab_str_equal(trace->notes[i].name, name))
            return trace->notes[i].value;
    return NULL;
}

static void add_overhead(const char *const **notes, const struct lab_trace *trace,
                         struct lab_arena *arena) {
    const char *text = find_note(trace, LAB_TRACE_NOTE_OVERHEAD);
    char *end;
    double overhead = text ? strtod(text, &end) : NAN;
    if (text && end != text && isfinite(overhead))
        lab_analysis_note(notes, arena, "tracing made the pass %.1f%% %s than the timed one",
                          100 * fabs(overhead), overhead < 0 ? "shorter" : "longer");
}

static void add_notes(const char *const **notes, const struct lab_trace *trace,
                      const struct lab_pipelines *pipelines, const struct lab_pipeline *pipeline,
                      const char *window, struct lab_arena *arena) {
    if (!pipeline->has_window)
        lab_analysis_note(notes, arena, "no range '%s': all of the trace counts, warm-up included",
                          window);
    if (pipeline->batch_count == 0)
        lab_analysis_note(
            notes, arena,
            "no ranges name the batches (h2d_batch_0, …): the median bandwidth is that of "
            "single copies");
    if (pipeline->whole_graphs)
        lab_analysis_note(notes, arena,
                          "%zu graph launches were recorded as a whole: copies within them count "
                          "as compute",
                          pipeline->whole_graphs);
    if (pipeline->stages[LAB_STAGE_COMPUTE].commands && pipeline->preparation.count == 0)
        lab_analysis_note(notes, arena,
                          "no calls were recorded for the kernels: preparation is unknown");
    if (trace->dropped > 0)
        lab_analysis_note(notes, arena,
                          "the trace lacks %lld commands (buffer full): busy times are too low",
                          (long long)trace->dropped);
    if (pipelines->broken)
        lab_analysis_note(notes, arena, "%zu records have no valid times and were left out",
                          pipelines->broken);
    add_overhead(notes, trace, arena);
}

/* --- parts --- */

static const char *make_name(const char *trace_name, const struct lab_pipelines *pipelines,
                             const struct lab_pipeline *pipeline, struct lab_arena *arena) {
    bool devices = false, contexts = false;
    for (int i = 0; i < pipelines->count; i++) {
        const struct lab_pipeline *other = &pipelines->items[i];
        devices |= other->device != pipeline->device;
        contexts |= other->device == pipeline->device && other != pipeline;
    }
    if (contexts && pipeline->green)
        return lab_arena_printf(arena, "%s/dev%d/ctx%u.%u", trace_name, pipeline->device,
                                pipeline->context, pipeline->green);
    if (contexts)
        return lab_arena_printf(arena, "%s/dev%d/ctx%u", trace_name, pipeline->device,
                                pipeline->context);
    return devices ? lab_arena_printf(arena, "%s/dev%d", trace_name, pipeline->device) : trace_name;
}

static const char *make_about(const struct lab_trace *trace, const struct lab_pipeline *pipeline,
                              struct lab_arena *arena) {
    const char *device = find_note(trace, LAB_TRACE_NOTE_DEVICE), *model = NULL;
    for (size_t i = 0; i < trace->gpu_count; i++)
        if (trace->gpus[i].device == pipeline->device)
            model = trace->gpus[i].name;
    if (device && *device && model && *model)
        return lab_arena_printf(arena, "%s, %s", device, model);
    if (device && *device)
        return device;
    if (model && *model)
        return lab_arena_printf(arena, "device %d, %s", pipeline->device, model);
    return lab_arena_printf(arena, "device %d", pipeline->device);
}

#define BOUND_SHARE 0.9 /* a stage that is busy for so much of the window bounds the pipeline */

static const char *make_answer(const struct lab_pipeline *pipeline, struct lab_arena *arena) {
    if (isnan(pipeline->efficiency) || pipeline->efficiency == 0)
        return "Not tested: no command took any time.";
    const char *overlap =
        isnan(pipeline->overlap)
            ? ""
            : lab_arena_printf(arena, "; %.1f%% of copy time overlaps with compute",
                               100 * pipeline->overlap);
    return lab_arena_printf(arena, "%s: %s busy %.1f%% of the window%s.",
                            pipeline->efficiency < BOUND_SHARE ? "No stage bounds the pipeline"
                            : pipeline->longest == LAB_STAGE_COMPUTE ? "Compute-bound"
                                                                     : "Transfer-bound",
                            pipeline->stages[pipeline->longest].name, 100 * pipeline->efficiency,
                            overlap);
}

static void add_part(struct lab_analysis_result *result, const struct lab_analysis_trace *trace,
                     const struct lab_pipelines *pipelines, const struct lab_pipeline *pipeline,
                     const char *window, struct lab_arena *arena) {
    struct lab_analysis_part *part =
        lab_analysis_add_part(result, make_name(trace->name, pipelines, pipeline, arena), arena);
    part->about = make_about(trace->trace, pipeline, arena);
    part->answer = make_answer(pipeline, arena);
    LAB_PART_FIGURES(part, figure_fields, pipeline, arena);
    add_tables(part, pipeline, arena);
    add_notes(&part->notes, trace->trace, pipelines, pipeline, window, arena);
}

/* --- the whole --- */

/* Without the "_r2" of a repeat. */
static int base_length(const char *name) {
    size_t length = strlen(name), at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return (int)(at < length && at > 2 && name[at - 1] == 'r' && name[at - 2] == '_' ? at - 2
                                                                                     : length);
}

static bool same_base(const char *a, const char *b) {
    return base_length(a) == base_length(b) && strncmp(a, b, (size_t)base_length(a)) == 0;
}

/* Batch latency over the traces of repeats of one run. */
static void add_claims(struct lab_analysis_result *result, const double *latencies,
                       struct lab_arena *arena) {
    for (int i = 0; i < result->part_count; i++) {
        const char *name = result->parts[i].name;
        double *values = NULL;
        int count = 0;
        bool first = true;
        for (int k = 0; k < result->part_count; k++)
            if (same_base(name, result->parts[k].name)) {
                first = first && k >= i;
                LAB_ADD(values, count, arena) = latencies[k];
            }
        if (!first || count < 2)
            continue;
        struct lab_claim claim = lab_claim_named(
            lab_claim_from_blocks(values, count, "s"), "latency.batch",
            lab_arena_printf(arena, "%.*s", base_length(name), name), "", "batch latency");
        lab_analysis_add_claim(result, &claim, arena);
    }
}

static const char *answer_for_all(const struct lab_analysis_result *result,
                                  const double *utilizations, struct lab_arena *arena) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < result->part_count; i++) {
        low = fmin(low, utilizations[i]);
        high = fmax(high, utilizations[i]);
    }
    const char *claim =
        result->claim_count > 0
            ? lab_arena_printf(arena, "%s. ", lab_claim_sentence(&result->claims[0], arena))
            : "";
    return lab_arena_printf(arena, "%s%d pipelines: compute busy %.1f%% to %.1f%% of the window.",
                            claim, result->part_count, 100 * low, 100 * high);
}

static const char *why_nothing(const struct lab_analysis_trace *trace,
                               const struct lab_pipelines *pipelines, const char *window,
                               struct lab_arena *arena) {
    const struct lab_trace *t = trace->trace;
    size_t commands = t->kernel_count + t->copy_count + t->fill_count;
    if (commands == 0)
        return lab_arena_printf(arena, "%s has no device activity", trace->name);
    if (commands == pipelines->broken)
        return lab_arena_printf(arena, "%s: none of its %zu records has valid times", trace->name,
                                commands);
    return lab_arena_printf(arena,
                            "%s: no device activity in its range '%s'; window=NAME takes another "
                            "one, window= the whole trace",
                            trace->name, window);
}

static bool is_simulated(const struct lab_trace *trace) {
    const char *device = find_note(trace, LAB_TRACE_NOTE_DEVICE);
    return device && lab_str_starts(device, "sim:");
}

static int latency_run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
                       struct lab_err *err) {
    const struct latency_config *config = input->config;
    struct lab_arena *arena = result->arena;
    double *latencies = NULL, *utilizations = NULL;
    int count = 0, busy_count = 0;
    for (int i = 0; i < input->trace_count; i++) {
        const struct lab_analysis_trace *trace = &input->traces[i];
        struct lab_pipelines pipelines;
        lab_pipelines_make(trace->trace, config->window, (int64_t)(config->gap_s * 1e9), arena,
                           &pipelines);
        result->simulated |= is_simulated(trace->trace);
        if (pipelines.count == 0)
            lab_analysis_note(&result->notes, arena, "%s",
                              why_nothing(trace, &pipelines, config->window, arena));
        for (int k = 0; k < pipelines.count; k++) {
            add_part(result, trace, &pipelines, &pipelines.items[k], config->window, arena);
            LAB_ADD(latencies, count, arena) = pipelines.items[k].latency.median;
            LAB_ADD(utilizations, busy_count, arena) = pipelines.items[k].compute_utilization;
        }
    }
    if (result->part_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s",
                           input->trace_count ? result->notes[0] : "no trace");
    assert(latencies && utilizations); /* one for each part */
    add_claims(result, latencies, arena);
    result->answer = result->part_count == 1 ? result->parts[0].answer
                                             : answer_for_all(result, utilizations, arena);
    return 0;
}

const struct lab_analysis lab_analysis_latency = {
    .name = "latency",
    .summary = "where a pipeline's time goes: copies, compute, gaps, overlap",
    .description = "Reads traces in Nsight Systems' SQLite layout, gpulab's own or Nsight's, and "
                   ".nsys-rep files where nsys is installed. A path is a file, or a folder: all "
                   "traces below it "
                   "are taken, and those of a study where it is a study's.",
    .options = latency_options,
    .config_size = sizeof(struct latency_config),
    .kinds = (const struct lab_analysis_kind[]){{"latency.batch", LAB_KIND_OTHER}, {NULL}},
    .source = LAB_ANALYSIS_OF_TRACES,
    LAB_PARTS_OF("pipelines", figure_fields),
    .run = latency_run,
};
