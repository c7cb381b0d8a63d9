/*
 * sum.h: one way to sum over the devices of a group: what group_sum.c chooses from. Those through
 * host memory do for any devices (group_host.c); a backend may know better ones for its own.
 *
 * All ranks look at the same devices, so `suits` says the same to each of them. Then all open it
 * and, when all have, join: if one can't, all close it and go on to the next way.
 */
#pragma once

#include "device/group.h"

struct lab_sum_place {
    struct lab_group *group;
    int rank, ranks;
    struct lab_device *device;
    struct lab_device *const *devices; /* [ranks] of all; lives as long as the sum */
    int numa_node;
    enum lab_dtype dtype; /* fp32, or one of 16 bits */
    int64_t count_most;
};

struct lab_sum_kind {
    enum lab_sum_way way; /* by which it is asked for; AUTO asks for any but HIERARCHICAL */
    const char *through;
    bool is_captured; /* by graphs */

    /* -1 and why not */
    int (*suits)(const struct lab_sum_place *place, struct lab_err *err);
    int (*open)(const struct lab_sum_place *place, void **ret_state, struct lab_err *err);
    /* states[ranks] of all, which live until all have come to close */
    int (*join)(void *state, void *const *states, struct lab_err *err);
    /* `dtype` is the place's or fp32; of no more bytes than it was opened for */
    int (*enqueue)(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                   int64_t count, struct lab_err *err);
    int (*check)(void *state, struct lab_err *err); /* optional: 0 */
    void (*leave)(void *state);                     /* optional: before all part; it was joined */
    /* `all_left`: nobody uses anything of it any more. If not, what others may use is given up for
     * good, and the device is kept (lab_device_keep) */
    void (*close)(void *state, bool all_left);
};

/* From each rank's thread: all have opened a sum of this way. */
void lab_group_set_sum_way(struct lab_group *group, enum lab_sum_way way);

extern const struct lab_sum_kind lab_sum_host_ring, lab_sum_host_gather;
