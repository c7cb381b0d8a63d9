/* study_file.c: opening a study for reading, and what its runs have in common for all readers. */
#include "load/study_file.h"

#include "base/str.h"

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

int lab_study_file_metrics(struct lab_study_file *file, const struct lab_run *run,
                           struct lab_study_metric **ret_metrics, int *ret_count,
                           struct lab_err *err) {
    LAB_AUTO(arena, scratch); /* every value that was reported */
    struct lab_store_metric *said;
    int said_count, count = 0;
    if (lab_store_metrics(file->store, run->number, &scratch, &said, &said_count, err) < 0)
        return -1;
    struct lab_study_metric *last = lab_arena_alloc(&scratch, (size_t)said_count + 1, sizeof *last);
    for (int i = 0; i < said_count; i++) {
        int at = 0;
        while (at < count &&
               (last[at].rank != said[i].rank || !lab_str_equal(last[at].name, said[i].name)))
            at++;
        last[at] =
            (struct lab_study_metric){said[i].name, said[i].unit, said[i].rank, said[i].value};
        count += at == count;
    }
    *ret_metrics = lab_arena_alloc(file->arena, (size_t)count + 1, sizeof **ret_metrics);
    for (int i = 0; i < count; i++)
        (*ret_metrics)[i] = (struct lab_study_metric){lab_arena_strdup(file->arena, last[i].name),
                                                      lab_arena_strdup(file->arena, last[i].unit),
                                                      last[i].rank, last[i].value};
    *ret_count = count;
    return 0;
}
