/*
 * out_dir.h: a directory that a command fills with files, such as a report, and fills again later.
 *
 * A manifest in it lists what was written. Only listed files are replaced or removed; a user's own
 * file of the same name is refused, unless forced. Files are staged beside their places and renamed
 * when all are whole. Everything goes through the directory's descriptor and follows no link, so
 * that nobody can redirect a write or a removal. The directory is locked meanwhile: two that fill
 * it come one after the other.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

#define LAB_OUT_DIR_MANIFEST ".gpulab.manifest"
#define LAB_OUT_DIR_KEPT     ".gpulab.kept" /* the manifest of those that `keep` */

struct lab_out_dir_spec {
    const char *path;  /* made where it is missing, its parent is there */
    const char *force; /* the option that forces, for messages; NULL = there is none */
    bool forced;       /* replace files that the manifest doesn't list */
    const char *owner; /* a file beside the directory ("study.db") that makes it the program's own:
                          without a manifest, the files there count as listed. It must be there and
                          the caller's. NULL = it is not the program's own */
    bool keep;         /* listed files that aren't written this time stay, also where others
                          write that don't keep: the manifest is one of its own */
};

struct lab_out_dir;

/*
 * Refuses, as the user's mistake: a link, a directory of another user, a non-empty directory
 * without a manifest (unless `forced`, `keep` or with an `owner`), one that stays locked for 10 s.
 */
int lab_out_dir_open(const struct lab_out_dir_spec *spec, struct lab_out_dir **ret_dir,
                     struct lab_err *err);

/* What a user names may be a link of his own: the path of what it leads to, or the path itself. */
const char *lab_out_dir_resolve(const char *path, struct lab_arena *arena);

/* Stages a file. Refuses a name that is taken by a file which the manifest doesn't list. */
int lab_out_dir_add(struct lab_out_dir *dir, const char *name, const char *bytes, size_t length,
                    struct lab_err *err);
/* Stages a copy of another file. */
int lab_out_dir_add_copy(struct lab_out_dir *dir, const char *name, const char *from,
                         struct lab_err *err);

/* Puts all staged files into their places, in the order they were added, then removes listed
 * files that this time were not written. Killed in between, the manifest lists the old and the
 * new ones. */
int lab_out_dir_commit(struct lab_out_dir *dir, struct lab_err *err);

/* Removes what was staged and not committed. Accepts NULL. */
void lab_out_dir_close(struct lab_out_dir *dir);

/*
 * A private directory (0700, random name, locked) below $TMPDIR or /tmp, for files on their way to
 * somewhere else. Closing it removes it with everything in it; opening one removes those that
 * killed programs of this user left. The path is absolute and lives in the arena.
 */
struct lab_scratch_dir {
    const char *path;
    int fd;
};

int lab_scratch_dir_open(struct lab_arena *arena, struct lab_scratch_dir *ret_dir,
                         struct lab_err *err);
void lab_scratch_dir_close(struct lab_scratch_dir *dir);
