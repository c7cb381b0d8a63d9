/*
 * group.c: meetings of ranks. One lock and one condition; a meeting is over when its number of
 * arrivals is complete, which raises the generation. A host thread that waits sleeps: the cores
 * belong to the devices.
 */
#include "device/sum.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOOK_NS   (20 * LAB_NS_PER_MS) /* between two looks whether all was stopped */
#define LET_GO_NS (LAB_NS_PER_S / 2)   /* far longer than a device that gives up takes */

struct lab_group {
    struct lab_group_setup setup;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    uint64_t generation; /* meetings so far */
    uint64_t number;     /* of the meeting under way, by who came first */
    int arrived;
    bool failed;
    int failed_rank; /* by which; -1 = none said so */
    struct lab_err why;
    struct lab_group_watch *watches;
    void **shown;        /* [ranks] */
    int holding, parted; /* ranks that hold, and those of them that have come to part */
    int parted_first;    /* the first of those */
    uint64_t partings;   /* so far */
    _Atomic(enum lab_sum_way) sum_way;
};

struct lab_group *lab_group_open(const struct lab_group_setup *setup) {
    struct lab_group *group = lab_mem_alloc(1, sizeof *group);
    group->setup = *setup;
    group->failed_rank = -1;
    group->shown = lab_mem_alloc((size_t)setup->ranks, sizeof *group->shown);
    pthread_mutex_init(&group->mutex, NULL);
    lab_cond_init(&group->changed);
    return group;
}

void lab_group_close(struct lab_group *group) {
    if (!group)
        return;
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    lab_mem_free(group->shown);
    lab_mem_free(group);
}

int lab_group_ranks(const struct lab_group *group) {
    return group->setup.ranks;
}

double lab_group_limit_s(const struct lab_group *group) {
    return group->setup.limit_s;
}

enum lab_sum_way lab_group_sum_way(const struct lab_group *group) {
    return atomic_load(&group->sum_way);
}

void lab_group_set_sum_way(struct lab_group *group, enum lab_sum_way way) {
    atomic_store(&group->sum_way, way);
}

/* --- failing --- */

/* Under the lock. */
static void fail(struct lab_group *group, int rank, const struct lab_err *why) {
    if (group->failed)
        return;
    group->failed = true;
    group->failed_rank = rank;
    group->why = *why;
    if (!why->code)
        group->why.code = LAB_ERR_SYSTEM;
    if (rank >= 0)
        lab_err_context(&group->why, "rank %d has failed", rank);
    pthread_cond_broadcast(&group->changed);
    for (struct lab_group_watch *watch = group->watches; watch; watch = watch->next)
        watch->failed(watch->state);
}

void lab_group_stop(struct lab_group *group, const struct lab_err *why) {
    LAB_AUTO_LOCK(&group->mutex);
    fail(group, -1, why);
}

int lab_group_check(struct lab_group *group, struct lab_err *err) {
    LAB_AUTO_LOCK(&group->mutex);
    if (group->failed && err)
        *err = group->why;
    return group->failed ? -1 : 0;
}

void lab_group_watch(struct lab_group *group, struct lab_group_watch *watch) {
    LAB_AUTO_LOCK(&group->mutex);
    watch->next = group->watches;
    group->watches = watch;
    if (group->failed)
        watch->failed(watch->state);
}

void lab_group_unwatch(struct lab_group *group, struct lab_group_watch *watch) {
    LAB_AUTO_LOCK(&group->mutex);
    struct lab_group_watch **link = &group->watches;
    while (*link && *link != watch)
        link = &(*link)->next;
    if (*link)
        *link = watch->next;
}

void lab_group_fail(struct lab_group *group, int rank, const struct lab_err *why) {
    if (!group)
        return;
    LAB_AUTO_LOCK(&group->mutex);
    fail(group, rank, why);
}

int lab_group_failed_rank(struct lab_group *group) {
    LAB_AUTO_LOCK(&group->mutex);
    return group->failed_rank;
}

/* --- meeting --- */

static bool is_stopped(const struct lab_group *group) {
    return group->setup.stopped && atomic_load(group->setup.stopped);
}

static void look_again_soon(struct lab_group *group) {
    lab_cond_wait_until(&group->changed, &group->mutex,
                        lab_clock_now(lab_clock_system()) + LOOK_NS);
}

/* Under the lock. */
static void wait_for_all(struct lab_group *group, int rank) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t limit_ns = lab_clock_now(clock) + (int64_t)(group->setup.limit_s * 1e9);
    uint64_t generation = group->generation;
    while (group->generation == generation && !group->failed) {
        struct lab_err why = LAB_ERR_INIT;
        if (is_stopped(group)) {
            lab_err_set(&why, LAB_ERR_INTERRUPTED, "stopped: another rank has failed");
            fail(group, -1, &why);
        } else if (lab_clock_now(clock) > limit_ns) {
            lab_err_set(&why, LAB_ERR_SYSTEM, "rank %d has waited %g s for others", rank,
                        group->setup.limit_s);
            fail(group, -1, &why);
        } else {
            look_again_soon(group);
        }
    }
}

/* Under the lock. One that parts comes to no meeting before all have parted: nobody waits for it
 * there. */
static void fail_parted(struct lab_group *group) {
    struct lab_err why = LAB_ERR_INIT;
    lab_err_set(&why, LAB_ERR_SYSTEM, "rank %d ended its all-reduces before the others",
                group->parted_first);
    fail(group, -1, &why);
}

/* Under the lock. Whether the caller's meeting has come about. */
static bool arrive(struct lab_group *group, int rank, uint64_t number) {
    if (group->parted > 0)
        fail_parted(group);
    if (group->failed)
        return false;
    if (group->arrived > 0 && group->number != number) {
        struct lab_err why = LAB_ERR_INIT;
        lab_err_set(&why, LAB_ERR_SYSTEM,
                    "the ranks are out of step: one has failed, or has another number of steps");
        fail(group, -1, &why);
        return false;
    }
    group->number = number;
    if (++group->arrived < group->setup.ranks) {
        uint64_t generation = group->generation;
        wait_for_all(group, rank);
        return group->generation != generation; /* a failure behind it is the next one's */
    }
    group->arrived = 0;
    group->generation++;
    pthread_cond_broadcast(&group->changed);
    return true;
}

int lab_group_meet(struct lab_group *group, int rank, struct lab_device *device, uint64_t number,
                   struct lab_err *err) {
    lab_device_rest(device); /* before it counts as arrived, so that all rest when all are let go */
    pthread_mutex_lock(&group->mutex);
    bool met = arrive(group, rank, number);
    if (!met && err)
        *err = group->why;
    pthread_mutex_unlock(&group->mutex);
    lab_device_wake(device);
    return met ? 0 : -1;
}

/* Numbers of their own, so that they meet no sum. */
enum { EXCHANGE_SHOWN = 1, EXCHANGE_SEEN };

int lab_group_exchange(struct lab_group *group, int rank, struct lab_device *device, void *own,
                       void **ret_all, struct lab_err *err) {
    pthread_mutex_lock(&group->mutex);
    group->shown[rank] = own;
    pthread_mutex_unlock(&group->mutex);
    if (lab_group_meet(group, rank, device, EXCHANGE_SHOWN, err))
        return -1;
    for (int i = 0; i < group->setup.ranks; i++)
        ret_all[i] = group->shown[i];
    return lab_group_meet(group, rank, device, EXCHANGE_SEEN, err);
}

/* --- holding and parting --- */

void lab_group_hold(struct lab_group *group) {
    LAB_AUTO_LOCK(&group->mutex);
    group->holding++;
}

/* Under the lock. Whether all have parted by then. */
static bool wait_for_parting(struct lab_group *group, struct lab_device *device, uint64_t round,
                             int64_t wait_ns) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t limit_ns = lab_clock_now(clock) + wait_ns;
    while (group->partings == round && lab_clock_now(clock) <= limit_ns) {
        look_again_soon(group);
        lab_device_rest(device); /* one that failed in a meeting may have woken this one, too */
    }
    return group->partings != round;
}

bool lab_group_part(struct lab_group *group, int rank, struct lab_device *device) {
    lab_device_rest(device);
    pthread_mutex_lock(&group->mutex);
    uint64_t round = group->partings;
    if (group->parted == 0)
        group->parted_first = rank;
    if (++group->parted == group->holding) {
        group->parted = group->holding = 0;
        group->partings++;
        pthread_cond_broadcast(&group->changed);
    } else if (group->arrived > 0) {
        fail_parted(group);
    }
    bool all_came = wait_for_parting(group, device, round, (int64_t)(group->setup.limit_s * 1e9));
    if (!all_came) { /* a device may wait for this rank: it hears of the failure */
        fail_parted(group);
        all_came = wait_for_parting(group, device, round, LET_GO_NS);
    }
    pthread_mutex_unlock(&group->mutex);
    lab_device_wake(device);
    return all_came;
}
