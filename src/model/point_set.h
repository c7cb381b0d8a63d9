/*
 * model/point_set.h: what was measured, point by point, as a comparison takes it: a study, another
 * benchmark's file, one of two commands that were run in turn. A point is known by its axes, not by
 * a name or by its place. Everything lives in the arena of its maker.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "model/metric_name.h"

#include <stdbool.h>

struct lab_axis_setting {
    const char *name, *text; /* "batch_size", "8" */
};

struct lab_point {
    struct lab_axis_setting *axes; /* each name once */
    int axis_count;
    const char *quantity; /* "throughput", "bandwidth", "time" */
    const char *unit;     /* "samples/s", "B/s", "s" */
    double *values;       /* one for each run, positive */
    int *blocks;          /* which each belongs to: runs of one block share its conditions */
    int count;
    bool is_sum; /* of other points of its set: it isn't pooled with them */
    /* of a metric that a program reported, which isn't pooled either; NONE = it is none */
    enum lab_direction better;
};

struct lab_point_failure {         /* what was started and gave no value, or a wrong one */
    struct lab_axis_setting *axes; /* of a point, or what several have in common */
    int axis_count;
    const char *reason; /* "skipped: too few SMs" */
};

struct lab_fact {            /* of where and how it was measured */
    const char *topic;       /* "machine", "software", "config" */
    const char *name, *text; /* "driver", "550.54.15" */
};

struct lab_point_set {
    const char *name;    /* for people; unique among those that are compared */
    const char *source;  /* its folder or file */
    const char *session; /* sets with the same one were run in turn: their blocks are pairs; NULL */
    bool simulated;
    struct lab_fact *facts;
    int fact_count;
    struct lab_point *points;
    int point_count;
    struct lab_point_failure *failures;
    int failure_count;
};

/* Of a quantity: "time", "CPU time", "latency". */
bool lab_quantity_less_is_better(const char *quantity);
bool lab_point_less_is_better(const struct lab_point *point);
/* Whether the point is one of those that failed. */
bool lab_point_failed(const struct lab_point *point, const struct lab_point_failure *failure);
/* The text of an axis, of a fact; NULL = there is none. */
const char *lab_point_axis(const struct lab_point *point, const char *name);
const char *lab_point_set_fact(const struct lab_point_set *set, const char *topic,
                               const char *name);

/* How the machines differ, "GPUs: 4 × NVIDIA L40S, 2 × NVIDIA T4"; NULL = it is one. */
const char *lab_point_set_other_machine(const struct lab_point_set *a,
                                        const struct lab_point_set *b, struct lab_arena *arena);

/* --- building --- */

void lab_point_set_add_fact(struct lab_point_set *set, const char *topic, const char *name,
                            const char *text, struct lab_arena *arena);
/* The point with all of these axes, in whatever order, and this quantity; a new one where there is
 * none. It holds until the next is added. */
struct lab_point *lab_point_set_point(struct lab_point_set *set,
                                      const struct lab_axis_setting *axes, int axis_count,
                                      const char *quantity, const char *unit,
                                      struct lab_arena *arena);
/* A value that isn't positive and finite is left out. */
void lab_point_add_value(struct lab_point *point, double value, int block, struct lab_arena *arena);
/* Once for the same axes and reason. */
void lab_point_set_add_failure(struct lab_point_set *set, const struct lab_axis_setting *axes,
                               int axis_count, const char *reason, struct lab_arena *arena);
/* Runs of another set as more blocks of this one; its facts where this one has none. */
void lab_point_set_merge(struct lab_point_set *set, const struct lab_point_set *other,
                         struct lab_arena *arena);

/* --- JSON: {"sets": [{name, source, session, simulated, facts, points,
 * failures}]} --- */

struct lab_value *lab_point_sets_value(const struct lab_point_set *sets, int count,
                                       struct lab_arena *arena);
/* Of a map with `sets`; LAB_ERR_USER with `origin` where something in it isn't as written above. */
int lab_point_sets_parse(const struct lab_value *root, const char *origin, struct lab_arena *arena,
                         struct lab_point_set **ret_sets, int *ret_count, struct lab_err *err);
