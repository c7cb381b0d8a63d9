/*
 * tracker_follow.h: a study is sent while it runs, by a process of its own: `gpulab sync --watch`,
 * at the lowest priority. It reads what the runner has stored and shares nothing else with it. So
 * whatever a tracker does, hang, fail or crash, the study neither waits nor fails. Files and
 * servers have a process each, so that a server that hangs delays no file. They aren't children of
 * this process: a runner with a child besides its worker reads the whole process tree at each run's
 * end.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <sys/types.h>

struct lab_track_follower {
    struct lab_track_process {
        pid_t pid;         /* 0 = there is none */
        int end;           /* a pipe that it holds as long as it lives */
        char trackers[64]; /* joined by commas */
    } files, servers;
    const char *folder;
};

/* `folder`: of a study, or a recording's path. `trackers`: names joined by commas; NULL, ""
 * and "none" start nothing. Its messages go to track/sync.log in the home (lab_track_home). The
 * texts must outlive it. */
int lab_track_follow(const char *folder, const char *trackers,
                     struct lab_track_follower *ret_follower, struct lab_err *err);

bool lab_track_follows(const struct lab_track_follower *follower); /* anything was started */

/* Once the study has ended: waits for the rest to be sent, a few seconds at most, or until a
 * Ctrl-C that lab_stop_watch takes. NULL = all is sent; else what isn't and why, in a line for the
 * user, in the arena. */
const char *lab_track_follow_end(struct lab_track_follower *follower, struct lab_arena *arena);
