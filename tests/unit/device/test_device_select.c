/*
 * Selectors on a made-up machine of four nodes: node 0 with four cores of two hardware threads,
 * node 1 with three cores, node 4 with memory only and node 6 with one core.
 */
#include "cpu_fixture.h"

#define CORES 8

static int cpu_numbers[CORES][2] = {{0, 8},  {1, 9},  {2, 10}, {3, 11},
                                    {4, -1}, {5, -1}, {6, -1}, {7, -1}};
static struct lab_core cores[CORES] = {
    {.node = 0, .cpus = {cpu_numbers[0], 2}}, {.node = 0, .cpus = {cpu_numbers[1], 2}},
    {.node = 0, .cpus = {cpu_numbers[2], 2}}, {.node = 0, .cpus = {cpu_numbers[3], 2}},
    {.node = 1, .cpus = {cpu_numbers[4], 1}}, {.node = 1, .cpus = {cpu_numbers[5], 1}},
    {.node = 1, .cpus = {cpu_numbers[6], 1}}, {.node = 3, .cpus = {cpu_numbers[7], 1}},
};
static struct lab_node nodes[] = {
    {.number = 0, .core_count = 4, .memory_bytes = 1LL << 34},
    {.number = 1, .core_count = 3, .memory_bytes = 1LL << 33},
    {.number = 4, .core_count = 0, .memory_bytes = 1LL << 35},
    {.number = 6, .core_count = 1, .memory_bytes = 1LL << 30},
};
static const struct lab_machine machine = {.source = "test.xml",
                                           .recorded = true,
                                           .cores = cores,
                                           .core_count = CORES,
                                           .nodes = nodes,
                                           .node_count = 4,
                                           .numa_in_kernel = true};

static struct lab_device_list select_all(const char *selector) {
    struct lab_device_list list = {0};
    ASSERT_OK(lab_device_select(&machine, selector, &test_arena, &list, err));
    return list;
}

static void assert_names(const char *selector, const char *const *names) {
    struct lab_device_list list = select_all(selector);
    int count = 0;
    for (; names[count]; count++) {
        assert_true(count < list.count);
        assert_string_equal(list.items[count].name, names[count]);
    }
    assert_int_equal(list.count, count);
}

LAB_TEST(a_backend_alone_means_all_nodes_with_cores) {
    assert_names("cpu", (const char *[]){"cpu:0", "cpu:1", "cpu:6", NULL});
}

LAB_TEST(auto_takes_the_cpus_where_there_is_nothing_better) {
    assert_names("auto", (const char *[]){"cpu:0", "cpu:1", "cpu:6", NULL});
}

LAB_TEST(lists_keep_the_order_given) {
    assert_names("cpu:6,cpu:1/3.2,cpu:0/2",
                 (const char *[]){"cpu:6", "cpu:1/3.2", "cpu:0/2.0", "cpu:0/2.1", NULL});
    /* a number alone is one of the backend before it */
    assert_names("cpu:6,1,0/2", (const char *[]){"cpu:6", "cpu:1", "cpu:0/2.0", "cpu:0/2.1", NULL});
}

LAB_TEST(a_single_slice_is_the_whole_device) {
    assert_names("cpu:1/1.0", (const char *[]){"cpu:1", NULL});
    assert_names("cpu:0/1", (const char *[]){"cpu:0", NULL});
}

LAB_TEST(every_member_selects_itself) {
    struct lab_device_list list = select_all("cpu:0/3,cpu:1,cpu:6");
    for (int i = 0; i < list.count; i++)
        assert_names(list.items[i].name, (const char *[]){list.items[i].name, NULL});
}

LAB_TEST(a_device_has_one_cpu_of_each_core) {
    struct lab_device_ref whole = select_all("cpu:0").items[0];
    assert_int_equal(whole.cpus.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(whole.cpus.items[i], i);
    assert_string_equal(whole.description, "4 cores of NUMA node 0");
    assert_string_equal(whole.physical, "cpu:0");
    assert_int_equal(whole.slices, 1);
    assert_int_equal(whole.node, 0);
    assert_int_equal(whole.memory_bytes, 1LL << 34);
    assert_false(whole.simulated);
    assert_string_equal(select_all("cpu:6").items[0].description, "1 core of NUMA node 6");
}

LAB_TEST(slices_are_neighbours_and_use_every_core) {
    struct lab_device_list list = select_all("cpu:0/3");
    static const int first[] = {0, 2, 3}, count[] = {2, 1, 1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list.items[i].cpus.count, count[i]);
        assert_int_equal(list.items[i].cpus.items[0], first[i]);
        assert_int_equal(list.items[i].slice, i);
        assert_int_equal(list.items[i].slices, 3);
        assert_string_equal(list.items[i].physical, "cpu:0");
    }
    assert_string_equal(list.items[0].description, "2 of 4 cores of NUMA node 0");
}

LAB_TEST(a_machine_without_numa_says_so) {
    struct lab_core core = cores[0];
    struct lab_machine small = machine;
    struct lab_device_list list;
    core.node = -1;
    small.cores = &core;
    small.core_count = small.node_count = 1;
    small.numa_in_kernel = false;
    ASSERT_OK(lab_device_select(&small, "cpu:0", &test_arena, &list, err));
    assert_contains(list.items[0].description, "no NUMA");
}

LAB_TEST(bad_selectors_are_told_what_is_right) {
    static const struct {
        const char *selector, *text;
    } cases[] = {
        {"", "lacks a device"},
        {"cpu:0,", "lacks a device"},
        {",cpu", "lacks a device"},
        {"cpu:0,,cpu:1", "lacks a device"},
        {"gpuu:0", "unknown device 'gpuu:0'"},
        {"gpu:0", "unknown device 'gpu:0'; did you mean cuda?"},
        {"cpu,1", "unknown device '1'"},
        {"0,1", "unknown device '0'"},
        {"cpu:0,0", "cpu:0 is named twice"},
        {"cpu:0,2", "there is no NUMA node 2"},
        {"cpx:0", "did you mean cpu?"},
        {"cp", "cpu"},
        {"CPU", "cpu"},
        {"cpu:0,cpu:0", "cpu:0 is named twice"},
        {"cpu,cpu:1/1", "cpu:1 is named twice"},
        {"cpu:0/2,cpu:0/2.1", "cpu:0/2.1 is named twice"},
        {"cpu:", "write cpu, cpu:NUMBER"},
        {"cpu:x", "write cpu, cpu:NUMBER"},
        {"cpu:-1", "write cpu, cpu:NUMBER"},
        {"cpu: 0", "write cpu, cpu:NUMBER"},
        {"cpu/2", "write cpu, cpu:NUMBER"},
        {"cpu:0/", "write cpu, cpu:NUMBER"},
        {"cpu:0/2.", "write cpu, cpu:NUMBER"},
        {"cpu:0/2.1x", "write cpu, cpu:NUMBER"},
        {"cpu:0.1", "write cpu, cpu:NUMBER"},
        {"cpu:99999999999999999999", "write cpu, cpu:NUMBER"},
        {"cpu:2", "there is no NUMA node 2; nodes with cores: cpu:0, cpu:1, cpu:6"},
        {"cpu:4", "NUMA node 4 has memory but no cores; nodes with cores: cpu:0, cpu:1, cpu:6"},
        {"cpu:0/5", "cpu:0/5: NUMA node 0 has 4 cores, so at most 4 slices"},
        {"cpu:6/2.1", "node 6 has 1 core, so at most 1 slice"},
        {"cpu:0/0", "at least 1"},
        {"cpu:0/2.2", "the last of 2 is cpu:0/2.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_device_list list = {.count = -7};
        ASSERT_FAILS(lab_device_select(&machine, cases[i].selector, &test_arena, &list, err),
                     LAB_ERR_USER, cases[i].text);
        assert_int_equal(list.count, -7); /* untouched on failure */
    }
}

LAB_TEST(a_recorded_machine_runs_nothing) {
    struct lab_device_list list = select_all("cpu:0");
    struct lab_device *device = NULL;
    ASSERT_FAILS(lab_device_open(&machine, &list.items[0], LAB_DEVICE_SETUP, &device, err),
                 LAB_ERR_USER, "opening cpu:0: test.xml is recorded");
    assert_null(device);
}
