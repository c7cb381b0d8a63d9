/*
 * probe_sampler.h: inside of the sampler: its lanes, and who owns what.
 *
 * A thread in a driver may hang for good, and can't be ended. So all that a lane's thread may touch
 * is counted: the sampler by its handle and its threads, a probe by the handle and its lanes.
 * Closing leaves a lane that doesn't come back, with all it holds; should it come back after all,
 * it cleans up behind itself.
 */
#pragma once

#include "probe/probe_gpu_process_table.h"
#include "probe/probe_sample_queue.h"
#include "probe/sampler.h"

#include <stdatomic.h>

/* What tests bring in place of the real thing. */
struct sampler_parts {
    const struct lab_probe *const *probes; /* NULL-terminated */
    int64_t (*wall_offset_ns)(void);       /* wall clock less CLOCK_MONOTONIC */
};

int lab_sampler_open_parts(const struct sampler_parts *parts,
                           const struct lab_sampler_config *config,
                           struct lab_sampler **ret_sampler, struct lab_err *err);

/* Wakes one sleeper: a futex's word. A condition would cost a second system call at each tick, and
 * semaphores have no monotonic clock before glibc 2.30. */
typedef _Atomic uint32_t sampler_bell;

/* --- lateness: shares of an octave, so that a day's readings fit in a few KB --- */

#define LATENESS_BUCKETS (40 * 16)

struct lateness {
    uint32_t buckets[LATENESS_BUCKETS];
    int64_t count, max_ns;
};

void lateness_add(struct lateness *lateness, int64_t late_ns);

/* --- a lane --- */

#define SAMPLER_TEXTS 4

struct sampler_probe {
    struct lab_sampler *sampler;
    const struct lab_probe *probe;
    void *state;
    _Atomic(char *) refusal;    /* NULL = it is at work, and `state` is open */
    char *texts[SAMPLER_TEXTS]; /* that refusals were or are; freed at the end */
    int text_count;
    atomic_int users; /* the handle and each lane's thread; the last one closes it */

    /* under the sampler's mutex, of one that is opened in a thread of its own */
    enum sampler_opening {
        SAMPLER_SETTLED, /* was opened or refused, and that is known */
        SAMPLER_OPENING,
        SAMPLER_OPENED, /* came back; nobody has looked at what it brought */
        SAMPLER_LATE,   /* nobody waits for it any more: it joins by itself */
    } opening;
    bool failed;      /* at least once, but it may come yet: the thread asks again */
    int64_t since_ns; /* of the sampler's clock */
    int result;       /* of opening it */
    struct lab_err why;
};

struct lane_entity {
    int number; /* for the sampler's sink; -1 = it was not asked for */
    struct lab_entity details;
};

struct sampler_lane {
    struct lab_sampler *sampler;
    struct sampler_probe *probe;
    int index;   /* within the probe */
    bool wanted; /* false: only GPUs that were not asked for; it has no thread */
    bool last;   /* speaks of what others found, the board: at an edge it reads after them */
    struct lab_probe_sink sink;

    sampler_bell wake;
    struct sample_queue queue; /* its mutex guards what follows, too */
    bool stop, edge;
    bool owes;                /* its reading of the last edge */
    int64_t reading_since_ns; /* -1 = it isn't reading */
    int64_t gap_since_ns;     /* -1 = it is there */
    int64_t ticks, missed, readings, cost_ns;
    int64_t untold, told_ns; /* of those missed; when it was last told */
    struct lateness late;
    /* written by the lane's thread alone, with the mutex; so that thread may read it without */
    struct lane_entity *entities;
    int entity_count;
    struct lab_arena arena; /* of the entities' details */

    /* the thread's own: what this reading has found so far */
    int64_t late_ns, began_ns;
    uint64_t staged_sequence;
    char *staged;
    size_t staged_bytes, staged_capacity;
    struct sample_queue_notes staged_notes;

    /* under the sampler's mutex */
    bool delivered; /* since the taker was woken */
    bool rests;     /* its next reading is due some ticks later */
};

void lane_init(struct sampler_lane *lane, struct lab_sampler *sampler, struct sampler_probe *probe,
               int index);
void lane_release(struct sampler_lane *lane);

/* Before its thread starts: gives those that were asked for their numbers, and tells of them. */
void lane_number_entities(struct sampler_lane *lane);

/* The body of its thread. */
void lane_run(struct sampler_lane *lane);

/* Notices, from any thread, that its reading takes too long. */
void lane_watch(struct sampler_lane *lane, int64_t now_ns);

/* --- the sampler --- */

#define SAMPLER_LANES_LATE 256 /* of probes that open late */

struct lab_sampler {
    atomic_int references; /* the handle and each thread */
    const struct lab_clock *clock;
    bool system_clock; /* one whose sleepers can be woken */
    struct lab_probe_setup setup;
    struct lab_arena arena; /* of the setup: copied, since a hanging lane outlives the caller's */
    struct lab_gpu_process_table *table;
    int *gpus; /* NULL = all */
    int gpu_count;
    struct lab_cpus cpus;
    int64_t start_ns, interval_ns, patience_ns;

    struct sampler_probe *probes;
    int probe_count;
    struct sampler_lane **lanes; /* has room for the late ones from the start */
    atomic_int lane_count;
    struct sample_queue queue; /* the sampler's own events */

    atomic_int owed; /* readings of an edge that those who speak last wait for */

    pthread_mutex_t mutex;
    pthread_cond_t ended;
    int threads;        /* that have not ended */
    int entity_numbers; /* given so far */
    int present, delivered;
    int late_room; /* for lanes */
    bool news, stop;
    sampler_bell watch_wake;
    pthread_cond_t opened; /* a probe */
    int event_fd;

    int64_t (*wall_offset_ns)(void);
    int64_t wall_checked_ns, wall_last_ns;
};

/* --- opening (probe_sampler_open.c) --- */

int sampler_check_names(const struct sampler_parts *parts, const struct lab_sampler_config *config,
                        struct lab_err *err);

/* Opens the probes and makes their lanes, without threads. How many lanes there were then: others
 * may have joined since, with theirs. */
int sampler_open_probes(struct lab_sampler *sampler, const struct sampler_parts *parts,
                        const struct lab_sampler_config *config, int *ret_lanes,
                        struct lab_err *err);

/* --- threads --- */

/* Detached, with all signals blocked, and a reference of its own that sampler_thread_ends gives
 * back. 0, or errno. stack_bytes 0 = as usual. */
int sampler_start_thread(struct lab_sampler *sampler, size_t stack_bytes, void *(*body)(void *),
                         void *argument);
void sampler_thread_ends(struct lab_sampler *sampler);

/* The lane counts among the probe's users already; on failure it no longer does. */
int sampler_start_lane(struct sampler_lane *lane);

/* Whether a GPU of this index was asked for. */
bool sampler_wants_gpu(const struct lab_sampler *sampler, int index);
int sampler_next_number(struct lab_sampler *sampler);

/*
 * Around a reading; after it only if it was good. The taker is woken once all lanes that are there
 * and don't rest have read, or one of them for the second time: so it finds whole rounds, and wakes
 * no more than once an interval.
 */
void sampler_reading(struct lab_sampler *sampler, struct sampler_lane *lane);
void sampler_delivered(struct lab_sampler *sampler, struct sampler_lane *lane, bool news,
                       bool rests);
void sampler_wake_taker(struct lab_sampler *sampler); /* at once */
void sampler_count_present(struct lab_sampler *sampler, int by);

/* One reading less is owed; after the last one those are asked who speak of the others. The mutex
 * of a lane that owes may be held: they never owe. */
void sampler_paid(struct lab_sampler *sampler);

void sampler_watch_run(struct lab_sampler *sampler); /* the body of the thread that does so */

void sampler_ring(sampler_bell *bell);

/*
 * Waits until the time has come or the bell has rung; maybe less. Sleepers on a clock of a test's
 * own can't be woken: they look again after a while.
 */
void sampler_wait(struct lab_sampler *sampler, sampler_bell *bell, int64_t until_ns);

void sampler_probe_release(struct sampler_probe *probe); /* one user */
void sampler_probe_close(struct sampler_probe *probe);   /* the handle, whatever became of it */

/* A machine in the arena that shares nothing with the original; NULL for NULL. */
const struct lab_machine *sampler_copy_machine(struct lab_arena *arena,
                                               const struct lab_machine *machine);
