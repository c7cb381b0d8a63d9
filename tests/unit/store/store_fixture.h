/* store_fixture.h: a folder for each test, and a small study whose every field differs from 0. */
#pragma once

#include "store/store.h"

#include "test.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct lab_arena arena;
static struct lab_err err;
static char folder[64];
static const char *path; /* of study.db in the folder */

static const struct lab_store_study a_study = {
    .name = "numa_locality_study",
    .option = "numa_study",
    .identity = 0xfedcba9876543210,
    .seed = UINT64_MAX,
    .config = "experiment:\n  name: größer\n",
    .words = "[\"run\", \"numa_study\"]",
    .machine = "{\"nodes\": 2}",
    .version = "0.3.0",
    .created_wall_ns = 1700000000123456789,
    .machine_identity = 0xf00dfeedbeef0001,
};

static const struct lab_run_rank two_ranks[] = {{0, "cpu:0/2.0", 0}, {1, "cpu:0/2.1", 3}};

/* In the file they are numbered as they come here; their planned order is the other way round. */
static const struct lab_run two_runs[] = {
    {.id = "gpu0_gpu1_vit32x6x512",
     .identity = 0x8000000000000001,
     .position = 1,
     .repeat = 2,
     .workload = "vit",
     .label = "32x6x512",
     .options = "{\"depth\": 6}",
     .series = "[\"strong\"]",
     .test = "{\"num_samples\": 100}",
     .iterations = 20,
     .warmup_iterations = 4,
     .ranks = two_ranks,
     .rank_count = 2},
    {.id = "gpu0_null", .identity = 5, .workload = "null", .ranks = two_ranks, .rank_count = 1},
};

static inline int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    snprintf(folder, sizeof folder, "/tmp/gpulab-test-store-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    path = lab_arena_printf(&arena, "%s/study.db", folder);
    return 0;
}

static inline int count_files(const char *directory, bool remove_them) {
    int count = 0;
    DIR *listing = opendir(directory);
    for (const struct dirent *entry; (entry = readdir(listing));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove_them)
            unlink(lab_arena_printf(&arena, "%s/%s", directory, entry->d_name));
    }
    closedir(listing);
    return count;
}

static inline int tear_down(void **state) {
    (void)state;
    chmod(folder, 0700);
    count_files(folder, true);
    rmdir(folder);
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
        err = LAB_ERR_INIT;                                                                        \
    } while (0)

static inline struct lab_store *create(const char *where) {
    struct lab_store *store = NULL;
    assert_works(lab_store_create(where, &a_study, two_runs, 2, &store, &err));
    return store;
}

static inline struct lab_store *reopen(enum lab_store_mode mode) {
    struct lab_store *store = NULL;
    assert_works(lab_store_open(path, mode, &store, &err));
    return store;
}

/* The run with this number as the file has it. */
static inline struct lab_run read_run(struct lab_store *store, int64_t number) {
    struct lab_run *runs = NULL;
    int count = 0;
    assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
    for (int i = 0; i < count; i++) {
        if (runs[i].number == number)
            return runs[i];
    }
    fail_msg("no run %d", (int)number);
    return (struct lab_run){0};
}

static inline size_t count_iterations(struct lab_store *store, int64_t run, int rank) {
    struct lab_iteration *items = NULL;
    size_t count = 0;
    assert_works(lab_store_iterations(store, run, rank, &arena, &items, &count, &err));
    return count;
}

/* Iteration `index` of a rank; no two are the same. */
static inline struct lab_iteration iteration(int64_t index, int rank) {
    int64_t start_ns = 5000000000 + index * 1000003 + rank * 17;
    return (struct lab_iteration){
        .start_ns = start_ns,
        .end_ns = start_ns + 900000 + index % 7,
        .stages = {[LAB_STAGE_COMPUTE] = {start_ns + 10, start_ns + 800000 + index % 5}}};
}

static inline int add_iterations(struct lab_store *store, int64_t run, int rank, int64_t first,
                                 size_t count) {
    struct lab_iteration *items = lab_arena_alloc(&arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = iteration(first + (int64_t)i, rank);
    return lab_store_add_iterations(store, run, rank, first, items, count, &err);
}

static const struct lab_run a_result = {.state = LAB_RUN_DONE,
                                        .end_ns = 9000,
                                        .exit_code = 0,
                                        .concurrent = true,
                                        .rate = 12.5,
                                        .rate_low = 12.25,
                                        .rate_high = NAN,
                                        .rate_unit = "samples/s",
                                        .valid = true};
