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
    size_t slot_bytes;
    struct lab_buffer slots;     /* host: [rounds][slot_bytes] */
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
    size_t slot_bytes = sum->slot_bytes;
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
    sum->slot_bytes = (size_t)slot_values * lab_dtype_bytes(place->dtype);
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

static void *slot_of(const struct host_sum *sum, int round) {
    return (char *)sum->slots.data + (size_t)round * sum->slot_bytes;
}

/* Values [begin, begin + count) of the vector that is summed. */
struct part {
    void *data;
    enum lab_dtype dtype;
    int64_t count;
};

static size_t part_bytes(const struct part *part) {
    return (size_t)part->count * lab_dtype_bytes(part->dtype);
}

/* Down into the own slot, once `reader` has read what was in it. */
static int put(struct host_sum *sum, struct lab_stream *stream, int round, struct part part,
               const struct host_sum *reader, struct lab_err *err) {
    if (reader && lab_event_wait(reader->taken[round], stream, err))
        return -1;
    if (part.count > 0 && lab_copy(stream, slot_of(sum, round), part.data, part_bytes(&part),
                                   LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err))
        return -1;
    return lab_event_record(sum->put[round], stream, err);
}

/* Up from another's slot: added to what is here, or in its place. Another device's pinned memory is
 * ordinary memory to this one. */
static int take(struct host_sum *sum, struct lab_stream *stream, int round,
                const struct host_sum *owner, struct part part, bool adds, struct lab_err *err) {
    if (lab_event_wait(owner->put[round], stream, err))
        return -1;
    if (part.count == 0)
        return 0;
    struct lab_tensor own = lab_tensor_vector(part.data, part.dtype, part.count);
    struct lab_tensor other = lab_tensor_vector(sum->scratch.data, part.dtype, part.count);
    const struct lab_launch add = {.op = LAB_OP_ADD, .in = {own, other}, .out = own};
    if (lab_copy(stream, adds ? sum->scratch.data : part.data, slot_of(owner, round),
                 part_bytes(&part), LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err))
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

static struct part part_at(const struct host_sum *sum, struct part whole, int number) {
    int64_t n = sum->place.ranks, index = ((int64_t)number % n + n) % n;
    int64_t begin = whole.count * index / n;
    return (struct part){(char *)whole.data + (size_t)begin * lab_dtype_bytes(whole.dtype),
                         whole.dtype, whole.count * (index + 1) / n - begin};
}

static int ring_enqueue(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                        int64_t count, struct lab_err *err) {
    struct host_sum *sum = state;
    const struct part whole = {data, dtype, count};
    int n = sum->place.ranks, own = sum->place.rank;
    const struct host_sum *left = sum->all[(own + n - 1) % n], *right = sum->all[(own + 1) % n];
    for (int round = 0; round < sum->rounds; round++) {
        bool adds = round < n - 1;
        /* the second half begins with the part whose sum ended up here */
        int number = adds ? own - round : own + 1 - (round - (n - 1));
        struct part out = part_at(sum, whole, number), in = part_at(sum, whole, number - 1);
        if (put(sum, stream, round, out, right, err) || meet(sum, err) ||
            take(sum, stream, round, left, in, adds, err) ||
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

static int gather(struct host_sum *sum, struct lab_stream *stream, struct part whole,
                  struct lab_err *err) {
    for (int i = 1; i < sum->place.ranks; i++)
        if (take(sum, stream, 0, sum->all[i], whole, true, err) ||
            lab_event_wait(sum->all[i]->taken[1], stream, err))
            return -1;
    return lab_event_record(sum->taken[0], stream, err) || put(sum, stream, 1, whole, NULL, err);
}

static int gather_enqueue(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                          int64_t count, struct lab_err *err) {
    struct host_sum *sum = state;
    const struct part whole = {data, dtype, count};
    bool first = sum->place.rank == 0;
    if (sum->place.ranks == 1)
        return 0;
    if ((!first && put(sum, stream, 0, whole, sum->all[0], err)) || meet(sum, err) ||
        (first && gather(sum, stream, whole, err)) || meet(sum, err))
        return -1;
    return !first && (take(sum, stream, 1, sum->all[0], whole, false, err) ||
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
