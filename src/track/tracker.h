/*
 * tracker.h: a study where the team already looks: TensorBoard, W&B, Trackio, MLflow.
 *
 * A tracker is one file in this folder that defines `const struct lab_tracker lab_tracker_<name>`.
 * It turns what a run has into the bytes of a format, and hands them over where that isn't a file.
 * What is sent comes from study.db, which is durable already and so is the only queue:
 * tracker_send.h reads it, hands it to the tracker in order, and notes beside the study how far it
 * came. So a slow, full or dead tracker never touches a run, and nothing is lost or sent twice.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/value.h"
#include "model/metric.h"

#include <stdbool.h>
#include <stdint.h>

/* A run as trackers know it. All texts are UTF-8, none is NULL. */
struct lab_track_run {
    const char *folder;      /* of the study */
    const char *project;     /* "quick_test-3fa07" */
    const char *group;       /* the study's own: "quick_test 2026-11-18/10-42-03" */
    const char *point;       /* what the run repeats; repeats share it */
    const char *name;        /* "gpu0_numa1_vit32x6x512_r2" */
    const char *id;          /* 16 hex digits: the same whenever and however often it is sent */
    const char *file;        /* likewise, and whatever the project is and wherever the study lies */
    const char *host;        /* "" = unknown */
    const char *notes;       /* the command, the study's question */
    const char *const *tags; /* NULL-terminated */
    const struct lab_value *config; /* a map of scalars */
    const char *label;     /* the host's, where several write into the run; "" = one does */
    const char *prefix;    /* before each name of a value; "" = none */
    const char *renamed;   /* "loss=train/loss,acc=accuracy"; "" = none is */
    int64_t study_wall_ns; /* when the study was made: the same for all its runs */
    int64_t start_wall_ns;
    int attempt;  /* from 1; what an earlier one reported is gone from the study */
    bool retried; /* there was an earlier one */
    int revision; /* from 0: its values were others when it was sent before */
    bool whole;   /* the study's summary, which ran nothing */
};

/* Values that belong to one step of the run. */
struct lab_track_value {
    const char *key;
    double value; /* may be infinite or not a number */
};
struct lab_track_row {
    int64_t number; /* of rows and samples of this attempt, from 0 without a gap */
    int64_t wall_ns;
    double step; /* of the program or the iteration; NaN = none */
    /* The same for trackers that have whole numbers: the row's own, counted from 0, where there is
     * no step or those of the run are fractions, such as epochs. It doesn't depend on samples or
     * on when the rows were read. */
    int64_t whole_step;
    const struct lab_track_value *values;
    int count;
    bool sampled; /* not reported by the program: its step is milliseconds since the run began */
};

/* The run's GPUs and their host at one time. Values by enum lab_metric_id, in the metric's unit;
 * NaN = unknown. ENERGY counts from the run's beginning. */
struct lab_track_gpu {
    int index; /* as cuda:N counts */
    double values[LAB_METRIC_COUNT];
};
struct lab_track_sample {
    int64_t number, wall_ns; /* as of a row */
    const struct lab_track_gpu *gpus;
    int gpu_count;
    double host[LAB_METRIC_COUNT];
};

struct lab_track_end {
    int exit_code; /* 0 = success */
    int64_t wall_ns;
    const struct lab_value *summary; /* a map of scalars: the run's result */
    const char *text;                /* Markdown: what came of it */
    const char *const *files;        /* the report's, NULL-terminated; NULL = none */
};

/* What goes to one run's file, at its end. */
struct lab_track_out {
    struct lab_str bytes;
    int64_t offset;      /* of the first of them in the file */
    struct lab_str part; /* a tracker's, empty between its calls */
};
void lab_track_out_init(struct lab_track_out *out);
void lab_track_out_release(struct lab_track_out *out);

struct lab_tracker {
    const char *name;
    const char *summary;  /* one line: where the files go */
    const char *view;     /* the command that shows them; %s = the study's folder */
    const char *variable; /* of the environment: a folder for the files, unless NULL or unset */
    bool by_project;      /* another project is another destination */
    bool keeps;           /* it reads its files where they are: one that is gone is written again */
    /* What else the destination depends on, in the arena; NULL = nothing else. */
    const char *(*destination)(struct lab_arena *arena);
    /* The file of the run, in the arena. Its folder is made unless there is a `destination`. */
    const char *(*place)(const struct lab_track_run *run, struct lab_arena *arena);
    /* In this order: begin, then rows and samples as they come, then end. */
    void (*begin)(const struct lab_track_run *run, struct lab_track_out *out);
    void (*row)(const struct lab_track_run *run, const struct lab_track_row *row,
                struct lab_track_out *out);
    /* A sample under the names of its own panels, which `system_keys` has; NULL = it has none. */
    void (*system_row)(const struct lab_track_run *run, const struct lab_track_row *row,
                       struct lab_track_out *out);
    const struct lab_track_key *system_keys;
    /* Behind a batch's rows, the last value of each metric in them: of those without a step, and
     * of those with one, and the last of these. NULL = the tracker finds them. */
    void (*last)(const struct lab_track_run *run, const struct lab_track_row *row,
                 struct lab_track_out *out);
    void (*end)(const struct lab_track_run *run, const struct lab_track_end *end,
                struct lab_track_out *out);
    /*
     * Hands the bytes over, for good once it returns 0. NULL = they are appended to `place`, and
     * what a killed process appended without a note is cut off first. One with this slot gets a
     * batch's bytes again after such a death, under the same number: it must not matter.
     */
    int (*deliver)(const struct lab_track_run *run, const char *place, int64_t batch,
                   const struct lab_track_out *out, struct lab_err *err);
};

extern const struct lab_tracker *const lab_trackers[]; /* NULL-terminated, generated */
extern const char *const lab_tracker_names[];          /* theirs, for option tables */

/* By name; NULL and an error that names the nearest. */
const struct lab_tracker *lab_tracker_find(const char *name, struct lab_err *err);

/* Those of "wandb,trackio", each once, NULL-terminated; "none" and "" are none. */
int lab_tracker_list(const char *names, struct lab_arena *arena,
                     const struct lab_tracker *const **ret_trackers, struct lab_err *err);

/* The command that shows what lies in a study's folder, or where its variable says. */
const char *lab_tracker_view(const struct lab_tracker *tracker, const char *folder,
                             struct lab_arena *arena);

/* --- what trackers share --- */

/* A sample: under the tracker's own names, and as a row under names that don't depend on it. */
void lab_track_add_sample(const struct lab_tracker *tracker, const struct lab_track_run *run,
                          const struct lab_track_sample *sample, struct lab_track_out *out);

/* That row: gpu_total_memory and gpu_<i>_memory in MiB, gpu_avg_utilization,
 * gpu_load_balance_cv (of utilisation, in %), gpu_total_power, gpu_total_energy, and of each GPU
 * utilization, power, temperature, energy. */
int lab_track_sample_row(const struct lab_track_run *run, const struct lab_track_sample *sample,
                         struct lab_arena *arena, struct lab_track_row *ret_row);

/* The name under which a value is sent: as it is asked for, with prefix and label. In the arena. */
const char *lab_track_name(const struct lab_track_run *run, const char *name,
                           struct lab_arena *arena);

/* A name with the host's before it, where several write into the run. */
const char *lab_track_label(const struct lab_track_run *run, const char *name,
                            struct lab_arena *arena);

/* Of a value of a run's end: "result/rate", so that a program's own "rate" stays; in the arena. */
const char *lab_track_result_name(const struct lab_track_run *run, const char *key,
                                  struct lab_arena *arena);

/* Numbers of a run's end as a row: result/rate, …, result/exit_code. Its number is behind all. */
void lab_track_end_row(const struct lab_track_run *run, const struct lab_track_end *end,
                       struct lab_arena *arena, struct lab_track_row *ret_row);

/* A tracker's own names: of each GPU, a format with its index, and of the host; the metric's
 * value times `scale`, where `share` over that of `whole`. Ends with a name of NULL. */
struct lab_track_key {
    const char *name;
    enum lab_metric_id metric;
    double scale;
    bool host, share;
    enum lab_metric_id whole;
};
int lab_track_sample_values(const struct lab_track_sample *sample, const struct lab_track_key *keys,
                            struct lab_arena *arena, struct lab_track_value **ret_values);

/* A JSON number; NaN and infinities as NaN and ±Infinity, in quotes where `quoted`. */
void lab_track_add_number(struct lab_str *out, double value, bool quoted);
/* A text as JSON has it, with its quotes. */
void lab_track_add_text(struct lab_str *out, const char *text);

/* What may stand in a file's or project's name: letters, digits, '.', '_', '-'; else '-'. UTF-8
 * letters stay where `wide`. At most 96 bytes: a longer one ends with its hash. */
const char *lab_track_safe_name(const char *name, bool wide, struct lab_arena *arena);
