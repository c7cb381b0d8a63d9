/*
 * record_child.h: the command that is recorded. It stays in our process group and keeps our
 * terminal, so that it behaves as it would by itself: it reads the keyboard, and the terminal's
 * Ctrl-C reaches it as it reaches us.
 */
#pragma once

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define LAB_RECORD_NOT_FOUND      127 /* the exit status of a shell */
#define LAB_RECORD_NOT_EXECUTABLE 126

struct lab_record_child {
    const char *const *argv; /* NULL = there is none */
    pid_t pid;               /* 0 = doesn't run */
    int pidfd;               /* readable once it has ended; -1 = none */
    bool ended;
    int exit_status; /* 0–255; -1 = a signal */
    int signal;
};

/* Would it start? 0, or the exit status that a shell gives, with the reason. */
int lab_record_child_check(const char *const *argv, struct lab_err *err);

/* Starts it with `mask` for its signals. 0, or such an exit status. */
int lab_record_child_start(struct lab_record_child *child, const sigset_t *mask,
                           struct lab_err *err);

/* Has it ended? Never waits. */
bool lab_record_child_ended(struct lab_record_child *child);
int lab_record_child_status(const struct lab_record_child *child); /* to pass on: 128 + signal */
void lab_record_child_release(struct lab_record_child *child);     /* it goes on, if it runs */
