/*
 * allreduce.h: what the files of the `allreduce` workload share: its keys, and a rank's end of the
 * sums.
 *
 *   allreduce.c       the keys and the ranks of this process: one of a gang, or all of them
 *   allreduce/end.c   one rank: its vectors, its sums and their times
 *   allreduce/check.c whether sums are right
 */
#pragma once

#include "workload/nccl/settings.h"
#include "workload/workload.h"

struct allreduce_config {
    int64_t bytes;
    const char *allreduce, *devices;
    int64_t graph;
    bool flush;
    double wait;
    struct nccl_settings nccl;
};

/* What a vector of the config has. */
int64_t allreduce_values(const struct allreduce_config *config);

struct allreduce_end {
    const struct allreduce_config *config;
    struct lab_group *group;
    int rank, ranks;
    struct lab_device *device;
    int numa_node;
    struct lab_stream *stream;
    struct lab_sum *sum;
    struct lab_spans spans;
    struct lab_buffer pool;  /* [slots][stride] */
    struct lab_buffer fresh; /* [slots][stride]: what they begin with */
    int64_t stride, slots;   /* one, or as many as no cache holds */
    int64_t sums;            /* since the vectors were fresh */
    struct lab_graph *graph; /* of `together` sums; NULL where they are launched one by one */
    int together;
};

/* All ranks open theirs, with rank, ranks, group, device, numa_node and config set, and close
 * it. */
int allreduce_end_open(struct allreduce_end *end, struct lab_err *err);
void allreduce_end_close(struct allreduce_end *end);

int allreduce_end_run(struct allreduce_end *end, int count, struct lab_iteration *records,
                      struct lab_err *err);
/* `seed` is this rank's own. */
int allreduce_end_verify(struct allreduce_end *end, uint64_t seed, struct lab_verification *ret,
                         struct lab_err *err);
int allreduce_end_refresh(struct allreduce_end *end, struct lab_err *err); /* all vectors fresh */

/* Values that a check looks at: the end, where parts don't come out even. */
#define ALLREDUCE_CHECKED_MOST ((int64_t)1 << 22)

/* What nccl-tests calls bus bandwidth, of n ranks' sum of a vector of so many bytes each. */
static inline double allreduce_bus_bytes(double bytes, int ranks) {
    return 2.0 * (ranks - 1) / ranks * bytes;
}
