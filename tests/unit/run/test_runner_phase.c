/*
 * test_runner_phase.c: what a run of a phase is told beside its plan: CPUs of its own, and what runs
 * of other phases chose on the same device.
 */
#include "base/json.h"
#include "run/runner_internal.h"
#include "test.h"

#include <sqlite3.h>
#include <string.h>

/* --- CPUs --- */

/* Nodes 0 and 2 in turn, with five cores and four, two threads a core: core i has CPUs i, i + 10. */
static struct lab_machine make_machine(void) {
    static struct lab_node nodes[2] = {{.number = 0}, {.number = 2}};
    struct lab_core *cores = lab_arena_alloc(&test_arena, 9, sizeof *cores);
    for (int i = 0; i < 9; i++) {
        int *cpus = lab_arena_alloc(&test_arena, 2, sizeof *cpus);
        cpus[0] = i;
        cpus[1] = i + 10;
        cores[i] = (struct lab_core){.node = i % 2, .cpus = {cpus, 2}};
    }
    return (struct lab_machine){.cores = cores, .core_count = 9, .nodes = nodes, .node_count = 2};
}

/* Devices are nodes here: GPU i is on nodes[i]; 9 = a CPU device with CPUs 7 and 8. */
static const char *choose(const char *gpu_nodes, int index, unsigned mitigations, bool simulated) {
    static const int own[] = {7, 8};
    struct lab_machine machine = make_machine();
    struct lab_device_ref refs[4] = {0};
    struct lab_run_rank ranks[4] = {0};
    int count = (int)strlen(gpu_nodes);
    for (int i = 0; i < count; i++) {
        refs[i].node = gpu_nodes[i] == '?' ? -1 : gpu_nodes[i] - '0';
        if (gpu_nodes[i] == '9')
            refs[i].cpus = (struct lab_cpus){(int *)own, 2};
        ranks[i] = (struct lab_run_rank){.gpu_id = i, .device = "cuda:0"};
    }
    struct lab_plan plan = {.devices = {refs, count}};
    struct lab_runner_spec spec = {.plan = &plan, .machine = &machine};
    struct lab_plan_phase phase = {.name = "isolated", .mitigations = mitigations};
    struct lab_plan_run planned = {
        .phase = &phase, .workload = "null", .ranks = ranks, .rank_count = count};
    struct runner *runner = lab_arena_alloc(&test_arena, 1, sizeof *runner);
    struct lab_job_rank rank = {0};
    runner->spec = &spec;
    runner->simulated = simulated;
    ASSERT_OK(runner_phase_rank(runner, &planned, index, &test_arena, &rank, err));
    struct lab_str text;
    lab_str_init(&text);
    lab_cpus_write(&(struct lab_cpus){(int *)rank.cpus, rank.cpu_count}, &text);
    const char *copy = lab_arena_strdup(&test_arena, text.text);
    lab_str_release(&text);
    return copy;
}

LAB_TEST(gpus_share_the_cores_of_their_node) {
    static const struct {
        const char *gpu_nodes;
        int index;
        const char *cpus;
    } cases[] = {
        {"0", 0, "0-18:2"},          {"2", 0, "1-7:2,11-17:2"},
        {"02", 1, "1-7:2,11-17:2"},  {"00", 0, "0,2,10,12"},
        {"00", 1, "4,6,8,14,16,18"}, {"020", 2, "4,6,8,14,16,18"},
        {"2022", 0, "1,11"},         {"2022", 2, "3,13"},
        {"2022", 3, "5,7,15,17"},    {"?", 0, "0-8,10-18"}, /* an unknown node: all cores */
        {"??", 1, "4-8,14-18"},      {"9", 0, "7-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(choose(cases[i].gpu_nodes, cases[i].index, LAB_PLAN_AFFINITY, false),
                            cases[i].cpus);
    assert_string_equal(choose("0", 0, LAB_PLAN_AFFINITY, true), "none");
    assert_string_equal(choose("0", 0, 0, false), "none");
}

/* --- choices --- */

static const char *told(const struct lab_job_rank *rank) {
    const char *text = lab_arena_printf(&test_arena, "%s:", rank->config ? rank->config : "");
    for (int i = 0; i < rank->choice_count; i++)
        text = lab_arena_printf(&test_arena, "%s %s=%s", text, rank->choices[i].phase,
                                rank->choices[i].config);
    return text;
}

LAB_TEST(what_was_chosen_nearest_in_time_is_told) {
    static const struct {
        const char *phase, *label, *device, *config;
        int repeat;
    } done[] = {
        {"concurrent", "g", "cuda:0", "b1", 1},  {"baseline", "g", "cuda:0", "a0", 0},
        {"baseline", "g", "cuda:0", "a3", 3},    {"baseline", "g", "cuda:0", "a9", 9},
        {"baseline", "other", "cuda:0", "x", 2}, {"baseline", "g", "cuda:1", "c2", 2},
        {"isolated", "g", "cuda:0", NULL, 2},
    };
    enum { COUNT = sizeof done / sizeof *done };
    struct lab_run runs[COUNT + 1];
    struct lab_run_rank ranks[COUNT];
    struct lab_store *store;
    int64_t epoch;
    struct lab_store_study study = {
        .name = "s", .option = "s", .config = "", .words = "[]", .machine = "{}", .version = "0"};
    for (int i = 0; i < COUNT; i++) {
        ranks[i] = (struct lab_run_rank){0, done[i].device, 0};
        runs[i] = (struct lab_run){
            .id = lab_arena_printf(&test_arena, "r%d", i),
            .identity = (uint64_t)i + 1,
            .position = i,
            .workload = "gemm",
            .label = done[i].label,
            .options = "{}",
            .series = "[]",
            .test = lab_arena_printf(&test_arena, "{\"phase\": \"%s\"}", done[i].phase),
            .repeat = done[i].repeat,
            .ranks = &ranks[i],
            .rank_count = 1};
    }
    ASSERT_OK(lab_store_create(test_path("study.db"), &study, runs, COUNT, &store, err));
    ASSERT_OK(lab_store_epoch(store, "runner", &epoch, err));
    for (int i = 0; i < COUNT; i++) {
        struct lab_result rank = lab_result_none, result = lab_result_none;
        rank.tuning =
            done[i].config
                ? lab_arena_printf(&test_arena, "{\"best_config_text\": \"%s\"}", done[i].config)
                : NULL;
        result.ranks = &rank;
        result.rank_count = 1;
        struct lab_run outcome = {
            .state = LAB_RUN_DONE, .end_ns = 2, .error = "", .rate_unit = "", .result = &result};
        ASSERT_OK(lab_store_begin_run(store, i + 1, epoch, 1, err));
        ASSERT_OK(lab_store_finish_run(store, i + 1, &outcome, err));
    }
    struct lab_plan plan = {0};
    struct lab_runner_spec spec = {.plan = &plan, .store = store};
    struct runner *runner = lab_arena_alloc(&test_arena, 1, sizeof *runner);
    runner->spec = &spec;
    static const struct {
        bool regret;
        unsigned mitigations;
        const char *workload, *device, *told;
        int repeat;
    } cases[] = {
        {false, LAB_PLAN_TUNING_CACHE, "gemm", "cuda:0", "a0:", 0},
        {false, LAB_PLAN_TUNING_CACHE, "gemm", "cuda:0", "a0:", 1},
        {false, LAB_PLAN_TUNING_CACHE, "gemm", "cuda:0", "a3:", 2},
        {false, LAB_PLAN_TUNING_CACHE, "gemm", "cuda:1", "c2:", 5},
        {false, LAB_PLAN_TUNING_CACHE, "null", "cuda:0", ":", 0}, /* nothing of it is tuned */
        {false, 0, "gemm", "cuda:0", ":", 0},
        {true, 0, "gemm", "cuda:0", ": baseline=a3 concurrent=b1", 5},
        {true, 0, "gemm", "cuda:2", NULL, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_plan_phase phase = {
            .name = "p", .regret = cases[i].regret, .mitigations = cases[i].mitigations};
        struct lab_plan_run planned = {.phase = &phase,
                                       .workload = cases[i].workload,
                                       .label = "g",
                                       .repeat = cases[i].repeat};
        struct lab_job_rank rank = {.device = cases[i].device};
        struct lab_err err = LAB_ERR_INIT;
        int result = runner_phase_rank(runner, &planned, 0, &test_arena, &rank, &err);
        assert_int_equal(result, cases[i].told ? 0 : -1);
        assert_string_equal(cases[i].told ? told(&rank) : err.text,
                            cases[i].told
                                ? cases[i].told
                                : "the choice on the idle device is unknown: no run of phase "
                                  "baseline has tuned g on cuda:2");
    }
    /* a store that can't be read is no unknown choice */
    sqlite3 *db;
    struct lab_plan_phase phase = {.name = "p", .regret = true};
    struct lab_plan_run planned = {.phase = &phase, .workload = "gemm", .label = "g"};
    struct lab_job_rank rank = {.device = "cuda:0"};
    assert_int_equal(sqlite3_open(test_path("study.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "ALTER TABLE run RENAME TO x", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ASSERT_FAILS(runner_phase_rank(runner, &planned, 0, &test_arena, &rank, err), LAB_ERR_NONE,
                 "no such table: run");
    lab_store_close(store);
}
