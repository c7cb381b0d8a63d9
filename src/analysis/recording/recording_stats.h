/*
 * recording_stats.h: what a recording tells of its GPUs, worked out once for all analyses that ask:
 * means, deviations and peaks, energy, throttled time, and what is missing. Gaps are never filled:
 * a figure is over what is there, and how much isn't stands beside it.
 */
#pragma once

#include "analysis/analysis_build.h"

#define LAB_RECORDING_STATS_IDLE 5.0 /* % of utilisation, mean over the recording */

enum lab_recording_stats_metric {
    LAB_RECORDING_STATS_MEMORY,      /* MiB */
    LAB_RECORDING_STATS_UTILIZATION, /* % */
    LAB_RECORDING_STATS_POWER,       /* W */
    LAB_RECORDING_STATS_TEMPERATURE, /* °C */
    LAB_RECORDING_STATS_CLOCK,       /* MHz */
    LAB_RECORDING_STATS_METRICS
};

struct lab_recording_stats_kind {
    const char *key, *title; /* "utilization", "Utilisation" */
    const char *noun;        /* within a sentence: "utilisation" */
    const char *unit;        /* as people read it: "MiB" */
    const char *key_unit;    /* as programs do: "mib" */
    bool adds_up;            /* all GPUs together have the sum; of the others, the mean */
};

extern const struct lab_recording_stats_kind lab_recording_stats_kinds[LAB_RECORDING_STATS_METRICS];

struct lab_recording_stats_figures { /* of one metric over time */
    size_t count;                    /* of values */
    double mean, deviation, peak;    /* NaN = no value; deviation: of a sample, n − 1 */
};

struct lab_recording_stats_gpu {
    const struct lab_track *track;
    const char *name; /* "GPU 0" */
    struct lab_recording_stats_figures figures[LAB_RECORDING_STATS_METRICS];
    double capacity_mib;    /* NaN = unknown */
    double energy_j;        /* NaN = unknown */
    bool energy_integrated; /* from its power, where there is no counter */
    double throttled_s;     /* NaN = unknown */
    uint64_t reasons;       /* that held it back at any time; see lab_clock_reasons */
    bool unused;            /* did nothing while others did: not graded */
    double missing_s;       /* that it gave nothing for, while others or it did before and after */
    int gap_count;
};

struct lab_recording_stats {
    const struct lab_labelled_recording *source;
    int64_t start_ns, end_ns; /* first and last tick of anything */
    double duration_s;
    struct lab_recording_stats_gpu *gpus; /* by index */
    int gpu_count;
    int used_count;             /* of those, less the unused */
    bool idle;                  /* no GPU was used above LAB_RECORDING_STATS_IDLE */
    int mig_count;              /* instances; they aren't among the GPUs */
    double cpu_percent;         /* mean of the CPUs; NaN = not recorded */
    double host_peak_mib;       /* NaN = not recorded */
    double peak_total_mib;      /* most memory that all GPUs had at one time; NaN = unknown */
    const char *const *missing; /* what the recording says is missing; may be NULL */
};

/* Options that all analyses of recordings have. */
struct lab_recording_stats_config {
    struct lab_option_ints gpus; /* only these; none = all */
};
#define LAB_RECORDING_STATS_OPTIONS(config)                                                        \
    {                                                                                              \
        "gpus", LAB_OPTION_INTS, offsetof(struct config, stats.gpus),                              \
            .max = 4096, .help = "only these GPUs, by their index; all by default"                 \
    }

/* Index of a column that was read, or -1. */
int lab_recording_stats_column(const struct lab_track *track, enum lab_metric_id metric);

/* Fills in all of a GPU whose track is set; the recording's span has to be known. */
void lab_recording_stats_gpu_describe(struct lab_recording_stats_gpu *gpu,
                                      const struct lab_recording_stats *stats,
                                      struct lab_arena *arena);

/* All of the input, recordings without a GPU too. LAB_ERR_USER where there is nothing. */
int lab_recording_stats_make_all(const struct lab_analysis_input *input,
                                 const struct lab_recording_stats_config *config,
                                 struct lab_arena *arena,
                                 struct lab_recording_stats **ret_all_stats, struct lab_err *err);
/* Likewise, but also LAB_ERR_USER where no recording has a GPU, or none has a value of one. */
int lab_recording_stats_all(const struct lab_analysis_input *input,
                            const struct lab_recording_stats_config *config,
                            struct lab_arena *arena, struct lab_recording_stats **ret_all_stats,
                            struct lab_err *err);

/* A metric of one GPU: its values, without those that aren't there; both arrays have room for
 * track->count. Returns how many. */
size_t lab_recording_stats_read(const struct lab_recording_stats_gpu *gpu,
                                enum lab_recording_stats_metric metric, double *ret_values,
                                int64_t *ret_times_ns);

/* Means of equal stretches of the recording's time: rows × GPUs, NaN where nothing is. */
double *lab_recording_stats_grid(const struct lab_recording_stats *stats,
                                 enum lab_recording_stats_metric metric, int rows,
                                 struct lab_arena *arena);
/* So many rows that each has a tick of each GPU, and no more than the arithmetic needs. */
int lab_recording_stats_rows(const struct lab_recording_stats *stats);

/* Of all GPUs together: Σ or mean of their means; NaN = none has any. */
double lab_recording_stats_together(const struct lab_recording_stats *stats,
                                    enum lab_recording_stats_metric metric);

/* Of how many GPUs it is known. */
int lab_recording_stats_known(const struct lab_recording_stats *stats,
                              enum lab_recording_stats_metric metric);

/* Σ over the GPUs; NaN where none is known. */
double lab_recording_stats_energy(const struct lab_recording_stats *stats, bool *ret_integrated);

/* Population standard deviation over mean of what is there; NaN with fewer than two, or a mean of
 * 0. */
double lab_recording_stats_cv(const double *values, int count);
double lab_recording_stats_cv_of(const struct lab_recording_stats *stats,
                                 enum lab_recording_stats_metric metric); /* means of used GPUs */
/* "excellent", "good", "fair", "poor"; NULL without a CV. */
const char *lab_recording_stats_grade(double cv);

/* A rate for people, with its unit, and the unit for programs: none without a rate. */
void lab_recording_stats_set_rate(double rate, const char *unit, struct lab_doc_cell *ret_rate,
                                  struct lab_doc_cell *ret_unit);

/* --- labels --- */

struct lab_recording_stats_label { /* recordings that belong together, in the input's order */
    const char *name;
    const struct lab_recording_stats **all_stats;
    int count;
};
/* In the order of their first recording. Returns how many. */
int lab_recording_stats_labels(const struct lab_recording_stats *all_stats, int count,
                               struct lab_arena *arena,
                               struct lab_recording_stats_label **ret_labels);

/* Indices of the GPUs that any of its recordings has, ascending; returns how many. */
#define LAB_RECORDING_STATS_GPUS_MAX 1024
int lab_recording_stats_label_gpus(const struct lab_recording_stats_label *label,
                                   int ret_indices[LAB_RECORDING_STATS_GPUS_MAX]);

/* --- two labels --- */

/* The second label against the first, over recordings. Kind and verdict are the caller's. */
struct lab_claim lab_recording_stats_compare(const struct lab_recording_stats_label *first,
                                             const struct lab_recording_stats_label *second,
                                             enum lab_recording_stats_metric metric, int gpu,
                                             const char *kind, struct lab_arena *arena);

/* --- words --- */

/* Whether a GPU has any of the values above. */
bool lab_recording_stats_has_values(const struct lab_recording_stats *stats);
/* What else is known of its GPUs: "sm_clock and processes"; "nothing". */
const char *lab_recording_stats_others(const struct lab_recording_stats *stats,
                                       struct lab_arena *arena);

/* "4 × NVIDIA A10G, 10.0 min"; of several recordings, their time together. */
const char *lab_recording_stats_about(const struct lab_recording_stats *const *all_stats, int count,
                                      struct lab_arena *arena);
/*
 * What to know before the figures of these recordings are used: gaps, MIG, what a damaged file
 * lacks, energy that isn't a counter's. Appends to a list that ends with NULL, or is NULL.
 */
void lab_recording_stats_add_notes(const struct lab_recording_stats *const *all_stats, int count,
                                   const char *const **notes, struct lab_arena *arena);
