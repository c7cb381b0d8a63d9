/* The cache of tuned configurations: what comes back, what is set aside, and two writers at
 * once. */
#include "store/tuning/tuning.h"

#include "base/file/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include <sqlite3.h>

static struct lab_err err;
static const char *path;

static int set_up(void **state) {
    (void)state;
    err = (struct lab_err)LAB_ERR_INIT;
    path = test_path("gpulab/tuning.db");
    return 0;
}

static struct lab_tuning_cache *open_cache(bool writable, const char **ret_note) {
    struct lab_tuning_cache *cache = NULL;
    if (lab_tuning_cache_open(path, writable, &test_arena, &cache, ret_note, &err))
        fail_msg("%s", err.text);
    return cache;
}

static struct lab_tuning_entry entry_of(const char *key, const char *config, int64_t when) {
    return (struct lab_tuning_entry){.key = key,
                                     .kernel = "cpu gemm 1",
                                     .shape = "gemm m1024",
                                     .device = "a CPU, 2 units",
                                     .config = config,
                                     .time_s = 1e-3,
                                     .low_s = 0.9e-3,
                                     .high_s = NAN,
                                     .certain = true,
                                     .tuned_wall_ns = when,
                                     .result = "{}"};
}

static void put(struct lab_tuning_cache *cache, struct lab_tuning_entry entry) {
    if (lab_tuning_cache_put(cache, &entry, &err))
        fail_msg("%s", err.text);
}

static const char *config_of(struct lab_tuning_cache *cache, const char *key) {
    struct lab_tuning_entry entry;
    int found = lab_tuning_cache_find(cache, key, &test_arena, &entry, &err);
    if (found < 0)
        fail_msg("%s", err.text);
    return found ? entry.config : NULL;
}

LAB_TEST(what_is_put_comes_back) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    struct lab_tuning_entry entry, *list;
    int count;
    put(cache, entry_of("a", "x=1", 10));
    put(cache, entry_of("b", "x=2", 20));
    put(cache, entry_of("a", "x=3", 5)); /* the last tuning of a key stands */
    lab_tuning_cache_close(cache);
    cache = open_cache(false, NULL);
    assert_int_equal(lab_tuning_cache_find(cache, "a", &test_arena, &entry, &err), 1);
    assert_string_equal(entry.config, "x=3");
    assert_string_equal(entry.shape, "gemm m1024");
    assert_true(entry.certain && entry.time_s == 1e-3 && isnan(entry.high_s));
    assert_null(config_of(cache, "c"));
    assert_int_equal(lab_tuning_cache_list(cache, &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].key, "b");
    lab_tuning_cache_close(cache);
    cache = open_cache(true, NULL);
    assert_int_equal(lab_tuning_cache_clear(cache, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_null(config_of(cache, "a"));
    lab_tuning_cache_close(cache);
}

LAB_TEST(one_that_is_not_there_is_empty_and_stays_away) {
    struct lab_tuning_entry *list;
    int count = 7;
    const char *note = "";
    struct lab_tuning_cache *cache = open_cache(false, &note);
    assert_null(config_of(cache, "a"));
    assert_int_equal(lab_tuning_cache_list(cache, &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, 0);
    assert_null(note);
    lab_tuning_cache_close(cache);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void exec(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

LAB_TEST(another_version_is_set_aside_with_a_note) {
    const char *note = NULL;
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    put(cache, entry_of("a", "x=1", 10));
    lab_tuning_cache_close(cache);
    exec("PRAGMA user_version = 9");
    /* given a file of version 9, when it is read, then it isn't used and stays */
    cache = open_cache(false, &note);
    assert_null(config_of(cache, "a"));
    assert_contains(note, "of version 9");
    lab_tuning_cache_close(cache);
    assert_int_equal(access(path, F_OK), 0);
    /* when it is to be written, then a new one takes its place */
    cache = open_cache(true, &note);
    assert_contains(note, "set aside as");
    assert_null(config_of(cache, "a"));
    put(cache, entry_of("a", "x=2", 10));
    lab_tuning_cache_close(cache);
    assert_int_equal(access(lab_arena_printf(&test_arena, "%s.old", path), F_OK), 0);
    cache = open_cache(true, &note);
    assert_null(note);
    assert_string_equal(config_of(cache, "a"), "x=2");
    lab_tuning_cache_close(cache);
}

LAB_TEST(what_is_no_cache_is_set_aside_too) {
    static const char text[] = "this was a shopping list once, long before it became a cache";
    const char *note = NULL;
    lab_tuning_cache_close(open_cache(true, NULL));
    assert_int_equal(lab_file_write_atomic(path, text, sizeof text, &err), 0);
    struct lab_tuning_cache *cache = open_cache(true, &note);
    assert_contains(note, "no cache of tuned configurations");
    put(cache, entry_of("a", "x=1", 1));
    lab_tuning_cache_close(cache);
}

/* Given a cache with one tuning that is damaged like that, it can be cleared, and tuning goes
 * on. */
static void check_damaged(void) {
    const char *note = NULL;
    struct lab_tuning_entry entry;
    int count;
    /* when it is read, then it is said or counts as not there; the file stays */
    struct lab_tuning_cache *cache = open_cache(false, &note);
    struct lab_err why = LAB_ERR_INIT;
    int found = lab_tuning_cache_find(cache, "a", &test_arena, &entry, &why);
    assert_true(found < 0 || (found == 0 && strstr(note, "damaged")));
    lab_tuning_cache_close(cache);
    /* when it is to be written, then a new one takes its place */
    cache = open_cache(true, &note);
    if (!note || !strstr(note, "is damaged: it was set aside as"))
        fail_msg("%s", note ? note : "no note");
    assert_int_equal(lab_tuning_cache_clear(cache, &count, &err), 0);
    put(cache, entry_of("a", "x=2", 10));
    assert_string_equal(config_of(cache, "a"), "x=2");
    lab_tuning_cache_close(cache);
}

LAB_TEST(a_damaged_one_is_set_aside) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    put(cache, entry_of("a", "x=1", 10));
    lab_tuning_cache_close(cache);
    /* all but the first page, which says what the file is */
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_int_equal(fseek(file, 4096, SEEK_SET), 0);
    for (long i = 4096; i < size; i++)
        fputc(0xaa, file);
    assert_int_equal(fclose(file), 0);
    check_damaged();
    exec("DROP TABLE trial");
    check_damaged();
}

LAB_TEST(what_a_killed_process_left_is_played_back) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    put(cache, entry_of("a", "x=1", 10));
    lab_tuning_cache_close(cache);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* it ends in a transaction that has changed the file already */
        sqlite3 *db;
        int status = sqlite3_open(path, &db) ||
                     sqlite3_exec(db,
                                  "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                                  "DELETE FROM entry;"
                                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                                  " LIMIT 500) INSERT INTO trial SELECT 's', hex(zeroblob(200)) || "
                                  "i, 0, '', 0, 0, 0, 0 FROM n",
                                  NULL, NULL, NULL);
        _exit(status);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(lab_arena_printf(&test_arena, "%s-journal", path), F_OK), 0);
    const char *note = NULL;
    cache = open_cache(false, &note);
    assert_null(note);
    assert_string_equal(config_of(cache, "a"), "x=1");
    lab_tuning_cache_close(cache);
}

/* What is no fault of the file's must not cost the user his tunings. */
LAB_TEST(a_file_that_can_not_be_read_stays) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    put(cache, entry_of("a", "x=1", 10));
    lab_tuning_cache_close(cache);
    const char *journal = lab_arena_printf(&test_arena, "%s-journal", path);
    assert_int_equal(mkdir(journal, 0700), 0); /* SQLite looks into it first */
    struct lab_err why = LAB_ERR_INIT;
    assert_int_equal(lab_tuning_cache_open(path, true, &test_arena, &cache, NULL, &why), -1);
    assert_int_equal(rmdir(journal), 0);
    assert_int_not_equal(access(lab_arena_printf(&test_arena, "%s.old", path), F_OK), 0);
    cache = open_cache(false, NULL);
    assert_string_equal(config_of(cache, "a"), "x=1");
    lab_tuning_cache_close(cache);
}

enum { WRITERS = 3, ENTRIES = 15 };

static void write_some(int writer) {
    for (int i = 0; i < ENTRIES; i++) {
        char key[32];
        struct lab_tuning_cache *cache = open_cache(true, NULL);
        snprintf(key, sizeof key, "%d-%d", writer, i);
        put(cache, entry_of(key, "x=1", i));
        put(cache, entry_of("shared", "x=1", i));
        lab_tuning_cache_close(cache);
    }
}

LAB_TEST(several_processes_lose_nothing) {
    pid_t children[WRITERS];
    struct lab_tuning_entry *list;
    int count;
    /* they also meet an old file at once: only one may move it */
    lab_tuning_cache_close(open_cache(true, NULL));
    exec("PRAGMA user_version = 9");
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0) {
            write_some(w);
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_int_equal(status, 0);
    }
    struct lab_tuning_cache *cache = open_cache(false, NULL);
    assert_int_equal(lab_tuning_cache_list(cache, &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, WRITERS * ENTRIES + 1);
    lab_tuning_cache_close(cache);
}

LAB_TEST(trials_are_kept_until_they_are_forgotten) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    struct lab_trial *list;
    int count;
    const struct lab_trial right = {.config = "x=1",
                                    .state = LAB_TRIAL_MEASURED,
                                    .rung = 2,
                                    .median_s = 1.5,
                                    .low_s = NAN,
                                    .high_s = 2};
    const struct lab_trial wrong = {
        .config = "x=2", .state = LAB_TRIAL_WRONG, .reason = "far off", .median_s = NAN};
    assert_int_equal(lab_tuning_cache_keep(cache, "s", &wrong, &err), 0);
    assert_int_equal(lab_tuning_cache_keep(cache, "s", &right, &err), 0);
    const struct lab_trial *again[] = {&right, &wrong}; /* once more: no others */
    assert_int_equal(lab_tuning_cache_keep_all(cache, "s", again, 2, &err), 0);
    assert_int_equal(lab_tuning_cache_keep(cache, "other", &right, &err), 0);
    assert_int_equal(lab_tuning_cache_trials(cache, "s", &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].state, LAB_TRIAL_MEASURED);
    assert_true(list[0].rung == 2 && list[0].median_s == 1.5 && isnan(list[0].low_s));
    assert_null(list[0].reason);
    assert_string_equal(list[1].reason, "far off");
    assert_int_equal(lab_tuning_cache_unfinished(cache, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(lab_tuning_cache_forget(cache, "s", &err), 0);
    assert_int_equal(lab_tuning_cache_trials(cache, "s", &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(lab_tuning_cache_trials(cache, "other", &test_arena, &list, &count, &err), 0);
    assert_int_equal(count, 1);
    lab_tuning_cache_close(cache);
}

LAB_TEST(the_later_of_two_tunings_stands_after_an_import) {
    struct lab_value *value;
    int count, taken;
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    put(cache, entry_of("a", "x=1", 10));
    put(cache, entry_of("b", "x=1", 10));
    put(cache, entry_of("c", "x=1", 10));
    assert_int_equal(lab_tuning_cache_export(cache, &test_arena, &value, &count, &err), 0);
    assert_int_equal(count, 3);
    put(cache, entry_of("a", "x=9", 20)); /* later than the export */
    put(cache, entry_of("b", "x=9", 5));  /* earlier */
    assert_int_equal(lab_tuning_cache_import(cache, value, &taken, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_int_equal(taken, 1);
    assert_string_equal(config_of(cache, "a"), "x=9");
    assert_string_equal(config_of(cache, "b"), "x=1");
    lab_tuning_cache_close(cache);
}

static void refuse_import(struct lab_tuning_cache *cache, const char *text, const char *part) {
    struct lab_value *value;
    int taken, count;
    assert_int_equal(lab_json_parse(text, strlen(text), "x.json", &test_arena, &value, &err), 0);
    assert_int_equal(lab_tuning_cache_import(cache, value, &taken, &count, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, part);
}

LAB_TEST(what_is_no_export_changes_nothing) {
    struct lab_tuning_cache *cache = open_cache(true, NULL);
    refuse_import(cache, "[]", "not an export of a tuning cache");
    refuse_import(cache, "{\"format\": \"gpulab tuning\", \"version\": 2, \"entries\": []}",
                  "has another version");
    refuse_import(cache,
                  "{\"format\": \"gpulab tuning\", \"version\": 1, \"entries\": ["
                  "{\"key\": \"k\", \"config\": \"x=1\"}, {\"key\": \"l\"}]}",
                  "without key or config");
    assert_null(config_of(cache, "k")); /* all or nothing */
    lab_tuning_cache_close(cache);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
