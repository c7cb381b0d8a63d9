/*
 * latency.c: `gpulab analyze latency`: where the time of a pipeline goes: how fast its copies are,
 * how busy its stages, what hides under what, where its streams wait. From traces in Nsight's
 * layout, ours or Nsight's own.
 */
#include "analysis/analysis_build.h"
#include "analysis/latency/pipeline.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

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

enum { UTILIZATION = 5 };
static const struct lab_doc_column figure_columns[] = {
    {"window_ms", "Window", LAB_UNIT_TIME},
    {"batches", "Batches", LAB_UNIT_COUNT},
    {"batch_latency_ms", "Batch latency", LAB_UNIT_TIME, .with_interval = true},
    {"h2d_gb_per_s", "H2D bandwidth", LAB_UNIT_RATE, "H2D"},
    {"d2h_gb_per_s", "D2H bandwidth", LAB_UNIT_RATE, "D2H"},
    {"compute_utilization", "Compute busy", LAB_UNIT_SHARE, "Compute"},
    {"preparation_ms", "Preparation", LAB_UNIT_TIME, .with_interval = true},
    {"pipeline_efficiency", "Efficiency", LAB_UNIT_SHARE, "Efficiency"},
    {"overlap", "Overlap", LAB_UNIT_SHARE, "Overlap"},
    {"temporal_compression", "Compression", LAB_UNIT_RATIO},
    {"idle", "Idle", LAB_UNIT_SHARE},
};

static const struct lab_doc_column stage_columns[] = {
    {"stage", "Stage", LAB_UNIT_TEXT},
    {"commands", NULL, LAB_UNIT_COUNT},
    {"busy", "Busy", LAB_UNIT_SHARE},
    {"batch_ms", "Of a batch", LAB_UNIT_TIME, .with_interval = true},
    {"batch_p95_ms", "p95", LAB_UNIT_TIME},
    {"bytes", "Moved", LAB_UNIT_SIZE},
    {"median_gb_per_s", "Median rate", LAB_UNIT_RATE, .with_interval = true},
};

static const struct lab_doc_column stream_columns[] = {
    {"stream", "Stream", LAB_UNIT_COUNT},
    {"commands", "Commands", LAB_UNIT_COUNT},
    {"busy", "Busy", LAB_UNIT_SHARE},
    {"gaps", "Gaps", LAB_UNIT_COUNT},
    {"gap_ms", "Median", LAB_UNIT_TIME},
    {"gap_p95_ms", "p95", LAB_UNIT_TIME},
    {"gap_total_ms", "Total", LAB_UNIT_TIME},
    {"gaps_over_10us", "> 10 µs", LAB_UNIT_COUNT},
    {"gaps_over_100us", "> 100 µs", LAB_UNIT_COUNT},
};

static const char *const stage_names[LAB_PIPELINE_STAGES] = {"H2D", "compute", "D2H", "other"};

/* --- tables --- */

static double window_s(const struct lab_pipeline *pipeline) {
    return (double)(pipeline->end_ns - pipeline->start_ns) / 1e9;
}

static double share_of_window(const struct lab_pipeline *pipeline, int64_t busy_ns) {
    int64_t window_ns = pipeline->end_ns - pipeline->start_ns;
    return window_ns > 0 ? (double)busy_ns / (double)window_ns : NAN;
}

static void set_figures(struct lab_analysis_part *part, const struct lab_pipeline *pipeline,
                        struct lab_arena *arena) {
    struct lab_doc_cell preparation = lab_analysis_median(&pipeline->preparation);
    preparation.text = "from a launch's return to its start";
    LAB_FIGURES(
        part, lab_cell_remark(window_s(pipeline), "from the first start to the last end"),
        lab_cell_figure(pipeline->batch_count ? (double)pipeline->batch_count : NAN),
        lab_analysis_median(&pipeline->latency),
        lab_cell_remark(pipeline->stages[LAB_STAGE_H2D].bytes_per_s, "while it copies"),
        lab_cell_remark(pipeline->stages[LAB_STAGE_D2H].bytes_per_s, "while it copies"),
        lab_cell_remark(pipeline->compute_utilization, "of the window"), preparation,
        lab_cell_remark(pipeline->efficiency,
                        lab_arena_printf(arena, "of the window the busiest stage works (%s)",
                                         stage_names[pipeline->longest])),
        lab_cell_remark(pipeline->overlap, "of the copies' time lies under compute"),
        lab_cell_remark(pipeline->compression, "all stages' times over the window"),
        lab_cell_remark(pipeline->idle, "of the window nothing runs"));
}

static void add_stage_table(struct lab_analysis_part *part, const struct lab_pipeline *pipeline,
                            struct lab_arena *arena) {
    struct lab_doc_table *table = LAB_TABLE(part, "stages", "Stages", stage_columns, arena);
    for (int stage = 0; stage < LAB_PIPELINE_STAGES; stage++) {
        const struct lab_pipeline_stage *figures = &pipeline->stages[stage];
        if (figures->commands == 0)
            continue;
        LAB_ROW(table, arena, lab_cell_text(stage_names[stage]),
                lab_cell_figure((double)figures->commands),
                lab_cell_figure(share_of_window(pipeline, figures->busy_ns)),
                lab_analysis_median(&figures->time), lab_cell_figure(figures->time.p95),
                lab_cell_figure(stage == LAB_STAGE_COMPUTE ? NAN : (double)figures->size_bytes),
                lab_analysis_median(&figures->bandwidth));
    }
}

static void add_stream_table(struct lab_analysis_part *part, const struct lab_pipeline *pipeline,
                             struct lab_arena *arena) {
    struct lab_doc_table *table =
        LAB_TABLE(part, "streams", "Gaps by stream", stream_columns, arena);
    for (int i = 0; i < pipeline->stream_count; i++) {
        const struct lab_pipeline_stream *stream = &pipeline->streams[i];
        LAB_ROW(table, arena, lab_cell_figure(stream->stream),
                lab_cell_figure((double)stream->commands),
                lab_cell_figure(share_of_window(pipeline, stream->busy_ns)),
                lab_cell_figure((double)stream->gaps.count), lab_cell_figure(stream->gaps.median),
                lab_cell_figure(stream->gaps.p95), lab_cell_figure(stream->gaps.total),
                lab_cell_figure((double)stream->over_10us),
                lab_cell_figure((double)stream->over_100us));
    }
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
        lab_analysis_note(notes, arena, "tracing made the pass %.1f %% %s than the timed one",
                          100 * fabs(overhead), overhead < 0 ? "shorter" : "longer");
}

static void add_notes(const char *const **notes, const struct lab_trace *trace,
                      const struct lab_pipelines *pipelines, const struct lab_pipeline *pipeline,
                      const char *window, struct lab_arena *arena) {
    if (!pipeline->has_window)
        lab_analysis_note(notes, arena, "no range '%s': all of the trace counts, warm-up included",
                          window);
    if (pipeline->batch_count == 0)
        lab_analysis_note(notes, arena,
                          "no ranges name the batches (h2d_batch_0, …) and the calls within them: "
                          "their times aren't known, and the median rate is that of single copies");
    if (pipeline->whole_graphs)
        lab_analysis_note(notes, arena,
                          "%zu graph launches were recorded as a whole: copies within them count "
                          "as compute",
                          pipeline->whole_graphs);
    if (pipeline->stages[LAB_STAGE_COMPUTE].commands && pipeline->preparation.count == 0)
        lab_analysis_note(notes, arena,
                          "no calls were recorded for the kernels: preparation isn't known");
    if (trace->dropped > 0)
        lab_analysis_note(
            notes, arena,
            "%lld commands found no room in the trace and are missing: busy times are too low",
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

#define BOUND_SHARE 0.9 /* a stage that is busy for so much of the window leaves little to gain */

static const char *make_answer(const struct lab_pipeline *pipeline, struct lab_arena *arena) {
    static const char *const subjects[LAB_STAGE_COUNT] = {"H2D", "Compute", "D2H"};
    if (isnan(pipeline->efficiency) || pipeline->efficiency == 0)
        return "Nothing here took any time.";
    LAB_AUTO(str, text);
    if (pipeline->efficiency >= BOUND_SHARE)
        lab_str_printf(&text, "%s bounds the pipeline: it is busy %.1f %% of the time",
                       subjects[pipeline->longest], 100 * pipeline->efficiency);
    else
        lab_str_printf(&text,
                       "No stage bounds the pipeline: %s, the busiest, works %.1f %% of the time",
                       stage_names[pipeline->longest], 100 * pipeline->efficiency);
    if (!isnan(pipeline->overlap))
        lab_str_printf(&text, "; %.1f %% of the copies' time lies under compute",
                       100 * pipeline->overlap);
    lab_str_add(&text, ".");
    return lab_arena_strdup(arena, text.text);
}

static void add_part(struct lab_analysis_result *result, const struct lab_analysis_trace *trace,
                     const struct lab_pipelines *pipelines, const struct lab_pipeline *pipeline,
                     const char *window, struct lab_arena *arena) {
    struct lab_analysis_part *part =
        lab_analysis_add_part(result, make_name(trace->name, pipelines, pipeline, arena), arena);
    part->about = make_about(trace->trace, pipeline, arena);
    part->answer = make_answer(pipeline, arena);
    set_figures(part, pipeline, arena);
    add_stage_table(part, pipeline, arena);
    add_stream_table(part, pipeline, arena);
    add_notes(&part->notes, trace->trace, pipelines, pipeline, window, arena);
}

/* --- the whole --- */

/* "4 pipelines: compute is busy 33.5 % (a) to 95.2 % (b) of the time." */
static const char *answer_for_all(const struct lab_analysis_part *parts, int count,
                                  struct lab_arena *arena) {
    const struct lab_analysis_part *low = NULL, *high = NULL;
    for (int i = 0; i < count; i++) {
        double value = parts[i].cells[UTILIZATION].value;
        if (isnan(value))
            continue;
        low = !low || value < low->cells[UTILIZATION].value ? &parts[i] : low;
        high = !high || value > high->cells[UTILIZATION].value ? &parts[i] : high;
    }
    if (!low)
        return lab_arena_printf(arena, "%d pipelines, none of which took any time.", count);
    return lab_arena_printf(
        arena, "%d pipelines: compute is busy %.1f %% (%s) to %.1f %% (%s) of the time.", count,
        100 * low->cells[UTILIZATION].value, low->name, 100 * high->cells[UTILIZATION].value,
        high->name);
}

static const char *why_nothing(const struct lab_analysis_trace *trace,
                               const struct lab_pipelines *pipelines, const char *window,
                               struct lab_arena *arena) {
    const struct lab_trace *t = trace->trace;
    size_t commands = t->kernel_count + t->copy_count + t->fill_count;
    if (commands == 0)
        return lab_arena_printf(arena, "%s holds no work of a device", trace->name);
    if (commands == pipelines->broken)
        return lab_arena_printf(arena, "%s: none of its %zu records has valid times", trace->name,
                                commands);
    return lab_arena_printf(arena,
                            "%s: no work of a device in its range '%s'; window=NAME takes another "
                            "one, window= the whole trace",
                            trace->name, window);
}

static bool is_simulated(const struct lab_trace *trace) {
    const char *device = find_note(trace, LAB_TRACE_NOTE_DEVICE);
    return device && lab_str_starts(device, "sim:");
}

static int latency_run(const void *opaque, const struct lab_analysis_input *input,
                       struct lab_arena *arena, struct lab_analysis_result *ret_result,
                       struct lab_err *err) {
    const struct latency_config *config = opaque;
    struct lab_analysis_result *result = ret_result;
    *result = LAB_RESULT("pipelines", figure_columns);
    for (int i = 0; i < input->trace_count; i++) {
        const struct lab_analysis_trace *trace = &input->traces[i];
        struct lab_pipelines pipelines;
        lab_pipelines_make(trace->trace, config->window, (int64_t)(config->gap_s * 1e9), arena,
                           &pipelines);
        result->simulated |= is_simulated(trace->trace);
        if (pipelines.count == 0)
            lab_analysis_note(&result->notes, arena, "%s",
                              why_nothing(trace, &pipelines, config->window, arena));
        for (int k = 0; k < pipelines.count; k++)
            add_part(result, trace, &pipelines, &pipelines.items[k], config->window, arena);
    }
    if (result->part_count == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s",
                           input->trace_count ? result->notes[0] : "no trace");
    lab_analysis_note(&result->notes, arena,
                      "Intervals are of medians, 95 %% within the trace: they say how well its "
                      "median is known, not how far another run may be.");
    result->answer = result->part_count == 1
                         ? result->parts[0].answer
                         : answer_for_all(result->parts, result->part_count, arena);
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
    .source = LAB_ANALYSIS_OF_TRACES,
    .run = latency_run,
};
