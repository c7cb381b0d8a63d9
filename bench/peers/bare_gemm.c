/*
 * bare_gemm.c: what OpenBLAS does alone, on given CPUs: the peer of `gpulab bench gemm`.
 *
 *     bare_gemm M N K SECONDS CPU…        prints the median GFLOP/s
 *
 * A process on each CPU multiplies its own slab of rows; an iteration ends when all have.
 * Processes, since Debian's serial OpenBLAS must not be called from several processes at once. It
 * links OpenBLAS and nothing of gpulab.
 */
#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ITERATIONS 100000

static struct job { /* shared by all processes */
    int m, n, k, processes;
    float *a, *b, *c;
    pthread_barrier_t start, end;
    volatile bool stop; /* written between the barriers only */
} * job;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        fprintf(stderr, "bare_gemm: can't use CPU %d\n", cpu);
        exit(1);
    }
}

/* c[m,n] = a[m,k]·b[n,k]ᵀ, rows of this worker */
static void multiply(int index) {
    int begin = (int)((long)job->m * index / job->processes);
    int end = (int)((long)job->m * (index + 1) / job->processes);
    if (begin < end)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, end - begin, job->n, job->k, 1.0f,
                    job->a + (long)begin * job->k, job->k, job->b, job->k, 0.0f,
                    job->c + (long)begin * job->n, job->n);
}

static _Noreturn void work(int index, int cpu) {
    pin(cpu);
    for (;;) {
        pthread_barrier_wait(&job->start);
        if (job->stop)
            _exit(0);
        multiply(index);
        pthread_barrier_wait(&job->end);
    }
}

static void *shared(size_t size_bytes) {
    void *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    perror("bare_gemm");
    exit(1);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *random_matrix(long count) {
    float *x = shared((size_t)count * sizeof *x);
    unsigned state = 1;
    for (long i = 0; i < count; i++) {
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
    job = shared(sizeof *job);
    job->m = (int)strtol(argv[1], NULL, 10);
    job->n = (int)strtol(argv[2], NULL, 10);
    job->k = (int)strtol(argv[3], NULL, 10);
    double seconds = strtod(argv[4], NULL);
    job->processes = argc - 5;
    job->a = random_matrix((long)job->m * job->k);
    job->b = random_matrix((long)job->n * job->k);
    job->c = random_matrix((long)job->m * job->n);
    double *times = malloc(MAX_ITERATIONS * sizeof *times);
    if (!times)
        return 1;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&job->start, &attributes, (unsigned)job->processes);
    pthread_barrier_init(&job->end, &attributes, (unsigned)job->processes);
    for (int i = 0; i < job->processes; i++) /* a child that fails would leave the rest waiting */
        pin((int)strtol(argv[5 + i], NULL, 10));
    for (int i = 1; i < job->processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            work(i, (int)strtol(argv[5 + i], NULL, 10));
    }
    pin((int)strtol(argv[5], NULL, 10));

    int count = 0;
    double warm = now_s() + 0.2 * seconds, end = now_s() + seconds;
    while ((now_s() < end || count == 0) && count < MAX_ITERATIONS) {
        double start = now_s();
        pthread_barrier_wait(&job->start);
        multiply(0);
        pthread_barrier_wait(&job->end);
        if (start > warm || count > 0)
            times[count++] = now_s() - start;
    }
    job->stop = true;
    pthread_barrier_wait(&job->start);
    while (wait(NULL) > 0)
        continue;
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.3f\n", 2e-9 * job->m * job->n * (double)job->k / times[count / 2]);
    return 0;
}
