/*
 * process_tree.h: who is whose child just now, as /proc says. A process that was seen once is known
 * again by its number and its start: numbers are used anew, the pair isn't.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lab_process {
    pid_t pid, parent, group, session;
    uint64_t start; /* since boot, in the kernel's ticks */
    bool dead;      /* a zombie: only its parent can still do something about it. One whose first
                     * thread has ended while others go on shows as such too, but isn't */
};

struct lab_process_tree {
    struct lab_process *items; /* ascending by pid */
    int count;
};

/* All processes that can be seen. Costs some microseconds for each: not for inner loops. */
void lab_process_tree_read(struct lab_process_tree *tree);
void lab_process_tree_release(struct lab_process_tree *tree);

const struct lab_process *lab_process_tree_find(const struct lab_process_tree *tree, pid_t pid);

/* One process; false = there is none, or it can't be seen. */
bool lab_process_read(pid_t pid, struct lab_process *ret_process);

/* Its resident memory in bytes; `proportional`: of pages that others have too only its part. 0 = it
 * has ended, or can't be read. */
int64_t lab_process_memory(pid_t pid, bool proportional);

/* Sends a signal to exactly this process; one that has ended since isn't mistaken for another. */
void lab_process_signal(const struct lab_process *process, int signal);

/* Whether "NAME=value" stood in the environment with which the process was started; `beginning`:
 * also one that goes on behind that. */
bool lab_process_has_variable(pid_t pid, const char *variable, bool beginning);

/* The whole environment with which it was started: texts "NAME=value", one after the other, each
 * with its NUL. 0 = it has none, or it isn't ours to read. Freed by the caller. */
size_t lab_process_environment(pid_t pid, char **ret_text);
