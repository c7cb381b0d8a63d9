/*
 * cond.h: locks held to the end of a scope, and conditions whose waits go by the machine's own
 * clock (lab_clock_system), which no change of the wall clock moves.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

/* Holds the mutex to the end of the scope, on every way out of it. */
#define LAB_AUTO_LOCK(mutex)                                                                       \
    __attribute__((cleanup(lab_lock_release))) pthread_mutex_t *lab_locked = (mutex);              \
    pthread_mutex_lock(lab_locked)

static inline void lab_lock_release(pthread_mutex_t **locked) {
    pthread_mutex_unlock(*locked);
}

void lab_cond_init(pthread_cond_t *cond);

/* As pthread_cond_timedwait: 0 or ETIMEDOUT. */
int lab_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t time_ns);
