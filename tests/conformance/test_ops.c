/*
 * test_ops.c: every op on every backend that has a device here: the ops' own examples, in place where
 * that is allowed, against double precision; fused ops against their composition as well.
 */
#include "conformance/op_check.h"
#include "device/device.h"
#include "machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void require(int result, const struct lab_err *err, const char *what) {
    if (result < 0)
        fail_msg("%s: %s", what, err->text);
}

struct bench { /* a device, a stream and the memory of one case */
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_buffer host; /* staging */
    struct lab_buffer in[LAB_LAUNCH_INPUTS];
    struct lab_buffer out;
};

static void open_buffer(struct bench *bench, enum lab_memory_kind kind, size_t bytes,
                        struct lab_buffer *ret_buffer) {
    struct lab_err err = LAB_ERR_INIT;
    require(lab_buffer_open(bench->device, kind, -1, bytes, ret_buffer, &err), &err, "memory");
}

static void upload(struct bench *bench, const struct lab_buffer *to, const float *from,
                   int64_t count) {
    struct lab_err err = LAB_ERR_INIT;
    size_t bytes = (size_t)count * sizeof *from;
    memcpy(bench->host.data, from, bytes);
    require(lab_copy(bench->stream, to->data, bench->host.data, bytes, LAB_MEMORY_DEVICE,
                     LAB_MEMORY_HOST_PAGEABLE, &err),
            &err, "copy to the device");
    require(lab_stream_sync(bench->stream, &err), &err, "copy to the device");
}

/* Fresh inputs and a poisoned output, which lies over input `over` (-1 = over none). */
static struct lab_launch prepare(struct bench *bench, const struct op_case *c, int over) {
    struct lab_launch launch = c->launch;
    float *poison = lab_mem_alloc((size_t)c->count, sizeof *poison);
    op_case_poison(poison, c->count);
    upload(bench, &bench->out, poison, c->count);
    lab_mem_free(poison);
    launch.out.data = bench->out.data;
    for (int i = 0; i < c->op->inputs; i++) {
        const struct lab_buffer *buffer = i == over ? &bench->out : &bench->in[i];
        upload(bench, buffer, c->in[i], c->in_count[i]);
        launch.in[i].data = buffer->data;
    }
    return launch;
}

static void compare(struct bench *bench, const struct op_case *c, const char *how, int over) {
    struct lab_err err = LAB_ERR_INIT;
    require(lab_stream_sync(bench->stream, &err), &err, c->name);
    size_t bytes = (size_t)c->count * sizeof(float);
    op_case_poison(bench->host.data, c->count);
    require(lab_copy(bench->stream, bench->host.data, bench->out.data, bytes,
                     LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, &err),
            &err, "copy from the device");
    require(lab_stream_sync(bench->stream, &err), &err, "copy from the device");
    double error = op_case_error(c, bench->host.data);
    if (error > op_case_tolerance(c->launch.out.dtype))
        fail_msg("%s on %s, %s, over input %d: relative error %g", c->name, bench->device->ref.name,
                 how, over, error);
}

static void try_case(struct bench *bench, const struct op_case *c) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t largest = c->count;
    for (int i = 0; i < c->op->inputs; i++) {
        open_buffer(bench, LAB_MEMORY_DEVICE, (size_t)c->in_count[i] * sizeof(float),
                    &bench->in[i]);
        largest = c->in_count[i] > largest ? c->in_count[i] : largest;
    }
    open_buffer(bench, LAB_MEMORY_DEVICE, (size_t)c->count * sizeof(float), &bench->out);
    open_buffer(bench, LAB_MEMORY_HOST_PAGEABLE, (size_t)largest * sizeof(float), &bench->host);
    for (int over = -1; over < c->op->inputs; over++) {
        if (over >= 0 && !(c->op->over >> over & 1))
            continue;
        struct lab_launch launch = prepare(bench, c, over);
        require(lab_launch(bench->stream, &launch, &err), &err, c->name);
        compare(bench, c, "as one op", over);
        if (!c->op->lower)
            continue;
        launch = prepare(bench, c, over);
        struct lab_launch parts[LAB_OP_PARTS];
        int count = c->op->lower(&launch, parts);
        for (int p = 0; p < count; p++)
            require(lab_launch(bench->stream, &parts[p], &err), &err, c->name);
        compare(bench, c, "as its composition", over);
    }
    for (int i = 0; i < c->op->inputs; i++)
        lab_buffer_close(&bench->in[i]);
    lab_buffer_close(&bench->out);
    lab_buffer_close(&bench->host);
}

static bool supports(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype) {
    if (!device->ops->supports)
        return dtype == LAB_FP32;
    return device->ops->supports(device, op, dtype);
}

static void try_device(const struct lab_machine *machine, const struct lab_device_ref *ref) {
    struct lab_err err = LAB_ERR_INIT;
    struct bench bench = {NULL};
    require(lab_device_open(machine, ref, LAB_DEVICE_SETUP, &bench.device, &err), &err, ref->name);
    require(lab_stream_open(bench.device, LAB_STREAM_COMPUTE, &bench.stream, &err), &err,
            ref->name);
    static const enum lab_dtype dtypes[] = {LAB_FP32, LAB_TF32}; /* what is stored as float */
    for (int d = 0; d < 2; d++)
        for (int id = 0; id < LAB_OP_COUNT; id++) {
            const struct lab_op *op = lab_op_get((enum lab_op_id)id);
            bool there = supports(bench.device, (enum lab_op_id)id, dtypes[d]);
            /* in single precision an elementary op may not be missing; a fused one is lowered */
            if (!there && (dtypes[d] != LAB_FP32 || !op->lower)) {
                assert_true(dtypes[d] != LAB_FP32);
                continue;
            }
            struct lab_arena arena;
            lab_arena_init(&arena);
            struct op_case c;
            int examples = 0;
            while (op_case_make((enum lab_op_id)id, examples, dtypes[d], &arena, &c, &err) == 0) {
                try_case(&bench, &c);
                examples++;
            }
            assert_int_equal(err.code, LAB_ERR_NONE);
            assert_true(examples > 0);
            lab_arena_release(&arena);
        }
    lab_stream_close(bench.stream);
    lab_device_close(bench.device);
}

static void every_op_on_every_backend(void **state) {
    (void)state;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine = NULL;
    struct lab_arena arena;
    lab_arena_init(&arena);
    require(lab_machine_open(NULL, &machine, &err), &err, "this machine");
    int tried = 0;
    for (int b = 0; lab_backends[b]; b++) {
        struct lab_device_list list = {0};
        const char *why_none = NULL;
        require(lab_backends[b]->select(machine, "", &arena, &list, &why_none, &err), &err,
                lab_backends[b]->name);
        if (list.count == 0 || list.items[0].simulated) {
            print_message("%s: %s\n", lab_backends[b]->name,
                          list.count ? "simulated, computes nothing" : why_none);
            continue;
        }
        try_device(machine, &list.items[0]);
        tried++;
    }
    assert_true(tried > 0); /* there are CPUs everywhere */
    lab_machine_close(machine);
    lab_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_on_every_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
