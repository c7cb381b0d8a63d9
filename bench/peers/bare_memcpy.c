/*
 * bare_memcpy.c: libc's memcpy in a loop on given CPUs: the peer of `gpulab bench memcpy`.
 *
 *     bare_memcpy BYTES SECONDS CPU…      prints the median GB/s of all threads together
 *
 * A thread on each CPU copies between two touched buffers of its own. Links nothing of gpulab.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_ITERATIONS 100000

struct worker {
    pthread_t thread;
    int cpu;
    double median_s;
};

static size_t size_bytes;
static double seconds;
static pthread_barrier_t start;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static char *touched(int value) {
    char *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, size_bytes, MADV_HUGEPAGE);
    return memset(memory, value, size_bytes);
}

static void *work(void *argument) {
    struct worker *self = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self->cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    char *from = touched(1), *to = touched(2);
    double *times = malloc(MAX_ITERATIONS * sizeof *times);
    pthread_barrier_wait(&start);
    if (!from || !to || !times)
        return NULL;
    int count = 0;
    double warm = now_s() + 0.2 * seconds, end = now_s() + seconds;
    while (now_s() < end && count < MAX_ITERATIONS) {
        double begin = now_s();
        memcpy(to, from, size_bytes);
        __asm__ volatile("" : : "r"(to) : "memory");
        if (begin > warm)
            times[count++] = now_s() - begin;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    self->median_s = count ? times[count / 2] : 0;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: bare_memcpy BYTES SECONDS CPU...\n");
        return 2;
    }
    size_bytes = strtoull(argv[1], NULL, 10);
    seconds = strtod(argv[2], NULL);
    int threads = argc - 3;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!workers)
        return 1;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i].cpu = (int)strtol(argv[3 + i], NULL, 10);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    }
    double rate = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].median_s <= 0)
            return 1;
        rate += 1e-9 * (double)size_bytes / workers[i].median_s;
    }
    printf("%.3f\n", rate);
    return 0;
}
