/*
 * file.h: whole files, read with a bound and written so that a crash leaves the old or the new one.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads a regular file of at most `max_bytes` into the arena, with a NUL behind it. A directory, a
 * device or a larger file is an error that says so. Files under /proc and /sys (size 0) work.
 */
int lab_file_read(const char *path, size_t max_bytes, struct lab_arena *arena, char **ret_text,
                  size_t *ret_length, struct lab_err *err);

/* Writes via a temporary file beside it: write, fsync, rename, fsync of the directory. One that a
 * killed program left behind begins with this. */
#define LAB_FILE_TEMPORARY ".gpulab-"

int lab_file_write_atomic(const char *path, const char *bytes, size_t length, struct lab_err *err);

/* Writes everything, in as many calls as it takes; -1 with errno. */
int lab_file_write_all(int fd, const char *bytes, size_t length);

/* A pipe that was found full gets the room that any user may have: its writer waits less often. */
void lab_file_widen_pipe(int fd);

/* No program that is started from here on inherits a descriptor from `first` on. */
void lab_file_keep_from_children(int first);

/* Closes a descriptor, unless it is -1, and makes it -1; a folder, unless it is NULL.
 * LAB_AUTO_CLOSE and LAB_AUTO_CLOSEDIR do so at the end of the variable's scope. */
void lab_file_close(int *fd);
void lab_file_closedir(DIR **folder);
#define LAB_AUTO_CLOSE    __attribute__((cleanup(lab_file_close)))
#define LAB_AUTO_CLOSEDIR __attribute__((cleanup(lab_file_closedir)))

/* Opens a new file in the directory ("" or with a slash at its end) under a name of its own;
 * mkstemp ignores the umask. A descriptor, locked: what isn't is left by a killed program. Or -1
 * with errno. */
int lab_file_open_beside(const char *directory, struct lab_arena *arena, const char **ret_path);

/* Makes renames and removals in a directory ("" = the current one) last; -1 with errno. Where a
 * file system can't, they stand all the same. */
int lab_file_sync_directory(const char *path);
/* The same of the directory that a path lies in. */
int lab_file_sync_above(const char *path);

/* The same without waiting for the disk: whole for every other process, but not after a power cut.
 * For what can be done without, and for those who must be able to end at once. */
int lab_file_replace(const char *path, const char *bytes, size_t length, struct lab_err *err);

/* Reads a whole number from a small file such as those under /sys; -1 and no text if it isn't one.
 */
int lab_file_read_int(const char *path, int64_t *ret_value);

/* The user's own folder of configs, $XDG_CONFIG_HOME/gpulab or ~/.config/gpulab, in the arena;
 * NULL = there is none. */
const char *lab_file_config_folder(struct lab_arena *arena);

/* As mkdir -p -m, and lasting; 0, or errno with the path that was refused, in the arena. A file in
 * the way is ENOTDIR. */
int lab_file_make_folders(const char *path, mode_t mode, struct lab_arena *arena,
                          const char **ret_refused);
