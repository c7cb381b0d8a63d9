/*
 * ring.h: the sum of a vector over several devices, through host memory: a ring all-reduce (Patarasuk
 * and Yuan, 2009). Every device is driven by a host thread of its own, in one process.
 *
 * The vector is cut into as many parts as there are members. In n − 1 rounds each member passes a part
 * to its right neighbour, which adds it to its own: then each holds one part's sum. In n − 1 more
 * rounds the sums go round. So each member sends and receives 2·(n − 1)/n of the vector, whatever n is.
 * A part travels in slices: down into one of the sender's slots in host memory, up into the receiver's
 * scratch, where it is added.
 *
 * Nobody waits for ever: a member that fails, or whose neighbour doesn't come within the limit, ends
 * the sum for all of them.
 */
#ifndef LAB_WORKLOAD_RING_RING_H
#define LAB_WORKLOAD_RING_RING_H

#include "device/device.h"

#define RING_SLOTS 4 /* slices that a member may be ahead of its neighbour */

struct ring;
struct ring_member;

struct ring_setup {
    int members;
    size_t slice_bytes;
    double limit_s; /* how long a member waits for another */
};

/* What the members share; made before and closed after all of them. */
int ring_open(const struct ring_setup *setup, struct ring **ret_ring, struct lab_err *err);
void ring_close(struct ring *ring); /* accepts NULL; no member is left */

/* From any thread: all sums under way fail soon, and so do those to come. */
void ring_abort(struct ring *ring);

/* Member `index` joins with its device, used by the calling thread. Host memory lies on `numa_node`. */
int ring_join(struct ring *ring, int index, struct lab_device *device, int numa_node,
              struct ring_member **ret_member, struct lab_err *err);
/* Waits until the neighbour has taken what is there for it, within the limit; accepts NULL. */
void ring_leave(struct ring_member *member);

/*
 * data[count] on this member's device becomes the sum over all members, bit by bit the same on each. All
 * members call it, with the same count; returns when this one's is complete. Nothing is allocated.
 */
int ring_sum(struct ring_member *member, float *data, int64_t count, struct lab_err *err);

/* The stream that the member's commands go through; idle between sums. */
struct lab_stream *ring_stream(const struct ring_member *member);

/* What nccl-tests calls bus bandwidth, of n members' sum of a vector of so many bytes each. */
static inline double ring_bus_bytes(double bytes, int members) {
    return 2.0 * (members - 1) / members * bytes;
}

#endif
