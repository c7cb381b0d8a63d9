/*
 * cuda_fixture.h: what the tests of the cuda backend share. They run on the fake driver
 * (tests/fake), which a test program puts in front of any real one by starting itself anew; with
 * GPULAB_TEST_CUDA=real they run on the GPU that is here, without those tests that need the fake.
 */
#pragma once

#include "test.h"

#include "base/mem.h"
#include "base/str.h"
#include "device/cuda/cuda.h"
#include "machine/machine.h"
#include "vendor/cuda.h"

#include <stdlib.h>
#include <unistd.h>

struct cuda_fixture {
    struct lab_machine *machine;
    struct lab_arena arena;
};

static inline bool cuda_is_real(void) {
    return lab_str_equal(getenv("GPULAB_TEST_CUDA"), "real");
}

/* Call first in main: returns with these folders alone in the loader's path. */
static inline void cuda_use_fake_at(char **argv, const char *folders) {
    if (cuda_is_real() || getenv("FAKE_CUDA_GPUS"))
        return;
    setenv("LD_LIBRARY_PATH", folders, 1);
    setenv("FAKE_CUDA_GPUS", "2", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_HOME"); /* the vendor's own libraries would fall over the fake driver */
    execv("/proc/self/exe", argv);
    abort();
}

/* The same with the fake driver. */
static inline void cuda_use_fake(char **argv) {
    cuda_use_fake_at(argv, LAB_TEST_BINARY_DIR "/fake");
}

/* How a program of tests begins that are of machines the fake driver makes up. */
static inline int cuda_begin_fake(int argc, char **argv) {
    (void)argc;
    if (cuda_is_real()) {
        print_message("skipped: these tests are of machines that the fake driver makes up\n");
        return LAB_TEST_SKIPPED;
    }
    cuda_use_fake(argv);
    return LAB_TEST_GO;
}

/* Undoes what a test told the fake. */
static inline void fake_reset(void) {
    static const char *const variables[] = {
        "FAKE_CUDA_MIG",  "FAKE_CUDA_MEMORY_MIB", "FAKE_CUDA_MODE",      "FAKE_CUDA_GROUPS",
        "FAKE_CUDA_FAIL", "FAKE_CUDA_DRIFT_NS",   "CUDA_VISIBLE_DEVICES"};
    if (cuda_is_real())
        return;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("FAKE_CUDA_GPUS", "2", 1);
}

/* True, and says so, where a real GPU is wanted and none can be used. */
static inline bool cuda_is_absent(void) {
    struct cuda_inventory inventory;
    if (!cuda_is_real())
        return false;
    LAB_AUTO(arena, arena);
    cuda_inventory_read(&arena, &inventory);
    bool none = inventory.count == 0;
    const char *lacks = none ? NULL : lab_cuda_lacks();
    if (none)
        print_message("skipped: %s\n", inventory.why_none);
    else if (lacks)
        print_message("skipped: this driver has no %s\n", lacks);
    return none || lacks;
}

static inline int cuda_fixture_open(void **state) {
    struct cuda_fixture *fixture = lab_mem_alloc(1, sizeof *fixture);
    struct lab_err err = LAB_ERR_INIT;
    lab_arena_init(&fixture->arena);
    fake_reset();
    *state = fixture;
    return lab_machine_open(NULL, &fixture->machine, &err);
}

static inline int cuda_fixture_close(void **state) {
    struct cuda_fixture *fixture = *state;
    fake_reset();
    lab_machine_close(fixture->machine);
    lab_arena_release(&fixture->arena);
    lab_mem_free(fixture);
    return 0;
}

/* Opens member `index` of what the selector names. */
static inline int cuda_fixture_try(struct cuda_fixture *fixture, const char *selector, int index,
                                   struct lab_device **ret_device, struct lab_err *err) {
    struct lab_device_list list;
    if (lab_device_select(fixture->machine, selector, &fixture->arena, &list, err))
        return -1;
    return lab_device_open(fixture->machine, &list.items[index], LAB_DEVICE_SETUP, ret_device, err);
}

static inline struct lab_device *cuda_fixture_device(struct cuda_fixture *fixture,
                                                     const char *selector, int index) {
    struct lab_device *device = NULL;
    ASSERT_OK(cuda_fixture_try(fixture, selector, index, &device, err));
    return device;
}
