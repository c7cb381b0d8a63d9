/* test_cuda_select.c: which GPUs a selector names, and what is said about those that aren't
 * there. */
#include "cuda_fixture.h"

#include "base/log.h"

static struct lab_device_list chosen(struct cuda_fixture *fixture, const char *selector) {
    struct lab_device_list list = {0};
    ASSERT_OK(lab_device_select(fixture->machine, selector, &fixture->arena, &list, err));
    return list;
}

#define ASSERT_REFUSED(fixture, selector, part)                                                    \
    do {                                                                                           \
        struct lab_device_list refused_list;                                                       \
        ASSERT_FAILS(lab_device_select((fixture)->machine, selector, &(fixture)->arena,            \
                                       &refused_list, err),                                        \
                     LAB_ERR_USER, part);                                                          \
    } while (0)

#define GPU0 "GPU-00000000-0000-0000-0000-0000000000ab"
#define GPU1 "GPU-00000001-0000-0000-0000-0000000000ab"
#define MIG0 "MIG-00000010-0000-0000-0000-0000000000cd"
#define MIG1 "MIG-00000011-0000-0000-0000-0000000000cd"

LAB_TEST(gpus_come_in_pci_order_with_what_they_are) {
    struct lab_device_list list = chosen(*state, "cuda");
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].name, "cuda:0");
    assert_string_equal(list.items[1].name, "cuda:1");
    assert_string_equal(list.items[1].physical, "cuda:" GPU1);
    assert_string_equal(list.items[1].uuid, GPU1);
    assert_string_equal(list.items[0].description, "NVIDIA Fake 90, 132 multiprocessors");
    assert_int_equal(list.items[0].memory_bytes, 1024LL << 20);
    assert_int_equal(list.items[1].unit, 1);
    assert_int_equal(list.items[1].slices, 1);
}

static void keep_text(enum lab_log_level level, const char *text, void *state) {
    (void)level;
    snprintf(state, 400, "%s", text);
}

/* The fake driver comes without NVRTC: whether one is found depends on the machine. */
LAB_TEST(auto_takes_gpus_first_if_they_can_compute) {
    struct cuda_fixture *fixture = *state;
    char told[400] = "";
    lab_log_set_sink(keep_text, told, LAB_LOG_WARNING);
    const char *lacks = cuda_lacks(&fixture->arena);
    const char *first = chosen(fixture, "auto").items[0].name;
    lab_log_set_sink(NULL, NULL, LAB_LOG_WARNING);
    if (lacks) {
        assert_true(lab_str_starts(first, "cpu:"));
        assert_contains(told, "passes over cuda");
        assert_contains(told, lacks);
    } else {
        assert_string_equal(first, "cuda:0");
        assert_string_equal(told, "");
    }
    assert_string_equal(chosen(fixture, "cuda").items[0].name, "cuda:0"); /* copies do without */
    setenv("FAKE_CUDA_GPUS", "0", 1);
    assert_true(lab_str_starts(chosen(*state, "auto").items[0].name, "cpu:"));
}

LAB_TEST(slices_are_multiples_of_eight_and_say_what_stays_idle) {
    struct lab_device_list list = chosen(*state, "cuda:1/4");
    assert_int_equal(list.count, 4);
    assert_string_equal(list.items[2].name, "cuda:1/4.2");
    assert_string_equal(list.items[2].physical, "cuda:" GPU1);
    assert_string_equal(list.items[2].description,
                        "32 of 132 multiprocessors of NVIDIA Fake 90 (4 stay idle)");
    list = chosen(*state, "cuda:0/4.2");
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].slice, 2);
    assert_string_equal(chosen(*state, "cuda:0/1").items[0].name, "cuda:0");
}

LAB_TEST(what_is_not_there_is_refused_with_what_is) {
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:3",
                   "cuda:3: there are 2 GPUs: cuda:0, cuda:1");
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:0/40",
                   "132 multiprocessors and a slice at least 8, so at most 16 slices");
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:one", "isn't a device");
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:MIG-nonsense",
                   "there is no such MIG instance; none exists");
    setenv("FAKE_CUDA_GPUS", "1", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:1", "there is 1 GPU: cuda:0");
    setenv("FAKE_CUDA_GPUS", "0", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda", "the NVIDIA driver finds no GPU");
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:0", "cuda:0: the NVIDIA driver");
}

LAB_TEST(visible_devices_are_counted_in_their_own_order) {
    setenv("FAKE_CUDA_GPUS", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "2,GPU-00000001,9,0", 1);
    struct lab_device_list list = chosen(*state, "cuda");
    assert_int_equal(list.count, 2); /* 9 is none and ends the list, as it does for the driver */
    assert_string_equal(list.items[0].uuid, "GPU-00000002-0000-0000-0000-0000000000ab");
    assert_string_equal(list.items[0].name, "cuda:0");
    assert_string_equal(list.items[1].uuid, GPU1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:2", "2 GPUs in CUDA_VISIBLE_DEVICES");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda",
                   "CUDA_VISIBLE_DEVICES='' leaves none of 4 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:0", "='-1' leaves none of 4 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "1,-1,2", 1);
    assert_int_equal(chosen(*state, "cuda").count, 1);
    setenv("CUDA_VISIBLE_DEVICES", "0,1,GPU-00000000", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda",
                   "names one twice, which leaves none of 4 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "GPU-0", 1); /* which of the four? */
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda", "leaves none of 4 GPUs");
    setenv("FAKE_CUDA_MIG", "1", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda", "leaves none of 4 GPUs");
}

LAB_TEST(mig_instances_are_devices_and_their_gpu_is_none) {
    setenv("FAKE_CUDA_MIG", "1", 1);
    struct lab_device_list list = chosen(*state, "cuda");
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].name, "cuda:0");
    assert_string_equal(list.items[1].name, "cuda:" MIG0);
    assert_string_equal(list.items[2].physical, "cuda:" MIG1);
    assert_string_equal(list.items[1].description,
                        "NVIDIA Fake 90 MIG 3g.40gb, 60 multiprocessors");
    assert_int_equal(list.items[1].memory_bytes, 512LL << 20);
    assert_string_equal(chosen(*state, "cuda:" MIG1).items[0].uuid, MIG1);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:1", "its instances alone: cuda:" MIG0);
    ASSERT_REFUSED((struct cuda_fixture *)*state, "cuda:" MIG0 "/2", "can't be cut into slices");
    setenv("CUDA_VISIBLE_DEVICES", MIG1, 1);
    list = chosen(*state, "cuda");
    assert_int_equal(list.count, 1);
    assert_string_equal(chosen(*state, "cuda:0").items[0].name, "cuda:" MIG1);
}

LAB_TEST(a_gpu_may_be_named_by_its_uuid) {
    struct lab_device_list list = chosen(*state, "cuda:" GPU1 "/2.1");
    assert_string_equal(list.items[0].name, "cuda:1/2.1");
}

LAB_TEST(the_node_is_that_of_the_pci_address) {
    struct cuda_fixture *fixture = *state;
    struct lab_node nodes[] = {{.number = 0}, {.number = 3}};
    struct lab_pci pci[] = {{.address = "0000:17:00.0", .node = 1},
                            {.address = "0000:18:00.0", .node = -1}};
    struct lab_machine machine = {.nodes = nodes, .node_count = 2, .pci = pci, .pci_count = 2};
    struct lab_device_list list = {0};
    const char *why;
    ASSERT_OK(cuda_select(&machine, "", &fixture->arena, &list, &why, err));
    assert_int_equal(list.items[0].node, 3);
    assert_int_equal(list.items[1].node, -1);
    machine.node_count = 1;
    machine.pci_count = 0;
    ASSERT_OK(cuda_select(&machine, ":1", &fixture->arena, &list, &why, err));
    assert_int_equal(list.items[2].node, 0);
}

LAB_TEST(a_recorded_machine_has_no_gpus_to_run_on) {
    struct cuda_fixture *fixture = *state;
    struct lab_machine machine = {.recorded = true};
    struct lab_device_list list = {0};
    const char *why = NULL;
    ASSERT_OK(cuda_select(&machine, "", &fixture->arena, &list, &why, err));
    assert_int_equal(list.count, 0);
    assert_contains(why, "recorded");
}

LAB_TEST(without_nvml_the_kernel_modules_files_tell) {
    struct cuda_fixture *fixture = *state;
    struct cuda_inventory inventory;
    cuda_inventory_read_proc(test_folder(), &fixture->arena, &inventory);
    assert_int_equal(inventory.count, 0);
    assert_non_null(inventory.why_none);
    test_write(test_path("0000:3b:00.0/information"),
               "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-????????\n");
    test_write(test_path("0000:1a:00.0/information"),
               "Model: \t\t NVIDIA L40S \nIRQ: 1\nGPU UUID: \t " GPU0 "\n");
    cuda_inventory_read_proc(test_folder(), &fixture->arena, &inventory);
    assert_int_equal(inventory.count, 2);
    assert_string_equal(inventory.items[0].address, "0000:1a:00.0");
    assert_string_equal(inventory.items[0].name, "NVIDIA L40S");
    assert_string_equal(inventory.items[0].uuid, GPU0);
    assert_string_equal(inventory.items[1].uuid, "");
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = cuda_begin_fake};
