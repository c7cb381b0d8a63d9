/*
 * programs.c: studies that are held by a runner, and the runs of programs among them. A study stays
 * open while it is held; its runs are read again only when one begins that isn't known.
 */
#include "load/programs.h"

#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "load/study_file.h"
#include "model/metric_name.h"
#include "model/setting.h"
#include "run/folder.h"
#include "workload/workload.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define STUDIES_MOST 32 /* newest: a running study is among them */
#define RUNS_MOST    64 /* of a study, at once */

struct running {
    int64_t number, start_ns;
    struct lab_arena *arena; /* of its own: goes when the run ends */
    struct lab_metric_curves curves;
    const char *name;
    bool seen;
};

struct study {
    const char *folder;
    struct lab_arena arena;
    struct lab_study_file *file;
    struct running items[RUNS_MOST];
    int count;
    bool seen;
};

struct lab_programs {
    struct study *studies[STUDIES_MOST];
    int count;
    struct lab_arena shown; /* what was returned last */
};

/* --- life --- */

static void drop_run(struct study *study, int index) {
    lab_arena_release(study->items[index].arena);
    lab_mem_free(study->items[index].arena);
    study->items[index] = study->items[--study->count];
}

static void close_study(struct study *study) {
    while (study->count)
        drop_run(study, 0);
    lab_study_file_close(study->file);
    lab_arena_release(&study->arena);
    lab_mem_free(study);
}

struct lab_programs *lab_programs_open(void) {
    struct lab_programs *programs = lab_mem_alloc(1, sizeof *programs);
    lab_arena_init(&programs->shown);
    return programs;
}

void lab_programs_close(struct lab_programs *programs) {
    if (!programs)
        return;
    for (int i = 0; i < programs->count; i++)
        close_study(programs->studies[i]);
    lab_arena_release(&programs->shown);
    lab_mem_free(programs);
}

/* --- which studies --- */

static bool is_here(const struct lab_holder *holder) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return !holder->host[0] || lab_str_equal(holder->host, host);
}

static void see_study(struct lab_programs *programs, const char *folder) {
    for (int i = 0; i < programs->count; i++)
        if (lab_str_equal(programs->studies[i]->folder, folder)) {
            programs->studies[i]->seen = true;
            return;
        }
    if (programs->count == STUDIES_MOST)
        return;
    struct study *study = lab_mem_alloc(1, sizeof *study);
    lab_arena_init(&study->arena);
    study->folder = lab_arena_strdup(&study->arena, folder);
    study->seen = true;
    if (lab_study_file_open(folder, &study->arena, &study->file, NULL) < 0) {
        study->file = NULL;
        close_study(study);
        return;
    }
    programs->studies[programs->count++] = study;
}

static void find_studies(struct lab_programs *programs, const char *folder) {
    LAB_AUTO(arena, arena);
    const char *one[] = {folder};
    const char *const *paths = one;
    int count = 1;
    if (!folder)
        lab_folder_known(&arena, &paths, &count);
    for (int i = 0; i < programs->count; i++)
        programs->studies[i]->seen = false;
    for (int i = 0; i < count && i < STUDIES_MOST; i++) {
        struct lab_holder holder;
        if (lab_folder_held(paths[i], &holder) && is_here(&holder))
            see_study(programs, paths[i]);
    }
    for (int i = 0; i < programs->count; i++)
        if (!programs->studies[i]->seen && !folder) {
            close_study(programs->studies[i]);
            programs->studies[i--] = programs->studies[--programs->count];
        }
}

/* --- runs of a study --- */

static const char *name_of(const struct lab_run *runs, int count, int index,
                           struct lab_arena *arena) {
    LAB_AUTO(arena, scratch);
    const struct lab_value **options = lab_arena_alloc(&scratch, (size_t)count, sizeof *options);
    bool repeated = false;
    for (int i = 0; i < count; i++) {
        struct lab_value *map = NULL;
        bool same = i > 0 && lab_str_equal(runs[i].options, runs[i - 1].options);
        if (!same && runs[i].options)
            lab_json_parse(runs[i].options, strlen(runs[i].options), "options", &scratch, &map,
                           NULL);
        options[i] = same ? options[i - 1] : map;
        repeated |= runs[i].repeat > 0;
    }
    struct lab_settings settings = lab_settings_make(options, count, &scratch);
    const char *name = lab_setting_name(&settings, index, &scratch);
    name = *name ? name : runs[index].label;
    return repeated ? lab_arena_printf(arena, "%s, run %d", name, runs[index].repeat + 1)
                    : lab_arena_strdup(arena, name);
}

/* A run that began since the last look, where it is a program's. */
static void add_run(struct study *study, int64_t number) {
    LAB_AUTO(arena, scratch);
    static const char *const no_keys[] = {NULL};
    struct lab_run *runs;
    int count;
    if (study->count == RUNS_MOST ||
        lab_store_runs_with(study->file->store, no_keys, &scratch, &runs, &count, NULL) < 0)
        return;
    for (int i = 0; i < count; i++) {
        if (runs[i].number != number || !lab_workload_is_external(runs[i].workload))
            continue;
        struct lab_arena *arena = lab_mem_alloc(1, sizeof *arena);
        lab_arena_init(arena);
        study->items[study->count++] = (struct running){.number = number,
                                                        .start_ns = runs[i].start_ns,
                                                        .arena = arena,
                                                        .curves = {.arena = arena},
                                                        .name = name_of(runs, count, i, arena),
                                                        .seen = true};
    }
}

static void read_study(struct study *study) {
    LAB_AUTO(arena, scratch);
    struct lab_run_progress *progress;
    int count;
    if (lab_store_progress(study->file->store, &scratch, &progress, &count, NULL) < 0)
        return;
    for (int i = 0; i < study->count; i++)
        study->items[i].seen = false;
    for (int p = 0; p < count; p++) {
        int known = 0;
        while (known < study->count && study->items[known].number != progress[p].run)
            known++;
        int64_t number = progress[p].run;
        bool same = known < study->count &&
                    study->items[known].start_ns == lab_store_run_start(study->file->store, number);
        if (known < study->count && !same) /* it was tried again */
            drop_run(study, known);
        if (same)
            study->items[known].seen = true;
        else
            add_run(study, number);
    }
    for (int i = 0; i < study->count; i++) {
        struct running *run = &study->items[i];
        if (!run->seen)
            drop_run(study, i--);
        else
            lab_store_read_curves(study->file->store, run->number, run->start_ns, &run->curves,
                                  NULL);
    }
}

/* --- what is shown --- */

struct placed {
    int place, rank, number;
};

/* Main ones first; of equal ones, in the order in which they came. */
static struct lab_program describe(const struct study *study, const struct running *run,
                                   struct lab_arena *arena) {
    int count = run->curves.count;
    struct lab_program program = {.study = study->file->study.option,
                                  .name = run->name,
                                  .run = run->number,
                                  .step = NAN,
                                  .metric_count = count};
    struct placed *order = lab_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    struct lab_metric_curve *metrics = lab_arena_alloc(arena, (size_t)count + 1, sizeof *metrics);
    for (int i = 0; i < count; i++) {
        const struct lab_metric_curve *curve = &run->curves.items[i];
        order[i] = (struct placed){lab_metric_name_place(curve->name, curve->unit), curve->rank, i};
        program.step = fmax(program.step, curve->curve.last_step); /* fmax passes NaN over */
        program.by_epoch |= lab_curve_is_epoch_axis(curve->name, &curve->curve);
    }
    LAB_SORT(order, count, LAB_BY(order, place), LAB_BY(order, rank), LAB_BY(order, number));
    for (int i = 0; i < count; i++)
        metrics[i] = run->curves.items[order[i].number];
    program.metrics = metrics;
    return program;
}

int lab_programs_read(struct lab_programs *programs, const char *folder,
                      const struct lab_program **ret_items) {
    struct lab_program *items = NULL;
    int count = 0;
    find_studies(programs, folder);
    lab_arena_release(&programs->shown);
    lab_arena_init(&programs->shown);
    for (int i = 0; i < programs->count; i++) {
        struct study *study = programs->studies[i];
        if (!study->seen)
            continue;
        read_study(study);
        for (int r = 0; r < study->count; r++)
            LAB_ADD(items, count, &programs->shown) =
                describe(study, &study->items[r], &programs->shown);
    }
    *ret_items = items;
    return count;
}
