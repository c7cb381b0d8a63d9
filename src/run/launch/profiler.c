/* profiler.c: nsys around a worker. */
#include "run/launch/profiler.h"

#include "base/file/own.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NSYS "nsys"

bool lab_profiler_is_wanted(const struct lab_plan *plan) {
    return lab_str_equal(plan->profiler, NSYS);
}

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool is_on_path(const char *name) {
    const char *path = getenv("PATH");
    while (path) { /* an empty part is the current folder */
        int length = (int)strcspn(path, ":");
        char file[PATH_MAX];
        if (snprintf(file, sizeof file, "%.*s/%s", length ? length : 1, length ? path : ".", name) <
                (int)sizeof file &&
            is_program(file))
            return true;
        path = path[length] ? path + length + 1 : NULL;
    }
    return false;
}

int lab_profiler_check(const struct lab_plan *plan, struct lab_err *err) {
    if (!lab_profiler_is_wanted(plan) || is_on_path(NSYS))
        return 0;
    return lab_err_set(err, LAB_ERR_USER,
                       "experiment.profiler=nsys: there is no nsys on PATH; it comes with Nsight "
                       "Systems (developer.nvidia.com/nsight-systems); without it, "
                       "experiment.profiler=none");
}

/* Where this program's file is: what /proc/self/exe means would be another one's by then. */
static const char *resolve(const char *program, struct lab_arena *arena) {
    char file[PATH_MAX];
    ssize_t length = readlink(program, file, sizeof file);
    return length > 0 && length < (ssize_t)sizeof file
               ? lab_arena_strndup(arena, file, (size_t)length)
               : program;
}

static int make_folder_of(const char *report, struct lab_arena *arena, struct lab_err *err) {
    const char *slash = strrchr(report, '/');
    if (!slash)
        return 0;
    const char *folder = lab_arena_strndup(arena, report, (size_t)(slash - report));
    return lab_own_folder(folder, err);
}

const char *const *lab_profiler_wrap(const char *report, const char *program,
                                     const char *const *argv, struct lab_arena *arena,
                                     struct lab_err *err) {
    /* what CUDA does and the ranges that name it; sampling the CPU would only disturb the worker */
    const char *const before[] = {
        NSYS,         "profile",   "--output",           report, "--force-overwrite", "true",
        "--trace",    "cuda,nvtx", "--cuda-graph-trace", "node", "--sample",          "none",
        "--cpuctxsw", "none"};
    const size_t before_count = sizeof before / sizeof *before;
    size_t count = 0;
    while (argv[count])
        count++;
    if (make_folder_of(report, arena, err) < 0)
        return NULL;
    const char **all = lab_arena_alloc(arena, before_count + count + 1, sizeof *all);
    memcpy(all, before, sizeof before);
    memcpy(all + before_count, argv, count * sizeof *argv);
    if (program)
        all[before_count] = resolve(program, arena);
    return all;
}
