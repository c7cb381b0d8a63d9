/*
 * counter.c: waiting for a number to grow. Ops last from ten microseconds to milliseconds, so who
 * waits looks for a while before it sleeps; and who adds looks whether anyone sleeps before it
 * makes a system call.
 *
 * No wake-up is lost: the sleeper writes wake_at and then reads value, the adder writes value and
 * then reads wake_at, all sequentially consistent, so at least one of them sees the other; and the
 * sleeper holds the lock from writing wake_at until it sleeps.
 */
#include "base/clock.h"
#include "device/cpu/cpu.h"

void cpu_counter_init(struct cpu_counter *counter) {
    atomic_init(&counter->value, 0);
    atomic_init(&counter->wake_at, UINT64_MAX);
    pthread_mutex_init(&counter->lock, NULL);
    pthread_cond_init(&counter->moved, NULL);
}

void cpu_counter_release(struct cpu_counter *counter) {
    pthread_cond_destroy(&counter->moved);
    pthread_mutex_destroy(&counter->lock);
}

void cpu_counter_add(struct cpu_counter *counter, uint64_t amount) {
    uint64_t value = atomic_fetch_add(&counter->value, amount) + amount;
    if (value < atomic_load(&counter->wake_at))
        return;
    LAB_AUTO_LOCK(&counter->lock);
    atomic_store(&counter->wake_at, UINT64_MAX); /* those not yet served write it again */
    pthread_cond_broadcast(&counter->moved);
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool look_for(struct cpu_counter *counter, uint64_t target, int64_t spin_ns) {
    if (cpu_counter_value(counter) >= target)
        return true;
    if (spin_ns <= 0)
        return false;
    const struct lab_clock *clock = lab_clock_system();
    for (int64_t end_ns = lab_clock_now(clock) + spin_ns; lab_clock_now(clock) < end_ns;)
        for (int i = 0; i < 16; i++) {
            if (cpu_counter_value(counter) >= target)
                return true;
            relax();
        }
    return false;
}

void cpu_counter_wait(struct cpu_counter *counter, uint64_t target, int64_t spin_ns) {
    if (look_for(counter, target, spin_ns))
        return;
    LAB_AUTO_LOCK(&counter->lock);
    for (;;) {
        if (atomic_load(&counter->wake_at) > target)
            atomic_store(&counter->wake_at, target);
        if (atomic_load(&counter->value) >= target)
            break;
        pthread_cond_wait(&counter->moved, &counter->lock);
    }
}
