/*
 * causes.c: what singles a unit out by itself. Each is compared with the median of its peers, so
 * that what most of them share is nobody's cause.
 */
#include "analysis/straggler/straggler.h"

#include "stats/stats.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MOSTLY      0.5  /* of the time */
#define SELDOM      0.1  /* likewise, of its peers */
#define ALWAYS      0.8  /* of the lists */
#define CLOCK_LOWER 0.02 /* healthy GPUs differ by 1% */
#define QUEUE_MORE  0.1  /* of the time that it could run */
#define AWAKE       0.9  /* of the time: it never sleeps, so that it isn't the one that waits */
#define SLEEPS      0.8  /* at most this of it: its peers do */
#define CPU_MORE    0.05 /* than its peers: it isn't kept from running more than they are */
#define LINK_USED   0.01 /* of what the link could carry */

/* The median of a member of all other units; NaN = none is known. */
static double peers_of(const struct lab_straggler_units *units, int unit, size_t offset) {
    LAB_AUTO_FREE double *values = lab_mem_alloc((size_t)units->count, sizeof *values);
    size_t count = 0;
    for (int i = 0; i < units->count; i++) {
        double value;
        memcpy(&value, (const char *)&units->items[i] + offset, sizeof value);
        if (i != unit && !isnan(value))
            values[count++] = value;
    }
    return lab_stats_median(values, count);
}
#define PEERS(units, unit, member)                                                                 \
    peers_of((units), (unit), offsetof(struct lab_straggler_unit, member))

static void add_throttling(const struct lab_straggler_units *units, int unit,
                           const char *const **causes, struct lab_arena *arena) {
    const struct lab_straggler_unit *own = &units->items[unit];
    double clock = PEERS(units, unit, mean[LAB_STRAGGLER_CLOCK]);
    bool follows = own->reason && own->reason->bit == 0x10; /* sync boost: others hold it back */
    if (own->reason && !follows && own->throttled >= MOSTLY &&
        PEERS(units, unit, throttled) <= SELDOM &&
        own->mean[LAB_STRAGGLER_CLOCK] <= (1 - CLOCK_LOWER) * clock)
        lab_analysis_note(causes, arena, "%s, clock %.0f MHz (peers %.0f MHz)", own->reason->words,
                          own->mean[LAB_STRAGGLER_CLOCK], clock);
}

/* Bytes a second of a link in one direction: lanes times PCI-SIG's rate of its generation. */
static double link_rate(double generation, double width) {
    static const double lane_gb_s[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563, 15.125};
    if (!(generation >= 1 && generation <= 7) || !(width >= 1))
        return NAN;
    return 1e9 * lane_gb_s[(int)generation] * width;
}

static void add_link(const struct lab_straggler_units *units, int unit, const char *const **causes,
                     const char *const **notes, struct lab_arena *arena) {
    const struct lab_straggler_unit *own = &units->items[unit];
    double generation = PEERS(units, unit, pcie_generation);
    double width = PEERS(units, unit, pcie_width);
    double rate = link_rate(own->pcie_generation, own->pcie_width);
    if (!(rate < link_rate(generation, width)))
        return;
    /* one that sleeps shows a lower generation, never fewer lanes: where the traffic is unknown,
     * lanes alone count */
    bool used =
        isnan(own->pcie_rate) ? own->pcie_width < width : own->pcie_rate >= LINK_USED * rate;
    lab_analysis_note(used ? causes : notes, arena, "PCIe %.0f.0 x%.0f link (peers %.0f.0 x%.0f)%s",
                      own->pcie_generation, own->pcie_width, generation, width,
                      used ? "" : ", which the job hardly uses");
}

/* It waits for others where it sleeps, and may do so where it spins. Processes on GPUs spin while
 * these work; of ranks without GPUs its peers have to sleep meanwhile. */
static void add_queue(const struct lab_straggler_units *units, int unit, const char *const **causes,
                      const char *const **notes, struct lab_arena *arena) {
    const struct lab_straggler_unit *own = &units->items[unit];
    double queue = PEERS(units, unit, queue), cpu = PEERS(units, unit, mean[LAB_STRAGGLER_CPU]);
    if (!(own->queue >= queue + QUEUE_MORE) || own->mean[LAB_STRAGGLER_CPU] > (1 + CPU_MORE) * cpu)
        return;
    bool awake = own->active >= AWAKE;
    bool late = awake && (own->track || PEERS(units, unit, active) <= SLEEPS);
    lab_analysis_note(late ? causes : notes, arena,
                      "its process waits for a CPU %.0f%% of its active time (peers %.0f%%)%s",
                      100 * own->queue, 100 * queue,
                      late    ? ""
                      : awake ? ", as it may in a loop that waits for its peers"
                              : ", but sleeps at times");
}

static void add_host(const struct lab_straggler_units *units, int unit, const char *const **causes,
                     struct lab_arena *arena) {
    const struct lab_straggler_unit *own = &units->items[unit];
    if (own->remote >= ALWAYS && PEERS(units, unit, remote) <= 1 - ALWAYS) {
        if (own->cpu_node >= 0 && own->gpu_node >= 0 && own->cpu_node != own->gpu_node)
            lab_analysis_note(causes, arena,
                              "its process is on NUMA node %d, its GPU on NUMA node %d",
                              own->cpu_node, own->gpu_node);
        else
            lab_analysis_note(causes, arena, "its process's memory is on a remote NUMA node");
    }
    if (own->shared_by >= MOSTLY && PEERS(units, unit, shared_by) <= SELDOM)
        lab_analysis_note(causes, arena, "process %d of another job uses its GPU",
                          (int)own->stranger);
}

const char *const *lab_straggler_causes(const struct lab_straggler_units *units, int unit,
                                        const char *const **ret_notes, struct lab_arena *arena) {
    const char *const *causes = NULL;
    *ret_notes = NULL;
    add_throttling(units, unit, &causes, arena);
    add_link(units, unit, &causes, ret_notes, arena);
    add_queue(units, unit, &causes, ret_notes, arena);
    add_host(units, unit, &causes, arena);
    return causes;
}
