/*
 * fork.h: a part of this program in a process of its own, at the same time as the rest. It is
 * killed when this process ends, however that comes. A request to stop (stop.h) is handed on.
 *
 * For a process without threads: a thread's locks would stay locked in the other one.
 * lab_fork_spawn, which starts another program, is for any process.
 */
#pragma once

#include "base/err.h"

#include <spawn.h>
#include <sys/types.h>

struct lab_fork {
    pid_t pid;
    int error_fd;
};

/* `work` returns 0 to 99, or -1 with an error; its memory is a copy, what it writes there is
 * lost. */
int lab_fork_start(int (*work)(void *state, struct lab_err *err), void *state,
                   struct lab_fork *ret_fork, struct lab_err *err);
/* Waits for its end: what `work` returned, with its error's text. */
int lab_fork_wait(struct lab_fork *fork, struct lab_err *err);

/* As posix_spawn, by a process that ends at once: the program is no child of this process, unless
 * this one is a subreaper. 0 or an errno. */
int lab_fork_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
                   const posix_spawnattr_t *attributes, const char *const *argv,
                   const char *const *environment);
