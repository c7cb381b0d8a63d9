/*
 * overlap.c: what running copies beside compute gains on a device, against the serial order on the
 * same cores, when both take equally long.
 *
 *     bench_overlap [DEVICE [COPY_CORES]]     prints: copy_ms compute_ms serial_ms overlapped_ms
 *                                             ratio
 *
 * The copy is a host-to-device copy of 32 MiB; the compute is as many matrix products as take the
 * same time, found by timing both alone, in turn. Serial: each waits for the other. Overlapped: two
 * buffers, as the pipelines of this project run. Serial and overlapped rounds alternate too; times
 * are medians, and so is the ratio, of the pairs'.
 */
#include "device/device.h"
#include "machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES (32 << 20)
#define SIZE       160 /* of the matrix products: small enough to tune the length finely */
#define STEPS      12  /* copy + compute pairs in a round */
#define ROUNDS     15

#define BALANCE_ATTEMPTS 4

struct bench {
    struct lab_device *device;
    struct lab_stream *copy, *compute;
    struct lab_buffer host, device_side[2], matrices;
    struct lab_event *copied[2], *computed[2];
    struct lab_launch gemm;
    int products;
    struct lab_err err;
};

static void require(struct bench *bench, int result) {
    if (result == 0)
        return;
    fprintf(stderr, "bench_overlap: %s\n", bench->err.text);
    exit(1);
}

static void enqueue_copy(struct bench *b, int buffer) {
    require(b, lab_copy(b->copy, b->device_side[buffer].data, b->host.data, COPY_BYTES,
                        LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, &b->err));
}

static void enqueue_compute(struct bench *b) {
    for (int i = 0; i < b->products; i++)
        require(b, lab_launch(b->compute, &b->gemm, &b->err));
}

/* Seconds per step. In both orders step i's compute needs step i's copy; serial adds the
 * reverse. */
static double round_s(struct bench *b, bool copies, bool computes, bool overlapped) {
    int64_t start = lab_clock_now(b->device->clock);
    for (int i = 0; i < STEPS; i++) {
        int buffer = i % 2, before = overlapped ? buffer : 1 - buffer;
        if (copies) {
            if (computes && i > (overlapped ? 1 : 0))
                require(b, lab_event_wait(b->computed[before], b->copy, &b->err));
            enqueue_copy(b, buffer);
            require(b, lab_event_record(b->copied[buffer], b->copy, &b->err));
        }
        if (computes) {
            if (copies)
                require(b, lab_event_wait(b->copied[buffer], b->compute, &b->err));
            enqueue_compute(b);
            require(b, lab_event_record(b->computed[buffer], b->compute, &b->err));
        }
    }
    require(b, lab_stream_sync(b->copy, &b->err));
    require(b, lab_stream_sync(b->compute, &b->err));
    return 1e-9 * (double)(lab_clock_now(b->device->clock) - start) / STEPS;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Copy and compute alone, in turn. */
static void time_alone(struct bench *b, double *ret_copy_s, double *ret_compute_s) {
    double copy_s[ROUNDS], compute_s[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        copy_s[i] = round_s(b, true, false, true);
        compute_s[i] = round_s(b, false, true, true);
    }
    *ret_copy_s = median(copy_s, ROUNDS);
    *ret_compute_s = median(compute_s, ROUNDS);
}

/* Chooses the number of products that take as long as a copy. */
static void balance(struct bench *b, double *ret_copy_s, double *ret_compute_s) {
    b->products = 1;
    round_s(b, true, true, true); /* warm-up */
    for (int attempt = 0; attempt < BALANCE_ATTEMPTS; attempt++) {
        time_alone(b, ret_copy_s, ret_compute_s);
        double want = *ret_copy_s / *ret_compute_s;
        if (want > 0.95 && want < 1.05)
            return;
        double products = b->products * want + 0.5;
        b->products = products < 1 ? 1 : (int)products;
    }
    time_alone(b, ret_copy_s, ret_compute_s);
}

static void compare_orders(struct bench *b) {
    double copy_s, compute_s, serial[ROUNDS], overlapped[ROUNDS], ratio[ROUNDS];
    balance(b, &copy_s, &compute_s);
    for (int i = 0; i < ROUNDS; i++) {
        serial[i] = round_s(b, true, true, false);
        overlapped[i] = round_s(b, true, true, true);
        ratio[i] = serial[i] / overlapped[i];
    }
    printf("%.3f %.3f %.3f %.3f %.3f\n", 1e3 * copy_s, 1e3 * compute_s,
           1e3 * median(serial, ROUNDS), 1e3 * median(overlapped, ROUNDS), median(ratio, ROUNDS));
}

static void open_all(struct bench *b, const struct lab_machine *machine, const char *selector,
                     int copy_cores, struct lab_arena *arena) {
    struct lab_device_list list;
    require(b, lab_device_select(machine, selector, arena, &list, &b->err));
    struct lab_device_setup setup = {.copy_cores = copy_cores};
    require(b, lab_device_open(machine, &list.items[0], setup, &b->device, &b->err));
    require(b, lab_stream_open(b->device, LAB_STREAM_COPY, &b->copy, &b->err));
    require(b, lab_stream_open(b->device, LAB_STREAM_COMPUTE, &b->compute, &b->err));
    require(b,
            lab_buffer_open(b->device, LAB_MEMORY_HOST_PINNED, -1, COPY_BYTES, &b->host, &b->err));
    size_t matrix_bytes = SIZE * SIZE * sizeof(float);
    require(b, lab_buffer_open(b->device, LAB_MEMORY_DEVICE, -1, 3 * matrix_bytes, &b->matrices,
                               &b->err));
    for (int i = 0; i < 2; i++) {
        require(b, lab_buffer_open(b->device, LAB_MEMORY_DEVICE, -1, COPY_BYTES, &b->device_side[i],
                                   &b->err));
        require(b, lab_event_open(b->device, &b->copied[i], &b->err));
        require(b, lab_event_open(b->device, &b->computed[i], &b->err));
    }
    /* the matrices' content comes from the host buffer, which mustn't be zero either */
    for (size_t i = 0; i < COPY_BYTES / sizeof(float); i++)
        ((float *)b->host.data)[i] = (float)(i % 1021) * 1e-3f - 0.5f;
    require(b, lab_copy(b->copy, b->matrices.data, b->host.data, 3 * matrix_bytes,
                        LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, &b->err));
    require(b, lab_stream_sync(b->copy, &b->err));
    int64_t shape[2] = {SIZE, SIZE};
    char *data = b->matrices.data;
    b->gemm = (struct lab_launch){.op = LAB_OP_GEMM, .transpose_b = true};
    b->gemm.in[0] = lab_tensor(data, LAB_FP32, 2, shape);
    b->gemm.in[1] = lab_tensor(data + matrix_bytes, LAB_FP32, 2, shape);
    b->gemm.out = lab_tensor(data + 2 * matrix_bytes, LAB_FP32, 2, shape);
}

static void close_all(struct bench *b) {
    lab_stream_close(b->copy);
    lab_stream_close(b->compute);
    for (int i = 0; i < 2; i++) {
        lab_event_close(b->copied[i]);
        lab_event_close(b->computed[i]);
        lab_buffer_close(&b->device_side[i]);
    }
    lab_buffer_close(&b->matrices);
    lab_buffer_close(&b->host);
    lab_device_close(b->device);
}

int main(int argc, char **argv) {
    struct bench b = {.err = LAB_ERR_INIT};
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_machine *machine;
    require(&b, lab_machine_open(NULL, &machine, &b.err));
    open_all(&b, machine, argc > 1 ? argv[1] : "cpu:0",
             argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1, &arena);
    if (!b.device->info.overlaps)
        printf("no overlap: %s\n", b.device->info.overlap_why_not);
    else
        compare_orders(&b);
    close_all(&b);
    lab_machine_close(machine);
    lab_arena_release(&arena);
    return 0;
}
