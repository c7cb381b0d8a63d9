/*
 * parallel.h: a training's step on several devices (workload_parallel.c). Each rank computes its
 * share of the gradient, shares are summed over all ranks, and each updates its own copy of the
 * parameters, which stay the same on all to the bit.
 *
 * The gradient is cut into buckets, in the order in which the backward pass completes them. A
 * bucket's sum begins when its values are there, on a stream of its own: it runs beside the rest of
 * the backward pass. The update waits for the last.
 *
 * A workload says how each part is enqueued and calls lab_parallel_step for all of a step.
 */
#pragma once

#include "workload/workload.h"

struct lab_bucket {
    int64_t begin, count; /* values of the gradient */
};

#define LAB_PARALLEL_WHOLE (-1) /* instead of all parts */

struct lab_parallel_setup {
    const struct lab_rank *rank; /* with a group; copied */
    struct lab_stream *stream;   /* of the training */
    const char *allreduce;       /* a way of lab_sum_ways */
    enum lab_dtype dtype;        /* of the gradient: */
    void *gradient;
    int64_t count;
    float *singles; /* what is summed behind the last bucket in fp32, such as losses; NULL = none */
    int64_t single_count;
    /* Sums that are kernels (group.h) get a stream of their own, too: none of the backward pass's
     * kernels waits for blocks of its own grid. false: they stand in line with all else. */
    bool sums_beside;
    bool compile; /* all before the sums as a graph, where sums go through host memory */
    int slots;    /* of the training's spans */
    /* Enqueues part 0, the forward pass, or i + 1, what completes bucket i. */
    int (*compute)(void *state, int part, struct lab_err *err);
    int (*update)(void *state, struct lab_err *err);
    void *state;
};

struct lab_parallel;

/* Opens the sum and, where it has one, its stream. A warning tells where it isn't the way that was
 * asked for. */
int lab_parallel_open(const struct lab_parallel_setup *setup, struct lab_parallel **ret_parallel,
                      struct lab_err *err);
/* All streams are idle. */
void lab_parallel_close(struct lab_parallel *parallel); /* accepts NULL */

/* Whether sums stand in line with all else: then more than one bucket has no use. */
bool lab_parallel_in_line(const struct lab_parallel *parallel);
/* Whether sums are kernels: then all of a step's must have been launched before the first sum. */
bool lab_parallel_settles(const struct lab_parallel *parallel);
/* The sums' own stream; NULL = they are in line, or `parallel` is NULL. */
struct lab_stream *lab_parallel_stream(const struct lab_parallel *parallel);

/*
 * Once, before the first step. `whole`: forward and backward are one part, LAB_PARALLEL_WHOLE, and
 * there is one bucket. Where sums are kernels, all parts are done once here, which loads theirs:
 * `reset` then puts the parameters back.
 */
int lab_parallel_start(struct lab_parallel *parallel, const struct lab_bucket *buckets, int count,
                       bool whole, int (*reset)(void *state, struct lab_err *err),
                       struct lab_err *err);

/* Parts, sums and update of a run's step, of `count` in all. */
int lab_parallel_step(struct lab_parallel *parallel, int iteration, int count, struct lab_err *err);
/* After a run of so many: what its parts took, as means over those that were looked at. */
int lab_parallel_tell(struct lab_parallel *parallel, int count, const struct lab_sink *sink,
                      int64_t time_ns, struct lab_err *err);

/* Which of `count` things, shared by all ranks, are this one's; the first ranks have one more where
 * it doesn't come out even. */
struct lab_bucket lab_parallel_share(int64_t count, int index, int ranks);

/* What `enqueue` puts on the stream, kept as a graph instead of run. */
int lab_parallel_capture(struct lab_stream *stream,
                         int (*enqueue)(void *state, struct lab_err *err), void *state,
                         struct lab_graph **ret_graph, struct lab_err *err);
