/*
 * reported_metric.h: a value that a workload, or a program of the user's, reports while it runs:
 * a loss, tokens per second.
 */
#pragma once

#include <stdint.h>

struct lab_reported_metric {
    const char *name, *unit; /* "" = no unit */
    double value;            /* may be infinite or not a number */
    double step;             /* of the training that it belongs to; NaN = unknown */
    int rank;                /* that the program names; -1 = the rank that it was read from */
    int64_t time_ns;
};
