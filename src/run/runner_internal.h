/*
 * runner_internal.h: what the files of the runner share. Others use runner.h.
 *
 *   runner.c         the loop: which run starts when, when to stop, what to wait for
 *   runner_run.c     one attempt: its workers, its end, and whether another follows
 *   runner_frame.c   what workers say: heard, checked, written down
 *   runner_result.c  the ranks' results as one
 *   runner_log.c     what workers print
 *   runner_phase.c   of a study with phases: what its runs are told beside the plan, cooling down
 *   runner_place.c   which CPUs the runner itself uses
 */
#pragma once

#include "run/frame.h"
#include "run/job.h"
#include "run/launch/child.h"
#include "run/run_monitor.h"
#include "run/runner.h"

#include <sched.h>

/* --- runner_log.c --- */

struct runner_log {
    int fd; /* -1 = can't be written */
    const char *path;
    int64_t kept_bytes, dropped_bytes;
    bool complained;
    bool unended; /* it doesn't end with a line */
};

/* --- one attempt --- */

#define RUNNER_PHASE_BYTES 64

struct runner_rank {
    bool ready;
    const struct lab_result *result; /* NULL = not yet */
    int64_t next_iteration;
    int64_t done, total; /* of the phase */
    char phase[RUNNER_PHASE_BYTES];
};

enum { RUNNER_OUT, RUNNER_ERR, RUNNER_LOGS };

struct runner_worker {
    struct lab_child child;
    struct runner_log logs[RUNNER_LOGS];
    int first_rank, rank_count; /* of the run's: what it carries out */
    struct lab_frame_reader reader;
    struct lab_str outgoing;
    size_t sent;       /* of outgoing */
    bool waits;        /* its ranks have come to a meeting */
    bool closed;       /* its events have ended */
    int64_t closed_ns; /* when */
    /* what came in the second that began then */
    int64_t second_ns, second_frames, second_bytes;
};

enum runner_state {
    RUNNER_FREE,
    RUNNER_WORKING,
    RUNNER_LEAVING,  /* done and acknowledged: its workers end by themselves */
    RUNNER_STOPPING, /* failed, or no longer wanted: its workers are ended */
};

struct runner_run {
    enum runner_state state;
    const struct lab_runner_item *item;
    int attempt;
    /* of the attempt */
    bool concurrent;
    struct lab_arena arena;
    struct runner_worker *workers;
    int worker_count;
    struct runner_rank *ranks;
    int speaker_count;   /* ranks that tell of phases and progress: all, or a launcher's first */
    int64_t start_ns;    /* simulated: by the study's clock */
    int64_t heard_ns;    /* simulated: the latest time that its workers spoke of */
    int64_t begun_ns;    /* by this machine's clock */
    int64_t deadline_ns; /* of the attempt, by its timeout */
    int64_t leave_ns;    /* when those who should have ended by themselves are killed */
    int64_t settle_ns;   /* results are there: how long GPUs have for a last reading; 0 = not yet */
    int64_t told_ns;     /* when progress was last told */
    int64_t oom_kills;   /* of the system so far, as it began */
    int port;            /* of programs: that the attempt's processes may use; 0 = none */
    bool begun;          /* in the store */
    bool all_ready;      /* GO was said */
    bool unwilling;      /* a worker that waits in a meeting */
    bool abandoned;      /* ended without being a failure of its own */
    struct lab_err failure;
    const struct runner_worker *failed_worker; /* NULL = the run as a whole */
    bool last_word;                            /* the failed worker said so itself and will end */
    char phase[RUNNER_PHASE_BYTES];
};

/* --- runner_place.c --- */

struct runner_place {
    size_t size;
    cpu_set_t *original, *own;
    bool bound;
};

/* Keeps the calling thread off the CPUs that the runs compute on, if others are left. */
void runner_place_init(struct runner_place *place, const struct lab_runner_spec *spec);
void runner_place_release(struct runner_place *place);
/* Children inherit where their parent may run: give it back while one is started. */
void runner_place_yield(const struct runner_place *place);
void runner_place_resume(const struct runner_place *place);

/* --- the whole --- */

struct runner {
    const struct lab_runner_spec *spec;
    struct lab_runner_patience patience;
    struct lab_runner_outcome outcome;
    struct lab_children children;
    struct runner_place place;
    struct lab_run_monitor *monitor; /* NULL = none is wanted, or it can't be */
    char *folder;                    /* absolute */
    struct runner_run *runs;
    int run_capacity, active_count;
    bool *taken; /* by item */
    int *uses;   /* by gpu_id: runs of a spread study that began there */
    int first_pending;
    int64_t start_ns;
    bool simulated;
    int64_t simulated_ns; /* the study's clock: where the next run begins */
    int64_t cool_ns;      /* nothing starts before */
    bool cools;           /* until then at most: as soon as the devices are cool */
    int64_t settle_ns;    /* but not before that */
    int64_t empty_ns;     /* until then GPUs have time to give back what the last run took */
    int stop_level;
    bool closed; /* nothing more starts: fail_fast, or the budget is used */
    bool ever_started;
    struct lab_err fatal;
    bool store_refused, room_was_asked_for;
    int64_t progress_ns; /* when it was last written */
    bool progress_changed;
    struct pollfd *polled;
    char chunk[65536]; /* what is just being read */
};

/* --- runner.c --- */

/* How long GPUs have for a reading that was asked for, and how often it is looked for. */
#define RUNNER_SETTLE_NS      (500 * LAB_NS_PER_MS) /* only one that hangs takes so long */
#define RUNNER_SETTLE_LOOK_NS (2 * LAB_NS_PER_MS)

void runner_tell(const struct runner *runner, const struct runner_run *run,
                 struct lab_runner_event event);
void runner_warn(const struct runner *runner, const struct runner_run *run, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The runner can't go on: the first such error is what it returns. */
void runner_give_up(struct runner *runner, const struct lab_err *err, bool store_refused);

/* --- runner_start.c --- */

/* Makes the job of the worker's ranks and starts its process with it. */
int runner_start_worker(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                        struct lab_err *err);

/* --- runner_run.c --- */

/* Begins an item's first attempt in a free place. */
void runner_run_start(struct runner *runner, struct runner_run *run,
                      const struct lab_runner_item *item, int64_t now_ns);
/* Sees what has become of it; it is free again when all is over. */
void runner_run_advance(struct runner *runner, struct runner_run *run, int64_t now_ns);
/* Ends its workers without a verdict. */
void runner_run_abandon(struct runner *runner, struct runner_run *run, int64_t now_ns);
/* When it must be looked at again at the latest. */
int64_t runner_run_due(const struct runner *runner, const struct runner_run *run, int64_t now_ns);
/* Notes why it failed, unless it is known already, and ends its workers. */
void runner_run_fail(struct runner_run *run, const struct runner_worker *worker,
                     const struct lab_err *why);
/* The same for a worker that does what it must not: "it floods its runner with events". */
void runner_run_fail_wrong(struct runner_run *run, const struct runner_worker *worker,
                           struct lab_err *why);

/* --- runner_frame.c --- */

void runner_hear(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                 int64_t now_ns);
/* The same until nothing is left, for one that has ended. */
void runner_hear_out(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                     int64_t now_ns);
void runner_say(struct runner_worker *worker, const struct lab_frame *frame);
void runner_say_rest(struct runner_worker *worker);
/* The rank with the fewest iterations done: a gang is as far as that. */
const struct runner_rank *runner_run_slowest(const struct runner_run *run);

/* --- runner_result.c --- */

/* Fills rate, valid and result of `outcome`, in the arena, and the end of a simulated run.
 * `processes`: how the ranks were carried out. `profiler` recorded it; NULL = none. The monitor is
 * asked for what the ranks' GPUs did; the question's times of measuring are filled in here. */
void runner_result_merge(const struct runner_rank *ranks, int count,
                         enum lab_plan_processes processes, const char *profiler,
                         struct lab_run_monitor *monitor,
                         const struct lab_run_monitor_question *question, struct lab_arena *arena,
                         struct lab_run *outcome);

/* --- runner_phase.c --- */

/* How a run's ranks are carried out; how long it measures, 0 = a number of iterations. */
enum lab_plan_processes runner_run_processes(const struct runner *runner,
                                             const struct lab_plan_run *planned);
double runner_run_duration_s(const struct runner *runner, const struct lab_plan_run *planned);

/* What rank `index` of a run of a phase is told beside its device and node: CPUs of its own, and
 * what other runs chose. Fails where that is unknown since those runs have failed. */
int runner_phase_rank(const struct runner *runner, const struct lab_plan_run *planned, int index,
                      struct lab_arena *arena, struct lab_job_rank *rank, struct lab_err *err);

/* --- runner_log.c --- */

void runner_logs_open(const struct runner *runner, struct runner_run *run);
/* Takes what there is of a worker's output; `to_the_end` = it has ended. */
void runner_log_take(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                     int which, bool to_the_end);
void runner_logs_close(const struct runner *runner, struct runner_run *run);
