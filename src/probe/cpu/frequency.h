/*
 * frequency.h: how fast each CPU runs now: from cpufreq where there is one, else from
 * /proc/cpuinfo, as in most virtual machines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum frequency_source { FREQUENCY_NONE, FREQUENCY_CPUFREQ, FREQUENCY_CPUINFO };

struct frequency {
    enum frequency_source source;
    int64_t *mhz; /* by index into the CPUs; 0 = unknown */
    bool *fresh;  /* in the last reading */
    int next;     /* whose turn it is */
};

void frequency_open(struct frequency *frequency, const char *root, const int *cpus, int count);
void frequency_close(struct frequency *frequency);

/* Asking a CPU may wake it, so of very many only some are asked each time, in turn. */
void frequency_read(struct frequency *frequency, const char *root, const int *cpus, int count);
