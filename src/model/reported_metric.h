/*
 * reported_metric.h: a value that a workload, or a program of the user's, reports while it runs:
 * a loss, tokens per second. What its name means is in metric_name.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lab_reported_metric {
    const char *name, *unit; /* "" = no unit */
    double value;            /* may be infinite or not a number */
    double step;             /* of the training that it belongs to; NaN = unknown */
    int rank;                /* that the program names; -1 = the rank that it was read from */
    int64_t time_ns;
    bool by_epoch; /* the step counts epochs; isn't sent to the runner */
};

/* How a run's warning begins that none was read; what to do follows, and is never cut off. */
#define LAB_NO_METRIC "no metric was read"
