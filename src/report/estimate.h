/*
 * report/estimate.h: how long a study takes, run by run and in all: of one that runs, was
 * interrupted, or hasn't begun. Where a figure comes from stands beside it, since one that was
 * scaled from another run deserves less trust than the run's own progress.
 */
#pragma once

#include "report/report.h"
#include "report/study/study_axes.h"

/* Why simulated studies have no estimate from earlier ones. */
#define LAB_REPORT_SIMULATED_TIME                                                                  \
    "earlier runs took simulated time; without --quiet a few are measured"

struct lab_report_estimate_run {
    const char *id;
    int repeat;          /* from 0 on */
    const char *state;   /* "done", "measuring", "planned", … */
    bool ended;          /* nothing is left of it */
    int64_t done, total; /* iterations; total 0 = unknown */
    double taken_s;      /* of what it has begun with; NaN = not begun */
    double left_s;       /* NaN = unknown */
    const char *basis;   /* of left_s: "same run", "scaled"; "" where nothing is left */
};

/* A device's memory as the study's samples have it. */
struct lab_report_estimate_memory {
    const char *device; /* "GPU 0", "host" */
    double used_bytes;  /* last seen */
    double peak_bytes, total_bytes;
    bool simulated;
};

struct lab_report_estimate {
    const char *study;  /* "numa_study" */
    const char *folder; /* as the user would write it; NULL = it hasn't begun */
    const char *state;  /* "running", "interrupted", "ended"; unused where it hasn't begun */
    bool running;
    bool simulated;
    const char *holder;  /* who runs it; "" = nobody */
    const char *command; /* which goes on with it, or starts it; "" = unknown */
    const struct lab_report_estimate_run *runs;
    int run_count;
    struct study_axes axes; /* of the runs, in their order */
    const char *counts;     /* of one that hasn't begun: "48 points × 5 repeats = 240 runs" */
    int64_t point_count;
    int repeat;   /* likewise */
    int rows_max; /* of the table; 0 = all */
    int done, failed;
    double taken_s; /* Σ of done runs */
    double left_s;  /* NaN = unknown, or known of too few runs */
    int unknown;    /* runs that nothing is known about, in left_s by the mean of the others */
    int guessed;    /* those, and runs estimated from other workloads */
    double most_s;  /* of one that hasn't begun: what its timeouts allow; NaN = not said */
    int64_t disk_bytes;
    int64_t now_wall_ns;
    const struct lab_report_estimate_memory *memory;
    int memory_count; /* 0 = nothing was sampled */
};

/* The answer, a line for each run (of one that hasn't begun, for each point), and what the answer
 * rests on. Where there are more than rows_max lines, runs that have ended are left out first;
 * programs get all. */
void lab_report_add_estimate(struct lab_doc *doc, const struct lab_report_estimate *estimate);

/* --- pieces that others use --- */

/* "14:32", on another day than `now` "Mon 16 Nov 14:32"; appends local time. */
void lab_report_add_clock(int64_t wall_ns, int64_t now_wall_ns, struct lab_str *out);
