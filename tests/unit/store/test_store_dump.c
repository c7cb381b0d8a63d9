/*
 * test_store_dump.c: all that is read from traces, files of timings, benchmarks' results, recordings
 * and studies of every version, value by value, against tests/golden.
 */
#include "base/hash.h"
#include "base/json.h"
#include "doc/stream.h"
#include "golden.h"
#include "store/export/export.h"
#include "store/foreign/point_file.h"
#include "store/recording/recording.h"
#include "store/study/results.h"
#include "store/trace/trace_read.h"
#include "store/tuning/timing_file.h"

#define FIXTURES LAB_TEST_SOURCE_DIR "/tests/fixtures/"

static struct lab_str out;

static void add_place(const char *what, const struct lab_trace_place *at, int64_t start_ns,
                      int64_t end_ns) {
    lab_str_printf(&out, "  %s %lld %lld on %d.%u.%u.%u #%u node %llu", what, (long long)start_ns,
                   (long long)end_ns, at->device, at->context, at->green, at->stream,
                   at->correlation, (unsigned long long)at->graph_node);
}

static void add_trace(const struct lab_trace *t) {
    lab_str_printf(&out, " process %u, dropped %lld\n", t->process, (long long)t->dropped);
    for (size_t i = 0; i < t->kernel_count; i++) {
        const struct lab_trace_kernel *k = &t->kernels[i];
        add_place("kernel", &k->place, k->start_ns, k->end_ns);
        lab_str_printf(&out, " %s (%s) %d,%d,%d of %d,%d,%d, %d registers, %d+%d+%lld bytes%s\n",
                       k->name, k->long_name ? k->long_name : "-", k->grid[0], k->grid[1],
                       k->grid[2], k->block[0], k->block[1], k->block[2], k->registers,
                       k->static_shared, k->dynamic_shared, (long long)k->local_bytes,
                       k->whole_graph ? ", a graph" : "");
    }
    for (size_t i = 0; i < t->copy_count; i++) {
        add_place("copy", &t->copies[i].place, t->copies[i].start_ns, t->copies[i].end_ns);
        lab_str_printf(&out, " %lld bytes, kind %d, %d to %d\n", (long long)t->copies[i].size_bytes,
                       t->copies[i].kind, t->copies[i].from, t->copies[i].to);
    }
    for (size_t i = 0; i < t->fill_count; i++) {
        add_place("fill", &t->fills[i].place, t->fills[i].start_ns, t->fills[i].end_ns);
        lab_str_printf(&out, " %lld bytes of %lld in %d\n", (long long)t->fills[i].size_bytes,
                       (long long)t->fills[i].value, t->fills[i].memory);
    }
    for (size_t i = 0; i < t->call_count; i++)
        lab_str_printf(&out, "  call %lld %lld %s by %u #%u: %d\n", (long long)t->calls[i].start_ns,
                       (long long)t->calls[i].end_ns, t->calls[i].name, t->calls[i].thread,
                       t->calls[i].correlation, t->calls[i].result);
    for (size_t i = 0; i < t->range_count; i++)
        lab_str_printf(&out, "  range %lld %lld %s by %u, %d\n", (long long)t->ranges[i].start_ns,
                       (long long)t->ranges[i].end_ns, t->ranges[i].text, t->ranges[i].thread,
                       t->ranges[i].kind);
    for (size_t i = 0; i < t->gpu_count; i++)
        lab_str_printf(&out, "  gpu %d %s %s %s %d units %d.%d %lld bytes\n", t->gpus[i].device,
                       t->gpus[i].name, t->gpus[i].uuid, t->gpus[i].pci_bus,
                       t->gpus[i].compute_units, t->gpus[i].compute_major, t->gpus[i].compute_minor,
                       (long long)t->gpus[i].memory_bytes);
    for (size_t i = 0; i < t->note_count; i++)
        lab_str_printf(&out, "  note %s: %s\n", t->notes[i].name, t->notes[i].value);
}

/* The text of a part as its length and hash: large ones differ as a whole. */
static void fold(size_t from, const char *name) {
    size_t length = out.length - from;
    uint64_t hash = lab_hash_text(LAB_HASH_START, out.text + from);
    out.text[out.length = from] = '\0';
    lab_str_printf(&out, "%s: %zu bytes, %016llx\n", name, length, (unsigned long long)hash);
}

LAB_TEST(traces) {
    static const char *const names[] = {"bare",       "graphs",        "no_device", "nsight2022",
                                        "nsight2026", "two_processes", "no_rows"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct lab_trace_file file;
        size_t from = out.length;
        ASSERT_OK(
            lab_trace_read(lab_arena_printf(&test_arena, FIXTURES "traces/%s.sqlite", names[i]),
                           &test_arena, &file, err));
        lab_str_printf(&out, "missing %s\n", file.missing ? file.missing : "nothing");
        for (int k = 0; k < file.trace_count; k++)
            add_trace(&file.traces[k]);
        fold(from, names[i]);
    }
}

LAB_TEST(timings_and_points) {
    static const char *const texts[] = {
        "{\"kernel_name\": \"gemm\", \"gpu\": 1, \"best_config\": {\"tile\": 64, \"w\": \"a\"}, "
        "\"best_time_ms\": 1.5, \"detailed_timings\": [{\"time_ms\": 3, \"timestamp\": 1700000002},"
        " {\"config\": {\"tile\": 32, \"w\": \"b\"}, \"time_ms\": 1.5, \"timestamp\": 1700000001},"
        " {\"time_ms\": 0}, {\"time_ms\": -1}, {\"config\": \"x=1\", \"time_ms\": 2,"
        " \"timestamp\": 1700000003}]}",
        "{\"gpu\": \"cuda:1\", \"best_config\": \"fast\", \"all_benchmark_times\": [3, 1, \"x\"]}",
        "{\"best_config\": null, \"best_time_ms\": 0.5, \"detailed_timings\": [5, null, 4]}",
        "{\"kernel_name\": \"a\", \"best_config\": [1, 2], \"best_time_ms\": \"no\"}",
        "{\"other\": 1}",
        "[1]",
        "no JSON",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lab_err err = LAB_ERR_INIT;
        struct lab_timing_file file;
        test_write(test_path("timings.json"), texts[i]);
        if (lab_timing_file_read(test_path("timings.json"), &test_arena, &file, &err) < 0) {
            lab_str_printf(&out, "timings %zu refused:%s\n", i, strrchr(err.text, '/') + 1);
            continue;
        }
        lab_str_printf(&out, "timings %zu of '%s' on '%s', best '%s' %g s\n", i, file.kernel,
                       file.gpu, file.best_text, file.best_time_s);
        if (file.best_config)
            lab_json_write(file.best_config, 0, &out);
        for (size_t k = 0; k < file.timing_count; k++)
            lab_str_printf(&out, "  at %lld: %g s '%s'\n", (long long)file.timings[k].start_ns,
                           file.timings[k].time_s, file.timings[k].config);
    }
    static const char *const points[] = {"nccl_a", "nvbandwidth_a", "nvbench_b", "nvbench_old"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct lab_point_set *sets;
        int count;
        const char *path = lab_arena_printf(&test_arena, FIXTURES "compare/%s.json", points[i]);
        ASSERT_OK(lab_point_file_read(path, &test_arena, &sets, &count, err));
        sets->source = sets->name = points[i];
        lab_json_write(lab_point_sets_value(sets, count, &test_arena), 0, &out);
        lab_str_add(&out, "\n");
    }
}

static int take(void *state, const char *bytes, size_t length) {
    lab_str_add_bytes(state, bytes, length);
    return 0;
}

LAB_TEST(studies_of_every_version) {
    static const char *const paths[] = {"0.1.0/numa/study.db",
                                        "0.1.0/contention/study.db",
                                        "0.1.0/program/study.db",
                                        "0.1.0/training/study.db",
                                        "store/v1.db",
                                        "store/v2.db",
                                        "store/v3.db",
                                        "store/v4.db"};
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct lab_store *store = NULL;
        struct lab_run *runs;
        struct lab_recording recording;
        int count;
        size_t from = out.length;
        LAB_AUTO(doc_sink, sink);
        sink.write = take, sink.state = &out;
        const struct lab_doc_format *csv = lab_doc_row_format_find("csv");
        ASSERT_OK(lab_store_open(lab_arena_printf(&test_arena, FIXTURES "%s", paths[i]),
                                 LAB_STORE_READ, &store, err));
        ASSERT_OK(lab_store_runs(store, &test_arena, &runs, &count, err));
        ASSERT_OK(lab_export_json(store, runs, count, true, &sink, err));
        assert_int_equal(lab_export_runs(runs, count, csv, &sink), 0);
        ASSERT_OK(lab_export_iterations(store, runs, count, csv, &sink, err));
        ASSERT_OK(lab_export_metrics(store, runs, count, csv, &sink, err));
        struct lab_results_metrics *metrics = lab_results_metrics_open();
        lab_results_write(runs, count, store, metrics, &out);
        lab_results_metrics_close(metrics);
        ASSERT_OK(lab_recording_read_store(store, &(struct lab_recording_query){0}, &test_arena,
                                           &recording, err));
        lab_str_printf(&out, "%d tracks, %zu events, %zu lists\n", recording.track_count,
                       recording.event_count, recording.process_count);
        lab_store_close(store);
        fold(from, paths[i]);
    }
    assert_golden(out.text, "store-files.txt");
}

static int begin(void **state) {
    (void)state;
    lab_str_init(&out);
    return 0;
}

static int end(void **state) {
    (void)state;
    lab_str_release(&out);
    return 0;
}

const struct lab_test_program lab_test_program = {.open = begin, .close = end};
