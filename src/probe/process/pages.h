/*
 * pages.h: on which NUMA nodes a process's memory lies, from /proc/PID/numa_maps.
 *
 * The kernel walks all pages of the process for it: seconds for one with hundreds of gigabytes. So
 * it is read in pieces, as far as the time allows that all processes share: a hundredth of it, or
 * less where a probe is to spare the machine.
 */
#pragma once

#include "model/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pages {
    int fd;          /* -1 = no reading is under way */
    int64_t due_ns;  /* when the next may begin */
    int64_t *bytes;  /* by index into the machine's nodes, from the last whole reading; or NULL */
    int64_t *so_far; /* of the one under way */
    char *rest;      /* a line's beginning */
    size_t rest_length;
};

struct pages_budget {
    int64_t left_ns, at_ns;
    int share; /* one of so many seconds; 0 = 100 */
};

void pages_init(struct pages *pages);
void pages_release(struct pages *pages);

void pages_budget_refill(struct pages_budget *budget, int64_t now_ns);

/* Goes on reading, or begins if it is time; false = the budget is spent. */
bool pages_read(struct pages *pages, const char *root, int32_t pid,
                const struct lab_machine *machine, int64_t now_ns, struct pages_budget *budget);
