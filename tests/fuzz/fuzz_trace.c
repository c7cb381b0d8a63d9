/*
 * fuzz_trace.c: a trace with any rows either is refused with a message or reads as records in order
 * of start, which the analyses of traces take.
 * covers: src/store/trace/trace_read.c src/store/trace/trace_rows.c src/store/trace/trace_records.c
 */
#include "analysis/analysis.h"
#include "rows.h"
#include "store/trace/trace.h"
#include "store/trace/trace_read.h"

static void make_trace(void) {
    struct lab_trace_kernel kernels[] = {
        {.start_ns = 100,
         .end_ns = 150,
         .place = {.device = 1, .context = 2, .green = 9, .stream = 13, .correlation = 77},
         .name = "layer_norm",
         .long_name = "layer_norm(float const*, float*)",
         .grid = {10, 2, 3},
         .block = {128, 4, 5}},
        {.start_ns = 160, .end_ns = 170, .place = {.stream = 13, .graph_node = 5}, .name = "gemm"}};
    struct lab_trace_copy copies[] = {
        {.start_ns = 50, .end_ns = 90, .size_bytes = 602112, .kind = LAB_TRACE_COPY_H2D},
        {.start_ns = 172, .end_ns = 180, .size_bytes = 4096, .kind = LAB_TRACE_COPY_D2H}};
    struct lab_trace_fill fills[] = {{.start_ns = 45, .end_ns = 46, .size_bytes = 64}};
    struct lab_trace_call calls[] = {
        {.start_ns = 40, .end_ns = 44, .name = "cuLaunchKernel", .thread = 7, .correlation = 77}};
    struct lab_trace_range ranges[] = {
        {.start_ns = 40, .end_ns = 200, .text = LAB_TRACE_WINDOW, .thread = 7, .kind = 59},
        {.start_ns = 45, .end_ns = 95, .text = "h2d_batch_0", .thread = 7, .kind = 59},
        {.start_ns = 100, .end_ns = 170, .text = "compute_batch_0", .thread = 7, .kind = 59}};
    struct lab_trace_gpu gpus[] = {{.device = 1, .name = "NVIDIA H200", .uuid = "GPU-1"}};
    struct lab_trace_note notes[] = {{LAB_TRACE_NOTE_OVERHEAD, "0.012"}};
    const struct lab_trace trace = {.process = 4242,
                                    .kernels = kernels,
                                    .kernel_count = 2,
                                    .copies = copies,
                                    .copy_count = 2,
                                    .fills = fills,
                                    .fill_count = 1,
                                    .calls = calls,
                                    .call_count = 1,
                                    .ranges = ranges,
                                    .range_count = 3,
                                    .gpus = gpus,
                                    .gpu_count = 1,
                                    .notes = notes,
                                    .note_count = 1};
    require(lab_trace_write(folder_file("trace.sqlite"), &trace, NULL) == 0);
}

static void analyse(const struct lab_trace *trace, struct lab_arena *arena) {
    const struct lab_analysis_trace named = {"trace", trace};
    const struct lab_analysis_input input = {.traces = &named, .trace_count = 1};
    for (int i = 0; lab_analyses[i]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_analysis_result found;
        if (lab_analyses[i]->source == LAB_ANALYSIS_OF_TRACES &&
            lab_analysis_run(lab_analyses[i], NULL, &input, arena, &found, &err) < 0)
            require_error(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rows rows;
    if (!rows.scratch) {
        make_trace();
        rows_learn(&rows, "trace.sqlite");
    }
    LAB_AUTO(arena, arena);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_trace_file file;
    if (lab_trace_read(rows_write(&rows, "trace.sqlite", data, size), &arena, &file, &err) < 0) {
        require_error(&err);
        return 0;
    }
    for (int i = 0; i < file.trace_count; i++) {
        const struct lab_trace *trace = &file.traces[i];
        for (size_t k = 1; k < trace->kernel_count; k++)
            require(trace->kernels[k].start_ns >= trace->kernels[k - 1].start_ns);
        for (size_t k = 1; k < trace->copy_count; k++)
            require(trace->copies[k].start_ns >= trace->copies[k - 1].start_ns);
        analyse(trace, &arena);
    }
    return 0;
}
