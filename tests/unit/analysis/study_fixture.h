/*
 * study_fixture.h: studies made by hand for tests of analyses. A test says what a run was asked for
 * and how fast it was; iterations, where it wants any, follow from that with a seeded spread.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "compose/config.h"
#include "unit/result_fixture.h"

#include <math.h>
#include <string.h>

#define GIVEN_RUNS_MAX 4096

struct given_study {
    struct lab_arena arena;
    struct lab_study_table table;
    uint64_t random; /* how many numbers were drawn */
    int64_t time_ns; /* when the next run begins */
};

struct given_run {
    const char *model;   /* "vit32x2x128" */
    int gpu, node, home; /* device, node that feeds it, node that it sits on */
    int repeat;
    double rate;                         /* samples a second, exactly */
    double samples;                      /* of an iteration; 0 = 10 */
    double flops, bytes;                 /* of an iteration; bytes each way */
    const char *suffix;                  /* of the run's id: "_compiled"; NULL = none */
    const char *phase;                   /* NULL = "" */
    const char *options, *test, *result; /* JSON maps; NULL = empty */
    int iterations;                      /* 0 = none are kept */
    double spread;                       /* of an iteration's time, as a share */
    double memory_bytes, parameters;     /* of the model on the device */
};

static inline double given_normal(struct given_study *given) {
    double u = lab_random_uniform(1, given->random++), v = lab_random_uniform(1, given->random++);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static inline void given_begin(struct given_study *given, const char *name) {
    memset(given, 0, sizeof *given);
    lab_arena_init(&given->arena);
    given->time_ns = 1000000000;
    given->table = (struct lab_study_table){
        .name = name,
        .folder = "outputs/given",
        .option = name,
        .study_for = lab_config_study_for,
        .runs = lab_arena_alloc(&given->arena, GIVEN_RUNS_MAX, sizeof *given->table.runs)};
}

static inline void given_end(struct given_study *given) {
    lab_arena_release(&given->arena);
}

static inline const struct lab_value *given_json(struct given_study *given, const char *text) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *value = NULL;
    if (lab_json_parse(text ? text : "{}", text ? strlen(text) : 2, "given", &given->arena, &value,
                       &err) < 0)
        return lab_value_map(&given->arena);
    return value;
}

static inline struct lab_study_run *given_add(struct given_study *given, struct given_run row) {
    struct lab_arena *arena = &given->arena;
    struct lab_study_run *made = &given->table.runs[given->table.run_count++];
    struct lab_run *run = lab_arena_alloc(arena, 1, sizeof *run);
    struct lab_run_rank *planned = lab_arena_alloc(arena, 1, sizeof *planned);
    double samples = row.samples > 0 ? row.samples : 10, time_s = samples / row.rate;
    const char *device = lab_arena_printf(arena, "cuda:%d", row.gpu);
    *planned = (struct lab_run_rank){row.gpu, device, row.node};
    const char *point = lab_arena_printf(arena, "gpu%d_numa%d_%s%s", row.gpu, row.node, row.model,
                                         row.suffix ? row.suffix : "");
    *run = (struct lab_run){.number = given->table.run_count,
                            .id = lab_arena_printf(arena, "%s_r%d", point, row.repeat),
                            .repeat = row.repeat,
                            .workload = lab_str_starts(row.model, "mlp_") ? "mlp" : "vit",
                            .label = row.model,
                            .ranks = planned,
                            .rank_count = 1,
                            .state = LAB_RUN_DONE,
                            .start_ns = given->time_ns,
                            .rate = row.rate,
                            .rate_low = row.rate,
                            .rate_high = row.rate,
                            .rate_unit = "samples/s",
                            .valid = true,
                            .error = "",
                            .iterations = row.iterations};
    *made = (struct lab_study_run){.run = run,
                                   .options = given_json(given, row.options),
                                   .test = given_json(given, row.test),
                                   .result = result_from(row.result, arena),
                                   .model = row.model,
                                   .point = point,
                                   .phase = row.phase ? row.phase : "",
                                   .ranks = lab_arena_alloc(arena, 1, sizeof *made->ranks),
                                   .rank_count = 1,
                                   .work = {.flops = row.flops,
                                            .h2d_bytes = row.bytes,
                                            .d2h_bytes = row.bytes,
                                            .memory_bytes = row.memory_bytes,
                                            .parameters = row.parameters,
                                            .samples = samples},
                                   .rate = row.rate,
                                   .time_s = time_s,
                                   .used = true};
    made->ranks[0] = (struct lab_study_rank){.gpu_id = row.gpu,
                                             .device = device,
                                             .numa_node = row.node,
                                             .device_node = row.home,
                                             .distance = row.node == row.home ? 10 : 21,
                                             .rate = row.rate};
    struct lab_iteration *iterations =
        lab_arena_alloc(arena, (size_t)row.iterations + 1, sizeof *iterations);
    int64_t now_ns = given->time_ns;
    for (int i = 0; i < row.iterations; i++) {
        double took_s = time_s * (1 + row.spread * given_normal(given));
        iterations[i].start_ns = now_ns;
        now_ns += (int64_t)(1e9 * (took_s > 0 ? took_s : time_s));
        iterations[i].end_ns = now_ns;
    }
    if (row.iterations) {
        made->ranks[0].iterations = iterations;
        made->ranks[0].iteration_count = (size_t)row.iterations;
    }
    run->end_ns = now_ns + 1000000000;
    given->time_ns = run->end_ns + 100000000;
    given->table.planned_count++;
    given->table.repeated |= row.repeat > 0;
    return made;
}

static inline struct lab_analysis_input given_input(const struct given_study *given) {
    return (struct lab_analysis_input){.studies = &given->table, .study_count = 1};
}
