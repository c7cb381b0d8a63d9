/*
 * analysis_group.h: points of a study that can be held against each other: they differ in some keys
 * alone, such as the depth of a model, and agree in all else that a run is asked for.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "analysis/analysis_words.h"
#include "stats/stats.h"

struct lab_study_group {
    const char *name;  /* "cuda:0, NUMA node 1, batch 8": where, and what other groups differ in */
    const char *place; /* "cuda:0, NUMA node 1" */
    const char *what;  /* "batch 8"; "" = nothing more */
    const struct lab_study_point **points; /* in the study's order */
    int count;
};

/*
 * Sorts points into groups that differ in the keys of `varying` alone (NULL-ended; names without
 * "test." or "options."). Besides keys there are "model", the workload's label, and "numa_node".
 * Returns how many; in the order of their first points.
 */
int lab_study_groups(const struct lab_study_point *points, int count, const char *const *varying,
                     struct lab_arena *arena, struct lab_study_group **ret_groups);

/* The group's point with that value of a setting, on that NUMA node (-1 = on any); NULL = none. */
const struct lab_study_point *lab_study_find(const struct lab_study_group *group, int node,
                                             const char *name, double value);
/* The nearest node of a group's only device and the farthest, by number where distances aren't
 * known; false = there are no two. */
bool lab_study_far_node(const struct lab_study_group *group, int *ret_near, int *ret_far);

/* A key of the study's test, or else of the workload. NULL, NaN = there is none. */
const struct lab_value *lab_study_setting(const struct lab_study_run *run, const char *name);
double lab_study_setting_number(const struct lab_study_run *run, const char *name);

/* How many different values a key has among the runs that are used. */
int lab_study_setting_values(const struct lab_study_table *study, const char *name);

/*
 * Positive values of a point's runs as one: the mean of their logarithms with its t interval,
 * put back. One value has no interval; those that aren't positive don't
 * count.
 */
struct lab_effect lab_study_estimate(const double *values, int count);

/* A number of the result, by its offset there, over a point's runs, times `scale`. */
struct lab_effect lab_study_point_figure(const struct lab_study_point *point, size_t offset,
                                         double scale);
