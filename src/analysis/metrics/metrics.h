/*
 * metrics.h: programs of the user's own, by setting: what its parts share. A setting is a point of
 * the matrix: its runs repeat each other.
 */
#pragma once

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "model/claim.h"
#include "model/metric_name.h"
#include "model/reported_metric.h"
#include "stats/stats.h"

/* --- settings --- */

struct metrics_setting {
    const struct lab_study_table *study;
    struct lab_study_point point;
    int planned;      /* its runs, with those that failed or are invalid */
    bool copied;      /* its repeats, two or more, report the same in all that has a direction */
    const char *name; /* by what varies: "adam", "lr=0.03, optimizer=adam, GPU 1" */
    const struct lab_settings *names; /* of all, by key; this one's at that place */
    int place;
};

struct metrics_settings {
    struct metrics_setting *items; /* in the matrix's order, study by study */
    int count;
    const struct lab_study_table *studies;
    int study_count;
    bool several;     /* were planned, whether they have runs or not */
    bool at_end;      /* asked for: settings are compared at their ends */
    bool of_workload; /* of gpulab's, which reports no metrics */
    bool of_gpu;      /* some GPU's memory is known: memory is GPUs', else the program's */
    int again;        /* runs of pooled studies that repeat another's value for value: left out */
    struct metrics_failed {
        const char *name; /* of the setting */
        int runs, of;
    } * failed; /* settings with failed runs */
    int failed_count;
};

/* Whether the run is a point of a matrix over a workload of gpulab's. */
bool metrics_is_of_workload(const struct lab_study_table *study, const struct lab_study_run *run);

/* Names are distinct: by their study, too, where several have the same. */
struct metrics_settings metrics_settings_make(const struct lab_analysis_input *input,
                                              struct lab_arena *arena);

/* --- metrics --- */

struct metrics_value { /* of one setting */
    const struct metrics_setting *setting;
    const char *name;         /* the setting's */
    struct lab_doc_cell cell; /* mean over its runs, with its interval */
    const char *text;         /* the same for people */
    const char *at_text;      /* at the step that settings are compared at; NULL = at their ends */
    double value;             /* the mean that they are ordered by */
    struct lab_doc_cell best; /* mean of its runs' best values; NaN = no direction is better */
    double best_step;         /* the median of where these were */
    const char *best_text;    /* "0.52 (40)": with that step */
    /* for programs: the median of last values with its interval, and of the memory */
    double last, low, high, memory_mib;
    int runs;                /* that have a value */
    int diverged;            /* 1: half of its runs or more did, and the others aren't typical */
    struct lab_claim change; /* "metrics.setting": against the first setting */
    struct lab_claim worse;  /* "metrics.worse": against the best value */
};

struct metrics_metric {
    const char *name, *unit;
    enum lab_direction better;
    bool rate;                    /* a value is the median of the run, not the last one */
    bool own;                     /* the rate that gpulab measured itself */
    bool differs;                 /* some value is 0 or below: differences instead of ratios */
    struct metrics_value *values; /* of settings that have one, the best first */
    int count;
    int drawn;                      /* with those behind them that diverged in all runs */
    int compared;                   /* of them, before those that diverged; all where all did */
    double at;                      /* the step that they are compared at; NaN = at their ends */
    const char *ends_by;            /* why, where these differ: ", which max_iters sets" */
    const char *quantity;           /* that is compared: "loss", "loss at step 100" */
    int reported, reported_by;      /* runs and settings that reported it, finite or not */
    int lost;                       /* runs whose last value isn't finite */
    double start;                   /* mean first value over settings; NaN = unknown */
    const char *best;               /* certainly better than every other; NULL = none is */
    struct lab_claim lead;          /* "metrics.best": the best value against the next */
    bool by_key;                    /* it is asked which keys of the matrix matter to it */
    struct metrics_keys *keys;      /* NULL = settings are no crossing, or decide nothing */
    struct metrics_metric *classes; /* by model, of a workload whose samples differ in work */
    int class_count;                /* 0 = they don't */
};

/* Of one run: the last value, of all ranks that reported it the mean. Of a rate the median, of
 * these ranks the slowest's; of tokens per second the run's own. NaN = none, or not finite. */
double metrics_run_value(const struct lab_study_run *run, const struct metrics_metric *metric);

/* The same at the step that settings are compared at; of a run that ended before, its last. */
double metrics_compared_value(const struct lab_study_run *run, const struct metrics_metric *metric);
/* The best value of the run, of all ranks the mean; `ret_step`: where the first rank has it. NaN =
 * unknown: of a rate, or where no direction is better. */
double metrics_run_best(const struct lab_study_run *run, const struct metrics_metric *metric,
                        double *ret_step);
/* The same of a setting: mean, step and words. */
void metrics_describe_best(const struct metrics_setting *setting,
                           const struct metrics_metric *metric, struct metrics_value *made,
                           struct lab_arena *arena);
/* Sets where they are compared; `at_end`: at their ends, whichever these are. */
void metrics_align(struct metrics_metric *metric, bool at_end, struct lab_arena *arena);

/* Which metric settings are to be chosen by. `asked` is its name, "name:max" or "name:min".
 * NULL = that which differs, a reward before all else, then which most settings and runs reported,
 * then by its name; "loss" before "final_loss" where it has a curve. -1 = none. */
int metrics_objective(struct metrics_metric *metrics, int count,
                      const struct metrics_settings *settings, const char *asked);
int metrics_refuse_objective(const struct metrics_metric *metrics, int count, const char *asked,
                             struct lab_err *err);
/* Which one was taken, and how to take another; nothing where there is no other. */
void metrics_note_objective(struct lab_analysis_result *result,
                            const struct metrics_metric *metrics, int count, int objective,
                            const struct metrics_settings *settings, struct lab_arena *arena);

/* --- comparisons --- */

struct metrics_figure { /* of a run, that settings are compared by */
    double (*value)(const struct lab_study_run *run, const void *context);
    const void *context;
    const char *name;
    const char *difference; /* of claim.h */
    bool rate;              /* copies of a run have their own */
    /* of differences between settings of a study, in a block; {0} = unknown */
    struct lab_variance_prior prior;
    double prior_most; /* degrees of freedom of all of them */
};

struct metrics_figure metrics_figure_of(const struct metrics_metric *metric);
struct lab_claim metrics_contrast(const struct metrics_setting *base,
                                  const struct metrics_setting *other,
                                  const struct metrics_figure *figure, const char *kind,
                                  struct lab_arena *arena);
/* Settings with each other; their values are in the planned order before, the best first after. */
void metrics_compare(struct metrics_metric *metric, struct lab_arena *arena);
/* The same within each model, where the work of a sample differs; false = it doesn't. */
bool metrics_compare_classes(struct metrics_metric *metric, struct lab_arena *arena);
/* --- keys --- */

struct metrics_level {       /* a value of a key */
    const char *name;        /* "lr=0.1"; of keys that move together "depth=2, width=64" */
    const char *text;        /* "0.1" */
    double mean;             /* over its settings, as they are compared */
    struct lab_claim change; /* "metrics.key": against the key's best */
    bool worse;              /* certainly */
    int number;              /* in the matrix */
};

struct metrics_key {
    const char *name;
    struct metrics_level *levels; /* the best first */
    int count;
    struct lab_claim *pairs; /* of levels: first the best's with each other, in their order */
    int pair_count;
    double bound; /* no two levels differ more; NaN = unknown */
    bool matters; /* some level is certainly worse than the best */
    bool depends; /* on another key's value, certainly */
};

struct metrics_keys {
    struct metrics_key *items;
    int count;
    struct metrics_interaction {
        int key, other;
        struct lab_claim claim; /* "metrics.interaction" */
    } * interactions;
    int interaction_count;
    bool turns; /* what is best by a key isn't so with every value of another */
    const struct metrics_setting *advised; /* the best one with no level that is worse */
};

/*
 * Of a whole crossing of several keys in one study, which of them matters: each key's levels
 * against each other, as means over all values of the other keys, and how far two keys' effects
 * depend on each other. NULL = there is none, or its runs decide nothing. `tests`: the metric's
 * other comparisons, to which these are added; verdicts hold over all of them (Holm).
 */
struct metrics_keys *metrics_keys_compare(const struct metrics_metric *metric, int *tests,
                                          struct lab_arena *arena);
/* "Use lr=0.001 or 0.003: 0.01 has 1.0% [0.8, 1.2] lower acc (…). batch: no difference larger than
 * 0.2%."; NULL = that can't be said by key. */
const char *metrics_keys_answer(const struct metrics_metric *metric, struct lab_arena *arena);
/* "Use lr=0.001 or 0.003"; NULL likewise. */
const char *metrics_keys_choice(const struct metrics_metric *metric, struct lab_arena *arena);
/* "The effects of lr and batch depend on each other. " where they do for certain, and
 * " lr=0.1 with batch=64: 2.0% lower acc than their separate effects (…)."; else "". */
const char *metrics_keys_dependence(const struct metrics_metric *metric, struct lab_arena *arena);
const char *metrics_keys_interaction(const struct metrics_metric *metric, struct lab_arena *arena);
/* The one that the answer states first; NULL likewise. */
const struct lab_claim *metrics_keys_worst(const struct metrics_metric *metric);
/* All of them, the stated one left out. */
void metrics_keys_add_claims(struct lab_analysis_result *result,
                             const struct metrics_metric *metric, struct lab_arena *arena);
void metrics_keys_add_table(struct lab_analysis_part *part, const struct metrics_metric *metric,
                            struct lab_arena *arena);

/* Whether it is certain, and for the better. */
bool metrics_is_gain(const struct metrics_metric *metric, const struct lab_claim *claim);
/* Whether the setting is certainly worse than the best. */
bool metrics_is_worse(const struct metrics_metric *metric, const struct metrics_value *value);

/* --- words --- */

#define METRICS_SEED "${SEED:-0}" /* {repeat} in a line to paste */

/* Why its runs decide nothing; NULL = they may. */
const char *metrics_withheld(const struct metrics_metric *metric);
/* "Use adam or adamw, not sgd" where some are certainly worse than the best; the best alone, where
 * many aren't. NULL = none is, or all others are. */
const char *metrics_choice(const struct metrics_metric *metric, struct lab_arena *arena);
/* The worst of those; NULL = none is. */
const struct lab_claim *metrics_worst(const struct metrics_metric *metric);
/* Its name, with a capital where it is gpulab's own word and no program's. */
const char *metrics_named(const struct metrics_metric *metric, struct lab_arena *arena);
/* What is known of the metric's settings; `chosen`: it is the objective. */
const char *metrics_answer(const struct metrics_metric *metric,
                           const struct metrics_settings *settings, bool chosen,
                           struct lab_arena *arena);

/* The same where it has classes; and the settings to use, NULL = none is best. */
const char *metrics_class_answer(const struct metrics_metric *metric,
                                 const struct metrics_settings *settings, struct lab_arena *arena);
const char *metrics_class_action(const struct metrics_metric *metric, struct lab_arena *arena);

/* Runs of a setting whose last value isn't finite. */
int metrics_lost(const struct metrics_setting *setting, const struct metrics_metric *metric);
/* " Diverged (loss NaN or infinite): sgd (3 of 3 runs). Failed: lion (1 of 3 runs)."; "" = none. */
const char *metrics_lost_words(const struct metrics_metric *metric,
                               const struct metrics_settings *settings, struct lab_arena *arena);
/* Notes where settings end, if not at the same step, and where they are compared. */
void metrics_note_steps(struct lab_analysis_result *result, const struct metrics_metric *metric,
                        struct lab_arena *arena);
/* Of a metric that no run has a value of. */
const char *metrics_diverged_words(const struct metrics_metric *metric, struct lab_arena *arena);

/* "val_loss [ms]" for an axis or a heading. */
const char *metrics_title(const struct metrics_metric *metric, struct lab_arena *arena);

/* The mean of values over runs, with its 95% interval: of positive ones the geometric mean, whose
 * ratios the comparisons are. Leaves out what isn't finite. */
struct lab_doc_cell metrics_cell(const double *values, int count, struct lab_arena *arena);
/* "0.0086 [0.0077, 0.0097]", "505 ms [410, 620]" by `unit`: LAB_UNIT_NUMBER, _TIME, … */
const char *metrics_cell_text(const struct lab_doc_cell *cell, enum lab_unit unit,
                              struct lab_arena *arena);

/* "505 ms ±23%": the farther end of the interval; of an interval that reaches 0 "-17.6 ±3.7". */
const char *metrics_cell_brief(const struct lab_doc_cell *cell, enum lab_unit unit,
                               struct lab_arena *arena);

/* The line that runs the program with this setting; NULL = it needs what only a study knows. */
const char *metrics_command(const struct metrics_setting *setting, struct lab_arena *arena);

/* --- tables and charts --- */

/* What each setting takes and gives: objective, time, rate, memory, energy, balance. */
void metrics_add_summary(struct lab_analysis_part *part, const struct metrics_settings *settings,
                         const struct metrics_metric *metrics, int count, int objective,
                         struct lab_arena *arena);

/* Joules of a run; NaN = unknown. */
double metrics_energy(const struct lab_study_run *run);
/* The mean first value over settings; NaN = runs have one value alone. */
double metrics_start(const struct metrics_metric *metric);
/* Whether gains count from there; else the value itself is the gain. */
bool metrics_gains_from_start(const struct metrics_metric *metric);
/* What a run gained for a kilojoule of all its energy, towards what is better; of a rate, its work:
 * tokens, not tokens/s. `metric` may be NULL. */
double metrics_per_kj(const struct lab_study_run *run, const void *metric);
/* What that counts: "tokens", "loss reduction", "accuracy". */
const char *metrics_gain_name(const struct metrics_metric *metric, struct lab_arena *arena);
/* Notes what it counts from, or how work is counted. */
void metrics_note_per_kj(struct lab_analysis_result *result, const struct metrics_metric *metric,
                         struct lab_arena *arena);
/* "metrics.energy": the most gain per joule against the next, where it is certainly more than any
 * other's; else not tested. */
struct lab_claim metrics_energy_claim(const struct metrics_metric *objective,
                                      struct lab_arena *arena);

/* Memory of one run: of its largest GPU, of all of them; of the program on a CPU. NaN = unknown. */
double metrics_memory_most(const struct lab_study_run *run, bool of_gpu);
double metrics_memory_all(const struct lab_study_run *run, bool of_gpu);

/* Whether some run has two values of it. */
bool metrics_has_curve(const struct metrics_metric *metric);
/* Over steps and over time; nothing where no metric has two values. */
void metrics_add_curves(struct lab_analysis_result *result, const struct metrics_metric *metrics,
                        int count, int objective, bool simulated, struct lab_arena *arena);
/* "metric_comparison" of the first metric where no curve shows it; its memory; the trade-off. */
void metrics_add_value_charts(struct lab_analysis_result *result,
                              const struct metrics_settings *settings,
                              const struct metrics_metric *first,
                              const struct metrics_metric *quality, bool simulated,
                              struct lab_arena *arena);
