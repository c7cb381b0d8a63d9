/* clock.c: monotonic and wall time, sleeping, and clocks that tests advance. */
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * LAB_NS_PER_S + now.tv_nsec;
}

static int64_t system_now(const struct lab_clock *clock) {
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

static void system_sleep_until(const struct lab_clock *clock, int64_t time_ns) {
    (void)clock;
    struct timespec until = {.tv_sec = time_ns / LAB_NS_PER_S, .tv_nsec = time_ns % LAB_NS_PER_S};
    if (time_ns <= 0)
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

const struct lab_clock *lab_clock_system(void) {
    static const struct lab_clock clock = {system_now, system_sleep_until, NULL};
    return &clock;
}

static int64_t manual_now(const struct lab_clock *clock) {
    return *(const int64_t *)clock->state;
}

static void manual_sleep_until(const struct lab_clock *clock, int64_t time_ns) {
    int64_t *now = clock->state;
    if (time_ns > *now)
        *now = time_ns;
}

struct lab_clock lab_clock_manual(int64_t *time_ns) {
    return (struct lab_clock){manual_now, manual_sleep_until, time_ns};
}

int64_t lab_clock_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t lab_clock_thread_ns(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
