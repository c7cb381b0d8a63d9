/* test_runner_worker.c: runner and worker together: a real plan on this machine's CPUs, really
 * run. */
#include "base/json.h"
#include "plan/plan.h"
#include "run/frame.h"
#include "run/runner.h"
#include "worker/worker.h"

#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 16

static const char *const worker_argv[] = {"/proc/self/exe", LAB_WORKER_COMMAND, NULL};
static struct lab_arena arena;
static struct lab_err err;
static struct lab_machine *machine;
static struct lab_plan plan;
static struct lab_store *store;
static struct lab_run *runs;
static char folder[64];

#define assert_works(call) assert_string_equal((call) < 0 ? err.text : "", "")

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    snprintf(folder, sizeof folder, "/tmp/gpulab-test-study-XXXXXX");
    return mkdtemp(folder) && lab_machine_open(NULL, &machine, &err) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    lab_store_close(store);
    lab_machine_close(machine);
    for (int i = 0; i < plan.run_count; i++) {
        unlink(lab_arena_printf(&arena, "%s/logs/%s.stdout", folder, plan.runs[i].id));
        unlink(lab_arena_printf(&arena, "%s/logs/%s.stderr", folder, plan.runs[i].id));
    }
    rmdir(lab_arena_printf(&arena, "%s/logs", folder));
    unlink(lab_arena_printf(&arena, "%s/study.db", folder));
    rmdir(folder);
    lab_arena_release(&arena);
    return 0;
}

static void make_plan(const char *const *texts) {
    static const struct lab_config_path built_in;
    struct lab_override words[WORDS_MAX];
    struct lab_sweep sweep;
    int count = 0;
    for (; texts[count]; count++)
        assert_works(lab_override_parse(texts[count], &arena, &words[count], &err));
    assert_works(lab_sweep_init(&built_in, words, count, false, &arena, &sweep, &err));
    assert_works(lab_plan_make(machine, &built_in, &sweep, &arena, &plan, &err));
}

static void make_store(void) {
    struct lab_run *records = lab_arena_alloc(&arena, (size_t)plan.run_count, sizeof *records);
    struct lab_store_study study = {.name = plan.study,
                                    .option = plan.option,
                                    .config = "",
                                    .words = "[]",
                                    .machine = "{}",
                                    .version = "0"};
    for (int i = 0; i < plan.run_count; i++) {
        const struct lab_plan_run *run = &plan.runs[i];
        records[i] = (struct lab_run){.id = run->id,
                                      .identity = run->identity,
                                      .position = i,
                                      .workload = run->workload,
                                      .label = run->label,
                                      .options = "{}",
                                      .series = "[]",
                                      .test = "{}",
                                      .iterations = run->iterations,
                                      .ranks = run->ranks,
                                      .rank_count = run->rank_count};
    }
    assert_works(lab_store_create(lab_arena_printf(&arena, "%s/study.db", folder), &study, records,
                                  plan.run_count, &store, &err));
}

/* Plans, runs all of it and expects it to be done. */
static void run_study(const char *const *texts) {
    make_plan(texts);
    make_store();
    struct lab_runner_item *items = lab_arena_alloc(&arena, (size_t)plan.run_count, sizeof *items);
    for (int i = 0; i < plan.run_count; i++)
        items[i] = (struct lab_runner_item){&plan.runs[i], i + 1};
    struct lab_runner_spec spec = {.plan = &plan,
                                   .machine = machine,
                                   .store = store,
                                   .items = items,
                                   .item_count = plan.run_count,
                                   .folder = folder,
                                   .worker_argv = worker_argv};
    struct lab_runner_outcome outcome;
    int count = 0;
    assert_works(lab_store_epoch(store, "runner", &spec.epoch, &err));
    assert_works(lab_runner_run(&spec, &outcome, &err));
    assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
    for (int i = 0; i < count; i++)
        assert_string_equal(runs[i].error, "");
    assert_int_equal(outcome.done, plan.run_count);
}

static size_t count_iterations(int64_t run, int rank) {
    struct lab_iteration *items = NULL;
    size_t count = 0;
    assert_works(lab_store_iterations(store, run, rank, &arena, &items, &count, &err));
    return count;
}

LAB_TEST(models_on_one_device) {
    run_study((const char *const[]){
        "experiment=quick_test", "device=cpu", "experiment.test.num_samples=20",
        "experiment.test.warmup_samples=5", "experiment.test.memory_size_mb=8",
        "experiment.vit_configs=[{patch_size:32,depth:1,heads:2,dim:64},{depth:0}]", NULL});
    assert_int_equal(plan.run_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(runs[i].state, LAB_RUN_DONE);
        assert_int_equal(runs[i].exit_code, 0);
        assert_true(runs[i].rate > 0);
        assert_string_equal(runs[i].rate_unit, "samples/s");
        assert_int_equal(count_iterations(runs[i].number, 0), 4);
    }
}

static void a_gang(const char *processes) {
    if (machine->nodes[0].core_count < 2)
        skip();
    run_study((const char *const[]){
        "experiment=quick_test", "device=cpu:0/2", "experiment.hardware.gpu_ids=[[0,1]]",
        "experiment.test.num_samples=20", "experiment.test.warmup_samples=5",
        "experiment.test.memory_size_mb=8", "experiment.vit_configs=[{depth:0}]", processes, NULL});
    assert_int_equal(plan.run_count, 1);
    assert_false(isnan(runs[0].result->gang_overlap));
    assert_int_equal(runs[0].result->rank_count, 2);
    for (int rank = 0; rank < 2; rank++)
        assert_int_equal(count_iterations(1, rank), 4);
}

LAB_TEST(a_gang_of_processes) {
    a_gang("experiment.processes=per_rank");
}

LAB_TEST(a_gang_of_threads) {
    a_gang("experiment.processes=shared");
}

static int begin(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], LAB_WORKER_COMMAND) == 0)
        return lab_worker_run(LAB_WORKER_FD, NULL) == 0 ? 0 : 1;
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
