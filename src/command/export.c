/*
 * export.c: `gpulab export`: the data of a study or a recording for other programs, as CSV tables,
 * as one JSON document, or in the formats of other monitors. It reads while a study or recording
 * runs, too.
 */
#include "command/command.h"

#include "base/file/out_file.h"
#include "load/study_file.h"
#include "run/folder.h"
#include "store/export/export.h"
#include "store/foreign/monitor_file.h"
#include "store/recording/recording.h"

#include <stddef.h>
#include <sys/stat.h>

struct export_config {
    const char *format, *what, *output, *run, *phase;
    int64_t gpu;
};

static const char *const format_choices[] = {"csv",        "json",   "single",   "multi",
                                             "experiment", "system", "pcie-csv", NULL};
static const char *const what_choices[] = {"runs", "iterations", "metrics", "samples", NULL};

static const struct lab_option export_options[] = {
    {"format", LAB_OPTION_CHOICE, offsetof(struct export_config, format), .choices = format_choices,
     .letter = 'f',
     .help = "a table, the whole as one document, or what another monitor would have written; csv "
             "unless --json is given"},
    {"what", LAB_OPTION_CHOICE, offsetof(struct export_config, what), .choices = what_choices,
     .letter = 'w',
     .help = "which table of a study, runs by default; in JSON, iterations adds every iteration's "
             "times to the runs, and samples are those of its monitor"},
    {"run", LAB_OPTION_STRING, offsetof(struct export_config, run), .value_name = "ID",
     .help = "of a study, this run alone; of its samples, those from its start to its end"},
    {"phase", LAB_OPTION_STRING, offsetof(struct export_config, phase), .value_name = "NAME",
     .help = "likewise the runs of one phase: baseline, concurrent, isolated"},
    {"gpu", LAB_OPTION_INT, offsetof(struct export_config, gpu), .fallback = "-1", .min = -1,
     .max = 32767, .value_name = "N", .help = "of --format single, which GPU; -1 = the first"},
    {"output", LAB_OPTION_STRING, offsetof(struct export_config, output), .value_name = "FILE",
     .letter = 'o',
     .help =
         "write to this file instead of standard output; it appears whole or not. Rows of a study "
         "are JSON lines where it ends in .jsonl and no format is given"},
    {NULL},
};

/* --- what goes --- */

struct source {
    const char *path;        /* the file that is read */
    struct lab_store *store; /* a study's; NULL = a recording */
    struct lab_run *runs;    /* of it, those that are asked for */
    int run_count;
    bool samples; /* `recording` is what goes, not the runs */
    struct lab_recording recording;
    enum lab_monitor_format format;
};

static bool as_json(const struct lab_command_call *call) {
    const struct export_config *config = call->config;
    return call->console->json || lab_str_equal(config->format, "json");
}

/* Of rows: by the ending of the file, where no format is asked for. */
static const struct lab_doc_format *row_format(const struct export_config *config) {
    const struct lab_doc_format *format =
        config->output && !config->format ? lab_doc_row_format_find(config->output) : NULL;
    return format ? format : lab_doc_row_format_find("csv");
}

static int write_source(const struct lab_command_call *call, const struct source *source,
                        struct lab_doc_sink *sink, struct lab_err *err) {
    const struct export_config *config = call->config;
    const struct lab_doc_format *format = row_format(config);
    const struct lab_run *runs = source->runs;
    int count = source->run_count;
    bool iterations = lab_str_equal(config->what, "iterations");
    if (source->samples)
        return lab_monitor_export(&source->recording, source->format, (int)config->gpu, sink, err);
    if (as_json(call))
        return lab_export_json(source->store, runs, count, iterations, sink, err);
    if (iterations)
        return lab_export_iterations(source->store, runs, count, format, sink, err);
    if (lab_str_equal(config->what, "metrics"))
        return lab_export_metrics(source->store, runs, count, format, sink, err);
    return lab_export_runs(runs, count, format, sink);
}

/* --- where it goes --- */

struct target {
    struct lab_out_file file;
    struct lab_err *err;
};

static int write_piece(void *state, const char *bytes, size_t length) {
    struct target *target = state;
    return lab_out_file_write(&target->file, bytes, length, target->err);
}

static int write_to_file(const struct lab_command_call *call, const struct source *source,
                         struct lab_err *err) {
    const struct export_config *config = call->config;
    struct target target = {.err = err};
    LAB_AUTO(doc_sink, sink);
    sink.write = write_piece;
    sink.state = &target;
    if (lab_out_file_open(config->output, call->arena, &target.file, err) < 0)
        return -1;
    if (write_source(call, source, &sink, err) < 0) {
        lab_out_file_drop(&target.file);
        return -1;
    }
    return lab_out_file_finish(&target.file, err);
}

/* Who closed the pipe has enough. */
static int write_to_stdout(const struct lab_command_call *call, const struct source *source,
                           struct lab_err *err) {
    LAB_AUTO(doc_sink, sink);
    lab_doc_sink_to_console(&sink, call->console);
    int result = write_source(call, source, &sink, err);
    return result < 0 && ferror(call->console->out) ? 0 : result;
}

/* --- where it comes from --- */

static enum lab_monitor_format monitor_format(const struct lab_command_call *call) {
    const struct export_config *config = call->config;
    for (int i = 0; i < LAB_MONITOR_FORMAT_COUNT; i++)
        if (lab_str_equal(config->format, lab_monitor_format_name((enum lab_monitor_format)i)))
            return (enum lab_monitor_format)i;
    return call->console->json ? LAB_MONITOR_JSON : LAB_MONITOR_CSV;
}

/* Keeps the runs that are asked for. */
static int select_runs(const struct lab_command_call *call, struct source *source,
                       struct lab_err *err) {
    const struct export_config *config = call->config;
    const char **names = NULL;
    int count = 0, name_count = 0;
    if (lab_store_runs(source->store, call->arena, &source->runs, &source->run_count, err) < 0)
        return -1;
    for (int i = 0; i < source->run_count; i++) {
        const char *name =
            config->run ? source->runs[i].id : lab_study_file_phase(&source->runs[i], call->arena);
        const char *wanted = config->run ? config->run : config->phase;
        if (!wanted || lab_str_equal(name, wanted))
            source->runs[count++] = source->runs[i];
        if (*name && (!name_count || !lab_str_equal(names[name_count - 1], name)))
            LAB_ADD(names, name_count, call->arena) = name;
    }
    source->run_count = count;
    if (count || (!config->run && !config->phase))
        return 0;
    LAB_ADD(names, name_count, call->arena) = NULL;
    const char *nearest = lab_str_nearest(config->run ? config->run : config->phase, names);
    return lab_err_set(err, LAB_ERR_USER, "%s has no %s '%s'%s%s%s", source->path,
                       config->run ? "run" : "phase", config->run ? config->run : config->phase,
                       nearest    ? ": did you mean '"
                       : names[0] ? ", but '"
                                  : ": it has no phases",
                       nearest    ? nearest
                       : names[0] ? names[0]
                                  : "",
                       nearest    ? "'?"
                       : names[0] ? "'"
                                  : "");
}

static bool is_in(const struct source *source, int64_t time_ns) {
    for (int i = 0; i < source->run_count; i++)
        if (time_ns >= source->runs[i].start_ns && time_ns <= source->runs[i].end_ns)
            return true;
    return false;
}

/* Runs of a phase may have others between them, whose samples go. */
static void cut_samples(struct source *source) {
    for (int i = 0; i < source->recording.track_count; i++) {
        struct lab_track *track = &source->recording.tracks[i];
        size_t kept = 0;
        for (size_t k = 0; k < track->count; k++) {
            if (!is_in(source, track->times_ns[k]))
                continue;
            track->times_ns[kept] = track->times_ns[k];
            for (int c = 0; c < track->entity.column_count; c++) {
                track->values[c][kept] = track->values[c][k];
                track->valid[c][kept] = track->valid[c][k];
            }
            kept++;
        }
        track->count = kept;
    }
    size_t kept = 0;
    for (size_t i = 0; i < source->recording.process_count; i++)
        if (is_in(source, source->recording.processes[i].time_ns))
            source->recording.processes[kept++] = source->recording.processes[i];
    source->recording.process_count = kept;
}

/* What the monitor saw while the runs ran. */
static int read_samples_of_runs(const struct lab_command_call *call, struct source *source,
                                struct lab_err *err) {
    struct lab_recording_query query = {0};
    for (int i = 0; i < source->run_count; i++) {
        const struct lab_run *run = &source->runs[i];
        if (!run->epoch || !run->end_ns) {
            source->runs[i--] = source->runs[--source->run_count]; /* it didn't run */
            continue;
        }
        if (query.epoch && query.epoch != run->epoch)
            return lab_err_set(err, LAB_ERR_USER,
                               "the runs are of several boots of the machine: export them one by "
                               "one with --run");
        query.from_ns =
            query.epoch && query.from_ns < run->start_ns ? query.from_ns : run->start_ns;
        query.until_ns = query.until_ns > run->end_ns ? query.until_ns : run->end_ns;
        query.epoch = run->epoch;
    }
    if (!query.epoch)
        return lab_err_set(err, LAB_ERR_USER, "none of these runs has ended: there are no samples");
    if (lab_recording_read_store(source->store, &query, call->arena, &source->recording, err) < 0)
        return -1;
    cut_samples(source);
    return 0;
}

static int read_recording(const struct lab_command_call *call, struct source *source,
                          struct lab_err *err) {
    const struct export_config *config = call->config;
    int result = config->run || config->phase
                     ? read_samples_of_runs(call, source, err)
                     : lab_monitor_read(source->path, call->arena, &source->recording, err);
    for (const char **text = source->recording.missing; result == 0 && text && *text; text++)
        if (!call->console->quiet)
            lab_console_note("%s: %s", source->path, *text);
    bool any = source->recording.process_count > 0;
    for (int i = 0; i < source->recording.track_count; i++)
        any |= source->recording.tracks[i].count > 0;
    if (result == 0 && !source->store && !any)
        return lab_err_set(err, LAB_ERR_USER, "%s holds no samples", source->path);
    return result;
}

/* A file that is no study's may have been meant as a recording: what it lacks for that says
 * more. */
static int explain(const struct lab_command_call *call, const char *word, struct lab_err *err) {
    struct stat info;
    struct lab_recording recording;
    struct lab_err why = LAB_ERR_INIT;
    if (!word || stat(word, &info) < 0 || !S_ISREG(info.st_mode))
        return -1;
    if (lab_monitor_read(word, call->arena, &recording, &why) == 0)
        lab_err_set(&why, LAB_ERR_USER, "%s holds no samples", word);
    *err = why;
    return -1;
}

/* A recording by its file; anything else names a study, of which csv and json are the runs. */
static int open_source(const struct lab_command_call *call, struct source *source,
                       struct lab_err *err) {
    const struct export_config *config = call->config;
    const char *word = call->word_count ? call->words[0] : NULL, *folder;
    bool is_recording = word && lab_monitor_is_file(word);
    source->format = monitor_format(call);
    source->path = word;
    if (!is_recording) {
        if (lab_folder_resolve(word, call->arena, &folder, err) < 0)
            return explain(call, word, err);
        source->path = lab_arena_printf(call->arena, "%s/study.db", folder);
    }
    bool rows = source->format == LAB_MONITOR_CSV || source->format == LAB_MONITOR_JSON;
    bool samples = !config->what || lab_str_equal(config->what, "samples");
    source->samples = is_recording || !rows || (config->what && samples);
    if (!samples && source->samples)
        return lab_err_set(err, LAB_ERR_USER,
                           "--what %s is about the runs of a study, as csv or json, not about what "
                           "was recorded",
                           config->what);
    if (is_recording && (config->run || config->phase))
        return lab_err_set(err, LAB_ERR_USER,
                           "--run and --phase are about a study, and %s is a recording", word);
    if (is_recording)
        return 0;
    if (lab_store_open(source->path, LAB_STORE_READ, &source->store, err) < 0)
        return -1;
    return select_runs(call, source, err);
}

/* --- the command --- */

static int check_words(const struct lab_command_call *call, struct lab_err *err) {
    const struct export_config *config = call->config;
    if (call->console->json && config->format && !lab_str_equal(config->format, "json"))
        return lab_err_set(err, LAB_ERR_USER, "--format %s and --json exclude each other",
                           config->format);
    if (config->run && config->phase)
        return lab_err_set(err, LAB_ERR_USER, "give --run or --phase, not both");
    if (config->gpu >= 0 && !lab_str_equal(config->format, "single"))
        return lab_err_set(err, LAB_ERR_USER, "--gpu needs --format single");
    if (config->output && !*config->output)
        return lab_err_set(err, LAB_ERR_USER,
                           "--output needs a file's name, or - for standard output");
    return 0;
}

/* It is what the words name: writing over it would be its end. */
static int check_target(const char *path, const char *output, struct lab_err *err) {
    struct stat from, to;
    if (stat(path, &from) == 0 && stat(output, &to) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is the study's own file, or the recording's: choose another name",
                           output);
    return 0;
}

static int export_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct export_config *config = call->config;
    bool to_stdout = !config->output || lab_str_equal(config->output, "-");
    struct source source = {0};
    if (check_words(call, err) < 0)
        return -1;
    int result = open_source(call, &source, err);
    if (result == 0 && !to_stdout)
        result = check_target(source.path, config->output, err);
    if (result == 0 && source.samples)
        result = read_recording(call, &source, err);
    if (result == 0)
        result =
            to_stdout ? write_to_stdout(call, &source, err) : write_to_file(call, &source, err);
    lab_store_close(source.store);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab export > runs.csv", "the newest study's runs as a table"},
    {"gpulab export quick_test --format json -o quick_test.json",
     "all of the newest quick_test, with its machine and config"},
    {"gpulab export outputs/quick_test/2026-11-15/10-42-03 --what iterations -o times.csv",
     "every iteration of one study"},
    {"gpulab export recording.db --format multi -o gpu_stats_multi_gpu.json",
     "all GPUs of a recording, for scripts that read such files"},
    {"gpulab export contention --phase baseline --format experiment -o gpu_monitor_baseline.json",
     "what a monitor would have written during one phase"},
    {"gpulab export gpu_stats.json", "another monitor's file as a table"},
    {NULL},
};

const struct lab_command lab_command_export = {
    .name = "export",
    .summary = "write the data of a study or a recording as CSV or JSON",
    .usage = "[PATH]",
    .description =
        "PATH is a study's folder, anything in it, or the beginning of its name as 'gpulab list' "
        "shows it; the newest such one is meant. Without it, the newest of all. A study that is "
        "still running can be exported, too. Or PATH is a recording, or a file that another "
        "monitor wrote in one of the formats below, whole or cut off. Files of nvidia-smi "
        "(--query-gpu as CSV, dmon, pmon), nvitop (CSV), gpustat and all-smi (JSON) are read "
        "too.\n"
        "\n"
        "The table of runs has a line for each run: placement, outcome, rate with the interval "
        "within the run, latencies, bandwidths, and each setting. The tables of iterations and "
        "metrics are long: a line for each value. The JSON document holds study, machine, summary "
        "and runs, with the fields that results.json has.\n"
        "\n"
        "Of a recording, csv is a line for each device and tick with every metric, and json is "
        "everything. The other formats are those of the published guides' monitors, field for "
        "field. They apply to recordings and to what was recorded during a study. single and "
        "multi: a GPU, or all of them with their sums. experiment: GPUs by seconds since the "
        "start. system: cores, memory, NUMA nodes, processes. pcie-csv: rates in MB/s.",
    .options = export_options,
    .config_size = sizeof(struct export_config),
    .max_words = 1,
    .examples = examples,
    .run = export_run,
};
