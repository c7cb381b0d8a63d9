/*
 * proof_study.c: a study's table without its processes. A run opens a simulated device, measures the
 * pipeline on it by the same loop as a worker does, and keeps what a study's file would.
 */
#include "proof.h"
#include "proof_samples.h"

#include "base/random.h"
#include "device/device.h"
#include "measure/measure.h"
#include "workload/workload.h"

#include <math.h>

#define WARMUP   5
#define PAUSE_NS 100000000 /* between runs */

void proof_study_begin(struct proof_study *study, const struct lab_machine *host, const char *name,
                       const char *option, uint64_t seed) {
    *study =
        (struct proof_study){.host = host, .name = name, .seed = seed, .time_ns = 1000000000000};
    lab_arena_init(&study->arena);
    study->table = (struct lab_study_table){
        .name = option, .folder = "outputs/proof", .option = option, .simulated = true};
}

void proof_study_end(struct proof_study *study) {
    lab_mem_free(study->table.runs);
    lab_arena_release(&study->arena);
}

/* --- one run --- */

struct measuring {
    const struct lab_workload *workload;
    void *state;
};

static int run_stretch(void *opaque, int count, struct lab_iteration *records,
                       struct lab_err *err) {
    struct measuring *measuring = opaque;
    return measuring->workload->run(measuring->state, count, records, err);
}

static void *make_config(const struct lab_workload *workload, const struct proof_point *point,
                         struct lab_arena *arena, struct lab_err *err) {
    const char *words[] = {
        lab_arena_printf(arena, "patch_size=%d", point->patch),
        lab_arena_printf(arena, "depth=%d", point->depth),
        lab_arena_printf(arena, "heads=%d", point->dim >= 64 ? point->dim / 64 : 1),
        lab_arena_printf(arena, "dim=%d", point->dim),
        lab_arena_printf(arena, "batch_size=%d", point->batch),
        lab_arena_printf(arena, "compile_model=%s", point->compiled ? "true" : "false"),
        "memory_size_mb=64",
        NULL};
    void *config = lab_workload_config(workload, arena);
    for (int i = 0; words[i]; i++)
        if (lab_options_set_word(workload->options, config, arena, words[i], err) < 0)
            return NULL;
    return workload->check && workload->check(config, err) < 0 ? NULL : config;
}

struct measured {
    double rate, time_s;
    struct lab_interval rate_interval;
    const struct lab_iteration *iterations;
    size_t iteration_count;
    struct lab_device_ref ref;
    const struct lab_recording *recording;
    int64_t end_ns;
};

static void read_figures(const struct lab_measurement *measurement,
                         const struct lab_workload *workload, const void *config,
                         struct measured *measured) {
    struct lab_workload_cost cost = {0};
    workload->cost(config, &cost);
    struct lab_work work = {.samples = cost.samples};
    measured->rate = lab_measure_rates(measurement, &work).samples_per_s;
    measured->time_s = lab_measure_primary(measurement)->median;
    measured->rate_interval = lab_measure_rate_interval(measurement, measured->rate);
    measured->iterations = measurement->iterations;
    measured->iteration_count = measurement->count;
}

static int measure(struct proof_study *study, const struct proof_point *point,
                   const struct lab_workload *workload, const void *config,
                   struct lab_device *device, struct measured *ret, struct lab_err *err) {
    struct lab_rank rank = {.device = device,
                            .ref = &ret->ref,
                            .numa_node = point->node,
                            .count = 1,
                            .seed = 1,
                            .gpu_id = point->gpu};
    struct measuring measuring = {.workload = workload};
    if (workload->open(config, &rank, &measuring.state, err) < 0)
        return -1;
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.iterations = point->iterations;
    plan.warmup_iterations = WARMUP;
    plan.clock = device->clock;
    struct lab_subject subject = {"proof", run_stretch, &measuring};
    struct lab_measurement measurement;
    int result = lab_measure(&plan, &subject, 1, &study->arena, &measurement, err);
    if (result == 0)
        read_figures(&measurement, workload, config, ret);
    workload->close(measuring.state);
    ret->end_ns = lab_clock_now(device->clock);
    if (result == 0 && point->sampled)
        ret->recording = proof_samples_read(device, &study->arena);
    return result;
}

static int open_and_measure(struct proof_study *study, const struct proof_point *point,
                            const struct lab_workload *workload, const void *config,
                            struct measured *ret, struct lab_err *err) {
    const char *selector = lab_arena_printf(&study->arena, "sim:%s:%d", study->name, point->gpu);
    struct lab_device_list list = {0};
    struct lab_device *device;
    if (lab_device_select(study->host, selector, &study->arena, &list, err) < 0)
        return -1;
    ret->ref = list.items[0];
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    setup.host_node = point->node;
    setup.seed = lab_random_bits(study->seed, study->run_count);
    setup.start_ns = study->time_ns;
    if (lab_device_open(study->host, &ret->ref, setup, &device, err) < 0)
        return -1;
    int result = measure(study, point, workload, config, device, ret, err);
    lab_device_close(device);
    return result;
}

/* --- as the table has it --- */

static struct lab_study_work make_work(const struct lab_workload_cost *cost) {
    return (struct lab_study_work){.flops = cost->compute.flops,
                                   .memory_bytes =
                                       cost->compute.bytes_read + cost->compute.bytes_written,
                                   .h2d_bytes = cost->h2d_bytes,
                                   .d2h_bytes = cost->d2h_bytes,
                                   .samples = cost->samples,
                                   .parameters = cost->parameters};
}

static struct lab_study_rank *make_rank(struct proof_study *study, const struct proof_point *point,
                                        const struct measured *measured) {
    struct lab_study_rank *rank = lab_arena_alloc(&study->arena, 1, sizeof *rank);
    const struct lab_machine *machine = measured->ref.machine;
    int from = machine ? lab_machine_node_index(machine, point->node) : -1,
        to = machine ? lab_machine_node_index(machine, measured->ref.node) : -1;
    *rank = (struct lab_study_rank){
        .gpu_id = point->gpu,
        .device = measured->ref.name,
        .numa_node = point->node,
        .device_node = measured->ref.node,
        .distance = from >= 0 && to >= 0 ? lab_machine_distance(machine, from, to) : 0,
        .rate = measured->rate,
        .iterations = measured->iterations,
        .iteration_count = measured->iteration_count};
    return rank;
}

static const struct lab_run *make_run(struct proof_study *study, const struct proof_point *point,
                                      int repeat, const char *label, const char *id,
                                      const struct measured *measured) {
    struct lab_run *run = lab_arena_alloc(&study->arena, 1, sizeof *run);
    struct lab_run_rank *rank = lab_arena_alloc(&study->arena, 1, sizeof *rank);
    *rank = (struct lab_run_rank){point->gpu, measured->ref.name, point->node};
    *run = (struct lab_run){.number = (int64_t)study->run_count + 1,
                            .id = lab_arena_printf(&study->arena, "%s_r%d", id, repeat),
                            .repeat = repeat,
                            .workload = "vit",
                            .label = label,
                            .ranks = rank,
                            .rank_count = 1,
                            .state = LAB_RUN_DONE,
                            .epoch = 1,
                            .start_ns = study->time_ns,
                            .end_ns = measured->end_ns,
                            .error = "",
                            .rate = measured->rate,
                            .rate_low = measured->rate_interval.low,
                            .rate_high = measured->rate_interval.high,
                            .rate_unit = "samples/s",
                            .valid = true,
                            .iterations = point->iterations};
    return run;
}

static void keep(struct proof_study *study, const struct proof_point *point, int repeat,
                 const struct lab_workload *workload, const void *config,
                 const struct measured *measured) {
    struct lab_arena *arena = &study->arena;
    struct lab_workload_cost cost = {0};
    struct lab_str label;
    lab_str_init(&label);
    workload->label(config, &label);
    workload->cost(config, &cost);
    const char *model = lab_arena_strdup(arena, label.text);
    const char *id = lab_arena_printf(arena, "gpu%d_numa%d_%s%s", point->gpu, point->node, model,
                                      point->compiled ? "_compiled" : "");
    lab_str_release(&label);
    LAB_MEM_GROW(&study->table.runs, study->table.run_count, &study->capacity);
    struct lab_study_run *run = &study->table.runs[study->table.run_count++];
    *run = (struct lab_study_run){.run = make_run(study, point, repeat, model, id, measured),
                                  .options = lab_options_to_map(workload->options, config, arena),
                                  .test = lab_value_map(arena),
                                  .result = lab_value_map(arena),
                                  .model = model,
                                  .point = id,
                                  .phase = "",
                                  .ranks = make_rank(study, point, measured),
                                  .rank_count = 1,
                                  .work = make_work(&cost),
                                  .rate = measured->rate,
                                  .time_s = measured->time_s,
                                  .used = true,
                                  .recording = measured->recording};
    study->table.planned_count++;
    study->table.repeated |= repeat > 0;
    study->table.machine = measured->ref.machine;
    study->time_ns = measured->end_ns + PAUSE_NS;
    study->run_count++;
}

int proof_study_add(struct proof_study *study, const struct proof_point *point, int repeat,
                    struct lab_err *err) {
    const struct lab_workload *workload = lab_workload_find("vit", err);
    void *config = workload ? make_config(workload, point, &study->arena, err) : NULL;
    struct measured measured = {0};
    if (!config || open_and_measure(study, point, workload, config, &measured, err) < 0)
        return -1;
    keep(study, point, repeat, workload, config, &measured);
    return 0;
}

int proof_study_draw(struct proof_study *study, const struct proof_point *point, int repeat,
                     double (*time_s)(const struct lab_study_work *work, void *state), void *state,
                     struct lab_err *err) {
    const struct lab_workload *workload = lab_workload_find("vit", err);
    void *config = workload ? make_config(workload, point, &study->arena, err) : NULL;
    if (!config)
        return -1;
    struct lab_workload_cost cost = {0};
    workload->cost(config, &cost);
    struct lab_study_work work = make_work(&cost);
    double time = time_s(&work, state);
    struct measured measured = {.rate = work.samples / time,
                                .time_s = time,
                                .rate_interval = {NAN, NAN, NAN},
                                .ref = {.name = "sim:law:0", .simulated = true},
                                .end_ns = study->time_ns + (int64_t)(1e9 * time)};
    keep(study, point, repeat, workload, config, &measured);
    return 0;
}

double proof_true_rate(const struct lab_machine *host, const struct proof_truth *truth,
                       const struct proof_point *point, struct lab_err *err) {
    struct proof_truth quiet = *truth;
    struct proof_study study;
    quiet.noise = 0;
    quiet.rough = false;
    proof_define("proof-quiet", &quiet);
    proof_study_begin(&study, host, "proof-quiet", "proof", 1);
    double rate = proof_study_add(&study, point, 0, err) < 0 ? -1 : study.table.runs[0].rate;
    proof_study_end(&study);
    return rate;
}

/* --- analyses --- */

int proof_analyse(struct proof_study *study, const char *name,
                  struct lab_analysis_result *ret_result, struct lab_err *err) {
    const struct lab_analysis *analysis = lab_analysis_find(name, err);
    if (!analysis)
        return -1;
    struct lab_analysis_input input = {.studies = &study->table, .study_count = 1};
    return analysis->run(lab_analysis_config(analysis, &study->arena), &input, &study->arena,
                         ret_result, err);
}

static int find_column(const struct lab_analysis_column *columns, int count, const char *key) {
    for (int c = 0; c < count; c++)
        if (lab_str_equal(columns[c].key, key))
            return c;
    return -1;
}

const struct lab_analysis_cell *proof_figure(const struct lab_analysis_result *result, int part,
                                             const char *key) {
    int c = find_column(result->columns, result->column_count, key);
    return c < 0 || part >= result->part_count ? NULL : &result->parts[part].cells[c];
}

const struct lab_analysis_table *proof_table(const struct lab_analysis_part *part,
                                             const char *key) {
    for (int i = 0; i < part->table_count; i++)
        if (lab_str_equal(part->tables[i].key, key))
            return &part->tables[i];
    return NULL;
}

const struct lab_analysis_cell *proof_cell_at(const struct lab_analysis_table *table, int row,
                                              const char *key) {
    int c = table ? find_column(table->columns, table->column_count, key) : -1;
    return c < 0 || row >= table->row_count
               ? NULL
               : &table->cells[(ptrdiff_t)row * table->column_count + c];
}

void proof_count_hit(struct proof_count *count, bool hit) {
    count->hits += hit;
    count->trials++;
}

void proof_count_cover(struct proof_count *count, const struct lab_analysis_cell *cell,
                       double truth) {
    if (cell && !isnan(cell->low) && !isnan(cell->high))
        proof_count_hit(count, cell->low <= truth && truth <= cell->high);
}
