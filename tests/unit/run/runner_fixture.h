/* runner_fixture.h: a plan written by hand, a real store in a folder of its own, and what was
 * told. */
#pragma once

#include "rogue.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/json.h"
#include "run/runner.h"
#include "workload/workload.h"

#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/wait.h>

#define RUNS_MAX   24
#define EVENTS_MAX 1000

static struct lab_arena arena;
static struct lab_err err;
static char folder[64];
static struct lab_plan plan;
static struct lab_plan_run planned[RUNS_MAX];
static struct lab_runner_item items[RUNS_MAX];
static int run_count;
static struct lab_store *store;
static struct lab_runner_spec spec;
static struct lab_runner_patience patience;
static struct lab_runner_outcome outcome;
static const char *const rogue_argv[] = {"/proc/self/exe", "rogue", NULL};
static const char *const *worker_argv = rogue_argv;

static struct {
    enum lab_runner_event_kind kind;
    const char *id, *text;
    int attempt;
    double value;
    int64_t done, total;
} told[EVENTS_MAX];
static int told_count;
static int open_files;

/* when to stop: at the first event of this kind, with this level */
static struct {
    enum lab_runner_event_kind at;
    int level, now;
} stopping;

static void hear_event(const struct lab_runner_event *event, void *state) {
    (void)state;
    if (stopping.level && event->kind == stopping.at)
        stopping.now = stopping.level;
    if (told_count == EVENTS_MAX)
        return;
    told[told_count].kind = event->kind;
    told[told_count].id = event->item ? event->item->planned->id : "";
    told[told_count].text = event->text ? lab_arena_strdup(&arena, event->text) : "";
    told[told_count].attempt = event->attempt;
    told[told_count].value = event->value;
    told[told_count].done = event->done;
    told[told_count++].total = event->total;
}

static void (*listener)(const struct lab_runner_event *, void *) = hear_event;

static int ask_stop(void *state) {
    (void)state;
    return stopping.now;
}

static int (*asker)(void *) = ask_stop;

static inline int count_events(enum lab_runner_event_kind kind) {
    int count = 0;
    for (int i = 0; i < told_count; i++)
        count += told[i].kind == kind;
    return count;
}

static const char *find_event(enum lab_runner_event_kind kind, const char *gist) {
    for (int i = 0; i < told_count; i++)
        if (told[i].kind == kind && strstr(told[i].text, gist))
            return told[i].text;
    return NULL;
}

static int count_open_files(void) {
    int count = 0;
    DIR *listing = opendir("/proc/self/fd");
    while (readdir(listing))
        count++;
    closedir(listing);
    return count;
}

static void remove_all(const char *directory) {
    DIR *listing = opendir(directory);
    for (const struct dirent *entry; listing && (entry = readdir(listing));) {
        if (entry->d_name[0] == '.')
            continue;
        const char *path = lab_arena_printf(&arena, "%s/%s", directory, entry->d_name);
        if (unlink(path) < 0)
            remove_all(path);
    }
    if (listing)
        closedir(listing);
    rmdir(directory);
}

static inline int set_up(void **state) {
    (void)state;
    open_files = count_open_files();
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    run_count = told_count = 0;
    memset(planned, 0, sizeof planned);
    memset(&stopping, 0, sizeof stopping);
    plan = (struct lab_plan){.study = "rogues", .max_workers = 1, .runs_per_device = 1};
    patience = (struct lab_runner_patience){.grace_ns = 200 * LAB_NS_PER_MS,
                                            .exit_ns = 5 * LAB_NS_PER_S,
                                            .close_ns = 300 * LAB_NS_PER_MS,
                                            .log_max_bytes = 100000};
    snprintf(folder, sizeof folder, "/tmp/gpulab-test-runner-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* Whatever the workers did, no descriptor, no process and no zombie is left of them. */
static inline int tear_down(void **state) {
    (void)state;
    lab_store_close(store);
    store = NULL;
    remove_all(folder);
    lab_arena_release(&arena);
    if (count_open_files() != open_files)
        return -1;
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* Devices are joined by commas, one for each rank. */
static struct lab_plan_run *add_run(const char *id, const char *devices) {
    struct lab_plan_run *run = &planned[run_count];
    struct lab_run_rank *ranks = lab_arena_alloc(&arena, 8, sizeof *ranks);
    char *rest = lab_arena_strdup(&arena, devices);
    for (char *device; (device = strsep(&rest, ","));)
        ranks[run->rank_count++].device = device;
    run->id = id;
    run->identity = (uint64_t)run_count + 1;
    run->workload = "null";
    run->options = lab_value_map(&arena);
    run->label = "null";
    run->ranks = ranks;
    run->iterations = 5;
    run->timeout_s = 60;
    run_count++;
    return run;
}

static void make_store(void) {
    struct lab_run runs[RUNS_MAX] = {0};
    struct lab_store_study study = {.name = "rogues",
                                    .option = "rogues",
                                    .config = "",
                                    .words = "[]",
                                    .machine = "{}",
                                    .version = "0"};
    for (int i = 0; i < run_count; i++)
        runs[i] = (struct lab_run){.id = planned[i].id,
                                   .identity = planned[i].identity,
                                   .position = i,
                                   .workload = "null",
                                   .label = "null",
                                   .options = "{}",
                                   .series = "[]",
                                   .test = "{}",
                                   .iterations = planned[i].iterations,
                                   .ranks = planned[i].ranks,
                                   .rank_count = planned[i].rank_count};
    if (lab_store_create(lab_arena_printf(&arena, "%s/study.db", folder), &study, runs, run_count,
                         &store, &err) < 0)
        fail_msg("%s", err.text);
}

/* Runs what was added; `number` of the first is 1. */
static int carry_out(void) {
    if (!store)
        make_store();
    for (int i = 0; i < run_count; i++)
        items[i] = (struct lab_runner_item){&planned[i], i + 1};
    spec.plan = &plan;
    spec.store = store;
    spec.items = items;
    spec.item_count = run_count;
    spec.folder = folder;
    spec.worker_argv = worker_argv;
    spec.patience = &patience;
    spec.stop = asker;
    spec.event = listener;
    if (lab_store_epoch(store, "runner", &spec.epoch, &err) < 0)
        fail_msg("%s", err.text);
    return lab_runner_run(&spec, &outcome, &err);
}

static void assert_carried_out(void) {
    if (carry_out() < 0)
        fail_msg("%s", err.text);
}

static struct lab_run stored(int number) {
    struct lab_run *runs = NULL;
    int count = 0;
    if (lab_store_runs(store, &arena, &runs, &count, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < count; i++)
        if (runs[i].number == number)
            return runs[i];
    fail_msg("there is no run %d", number);
    return (struct lab_run){0};
}

static inline struct lab_value *stored_result(int number) {
    return lab_result_value(stored(number).result, LAB_RESULT_RUN_VIEW, NULL, &arena);
}

static inline double figure(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    assert_non_null(value);
    return value->type == LAB_VALUE_INT     ? (double)value->integer
           : value->type == LAB_VALUE_FLOAT ? value->number
                                            : NAN;
}

static inline const char *sentences(const struct lab_value *map, const char *key) {
    struct lab_str text;
    lab_str_init(&text);
    lab_json_write(lab_value_get(map, key), 0, &text);
    const char *copy = lab_arena_strdup(&arena, text.text);
    lab_str_release(&text);
    return copy;
}

static inline const char *read_log(const char *name) {
    char *text = NULL;
    size_t length = 0;
    if (lab_file_read(lab_arena_printf(&arena, "%s/logs/%s", folder, name), 1 << 20, &arena, &text,
                      &length, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static inline void assert_failed(int number, const char *gist) {
    struct lab_run run = stored(number);
    assert_int_equal(run.state, LAB_RUN_FAILED);
    if (!strstr(run.error, gist))
        fail_msg("'%s' doesn't say '%s'", run.error, gist);
}

static inline void assert_hint(int number, enum lab_hint_id hint) {
    assert_string_equal(lab_hint(stored(number).hint)->name, lab_hint(hint)->name);
}

static inline void assert_done(int number) {
    struct lab_run run = stored(number);
    assert_string_equal(run.error, "");
    assert_int_equal(run.state, LAB_RUN_DONE);
}

/* All that noted themselves in the folder's file "pids" are no more. */
static inline void assert_family_is_gone(int count) {
    char *text = NULL;
    size_t length = 0;
    if (lab_file_read(lab_arena_printf(&arena, "%s/pids", folder), 1 << 20, &arena, &text, &length,
                      &err) < 0)
        fail_msg("%s", err.text);
    for (char *line; count > 0; count--) {
        line = strsep(&text, "\n");
        assert_non_null(line);
        pid_t pid = (pid_t)strtol(line, NULL, 10);
        assert_true(pid > 1);
        if (kill(pid, 0) == 0 || errno != ESRCH)
            fail_msg("process %d is still there", (int)pid);
    }
}
