/* test_cuda_health.c: what NVML reports of GPUs, as the fake driver plays it, and copies between
 * two. */
#include "cuda_fixture.h"

#include "device/health.h"

static struct lab_device_list gpus(struct cuda_fixture *fixture) {
    struct lab_device_list list = {0};
    ASSERT_OK(lab_device_select(fixture->machine, "cuda", &fixture->arena, &list, err));
    return list;
}

LAB_TEST(nvml_tells_links_modes_and_limits) {
    struct cuda_fixture *fixture = *state;
    struct lab_device_list list = gpus(fixture);
    struct lab_health health;
    ASSERT_OK(lab_device_health(fixture->machine, &list, &fixture->arena, &health, err));
    const struct lab_gpu_health *gpu = &health.gpus[1];
    assert_int_equal(health.gpu_count, 2);
    assert_non_null(health.driver);
    assert_null(gpu->lost);
    assert_string_equal(gpu->address, "0000:18:00.0");
    assert_int_equal(gpu->pcie_width, 16);
    assert_int_equal(gpu->pcie_generation_most, 5);
    assert_int_equal(gpu->nvlinks, 18);
    assert_int_equal(gpu->nvlinks_active, 18);
    assert_int_equal(gpu->fabric, LAB_FABRIC_COMPLETED);
    assert_int_equal(gpu->persistence, 1);
    assert_int_equal(gpu->ecc_on, 1);
    assert_int_equal(gpu->ecc_uncorrected, 0);
    assert_near(gpu->power_default_w, 700, 0);
    assert_near(gpu->clock_most_mhz, 1980, 0);
    assert_int_equal(gpu->process_count, 0);
    assert_int_equal(gpu->memory_used_bytes, 0);
    /* a GPU that the driver doesn't list any more */
    list.items[0].uuid = "GPU-none";
    ASSERT_OK(lab_device_health(fixture->machine, &list, &fixture->arena, &health, err));
    assert_contains(health.gpus[0].lost, "doesn't list it");
}

LAB_TEST(gpus_copy_to_each_other) {
    struct cuda_fixture *fixture = *state;
    struct lab_device_list list = gpus(fixture);
    struct lab_device *device[2];
    struct lab_buffer buffer[2];
    struct lab_stream *stream;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(
            lab_device_open(fixture->machine, &list.items[i], LAB_DEVICE_SETUP, &device[i], err));
        ASSERT_OK(lab_buffer_open(device[i], LAB_MEMORY_DEVICE, -1, 4096, &buffer[i], err));
    }
    ASSERT_OK(lab_stream_open(device[0], LAB_STREAM_COPY, &stream, err));
    ASSERT_OK(lab_copy_peer(stream, device[1], buffer[1].data, buffer[0].data, 4096, err));
    setenv("FAKE_CUDA_FAIL", "cuMemcpyPeerAsync:700", 1);
    ASSERT_SAYS(lab_copy_peer(stream, device[1], buffer[1].data, buffer[0].data, 4096, err),
                "cuMemcpyPeerAsync");
    unsetenv("FAKE_CUDA_FAIL");
    lab_stream_close(stream);
    for (int i = 0; i < 2; i++) {
        lab_buffer_close(&buffer[i]);
        lab_device_close(device[i]);
    }
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = cuda_begin_fake};
