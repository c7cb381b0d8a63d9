/*
 * subprocess.h: another program, run and watched. Built on posix_spawn, so that it is safe from a
 * process with threads; never blocks in waitpid.
 */
#ifndef LAB_BASE_SUBPROCESS_H
#define LAB_BASE_SUBPROCESS_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_subprocess_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up on PATH */
    const char *const *env;  /* "K=V" that are added or replaced; NULL = none */
    const char *input;       /* fed to stdin; NULL = /dev/null */
    size_t max_output_bytes; /* kept of each of stdout and stderr; the rest is read and dropped */
    int64_t timeout_ns;      /* 0 = none; then TERM to its group, and KILL after a second */
};

struct lab_subprocess_result {
    int exit_status; /* 0–255, or -1 if a signal ended it */
    int signal;      /* 0, or the signal */
    bool timed_out;
    bool truncated;  /* output beyond max_output_bytes was dropped */
    char *out, *err; /* NUL-terminated, in the arena */
    size_t out_length, err_length;
    int64_t duration_ns;
};

/* Runs to the end. Fails only if the program could not be started; its own failure is a result. */
int lab_subprocess_run(const struct lab_subprocess_spec *spec, struct lab_arena *arena,
                       struct lab_subprocess_result *ret_result, struct lab_err *err);

#endif
