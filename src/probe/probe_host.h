/*
 * probe_host.h: what the probes of the host share: files under /proc and /sys that stay open,
 * numbers in them, the CPUs' times, and which CPU is on which NUMA node.
 *
 * Numbers in these files are taken as they are, never trusted: what is too large is the largest
 * there is, what is no number is missing.
 */
#pragma once

#include "probe/probe.h"

#include <stddef.h>
#include <sys/types.h>

/* --- files --- */

/* Below the setup's root; -1 with errno. */
int probe_file_open(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From its start, as much as fits, with a NUL behind it; -1 = it can't be read. One call: the
 * kernel gives these files whole. */
ssize_t probe_file_read(int fd, char *buffer, size_t size);

/* Opens, reads and closes. */
ssize_t probe_file_slurp(char *buffer, size_t size, const char *root, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- text --- */

/* Reads a number behind blanks and moves on; false = there is none. */
bool probe_text_number(const char **at, int64_t *ret_value);

/* Behind `key` at the start of a line; NULL = there is no such line. */
const char *probe_text_line(const char *text, const char *key);

/* Marks the CPUs of "0-3,8" in an array of `count`. */
void probe_text_cpus(const char *text, bool *marks, int count);

/* --- when: some things are read less often than others --- */

/*
 * Whether it is time; if so, the next time is a period from now. Half a tick early counts, so that
 * a period of whole ticks is kept. At an edge it is always time.
 */
bool probe_due(int64_t *next_ns, int64_t now_ns, int64_t period_ns,
               const struct lab_probe_setup *setup, enum lab_probe_when when);

/* --- a tick in the making --- */

struct probe_row {
    struct lab_column *columns;
    int64_t *values;
    uint64_t *valid;
    int count;
};

void probe_row_add(struct probe_row *row, enum lab_metric_id metric, int instance);
void probe_row_clear(struct probe_row *row);
void probe_row_set(struct probe_row *row, int column, int64_t value);
void probe_row_release(struct probe_row *row);

/* --- the CPUs' times, from /proc/stat; in clock ticks since the start of the machine --- */

struct probe_times {
    int64_t total, idle, iowait, system, steal;
};

struct probe_stat {
    int fd, count;
    int *numbers; /* the kernel's, ascending; as they were when it was opened */
    struct probe_times all, *each;
    bool *online; /* was in the last reading */
    char *text;
    size_t size;
};

#define PROBE_CPUS_MAX 1000

int probe_stat_open(struct probe_stat *stat, const char *root, struct lab_err *err);
void probe_stat_close(struct probe_stat *stat);
int probe_stat_read(struct probe_stat *stat, struct lab_err *err);

/* Busy time is what isn't idle or waiting for the disk, as others count it. */
int64_t probe_times_busy(const struct probe_times *times);

/* part / whole in hundredths of a percent, within 0 and 100 %. */
int64_t probe_share(int64_t part, int64_t whole);

/* --- NUMA nodes, from /sys --- */

#define PROBE_CPU_NUMBERS 8192 /* as many as Linux can have */
#define PROBE_NODES_MAX   128

struct probe_nodes {
    int numbers[PROBE_NODES_MAX]; /* ascending */
    int count;
    int16_t of_cpu[PROBE_CPU_NUMBERS]; /* a node's number; -1 = unknown */
    int cpu_limit;                     /* no CPU from this number on has a node */
};

/* Falls back to the machine's nodes; LAB_ERR_UNSUPPORTED where there is neither. */
int probe_nodes_read(struct probe_nodes *nodes, const struct lab_probe_setup *setup,
                     struct lab_err *err);
