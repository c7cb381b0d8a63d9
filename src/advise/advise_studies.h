/*
 * advise_studies.h: which studies `advise` goes by where none is named: those of this machine,
 * newest first, and before all others those below the working directory.
 *
 * A simulated study is asked only where it is the newest one below the working directory: whoever
 * just ran it there means it. Others, and those of other machines, are to be named.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

/* All of this user's studies: those below the working directory, then all others, newest first
 * both. Returns how many; `ret_below` of them are below it. */
int lab_advise_known(struct lab_arena *arena, const char *const **ret_paths, int *ret_below);

struct lab_advise_studies {
    struct lab_study_table *tables;
    int count;
    bool first_simulated; /* the first one stands alone: where it answers, no other is asked */
};

/* At most as many as are worth reading. */
struct lab_advise_studies lab_advise_studies_read(uint64_t machine_identity,
                                                  struct lab_arena *arena);
