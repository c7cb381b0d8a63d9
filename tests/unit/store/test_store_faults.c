/*
 * test_store_faults.c: SQLite refuses each statement in turn, at its preparation and while it runs.
 * Then each call fails and says why; the same call, undisturbed, works afterwards, and finds what
 * was there before.
 */
#include "recording_fixture.h"

#include "store/export/export.h"
#include "store/trace/trace.h"
#include "store/trace/trace_read.h"
#include "store/tuning/tuning.h"

#include "base/file/file.h"
#include "doc/doc.h"

#include <sqlite3.h>

#define TRACES LAB_TEST_SOURCE_DIR "/tests/fixtures/traces/"

/* --- what is refused --- */

static int left = -1;       /* points until the one that is refused; -1 = none is */
static bool dense, started; /* all rows are points; a statement has begun and made no point yet */
static bool refused;

static bool refuse(void) {
    bool now = left == 0;
    left -= left >= 0;
    refused |= now;
    return now;
}

static int at_statement(unsigned kind, void *state, void *statement, void *text) {
    (void)kind, (void)state, (void)statement, (void)text;
    started = true;
    return 0;
}

static int at_row(void *state) {
    (void)state;
    bool point = dense || started;
    started = false;
    return point && refuse();
}

static int at_preparation(void *state, int action, const char *a, const char *b, const char *c,
                          const char *d) {
    (void)state, (void)a, (void)b, (void)c, (void)d;
    bool point = action == SQLITE_SELECT || action == SQLITE_INSERT || action == SQLITE_UPDATE ||
                 action == SQLITE_DELETE;
    return point && refuse() ? SQLITE_DENY : SQLITE_OK;
}

static int hook(sqlite3 *db, char **message, const struct sqlite3_api_routines *api) {
    (void)message, (void)api;
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, at_statement, NULL);
    sqlite3_progress_handler(db, 1, at_row, NULL);
    sqlite3_set_authorizer(db, at_preparation, NULL);
    return SQLITE_OK;
}

static int open_program(void **state) {
    (void)state;
    return sqlite3_auto_extension((void (*)(void))hook);
}

/* --- calls --- */

static struct lab_store *store; /* the study that most calls are about */
static struct lab_tuning_cache *cache;
static struct lab_run *runs;
static int run_count, count;

static int call_create(void) {
    struct lab_store *made;
    const char *other = lab_arena_printf(&arena, "%s/other.db", folder);
    unlink(other); /* one that was made and then not opened is whole */
    if (lab_store_create(other, &a_study, two_runs, 2, &made, &err) < 0)
        return -1;
    left = -1;
    lab_store_close(made);
    return 0;
}

static int open_and_close(enum lab_store_mode mode) {
    struct lab_store *opened;
    if (lab_store_open(path, mode, &opened, &err) < 0)
        return -1;
    left = -1;
    lab_store_close(opened);
    return 0;
}

static int call_open_read(void) {
    return open_and_close(LAB_STORE_READ);
}

static int call_open_write(void) {
    return open_and_close(LAB_STORE_WRITE);
}

static int64_t epoch;

static int call_epoch(void) {
    return lab_store_epoch(store, "runner", &epoch, &err);
}

static int call_place(void) {
    return lab_store_place_run(store, 2, two_ranks, 2, &err);
}

static int call_begin(void) {
    return lab_store_begin_run(store, 2, epoch, 7, &err);
}

static int call_progress(void) {
    const struct lab_run_progress item = {.run = 2, .done = 3, .total = 4};
    return lab_store_set_progress(store, &item, 1, &err);
}

static int call_add_iterations(void) {
    return add_iterations(store, 2, 0, 0, 5);
}

static const struct lab_store_metric some[] = {{"loss", "", 0, 2.5, 1000, 1},
                                               {"loss", "", 0, 1.5, 2000, 2}};

static int call_add_metrics(void) {
    return lab_store_add_metrics(store, 2, some, 2, &err);
}

static int call_finish(void) {
    return lab_store_finish_run(store, 2, &a_result, &err);
}

static int call_reread(void) {
    int64_t lost;
    int result = lab_store_reread_begin(store, true, &err);
    if (result == 0 && (lab_store_reread_run(store, 2, &err) < 0 ||
                        lab_store_reread_add(store, some, 2, &err) < 0 ||
                        lab_store_reread_end_run(store, 2, true, &lost, &err) < 0))
        result = -1;
    if (result == 0)
        return lab_store_reread_end(store, true, &err);
    lab_store_reread_end(store, false, NULL);
    return result;
}

static int call_study(void) {
    struct lab_store_study study;
    return lab_store_study(store, &arena, &study, &err);
}

static int call_runs(void) {
    int result = lab_store_runs(store, &arena, &runs, &run_count, &err);
    return result < 0 ? result : run_count - 2;
}

static int call_runs_with(void) {
    static const char *const keys[] = {"h2d_gb_per_s", NULL};
    return lab_store_runs_with(store, keys, &arena, &runs, &run_count, &err);
}

static int call_progresses(void) {
    struct lab_run_progress *items;
    return lab_store_progress(store, &arena, &items, &count, &err);
}

static int call_count(void) {
    int counts[LAB_RUN_STATE_COUNT];
    return lab_store_count(store, counts, &err);
}

static int call_iterations(void) {
    struct lab_iteration *items;
    size_t found;
    int result = lab_store_iterations(store, 2, 0, &arena, &items, &found, &err);
    return result < 0 ? result : (int)found - 5;
}

static int call_metrics(void) {
    struct lab_store_metric *metrics;
    int64_t counted = 0;
    int result = lab_store_metrics(store, 2, &arena, &metrics, &count, &err);
    if (result == 0)
        result = lab_store_count_metrics(store, 2, &counted, &err);
    return result < 0 ? result : (int)counted - 2;
}

static int ignore(void *state, const char *bytes, size_t length) {
    (void)state, (void)bytes, (void)length;
    return 0;
}

static int call_export(void) {
    LAB_AUTO(doc_sink, out);
    out.write = ignore;
    const struct lab_doc_format *csv = lab_doc_row_format_find("csv");
    if (lab_export_iterations(store, runs, run_count, csv, &out, &err) < 0 ||
        lab_export_metrics(store, runs, run_count, csv, &out, &err) < 0)
        return -1;
    return lab_export_json(store, runs, run_count, true, &out, &err);
}

/* --- recordings and traces --- */

static const char *recording_path(void) {
    return lab_arena_printf(&arena, "%s/recording.db", folder);
}

static int call_recorder(void) {
    static const struct lab_recorder_setup setup = {.interval_ns = TICK_NS, .note = "sleep 5"};
    struct lab_recorder *recorder;
    unlink(recording_path());
    if (lab_recorder_create(recording_path(), &setup, &recorder, &err) < 0)
        return -1;
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, 5);
    int result = lab_recorder_flush(recorder, true, &err);
    left = -1; /* it closes all the same: what is in the WAL is found */
    lab_recorder_close(recorder, NULL);
    return result;
}

static int call_read_recording(void) {
    struct lab_recording recording;
    if (lab_recording_read(recording_path(), NULL, &arena, &recording, &err) < 0)
        return -1;
    if (recording.missing)
        return lab_err_set(&err, LAB_ERR_WRONG, "%s", recording.missing[0]);
    check_ticks(track_of(&recording, GPU), GPU, 0, 5);
    return 0;
}

static int call_write_trace(void) {
    struct lab_trace_gpu gpu = {.name = "NVIDIA H200", .uuid = "GPU-1", .pci_bus = ""};
    struct lab_trace_kernel kernel = {.start_ns = 1, .end_ns = 2, .name = "gemm"};
    struct lab_trace_range range = {.start_ns = 1, .end_ns = 2, .text = "step", .kind = 59};
    const struct lab_trace trace = {.kernels = &kernel,
                                    .kernel_count = 1,
                                    .gpus = &gpu,
                                    .gpu_count = 1,
                                    .ranges = &range,
                                    .range_count = 1};
    const char *where = lab_arena_printf(&arena, "%s/trace.sqlite", folder);
    return lab_trace_write(where, &trace, &err);
}

static int call_read_trace(void) {
    struct lab_trace_file file;
    if (lab_trace_read(TRACES "nsight2026.sqlite", &arena, &file, &err) < 0)
        return -1;
    if (file.missing)
        return lab_err_set(&err, LAB_ERR_WRONG, "%s", file.missing);
    assert_int_equal(file.traces[0].kernel_count + file.traces[0].copy_count, 48);
    assert_int_equal(file.traces[0].call_count + file.traces[0].range_count, 86);
    return 0;
}

/* --- the tuning cache --- */

static int call_cache_open(void) {
    struct lab_tuning_cache *opened;
    const char *where = lab_arena_printf(&arena, "%s/tuning.db", folder);
    if (lab_tuning_cache_open(where, true, &arena, &opened, NULL, &err) < 0)
        return -1;
    lab_tuning_cache_close(cache);
    cache = opened;
    return 0;
}

static int call_cache_put(void) {
    const struct lab_tuning_entry entry = {.key = "a",
                                           .kernel = "cpu gemm 1",
                                           .shape = "gemm m1024",
                                           .device = "a CPU",
                                           .config = "x=1",
                                           .result = "{}"};
    return lab_tuning_cache_put(cache, &entry, &err);
}

static int call_cache_find(void) {
    struct lab_tuning_entry entry;
    int found = lab_tuning_cache_find(cache, "a", &arena, &entry, &err);
    return found < 0 ? -1 : found - 1;
}

static int call_cache_list(void) {
    struct lab_tuning_entry *entries;
    int result = lab_tuning_cache_list(cache, &arena, &entries, &count, &err);
    return result < 0 ? result : count - 1;
}

static int call_cache_keep(void) {
    static const struct lab_trial trial = {.config = "x=1", .reason = ""};
    static const struct lab_trial *const trials[] = {&trial};
    return lab_tuning_cache_keep_all(cache, "s", trials, 1, &err);
}

static int call_cache_trials(void) {
    struct lab_trial *trials;
    int result = lab_tuning_cache_trials(cache, "s", &arena, &trials, &count, &err);
    return result < 0 ? result : count - 1;
}

static int call_cache_unfinished(void) {
    int result = lab_tuning_cache_unfinished(cache, &count, &err);
    return result < 0 ? result : count - 1;
}

static int call_cache_share(void) {
    struct lab_value *value;
    int taken;
    if (lab_tuning_cache_export(cache, &arena, &value, &count, &err) < 0)
        return -1;
    return lab_tuning_cache_import(cache, value, &taken, &count, &err);
}

static int call_cache_forget(void) {
    return lab_tuning_cache_forget(cache, "s", &err);
}

static int call_cache_clear(void) {
    return lab_tuning_cache_clear(cache, &count, &err);
}

/* --- one after the other --- */

static const struct {
    const char *name;
    int (*call)(void); /* 0, or -1 with `err` */
    bool reads;        /* each row is a point */
    bool tolerant;     /* it may do without some statements, where it checks what it got */
} calls[] = {
    {"create", call_create},
    {"epoch", call_epoch},
    {"place", call_place},
    {"begin", call_begin},
    {"progress", call_progress},
    {"progresses", call_progresses, true},
    {"add iterations", call_add_iterations},
    {"add metrics", call_add_metrics},
    {"finish", call_finish},
    {"reread", call_reread},
    {"study", call_study, true},
    {"runs", call_runs, true},
    {"runs with", call_runs_with, true},
    {"count", call_count, true},
    {"iterations", call_iterations, true},
    {"metrics", call_metrics, true},
    {"export", call_export, true},
    {"open to read", call_open_read},
    {"open to write", call_open_write},
    {"record", call_recorder},
    {"read a recording", call_read_recording, false, true},
    {"write a trace", call_write_trace},
    {"read a trace", call_read_trace, false, true},
    {"open a cache", call_cache_open, false, true},
    {"put", call_cache_put},
    {"find", call_cache_find, true},
    {"list", call_cache_list, true},
    {"keep", call_cache_keep},
    {"trials", call_cache_trials, true},
    {"unfinished", call_cache_unfinished, true},
    {"share", call_cache_share},
    {"forget", call_cache_forget},
    {"clear", call_cache_clear},
};

/* How often it could be made to fail, until it is done undisturbed. */
static int fail_each(size_t which) {
    for (int point = 0;; point++) {
        err = LAB_ERR_INIT;
        left = point;
        refused = false;
        dense = calls[which].reads;
        int result = calls[which].call();
        left = -1;
        if (!refused) {
            assert_string_equal(result < 0 ? err.text : "", "");
            assert_int_equal(result, 0);
            return point;
        }
        if (!(result == -1 && err.text[0]) && !(result == 0 && calls[which].tolerant))
            fail_msg("%s: point %d is refused, and it returns %d: '%s'", calls[which].name, point,
                     result, err.text);
    }
}

LAB_TEST(every_statement_that_is_refused_is_an_error) {
    store = create(path);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int points = fail_each(i);
        print_message("%s: %d\n", calls[i].name, points);
        assert_true(points > 0);
    }
    lab_store_close(store);
    lab_tuning_cache_close(cache);
}

const struct lab_test_program lab_test_program = {
    .open = open_program, .set_up = set_up, .tear_down = tear_down};
