/* tracker_about.c: a run's name, settings, tags and result, flat, as trackers' tables want them. */
#include "track/tracker_about.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "model/result.h"
#include "store/study/results.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The study's folder is <output_dir>/<name>/<date>/<time>: what is before the date tells studies of
 * one name in different projects apart. */
static const char *last_parts(const char *path, int count) {
    for (const char *at = path + strlen(path); at > path; at--)
        if (at[-1] == '/' && --count == 0)
            return at;
    return path;
}

static const char *real_folder(const struct lab_study_file *file, struct lab_arena *arena) {
    LAB_AUTO_FREE char *real = realpath(file->folder, NULL);
    return lab_arena_strdup(arena, real ? real : file->folder);
}

const char *track_about_project(const struct lab_study_file *file, const char *asked,
                                struct lab_arena *arena) {
    if (asked && *asked)
        return lab_track_safe_name(asked, true, arena);
    const char *path = real_folder(file, arena), *dated = last_parts(path, 2);
    uint64_t hash = lab_hash_bytes(LAB_HASH_START, &file->study.machine_identity,
                                   sizeof file->study.machine_identity);
    hash = lab_hash_bytes(hash, path, (size_t)(dated - path));
    return lab_arena_printf(arena, "%s-%05llx", lab_track_safe_name(file->study.name, true, arena),
                            (unsigned long long)((hash ^ hash >> 32) & 0xfffff));
}

/* --- maps of scalars --- */

#define DEPTH_MOST 4

/* Lists of scalars become a text; null is left out. */
static void flatten(struct lab_value *flat, const char *prefix, const struct lab_value *value,
                    int depth, struct lab_arena *arena) {
    if (value->type == LAB_VALUE_NULL || depth > DEPTH_MOST)
        return;
    if (value->type == LAB_VALUE_MAP) {
        for (int i = 0; i < value->count; i++)
            flatten(flat,
                    lab_arena_printf(arena, "%s%s%s", prefix, *prefix ? "." : "", value->keys[i]),
                    value->items[i], depth + 1, arena);
    } else if (value->type == LAB_VALUE_LIST) {
        if (value->count)
            lab_value_set_string(arena, flat, prefix, lab_json_text(value, arena));
    } else {
        lab_value_set(arena, flat, prefix, lab_value_copy(arena, value));
    }
}

static struct lab_value *config_of(const struct lab_study_file *file, const struct lab_run *run,
                                   struct lab_arena *arena) {
    struct lab_value *config = lab_value_map(arena), *devices = lab_value_list(arena);
    struct lab_results_asked asked;
    lab_results_asked(run, arena, &asked);
    lab_value_set_string(arena, config, "study", file->study.option);
    lab_value_set_string(arena, config, "point", lab_study_file_point(run, arena));
    lab_value_set_int(arena, config, "repeat", run->repeat);
    lab_value_set_string(arena, config, "workload", run->workload);
    for (int i = 0; i < run->rank_count; i++)
        lab_value_append(arena, devices, lab_value_string(arena, run->ranks[i].device));
    flatten(config, "devices", devices, 0, arena);
    if (run->rank_count)
        lab_value_set_int(arena, config, "numa_node", run->ranks[0].numa_node);
    if (run->rank_count && !lab_str_starts(run->ranks[0].device, "cpu"))
        lab_value_set_int(arena, config, "gpus", run->rank_count);
    flatten(config, "", asked.options, 0, arena);
    lab_value_set_string(arena, config, "gpulab", file->study.version);
    return config;
}

/* --- the run --- */

static const char *const *tags_of(const struct lab_study_file *file, const struct lab_run *run,
                                  struct lab_arena *arena) {
    const char **tags = NULL;
    int count = 0;
    LAB_ADD(tags, count, arena) = file->study.option;
    LAB_ADD(tags, count, arena) = run->workload;
    if (lab_results_is_simulated(run))
        LAB_ADD(tags, count, arena) = "simulated";
    if (run->state == LAB_RUN_FAILED)
        LAB_ADD(tags, count, arena) = "failed";
    if (run->state == LAB_RUN_DONE && !run->valid)
        LAB_ADD(tags, count, arena) = "not-valid";
    return tags;
}

const char *track_about_host(const struct lab_study_file *file, struct lab_arena *arena) {
    struct lab_value *machine = lab_result_json(file->study.machine, arena);
    return lab_arena_strdup(arena, lab_value_get_text(machine, "host", ""));
}

struct lab_track_run track_about_run(const struct lab_study_file *file, const struct lab_run *run,
                                     const char *project, const char *host,
                                     struct lab_arena *arena) {
    const char *path = real_folder(file, arena);
    const uint64_t before[] = {LAB_HASH_START, lab_hash_text(LAB_HASH_START, project)};
    const char *ids[2];
    for (int i = 0; i < 2; i++) {
        const struct lab_store_study *study = &file->study;
        uint64_t hash =
            lab_hash_bytes(before[i], &study->created_wall_ns, sizeof study->created_wall_ns);
        hash = lab_hash_bytes(hash, &study->machine_identity, sizeof study->machine_identity);
        hash = lab_hash_text(hash, run->id);
        ids[i] = lab_arena_printf(arena, "%016llx", (unsigned long long)hash);
    }
    return (struct lab_track_run){
        .folder = path,
        .project = project,
        .group = lab_arena_printf(arena, "%s %s", file->study.name, last_parts(path, 2)),
        .point = lab_study_file_point(run, arena),
        .name = run->id,
        .id = ids[1],
        .file = ids[0],
        .host = host,
        .notes = lab_arena_printf(arena, "gpulab run %s", file->study.option),
        .tags = tags_of(file, run, arena),
        .config = config_of(file, run, arena),
        .label = "",
        .prefix = "",
        .renamed = "",
        .study_wall_ns = file->study.created_wall_ns,
        .start_wall_ns = run->start_wall_ns,
        .attempt = run->attempts,
        .retried = run->attempts > 1,
    };
}

void track_about_override(struct lab_track_run *about, const struct lab_track_request *request,
                          struct lab_arena *arena) {
    const char *name = request->run_name, *mark = name ? strstr(name, "{run}") : NULL;
    if (mark)
        name = lab_arena_printf(arena, "%.*s%s%s", (int)(mark - name), name, about->name,
                                mark + strlen("{run}"));
    about->name = name && *name ? name : about->name;
    about->folder = request->folder && *request->folder ? request->folder : about->folder;
    about->prefix = request->prefix ? request->prefix : "";
    about->renamed = request->renamed ? request->renamed : "";
}

/* --- its end --- */

static const char *text_of(const struct lab_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    if (run->state == LAB_RUN_FAILED) {
        lab_str_printf(&text, "**Failed:** %s", *run->error ? run->error : "no reason is known");
    } else {
        if (!isnan(run->rate))
            lab_str_printf(&text, "**%.6g %s**", run->rate, run->rate_unit);
        if (!isnan(run->rate_low) && !isnan(run->rate))
            lab_str_printf(&text, " (95%% CI [%.6g, %.6g], within the run)", run->rate_low,
                           run->rate_high);
        lab_str_add(&text, run->valid ? "" : " Not valid: don't use these values.");
    }
    return lab_arena_strdup(arena, text.text);
}

struct lab_track_end track_about_end(const struct lab_run *run, struct lab_arena *arena) {
    struct lab_value *summary = lab_value_map(arena);
    const struct lab_value *result = lab_results_run(run, arena);
    static const char *const settings[] = {"vit_config", "test_config", "options", "identity",
                                           NULL};
    for (int i = 0; i < result->count; i++) /* lists: of ranks there may be thousands */
        if (result->items[i]->type != LAB_VALUE_LIST && lab_str_find(result->keys[i], settings) < 0)
            flatten(summary, result->keys[i], result->items[i], 0, arena);
    return (struct lab_track_end){
        .exit_code = run->state == LAB_RUN_DONE ? 0
                     : run->exit_code > 0       ? run->exit_code
                                                : 1,
        .wall_ns = run->start_wall_ns + (run->end_ns - run->start_ns),
        .summary = summary,
        .text = text_of(run, arena),
    };
}
