/* Other benchmarks' JSON as points, and what is none. The files were made for this test. */
#include "store/foreign/point_file.h"

#include "test.h"

#define FIXTURE(name) LAB_TEST_SOURCE_DIR "/tests/fixtures/compare/" name

static struct lab_point_set read_one(const char *path) {
    struct lab_point_set *sets;
    int count;
    ASSERT_OK(lab_point_file_read(path, &test_arena, &sets, &count, err));
    assert_int_equal(count, 1);
    return *sets;
}

LAB_TEST(nvbench_gives_mean_gpu_times_of_its_states) {
    struct lab_point_set set = read_one(FIXTURE("nvbench_a.json"));
    assert_int_equal(set.point_count, 2);
    assert_string_equal(lab_point_axis(&set.points[0], "benchmark"), "copy");
    assert_string_equal(lab_point_axis(&set.points[0], "Elements"), "1024");
    assert_string_equal(set.points[0].quantity, "time");
    assert_near(set.points[0].values[0], 2e-6, 1e-15);
    assert_int_equal(set.failure_count, 1);
    assert_string_equal(set.failures[0].reason, "skipped");
    assert_string_equal(lab_point_set_fact(&set, "machine", "GPU 0"), "Example GPU");
    struct lab_point_set old = read_one(FIXTURE("nvbench_old.json"));
    assert_string_equal(lab_point_axis(&old.points[0], "Elements"), "1024");
    assert_near(old.points[0].values[0], 3e-6, 1e-15);
}

LAB_TEST(nccl_tests_give_times_out_of_place_and_in_place) {
    struct lab_point_set set = read_one(FIXTURE("nccl_a.json"));
    assert_int_equal(set.point_count, 4);
    assert_string_equal(lab_point_axis(&set.points[0], "test"), "all_reduce_perf");
    assert_string_equal(lab_point_axis(&set.points[0], "root"), "-1");
    assert_string_equal(lab_point_axis(&set.points[1], "buffers"), "in place");
    assert_near(set.points[0].values[0], 12.5e-6, 1e-12);
    assert_string_equal(lab_point_set_fact(&set, "software", "NCCL"), "22304");
}

LAB_TEST(nvbandwidth_gives_a_point_for_each_pair_that_was_tested) {
    struct lab_point_set set = read_one(FIXTURE("nvbandwidth_a.json"));
    assert_int_equal(set.point_count, 5);
    assert_near(set.points[0].values[0], 50e9, 1);
    assert_string_equal(lab_point_axis(&set.points[2], "column"), "1");
    assert_string_equal(set.points[4].quantity, "latency");
    assert_near(set.points[4].values[0], 800e-9, 1e-15);
    assert_string_equal(lab_point_set_fact(&set, "software", "driver"), "550.54");
}

static struct lab_point_set read_text(const char *text) {
    test_write(test_path("point.json"), text);
    return read_one(test_path("point.json"));
}

/* As testcases_sm.cpp and testcases_ce.cpp of nvbandwidth 0.8 describe and append them. */
LAB_TEST(nvbandwidth_latencies_are_in_ns_and_directions_are_kept_apart) {
    struct lab_point_set set = read_text(
        "{\"nvbandwidth\": {\"testcases\": ["
        "{\"name\": \"device_to_device_latency_sm\", \"status\": \"Passed\","
        " \"bandwidth_description\":"
        " \"Device to Device Latency SM GPU(row) <-> GPU(column) (ns)\","
        " \"bandwidth_matrix\": [[\"N/A\", \"900\"]]},"
        "{\"name\": \"device_to_device_bidirectional_memcpy_read_ce\", \"status\": \"Passed\","
        " \"bandwidth_description\": \"memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)\","
        " \"bandwidth_matrix\": [[\"N/A\", \"200\"], [\"201\", \"N/A\"], [\"N/A\", \"202\"],"
        " [\"203\", \"N/A\"], [\"N/A\", \"402\"], [\"404\", \"N/A\"]]},"
        "{\"name\": \"host_to_device_memcpy_ce\", \"status\": \"Error\"}]}}");
    assert_int_equal(set.point_count, 7);
    assert_string_equal(set.points[0].quantity, "latency");
    assert_near(set.points[0].values[0], 900e-9, 1e-15);
    assert_string_equal(lab_point_axis(&set.points[4], "direction"), "2");
    assert_string_equal(lab_point_axis(&set.points[4], "row"), "1");
    assert_near(set.points[4].values[0], 203e9, 1);
    assert_false(set.points[4].is_sum);
    assert_string_equal(lab_point_axis(&set.points[6], "direction"), "total");
    assert_true(set.points[6].is_sum);
    assert_int_equal(set.failure_count, 1);
    assert_string_equal(set.failures[0].axes[0].text, "host_to_device_memcpy_ce");
}

LAB_TEST(nccl_tests_with_wrong_elements_have_failed_and_cpu_times_are_no_times) {
    struct lab_point_set set =
        read_text("{\"nccl_version\": 1, \"args\": [\"a\"], \"results\": [{\"size\": 8,"
                  " \"out_of_place\": {\"cpu_time\": 3, \"nwrong\": 0},"
                  " \"in_place\": {\"time\": 2, \"nwrong\": 7}}]}");
    assert_int_equal(set.point_count, 1);
    assert_string_equal(set.points[0].quantity, "CPU time");
    assert_int_equal(set.failure_count, 1);
    assert_string_equal(set.failures[0].reason, "7 wrong elements");
}

LAB_TEST(nvbench_says_why_a_state_was_skipped_and_which_clock_timed_the_others) {
    struct lab_point_set set =
        read_text("{\"benchmarks\": [{\"name\": \"copy\", \"states\": ["
                  "{\"device\": 0, \"is_skipped\": true, \"skip_reason\": \"too few SMs\"},"
                  "{\"device\": 1, \"summaries\": [{\"tag\": \"nv/cpu_only/time/cpu/mean\","
                  " \"data\": [{\"name\": \"value\", \"value\": \"0.5\"}]}]}]}]}");
    assert_string_equal(set.failures[0].reason, "skipped: too few SMs");
    assert_int_equal(set.point_count, 1);
    assert_string_equal(set.points[0].quantity, "CPU time");
}

LAB_TEST(what_is_none_of_these_is_refused_with_the_reason) {
    static const struct {
        const char *text, *reason;
    } files[] = {
        {"", "point.json"},
        {"garbage", "point.json"},
        {"{\"benchmarks\": [{\"name\": \"copy\", \"states\": [", "point.json"},
        {"[1, 2]", "JSON of another program"},
        {"{\"benchmarks\": [{\"name\": \"BM_x\", \"real_time\": 3}]}", "JSON of another program"},
        {"{\"results\": [{\"time\": 1}]}", "JSON of another program"},
        {"{\"nvbandwidth\": {\"testcases\": []}}", "nvbandwidth without a single value"},
        {"{\"sets\": [{\"points\": [{\"axes\": {}, \"quantity\": \"time\", \"values\": [1],"
         " \"blocks\": []}]}]}",
         "point 1 lacks"},
        {"{\"sets\": [{\"points\": [{\"axes\": {}, \"quantity\": \"time\", \"values\": [1],"
         " \"blocks\": [-1]}]}]}",
         "not a whole number"},
        {"{\"benchmarks\": []}", "nvbench without a single value"},
        {"{\"context\": {}, \"benchmarks\": []}", "JSON of another program"},
        {"{\"nccl_version\": 1, \"results\": [{\"in_place\": {\"time\": 2, \"nwrong\": 7}}]}",
         "nccl-tests failed at all points (1): 7 wrong elements"},
        {"{\"sets\": 3}", "no sets of points"},
    };
    struct lab_point_set *sets;
    int count;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        test_write(test_path("point.json"), files[i].text);
        ASSERT_FAILS(lab_point_file_read(test_path("point.json"), &test_arena, &sets, &count, err),
                     LAB_ERR_USER, files[i].reason);
    }
}
