/*
 * command.c: what main does. It stays cheap on purpose: nothing is loaded, read or measured before
 * the command is known, so that `gpulab help` answers at once.
 */
#include "command/command.h"

#include "base/file/out_file.h"
#include "base/file/walk.h"
#include "base/log.h"
#include "device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define STATUS_PIPE_CLOSED (128 + SIGPIPE) /* as a shell shows a program that SIGPIPE ended */

/*
 * A program may be started with its standard streams closed; the next file opened would then take
 * their number and get our output. stdout is replaced by one that can't be written, so that a
 * result nobody receives is still an error.
 */
static void fill_standard_streams(void) {
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            continue;
}

static void log_to_stderr(enum lab_log_level level, const char *text, void *state) {
    (void)state;
    lab_console_note("%s: %s", lab_log_level_name(level), text);
}

/* --json in front of any "--", found without parsing: it also shapes the errors of parsing. */
static bool wants_json(int argc, char **argv) {
    bool json = false;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--json=true") == 0)
            json = true;
        else if (strcmp(argv[i], "--no-json") == 0 || strcmp(argv[i], "--json=false") == 0)
            json = false;
    }
    return json;
}

static const char *code_name(enum lab_err_code code) {
    static const char *const names[] = {[LAB_ERR_USER] = "user",
                                        [LAB_ERR_MEMORY] = "memory",
                                        [LAB_ERR_UNSUPPORTED] = "unsupported",
                                        [LAB_ERR_WRONG] = "wrong",
                                        [LAB_ERR_INTERRUPTED] = "interrupted"};
    return names[code] ? names[code] : "system";
}

static void print_json_error(const struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_value *inner = lab_value_map(&arena), *outer = lab_value_map(&arena);
    lab_value_set_string(&arena, inner, "code", code_name(err->code));
    lab_value_set_string(&arena, inner, "message", err->text);
    lab_value_set(&arena, outer, "error", inner);
    struct lab_console console = {.out = stdout};
    lab_console_print_json(&console, outer);
}

/* The status of a program whose output may not have arrived. */
static int finish_output(int status) {
    int reason = lab_console_finish();
    if (!reason)
        return status;
    if (reason == EPIPE)
        return STATUS_PIPE_CLOSED;
    lab_console_note("writing to standard output: %s", strerror(reason));
    return status ? status : 1;
}

static int check_word_count(const struct lab_command *command, int count, struct lab_err *err) {
    if (count >= command->min_words && (command->max_words < 0 || count <= command->max_words))
        return 0;
    const char *usage = command->usage ? command->usage : "";
    if (command->max_words == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s takes options only: see 'gpulab %s --help'",
                           command->name, command->name);
    return lab_err_set(err, LAB_ERR_USER, "%s: %s: the usage is 'gpulab %s %s'", command->name,
                       count < command->min_words ? "something is missing" : "too many words",
                       command->name, usage);
}

static void start_log(const char *level_name) {
    enum lab_log_level level = LAB_LOG_WARNING;
    if (level_name && lab_log_level_parse(level_name, &level) == 0)
        lab_log_set_sink(log_to_stderr, NULL, level);
}

static int run_command(const struct lab_command *command, int argc, char **argv,
                       struct lab_arena *arena, int *ret_status, struct lab_err *err) {
    /* one struct for both tables: the command's config, and the shared one behind it */
    size_t base = (command->config_size + 15) / 16 * 16;
    char *config = lab_arena_alloc(arena, base + sizeof(struct lab_shared), 1);
    static const struct lab_option none[] = {{NULL}};
    const struct lab_option *tables[] = {command->options ? command->options : none,
                                         lab_command_shared_options(command, base, arena), NULL};
    for (int i = 0; tables[i]; i++)
        lab_options_defaults(tables[i], config, arena);

    const char **words;
    struct lab_console console = {.out = stdout,
                                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                  .err_is_terminal = isatty(STDERR_FILENO) == 1};
    struct lab_command_call call = {
        .command = command,
        .shared = (const struct lab_shared *)(const void *)(config + base),
        .config = config,
        .arena = arena,
        .console = &console,
    };
    if (lab_options_parse(tables, config, arena, argc, (const char *const *)argv,
                          command->takes_program, &words, &call.word_count, &call.rest, err) < 0)
        return lab_err_context(err, "%s", command->name);
    call.words = words;
    console.style = lab_console_style(console.out_is_terminal, STDOUT_FILENO);
    console.json = call.shared->json;
    console.quiet = call.shared->quiet;

    if (call.shared->help)
        return lab_command_show_help(&call, command,
                                     command->sections && call.word_count ? words[0] : NULL, err);
    if (call.rest && call.rest[0] && !command->takes_rest && !command->takes_program)
        return lab_err_set(err, LAB_ERR_USER, "%s takes nothing after '--'", command->name);
    if (check_word_count(command, call.word_count, err) < 0)
        return -1;
    start_log(call.shared->log_level);
    return command->run(&call, ret_status, err);
}

/* `gpulab`, `gpulab --help` and `gpulab --version` are other words for commands. */
static const char *command_name(int argc, char **argv) {
    if (argc < 2 || lab_str_equal(argv[1], "--help") || lab_str_equal(argv[1], "-h"))
        return "help";
    if (lab_str_equal(argv[1], "--version") || lab_str_equal(argv[1], "-V"))
        return "version";
    return argv[1];
}

const char *const *lab_command_names(struct lab_arena *arena) {
    int all = 0, count = 0;
    while (lab_commands[all])
        all++;
    const char **names = lab_arena_alloc(arena, (size_t)all + 1, sizeof *names);
    for (int i = 0; i < all; i++)
        if (!lab_commands[i]->hidden)
            names[count++] = lab_commands[i]->name;
    return names;
}

const struct lab_command *lab_command_find(const char *name, struct lab_err *err) {
    for (int i = 0; lab_commands[i]; i++)
        if (lab_str_equal(lab_commands[i]->name, name))
            return lab_commands[i];
    LAB_AUTO(arena, arena);
    const char *const *names = lab_command_names(&arena);
    LAB_AUTO(str, list);
    lab_str_add_list(&list, names, "or");
    const char *nearest = lab_str_nearest(name, names);
    if (name[0] == '-')
        lab_err_set(err, LAB_ERR_USER, "option '%s' must follow a command: %s", name, list.text);
    else if (nearest)
        lab_err_set(err, LAB_ERR_USER, "unknown command '%s' (did you mean '%s'?): use %s", name,
                    nearest, list.text);
    else
        lab_err_set(err, LAB_ERR_USER, "unknown command '%s': use %s", name, list.text);
    return NULL;
}

int lab_command_check_output(const struct lab_command_call *call, const char *path,
                             struct lab_err *err) {
    struct lab_walk_seen read = {0};
    if (!path)
        return 0;
    for (int i = 0; i < call->word_count; i++)
        lab_walk_again(&read, call->words[i], call->arena);
    if (lab_walk_again(&read, path, call->arena))
        return lab_err_set(err, LAB_ERR_USER, "%s is what is read: name another file to write",
                           path);
    return lab_out_file_check(path, err);
}

int lab_command_main(int argc, char **argv) {
    fill_standard_streams();
    signal(SIGXFSZ,
           SIG_IGN); /* a file at its limit (ulimit -f) is an error of write, as a full disk */
    struct lab_err err = LAB_ERR_INIT;
    LAB_AUTO(arena, arena);
    int status = 0;
    const struct lab_command *command = lab_command_find(command_name(argc, argv), &err);
    int skip = argc < 2 ? argc : 2;
    if (!command || run_command(command, argc - skip, argv + skip, &arena, &status, &err) < 0) {
        lab_console_status_line(NULL);
        if (wants_json(argc, argv))
            print_json_error(&err);
        /* the result so far first, so that both streams on one terminal read in order */
        lab_console_finish();
        lab_console_note("%s", err.text);
        status = lab_err_exit_status(err.code);
    }
    return finish_output(status);
}
