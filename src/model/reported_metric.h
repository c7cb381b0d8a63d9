/*
 * reported_metric.h: a value that a workload, or a program of the user's, reports while it runs:
 * a loss, tokens per second; and which way it is better.
 */
#pragma once

#include <stdint.h>

struct lab_value;

struct lab_reported_metric {
    const char *name, *unit; /* "" = no unit */
    double value;            /* may be infinite or not a number */
    double step;             /* of the training that it belongs to; NaN = unknown */
    int rank;                /* that the program names; -1 = the rank that it was read from */
    int64_t time_ns;
};

/* How a run's warning begins that none was read; what to do follows, and is never cut off. */
#define LAB_NO_METRIC "no metric was read"

enum lab_direction { LAB_DIRECTION_NONE, LAB_DIRECTION_HIGHER, LAB_DIRECTION_LOWER };

/* Of "none", "higher" or "lower"; -1 = it is another word. */
int lab_direction_find(const char *name);

/*
 * Which way the metric is better: as `settings` has it, the option `metrics` of the program's run
 * (direction: {score_x: lower}; NULL = it has none); else by the words of its name.
 */
enum lab_direction lab_metric_direction(const char *name, const struct lab_value *settings);
