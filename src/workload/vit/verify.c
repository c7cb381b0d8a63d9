/*
 * verify.c: the pipeline's results against the reference.
 *
 * Two iterations go through the same streams and buffers as any run, so that both buffers (and both
 * captured graphs) are seen. They carry batch + 1 fresh images, the second batch shifted by one: an
 * image is at another place in each, a mixed-up buffer shows, and one reference serves both. All
 * outputs are looked at for poison; a reference in double precision is made for as many images as
 * fit the budget.
 */
#include "workload/vit/vit.h"

#include "base/random.h"

#include <math.h>

#define REFERENCE_FLOPS 1e10 /* about a second; one image is checked in any case */

struct check {
    struct vit_pipeline *pipeline;
    const struct vit_shape *shape;
    uint64_t seed;
    int64_t first, count; /* images whose reference is made, of 0 … batch */
    struct lab_verification *ret;
};

static char *batch_at(const struct vit_pipeline *pipeline, int64_t batch) {
    return (char *)pipeline->pool.data + (size_t)batch * pipeline->shape.input_bytes;
}

/* Image `index` of the fresh ones, as the device will see it: rounded to its number format. */
static void draw_image(const struct check *check, int64_t index, float *values, void *encoded) {
    const struct vit_shape *s = check->shape;
    lab_data_random(&check->seed, index * s->image_elements, s->image_elements, values);
    lab_data_encode(s->dtype, values, s->image_elements, encoded);
    lab_data_decode(s->dtype, encoded, s->image_elements, values);
}

/* Batch b of the pool gets images b … b + batch − 1. */
static void draw_batches(const struct check *check) {
    const struct vit_shape *s = check->shape;
    LAB_AUTO_FREE float *values = lab_mem_alloc((size_t)s->image_elements, sizeof *values);
    size_t image_bytes = s->input_bytes / (size_t)s->batch;
    for (int64_t batch = 0; batch < VIT_BUFFERS; batch++)
        for (int64_t i = 0; i < s->batch; i++)
            draw_image(check, batch + i, values,
                       batch_at(check->pipeline, batch) + (size_t)i * image_bytes);
}

/* Nothing that a run writes may hold a plausible value before it. */
static int poison(const struct check *check, struct lab_err *err) {
    struct vit_pipeline *pipeline = check->pipeline;
    const struct vit_shape *s = check->shape;
    const float value = LAB_POISON;
    for (int i = 0; i < VIT_BUFFERS; i++) {
        char *host = pipeline->host_out[i].data;
        if (pipeline->back_input) /* every byte differs from the one that must come */
            for (size_t at = 0; at < pipeline->back_bytes; at++)
                host[at] = (char)~batch_at(pipeline, i)[at];
        else
            for (int64_t at = 0; at < s->output_elements; at++)
                lab_data_encode(s->dtype, &value, 1, host + (size_t)at * lab_dtype_bytes(s->dtype));
        struct lab_stream *stream = pipeline->streams[LAB_STAGE_H2D];
        if (lab_data_upload(stream, pipeline->device_in[i].data, s->dtype, s->input_elements,
                            lab_data_constant, &value, err) ||
            (pipeline->forward &&
             lab_data_upload(stream, pipeline->device_out[i].data, s->dtype, s->output_elements,
                             lab_data_constant, &value, err)))
            return -1;
    }
    return 0;
}

static int run_both(struct vit_pipeline *pipeline, struct lab_err *err) {
    struct lab_iteration records[VIT_BUFFERS];
    int64_t next = pipeline->pool_next;
    pipeline->pool_next = 0;
    int failed = vit_run(pipeline, VIT_BUFFERS, records, err);
    pipeline->pool_next = next;
    return failed;
}

/* --- input that came back --- */

static void compare_input(const struct check *check) {
    struct vit_pipeline *pipeline = check->pipeline;
    for (int i = 0; i < VIT_BUFFERS; i++) {
        lab_verify_bytes(pipeline->host_out[i].data, batch_at(pipeline, i), pipeline->back_bytes,
                         check->ret);
        if (!check->ret->passed)
            return;
    }
}

/* --- the model's output --- */

static void draw_weights(const void *state, int index, float *out) {
    const struct vit_pipeline *pipeline = state;
    struct vit_parameter parameter = vit_parameter_at(&pipeline->shape, index);
    int64_t count = vit_parameter_count(&parameter);
    vit_parameter_draw(&pipeline->shape, pipeline->seed, index, 0, count, out);
    if (lab_dtype_bytes(pipeline->shape.dtype) == sizeof(float))
        return;
    LAB_AUTO_FREE void *encoded =
        lab_mem_alloc((size_t)count, lab_dtype_bytes(pipeline->shape.dtype));
    lab_data_encode(pipeline->shape.dtype, out, count, encoded);
    lab_data_decode(pipeline->shape.dtype, encoded, count, out);
}

/* As many images as the budget allows; a batch of one needs both, else one serves both batches. */
static void choose_images(struct check *check) {
    const struct vit_shape *s = check->shape;
    int launches;
    double flops = vit_model_cost(&check->pipeline->model, &launches).flops;
    double per_image = flops / (double)s->batch;
    int64_t count = (int64_t)fmin(REFERENCE_FLOPS / per_image, (double)s->batch + 1);
    int64_t least = s->batch == 1 ? 2 : 1;
    check->count = count < least ? least : count;
    /* of those that are in both batches (1 … batch − 1) wherever that is enough */
    int64_t choices = s->batch - check->count;
    if (choices > 0)
        check->first = 1 + (int64_t)lab_random_below(check->seed, 0, (uint64_t)choices);
    else
        check->first = check->count > s->batch ? 0 : 1;
}

static double *make_references(const struct check *check) {
    const struct vit_shape *s = check->shape;
    LAB_AUTO_FREE float *images =
        lab_mem_alloc((size_t)(check->count * s->image_elements), sizeof *images);
    LAB_AUTO_FREE void *encoded = lab_mem_alloc((size_t)s->image_elements, sizeof(float));
    double *out = lab_mem_alloc((size_t)(check->count * s->tokens * s->dim), sizeof *out);
    for (int64_t i = 0; i < check->count; i++)
        draw_image(check, check->first + i, images + i * s->image_elements, encoded);
    vit_reference(s, draw_weights, check->pipeline, images, check->count, out);
    return out;
}

static int read_outputs(const struct check *check, float *out, struct lab_err *err) {
    struct vit_pipeline *pipeline = check->pipeline;
    const struct vit_shape *s = check->shape;
    for (int i = 0; i < VIT_BUFFERS; i++) {
        float *to = out + i * s->output_elements;
        if (!pipeline->back_input)
            lab_data_decode(s->dtype, pipeline->host_out[i].data, s->output_elements, to);
        else if (lab_data_download(pipeline->streams[LAB_STAGE_D2H], pipeline->device_out[i].data,
                                   s->dtype, s->output_elements, to, err))
            return -1;
    }
    return 0;
}

/* Collects each checked image from each batch it was in, beside its reference, and compares. */
static void compare_checked(const struct check *check, const float *outputs,
                            const double *references) {
    const struct vit_shape *s = check->shape;
    int64_t image_out = s->tokens * s->dim, found = 0;
    size_t most = (size_t)(VIT_BUFFERS * check->count * image_out);
    LAB_AUTO_FREE float *out = lab_mem_alloc(most, sizeof *out);
    LAB_AUTO_FREE double *reference = lab_mem_alloc(most, sizeof *reference);
    for (int64_t batch = 0; batch < VIT_BUFFERS; batch++)
        for (int64_t i = 0; i < check->count; i++) {
            int64_t place = check->first + i - batch;
            if (place < 0 || place >= s->batch)
                continue;
            memcpy(out + found * image_out,
                   outputs + batch * s->output_elements + place * image_out,
                   (size_t)image_out * sizeof *out);
            memcpy(reference + found * image_out, references + i * image_out,
                   (size_t)image_out * sizeof *reference);
            found++;
        }
    lab_verify_compare(out, reference, found * image_out, LAB_POISON,
                       lab_verify_tolerance(s->dtype), check->ret);
    /* images without a reference must at least have been written, with numbers */
    int64_t all = VIT_BUFFERS * s->output_elements, unwritten = 0;
    for (int64_t i = 0; i < all; i++)
        unwritten += outputs[i] == LAB_POISON || !isfinite(outputs[i]);
    lab_verify_partial(check->ret, found, VIT_BUFFERS * s->batch, "images", unwritten, all);
}

/* Outputs as floats, twice; of the checked images all that the reference holds at once. */
static double verification_bytes(const struct check *check) {
    const struct vit_shape *s = check->shape;
    double image = (double)s->image_elements * sizeof(float);
    double token = (double)(6 * s->dim + 4 * s->inner + 2 * s->mlp) * sizeof(double);
    double patches = 2.0 * (double)s->patches * (double)s->patch_dim * sizeof(double);
    double weights = 0;
    for (int i = 0; i < vit_parameter_number(s); i++) {
        struct vit_parameter parameter = vit_parameter_at(s, i);
        weights = fmax(weights, (double)vit_parameter_count(&parameter));
    }
    return (double)check->count * (image + (double)s->tokens * token + patches) +
           2.0 * VIT_BUFFERS * (double)s->output_elements * sizeof(float) +
           weights * (sizeof(float) + sizeof(double));
}

static int compare_output(struct check *check, struct lab_err *err) {
    choose_images(check);
    if (lab_verify_room(check->pipeline->device, verification_bytes(check), err))
        return -1;
    LAB_AUTO_FREE float *outputs =
        lab_mem_alloc((size_t)(VIT_BUFFERS * check->shape->output_elements), sizeof *outputs);
    if (read_outputs(check, outputs, err))
        return -1;
    LAB_AUTO_FREE double *references = make_references(check);
    compare_checked(check, outputs, references);
    return 0;
}

int vit_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct vit_pipeline *pipeline = state;
    struct check check = {
        .pipeline = pipeline, .shape = &pipeline->shape, .seed = seed, .ret = ret};
    if (lab_verify_skip(pipeline->device, ret))
        return 0;
    if (!pipeline->forward && !pipeline->back_input) {
        *ret = (struct lab_verification){.text = "not applicable: nothing is computed"};
        return 0;
    }
    draw_batches(&check);
    int failed = poison(&check, err) || run_both(pipeline, err);
    if (!failed && pipeline->back_input)
        compare_input(&check);
    if (!failed && pipeline->forward && (!pipeline->back_input || ret->passed))
        failed = compare_output(&check, err);
    vit_pool_fill(pipeline, 0, VIT_BUFFERS);
    return failed ? -1 : 0;
}
