/*
 * report_phases.c: files beside the report of a study with phases, under the names and in the
 * formats that published scripts use: <phase>_gpu<g>_<kernel>.json of each run,
 * variance_analysis.txt, correlation_gpu<g>.txt. Where a kernel ran in several shapes, <kernel>
 * says which, as the run's id does.
 */
#include "report/report_internal.h"

#include "analysis/analysis_study.h"
#include "base/clock.h"
#include "base/json.h"
#include "report/analysis.h"
#include "store/tuning/timing_file.h"

#include <string.h>

#define DEVICES_MAX 64
static const struct lab_style plain = {.columns = 100, .unicode = true};

static void add_file(struct report_found *found, const char *name, const char *text) {
    found->files[found->file_count++] = (struct report_file){name, text};
}

/* --- what each run chose --- */

static void copy_key(struct lab_value *map, const struct lab_value *from, const char *key,
                     const char *as, struct lab_arena *arena) {
    struct lab_value *value = lab_value_get(from, key);
    if (value)
        lab_value_set(arena, map, as, value);
}

/* As a tuning has it: a map, and as text. "default" has no keys. */
static void set_configuration(struct lab_value *map, const struct lab_value *configuration,
                              struct lab_arena *arena) {
    if (!configuration || configuration->type != LAB_VALUE_STRING)
        return;
    lab_value_set(arena, map, "best_config", lab_timing_file_config(configuration->string, arena));
    lab_value_set_string(arena, map, "best_config_text", configuration->string);
}

/* The tuning's result, or what stands for it where nothing could be tuned. */
static struct lab_value *choice_value(const struct lab_study_run *run, int rank,
                                      struct lab_arena *arena) {
    const struct lab_result *own =
        rank < run->result->rank_count ? &run->result->ranks[rank] : &lab_result_none;
    const struct lab_value *result = lab_result_value(own, LAB_RESULT_RANK_VIEW, NULL, arena);
    struct lab_value *tuning = lab_value_get(result, "tuning");
    bool tuned = tuning && tuning->type == LAB_VALUE_MAP; /* a file may hold anything */
    struct lab_value *map = tuned ? tuning : lab_value_map(arena);
    if (!tuned) {
        lab_value_set_string(arena, map, "kernel_name", run->run->workload);
        lab_value_set_string(arena, map, "gpu", run->ranks[rank].device);
        set_configuration(map, lab_value_get(result, "configuration"), arena);
        copy_key(map, lab_value_get(result, "latency_ms"), "median", "best_time_ms", arena);
    }
    lab_value_set_string(arena, map, "phase", run->phase);
    lab_value_set_int(arena, map, "gpu_id", run->ranks[rank].gpu_id);
    lab_value_set_string(arena, map, "device", run->ranks[rank].device);
    lab_value_set_string(arena, map, "run_id", run->run->id);
    lab_value_set_int(arena, map, "repeat", run->run->repeat);
    copy_key(map, result, "disturbed", "disturbed", arena);
    copy_key(map, result, "latency_ms", "timed_ms", arena);
    copy_key(map, result, "capacity", "capacity", arena);
    copy_key(map, result, "regret", "regret", arena);
    return map;
}

/* --- their names --- */

static bool shares_device(const struct lab_study_run *a, const struct lab_study_run *b) {
    for (int i = 0; i < a->rank_count; i++)
        for (int k = 0; k < b->rank_count; k++)
            if (a->ranks[i].gpu_id == b->ranks[k].gpu_id)
                return true;
    return false;
}

/* Whether phase, device, workload and block tell all runs of its workload apart. */
static bool is_distinct(const struct lab_study_table *study, const char *workload) {
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *a = &study->runs[i];
        for (int k = 0; k < i && strcmp(a->run->workload, workload) == 0; k++) {
            const struct lab_study_run *b = &study->runs[k];
            if (a->run->repeat == b->run->repeat && strcmp(b->run->workload, workload) == 0 &&
                strcmp(a->phase, b->phase) == 0 && shares_device(a, b))
                return false;
        }
    }
    return true;
}

/* "softmax1024x2048" of gpu0+1_numa0_softmax1024x2048_isolated_r2: what no other part of the name
 * says. */
static const char *shape_of(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *shape = run->run->id;
    static const char *const places[] = {"gpu", "numa"};
    for (int i = 0; i < 2; i++) {
        if (!lab_str_starts(shape, places[i]))
            continue;
        const char *number = shape + strlen(places[i]);
        size_t digits = strspn(number, "0123456789+");
        if (digits > 0 && number[digits] == '_')
            shape = number + digits + 1;
    }
    const char *phase = lab_arena_printf(arena, "_%s", run->phase);
    const char *block = lab_arena_printf(arena, "_%s_r%d", run->phase, run->run->repeat);
    for (const char *at = shape; (at = strstr(at, phase)); at++)
        if (strcmp(at, phase) == 0 || strcmp(at, block) == 0)
            return lab_arena_strndup(arena, shape, (size_t)(at - shape));
    return shape;
}

static void add_choices(struct report_found *found, const struct lab_study_run *run,
                        const char *kernel) {
    struct lab_arena *arena = found->arena;
    for (int r = 0; r < run->rank_count; r++) {
        LAB_AUTO(str, text);
        lab_json_write(choice_value(run, r, arena), 1, &text);
        lab_str_add(&text, "\n");
        const char *block =
            run->run->repeat ? lab_arena_printf(arena, "_r%d", run->run->repeat) : "";
        add_file(found,
                 lab_arena_printf(arena, "%s_gpu%d_%s%s.json", run->phase, run->ranks[r].gpu_id,
                                  kernel, block),
                 lab_arena_strdup(arena, text.text));
    }
}

/* --- analyses as text --- */

static void add_analysis(struct report_found *found, const char *name, const char *word,
                         const struct lab_study_table *study, const char *file) {
    const struct lab_analysis *analysis = lab_analysis_find(name, NULL);
    struct lab_analysis_input input = {.studies = study, .study_count = 1};
    struct lab_analysis_result result;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_str text;
    if (!analysis || (found->deadline_ns && lab_clock_now(lab_clock_system()) > found->deadline_ns))
        return;
    lab_str_init(&text);
    void *config = lab_analysis_config(analysis, found->arena);
    if (word)
        lab_options_set_word(analysis->options, config, found->arena, word, NULL);
    if (lab_analysis_run(analysis, config, &input, found->arena, &result, &err) == 0)
        lab_doc_write(lab_report_analysis(name, &result, found->arena), "text", plain, &text);
    else
        lab_str_printf(&text, "%s\n", err.text);
    add_file(found, file, lab_arena_strdup(found->arena, text.text));
    lab_str_release(&text);
}

static int list_devices(const struct lab_study_table *study, int *ret_ids) {
    int count = 0;
    for (int i = 0; i < study->run_count; i++)
        for (int r = 0; r < study->runs[i].rank_count; r++) {
            int at = 0;
            while (at < count && ret_ids[at] != study->runs[i].ranks[r].gpu_id)
                at++;
            if (at == count && count < DEVICES_MAX)
                ret_ids[count++] = study->runs[i].ranks[r].gpu_id;
        }
    return count;
}

void report_phase_files(struct report_found *found, const struct lab_study_table *study) {
    int ids[DEVICES_MAX], ranks = 0;
    for (int i = 0; i < study->run_count; i++)
        ranks += study->runs[i].rank_count;
    if (!lab_study_has_phases(study))
        return;
    int devices = list_devices(study, ids);
    found->files =
        lab_arena_alloc(found->arena, (size_t)(ranks + devices) + 1, sizeof *found->files);
    bool *distinct = lab_arena_alloc(found->arena, (size_t)study->run_count + 1, sizeof *distinct);
    for (int i = 0; i < study->run_count; i++) {
        const struct lab_study_run *run = &study->runs[i];
        int like = 0; /* the first of its workload */
        while (strcmp(study->runs[like].run->workload, run->run->workload) != 0)
            like++;
        distinct[i] = like < i ? distinct[like] : is_distinct(study, run->run->workload);
        add_choices(found, run, distinct[i] ? run->run->workload : shape_of(run, found->arena));
    }
    add_analysis(found, "variance", NULL, study, "variance_analysis.txt");
    for (int d = 0; d < devices; d++)
        add_analysis(found, "correlate", lab_arena_printf(found->arena, "gpu=%d", ids[d]), study,
                     lab_arena_printf(found->arena, "correlation_gpu%d.txt", ids[d]));
}
