/*
 * gpt2.h: what the files of the gpt2 workload share. Not seen outside this workload and its tests.
 *
 *   ../gpt2.c    the descriptor: keys, rules between them, label, cost
 *   model.c      where each tensor lies, and the launches of a step
 *   data.c       tokens, by chance or from a file, and the parameters that training begins with
 *   train.c      the state on a device, and steps on it
 *   energy.c     what steps use, by the device's counter
 *   parallel.c   the same on several devices, each with its share of a batch
 *   checkpoint.c the state as a file
 *   verify.c     steps against double precision
 *
 * A step is `accumulation` micro-steps, each forward and backward over batch_size sequences, and
 * one update. What is launched is a list, made once: cost, graph and verification go through the
 * same.
 */
#pragma once

#include "base/file/map.h"
#include "workload/nccl/settings.h"
#include "workload/parallel.h"
#include "workload/workload.h"

struct gpt2_config {
    int64_t depth, width, heads, seq, positions, vocab, batch_size, accumulation;
    const char *dtype, *optimizer, *recompute;
    double lr, min_lr, beta1, beta2, epsilon, weight_decay, grad_clip, prune;
    int64_t warmup, steps;
    const char *data; /* NULL = synthetic */
    int64_t data_seed, sync_frequency;
    bool compile_model;
    const char *checkpoint, *resume; /* files; NULL = none */
    int64_t checkpoint_steps;
    const char *allreduce, *scaling;
    bool overlap;
    int64_t bucket; /* bytes */
    struct nccl_settings nccl;
};

/* --- shape: every size that follows from the keys --- */

#define GPT2_LINEAR 12 /* a block's weights, in squares of the width: 3 + 1 + 4 + 4 */
#define GPT2_BIASES 7  /* of q, k, v and of the MLP's first layer, in widths: 3 + 4 */
#define GPT2_NORM   3  /* a norm's gamma and beta, and the bias that is added before it */

struct gpt2_shape {
    int64_t depth, width, heads, seq, positions, batch, accumulation;
    int64_t vocab, padded; /* padded: the table's rows, a multiple of 128 */
    int64_t rows;          /* tokens of a micro-step */
    int64_t batch_rows;    /* of all ranks together, of which these begin at: */
    int64_t first_row;
    int64_t chunk; /* rows whose logits exist at a time */
    enum lab_dtype dtype;
    bool recompute; /* gelu's results, in backward */
    /* of the vector of parameters: where the parts begin, and all of it */
    int64_t positions_at, linear_at, biases_at, norms_at, parameters;
};

struct gpt2_shape gpt2_shape_of(const struct gpt2_config *config);
/* Of one of `count` ranks that share each batch. Any rank's where they train by themselves. */
struct gpt2_shape gpt2_shape_of_rank(const struct gpt2_config *config, int index, int count);
/* Of one device that does all ranks' work. */
struct gpt2_shape gpt2_shape_of_all(const struct gpt2_config *config, int count);
/* Whether ranks of a gang train one model. */
bool gpt2_is_parallel(const struct gpt2_config *config, int count);
/* Without the rows that pad the table. */
int64_t gpt2_parameters(const struct gpt2_shape *shape);

/* --- memory: elements of two buffers, one in the model's dtype and one in fp32 --- */

struct gpt2_memory {
    /* in the model's dtype */
    int64_t parameters, gradient;
    int64_t norms; /* [2·depth + 1, 2, rows, width]: the residual stream and what is made of it */
    int64_t qkv;   /* [depth, 3, rows, width] */
    int64_t attended;
    int64_t hidden; /* before and behind GELU, [2, rows, 4·width] for each block, or overlapping */
    int64_t logits, d_residual, d_norm, d_hidden; /* d_hidden: of q, k and v too */
    int64_t clipped;                              /* one element */
    int64_t values;                               /* all of them */
    /* in fp32 */
    int64_t state;   /* [3, parameters] */
    int64_t control; /* AdamW's, and the sum of the step's losses behind it */
    int64_t tokens, targets, losses, loss_sums;
    int64_t stats, lse;
    int64_t norm_gradients; /* [2·depth + 1, 3, width]: as layer_norm_backward leaves them */
    int64_t singles;        /* all of them */
};

struct gpt2_memory gpt2_memory_of(const struct gpt2_shape *shape);
int64_t gpt2_device_bytes(const struct gpt2_shape *shape);

/* --- launches --- */

struct gpt2_list {
    struct lab_launch *items;
    int count, capacity;
    int forward; /* of a gradient's, those before the head */
};

void gpt2_list_release(struct gpt2_list *list);

struct gpt2_model { /* a shape, and memory for it; NULL = launches without data */
    struct gpt2_shape shape;
    struct gpt2_memory memory;
    char *values;
    float *singles;
    const struct gpt2_config *config;
};

/* Forward and backward of one micro-step; `adds`: to the gradient of the ones before. */
void gpt2_list_gradient(const struct gpt2_model *model, bool adds, struct gpt2_list *list);
/* The sum of the step's losses. */
void gpt2_list_loss(const struct gpt2_model *model, struct gpt2_list *list);
/* Clipping and update. */
void gpt2_list_update(const struct gpt2_model *model, struct gpt2_list *list);

/* What a step of this shape does. */
void gpt2_cost_of(const struct gpt2_config *config, struct gpt2_shape shape,
                  struct lab_workload_cost *ret_cost);

/* --- data --- */

/* Tokens of a file, or by chance; opened once, then read by number. */
struct gpt2_data {
    const uint16_t *tokens; /* NULL = by chance */
    int64_t count;
    uint64_t seed;
    int64_t vocab;
    struct lab_file_map file;
};

int gpt2_data_open(const struct gpt2_config *config, const struct gpt2_shape *shape,
                   struct gpt2_data *ret_data, struct lab_err *err);
void gpt2_data_close(struct gpt2_data *data);
/* Micro-step `index` of a training: the rank's tokens and those that follow them, [rows] each. */
void gpt2_data_read(const struct gpt2_data *data, const struct gpt2_shape *shape, int64_t index,
                    float *ret_tokens, float *ret_targets);

/* As a source of lab_data_upload: the vector of parameters before the first step. */
struct gpt2_initial {
    const struct gpt2_shape *shape;
    uint64_t seed;
};
lab_data_source gpt2_initial_source;

/* The learning rate of step `step`, from 0: warm-up, then half a cosine. */
double gpt2_rate(const struct gpt2_config *config, int64_t step);
/* AdamW does SGD's steps too: without the correction of v its root is 0, and epsilon is then 1; the
 * mean of gradients, times 1/(1 − beta1), is momentum's sum. */
static inline bool gpt2_is_sgd(const struct gpt2_config *config) {
    return lab_str_equal(config->optimizer, "sgd");
}
/* All that AdamW reads anew in this step. */
void gpt2_control(const struct gpt2_config *config, int64_t step,
                  float ret_control[LAB_ADAMW_CONTROLS]);

/* --- energy --- */

struct gpt2_energy {
    int64_t since_ns; /* the last reading of the counter; counter_j 0 = there is none */
    double counter_j;
    int64_t busy_ns, steps; /* since then */
    double used_j;          /* in windows that steps filled */
    int64_t counted_steps;
};

bool gpt2_energy_is_due(const struct gpt2_energy *energy, int64_t now_ns);
/* Steps that are done, and the time from the start of the first to the end of the last. */
void gpt2_energy_add(struct gpt2_energy *energy, int64_t steps, int64_t busy_ns);
/* A reading; 0 = the device has no counter. */
void gpt2_energy_take(struct gpt2_energy *energy, int64_t now_ns, double counter_j);
/* In J; 0 = unknown yet. */
double gpt2_energy_of_step(const struct gpt2_energy *energy);

/* --- training on a device --- */

#define GPT2_LOSS       LAB_ADAMW_CONTROLS /* behind AdamW's control: what a step tells */
#define GPT2_TOLD       (LAB_ADAMW_CONTROLS + 1)
#define GPT2_TOLD_STEPS 1024 /* of a run, at most: its last ones */

struct gpt2_training {
    const struct gpt2_config *config;
    struct gpt2_model model;
    struct lab_device *device;
    struct lab_rank rank;
    const struct lab_sink *sink;
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_buffer values, singles;
    struct lab_buffer staged; /* host, pinned: control and tokens of the steps under way */
    struct lab_buffer told;   /* host, pinned: [GPT2_TOLD_STEPS, GPT2_TOLD] of the last steps */
    int slots;                /* of `staged` */
    struct gpt2_data data;
    struct gpt2_list first, next, update;
    struct lab_graph *graphs[3]; /* of these; NULL = launched one by one */
    int64_t step;                /* done so far */
    int count;                   /* steps of this run */
    bool checking;               /* these steps are nobody's: a check's or a trace's */
    struct gpt2_energy energy;
    struct gpt2_parallel *parallel; /* NULL = trains alone */
};

int gpt2_open(const void *config, const struct lab_rank *rank, void **ret_state,
              struct lab_err *err);
void gpt2_close(void *state); /* accepts NULL */
/* Back to where training begins, with other data and parameters. */
int gpt2_reset(struct gpt2_training *training, uint64_t seed, struct lab_err *err);
/* The same with those that the keys name: from a checkpoint, where there is one. */
int gpt2_begin(struct gpt2_training *training, struct lab_err *err);
int gpt2_launch(const struct gpt2_training *training, const struct gpt2_list *list, int first,
                int end, struct lab_err *err);
int gpt2_run(void *state, int count, struct lab_iteration *records, struct lab_err *err);
int gpt2_finish(void *state, struct lab_err *err);
int gpt2_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);

/* --- several ranks --- */

struct gpt2_parallel; /* parallel.c's */

int gpt2_parallel_open(struct gpt2_training *training, struct lab_err *err);
void gpt2_parallel_close(struct gpt2_training *training); /* all streams are idle */
/* What does its steps; NULL where it trains alone. */
struct lab_parallel *gpt2_parallel_common(const struct gpt2_training *training);

/* --- checkpoints --- */

/* Whether the file that the config names can be written: before hours of training, not after. */
int gpt2_checkpoint_check(const struct gpt2_config *config, struct lab_err *err);
/* Writes it. */
int gpt2_checkpoint_save(struct gpt2_training *training, struct lab_err *err);
/* Reads it: parameters, moments and the count of steps. */
int gpt2_checkpoint_load(struct gpt2_training *training, struct lab_err *err);

/* --- the same in double precision: verify.c --- */

struct gpt2_reference {             /* both buffers as doubles */
    const struct gpt2_model *model; /* whose launches name places in its buffers */
    double *values, *singles, *scratch;
};

/* The list's launches by their definitions. */
void gpt2_reference_run(struct gpt2_reference *reference, const struct gpt2_list *list);
