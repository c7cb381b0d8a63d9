/*
 * lock.h: lock files: flock decides, the content says who holds it. The kernel drops a lock with
 * the last descriptor, whatever ends the process.
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_holder { /* who holds a lock, as its content says; zeroed where it says nothing */
    int64_t pid;
    int64_t since_wall_ns;
    char host[65];
    char command[256]; /* "gpulab run quick_test" */
    char folder[1024]; /* of the study; "" = none */
};

/* This process, now. Texts that are too long are cut; `folder` may be NULL. */
void lab_holder_self(const char *command, const char *folder, struct lab_holder *ret_holder);

/* "process 4711 on node7 (gpulab run quick_test, since 10:42:03)", with the date where it isn't
 * today's; "another process" where nothing is known. Appends. */
void lab_holder_describe(const struct lab_holder *holder, struct lab_str *out);

enum lab_lock {
    LAB_LOCK_TAKEN,
    LAB_LOCK_HELD,   /* by another process */
    LAB_LOCK_GONE,   /* `path` isn't this file any more: open it again */
    LAB_LOCK_FAILED, /* errno */
};

/* Tries once. On anything but TAKEN nothing is held. */
enum lab_lock lab_lock_try(int fd, const char *path);
/* Says who holds it, for others to read; failures don't matter. */
void lab_lock_write(int fd, const struct lab_holder *holder);
/* Whatever the content is: torn, foreign or none leaves a zeroed holder. */
void lab_lock_read(int fd, struct lab_holder *ret_holder);
/* Whether all who hold it are processes of other users, who may read the file and so lock it.
 * Root's count as the caller's; in doubt, false. */
bool lab_lock_by_others(int fd);
/* Whether a process holds it now, and which (may be NULL). */
bool lab_lock_held(const char *path, struct lab_holder *ret_holder);
