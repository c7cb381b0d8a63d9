/*
 * worker_internal.h: what the files of the worker share. Others use worker.h.
 *
 *   worker.c         the conversation: job in, ranks started, acknowledgement
 *   worker_guard.c   the thread that listens to the runner and ends everything when it is gone
 *   worker_rank.c    one rank: a session's steps (session/session.h), in step with the others
 *   worker_phase.c   of a study with phases: tuning, choices side by side
 *   worker_probe.c   the device's available resources
 *   worker_disturb.c a neighbour on purpose
 *   worker_trace.c   the short traced pass behind the timed one
 *   worker_metric.c  figures that a workload tells, at a bearable pace
 *   worker_memory.c  peak memory, of a program that of its process tree
 *   worker_sample.c  what a simulated machine's sampler saw
 *   worker_result.c  what a rank has to tell at its end
 */
#pragma once

#include "base/cond.h"
#include "base/str.h"
#include "machine/machine.h"
#include "measure/measure.h"
#include "run/frame.h"
#include "run/job.h"
#include "run/launch/process_tree.h"
#include "session/session.h"
#include "workload/workload.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

struct worker_memory { /* of a program's processes */
    pthread_mutex_t mutex;
    int64_t next_ns;                   /* when they are looked at again */
    double resident_bytes, peak_bytes; /* at the last walk over pages; the most of any */
    struct lab_process_tree tree;
};

struct worker {
    int fd;
    pthread_mutex_t send_mutex;
    struct lab_str outgoing; /* the frame being sent; under send_mutex */

    struct lab_arena arena;
    struct lab_job job;
    struct lab_machine *machine;
    const struct lab_workload *workload;
    const void *config;            /* the job's options, checked; shared by all ranks */
    struct lab_workload_cost cost; /* of a rank that is alone */
    struct lab_group *group;       /* of ranks that do an iteration together; NULL = none do */

    pthread_mutex_t mutex; /* of what follows, up to the line */
    pthread_cond_t changed;
    bool go, acknowledged;
    int results_left; /* ranks whose RESULT is not on its way yet */
    int arrived;      /* ranks that wait in worker_meet */
    bool unwilling;   /* one of them */
    int64_t meetings; /* that are over */
    bool agreed;      /* at the last of them all were willing */
    /* --- */
    atomic_bool stopping; /* a rank has failed, or all were asked to end: the others end soon */
    atomic_bool external; /* the workload is a program that can be asked to end */

    struct worker_memory memory;

    pthread_mutex_t sample_mutex; /* samples are taken and sent by one at a time */

    pthread_mutex_t metric_mutex; /* of what follows */
    int64_t metric_window_ns;     /* its start */
    int metric_count;             /* in it */

    /* the guard's own once it runs */
    struct lab_frame_reader reader;
    pthread_t guard;
    bool guarded;
    pid_t parent;  /* the runner; 0 = a profiler stands between */
    int signal_fd; /* the parent's end, and requests to end */
    int wake_fd;   /* told by worker_guard_stop */
};

struct disturber; /* worker_disturb.c's */

struct worker_told { /* a value of the result that the workload tells, over what was measured */
    double total;
    int count;
};

struct worker_program { /* what a process of it prints of its pace (worker_program.c) */
    int rank;           /* as its lines are labelled; -1 = they aren't */
    int followed;       /* the series whose steps are counted; -1 = none yet */
    bool by_epoch;      /* its steps are epochs */
    double first_step, last_step, steps;
    int64_t last_ns, time_ns; /* time_ns: in which `steps` were done */
    int64_t lines, times;     /* that had another step; that came at another time, too */
    double *tokens;           /* or words, per second; in the rank's arena */
    const char *token_unit;   /* NULL = none yet */
    int token_count;
    int64_t seen, stride;
};

#define WORKER_SERIES_MOST  65536
#define WORKER_SERIES_SLOTS 4096

struct worker_series { /* values of a name and rank (worker_series.c); texts are the rank's */
    const char *name;
    int rank;
    int next;              /* + 1: of the same slot; 0 = there is none */
    const char *unit;      /* of its last */
    const char *rate_unit; /* of tokens or words per second; NULL = it is no rate */
    int told_row;          /* of the result; -1 = none */
    int program;           /* of `programs`; -1 = none */
    bool beyond;           /* it has values that aren't kept */
    struct lab_reported_metric low, high, last; /* of those */
};

struct rank {
    struct worker *worker;
    const struct lab_job_rank *job;
    pthread_t thread;
    struct lab_arena arena;
    struct lab_session session;  /* its device, its workload, what was verified and proven */
    struct lab_device_list gang; /* of a launcher: the devices of all ranks */

    bool go;                    /* the runner has let it measure */
    int64_t shown[2];           /* to the other ranks, in turn (worker_agree) */
    int shown_next;             /* which of the two */
    int64_t sent;               /* iterations told so far */
    atomic_llong progress_ns;   /* when PROGRESS was told last */
    atomic_llong progress_done; /* and how much of it */
    atomic_bool tells_progress; /* the workload does so itself */
    int64_t metric_count;       /* told by the workload */
    struct worker_series *series;
    int series_count, series_last;         /* last: the one that was met last */
    int series_slots[WORKER_SERIES_SLOTS]; /* by the hash of name and rank: the first, + 1 */
    int64_t held_ns, whole_ns;             /* for which it waited at most, and ran */
    int64_t told_ns;                       /* when a workload of our own told its first metric */
    struct worker_told told[LAB_RESULT_ROW_COUNT]; /* of rows that a workload tells */
    struct worker_program *programs; /* one, or one for each labelled rank of a launcher's output */
    int program_count;

    struct lab_measurement measurement;
    bool overlaps;            /* copies can run beside compute on this device */
    int64_t end_ns;           /* by the device's clock, when all was done; 0 = it has none */
    struct lab_result result; /* what is known so far; its texts are the rank's */

    /* of a phase */
    struct disturber *disturber;
    const char *configuration;     /* that the kernel runs with; NULL = as the options say */
    const char *phase_warnings[4]; /* sentences */
    int phase_warning_count;
    const char *trace_warning; /* a sentence; NULL = all went well */
};

/* All of it, however long that takes; false if the other end is closed. */
bool worker_write(int fd, bool is_socket, const char *bytes, size_t length);
/* Sends one frame whole; any thread. A runner that is gone is the guard's business: no failure. */
void worker_send(struct worker *worker, const struct lab_frame *frame);

/* Something went wrong: true for the first who says so, and that one tells the runner. Wakes
 * all. */
bool worker_stop(struct worker *worker);

/* Waits until the runner says GO; false if another rank's failure came first. */
bool worker_wait_go(struct worker *worker);

/*
 * Waits until all ranks of the worker, or of the whole gang, are here; they go on together. True if
 * all of them were willing; false as above, too. All ranks have the same meetings, in one order.
 */
bool worker_meet(struct rank *rank, bool of_gang, bool willing);
/* The meeting is over: all are here. Under the mutex. */
void worker_met(struct worker *worker, bool agreed);

/* The least that a rank of the group says here; `own` where there is no group. -1: the group has
 * failed. */
int worker_agree(struct rank *rank, int64_t own, int64_t *ret_least, struct lab_err *err);

/* --- guard --- */

/*
 * The kernel ends this process the moment the runner is gone, whatever it is at: for the calling
 * thread's stretches without a guard, in which there is no descendant that would be left behind.
 */
void worker_die_with_parent(const struct worker *worker);

/* From here on the guard owns the reader. Threads started before it are not protected. */
int worker_guard_start(struct worker *worker, struct lab_err *err);
void worker_guard_stop(struct worker *worker); /* accepts a worker without one */

/* Kills whatever descends from this process; the process itself goes on. */
void worker_kill_descendants(void);
bool worker_is_descendant(const struct lab_process_tree *tree, const struct lab_process *process);

/* --- ranks --- */

void *worker_rank_main(void *rank); /* of its thread */

/* Passes metrics on, or drops what is too many. Of one rank by one thread at a time. */
void worker_tell_metrics(struct rank *rank, const struct lab_reported_metric *items, size_t count);
/* After the last of them: what wasn't kept. */
void worker_tell_last_metrics(struct rank *rank);
/* NULL = it is new and there are too many. */
struct worker_series *worker_find_series(struct rank *rank,
                                         const struct lab_reported_metric *metric);
/* Takes note of a value that tells the pace of the user's program; of others' nothing. */
void worker_follow_program(struct rank *rank, const struct lab_reported_metric *metric,
                           const struct worker_series *series);
/* The program that prints the metrics of this label; -1 = there are too many. */
int worker_find_program(struct rank *rank, int label);
/* Replaces the rate of its runs by the program's own. */
void worker_set_program_rate(const struct rank *rank, struct lab_result *result);
/* Passes on what a simulated machine's sampler has seen so far; nothing of a real device. */
void worker_tell_samples(struct rank *rank);
/* A sentence for whatever happened to the figures, if anything. */
void worker_add_metric_warnings(const struct rank *rank, struct lab_arena *arena,
                                struct lab_result *result);

/* --- of a study with phases --- */

/* A sentence for the result's warnings. */
void worker_warn(struct rank *rank, const char *sentence);
/* Binds the calling thread to the CPUs that the job names, if any. */
int worker_bind(const struct rank *rank, struct lab_err *err);
/* Tunes the kernel where the job says so; what can't be tuned runs as it is, with a warning. */
int worker_tune(struct rank *rank, struct lab_err *err);
/* From here on the workload's kernel runs as was tuned, or as the job says. */
int worker_configure(struct rank *rank, struct lab_err *err);
/* The choices side by side instead of one alone: warms each up, calls `ready`, measures. `plan` as
 * for one; fills the rank's measurement. */
int worker_measure_choices(struct rank *rank, const struct lab_measure_plan *plan,
                           void (*ready)(struct rank *rank), struct lab_err *err);
/* Measures the device's resources, all ranks of the gang at the same time. */
void worker_probe(struct rank *rank);

/*
 * The most that a GPU computes out of the least memory: an attention in bf16 whose heads share one
 * key and value head, 1 MB that all multiprocessors read. Without data. False: the device has none.
 */
bool worker_attention(const struct lab_device *device, struct lab_launch *ret_launch);

/* Starts and ends the neighbour that the job asks for. */
int worker_disturb_start(struct rank *rank, struct lab_err *err);
void worker_disturb_stop(struct rank *rank); /* accepts one that was never started */

bool worker_wants_trace(const struct worker *worker);
/* After all ranks have measured. Leaves what came of it in the rank. */
void worker_trace(struct rank *rank);

/* The most memory so far, of a program that of all its processes; NaN = unknown. */
double worker_peak_memory_mib(struct worker *worker, struct lab_arena *arena);
/* To be called while a program runs, as often as one likes. */
void worker_look_at_memory(struct worker *worker);

/* Adds to the rank's result what is known at its end. */
void worker_complete_result(struct rank *rank);
/* Of a launcher: what is known of another rank of the job, whose work the first's program did. */
struct lab_result worker_launched_result(const struct rank *first, int index);
