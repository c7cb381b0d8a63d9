/*
 * probe_sampler_open.c: opens a probe in a thread of its own. A driver's start may hang as any other call
 * may; then its probe is given up, and the rest goes on. Meanwhile the caller can be interrupted: the
 * thread, and all that the driver starts in it, get no signals.
 *
 * A start that comes back after all finds nobody waiting, and closes the probe again.
 */
#include "probe/probe_sampler.h"

#include <signal.h>

struct opening {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* of the monotonic clock */
    bool done, given_up;
    struct lab_sampler *sampler; /* a reference: the setup is in there */
    const struct lab_probe *probe;
    int result;
    void *state;
    struct lab_err err;
};

static struct opening *make_opening(struct lab_sampler *sampler, const struct lab_probe *probe) {
    struct opening *opening = lab_mem_alloc(1, sizeof *opening);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&opening->mutex, NULL);
    pthread_cond_init(&opening->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    opening->sampler = sampler;
    opening->probe = probe;
    return opening;
}

static void free_opening(struct opening *opening) {
    pthread_mutex_destroy(&opening->mutex);
    pthread_cond_destroy(&opening->changed);
    lab_mem_free(opening);
}

static void *open_main(void *argument) {
    struct opening *opening = argument;
    struct lab_sampler *sampler = opening->sampler;
    pthread_setname_np(pthread_self(), "lab-open");
    int result = opening->probe->open(&sampler->setup, &opening->state, &opening->err);
    pthread_mutex_lock(&opening->mutex);
    opening->result = result;
    opening->done = true;
    bool given_up = opening->given_up;
    pthread_cond_signal(&opening->changed);
    pthread_mutex_unlock(&opening->mutex); /* unless given up, it is gone from here on */
    if (given_up && result == 0)
        opening->probe->close(opening->state);
    if (given_up)
        free_opening(opening);
    sampler_release(sampler);
    return NULL;
}

static int start(struct opening *opening) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    atomic_fetch_add(&opening->sampler->references, 1);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&thread, &attributes, open_main, opening);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (why != 0)
        atomic_fetch_sub(&opening->sampler->references, 1);
    return why;
}

/* Whether it came to an end in time; if not, it belongs to its thread. */
static bool await(struct opening *opening, int64_t patience_ns) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + patience_ns;
    struct timespec until = {.tv_sec = until_ns / LAB_NS_PER_S, .tv_nsec = until_ns % LAB_NS_PER_S};
    int status = 0;
    pthread_mutex_lock(&opening->mutex);
    while (!opening->done && status == 0)
        status = pthread_cond_timedwait(&opening->changed, &opening->mutex, &until);
    bool done = opening->done;
    opening->given_up = !done;
    pthread_mutex_unlock(&opening->mutex);
    return done;
}

int sampler_open_probe(struct lab_sampler *sampler, struct sampler_probe *probe,
                       int64_t patience_ns, struct lab_err *err) {
    struct opening *opening = make_opening(sampler, probe->probe);
    int why = start(opening);
    if (why != 0) {
        free_opening(opening);
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "its start needs a thread");
    }
    if (!await(opening, patience_ns))
        return lab_err_set(err, LAB_ERR_SYSTEM, "its start hangs: no answer for %.3g s",
                           (double)patience_ns / 1e9);
    int result = opening->result;
    probe->state = opening->state;
    if (result < 0 && err)
        *err = opening->err;
    free_opening(opening);
    return result;
}
