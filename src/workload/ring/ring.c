/*
 * ring.c: how slices travel. Each member has slots in host memory, a count of slices that it has put
 * there and a count of those that its right neighbour has taken. Counts only grow, from one sum to the
 * next, so nothing is ever reset while somebody may look.
 */
#include "workload/ring/ring.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct seat { /* what a member shows its neighbours; a line of cache for each side's count */
    _Alignas(64) _Atomic uint64_t put;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) const char *_Atomic slots; /* NULL before it has joined and when it leaves */
    _Atomic bool read;                      /* the neighbour is copying from a slot */
};

struct ring {
    struct ring_setup setup;
    _Atomic bool aborted;
    struct seat *seats;
};

struct ring_member {
    struct ring *ring;
    int index;
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer slots, scratch;
    uint64_t put, taken; /* slices so far: to the right, from the left */
};

/* --- life --- */

int ring_open(const struct ring_setup *setup, struct ring **ret_ring, struct lab_err *err) {
    if (setup->members < 1)
        return lab_err_set(err, LAB_ERR_USER, "a ring has %d members, must have at least 1",
                           setup->members);
    if (setup->slice_bytes < sizeof(float) || setup->slice_bytes % sizeof(float))
        return lab_err_set(err, LAB_ERR_USER, "a slice has %zu bytes, must have a multiple of %zu",
                           setup->slice_bytes, sizeof(float));
    struct ring *ring = lab_mem_alloc(1, sizeof *ring);
    size_t bytes = (size_t)setup->members * sizeof *ring->seats;
    ring->setup = *setup;
    ring->seats = aligned_alloc(_Alignof(struct seat), bytes);
    if (!ring->seats)
        abort(); /* host memory: base/mem.h */
    memset(ring->seats, 0, bytes);
    *ret_ring = ring;
    return 0;
}

void ring_close(struct ring *ring) {
    if (!ring)
        return;
    free(ring->seats);
    lab_mem_free(ring);
}

void ring_abort(struct ring *ring) {
    atomic_store(&ring->aborted, true);
}

static void release(struct ring_member *member) {
    lab_stream_close(member->stream);
    lab_buffer_close(&member->slots);
    lab_buffer_close(&member->scratch);
    lab_mem_free(member);
}

int ring_join(struct ring *ring, int index, struct lab_device *device, int numa_node,
              struct ring_member **ret_member, struct lab_err *err) {
    struct ring_member *member = lab_mem_alloc(1, sizeof *member);
    member->ring = ring;
    member->index = index;
    member->device = device;
    if (lab_stream_open(device, LAB_STREAM_COMPUTE, &member->stream, err) ||
        lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, numa_node,
                        RING_SLOTS * ring->setup.slice_bytes, &member->slots, err) ||
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, ring->setup.slice_bytes, &member->scratch,
                        err)) {
        release(member);
        return -1;
    }
    atomic_store(&ring->seats[index].slots, (const char *)member->slots.data);
    *ret_member = member;
    return 0;
}

struct lab_stream *ring_stream(const struct ring_member *member) {
    return member->stream;
}

/* --- waiting --- */

/* A neighbour is mostly there already, or on its way: looking costs less than sleeping. */
#define LOOK_NS  (20 * LAB_NS_PER_US)
#define YIELD_NS (2 * LAB_NS_PER_MS)
#define NAP_NS   (100 * LAB_NS_PER_US)

static int wait_for(const struct ring_member *member, _Atomic uint64_t *count, uint64_t value,
                    int neighbour, struct lab_err *err) {
    const struct lab_clock *clock = lab_clock_system();
    const struct ring *ring = member->ring;
    if (atomic_load_explicit(count, memory_order_acquire) >= value)
        return 0;
    int64_t start_ns = lab_clock_now(clock);
    while (atomic_load_explicit(count, memory_order_acquire) < value) {
        if (atomic_load(&ring->aborted))
            return lab_err_set(err, LAB_ERR_SYSTEM, "another member of the ring has failed");
        int64_t now_ns = lab_clock_now(clock);
        if (now_ns - start_ns > (int64_t)(ring->setup.limit_s * 1e9))
            return lab_err_set(err, LAB_ERR_SYSTEM,
                               "member %d of the ring has waited %g s for member %d", member->index,
                               ring->setup.limit_s, neighbour);
        if (now_ns - start_ns > YIELD_NS)
            clock->sleep_until(clock, now_ns + NAP_NS);
        else if (now_ns - start_ns > LOOK_NS)
            sched_yield();
    }
    return 0;
}

/* --- slices --- */

static int left_of(const struct ring_member *member) {
    int n = member->ring->setup.members;
    return (member->index + n - 1) % n;
}

static int right_of(const struct ring_member *member) {
    return (member->index + 1) % member->ring->setup.members;
}

/* What the neighbour still needs stays until it has it, or until all is over anyway. */
void ring_leave(struct ring_member *member) {
    if (!member)
        return;
    struct seat *seat = &member->ring->seats[member->index];
    struct lab_err ignored = LAB_ERR_INIT;
    if (wait_for(member, &seat->taken, member->put, right_of(member), &ignored))
        ring_abort(member->ring);
    atomic_store(&seat->slots, NULL);
    while (atomic_load(&seat->read)) /* no longer than a slice's copy */
        sched_yield();
    release(member);
}

static size_t slot_at(const struct ring_member *member, uint64_t slice) {
    return (size_t)(slice % RING_SLOTS) * member->ring->setup.slice_bytes;
}

/* Down into the next slot, where the right neighbour finds it. */
static int send(struct ring_member *member, const float *data, int64_t count, struct lab_err *err) {
    struct seat *seat = &member->ring->seats[member->index];
    char *slot = (char *)member->slots.data + slot_at(member, member->put);
    if (member->put >= RING_SLOTS &&
        wait_for(member, &seat->taken, member->put - RING_SLOTS + 1, right_of(member), err))
        return -1;
    if (lab_copy(member->stream, slot, data, (size_t)count * sizeof *data, LAB_MEMORY_HOST_PINNED,
                 LAB_MEMORY_DEVICE, err) ||
        lab_stream_sync(member->stream, err))
        return -1;
    member->put++;
    atomic_store_explicit(&seat->put, member->put, memory_order_release);
    return 0;
}

/* The left neighbour's next slice: added to what is here, or in its place. */
static int receive(struct ring_member *member, float *data, int64_t count, bool adds,
                   struct lab_err *err) {
    struct seat *seat = &member->ring->seats[left_of(member)];
    if (wait_for(member, &seat->put, member->taken + 1, left_of(member), err))
        return -1;
    struct lab_tensor own = lab_tensor_vector(data, LAB_FP32, count);
    struct lab_tensor other = lab_tensor_vector(member->scratch.data, LAB_FP32, count);
    const struct lab_launch add = {.op = LAB_OP_ADD, .in = {own, other}, .out = own};
    /* another device's pinned memory is ordinary memory to this one */
    atomic_store(&seat->read, true);
    const char *slots = atomic_load(&seat->slots);
    int failed =
        !slots ? lab_err_set(err, LAB_ERR_SYSTEM, "member %d has left the ring", left_of(member))
               : lab_copy(member->stream, adds ? member->scratch.data : (void *)data,
                          slots + slot_at(member, member->taken), (size_t)count * sizeof *data,
                          LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err) ||
                     (adds && lab_launch(member->stream, &add, err));
    struct lab_err second = LAB_ERR_INIT; /* the first failure is the one to tell */
    failed = lab_stream_sync(member->stream, failed ? &second : err) || failed;
    atomic_store(&seat->read, false);
    if (failed)
        return -1;
    member->taken++;
    atomic_store_explicit(&seat->taken, member->taken, memory_order_release);
    return 0;
}

/* --- rounds --- */

struct part {
    int64_t begin, end;
};

static struct part part_at(const struct ring_member *member, int64_t count, int part) {
    int64_t n = member->ring->setup.members;
    int64_t index = ((int64_t)part % n + n) % n;
    return (struct part){count * index / n, count * (index + 1) / n};
}

/* One part out and another in, slice by slice, so that both directions go on side by side. */
static int exchange(struct ring_member *member, float *data, struct part out, struct part in,
                    bool adds, struct lab_err *err) {
    int64_t step = (int64_t)(member->ring->setup.slice_bytes / sizeof *data);
    while (out.begin < out.end || in.begin < in.end) {
        int64_t sent = out.end - out.begin < step ? out.end - out.begin : step;
        int64_t received = in.end - in.begin < step ? in.end - in.begin : step;
        if ((sent > 0 && send(member, data + out.begin, sent, err)) ||
            (received > 0 && receive(member, data + in.begin, received, adds, err)))
            return -1;
        out.begin += sent;
        in.begin += received;
    }
    return 0;
}

int ring_sum(struct ring_member *member, float *data, int64_t count, struct lab_err *err) {
    int n = member->ring->setup.members, own = member->index;
    if (n > 1 && atomic_load(&member->ring->aborted))
        return lab_err_set(err, LAB_ERR_SYSTEM, "another member of the ring has failed before");
    for (int round = 0; round < 2 * (n - 1); round++) {
        bool adds = round < n - 1;
        /* the second half begins with the part whose sum ended up here */
        int part = adds ? own - round : own + 1 - (round - (n - 1));
        if (exchange(member, data, part_at(member, count, part), part_at(member, count, part - 1),
                     adds, err)) {
            ring_abort(member->ring);
            return -1;
        }
    }
    return 0;
}
