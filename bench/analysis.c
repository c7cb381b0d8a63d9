/*
 * analysis.c: makes the data that bench/analysis times analyses over, and times the bootstrap
 * itself.
 *
 *     bench_analysis FOLDER       writes FOLDER/study.db, prints `name value` lines
 *
 * The study has 48 runs as numa_study's: four GPUs, two nodes, six models. Each has 20,834
 * iterations of 10 ms with noise, 1,000,032 in all, while four GPUs were sampled at 10 Hz, 25
 * metrics each: 10 million values. Figures are made up; only their number matters here.
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/str.h"
#include "model/result.h"
#include "stats/stats.h"
#include "store/recording/recording.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>

enum { RUNS = 48, GPUS = 4, NODES = 2, MODELS = 6, ITERATIONS = 20834, METRICS = 25 };

#define TICK_NS      (100 * LAB_NS_PER_MS)
#define ITERATION_NS (10 * LAB_NS_PER_MS)
#define RUN_NS       (ITERATIONS * ITERATION_NS)

static const char machine[] =
    "{\"host\": \"bench\", \"cpu_model\": \"made up\", \"packages\": 2, \"numa_in_kernel\": true,"
    " \"nodes\": [{\"node\": 0, \"cores\": 1, \"cpus\": [0], \"memory_bytes\": 1,"
    " \"distances\": {\"0\": 10, \"1\": 21}}, {\"node\": 1, \"cores\": 1, \"cpus\": [1],"
    " \"memory_bytes\": 1, \"distances\": {\"0\": 21, \"1\": 10}}], \"pci\": []}";

static uint64_t drawn;

/* Uniform, mean 0, from -0.5 to 0.5. */
static double noise(void) {
    return lab_random_uniform(7, drawn++) - 0.5;
}

/* --- runs --- */

struct study {
    struct lab_store *store;
    int64_t epoch, start_ns;
    struct lab_arena arena;
};

static void plan(struct study *study, struct lab_run *runs) {
    static const int depths[MODELS] = {0, 2, 4, 6, 8, 12};
    static const int dims[MODELS] = {64, 128, 256, 512, 768, 1024};
    struct lab_arena *arena = &study->arena;
    for (int i = 0; i < RUNS; i++) {
        int gpu = i % GPUS, node = i / GPUS % NODES, model = i / GPUS / NODES;
        struct lab_run_rank *rank = lab_arena_alloc(arena, 1, sizeof *rank);
        *rank = (struct lab_run_rank){gpu, lab_arena_printf(arena, "cuda:%d", gpu), node};
        const char *label = lab_arena_printf(arena, "vit32x%dx%d", depths[model], dims[model]);
        runs[i] = (struct lab_run){
            .id = lab_arena_printf(arena, "gpu%d_numa%d_%s", gpu, node, label),
            .identity = (uint64_t)i,
            .position = i,
            .workload = "vit",
            .label = label,
            .options = lab_arena_printf(arena,
                                        "{\"patch_size\": 32, \"depth\": %d, \"heads\": 8, "
                                        "\"dim\": %d, \"batch_size\": 10, \"tensor_shape\": [3, "
                                        "224, 224], \"memory_size_mb\": 64}",
                                        depths[model], dims[model]),
            .series = "[]",
            .test = "{\"num_samples\": 208340}",
            .iterations = ITERATIONS,
            .ranks = rank,
            .rank_count = 1};
    }
}

static void fill_iterations(struct lab_iteration *items, int64_t from_ns) {
    for (int i = 0; i < ITERATIONS; i++) {
        int64_t start_ns = from_ns + i * ITERATION_NS + llround(1e5 * noise());
        items[i] = (struct lab_iteration){
            .start_ns = start_ns,
            .end_ns = start_ns + 9 * LAB_NS_PER_MS + llround(1e5 * noise()),
            .stages = {{start_ns, start_ns + LAB_NS_PER_MS},
                       {start_ns + LAB_NS_PER_MS, start_ns + 8 * LAB_NS_PER_MS},
                       {start_ns + 8 * LAB_NS_PER_MS, start_ns + 9 * LAB_NS_PER_MS}}};
    }
}

static int add_run(struct study *study, int number, struct lab_err *err) {
    static struct lab_iteration items[ITERATIONS];
    int64_t from_ns = study->start_ns + (number - 1) * RUN_NS;
    struct lab_result rank = lab_result_none, result = lab_result_none;
    rank.rate = 1000;
    rank.interval_ms_median = 10;
    rank.device_node = 0;
    result.h2d_gb_per_s = result.d2h_gb_per_s = 12.5;
    result.ranks = &rank;
    result.rank_count = 1;
    const struct lab_run outcome = {.state = LAB_RUN_DONE,
                                    .end_ns = from_ns + RUN_NS,
                                    .error = "",
                                    .result = &result,
                                    .rate = 1000,
                                    .rate_low = 999,
                                    .rate_high = 1001,
                                    .rate_unit = "samples/s",
                                    .valid = true};
    fill_iterations(items, from_ns);
    return lab_store_begin_run(study->store, number, study->epoch, from_ns, err) < 0 ||
                   lab_store_add_iterations(study->store, number, 0, 0, items, ITERATIONS, err) <
                       0 ||
                   lab_store_finish_run(study->store, number, &outcome, err) < 0
               ? -1
               : 0;
}

/* --- samples --- */

static int add_samples(struct study *study, int64_t *ret_values, struct lab_err *err) {
    int64_t now_ns = study->start_ns, valid_values[METRICS];
    struct lab_clock clock = lab_clock_manual(&now_ns);
    struct lab_column columns[METRICS];
    struct lab_recorder *recorder;
    const struct lab_recorder_setup setup = {.interval_ns = TICK_NS,
                                             .note = "bench/analysis",
                                             .clock = &clock,
                                             .flush_ns = 60 * LAB_NS_PER_S};
    if (lab_recorder_attach(study->store, &setup, &recorder, err) < 0)
        return -1;
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    for (int c = 0; c < METRICS; c++)
        columns[c] = (struct lab_column){(int16_t)c, -1};
    for (int g = 0; g < GPUS; g++) {
        char id[16];
        snprintf(id, sizeof id, "GPU-%d", g);
        const struct lab_entity gpu = {.kind = LAB_ENTITY_GPU,
                                       .index = g,
                                       .id = id,
                                       .name = "a made-up GPU",
                                       .pci = "",
                                       .node = g / 2,
                                       .parent = -1,
                                       .columns = columns,
                                       .column_count = METRICS};
        sink.entity(sink.state, g, &gpu);
    }
    uint64_t valid = (UINT64_C(1) << METRICS) - 1;
    int64_t until_ns = study->start_ns + RUNS * RUN_NS;
    int result = 0;
    *ret_values = 0;
    for (; now_ns < until_ns && result == 0; now_ns += TICK_NS) {
        for (int g = 0; g < GPUS; g++) {
            for (int c = 0; c < METRICS; c++)
                valid_values[c] = llround(1000 + 200 * noise());
            sink.tick(sink.state,
                      &(struct lab_tick){
                          .entity = g, .time_ns = now_ns, .values = valid_values, .valid = &valid});
            *ret_values += METRICS;
        }
        result = lab_recorder_flush(recorder, false, err);
    }
    return lab_recorder_close(recorder, err) < 0 ? -1 : result;
}

static int make_study(const char *folder, struct lab_err *err) {
    struct study study = {.start_ns = lab_clock_now(lab_clock_system())};
    struct lab_run runs[RUNS];
    int64_t values = 0;
    lab_arena_init(&study.arena);
    plan(&study, runs);
    const struct lab_store_study about = {.name = "numa_locality_study",
                                          .option = "numa_study",
                                          .config = "",
                                          .words = "[]",
                                          .machine = machine,
                                          .version = ""};
    int result = lab_store_create(lab_arena_printf(&study.arena, "%s/study.db", folder), &about,
                                  runs, RUNS, &study.store, err) < 0 ||
                         lab_store_epoch(study.store, "runner", &study.epoch, err) < 0
                     ? -1
                     : 0;
    for (int number = 1; number <= RUNS && result == 0; number++)
        result = add_run(&study, number, err);
    if (result == 0)
        result = add_samples(&study, &values, err);
    printf("iterations %d\nvalues %lld\n", RUNS * ITERATIONS, (long long)values);
    lab_store_close(study.store);
    lab_arena_release(&study.arena);
    return result;
}

int main(int argc, char **argv) {
    struct lab_err err = LAB_ERR_INIT;
    if (argc != 2) {
        fprintf(stderr, "bench_analysis FOLDER\n");
        return 2;
    }
    if (make_study(argv[1], &err) < 0) {
        fprintf(stderr, "bench_analysis: %s\n", err.text);
        return 1;
    }
    return 0;
}
