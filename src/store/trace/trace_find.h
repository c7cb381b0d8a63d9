/*
 * trace_find.h: which traces the words of a command line mean.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>

struct lab_trace_source {
    const char *path;
    const char
        *name;  /* the file's, without pipeline_ and what ends it; its path where two have one */
    bool named; /* by a word, not found in a folder */
};

/*
 * A file is itself. A folder is what lies in it: of a study's folder the traces in traces/, of any
 * other all *.sqlite and *.nsys-rep below, by name. Where both have the same name, Nsight's report
 * is left out. A file that is named twice counts once. A folder without traces is LAB_ERR_USER.
 */
int lab_trace_find(const char *const *words, int count, struct lab_arena *arena,
                   struct lab_trace_source **ret_sources, int *ret_count, struct lab_err *err);
