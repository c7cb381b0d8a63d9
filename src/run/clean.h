/*
 * clean.h: what can be removed of a study: its traces, its logs, or all that gpulab wrote. Files
 * that it didn't write stay, and the folder with them.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdint.h>

enum { /* a set of bits */
       LAB_CLEAN_TRACES = 1,
       LAB_CLEAN_LOGS = 2,
       LAB_CLEAN_STUDY = 4, /* all of it */
};

struct lab_clean {
    const char *const *files; /* below the folder; study.db and the lock last */
    int file_count;
    int64_t bytes;           /* on disk */
    const char *const *kept; /* of a whole study: what isn't gpulab's */
    int kept_count;
};

/* A folder without study.db, a link, or one of another user's is refused. */
int lab_clean_find(const char *folder, unsigned parts, struct lab_arena *arena,
                   struct lab_clean *ret_clean, struct lab_err *err);

/* Holds the study's lock meanwhile; one that runs is refused. Follows no link. Directories that
 * are empty then go, too. */
int lab_clean_remove(const char *folder, const struct lab_clean *clean, struct lab_err *err);
