/*
 * report_progress.h: what `gpulab run` shows while a study runs: on a terminal a bar, drawn over
 * itself; else a line for each run. Runs are named by what varies: "GPU 0, NUMA node 2, vit0x0x0".
 */
#pragma once

#include "report/study/study.h"
#include "report/study/study_axes.h"
#include "run/history.h"
#include "run/runner.h"

struct lab_report_progress_run { /* a run under way */
    const struct lab_runner_item *item;
    int index; /* in runs */
    const char *phase;
    int64_t done, total;
};

struct lab_report_progress {
    bool lines;             /* what goes wrong is said; false with --quiet and --json */
    bool each;              /* a line for each run that begins or ends, too */
    bool bar;               /* stderr is a terminal that can take one */
    struct lab_style style; /* of stderr */
    struct lab_history *history;
    struct lab_run *runs; /* the study's, states kept up to date here */
    int run_count, max_workers;
    double report_s; /* that the report takes after the last of them */
    int done, failed;
    struct study_axes axes;     /* of runs */
    bool repeated;              /* some point has several runs */
    bool simulated;             /* the runs' own times are: the real clock is asked instead */
    int ended;                  /* since the start, */
    double busy_s;              /* which took so long, the last until */
    int64_t ended_ns, begun_ns; /* the first began: before it, others may have had the devices */
    struct lab_report_progress_run *active;
    int active_count;
    int64_t start_ns, drawn_ns;
    int64_t estimate_ns, estimate_cost_ns; /* when it was made last, what that took */
    struct lab_estimate estimate;
    struct lab_arena *arena;
};

/* Counts what an earlier session of the study has done. `runs` is changed from here on. */
void lab_report_progress_start(struct lab_report_progress *view, struct lab_run *runs, int count);
/* What runs take, what passes between them, and the report. NaN = unknown. */
double lab_report_progress_left_s(const struct lab_report_progress *view);
void lab_report_progress_event(struct lab_report_progress *view,
                               const struct lab_runner_event *event);
/* Draws the bar again if it is time. */
void lab_report_progress_tick(struct lab_report_progress *view);
void lab_report_progress_end(struct lab_report_progress *view);
