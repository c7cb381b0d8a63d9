/*
 * probe_sampler.c: the sampler's life: starts a thread for each lane that was opened and one that
 * watches them, and gets rid of them again.
 */
#include "probe/probe_sampler.h"

#include "base/cond.h"
#include "base/file/file.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#define INTERVAL_MIN_NS LAB_NS_PER_MS
#define INTERVAL_MAX_NS (86400 * LAB_NS_PER_S)
#define PATIENCE_MIN_NS (2 * LAB_NS_PER_S)
#define PATIENCE_MAX_NS (5 * LAB_NS_PER_S) /* a reading takes as long as it takes, however rare */
#define PATIENCE_TICKS  20
#define CLOSE_WAIT_NS   (LAB_NS_PER_S / 4)
#define SLACK_SHARE     1000
#define STACK_BYTES                                                                                \
    ((size_t)512 << 10) /* drivers take more than they should; untouched, it is free */

/* --- threads --- */

/* Gives up one reference. */
static void release_sampler(struct lab_sampler *sampler) {
    if (atomic_fetch_sub(&sampler->references, 1) != 1)
        return;
    for (int i = 0; i < sampler->lane_count; i++) {
        lane_release(sampler->lanes[i]);
        lab_mem_free(sampler->lanes[i]);
    }
    lab_mem_free(sampler->lanes);
    for (int i = 0; i < sampler->probe_count; i++)
        for (int k = 0; k < sampler->probes[i].text_count; k++)
            lab_mem_free(sampler->probes[i].texts[k]);
    lab_mem_free(sampler->probes);
    lab_gpu_process_table_close(sampler->table);
    sample_queue_release(&sampler->queue);
    pthread_mutex_destroy(&sampler->mutex);
    pthread_cond_destroy(&sampler->ended);
    pthread_cond_destroy(&sampler->opened);
    lab_arena_release(&sampler->arena);
    lab_mem_free(sampler);
}

void sampler_thread_ends(struct lab_sampler *sampler) {
    pthread_mutex_lock(&sampler->mutex);
    sampler->threads--;
    pthread_cond_broadcast(&sampler->ended);
    pthread_mutex_unlock(&sampler->mutex);
    release_sampler(sampler);
}

static void *lane_main(void *argument) {
    struct sampler_lane *lane = argument;
    struct lab_sampler *sampler = lane->sampler;
    char name[16]; /* as long as Linux allows */
    snprintf(name, sizeof name, "lab-%s%d", lane->probe->probe->name, lane->index);
    pthread_setname_np(pthread_self(), name);
    /* how late the kernel may wake it so as to wake others at the same time: 50 us unless told */
    prctl(PR_SET_TIMERSLACK, (unsigned long)sampler->interval_ns / SLACK_SHARE);
    lane_run(lane);
    sampler_probe_release(lane->probe);
    sampler_thread_ends(sampler);
    return NULL;
}

static void *watch_main(void *argument) {
    struct lab_sampler *sampler = argument;
    pthread_setname_np(pthread_self(), "lab-watch");
    sampler_watch_run(sampler);
    sampler_thread_ends(sampler);
    return NULL;
}

static int bind_threads(const struct lab_cpus *cpus, pthread_attr_t *attributes) {
    if (cpus->count == 0)
        return 0;
    int most = cpus->items[cpus->count - 1] + 1;
    cpu_set_t *set = CPU_ALLOC((size_t)most);
    if (!set)
        return ENOMEM;
    size_t bytes = CPU_ALLOC_SIZE((size_t)most);
    CPU_ZERO_S(bytes, set);
    for (int i = 0; i < cpus->count; i++)
        CPU_SET_S((size_t)cpus->items[i], bytes, set);
    int why = pthread_attr_setaffinity_np(attributes, bytes, set);
    CPU_FREE(set);
    return why;
}

/* Signals are for the threads of whoever opened the sampler. */
static int create_thread(const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&thread, attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

int sampler_start_thread(struct lab_sampler *sampler, size_t stack_bytes, void *(*body)(void *),
                         void *argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    int why = bind_threads(&sampler->cpus, &attributes);
    atomic_fetch_add(&sampler->references, 1);
    pthread_mutex_lock(&sampler->mutex);
    sampler->threads++;
    pthread_mutex_unlock(&sampler->mutex);
    if (why == 0)
        why = create_thread(&attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (why != 0) {
        pthread_mutex_lock(&sampler->mutex);
        sampler->threads--;
        pthread_mutex_unlock(&sampler->mutex);
        atomic_fetch_sub(&sampler->references, 1);
    }
    return why;
}

int sampler_start_lane(struct sampler_lane *lane) {
    int why = sampler_start_thread(lane->sampler, STACK_BYTES, lane_main, lane);
    if (why != 0)
        sampler_probe_release(lane->probe);
    return why;
}

static int start_threads(struct lab_sampler *sampler, int lanes, struct lab_err *err) {
    int why = 0;
    for (int i = 0; why == 0 && i < lanes; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        if (!lane->wanted)
            continue;
        atomic_fetch_add(&lane->probe->users, 1);
        why = sampler_start_lane(lane);
    }
    if (why == 0)
        why = sampler_start_thread(sampler, STACK_BYTES, watch_main, sampler);
    if (why != 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, why,
                                 "the sampler's threads can't be started");
    return 0;
}

/* --- life --- */

static int check_interval(int64_t interval_ns, struct lab_err *err) {
    if (interval_ns < INTERVAL_MIN_NS)
        return lab_err_set(
            err, LAB_ERR_USER,
            "an interval of %g ms is too short: the least is 1 ms (drivers renew most values every "
            "20 to 100 ms)",
            (double)interval_ns / 1e6);
    if (interval_ns > INTERVAL_MAX_NS)
        return lab_err_set(err, LAB_ERR_USER, "an interval of %g s is too long: the most is a day",
                           (double)interval_ns / 1e9);
    return 0;
}

static struct lab_sampler *make_sampler(const struct sampler_parts *parts,
                                        const struct lab_sampler_config *config) {
    struct lab_sampler *sampler = lab_mem_alloc(1, sizeof *sampler);
    atomic_store(&sampler->references, 1);
    sampler->setup = config->setup;
    if (!sampler->setup.clock)
        sampler->setup.clock = lab_clock_system();
    sampler->clock = sampler->setup.clock;
    sampler->system_clock = sampler->clock == lab_clock_system();
    sampler->setup.root =
        lab_arena_strdup(&sampler->arena, config->setup.root ? config->setup.root : "");
    sampler->setup.machine = sampler_copy_machine(&sampler->arena, config->setup.machine);
    if (config->setup.pids)
        sampler->setup.pids =
            lab_arena_copy(&sampler->arena, config->setup.pids, (size_t)config->setup.pid_count,
                           sizeof *config->setup.pids);
    sampler->table = sampler->setup.table = lab_gpu_process_table_open();
    sampler->interval_ns = config->setup.interval_ns;
    sampler->patience_ns = config->patience_ns;
    if (sampler->patience_ns <= 0) {
        sampler->patience_ns = PATIENCE_TICKS * sampler->interval_ns;
        if (sampler->patience_ns < PATIENCE_MIN_NS)
            sampler->patience_ns = PATIENCE_MIN_NS;
        if (sampler->patience_ns > PATIENCE_MAX_NS)
            sampler->patience_ns = PATIENCE_MAX_NS;
    }
    if (config->gpus) {
        sampler->gpus = lab_arena_copy(&sampler->arena, config->gpus, (size_t)config->gpu_count,
                                       sizeof *sampler->gpus);
        sampler->gpu_count = config->gpu_count;
    }
    if (config->cpus && config->cpus->count > 0) {
        sampler->cpus = *config->cpus;
        sampler->cpus.items = lab_arena_copy(&sampler->arena, config->cpus->items,
                                             (size_t)config->cpus->count, sizeof(int));
    }
    pthread_mutex_init(&sampler->mutex, NULL);
    lab_cond_init(&sampler->ended);
    lab_cond_init(&sampler->opened);
    sample_queue_init(&sampler->queue, 8);
    sampler->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sampler->wall_offset_ns = parts->wall_offset_ns;
    return sampler;
}

int lab_sampler_open_parts(const struct sampler_parts *parts,
                           const struct lab_sampler_config *config,
                           struct lab_sampler **ret_sampler, struct lab_err *err) {
    if (check_interval(config->setup.interval_ns, err) < 0 ||
        sampler_check_names(parts, config, err) < 0)
        return -1;
    struct lab_sampler *sampler = make_sampler(parts, config);
    int lanes = 0, result = sampler_open_probes(sampler, parts, config, &lanes, err);
    if (result == 0)
        result = start_threads(sampler, lanes, err);
    if (result < 0)
        lab_sampler_close(sampler);
    else
        *ret_sampler = sampler;
    return result;
}

/* Gives the threads a moment; one that is in the driver's hands is left there. */
static void wait_for_threads(struct lab_sampler *sampler) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + CLOSE_WAIT_NS;
    int status = 0;
    while (sampler->threads > 0 && status == 0)
        status = lab_cond_wait_until(&sampler->ended, &sampler->mutex, until_ns);
}

void lab_sampler_close(struct lab_sampler *sampler) {
    if (!sampler)
        return;
    pthread_mutex_lock(&sampler->mutex);
    sampler->stop = true; /* from here on no lane is added */
    pthread_cond_broadcast(&sampler->opened);
    pthread_mutex_unlock(&sampler->mutex);
    sampler_ring(&sampler->watch_wake);
    for (int i = 0; i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        pthread_mutex_lock(&lane->queue.mutex);
        lane->stop = true;
        pthread_mutex_unlock(&lane->queue.mutex);
        sampler_ring(&lane->wake);
    }
    pthread_mutex_lock(&sampler->mutex);
    wait_for_threads(sampler);
    lab_file_close(&sampler->event_fd);
    pthread_mutex_unlock(&sampler->mutex);
    for (int i = 0; i < sampler->probe_count; i++)
        sampler_probe_close(&sampler->probes[i]);
    release_sampler(sampler);
}
