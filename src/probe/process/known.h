/*
 * known.h: the processes that were seen before: a share of CPU time is a difference, and what
 * rarely changes (command line, container, user) isn't read each time.
 */
#pragma once

#include "probe/probe_host.h"
#include "probe/process/pages.h"

#define NAME_BYTES 64

struct known {
    struct known *next;           /* in its bucket */
    struct lab_process_sample is; /* as it is told; command and container are its own */
    char name[NAME_BYTES];
    bool kernel;       /* a kernel thread: has no memory, and is never listed */
    bool missing;      /* not in /proc: of another name space, or it ended */
    int64_t cpu_ticks; /* at `read_ns` */
    int64_t read_ns;   /* 0 = never */
    int64_t queue_ns;  /* that its first thread has waited for a CPU */
    int64_t ran_ns;    /* that it has run */
    int64_t queued_ns; /* when that was read; 0 = never */
    int processor;
    unsigned round; /* of the list it was in last */

    int64_t details_ns; /* when the rest is due */
    bool described;
    struct pages pages;
};

struct known_table {
    struct known **buckets;
    int count;
};

void known_init(struct known_table *table);
void known_release(struct known_table *table);
struct known *known_find(struct known_table *table, int32_t pid); /* made if it is new */
void known_forget(struct known_table *table, unsigned round);     /* those of other rounds */

/* Reads /proc/PID/stat; one that is gone is `missing`. */
void known_read(struct known *known, const char *root, int64_t now_ns);

/* Reads /proc/PID/schedstat: which share of its wish to run it waited since the last time. */
void known_read_queue(struct known *known, const char *root, int64_t now_ns);
