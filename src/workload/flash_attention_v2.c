/*
 * flash_attention_v2.c: attention forward, [batch, seq, heads, head_dim], of any length, causal or
 * not, with as many heads of keys and values as of queries or fewer. What a model with long inputs
 * spends its time on; both a device's multipliers and its memory matter.
 */
#include "workload/kernel/kernel.h"

#include <math.h>

struct flash_config {
    int64_t batch, heads, kv_heads, seq, head_dim;
    bool causal;
    const char *dtype, *config;
};

static const struct lab_option options[] = {
    {"batch", LAB_OPTION_INT, offsetof(struct flash_config, batch), .fallback = "2", .min = 1,
     .max = 1 << 16, .unit = "sequences", .help = "sequences at a time"},
    {"heads", LAB_OPTION_INT, offsetof(struct flash_config, heads), .fallback = "8", .min = 1,
     .max = 1 << 10, .unit = "heads", .help = "heads of queries"},
    {"kv_heads", LAB_OPTION_INT, offsetof(struct flash_config, kv_heads), .fallback = "0", .min = 0,
     .max = 1 << 10, .unit = "heads",
     .help = "heads of keys and values, of which heads is a multiple; 0 is as many"},
    {"seq", LAB_OPTION_INT, offsetof(struct flash_config, seq), .fallback = "1024", .min = 1,
     .max = 1 << 22, .unit = "tokens", .help = "length of a sequence"},
    {"head_dim", LAB_OPTION_INT, offsetof(struct flash_config, head_dim), .fallback = "64",
     .min = 64, .max = 256, .unit = "elements", .help = "width of a head: 64, 96, 128 or 256"},
    {"causal", LAB_OPTION_FLAG, offsetof(struct flash_config, causal), .fallback = "false",
     .help = "a token sees itself and those before it alone"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct flash_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the tensors"},
    KERNEL_CONFIG_OPTION(struct flash_config, config),
    {NULL},
};

static int64_t kv_heads_of(const struct flash_config *config) {
    return config->kv_heads ? config->kv_heads : config->heads;
}

static void flash_attention_v2_launch(const void *opaque, struct lab_launch *ret_launch) {
    const struct flash_config *config = opaque;
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype);
    const int64_t queries[] = {config->batch, config->seq, config->heads, config->head_dim};
    const int64_t keys[] = {config->batch, config->seq, kv_heads_of(config), config->head_dim};
    struct lab_tensor q = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, queries);
    struct lab_tensor kv = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, keys);
    *ret_launch = (struct lab_launch){.op = LAB_OP_FLASH_ATTENTION,
                                      .in = {q, kv, kv},
                                      .out = q,
                                      .causal = config->causal,
                                      .scale = 1.0f / sqrtf((float)config->head_dim)};
}

static int flash_attention_v2_check(void *opaque, struct lab_err *err) {
    const struct flash_config *config = opaque;
    if (config->head_dim != 64 && config->head_dim != 96 && config->head_dim != 128 &&
        config->head_dim != 256)
        return lab_err_set(err, LAB_ERR_USER, "head_dim=%lld: must be 64, 96, 128 or 256",
                           (long long)config->head_dim);
    if (config->heads % kv_heads_of(config))
        return lab_err_set(err, LAB_ERR_USER, "kv_heads=%lld: heads=%lld is not a multiple of it",
                           (long long)config->kv_heads, (long long)config->heads);
    return 0;
}

static void flash_attention_v2_canonical(void *opaque) {
    struct flash_config *config = opaque;
    config->kv_heads = kv_heads_of(config);
}

static void flash_attention_v2_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct flash_config *config = opaque;
    kernel_cost(flash_attention_v2_launch, config, (double)config->batch, ret_cost);
}

/* A row is one head of one token: its query against the keys that it sees. */
static void reference_row(const struct lab_launch *launch, const float *const *in, int64_t row,
                          double *out) {
    int64_t tokens = launch->out.shape[1], heads = launch->out.shape[2];
    int64_t width = launch->out.shape[3], kv_heads = launch->in[1].shape[2];
    int64_t head = row % heads, token = row / heads % tokens, image = row / heads / tokens;
    int64_t stride = kv_heads * width, seen = launch->causal ? token + 1 : tokens;
    const float *q = in[0] + row * width;
    const float *k = in[1] + image * tokens * stride + head * kv_heads / heads * width;
    const float *v = in[2] + (k - in[1]);
    LAB_AUTO_FREE double *scores = lab_mem_alloc((size_t)seen, sizeof *scores);
    double top = -INFINITY, sum = 0;
    for (int64_t t = 0; t < seen; t++) {
        for (int64_t w = 0; w < width; w++)
            scores[t] += (double)q[w] * (double)k[t * stride + w];
        scores[t] *= (double)launch->scale;
        top = fmax(top, scores[t]);
    }
    for (int64_t w = 0; w < width; w++)
        out[w] = 0;
    for (int64_t t = 0; t < seen; t++) {
        double share = exp(scores[t] - top);
        sum += share;
        for (int64_t w = 0; w < width; w++)
            out[w] += share * (double)v[t * stride + w];
    }
    for (int64_t w = 0; w < width; w++)
        out[w] /= sum;
}

static int flash_attention_v2_open(const void *opaque, const struct lab_rank *rank,
                                   void **ret_state, struct lab_err *err) {
    const struct flash_config *config = opaque;
    return kernel_open(flash_attention_v2_launch, config, config->config, reference_row, rank,
                       ret_state, err);
}

static void flash_attention_v2_label(const void *opaque, struct lab_str *out) {
    const struct flash_config *config = opaque;
    lab_str_printf(out, "flash%lldx%lldx%lldx%lld", (long long)config->batch,
                   (long long)config->seq, (long long)config->heads, (long long)config->head_dim);
    if (kv_heads_of(config) != config->heads)
        lab_str_printf(out, "_kv%lld", (long long)kv_heads_of(config));
    if (config->causal)
        lab_str_add(out, "_causal");
}

static void flash_attention_v2_label_words(const void *opaque, struct lab_str *out) {
    const struct flash_config *config = opaque;
    lab_str_printf(out, "batch %lld, %lld tokens, %lld heads, %lld wide", (long long)config->batch,
                   (long long)config->seq, (long long)config->heads, (long long)config->head_dim);
}

static const char *const aliases[] = {"flash_attention", NULL};

const struct lab_workload lab_workload_flash_attention_v2 = {
    .name = "flash_attention_v2",
    .aliases = aliases,
    .help = "attention forward of any sequence length, without the scores in memory",
    .description =
        "Its rate counts the two products, 4·batch·heads·seq²·head_dim, and half of them where it "
        "is causal, as is usual in publications.",
    .options = options,
    .config_size = sizeof(struct flash_config),
    .check = flash_attention_v2_check,
    .canonical = flash_attention_v2_canonical,
    .label = flash_attention_v2_label,
    .label_words = flash_attention_v2_label_words,
    .cost = flash_attention_v2_cost,
    .open = flash_attention_v2_open,
    .close = kernel_close,
    .run = kernel_run,
    .verify = kernel_verify,
    .launch = flash_attention_v2_launch,
    .configure = kernel_configure,
};
