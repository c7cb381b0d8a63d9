/*
 * sum.c: sums over slices of one GPU, in device memory: one kernel of each rank (kernels/sum.cu),
 * which meet by words in device memory.
 *
 * They wait for each other while they run. That ends because each slice has multiprocessors of its
 * own, on which its kernel comes to run whatever the others do: at the latest when what is before
 * it in its stream, or beside it on its multiprocessors, is done. What is beside it may itself wait
 * for blocks that find no room (kernels/mlp.cu). A block of a sum waits only for those of the same
 * number, and blocks begin in the order of their numbers: so the slice that has come least far has
 * none that still waits, and goes on.
 *
 * A kernel gives up at the group's limit, or when the host says so in memory that both reach. What
 * it gave up is found at the next synchronisation.
 */
#include "device/cuda/sum.h"

#include "device/cuda/kernels.h"

#include <stdatomic.h>
#include <string.h>

#define SEAT_BYTES   16
#define NOTICE_BYTES 4096

enum { WHY_NEVER_CAME = 1, WHY_OUT_OF_STEP }; /* as in kernels/sum.cu */

struct notice { /* likewise; in pinned host memory */
    _Atomic uint32_t given_up;
    _Atomic uint32_t reports[CUDA_SUM_RANKS];
};

struct memory_sum {
    struct lab_sum_place place;
    struct cuda_device *device;
    struct lab_buffer notice_buffer; /* the first rank's is that of all, and so are its seats */
    lab_cu_pointer own_seats;
    struct notice *notice;
    lab_cu_pointer seats;
    int sm_count;                         /* of the smallest slice: grids are the same on all */
    struct cuda_variant singles, variant; /* of fp32, and of the dtype */
    struct cuda_fault fault;
    struct lab_group_watch watch;
};

/* Somewhat shorter than the host waits for a rank that closes its end, which is told with fewer
 * words. */
static double limit_s_of(const struct memory_sum *sum) {
    return 0.9 * lab_group_limit_s(sum->place.group);
}

/* --- whether --- */

static int cuda_sum_suits(const struct lab_sum_place *place, struct lab_err *err) {
    if (place->ranks < 2 || place->ranks > CUDA_SUM_RANKS)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%d ranks don't sum in device memory",
                           place->ranks);
    const struct cuda_device *first = (const struct cuda_device *)place->devices[0];
    for (int i = 0; i < place->ranks; i++) {
        const struct cuda_device *device = (const struct cuda_device *)place->devices[i];
        bool apart = device->base.ref.slices == first->base.ref.slices && device->green;
        for (int k = 0; k < i; k++)
            apart &= place->devices[k]->ref.slice != device->base.ref.slice;
        if (device->ordinal != first->ordinal || !apart)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "sums in device memory are between slices of one GPU");
    }
    return 0;
}

/* --- what went wrong --- */

static int explain(const struct memory_sum *sum, int rank, uint32_t report, struct lab_err *err) {
    int whom = (int)(report & 0xffff);
    if (report >> 16 == WHY_OUT_OF_STEP)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "the ranks are out of step: ranks %d and %d sum vectors of different "
                           "lengths",
                           rank, whom);
    return lab_err_set(err, LAB_ERR_SYSTEM, "rank %d has waited %g s on %s for rank %d", rank,
                       limit_s_of(sum), sum->device->base.ref.name, whom);
}

/* Who failed on its host has said so to the group; who gave up on its device is found here. */
static int cuda_sum_check(void *state, struct lab_err *err) {
    struct memory_sum *sum = state;
    struct lab_err why = LAB_ERR_INIT;
    if (!sum->notice || !atomic_load(&sum->notice->given_up))
        return 0;
    for (int i = 0; i < sum->place.ranks; i++) {
        int rank = (sum->place.rank + i) % sum->place.ranks; /* the own first */
        uint32_t report = atomic_load(&sum->notice->reports[rank]);
        if (!report)
            continue;
        explain(sum, rank, report, &why);
        lab_group_stop(sum->place.group, &why); /* the first words are kept */
        break;
    }
    if (lab_group_check(sum->place.group, err))
        return -1;
    return lab_err_set(err, LAB_ERR_SYSTEM, "another rank has aborted its all-reduce");
}

/* From the thread of whoever failed. */
static void on_failed(void *state) {
    struct memory_sum *sum = state;
    atomic_store(&sum->notice->given_up, 1);
}

/* --- life --- */

static void memory_leave(void *state) {
    struct memory_sum *sum = state;
    lab_group_unwatch(sum->place.group, &sum->watch);
    cuda_fault_remove(sum->device, &sum->fault);
}

static void memory_close(void *state, bool all_left) {
    struct memory_sum *sum = state;
    if (!all_left)
        return;
    lab_buffer_close(&sum->notice_buffer);
    cuda_memory_free(sum->device, sum->own_seats);
    lab_mem_free(sum);
}

static int open_shared(struct memory_sum *sum, struct lab_err *err) {
    const struct lab_cuda *cuda = sum->device->cuda;
    size_t bytes = (size_t)sum->place.ranks * CUDA_SUM_SEATS * SEAT_BYTES;
    lab_cu_stream stream = sum->device->anchor.stream;
    if (lab_buffer_open(sum->place.device, LAB_MEMORY_HOST_PINNED, sum->place.numa_node,
                        NOTICE_BYTES, &sum->notice_buffer, err) ||
        cuda_memory_alloc(sum->device, bytes, &sum->own_seats, err) ||
        cuda_check(cuda->cuMemsetD8Async(sum->own_seats, 0, bytes, stream), "cuMemsetD8Async",
                   err) ||
        cuda_check(cuda->cuStreamSynchronize(stream), "cuStreamSynchronize", err))
        return -1;
    memset(sum->notice_buffer.data, 0, NOTICE_BYTES);
    return 0;
}

static int memory_open(const struct lab_sum_place *place, void **ret_state, struct lab_err *err) {
    struct memory_sum *sum = lab_mem_alloc(1, sizeof *sum);
    struct cuda_module *module;
    sum->place = *place;
    sum->device = (struct cuda_device *)place->device;
    sum->singles = cuda_sum_variant(place->ranks, LAB_FP32);
    sum->variant = cuda_sum_variant(place->ranks, place->dtype);
    /* compiled here: the others' kernels don't wait for it */
    if (cuda_kernels_get(sum->device, &sum->singles, &module, err) ||
        cuda_kernels_get(sum->device, &sum->variant, &module, err) ||
        (place->rank == 0 && open_shared(sum, err))) {
        memory_close(sum, true);
        return -1;
    }
    *ret_state = sum;
    return 0;
}

static int memory_join(void *state, void *const *states, struct lab_err *err) {
    struct memory_sum *sum = state;
    const struct memory_sum *first = states[0];
    (void)err;
    sum->notice = first->notice_buffer.data;
    sum->seats = first->own_seats;
    sum->sm_count = sum->device->sm_count;
    for (int i = 0; i < sum->place.ranks; i++) {
        const struct memory_sum *other = states[i];
        if (other->device->sm_count < sum->sm_count)
            sum->sm_count = other->device->sm_count;
    }
    sum->fault = (struct cuda_fault){.check = cuda_sum_check, .state = sum};
    sum->watch = (struct lab_group_watch){.failed = on_failed, .state = sum};
    cuda_fault_add(sum->device, &sum->fault);
    lab_group_watch(sum->place.group, &sum->watch);
    return 0;
}

/* --- use --- */

static int memory_enqueue(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                          int64_t count, struct lab_err *err) {
    struct memory_sum *sum = state;
    struct cuda_call call;
    if (cuda_enter(sum->device, err) || cuda_sum_check(sum, err))
        return -1;
    struct cuda_sum_arguments arguments = {
        .seats = sum->seats,
        .vector = (lab_cu_pointer)(uintptr_t)data,
        .count = count,
        .notice = (lab_cu_pointer)(uintptr_t)sum->notice,
        .limit_ns = (uint64_t)(limit_s_of(sum) * 1e9),
        .rank = sum->place.rank,
    };
    cuda_plan_sum(dtype == LAB_FP32 ? &sum->singles : &sum->variant, &arguments, sum->sm_count,
                  &call);
    return cuda_kernels_put((struct cuda_stream *)stream, &call, err);
}

const struct lab_sum_kind cuda_sum_memory = {
    .way = LAB_SUM_RING,
    .through = "device memory",
    .is_captured = true,
    .suits = cuda_sum_suits,
    .open = memory_open,
    .join = memory_join,
    .enqueue = memory_enqueue,
    .check = cuda_sum_check,
    .leave = memory_leave,
    .close = memory_close,
};

const struct lab_sum_kind *const cuda_sums[] = {&cuda_sum_memory, &cuda_sum_nccl, NULL};
