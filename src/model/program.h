/* model/program.h: a program of the user's that a study runs now, and what it reported so far. */
#pragma once

#include "model/curve.h"

struct lab_program {
    const char *study; /* "test_matrix" */
    const char *name;  /* the run's, by what varies: "lr=0.03, optimizer=adam, run 2" */
    int64_t run;       /* number in its study */
    double step;       /* the last one; NaN = unknown */
    bool by_epoch;     /* steps are epochs */
    const struct lab_metric_curve *metrics; /* main ones first */
    int metric_count;
};
