/*
 * test_cuda_tune.c: what a tuned configuration holds for on GPUs, told without opening them, and
 * the clock of one that is open.
 */
#include "cuda_fixture.h"

#include "base/file/file.h"
#include "device/cuda/compiler.h"
#include "device/kernel_cache.h"
#include "device/tunable.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct lab_tunable_place place_of(struct cuda_fixture *fixture, const char *selector) {
    struct lab_device_list list = {0};
    ASSERT_OK(lab_device_select(fixture->machine, selector, &fixture->arena, &list, err));
    assert_true(list.count >= 1);
    struct lab_device_ref *first = lab_arena_alloc(&fixture->arena, 1, sizeof *first);
    *first = list.items[0];
    return (struct lab_tunable_place){fixture->machine, first};
}

LAB_TEST(the_identity_names_what_speed_depends_on) {
    struct cuda_fixture *fixture = *state;
    struct lab_device_identity whole, half;
    struct lab_tunable_place place = place_of(fixture, "cuda:0");
    ASSERT_OK(lab_device_identity(&place, &fixture->arena, &whole, err));
    assert_contains(whole.model, "NVIDIA");
    assert_true(*whole.driver);
    assert_true(whole.compute_units > 0);
    assert_true(whole.power_limit_w > 0);
    assert_true(!*whole.compiler || strncmp(whole.compiler, "NVRTC ", 6) == 0);
    /* a slice is another device */
    place = place_of(fixture, "cuda:0/2");
    ASSERT_OK(lab_device_identity(&place, &fixture->arena, &half, err));
    assert_string_equal(half.model, whole.model);
    assert_true(half.compute_units > 0 && half.compute_units <= whole.compute_units / 2);
}

LAB_TEST(a_gpu_that_is_gone_has_none) {
    struct cuda_fixture *fixture = *state;
    struct lab_device_identity identity;
    struct lab_tunable_place place = place_of(fixture, "cuda:0");
    struct lab_device_ref lost = *place.ref;
    lost.uuid = "GPU-00000000-0000-0000-0000-000000000000";
    place.ref = &lost;
    ASSERT_FAILS(lab_device_identity(&place, &fixture->arena, &identity, err), LAB_ERR_SYSTEM,
                 "no longer exists");
}

LAB_TEST(an_open_device_tells_its_clock_power_and_energy) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    double mhz = lab_device_clock_mhz(device), watts = lab_device_power_w(device);
    double joules = lab_device_energy_j(device), before = joules;
    assert_true(mhz > 0 && mhz < 10000);
    assert_true(watts > 1 && watts < 2000);
    assert_true(joules > 0);
    /* the fake driver's counter grows by its power */
    for (int i = 0; i < 1000 && joules == before; i++, joules = lab_device_energy_j(device))
        usleep(1000);
    assert_true(joules > before);
    lab_device_close(device);
}

LAB_TEST(the_compilers_version_is_known_while_the_file_stays) {
    struct cuda_fixture *fixture = *state;
    const char *folder = test_folder(), *library = test_path("libnvrtc.so.13");
    ASSERT_OK(lab_file_write_atomic(library, "one", 3, err));
    /* given a library that was found in some places, then its version is known there alone */
    assert_int_equal(cuda_compiler_recall(folder, "here", &fixture->arena), 0);
    cuda_compiler_remember(folder, "here", library, 13010, &fixture->arena);
    assert_int_equal(cuda_compiler_recall(folder, "here", &fixture->arena), 13010);
    assert_int_equal(cuda_compiler_recall(folder, "elsewhere", &fixture->arena), 0);
    /* when another one is put in its place, then nothing is known, nor when it is gone */
    ASSERT_OK(lab_file_write_atomic(library, "another", 7, err));
    assert_int_equal(cuda_compiler_recall(folder, "here", &fixture->arena), 0);
    assert_int_equal(unlink(library), 0);
    assert_int_equal(cuda_compiler_recall(folder, "here", &fixture->arena), 0);
    int count;
    int64_t bytes;
    ASSERT_OK(lab_kernel_cache_clear(folder, &count, &bytes, err));
    assert_int_equal(rmdir(folder), 0);
}

static int begin(int argc, char **argv) {
    (void)argc;
    cuda_use_fake(argv);
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* what is found out stays out of the user's cache */
    if (cuda_is_absent())
        return LAB_TEST_SKIPPED;
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = begin};
