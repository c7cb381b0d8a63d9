/*
 * program_log.h: the metrics of a program's output as a study kept it (logs/<run id>.stdout), read
 * anew, by the study's settings or by others.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "model/reported_metric.h"

#include <stdbool.h>
#include <stddef.h>

struct lab_program_log { /* what was read */
    int64_t bytes, lines, values;
    int64_t split;    /* lines of several ranks that ran together */
    int64_t clipped;  /* lines that are too long, or have too many numbers, to be read whole */
    uint64_t matched; /* by its index in the settings, a bit for each pattern that read a line */
    bool cut;         /* the log says that it doesn't hold all that was printed */
};

/* Anything but 0 ends the reading with -1; `err` is left to whoever did so. */
typedef int lab_program_log_found(void *state, const struct lab_reported_metric *items,
                                  size_t count);

/*
 * `settings`: the option `metrics` of the workload `command`, or NULL. Of a log with several
 * attempts the last is read. Times are -1: a log has none. Takes no more memory however long it is.
 */
int lab_program_log_read(const char *path, const struct lab_value *settings, bool several,
                         lab_program_log_found *found, void *state, struct lab_program_log *ret_log,
                         struct lab_err *err);
