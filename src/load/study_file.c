/* study_file.c: opening a study for reading, and what its runs have in common for all readers. */
#include "load/study_file.h"

#include "base/json.h"
#include "base/str.h"
#include "model/setting.h"
#include "workload/workload.h"

#include <stdlib.h>
#include <string.h>

int lab_study_file_open(const char *folder, struct lab_arena *arena,
                        struct lab_study_file **ret_file, struct lab_err *err) {
    struct lab_study_file *file = lab_arena_alloc(arena, 1, sizeof *file);
    *file = (struct lab_study_file){.folder = lab_arena_strdup(arena, folder), .arena = arena};
    const char *path = lab_arena_printf(arena, "%s/study.db", folder);
    if (lab_store_open(path, LAB_STORE_READ, &file->store, err) < 0)
        return -1;
    if (lab_store_study(file->store, arena, &file->study, err) < 0) {
        lab_study_file_close(file);
        return -1;
    }
    *ret_file = file;
    return 0;
}

void lab_study_file_close(struct lab_study_file *file) {
    if (!file)
        return;
    lab_store_close(file->store);
    file->store = NULL;
}

int lab_study_file_runs(struct lab_study_file *file, struct lab_err *err) {
    return file->runs
               ? 0
               : lab_store_runs(file->store, file->arena, &file->runs, &file->run_count, err);
}

const char *lab_study_file_point(const struct lab_run *run, struct lab_arena *arena) {
    const char *suffix = lab_arena_printf(arena, "_r%d", run->repeat);
    size_t id = strlen(run->id), length = strlen(suffix);
    return id > length && strcmp(run->id + id - length, suffix) == 0
               ? lab_arena_strndup(arena, run->id, id - length)
               : run->id;
}

/* --- what points are called --- */

static const char *phase_of(const struct lab_run *run, struct lab_arena *arena) {
    return lab_study_file_phase(run, arena);
}

static const char *devices_of(const struct lab_run *run, struct lab_arena *arena) {
    const char *text = "";
    for (int i = 0; i < run->rank_count && !run->spread; i++)
        text = lab_arena_printf(arena, "%s%s%s", text, i ? " + " : "", run->ranks[i].device);
    return text;
}

static const char *node_of(const struct lab_run *run, struct lab_arena *arena) {
    int node = run->rank_count && !run->spread ? run->ranks[0].numa_node : -1;
    return node < 0 ? "" : lab_arena_printf(arena, "NUMA node %d", node);
}

/* Adds what differs between runs behind their labels. */
static void add_where(const char **labels, const struct lab_run *const *runs, int count,
                      const char *(*where)(const struct lab_run *, struct lab_arena *),
                      struct lab_arena *arena) {
    bool varies = false;
    for (int i = 1; i < count && !varies; i++)
        varies = !lab_str_equal(where(runs[i], arena), where(runs[0], arena));
    for (int i = 0; i < count && varies; i++) {
        const char *text = where(runs[i], arena);
        labels[i] = *text ? lab_arena_printf(arena, "%s, %s", labels[i], text) : labels[i];
    }
}

struct labelled {
    const char *label, *point;
};

static int by_label(const void *a, const void *b) {
    return strcmp(((const struct labelled *)a)->label, ((const struct labelled *)b)->label);
}

/* Whether a label is of one point alone. */
static bool are_distinct(const char *const *labels, const struct lab_run *const *runs, int count,
                         struct lab_arena *arena) {
    struct labelled *all = lab_arena_alloc(arena, (size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = (struct labelled){labels[i], lab_study_file_point(runs[i], arena)};
    qsort(all, (size_t)count, sizeof *all, by_label);
    for (int i = 1; i < count; i++)
        if (lab_str_equal(all[i].label, all[i - 1].label) &&
            !lab_str_equal(all[i].point, all[i - 1].point))
            return false;
    return true;
}

const char **lab_study_file_labels(const struct lab_run *const *runs, int count,
                                   struct lab_arena *arena) {
    const char **labels = lab_arena_alloc(arena, (size_t)count + 1, sizeof *labels);
    const struct lab_value **options = lab_arena_alloc(arena, (size_t)count + 1, sizeof *options);
    bool named = true;
    for (int i = 0; i < count; i++) {
        struct lab_value *map = NULL;
        if (runs[i]->options)
            lab_json_parse(runs[i]->options, strlen(runs[i]->options), "options", arena, &map,
                           NULL);
        options[i] = map;
        named &= lab_workload_is_external(runs[i]->workload);
    }
    struct lab_settings settings = lab_settings_make(options, count, arena);
    for (int i = 0; i < count; i++) {
        labels[i] = lab_setting_name(&settings, i, arena);
        named &= *labels[i] != '\0';
    }
    add_where(labels, runs, count, phase_of, arena);
    add_where(labels, runs, count, devices_of, arena);
    add_where(labels, runs, count, node_of, arena);
    named = named && are_distinct(labels, runs, count, arena);
    for (int i = 0; i < count && !named; i++)
        labels[i] = lab_study_file_point(runs[i], arena);
    return labels;
}

/* --- metrics --- */

static struct lab_curve_point *copy_points(struct lab_study_file *file,
                                           const struct lab_curve_point *points, int count) {
    return count ? lab_arena_copy(file->arena, points, (size_t)count, sizeof *points) : NULL;
}

static int read_metrics(struct lab_study_file *file, const struct lab_run *run, bool curves,
                        struct lab_study_metric **ret_metrics, int *ret_count,
                        struct lab_err *err) {
    LAB_AUTO(arena, scratch);
    struct lab_metric_curves all = {.arena = &scratch};
    if (lab_store_read_curves(file->store, run->number, run->start_ns, &all, err) < 0)
        return -1;
    *ret_metrics = lab_arena_alloc(file->arena, (size_t)all.count + 1, sizeof **ret_metrics);
    for (int i = 0; i < all.count; i++) {
        struct lab_curve *curve = &all.items[i].curve;
        (*ret_metrics)[i] =
            (struct lab_study_metric){lab_arena_strdup(file->arena, all.items[i].name),
                                      lab_arena_strdup(file->arena, all.items[i].unit),
                                      all.items[i].rank, curve->last, *curve};
        struct lab_curve *copy = &(*ret_metrics)[i].curve;
        copy->points = copy_points(file, curve->points, curves ? curve->count : 0);
        copy->by_step.points =
            copy_points(file, curve->by_step.points, curves ? curve->by_step.count : 0);
        if (!curves)
            copy->count = copy->by_step.count = 0;
    }
    *ret_count = all.count;
    return 0;
}

/* Where those of a run are kept; NULL = it may still report, or the runs weren't read. */
static struct lab_study_file_metrics *kept_metrics(struct lab_study_file *file,
                                                   const struct lab_run *run) {
    if (run->state != LAB_RUN_DONE || run->number < 1 || run->number > file->run_count)
        return NULL;
    if (!file->metrics)
        file->metrics =
            lab_arena_alloc(file->arena, (size_t)file->run_count + 1, sizeof *file->metrics);
    return &file->metrics[run->number];
}

int lab_study_file_metrics(struct lab_study_file *file, const struct lab_run *run, bool curves,
                           struct lab_study_metric **ret_metrics, int *ret_count,
                           struct lab_err *err) {
    struct lab_study_file_metrics *kept = kept_metrics(file, run), read = {0};
    if (kept && kept->read)
        read = *kept;
    else if (read_metrics(file, run, curves, &read.items, &read.count, err) < 0)
        return -1;
    if (kept && curves) {
        *kept = read;
        kept->read = true;
    }
    *ret_metrics = read.items;
    *ret_count = read.count;
    return 0;
}
