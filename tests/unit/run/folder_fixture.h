/*
 * folder_fixture.h: a place for each test with its own registry and locks, small studies in it, and
 * other processes that hold things.
 */
#pragma once

#include "run/folder.h"
#include "store/store.h"

#include "test.h"
#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lab_arena arena;
static struct lab_err err;
static char root[64]; /* of the test; no link in it */

#define PLAN    0xfeedULL /* identity of the studies here */
#define MACHINE 0xcafeULL

static inline const char *in_root(const char *name) {
    return lab_arena_printf(&arena, "%s/%s", root, name);
}

static inline int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    snprintf(root, sizeof root, "/tmp/gpulab-test-folder-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    setenv("XDG_STATE_HOME", in_root("state"), 1);
    setenv("GPULAB_LOCK_DIR", in_root("locks"), 1);
    return 0;
}

static inline int remove_entry(const char *path, const struct stat *info, int type,
                               struct FTW *place) {
    (void)info, (void)type, (void)place;
    return remove(path);
}

static inline int tear_down(void **state) {
    (void)state;
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    lab_arena_release(&arena);
    return 0;
}

#define assert_works(call) assert_string_equal((call) < 0 ? err.text : "", "")

#define assert_refused(call, expected_code, gist)                                                  \
    do {                                                                                           \
        err = LAB_ERR_INIT;                                                                        \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(err.code, expected_code);                                                 \
        if (!strstr(err.text, gist))                                                               \
            fail_msg("'%s' doesn't say '%s'", err.text, gist);                                     \
    } while (0)

static inline bool exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static inline int count_entries(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory)
        closedir(directory);
    return count;
}

static inline void make_directories(const char *path) {
    char *part = lab_arena_strdup(&arena, path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(part, 0777);
        *slash = '/';
    }
    mkdir(part, 0777);
}

static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* --- studies --- */

static const char *study_config, *study_words; /* NULL = as most */

static inline struct lab_store_study study_of(uint64_t identity, uint64_t machine) {
    return (struct lab_store_study){.name = "quick_test",
                                    .option = "quick",
                                    .identity = identity,
                                    .config = study_config ? study_config : "experiment: {}\n",
                                    .words = study_words ? study_words : "[\"quick\"]",
                                    .machine = "{}",
                                    .version = "0.0.0",
                                    .created_wall_ns = 1700000000000000000,
                                    .machine_identity = machine};
}

static const struct lab_run_rank a_rank = {0, "cpu:0", 0};

/* Carries a run out: it took `seconds`. */
static inline void finish_run(struct lab_store *store, int64_t number, enum lab_run_state state,
                              double seconds) {
    int64_t epoch, start_ns = 1000000000 * number;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, number, epoch, start_ns, &err));
    const struct lab_run outcome = {.state = state,
                                    .end_ns = start_ns + (int64_t)(seconds * 1e9),
                                    .error = state == LAB_RUN_FAILED ? "out of device memory" : "",
                                    .rate_unit = "",
                                    .valid = true};
    assert_works(lab_store_finish_run(store, number, &outcome, &err));
}

/* A study of two runs in `folder`, of which the first `done` are done. */
static inline void make_study(const char *folder, uint64_t identity, uint64_t machine, int done) {
    struct lab_store_study study = study_of(identity, machine);
    struct lab_run runs[2];
    for (int i = 0; i < 2; i++)
        runs[i] = (struct lab_run){.id = i ? "second" : "first",
                                   .identity = (uint64_t)i + 1,
                                   .position = i,
                                   .workload = "null",
                                   .label = "null",
                                   .options = "{}",
                                   .series = "[]",
                                   .test = "{}",
                                   .iterations = 10,
                                   .ranks = &a_rank,
                                   .rank_count = 1};
    struct lab_store *store;
    make_directories(folder);
    assert_works(lab_store_create(lab_arena_printf(&arena, "%s/study.db", folder), &study, runs, 2,
                                  &store, &err));
    for (int i = 0; i < done; i++)
        finish_run(store, i + 1, LAB_RUN_DONE, 2.0);
    lab_store_close(store);
}

/* --- what is asked for --- */

static inline struct lab_folder_request request(bool resume) {
    return (struct lab_folder_request){.output_dir = in_root("outputs"),
                                       .study = "quick_test",
                                       .identity = PLAN,
                                       .machine_identity = MACHINE,
                                       .resume = resume,
                                       .command = "gpulab run quick_test"};
}

static inline const char *in_study(const char *name) {
    return lab_arena_printf(&arena, "%s/outputs/quick_test/%s", root, name);
}

static inline bool open_and_keep(const void *what) {
    static struct lab_folder folder;
    return lab_folder_open(what, &folder, &err) == 0;
}

/* --- other processes --- */

struct other {
    pid_t pid;
    int from, to; /* pipes: a byte comes when it holds, it ends when `to` closes */
};

/* Starts a child that calls `hold` and then waits, and returns once it holds. */
static inline struct other start_other(bool (*hold)(const void *what), const void *what) {
    int from[2], to[2];
    assert_int_equal(pipe(from), 0);
    assert_int_equal(pipe(to), 0);
    struct other other = {.from = from[0], .to = to[1]};
    other.pid = fork();
    if (other.pid == 0) {
        char byte = '!';
        close(from[0]);
        close(to[1]);
        if (hold(what) && write(from[1], &byte, 1) == 1)
            while (read(to[0], &byte, 1) > 0)
                ;
        _exit(0);
    }
    close(from[1]);
    close(to[0]);
    char byte;
    if (read(other.from, &byte, 1) != 1)
        fail_msg("the other process couldn't hold it");
    return other;
}

static inline void wait_for_other(struct other *other) {
    close(other->from);
    close(other->to);
    waitpid(other->pid, NULL, 0);
}

static inline void kill_other(struct other *other) {
    kill(other->pid, SIGKILL);
    wait_for_other(other);
}
