/*
 * Traces in the layouts of several years (tests/fixtures/traces, where make.py says what is in
 * them), and files that are none.
 */
#include "store/trace/trace_find.h"
#include "store/trace/trace_read.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

#define FIXTURES LAB_TEST_SOURCE_DIR "/tests/fixtures/traces/"

struct fixture {
    struct lab_err err;
    struct lab_trace_file file;
};

static int setup(void **state) {
    *state = lab_arena_alloc(&test_arena, 1, sizeof(struct fixture));
    return 0;
}

static void read_fixture(struct fixture *f, const char *name) {
    if (lab_trace_read(lab_arena_printf(&test_arena, FIXTURES "%s", name), &test_arena, &f->file,
                       &f->err) < 0)
        fail_msg("%s", f->err.text);
}

/* A file in the test's own folder: the first `length` bytes of another, or that text. */
static const char *make_file(const char *name, const char *bytes, size_t length) {
    const char *path = test_path("%s", name);
    test_write_bytes(path, bytes, length);
    return path;
}

static void assert_refused(struct fixture *f, const char *path, enum lab_err_code code,
                           const char *part) {
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_trace_read(path, &test_arena, &f->file, &err), -1);
    assert_int_equal(err.code, code);
    if (!strstr(err.text, part) || !strstr(err.text, path))
        fail_msg("'%s' doesn't say '%s' of '%s'", err.text, part, path);
}

/* --- layouts --- */

LAB_TEST(every_layout_gives_the_same_records) {
    struct fixture *f = *state;
    static const char *const names[] = {"nsight2022.sqlite", "nsight2026.sqlite",
                                        "pipeline_gpu0_numa1_vit32x6x512.sqlite"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        read_fixture(f, names[i]);
        assert_null(f->file.missing);
        assert_int_equal(f->file.trace_count, 1);
        const struct lab_trace *trace = &f->file.traces[0];
        assert_int_equal(trace->process, 4711);
        assert_int_equal(trace->kernel_count, 24);
        assert_int_equal(trace->copy_count, 24);
        assert_int_equal(trace->call_count, 48);
        assert_int_equal(trace->range_count, 12 * 3 + 2);
        assert_string_equal(trace->kernels[0].name, "gemm");
        assert_string_equal(trace->kernels[0].long_name, "gemm(float *, int)");
        assert_int_equal(trace->kernels[0].grid[1], 4);
        assert_int_equal(trace->kernels[0].block[0], 128);
        assert_int_equal(trace->kernels[0].registers, 64);
        assert_int_equal(trace->kernels[0].start_ns, 2040000);
        assert_int_equal(trace->kernels[0].place.stream, 14);
        assert_int_equal(trace->copies[0].kind, LAB_TRACE_COPY_H2D);
        assert_int_equal(trace->copies[0].size_bytes, 1000000);
        assert_int_equal(trace->copies[0].from, LAB_TRACE_MEMORY_PINNED);
        assert_string_equal(trace->calls[0].name, "cudaMemcpyAsync");
        assert_int_equal(trace->calls[0].thread, 4712);
        for (size_t k = 1; k < trace->kernel_count; k++) /* the file has them in another order */
            assert_true(trace->kernels[k].start_ns >= trace->kernels[k - 1].start_ns);
        int windows = 0;
        for (size_t k = 0; k < trace->range_count; k++)
            windows += strcmp(trace->ranges[k].text, LAB_TRACE_WINDOW) == 0;
        assert_int_equal(windows, 1);
    }
    assert_string_equal(f->file.traces[0].notes[1].name, LAB_TRACE_NOTE_SOURCE);
}

LAB_TEST(devices_have_their_names) {
    struct fixture *f = *state;
    read_fixture(f, "nsight2026.sqlite");
    assert_int_equal(f->file.traces[0].gpu_count, 1);
    assert_string_equal(f->file.traces[0].gpus[0].name, "NVIDIA H200");
    assert_int_equal(f->file.traces[0].gpus[0].compute_units, 132);
    assert_string_equal(f->file.traces[0].gpus[0].uuid, "GPU-0");
}

LAB_TEST(tables_that_are_missing_are_named) {
    struct fixture *f = *state;
    read_fixture(f, "bare.sqlite");
    assert_string_equal(f->file.missing, "CUPTI_ACTIVITY_KIND_RUNTIME and NVTX_EVENTS");
    assert_int_equal(f->file.traces[0].kernel_count, 24);
    assert_int_equal(f->file.traces[0].call_count, 0);
    assert_int_equal(f->file.traces[0].range_count, 0);
}

LAB_TEST(graphs_as_a_whole_stand_for_kernels) {
    struct fixture *f = *state;
    read_fixture(f, "graphs.sqlite");
    const struct lab_trace *trace = &f->file.traces[0];
    assert_int_equal(trace->kernel_count, 4);
    assert_true(trace->kernels[0].whole_graph);
    assert_int_equal(trace->kernels[0].place.stream, 7);
    assert_true(trace->ranges[0].end_ns < trace->ranges[0].start_ns); /* never closed */
    assert_string_equal(f->file.missing, "CUPTI_ACTIVITY_KIND_MEMCPY");
}

LAB_TEST(processes_are_traces_of_their_own) {
    struct fixture *f = *state;
    read_fixture(f, "two_processes.sqlite");
    assert_int_equal(f->file.trace_count, 2);
    assert_int_equal(f->file.traces[0].process, 4711);
    assert_int_equal(f->file.traces[0].kernel_count, 24);
    assert_int_equal(f->file.traces[0].range_count, 38);
    assert_int_equal(f->file.traces[1].process, 4800);
    assert_int_equal(f->file.traces[1].kernel_count, 48);
    assert_int_equal(f->file.traces[1].call_count, 96);
}

LAB_TEST(nothing_on_a_device_is_no_process) {
    struct fixture *f = *state;
    read_fixture(f, "no_rows.sqlite");
    assert_int_equal(f->file.trace_count, 0);
    assert_null(f->file.missing);
    read_fixture(f, "no_device.sqlite");
    assert_int_equal(f->file.trace_count, 0);
    assert_non_null(f->file.missing);
}

/* --- what is no trace --- */

LAB_TEST(other_files_are_refused) {
    struct fixture *f = *state;
    static const char text[] =
        "this is no database, whatever its name says. It is long enough, too";
    assert_refused(f, make_file("text.sqlite", text, sizeof text), LAB_ERR_USER,
                   "not an SQLite database");
    assert_refused(f, make_file("empty.sqlite", "", 0), LAB_ERR_USER, "it is empty");
    assert_refused(f, FIXTURES "other.db", LAB_ERR_USER, "without Nsight Systems' tables");
    assert_refused(f, LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v2.db", LAB_ERR_USER,
                   "name its folder");
    assert_refused(f, test_folder(), LAB_ERR_USER, "not a file");
    assert_refused(f, "/nowhere/trace.sqlite", LAB_ERR_USER, "No such file");
}

LAB_TEST(files_that_are_cut_off_are_told_from_whole_ones) {
    struct fixture *f = *state;
    static char bytes[64 << 10];
    FILE *file = fopen(FIXTURES "nsight2026.sqlite", "r");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 1024; cut < length; cut += 1024) {
        struct lab_err err = LAB_ERR_INIT;
        const char *path = make_file("cut.sqlite", bytes, cut);
        assert_int_equal(lab_trace_read(path, &test_arena, &f->file, &err), -1);
        assert_contains(err.text, "cut.sqlite");
    }
    for (size_t at = 100; at < length;
         at += 97) { /* damaged anywhere: read or refused, never worse */
        struct lab_err err = LAB_ERR_INIT;
        char kept = bytes[at];
        bytes[at] = (char)(kept ^ 0x5a);
        const char *path = make_file("damaged.sqlite", bytes, length);
        if (lab_trace_read(path, &test_arena, &f->file, &err) < 0)
            assert_true(*err.text);
        bytes[at] = kept;
    }
}

/* --- reports of Nsight's --- */

static void make_nsys(const char *script) {
    const char *path = make_file("nsys", script, strlen(script));
    assert_int_equal(chmod(path, 0755), 0);
}

LAB_TEST(reports_are_exported_by_nsys) {
    struct fixture *f = *state;
    const char *before = lab_arena_strdup(&test_arena, getenv("PATH"));
    const char *report = make_file("a.nsys-rep", "report", 6);
    setenv("PATH", "/nonexistent", 1);
    assert_refused(f, report, LAB_ERR_USER, "install Nsight Systems");
    make_nsys("#!/bin/sh\n[ \"$1 $2 $3 $6\" = 'export --type sqlite --output' ] || exit 9\n"
              "[ \"$(cat \"$8\")\" = report ] && cp \"$NSYS_FIXTURE\" \"$7\"\n");
    setenv("PATH", lab_arena_printf(&test_arena, "%s:%s", test_folder(), before), 1);
    setenv("NSYS_FIXTURE", FIXTURES "nsight2022.sqlite", 1);
    setenv("TMPDIR", test_folder(), 1);
    int result = lab_trace_read(report, &test_arena, &f->file, &f->err);
    if (result < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(f->file.traces[0].kernel_count, 24);
    make_nsys("#!/bin/sh\necho Importing...\necho 'the report is too old' >&2\nexit 4\n");
    assert_refused(f, report, LAB_ERR_SYSTEM, "status 4: the report is too old");
    make_nsys("#!/bin/sh\nexit 0\n");
    assert_refused(f, report, LAB_ERR_SYSTEM, "nsys export failed");
    setenv("PATH", before, 1);
    unsetenv("TMPDIR");
}

/* --- words --- */

static int find(struct fixture *f, const char *const *words, struct lab_trace_source **ret_sources,
                int *ret_count) {
    int count = 0;
    while (words[count])
        count++;
    f->err = LAB_ERR_INIT;
    return lab_trace_find(words, count, &test_arena, ret_sources, ret_count, &f->err);
}

LAB_TEST(folders_hold_traces) {
    struct fixture *f = *state;
    struct lab_trace_source *sources;
    int count;
    const char *words[] = {test_folder(), NULL, NULL};
    assert_int_equal(find(f, words, &sources, &count), -1);
    assert_contains(f->err.text, "no traces in");

    assert_int_equal(mkdir(test_path("traces"), 0777), 0);
    make_file("traces/pipeline_gpu1_numa0_vit0x0x0.sqlite", "x", 1);
    make_file("traces/pipeline_gpu0_numa0_vit0x0x0.sqlite", "x", 1);
    make_file("traces/pipeline_gpu0_numa0_vit0x0x0.nsys-rep", "x", 1); /* of the same run */
    make_file("traces/other.nsys-rep", "x", 1);
    make_file("traces/notes.txt", "x", 1);
    make_file("loose.sqlite", "x", 1);
    assert_int_equal(find(f, words, &sources, &count), 0);
    assert_int_equal(count, 4);
    assert_string_equal(sources[0].name, "loose");
    assert_string_equal(sources[1].name, "other");
    assert_string_equal(sources[2].name, "gpu0_numa0_vit0x0x0");
    assert_string_equal(sources[3].name, "gpu1_numa0_vit0x0x0");
    assert_false(sources[0].named);

    make_file("study.db", "x", 1); /* a study's: what lies in traces/ */
    assert_int_equal(find(f, words, &sources, &count), 0);
    assert_int_equal(count, 3);

    words[1] = test_path("/traces/../loose.sqlite");
    assert_int_equal(find(f, words, &sources, &count), 0);
    assert_int_equal(count, 4);
    assert_true(sources[3].named);
}

LAB_TEST(names_are_distinct_and_files_count_once) {
    struct fixture *f = *state;
    struct lab_trace_source *sources;
    int count;
    for (int i = 0; i < 2; i++)
        assert_int_equal(mkdir(test_path("%d", i), 0777), 0);
    const char *first = make_file("0/a.sqlite", "x", 1);
    const char *second = make_file("1/a.sqlite", "x", 1);
    const char *words[] = {test_folder(), first, second, NULL};
    assert_int_equal(find(f, words, &sources, &count), 0);
    assert_int_equal(count, 2);
    assert_string_equal(sources[0].name, first);
    assert_string_equal(sources[1].name, second);
    words[1] = "/nowhere";
    assert_int_equal(find(f, words, &sources, &count), -1);
    assert_string_equal(f->err.text, "/nowhere: No such file or directory");
}

const struct lab_test_program lab_test_program = {.set_up = setup};
