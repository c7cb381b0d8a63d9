/*
 * contention.h: what phases do to kernels, what of the devices' resources is left in each, and what
 * was chosen under load costs. For contention.c alone.
 *
 * All figures are paired by block: a phase's run of a kernel on a device against the baseline's in
 * the same repeat, which ran close to it. A block's difference is the mean over what is put
 * together, of logarithms; blocks are the replicates, and intervals are Student's over them.
 */
#ifndef LAB_ANALYSIS_CONTENTION_CONTENTION_H
#define LAB_ANALYSIS_CONTENTION_CONTENTION_H

#include "analysis/variance/phases.h"

/* --- effects --- */

struct contention_effect {
    double ratio, low, high; /* NaN = unknown */
    double p;
    double confidence; /* of low and high */
    int blocks;        /* that had both sides */
    bool within;       /* from one run each: the interval is from within them */
    bool more, less; /* than 1, for certain, and enough to matter; all effects of a kind together */
};

#define CONTENTION_BLOCKS_MAX 256

struct contention_sum { /* differences by block, as they are gathered */
    double sum[CONTENTION_BLOCKS_MAX];
    int count[CONTENTION_BLOCKS_MAX];
};

/* An interval whose ends lie this far apart, as a ratio, says nothing: it isn't shown. */
#define CONTENTION_UNEVEN 4
/* What is known to differ by no more is the same; where it may differ by more, it isn't known to
 * be. */
#define CONTENTION_SAME         0.05
#define CONTENTION_BLOCKS_LEAST 5  /* that are asked for, where more would tell */
#define CONTENTION_BLOCKS_MOST  60 /* likewise: beyond that a quieter machine does better */
bool contention_is_same(const struct contention_effect *effect);
/*
 * How many blocks would tell whether it is the same, if they differ as much as those at hand; 0 =
 * more than anybody would run.
 */
int contention_blocks_needed(const struct contention_effect *effect);

void contention_add(struct contention_sum *sum, int block, double difference);
struct contention_effect contention_estimate(const struct contention_sum *sum);
/* Sets `more` and `less`: at 5 % over all of them, and at least `least` away from 1. */
void contention_judge(struct contention_effect *effects, int count, double least);

/* --- what the study says of a phase --- */

struct contention_phase {
    const char *name;
    bool base, together;
    bool copies;         /* some kernel of it copies to or from the host */
    const char *apart;   /* "process, numa"; "" = nothing */
    const char *disturb; /* "" = none */
    int ranks;           /* most devices at once */
};

/* --- resources --- */

enum {
    CONTENTION_COMPUTE, /* time on cores or multiprocessors, clocks taken out */
    CONTENTION_MEMORY,  /* bandwidth, beyond what compute alone explains */
    CONTENTION_PCIE,
    CONTENTION_CLOCK, /* power or heat */
    CONTENTION_RESOURCES
};

struct contention_power { /* means of what was read behind the probes; NaN = unknown */
    double drawn_w, limit_w;
};

#define CONTENTION_AT_LIMIT                                                                        \
    0.9 /* of the limit, as it swings: then power is what holds clocks back */

/* A share that is lost of what is but the likeliest cause of a slow-down that is certain; and as
 * much may be lost of a resource that is none. */
#define CONTENTION_LIKELY 0.05

/* --- all of it --- */

struct contention_kernel { /* kernels of all devices of one name */
    const char *name;
    struct contention_effect *times; /* by phase; the base's is unknown */
};

struct contention_regret {         /* what a phase chose, on the idle device */
    struct contention_effect cost; /* of all kernels and devices, those that chose the same as 1 */
    int tunings, other; /* choices, and those that differ from the idle one of the same block */
};

struct contention {
    const struct lab_study_table *study;
    struct lab_phases phases;
    struct contention_phase *list; /* as phases.names */
    struct contention_kernel *kernels;
    int kernel_count;
    struct contention_effect *overall;                      /* by phase: all kernels and devices */
    struct contention_effect (*left)[CONTENTION_RESOURCES]; /* by phase: of each resource */
    struct contention_power *power;                         /* by phase, the base's too */
    struct contention_regret *regrets;                      /* by phase */
    int own_pairs,
        own_other;     /* tunings of the baseline against each other, and those that differ */
    int *order, shown; /* phases but the base, the main one first; how many */
    int main;          /* the phase that the answer is about; -1 = none */
    bool cpus;         /* the devices are */
    struct lab_arena *arena;
};

void contention_make(const struct lab_study_table *study, const struct lab_analysis_input *input,
                     struct lab_arena *arena, struct contention *ret);

/*
 * Where least is left for certain, halfway between the estimate and the nearer end of its interval,
 * so that what merely varies much doesn't come first; -1 = nowhere is less. Devices that run at
 * once also probe at once, so that PCIe is shared by the probes at least: it counts only if kernels
 * copy. Where a kernel is slowed for certain and nothing is less for certain, the one of which
 * least is left, if 5 % or more is gone; or the only one that may be less at all, if that is
 * likelier than not.
 */
int contention_first_resource(const struct contention *made, int phase);
/* Whether a loss of it would count in this phase: PCIe doesn't always, as above. */
bool contention_counts(const struct contention *made, int phase, int resource);
/* Whether some kernel is slowed, or less is left of something, in the phases that the answer is
 * about. */
enum lab_analysis_finding contention_finding(const struct contention *made);
/* Whether every kernel that the main phase has is known in this one, so that they can be
 * compared. */
bool contention_covers(const struct contention *made, int phase);
/* The phase that leaves least of the main one's slow-down, and less for certain; -1 = none does. */
int contention_best_mitigation(const struct contention *made);

/* Where there is something to draw. */
void contention_add_chart(struct lab_analysis_result *result, const struct contention *made);

/* --- words --- */

/* "memory bandwidth"; for programs "membw", as experiment.disturb has it. */
const char *contention_resource_title(const struct contention *made, int resource);
const char *contention_resource_key(const struct contention *made, int resource);
const char *contention_answer(const struct contention *made);
const char *contention_recommendation(const struct contention *made);
/* "18 % [15, 21]" of an effect that is there. */
const char *contention_percent(const struct contention_effect *effect, struct lab_arena *arena);

#endif
