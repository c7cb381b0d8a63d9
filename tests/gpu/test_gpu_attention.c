/*
 * test_gpu_attention.c: attention as a language model trains it, on a GPU: 12 heads of 64, 1024
 * tokens, causal, and its neighbours; forward with its log-sum-exps and backward from what forward
 * put out. A few heads are held to double precision; all of it must come out the same twice.
 * Skipped where there is no GPU.
 */
#include "base/random.h"
#include "conformance/op_check.h"
#include "gpu/one_gpu.h"

enum { Q, K, V, O, D_O, LSE, OUT, TENSORS };

struct attention {
    struct lab_flash_shape s;
    struct lab_tensor tensors[TENSORS];
    struct lab_buffer buffers[TENSORS];
    float *values[TENSORS]; /* as the device has them */
    struct lab_launch forward, backward;
};

static void download(struct attention *a, int tensor) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_tensor *t = &a->tensors[tensor];
    size_t bytes = lab_tensor_bytes(t);
    void *raw = lab_mem_alloc(1, bytes);
    require(
        lab_copy(stream, raw, t->data, bytes, LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, &err),
        &err, "copy from the device");
    require(lab_stream_sync(stream, &err), &err, "copy from the device");
    lab_data_decode(t->dtype, raw, lab_tensor_count(t), a->values[tensor]);
    lab_mem_free(raw);
}

/* Uniform in [-2, 2): shares differ by some powers of e. */
static void fill(struct attention *a, int tensor) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_tensor *t = &a->tensors[tensor];
    void *raw = lab_mem_alloc(1, lab_tensor_bytes(t));
    for (int64_t i = 0; i < lab_tensor_count(t); i++)
        a->values[tensor][i] = 2 * lab_random_symmetric((uint64_t)tensor, (uint64_t)i);
    lab_data_encode(t->dtype, a->values[tensor], lab_tensor_count(t), raw);
    lab_data_decode(t->dtype, raw, lab_tensor_count(t), a->values[tensor]);
    require(lab_copy(stream, t->data, raw, lab_tensor_bytes(t), LAB_MEMORY_DEVICE,
                     LAB_MEMORY_HOST_PAGEABLE, &err),
            &err, "copy to the device");
    require(lab_stream_sync(stream, &err), &err, "copy to the device");
    lab_mem_free(raw);
}

static void attention_open(struct attention *a, struct lab_flash_shape s, bool causal,
                           enum lab_dtype dtype) {
    struct lab_err err = LAB_ERR_INIT;
    const int64_t queries[] = {s.batch, s.tokens, s.heads, s.width};
    const int64_t keys[] = {s.batch, s.tokens, s.kv_heads, s.width};
    const int64_t all[] = {s.batch, s.tokens, s.heads + 2 * s.kv_heads, s.width};
    const int64_t sums[] = {s.batch, s.heads, s.tokens};
    *a = (struct attention){.s = s};
    for (int i = 0; i < TENSORS; i++) {
        const int64_t *shape = i == K || i == V ? keys : i == LSE ? sums : i == OUT ? all : queries;
        a->tensors[i] = lab_tensor(NULL, i == LSE ? LAB_FP32 : dtype, i == LSE ? 3 : 4, shape);
        require(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(&a->tensors[i]),
                                &a->buffers[i], &err),
                &err, "memory");
        a->tensors[i].data = a->buffers[i].data;
        a->values[i] =
            lab_mem_alloc((size_t)lab_tensor_count(&a->tensors[i]), sizeof *a->values[i]);
    }
    float scale = 1.0f / sqrtf((float)s.width);
    a->forward = (struct lab_launch){.op = LAB_OP_FLASH_ATTENTION,
                                     .in = {a->tensors[Q], a->tensors[K], a->tensors[V]},
                                     .out = a->tensors[O],
                                     .also = a->tensors[LSE],
                                     .scale = scale,
                                     .causal = causal};
    a->backward = (struct lab_launch){.op = LAB_OP_FLASH_ATTENTION_BACKWARD,
                                      .out = a->tensors[OUT],
                                      .scale = scale,
                                      .causal = causal};
    memcpy(a->backward.in, a->tensors, LAB_LAUNCH_INPUTS * sizeof a->tensors[0]);
}

static void attention_close(struct attention *a) {
    for (int i = 0; i < TENSORS; i++) {
        lab_buffer_close(&a->buffers[i]);
        lab_mem_free(a->values[i]);
    }
}

/* One head of queries' rows, or of keys' with all its queries, as a launch of its own. */
static double *rows_of(const struct attention *a, int tensor, int64_t image, int64_t head,
                       int64_t count) {
    int64_t tokens = a->s.tokens, width = a->s.width, heads = a->tensors[tensor].shape[2];
    double *rows = lab_mem_alloc((size_t)(tokens * count * width), sizeof *rows);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t i = 0; i < count * width; i++)
            rows[t * count * width + i] =
                (double)a->values[tensor][((image * tokens + t) * heads + head) * width + i];
    return rows;
}

/* The largest differences of dq, dk and dv of a head of keys, relative to each one's largest. */
static void check_group(const struct attention *a, int64_t image, int64_t kv_head) {
    int64_t group = a->s.heads / a->s.kv_heads, tokens = a->s.tokens, width = a->s.width;
    struct lab_flash_shape s = {1, tokens, group, 1, width};
    struct lab_launch one = a->backward;
    const int64_t queries[] = {1, tokens, group, width}, keys[] = {1, tokens, 1, width};
    const int64_t all[] = {1, tokens, group + 2, width}, sums[] = {1, group, tokens};
    one.in[Q] = one.in[O] = one.in[D_O] = lab_tensor(NULL, LAB_FP32, 4, queries);
    one.in[K] = one.in[V] = lab_tensor(NULL, LAB_FP32, 4, keys);
    one.in[LSE] = lab_tensor(NULL, LAB_FP32, 3, sums);
    one.out = lab_tensor(NULL, LAB_FP32, 4, all);
    double *in[LAB_LAUNCH_INPUTS];
    for (int i = 0; i < LSE; i++)
        in[i] = i == K || i == V ? rows_of(a, i, image, kv_head, 1)
                                 : rows_of(a, i, image, kv_head * group, group);
    /* forward's own results, not the device's: what it lost counts as well */
    in[LSE] = lab_mem_alloc((size_t)(group * tokens), sizeof(double));
    struct lab_launch forward = one;
    forward.op = LAB_OP_FLASH_ATTENTION;
    forward.out = one.in[Q];
    lab_op_get(forward.op)->reference(&forward, (const double *const *)in, in[O]);
    lab_op_get(forward.op)->reference_also(&forward, (const double *const *)in, in[LSE]);
    const float *lse = a->values[LSE] + (image * a->s.heads + kv_head * group) * tokens;
    double lse_error = op_error(in[LSE], lse, group * tokens, 1);
    int64_t count = lab_tensor_count(&one.out);
    double *expected = lab_mem_alloc((size_t)count, sizeof *expected);
    lab_op_get(one.op)->reference(&one, (const double *const *)in, expected);
    double worst[3] = {0}, size[3] = {1e-30, 1e-30, 1e-30};
    for (int64_t i = 0; i < count; i++) {
        int64_t t = i / width / (s.heads + 2), head = i / width % (s.heads + 2);
        int part = head < s.heads ? 0 : head == s.heads ? 1 : 2;
        int64_t at = part == 0   ? kv_head * group + head
                     : part == 1 ? a->s.heads + kv_head
                                 : a->s.heads + a->s.kv_heads + kv_head;
        int64_t heads = a->s.heads + 2 * a->s.kv_heads;
        double found =
            (double)a->values[OUT][((image * tokens + t) * heads + at) * width + i % width];
        double difference = fabs(found - expected[i]);
        worst[part] = isfinite(difference) ? fmax(worst[part], difference) : INFINITY;
        size[part] = fmax(size[part], fabs(expected[i]));
    }
    print_message("%s, image %lld, head %lld: lse %.1e, dq %.1e, dk %.1e, dv %.1e\n",
                  lab_dtype_name(a->tensors[Q].dtype), (long long)image, (long long)kv_head,
                  lse_error, worst[0] / size[0], worst[1] / size[1], worst[2] / size[2]);
    assert_true(lse_error < 1e-4);
    for (int part = 0; part < 3; part++)
        assert_true(worst[part] / size[part] <= op_case_tolerance(a->tensors[Q].dtype, false));
    for (int i = 0; i < LAB_LAUNCH_INPUTS; i++)
        lab_mem_free(in[i]);
    lab_mem_free(expected);
}

static void try_shape(struct lab_flash_shape s, bool causal, enum lab_dtype dtype) {
    struct lab_err err = LAB_ERR_INIT;
    struct attention a;
    if (!op_is_wanted(LAB_OP_FLASH_ATTENTION_BACKWARD))
        return;
    attention_open(&a, s, causal, dtype);
    for (int i = 0; i < TENSORS; i++)
        if (i != LSE)
            fill(&a, i);
    require(lab_launch(stream, &a.forward, &err), &err, "forward");
    require(lab_launch(stream, &a.backward, &err), &err, "backward");
    for (int i = 0; i < TENSORS; i++)
        download(&a, i);
    check_group(&a, 0, 0);
    check_group(&a, s.batch - 1, s.kv_heads - 1);
    /* and once more, into other memory than zeros */
    size_t bytes = (size_t)lab_tensor_count(&a.tensors[OUT]) * sizeof(float);
    float *first = memcpy(lab_mem_alloc(1, bytes), a.values[OUT], bytes);
    fill(&a, OUT);
    require(lab_launch(stream, &a.backward, &err), &err, "backward");
    download(&a, OUT);
    assert_memory_equal(first, a.values[OUT], bytes);
    lab_mem_free(first);
    attention_close(&a);
}

LAB_TEST(a_language_models_heads_in_bf16) {
    try_shape((struct lab_flash_shape){4, 1024, 12, 12, 64}, true, LAB_BF16);
    try_shape((struct lab_flash_shape){16, 1024, 12, 12, 64}, true, LAB_BF16);
}

LAB_TEST(a_language_models_heads_in_fp16) {
    try_shape((struct lab_flash_shape){4, 1024, 12, 12, 64}, true, LAB_FP16);
}

LAB_TEST(heads_that_share_keys_and_heads_that_see_all) {
    try_shape((struct lab_flash_shape){2, 1000, 8, 2, 64}, true, LAB_BF16);
    try_shape((struct lab_flash_shape){2, 1024, 12, 12, 64}, false, LAB_BF16);
    try_shape((struct lab_flash_shape){2, 777, 6, 3, 128}, true, LAB_BF16);
}

LAB_TEST(more_blocks_than_run_at_once) {
    try_shape((struct lab_flash_shape){2, 1300, 12, 12, 64}, false, LAB_BF16);
}

LAB_TEST(single_precision) {
    try_shape((struct lab_flash_shape){1, 300, 4, 2, 64}, true, LAB_FP32);
}
