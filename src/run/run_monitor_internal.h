/*
 * run_monitor_internal.h: what the files of the run monitor share. Others use run_monitor.h.
 *
 *   run_monitor.c          sampler and recorder; what a run's GPUs did
 *   run_monitor_process.c  whose processes were on which GPU
 */
#pragma once

#include "run/run_monitor.h"
#include "store/recording/recording.h"

/* A process that was on a GPU, and the child of this process that it descends from; 0 = none. */
struct monitor_process {
    pid_t pid, parent, child;
    uint64_t start;
};

struct monitor_processes { /* zeroed = empty; items are on the heap */
    struct monitor_process *items;
    int count;
    bool has_own; /* some descend from this process */
};

/* Looks up whose the listed processes are, while they run: their parents may end before the run. */
void monitor_processes_note(struct monitor_processes *processes,
                            const struct lab_process_list *list);

struct monitor_view { /* what is asked, and what is known */
    const struct lab_run_monitor_question *question;
    const struct lab_recording *recording;
    const struct monitor_processes *processes;
    struct lab_arena *arena;
};

/* Adds to `result` who else was on a GPU: its track, and that of the whole GPU. */
void monitor_find_foreign(const struct monitor_view *view, int track, int whole,
                          struct lab_result *result);

/* Spoils the results of all ranks where the run's own processes were on GPUs that it wasn't given
 * (by track). */
void monitor_find_strayed(const struct monitor_view *view, const bool *given,
                          struct lab_result *results);
