/*
 * one_gpu.h: the first GPU, open with a stream, for a test program that needs no more. Included by its
 * only source; the program is skipped where there is no GPU.
 */
#ifndef LAB_TEST_ONE_GPU_H
#define LAB_TEST_ONE_GPU_H

#include "device/device.h"
#include "machine/machine.h"

#include <stdlib.h>

#include "test.h"

static struct lab_machine *machine;
static struct lab_device *device;
static struct lab_stream *stream;

static void require(int result, const struct lab_err *err, const char *what) {
    if (result < 0)
        fail_msg("%s: %s", what, err->text);
}

static int open_gpu(int argc, char **argv) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_arena arena;
    struct lab_device_list list = {0};
    (void)argc;
    (void)argv;
    lab_arena_init(&arena);
    if (lab_machine_open(NULL, &machine, &err) ||
        lab_device_select(machine, "cuda", &arena, &list, &err) || list.count == 0) {
        print_message("skipped: %s\n", err.text);
        lab_arena_release(&arena);
        lab_machine_close(machine);
        return LAB_TEST_SKIPPED;
    }
    if (lab_device_open(machine, &list.items[0], LAB_DEVICE_SETUP, &device, &err) ||
        lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, &err)) {
        print_message("%s\n", err.text);
        exit(1);
    }
    lab_arena_release(&arena);
    return LAB_TEST_GO;
}

static int end(int failed) {
    lab_stream_close(stream);
    lab_device_close(device);
    lab_machine_close(machine);
    return failed;
}

const struct lab_test_program lab_test_program = {.begin = open_gpu, .end = end};

#endif
