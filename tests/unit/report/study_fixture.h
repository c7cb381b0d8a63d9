/*
 * study_fixture.h: studies as records, for the tests of their reports.
 */
#pragma once

#include "report/study/study.h"
#include "unit/result_fixture.h"

#include <math.h>
#include <string.h>

#include "golden.h"

#define FIXTURE_WALL_NS 1794739323000000000LL /* 2026-11-15 10:42:03 UTC */
#define SECOND_NS       1000000000LL

/* A study whose runs are put in one by one. Names of devices, nodes and labels come from the caller
 * and live as long as the arena. */
struct fixture {
    struct lab_arena arena;
    struct lab_study_info study;
    struct lab_run *runs;
    int64_t wall_ns; /* when the next one starts */
};

static inline void fixture_init(struct fixture *f, const char *name, const char *option) {
    *f = (struct fixture){.wall_ns = FIXTURE_WALL_NS};
    lab_arena_init(&f->arena);
    f->study = (struct lab_study_info){
        .name = name,
        .option = option,
        .folder = lab_arena_printf(&f->arena, "outputs/%s/2026-11-15/10-42-03", name),
        .command = lab_arena_printf(&f->arena, "gpulab run %s", option),
        .machine = "node7: 2 × AMD EPYC 7713, 128 cores, 4 NUMA nodes, 503 GiB memory",
        .version = "0.3.0",
        .created_wall_ns = FIXTURE_WALL_NS,
        .seed = 42,
        .seed_known = true,
        .holder = "",
        .left_s = NAN,
    };
}

static inline void fixture_release(struct fixture *f) {
    lab_mem_free(f->runs);
    lab_arena_release(&f->arena);
}

/* A planned run of so many ranks: devices from `gpu` on, all fed by `node`. */
static inline struct lab_run *fixture_plan(struct fixture *f, int gpu, int rank_count, int node,
                                           const char *label) {
    struct lab_run_rank *ranks = lab_arena_alloc(&f->arena, (size_t)rank_count, sizeof *ranks);
    struct lab_str id;
    lab_str_init(&id);
    for (int i = 0; i < rank_count; i++) {
        ranks[i] =
            (struct lab_run_rank){gpu + i, lab_arena_printf(&f->arena, "cpu:%d", gpu + i), node};
        lab_str_printf(&id, "%s%d", i ? "+" : "gpu", gpu + i);
    }
    lab_str_printf(&id, "_numa%d_%s", node, label);
    int position = f->study.run_count;
    LAB_PUSH(f->runs, f->study.run_count) = (struct lab_run){0};
    f->study.runs = f->runs;
    f->study.point_count = f->study.run_count;
    f->runs[position] = (struct lab_run){
        .number = position + 1,
        .id = lab_arena_strdup(&f->arena, id.text),
        .identity = (uint64_t)position,
        .position = position,
        .workload = "vit",
        .label = label,
        .options = "{\"batch_size\": 10, \"depth\": 6, \"memory_size_mb\": 512}",
        .series = "[]",
        .test = "{}",
        .iterations = 100,
        .warmup_iterations = 10,
        .ranks = ranks,
        .rank_count = rank_count,
        .error = "",
        .rate = NAN,
        .rate_low = NAN,
        .rate_high = NAN,
        .rate_unit = "",
    };
    lab_str_release(&id);
    return &f->runs[position];
}

static inline void fixture_begin(struct fixture *f, struct lab_run *run) {
    run->state = LAB_RUN_RUNNING;
    run->attempts = 1;
    run->epoch = 1;
    run->start_ns = f->wall_ns - FIXTURE_WALL_NS + SECOND_NS;
    run->start_wall_ns = f->wall_ns;
}

static inline void fixture_end(struct fixture *f, struct lab_run *run, double took_s) {
    int64_t took_ns = isfinite(took_s) ? (int64_t)(1e9 * took_s) : 0;
    run->end_ns = run->start_ns + took_ns;
    f->wall_ns += took_ns;
}

/* Lists of sentences as JSON: "" or "\"one\", \"two\"". */
static inline void fixture_done(struct fixture *f, struct lab_run *run, double rate,
                                const char *warnings, const char *invalid) {
    fixture_begin(f, run);
    run->state = LAB_RUN_DONE;
    run->rate = rate;
    run->rate_low = 0.992 * rate;
    run->rate_high = 1.005 * rate;
    run->rate_unit = "samples/s";
    run->valid = !*invalid;
    const char *json = lab_arena_printf(
        &f->arena,
        "{\"device\": \"%s\", \"numa_node\": %d, \"rate\": %.17g, \"latency_ms\": {\"mean\": "
        "%.17g, "
        "\"p90\": 0.5, \"p95\": %.17g}, \"steady\": true, \"verification\": {\"text\": \"a "
        "\\\"quoted\\\" } word\", \"warnings\": [\"not this one\"]}, \"gang_overlap\": %s, "
        "\"ranks\": "
        "[{\"warnings\": [\"nor this one\"]}], \"valid\": %s, \"invalid\": [%s], \"warnings\": "
        "[%s]}",
        run->ranks[0].device, run->ranks[0].numa_node, rate, 5e3 / rate, 5.2e3 / rate,
        run->rank_count > 1 ? "0.987" : "null", run->valid ? "true" : "false", invalid, warnings);
    run->result = result_from(json, &f->arena);
    fixture_end(f, run, 1 + 200 / rate);
}

static inline void fixture_failed(struct fixture *f, struct lab_run *run, const char *error,
                                  enum lab_hint_id hint, double took_s) {
    fixture_begin(f, run);
    run->state = LAB_RUN_FAILED;
    run->exit_code = 1;
    run->error = error;
    run->hint = hint;
    fixture_end(f, run, took_s);
}

/* --- the studies --- */

static inline void fixture_quick(struct fixture *f) {
    fixture_init(f, "quick_test", "quick_test");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit32x4x512"), 12.4, "", "");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit0x0x0"), 3104, "", "");
    fixture_done(
        f, fixture_plan(f, 0, 1, 0, "vit32x2x256"), 124.3,
        "\"other processes took 12.0% of the machine's CPU time during the run; try again on a "
        "quiet machine\"",
        "");
}

static const char *const fixture_vits[] = {"vit0x0x0",    "vit32x2x128", "vit32x4x256",
                                           "vit32x6x512", "vit16x8x768", "vit16x12x1024"};

/* 4 devices × 2 nodes × 6 models, in an order of its own: the first `ended` of them have ended. */
static inline void fixture_numa(struct fixture *f, int ended) {
    static const double rates[] = {5210, 1310, 402, 88.1, 21.7, 6.04};
    fixture_init(f, "numa_locality_study", "numa_study");
    for (int i = 0; i < 48; i++) {
        int at = i * 19 % 48, gpu = at / 12, node = at / 6 % 2 * 2, vit = at % 6;
        struct lab_run *run = fixture_plan(f, gpu, 1, node, fixture_vits[vit]);
        if (i >= ended)
            continue;
        if (i == 5)
            fixture_failed(f, run,
                           "device memory of cpu:3: node 3 has 1.00 GiB free, 2.31 GiB asked for",
                           LAB_HINT_OUT_OF_DEVICE_MEMORY, 3.2);
        else if (i == 17)
            fixture_failed(f, run, "timed out after 600 s in phase measuring",
                           LAB_HINT_TIMEOUT_MEASURING, 600);
        else
            fixture_done(f, run, rates[vit] * (gpu / 2 == node / 2 ? 1 : 0.9) * (1 + 0.001 * gpu),
                         i % 5 ? ""
                               : lab_arena_printf(&f->arena,
                                                  "\"other processes took %d.3%% of the machine's "
                                                  "CPU time during the run; try again on a quiet "
                                                  "machine\"",
                                                  6 + i),
                         "");
    }
}

static inline void fixture_numa_running(struct fixture *f) {
    fixture_numa(f, 24);
    f->runs[17].attempts = 2;
    struct lab_run *run = &f->runs[24];
    fixture_begin(f, run);
    struct lab_run_progress *progress = lab_arena_alloc(&f->arena, 1, sizeof *progress);
    *progress = (struct lab_run_progress){.run = run->number,
                                          .phase = "measuring",
                                          .done = 40,
                                          .total = 100,
                                          .time_ns = run->start_ns + 20 * SECOND_NS};
    f->study.progress = progress;
    f->study.progress_count = 1;
    f->study.running = true;
    f->study.holder = "process 4711 on node7 (gpulab run numa_study, since 10:42:03)";
    f->study.left_s = 731;
    f->study.left_unknown = 3;
}

static inline void fixture_interrupted(struct fixture *f) {
    fixture_numa(f, 4);
    fixture_begin(f, &f->runs[4]);
    f->study.left_s = 1530;
}

static inline void fixture_gangs(struct fixture *f) {
    fixture_init(f, "throughput_study", "throughput_study");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit32x4x256"), 402, "", "");
    fixture_done(f, fixture_plan(f, 0, 2, 0, "vit32x4x256"), 777, "", "");
    fixture_done(f, fixture_plan(f, 0, 4, 0, "vit32x4x256"), 1402, "", "");
    struct lab_run_rank *ranks = lab_arena_alloc(&f->arena, 2, sizeof *ranks);
    ranks[0] = (struct lab_run_rank){0, "cpu:0/2.0", 0};
    ranks[1] = (struct lab_run_rank){2, "cpu:2/2.1", 2};
    struct lab_run *run = fixture_plan(f, 0, 2, 2, "vit32x4x256");
    run->id = "gpu0+2_numa0+2_vit32x4x256";
    run->ranks = ranks;
    fixture_done(f, run, 795,
                 "\"rank 1 began 12 ms after rank 0\", \"rank 1 began 12 ms after rank 0\"", "");
}

static inline void fixture_invalid(struct fixture *f) {
    fixture_init(f, "quick_test", "quick_test");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit0x0x0"), 9999, "",
                 "\"memory is not on NUMA node 0: of 1024 pages 512 on node 0, 512 on node 1\"");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit32x2x256"), 124.3, "", "");
    fixture_done(f, fixture_plan(f, 0, 1, 0, "vit32x4x512"), 12.4, "",
                 "\"memory is not on NUMA node 0: of 2048 pages 2047 on node 0, 1 on node 1\"");
}

static inline void fixture_concurrent(struct fixture *f) {
    fixture_quick(f);
    for (int i = 0; i < f->study.run_count; i++)
        f->runs[i].concurrent = i != 1;
}

/* With half a minute of cool-down between runs. */
static inline void fixture_simulated(struct fixture *f) {
    fixture_quick(f);
    for (int i = 0; i < f->study.run_count; i++)
        f->runs[i].start_wall_ns += i * INT64_C(30000000000);
    f->study.simulated = true;
    f->study.machine = "sim:dgx-h100";
}

/* Three models, each done three times; one of them failed once, one was invalid once. */
static inline void fixture_repeats(struct fixture *f) {
    static const double rates[] = {3104, 124.3, 12.4};
    static const char *const labels[] = {"vit0x0x0", "vit32x2x256", "vit32x4x512"};
    fixture_init(f, "quick_test", "quick_test");
    for (int repeat = 0; repeat < 3; repeat++)
        for (int i = 0; i < 3; i++) {
            struct lab_run *run = fixture_plan(f, 0, 1, 0, labels[i]);
            run->repeat = repeat;
            run->id = lab_arena_printf(&f->arena, "%s_r%d", run->id, repeat);
            if (i == 1 && repeat == 2)
                fixture_failed(f, run, "the worker was ended by signal 9", LAB_HINT_WORKER_KILLED,
                               2);
            else
                fixture_done(f, run, rates[i] * (1 + 0.02 * repeat), "",
                             i == 2 && repeat == 0 ? "\"3 pages moved\"" : "");
        }
    f->study.point_count = 3;
}

/* --- texts --- */

/* A program of the user's own over a matrix: each run is one thing done once, and says
 * something. */
static inline void fixture_programs(struct fixture *f) {
    static const char *const labels[] = {"optimizeradam", "optimizeradamw", "optimizersgd"};
    fixture_init(f, "test_matrix", "test_matrix");
    for (int i = 0; i < 3; i++) {
        struct lab_run *run = fixture_plan(f, 0, 1, 0, labels[i]);
        run->workload = "command";
        run->options =
            lab_arena_printf(&f->arena, "{\"matrix\": {\"max_iters\": 500, \"optimizer\": \"%s\"}}",
                             labels[i] + strlen("optimizer"));
        run->iterations = 1;
        run->warmup_iterations = 0;
        fixture_done(f, run, 0.25 - 0.05 * i, "", "");
        run->rate_low = run->rate_high = NAN;
        run->rate_unit = "iterations/s";
    }
    struct lab_study_info_metric *metrics = lab_arena_alloc(&f->arena, 6, sizeof *metrics);
    metrics[0] = (struct lab_study_info_metric){f->runs[0].id, "loss", "", 0, 2.3619};
    metrics[1] = (struct lab_study_info_metric){f->runs[0].id, "tokens_per_s", "1/s", 0, 120000};
    metrics[2] = (struct lab_study_info_metric){f->runs[1].id, "loss", "", 0, 0.0625};
    metrics[3] = (struct lab_study_info_metric){f->runs[1].id, "loss", "", 1, 0.125};
    metrics[4] = (struct lab_study_info_metric){f->runs[2].id,
                                                "a_name|that_takes_more_room_than_a_"
                                                "terminal_has_for_it_beside_the_others",
                                                "", -1, 1e9};
    f->study.metrics = metrics;
    f->study.metric_count = 5;
}

/* The second of these programs, under way: it has reported a loss that falls, and its rate. */
static inline void fixture_program_running(struct fixture *f) {
    fixture_programs(f);
    struct lab_program *program = lab_arena_alloc(&f->arena, 1, sizeof *program);
    struct lab_metric_curves curves = {.arena = &f->arena};
    lab_metric_curves_get(&curves, "val_loss", "", 0);
    lab_metric_curves_get(&curves, "tokens_per_s", "tokens/s", 0);
    lab_metric_curves_get(&curves, "lr", "", 0);
    for (int i = 0; i <= 40; i++) {
        lab_curve_add(&curves.items[0].curve, 25 * i, i, 0.5 + 2.5 / (1 + i), &f->arena);
        lab_curve_add(&curves.items[1].curve, 25 * i, i, 120000 + 500 * (i % 3), &f->arena);
        lab_curve_add(&curves.items[2].curve, NAN, i, 0.01, &f->arena);
    }
    *program = (struct lab_program){.study = "test_matrix",
                                    .name = "adamw",
                                    .run = f->runs[1].number,
                                    .step = 1000,
                                    .metrics = curves.items,
                                    .metric_count = curves.count};
    f->runs[1].state = LAB_RUN_RUNNING;
    f->study.running = true;
    f->study.holder = "process 4711 on node7";
    f->study.programs = program;
    f->study.program_count = 1;
}

/* Every line of it fits. */
static inline void assert_fits(const char *text, int columns) {
    struct lab_str line;
    lab_str_init(&line);
    while (*text) {
        size_t length = strcspn(text, "\n");
        lab_str_clear(&line);
        lab_str_add_bytes(&line, text, length);
        if (lab_str_columns(line.text) > columns)
            fail_msg("%d columns, but: %s", columns, line.text);
        text += length + (text[length] == '\n');
    }
    lab_str_release(&line);
}

static inline void assert_ascii(const char *text) {
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c >= 0x80)
            fail_msg("not ASCII: %s", c);
}

static inline int fixture_setup(void **state) {
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}
