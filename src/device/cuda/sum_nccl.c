/*
 * sum_nccl.c: sums over whole GPUs by NVIDIA's library. The first rank makes the communicators of
 * all of them at once; then each rank's thread puts its own sums on its own stream.
 *
 * A kernel of NCCL waits for its partners for ever. So when the group fails, every rank's
 * communicator is aborted, which ends its kernels; and who waits for the device looks at the
 * communicator's own errors and at the group's limit meanwhile (fault.c).
 *
 * Making communicators goes by sockets and shared memory, which may never answer either: a thread
 * of its own does it, and is left alone at the limit. Communicators that don't block could be asked
 * and aborted instead, but every sum of theirs starts a thread of the library's and has to be asked
 * for until it is in the stream (NCCL's group.cc): what is to be timed would be another thing.
 */
#include "device/cuda/sum.h"

#include "base/cond.h"

#include "vendor/nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define RANKS_MOST 64
#define LOOK_NS    (20 * LAB_NS_PER_MS) /* between two looks at what may have failed */

struct nccl_sum {
    struct lab_sum_place place;
    struct cuda_device *device;
    const struct lab_nccl *nccl;
    lab_nccl_comm *made; /* [ranks], by the first rank alone; those that were taken are NULL */
    /* NULL: not joined yet, or aborted, by whichever thread. The library is made for that coming
     * while the owner is in one of its calls */
    _Atomic(lab_nccl_comm) comm;
    struct cuda_fault fault;
    struct lab_group_watch watch;
};

/* --- whether --- */

static int nccl_suits(const struct lab_sum_place *place, struct lab_err *err) {
    for (int i = 0; i < place->ranks; i++) {
        const struct cuda_device *device = (const struct cuda_device *)place->devices[i];
        if (device->green)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "NCCL takes whole GPUs, one rank on each; %s is a slice",
                               device->base.ref.name);
        for (int k = 0; k < i; k++)
            if (((const struct cuda_device *)place->devices[k])->ordinal == device->ordinal)
                return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                                   "NCCL takes no two ranks on one GPU: %s", device->base.ref.name);
    }
    const struct lab_dl_report *report;
    lab_nccl_load(&report);
    if (lab_nccl_ready())
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "NCCL can't be used here: %s",
                       report->reason ? report->reason : "functions of it are missing");
}

/* --- errors --- */

/* What the library says it was, and what led to it. */
static int nccl_fail(const struct nccl_sum *sum, lab_nccl_result result, const char *call,
                     struct lab_err *err) {
    const struct lab_nccl *nccl = sum->nccl;
    const char *text = nccl->ncclGetErrorString ? nccl->ncclGetErrorString(result) : "";
    const char *last = nccl->ncclGetLastError ? nccl->ncclGetLastError(NULL) : "";
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s: %s (%d)%s%.600s", call, text ? text : "", result,
                       last && *last ? ": " : "", last ? last : "");
}

/* Ends its kernels, and it with them. From any thread. */
static void abort_comm(struct nccl_sum *sum) {
    lab_nccl_comm comm = atomic_exchange(&sum->comm, NULL);
    if (comm && sum->nccl->ncclCommAbort)
        sum->nccl->ncclCommAbort(comm);
}

static void on_failed(void *state) {
    abort_comm(state);
}

/* A rank that waited for too long is out: all of them are. */
static void nccl_give_up(void *state, struct lab_err *why) {
    struct nccl_sum *sum = state;
    lab_group_fail(sum->place.group, sum->place.rank, why);
    lab_group_check(sum->place.group, why);
}

static int nccl_check(void *state, struct lab_err *err) {
    struct nccl_sum *sum = state;
    lab_nccl_result result = LAB_NCCL_SUCCESS;
    lab_nccl_comm comm = atomic_load(&sum->comm);
    if (comm && sum->nccl->ncclCommGetAsyncError)
        sum->nccl->ncclCommGetAsyncError(comm, &result);
    if (result != LAB_NCCL_SUCCESS && result != LAB_NCCL_IN_PROGRESS) {
        struct lab_err why = LAB_ERR_INIT;
        nccl_fail(sum, result, "a sum by NCCL", &why);
        lab_group_fail(sum->place.group, sum->place.rank, &why);
    }
    return lab_group_check(sum->place.group, err);
}

/* --- communicators of all ranks --- */

struct making { /* the thread's, once nobody waits for it any more; else that of who waits */
    const struct lab_nccl *nccl;
    int ranks, ordinals[RANKS_MOST];
    lab_nccl_comm comms[RANKS_MOST];
    lab_nccl_result result;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done, left_alone;
};

static struct making *open_making(const struct nccl_sum *sum) {
    struct making *making = lab_mem_alloc(1, sizeof *making);
    making->nccl = sum->nccl;
    making->ranks = sum->place.ranks;
    for (int i = 0; i < making->ranks; i++)
        making->ordinals[i] = ((const struct cuda_device *)sum->place.devices[i])->ordinal;
    pthread_mutex_init(&making->mutex, NULL);
    lab_cond_init(&making->changed);
    return making;
}

static void close_making(struct making *making) {
    pthread_cond_destroy(&making->changed);
    pthread_mutex_destroy(&making->mutex);
    lab_mem_free(making);
}

static void *make(void *argument) {
    struct making *making = argument;
    lab_nccl_result result =
        making->nccl->ncclCommInitAll(making->comms, making->ranks, making->ordinals);
    pthread_mutex_lock(&making->mutex);
    making->result = result;
    making->done = true;
    bool left_alone = making->left_alone;
    pthread_cond_signal(&making->changed);
    pthread_mutex_unlock(&making->mutex);
    if (!left_alone)
        return NULL;
    for (int i = 0; result == LAB_NCCL_SUCCESS && i < making->ranks; i++)
        making->nccl->ncclCommDestroy(making->comms[i]);
    close_making(making);
    return NULL;
}

/* Until it is done, or there is a reason to leave it alone. */
static int await(const struct nccl_sum *sum, struct making *making, struct lab_err *err) {
    /* somewhat shorter than the others wait for this rank: so all hear why */
    double limit_s = 0.8 * lab_group_limit_s(sum->place.group);
    const struct lab_clock *clock = sum->device->base.clock;
    int64_t until_ns = lab_clock_now(clock) + (int64_t)(1e9 * limit_s);
    while (!making->done) {
        int64_t now_ns = lab_clock_now(clock);
        if (lab_group_check(sum->place.group, err))
            return -1;
        if (now_ns > until_ns)
            return lab_err_set(err, LAB_ERR_SYSTEM,
                               "ncclCommInitAll hasn't joined %d GPUs within %g s: NCCL_DEBUG=INFO "
                               "shows what it waits for, and allreduce=ring avoids NCCL",
                               making->ranks, limit_s);
        lab_cond_wait_until(&making->changed, &making->mutex, now_ns + LOOK_NS);
    }
    return 0;
}

static int take_made(struct nccl_sum *sum, struct making *making, struct lab_err *err) {
    if (making->result != LAB_NCCL_SUCCESS)
        return nccl_fail(sum, making->result, "ncclCommInitAll", err);
    sum->made = lab_mem_alloc((size_t)making->ranks, sizeof(lab_nccl_comm));
    memcpy(sum->made, making->comms, (size_t)making->ranks * sizeof(lab_nccl_comm));
    return 0;
}

static int make_all(struct nccl_sum *sum, struct lab_err *err) {
    if (sum->place.ranks > RANKS_MOST)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "NCCL is used for %d GPUs at most here",
                           RANKS_MOST);
    struct making *making = open_making(sum);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, make, making);
    if (failed) {
        close_making(making);
        return lab_err_set(err, LAB_ERR_SYSTEM, "a thread for NCCL: %s", strerror(failed));
    }
    pthread_detach(thread);
    pthread_mutex_lock(&making->mutex);
    bool left_alone = making->left_alone = await(sum, making, err) < 0;
    pthread_mutex_unlock(&making->mutex);
    if (left_alone) {
        /* what hangs may keep a CPU or a GPU busy: nobody goes on beside it, by whatever way */
        lab_group_stop(sum->place.group, err);
        return -1;
    }
    int result = take_made(sum, making, err);
    close_making(making);
    return result;
}

/* --- life --- */

static void nccl_leave(void *state) {
    struct nccl_sum *sum = state;
    lab_group_unwatch(sum->place.group, &sum->watch);
    cuda_fault_remove(sum->device, &sum->fault);
}

static void nccl_close(void *state, bool all_left) {
    struct nccl_sum *sum = state;
    if (!all_left)
        abort_comm(sum);
    lab_nccl_comm comm = atomic_exchange(&sum->comm, NULL);
    if (comm)
        sum->nccl->ncclCommDestroy(comm);
    for (int i = 0; sum->made && i < sum->place.ranks; i++)
        if (sum->made[i])
            sum->nccl->ncclCommDestroy(sum->made[i]);
    cuda_forget();
    lab_mem_free(sum->made);
    lab_mem_free(sum);
}

static int nccl_open(const struct lab_sum_place *place, void **ret_state, struct lab_err *err) {
    struct nccl_sum *sum = lab_mem_alloc(1, sizeof *sum);
    sum->place = *place;
    sum->device = (struct cuda_device *)place->device;
    sum->nccl = lab_nccl_load(NULL);
    if (cuda_enter(sum->device, err) || (place->rank == 0 && make_all(sum, err))) {
        nccl_close(sum, true);
        return -1;
    }
    *ret_state = sum;
    return 0;
}

/* Each takes its own from the first rank's list; no two touch the same entry. */
static int nccl_join(void *state, void *const *states, struct lab_err *err) {
    struct nccl_sum *sum = state;
    const struct nccl_sum *first = states[0];
    (void)err;
    atomic_store(&sum->comm, first->made[sum->place.rank]);
    first->made[sum->place.rank] = NULL;
    sum->fault = (struct cuda_fault){
        .check = nccl_check,
        .state = sum,
        .limit_s = sum->place.ranks > 1 ? lab_group_limit_s(sum->place.group) : 0,
        .give_up = nccl_give_up};
    sum->watch = (struct lab_group_watch){.failed = on_failed, .state = sum};
    cuda_fault_add(sum->device, &sum->fault);
    lab_group_watch(sum->place.group, &sum->watch);
    return 0;
}

/* --- use --- */

static int nccl_enqueue(void *state, struct lab_stream *stream, enum lab_dtype dtype, void *data,
                        int64_t count, struct lab_err *err) {
    static const int types[] = {[LAB_FP32] = LAB_NCCL_FLOAT32,
                                [LAB_TF32] = LAB_NCCL_FLOAT32,
                                [LAB_BF16] = LAB_NCCL_BFLOAT16,
                                [LAB_FP16] = LAB_NCCL_FLOAT16};
    struct nccl_sum *sum = state;
    lab_nccl_comm comm = atomic_load(&sum->comm);
    if (cuda_enter(sum->device, err) || lab_group_check(sum->place.group, err))
        return -1;
    if (!comm)
        return lab_err_set(err, LAB_ERR_SYSTEM, "another rank has ended the all-reduces");
    lab_nccl_result result =
        sum->nccl->ncclAllReduce(data, data, (size_t)count, types[dtype], LAB_NCCL_SUM, comm,
                                 ((struct cuda_stream *)stream)->handle);
    return result == LAB_NCCL_SUCCESS ? 0 : nccl_fail(sum, result, "ncclAllReduce", err);
}

const struct lab_sum_kind cuda_sum_nccl = {
    .way = LAB_SUM_NCCL,
    .through = "NCCL",
    .is_captured = true,
    .suits = nccl_suits,
    .open = nccl_open,
    .join = nccl_join,
    .enqueue = nccl_enqueue,
    .check = nccl_check,
    .leave = nccl_leave,
    .close = nccl_close,
};
