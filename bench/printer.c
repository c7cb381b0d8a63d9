/*
 * printer.c: a program that prints a line with a metric after each piece of work, and writes how
 * long all of it took to a file: what reading its output costs it shows there. The third figure is
 * the time that it was blocked: neither on a CPU nor waiting for one.
 *
 *   bench_printer LINES WORK FILE      WORK: multiplications before each line
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* On a CPU or ready for one, since it began. */
static double runnable_seconds(void) {
    long long on_cpu = 0, ready = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (!file || fscanf(file, "%lld %lld", &on_cpu, &ready) != 2)
        exit(1);
    fclose(file);
    return 1e-9 * (double)(on_cpu + ready);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: bench_printer LINES WORK FILE\n");
        return 2;
    }
    long lines = strtol(argv[1], NULL, 10), work = strtol(argv[2], NULL, 10);
    double runnable = runnable_seconds();
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    volatile double x = 1;
    for (long i = 0; i < lines; i++) {
        for (long k = 0; k < work; k++)
            x = x * 1.0000001;
        printf("step %ld loss %.4f\n", i, 3 + 1.0 / (double)(i + 1));
    }
    fflush(stdout);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    runnable = runnable_seconds() - runnable;
    FILE *file = fopen(argv[3], "w");
    if (!file)
        return 1;
    fprintf(file, "%.6f %.6f %.6f\n", wall, cpu, wall > runnable ? wall - runnable : 0);
    return fclose(file) ? 1 : 0;
}
