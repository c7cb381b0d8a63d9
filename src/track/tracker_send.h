/*
 * tracker_send.h: sends to a tracker what a study has and the tracker hasn't. May be called again
 * and again, while the study runs and after it: study.db is the queue, and a journal beside it says
 * how far each run came. Studies of every version can be sent.
 */
#pragma once

#include "track/tracker.h"

struct lab_track_request {
    const char *project; /* NULL = "<study>-<5 hex digits of machine and folder>" */
    bool all_gpus;       /* not the run's alone */
    int64_t max_points;  /* of one metric in a batch; more are thinned. 0 = LAB_TRACK_POINTS */
    bool look;           /* sends nothing, counts alone */
};

#define LAB_TRACK_POINTS 50000

struct lab_track_sent {
    const char *project;              /* in the arena */
    int runs, unsent;                 /* that were sent to their end; that were not, as of now */
    int64_t points;                   /* values and samples, now */
    int64_t thinned_from, thinned_to; /* points of metrics that had too many */
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
