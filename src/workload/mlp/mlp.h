/*
 * mlp.h: what the files of the mlp workload share. Not seen outside this workload and its tests.
 *
 *   ../mlp.c   the descriptor: keys, rules between them, label, cost
 *   data.c     samples, their order in each epoch, and the parameters that training begins with
 *   train.c    the state on a device, and steps on it
 *   parallel.c the same on several devices, each with its share of a batch
 *   verify.c   many steps against double precision
 */
#pragma once

#include "workload/nccl/settings.h"
#include "workload/parallel.h"
#include "workload/workload.h"

struct mlp_config {
    const char *model, *widths, *dtype; /* widths: NULL = the model's */
    const char *allreduce, *scaling;
    bool overlap;
    int64_t bucket; /* bytes */
    double dropout; /* MLP_OWN = the model's */
    double lr;
    int64_t batch_size, dataset_size, data_seed, sync_frequency;
    bool compile_model;
    struct nccl_settings nccl;
};

#define MLP_OWN (-1.0)

struct mlp_model {
    const char *name, *widths;
    double dropout;
};

extern const struct mlp_model mlp_models[]; /* NULL-terminated */

/* --- shape: every size that follows from the keys --- */

/* The orders of so many epochs lie on the device, one behind the other, and are gone through again
 * and again: a step then finds its batch by itself. */
#define MLP_EPOCHS 8

struct mlp_shape {
    struct lab_mlp mlp; /* of one rank that does whole batches */
    enum lab_dtype dtype;
    int64_t inputs, outputs;
    int64_t samples;    /* there are */
    int64_t epoch_rows; /* that an epoch takes: whole batches of them */
    int64_t data_rows;  /* on the device */
};

/* Of a checked config. */
struct mlp_shape mlp_shape_of(const struct mlp_config *config);

/* Of one of `count` ranks that share each batch: its rows. Any rank's where they train by
 * themselves. */
struct mlp_shape mlp_shape_of_rank(const struct mlp_config *config, int index, int count);
/* Whether ranks of a gang train one model. */
bool mlp_is_parallel(const struct mlp_config *config, int count);

/* --- data --- */

struct mlp_data {
    float *x, *y;   /* [samples, inputs], [samples, outputs] */
    int32_t *order; /* [MLP_EPOCHS, samples]: of each epoch */
};

/* Features and targets by normal distributions, the second and third feature correlated with the
 * first; shuffled anew for each epoch. */
void mlp_data_draw(const struct mlp_shape *shape, uint64_t seed, struct mlp_data *ret_data);
void mlp_data_release(struct mlp_data *data); /* accepts a zeroed one */

/* As a source of lab_data_upload: the rows as they lie on the device. */
struct mlp_rows {
    const struct mlp_shape *shape;
    const struct mlp_data *data;
    bool targets;
};
lab_data_source mlp_rows_source;

/* Likewise the state before the first step: Glorot's uniform weights, all else 0. */
struct mlp_initial {
    const struct lab_mlp *mlp;
    uint64_t seed;
};
lab_data_source mlp_initial_source;

/* --- training on a device --- */

enum { MLP_BEFORE, MLP_FORWARD, MLP_BACKWARD, MLP_UPDATE, MLP_MARKS }; /* events between launches */

struct mlp_training {
    const struct mlp_config *config;
    struct mlp_shape shape;
    struct lab_device *device;
    const struct lab_sink *sink;
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_buffer x, y, state, gradient, work;
    struct lab_buffer tail;        /* host: the last values of the state */
    struct lab_launch step;        /* the whole of it */
    struct lab_launch launches[3]; /* or forward, backward, update */
    struct lab_graph *graph;       /* of the step; NULL = launch its parts */
    struct lab_event *marks[MLP_MARKS];
    int count;                     /* steps of this run */
    struct mlp_parallel *parallel; /* NULL = trains alone */
};

/* --- several ranks --- */

#define MLP_LAYERS (LAB_MLP_WIDTHS - 1)

struct mlp_parallel; /* parallel.c's */

int mlp_parallel_open(struct mlp_training *training, const struct lab_rank *rank,
                      struct lab_err *err);
void mlp_parallel_close(struct mlp_parallel *parallel); /* accepts NULL; all streams are idle */
/* What does its steps; NULL where `parallel` is. */
struct lab_parallel *mlp_parallel_common(const struct mlp_parallel *parallel);

int mlp_open(const void *config, const struct lab_rank *rank, void **ret_state,
             struct lab_err *err);
void mlp_close(void *state); /* accepts NULL */
/* Puts the parameters back to where training begins. */
int mlp_training_reset(struct mlp_training *training, uint64_t seed, struct lab_err *err);
int mlp_run(void *state, int count, struct lab_iteration *records, struct lab_err *err);

int mlp_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);
