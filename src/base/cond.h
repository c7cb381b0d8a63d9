/*
 * cond.h: conditions whose waits go by the machine's own clock (lab_clock_system), which no change
 * of the wall clock moves.
 */
#ifndef LAB_BASE_COND_H
#define LAB_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

void lab_cond_init(pthread_cond_t *cond);

/* As pthread_cond_timedwait: 0 or ETIMEDOUT. */
int lab_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t time_ns);

#endif
