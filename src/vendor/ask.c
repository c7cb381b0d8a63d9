/* vendor/ask.c: the thread that asks, and how long it is waited for. */
#include "vendor/ask.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define LIMIT_S   120.0
#define WARN_NS   (5 * LAB_NS_PER_S)
#define LIMIT_ENV "GPULAB_DRIVER_LIMIT"

struct ask {
    void (*question)(void *state);
    void *state;
    _Atomic(const char *) calling;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
};

static _Thread_local struct ask *asking; /* by this thread */
static _Atomic(struct ask *) unanswered; /* one that was waited for in vain */

void lab_ask_calling(const char *function) {
    if (asking)
        atomic_store(&asking->calling, function);
}

static void *run(void *opaque) {
    struct ask *ask = asking = opaque;
    ask->question(ask->state);
    LAB_AUTO_LOCK(&ask->lock);
    ask->over = true;
    pthread_cond_signal(&ask->ended);
    return NULL;
}

static bool start(struct ask *ask, pthread_t *ret_thread) {
    sigset_t all, before;
    sigfillset(&all); /* signals are for the thread that waits */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(ret_thread, NULL, run, ask) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Until the thread has given its own memory back: a program that ends before would leak it. Not for
 * ever, since the driver may have something to do at a thread's end. */
static void await_end(pthread_t thread) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_timedjoin_np(thread, NULL, &until) != 0)
        pthread_detach(thread);
}

static double limit(void) {
    const char *text = getenv(LIMIT_ENV);
    double limit_s = text ? strtod(text, NULL) : 0;
    return limit_s > 0 && limit_s < 1e6 ? limit_s : LIMIT_S;
}

static bool is_over(struct ask *ask) {
    LAB_AUTO_LOCK(&ask->lock);
    return ask->over;
}

static bool wait_until(struct ask *ask, int64_t time_ns) {
    LAB_AUTO_LOCK(&ask->lock);
    while (!ask->over && lab_cond_wait_until(&ask->ended, &ask->lock, time_ns) == 0)
        ;
    return ask->over;
}

static int fail(struct ask *ask, double waited_s, struct lab_err *err) {
    return lab_err_set(
        err, LAB_ERR_SYSTEM,
        "the NVIDIA driver hangs: %s has not returned for %g s (see dmesg; " LIMIT_ENV
        "=SECONDS waits longer)",
        atomic_load(&ask->calling), waited_s);
}

int lab_ask(void (*question)(void *state), void *state, struct lab_err *err) {
    struct ask *earlier = atomic_load(&unanswered);
    double limit_s = limit();
    if (earlier && !is_over(earlier))
        return fail(earlier, limit_s, err);
    int64_t start_ns = lab_clock_now(lab_clock_system());
    int64_t until_ns = start_ns + (int64_t)(limit_s * (double)LAB_NS_PER_S);
    struct ask *ask = lab_mem_alloc(1, sizeof *ask);
    *ask = (struct ask){.question = question, .state = state};
    atomic_store(&ask->calling, "the library's start");
    pthread_mutex_init(&ask->lock, NULL);
    lab_cond_init(&ask->ended);
    pthread_t thread = 0;
    bool started = start(ask, &thread);
    if (!started) {
        question(state);
        ask->over = true;
    }
    if (start_ns + WARN_NS < until_ns && !wait_until(ask, start_ns + WARN_NS))
        lab_log(LAB_LOG_WARNING, "waiting for the NVIDIA driver: %s has not returned",
                atomic_load(&ask->calling));
    if (!wait_until(ask, until_ns)) {
        struct lab_err first = LAB_ERR_INIT;
        fail(ask, limit_s, &first);
        lab_log(LAB_LOG_WARNING, "%s", first.text); /* also where others answer in its stead */
        atomic_store(&unanswered, ask);
        pthread_detach(thread);
        return fail(ask, limit_s, err);
    }
    if (started)
        await_end(thread);
    pthread_cond_destroy(&ask->ended);
    pthread_mutex_destroy(&ask->lock);
    lab_mem_free(ask);
    return 0;
}
