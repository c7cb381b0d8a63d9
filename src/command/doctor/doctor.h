/*
 * doctor.h: what works on this machine and what is missing, check by check, and the same packed for
 * a bug report.
 */
#pragma once

#include "command/command.h"

struct lab_doc;

enum lab_doctor_state { LAB_DOCTOR_OK, LAB_DOCTOR_LIMITED, LAB_DOCTOR_MISSING };

struct lab_doctor_finding {
    const char *check; /* "locked memory" */
    bool essential;    /* while it is missing, what this machine is for can't be measured */
    enum lab_doctor_state state;
    const char *found; /* "8.00 MiB" */
    const char *cost;  /* what it takes from the user; NULL where it is ok */
    const char *mend;  /* the one line that mends it; NULL = nothing can */
};

/* Looks at everything; what has no meaning on this machine is left out. Returns how many there are;
 * they live in the arena. */
int lab_doctor_examine(struct lab_arena *arena, struct lab_doctor_finding **ret_findings);

/* A document about the machine, and what this program says about itself and the devices, as one
 * file of JSON. Names of user and host and the home folder are replaced; of the environment only
 * variables that are known to be harmless are in it. */
int lab_doctor_pack(const struct lab_doc *doc, const char *path, struct lab_arena *arena,
                    struct lab_err *err);
