/*
 * group_host.c: sums over the devices of a group, through host memory.
 *
 * Each rank has slots in pinned host memory. What another is to have is copied down into a slot,
 * and an event recorded behind it; the other's stream waits for that event, copies up and adds. A
 * slot is written again in the next sum, when its reader's event says that it was read.
 *
 * Events are recorded by their owner alone and looked at by a neighbour between the same two
 * meetings of every sum, so that a recording and a look never come at the same time. Why that holds
 * is said at each way.
 *
 * A vector that has one rank's sum on all is to the bit the same everywhere: each value is added up
 * by one device, in one order.
 */
#include "device/sum.h"

#include "base/mem.h"

struct host_sum {
    struct lab_sum_place place;
    int rounds; /* slots, and events of each kind */
    int64_t slot_values;
    struct lab_buffer slots;     /* host: [rounds][slot_values] */
    struct lab_buffer scratch;   /* device: one slot's values, before they are added */
    struct lab_event **put;      /* [rounds]: own slot is written */
    struct lab_event **taken;    /* [rounds]: a neighbour's slot was read */
    const struct host_sum **all; /* [ranks] */
    uint64_t number;             /* of the next meeting: the same on all ranks */
};

#define FIRST_NUMBER 16 /* those below are the group's own, and of opening sums */

/* --- life --- */

static int open_events(struct host_sum *sum, struct lab_event ***ret_events, struct lab_err *err) {
    *ret_events = lab_mem_alloc((size_t)sum->rounds + 1, sizeof **ret_events);
    for (int i = 0; i < sum->rounds; i++)
        if (lab_event_open(sum->place.device, &(*ret_events)[i], err))
            return -1;
    return 0;
}

static void close_events(struct lab_event **events, int count) {
    for (int i = 0; events && i < count; i++)
        lab_event_close(events[i]);
    lab_mem_free(events);
}

static int open_slots(struct host_sum *sum, struct lab_err *err) {
    size_t slot_bytes = (size_t)sum->slot_values * sizeof(float);
    if (sum->place.ranks == 1)
        return 0;
    return lab_buffer_open(sum->place.device, LAB_MEMORY_HOST_PINNED, sum->place.numa_node,
                           (size_t)sum->rounds * slot_bytes, &sum->slots, err) ||
                   lab_buffer_open(sum->place.device, LAB_MEMORY_DEVICE, -1, slot_bytes,
                                   &sum->scratch, err)
               ? -1
               : 0;
}

static void host_close(void *state, bool all_left) {
    struct host_sum *sum = state;
    if (!all_left)
        return;
    close_events(sum->put, sum->rounds);
    close_events(sum->taken, sum->rounds);
    lab_buffer_close(&sum->slots);
    lab_buffer_close(&sum->scratch);
    lab_mem_free(sum->all);
    lab_mem_free(sum);
}

static int host_open(const struct lab_sum_place *place, int rounds, int64_t slot_values,
                     void **ret_state, struct lab_err *err) {
    struct host_sum *sum = lab_mem_alloc(1, sizeof *sum);
    sum->place = *place;
    sum->rounds = rounds;
    sum->slot_values = slot_values;
    sum->number = FIRST_NUMBER;
    sum->all = lab_mem_alloc((size_t)place->ranks, sizeof(struct host_sum *));
    if (open_slots(sum, err) || open_events(sum, &sum->put, err) ||
        open_events(sum, &sum->taken, err)) {
        host_close(sum, true);
        return -1;
    }
    *ret_state = sum;
    return 0;
}

static int host_join(void *state, void *const *states, struct lab_err *err) {
    struct host_sum *sum = state;
    (void)err;
    for (int i = 0; i < sum->place.ranks; i++)
        sum->all[i] = states[i];
    return 0;
}

static int host_suits(const struct lab_sum_place *place, struct lab_err *err) {
    (void)place;
    (void)err;
    return 0;
}

/* --- commands --- */

static int meet(struct host_sum *sum, struct lab_err *err) {
    return lab_group_meet(sum->place.group, sum->place.rank, sum->place.device, sum->number++, err);
}

static float *slot_of(const struct host_sum *sum, int round) {
    return (float *)sum->slots.data + round * sum->slot_values;
}

/* Down into the own slot, once `reader` has read what was in it. */
static int put(struct host_sum *sum, struct lab_stream *stream, int round, const float *data,
               int64_t count, const struct host_sum *reader, struct lab_err *err) {
    if (reader && lab_event_wait(reader->taken[round], stream, err))
        return -1;
    if (count > 0 && lab_copy(stream, slot_of(sum, round), data, (size_t)count * sizeof *data,
                              LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err))
        return -1;
    return lab_event_record(sum->put[round], stream, err);
}

/* Up from another's slot: added to what is here, or in its place. Another device's pinned memory is
 * ordinary memory to this one. */
static int take(struct host_sum *sum, struct lab_stream *stream, int round,
                const struct host_sum *owner, float *data, int64_t count, bool adds,
                struct lab_err *err) {
    if (lab_event_wait(owner->put[round], stream, err))
        return -1;
    if (count == 0)
        return 0;
    struct lab_tensor own = lab_tensor_vector(data, LAB_FP32, count);
    struct lab_tensor other = lab_tensor_vector(sum->scratch.data, LAB_FP32, count);
    const struct lab_launch add = {.op = LAB_OP_ADD, .in = {own, other}, .out = own};
    if (lab_copy(stream, adds ? sum->scratch.data : (void *)data, slot_of(owner, round),
                 (size_t)count * sizeof *data, LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err))
        return -1;
    return adds ? lab_launch(stream, &add, err) : 0;
}

/* --- the ring --- */

/*
 * Patarasuk and Yuan, 2009: in n − 1 rounds each rank passes a part to its right neighbour, which
 * adds it to its own, so that each ends up with one part's sum; in n − 1 more the sums go round.
 * Each round has a slot and a meeting of its own. put[t] is recorded before meeting t and looked at
 * behind it, and again recorded behind meeting t − 1 of the next sum; taken[t] is recorded behind
 * meeting t and looked at before it in the next sum.
 */
static int ring_open(const struct lab_sum_place *place, void **ret_state, struct lab_err *err) {
    int64_t part = (place->count_most + place->ranks - 1) / place->ranks;
    return host_open(place, 2 * (place->ranks - 1), part, ret_state, err);
}

struct part {
    int64_t begin, count;
};

static struct part part_at(const struct host_sum *sum, int64_t count, int part) {
    int64_t n = sum->place.ranks, index = ((int64_t)part % n + n) % n;
    int64_t begin = count * index / n;
    return (struct part){begin, count * (index + 1) / n - begin};
}

static int ring_enqueue(void *state, struct lab_stream *stream, float *data, int64_t count,
                        struct lab_err *err) {
    struct host_sum *sum = state;
    int n = sum->place.ranks, own = sum->place.rank;
    const struct host_sum *left = sum->all[(own + n - 1) % n], *right = sum->all[(own + 1) % n];
    for (int round = 0; round < sum->rounds; round++) {
        bool adds = round < n - 1;
        /* the second half begins with the part whose sum ended up here */
        int number = adds ? own - round : own + 1 - (round - (n - 1));
        struct part out = part_at(sum, count, number), in = part_at(sum, count, number - 1);
        if (put(sum, stream, round, data + out.begin, out.count, right, err) || meet(sum, err) ||
            take(sum, stream, round, left, data + in.begin, in.count, adds, err) ||
            lab_event_record(sum->taken[round], stream, err))
            return -1;
    }
    return 0;
}

/* --- gathering on one --- */

/*
 * All put their vectors, the first device adds them up and puts the sum, all take it. The others'
 * put[0] is recorded before the first meeting and looked at between the two; the first's taken[0]
 * the other way round. The first's put[1] is recorded between them and looked at behind the second;
 * the others' taken[1] behind the second, and looked at between the two of the next sum.
 */
static int gather_open(const struct lab_sum_place *place, void **ret_state, struct lab_err *err) {
    return host_open(place, 2, place->count_most, ret_state, err);
}

static int gather(struct host_sum *sum, struct lab_stream *stream, float *data, int64_t count,
                  struct lab_err *err) {
    for (int i = 1; i < sum->place.ranks; i++)
        if (take(sum, stream, 0, sum->all[i], data, count, true, err) ||
            lab_event_wait(sum->all[i]->taken[1], stream, err))
            return -1;
    return lab_event_record(sum->taken[0], stream, err) ||
           put(sum, stream, 1, data, count, NULL, err);
}

static int gather_enqueue(void *state, struct lab_stream *stream, float *data, int64_t count,
                          struct lab_err *err) {
    struct host_sum *sum = state;
    bool first = sum->place.rank == 0;
    if (sum->place.ranks == 1)
        return 0;
    if ((!first && put(sum, stream, 0, data, count, sum->all[0], err)) || meet(sum, err) ||
        (first && gather(sum, stream, data, count, err)) || meet(sum, err))
        return -1;
    return !first && (take(sum, stream, 1, sum->all[0], data, count, false, err) ||
                      lab_event_record(sum->taken[1], stream, err))
               ? -1
               : 0;
}

/* --- the ways --- */

const struct lab_sum_kind lab_sum_host_ring = {
    .way = LAB_SUM_RING,
    .through = "host memory",
    .suits = host_suits,
    .open = ring_open,
    .join = host_join,
    .enqueue = ring_enqueue,
    .close = host_close,
};

const struct lab_sum_kind lab_sum_host_gather = {
    .way = LAB_SUM_HIERARCHICAL,
    .through = "host memory",
    .suits = host_suits,
    .open = gather_open,
    .join = host_join,
    .enqueue = gather_enqueue,
    .close = host_close,
};
