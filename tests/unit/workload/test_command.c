/* Programs as a workload: where they run, what they are told, what becomes of what they print. */
#include "machine/machine.h"
#include "workload/command/command.h"

#include "test.h"
#include <unistd.h>

extern const struct lab_workload lab_workload_command;

static struct lab_err err;
static struct lab_str out, metrics, steps, warnings;
static bool stop;

static void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(items[i].unit, "");
        assert_true(items[i].time_ns > 0);
        lab_str_printf(&metrics, "%s=%g", items[i].name, items[i].value);
        if (items[i].rank >= 0)
            lab_str_printf(&metrics, "r%d", items[i].rank);
        lab_str_add(&metrics, ";");
    }
}

static void on_progress(void *state, int64_t done, int64_t total) {
    (void)state;
    lab_str_printf(&steps, "%lld/%lld;", (long long)done, (long long)total);
}

static void on_output(void *state, bool is_stderr, const char *bytes, size_t length) {
    (void)state;
    lab_str_printf(&out, "%s%.*s", is_stderr ? "!" : "", (int)length, bytes);
}

static bool on_stopped(void *state) {
    (void)state;
    return stop;
}

static void on_warning(void *state, const char *text) {
    (void)state;
    lab_str_add(&warnings, text);
}

static const struct lab_sink sink = {on_metrics, on_progress, on_output,
                                     on_stopped, NULL,        on_warning};
static struct lab_rank rank;

static int set_up(void **state) {
    (void)state;
    lab_str_init(&out);
    lab_str_init(&metrics);
    lab_str_init(&steps);
    lab_str_init(&warnings);
    err = LAB_ERR_INIT;
    stop = false;
    rank = (struct lab_rank){.numa_node = -1, .count = 1, .seed = 42, .sink = &sink};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_str_release(&out);
    lab_str_release(&metrics);
    lab_str_release(&steps);
    lab_str_release(&warnings);
    return 0;
}

static int configure(const char *const *words, struct command_config **ret_config) {
    *ret_config = lab_workload_config(&lab_workload_command, &test_arena);
    for (; *words; words++)
        if (lab_options_set_word(lab_workload_command.options, *ret_config, &test_arena, *words,
                                 &err))
            return -1;
    return lab_workload_command.check(*ret_config, &err);
}

static struct lab_iteration records[3];

static int use(int count, const char *const *words) {
    struct command_config *config;
    void *state;
    if (configure(words, &config) < 0 || lab_workload_command.open(config, &rank, &state, &err) < 0)
        return -1;
    int result = lab_workload_command.run(state, count, records, &err);
    lab_workload_command.close(state);
    return result;
}

#define USE(count, ...) use(count, (const char *const[]){__VA_ARGS__, NULL})
#define DO(count, ...)                                                                             \
    do {                                                                                           \
        if (USE(count, __VA_ARGS__) < 0)                                                           \
            fail_msg("%s", err.text);                                                              \
    } while (0)
#define FAILS(kind, part, ...)                                                                     \
    do {                                                                                           \
        assert_int_equal(USE(1, __VA_ARGS__), -1);                                                 \
        assert_int_equal(err.code, kind);                                                          \
        if (!strstr(err.text, part))                                                               \
            fail_msg("no '%s' in: %s", part, err.text);                                            \
    } while (0)

LAB_TEST(an_iteration_is_a_run_from_start_to_exit) {
    DO(3, "command=[sh, -c, 'sleep 0.01; echo x']");
    assert_string_equal(out.text, "x\nx\nx\n");
    for (int i = 0; i < 3; i++) {
        assert_true(records[i].end_ns - records[i].start_ns >= 10000000);
        assert_true(i == 0 || records[i].start_ns >= records[i - 1].end_ns);
    }
}

LAB_TEST(words_and_variables_are_filled) {
    rank.gpu_id = 2;
    rank.run_id = "gpu2_numa0_lr0.1";
    DO(1, "command=[printenv, A, B, RATE]", "matrix={lr: 0.1}",
       "env={A: '{gpu_id} {lr}', B: 5, RATE: 'x{{y}}'}");
    assert_string_equal(out.text, "2 0.1\n5\nx{y}\n");
    lab_str_clear(&out);
    DO(1, "command='echo \"lr {lr}\" {run_id}'", "matrix={lr: 0.1}");
    assert_string_equal(out.text, "lr 0.1 gpu2_numa0_lr0.1\n");
}

static const char *variable(const char *name, const struct command_config *config) {
    const char **env = command_environment(config, &rank, &test_arena);
    size_t length = strlen(name);
    for (int i = 0; env[i]; i++)
        if (strncmp(env[i], name, length) == 0 && (!env[i][length] || env[i][length] == '='))
            return env[i] + length;
    return NULL;
}

LAB_TEST(variables_say_where_a_program_runs) {
    struct command_config config = {0};
    int cpus[] = {4, 5, 6};
    struct lab_device_ref ref = {.backend = "cpu", .name = "cpu:0", .cpus = {cpus, 3}};
    rank.ref = &ref;
    assert_string_equal(variable("CUDA_DEVICE_ORDER", &config), "=PCI_BUS_ID");
    assert_string_equal(variable("CUDA_VISIBLE_DEVICES", &config), "="); /* none was asked for */
    assert_string_equal(variable("OMP_NUM_THREADS", &config), "=3");
    assert_string_equal(variable("GPULAB_RUN_ID", &config), ""); /* not another gpulab's */
    assert_string_equal(variable("GPULAB_NUMA_NODE", &config), "");
    assert_null(variable("RANK", &config));
    unsetenv("PYTHONUNBUFFERED");
    assert_string_equal(variable("PYTHONUNBUFFERED", &config), "=1");
    setenv("PYTHONUNBUFFERED", "", 1); /* the user's */
    assert_null(variable("PYTHONUNBUFFERED", &config));
    unsetenv("PYTHONUNBUFFERED");

    rank = (struct lab_rank){
        .ref = &ref, .numa_node = 1, .index = 1, .count = 2, .run_id = "r", .folder = "/f"};
    assert_string_equal(variable("RANK", &config), "=1");
    assert_string_equal(variable("LOCAL_RANK", &config), "=1");
    assert_string_equal(variable("WORLD_SIZE", &config), "=2");
    assert_string_equal(variable("GPULAB_RUN_ID", &config), "=r");
    assert_string_equal(variable("GPULAB_OUTPUT_DIR", &config), "=/f");
    assert_string_equal(variable("GPULAB_NUMA_NODE", &config), "=1");

    ref = (struct lab_device_ref){.backend = "cuda", .name = "cuda:3", .unit = 3};
    assert_string_equal(variable("CUDA_VISIBLE_DEVICES", &config), "=3");
    assert_string_equal(variable("LOCAL_RANK", &config), "=0"); /* of the one that it sees */
    ref.name = "cuda:MIG-1234";
    ref.uuid = "MIG-1234";
    assert_string_equal(variable("CUDA_VISIBLE_DEVICES", &config), "=MIG-1234");
}

/* One program for all devices of a gang: it starts and numbers its processes itself. */
LAB_TEST(a_launcher_sees_all_its_devices) {
    struct command_config config = {0};
    struct lab_device_ref gpus[] = {
        {.backend = "cuda", .name = "cuda:1", .unit = 1, .uuid = "GPU-b"},
        {.backend = "cuda", .name = "cuda:3", .unit = 3, .uuid = "GPU-d"}};
    struct lab_device_list gang = {gpus, 2};
    rank = (struct lab_rank){
        .ref = &gpus[0], .gang = &gang, .numa_node = -1, .count = 2, .port = 4711};
    assert_string_equal(variable("MASTER_PORT", &config), "=4711");
    assert_string_equal(variable("CUDA_VISIBLE_DEVICES", &config), "=GPU-b,GPU-d");
    static const char *const theirs[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(variable(theirs[i], &config), ""); /* taken away */
    LAB_AUTO(str, filled);
    command_fill("{gpu_ids} {gpu_count} {world_size}", NULL, &rank, &filled);
    assert_string_equal(filled.text, "1,3 2 2");

    int cpus[] = {2, 3, 6, 7, 8};
    gpus[0] = (struct lab_device_ref){.backend = "cpu", .name = "cpu:0", .cpus = {cpus, 2}};
    gpus[1] = (struct lab_device_ref){.backend = "cpu", .name = "cpu:1", .cpus = {cpus + 2, 3}};
    assert_string_equal(variable("CUDA_VISIBLE_DEVICES", &config), "=");
    assert_string_equal(variable("OMP_NUM_THREADS", &config), "=2"); /* 5 cores for 2 processes */
    lab_str_clear(&filled);
    command_fill("{gpu_ids}", NULL, &rank, &filled);
    assert_string_equal(filled.text, "0,1");
    gpus[1].simulated = true;
    FAILS(LAB_ERR_UNSUPPORTED, "cpu:1 is simulated", "command=true");
}

LAB_TEST(a_launcher_runs_on_the_cores_of_all) {
    struct lab_cpus all = {0};
    assert_int_equal(lab_bind_read_cpus(0, &all, &err), 0);
    struct lab_device_ref halves[] = {{.backend = "cpu", .name = "a", .cpus = {all.items, 1}},
                                      {.backend = "cpu", .name = "b"}};
    halves[1].cpus = (struct lab_cpus){all.items + 1, all.count > 1 ? 1 : 0};
    struct lab_device_list gang = {halves, 2};
    rank = (struct lab_rank){
        .ref = &halves[0], .gang = &gang, .numa_node = -1, .count = 2, .sink = &sink};
    DO(1, "command=nproc", "env={OMP_NUM_THREADS: null}");
    assert_int_equal(strtol(out.text, NULL, 10), all.count > 1 ? 2 : 1);
    lab_mem_free(all.items);
}

LAB_TEST(what_the_user_sets_wins) {
    DO(1, "command=[sh, -c, 'echo $OMP_NUM_THREADS ${{CUDA_VISIBLE_DEVICES-unset}}']",
       "env={OMP_NUM_THREADS: 7, CUDA_VISIBLE_DEVICES: null}");
    assert_string_equal(out.text, "7 unset\n");
}

LAB_TEST(a_cpu_device_is_its_cores) {
    struct lab_cpus before = {0}, after = {0};
    assert_int_equal(lab_bind_read_cpus(0, &before, &err), 0);
    int last[] = {before.items[before.count - 1]};
    struct lab_device_ref ref = {.backend = "cpu", .name = "cpu:0/2.1", .cpus = {last, 1}};
    rank.ref = &ref;
    rank.numa_node = 0;
    DO(1, "command=[sh, -c, \"grep Cpus_allowed_list: /proc/self/status\"]");
    const char *text = strrchr(out.text, '\t');
    assert_int_equal(strtol(text, NULL, 10), last[0]);
    assert_null(strpbrk(text, ",-"));
    /* and who started it is where it was */
    assert_int_equal(lab_bind_read_cpus(0, &after, &err), 0);
    assert_int_equal(after.count, before.count);
    lab_mem_free(before.items);
    lab_mem_free(after.items);
}

/* --- what it prints --- */

#define TRAINING                                                                                   \
    "command=[sh, -c, \"echo Iter 1: loss=2.5; echo Iter 2 loss 1.5 >&2; "                         \
    "echo Final loss 0.5; printf '{{\\\"acc\\\": 3}}'\"]"

LAB_TEST(figures_and_progress_are_told) {
    DO(1, TRAINING, "metrics={patterns: ['Iter {iter} loss {loss}', 'Final * {final}']}",
       "matrix={max_iters: 500}");
    /* two streams: their lines may come in either order */
    assert_contains(metrics.text, "loss=2.5;");
    assert_contains(metrics.text, "loss=1.5;");
    assert_contains(metrics.text, "final=0.5;");
    assert_non_null(strstr(metrics.text, "acc=3;")); /* of a line without end */
    assert_contains(steps.text, "1/500;");
    assert_contains(steps.text, "2/500;");
    assert_contains(out.text, "!Iter 2 loss 1.5\n");
}

/* Given lines of two ranks, then each has its values, and the progress is of the first. */
LAB_TEST(ranks_of_a_launcher_are_told) {
    DO(1, "command=[sh, -c, \"echo '[rank1]: step 7 loss 2'; echo '[rank0]: step 6 loss 3'\"]");
    assert_string_equal(metrics.text, "loss=2r1;loss=3r0;");
    assert_string_equal(steps.text, "7/0;");
    assert_string_equal(warnings.text, "");
    lab_str_clear(&metrics);
    DO(2, "command=[sh, -c, \"echo '[rank1]: step 7 loss 2[rank0]: step 6 loss 3'\"]");
    assert_string_equal(metrics.text, "loss=2r1;loss=3r0;loss=2r1;loss=3r0;");
    assert_contains(warnings.text, "1 line of several ranks ran together; they were split");
    assert_null(strstr(strstr(warnings.text, "ran together") + 1, "ran together"));
}

/* Given output of which nothing is read, then a pattern is suggested, unless nothing is wanted. */
LAB_TEST(a_program_without_metrics_is_told_how) {
    DO(1, "command=[sh, -c, \"echo objective = 3.4 at 12\"]");
    assert_contains(warnings.text,
                    "no metric was read: the pattern 'objective {objective} at {step}' "
                    "would read its line 'objective = 3.4 at 12'");
    lab_str_clear(&warnings);
    DO(1, "command=[sh, -c, \"echo objective = 3.4 at 12\"]",
       "metrics={json: false, printed: false}");
    assert_string_equal(warnings.text, "");
}

LAB_TEST(nobody_needs_to_listen) {
    rank.sink = NULL;
    DO(1, TRAINING, "metrics={patterns: ['Iter {iter} loss {loss}']}");
    static const struct lab_sink deaf = {0};
    rank.sink = &deaf;
    DO(1, TRAINING);
}

/* --- when it goes wrong --- */

LAB_TEST(a_failure_has_the_program_s_last_words) {
    FAILS(LAB_ERR_SYSTEM, "the program ended with status 3; its last line: no such data",
          "command=[sh, -c, 'echo done; echo a >&2; echo no such data >&2; echo >&2; exit 3']");
    FAILS(LAB_ERR_SYSTEM, "ended with status 1; its last line: bye",
          "command=[sh, -c, 'echo bye; exit 1']");
    FAILS(LAB_ERR_SYSTEM, "ended with status 1 without output", "command=false");
    /* a launcher's footer is no reason, and neither is an error that it went on after */
    FAILS(LAB_ERR_SYSTEM, "ended with status 1; its first error (rank 1): ValueError: no data",
          "command=[sh, -c, 'echo OSError: retry; echo loss 0.5; echo [rank1]: ValueError: no data "
          ">&2; echo RuntimeError: peer gone >&2; echo e.ChildFailedError: >&2; echo === >&2; "
          "exit 1']");
    assert_int_equal(err.hint, LAB_HINT_PROGRAM_FAILED);
    /* ranks that waited for it go on for a line, and fail after it */
    FAILS(LAB_ERR_SYSTEM, "its first error (rank 1): Unlucky: a b",
          "command=[sh, -c, 'T=\"Traceback (most recent call last):\"; "
          "printf \"[rank1]: $T[rank0]: $T\\n[rank1]:   File x\\n[rank1]: Unlucky: a b\\n\" >&2; "
          "echo step 5 loss 2 >&2; echo [rank0]: RuntimeError: peer gone >&2; exit 1']");
    FAILS(LAB_ERR_SYSTEM, "its first error (rank 3): KeyError: 7",
          "command=[sh, -c, 'echo [rank0]: OSError: gone >&2; echo [rank3]: KeyError: 7 >&2; "
          "echo \"Root Cause (first observed failure):\" >&2; echo \"  rank      : 3 (x)\" >&2; "
          "exit 1']");
    FAILS(LAB_ERR_SYSTEM, "xxxxx, the end",
          "command=[sh, -c, 'printf \"ValueError: %0500d, the end\" 0 | tr 0 x >&2; exit 1']");
    FAILS(LAB_ERR_SYSTEM, "ended by signal 9 (Killed)", "command=[sh, -c, 'kill -9 $$']");
    assert_int_equal(err.hint, LAB_HINT_PROGRAM_KILLED);
    assert_null(strchr(err.text, '\n'));
}

LAB_TEST(lines_that_say_what_a_program_died_of) {
    static const struct {
        const char *line;
        bool error;
    } cases[] = {
        {"RuntimeError: CUDA error: out of memory", true},
        {"torch.cuda.OutOfMemoryError: CUDA out of memory.", true},
        {"[rank3]: ValueError: loss 0.5 diverged", true},
        {"KeyError", true},
        {"train.py: error: unrecognized arguments: --lrr", true},
        {"  raise ValueError(x)", false},
        {"val_error: 0.3", false},
        {"An Error: x", false},
        {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", false},
        {"subprocess.CalledProcessError: Command '[...]' returned non-zero exit status 1.", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (command_is_error(cases[i].line, strlen(cases[i].line)) != cases[i].error)
            fail_msg("%s", cases[i].line);
}

LAB_TEST(a_program_that_is_not_there_is_the_user_s) {
    FAILS(LAB_ERR_USER, "can't start 'gpulab-no-such-program'", "command=gpulab-no-such-program");
    FAILS(LAB_ERR_USER, "can't start '/etc/passwd'", "command=/etc/passwd");
}

LAB_TEST(it_can_be_stopped) {
    stop = true;
    FAILS(LAB_ERR_INTERRUPTED, "stopped", "command='sleep 60'");
}

LAB_TEST(mistakes_are_found_before_it_runs) {
    FAILS(LAB_ERR_USER, "command is missing", "env={}");
    FAILS(LAB_ERR_USER, "unknown placeholder {lrr}", "command='a \\{lrr\\}'", "matrix={lr: 1}");
    FAILS(LAB_ERR_USER, "env.A: unknown placeholder {x}", "command=a", "env={A: '{x}'}");
    FAILS(LAB_ERR_USER, "'1A' is not a variable name", "command=a", "env={1A: b}");
    FAILS(LAB_ERR_USER, "env.A is a list", "command=a", "env={A: [b]}");
    FAILS(LAB_ERR_USER, "env: must be a map", "command=a", "env=[b]");
    FAILS(LAB_ERR_USER, "reads no number", "command=a", "metrics={patterns: [x]}");
    FAILS(LAB_ERR_USER, "matrix: must be a map", "command=a", "matrix=3");
}

LAB_TEST(a_simulated_device_runs_no_program) {
    struct lab_device_ref ref = {.name = "sim:l40s-10:3", .simulated = true};
    rank.ref = &ref;
    FAILS(LAB_ERR_UNSUPPORTED, "sim:l40s-10:3 is simulated", "command=true");
}

/* A variable shows it a GPU or none: it would run beside those on the other slices, unseen. */
LAB_TEST(a_slice_of_a_gpu_runs_no_program) {
    struct lab_device_ref ref = {
        .name = "cuda:1/4.2", .backend = "cuda", .unit = 1, .slices = 4, .slice = 2};
    rank.ref = &ref;
    FAILS(LAB_ERR_UNSUPPORTED, "needs the whole GPU, not a slice; write device=cuda:1",
          "command=true");
}

/* --- labels --- */

static const char *label_of(const char *const *words) {
    struct command_config *config;
    if (configure(words, &config) < 0)
        fail_msg("%s", err.text);
    lab_str_clear(&out);
    lab_workload_command.label(config, &out);
    return out.text;
}

#define LABEL(...) label_of((const char *const[]){__VA_ARGS__, NULL})

LAB_TEST(a_label_is_the_matrix_or_the_program) {
    assert_string_equal(LABEL("command=a", "matrix={max_iters: 500, lr: 0.1}"),
                        "lr0.1_max_iters500");
    assert_string_equal(LABEL("command=a", "matrix={opt: 'a/b c'}"), "opta-b-c");
    assert_string_equal(LABEL("command='/usr/bin/python3 -u src/train.py --config a.py'"), "train");
    assert_string_equal(LABEL("command='torchrun --nproc_per_node=2 -m pkg.train'"), "pkg.train");
    assert_string_equal(LABEL("command='./run.sh'"), "run");
    assert_string_equal(LABEL("command='cat out.txt'"), "cat");
    assert_string_equal(LABEL("command='bin/job.txt out.txt'"), "job");
    assert_string_equal(LABEL("command='/bin/bash jobs/job.txt'"), "job");
    assert_string_equal(LABEL("command=[train]"), "train");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
