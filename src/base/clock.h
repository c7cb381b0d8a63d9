/*
 * clock.h: time as an interface, so that a simulated machine or a test can bring its own.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC (or of a clock that behaves like it): they never
 * jump, and only differences mean anything. Wall time is read once per recording and stored beside
 * it.
 */
#pragma once

#include <stdint.h>

#define LAB_NS_PER_S  1000000000LL
#define LAB_NS_PER_MS 1000000LL
#define LAB_NS_PER_US 1000LL

struct lab_clock {
    int64_t (*now)(const struct lab_clock *clock);
    void (*sleep_until)(const struct lab_clock *clock,
                        int64_t time_ns); /* past times return at once */
    void *state;
};

/* The machine's own clock; never NULL, never freed. */
const struct lab_clock *lab_clock_system(void);

/* A clock that stands still until told: now = *time_ns, sleeping sets *time_ns. For tests. */
struct lab_clock lab_clock_manual(int64_t *time_ns);

static inline int64_t lab_clock_now(const struct lab_clock *clock) {
    return clock->now(clock);
}

static inline void lab_clock_sleep(const struct lab_clock *clock, int64_t duration_ns) {
    clock->sleep_until(clock, clock->now(clock) + duration_ns);
}

/* Nanoseconds since 1970, for anchoring a recording; may jump. */
int64_t lab_clock_wall_ns(void);

/* CPU time of the calling thread. */
int64_t lab_clock_thread_ns(void);
