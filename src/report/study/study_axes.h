/*
 * study_axes.h: what varies between a study's runs: GPUs, NUMA nodes, phases, models, keys of the
 * workload. Tables have a column for each, and runs are named by it: "GPU 0, NUMA node 2,
 * vit32x6x512".
 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "doc/column.h"
#include "model/run.h"

#include <stdbool.h>

enum study_axis_kind {
    STUDY_AXIS_GPUS, /* how many */
    STUDY_AXIS_GPU,
    STUDY_AXIS_NODE,
    STUDY_AXIS_PHASE,
    STUDY_AXIS_MODEL,
    STUDY_AXIS_KEY,      /* of the workload's options */
    STUDY_AXIS_MATRIX,   /* of a program's matrix */
    STUDY_AXIS_SETTINGS, /* several of them */
};

struct study_axis {
    enum study_axis_kind kind;
    const char *title;         /* "GPU", "NUMA node", "Batch" */
    const char *const *values; /* one for each run; "" = it has none */
    const int *sizes;          /* GPUs of each run, which come first in its order; NULL = none */
    bool bare;                 /* of a matrix: its values say enough without its title */
};

struct study_axes {
    struct study_axis *items;
    int count; /* where nothing varies, the model alone */
};

/* A key that follows from the model is no axis: its value is in the model's name. */
struct study_axes study_axes_make(const struct lab_run *const *runs, int count,
                                  struct lab_arena *arena);

/* What all runs share of batch, dtype and input: "batch 8, fp32, 3×224×224". */
void study_axes_add_shared(const struct lab_run *const *runs, int count, struct lab_str *out);

/* The axis as a column of a table of rows. */
struct lab_doc_column study_axis_column(const struct study_axis *axis);
/* Whether a run, by its index, comes before another: negative, 0 = all axes are alike, positive. */
int study_axes_compare(const struct study_axes *axes, int run, int other);

/* "NUMA node 2", "2 GPUs", "vit32x6x512" of the run at that index. */
void study_axis_add_value(const struct study_axis *axis, int run, struct lab_str *out);
/* That within a sentence: "batch 16", "not compiled". */
void study_axis_add_within(const struct study_axis *axis, int run, struct lab_str *out);
/* "GPU 0, NUMA node 2, vit32x6x512, batch 16" of the run at that index. */
void study_axes_add_name(const struct study_axes *axes, int run, struct lab_str *out);
