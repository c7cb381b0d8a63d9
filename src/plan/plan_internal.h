/*
 * plan_internal.h: what the files of the plan share. Others use plan.h.
 *
 *   plan.c           job after job into points, points into runs, runs into their order
 *   plan_keys.c      the study's keys: their schema, read from a tree
 *   plan_axes.c      axes and series of one job
 *   plan_points.c    walking them: each point is filled in and booked
 *   plan_mode.c      gpu_mode: one device, several, or both
 *   plan_spread.c    spread: each point on whichever device is free
 *   plan_phases.c    phases: which there are, and who runs in each
 *   plan_here.c      what is asked for against what is here
 *   plan_id.c        names of the runs
 *   plan_identity.c  hashes, and finding things by them
 */
#pragma once

#include "plan/plan.h"

#include "base/hash.h"
#include "device/device.h"
#include "workload/workload.h"

/* --- keys --- */

struct plan_test { /* the keys of `test` that are the study's own; an axis may change them */
    int64_t num_samples, warmup_samples;
    int64_t num_steps, warmup_steps; /* instead of those; -1 = by samples */
    double timeout_s;
    bool counted; /* num_samples or num_steps was given, not their default */
};

struct plan_keys { /* what lab_plan_keys fills */
    const char *device, *output_dir, *tracker;
    int64_t seed;
    const char *name, *question, *workload, *answers, *order, *processes, *profiler, *disturb,
        *gpu_mode, *objective;
    bool resume, fail_fast, trace, monitor, spread;
    int64_t max_workers; /* 0 = unset: plan_spread_workers */
    int64_t runs_per_device, max_retries, repeat;
    double budget_s, cooldown_s, duration_s;
    struct plan_test test;
    struct lab_option_ints gpu_ids, numa_nodes; /* rows for help: gangs are read by plan_axes.c */
};

/* --- axes --- */

struct plan_axis {                    /* keys that move together */
    const char **paths;               /* below `experiment` */
    struct lab_value *const **values; /* [key][place] */
    int key_count, length;
};

struct plan_product {
    struct plan_axis *axes; /* the last one is the fastest */
    int count;
};

struct plan_series {
    const char *name;
    bool own_axes;
    struct plan_product product; /* the job's own unless own_axes */
    bool **allowed;              /* by `where`: [axis][place] */
    bool **taken;                /* own_axes: the same for the job's axes, which it crosses */
};

struct plan_job {
    int64_t index; /* of the sweep */
    const struct lab_value *tree, *experiment;
    struct plan_keys keys;
    const struct lab_workload *workload;   /* the one that is planned now */
    const struct lab_workload **workloads; /* all of them */
    int workload_count;
    const struct lab_device_list *devices; /* that gpu_ids: all means */
    const struct lab_machine *machine;     /* whose nodes numa_nodes: all means */
    void *base;                            /* the workload's config with the job's constants */
    struct plan_product product;
    struct plan_series *series;
    int series_count;
    bool has_own_points; /* the product itself may have some; not if a series takes them all */
    const struct lab_plan_phase *phases; /* none = it has none */
    int phase_count;
};

/* --- the book of what has been planned --- */

struct plan_index { /* from hash to place, open addressing; release with plan_index_release */
    uint64_t *hashes;
    int *places; /* + 1; 0 = free */
    int slot_count, count;
};

struct plan_work { /* a workload with its options; many runs share one */
    const struct lab_workload *workload;
    const void *config, *canonical;
    struct lab_value *options;
    const char *label;
    struct lab_workload_cost cost;
};

struct plan_draft { /* a run before it is repeated, named and ordered */
    uint64_t hash;  /* identity's, but for the repeat index */
    int work;
    struct lab_run_rank *ranks;
    int rank_count;
    bool launched;                    /* a gang that is one program of the user's */
    const struct lab_run_rank *slots; /* of a spread study, as in lab_plan_run */
    int slot_count;
    const char *place; /* of a spread study: what of its ranks is in its identity; NULL = all */
    struct plan_test test;
    int64_t iterations, warmup_iterations;
    const char **series;
    int series_count;
    int point_count;
    const struct lab_plan_phase *phase; /* NULL = none */
    const struct plan_origin *origin;   /* the point that it was booked for first */
};

struct plan_merge {  /* points that are the same run as another */
    const char *key; /* which differs between the two: an axis, or a word of the sweep */
    int64_t points;
};

struct
    plan_pair { /* of jobs, and the first key in which they differ; "" = none, NULL = not asked */
    int64_t first, second;
    const char *key;
};

#define PLAN_MERGES_MAX 16

struct plan_book {
    const struct lab_sweep *sweep;
    struct lab_arena *arena;
    const struct lab_machine *machine;
    const struct lab_plan_strategy *strategy; /* NULL = no measurements */
    const char *option;                       /* the study's name, for messages */
    struct lab_device_list devices;
    const struct lab_workload *default_workload; /* whose defaults these are */
    const void *defaults;
    struct plan_work *works;
    int work_count;
    struct plan_index work_index;
    struct plan_draft *drafts;
    int draft_count;
    struct plan_index draft_index;
    int64_t point_count;
    int workload_count; /* of the first job: they share a phase's duration */
    const char **notes; /* sentences for people; in the arena */
    int note_count;
    struct plan_merge merges[PLAN_MERGES_MAX];
    int merge_count;
    struct plan_pair last_pair;
};

#define PLAN_NOTES_MAX 32

/* --- plan_keys.c --- */

/* Fails on `???`, a value still to be given. */
int plan_require(const struct lab_value *value, const char *key, struct lab_err *err);

/* Everything but axes, series and the workload's keys: what the plan is and how it is done. */
int plan_keys_read(struct plan_job *job, struct lab_arena *arena, struct lab_err *err);
/* The job's constants into job->base, once axes are known; finds unknown keys. */
int plan_constants_read(struct plan_book *book, struct plan_job *job, struct lab_err *err);
/* One key of the workload, wherever it stands. */
int plan_set_option(const struct lab_workload *workload, void *config, struct lab_arena *arena,
                    const char *key, const struct lab_value *value, struct lab_err *err);
/* One of `test`: the study's or the workload's. */
int plan_set_test(const struct plan_job *job, struct plan_test *test, void *config,
                  struct lab_arena *arena, const char *key, const struct lab_value *value,
                  struct lab_err *err);
/* A sweep changes what runs, not how: fails if the jobs differ in a key of the whole plan. */
int plan_keys_agree(const struct plan_keys *first, const struct plan_keys *other, int64_t job,
                    struct lab_err *err);

bool plan_option_equal(const struct lab_option *row, const void *a, const void *b);

/* --- plan_axes.c --- */

int plan_axes_read(struct plan_job *job, struct lab_arena *arena, struct lab_err *err);
bool plan_is_axis(const struct plan_product *product, const char *path);
/* Whether some axis has its values from below this key of `experiment`. */
bool plan_is_axis_root(const struct plan_job *job, const char *key);

#define PLAN_GPU_IDS    "hardware.gpu_ids"
#define PLAN_NUMA_NODES "hardware.numa_nodes"
#define PLAN_MATRIX     "matrix"

/* A setting of the matrix, from a file, that a workload of gpulab's has no option for: a preset is
 * made for programs. A word of the command line is a mistake instead. */
bool plan_is_unused_setting(const struct plan_job *job, const char *key,
                            const struct lab_value *value);

/* A key of the study, from its file, that other workloads have and this one lacks: it was chosen
 * instead of the study's own. A word of the command line is a mistake instead. */
bool plan_is_others_setting(const struct plan_job *job, const char *key,
                            const struct lab_value *value);

/* Of numa_nodes: the one that the device is attached to, whichever that is. */
bool plan_is_local_node(const struct lab_value *node);

/* --- plan_points.c --- */

int plan_points_book(struct plan_book *book, const struct plan_job *job, struct lab_err *err);

/* --- plan_merge.c --- */

/* Books where a draft comes from or, where it is there already, which key makes no other run. */
void plan_merge_point(struct plan_book *book, const struct plan_job *job,
                      const struct plan_product *product, const int *at, struct plan_draft *draft);
/* A note for each such key. */
void plan_merge_notes(struct plan_book *book);

/* --- plan_mode.c --- */

/* Turns a list of devices into the gangs that gpu_mode asks for. */
int plan_mode_gangs(const struct plan_job *job, struct lab_arena *arena, struct lab_value **list,
                    struct lab_err *err);
/* Whether gpu_mode leaves this work on so many devices out; a note says why. */
bool plan_mode_skips(struct plan_book *book, const struct plan_job *job,
                     const struct plan_work *work, const struct lab_run_rank *ranks, int count);
/* Notes that NCCL was asked for where it can't sum. */
void plan_mode_note_nccl(struct plan_book *book, const struct plan_work *work,
                         const struct lab_run_rank *ranks, int count);

/* --- plan_spread.c --- */

/* Refuses keys that say where a point runs. */
int plan_spread_check(const struct plan_job *job, struct lab_err *err);
/* numa_nodes of a spread study: the one that is named, else each device's own. */
struct lab_value *plan_spread_nodes(struct lab_value *nodes, struct lab_arena *arena);
/* Notes that several NUMA nodes aren't crossed. */
void plan_spread_note(struct plan_book *book, const struct plan_job *job);
/* The places among which the runner chooses: a place of gpu_ids each. */
int plan_spread_count(const struct lab_value *gpu_ids);
const struct lab_value *plan_spread_slot(const struct lab_value *gpu_ids, int index);
/* Fails unless all slots have as many devices of the same kind; `ret_place` is for identities. */
int plan_spread_place(struct plan_book *book, const struct lab_value *gpu_ids,
                      const struct lab_value *nodes, const struct lab_run_rank *slots,
                      int slot_count, int rank_count, const char **ret_place, struct lab_err *err);
/* Every rank that the draft may have. */
static inline const struct lab_run_rank *plan_draft_places(const struct plan_draft *draft,
                                                           int *ret_count) {
    *ret_count = draft->slot_count ? draft->slot_count * draft->rank_count : draft->rank_count;
    return draft->slot_count ? draft->slots : draft->ranks;
}
/* Runs at the same time where nothing says how many: one for each slot of a spread study. */
int plan_spread_workers(const struct plan_book *book, const struct plan_keys *keys);

/* --- plan_phases.c --- */

/* The job's phases, as they can be had on these devices; what can't is noted. */
int plan_phases_read(struct plan_book *book, struct plan_job *job, struct lab_err *err);

struct plan_gang { /* positions in the list of devices */
    const int *gpu_ids;
    int count;
};
/* Who runs at the same time in a phase: gangs of these devices, in the arena; returns how many. */
int plan_phase_gangs(const struct plan_book *book, const struct lab_plan_phase *phase,
                     const int *gpu_ids, int count, struct plan_gang **ret_gangs);
/* A gang in processes or threads. */
enum lab_plan_processes plan_phase_processes(const struct plan_book *book,
                                             const struct lab_plan_phase *phase,
                                             const struct lab_run_rank *ranks, int count);
/* Whether the kernel can be tuned on the device. */
bool plan_can_tune(const struct plan_book *book, const struct plan_work *work, int gpu_id);
/* Appends "alone process+numa disturb=cpu": what makes the phase what it is. */
void plan_phase_write(const struct lab_plan_phase *phase, struct lab_str *out);
void plan_note(struct plan_book *book, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- plan_here.c --- */

int plan_check_hardware(const struct plan_book *book, const struct plan_job *job,
                        struct lab_err *err);
int plan_check_memory(const struct plan_book *book, struct lab_err *err);
/* Notes settings of the matrix without effect, and that a program can't run on this machine. */
void plan_note_programs(struct plan_book *book, const struct plan_job *job);
/* Whether the runs' devices can do what their workloads ask of them. */
int plan_check_able(const struct plan_book *book, struct lab_err *err);

/* --- plan_id.c --- */

/* Names all drafts: unique and without the repeat index; in the arena. */
const char **plan_ids(const struct plan_book *book);

/* --- plan_identity.c --- */

/* Of a workload with its (canonical) options. */
uint64_t plan_hash_work(const struct lab_workload *workload, const void *config);

/* The place of that hash or -1; adding takes a hash that isn't there. */
int plan_index_find(const struct plan_index *index, uint64_t hash);
void plan_index_add(struct plan_index *index, uint64_t hash, int place);
void plan_index_release(struct plan_index *index);

/* Appends an option's value: in full for hashes, or as part of a file name ("3x224x224"). */
void plan_option_write(const struct lab_option *row, const void *config, bool for_name,
                       struct lab_str *out);
/* Whether the config has the row's default. */
bool plan_option_is_default(const struct lab_option *row, const void *config);
