/*
 * out_file.h: a file that a command writes piece by piece and that appears whole or not at
 * all: the pieces go into a hidden file beside it, which takes its place when it is on the disk.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>

struct lab_out_file {
    const char *path;      /* as the user gave it */
    const char *place;     /* what it is behind links */
    const char *temporary; /* NULL: a device or pipe, which is written to as it is */
    int fd;
};

/* An existing file will be replaced, with its permissions kept. A folder is an error, and so is an
 * SQLite database: a study or a recording is no output. The paths live in the arena. */
int lab_out_file_open(const char *path, struct lab_arena *arena, struct lab_out_file *ret_file,
                      struct lab_err *err);
int lab_out_file_write(struct lab_out_file *file, const char *bytes, size_t length,
                       struct lab_err *err);
/* Puts it in its place; on failure it is dropped. */
int lab_out_file_finish(struct lab_out_file *file, struct lab_err *err);
/* All of it at once. */
int lab_out_file_save(const char *path, const char *bytes, size_t length, struct lab_err *err);
/* Whether lab_out_file_open would refuse what is there: for those who write in the end. */
int lab_out_file_check(const char *path, struct lab_err *err);
/* Leaves no trace of it, and of what was there before everything. */
void lab_out_file_drop(struct lab_out_file *file);
