/*
 * mlp.c: training of a multilayer perceptron: dense layers with ReLU and dropout, mean squared
 * error, Adam. The models are those of a published study of training on two GPUs, with their true
 * sizes. This file holds the keys and what follows from them; the work is in mlp/.
 */
#include "workload/mlp/mlp.h"

#include <stdlib.h>

const struct mlp_model mlp_models[] = {
    {"medium", "50-256-128-64-3", 0.2},
    {"large", "50-1024-1024-512-512-256-3", 0.3},
    {NULL},
};

static const char *const model_choices[] = {"medium", "large", NULL};
static const char *const allreduce_choices[] = {"auto", "ring", "hierarchical",
                                                "nccl", "none", NULL};
static const char *const scaling_choices[] = {"strong", "weak", NULL};
static const char *const dtype_choices[] = {"fp32", "tf32", "bf16", NULL};
static const char *const widths_suggestions[] = {"50-256-128-64-3", "50-1024-1024-512-512-256-3",
                                                 NULL};

#define AT(field)   offsetof(struct mlp_config, field)
#define SAMPLES_MAX (1 << 24)

static const struct lab_option options[] = {
    {"model", LAB_OPTION_CHOICE, AT(model), .fallback = "medium", .choices = model_choices,
     .help = "50-256-128-64-3 with dropout 0.2, or 50-1024-1024-512-512-256-3 with 0.3"},
    {"widths", LAB_OPTION_STRING, AT(widths), .suggestions = widths_suggestions,
     .value_name = "WIDTHS",
     .help = "widths of input, hidden layers and output instead of the model's, such as 50-33-7-3"},
    {"dropout", LAB_OPTION_FLOAT, AT(dropout), .fallback = "-1", .min = -1, .max = 1,
     .unit = "share",
     .help = "share of hidden outputs that are dropped, below 1; -1 = the model's"},
    {"batch_size", LAB_OPTION_INT, AT(batch_size), .fallback = "32", .min = 1, .max = 1 << 20,
     .unit = "samples", .help = "samples of a step"},
    {"lr", LAB_OPTION_FLOAT, AT(lr), .fallback = "0.001", .min = 0, .max = 100, .unit = "per step",
     .help = "learning rate"},
    {"dtype", LAB_OPTION_CHOICE, AT(dtype), .fallback = "fp32", .choices = dtype_choices,
     .help = "number format of products; parameters and sums are fp32 in any case"},
    {"compile_model", LAB_OPTION_FLAG, AT(compile_model), .fallback = "false",
     .help = "a step as one operation in a captured graph instead of three launches; with several "
             "ranks, all of it before the sums"},
    {"allreduce", LAB_OPTION_CHOICE, AT(allreduce), .fallback = "auto",
     .choices = allreduce_choices,
     .help = "how several ranks sum their gradients; none: each trains a model of its own"},
    {"overlap", LAB_OPTION_FLAG, AT(overlap), .fallback = "true",
     .help = "sum the gradients of late layers while those of early ones are still computed"},
    {"bucket", LAB_OPTION_SIZE, AT(bucket), .fallback = "1MiB", .min = 4, .max = 0x1p40,
     .unit = "bytes", .help = "least size of gradients summed at once, with overlap"},
    {"scaling", LAB_OPTION_CHOICE, AT(scaling), .fallback = "strong", .choices = scaling_choices,
     .help = "strong: ranks share the batch; weak: each has one of that size"},
    {"dataset_size", LAB_OPTION_INT, AT(dataset_size), .fallback = "10000", .min = 1,
     .max = SAMPLES_MAX, .unit = "samples", .help = "samples of the dataset, shuffled per epoch"},
    {"data_seed", LAB_OPTION_INT, AT(data_seed), .fallback = "42", .min = 0, .max = INT32_MAX,
     .unit = "number", .help = "seed of data, initial parameters and dropout"},
    {"sync_frequency", LAB_OPTION_INT, AT(sync_frequency), .fallback = "32", .min = 1, .max = 10000,
     .unit = "iterations", .help = "iterations between two synchronisations of the host"},
    NCCL_OPTIONS(AT(nccl)),
    {NULL},
};

/* --- what follows from the keys --- */

static const struct mlp_model *find_model(const char *name) {
    for (const struct mlp_model *model = mlp_models; model->name; model++)
        if (lab_str_equal(model->name, name))
            return model;
    return &mlp_models[0];
}

#define WIDTH_MAX (1 << 20)

/* Reads "50-256-128-64-3". */
static int parse_widths(const char *text, struct lab_mlp *ret_mlp, struct lab_err *err) {
    const char *at = text;
    int count = 0;
    for (bool more = true; more; count++) {
        char *end;
        long width = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        more = width >= 0 && *end == '-';
        if (width < 0 || (*end && !more))
            return lab_err_set(err, LAB_ERR_USER,
                               "widths=%s: must be whole numbers with a dash between them, such as "
                               "50-256-128-64-3",
                               text);
        if (width < 1 || width > WIDTH_MAX)
            return lab_err_set(err, LAB_ERR_USER, "widths=%s: each width must be 1 to %d", text,
                               WIDTH_MAX);
        if (count == LAB_MLP_WIDTHS)
            return lab_err_set(err, LAB_ERR_USER, "widths=%s: at most %d of them are possible",
                               text, LAB_MLP_WIDTHS);
        ret_mlp->widths[count] = (int32_t)width;
        at = end + more;
    }
    if (count < 2)
        return lab_err_set(
            err, LAB_ERR_USER,
            "widths=%s: must name at least two, those of the input and of the output", text);
    ret_mlp->width_count = count;
    return 0;
}

static const char *widths_of(const struct mlp_config *config) {
    return config->widths ? config->widths : find_model(config->model)->widths;
}

bool mlp_is_parallel(const struct mlp_config *config, int count) {
    return count > 1 && !lab_str_equal(config->allreduce, "none");
}

struct mlp_shape mlp_shape_of_rank(const struct mlp_config *config, int index, int count) {
    struct mlp_config whole = *config;
    if (!mlp_is_parallel(config, count))
        return mlp_shape_of(config);
    if (lab_str_equal(config->scaling, "weak"))
        whole.batch_size *= count;
    struct mlp_shape shape = mlp_shape_of(&whole);
    struct lab_bucket own = lab_parallel_share(whole.batch_size, index, count);
    shape.mlp.rows = own.count;
    shape.mlp.first_row = own.begin;
    return shape;
}

struct mlp_shape mlp_shape_of(const struct mlp_config *config) {
    struct mlp_shape shape = {.samples = config->dataset_size};
    struct lab_mlp *mlp = &shape.mlp;
    parse_widths(widths_of(config), mlp, NULL);
    double own = find_model(config->model)->dropout;
    mlp->dropout = (float)(config->dropout < 0 ? own : config->dropout);
    mlp->seed = (uint64_t)config->data_seed;
    mlp->batch = mlp->rows = config->batch_size;
    lab_dtype_parse(config->dtype, &shape.dtype);
    shape.inputs = mlp->widths[0];
    shape.outputs = mlp->widths[lab_mlp_layers(mlp)];
    shape.epoch_rows = config->dataset_size / config->batch_size * config->batch_size;
    shape.data_rows = MLP_EPOCHS * shape.epoch_rows;
    return shape;
}

/* Far above any machine, far below where sizes would overflow. */
#define BYTES_MAX 0x1p44

static int64_t device_values(const struct mlp_shape *s) {
    return s->data_rows * (s->inputs + s->outputs) + lab_mlp_state_count(&s->mlp) +
           lab_mlp_gradient_count(&s->mlp) + lab_mlp_work_count(&s->mlp);
}

static int mlp_check(void *opaque, struct lab_err *err) {
    const struct mlp_config *config = opaque;
    struct lab_mlp mlp = {0};
    if (parse_widths(widths_of(config), &mlp, err))
        return -1;
    if (config->dropout != MLP_OWN && config->dropout < 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "dropout=%g: must be 0 or more and below 1, or -1 for the model's own",
                           config->dropout);
    mlp.dropout = (float)config->dropout;
    if (config->dropout > 0 && lab_mlp_threshold(&mlp) > 0xffff)
        return lab_err_set(err, LAB_ERR_USER,
                           "dropout=%g: must be at most 0.99998, or nothing would be left",
                           config->dropout);
    if (config->dataset_size < config->batch_size)
        return lab_err_set(err, LAB_ERR_USER,
                           "batch_size=%lld: there are only %lld samples; raise dataset_size",
                           (long long)config->batch_size, (long long)config->dataset_size);
    struct mlp_shape shape = mlp_shape_of(config);
    double bytes = sizeof(float) * (double)device_values(&shape);
    if (bytes > BYTES_MAX)
        return lab_err_set(err, LAB_ERR_USER,
                           "these sizes need about %.0f TiB: make widths, batch_size or "
                           "dataset_size smaller",
                           bytes / 0x1p40);
    return nccl_settings_check(&config->nccl, err);
}

static const char *const *mlp_environment(const void *config, struct lab_arena *arena) {
    return nccl_settings_words(&((const struct mlp_config *)config)->nccl, arena);
}

/* The model is its widths and its dropout, however they were asked for. */
static void mlp_canonical(void *opaque) {
    struct mlp_config *config = opaque;
    if (config->dropout < 0)
        config->dropout = find_model(config->model)->dropout;
    config->widths = widths_of(config);
    config->model = model_choices[0];
    for (const struct mlp_model *model = mlp_models; model->name; model++)
        if (lab_str_equal(model->widths, config->widths))
            config->model = model->name;
}

/* Of a model that has one; NULL = its widths are its name. */
static const char *name_of(const struct mlp_config *config) {
    for (const struct mlp_model *model = mlp_models; model->name; model++)
        if (lab_str_equal(model->widths, widths_of(config)))
            return model->name;
    return NULL;
}

static void mlp_label(const void *opaque, struct lab_str *out) {
    const struct mlp_config *config = opaque;
    const char *name = name_of(config);
    lab_str_printf(out, "mlp_%s", name ? name : widths_of(config));
    if (config->dropout >= 0 && config->dropout != find_model(config->model)->dropout)
        lab_str_printf(out, "_dropout%g", config->dropout);
    lab_str_printf(out, "_batch%lld", (long long)config->batch_size);
    if (lab_str_equal(config->scaling, "weak"))
        lab_str_add(out, "_weak");
}

static void mlp_label_words(const void *opaque, struct lab_str *out) {
    const struct mlp_config *config = opaque;
    const char *name = name_of(config);
    lab_str_printf(out, name ? "%s: MLP with layers %s" : "%s: MLP with these layers",
                   name ? name : widths_of(config), widths_of(config));
}

static void mlp_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct mlp_config *config = opaque;
    struct mlp_shape shape = mlp_shape_of(config);
    struct lab_launch launch = {.op = LAB_OP_MLP_STEP, .mlp = shape.mlp, .compute = shape.dtype};
    *ret_cost = (struct lab_workload_cost){
        .compute = lab_op_cost(&launch),
        .samples = (double)config->batch_size,
        .device_bytes = (int64_t)sizeof(float) * device_values(&shape),
        .host_bytes = LAB_MLP_TAIL * sizeof(float),
        .dtype = shape.dtype,
        .parameters = (double)lab_mlp_parameters(&shape.mlp),
        .layers = lab_mlp_layers(&shape.mlp),
    };
}

static void mlp_share(const void *config, int index, int count, struct lab_workload_cost *cost) {
    struct mlp_shape shape = mlp_shape_of_rank(config, index, count);
    struct lab_launch launch = {.op = LAB_OP_MLP_STEP, .mlp = shape.mlp, .compute = shape.dtype};
    cost->compute = lab_op_cost(&launch);
    cost->samples = (double)shape.mlp.rows;
}

const struct lab_workload lab_workload_mlp = {
    .name = "mlp",
    .help = "training of a multilayer perceptron: forward, backward and Adam",
    .description =
        "An iteration is one step on the next batch. Layers are dense with ReLU and dropout, the "
        "loss\n"
        "is the mean of squared errors, the update Adam's as Keras does it. medium has 54,403\n"
        "parameters, large 2,021,379. 10,000 samples of 50 features and 3 targets lie on the "
        "device.\n"
        "They are shuffled for each of eight epochs, which then repeat. An epoch leaves out "
        "samples\n"
        "that don't fill a batch.\n"
        "\n"
        "Several ranks of a study train one model: each does its rows of a batch. The gradients "
        "are\n"
        "summed over all of them and each updates its own copy. communication_time_ms is the time "
        "of a\n"
        "step's sums, exposed_communication_ms the part that the backward pass didn't overlap.\n"
        "\n"
        "Dropout depends on seed, step, layer, row and column alone: the same run gives the same\n"
        "losses again, on one device or several. Results are checked\n"
        "over up to 100 steps in double precision.",
    .options = options,
    .config_size = sizeof(struct mlp_config),
    .collective = true,
    .check = mlp_check,
    .canonical = mlp_canonical,
    .label = mlp_label,
    .label_words = mlp_label_words,
    .cost = mlp_cost,
    .share = mlp_share,
    .environment = mlp_environment,
    .open = mlp_open,
    .close = mlp_close,
    .run = mlp_run,
    .verify = mlp_verify,
};
