/* proof_study.c: a study's table without its processes: of runs, what a study's file would keep. */
#include "proof_run.h"

#include "load/studies.h"

#include <math.h>

#define PAUSE_NS 100000000 /* between runs */

void proof_study_begin(struct proof_study *study, const struct lab_machine *host, const char *name,
                       const char *option, uint64_t seed) {
    *study =
        (struct proof_study){.host = host, .name = name, .seed = seed, .time_ns = 1000000000000};
    lab_arena_init(&study->arena);
    study->table = (struct lab_study_table){.name = option,
                                            .folder = "outputs/proof",
                                            .option = option,
                                            .simulated = true,
                                            .work_of = lab_studies_work};
}

void proof_study_end(struct proof_study *study) {
    lab_mem_free(study->table.runs);
    lab_arena_release(&study->arena);
}

/* --- as the table has it --- */

static struct lab_study_rank make_rank(const struct proof_point *point,
                                       const struct proof_measured *measured) {
    const struct lab_machine *machine = measured->ref.machine;
    int from = machine ? lab_machine_node_index(machine, point->node) : -1,
        to = machine ? lab_machine_node_index(machine, measured->ref.node) : -1;
    return (struct lab_study_rank){
        .gpu_id = point->gpu,
        .gpu = point->gpu,
        .device = measured->ref.name,
        .numa_node = point->node,
        .device_node = measured->ref.node,
        .distance = from >= 0 && to >= 0 ? lab_machine_distance(machine, from, to) : 0,
        .rate = measured->rate,
        .iterations = measured->iterations,
        .iteration_count = measured->iteration_count};
}

struct kept { /* a run to be kept: its ranks, and what they came to together */
    const struct proof_point *points;
    const struct proof_measured *measured;
    int count, repeat;
    double rate, time_s;
    int64_t end_ns;
    bool samples; /* that its rate counts, not iterations */
};

/* As the runner does it: rates add up, the slowest rank's time counts. */
static struct kept together(const struct proof_point *points, const struct proof_measured *measured,
                            int count, int repeat) {
    struct kept kept = {.points = points, .measured = measured, .count = count, .repeat = repeat};
    for (int i = 0; i < count; i++) {
        kept.rate += measured[i].rate;
        kept.time_s = fmax(kept.time_s, measured[i].time_s);
        kept.end_ns = measured[i].end_ns > kept.end_ns ? measured[i].end_ns : kept.end_ns;
    }
    return kept;
}

static const char *make_id(const struct kept *kept, const char *model, struct lab_arena *arena) {
    const struct proof_point *first = &kept->points[0];
    const char *gpus = "", *nodes = "", *rest = "";
    for (int i = 0; i < kept->count; i++) {
        gpus = lab_arena_printf(arena, "%s%s%d", gpus, i ? "+" : "", kept->points[i].gpu);
        nodes = lab_arena_printf(arena, "%s%s%d", nodes, i ? "+" : "_numa", kept->points[i].node);
    }
    if (!first->workload)
        rest = lab_arena_printf(arena, "_batch%d", first->batch);
    if (first->image)
        rest = lab_arena_printf(arena, "%s_image%d", rest, first->image);
    if (first->memory_mb)
        rest = lab_arena_printf(arena, "%s_pool%d", rest, first->memory_mb);
    return lab_arena_printf(arena, "gpu%s%s_%s%s%s%s%s", gpus, first->node < 0 ? "" : nodes, model,
                            rest, first->compiled ? "_compiled" : "", first->phase ? "_" : "",
                            first->phase ? first->phase : "");
}

/* What a plan says of a phase. */
static const struct lab_value *make_test(const struct proof_point *point, int count,
                                         struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    if (!point->phase)
        return map;
    struct lab_value *apart = lab_value_list(arena);
    if (lab_str_equal(point->phase, "isolated"))
        lab_value_append(arena, apart, lab_value_string(arena, "numa"));
    lab_value_set_string(arena, map, "phase", point->phase);
    lab_value_set_string(arena, map, "place", count > 1 ? "together" : "alone");
    lab_value_set_string(arena, map, "processes", "shared");
    lab_value_set(arena, map, "apart", apart);
    lab_value_set_string(arena, map, "disturb", "");
    return map;
}

/* As the runner combines it; of a gang that is what its analyses read. */
static const struct lab_result *make_result(const struct kept *kept, struct lab_arena *arena) {
    struct lab_result *result = lab_arena_alloc(arena, 1, sizeof *result),
                      *ranks = lab_arena_alloc(arena, (size_t)kept->count, sizeof *ranks);
    *result = kept->measured[0].result;
    for (int i = 0; i < kept->count; i++) {
        ranks[i] = kept->measured[i].result;
        result->latency_ms_median = fmax(result->latency_ms_median, ranks[i].latency_ms_median);
        result->interval_ms_median = fmax(result->interval_ms_median, ranks[i].interval_ms_median);
    }
    result->ranks = ranks;
    result->rank_count = kept->count;
    return result;
}

static const struct lab_run *make_run(struct proof_study *study, const struct kept *kept,
                                      const char *label, const char *id) {
    size_t count = (size_t)kept->count;
    struct lab_run *run = lab_arena_alloc(&study->arena, 1, sizeof *run);
    struct lab_run_rank *ranks = lab_arena_alloc(&study->arena, count, sizeof *ranks);
    for (size_t i = 0; i < count; i++)
        ranks[i] = (struct lab_run_rank){kept->points[i].gpu, kept->measured[i].ref.name,
                                         kept->points[i].node};
    bool alone = count == 1;
    *run = (struct lab_run){.number = (int64_t)study->run_count + 1,
                            .id = lab_arena_printf(&study->arena, "%s_r%d", id, kept->repeat),
                            .repeat = kept->repeat,
                            .workload = kept->points[0].workload ? kept->points[0].workload : "vit",
                            .label = label,
                            .ranks = ranks,
                            .rank_count = kept->count,
                            .state = LAB_RUN_DONE,
                            .epoch = 1,
                            .start_ns = study->time_ns,
                            .end_ns = kept->end_ns,
                            .error = "",
                            .rate = kept->rate,
                            .rate_low = alone ? kept->measured->rate_interval.low : NAN,
                            .rate_high = alone ? kept->measured->rate_interval.high : NAN,
                            .rate_unit = kept->samples ? "samples/s" : "iterations/s",
                            .valid = true,
                            .iterations = kept->points[0].iterations};
    return run;
}

static void keep(struct proof_study *study, struct kept *kept, const struct lab_workload *workload,
                 const void *config) {
    struct lab_arena *arena = &study->arena;
    const struct lab_value *options = lab_options_to_map(workload->options, config, arena);
    struct lab_study_work work = lab_studies_config_work(workload, config, arena);
    struct lab_str label;
    lab_str_init(&label);
    workload->label(config, &label);
    kept->samples = work.samples > 0;
    const char *model = lab_arena_strdup(arena, label.text);
    const char *id = make_id(kept, model, arena);
    lab_str_release(&label);
    struct lab_study_rank *ranks = lab_arena_alloc(arena, (size_t)kept->count, sizeof *ranks);
    for (int i = 0; i < kept->count; i++)
        ranks[i] = make_rank(&kept->points[i], &kept->measured[i]);
    struct lab_study_run *run = &LAB_PUSH(study->table.runs, study->table.run_count);
    *run = (struct lab_study_run){.run = make_run(study, kept, model, id),
                                  .options = options,
                                  .test = make_test(kept->points, kept->count, arena),
                                  .result = make_result(kept, arena),
                                  .model = model,
                                  .point = id,
                                  .phase = kept->points[0].phase ? kept->points[0].phase : "",
                                  .ranks = ranks,
                                  .rank_count = kept->count,
                                  .work = work,
                                  .rate = kept->rate,
                                  .time_s = kept->time_s,
                                  .used = true,
                                  .recording = kept->measured->recording};
    study->table.planned_count++;
    study->table.repeated |= kept->repeat > 0;
    study->table.machine = kept->measured->ref.machine;
    study->time_ns = kept->end_ns + PAUSE_NS;
    study->run_count++;
}

int proof_study_add_gang(struct proof_study *study, const struct proof_point *points, int count,
                         int repeat, struct lab_err *err) {
    const char *name = points[0].workload ? points[0].workload : "vit";
    const struct lab_workload *workload = lab_workload_find(name, err);
    void *config = workload ? proof_run_config(workload, points, &study->arena, err) : NULL;
    struct proof_measured measured[PROOF_RANKS_MAX] = {0};
    if (!config || proof_run_measure(study, points, count, workload, config, measured, err) < 0)
        return -1;
    struct kept kept = together(points, measured, count, repeat);
    keep(study, &kept, workload, config);
    return 0;
}

int proof_study_add(struct proof_study *study, const struct proof_point *point, int repeat,
                    struct lab_err *err) {
    return proof_study_add_gang(study, point, 1, repeat, err);
}

void proof_study_double(struct proof_study *study) {
    int count = study->table.run_count;
    for (int i = 0; i < count; i++) {
        struct lab_run *again = lab_arena_alloc(&study->arena, 1, sizeof *again);
        struct lab_study_run *copy = &LAB_PUSH(study->table.runs, study->table.run_count);
        *copy = study->table.runs[i];
        *again = *copy->run;
        again->repeat = 1;
        again->number = study->table.run_count;
        again->id = lab_arena_printf(&study->arena, "%s_r1", copy->point);
        copy->run = again;
    }
    study->table.planned_count = study->table.run_count;
    study->table.repeated = true;
}

int proof_study_draw(struct proof_study *study, const struct proof_point *point, int repeat,
                     double (*time_s)(const struct lab_study_work *work, void *state), void *state,
                     struct lab_err *err) {
    const struct lab_workload *workload = lab_workload_find("vit", err);
    void *config = workload ? proof_run_config(workload, point, &study->arena, err) : NULL;
    if (!config)
        return -1;
    struct lab_study_work work = lab_studies_config_work(workload, config, &study->arena);
    double time = time_s(&work, state);
    struct proof_measured measured = {.rate = work.samples / time,
                                      .time_s = time,
                                      .rate_interval = {NAN, NAN, NAN},
                                      .ref = {.name = "sim:law:0", .simulated = true},
                                      .result = lab_result_none,
                                      .end_ns = study->time_ns + (int64_t)(1e9 * time)};
    struct kept kept = together(point, &measured, 1, repeat);
    keep(study, &kept, workload, config);
    return 0;
}

double proof_true_rate(const struct lab_machine *host, const struct proof_truth *truth,
                       const struct proof_point *point, struct lab_err *err) {
    return proof_true_gang_rate(host, truth, point, 1, err);
}

double proof_true_gang_rate(const struct lab_machine *host, const struct proof_truth *truth,
                            const struct proof_point *points, int count, struct lab_err *err) {
    struct proof_truth quiet = *truth;
    struct proof_study study;
    quiet.noise = 0;
    quiet.rough = false;
    proof_define("proof-quiet", &quiet);
    proof_study_begin(&study, host, "proof-quiet", "proof", 1);
    double rate =
        proof_study_add_gang(&study, points, count, 0, err) < 0 ? -1 : study.table.runs[0].rate;
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
    return lab_analysis_run(analysis, NULL, &input, &study->arena, ret_result, err);
}

static int find_column(const struct lab_doc_column *columns, int count, const char *key) {
    for (int c = 0; c < count; c++)
        if (lab_str_equal(columns[c].key, key))
            return c;
    return -1;
}

const struct lab_doc_cell *proof_figure(const struct lab_analysis_result *result, int part,
                                        const char *key) {
    int c = find_column(result->columns, result->column_count, key);
    return c < 0 || part >= result->part_count ? NULL : &result->parts[part].cells[c];
}

const struct lab_doc_table *proof_table(const struct lab_analysis_part *part, const char *key) {
    for (int i = 0; i < part->table_count; i++)
        if (lab_str_equal(part->tables[i].key, key))
            return &part->tables[i];
    return NULL;
}

const struct lab_doc_cell *proof_cell_at(const struct lab_doc_table *table, int row,
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

void proof_count_cover(struct proof_count *count, const struct lab_doc_cell *cell, double truth) {
    if (cell && !isnan(cell->low) && !isnan(cell->high))
        proof_count_hit(count, cell->low <= truth && truth <= cell->high);
}

void proof_count_claim(struct proof_count *count, const struct lab_claim *claim, double truth) {
    if (!isnan(claim->low) && !isnan(claim->high))
        proof_count_hit(count, claim->low <= truth && truth <= claim->high);
}
