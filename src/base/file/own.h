/*
 * own.h: the calling user's own files and folders: the one place that makes, renames and removes
 * them. tools/layers.txt refuses mkdir, O_CREAT, rename and unlink outside base/file.
 *
 * Outputs may lie where other users write. What is opened here is a regular file with one name, or
 * a folder, and the caller's. A link at the path's end isn't followed, a pipe isn't waited for.
 * Whole files are written with file.h, out_file.h and out_dir.h, which use this.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* --- opening --- */

enum lab_own {
    LAB_OWN_NEW,    /* makes it, to read and write; EEXIST where anything is there */
    LAB_OWN_CHANGE, /* makes it where it is missing, to read and write */
    LAB_OWN_APPEND, /* makes it where it is missing, to write at its end */
};

/* A descriptor; or -1 with the text and errno. EPERM: it isn't such a file of the caller's. */
int lab_own_open(const char *path, enum lab_own how, struct lab_err *err);

/* Makes the folder where it is missing, lastingly; its parent is there. */
int lab_own_folder(const char *path, struct lab_err *err);
/* The same without making it. */
int lab_own_check_folder(const char *path, struct lab_err *err);
/* A folder that isn't there yet; -1 with errno. */
int lab_own_new_folder(const char *path);

/* Whether a file of this user in that folder is the caller's. A network's file system may know the
 * caller under another number: that of a file which is made there. */
bool lab_own_is(int folder, uid_t uid);

/* --- changing --- */

/* A file, a link or an empty folder; -1 with errno. The second: a file in an open folder. */
int lab_own_remove(const char *path);
int lab_own_remove_at(int folder, const char *name);
/* A folder if it is empty, and no link to one; -1 with errno. */
int lab_own_remove_empty(const char *path);
/* With everything below it, as far as that is possible; links aren't followed. */
void lab_own_remove_tree(const char *path);

/* Removes temporary files (LAB_FILE_TEMPORARY) of this user that no process holds locked and that
 * have not changed for that long: killed programs left them. */
void lab_own_remove_leftovers(int folder, int64_t age_s);

/* Renames a file or a folder, and never over anything: -1 with EEXIST. */
int lab_own_rename_new(const char *from, const char *to);
