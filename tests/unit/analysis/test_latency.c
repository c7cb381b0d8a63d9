/*
 * The figures of a pipeline, on traces whose answers can be worked out by hand. Times are written
 * in microseconds.
 */
#include "analysis/latency/pipeline.h"
#include "analysis/latency/span.h"
#include "figures.h"

#include <math.h>

#include "test.h"

#define US   1000LL
#define MOST 64

/* A trace that is put together record by record. */
struct fixture {
    struct lab_arena arena;
    struct lab_trace trace;
    struct lab_trace_kernel kernels[MOST];
    struct lab_trace_copy copies[MOST];
    struct lab_trace_fill fills[MOST];
    struct lab_trace_call calls[MOST];
    struct lab_trace_range ranges[MOST];
    struct lab_trace_note notes[4];
    struct lab_trace_place place; /* of what comes next */
    struct lab_pipelines found;
};

static int setup(void **state) {
    struct fixture *f = lab_mem_alloc(1, sizeof *f);
    lab_arena_init(&f->arena);
    f->trace = (struct lab_trace){.kernels = f->kernels,
                                  .copies = f->copies,
                                  .fills = f->fills,
                                  .calls = f->calls,
                                  .ranges = f->ranges,
                                  .notes = f->notes};
    f->place = (struct lab_trace_place){.context = 1};
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    lab_arena_release(&f->arena);
    lab_mem_free(f);
    return 0;
}

static struct lab_trace_place on(const struct fixture *f, uint32_t stream) {
    struct lab_trace_place place = f->place;
    place.stream = stream;
    return place;
}

static struct lab_trace_kernel *kernel(struct fixture *f, int64_t from, int64_t to) {
    struct lab_trace_kernel *kernel = &f->kernels[f->trace.kernel_count++];
    *kernel = (struct lab_trace_kernel){from * US, to * US, on(f, 2), .name = "gemm"};
    return kernel;
}

static struct lab_trace_copy *copy(struct fixture *f, int kind, int64_t from, int64_t to,
                                   int64_t bytes) {
    struct lab_trace_copy *copy = &f->copies[f->trace.copy_count++];
    *copy = (struct lab_trace_copy){from * US, to * US, on(f, kind == LAB_TRACE_COPY_H2D ? 1 : 3),
                                    bytes, .kind = kind};
    return copy;
}

static void call(struct fixture *f, int64_t from, int64_t to, uint32_t correlation,
                 uint32_t thread) {
    f->calls[f->trace.call_count++] =
        (struct lab_trace_call){from * US, to * US, "cuLaunchKernel", thread, correlation, 0};
}

static void range(struct fixture *f, const char *text, int64_t from, int64_t to, uint32_t thread) {
    f->ranges[f->trace.range_count++] =
        (struct lab_trace_range){from * US, to * US, text, thread, LAB_TRACE_RANGE_NESTED};
}

/* As traces of ours: ranges follow the device. */
static void follow_device(struct fixture *f) {
    f->notes[f->trace.note_count++] = (struct lab_trace_note){LAB_TRACE_NOTE_SOURCE, "streams"};
}

static const struct lab_pipeline *analyse(struct fixture *f) {
    lab_pipelines_make(&f->trace, LAB_TRACE_WINDOW, 1 * US, &f->arena, &f->found);
    return f->found.items;
}

#define assert_close(value, expected)                                                              \
    assert_near(value, expected, 1e-9 * fmax(1, fabs((double)(expected))))

/* --- spans --- */

LAB_TEST(spans_are_joined_and_intersected) {
    struct lab_span a[] = {{50, 60}, {0, 10}, {5, 20}, {20, 25}, {58, 59}, {30, 30}};
    struct lab_span b[] = {{8, 22}, {24, 55}};
    size_t count = lab_spans_join(a, 6);
    assert_int_equal(count, 3);
    assert_int_equal(lab_spans_busy_ns(a, count), 25 + 10);
    assert_int_equal(lab_spans_common_ns(a, count, b, lab_spans_join(b, 2)), 14 + 1 + 5);
    assert_int_equal(lab_spans_common_ns(b, 2, a, count), 20);
    assert_int_equal(lab_spans_join(a, 0), 0);
}

/* --- stages --- */

/* H2D 0-40, of which the second half lies under compute 20-100, as do none of D2H's 20. */
LAB_TEST_WITH(half_of_the_copies_lie_under_compute, setup, teardown) {
    struct fixture *f = *state;
    copy(f, LAB_TRACE_COPY_H2D, 0, 40, 1000000);
    copy(f, LAB_TRACE_COPY_H2D, 60, 70, 250000);
    kernel(f, 20, 100);
    copy(f, LAB_TRACE_COPY_D2H, 100, 110, 500000);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(f->found.count, 1);
    assert_close(p->overlap, 30.0 / 60);
    assert_int_equal(p->end_ns - p->start_ns, 110 * US);
    assert_close(p->compute_utilization, 80.0 / 110);
    assert_close(p->efficiency, 80.0 / 110);
    assert_int_equal(p->longest, LAB_STAGE_COMPUTE);
    assert_close(p->compression, (50.0 + 80 + 10) / 110);
    assert_close(p->idle, 0);
    assert_close(p->stages[LAB_STAGE_H2D].bytes_per_s, 25e9);
    assert_close(p->stages[LAB_STAGE_D2H].bytes_per_s, 50e9);
    assert_false(p->has_window);
    assert_int_equal(p->batch_count, 0);
    assert_int_equal(p->stages[LAB_STAGE_H2D].bandwidth.count, 2); /* of single copies */
    assert_close(p->stages[LAB_STAGE_H2D].bandwidth.median, 25e9);
}

LAB_TEST_WITH(kernels_side_by_side_count_once, setup, teardown) {
    struct fixture *f = *state;
    kernel(f, 50, 90);
    kernel(f, 0, 60)->place.stream = 7; /* not in order, on another stream */
    kernel(f, 10, 20);
    const struct lab_pipeline *p = analyse(f);
    assert_close(p->compute_utilization, 1);
    assert_close(p->compression, 1);
    assert_true(isnan(p->overlap)); /* there is no copy */
    assert_int_equal(p->stages[LAB_STAGE_COMPUTE].commands, 3);
    assert_int_equal(p->stream_count, 2);
}

LAB_TEST_WITH(copies_alone_have_no_overlap_and_fills_are_another_stage, setup, teardown) {
    struct fixture *f = *state;
    copy(f, LAB_TRACE_COPY_H2D, 0, 30, 3000);
    copy(f, LAB_TRACE_COPY_D2D, 30, 50, 100);
    f->fills[f->trace.fill_count++] = (struct lab_trace_fill){50 * US, 60 * US, on(f, 2), 10, 0, 3};
    const struct lab_pipeline *p = analyse(f);
    assert_true(isnan(p->overlap));
    assert_close(p->compute_utilization, 0);
    assert_int_equal(p->longest, LAB_STAGE_H2D);
    assert_close(p->efficiency, 0.5);
    assert_int_equal(p->stages[LAB_PIPELINE_OTHER].busy_ns, 30 * US);
    assert_close(p->compression, 1);
}

LAB_TEST_WITH(records_without_length_or_without_times, setup, teardown) {
    struct fixture *f = *state;
    copy(f, LAB_TRACE_COPY_H2D, 10, 10, 4);
    kernel(f, 10, 10);
    kernel(f, 30, 20);
    kernel(f, 0, 0);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(f->found.broken, 2);
    assert_int_equal(p->stages[LAB_STAGE_COMPUTE].commands, 1);
    assert_true(isnan(p->compute_utilization) && isnan(p->efficiency) && isnan(p->compression));
    assert_true(isnan(p->stages[LAB_STAGE_H2D].bytes_per_s));
    assert_int_equal(p->stages[LAB_STAGE_H2D].bandwidth.count, 0);
}

/* A file may hold any number: none may leave 64 bits on the way to a figure. */
LAB_TEST_WITH(times_and_sizes_beyond_reason_are_left_out, setup, teardown) {
    struct fixture *f = *state;
    *kernel(f, 0, 1) = (struct lab_trace_kernel){INT64_MIN, INT64_MAX, on(f, 2), .name = "ever"};
    *kernel(f, 0, 1) = (struct lab_trace_kernel){INT64_MIN, INT64_MIN, on(f, 2), .name = "never"};
    *kernel(f, 0, 1) = (struct lab_trace_kernel){0, INT64_MAX, on(f, 2), .name = "on"};
    kernel(f, 10, 20);
    copy(f, LAB_TRACE_COPY_H2D, 10, 20, INT64_MAX);
    copy(f, LAB_TRACE_COPY_H2D, 20, 30, INT64_MAX);
    copy(f, LAB_TRACE_COPY_D2H, 20, 30, INT64_MIN);
    range(f, "test_double_buffer", 0, 100, 1);
    f->ranges[0].start_ns = INT64_MIN;
    lab_pipelines_make(&f->trace, LAB_TRACE_WINDOW, US, &f->arena, &f->found);
    assert_int_equal(f->found.broken, 3);
    assert_int_equal(f->found.count, 1);
    assert_close(f->found.items[0].compute_utilization, 0.5);
    assert_close(f->found.items[0].stages[LAB_STAGE_H2D].bytes, 0);
}

LAB_TEST_WITH(nothing_at_all_is_no_pipeline, setup, teardown) {
    struct fixture *f = *state;
    range(f, LAB_TRACE_WINDOW, 0, 100, 1);
    analyse(f);
    assert_int_equal(f->found.count, 0);
}

/* --- windows --- */

/* The host closes its range at 12, when the device has just begun: what it asked for counts to its
 * end. */
LAB_TEST_WITH(the_tail_behind_the_range_counts, setup, teardown) {
    struct fixture *f = *state;
    range(f, "warmup_double_buffer", 0, 5, 9);
    range(f, LAB_TRACE_WINDOW, 6, 12, 9);
    call(f, 1, 2, 1, 9);
    call(f, 7, 8, 2, 9);
    call(f, 10, 11, 3, 9);
    call(f, 14, 15, 4, 9);
    kernel(f, 7, 10)->place.correlation = 1; /* warm-up that runs within the range */
    kernel(f, 20, 40)->place.correlation = 2;
    kernel(f, 40, 90)->place.correlation = 3;
    kernel(f, 95, 99)->place.correlation = 4; /* asked for afterwards */
    const struct lab_pipeline *p = analyse(f);
    assert_true(p->has_window);
    assert_int_equal(p->start_ns, 20 * US);
    assert_int_equal(p->end_ns, 90 * US);
    assert_int_equal(p->stages[LAB_STAGE_COMPUTE].commands, 2);
    assert_int_equal(p->preparation.count, 2);
    assert_close(p->preparation.median, ((20 - 8) + (40 - 11)) / 2.0 * 1e-6);
}

/* Without calls, what starts after the range belongs to it until another range begins. */
LAB_TEST_WITH(the_tail_without_calls_ends_with_the_next_range, setup, teardown) {
    struct fixture *f = *state;
    range(f, LAB_TRACE_WINDOW, 10, 20, 9);
    range(f, "other", 60, 80, 9);
    kernel(f, 0, 9);
    kernel(f, 12, 30);
    kernel(f, 50, 70);
    kernel(f, 60, 75);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->stages[LAB_STAGE_COMPUTE].commands, 2);
    assert_int_equal(p->end_ns, 70 * US);
    assert_int_equal(p->preparation.count, 0);
}

LAB_TEST_WITH(ranges_that_follow_the_device_take_what_starts_in_them, setup, teardown) {
    struct fixture *f = *state;
    follow_device(f);
    range(f, LAB_TRACE_WINDOW, 100, 200, 9);
    call(f, 1, 2, 1, 9); /* long before: the host runs ahead */
    kernel(f, 50, 100);
    kernel(f, 100, 200)->place.correlation = 1;
    kernel(f, 201, 300);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->stages[LAB_STAGE_COMPUTE].commands, 1);
    assert_close(p->compute_utilization, 1);
}

LAB_TEST_WITH(a_range_that_was_never_closed_has_no_end, setup, teardown) {
    struct fixture *f = *state;
    follow_device(f);
    range(f, LAB_TRACE_WINDOW, 10, 9, 9);
    kernel(f, 0, 5);
    kernel(f, 5000, 6000);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->start_ns, 5000 * US);
}

/* A kernel that starts before its call returns was prepared in no time; a graph's commands share
 * one. */
LAB_TEST_WITH(preparation_counts_each_launch_once, setup, teardown) {
    struct fixture *f = *state;
    call(f, 0, 10, 1, 9);
    call(f, 20, 30, 2, 9);
    kernel(f, 5, 15)->place.correlation = 1;
    for (int i = 0; i < 3; i++) {
        struct lab_trace_kernel *node = kernel(f, 40 + 10 * i, 45 + 10 * i);
        node->place.correlation = 2;
        node->place.graph_node = (uint64_t)i + 1;
    }
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->preparation.count, 2);
    assert_close(p->preparation.median, 5e-6);
}

LAB_TEST_WITH(graphs_as_a_whole_are_compute, setup, teardown) {
    struct fixture *f = *state;
    kernel(f, 0, 80)->whole_graph = true;
    kernel(f, 100, 180)->whole_graph = true;
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->whole_graphs, 2);
    assert_close(p->compute_utilization, 160.0 / 180);
    assert_close(p->idle, 20.0 / 180);
}

/* --- batches --- */

LAB_TEST_WITH(batches_are_told_by_their_ranges, setup, teardown) {
    struct fixture *f = *state;
    follow_device(f);
    range(f, "h2d_batch_0", 0, 10, 9); /* of the warm-up, with the same number */
    copy(f, LAB_TRACE_COPY_H2D, 0, 10, 10);
    range(f, LAB_TRACE_WINDOW, 100, 400, 9);
    static const int64_t starts[] = {100, 200};
    static const char *const names[2][3] = {{"h2d_batch_0", "compute_batch_0", "d2h_batch_0"},
                                            {"h2d_batch_1", "compute_batch_1", "d2h_batch_1"}};
    for (int i = 1; i >= 0; i--) { /* not in order */
        int64_t at = starts[i];
        range(f, names[i][0], at, at + 30, 9);
        range(f, names[i][1], at + 30, at + 90 + 10 * i, 9);
        range(f, names[i][2], at + 100, at + 120, 9);
        copy(f, LAB_TRACE_COPY_H2D, at, at + 10, 100000);
        copy(f, LAB_TRACE_COPY_H2D, at + 20, at + 30, 300000);
        kernel(f, at + 30, at + 50);
        kernel(f, at + 60, at + 90 + 10 * i);
        copy(f, LAB_TRACE_COPY_D2H, at + 100, at + 120, 1000000);
    }
    range(f, "vit_forward_0", 130, 190, 9);
    range(f, "h2d_batch_x", 130, 190, 9);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->batch_count, 2);
    assert_close(p->latency.median, 120e-6);
    assert_close(p->stages[LAB_STAGE_H2D].time.median,
                 30e-6); /* the pause between two copies is in it */
    assert_close(p->stages[LAB_STAGE_COMPUTE].time.median, 65e-6);
    assert_close(p->stages[LAB_STAGE_D2H].time.median, 20e-6);
    assert_close(p->stages[LAB_STAGE_H2D].bandwidth.median, 20e9); /* but not in the bandwidth */
    assert_int_equal(p->stages[LAB_STAGE_H2D].bandwidth.count, 2);
    assert_close(p->stages[LAB_STAGE_D2H].bandwidth.median, 50e9);
    assert_close(p->latency.confidence, 0.5); /* two values */
}

LAB_TEST_WITH(one_batch_has_figures_but_no_interval, setup, teardown) {
    struct fixture *f = *state;
    range(f, LAB_TRACE_WINDOW, 0, 10, 9);
    range(f, "compute_batch_0", 1, 4, 9);
    call(f, 2, 3, 1, 9);
    kernel(f, 50, 150)->place.correlation = 1;
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->batch_count, 1);
    assert_close(p->latency.median, 100e-6);
    assert_true(isnan(p->latency.low) && isnan(p->latency.high));
    assert_close(p->efficiency, 1);
}

/* --- devices and streams --- */

/* Two ranks of one process: a thread, a device and a window each, at other times. */
LAB_TEST_WITH(each_device_has_its_own_window, setup, teardown) {
    struct fixture *f = *state;
    range(f, LAB_TRACE_WINDOW, 0, 10, 1);
    range(f, LAB_TRACE_WINDOW, 100, 110, 2);
    call(f, 2, 3, 1, 1);
    call(f, 5, 6, 2, 2); /* warm-up of the second, within the window of the first */
    call(f, 102, 103, 3, 2);
    kernel(f, 20, 30)->place.correlation = 1;
    f->place.device = 1;
    kernel(f, 20, 90)->place.correlation = 2;
    kernel(f, 120, 140)->place.correlation = 3;
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(f->found.count, 2);
    assert_int_equal(p[0].device, 0);
    assert_int_equal(p[0].end_ns, 30 * US);
    assert_int_equal(p[1].device, 1);
    assert_int_equal(p[1].start_ns, 120 * US);
}

LAB_TEST_WITH(slices_of_a_device_are_pipelines_of_their_own, setup, teardown) {
    struct fixture *f = *state;
    for (uint32_t slice = 1; slice <= 3; slice++) {
        f->place.green = slice;
        kernel(f, 0, 10 * (int64_t)slice);
    }
    analyse(f);
    assert_int_equal(f->found.count, 3);
    assert_int_equal(f->found.items[2].end_ns, 30 * US);
}

LAB_TEST_WITH(gaps_are_the_waits_of_a_stream, setup, teardown) {
    struct fixture *f = *state;
    kernel(f, 0, 10);
    kernel(f, 11, 100); /* 1 µs is none */
    kernel(f, 20, 30);  /* under the one before */
    kernel(f, 102, 110);
    kernel(f, 130, 140);
    kernel(f, 341, 350);
    copy(f, LAB_TRACE_COPY_H2D, 50, 60, 1);
    const struct lab_pipeline *p = analyse(f);
    assert_int_equal(p->stream_count, 2);
    assert_int_equal(p->streams[0].stream, 1);
    assert_int_equal(p->streams[0].gaps.count, 0);
    assert_true(isnan(p->streams[0].gaps.median));
    const struct lab_pipeline_stream *compute = &p->streams[1];
    assert_int_equal(compute->commands, 6);
    assert_close(compute->busy * p->window_s, 1e-6 * (10 + 89 + 8 + 10 + 9));
    assert_int_equal(compute->gaps.count, 3);
    assert_close(compute->gaps.median, 20e-6);
    assert_close(compute->gaps.total, (2 + 20 + 201) * 1e-6);
    assert_close(compute->gaps.p95, (20 + 0.9 * 181) * 1e-6);
    assert_int_equal(compute->over_10us, 2);
    assert_int_equal(compute->over_100us, 1);
}

/* Given traces of two repeats: what differs between them is what the interval is of. */
LAB_TEST_WITH(traces_of_repeats_make_a_claim, setup, teardown) {
    struct fixture *f = *state;
    struct lab_analysis_trace traces[] = {
        {"a_r0", &f->trace}, {"a_r1", &f->trace}, {"b", &f->trace}};
    struct lab_analysis_input input = {.traces = traces, .trace_count = 3};
    const struct lab_analysis *latency = lab_analysis_find("latency", NULL);
    struct lab_analysis_result result;
    follow_device(f);
    range(f, "compute_batch_0", 0, 100, 1);
    kernel(f, 0, 100);
    ASSERT_OK(figures_run(latency, NULL, &input, &f->arena, &result, err));
    assert_int_equal(result.claim_count, 1);
    assert_string_equal(result.claims[0].subject, "a");
    assert_string_equal(result.answer, "a: batch latency 100 µs (95% CI [100, 100] µs, 2 runs). 3 "
                                       "pipelines: compute busy 100.0% to 100.0% of the window.");
}
