/* vendor/nvml_session.c: counts who is inside, and lets a restart happen when nobody is. */
#include "vendor/nvml_session.h"

#include "base/clock.h"
#include "base/cond.h"

#define ENTER_WAIT_NS   LAB_NS_PER_S
#define RESTART_WAIT_NS (100 * LAB_NS_PER_MS)
#define UNHOLD_WAIT_NS  LAB_NS_PER_S
#define PAUSE_MIN_NS    LAB_NS_PER_S
#define PAUSE_MAX_NS    (60 * LAB_NS_PER_S)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* of the monotonic clock */
    int inside;
    bool restarting, releasing;
    int64_t restarting_since_ns; /* of the system's clock */
    unsigned generation;
    lab_nvml_result result; /* of the last initialisation */
    int64_t next_ns;        /* no restart before; of the callers' clock */
    int64_t pause_ns;
    struct lab_nvml_holder *holders;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) {
    lab_cond_init(&session.changed);
}

static void lock(void) {
    pthread_once(&once, prepare);
    pthread_mutex_lock(&session.lock);
}

static void unlock(void) {
    pthread_mutex_unlock(&session.lock);
}

static int64_t now(void) {
    return lab_clock_now(lab_clock_system());
}

/* false = the time is over */
static bool wait_until(int64_t time_ns) {
    return lab_cond_wait_until(&session.changed, &session.lock, time_ns) == 0 || now() < time_ns;
}

void lab_nvml_hold(struct lab_nvml_holder *holder) {
    lock();
    holder->next = session.holders;
    session.holders = holder;
    unlock();
}

bool lab_nvml_unhold(struct lab_nvml_holder *holder) {
    lock();
    int64_t until_ns = now() + UNHOLD_WAIT_NS;
    while (session.releasing && wait_until(until_ns))
        ;
    bool free = !session.releasing;
    for (struct lab_nvml_holder **at = &session.holders; free && *at; at = &(*at)->next)
        if (*at == holder) {
            *at = holder->next;
            break;
        }
    unlock();
    return free;
}

int lab_nvml_enter(unsigned *ret_generation, struct lab_err *err) {
    const struct lab_nvml *nvml = lab_nvml_open(err);
    *ret_generation = 0;
    if (!nvml)
        return -1;
    lock();
    while (session.restarting && wait_until(session.restarting_since_ns + ENTER_WAIT_NS))
        ;
    bool restarting = session.restarting;
    lab_nvml_result result = session.result;
    *ret_generation = session.generation;
    if (!restarting && result == LAB_NVML_SUCCESS)
        session.inside++;
    unlock();
    if (restarting)
        return lab_err_set(err, LAB_ERR_SYSTEM, "NVML is restarting and takes long");
    if (result != LAB_NVML_SUCCESS)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s (nvmlInit: %d)", lab_nvml_words(nvml, result),
                           result);
    return 0;
}

void lab_nvml_leave(void) {
    lock();
    session.inside--;
    pthread_cond_broadcast(&session.changed);
    unlock();
}

/* When the next one may be. */
static void pace(int64_t now_ns, bool disturbs) {
    bool long_past = now_ns > session.next_ns + PAUSE_MAX_NS;
    int64_t pause_ns = !disturbs || !session.pause_ns || long_past ? PAUSE_MIN_NS
                       : session.pause_ns < PAUSE_MAX_NS / 2       ? 2 * session.pause_ns
                                                                   : PAUSE_MAX_NS;
    session.pause_ns = pause_ns;
    session.next_ns = now_ns + pause_ns;
}

/* Called with the lock held, which it gives up while the driver is called. */
static int restart(const struct lab_nvml *nvml, struct lab_err *err) {
    session.restarting = true;
    session.restarting_since_ns = now();
    while (session.inside && wait_until(session.restarting_since_ns + RESTART_WAIT_NS))
        ;
    if (session.inside) {
        session.restarting = false;
        pthread_cond_broadcast(&session.changed);
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "NVML can't restart while a call for another GPU hangs");
    }
    struct lab_nvml_holder *holders = session.holders;
    session.releasing = true;
    unlock();
    for (struct lab_nvml_holder *holder = holders; holder; holder = holder->next)
        holder->release(holder->state);
    lock();
    session.releasing = false;
    pthread_cond_broadcast(&session.changed);
    unlock();
    nvml->nvmlShutdown();
    lab_nvml_result result = nvml->nvmlInit_v2();
    lock();
    session.result = result;
    session.generation++;
    session.restarting = false;
    pthread_cond_broadcast(&session.changed);
    if (result == LAB_NVML_SUCCESS)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s (nvmlInit: %d)", lab_nvml_words(nvml, result),
                       result);
}

int lab_nvml_restart(unsigned generation, int64_t now_ns, bool disturbs, struct lab_err *err) {
    const struct lab_nvml *nvml = lab_nvml_open(NULL);
    int result = 0;
    if (!nvml || !nvml->nvmlShutdown)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "NVML can't restart");
    lock();
    if (session.restarting)
        result = lab_err_set(err, LAB_ERR_SYSTEM, "NVML is restarting");
    else if (generation != session.generation)
        result = 0; /* somebody did */
    else if (session.next_ns && now_ns < session.next_ns)
        result = lab_err_set(err, LAB_ERR_SYSTEM, "NVML has just restarted");
    else {
        pace(now_ns, disturbs && session.result == LAB_NVML_SUCCESS);
        result = restart(nvml, err);
    }
    unlock();
    return result;
}
