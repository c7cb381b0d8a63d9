/*
 * test_ops.c: every op on every backend that has a device here, in every dtype that it computes in:
 * the ops' own examples, in place where that is allowed, aligned and not, against double precision;
 * fused ops against their composition as well, and where a kernel can be tuned, its default
 * configuration, which isn't always what a launch without one gets, and of products one at random.
 *
 * With GPULAB_TEST_CUDA=real only GPUs are tried, and where there is none it is skipped.
 */
#include "conformance/op_check.h"
#include "device/device.h"
#include "device/tunable.h"
#include "machine/machine.h"

#include "test.h"

static void require(int result, const struct lab_err *err, const char *what) {
    if (result < 0)
        fail_msg("%s: %s", what, err->text);
}

struct bench { /* a device, a stream and the memory of one case */
    const struct lab_machine *machine;
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer host; /* staging */
    struct lab_buffer in[LAB_LAUNCH_INPUTS];
    struct lab_buffer out, also;
};

static void open_buffer(struct bench *bench, enum lab_memory_kind kind, size_t bytes,
                        struct lab_buffer *ret_buffer) {
    struct lab_err err = LAB_ERR_INIT;
    require(lab_buffer_open(bench->device, kind, -1, bytes, ret_buffer, &err), &err, "memory");
}

static void upload(struct bench *bench, void *to, enum lab_dtype dtype, const float *from,
                   int64_t count) {
    struct lab_err err = LAB_ERR_INIT;
    lab_data_encode(dtype, from, count, bench->host.data);
    require(lab_copy(bench->stream, to, bench->host.data, (size_t)count * lab_dtype_bytes(dtype),
                     LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, &err),
            &err, "copy to the device");
    require(lab_stream_sync(bench->stream, &err), &err, "copy to the device");
}

/*
 * How a case is tried: the output over input `over` (-1 = over none), every tensor `shift` elements
 * behind where its memory begins, so that nothing is aligned but elements.
 */
struct manner {
    int over, shift;
    bool also;      /* with the second output */
    unsigned under; /* bit i: which lies over input i */
    const char *how;
};

static void *place(const struct lab_buffer *buffer, enum lab_dtype dtype, struct manner manner) {
    return (char *)buffer->data + (size_t)manner.shift * lab_dtype_bytes(dtype);
}

static void poison(struct bench *bench, const struct lab_tensor *tensor) {
    int64_t count = lab_tensor_count(tensor);
    float *values = lab_mem_alloc((size_t)count, sizeof *values);
    op_case_poison(values, count);
    upload(bench, tensor->data, tensor->dtype, values, count);
    lab_mem_free(values);
}

/* Fresh inputs and poisoned outputs. */
static struct lab_launch prepare(struct bench *bench, const struct op_case *c,
                                 struct manner manner) {
    struct lab_launch launch = c->launch;
    launch.out.data = place(&bench->out, launch.out.dtype, manner);
    poison(bench, &launch.out);
    if (manner.also) {
        launch.also = op_case_also(&launch);
        const struct lab_buffer *buffer = &bench->also;
        for (int i = 0; i < c->op->inputs; i++)
            buffer = manner.under >> i & 1 ? &bench->in[i] : buffer;
        launch.also.data = place(buffer, LAB_FP32, manner);
        poison(bench, &launch.also);
    }
    for (int i = 0; i < c->op->inputs; i++) {
        enum lab_dtype dtype = launch.in[i].dtype;
        launch.in[i].data = place(i == manner.over ? &bench->out : &bench->in[i], dtype, manner);
        upload(bench, launch.in[i].data, dtype, c->in[i], c->in_count[i]);
    }
    return launch;
}

static void compare(struct bench *bench, const struct op_case *c, const struct lab_tensor *out,
                    bool also, struct manner manner) {
    struct lab_err err = LAB_ERR_INIT;
    require(lab_stream_sync(bench->stream, &err), &err, c->name);
    size_t bytes = lab_tensor_bytes(out);
    int64_t count = lab_tensor_count(out);
    memset(bench->host.data, 0xff, bytes); /* not a number in any of them */
    require(lab_copy(bench->stream, bench->host.data, out->data, bytes, LAB_MEMORY_HOST_PAGEABLE,
                     LAB_MEMORY_DEVICE, &err),
            &err, "copy from the device");
    require(lab_stream_sync(bench->stream, &err), &err, "copy from the device");
    float *found = lab_mem_alloc((size_t)count, sizeof *found);
    lab_data_decode(out->dtype, bench->host.data, count, found);
    double error = also ? op_case_also_error(c, found) : op_case_error(c, found);
    lab_mem_free(found);
    bool on_cpu = lab_str_equal(bench->device->ref.backend, "cpu");
    enum lab_dtype computed = lab_launch_dtype(&c->launch);
    if (!(error <= op_case_tolerance(computed, on_cpu)))
        fail_msg("%s in %s on %s, %s, over input %d, shifted by %d%s: relative error %g", c->name,
                 lab_dtype_name(computed), bench->device->ref.name, manner.how, manner.over,
                 manner.shift, also ? ", second output" : "", error);
}

/* Gives the launch its kernel's default; false = nothing can be tuned there. */
static bool tune(const struct bench *bench, struct lab_launch *launch) {
    struct lab_tunable_place place = {bench->machine, &bench->device->ref};
    const struct lab_tunable *tunable = lab_tunable_find(&place, launch);
    if (tunable)
        tunable->fallback(&place, launch, &launch->tuning);
    return tunable != NULL;
}

#define DRAWS 1000

/*
 * Products have kernels that no default leads to: a legal configuration at random, the same at
 * every run. For products with the most fused to them and rows of whole vectors, since each is
 * compiled anew; false = it isn't one.
 */
static bool tune_at_random(const struct bench *bench, struct lab_launch *launch) {
    struct lab_tunable_place place = {bench->machine, &bench->device->ref};
    const struct lab_tunable *tunable = lab_tunable_find(&place, launch);
    if ((launch->op != LAB_OP_GEMM_BIAS_GELU && launch->op != LAB_OP_GEMM_BIAS_ADD) || !tunable ||
        lab_tensor_columns(&launch->out) % 8)
        return false;
    uint64_t seed = (uint64_t)lab_tensor_count(&launch->out) * 64 + (uint64_t)launch->op;
    uint64_t size = (uint64_t)lab_tunable_size(tunable);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        launch->tuning = lab_tunable_at(tunable, (int64_t)lab_random_below(seed, draw, size));
        if (lab_tuning_check(tunable, &place, launch, &launch->tuning, NULL) == 0)
            return true;
    }
    launch->tuning = (struct lab_tuning){0};
    return false;
}

static void try_launches(struct bench *bench, const struct op_case *c, struct manner manner,
                         const struct lab_launch *launches, int count) {
    struct lab_err err = LAB_ERR_INIT;
    for (int i = 0; i < count; i++)
        if (only_own_kernels() && op_is_a_librarys(&launches[i]))
            return;
    for (int i = 0; i < count; i++)
        require(lab_launch(bench->stream, &launches[i], &err), &err, c->name);
    const struct lab_launch *last = &launches[count - 1];
    struct lab_tensor out = c->launch.out; /* of which a composition's last part may write a part */
    out.data = place(&bench->out, out.dtype, manner);
    compare(bench, c, &out, false, manner);
    if (manner.also)
        compare(bench, c, &last->also, true, manner);
}

static void try_manner(struct bench *bench, const struct op_case *c, struct manner manner) {
    struct lab_launch launch = prepare(bench, c, manner);
    manner.how = "as one op";
    try_launches(bench, c, manner, &launch, 1);
    launch = prepare(bench, c, manner);
    if (manner.over < 0 && !manner.shift && tune(bench, &launch)) {
        manner.how = "as tuned by default";
        try_launches(bench, c, manner, &launch, 1);
    }
    launch = prepare(bench, c, manner);
    if (!manner.shift && tune_at_random(bench, &launch)) {
        manner.how = "as tuned at random";
        try_launches(bench, c, manner, &launch, 1);
    }
    launch = prepare(bench, c, manner);
    if (!manner.shift && !only_own_kernels() && lab_str_starts(c->op->name, "mlp_")) {
        manner.how = "by a library's products";
        setenv("GPULAB_MLP_PRODUCTS", "1", 1); /* as large models with many rows */
        try_launches(bench, c, manner, &launch, 1);
        unsetenv("GPULAB_MLP_PRODUCTS");
    }
    if (!c->op->lower)
        return;
    launch = prepare(bench, c, manner);
    struct lab_launch parts[LAB_OP_PARTS];
    int count = c->op->lower(&launch, parts);
    manner.how = "as its composition";
    try_launches(bench, c, manner, parts, count);
}

static void try_case(struct bench *bench, const struct op_case *c) {
    int64_t largest = c->count > c->also_count ? c->count : c->also_count;
    const struct lab_launch *launch = &c->launch;
    for (int i = 0; i < c->op->inputs; i++) {
        size_t element_bytes = lab_dtype_bytes(launch->in[i].dtype);
        open_buffer(bench, LAB_MEMORY_DEVICE, (size_t)(c->in_count[i] + 1) * element_bytes,
                    &bench->in[i]);
        largest = c->in_count[i] > largest ? c->in_count[i] : largest;
    }
    open_buffer(bench, LAB_MEMORY_DEVICE,
                (size_t)(c->count + 1) * lab_dtype_bytes(launch->out.dtype), &bench->out);
    open_buffer(bench, LAB_MEMORY_DEVICE, (size_t)(c->also_count + 1) * sizeof(float),
                &bench->also);
    open_buffer(bench, LAB_MEMORY_HOST_PAGEABLE, (size_t)largest * sizeof(float), &bench->host);
    int kinds = !c->expected_also ? 1 : c->op->also_over ? 3 : 2; /* without, with, in place */
    for (int also = 0; also < kinds; also++)
        for (int over = -1; over < c->op->inputs; over++)
            for (int shift = 0; shift < 2; shift++)
                if (over < 0 || (c->op->over >> over & 1))
                    try_manner(bench, c,
                               (struct manner){.over = over,
                                               .shift = shift,
                                               .also = also > 0,
                                               .under = also > 1 ? c->op->also_over : 0});
    for (int i = 0; i < c->op->inputs; i++)
        lab_buffer_close(&bench->in[i]);
    lab_buffer_close(&bench->out);
    lab_buffer_close(&bench->also);
    lab_buffer_close(&bench->host);
}

static bool supports(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype) {
    if (!device->ops->supports)
        return dtype == LAB_FP32;
    return device->ops->supports(device, op, dtype);
}

/* By itself or by what it is made of. */
static bool can_do(const struct lab_device *device, const struct lab_launch *launch) {
    const struct lab_op *op = lab_op_get(launch->op);
    if (supports(device, launch->op, lab_launch_dtype(launch)))
        return true;
    struct lab_launch parts[LAB_OP_PARTS];
    int count = op->lower ? op->lower(launch, parts) : 0;
    for (int i = 0; i < count; i++)
        if (!can_do(device, &parts[i]))
            return false;
    return count > 0;
}

static void try_op(struct bench *bench, enum lab_op_id id, enum lab_dtype dtype) {
    const struct lab_op *op = lab_op_get(id);
    bool there = supports(bench->device, id, dtype);
    /* a dtype that the device has for its tensors it has in every op; a fused one may be lowered.
     * One in which it only computes may have no other */
    bool stored = supports(bench->device, LAB_OP_GEMM, dtype);
    if (!stored && !op->keeps_fp32) {
        assert_true(dtype != LAB_FP32 && !there);
        return;
    }
    struct lab_launch first;
    assert_int_equal(lab_op_example(id, 0, dtype, &first), 0);
    bool possible = can_do(bench->device, &first);
    assert_true(possible || op->optional || !stored);
    if (!possible)
        return;
    struct lab_err err = LAB_ERR_INIT;
    struct op_case c;
    int examples = 0;
    LAB_AUTO(arena, arena);
    while (op_case_make(id, examples, dtype, &arena, &c, &err) == 0) {
        try_case(bench, &c);
        examples++;
    }
    assert_int_equal(err.code, LAB_ERR_NONE);
    assert_true(examples > 0);
}

/* What the examples will need is made beside each other, not one after the other. */
static void prepare_op(struct bench *bench, enum lab_op_id id, enum lab_dtype dtype) {
    const struct lab_op *op = lab_op_get(id);
    struct lab_launch launch;
    for (int i = 0; lab_op_example(id, i, dtype, &launch) == 0; i++)
        for (int shift = 1; shift >= 0; shift--) {
            for (int j = 0; j < op->inputs; j++)
                launch.in[j].data = (void *)(uintptr_t)(0x1000 * (j + 1) + shift * 4);
            launch.out.data = (void *)(uintptr_t)(0x10000000 + shift * 4);
            lab_prepare(bench->device, &launch, 1);
            if (!shift && tune(bench, &launch))
                lab_prepare(bench->device, &launch, 1);
            if (!shift && tune_at_random(bench, &launch))
                lab_prepare(bench->device, &launch, 1);
        }
}

static void try_device(const struct lab_machine *machine, const struct lab_device_ref *ref) {
    struct lab_err err = LAB_ERR_INIT;
    struct bench bench = {.machine = machine};
    require(lab_device_open(machine, ref, LAB_DEVICE_SETUP, &bench.device, &err), &err, ref->name);
    require(lab_stream_open(bench.device, LAB_STREAM_COMPUTE, &bench.stream, &err), &err,
            ref->name);
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int dtype = 0; lab_dtype_names[dtype]; dtype++)
            if (op_is_wanted((enum lab_op_id)id))
                prepare_op(&bench, (enum lab_op_id)id, (enum lab_dtype)dtype);
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int dtype = 0; lab_dtype_names[dtype]; dtype++)
            if (op_is_wanted((enum lab_op_id)id))
                try_op(&bench, (enum lab_op_id)id, (enum lab_dtype)dtype);
    lab_stream_close(bench.stream);
    lab_device_close(bench.device);
}

static bool nothing_tried;

LAB_TEST(every_op_on_every_backend) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine = NULL;
    LAB_AUTO(arena, arena);
    require(lab_machine_open(NULL, &machine, &err), &err, "this machine");
    int tried = 0;
    const char *why_no_gpu = "there is no cuda backend";
    bool only_gpus = lab_str_equal(getenv("GPULAB_TEST_CUDA"), "real");
    for (int b = 0; lab_backends[b]; b++) {
        struct lab_device_list list = {0};
        if (only_gpus && !lab_str_equal(lab_backends[b]->name, "cuda"))
            continue;
        const char *why_none = NULL;
        require(lab_backends[b]->select(machine, "", &arena, &list, &why_none, &err), &err,
                lab_backends[b]->name);
        if (list.count == 0 || list.items[0].simulated) {
            if (!list.count)
                why_no_gpu = why_none;
            print_message("%s: %s\n", lab_backends[b]->name,
                          list.count ? "simulated, computes nothing" : why_none);
            continue;
        }
        try_device(machine, &list.items[0]);
        tried++;
    }
    assert_true(tried > 0 || only_gpus); /* there are CPUs everywhere */
    nothing_tried = tried == 0;
    if (nothing_tried)
        print_message("skipped: %s\n", why_no_gpu);
    lab_machine_close(machine);
}

static int end(int failed) {
    return failed ? failed : nothing_tried ? LAB_TEST_SKIPPED : 0;
}

const struct lab_test_program lab_test_program = {.end = end};
