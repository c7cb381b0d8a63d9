/*
 * machine.c: a library for LD_PRELOAD that shows the program another machine. tests/faults/faults.py
 * and tests/power/power.py use it.
 *
 *     GPULAB_TEST_MACHINE=FILE   a struct machine: time runs faster, the wall clock jumps, the machine
 *                                was suspended, the fake driver fails. It may change at any time.
 *     GPULAB_TEST_LOCAL=1        every file system counts as a local disk (ext4)
 *
 * Waits are as much shorter as time is faster. Clocks of CPU time are the system's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NS     ((int64_t)1000000000)

/* Monotonic time is base + (now - base) * scale + shift; wall time adds its own. */
struct machine {
    _Atomic int64_t scale, base_ns, shift_ns, wall_ns;
    char fails[256]; /* FAKE_CUDA_FAIL, as it is just now */
};

static struct machine *machine;

#define NEXT(name)                                                                                 \
    static __typeof__(&(name)) next;                                                               \
    if (!next)                                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("GPULAB_TEST_MACHINE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct machine), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory != MAP_FAILED)
        machine = memory;
}

static int64_t to_ns(const struct timespec *time) {
    return time->tv_sec * NS + time->tv_nsec;
}

static struct timespec to_timespec(int64_t time_ns) {
    return (struct timespec){.tv_sec = time_ns / NS, .tv_nsec = time_ns % NS};
}

/* --- clocks --- */

static int64_t real_now(void) {
    static int (*next)(clockid_t, struct timespec *);
    struct timespec now;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    next(CLOCK_MONOTONIC, &now);
    return to_ns(&now);
}

static int64_t shown_now(void) {
    return machine->base_ns + (real_now() - machine->base_ns) * machine->scale + machine->shift_ns;
}

static int64_t to_real(int64_t shown_ns) {
    return machine->base_ns + (shown_ns - machine->shift_ns - machine->base_ns) / machine->scale;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret_time) {
    NEXT(clock_gettime);
    bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!machine || !(wall || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
                      clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC_RAW))
        return next(clock, ret_time);
    *ret_time = to_timespec(shown_now() + (wall ? machine->wall_ns : 0));
    return 0;
}

EXPORT time_t time(time_t *ret_time) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}

EXPORT int gettimeofday(struct timeval *restrict ret_time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

/* --- waits --- */

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                           struct timespec *left) {
    NEXT(clock_nanosleep);
    if (!machine || clock != CLOCK_MONOTONIC)
        return next(clock, flags, wanted, left);
    int64_t until_ns = to_ns(wanted) + (flags & TIMER_ABSTIME ? 0 : shown_now());
    while (shown_now() < until_ns) { /* a suspension may have come between */
        struct timespec until = to_timespec(to_real(until_ns) + 1);
        int result = next(clock, TIMER_ABSTIME, &until, NULL);
        if (result)
            return result;
    }
    return 0;
}

EXPORT int nanosleep(const struct timespec *wanted, struct timespec *left) {
    NEXT(nanosleep);
    if (!machine)
        return next(wanted, left);
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, NULL);
    if (left)
        *left = (struct timespec){0};
    return errno ? -1 : 0;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until) {
    static __typeof__(&pthread_cond_timedwait) next;
    if (!next) /* without a version it may be that of LinuxThreads */
        *(void **)&next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!machine)
        return next(cond, mutex, until);
    struct timespec real = to_timespec(to_real(to_ns(until)) + 1);
    int result = next(cond, mutex, &real);
    return result == ETIMEDOUT && shown_now() < to_ns(until) ? 0 : result;
}

/* A futex may wait until a time. */
EXPORT long syscall(long number, ...) {
    NEXT(syscall);
    long words[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    struct timespec until;
    if (machine && number == SYS_futex && words[1] == FUTEX_WAIT_BITSET_PRIVATE && words[3]) {
        until = to_timespec(to_real(to_ns((const struct timespec *)words[3])) + 1);
        words[3] = (long)&until;
    }
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *wait,
                 const sigset_t *signals) {
    NEXT(ppoll);
    struct timespec shorter = {0};
    if (machine && wait)
        shorter = to_timespec(to_ns(wait) / machine->scale);
    return next(fds, count, machine && wait ? &shorter : wait, signals);
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int wait_ms) {
    struct timespec wait = to_timespec(wait_ms * (NS / 1000));
    return ppoll(fds, count, wait_ms < 0 ? NULL : &wait, NULL);
}

/* --- the driver and the disk --- */

EXPORT char *getenv(const char *name) {
    NEXT(getenv);
    return machine && strcmp(name, "FAKE_CUDA_FAIL") == 0 ? machine->fails : next(name);
}

EXPORT int statfs(const char *path, struct statfs *ret_info) {
    NEXT(statfs);
    int result = next(path, ret_info);
    if (result == 0 && getenv("GPULAB_TEST_LOCAL"))
        ret_info->f_type = 0xef53;
    return result;
}
