/*
 * group.h: what the ranks of a gang share when they are threads of one process: a place to meet, a
 * way to show each other something, and sums of vectors over all of their devices (an all-reduce).
 *
 * A sum is enqueued like a launch: the call returns when its commands are in the stream, and it
 * runs beside what other streams do.
 *
 * Nobody waits for ever. A rank that fails says so (lab_group_fail), or comes to another meeting
 * than the others, or parts while others meet, or doesn't come within the limit: then all meetings
 * under way fail soon, and so do those to come, with the words of the rank that failed first.
 */
#pragma once

#include "device/device.h"

struct lab_group;

struct lab_group_setup {
    int ranks;
    double limit_s;               /* how long a rank waits for another */
    const _Atomic(bool) *stopped; /* once true, nobody waits any longer; may be NULL */
};

#define LAB_GROUP_LIMIT_S 30.0 /* longer than any step or set-up takes */

struct lab_group *lab_group_open(const struct lab_group_setup *setup);
void lab_group_close(struct lab_group *group); /* accepts NULL; no rank uses it any more */

int lab_group_ranks(const struct lab_group *group);
double lab_group_limit_s(const struct lab_group *group);

/* From any thread, and NULL is accepted: this rank is out; the first one's words are kept. */
void lab_group_fail(struct lab_group *group, int rank, const struct lab_err *why);
/* The same, in the words as they are. */
void lab_group_stop(struct lab_group *group, const struct lab_err *why);
/* Whose failure it was; -1 = none yet, or no single rank's. */
int lab_group_failed_rank(struct lab_group *group);
/* -1 with those words once it has failed. */
int lab_group_check(struct lab_group *group, struct lab_err *err);

/*
 * `failed` is called once when the group fails, by the thread that brings it about, or at once
 * where it has failed before: so that what waits elsewhere than in a meeting can be let go. It must
 * not call the group.
 */
struct lab_group_watch {
    void (*failed)(void *state);
    void *state;
    struct lab_group_watch *next; /* the group's own */
};
void lab_group_watch(struct lab_group *group, struct lab_group_watch *watch);
void lab_group_unwatch(struct lab_group *group, struct lab_group_watch *watch);

/*
 * Waits until all ranks have come. All must come to the meeting of the same number: who is out of
 * step ends it for all. `device` is the rank's own: simulated time goes on meanwhile.
 */
int lab_group_meet(struct lab_group *group, int rank, struct lab_device *device, uint64_t number,
                   struct lab_err *err);

/* Shows the others `own` and finds what they show, [ranks]: theirs as long as they keep it. */
int lab_group_exchange(struct lab_group *group, int rank, struct lab_device *device, void *own,
                       void **ret_all, struct lab_err *err);

/*
 * Between the two, others may use memory and events of this rank. Parting waits, within the limit
 * and whatever has failed, until all that hold have come to it: then nobody uses anything of
 * another any more. false: some didn't come, and the group has failed.
 */
void lab_group_hold(struct lab_group *group);
bool lab_group_part(struct lab_group *group, int rank, struct lab_device *device);

/* --- sums --- */

enum lab_sum_way {
    LAB_SUM_AUTO, /* what suits the devices */
    LAB_SUM_RING, /* each sums a part, and parts go round: each link carries the same */
    /* the first device gathers all, sums, and gives back: through host memory */
    LAB_SUM_HIERARCHICAL,
    LAB_SUM_NCCL,   /* NVIDIA's library: between GPUs */
    LAB_SUM_NVLINK, /* a ring over simulated NVLinks: chosen by auto, no one asks for it */
};

/*
 * What a ring goes through depends on the devices. Slices of one GPU read and write each other's
 * vectors in device memory, by one kernel of each rank (src/device/cuda/sum.c); all others go
 * through host memory.
 *
 * In device memory and by NCCL a sum is one command in the rank's own stream: its threads don't
 * meet, and a graph may capture it and be replayed, by all ranks equally often. The ranks' kernels
 * wait for each other on the device, so each rank's sums must not stand behind a command that waits
 * for a later sum of another. Whatever else runs on a rank's multiprocessors delays the others, no
 * more. But graphs that hold other kernels beside a sum may wait for each other on slices of one
 * GPU; and while any rank's sum runs there, the driver neither loads a kernel nor makes a graph:
 * ranks meet when they have all of theirs, before the first sum. Through host memory devices wait
 * for each other's events: before that the threads meet, in each sum, since the neighbour must have
 * recorded its own; and no graph can capture it.
 */

extern const char
    *const lab_sum_ways[]; /* to ask for: "auto", "ring", …; NULL-terminated, by number */
const char *lab_sum_way_name(enum lab_sum_way way);
enum lab_sum_way lab_sum_way_find(const char *name); /* LAB_SUM_AUTO where it is none of them */

struct lab_sum_setup {
    int rank;
    struct lab_device *device;
    int numa_node; /* where its host memory lies; -1 = anywhere */
    enum lab_sum_way way;
    enum lab_dtype dtype; /* of the longest vector; fp32 ones are summed in any case */
    int64_t count_most;   /* values of it */
};

struct lab_sum; /* a rank's end of it */

/*
 * All ranks open it, with the same way and length. Where the way that was asked for can't be taken
 * between these devices all take the ring, and lab_sum_note says why. Through host memory it holds
 * about twice the vector of it.
 */
int lab_sum_open(struct lab_group *group, const struct lab_sum_setup *setup,
                 struct lab_sum **ret_sum, struct lab_err *err);
/* Its streams are idle. Waits, within the limit, for the others, who may still read from it. */
void lab_sum_close(struct lab_sum *sum); /* accepts NULL */

/*
 * data[count] on this device becomes the sum over all ranks, to the bit the same on each. All ranks
 * enqueue their sums in the same order, with the same counts, one behind the other. Nothing is
 * allocated.
 */
int lab_sum_enqueue(struct lab_sum *sum, struct lab_stream *stream, float *data, int64_t count,
                    struct lab_err *err);
/* The same of values in the dtype that it was opened with, or of fp32. */
int lab_sum_enqueue_as(struct lab_sum *sum, struct lab_stream *stream, enum lab_dtype dtype,
                       void *data, int64_t count, struct lab_err *err);

/*
 * Whether the sums so far have come about, as far as they are done: -1 with the words of who
 * failed. A rank that waits on its device for one that never comes gives up at the group's limit,
 * what its vector holds is no sum then, and this tells. A synchronisation of the stream does so,
 * too.
 */
int lab_sum_check(struct lab_sum *sum, struct lab_err *err);

/* The way that the group's last sum has taken; LAB_SUM_AUTO = it has opened none. */
enum lab_sum_way lab_group_sum_way(const struct lab_group *group);
/* What it goes through: "host memory", "device memory", "NCCL", "NVLink". */
const char *lab_sum_through(const struct lab_sum *sum);
/* Why it isn't the way that was asked for, or what simulated sums leave out, as a sentence; NULL =
 * neither is so. */
const char *lab_sum_note(const struct lab_sum *sum);
/* Whether it is one command in the rank's own stream, which a graph may capture. */
bool lab_sum_is_captured(const struct lab_sum *sum);
