/* studies_read.c: a study's folder as a table of its runs. */
#include "load/studies.h"

#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "base/yaml/yaml.h"
#include "compose/config.h"
#include "load/study_file.h"
#include "load/study_samples.h"
#include "machine/machine_json.h"
#include "store/recording/recording.h"
#include "store/study/results.h"
#include "store/trace/trace_read.h"
#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reading {
    struct lab_study_file *file;
    struct lab_study_table *table;
    struct lab_recording gpus; /* entities alone; no track = none were watched */
    struct lab_study_samples samples;
    unsigned needs;
    struct lab_arena *arena;
};

/* --- values --- */

static const struct lab_result *rank_result(const struct lab_study_run *run, int rank) {
    return rank < run->result->rank_count ? &run->result->ranks[rank] : &lab_result_none;
}

/* --- what was asked for --- */

/* A phase is named by a key, or by the series of that name; other series group points. */
static const char *phase_of(const struct lab_results_asked *asked) {
    static const char *const phases[] = {"baseline", "concurrent", "isolated"};
    if (*lab_value_get_text(asked->test, "phase", ""))
        return lab_value_get_text(asked->test, "phase", "");
    if (*lab_value_get_text(asked->options, "phase", ""))
        return lab_value_get_text(asked->options, "phase", "");
    for (int i = 0; i < asked->series->count; i++)
        for (size_t k = 0; k < sizeof phases / sizeof *phases; k++)
            if (lab_str_equal(lab_value_as_text(asked->series->items[i], ""), phases[k]))
                return phases[k];
    return "";
}

const char *lab_study_file_phase(const struct lab_run *run, struct lab_arena *arena) {
    struct lab_results_asked asked;
    lab_results_asked(run, arena, &asked);
    return phase_of(&asked);
}

/* --- where it was --- */

/* Of "cuda:MIG-…" the GPU that it is part of. */
static const struct lab_track *find_mig(const struct lab_recording *gpus, const char *device) {
    const char *id = strchr(device, ':');
    for (int i = 0; id && i < gpus->track_count; i++) {
        const struct lab_entity *entity = &gpus->tracks[i].entity;
        if (entity->kind == LAB_ENTITY_MIG && lab_str_equal(entity->id, id + 1) &&
            entity->parent >= 0 && entity->parent < gpus->track_count)
            return &gpus->tracks[entity->parent];
    }
    return NULL;
}

/* As the sampler saw it; NULL where it didn't. */
static const struct lab_track *find_gpu(const struct reading *reading, const char *device) {
    int index = lab_run_device_gpu(device);
    return index >= 0 ? lab_recording_gpu(&reading->gpus, index) : find_mig(&reading->gpus, device);
}

static bool is_nvidia(const struct lab_pci *pci) {
    return pci->kind == LAB_PCI_GPU && pci->vendor_id == 0x10de;
}

/* Without a sampler the GPUs of NVIDIA in the order of the bus, as `cuda:N` counts. */
static int node_of_gpu(const struct reading *reading, const char *device) {
    const struct lab_machine *machine = reading->table->machine;
    int index = lab_run_device_gpu(device);
    const struct lab_track *track = find_gpu(reading, device);
    if (track)
        return track->entity.node;
    for (int i = 0, n = 0; machine && i < machine->pci_count; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        if (is_nvidia(pci) && n++ == index)
            return pci->node < 0 ? -1 : machine->nodes[pci->node].number;
    }
    return -1;
}

static int node_of(const struct reading *reading, const char *device) {
    if (lab_str_starts(device, "cpu:"))
        return (int)strtol(device + 4, NULL, 10);
    return lab_str_starts(device, "cuda:") ? node_of_gpu(reading, device) : -1;
}

static int distance_of(const struct lab_machine *machine, int from, int to) {
    int a = machine ? lab_machine_node_index(machine, from) : -1;
    int b = machine ? lab_machine_node_index(machine, to) : -1;
    if (a >= 0 && b >= 0)
        return lab_machine_distance(machine, a, b);
    return from == to && from >= 0 ? 10 : 0;
}

/* The text where it is a UUID of the driver's, NULL otherwise: an id may be an address instead. */
static const char *as_uuid(const char *text) {
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/";
    bool named = lab_str_starts(text, "GPU-") || lab_str_starts(text, "MIG-");
    return named && strspn(text, signs) == strlen(text) ? text : NULL;
}

/* In PCI order among all of the machine, from its address; -1 = it isn't there. */
static int number_by_address(const struct lab_machine *machine, const char *address) {
    for (int i = 0, n = 0; machine && *address && i < machine->pci_count; i++) {
        if (is_nvidia(&machine->pci[i]) && lab_str_equal(machine->pci[i].address, address))
            return n;
        n += is_nvidia(&machine->pci[i]);
    }
    return -1;
}

/* `cuda:N` counts what CUDA_VISIBLE_DEVICES left to the study: other programs need another name. */
static void name_gpu(const struct reading *reading, const struct lab_result *result,
                     struct lab_study_rank *rank) {
    int index = lab_run_device_gpu(rank->device);
    rank->gpu = index >= 0 ? index : -1;
    if (index == LAB_RUN_NO_GPU || lab_run_device_is_simulated(rank->device))
        return;
    const struct lab_track *track = find_gpu(reading, rank->device);
    const char *own =
        index == LAB_RUN_GPU_BY_ID ? strchr(rank->device, ':') + 1 : result->device_uuid;
    rank->uuid = own ? as_uuid(own) : NULL;
    if (!rank->uuid && track)
        rank->uuid = as_uuid(track->entity.id);
    int number = track ? number_by_address(reading->table->machine, track->entity.pci) : -1;
    rank->gpu = number >= 0 ? number : rank->gpu;
}

/* What the device itself said comes first: a simulated one is on no node of this machine. */
static void place(const struct reading *reading, const struct lab_result *result,
                  struct lab_study_rank *rank) {
    bool simulated = lab_str_starts(rank->device, "sim:");
    rank->device_node = result->device_node == LAB_RESULT_NO_COUNT ? node_of(reading, rank->device)
                                                                   : (int)result->device_node;
    if (result->distance != LAB_RESULT_NO_COUNT)
        rank->distance = (int)result->distance;
    else
        rank->distance = distance_of(simulated ? NULL : reading->table->machine, rank->numa_node,
                                     rank->device_node);
}

/* --- what came out --- */

static double time_of(const struct lab_study_run *run) {
    double slowest = NAN;
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_result *result = rank_result(run, i);
        double ms = result->interval_ms_median;
        if (isnan(ms)) /* a single iteration has no interval */
            ms = result->latency_ms_median;
        slowest = fmax(slowest, 1e-3 * ms);
    }
    return slowest;
}

/* Of a spread study: which device and node it got is chance, no setting to be compared. The GPU
 * itself stays known, for what was sampled of it. */
static void forget_place(int index, struct lab_study_rank *rank) {
    bool gpu = lab_run_device_gpu(rank->device) != LAB_RUN_NO_GPU;
    rank->placed = rank->device;
    rank->device = gpu ? LAB_STUDY_ANY_GPU : LAB_STUDY_ANY_DEVICE;
    rank->gpu_id = index;
    rank->numa_node = rank->device_node = -1;
    rank->distance = 0;
}

static int read_ranks(const struct reading *reading, struct lab_study_run *run,
                      struct lab_err *err) {
    const struct lab_run *kept = run->run;
    run->rank_count = kept->rank_count;
    run->ranks = lab_arena_alloc(reading->arena, (size_t)kept->rank_count + 1, sizeof *run->ranks);
    for (int i = 0; i < kept->rank_count; i++) {
        const struct lab_result *result = rank_result(run, i);
        struct lab_study_rank *rank = &run->ranks[i];
        *rank = (struct lab_study_rank){.gpu_id = kept->ranks[i].gpu_id,
                                        .device = kept->ranks[i].device,
                                        .numa_node = kept->ranks[i].numa_node,
                                        .rate = result->rate};
        place(reading, result, rank);
        name_gpu(reading, result, rank);
        if (kept->spread)
            forget_place(i, rank);
        struct lab_iteration *iterations;
        size_t count;
        if (!(reading->needs & LAB_STUDY_WITH_ITERATIONS))
            continue;
        if (lab_store_iterations(reading->file->store, kept->number, i, reading->arena, &iterations,
                                 &count, err) < 0)
            return -1;
        rank->iterations = count ? iterations : NULL;
        rank->iteration_count = count;
    }
    return 0;
}

/* What is missing of the samples, of the first run that lacks some: in the log and in the notes. */
static void note_missing(const struct reading *reading, const struct lab_recording *recording) {
    const char **notes = lab_arena_alloc(reading->arena, 2, sizeof *notes);
    if (!recording->missing || !recording->missing[0] || reading->table->notes)
        return;
    notes[0] =
        lab_arena_printf(reading->arena, "Samples can't be read: %s.", recording->missing[0]);
    reading->table->notes = notes;
    lab_log(LAB_LOG_WARNING, "%s: samples can't be read: %s", reading->table->folder,
            recording->missing[0]);
}

static int read_samples(struct reading *reading, struct lab_study_run *run, struct lab_err *err) {
    const struct lab_recording *recording =
        lab_study_samples_read(&reading->samples, run->run, err);
    if (!recording)
        return -1;
    note_missing(reading, recording);
    run->recording = lab_recording_has_ticks(recording) ? recording : NULL;
    return 0;
}

/* A trace may have been moved away or cut: the rest of the study stands without it. */
static void read_trace(const struct reading *reading, struct lab_study_run *run) {
    struct lab_trace_file file;
    const char *name = rank_result(run, 0)->trace_path;
    const char *path =
        lab_arena_printf(reading->arena, "%s/%s", reading->table->folder, name ? name : "");
    if (name && access(path, R_OK) == 0 && lab_trace_read(path, reading->arena, &file, NULL) == 0 &&
        file.trace_count > 0)
        run->trace = file.traces; /* of its only process */
}

/* Of a workload of gpulab's, those with a value for each step: a training's curves. */
static struct lab_study_metric *stepped_of(const struct lab_study_metric *metrics, int *count,
                                           struct lab_arena *arena) {
    struct lab_study_metric *stepped = lab_arena_alloc(arena, (size_t)*count + 1, sizeof *stepped);
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (metrics[i].curve.stepped && metrics[i].rank <= 0) /* other ranks have the same */
            stepped[kept++] = metrics[i];
    *count = kept;
    return stepped;
}

/* Programs of the user's report them; and of a matrix's workloads, those that train. */
static int read_metrics(const struct reading *reading, struct lab_study_run *run,
                        struct lab_err *err) {
    struct lab_study_metric *metrics;
    bool own = !lab_workload_is_external(run->run->workload);
    if (own && !reading->table->matrix)
        return 0;
    if (lab_study_file_metrics(reading->file, run->run,
                               (reading->needs & LAB_STUDY_WITH_CURVES) != 0, &metrics,
                               &run->metric_count, err) < 0)
        return -1;
    if (own)
        metrics = stepped_of(metrics, &run->metric_count, reading->arena);
    run->metrics = metrics;
    return 0;
}

/* What it was to run. */
static struct lab_study_run describe_run(const struct reading *reading,
                                         const struct lab_run *kept) {
    struct lab_results_asked asked;
    lab_results_asked(kept, reading->arena, &asked);
    return (struct lab_study_run){.run = kept,
                                  .options = asked.options,
                                  .test = asked.test,
                                  .result = lab_run_result(kept),
                                  .model = kept->label,
                                  .point = lab_study_file_point(kept, reading->arena),
                                  .phase = phase_of(&asked),
                                  .rate = kept->rate};
}

static int read_run(struct reading *reading, const struct lab_run *kept, struct lab_study_run *run,
                    struct lab_err *err) {
    struct lab_arena *arena = reading->arena;
    *run = describe_run(reading, kept);
    /* none where this gpulab doesn't know the workload, or not with these options any more */
    lab_studies_work(kept->workload, run->options, arena, &run->work, NULL);
    if (read_ranks(reading, run, err) < 0 || read_metrics(reading, run, err) < 0)
        return -1;
    run->time_s = time_of(run);
    if (isnan(run->time_s) && run->work.samples > 0 && run->rank_count == 1)
        run->time_s = run->work.samples / run->rate;
    if (reading->needs & LAB_STUDY_WITH_SAMPLES && read_samples(reading, run, err) < 0)
        return -1;
    if (reading->needs & LAB_STUDY_WITH_TRACES)
        read_trace(reading, run);
    return 0;
}

/* --- a study --- */

/* Whether another run that counts is of the same point: one that is alone is no repeat. */
static bool is_repeated(const struct lab_study_table *table, const struct lab_study_run *run) {
    for (int i = 0; i < table->run_count; i++) {
        const struct lab_study_run *other = &table->runs[i];
        if (other != run && other->used && lab_str_equal(other->point, run->point) &&
            lab_str_equal(other->phase, run->phase))
            return true;
    }
    return false;
}

static void decide_used(struct lab_study_table *table) {
    table->all_invalid = table->run_count > 0 && table->invalid_count == table->run_count;
    for (int i = 0; i < table->run_count; i++)
        table->runs[i].used = table->runs[i].run->valid || table->all_invalid;
    for (int i = 0; i < table->run_count && !table->repeated; i++)
        table->repeated = table->runs[i].used && table->runs[i].run->repeat > 0 &&
                          is_repeated(table, &table->runs[i]);
}

/* Runs that are done, in the order in which they began. */
static int read_runs(struct reading *reading, struct lab_err *err) {
    struct lab_study_table *table = reading->table;
    struct lab_study_file *file = reading->file;
    if (lab_study_file_runs(file, err) < 0)
        return -1;
    size_t count = (size_t)file->run_count;
    reading->samples =
        lab_study_samples_of(file->store, file->runs, file->run_count, false, reading->arena);
    const struct lab_run **runs = lab_arena_alloc(reading->arena, count + 1, sizeof *runs);
    for (size_t i = 0; i < count; i++)
        runs[i] = &file->runs[i];
    LAB_SORT_REFS(runs, count, LAB_BY(*runs, epoch), LAB_BY(*runs, start_ns),
                  LAB_BY(*runs, number));
    table->planned_count = file->run_count;
    table->runs = lab_arena_alloc(reading->arena, count + 1, sizeof *table->runs);
    table->failed = lab_arena_alloc(reading->arena, count + 1, sizeof *table->failed);
    for (size_t i = 0; i < count; i++) {
        table->gangs_planned |= runs[i]->rank_count > 1;
        table->repeats_planned |= runs[i]->repeat > 0;
        for (int k = 0; k < runs[i]->rank_count; k++)
            table->simulated |= lab_str_starts(runs[i]->ranks[k].device, "sim:");
        if (runs[i]->state == LAB_RUN_FAILED)
            table->failed[table->failed_count++] = describe_run(reading, runs[i]);
        if (runs[i]->state != LAB_RUN_DONE)
            continue;
        table->invalid_count += !runs[i]->valid;
        if (read_run(reading, runs[i], &table->runs[table->run_count++], err) < 0)
            return -1;
    }
    decide_used(table);
    return 0;
}

/* Which GPUs the sampler saw, without any of what it saw of them. */
static int read_gpus(struct reading *reading, struct lab_err *err) {
    static const enum lab_metric_id no_metric;
    struct lab_recording_query query = {
        .metrics = &no_metric, .from_ns = 1, .until_ns = 1, .without_processes = true};
    return lab_recording_read_store(reading->file->store, &query, reading->arena, &reading->gpus,
                                    err);
}

static const struct lab_value *experiment_key(const char *config, const char *key,
                                              struct lab_arena *arena) {
    struct lab_value *tree;
    if (lab_yaml_parse(config, strlen(config), "config", LAB_YAML_LIMITS, arena, &tree, NULL) < 0)
        return NULL;
    return lab_value_get(lab_value_get(tree, "experiment"), key);
}

const char *const *lab_studies_answers(const char *config, struct lab_arena *arena) {
    const struct lab_value *value = experiment_key(config, "answers", arena);
    if (!value)
        return NULL;
    bool list = value && value->type == LAB_VALUE_LIST;
    int count = list ? value->count : 1;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = lab_value_as_text(list ? value->items[i] : value, NULL);
    return names[0] ? names : NULL;
}

int lab_study_file_table(struct lab_study_file *file, unsigned needs,
                         struct lab_study_table *ret_table, struct lab_err *err) {
    const struct lab_value *gpu_mode = experiment_key(file->study.config, "gpu_mode", file->arena);
    const struct lab_value *objective =
        experiment_key(file->study.config, "objective", file->arena);
    const struct lab_value *matrix = experiment_key(file->study.config, "matrix", file->arena);
    bool asked = file->study.option && *file->study.option; /* by the name that people type */
    struct lab_study_table table = {
        .name = asked ? file->study.option : file->study.name,
        .option = file->study.option,
        .answers = lab_studies_answers(file->study.config, file->arena),
        .objective = objective ? lab_value_as_text(objective, NULL) : NULL,
        .matrix = matrix,
        .gpu_mode = gpu_mode ? lab_value_as_text(gpu_mode, NULL) : NULL,
        .folder = file->folder,
        .folder_name = file->study.name,
        .machine = lab_machine_json_read(file->study.machine, file->arena),
        .machine_identity = file->study.machine_identity,
        .work_of = lab_studies_work,
        .study_for = lab_config_study_for};
    struct reading reading = {.file = file, .table = &table, .needs = needs, .arena = file->arena};
    if (read_gpus(&reading, err) < 0 || read_runs(&reading, err) < 0)
        return -1;
    *ret_table = table;
    return 0;
}

int lab_studies_read_one(const char *folder, unsigned needs, struct lab_arena *arena,
                         struct lab_study_table *ret_table, struct lab_err *err) {
    struct lab_study_file *file;
    if (lab_study_file_open(folder, arena, &file, err) < 0)
        return -1;
    int result = lab_study_file_table(file, needs, ret_table, err);
    lab_study_file_close(file);
    return result;
}
