/*
 * bare_memcpy.c: libc's memcpy in a loop on given CPUs: the peer of `gpulab bench memcpy`.
 *
 *     bare_memcpy BYTES SECONDS CPU…      prints the median GB/s of all threads together
 *
 * A thread on each CPU copies between two touched buffers of its own; an iteration is one copy by
 * each and ends when all are done, as an iteration of ours does. Links nothing of gpulab.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_ITERATIONS 100000

struct worker {
    pthread_t thread;
    int cpu;
    char *from, *to;
};

static size_t size_bytes;
static pthread_barrier_t start, end;
static bool stop; /* written between the barriers only */

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static char *touched(int value) {
    char *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("bare_memcpy: memory");
    madvise(memory, size_bytes, MADV_HUGEPAGE);
    return memset(memory, value, size_bytes);
}

static void settle(struct worker *self) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self->cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("bare_memcpy: can't use the CPU");
    self->from = touched(1);
    self->to = touched(2);
}

static void copy(const struct worker *self) {
    memcpy(self->to, self->from, size_bytes);
    __asm__ volatile("" : : "r"(self->to) : "memory");
}

static void *work(void *argument) {
    struct worker *self = argument;
    settle(self);
    for (;;) {
        pthread_barrier_wait(&start);
        if (stop)
            return NULL;
        copy(self);
        pthread_barrier_wait(&end);
    }
}

/* The first worker's part: all iterations' times, those of the warm-up left out. */
static int measure(const struct worker *self, double seconds, double *times) {
    int count = 0;
    double warm = now_s() + 0.2 * seconds, last = now_s() + seconds;
    while ((now_s() < last || count == 0) && count < MAX_ITERATIONS) {
        double begin = now_s();
        pthread_barrier_wait(&start);
        copy(self);
        pthread_barrier_wait(&end);
        if (begin > warm)
            times[count++] = now_s() - begin;
    }
    stop = true;
    pthread_barrier_wait(&start);
    return count;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: bare_memcpy BYTES SECONDS CPU...\n");
        return 2;
    }
    size_bytes = strtoull(argv[1], NULL, 10);
    double seconds = strtod(argv[2], NULL);
    int threads = argc - 3;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    double *times = malloc(MAX_ITERATIONS * sizeof *times);
    if (!workers || !times)
        fail("bare_memcpy");
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    pthread_barrier_init(&end, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i].cpu = (int)strtol(argv[3 + i], NULL, 10);
        if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            fail("bare_memcpy: thread");
    }
    settle(&workers[0]);
    /* once all have settled */
    pthread_barrier_wait(&start);
    copy(&workers[0]);
    pthread_barrier_wait(&end);
    int count = measure(&workers[0], seconds, times);
    for (int i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.3f\n", 1e-9 * (double)size_bytes * threads / times[count / 2]);
    return 0;
}
