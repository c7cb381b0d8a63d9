/*
 * libnccl.c: NCCL beside the fake driver, whose device memory is the host's and whose commands run
 * when they are enqueued: so a sum is done in the call, where the ranks' threads wait for each
 * other until all have come or one of the communicators is aborted. FAKE_NCCL_ASYNC=6 is what every
 * communicator says of itself; FAKE_NCCL_MS is how long making them takes; FAKE_CUDA_FAIL names
 * functions that fail.
 */
#include "fake/fake_cuda.h"
#include "vendor/nccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROTOTYPE(name, effect, parameters) FAKE_EXPORT lab_nccl_result name parameters;
LAB_NCCL_FUNCTIONS(PROTOTYPE)
#undef PROTOTYPE
FAKE_EXPORT const char *ncclGetErrorString(lab_nccl_result result);
FAKE_EXPORT const char *ncclGetLastError(lab_nccl_comm comm);

#define RANKS_MAX   16
#define UNSUPPORTED 5 /* ncclInvalidUsage */

struct world {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int ranks, open, arrived;
    unsigned long sums;
    bool aborted;
    const float *from[RANKS_MAX];
    float *result;
};

struct lab_nccl_comm_st {
    struct world *world;
    int rank;
    bool busy, aborted; /* its owner is in a call, which then ends it */
};

lab_nccl_result ncclGetVersion(int *ret_version) {
    *ret_version = 22803;
    return LAB_NCCL_SUCCESS;
}

const char *ncclGetErrorString(lab_nccl_result result) {
    return result == UNSUPPORTED ? "invalid usage" : "remote process error";
}

const char *ncclGetLastError(lab_nccl_comm comm) {
    (void)comm;
    return "as the test has it";
}

lab_nccl_result ncclCommInitAll(lab_nccl_comm *ret_comms, int count, const int *devices) {
    int64_t ms = fake_number("FAKE_NCCL_MS", 0);
    int code = fake_injected("ncclCommInitAll");
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    for (int i = 0; i < count && !code; i++)
        for (int k = 0; k < i; k++)
            code = devices[i] == devices[k] ? UNSUPPORTED : code;
    if (code || count > RANKS_MAX)
        return code ? code : UNSUPPORTED;
    struct world *world = calloc(1, sizeof *world);
    world->ranks = world->open = count;
    pthread_mutex_init(&world->mutex, NULL);
    pthread_cond_init(&world->changed, NULL);
    for (int i = 0; i < count; i++) {
        ret_comms[i] = calloc(1, sizeof *ret_comms[i]);
        *ret_comms[i] = (struct lab_nccl_comm_st){world, i};
    }
    return LAB_NCCL_SUCCESS;
}

static void leave(lab_nccl_comm comm) {
    struct world *world = comm->world;
    pthread_mutex_lock(&world->mutex);
    bool last = --world->open == 0;
    pthread_mutex_unlock(&world->mutex);
    free(comm);
    if (!last)
        return;
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->mutex);
    free(world->result);
    free(world);
}

lab_nccl_result ncclCommDestroy(lab_nccl_comm comm) {
    leave(comm);
    return LAB_NCCL_SUCCESS;
}

lab_nccl_result ncclCommAbort(lab_nccl_comm comm) {
    pthread_mutex_t *mutex = &comm->world->mutex;
    pthread_mutex_lock(mutex);
    bool busy = comm->busy;
    comm->aborted = comm->world->aborted = true;
    pthread_cond_broadcast(&comm->world->changed);
    pthread_mutex_unlock(mutex);
    if (!busy)
        leave(comm);
    return LAB_NCCL_SUCCESS;
}

lab_nccl_result ncclCommGetAsyncError(lab_nccl_comm comm, lab_nccl_result *ret_result) {
    (void)comm;
    *ret_result = (lab_nccl_result)fake_number("FAKE_NCCL_ASYNC", LAB_NCCL_SUCCESS);
    return LAB_NCCL_SUCCESS;
}

static void add_up(struct world *world, size_t count) {
    free(world->result);
    world->result = calloc(count, sizeof *world->result);
    for (int r = 0; r < world->ranks; r++)
        for (size_t i = 0; i < count; i++)
            world->result[i] += world->from[r][i];
}

lab_nccl_result ncclAllReduce(const void *from, void *to, size_t count, lab_nccl_type type,
                              lab_nccl_reduction reduction, lab_nccl_comm comm,
                              lab_cu_stream stream) {
    struct world *world = comm->world;
    (void)stream;
    if (type != LAB_NCCL_FLOAT32 || reduction != LAB_NCCL_SUM)
        return UNSUPPORTED;
    pthread_mutex_lock(&world->mutex);
    unsigned long sum = world->sums;
    comm->busy = true;
    world->from[comm->rank] = from;
    if (++world->arrived == world->ranks) {
        add_up(world, count);
        world->arrived = 0;
        world->sums++;
        pthread_cond_broadcast(&world->changed);
    }
    while (world->sums == sum && !world->aborted)
        pthread_cond_wait(&world->changed, &world->mutex);
    if (world->sums != sum)
        memcpy(to, world->result, count * sizeof(float));
    /* nobody begins the next one before all have this one's result */
    if (world->sums != sum && ++world->arrived == world->ranks) {
        world->arrived = 0;
        world->sums++;
        pthread_cond_broadcast(&world->changed);
    }
    while (world->sums == sum + 1 && !world->aborted)
        pthread_cond_wait(&world->changed, &world->mutex);
    comm->busy = false;
    bool aborted = comm->aborted;
    pthread_mutex_unlock(&world->mutex);
    if (aborted)
        leave(comm);
    return LAB_NCCL_SUCCESS;
}
