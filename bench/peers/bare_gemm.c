/*
 * bare_gemm.c: what OpenBLAS does alone, on given CPUs: the peer of `gpulab bench gemm`.
 *
 *     bare_gemm M N K SECONDS CPU…        prints the median GFLOP/s
 *
 * A thread on each CPU multiplies its own slab of rows; an iteration ends when all have. It links
 * OpenBLAS and pthreads, and nothing of gpulab.
 */
#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_ITERATIONS 100000

static struct {
    int m, n, k, threads;
    float *a, *b, *c;
    pthread_barrier_t start, end;
    atomic_bool stop;
} job;

struct worker {
    pthread_t thread;
    int index, cpu;
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set))
        fprintf(stderr, "bare_gemm: can't use CPU %d\n", cpu);
}

/* c[m,n] = a[m,k]·b[n,k]ᵀ, rows of this worker */
static void multiply(int index) {
    int begin = (int)((long)job.m * index / job.threads);
    int end = (int)((long)job.m * (index + 1) / job.threads);
    if (begin < end)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, end - begin, job.n, job.k, 1.0f,
                    job.a + (long)begin * job.k, job.k, job.b, job.k, 0.0f,
                    job.c + (long)begin * job.n, job.n);
}

static void *work(void *argument) {
    struct worker *self = argument;
    pin(self->cpu);
    for (;;) {
        pthread_barrier_wait(&job.start);
        if (job.stop)
            return NULL;
        multiply(self->index);
        pthread_barrier_wait(&job.end);
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *random_matrix(long count) {
    float *x = malloc((size_t)count * sizeof *x);
    unsigned state = 1;
    for (long i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return x;
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: bare_gemm M N K SECONDS CPU...\n");
        return 2;
    }
    job.m = (int)strtol(argv[1], NULL, 10);
    job.n = (int)strtol(argv[2], NULL, 10);
    job.k = (int)strtol(argv[3], NULL, 10);
    double seconds = strtod(argv[4], NULL);
    job.threads = argc - 5;
    job.a = random_matrix((long)job.m * job.k);
    job.b = random_matrix((long)job.n * job.k);
    job.c = random_matrix((long)job.m * job.n);
    struct worker *workers = calloc((size_t)job.threads, sizeof *workers);
    double *times = malloc(MAX_ITERATIONS * sizeof *times);
    if (!job.a || !job.b || !job.c || !workers || !times)
        return 1;
    pthread_barrier_init(&job.start, NULL, (unsigned)job.threads);
    pthread_barrier_init(&job.end, NULL, (unsigned)job.threads);
    for (int i = 0; i < job.threads; i++)
        workers[i] = (struct worker){.index = i, .cpu = (int)strtol(argv[5 + i], NULL, 10)};
    for (int i = 1; i < job.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    pin(workers[0].cpu);

    int count = 0;
    double warm = now_s() + 0.2 * seconds, end = now_s() + seconds;
    while (now_s() < end && count < MAX_ITERATIONS) {
        double start = now_s();
        pthread_barrier_wait(&job.start);
        multiply(0);
        pthread_barrier_wait(&job.end);
        if (start > warm || count > 0)
            times[count++] = now_s() - start;
    }
    job.stop = true;
    pthread_barrier_wait(&job.start);
    for (int i = 1; i < job.threads; i++)
        pthread_join(workers[i].thread, NULL);
    if (!count)
        return 1;
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.3f\n", 2e-9 * job.m * job.n * (double)job.k / times[count / 2]);
    return 0;
}
