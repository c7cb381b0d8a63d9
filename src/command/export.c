/*
 * export.c: `gpulab export`: the data of a study for other programs, as CSV tables or as one JSON
 * document. It reads while the study runs, too.
 */
#include "command/command.h"

#include "command/support/out_file.h"
#include "store/export.h"
#include "store/store.h"
#include "study/folder.h"

#include <stddef.h>
#include <sys/stat.h>

struct export_config {
    const char *format, *what, *output;
};

static const char *const format_choices[] = {"csv", "json", NULL};
static const char *const what_choices[] = {"runs", "iterations", "metrics", NULL};

static const struct lab_option export_options[] = {
    {"format", LAB_OPTION_CHOICE, offsetof(struct export_config, format), .choices = format_choices,
     .letter = 'f',
     .help = "a table, or the whole study as one document; csv unless --json is given"},
    {"what", LAB_OPTION_CHOICE, offsetof(struct export_config, what), .choices = what_choices,
     .letter = 'w', .fallback = "runs",
     .help = "which table; in JSON, iterations adds every iteration's times to the runs"},
    {"output", LAB_OPTION_STRING, offsetof(struct export_config, output), .value_name = "FILE",
     .letter = 'o',
     .help = "write to this file instead of standard output; it appears whole or not"},
    {NULL},
};

/* --- where it goes --- */

struct target {
    const struct lab_command_call *call;
    struct lab_out_file *file; /* NULL = standard output */
    struct lab_err *err;
};

static int write_piece(void *state, const char *bytes, size_t length) {
    const struct target *target = state;
    if (target->file)
        return lab_out_file_write(target->file, bytes, length, target->err);
    /* as it is: data for a program, whatever the terminal shows. Who closed the pipe has enough */
    lab_command_write(target->call, bytes, length);
    return ferror(target->call->out) ? -1 : 0;
}

/* --- what goes --- */

static bool as_json(const struct lab_command_call *call) {
    const struct export_config *config = call->config;
    return call->shared->json || lab_str_equal(config->format, "json");
}

static int write_study(const struct lab_command_call *call, struct lab_store *store,
                       const struct lab_export *out, struct lab_err *err) {
    const struct export_config *config = call->config;
    bool iterations = lab_str_equal(config->what, "iterations");
    if (as_json(call))
        return lab_export_json(store, iterations, out, err);
    struct lab_run *runs;
    int count;
    if (lab_store_runs(store, call->arena, &runs, &count, err) < 0)
        return -1;
    if (iterations)
        return lab_export_iterations_csv(store, runs, count, out, err);
    if (lab_str_equal(config->what, "metrics"))
        return lab_export_metrics_csv(store, runs, count, out, err);
    return lab_export_csv(runs, count, out, err);
}

static int write_to_file(const struct lab_command_call *call, struct lab_store *store,
                         struct lab_err *err) {
    const struct export_config *config = call->config;
    struct lab_out_file file;
    if (lab_out_file_open(config->output, call->arena, &file, err) < 0)
        return -1;
    struct target target = {call, &file, err};
    if (write_study(call, store, &(struct lab_export){write_piece, &target}, err) < 0) {
        lab_out_file_drop(&file);
        return -1;
    }
    return lab_out_file_finish(&file, err);
}

static int write_to_stdout(const struct lab_command_call *call, struct lab_store *store,
                           struct lab_err *err) {
    struct target target = {call, NULL, err};
    int result = write_study(call, store, &(struct lab_export){write_piece, &target}, err);
    /* what standard output refused is told at the program's end, as for every command */
    return result < 0 && ferror(call->out) ? 0 : result;
}

/* --- the command --- */

static int check_words(const struct lab_command_call *call, struct lab_err *err) {
    const struct export_config *config = call->config;
    if (call->shared->json && lab_str_equal(config->format, "csv"))
        return lab_err_set(err, LAB_ERR_USER, "--format csv and --json exclude each other");
    if (config->output && !*config->output)
        return lab_err_set(err, LAB_ERR_USER,
                           "--output needs a file's name, or - for standard output");
    return 0;
}

/* The study is what the words name: writing over it would be its end. */
static int check_target(const char *database, const char *output, struct lab_err *err) {
    struct stat from, to;
    if (stat(database, &from) == 0 && stat(output, &to) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
        return lab_err_set(err, LAB_ERR_USER, "%s is the study's own file: choose another name",
                           output);
    return 0;
}

static int run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct export_config *config = call->config;
    const char *folder;
    if (check_words(call, err) < 0 ||
        lab_folder_resolve(call->word_count ? call->words[0] : NULL, call->arena, &folder, err) < 0)
        return -1;
    const char *database = lab_arena_printf(call->arena, "%s/study.db", folder);
    bool to_stdout = !config->output || lab_str_equal(config->output, "-");
    if (!to_stdout && check_target(database, config->output, err) < 0)
        return -1;
    struct lab_store *store;
    if (lab_store_open(database, LAB_STORE_READ, &store, err) < 0)
        return -1;
    int result = to_stdout ? write_to_stdout(call, store, err) : write_to_file(call, store, err);
    lab_store_close(store);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab export > runs.csv", "the newest study's runs as a table"},
    {"gpulab export quick_test --format json -o quick_test.json",
     "all of the newest quick_test, with its machine and config"},
    {"gpulab export outputs/quick_test/2026-11-15/10-42-03 --what iterations -o times.csv",
     "every iteration of one study"},
    {NULL},
};

const struct lab_command lab_command_export = {
    .name = "export",
    .summary = "write a study's data as CSV or JSON",
    .usage = "[PATH]",
    .description =
        "PATH is a study's folder, anything in it, or the beginning of its name as 'gpulab list' "
        "shows it; the newest such one is meant. Without it, the newest of all. A study that is "
        "still running can be exported, too.\n\n"
        "The table of runs has a line for each run: where it ran, what became of it, its rate with "
        "the interval within the run, latencies, bandwidths, and a column for each of its "
        "settings. "
        "The tables of iterations and metrics are long: a line for each value. The JSON document "
        "holds "
        "study, machine, summary and runs, with the fields that results.json has.",
    .options = export_options,
    .config_size = sizeof(struct export_config),
    .max_words = 1,
    .examples = examples,
    .run = run,
};
