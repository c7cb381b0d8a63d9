/*
 * study_watch.h: the studies that `status` and `estimate` look at: one that was named, or all
 * of this user's that run or were interrupted. They may be read again and again; what is known of
 * earlier runs is read once.
 */
#pragma once

#include "load/programs.h"
#include "load/study_view.h"

struct lab_study_watch_item {
    const char *path;
    struct lab_history *history;   /* NULL until it is read; studies of one machine share it */
    uint64_t machine;              /* identity of where it runs, set with the history */
    bool running;                  /* as it was found */
    struct lab_programs *programs; /* that it runs; NULL until it is read */
};

struct lab_study_watch {
    struct lab_study_watch_item *items; /* newest first */
    int count;
    bool more; /* there are others, beyond max */
    int known; /* studies of this user, also those that have ended */
};

/*
 * `word` as for lab_folder_resolve, whatever its state. NULL = at most `max` (0 = all) that run or
 * have runs left that never ended; one that can't be read is passed over. A study whose runs have
 * all ended, some of them failed, isn't among them, though the same command would try these again.
 */
int lab_study_watch_open(const char *word, int max, struct lab_arena *arena,
                         struct lab_study_watch *ret_watch, struct lab_err *err);
void lab_study_watch_close(struct lab_study_watch *watch); /* accepts a zeroed one */

/* Whether some were running when they were found; keeping those alone. */
bool lab_study_watch_any_running(const struct lab_study_watch *watch);
void lab_study_watch_keep_running(struct lab_study_watch *watch);

/* Reads item `index` as it stands now, with its runs, the time left and what its programs have
 * reported, which holds until the item is read again. The caller closes the view's file. */
int lab_study_watch_read(struct lab_study_watch *watch, int index, struct lab_arena *arena,
                         struct lab_study_view *ret_view, struct lab_err *err);
