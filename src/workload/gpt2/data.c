/*
 * data.c: what is learnt from, and from where. A file is llm.c's (256 header words of 32 bits, of
 * which the first three are magic, version and count) or nanoGPT's (no header); behind that both
 * hold tokens of 16 bits. Without one, tokens are drawn by counter: frequencies fall as 1/rank, as
 * words' do, and half of the tokens follow from the one before, so that there is something to
 * learn.
 */
#include "workload/gpt2/gpt2.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

#define MAGIC        20240520
#define MAGIC_WIDE   20240801 /* llm.c's files for Llama 3: tokens of 32 bits */
#define MAGIC_FIRST  20240101 /* llm.c's files of all kinds begin with a day of that year */
#define MAGIC_LAST   20241231
#define HEADER_BYTES 1024

/* --- files --- */

/* A file of llm.c's, by its first words. nanoGPT's begin with tokens, of which GPT-2 has none as
 * high as the lower half of such a number. */
static int check_header(const char *path, const int32_t header[3], size_t length,
                        struct lab_err *err) {
    if (header[0] == MAGIC_WIDE)
        return lab_err_set(err, LAB_ERR_USER,
                           "data=%s: llm.c's tokens of 32 bits, must be of 16 as GPT-2's are",
                           path);
    if (header[0] != MAGIC)
        return lab_err_set(err, LAB_ERR_USER,
                           "data=%s: llm.c's file of kind %d, must be %d: tokens of 16 bits", path,
                           (int)header[0], MAGIC);
    if (length < HEADER_BYTES)
        return lab_err_set(err, LAB_ERR_USER,
                           "data=%s: cut short, %zu of the %d bytes of its header", path, length,
                           HEADER_BYTES);
    if (header[1] != 1)
        return lab_err_set(err, LAB_ERR_USER, "data=%s: version %d of llm.c's format, must be 1",
                           path, (int)header[1]);
    if (header[2] < 0)
        return lab_err_set(err, LAB_ERR_USER, "data=%s: damaged, its header names %d tokens", path,
                           (int)header[2]);
    int64_t found = (int64_t)((length - HEADER_BYTES) / sizeof(uint16_t));
    if (found < header[2])
        return lab_err_set(err, LAB_ERR_USER,
                           "data=%s: cut short, %lld of the %d tokens that its header names", path,
                           (long long)found, (int)header[2]);
    return 0;
}

static int find_tokens(const char *path, struct gpt2_data *data, struct lab_err *err) {
    size_t length = data->file.length, start = 0;
    int32_t header[3] = {0};
    if (length > 0)
        memcpy(header, data->file.bytes, length < sizeof header ? length : sizeof header);
    bool has_header = header[0] >= MAGIC_FIRST && header[0] <= MAGIC_LAST;
    if (has_header) {
        start = HEADER_BYTES;
        if (check_header(path, header, length, err))
            return -1;
    } else if (length % sizeof(uint16_t)) {
        return lab_err_set(err, LAB_ERR_USER,
                           "data=%s: cut short, %zu bytes aren't whole tokens of 2", path, length);
    }
    data->count = has_header ? header[2] : (int64_t)(length / sizeof(uint16_t));
    if (length > start) /* which is even */
        data->tokens = (const uint16_t *)(const void *)(data->file.bytes + start);
    return 0;
}

/* The largest of some tokens, without a branch for each: files have 10^10. */
static uint16_t largest_of(const uint16_t *tokens, int64_t count) {
    uint16_t largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = tokens[i] > largest ? tokens[i] : largest;
    return largest;
}

static int check_tokens(const struct gpt2_config *config, const struct gpt2_shape *shape,
                        const struct gpt2_data *data, struct lab_err *err) {
    int64_t needed = shape->batch_rows + 1, piece = 4096;
    if (data->count < needed)
        return lab_err_set(
            err, LAB_ERR_USER, "data=%s: %lld tokens, a batch of %lld sequences of %lld needs %lld",
            config->data, (long long)data->count, (long long)(shape->batch_rows / config->seq),
            (long long)config->seq, (long long)needed);
    for (int64_t at = 0; at < data->count; at += piece) {
        int64_t count = data->count - at < piece ? data->count - at : piece;
        if (largest_of(data->tokens + at, count) < config->vocab)
            continue;
        while (data->tokens[at] < config->vocab)
            at++;
        return lab_err_set(err, LAB_ERR_USER, "data=%s: token %lld is %d, must be below vocab=%lld",
                           config->data, (long long)at, data->tokens[at], (long long)config->vocab);
    }
    return 0;
}

int gpt2_data_open(const struct gpt2_config *config, const struct gpt2_shape *shape,
                   struct gpt2_data *ret_data, struct lab_err *err) {
    struct gpt2_data data = {.seed = (uint64_t)config->data_seed, .vocab = config->vocab};
    if (config->data && lab_file_map_open(config->data, &data.file, err))
        return lab_err_context(err, "data");
    if (config->data &&
        (find_tokens(config->data, &data, err) || check_tokens(config, shape, &data, err))) {
        gpt2_data_close(&data);
        return -1;
    }
    *ret_data = data;
    return 0;
}

void gpt2_data_close(struct gpt2_data *data) {
    lab_file_map_close(&data->file);
    *data = (struct gpt2_data){0};
}

/* --- by chance --- */

enum { RANKS, FOLLOWS, WEIGHTS }; /* streams of random numbers, isolated from each other */

static uint64_t stream(uint64_t seed, int which) {
    return lab_random_bits(seed, (uint64_t)which);
}

/* Log-uniform: rank k has a share of about 1/k. */
static int64_t draw(const struct gpt2_data *data, int64_t index) {
    double u = lab_random_uniform(stream(data->seed, RANKS), (uint64_t)index);
    int64_t token = (int64_t)exp(u * log((double)data->vocab + 1)) - 1;
    return token < data->vocab ? token : data->vocab - 1;
}

static int64_t token_at(const struct gpt2_data *data, int64_t index) {
    bool follows = index > 0 && lab_random_bits(stream(data->seed, FOLLOWS), (uint64_t)index) & 1;
    return follows ? (draw(data, index - 1) * 31 + 7) % data->vocab : draw(data, index);
}

void gpt2_data_read(const struct gpt2_data *data, const struct gpt2_shape *shape, int64_t index,
                    float *ret_tokens, float *ret_targets) {
    int64_t batches = data->tokens ? (data->count - 1) / shape->batch_rows : index + 1;
    int64_t first = index % batches * shape->batch_rows + shape->first_row;
    for (int64_t i = 0; i <= shape->rows; i++) {
        float token =
            data->tokens ? (float)data->tokens[first + i] : (float)token_at(data, first + i);
        if (i < shape->rows)
            ret_tokens[i] = token;
        if (i > 0)
            ret_targets[i - 1] = token;
    }
}

/* --- parameters: GPT-2's deviations, from uniform numbers --- */

#define DEVIATION 0.02

/* What number `at` of the vector is drawn within; 0 = it is set: the norms' factors to 1. */
static double limit_of(const struct gpt2_shape *s, int64_t at) {
    int64_t square = s->width * s->width;
    if (at >= s->biases_at || (at >= s->vocab * s->width && at < s->positions_at))
        return 0; /* biases, norms, and rows that pad the table */
    int64_t inside = at < s->linear_at ? 0 : (at - s->linear_at) / square % GPT2_LINEAR;
    bool ends = inside == 3 || inside >= 8; /* layers that add to the residual stream */
    return DEVIATION * sqrt(3) / (ends ? sqrt(2.0 * (double)s->depth) : 1);
}

void gpt2_initial_source(const void *state, int64_t first, int64_t count, float *out) {
    const struct gpt2_initial *initial = state;
    const struct gpt2_shape *s = initial->shape;
    uint64_t seed = stream(initial->seed, WEIGHTS);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first + i;
        bool is_factor = at >= s->norms_at && at < s->parameters &&
                         (at - s->norms_at) / s->width % GPT2_NORM == 0;
        double limit = at < s->parameters ? limit_of(s, at) : 0;
        out[i] = is_factor   ? 1
                 : limit > 0 ? (float)limit * lab_random_symmetric(seed, (uint64_t)at)
                             : 0;
    }
}

/* --- the schedule --- */

double gpt2_rate(const struct gpt2_config *config, int64_t step) {
    double rate = config->lr, least = config->lr * config->min_lr;
    if (step < config->warmup)
        return rate * (double)(step + 1) / (double)config->warmup;
    if (config->steps <= config->warmup)
        return rate;
    double done = (double)(step - config->warmup) / (double)(config->steps - config->warmup);
    return least + 0.5 * (rate - least) * (1 + cos(M_PI * fmin(1, done)));
}

void gpt2_control(const struct gpt2_config *config, int64_t step,
                  float ret_control[LAB_ADAMW_CONTROLS]) {
    bool is_sgd = gpt2_is_sgd(config);
    double t = (double)(step + 1);
    ret_control[LAB_ADAMW_RATE] = (float)gpt2_rate(config, step);
    ret_control[LAB_ADAMW_SCALE] = 1;
    ret_control[LAB_ADAMW_BIAS1] = (float)(1 / (1 - pow(config->beta1, is_sgd ? 1 : t)));
    ret_control[LAB_ADAMW_BIAS2] = is_sgd ? 0 : (float)(1 / (1 - pow(config->beta2, t)));
    ret_control[LAB_ADAMW_THRESHOLD] = (float)config->prune;
    ret_control[LAB_ADAMW_NORM] = 0;
}
