/*
 * analysis_resource.h: what a run's recording tells beside its iterations. A resource is a gauge,
 * the rate of a counter, or a reason that held clocks back; in windows of time each has one value,
 * and the iterations of the same window have a mean time and a spread. Whether these go together is
 * what `correlate` and `variance` ask.
 *
 * Iterations last microseconds, samples are 100 ms apart: iterations are put together by the
 * windows between a resource's own readings. A resource that changes once a second or less has
 * windows of a second, however often it was read. Where an iteration is longer than a window, it is
 * the window.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "model/claim.h"
#include "stats/stats.h"

enum lab_resource_role {
    LAB_RESOURCE_OUTSIDE, /* of the host or another GPU: what it does may be why */
    LAB_RESOURCE_STATE, /* of the GPU itself, that its work doesn't set: clocks, other processes */
    /* what the GPU, or another of the same run, does: it follows from the iterations' pace */
    LAB_RESOURCE_OWN,
};

struct lab_resource {
    enum lab_entity_kind kind;
    int index; /* of a GPU; else 0 */
    enum lab_metric_id metric;
    int instance; /* a core's, node's number; -1 = none */
    uint64_t bit; /* of a FLAGS metric, one resource for each; 0 otherwise */
};

/* "utilisation of CPU 3", "power draw of GPU 0", "clock limit of GPU 1 by power limit" */
const char *lab_resource_title(const struct lab_resource *resource, struct lab_arena *arena);
/* For programs: "core_utilization:3", "gpu0.power" */
const char *lab_resource_key(const struct lab_resource *resource, struct lab_arena *arena);
/* "%", "W"; of a counter by the second: "B/s" */
const char *lab_resource_unit(const struct lab_resource *resource, struct lab_arena *arena);
/* `gpu`: that the iterations ran on, -1 = none. */
enum lab_resource_role lab_resource_role(const struct lab_resource *resource, int gpu);
bool lab_resource_is_cpu(const struct lab_resource *resource);  /* how busy CPUs are */
bool lab_resource_is_pcie(const struct lab_resource *resource); /* traffic on PCIe */

/* The GPU in recordings that a rank ran on, as entities count; -1 = none. */
int lab_resource_gpu(const struct lab_study_rank *rank);
/* The gpu_ids of all ranks, ascending, at most so many; returns how many. */
int lab_resource_devices(const struct lab_study_run *const *runs, int run_count, int *ret_ids,
                         int most);

/* --- iterations of one device --- */

struct lab_rank_time { /* of one rank of one run */
    const struct lab_study_run *run;
    const struct lab_study_rank *rank;
    int point;                    /* equal: repeats of each other */
    const struct lab_span *spans; /* between ends of neighbours */
    size_t count;
    double mean_s;       /* of these */
    double *sums;        /* count + 1: of the differences from the mean, from the first on */
    double *squares;     /* likewise, squared */
    int64_t *middles_ns; /* of the times: beside each other, since every resource searches them */
    double point_s;      /* mean of all runs of the point */
    int64_t from_ns, until_ns;
};

struct lab_rank_times {
    struct lab_rank_time *items;
    int count, point_count;
    int gpu_id;
    int gpu; /* in recordings; -1 = none */
    const char *device;
    int without_iterations, without_samples; /* ranks of this device that are left out */
};

/* Of all ranks with this gpu_id in the runs given, in their order. */
void lab_rank_times_make(const struct lab_study_run *const *runs, int run_count, int gpu_id,
                         struct lab_arena *arena, struct lab_rank_times *ret_rank_times);

/* --- windows --- */

struct lab_windows {
    size_t count, capacity;
    double *x;       /* the resource */
    double *time;    /* mean time of an iteration, over that of its point */
    double *spread;  /* standard deviation likewise; NaN = too few iterations */
    int *rank_time;  /* which it belongs to */
    double length_s; /* of the longest that was asked for */
};

void lab_windows_init(struct lab_windows *windows);
void lab_windows_release(struct lab_windows *windows);

/* `least_ns`: no window is shorter (0 = as the readings come). The values are as they were, not yet
 * centred. False: the resource was never read beside iterations. */
bool lab_windows_fill(struct lab_windows *windows, const struct lab_rank_times *rank_times,
                      const struct lab_resource *resource, int64_t least_ns);
/* Takes the mean over each point's windows off x, and puts spreads over that of their point, so
 * that points that differ don't count as going together. False: nothing is left, the resource is
 * constant. */
bool lab_windows_centre(struct lab_windows *windows, const struct lab_rank_times *rank_times);

/* --- ties --- */

/* A cause that explains less than a tenth of what varies isn't worth a name: with a thousand
 * windows what merely has the same rhythm reaches ρ = 0.2. */
#define LAB_TIE_LEAST 0.3

enum lab_resource_correlation_figure { LAB_TIE_TIME, LAB_TIE_SPREAD, LAB_TIE_FIGURES };

struct lab_resource_correlation { /* a resource and a figure of the iterations */
    struct lab_resource resource;
    enum lab_resource_role role;
    enum lab_resource_correlation_figure figure;
    size_t windows;
    double effective; /* windows that are worth an independent one, of the ranks */
    struct lab_correlation spearman, pearson;
    double p_adjusted; /* Spearman's, over all possible causes, or over all that are none */
    bool found;        /* it is at most 5 %, and of a possible cause ρ is LAB_TIE_LEAST or more */
    double window_s;
};

struct lab_spikes { /* of a resource, as events */
    struct lab_resource resource;
    int events;
    double rise; /* mean time during one over that just before it, − 1 */
    struct lab_interval interval;
    double p, p_adjusted;
    bool found;
};

struct lab_resource_correlations { /* of one device */
    struct lab_rank_times rank_times;
    struct lab_resource_correlation *items;
    int count;
    struct lab_spikes *spikes; /* resources with too few events have none */
    int spike_count;
    int resource_count; /* that were sampled */
    int constant_count; /* of these, left out since they never changed */
    int short_count;    /* left out since there were too few windows */
    size_t windows;     /* the most that a resource had */
    double window_s;    /* the shortest */
    bool merged;        /* windows are longer than readings are apart, since there are too many */
};

/* Everything that the recordings of these runs hold, against the iterations of one device.
 * `budget`: values in all, beyond which windows are merged; 0 = as many as can be done in a
 * second. */
void lab_resource_correlations_make(const struct lab_study_run *const *runs, int run_count,
                                    int gpu_id, size_t budget, struct lab_arena *arena,
                                    struct lab_resource_correlations *ret_ties);

/* Sets p_adjusted and found: Benjamini and Hochberg over all possible causes with the spikes, and
 * by itself over all else. */
void lab_resource_correlations_adjust(struct lab_resource_correlations *correlations, int count);

/* Whether the device's pace can follow from it, as far as the sign tells: others are busier, clocks
 * are lower, it is hotter. */
bool lab_resource_correlation_is_suspect(const struct lab_resource_correlation *correlation);

/* --- claims; who asks sets kind and, but for spikes, the verdict --- */

/* "GPU 1, utilisation of CPU 3": Spearman's ρ. */
struct lab_claim lab_claim_of_correlation(const struct lab_resource_correlations *of,
                                          const struct lab_resource_correlation *correlation,
                                          struct lab_arena *arena);
/* What iterations take longer during them: there for certain. */
struct lab_claim lab_claim_of_spikes(const struct lab_resource_correlations *of,
                                     const struct lab_spikes *spikes, struct lab_arena *arena);
/* The weakest correlation that would have been found in four of five cases, among so many tested
 * over so many effective windows; 1 = none would. By Fisher's z. */
double lab_correlation_detectable(double effective, int tested);
