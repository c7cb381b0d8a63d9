/* cond.c: conditions of CLOCK_MONOTONIC. */
#include "base/cond.h"

#include "base/clock.h"

#include <time.h>

void lab_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int lab_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t time_ns) {
    struct timespec until = {.tv_sec = time_ns / LAB_NS_PER_S, .tv_nsec = time_ns % LAB_NS_PER_S};
    return pthread_cond_timedwait(cond, mutex, &until);
}
