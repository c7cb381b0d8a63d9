/*
 * command.c: any program of the user's as a workload. An iteration is one run of it, from start to
 * exit. gpulab sees to where it runs, times it and reads the figures that it prints; what it
 * computes, and on which device, is its own affair.
 */
#include "workload/workload.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "machine/machine.h"
#include "model/setting.h"
#include "workload/command/form.h"

#include <ctype.h>
#include <signal.h>

#define AT(field)  offsetof(struct command_config, field)
#define LABEL_TEXT 32 /* bytes of one value in a label */
#define BATCH_NS   (50 * LAB_NS_PER_MS)
#define SILENT_NS  (30 * LAB_NS_PER_S) /* without a metric: then it is said */

static const struct lab_option options[] = {
    {"command", LAB_OPTION_VALUE, AT(command),
     .help = "the program and its arguments: one text, split as a shell would, or a list of words; "
             "{name} is filled in"},
    {"env", LAB_OPTION_VALUE, AT(env), .fallback = "{}",
     .help = "its environment variables: a map; null removes one"},
    {"metrics", LAB_OPTION_VALUE, AT(metrics), .fallback = "{json: true, patterns: []}",
     .help = "how numbers are read from what it prints: JSON lines, patterns such as 'loss "
             "{loss}', and lines as trainings print them"},
    {"matrix", LAB_OPTION_VALUE, AT(matrix), .fallback = "{}",
     .help = "a map of values for the {names} in command and env"},
    {NULL},
};

/* --- before it runs --- */

static int check_words(const struct command_config *config, struct lab_arena *arena,
                       struct lab_err *err) {
    const char **words;
    int count;
    if (command_words(config->command, arena, &words, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (command_check_text("command", words[i], config->matrix, config->command, err) < 0)
            return -1;
    return 0;
}

static int command_check(void *opaque, struct lab_err *err) {
    const struct command_config *config = opaque;
    LAB_AUTO(arena, arena);
    struct command_reader *reader;
    return command_check_matrix(config->matrix, err) < 0 || check_words(config, &arena, err) < 0 ||
                   command_check_env(config->env, config->matrix, err) < 0 ||
                   command_reader_make(config->metrics, &arena, &reader, err) < 0
               ? -1
               : 0;
}

static bool value_uses(const struct lab_value *value, const char *key) {
    if (!value)
        return false;
    if (value->type == LAB_VALUE_STRING)
        return command_text_uses(value->string, key);
    for (int i = 0; i < value->count; i++)
        if (value_uses(value->items[i], key))
            return true;
    return false;
}

/* A value that nothing is filled with makes no other run. */
static bool command_uses(const void *opaque, const char *option, const char *key) {
    const struct command_config *config = opaque;
    return strcmp(option, "matrix") != 0 || value_uses(config->command, key) ||
           value_uses(config->env, key);
}

static bool uses_own(const struct command_config *config, const char *key) {
    return !lab_value_get(config->matrix, key) &&
           (value_uses(config->command, key) || value_uses(config->env, key));
}

/* Who asks how many GPUs there are, or which, starts a process for each. */
static bool command_launches_gang(const void *config) {
    return uses_own(config, COMMAND_GPU_IDS) || uses_own(config, COMMAND_GPU_COUNT);
}

static void command_cost(const void *config, struct lab_workload_cost *ret_cost) {
    (void)config;
    *ret_cost = (struct lab_workload_cost){.dtype = LAB_FP32};
}

/* Fit for a file's name. */
static void add_plain(struct lab_str *out, const char *text) {
    for (int i = 0; i < LABEL_TEXT && text[i]; i++) {
        bool plain = isalnum((unsigned char)text[i]) || strchr("._+-", text[i]);
        lab_str_add_bytes(out, plain ? &text[i] : "-", 1);
    }
}

static void add_program(const struct command_config *config, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    const char **words;
    int count;
    struct lab_err ignored;
    bool known = command_words(config->command, &arena, &words, &count, &ignored) == 0;
    add_plain(out, known ? lab_program_name(words, count, &arena) : "command");
}

static int by_name(const void *a, const void *b) {
    return strcmp(**(const char **const *)a, **(const char **const *)b);
}

/* "lr0.1_max_iters500", by ascending name: whoever wrote them in another order gets the same. */
static void command_label(const void *opaque, struct lab_str *out) {
    const struct command_config *config = opaque;
    const struct lab_value *matrix = config->matrix;
    int count = matrix && matrix->type == LAB_VALUE_MAP ? matrix->count : 0;
    if (count == 0) {
        add_program(config, out);
        return;
    }
    LAB_AUTO_FREE const char ***order = lab_mem_alloc((size_t)count, sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = &matrix->keys[i];
    qsort(order, (size_t)count, sizeof *order, by_name);
    LAB_AUTO(str, value);
    for (int i = 0; i < count; i++) {
        lab_str_clear(&value);
        command_add_scalar(matrix->items[order[i] - matrix->keys], &value);
        lab_str_add(out, i ? "_" : "");
        add_plain(out, *order[i]);
        add_plain(out, value.text);
    }
}

/* --- open --- */

struct command_state {
    struct lab_arena arena;
    const char **argv, **env;
    struct lab_cpus cpus; /* of CPU devices: where the program runs */
    int node;
    struct lab_sink sink;
    int64_t total; /* iterations that the program will do; 0 = unknown */
    const struct command_reader *reader;
    struct command_lines lines[2]; /* stdout, stderr */
    struct command_reading reading;
    int lead; /* index of the rank whose steps are the program's progress; -1 = none yet */
    struct command_batch batch;
    int64_t output_ns, handed_ns;            /* when output came last, and metrics were handed on */
    struct command_suggestions *suggestions; /* NULL = none are wanted */
    bool noticed, warned, clipped;
    int64_t start_ns;
    char last[2][COMMAND_LAST_MAX + 1];
    struct command_errors errors;
    struct lab_affinity_guard guard;
};

static void command_close(void *opaque) {
    struct command_state *state = opaque;
    if (!state)
        return;
    lab_arena_release(&state->arena);
    command_batch_release(&state->batch);
    command_reading_release(&state->reading);
    lab_mem_free(state);
}

static int64_t total_of(const struct lab_value *matrix) {
    const struct lab_value *total = lab_value_get(matrix, "max_iters");
    total = total ? total : lab_value_get(matrix, "max_steps");
    return total && total->type == LAB_VALUE_INT && total->integer > 0 ? total->integer : 0;
}

static int fill_words(struct command_state *state, const struct command_config *config,
                      const struct lab_rank *rank, struct lab_err *err) {
    int count;
    if (command_words(config->command, &state->arena, &state->argv, &count, err) < 0)
        return -1;
    LAB_AUTO(str, word);
    for (int i = 0; i < count; i++) {
        lab_str_clear(&word);
        command_fill(state->argv[i], config->matrix, rank, &word);
        state->argv[i] = lab_arena_strdup(&state->arena, word.text);
    }
    return *state->argv[0] ? 0
                           : lab_err_set(err, LAB_ERR_USER, "command: the program's name is empty");
}

static int check_place(const struct lab_device_ref *ref, struct lab_err *err) {
    if (ref && ref->simulated)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%s is simulated: your own program can't run on it", ref->name);
    if (ref && ref->slices > 1 && ref->cpus.count == 0)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%s: your own program needs the whole GPU, not a slice; "
                           "write device=%s:%d",
                           ref->name, ref->backend, ref->unit);
    return 0;
}

/* All cores of its CPU devices. */
static void add_cpus(struct command_state *state, const struct lab_rank *rank) {
    int places = command_place_count(rank), count = 0;
    for (int i = 0; i < places && command_place_at(rank, i); i++)
        count += command_place_at(rank, i)->cpus.count;
    state->cpus.items = lab_arena_alloc(&state->arena, (size_t)count + 1, sizeof(int));
    for (int i = 0; i < places && count > 0; i++) {
        const struct lab_cpus *cpus = &command_place_at(rank, i)->cpus;
        for (int k = 0; k < cpus->count; k++)
            state->cpus.items[state->cpus.count++] = cpus->items[k];
    }
}

static int command_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                        struct lab_err *err) {
    const struct command_config *config = opaque;
    for (int i = 0; i < command_place_count(rank); i++)
        if (check_place(command_place_at(rank, i), err) < 0)
            return -1;
    struct command_state *state = lab_mem_alloc(1, sizeof *state);
    lab_arena_init(&state->arena);
    command_batch_init(&state->batch);
    struct command_reader *reader;
    if (fill_words(state, config, rank, err) < 0 ||
        command_reader_make(config->metrics, &state->arena, &reader, err) < 0) {
        command_close(state);
        return -1;
    }
    state->env = command_environment(config, rank, &state->arena);
    state->reader = reader;
    if (command_reader_is_on(reader) && rank->index == 0) /* others often print no metrics */
        state->suggestions = command_suggestions_make(&state->arena);
    state->node = rank->numa_node;
    state->total = total_of(config->matrix);
    if (rank->sink)
        state->sink = *rank->sink;
    add_cpus(state, rank);
    *ret_state = state;
    return 0;
}

/* --- while it runs --- */

static void hand_on(struct command_state *state) {
    size_t count;
    const struct lab_reported_metric *items = command_batch_take(&state->batch, &count);
    if (count && state->sink.metrics)
        state->sink.metrics(state->sink.state, items, count);
    state->handed_ns = state->output_ns;
}

static void on_value(void *opaque, const struct command_value *value) {
    struct command_state *state = opaque;
    state->suggestions = NULL;
    if (state->batch.count == COMMAND_BATCH_MOST)
        hand_on(state);
    command_batch_add(&state->batch, value, state->output_ns);
}

/* One line that can stand in a message. */
static const char *clean(char last[COMMAND_LAST_MAX + 1]) {
    last[lab_str_utf8_prefix(last, strlen(last))] = '\0';
    for (char *c = last; *c; c++)
        *c = iscntrl((unsigned char)*c) ? ' ' : *c;
    return last;
}

/* Its steps, or those of a bar; -1 = none are counted. */
static double done(const struct command_progress *progress, int64_t *ret_total) {
    double total = progress->has_step ? progress->total : progress->bar_total;
    *ret_total = total < 0x1p53 ? (int64_t)total : 0;
    return progress->has_step ? progress->step : progress->has_bar ? progress->bar : -1;
}

static void on_line(struct command_state *state, int stream, const char *text, size_t length) {
    int64_t total;
    double before = state->lead < 0 ? -1 : done(&state->reading.ranks[state->lead], &total);
    command_keep_line(state->last[stream], text, length);
    command_errors_line(&state->errors, text, length);
    bool read = command_reader_line(state->reader, &state->reading, text, length, on_value, state);
    if (state->suggestions)
        command_suggestions_add(state->suggestions, text, length);
    if (!read)
        return;
    if (state->errors.count > 0)
        command_errors_go_on(&state->errors, state->reading.rank);
    const struct command_progress *progress = command_reading_of(&state->reading, -1);
    double now = done(progress, &total);
    if (state->lead < 0 && now >= 0)
        state->lead = (int)(progress - state->reading.ranks);
    if (progress == &state->reading.ranks[state->lead] && now != before && state->sink.progress &&
        now >= 0 && now < 0x1p53)
        state->sink.progress(state->sink.state, (int64_t)now, state->total ? state->total : total);
}

static void on_out_line(void *state, const char *text, size_t length) {
    on_line(state, 0, text, length);
}

static void on_err_line(void *state, const char *text, size_t length) {
    on_line(state, 1, text, length);
}

/* Bars that are drawn now are newer than what comes next from the other end. */
static void look_at_bars(struct command_state *state, int but) {
    for (int i = 0; i < 2; i++)
        if (i != but)
            command_lines_look(&state->lines[i], i ? on_err_line : on_out_line, state);
}

static void on_output(void *opaque, bool is_stderr, const char *bytes, size_t length) {
    struct command_state *state = opaque;
    look_at_bars(state, is_stderr);
    state->output_ns = lab_clock_now(lab_clock_system());
    if (state->sink.output)
        state->sink.output(state->sink.state, is_stderr, bytes, length);
    command_lines_add(&state->lines[is_stderr], bytes, length,
                      is_stderr ? on_err_line : on_out_line, state);
}

static void on_started(void *opaque) {
    lab_affinity_guard_end(&((struct command_state *)opaque)->guard);
}

static void suggest(struct command_state *state, void (*tell)(void *state, const char *text)) {
    if (state->suggestions && tell)
        tell(state->sink.state, command_suggestions_text(state->suggestions, &state->arena));
}

static void warn_split(struct command_state *state) {
    int64_t split = state->reading.split;
    if (split > 0 && !state->warned && state->sink.warning)
        state->sink.warning(
            state->sink.state,
            lab_arena_printf(&state->arena,
                             "%lld line%s of several ranks ran together; they were split; let each "
                             "rank write to a file of its own",
                             (long long)split, split == 1 ? "" : "s"));
    state->warned |= split > 0;
}

static void warn_clipped(struct command_state *state, int64_t longer) {
    int64_t clipped = longer + state->reading.full;
    if (clipped > 0 && !state->clipped && state->sink.warning)
        state->sink.warning(
            state->sink.state,
            lab_arena_printf(&state->arena,
                             "%lld line%s too long, or had too many numbers, to be read whole (%d "
                             "KiB, %d numbers)",
                             (long long)clipped, clipped == 1 ? " was" : "s were",
                             COMMAND_LINE_MAX / 1024, COMMAND_FORM_MAX));
    state->clipped |= clipped > 0;
}

static bool on_stopped(void *opaque) {
    struct command_state *state = opaque;
    int64_t now_ns = lab_clock_now(lab_clock_system());
    look_at_bars(state, -1);
    if (state->batch.count && now_ns - state->handed_ns >= BATCH_NS)
        hand_on(state);
    if (!state->noticed && now_ns - state->start_ns >= SILENT_NS) {
        state->noticed = true;
        suggest(state, state->sink.notice);
    }
    return state->sink.stopped && state->sink.stopped(state->sink.state);
}

static int judge(struct command_state *state, const struct lab_subprocess_result *result,
                 struct lab_err *err) {
    if (result->stopped)
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "the program was stopped");
    if (result->exit_status == 0)
        return 0;
    int rank;
    char *last = state->last[*state->last[1] ? 1 : 0],
         *first = command_errors_first(&state->errors, &rank), of_rank[32] = "";
    /* a program by itself ends with its error; launchers and other ranks print more after it */
    if (first && rank < 0 && command_is_error(last, strlen(last)))
        first = NULL;
    if (first && rank >= 0)
        snprintf(of_rank, sizeof of_rank, " (rank %d)", rank);
    const char *words = clean(first ? first : last);
    if (result->signal)
        lab_err_set(err, LAB_ERR_SYSTEM, "the program was ended by signal %d (%s)", result->signal,
                    strsignal(result->signal));
    else
        lab_err_set(err, LAB_ERR_SYSTEM, "the program ended with status %d", result->exit_status);
    char how[sizeof err->text];
    snprintf(how, sizeof how, "%s", err->text);
    lab_err_set(err, LAB_ERR_SYSTEM, "%s%s%s%s%s", how,
                first    ? "; its first error"
                : *words ? "; its last line"
                         : " without output",
                of_rank, *words ? ": " : "", words);
    return lab_err_hint(err, result->signal == SIGKILL ? LAB_HINT_PROGRAM_KILLED
                                                       : LAB_HINT_PROGRAM_FAILED);
}

static int run_once(struct command_state *state, struct lab_iteration *record,
                    struct lab_err *err) {
    const struct lab_subprocess_watcher watcher = {on_started, on_output, on_stopped, state};
    const struct lab_subprocess_spec spec = {
        .argv = state->argv, .env = state->env, .watcher = &watcher};
    struct lab_subprocess_result result;
    LAB_AUTO(arena, scratch);
    if (lab_affinity_guard_begin(&state->cpus, state->node, &state->guard, err) < 0)
        return -1;
    state->last[0][0] = state->last[1][0] = '\0';
    state->errors.count = state->errors.root = 0;
    command_reading_release(&state->reading);
    state->lead = -1;
    state->start_ns = lab_clock_now(lab_clock_system());
    int outcome = lab_subprocess_run(&spec, &scratch, &result, err);
    lab_affinity_guard_end(&state->guard);
    int64_t longer = command_lines_end(&state->lines[0], on_out_line, state) +
                     command_lines_end(&state->lines[1], on_err_line, state);
    command_reading_end(&state->reading, on_value, state);
    hand_on(state);
    if (outcome == 0 && state->sink.held)
        state->sink.held(state->sink.state, result.held_ns, result.duration_ns);
    if (outcome < 0 || judge(state, &result, err) < 0)
        return -1;
    suggest(state, state->sink.warning);
    state->suggestions = NULL; /* once is enough */
    warn_split(state);
    warn_clipped(state, longer);
    *record = (struct lab_iteration){.start_ns = result.start_ns,
                                     .end_ns = result.start_ns + result.duration_ns};
    return 0;
}

static int command_run(void *opaque, int count, struct lab_iteration *records,
                       struct lab_err *err) {
    for (int i = 0; i < count; i++)
        if (run_once(opaque, &records[i], err) < 0)
            return -1;
    return 0;
}

static int command_verify(void *opaque, uint64_t seed, struct lab_verification *ret,
                          struct lab_err *err) {
    (void)opaque, (void)seed, (void)err;
    *ret = (struct lab_verification){.applicable = false};
    snprintf(ret->text, sizeof ret->text, "the program's results are its own");
    return 0;
}

const struct lab_workload lab_workload_command = {
    .name = "command",
    .help = "runs a program of your own, bound and timed, and reads the values that it prints",
    .description =
        "An iteration is one run of the program from its start to its exit. It runs on the "
        "device's\n"
        "cores and with the NUMA node's memory; CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS and, in a "
        "gang,\n"
        "RANK, LOCAL_RANK and WORLD_SIZE say where. No shell is started.\n"
        "\n"
        "Names of matrix in command and env are filled in, such as {lr}; {{ is a brace. Others:\n"
        "{gpu_id}, {gpu_ids}, {gpu_count}, {numa_node}, {device}; {rank}, {world_size}, {port};\n"
        "{seed}, {repeat}, {run_id}, {output_dir}. With {gpu_ids} or {gpu_count} it is started\n"
        "once for all GPUs of a gang.",
    .options = options,
    .config_size = sizeof(struct command_config),
    .external = true,
    .check = command_check,
    .uses = command_uses,
    .launches_gang = command_launches_gang,
    .label = command_label,
    .cost = command_cost,
    .open = command_open,
    .close = command_close,
    .run = command_run,
    .verify = command_verify,
};
