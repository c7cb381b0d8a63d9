/*
 * map.h: a file's bytes where they are, for files that are larger than what a process should copy:
 * processes and threads that map the same one share its pages.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct lab_file_map {
    const char *bytes; /* NULL where the file is empty */
    size_t length;
};

/* A regular file, for reading. While it is mapped nobody may cut it: reading behind its new end
 * kills the process. */
int lab_file_map_open(const char *path, struct lab_file_map *ret_map, struct lab_err *err);
void lab_file_map_close(struct lab_file_map *map); /* accepts one of zeros */
