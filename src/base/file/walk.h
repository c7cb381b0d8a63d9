/*
 * walk.h: what lies in a folder and below it, always in the same order: by name.
 *
 * Links aren't followed and hidden names are passed over: a file is found once, and a circle ends.
 * A folder below the first that is somebody else's, or gone meanwhile, is passed over, too.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <sys/types.h>

/* What is looked for. Zeroed: nothing. */
struct lab_walk {
    const char *holds;          /* folders with a file of this name; they aren't entered */
    const char *const *endings; /* files that end so; NULL-terminated. Of files that lie beside each
                                   other and differ in these alone, the first ending's is taken */
    bool any_file;              /* all files, whatever their ending */
    int depth;                  /* folders that may lie between the first one and a find */
};

struct lab_walk_find {
    const char *path;  /* begins with the first folder's */
    const char *name;  /* its last part */
    const char *below; /* the folder that it lies in, from the first one on; "" = that itself */
    bool folder;
};

/* Finds are in the arena. A first folder that can't be read is LAB_ERR_USER. */
int lab_walk(const char *folder, const struct lab_walk *wanted, struct lab_arena *arena,
             struct lab_walk_find **ret_finds, int *ret_count, struct lab_err *err);

/* Names in one folder, sorted, hidden ones too, without "." and ".."; NULL-terminated, in the
 * arena. NULL with errno where it can't be read. */
const char *const *lab_walk_names(const char *folder, struct lab_arena *arena);

/* The path without the slashes at its end. */
const char *lab_walk_trim(const char *path, struct lab_arena *arena);

/* Which of `endings` the name has, before which something stands; -1 = none. */
int lab_walk_ending(const char *name, const char *const *endings);

/* --- files that are named twice --- */

struct lab_walk_seen { /* zeroed at first */
    struct lab_walk_id {
        dev_t device;
        ino_t inode;
    } * items;
    int count;
};

/* Whether it is there and was seen before, under this name or another; what was seen is in the
 * arena. */
bool lab_walk_again(struct lab_walk_seen *seen, const char *path, struct lab_arena *arena);
