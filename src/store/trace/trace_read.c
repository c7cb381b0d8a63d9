/*
 * trace_read.c: opens a trace, asks which processes it tells of, and reads each one's records. A
 * report of Nsight's is exported first: its format is Nsight's own.
 */
#include "store/trace/trace_read.h"

#include "base/file/out_dir.h"
#include "base/list.h"
#include "base/str.h"
#include "base/subprocess.h"
#include "store/sql.h"
#include "store/trace/trace_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS     2000 /* for one who is writing it */
#define OUTPUT_MAX  (64 << 10)
#define PROCESS_MAX 4096 /* of one trace */

/* --- processes --- */

/* Those that used a device, ascending; one that is 0 where the tables don't say whose work it
 * is. */
static int find_processes(const struct trace_reader *reader, uint32_t *processes, int *ret_count,
                          struct lab_err *err) {
    static const char *const columns[] = {"start", "globalPid", NULL};
    int count = 0;
    for (int i = 0; trace_device_tables[i]; i++) {
        sqlite3_stmt *rows;
        if (trace_rows_open(reader, trace_device_tables[i], columns, 1, &rows, err) < 0)
            return -1;
        int status;
        while ((status = trace_rows_next(reader, rows, err)) > 0) {
            uint32_t process = trace_process_of(sqlite3_column_int64(rows, 1));
            bool known = false;
            for (int k = 0; k < count && !known; k++)
                known = processes[k] == process;
            if (!known && count < PROCESS_MAX)
                processes[count++] = process;
        }
        if (status < 0)
            return -1;
    }
    LAB_SORT_NUMBERS(processes, count);
    if (count > 1 && processes[0] == 0) /* some rows don't say: they go with each of the others */
        memmove(processes, processes + 1, (size_t)--count * sizeof *processes);
    *ret_count = count;
    return 0;
}

/* --- what it is --- */

static int check_trace(struct trace_reader *reader, struct lab_err *err) {
    static const char *const marks[] = {"StringIds", "META_DATA_EXPORT", "NVTX_EVENTS",
                                        "CUPTI_ACTIVITY_KIND_RUNTIME", NULL};
    if (trace_read_tables(reader, err) < 0)
        return -1;
    for (int i = 0; marks[i]; i++)
        if (trace_has_table(reader, marks[i]))
            return 0;
    for (int i = 0; trace_device_tables[i]; i++)
        if (trace_has_table(reader, trace_device_tables[i]))
            return 0;
    if (trace_has_table(reader, "study"))
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is a study, not a trace: name its folder to read its traces",
                           reader->path);
    return lab_err_set(err, LAB_ERR_USER,
                       "%s is not a trace: it is a database without Nsight Systems' tables "
                       "(CUPTI_ACTIVITY_KIND_KERNEL, NVTX_EVENTS, …)",
                       reader->path);
}

static const char *list_missing(const struct trace_reader *reader) {
    static const char *const wanted[] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"};
    const char *names[5] = {NULL};
    int count = 0;
    if (!trace_has_table(reader, "CUPTI_ACTIVITY_KIND_KERNEL") &&
        !trace_has_table(reader, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"))
        names[count++] = "CUPTI_ACTIVITY_KIND_KERNEL";
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!trace_has_table(reader, wanted[i]))
            names[count++] = wanted[i];
    if (count == 0)
        return NULL;
    LAB_AUTO(str, text);
    lab_str_add_list(&text, names, "and");
    return lab_arena_strdup(reader->arena, text.text);
}

/* --- databases --- */

static int read_all(struct trace_reader *reader, struct lab_trace_file *ret_file,
                    struct lab_err *err) {
    uint32_t processes[PROCESS_MAX];
    int count;
    if (check_trace(reader, err) < 0 || trace_read_strings(reader, err) < 0 ||
        find_processes(reader, processes, &count, err) < 0)
        return -1;
    struct lab_trace_file file = {
        .traces = lab_arena_alloc(reader->arena, (size_t)count + 1, sizeof *file.traces),
        .missing = list_missing(reader)};
    for (; file.trace_count < count; file.trace_count++)
        if (trace_read_records(reader, processes[file.trace_count], &file.traces[file.trace_count],
                               err) < 0)
            return -1;
    *ret_file = file;
    return 0;
}

static int check_file(const char *path, struct lab_err *err) {
    struct stat info;
    if (stat(path, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_USER, errno, "%s", path);
    if (!S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is not a trace: not a file", path);
    if (info.st_size == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s is not a trace: it is empty", path);
    return 0;
}

/* `name` is what the user calls it. */
static int read_database(const char *path, const char *name, struct lab_arena *arena,
                         struct lab_trace_file *ret_file, struct lab_err *err) {
    struct trace_reader reader = {.path = name, .arena = arena};
    if (check_file(path, err) < 0)
        return -1;
    /* SQLite takes some names for something else than files (":memory:") */
    const char *file = lab_arena_printf(arena, "%s%s", path[0] == '/' ? "" : "./", path);
    int code = lab_sql_open(file, SQLITE_OPEN_READONLY, &reader.db);
    int result;
    if (!reader.db)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s: SQLite can't start", name);
    if (code) {
        result = trace_fail(&reader, err);
    } else {
        /* the file may come from anybody: nothing in its schema is run, damaged pages are
         * noticed */
        sqlite3_busy_timeout(reader.db, WAIT_MS);
        sqlite3_db_config(reader.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(reader.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(reader.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        sqlite3_exec(reader.db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
        result = read_all(&reader, ret_file, err);
    }
    sqlite3_close(reader.db);
    return result;
}

/* --- Nsight's own reports --- */

static bool is_report(const char *path) {
    const char *end = strrchr(path, '.');
    return end && (strcmp(end, ".nsys-rep") == 0 || strcmp(end, ".qdrep") == 0);
}

/* The last line that it printed, since nsys says there what went wrong. */
static const char *last_line(char *text) {
    size_t length = strlen(text);
    while (length > 0 && strchr(" \r\n", text[length - 1]))
        text[--length] = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static int export_report(const char *path, const char *database, struct lab_arena *arena,
                         struct lab_err *err) {
    const char *from = lab_arena_printf(arena, "%s%s", path[0] == '/' ? "" : "./", path);
    const char *const argv[] = {"nsys", "export",   "--type", "sqlite", "--force-overwrite",
                                "true", "--output", database, from,     NULL};
    struct lab_subprocess_spec spec = {.argv = argv, .max_output_bytes = OUTPUT_MAX};
    struct lab_subprocess_result result;
    struct lab_err started = LAB_ERR_INIT;
    if (lab_subprocess_run(&spec, arena, &result, &started) < 0) {
        if (started.code != LAB_ERR_USER)
            return lab_err_set(err, started.code, "%s: %s", path, started.text);
        return lab_err_set(
            err, LAB_ERR_USER,
            "%s needs nsys, which isn't on PATH: install Nsight Systems "
            "(developer.nvidia.com/nsight-systems), or run where it was made: nsys export --type "
            "sqlite %s",
            path, path);
    }
    if (result.exit_status == 0 && access(database, F_OK) == 0)
        return 0;
    const char *why = last_line(*result.err ? result.err : result.out);
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s: nsys export failed with status %d%s%s", path,
                       result.exit_status, *why ? ": " : "", why);
}

static int read_report(const char *path, struct lab_arena *arena, struct lab_trace_file *ret_file,
                       struct lab_err *err) {
    struct lab_scratch_dir scratch;
    if (check_file(path, err) < 0 || lab_scratch_dir_open(arena, &scratch, err) < 0)
        return -1;
    const char *database = lab_arena_printf(arena, "%s/trace.sqlite", scratch.path);
    int result = export_report(path, database, arena, err);
    if (result == 0)
        result = read_database(database, path, arena, ret_file, err);
    lab_scratch_dir_close(&scratch);
    return result;
}

int lab_trace_read(const char *path, struct lab_arena *arena, struct lab_trace_file *ret_file,
                   struct lab_err *err) {
    return is_report(path) ? read_report(path, arena, ret_file, err)
                           : read_database(path, path, arena, ret_file, err);
}
