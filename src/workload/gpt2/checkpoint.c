/*
 * checkpoint.c: a training's state as a file, from which it goes on as if it had not stopped. The
 * file holds what a step depends on: the count of steps, and in fp32 the parameters and both
 * moments of the optimizer. All else follows from the keys.
 *
 *     header   16 words of 64 bits, little-endian: magic, version, steps done, values, then the
 *              shape (shape_of), zeros
 *     values   fp32 [3, parameters]: parameters, first and second moments, in the order of gpt2.h
 *     hash     64 bits over all before it
 *
 * It appears whole or not at all (out_file.h): a program that is killed leaves the one before.
 */
#include "workload/gpt2/gpt2.h"

#include "base/file/map.h"
#include "base/file/out_file.h"
#include "base/hash.h"

#include <string.h>

#define MAGIC   INT64_C(0x54504b4332545047) /* "GPT2CKPT" */
#define VERSION 1
#define PIECE   (INT64_C(1) << 20) /* values that are on their way at a time */

enum { AT_MAGIC, AT_VERSION, AT_STEP, AT_VALUES, AT_SHAPE, HEADER_WORDS = 16 };

/* What must agree, by the names of the keys. Of optimizers 1 is sgd, whose state is another. */
enum { BY_SGD = 5, SHAPE_WORDS };

static const char *const shape_names[SHAPE_WORDS] = {"depth",     "width", "heads",
                                                     "positions", "vocab", "optimizer"};

static void shape_of(const struct gpt2_training *t, int64_t ret_words[SHAPE_WORDS]) {
    const struct gpt2_shape *s = &t->model.shape;
    const int64_t words[] = {s->depth,     s->width, s->heads,
                             s->positions, s->vocab, gpt2_is_sgd(t->config)};
    memcpy(ret_words, words, sizeof words);
}

/* --- writing --- */

static int write_hashed(struct lab_out_file *file, const void *bytes, size_t length, uint64_t *hash,
                        struct lab_err *err) {
    *hash = lab_hash_bytes(*hash, bytes, length);
    return lab_out_file_write(file, bytes, length, err);
}

static int write_all(struct gpt2_training *t, struct lab_out_file *file, struct lab_err *err) {
    int64_t count = 3 * t->model.shape.parameters;
    int64_t header[HEADER_WORDS] = {MAGIC, VERSION, t->step, count};
    uint64_t hash = LAB_HASH_START;
    LAB_AUTO_FREE float *piece = lab_mem_alloc((size_t)PIECE, sizeof *piece);
    shape_of(t, header + AT_SHAPE);
    if (write_hashed(file, header, sizeof header, &hash, err))
        return -1;
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t values = count - at < PIECE ? count - at : PIECE;
        if (lab_data_download(t->stream, (const float *)t->singles.data + at, LAB_FP32, values,
                              piece, err) ||
            write_hashed(file, piece, (size_t)values * sizeof *piece, &hash, err))
            return -1;
    }
    return lab_out_file_write(file, (const char *)&hash, sizeof hash, err);
}

int gpt2_checkpoint_check(const struct gpt2_config *config, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_out_file file;
    if (lab_out_file_open(config->checkpoint, &arena, &file, err))
        return lab_err_context(err, "checkpoint");
    lab_out_file_drop(&file);
    return 0;
}

int gpt2_checkpoint_save(struct gpt2_training *t, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_out_file file;
    if (lab_out_file_open(t->config->checkpoint, &arena, &file, err))
        return lab_err_context(err, "checkpoint");
    if (write_all(t, &file, err)) {
        lab_out_file_drop(&file);
        return lab_err_context(err, "checkpoint");
    }
    return lab_out_file_finish(&file, err) ? lab_err_context(err, "checkpoint") : 0;
}

/* --- reading --- */

static int refuse_shape(const char *path, int word, int64_t its, int64_t ours,
                        struct lab_err *err) {
    if (word == BY_SGD)
        return lab_err_set(err, LAB_ERR_USER,
                           "resume_from=%s: its optimizer is %s, this training's is %s", path,
                           its ? "sgd" : "adam or adamw", ours ? "sgd" : "adam or adamw");
    return lab_err_set(err, LAB_ERR_USER, "resume_from=%s: its %s is %lld, this training's is %lld",
                       path, shape_names[word], (long long)its, (long long)ours);
}

/* Whether it is one, then whether it is of this model, then whether all of it is there. */
static int check_file(const struct gpt2_training *t, const char *bytes, size_t length,
                      struct lab_err *err) {
    const char *path = t->config->resume;
    int64_t header[HEADER_WORDS] = {0}, shape[SHAPE_WORDS];
    uint64_t hash;
    size_t whole = sizeof header + (size_t)(3 * t->model.shape.parameters) * sizeof(float);
    if (length > 0)
        memcpy(header, bytes, length < sizeof header ? length : sizeof header);
    if (header[AT_MAGIC] != MAGIC)
        return lab_err_set(err, LAB_ERR_USER, "resume_from=%s: no checkpoint of a gpt2 training",
                           path);
    if (length >= sizeof header && header[AT_VERSION] != VERSION)
        return lab_err_set(err, LAB_ERR_USER,
                           "resume_from=%s: version %lld of the format, must be %d", path,
                           (long long)header[AT_VERSION], VERSION);
    shape_of(t, shape);
    for (int i = 0; i < SHAPE_WORDS && length >= sizeof header; i++)
        if (header[AT_SHAPE + i] != shape[i])
            return refuse_shape(path, i, header[AT_SHAPE + i], shape[i], err);
    if (length < whole + sizeof hash)
        return lab_err_set(err, LAB_ERR_USER, "resume_from=%s: cut short, %zu of %zu bytes", path,
                           length, whole + sizeof hash);
    if (length > whole + sizeof hash || header[AT_VALUES] != 3 * t->model.shape.parameters)
        return lab_err_set(err, LAB_ERR_USER, "resume_from=%s: damaged, %zu bytes, must be %zu",
                           path, length, whole + sizeof hash);
    memcpy(&hash, bytes + whole, sizeof hash);
    if (hash != lab_hash_bytes(LAB_HASH_START, bytes, whole) || header[AT_STEP] < 0)
        return lab_err_set(err, LAB_ERR_USER, "resume_from=%s: damaged, its hash doesn't match",
                           path);
    return 0;
}

/* Of the file's values, which stand behind the header. */
static void values_source(const void *state, int64_t first, int64_t count, float *out) {
    memcpy(out, (const float *)state + first, (size_t)count * sizeof *out);
}

static int load_values(struct gpt2_training *t, const char *bytes, struct lab_err *err) {
    const struct gpt2_shape *s = &t->model.shape;
    const void *values = bytes + HEADER_WORDS * sizeof(int64_t);
    if (lab_data_upload(t->stream, t->singles.data, LAB_FP32, 3 * s->parameters, values_source,
                        values, err) ||
        lab_data_upload(t->stream, t->values.data, s->dtype, s->parameters, values_source, values,
                        err))
        return -1;
    memcpy(&t->step, bytes + AT_STEP * sizeof(int64_t), sizeof t->step);
    return 0;
}

int gpt2_checkpoint_load(struct gpt2_training *t, struct lab_err *err) {
    struct lab_file_map file;
    if (lab_file_map_open(t->config->resume, &file, err))
        return lab_err_context(err, "resume_from");
    int failed = check_file(t, file.bytes, file.length, err) || load_values(t, file.bytes, err);
    lab_file_map_close(&file);
    return failed ? -1 : 0;
}
