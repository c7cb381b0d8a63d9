/* Which studies words mean, and what a study's database becomes for analyses. */
#include "analysis/analysis_study.h"
#include "load/studies.h"

#include "base/str.h"
#include "machine/machine_json.h"
#include "store/recording/recording.h"
#include "store/store.h"
#include "unit/result_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define SECOND 1000000000LL
#define RUNS   7

static const char machine_json[] =
    "{\"host\": \"node7\", \"cpu_model\": \"EPYC\", \"packages\": 2, \"numa_in_kernel\": true,"
    " \"nodes\": [{\"node\": 0, \"cores\": 1, \"cpus\": [0], \"memory_bytes\": 1,"
    "              \"distances\": {\"0\": 10, \"2\": 21}},"
    "             {\"node\": 2, \"cores\": 1, \"cpus\": [1], \"memory_bytes\": 1,"
    "              \"distances\": {\"0\": 21, \"2\": 10}}],"
    " \"pci\": [{\"address\": \"0000:01:00.0\", \"kind\": \"gpu\", \"id\": \"1a03:2000\","
    "            \"node\": 0},"
    "           {\"address\": \"0000:3b:00.0\", \"kind\": \"gpu\", \"id\": \"10de:2235\","
    "            \"node\": 0},"
    "           {\"address\": \"0000:af:00.0\", \"kind\": \"gpu\", \"id\": \"10de:2235\","
    "            \"node\": 2}]}";

static struct lab_arena arena;
static char root[64];

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    snprintf(root, sizeof root, "/tmp/gpulab-test-studies-XXXXXX");
    setenv("XDG_STATE_HOME", "/nonexistent", 1); /* no study is known by its name */
    return mkdtemp(root) ? 0 : -1;
}

static const char *in_root(const char *name) {
    return lab_arena_printf(&arena, "%s/%s", root, name);
}

static int tear_down(void **state) {
    (void)state;
    static const char *const made[] = {"a/study.db", "a", "b/study.db", "b", "empty"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        remove(in_root(made[i]));
    rmdir(root);
    lab_arena_release(&arena);
    return 0;
}

#define assert_close(value, expected) assert_near(value, expected, 1e-9 * fabs((double)(expected)))

/* --- a study made by hand --- */

#define VIT                                                                                        \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 256, \"batch_size\": 5,"            \
    " \"tensor_shape\": [3, 224, 224], \"memory_size_mb\": 64}"

static struct lab_run planned(int number, const char *id, int repeat,
                              const struct lab_run_rank *rank) {
    return (struct lab_run){.id = id,
                            .identity = (uint64_t)number,
                            .position = number - 1,
                            .repeat = repeat,
                            .workload = "vit",
                            .label = "vit32x2x256",
                            .options = VIT,
                            .series = number == 2 ? "[\"depth\", \"baseline\"]" : "[\"depth\"]",
                            .test = number == 1 ? "{\"num_samples\": 20, \"phase\": \"mine\"}"
                                                : "{\"num_samples\": 20}",
                            .iterations = 4,
                            .ranks = rank,
                            .rank_count = 1};
}

/* Runs of two studies don't begin in the same nanosecond: each study has its own offset. */
static int64_t study_offset_ns;

static void finish(struct lab_store *store, int64_t epoch, int number, bool done, bool valid,
                   const char *more) {
    struct lab_err err = LAB_ERR_INIT;
    const char *result = lab_arena_printf(&arena,
                                          "{\"h2d_gb_per_s\": 12.5, \"ranks\": [{\"rate\": %d, "
                                          "\"interval_ms\": {\"median\": %d}%s}]}",
                                          100 * number, number, more);
    struct lab_run outcome = {.state = done ? LAB_RUN_DONE : LAB_RUN_FAILED,
                              .end_ns = (100 - number) * SECOND + SECOND / 2,
                              .error = done ? "" : "no",
                              .result = done ? result_from(result, &arena) : NULL,
                              .rate = done ? 100.0 * number : NAN,
                              .rate_low = NAN,
                              .rate_high = NAN,
                              .rate_unit = "samples/s",
                              .valid = valid};
    struct lab_iteration iterations[4];
    for (int i = 0; i < 4; i++)
        iterations[i] = (struct lab_iteration){.start_ns = i * INT64_C(1000),
                                               .end_ns = i * INT64_C(1000) + 500};
    /* what is planned first begins last */
    int64_t start_ns = (100 - number) * SECOND + study_offset_ns;
    if (lab_store_begin_run(store, number, epoch, start_ns, &err) < 0 ||
        lab_store_add_iterations(store, number, 0, 0, iterations, 4, &err) < 0 ||
        lab_store_finish_run(store, number, &outcome, &err) < 0)
        fail_msg("%s", err.text);
}

static void given_study(const char *name, bool valid) {
    static const struct lab_run_rank gpu1 = {1, "cuda:1", 0}, cpu2 = {0, "cpu:2/2.1", 2},
                                     sim = {0, "sim:l40s-10:0", 1};
    const struct lab_run runs[RUNS] = {
        planned(1, "gpu1_r0", 0, &gpu1),  planned(2, "cpu_r0", 0, &cpu2),
        planned(3, "gpu1b_r0", 0, &gpu1), planned(4, "gpu1b_r1", 1, &gpu1),
        planned(5, "sim_r0", 0, &sim),    planned(6, "failed", 0, &gpu1),
        planned(7, "open", 0, &gpu1),
    };
    const struct lab_store_study study = {.name = "numa_locality_study",
                                          .option = "numa_study",
                                          .config = "",
                                          .words = "[]",
                                          .machine = machine_json,
                                          .version = ""};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_store *store = NULL;
    int64_t epoch = 0;
    study_offset_ns = name[0] - 'a';
    mkdir(in_root(name), 0700);
    if (lab_store_create(lab_arena_printf(&arena, "%s/%s/study.db", root, name), &study, runs, RUNS,
                         &store, &err) < 0 ||
        lab_store_epoch(store, "runner", &epoch, &err) < 0)
        fail_msg("%s", err.text);
    for (int number = 1; number <= 5; number++)
        finish(store, epoch, number, true, valid && number != 2,
               number == 5   ? ", \"device_node\": 3, \"distance\": 32"
               : number == 4 ? ", \"device_uuid\": \"GPU-0b5c1f8e-4444\""
               : number == 3 ? ", \"device_uuid\": \"GPU-; ls\""
                             : "");
    finish(store, epoch, 6, false, false, "");
    lab_store_close(store);
}

static struct lab_study_table read_table(const char *name, unsigned needs) {
    struct lab_study_table table;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_studies_read_one(in_root(name), needs, &arena, &table, &err) < 0)
        fail_msg("%s", err.text);
    return table;
}

static const struct lab_study_run *run_called(const struct lab_study_table *table, const char *id) {
    for (int i = 0; i < table->run_count; i++)
        if (lab_str_equal(table->runs[i].run->id, id))
            return &table->runs[i];
    fail_msg("no run %s", id);
    return NULL;
}

/* --- reading --- */

LAB_TEST(runs_that_are_done_are_in_the_order_of_their_beginning) {
    given_study("a", true);
    struct lab_study_table table = read_table("a", 0);
    assert_string_equal(table.name, "numa_study");
    assert_string_equal(table.option, "numa_study");
    assert_int_equal(table.run_count, 5);
    assert_int_equal(table.planned_count, RUNS);
    assert_int_equal(table.failed_count, 1);
    assert_string_equal(table.runs[0].run->id, "sim_r0");
    assert_string_equal(table.runs[4].run->id, "gpu1_r0");
    assert_true(table.simulated);
    assert_true(table.repeated && table.repeats_planned);
    assert_null(table.runs[0].ranks[0].iterations);
}

LAB_TEST(a_run_has_what_was_asked_for_and_what_came_out) {
    given_study("a", true);
    struct lab_study_table table = read_table("a", LAB_STUDY_WITH_ITERATIONS);
    const struct lab_study_run *run = run_called(&table, "gpu1b_r1");
    assert_string_equal(run->point, "gpu1b");
    assert_string_equal(run->model, "vit32x2x256");
    assert_close(lab_study_number(run, "options.depth"), 2);
    assert_close(lab_study_number(run, "test.batch_size"), 5);
    assert_close(run->result->h2d_gb_per_s, 12.5);
    assert_close(run->rate, 400);
    assert_close(run->ranks[0].rate, 400);
    assert_close(run->time_s, 4e-3);
    assert_int_equal(run->ranks[0].iteration_count, 4);
    assert_int_equal(run->ranks[0].iterations[3].end_ns, 3500);
    assert_close(run->work.samples, 5);
    assert_close(run->work.h2d_bytes, 5 * 3 * 224 * 224 * 4);
    assert_true(run->work.flops > 1e8);
    assert_true(run->work.parameters > 1e6);
    assert_null(run->recording);
    assert_null(run->trace);
}

LAB_TEST(a_phase_is_a_key_or_a_series) {
    given_study("a", true);
    struct lab_study_table table = read_table("a", 0);
    assert_string_equal(run_called(&table, "gpu1_r0")->phase, "mine");
    assert_string_equal(run_called(&table, "cpu_r0")->phase, "baseline");
    assert_string_equal(run_called(&table, "gpu1b_r0")->phase, "");
}

LAB_TEST(devices_have_their_nodes_and_distances) {
    given_study("a", true);
    struct lab_study_table table = read_table("a", 0);
    assert_int_equal(table.machine->node_count, 2);
    const struct lab_study_rank *gpu = &run_called(&table, "gpu1_r0")->ranks[0];
    assert_int_equal(gpu->device_node, 2); /* the second of NVIDIA's: the first GPU is another's */
    assert_int_equal(gpu->distance, 21);
    const struct lab_study_rank *cpu = &run_called(&table, "cpu_r0")->ranks[0];
    assert_int_equal(cpu->device_node, 2);
    assert_int_equal(cpu->distance, 10);
    const struct lab_study_rank *sim = &run_called(&table, "sim_r0")->ranks[0];
    assert_int_equal(sim->device_node, 3);
    assert_int_equal(sim->distance, 32);
}

static const struct lab_study_rank *rank_of(const struct lab_study_table *table, const char *id) {
    return &run_called(table, id)->ranks[0];
}

LAB_TEST(gpus_are_called_as_others_know_them) {
    given_study("a", true);
    struct lab_study_table table = read_table("a", 0);
    assert_string_equal(rank_of(&table, "gpu1b_r1")->uuid, "GPU-0b5c1f8e-4444");
    assert_int_equal(rank_of(&table, "gpu1b_r1")->gpu, 1);
    assert_null(rank_of(&table, "gpu1_r0")->uuid);
    assert_null(rank_of(&table, "gpu1b_r0")->uuid); /* no UUID of a driver's */
    assert_int_equal(rank_of(&table, "sim_r0")->gpu, 0);
    assert_null(rank_of(&table, "sim_r0")->uuid);
    assert_int_equal(rank_of(&table, "cpu_r0")->gpu, -1);
}

/* CUDA_VISIBLE_DEVICES left the study one GPU, or another order: `cuda:1` is the first on the
 * bus. */
LAB_TEST(a_sampler_says_which_gpu_it_was) {
    given_study("a", true);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_store *store = NULL;
    struct lab_recorder *recorder = NULL;
    const struct lab_recorder_setup setup = {.interval_ns = SECOND, .note = ""};
    if (lab_store_open(in_root("a/study.db"), LAB_STORE_WRITE, &store, &err) < 0 ||
        lab_recorder_attach(store, &setup, &recorder, &err) < 0)
        fail_msg("%s", err.text);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    sink.entity(sink.state, 0,
                &(struct lab_entity){.kind = LAB_ENTITY_GPU,
                                     .index = 1,
                                     .id = "GPU-0b5c1f8e-5555",
                                     .name = "NVIDIA L40S",
                                     .pci = "0000:3b:00.0",
                                     .node = 0,
                                     .parent = -1,
                                     .columns = &(struct lab_column){LAB_METRIC_POWER, -1},
                                     .column_count = 1});
    for (int i = 0; i < 3; i++) /* in run 4's time, between the two, in run 3's */
        sink.tick(sink.state, &(struct lab_tick){.time_ns = 96 * SECOND + i * SECOND / 2 + 1,
                                                 .values = &(int64_t){1000 * i},
                                                 .valid = &(uint64_t){1}});
    if (lab_recorder_close(recorder, &err) < 0)
        fail_msg("%s", err.text);
    lab_store_close(store);
    struct lab_study_table table = read_table("a", 0);
    assert_string_equal(rank_of(&table, "gpu1_r0")->uuid, "GPU-0b5c1f8e-5555");
    assert_string_equal(rank_of(&table, "gpu1b_r1")->uuid, "GPU-0b5c1f8e-4444"); /* its own word */
    assert_int_equal(rank_of(&table, "gpu1_r0")->gpu, 0);
    /* samples are read once, and each run has its part of them */
    table = read_table("a", LAB_STUDY_WITH_SAMPLES);
    const struct lab_track *before = run_called(&table, "gpu1b_r1")->recording->tracks,
                           *after = run_called(&table, "gpu1b_r0")->recording->tracks;
    assert_int_equal(before->count, 1);
    assert_int_equal(after->count, 1);
    assert_ptr_equal(after->values[0], before->values[0] + 2);
    assert_null(run_called(&table, "cpu_r0")->recording);
}

LAB_TEST(runs_that_are_not_valid_count_only_where_none_is) {
    given_study("a", true);
    given_study("b", false);
    struct lab_study_table some = read_table("a", 0), none = read_table("b", 0);
    assert_int_equal(some.invalid_count, 1);
    assert_false(some.all_invalid);
    assert_false(run_called(&some, "cpu_r0")->used);
    assert_true(run_called(&some, "gpu1_r0")->used);
    assert_int_equal(none.invalid_count, 5);
    assert_true(none.all_invalid);
    assert_true(run_called(&none, "cpu_r0")->used);
}

LAB_TEST(a_machine_that_says_nothing_is_unknown) {
    assert_null(lab_machine_json_read("{}", &arena));
    assert_null(lab_machine_json_read("not JSON", &arena));
    assert_null(lab_machine_json_read("{\"nodes\": 3, \"pci\": {}}", &arena));
    const struct lab_machine *machine =
        lab_machine_json_read("{\"nodes\": [{}], \"pci\": [{\"node\": 99}]}", &arena);
    assert_int_equal(machine->pci[0].node, -1);
}

/* --- finding --- */

static int find(const char *first, const char *second, const char *const **ret_folders,
                struct lab_err *err) {
    const char *words[] = {first, second};
    int count = 0;
    return lab_studies_find(words, second ? 2 : 1, &arena, ret_folders, &count, err) < 0 ? -1
                                                                                         : count;
}

LAB_TEST(folders_files_and_folders_above_are_studies) {
    struct lab_err err = LAB_ERR_INIT;
    const char *const *folders;
    given_study("a", true);
    given_study("b", true);
    assert_int_equal(find(in_root("a"), NULL, &folders, &err), 1);
    assert_string_equal(folders[0], in_root("a"));
    assert_int_equal(find(in_root("b/"), in_root("b"), &folders, &err), 1);
    assert_int_equal(find(in_root("a/study.db"), in_root("b"), &folders, &err), 2);
    assert_int_equal(find(root, NULL, &folders, &err), 2);
    assert_string_equal(folders[1], in_root("b"));
    struct lab_study_table *tables;
    int count;
    assert_int_equal(lab_studies_read(folders, 2, 0, &arena, &tables, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_not_equal(tables[0].name, tables[1].name);
}

LAB_TEST(what_is_no_study_is_refused) {
    struct lab_err err = LAB_ERR_INIT;
    const char *const *folders;
    mkdir(in_root("empty"), 0700);
    assert_int_equal(find(in_root("empty"), NULL, &folders, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_non_null(strstr(err.text, "holds study.db"));
    assert_int_equal(find("no_such_study", NULL, &folders, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(find("/etc/passwd", NULL, &folders, &err), -1);
    assert_non_null(strstr(err.text, "belongs to no study"));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
