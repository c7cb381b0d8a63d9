/* report_end.h: the end of `gpulab run`: the report in the study's folder, and the answer here. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/tty/console.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_report_end {
    const char *folder;  /* of the study */
    const char *command; /* which goes on with it */
    int64_t point_count;
    bool resumed;
    bool analysed; /* the whole report; else report.md alone, without analyses */
    bool silent;   /* the files alone */
    bool verbose;  /* all rows and sentences */
};

/* A report that fails is a note, not a failure: report.md is written without it. */
int lab_report_end(const struct lab_report_end *end, const struct lab_console *console,
                   struct lab_arena *arena, struct lab_err *err);
