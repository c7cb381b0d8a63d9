/*
 * gpt2.c: training of GPT-2, by default the 124M-parameter model: forward, backward and AdamW. This
 * file holds the keys and what follows from them; the work is in gpt2/.
 */
#include "workload/gpt2/gpt2.h"
#include "model/result.h"

static const char *const dtype_choices[] = {"bf16", "tf32", "fp32", NULL};
static const char *const optimizer_choices[] = {"adamw", "adam", "sgd", NULL};
static const char *const allreduce_choices[] = {"auto", "ring", "hierarchical",
                                                "nccl", "none", NULL};
static const char *const scaling_choices[] = {"strong", "weak", NULL};
static const char *const recompute_choices[] = {"auto", "gelu", "none", NULL};

#define AT(field) offsetof(struct gpt2_config, field)

static const struct lab_option options[] = {
    {"depth", LAB_OPTION_INT, AT(depth), .fallback = "12", .min = 1, .max = 1000, .unit = "blocks",
     .help = "blocks of attention and MLP"},
    {"width", LAB_OPTION_INT, AT(width), .fallback = "768", .min = 64, .max = 16384,
     .unit = "elements", .help = "elements of a token in the residual stream"},
    {"heads", LAB_OPTION_INT, AT(heads), .fallback = "12", .min = 1, .max = 256, .unit = "heads",
     .help = "heads of attention, of 64 or 128 elements each"},
    {"seq", LAB_OPTION_INT, AT(seq), .fallback = "1024", .min = 1, .max = 1 << 20, .unit = "tokens",
     .help = "tokens of a sequence"},
    {"positions", LAB_OPTION_INT, AT(positions), .fallback = "1024", .min = 1, .max = 1 << 20,
     .unit = "tokens", .help = "length of the position table; a sequence is no longer"},
    {"vocab", LAB_OPTION_INT, AT(vocab), .fallback = "50257", .min = 2, .max = 1 << 20,
     .unit = "tokens", .help = "size of the vocabulary; the table is padded to a multiple of 128"},
    {"batch_size", LAB_OPTION_INT, AT(batch_size), .fallback = "4", .min = 1, .max = 1 << 16,
     .unit = "sequences", .help = "sequences of a micro-step"},
    {"accumulation", LAB_OPTION_INT, AT(accumulation), .fallback = "1", .min = 1, .max = 4096,
     .unit = "micro-steps", .help = "micro-steps whose gradients are added up before an update"},
    {"dtype", LAB_OPTION_CHOICE, AT(dtype), .fallback = "bf16", .choices = dtype_choices,
     .help = "number format of parameters, activations and gradients; AdamW's state is fp32"},
    {"optimizer", LAB_OPTION_CHOICE, AT(optimizer), .fallback = "adamw",
     .choices = optimizer_choices,
     .help = "adam: without weight_decay; sgd: with momentum beta1 and weight_decay, in the memory "
             "of adam"},
    {"lr", LAB_OPTION_FLOAT, AT(lr), .fallback = "6e-4", .min = 0, .max = 100, .unit = "per step",
     .help = "learning rate at its highest"},
    {"min_lr", LAB_OPTION_FLOAT, AT(min_lr), .fallback = "0.1", .min = 0, .max = 1, .unit = "share",
     .help = "share of lr where the cosine ends"},
    {"warmup", LAB_OPTION_INT, AT(warmup), .fallback = "0", .min = 0, .max = 1 << 30,
     .unit = "steps", .help = "steps over which the learning rate rises to lr"},
    {"steps", LAB_OPTION_INT, AT(steps), .fallback = "0", .min = 0, .max = 1 << 30, .unit = "steps",
     .help = "step at which the cosine ends; 0 = the rate stays at lr"},
    {"beta1", LAB_OPTION_FLOAT, AT(beta1), .fallback = "0.9", .min = 0, .max = 0.999999,
     .unit = "share", .help = "share that the gradient's mean keeps"},
    /* v += (1 − beta2)·(g² − v) leaves rounding of the old v: all of it where beta2 is 0 */
    {"beta2", LAB_OPTION_FLOAT, AT(beta2), .fallback = "0.95", .min = 0.001, .max = 0.999999,
     .unit = "share", .help = "share that the mean of squares keeps"},
    {"epsilon", LAB_OPTION_FLOAT, AT(epsilon), .fallback = "1e-8", .min = 1e-30, .max = 1,
     .unit = "number", .help = "added to the root of the mean of squares"},
    {"weight_decay", LAB_OPTION_FLOAT, AT(weight_decay), .fallback = "0.1", .min = 0, .max = 100,
     .unit = "per step", .help = "decay of weights and embeddings, times the learning rate"},
    {"grad_clip", LAB_OPTION_FLOAT, AT(grad_clip), .fallback = "1", .min = 0, .max = 1e30,
     .unit = "norm", .help = "largest norm of the gradient; 0 = it isn't clipped"},
    {"prune", LAB_OPTION_FLOAT, AT(prune), .fallback = "0", .min = 0, .max = 1e30, .unit = "number",
     .help = "weights below this magnitude become 0 at each update"},
    {"recompute", LAB_OPTION_CHOICE, AT(recompute), .fallback = "auto",
     .choices = recompute_choices,
     .help = "what backward computes again instead of keeping it; auto: GELU above 8 GiB"},
    {"compile_model", LAB_OPTION_FLAG, AT(compile_model), .fallback = "true",
     .help = "a step as a captured graph instead of single launches"},
    {"data", LAB_OPTION_STRING, AT(data), .value_name = "FILE",
     .help = "tokens, a .bin file of llm.c or nanoGPT; without it they are synthetic"},
    {"data_seed", LAB_OPTION_INT, AT(data_seed), .fallback = "42", .min = 0, .max = INT32_MAX,
     .unit = "number", .help = "seed of synthetic tokens and initial parameters"},
    {"sync_frequency", LAB_OPTION_INT, AT(sync_frequency), .fallback = "8", .min = 1, .max = 1000,
     .unit = "iterations", .help = "iterations between two synchronisations of the host"},
    {"checkpoint", LAB_OPTION_STRING, AT(checkpoint), .value_name = "FILE",
     .help = "where the state of the training is kept, at its end"},
    {"checkpoint_steps", LAB_OPTION_INT, AT(checkpoint_steps), .fallback = "0", .min = 0,
     .max = 1 << 30, .unit = "steps", .help = "steps between two checkpoints; 0 = only at the end"},
    {"resume_from", LAB_OPTION_STRING, AT(resume), .value_name = "FILE",
     .help = "checkpoint from which the training resumes"},
    {"allreduce", LAB_OPTION_CHOICE, AT(allreduce), .fallback = "auto",
     .choices = allreduce_choices,
     .help = "how several ranks sum their gradients; none: each trains a model of its own"},
    {"overlap", LAB_OPTION_FLAG, AT(overlap), .fallback = "true",
     .help = "sum the gradients of late blocks while those of early ones are still computed"},
    {"bucket", LAB_OPTION_SIZE, AT(bucket), .fallback = "25MiB", .min = 4, .max = 0x1p40,
     .unit = "bytes", .help = "least size of gradients summed at once, with overlap"},
    {"scaling", LAB_OPTION_CHOICE, AT(scaling), .fallback = "strong", .choices = scaling_choices,
     .help = "strong: ranks share batch_size; weak: each has as many sequences"},
    NCCL_OPTIONS(AT(nccl)),
    {NULL},
};

/* Far above any machine, far below where sizes would overflow. */
#define BYTES_MAX 0x1p44

static int check_files(const struct gpt2_config *config, struct lab_err *err) {
    const struct {
        const char *key, *path;
    } files[] = {{"data", config->data},
                 {"checkpoint", config->checkpoint},
                 {"resume_from", config->resume}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].path && !*files[i].path)
            return lab_err_set(err, LAB_ERR_USER, "%s=: the name of a file is empty; null = none",
                               files[i].key);
    if (config->checkpoint_steps > 0 && !config->checkpoint)
        return lab_err_set(err, LAB_ERR_USER,
                           "checkpoint_steps=%lld: no file is named, checkpoint=FILE",
                           (long long)config->checkpoint_steps);
    return 0;
}

static int gpt2_check(void *opaque, struct lab_err *err) {
    const struct gpt2_config *config = opaque;
    if (config->width % config->heads ||
        (config->width / config->heads != 64 && config->width / config->heads != 128))
        return lab_err_set(err, LAB_ERR_USER,
                           "width=%lld with heads=%lld: heads must have 64 or 128 elements each",
                           (long long)config->width, (long long)config->heads);
    if (config->seq > config->positions)
        return lab_err_set(err, LAB_ERR_USER, "seq=%lld: the position table ends at positions=%lld",
                           (long long)config->seq, (long long)config->positions);
    if (check_files(config, err))
        return -1;
    if (config->steps > 0 && config->warmup >= config->steps)
        return lab_err_set(err, LAB_ERR_USER,
                           "warmup=%lld: the cosine ends at steps=%lld, must be later",
                           (long long)config->warmup, (long long)config->steps);
    double rows = (double)config->batch_size * (double)config->seq;
    double bytes = 4.0 * rows * 20 * (double)config->width * (double)config->depth +
                   16.0 * (double)config->width *
                       (12.0 * (double)config->width * (double)config->depth +
                        (double)config->vocab + (double)config->positions);
    if (bytes > BYTES_MAX || rows > INT32_MAX / 2)
        return lab_err_set(err, LAB_ERR_USER,
                           "these sizes need about %.0f TiB: make depth, width, seq or batch_size "
                           "smaller",
                           bytes / 0x1p40);
    return nccl_settings_check(&config->nccl, err);
}

static const char *const *gpt2_environment(const void *config, struct lab_arena *arena) {
    return nccl_settings_words(&((const struct gpt2_config *)config)->nccl, arena);
}

static void gpt2_label(const void *opaque, struct lab_str *out) {
    const struct gpt2_config *config = opaque;
    lab_str_printf(out, "gpt2_%lldx%lldx%lld_batch%lld", (long long)config->depth,
                   (long long)config->width, (long long)config->seq, (long long)config->batch_size);
    if (config->accumulation > 1)
        lab_str_printf(out, "x%lld", (long long)config->accumulation);
    if (lab_str_equal(config->scaling, "weak"))
        lab_str_add(out, "_weak");
}

static void gpt2_label_words(const void *opaque, struct lab_str *out) {
    const struct gpt2_config *config = opaque;
    lab_str_printf(out, "GPT-2, depth %lld, width %lld, %lld tokens a sequence, %scompiled",
                   (long long)config->depth, (long long)config->width, (long long)config->seq,
                   config->compile_model ? "" : "not ");
}

/* --- cost --- */

static void visit_launches(const struct gpt2_config *config, const struct gpt2_shape *shape,
                           lab_launch_visit *visit, void *state) {
    struct gpt2_model model = {.shape = *shape, .config = config};
    model.memory = gpt2_memory_of(&model.shape);
    struct gpt2_list list = {0};
    for (int64_t i = 0; i < config->accumulation; i++)
        gpt2_list_gradient(&model, i > 0, &list);
    gpt2_list_loss(&model, &list);
    gpt2_list_update(&model, &list);
    for (int i = 0; i < list.count; i++)
        visit(&list.items[i], state);
    gpt2_list_release(&list);
}

static void gpt2_kernels(const void *config, lab_launch_visit *visit, void *state) {
    struct gpt2_shape shape = gpt2_shape_of(config);
    visit_launches(config, &shape, visit, state);
}

/* A model's own operations: GELU computed again is none. */
static void add_cost(const struct lab_launch *launch, void *state) {
    struct lab_workload_cost *total = state;
    struct lab_cost cost = lab_op_cost(launch);
    total->compute.flops += launch->op == LAB_OP_GELU_TANH ? 0 : cost.flops;
    total->compute.bytes_read += cost.bytes_read;
    total->compute.bytes_written += cost.bytes_written;
    total->launches++;
}

void gpt2_cost_of(const struct gpt2_config *config, struct gpt2_shape s,
                  struct lab_workload_cost *ret_cost) {
    *ret_cost = (struct lab_workload_cost){
        .samples = (double)s.rows * (double)s.accumulation,
        .device_bytes = gpt2_device_bytes(&s),
        .host_bytes =
            2 * config->sync_frequency * s.accumulation * 2 * s.rows * (int64_t)sizeof(float),
        .dtype = s.dtype,
        .parameters = (double)gpt2_parameters(&s),
        .layers = (double)s.depth,
    };
    visit_launches(config, &s, add_cost, ret_cost);
}

static void gpt2_cost(const void *config, struct lab_workload_cost *ret_cost) {
    gpt2_cost_of(config, gpt2_shape_of(config), ret_cost);
}

static void gpt2_share(const void *config, int index, int count, struct lab_workload_cost *cost) {
    gpt2_cost_of(config, gpt2_shape_of_rank(config, index, count), cost);
}

const struct lab_workload lab_workload_gpt2 = {
    .name = "gpt2",
    .rate_unit = LAB_RATE_TOKENS,
    .help = "training of GPT-2: forward, backward and AdamW",
    .description =
        "An iteration is one step: accumulation micro-steps of batch_size sequences, and one\n"
        "update. Samples are tokens. The default is the 124M-parameter model: pre-norm blocks,\n"
        "causal attention, GELU (tanh), a head that shares the embedding's table. Parameters,\n"
        "activations and gradients have the dtype; AdamW keeps fp32 parameters and moments.\n"
        "\n"
        "FLOPs are counted from the definition: 2·m·n·k for a product, half of the scores of\n"
        "causal attention, and nothing that is computed again. The share of the device's limit\n"
        "is therefore the model FLOP utilisation (MFU). joules_per_million_tokens comes from the\n"
        "GPU's energy counter, device_memory_gib is what the workload allocated.\n"
        "\n"
        "sgd is m = beta1·m + g, p −= lr·(m + weight_decay·p): AdamW without its root.\n"
        "\n"
        "Several ranks of a study train one model: each does its sequences of a batch. Gradients\n"
        "are summed in the dtype, in buckets, from the last block on. communication_time_ms is\n"
        "the time of a step's sums, exposed_communication_ms the part that the backward pass\n"
        "didn't overlap. forward_ms ends before the head; of several micro-steps it is the last.\n"
        "\n"
        "A training that resumes from a checkpoint has the losses of one that never stopped.\n"
        "\n"
        "Gradients, updates and losses are checked in double precision over up to 100 steps. For\n"
        "a large model, one with 2 blocks and one head is checked instead.",
    .options = options,
    .config_size = sizeof(struct gpt2_config),
    .collective = true,
    .check = gpt2_check,
    .label = gpt2_label,
    .label_words = gpt2_label_words,
    .cost = gpt2_cost,
    .kernels = gpt2_kernels,
    .share = gpt2_share,
    .environment = gpt2_environment,
    .open = gpt2_open,
    .close = gpt2_close,
    .run = gpt2_run,
    .finish = gpt2_finish,
    .verify = gpt2_verify,
};
