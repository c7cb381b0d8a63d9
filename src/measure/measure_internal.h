/*
 * measure_internal.h: what the files of this layer share. Nobody else includes it, but for its
 * tests.
 */
#pragma once

#include "measure/measure.h"

/* Series of an array of records: `ret_s` has room for `count` values; the number written returns.
 * Intervals pair iterations of the same stretch only. */
size_t lab_measure_latencies(const struct lab_iteration *records, size_t count, double *ret_s);
size_t lab_measure_intervals(const struct lab_iteration *records, const int *chunk_ends,
                             int chunk_count, double *ret_s);
size_t lab_measure_stages(const struct lab_iteration *records, size_t count, enum lab_stage stage,
                          double *ret_s);
/* Whether intervals are enough to decide on; otherwise latencies do. */
bool lab_measure_by_intervals(size_t interval_count, size_t iteration_count);

/* Share of the copies' time during which some compute span was under way; NaN = none of either. */
double lab_measure_overlap(const struct lab_iteration *records, size_t count);

/* Half the interval's width over the median; NaN = unknown. */
double lab_measure_relative_width(struct lab_interval interval, double median);

/* The median's interval that a summary would have; `effective_n` of it. */
struct lab_interval lab_measure_interval_of(const double *sorted, size_t n, double effective_n,
                                            double confidence);

/* A drift shows in so many values, if there is one. */
#define LAB_MEASURE_DRIFT_VALUES 20

/* Relative change of the median from the first to the second half of a series, if it is too large
 * for chance and for a steady state; otherwise 0. */
double lab_measure_drift(const double *x, size_t n);

/* The warnings that a filled measurement deserves. */
unsigned lab_measure_warn(const struct lab_measurement *measurement);

/* What /proc says at one moment; NaN = unknown. */
struct lab_conditions_reading {
    double time_s;
    double busy_s, steal_s, total_s; /* CPU time of the machine since boot, idle in total */
    double cpus;
    double load; /* averaged over a minute, all threads */
    double pressure_cpu_s, pressure_memory_s;
    double own_s, age_s; /* CPU time of what is ours, and time since its first process began */
};

/* From the files' texts; NULL or unreadable ones leave their figures NaN. Sets none of time_s,
 * own_s and age_s. */
struct lab_conditions_reading lab_conditions_parse(const char *stat, const char *loadavg,
                                                   const char *pressure_cpu,
                                                   const char *pressure_memory, double ticks_per_s);
/* Of /proc/PID/stat, NaN = unreadable: when the process started, in seconds since boot; its CPU
 * time and that of its children that have ended. */
double lab_conditions_parse_start(const char *process_stat, double ticks_per_s);
double lab_conditions_parse_cpu(const char *process_stat, double ticks_per_s);
/* Ours is this process with the programs that it ran, and where `parent` isn't 0 that process and
 * all of its children: the workers of a study. */
struct lab_conditions_reading lab_conditions_read(int parent);
struct lab_conditions lab_conditions_between(const struct lab_conditions_reading *before,
                                             const struct lab_conditions_reading *after);
