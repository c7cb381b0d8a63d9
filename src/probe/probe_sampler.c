/*
 * probe_sampler.c: the sampler's life: opens the probes that work here, asks only the GPUs that are
 * wanted, starts a thread for each lane and one that watches them, and gets rid of them again.
 */
#include "probe/probe_sampler.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define INTERVAL_MIN_NS LAB_NS_PER_MS
#define INTERVAL_MAX_NS (86400 * LAB_NS_PER_S)
#define PATIENCE_MIN_NS (2 * LAB_NS_PER_S)
#define PATIENCE_TICKS  20
#define OPEN_PATIENCE_NS                                                                           \
    (30 * LAB_NS_PER_S) /* eight GPUs that nothing keeps awake take a dozen seconds to start */
#define CLOSE_WAIT_NS (LAB_NS_PER_S / 4)
#define SLACK_SHARE   1000
#define STACK_BYTES                                                                                \
    ((size_t)512 << 10) /* drivers take more than they should; untouched, it is free */

/* --- probes --- */

void sampler_probe_release(struct sampler_probe *probe) {
    if (atomic_fetch_sub(&probe->users, 1) == 1)
        probe->probe->close(probe->state);
}

static bool is_asked_for(const struct lab_sampler_config *config, const char *name) {
    if (!config->probes)
        return strcmp(name, "replay") != 0;
    for (int i = 0; config->probes[i]; i++)
        if (strcmp(config->probes[i], name) == 0)
            return true;
    return false;
}

static int check_names(const struct sampler_parts *parts, const struct lab_sampler_config *config,
                       struct lab_err *err) {
    const char *known[64];
    int count = 0;
    for (; count < 63 && parts->probes[count]; count++)
        known[count] = parts->probes[count]->name;
    known[count] = NULL;
    for (int i = 0; config->probes && config->probes[i]; i++) {
        int at = 0;
        while (known[at] && strcmp(known[at], config->probes[i]) != 0)
            at++;
        if (known[at])
            continue;
        struct lab_str text;
        lab_str_init(&text);
        lab_str_add_list(&text, known, "and");
        lab_err_set(err, LAB_ERR_USER, "there is no probe '%s'; there are %s", config->probes[i],
                    text.text);
        lab_str_release(&text);
        return -1;
    }
    return 0;
}

/* Those that refuse are no failure, unless all do. */
static int open_probes(struct lab_sampler *sampler, const struct sampler_parts *parts,
                       const struct lab_sampler_config *config, struct lab_err *err) {
    int64_t patience_ns = parts->open_patience_ns ? parts->open_patience_ns : OPEN_PATIENCE_NS;
    int count = 0, open = 0;
    while (parts->probes[count])
        count++;
    sampler->probes = lab_mem_alloc((size_t)count, sizeof *sampler->probes);
    sampler->probe_count = count;
    struct lab_str reasons;
    lab_str_init(&reasons);
    enum lab_err_code code = LAB_ERR_UNSUPPORTED;
    for (int i = 0; i < count; i++) {
        struct sampler_probe *probe = &sampler->probes[i];
        probe->probe = parts->probes[i];
        struct lab_err why = LAB_ERR_INIT;
        if (!is_asked_for(config, probe->probe->name)) {
            probe->refusal = lab_mem_strdup("it was not asked for");
            continue;
        }
        if (sampler_open_probe(sampler, probe, patience_ns, &why) == 0) {
            atomic_store(&probe->users, 1);
            open++;
            continue;
        }
        probe->refusal = lab_mem_strdup(why.text);
        lab_str_printf(&reasons, "%s%s: %s", reasons.length ? "; " : "", probe->probe->name,
                       why.text);
        code = why.code == LAB_ERR_USER ? LAB_ERR_USER : code;
    }
    if (open == 0)
        lab_err_set(err, code, "nothing can be watched here: %s",
                    reasons.length ? reasons.text : "no probe was asked for");
    lab_str_release(&reasons);
    return open ? 0 : -1;
}

const char *lab_sampler_refusal(const struct lab_sampler *sampler, const char *name) {
    for (int i = 0; i < sampler->probe_count; i++)
        if (strcmp(sampler->probes[i].probe->name, name) == 0)
            return sampler->probes[i].refusal;
    return "there is no such probe";
}

/* --- lanes and the GPUs among them --- */

bool sampler_wants_gpu(const struct lab_sampler *sampler, int index) {
    bool wanted = sampler->gpus == NULL;
    for (int i = 0; i < sampler->gpu_count; i++)
        wanted = wanted || sampler->gpus[i] == index;
    return wanted;
}

int sampler_next_number(struct lab_sampler *sampler) {
    pthread_mutex_lock(&sampler->mutex);
    int number = sampler->entity_numbers++;
    pthread_mutex_unlock(&sampler->mutex);
    return number;
}

static void open_lanes(struct lab_sampler *sampler) {
    int capacity = 0;
    for (int i = 0; i < sampler->probe_count; i++) {
        struct sampler_probe *probe = &sampler->probes[i];
        int count = probe->refusal ? 0 : probe->probe->lane_count(probe->state);
        for (int j = 0; j < count; j++) {
            LAB_MEM_GROW(&sampler->lanes, sampler->lane_count, &capacity);
            struct sampler_lane *lane = lab_mem_alloc(1, sizeof *lane);
            sampler->lanes[sampler->lane_count++] = lane;
            lane_init(lane, sampler, probe, j);
        }
    }
}

/* "0, 1 and 3", of the GPUs that lanes told of; how many there are. */
static int write_gpus(const struct lab_sampler *sampler, struct lab_str *out) {
    int count = 0, last = INT_MIN;
    struct lab_str before;
    lab_str_init(&before);
    for (;;) { /* in ascending order, however the lanes come */
        int next = INT_MAX;
        for (int i = 0; i < sampler->lane_count; i++)
            for (int j = 0; j < sampler->lanes[i]->entity_count; j++) {
                const struct lab_entity *entity = &sampler->lanes[i]->entities[j].details;
                if (entity->kind == LAB_ENTITY_GPU && entity->index > last && entity->index < next)
                    next = entity->index;
            }
        if (next == INT_MAX)
            break;
        lab_str_add(out, before.text);
        lab_str_clear(&before);
        lab_str_printf(&before, "%s%d", count == 0 ? "" : ", ", next);
        last = next;
        count++;
    }
    if (count > 1)
        lab_str_printf(out, " and %d", last);
    else
        lab_str_add(out, before.text);
    lab_str_release(&before);
    return count;
}

static bool has_gpu(const struct lab_sampler *sampler, int index) {
    for (int i = 0; i < sampler->lane_count; i++)
        for (int j = 0; j < sampler->lanes[i]->entity_count; j++) {
            const struct lab_entity *entity = &sampler->lanes[i]->entities[j].details;
            if (entity->kind == LAB_ENTITY_GPU && entity->index == index)
                return true;
        }
    return false;
}

static int check_gpus(const struct lab_sampler *sampler, struct lab_err *err) {
    for (int i = 0; i < sampler->gpu_count; i++) {
        if (has_gpu(sampler, sampler->gpus[i]))
            continue;
        struct lab_str names;
        lab_str_init(&names);
        int count = write_gpus(sampler, &names);
        const char *refusal = lab_sampler_refusal(sampler, "nvml");
        if (count > 0)
            lab_err_set(err, LAB_ERR_USER, "there is no GPU %d; there %s %s", sampler->gpus[i],
                        count == 1 ? "is GPU" : "are GPUs", names.text);
        else
            lab_err_set(err, LAB_ERR_USER, "there is no GPU %d; no GPU is seen here at all%s%s",
                        sampler->gpus[i], refusal ? ": " : "", refusal ? refusal : "");
        lab_str_release(&names);
        return -1;
    }
    return 0;
}

/* --- threads --- */

static void thread_ends(struct lab_sampler *sampler) {
    pthread_mutex_lock(&sampler->mutex);
    sampler->threads--;
    pthread_cond_broadcast(&sampler->ended);
    pthread_mutex_unlock(&sampler->mutex);
    sampler_release(sampler);
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
    thread_ends(sampler);
    return NULL;
}

static void *watch_main(void *argument) {
    struct lab_sampler *sampler = argument;
    pthread_setname_np(pthread_self(), "lab-watch");
    sampler_watch_run(sampler);
    thread_ends(sampler);
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
static int start_thread(struct lab_sampler *sampler, const pthread_attr_t *attributes,
                        void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_fetch_add(&sampler->references, 1);
    pthread_mutex_lock(&sampler->mutex);
    sampler->threads++;
    pthread_mutex_unlock(&sampler->mutex);
    pthread_t thread;
    int why = pthread_create(&thread, attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why != 0) {
        pthread_mutex_lock(&sampler->mutex);
        sampler->threads--;
        pthread_mutex_unlock(&sampler->mutex);
        atomic_fetch_sub(&sampler->references, 1);
    }
    return why;
}

static int start_threads(struct lab_sampler *sampler, struct lab_err *err) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int why = bind_threads(&sampler->cpus, &attributes);
    for (int i = 0; why == 0 && i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        if (!lane->wanted)
            continue;
        atomic_fetch_add(&lane->probe->users, 1);
        why = start_thread(sampler, &attributes, lane_main, lane);
        if (why != 0)
            sampler_probe_release(lane->probe);
    }
    if (why == 0)
        why = start_thread(sampler, &attributes, watch_main, sampler);
    pthread_attr_destroy(&attributes);
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
            "an interval of %g ms is too short: the least is 1 ms (drivers renew most "
            "figures every 20 to 100 ms)",
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
    sampler->board = sampler->setup.board = lab_probe_board_open();
    sampler->interval_ns = config->setup.interval_ns;
    sampler->patience_ns = config->patience_ns;
    if (sampler->patience_ns <= 0) {
        sampler->patience_ns = PATIENCE_TICKS * sampler->interval_ns;
        if (sampler->patience_ns < PATIENCE_MIN_NS)
            sampler->patience_ns = PATIENCE_MIN_NS;
    }
    if (config->gpus) {
        size_t count = (size_t)config->gpu_count;
        sampler->gpus = lab_arena_alloc(&sampler->arena, count, sizeof(int));
        memcpy(sampler->gpus, config->gpus, count * sizeof(int));
        sampler->gpu_count = config->gpu_count;
    }
    if (config->cpus && config->cpus->count > 0) {
        size_t count = (size_t)config->cpus->count;
        sampler->cpus = *config->cpus;
        sampler->cpus.items = lab_arena_alloc(&sampler->arena, count, sizeof(int));
        memcpy(sampler->cpus.items, config->cpus->items, count * sizeof(int));
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&sampler->mutex, NULL);
    pthread_cond_init(&sampler->ended, &monotonic);
    sem_init(&sampler->watch_wake, 0, 0);
    pthread_condattr_destroy(&monotonic);
    outlet_init(&sampler->outlet, 8);
    sampler->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sampler->wall_offset_ns = parts->wall_offset_ns;
    return sampler;
}

int lab_sampler_open_parts(const struct sampler_parts *parts,
                           const struct lab_sampler_config *config,
                           struct lab_sampler **ret_sampler, struct lab_err *err) {
    if (check_interval(config->setup.interval_ns, err) < 0 || check_names(parts, config, err) < 0)
        return -1;
    struct lab_sampler *sampler = make_sampler(parts, config);
    int result = open_probes(sampler, parts, config, err);
    if (result == 0) {
        open_lanes(sampler);
        result = check_gpus(sampler, err);
    }
    if (result == 0) {
        for (int i = 0; i < sampler->lane_count; i++)
            if (sampler->lanes[i]->wanted) {
                lane_number_entities(sampler->lanes[i]);
                sampler->present++;
            }
        sampler->start_ns = lab_clock_now(sampler->clock);
        sampler->wall_checked_ns = sampler->start_ns;
        sampler->wall_last_ns = sampler->wall_offset_ns();
        result = start_threads(sampler, err);
    }
    if (result < 0)
        lab_sampler_close(sampler);
    else
        *ret_sampler = sampler;
    return result;
}

void sampler_release(struct lab_sampler *sampler) {
    if (atomic_fetch_sub(&sampler->references, 1) != 1)
        return;
    for (int i = 0; i < sampler->lane_count; i++) {
        lane_release(sampler->lanes[i]);
        lab_mem_free(sampler->lanes[i]);
    }
    lab_mem_free(sampler->lanes);
    for (int i = 0; i < sampler->probe_count; i++)
        lab_mem_free(sampler->probes[i].refusal);
    lab_mem_free(sampler->probes);
    lab_probe_board_close(sampler->board);
    outlet_release(&sampler->outlet);
    pthread_mutex_destroy(&sampler->mutex);
    pthread_cond_destroy(&sampler->ended);
    sem_destroy(&sampler->watch_wake);
    lab_arena_release(&sampler->arena);
    lab_mem_free(sampler);
}

/* Gives the threads a moment; one that is in the driver's hands is left there. */
static void wait_for_threads(struct lab_sampler *sampler) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + CLOSE_WAIT_NS;
    struct timespec until = {.tv_sec = until_ns / LAB_NS_PER_S, .tv_nsec = until_ns % LAB_NS_PER_S};
    int status = 0;
    while (sampler->threads > 0 && status == 0)
        status = pthread_cond_timedwait(&sampler->ended, &sampler->mutex, &until);
}

void lab_sampler_close(struct lab_sampler *sampler) {
    if (!sampler)
        return;
    for (int i = 0; i < sampler->lane_count; i++) {
        struct sampler_lane *lane = sampler->lanes[i];
        pthread_mutex_lock(&lane->outlet.mutex);
        lane->stop = true;
        pthread_mutex_unlock(&lane->outlet.mutex);
        sem_post(&lane->wake);
    }
    pthread_mutex_lock(&sampler->mutex);
    sampler->stop = true;
    sem_post(&sampler->watch_wake);
    wait_for_threads(sampler);
    if (sampler->event_fd >= 0)
        close(sampler->event_fd);
    sampler->event_fd = -1;
    pthread_mutex_unlock(&sampler->mutex);
    for (int i = 0; i < sampler->probe_count; i++)
        if (!sampler->probes[i].refusal)
            sampler_probe_release(&sampler->probes[i]);
    sampler_release(sampler);
}
