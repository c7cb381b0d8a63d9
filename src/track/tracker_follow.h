/*
 * tracker_follow.h: a study is sent while it runs, by a process of its own: `gpulab sync --watch`,
 * at the lowest priority. It reads what the runner has stored and shares nothing else with it. So
 * whatever a tracker does, hang, fail or crash, the study neither waits nor fails.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <sys/types.h>

struct lab_track_follower {
    pid_t pid; /* 0 = there is none */
    const char *folder, *trackers;
};

/* `trackers`: names joined by commas; NULL or "" starts nothing. Its messages go to track/sync.log
 * in the folder. The texts must outlive it. */
int lab_track_follow(const char *folder, const char *trackers,
                     struct lab_track_follower *ret_follower, struct lab_err *err);

/* Once the study has ended: waits for the rest to be sent, a few seconds at most. */
enum lab_track_rest {
    LAB_TRACK_ALL_SENT,
    LAB_TRACK_STILL_SENDING, /* it goes on by itself */
    LAB_TRACK_UNSENT,        /* `err` says what failed, as the process said it */
};
enum lab_track_rest lab_track_follow_end(struct lab_track_follower *follower, struct lab_err *err);
