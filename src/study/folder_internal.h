/*
 * folder_internal.h: what folder.c, folder_lock.c, folder_known.c and lease.c share: lock files, and
 * directories that are made as deep as needed.
 */
#ifndef LAB_STUDY_FOLDER_INTERNAL_H
#define LAB_STUDY_FOLDER_INTERNAL_H

#include "study/folder.h"

#define FOLDER_DATABASE "study.db"
#define FOLDER_LOCK     "lock"

/* --- lock files --- */

enum folder_lock {
    FOLDER_LOCK_TAKEN,
    FOLDER_LOCK_HELD,   /* by somebody else */
    FOLDER_LOCK_GONE,   /* `path` isn't this file any more: open it again */
    FOLDER_LOCK_FAILED, /* errno */
};

/* Tries once. On anything but TAKEN nothing is held. */
enum folder_lock folder_lock_try(int fd, const char *path);
/* Says who holds it, for others to read; failures don't matter. */
void folder_lock_write(int fd, const struct lab_holder *holder);
/* Whatever the content is: torn, foreign or none leaves a zeroed holder. */
void folder_lock_read(int fd, struct lab_holder *ret_holder);

/* --- directories --- */

/* As mkdir -p; 0, or errno with the path that was refused, in the arena. */
int folder_make(const char *path, struct lab_arena *arena, const char **ret_refused);

/* --- names: "<YYYY-MM-DD>/<HH-MM-SS>", the latter with "_2" behind it where it wasn't the first --- */

bool folder_is_date(const char *name);
bool folder_is_time(const char *name);
/* As strcmp, but "_10" comes behind "_9". */
int folder_compare_times(const char *a, const char *b);

#endif
