/* find.h: the descriptions that are built into the program: generated from conf/machine. */
#pragma once

#include <stddef.h>

struct sim_file {
    const char *path; /* "l40s-10.yaml" */
    const char *text;
    size_t length;
};
extern const struct sim_file lab_machine_files[]; /* path NULL ends */
