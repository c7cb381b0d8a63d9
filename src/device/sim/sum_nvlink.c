/*
 * sum_nvlink.c: an all-reduce over the NVLinks of a simulated machine, priced as NCCL's ring: in
 * 2 · (n − 1) steps each GPU sends 2 · (n − 1) / n of the vector to its neighbour. A step takes
 * nvlink_us beside its bytes; the ring is as fast as its slowest link.
 *
 * All ranks' sums start when the last is ready. Each rank records an event and looks at all others'
 * behind a meeting of the threads. There are two events, in turn: while one is recorded for the
 * next sum, another rank may still look at this sum's.
 */
#include "device/sim/sim.h"
#include "device/sum.h"

#include <math.h>

enum { FIRST_NUMBER = 16 }; /* of meetings: those below are the group's own, and of opening sums */

struct nvlink_sum {
    struct lab_sum_place place;
    struct lab_event *ready[2];
    const struct nvlink_sum **all; /* [ranks] */
    uint64_t number;               /* of the next sum, and its meeting */
};

static const struct sim_device *device_at(const struct lab_sum_place *place, int rank) {
    return (const struct sim_device *)place->devices[rank];
}

static int nvlink_suits(const struct lab_sum_place *place, struct lab_err *err) {
    for (int i = 0; i < place->ranks; i++)
        if (!(device_at(place, i)->gpu->model->nvlink_gb_s > 0))
            return lab_err_set(err, LAB_ERR_USER, "%s has no NVLink", place->devices[i]->ref.name);
    return 0;
}

static void nvlink_close(void *state, bool all_left) {
    struct nvlink_sum *sum = state;
    if (!all_left)
        return;
    for (int i = 0; i < 2; i++)
        if (sum->ready[i])
            lab_event_close(sum->ready[i]);
    lab_mem_free(sum->all);
    lab_mem_free(sum);
}

static int nvlink_open(const struct lab_sum_place *place, void **ret_state, struct lab_err *err) {
    struct nvlink_sum *sum = lab_mem_alloc(1, sizeof *sum);
    sum->place = *place;
    sum->number = FIRST_NUMBER;
    sum->all = lab_mem_alloc((size_t)place->ranks, sizeof(struct nvlink_sum *));
    for (int i = 0; i < 2; i++)
        if (lab_event_open(place->device, &sum->ready[i], err)) {
            nvlink_close(sum, true);
            return -1;
        }
    *ret_state = sum;
    return 0;
}

static int nvlink_join(void *state, void *const *states, struct lab_err *err) {
    struct nvlink_sum *sum = state;
    (void)err;
    for (int i = 0; i < sum->place.ranks; i++)
        sum->all[i] = states[i];
    return 0;
}

static int await_all(struct nvlink_sum *sum, struct lab_stream *stream, struct lab_err *err) {
    const struct lab_sum_place *place = &sum->place;
    uint64_t number = sum->number++;
    if (lab_event_record(sum->ready[number % 2], stream, err) ||
        lab_group_meet(place->group, place->rank, place->device, number, err))
        return -1;
    for (int i = 0; i < place->ranks; i++)
        if (i != place->rank && lab_event_wait(sum->all[i]->ready[number % 2], stream, err))
            return -1;
    return 0;
}

static double slowest_bytes_per_s(const struct lab_sum_place *place) {
    const struct sim_machine *machine = device_at(place, 0)->machine;
    double slowest = INFINITY;
    for (int i = 0; i < place->ranks; i++)
        slowest =
            fmin(slowest, sim_peer_bytes_per_s(machine, device_at(place, i)->unit,
                                               device_at(place, (i + 1) % place->ranks)->unit));
    return slowest;
}

static int nvlink_enqueue(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                          int64_t count, struct lab_err *err) {
    struct nvlink_sum *sum = state;
    const struct lab_sum_place *place = &sum->place;
    const struct sim_device *own = device_at(place, place->rank);
    size_t bytes = (size_t)count * lab_dtype_bytes(dtype);
    int steps = 2 * (place->ranks - 1);
    if (steps == 0)
        return 0;
    if (sim_memory_check(own, data, bytes, LAB_MEMORY_DEVICE, "the vector", NULL, err) < 0 ||
        await_all(sum, stream, err))
        return -1;
    sim_copy_between(stream, (double)bytes * steps / place->ranks,
                     1e-6 * own->gpu->model->nvlink_us * steps, slowest_bytes_per_s(place));
    return 0;
}

const struct lab_sum_kind sim_sum_nvlink = {
    .way = LAB_SUM_NVLINK,
    .through = "NVLink",
    .suits = nvlink_suits,
    .open = nvlink_open,
    .join = nvlink_join,
    .enqueue = nvlink_enqueue,
    .close = nvlink_close,
};
