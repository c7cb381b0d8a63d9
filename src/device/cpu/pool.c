/*
 * pool.c: the device's helpers, one bound to each core, and how work reaches them.
 *
 * Work is cut into units that are taken from one counter, so that a slow thread simply does fewer.
 * The caller offers its job to helpers that rest, works itself, and in the end takes back the
 * offers nobody has followed yet: a launch of a few microseconds never waits for a helper to wake
 * up. A helper's `offer` is NULL (resting), a job (offered) or &at_work (taken). Only the caller of
 * a job offers it, so it knows for how many helpers it has to wait.
 *
 * A stream's thread takes a seat, a core for itself, while it computes or copies. A helper whose
 * core is taken isn't asked, and leaves between two units when that happens. Threads stay on the
 * seat they had last, so that binding costs a system call only where streams get in each other's
 * way; left to the scheduler they would share a core with a helper now and then, a fifth of all
 * arithmetic lost while another core idles.
 */
#include "base/mem.h"
#include "device/cpu/cpu.h"
#include "machine/machine.h"

#include <assert.h>
#include <stdio.h>

/* Units are handed out in so many pieces for each thread at least: few enough to be cheap, many
 * enough that nobody waits long for the last one. */
#define PIECES_PER_THREAD 8

struct job {
    const struct cpu_work *work;
    int64_t piece;
    _Alignas(64) _Atomic int64_t next; /* the first unit not yet taken */
    _Atomic int helpers;               /* offered to, or at work */
    struct cpu_counter *left;
};

static struct job at_work;

struct helper {
    _Alignas(64) _Atomic(struct job *) offer;
    _Atomic bool taken; /* a stream's thread sits on this core */
    struct cpu_counter calls;
    struct cpu_pool *pool;
    pthread_t thread;
    struct cpu_scratch scratch;
};

struct cpu_pool {
    int count;
    int64_t spin_ns;
    const struct lab_machine *machine;
    struct lab_cpus cpus; /* of the device */
    _Atomic bool closing;
    struct helper helpers[];
};

/* --- seats --- */

static bool seat_try(struct cpu_pool *pool, int core) {
    bool taken = false;
    return atomic_compare_exchange_strong(&pool->helpers[core].taken, &taken, true);
}

/* Goes to the first free core of its own: copies from the last one down, compute from the first
 * up, so that they meet late. */
static int seat_find(struct cpu_pool *pool, const struct cpu_caller *caller) {
    for (int i = 0; i < caller->core_count; i++) {
        int core = caller->copies ? caller->core_count - 1 - i : i;
        if (seat_try(pool, caller->first_core + core))
            return caller->first_core + core;
    }
    return -1;
}

/* Without a free core the thread stays where the scheduler wants it, among its own cores. */
void cpu_pool_sit(struct cpu_pool *pool, struct cpu_caller *caller) {
    if (pool->count == 1)
        return;
    if (caller->home >= 0 && seat_try(pool, caller->home)) {
        caller->seat = caller->home;
        return;
    }
    int core = seat_find(pool, caller);
    if (core < 0 && caller->home < 0)
        return;
    struct lab_cpus cpus = {.items = pool->cpus.items + (core < 0 ? caller->first_core : core),
                            .count = core < 0 ? caller->core_count : 1};
    if (lab_bind_cpus(pool->machine, &cpus, false, NULL) == 0)
        caller->home = core;
    caller->seat = core;
}

void cpu_pool_rise(struct cpu_pool *pool, struct cpu_caller *caller) {
    if (caller->seat >= 0)
        atomic_store(&pool->helpers[caller->seat].taken, false);
    caller->seat = -1;
}

void cpu_caller_init(struct cpu_caller *caller) {
    *caller = (struct cpu_caller){.home = -1, .seat = -1};
    cpu_counter_init(&caller->left);
}

void cpu_caller_place(struct cpu_caller *caller, int first_core, int core_count, bool copies) {
    caller->first_core = first_core;
    caller->core_count = core_count;
    caller->copies = copies;
    caller->home = -1;
}

void cpu_caller_release(struct cpu_caller *caller) {
    cpu_counter_release(&caller->left);
    lab_mem_free(caller->scratch.memory);
}

/* --- jobs --- */

static bool take_units(struct job *job, int64_t *ret_begin, int64_t *ret_end) {
    int64_t units = job->work->units;
    int64_t begin = atomic_fetch_add_explicit(&job->next, job->piece, memory_order_relaxed);
    if (begin >= units)
        return false;
    *ret_begin = begin;
    *ret_end = units - begin < job->piece ? units : begin + job->piece;
    return true;
}

static void help(struct helper *helper, struct job *job) {
    const struct cpu_work *work = job->work;
    int64_t begin, end;
    while (!atomic_load(&helper->taken) && take_units(job, &begin, &end))
        work->task(work->context, begin, end, &helper->scratch);
    atomic_fetch_sub(&job->helpers, 1);
}

static void helper_main(void *argument) {
    struct helper *helper = argument;
    for (uint64_t seen = 0;;) {
        cpu_counter_wait(&helper->calls, seen + 1, helper->pool->spin_ns);
        seen = cpu_counter_value(&helper->calls);
        struct job *job = atomic_load(&helper->offer);
        if (job && atomic_compare_exchange_strong(&helper->offer, &job, &at_work)) {
            struct cpu_counter *left = job->left;
            help(helper, job);
            atomic_store(&helper->offer, NULL);
            cpu_counter_add(left, 1); /* the job is gone from here on */
        } else if (atomic_load(&helper->pool->closing)) {
            return;
        }
    }
}

/* Offers the job to resting helpers, as many as it may have; returns to how many. */
static int recruit(struct cpu_pool *pool, struct job *job) {
    int missing = job->work->threads - 1 - atomic_load(&job->helpers);
    int asked = 0;
    for (int core = 0; core < pool->count && asked < missing; core++) {
        struct helper *helper = &pool->helpers[core];
        struct job *resting = NULL;
        if (atomic_load_explicit(&helper->taken, memory_order_relaxed) ||
            atomic_load_explicit(&helper->offer, memory_order_relaxed))
            continue;
        atomic_fetch_add(&job->helpers, 1);
        if (atomic_compare_exchange_strong(&helper->offer, &resting, job)) {
            cpu_counter_add(&helper->calls, 1);
            asked++;
        } else {
            atomic_fetch_sub(&job->helpers, 1);
        }
    }
    return asked;
}

/* Takes back the offers that no helper has followed; returns how many. */
static int retract(struct cpu_pool *pool, struct job *job) {
    int taken_back = 0;
    for (int core = 0; core < pool->count; core++) {
        struct job *offered = job;
        if (atomic_load_explicit(&pool->helpers[core].offer, memory_order_relaxed) == job &&
            atomic_compare_exchange_strong(&pool->helpers[core].offer, &offered, NULL))
            taken_back++;
    }
    return taken_back;
}

static void run_together(struct cpu_pool *pool, const struct cpu_work *work,
                         struct cpu_caller *caller) {
    int64_t piece = work->units / ((int64_t)work->threads * PIECES_PER_THREAD);
    struct job job = {.work = work, .piece = piece > 1 ? piece : 1, .left = &caller->left};
    int asked = recruit(pool, &job);
    for (int64_t begin, end; take_units(&job, &begin, &end);) {
        work->task(work->context, begin, end, &caller->scratch);
        if (atomic_load_explicit(&job.next, memory_order_relaxed) < work->units)
            asked += recruit(pool, &job);
    }
    if (asked)
        caller->left_expected += (uint64_t)(asked - retract(pool, &job));
    cpu_counter_wait(&caller->left, caller->left_expected, pool->spin_ns);
}

void cpu_pool_run(struct cpu_pool *pool, const struct cpu_work *work, struct cpu_caller *caller) {
    if (work->units <= 0)
        return;
    if (work->units == 1 || work->threads <= 1 || pool->count == 1) {
        work->task(work->context, 0, work->units, &caller->scratch);
        return;
    }
    cpu_pool_sit(pool, caller);
    run_together(pool, work, caller);
    cpu_pool_rise(pool, caller);
}

/* --- life --- */

int cpu_pool_open(const struct lab_machine *machine, const struct lab_cpus *cpus, const char *name,
                  int64_t spin_ns, struct cpu_pool **ret_pool, struct lab_err *err) {
    assert(cpus->count > 0);
    size_t bytes = sizeof(struct cpu_pool) + (size_t)cpus->count * sizeof(struct helper);
    struct cpu_pool *pool = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!pool)
        return lab_err_set(err, LAB_ERR_SYSTEM, "no memory for %d threads", cpus->count);
    memset(pool, 0, bytes);
    pool->spin_ns = spin_ns;
    pool->machine = machine;
    pool->cpus = *cpus;
    /* a device of one core has nobody to help: its streams do all */
    int wanted = cpus->count > 1 ? cpus->count : 0;
    for (int core = 0; core < cpus->count; core++)
        cpu_counter_init(&pool->helpers[core].calls);
    for (int core = 0; core < wanted; core++) {
        struct helper *helper = &pool->helpers[core];
        struct lab_cpus own = {.items = &cpus->items[core], .count = 1};
        char label[64];
        helper->pool = pool;
        snprintf(label, sizeof label, "%s p%d", name, core);
        if (cpu_thread_start(machine, &own, label, helper_main, helper, &helper->thread, err)) {
            cpu_pool_close(pool);
            return -1;
        }
        pool->count = core + 1;
    }
    pool->count = cpus->count;
    *ret_pool = pool;
    return 0;
}

void cpu_pool_close(struct cpu_pool *pool) {
    if (!pool)
        return;
    atomic_store(&pool->closing, true);
    for (int core = 0; core < pool->count; core++) {
        struct helper *helper = &pool->helpers[core];
        if (!helper->pool)
            continue;
        cpu_counter_add(&helper->calls, 1);
        pthread_join(helper->thread, NULL);
        cpu_counter_release(&helper->calls);
        lab_mem_free(helper->scratch.memory);
    }
    free(pool);
}
