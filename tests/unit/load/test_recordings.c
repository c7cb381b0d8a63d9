/* Which recordings words mean, whose they are, and what a study's runs give. */
#include "load/recordings.h"

#include "base/file/file.h"
#include "store/recording/recording.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define SECOND 1000000000LL

static struct lab_arena arena;
static char folder[64];
static struct lab_recording_source *sources;
static int source_count;

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    snprintf(folder, sizeof folder, "/tmp/gpulab-test-recordings-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    /* what the tests make, deepest first */
    static const char *const made[] = {
        "a.db",      "a.json",   "a_multi_gpu.json", "b.json",     "b_multi_gpu.json",
        "notes.txt", "x/s.json", "y/s.json",         "y/study.db", "x",
        "y",         "k=v.json"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        remove(lab_arena_printf(&arena, "%s/%s", folder, made[i]));
    rmdir(folder);
    lab_arena_release(&arena);
    return 0;
}

static const char *in_folder(const char *name) {
    return lab_arena_printf(&arena, "%s/%s", folder, name);
}

static void given_file(const char *name) {
    struct lab_err err = LAB_ERR_INIT;
    if (lab_file_write_atomic(in_folder(name), "[]", 2, &err) < 0)
        fail_msg("%s", err.text);
}

static int find(struct lab_err *err, const char *first, const char *second) {
    const char *words[] = {first, second};
    return lab_recordings_find(words, second ? 2 : 1, &arena, &sources, &source_count, err);
}

static void found(const char *first, const char *second) {
    struct lab_err err = LAB_ERR_INIT;
    if (find(&err, first, second) < 0)
        fail_msg("%s", err.text);
}

LAB_TEST(repetitions_have_one_label) {
    static const char *const cases[][2] = {
        {"adam", "adam"},
        {"adam_run2", "adam"},
        {"adam-rep12", "adam"},
        {"adam_r3", "adam"},
        {"gpu_stats_20260115_103000", "gpu_stats"},
        {"gpu_stats-20260115-1030", "gpu_stats"},
        {"gpu_stats_20260115", "gpu_stats"},
        {"adam_run2_multi_gpu", "adam"},
        {"mlp_64", "mlp_64"}, /* a size, for all that can be known */
        {"h200", "h200"},
        {"run2", "run2"},
        {"20260115_103000", "20260115_103000"},
        {"42", "42"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(lab_recordings_label(cases[i][0], &arena), cases[i][1]);
}

LAB_TEST(labels_stand_before_paths) {
    const char *rest;
    assert_string_equal(lab_recordings_split("before=runs/a.db", &arena, &rest), "before");
    assert_string_equal(rest, "runs/a.db");
    assert_null(lab_recordings_split("runs/k=v.db", &arena, &rest));
    assert_string_equal(rest, "runs/k=v.db");
    assert_null(lab_recordings_split("=a.db", &arena, &rest));
    assert_null(lab_recordings_split("a=", &arena, &rest));
    given_file("k=v.json");
    assert_int_equal(chdir(folder), 0);
    assert_null(lab_recordings_split("k=v.json", &arena, &rest)); /* a file of that name */
    assert_int_equal(chdir("/"), 0);
}

/* Of files that tell of the same, the recording, or the one with all GPUs. */
LAB_TEST(a_folder_counts_each_recording_once) {
    given_file("a.json");
    given_file("a_multi_gpu.json");
    given_file("a.db");
    given_file("b.json");
    given_file("b_multi_gpu.json");
    given_file("notes.txt");
    found(folder, NULL);
    assert_int_equal(source_count, 2);
    assert_string_equal(sources[0].path, in_folder("a.db"));
    assert_string_equal(sources[0].label, "a");
    assert_string_equal(sources[1].path, in_folder("b_multi_gpu.json"));
    assert_string_equal(sources[1].label, "b");
    assert_false(sources[0].named);
}

LAB_TEST(folders_below_are_labels) {
    mkdir(in_folder("x"), 0700);
    mkdir(in_folder("y"), 0700);
    given_file("x/s.json");
    given_file("y/s.json");
    found(folder, NULL);
    assert_int_equal(source_count, 2);
    assert_string_equal(sources[0].label, "x");
    assert_string_equal(sources[1].label, "y");
    assert_string_equal(sources[0].name, in_folder("x/s")); /* both are called s */
    found(in_folder("x"), in_folder("y"));                  /* two words: each is a label */
    assert_string_equal(sources[0].label, "x");
    found(in_folder("x/s.json"), in_folder("y/s.json")); /* names that don't tell them apart */
    assert_string_equal(sources[0].label, in_folder("x/s"));
    assert_true(sources[0].named);
    found(lab_arena_printf(&arena, "old=%s", in_folder("x")),
          lab_arena_printf(&arena, "old=%s", in_folder("y/s.json")));
    assert_string_equal(sources[0].label, "old");
    assert_string_equal(sources[1].label, "old");
    found(in_folder("x/s.json"), in_folder("x/s.json")); /* named twice, counts once */
    assert_int_equal(source_count, 1);
}

LAB_TEST(what_isnt_there_is_refused) {
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(find(&err, in_folder("nowhere"), NULL), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(find(&err, folder, NULL), -1);
    assert_non_null(strstr(err.text, "no recordings in"));
}

/* --- a study --- */

static const struct lab_column columns[] = {{LAB_METRIC_UTILIZATION, -1},
                                            {LAB_METRIC_MEMORY_USED, -1}};

static void tell_gpu(const struct lab_sink_samples *sink, int index) {
    struct lab_entity gpu = {.kind = LAB_ENTITY_GPU,
                             .index = index,
                             .id = index ? "GPU-b" : "GPU-a",
                             .name = "NVIDIA A10G",
                             .pci = "",
                             .node = -1,
                             .parent = -1,
                             .columns = columns,
                             .column_count = 2};
    sink->entity(sink->state, index, &gpu);
}

static void send(const struct lab_sink_samples *sink, int index, int second) {
    int64_t values[] = {50, 1024000};
    uint64_t valid = 3;
    struct lab_tick tick = {.entity = index,
                            .time_ns = second * SECOND,
                            .cost_ns = -1,
                            .values = values,
                            .valid = &valid};
    sink->tick(sink->state, &tick);
}

/* Two repetitions on GPU 0, one of another kind on GPU 1 that isn't valid; both GPUs are watched
 * from second 0 to 39, the runs take 10 s each from 5 on. */
static void given_study(const char *path) {
    static const struct lab_run_rank on_0[] = {{0, "cuda:0", 0}}, on_1[] = {{1, "cuda:1/2.1", 0}};
    static const struct lab_run runs[] = {
        {.id = "gpu0_vit",
         .identity = 1,
         .workload = "vit",
         .label = "vit",
         .options = "{}",
         .series = "[]",
         .test = "{}",
         .ranks = on_0,
         .rank_count = 1},
        {.id = "gpu0_vit_r1",
         .identity = 2,
         .position = 1,
         .repeat = 1,
         .workload = "vit",
         .label = "vit",
         .options = "{}",
         .series = "[]",
         .test = "{}",
         .ranks = on_0,
         .rank_count = 1},
        {.id = "gpu1_null",
         .identity = 3,
         .position = 2,
         .workload = "null",
         .label = "null",
         .options = "{}",
         .series = "[]",
         .test = "{}",
         .ranks = on_1,
         .rank_count = 1},
    };
    static const struct lab_store_study study = {
        .name = "s", .option = "s", .config = "", .words = "[]", .machine = "{}", .version = ""};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_store *store = NULL;
    struct lab_recorder *recorder = NULL;
    int64_t epoch;
    struct lab_recorder_setup setup = {.interval_ns = SECOND};
    if (lab_store_create(path, &study, runs, 3, &store, &err) < 0 ||
        lab_store_epoch(store, "runner", &epoch, &err) < 0 ||
        lab_recorder_attach(store, &setup, &recorder, &err) < 0)
        fail_msg("%s", err.text);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    for (int gpu = 0; gpu < 2; gpu++)
        tell_gpu(&sink, gpu);
    for (int t = 0; t < 40; t++)
        for (int gpu = 0; gpu < 2; gpu++)
            send(&sink, gpu, t);
    if (lab_recorder_close(recorder, &err) < 0)
        fail_msg("%s", err.text);
    for (int run = 1; run <= 3; run++) {
        struct lab_run outcome = {.state = LAB_RUN_DONE,
                                  .end_ns = (5 + 10 * run) * SECOND,
                                  .error = "",
                                  .rate = 100 * run,
                                  .rate_low = NAN,
                                  .rate_high = NAN,
                                  .rate_unit = "iterations/s",
                                  .valid = run < 3};
        if (lab_store_begin_run(store, run, epoch, (10 * run - 5) * SECOND, &err) < 0 ||
            lab_store_finish_run(store, run, &outcome, &err) < 0)
            fail_msg("%s", err.text);
    }
    lab_store_close(store);
}

LAB_TEST(runs_of_a_study_are_recordings) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_labelled_recording *recordings;
    int count, status = 0;
    mkdir(in_folder("y"), 0700);
    given_study(in_folder("y/study.db"));
    found(in_folder("y"), NULL);
    assert_int_equal(source_count, 1);
    assert_true(sources[0].study);
    if (lab_recordings_read(sources, source_count, &arena, &recordings, &count, &status, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(count, 2); /* the third isn't valid */
    assert_string_equal(recordings[0].name, "gpu0_vit");
    assert_string_equal(recordings[1].name, "gpu0_vit_r1");
    assert_string_equal(recordings[1].label, "gpu0_vit");
    assert_true(recordings[0].rate == 100 && recordings[1].rate == 200);
    assert_string_equal(recordings[0].rate_unit, "iterations/s");
    assert_int_equal(recordings[1].recording->track_count, 1); /* GPU 1 had no part in it */
    const struct lab_track *track = &recordings[1].recording->tracks[0];
    assert_int_equal(track->entity.index, 0);
    assert_int_equal(track->times_ns[0], 15 * SECOND);
    assert_int_equal(track->times_ns[track->count - 1], 25 * SECOND);
    found(folder, NULL); /* the same below a folder: named by where it lies */
    if (lab_recordings_read(sources, source_count, &arena, &recordings, &count, &status, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(count, 2);
    assert_string_equal(recordings[0].label, "gpu0_vit");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
