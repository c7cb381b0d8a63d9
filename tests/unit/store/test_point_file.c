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
    assert_int_equal(set.point_count, 3);
    assert_string_equal(lab_point_axis(&set.points[0], "benchmark"), "copy");
    assert_string_equal(lab_point_axis(&set.points[0], "Elements"), "1024");
    assert_string_equal(set.points[0].quantity, "time");
    assert_near(set.points[0].values[0], 2e-6, 1e-15);
    assert_int_equal(set.points[2].count, 0); /* skipped */
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
