/*
 * subprocess.h: another program, run and watched. Built on posix_spawn, so that it is safe from a
 * process with threads; never blocks in waitpid.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who follows a program while it runs, from the thread that runs it. Each slot may be NULL. */
struct lab_subprocess_watcher {
    /* it has been started, or could not be: what it was to inherit can be taken back */
    void (*started)(void *state);
    /* what it printed, as it comes */
    void (*output)(void *state, bool is_stderr, const char *bytes, size_t length);
    /* asked twenty times a second: true ends it as a timeout does */
    bool (*stopped)(void *state);
    void *state;
};

struct lab_subprocess_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up on PATH */
    const char *const *env;  /* "K=V" is added or replaced, "K" taken away; NULL = none */
    const char *input;       /* fed to stdin; NULL = /dev/null */
    size_t max_output_bytes; /* kept of each of stdout and stderr; the rest is read and dropped */
    int64_t timeout_ns;      /* 0 = none; then TERM to its group, and KILL after a second */
    const struct lab_subprocess_watcher *watcher; /* NULL = nobody */
};

struct lab_subprocess_result {
    int exit_status;         /* 0–255, or -1 if a signal ended it */
    int signal;              /* 0, or the signal */
    bool timed_out, stopped; /* why it was ended: the time, the watcher */
    bool truncated;          /* output beyond max_output_bytes was not kept */
    char *out, *err;         /* NUL-terminated, in the arena */
    size_t out_length;
    int64_t start_ns, duration_ns; /* start: CLOCK_MONOTONIC */
    int64_t held_ns;               /* at most: while nobody read and its pipe was full */
};

/*
 * Runs to the end. Fails only if the program could not be started, with LAB_ERR_USER where there is
 * none of that name or it can't be executed; its own failure is a result.
 */
int lab_subprocess_run(const struct lab_subprocess_spec *spec, struct lab_arena *arena,
                       struct lab_subprocess_result *ret_result, struct lab_err *err);

/* For whoever spawns by himself: a program that inherits none of our signal settings. `flags` are
 * POSIX_SPAWN_SETSID or POSIX_SPAWN_SETPGROUP, a group of its own. Ended by
 * posix_spawnattr_destroy. */
void lab_subprocess_attributes(posix_spawnattr_t *ret_attributes, short flags);

/* Our environment with these variables in place of, or added to, its own; one without '=' is left
 * out. NULL-terminated both, NULL = none; only the list is in the arena. */
const char **lab_subprocess_environment(const char *const *extra, struct lab_arena *arena);

/* A TCP port that nothing of this host uses now, for processes that have to find each other; 0 =
 * none can be had. It isn't held: whoever needs it opens it soon. */
int lab_subprocess_port(void);
