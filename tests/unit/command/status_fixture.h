/*
 * status_fixture.h: studies on disk for `status` and `estimate`, in a folder of each test's own,
 * with a runner that holds one of them: a child process that does nothing else.
 */
#pragma once

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"
#include "run/folder.h"
#include "store/store.h"

#include "test.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_COUNT   4
#define ITERATIONS  100
#define RUN_S       8 /* what a run of a study takes that is done */
#define HOLDERS_MAX 4

static struct lab_arena arena;
static struct lab_err err;
static char place[] = "/tmp/gpulab-status-XXXXXX";
static const char *outputs;

static struct {
    pid_t pid;
    int go; /* closing it lets the holder end */
} holders[HOLDERS_MAX];
static int holder_count;

#define assert_works(call) assert_string_equal((call) < 0 ? err.text : "", "")

/* --- life --- */

static inline int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    memcpy(place + sizeof place - 7, "XXXXXX", 6);
    if (!mkdtemp(place))
        return -1;
    outputs = lab_arena_printf(&arena, "%s/outputs", place);
    setenv("XDG_STATE_HOME", lab_arena_printf(&arena, "%s/state", place), 1);
    setenv("XDG_CONFIG_HOME", lab_arena_printf(&arena, "%s/config", place), 1);
    return 0;
}

static inline void let_go(int index) {
    close(holders[index].go);
    waitpid(holders[index].pid, NULL, 0);
}

static inline int remove_one(const char *name, const struct stat *info, int kind,
                             struct FTW *walk) {
    (void)info;
    (void)kind;
    (void)walk;
    return remove(name);
}

static inline int tear_down(void **state) {
    (void)state;
    while (holder_count > 0)
        let_go(--holder_count);
    nftw(place, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    lab_arena_release(&arena);
    return 0;
}

/* --- studies --- */

static inline uint64_t identity_of(const char *study) {
    uint64_t identity = 7;
    for (; *study; study++)
        identity = identity * 31 + (unsigned char)*study;
    return identity;
}

static inline struct lab_folder_request request_of(const char *study) {
    return (struct lab_folder_request){.output_dir = outputs,
                                       .study = study,
                                       .identity = identity_of(study),
                                       .machine_identity = 99,
                                       .resume = true,
                                       .command = "gpulab run quick_test"};
}

static const char *run_workload = "vit";

/* Four different models, so that what is known of one says nothing exact about another. */
static inline struct lab_run *planned_runs(void) {
    static const struct lab_run_rank rank = {0, "cpu:0", 0};
    struct lab_run *runs = lab_arena_alloc(&arena, RUN_COUNT, sizeof *runs);
    for (int i = 0; i < RUN_COUNT; i++)
        runs[i] = (struct lab_run){
            .id = lab_arena_printf(&arena, "gpu0_numa0_vit%d", i),
            .identity = (uint64_t)i + 1,
            .position = i,
            .workload = run_workload,
            .label = lab_arena_printf(&arena, "vit%d", i),
            .options = lab_arena_printf(&arena, "{\"depth\": %d}", i),
            .series = "[]",
            .test = "{}",
            .iterations = ITERATIONS,
            .ranks = &rank,
            .rank_count = 1,
        };
    return runs;
}

/* 'd' done in RUN_S, 'f' failed, 'r' begun 10 s ago, '.' planned. */
static inline void bring_to(struct lab_store *store, int64_t epoch, int number, char state) {
    int64_t now_ns = lab_clock_now(lab_clock_system()), start_ns = now_ns - 10 * LAB_NS_PER_S;
    struct lab_run outcome = {.state = state == 'd' ? LAB_RUN_DONE : LAB_RUN_FAILED,
                              .end_ns = start_ns + RUN_S * LAB_NS_PER_S,
                              .exit_code = state == 'f',
                              .error = state == 'f' ? "out of device memory" : "",
                              .rate_unit = ""};
    if (state != '.')
        assert_works(lab_store_begin_run(store, number, epoch, start_ns, &err));
    if (state == 'd' || state == 'f')
        assert_works(lab_store_finish_run(store, number, &outcome, &err));
}

/* A study in outputs whose runs are in these states; its path. Nobody holds it. */
static inline const char *given_study(const char *study, const char *states) {
    struct lab_folder_request request = request_of(study);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_store *store;
    int64_t epoch;
    struct lab_store_study record = {
        .name = study,
        .option = study,
        .identity = request.identity,
        .config = "device: cpu\n",
        .words = lab_arena_printf(&arena, "[\"%s\"]", study),
        .machine = "{\"host\": \"node7\", \"cores\": 2}",
        .version = "0.3.0",
        .created_wall_ns = lab_clock_wall_ns(),
        .machine_identity = request.machine_identity,
    };
    request.resume = false;
    assert_works(lab_folder_open(&request, &folder, &err));
    const char *database = lab_arena_printf(&arena, "%s/study.db", folder.path);
    assert_works(
        lab_store_create(database, &record, planned_runs(), (int)strlen(states), &store, &err));
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    for (int i = 0; states[i]; i++)
        bring_to(store, epoch, i + 1, states[i]);
    lab_store_close(store);
    assert_works(lab_folder_publish(&folder, &err));
    const char *path = lab_arena_strdup(&arena, folder.place);
    lab_folder_register(path);
    lab_folder_close(&folder);
    return path;
}

/* Says that run `number` has done so many of its iterations by now. */
static inline void given_progress(const char *path, int64_t number, const char *phase,
                                  int64_t done) {
    struct lab_store *store;
    struct lab_run_progress progress = {.run = number,
                                        .phase = phase,
                                        .done = done,
                                        .total = ITERATIONS,
                                        .time_ns = lab_clock_now(lab_clock_system())};
    const char *database = lab_arena_printf(&arena, "%s/study.db", path);
    assert_works(lab_store_open(database, LAB_STORE_WRITE, &store, &err));
    assert_works(lab_store_set_progress(store, &progress, 1, &err));
    lab_store_close(store);
}

/* In the child: takes the study up, says so, and waits. */
static inline void hold(const char *study, int ready, int go) {
    struct lab_folder_request request = request_of(study);
    struct lab_folder folder = LAB_FOLDER_INIT;
    char byte = lab_folder_open(&request, &folder, &err) == 0 && folder.resumed ? '+' : '-';
    if (write(ready, &byte, 1) == 1)
        while (read(go, &byte, 1) > 0)
            continue;
    lab_folder_close(&folder);
    _exit(0);
}

/* A process that holds the newest unfinished study of this name until the test ends or lets it
 * go. */
static inline int given_runner(const char *study) {
    int ready[2], go[2];
    assert_true(holder_count < HOLDERS_MAX);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ready[0]);
        close(go[1]);
        for (int i = 0; i < holder_count; i++)
            close(holders[i].go);
        hold(study, ready[1], go[0]);
    }
    close(ready[1]);
    close(go[0]);
    char byte = '-';
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(byte, '+');
    holders[holder_count].pid = pid;
    holders[holder_count].go = go[1];
    return holder_count++;
}

/* --- commands --- */

static char *output; /* of the last command */
static int status;   /* its exit status */

/* Carries a command out: words, and options as --name or --name=value. --json is the shared one. */
static inline int call_command(const struct lab_command *command, FILE *out, bool is_terminal,
                               const char *const *argv) {
    struct lab_shared shared = {.device = "cpu"};
    void *config = lab_arena_alloc(&arena, 1, command->config_size);
    const char *words[8] = {0};
    struct lab_console console = {
        .out = out, .out_is_terminal = is_terminal, .style = {.columns = 80, .unicode = true}};
    struct lab_command_call call = {
        .command = command,
        .shared = &shared,
        .config = config,
        .words = words,
        .arena = &arena,
        .console = &console,
    };
    lab_options_defaults(command->options, config, &arena);
    for (; *argv; argv++) {
        if (strcmp(*argv, "--json") == 0) {
            shared.json = console.json = true;
        } else if (lab_str_starts(*argv, "--")) {
            const char *word =
                lab_arena_printf(&arena, "%s%s", *argv + 2, strchr(*argv, '=') ? "" : "=true");
            assert_works(lab_options_set_word(command->options, config, &arena, word, &err));
        } else {
            assert_true(call.word_count < 7);
            words[call.word_count++] = *argv;
        }
    }
    status = 0;
    err = LAB_ERR_INIT;
    return command->run(&call, &status, &err);
}

static inline int call_for_output(const struct lab_command *command, const char *const *argv) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    int result = call_command(command, out, false, argv);
    fclose(out);
    output = lab_arena_strdup(&arena, text);
    free(text);
    return result;
}

#define CALL(command, ...)                                                                         \
    assert_works(call_for_output(&command, (const char *const[]){__VA_ARGS__, NULL}))

#define assert_output(part)                                                                        \
    do {                                                                                           \
        if (!strstr(output, part))                                                                 \
            fail_msg("no '%s' in:\n%s", part, output);                                             \
    } while (0)

/* The last command's output as a tree. */
static inline struct lab_value *output_value(void) {
    struct lab_value *value = NULL;
    assert_works(lab_json_parse(output, strlen(output), "output", &arena, &value, &err));
    return value;
}
