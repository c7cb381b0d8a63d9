/*
 * test_gpu_vit.c: the ops of vision transformers at their real sizes, on a GPU: 50 and 197 tokens,
 * widths of 128 to 1024, batches of 1, 10 and 64, in all four dtypes. test_ops has small and odd
 * shapes; here the kernels that studies measure are held to the same tolerances.
 *
 * An op is launched on the whole batch and checked on parts of it: rows of a product, images of the
 * others; double precision for all of it would take minutes. Skipped where there is no GPU.
 */
#include "base/random.h"
#include "conformance/op_check.h"
#include "gpu/one_gpu.h"

/* --- the ops of a model, for a number of parts: images, or rows of products --- */

struct model {
    const char *name;
    int64_t patch, heads, dim;
};

static const struct model models[] = {{"vit32x2x128", 32, 4, 128},
                                      {"vit32x4x256", 32, 8, 256},
                                      {"vit32x6x512", 32, 8, 512},
                                      {"vit16x8x768", 16, 12, 768},
                                      {"vit16x12x1024", 16, 16, 1024}};
static const int64_t batches[] = {1, 10, 64};

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

struct step {
    const char *name;
    bool by_rows; /* a part is a row, not an image */
    struct lab_launch (*make)(const struct model *model, enum lab_dtype dtype, int64_t parts);
};

static int64_t patches_of(const struct model *model) {
    return (224 / model->patch) * (224 / model->patch);
}

static struct lab_launch product(enum lab_op_id op, enum lab_dtype dtype, int64_t m, int64_t n,
                                 int64_t k) {
    struct lab_launch launch = {
        .op = op,
        .in = {lab_tensor_matrix(NULL, dtype, m, k), lab_tensor_matrix(NULL, dtype, n, k)},
        .out = lab_tensor_matrix(NULL, dtype, m, n),
        .transpose_b = true,
    };
    if (op != LAB_OP_GEMM)
        launch.in[2] = lab_tensor_vector(NULL, dtype, n);
    if (op == LAB_OP_GEMM_BIAS_ADD)
        launch.in[3] = launch.out;
    return launch;
}

static struct lab_launch make_patches(const struct model *model, enum lab_dtype dtype,
                                      int64_t images) {
    int64_t columns = 3 * model->patch * model->patch;
    return (struct lab_launch){
        .op = LAB_OP_PATCHIFY_LAYER_NORM,
        .in = {lab_tensor(NULL, dtype, 4, (int64_t[]){images, 3, 224, 224}),
               lab_tensor_vector(NULL, dtype, columns), lab_tensor_vector(NULL, dtype, columns)},
        .out = lab_tensor_matrix(NULL, dtype, images * patches_of(model), columns),
        .patch = model->patch,
        .epsilon = 1e-5f,
    };
}

static struct lab_launch make_embedded(const struct model *model, enum lab_dtype dtype,
                                       int64_t rows) {
    return product(LAB_OP_GEMM_BIAS, dtype, rows, model->dim, 3 * model->patch * model->patch);
}

static struct lab_launch make_tokens(const struct model *model, enum lab_dtype dtype,
                                     int64_t images) {
    int64_t patches = patches_of(model), dim = model->dim;
    struct lab_tensor vector = lab_tensor_vector(NULL, dtype, dim);
    return (struct lab_launch){
        .op = LAB_OP_LAYER_NORM_EMBED,
        .in = {lab_tensor_matrix(NULL, dtype, images * patches, dim), vector, vector, vector,
               lab_tensor_matrix(NULL, dtype, patches + 1, dim)},
        .out = lab_tensor_matrix(NULL, dtype, images * (patches + 1), dim),
        .epsilon = 1e-5f,
    };
}

static struct lab_launch make_norm(const struct model *model, enum lab_dtype dtype,
                                   int64_t images) {
    struct lab_tensor x =
        lab_tensor_matrix(NULL, dtype, images * (patches_of(model) + 1), model->dim);
    struct lab_tensor vector = lab_tensor_vector(NULL, dtype, model->dim);
    return (struct lab_launch){
        .op = LAB_OP_LAYER_NORM, .in = {x, vector, vector}, .out = x, .epsilon = 1e-5f};
}

static struct lab_launch make_qkv(const struct model *model, enum lab_dtype dtype, int64_t rows) {
    return product(LAB_OP_GEMM, dtype, rows, 192 * model->heads, model->dim);
}

static struct lab_launch make_attention(const struct model *model, enum lab_dtype dtype,
                                        int64_t images) {
    int64_t tokens = patches_of(model) + 1, inner = 64 * model->heads;
    return (struct lab_launch){
        .op = LAB_OP_ATTENTION,
        .in = {lab_tensor_matrix(NULL, dtype, images * tokens, 3 * inner)},
        .out = lab_tensor_matrix(NULL, dtype, images * tokens, inner),
        .tokens = tokens,
        .heads = model->heads,
        .scale = 0.125f,
    };
}

static struct lab_launch make_out(const struct model *model, enum lab_dtype dtype, int64_t rows) {
    return product(LAB_OP_GEMM_BIAS_ADD, dtype, rows, model->dim, 64 * model->heads);
}

static struct lab_launch make_up(const struct model *model, enum lab_dtype dtype, int64_t rows) {
    return product(LAB_OP_GEMM_BIAS_GELU, dtype, rows, 4 * model->dim, model->dim);
}

static struct lab_launch make_down(const struct model *model, enum lab_dtype dtype, int64_t rows) {
    return product(LAB_OP_GEMM_BIAS_ADD, dtype, rows, model->dim, 4 * model->dim);
}

static const struct step steps[] = {
    {"patches", false, make_patches}, {"embedded", true, make_embedded},
    {"tokens", false, make_tokens},   {"norm", false, make_norm},
    {"qkv", true, make_qkv},          {"attention", false, make_attention},
    {"out", true, make_out},          {"up", true, make_up},
    {"down", true, make_down},
};

/* Rows that no multiprocessor's registers hold; a part is a row. */
static struct lab_launch make_long_norm(const struct model *model, enum lab_dtype dtype,
                                        int64_t rows) {
    (void)model;
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, rows, 40000);
    struct lab_tensor vector = lab_tensor_vector(NULL, dtype, 40000);
    return (struct lab_launch){
        .op = LAB_OP_LAYER_NORM, .in = {x, vector, vector}, .out = x, .epsilon = 1e-5f};
}

static struct lab_launch make_long_softmax(const struct model *model, enum lab_dtype dtype,
                                           int64_t rows) {
    (void)model;
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, rows, 40000);
    return (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {x}, .out = x};
}

static const struct step long_steps[] = {
    {"layer_norm of long rows", false, make_long_norm},
    {"softmax of long rows", false, make_long_softmax},
};

/* --- values: a block of random numbers over and over, so that gigabytes are quickly made --- */

#define BLOCK 1000003 /* a prime: no row repeats another */

static float block[BLOCK]; /* rounded to the dtype at hand */
static unsigned char encoded[BLOCK * sizeof(float)];

static void make_block(enum lab_dtype dtype) {
    for (int64_t i = 0; i < BLOCK; i++)
        block[i] = lab_random_symmetric(7, (uint64_t)i);
    lab_data_encode(dtype, block, BLOCK, encoded);
    lab_data_decode(dtype, encoded, BLOCK, block);
}

/* Input `input`'s element i is the block's element i + input · 1000. */
static float value_at(int input, int64_t i) {
    return block[(i + (int64_t)input * 1000) % BLOCK];
}

static void upload(const struct lab_buffer *to, int input, enum lab_dtype dtype, int64_t count) {
    struct lab_err err = LAB_ERR_INIT;
    size_t element_bytes = lab_dtype_bytes(dtype);
    for (int64_t done = 0; done < count;) {
        int64_t at = (done + (int64_t)input * 1000) % BLOCK;
        int64_t part = BLOCK - at < count - done ? BLOCK - at : count - done;
        require(lab_copy(stream, (char *)to->data + (size_t)done * element_bytes,
                         encoded + (size_t)at * element_bytes, (size_t)part * element_bytes,
                         LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, &err),
                &err, "copy to the device");
        done += part;
    }
}

static void poison(const struct lab_buffer *to, size_t size_bytes) {
    struct lab_err err = LAB_ERR_INIT;
    enum { PIECE = 1 << 20 };
    static unsigned char ones[PIECE];
    memset(ones, 0xff, sizeof ones); /* not a number in any dtype */
    for (size_t done = 0; done < size_bytes; done += PIECE) {
        size_t part = size_bytes - done < PIECE ? size_bytes - done : PIECE;
        require(lab_copy(stream, (char *)to->data + done, ones, part, LAB_MEMORY_DEVICE,
                         LAB_MEMORY_HOST_PAGEABLE, &err),
                &err, "copy to the device");
    }
}

/* --- one op --- */

/* The part's own launch: its inputs are parts of the whole's where they differ in size. */
static double part_error(const struct lab_launch *whole, const struct lab_launch *one,
                         int64_t part) {
    const struct lab_op *op = lab_op_get(one->op);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_arena arena;
    lab_arena_init(&arena);
    const double *in[LAB_LAUNCH_INPUTS] = {NULL};
    for (int i = 0; i < op->inputs; i++) {
        int64_t count = lab_tensor_count(&one->in[i]);
        bool cut = lab_tensor_count(&whole->in[i]) != count;
        double *values = lab_arena_alloc(&arena, (size_t)count, sizeof *values);
        for (int64_t k = 0; k < count; k++)
            values[k] = value_at(i, k + (cut ? part * count : 0));
        in[i] = values;
    }
    struct op_case c = {.op = op, .launch = *one, .count = lab_tensor_count(&one->out)};
    c.expected = lab_arena_alloc(&arena, (size_t)c.count, sizeof *c.expected);
    op->reference(one, in, c.expected);
    size_t bytes = lab_tensor_bytes(&one->out);
    void *raw = lab_arena_alloc(&arena, 1, bytes);
    float *found = lab_arena_alloc(&arena, (size_t)c.count, sizeof *found);
    require(lab_copy(stream, raw, (char *)whole->out.data + (size_t)part * bytes, bytes,
                     LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, &err) ||
                    lab_stream_sync(stream, &err)
                ? -1
                : 0,
            &err, "copy from the device");
    lab_data_decode(one->out.dtype, raw, c.count, found);
    double error = op_case_error(&c, found);
    lab_arena_release(&arena);
    return error;
}

static void try_step(const struct model *model, const struct step *step, enum lab_dtype dtype,
                     int64_t batch) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t parts = step->by_rows ? batch * (patches_of(model) + 1) : batch;
    struct lab_launch whole = step->make(model, dtype, parts), one = step->make(model, dtype, 1);
    const struct lab_op *op = lab_op_get(whole.op);
    struct lab_buffer in[LAB_LAUNCH_INPUTS] = {{0}}, out = {0};
    for (int i = 0; i < op->inputs; i++) {
        require(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(&whole.in[i]),
                                &in[i], &err),
                &err, "memory");
        upload(&in[i], i, dtype, lab_tensor_count(&whole.in[i]));
        whole.in[i].data = in[i].data;
    }
    require(
        lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(&whole.out), &out, &err),
        &err, "memory");
    poison(&out, lab_tensor_bytes(&whole.out));
    whole.out.data = out.data;
    require(lab_launch(stream, &whole, &err), &err, step->name);
    require(lab_stream_sync(stream, &err), &err, step->name);
    const int64_t checked[] = {0, parts / 2, parts - 1};
    for (int i = 0; i < 3; i++) {
        double error = part_error(&whole, &one, checked[i]);
        if (!(error <= op_case_tolerance(dtype, false)))
            fail_msg("%s of %s in %s, batch %lld, part %lld: relative error %g", step->name,
                     model->name, lab_dtype_name(dtype), (long long)batch, (long long)checked[i],
                     error);
    }
    for (int i = 0; i < op->inputs; i++)
        lab_buffer_close(&in[i]);
    lab_buffer_close(&out);
}

static void try_dtype(enum lab_dtype dtype) {
    make_block(dtype);
    for (int m = 0; m < LENGTH(models); m++)
        for (int s = 0; s < LENGTH(steps); s++) {
            struct lab_launch first = steps[s].make(&models[m], dtype, 1);
            if (!op_is_wanted(first.op) || (only_own_kernels() && op_is_a_librarys(&first)))
                continue;
            for (int b = 0; b < LENGTH(batches); b++)
                try_step(&models[m], &steps[s], dtype, batches[b]);
        }
}

LAB_TEST(long_rows_are_right) {
    for (int dtype = 0; dtype < 4; dtype++) {
        make_block((enum lab_dtype)dtype);
        for (int s = 0; s < LENGTH(long_steps); s++)
            try_step(&models[0], &long_steps[s], (enum lab_dtype)dtype, 10);
    }
}

LAB_TEST(transformers_are_right_in_fp32) {
    try_dtype(LAB_FP32);
}

LAB_TEST(transformers_are_right_in_tf32) {
    try_dtype(LAB_TF32);
}

LAB_TEST(transformers_are_right_in_bf16) {
    try_dtype(LAB_BF16);
}

LAB_TEST(transformers_are_right_in_fp16) {
    try_dtype(LAB_FP16);
}

/* --- kernels that start while others end --- */

#define CHAIN 40

/* Short kernels in a row, each over the other's result. */
static void launch_chain(const struct lab_buffer *x, const struct lab_buffer *y, int64_t rows) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_tensor a = lab_tensor_matrix(x->data, LAB_FP32, rows, 512);
    struct lab_tensor b = lab_tensor_matrix(y->data, LAB_FP32, rows, 512);
    struct lab_tensor vector = lab_tensor_vector(y->data, LAB_FP32, 512);
    for (int i = 0; i < CHAIN; i++) {
        struct lab_launch norm = {
            .op = LAB_OP_LAYER_NORM, .in = {a, vector, vector}, .out = a, .epsilon = 1e-5f};
        struct lab_launch gelu = {.op = LAB_OP_GELU, .in = {a}, .out = a};
        struct lab_launch add = {.op = LAB_OP_ADD, .in = {a, b}, .out = a};
        require(lab_launch(stream, &norm, &err), &err, "norm");
        require(lab_launch(stream, &gelu, &err), &err, "gelu");
        require(lab_launch(stream, &add, &err), &err, "add");
    }
}

LAB_TEST(a_graph_gives_the_very_same_numbers) {
    struct lab_err err = LAB_ERR_INIT;
    make_block(LAB_FP32);
    for (int64_t rows = 1; rows <= 20000; rows *= 27) {
        int64_t count = rows * 512;
        size_t bytes = (size_t)count * sizeof(float);
        struct lab_buffer x = {0}, y = {0};
        struct lab_graph *graph;
        unsigned char *results = lab_mem_alloc(2, bytes);
        require(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &x, &err), &err, "memory");
        require(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, bytes, &y, &err), &err, "memory");
        upload(&y, 1, LAB_FP32, count);
        require(lab_graph_begin(stream, &err), &err, "graph");
        launch_chain(&x, &y, rows);
        require(lab_graph_end(stream, &graph, &err), &err, "graph");
        for (int captured = 0; captured < 2; captured++) {
            upload(&x, 0, LAB_FP32, count);
            if (captured)
                require(lab_graph_launch(graph, stream, &err), &err, "graph");
            else
                launch_chain(&x, &y, rows);
            require(lab_copy(stream, results + (size_t)captured * bytes, x.data, bytes,
                             LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, &err),
                    &err, "copy from the device");
            require(lab_stream_sync(stream, &err), &err, "chain");
        }
        assert_memory_equal(results, results + bytes, bytes);
        lab_graph_close(graph);
        lab_buffer_close(&x);
        lab_buffer_close(&y);
        lab_mem_free(results);
    }
}
