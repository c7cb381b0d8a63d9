/*
 * store_create.c: a new file, all or nothing. It is made whole under another name and put in its
 * place when it is on the disk: whoever finds it there finds the study and every run of it.
 */
#include "store/store_internal.h"

#include "base/file/file.h"
#include "base/file/own.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int insert_study(struct lab_store *store, const struct lab_store_study *study,
                        struct lab_err *err) {
    return lab_store_write(
        store,
        "INSERT INTO study (id, name, option, identity, seed, config, words, machine, version,"
        " created_wall_ns, machine_identity) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        LAB_ROW(SQL_TEXT(study->name), SQL_TEXT(study->option), SQL_INT(study->identity),
                SQL_INT(study->seed), SQL_TEXT(study->config), SQL_TEXT(study->words),
                SQL_TEXT(study->machine), SQL_TEXT(study->version), SQL_INT(study->created_wall_ns),
                SQL_INT(study->machine_identity)),
        err);
}

static int insert_run(struct lab_store *store, int64_t number, const struct lab_run *run,
                      struct lab_err *err) {
    if (lab_store_write(
            store,
            "INSERT INTO run (number, id, identity, position, repeat, workload, label, options, "
            "series,"
            " test, iterations, warmup_iterations) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            LAB_ROW(SQL_INT(number), SQL_TEXT(run->id), SQL_INT(run->identity),
                    SQL_INT(run->position), SQL_INT(run->repeat), SQL_TEXT(run->workload),
                    SQL_TEXT(run->label), SQL_TEXT(run->options), SQL_TEXT(run->series),
                    SQL_TEXT(run->test && *run->test ? run->test : "{}"), SQL_INT(run->iterations),
                    SQL_INT(run->warmup_iterations)),
            err) < 0)
        return -1;
    for (int i = 0; i < run->rank_count; i++)
        if (lab_store_write(store, "INSERT INTO rank VALUES (?, ?, ?, ?, ?)",
                            LAB_ROW(SQL_INT(number), SQL_INT(i), SQL_INT(run->ranks[i].gpu_id),
                                    SQL_TEXT(run->ranks[i].device),
                                    SQL_INT(run->ranks[i].numa_node)),
                            err) < 0)
            return -1;
    return 0;
}

static int write_schema(struct lab_store *store, struct lab_err *err) {
    char marks[128];
    snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             LAB_STORE_APPLICATION_ID, LAB_STORE_VERSION);
    if (lab_store_exec(store, marks, err) < 0 || lab_store_exec(store, lab_store_schema, err) < 0)
        return -1;
    return lab_store_make_results(store, err);
}

static int fill(struct lab_store *store, const struct lab_store_study *study,
                const struct lab_run *runs, int count, struct lab_err *err) {
    /* a file that is dropped if anything fails needs no journal on the disk */
    if (lab_store_exec(store, "PRAGMA journal_mode = MEMORY", err) < 0 ||
        lab_store_begin(store, true, err) < 0 || write_schema(store, err) < 0 ||
        insert_study(store, study, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (insert_run(store, i + 1, &runs[i], err) < 0)
            return -1;
    }
    return lab_store_commit(store, err);
}

static int make(const char *file, const char *path, const struct lab_store_study *study,
                const struct lab_run *runs, int count, struct lab_err *err) {
    struct lab_store *store = lab_store_new(path, LAB_STORE_NOUN, lab_store_check_study);
    int result = lab_store_connect(store, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (result == 0)
        result = fill(store, study, runs, count, err);
    lab_store_abandon(store);
    return result;
}

static int fail_create(const char *path, struct lab_err *err) {
    if (errno == EEXIST)
        return lab_err_set(err, LAB_ERR_USER, "%s exists already", path);
    bool users = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno, "%s can't be made",
                             path);
}

static int create(const char *path, const struct lab_store_study *study, const struct lab_run *runs,
                  int count, struct lab_arena *arena, struct lab_err *err) {
    struct stat info;
    if (lstat(path, &info) == 0) {
        errno = EEXIST;
        return fail_create(path, err);
    }
    const char *slash = strrchr(path, '/');
    const char *directory =
        slash ? lab_arena_strndup(arena, path, (size_t)(slash - path) + 1) : "./";
    const char *file;
    int fd = lab_file_open_beside(directory, arena, &file);
    if (fd < 0)
        return fail_create(path, err);
    close(fd); /* SQLite locks it itself */
    int result = make(file, path, study, runs, count, err);
    if (result == 0 &&
        (lab_own_rename_new(file, path) < 0 || lab_file_sync_directory(directory) < 0))
        result = fail_create(path, err);
    if (result < 0)
        lab_own_remove(file);
    return result;
}

int lab_store_create(const char *path, const struct lab_store_study *study,
                     const struct lab_run *runs, int count, struct lab_store **ret_store,
                     struct lab_err *err) {
    LAB_AUTO(arena, arena);
    int result = create(path, study, runs, count, &arena, err);
    return result < 0 ? -1 : lab_store_open(path, LAB_STORE_WRITE, ret_store, err);
}
