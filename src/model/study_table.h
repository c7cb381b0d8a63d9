/*
 * study_table.h: a study as load reads it and analyses see it: the runs that are done, with what
 * they were asked for, what came out, and, where it was asked for, every iteration and every
 * sample.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "model/curve.h"
#include "model/iteration.h"
#include "model/machine.h"
#include "model/recording.h"
#include "model/result.h"
#include "model/run.h"
#include "model/trace.h"

enum { /* what is read of a study beside its runs */
       LAB_STUDY_WITH_ITERATIONS = 1,
       LAB_STUDY_WITH_SAMPLES = 2,
       LAB_STUDY_WITH_TRACES = 4,
       LAB_STUDY_WITH_FILES =
           8, /* takes tuners' files of timings, and recordings laid beside, too */
       LAB_STUDY_WITH_CONFIGURATIONS =
           16,                     /* of these files each configuration, not the best alone */
       LAB_STUDY_WITH_CURVES = 32, /* metrics with their points */
};

/* The one device that all runs of a spread study count as: each ran on one chosen by chance. */
#define LAB_STUDY_ANY_GPU    "any GPU"
#define LAB_STUDY_ANY_DEVICE "any device"

struct lab_study_rank {
    int gpu_id;         /* position in the study's list of devices */
    const char *device; /* "cuda:1": counted among those that were visible to the study. Of a spread
                           study, whose devices are no factor, LAB_STUDY_ANY_… and no node */
    const char *placed; /* where it ran, of a spread study too; NULL = at `device` */
    int gpu;            /* its GPU's number in PCI order, among all of the machine; -1 = none */
    const char *uuid;   /* "GPU-…", "MIG-…"; of a slice, its GPU's; NULL = unknown */
    int numa_node;      /* that fed it: the kernel's number */
    int device_node;    /* that it sits on; -1 = unknown */
    int distance;       /* the kernel's, from numa_node to device_node: 10 = local, 0 = unknown */
    double rate;        /* samples a second; NaN = none */
    const struct lab_iteration
        *iterations; /* measured ones, in order; NULL = not asked for, or none */
    size_t iteration_count;
    bool apart; /* iterations don't follow each other: each takes from its own start to its end */
};

struct lab_study_kernel { /* launches that are alike */
    double flops, bytes;  /* of one */
    int count;            /* in an iteration */
};

struct lab_study_work { /* of one iteration of one rank, counted from the definition; 0 = none */
    double flops, memory_bytes; /* on the device */
    double h2d_bytes, d2h_bytes;
    double samples;
    double parameters;                      /* of the model; 0 = it has none */
    double layers;                          /* that have them; 0 = unknown */
    const struct lab_study_kernel *kernels; /* all of its launches; none = it computes nothing */
    int kernel_count;
};

struct lab_study_metric { /* what a program of the user's said last of one thing */
    const char *name, *unit;
    int rank; /* -1 = of the whole run */
    double value;
    struct lab_curve curve; /* of all of its values; its points only where they are asked for */
};

struct lab_study_run {
    const struct lab_run *run;
    const struct lab_value *options, *test; /* maps */
    const struct lab_result *result;        /* what came out; never NULL */
    const char *model;                      /* the workload's label: "vit32x6x512" */
    const char *point; /* the run's id without its repeat; runs of one point repeat each other */
    const char *phase; /* of a study with phases ("baseline"); "" = it has none */
    struct lab_study_rank *ranks;
    int rank_count;
    struct lab_study_work work;
    double rate;   /* of all ranks together, samples (or iterations) a second */
    double time_s; /* of an iteration, median over the run, of the slowest rank; NaN = unknown */
    bool used;     /* counts: it is valid, or no run of the study is */
    const struct lab_recording *recording; /* samples of its time; NULL = not asked for, or none */
    const struct lab_trace *trace;         /* of its first rank; NULL likewise */
    const struct lab_study_metric
        *metrics; /* of programs and trainings of a matrix, in the order of their first */
    int metric_count;
};

struct lab_study_table {
    const char *name;                  /* "numa_study"; unique in the input */
    const char *label;                 /* that it was given, which keeps it apart; NULL = none */
    const char *folder;                /* where it lies */
    const char *folder_name;           /* "numa_locality_study": experiment.name; NULL = unknown */
    const char *option;                /* "numa_study"; "" = files of timings, no study */
    const char *const *answers;        /* analyses that its report opens with, as its config has
                                          them; NULL-terminated, NULL = it has none */
    const char *objective;             /* "val_loss", "reward:max": what its settings are chosen by;
                                          NULL = as the metrics' names suggest */
    const struct lab_value *matrix;    /* of programs, as its config has it: a map of lists and
                                          values; NULL = none */
    const char *gpu_mode;              /* "auto", as its config has it; NULL = it has none */
    const struct lab_machine *machine; /* where it ran; NULL = unknown */
    uint64_t machine_identity;         /* the same on that machine alone; 0 = unknown */
    struct lab_study_run *runs;        /* those that are done, in the order in which they began */
    int run_count;
    int planned_count, failed_count; /* of all runs */
    bool gangs_planned;              /* some run, done or not, has several devices */
    bool repeats_planned;            /* some run, done or not, repeats another */
    struct lab_study_run *failed;    /* what these were to run, no values; NULL = unknown */
    int invalid_count;               /* done, but not valid */
    bool all_invalid;                /* so that they are used nevertheless: say so in a note */
    bool simulated;
    bool repeated;            /* some point has more than one run that is used */
    const char *const *notes; /* of the reader; NULL-terminated, NULL = none */
    /* The work of something that wasn't run: of this workload with these keys (a map), all others
     * at their defaults; its kernels lie in the arena. NULL = unknown. */
    int (*work_of)(const char *workload, const struct lab_value *options, struct lab_arena *arena,
                   struct lab_study_work *ret_work, struct lab_err *err);
    /* The study to run so that this analysis has an answer: "numa_study" for "numa". NULL = nobody
     * can tell; it may answer NULL, too. */
    const char *(*study_for)(const char *analysis, struct lab_arena *arena);
};
