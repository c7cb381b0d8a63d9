/*
 * tracker_send.h: sends to a tracker what a study has and the tracker hasn't. May be called again
 * and again, while the study runs and after it: study.db is the queue, and a journal beside it says
 * how far each run came. Studies of every version can be sent.
 */
#pragma once

#include "track/tracker.h"

struct lab_track_request {
    const char *project; /* NULL = "<study>-<5 hex digits of machine and folder>" */
    const char
        *run_name;      /* "{run}" in it is the run's own; NULL = that alone. A recording's run has
                           * no more than that name: what other hosts record is part of it */
    const char *folder; /* of files, instead of the study's; NULL = that */
    const char *prefix, *renamed; /* of values (tracker.h); NULL = none */
    bool all_gpus;                /* not the run's alone */
    int64_t max_points; /* of one metric in a batch; more are thinned. 0 = LAB_TRACK_POINTS */
    bool look;          /* sends nothing, counts alone */
    int64_t budget_ns;  /* CPU time after which it leaves the rest for later while a study runs;
                         * 0 = it leaves nothing */
    /* Before each run that is sent: its number from 1, of how many; NULL = nobody wants to know. */
    void (*progress)(void *state, int run, int count);
    void *state;
};

#define LAB_TRACK_POINTS  50000
#define LAB_TRACK_THINNED "points sent as" /* in the line that says so */

/* What is NULL, from the environment: GPULAB_TRACK_PROJECT, _RUN_NAME, _FOLDER, _PREFIX, _RENAME;
 * and all GPUs where GPULAB_TRACK_GPUS is "all". So a study and a recording are sent while they
 * run as they are by `gpulab sync` later. */
void lab_track_request_complete(struct lab_track_request *request);

struct lab_track_sent {
    const char *project;              /* in the arena */
    int runs, unsent;                 /* that were sent to their end; that were not, as of now */
    int64_t points;                   /* values and samples, now */
    int64_t thinned_from, thinned_to; /* points of metrics that had too many */
    int changed;                      /* runs whose values aren't those that were sent */
    int widened;                      /* sent again, with all GPUs */
    int gone;                         /* sent again, since their files were gone */
    const char *changed_runs;         /* their names, at most three, in the arena */
    const char *unsent_runs;          /* likewise, of a look */
    bool busy;                        /* another process sends this study there; nothing was done */
    bool running;                     /* the study is: more will come */
};

/* Whether more will come of a study or recording: who makes it is at work. */
bool lab_track_is_running(const char *path);
/* Where files and journal of a study or recording are: the study, or <recording>.track. */
const char *lab_track_home(const char *path, struct lab_arena *arena);

/* `path`: a study's folder, or a recording. `ret_sent` is filled in any case: what was delivered
 * before a failure stays. */
int lab_track_send(const char *path, const struct lab_tracker *tracker,
                   const struct lab_track_request *request, struct lab_arena *arena,
                   struct lab_track_sent *ret_sent, struct lab_err *err);
