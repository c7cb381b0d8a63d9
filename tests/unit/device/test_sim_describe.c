/*
 * test_sim_describe.c: descriptions of machines: those that ship are sound, a mistake is told with
 * its line and what is right, and selectors name what is there.
 */
#include "sim_fixture.h"

static int count_of(const char *selector, struct lab_err *err) {
    struct lab_device_list list = {0};
    return lab_device_select(sim_here, selector, &sim_arena, &list, err) < 0 ? -1 : list.count;
}

static void expect_count(const char *selector, int count) {
    struct lab_err err = LAB_ERR_INIT;
    int found = count_of(selector, &err);
    if (found != count)
        fail_msg("%s: %d instead of %d: %s", selector, found, count, err.text);
}

static void expect_refusal(const char *selector, const char *words) {
    ASSERT_FAILS(count_of(selector, err), LAB_ERR_USER, words);
}

LAB_TEST(shipped_machines_are_sound) {
    const char *const *names, *const *titles;
    lab_device_define(NULL, NULL);
    assert_int_equal(lab_device_definitions(&sim_arena, &names, &titles), 5);
    expect_count("sim:dgx-h100", 8);
    expect_count("sim:g5.12xlarge", 4);
    expect_count("sim:l40s-10", 10);
    expect_count("sim:rtx4070tis-2", 2);
    assert_string_equal(names[0], "dgx-h100");
    assert_string_equal(titles[0], "8 × NVIDIA H100 SXM over 2 NUMA nodes");
}

LAB_TEST(selectors_name_all_or_one) {
    expect_count("sim:toy", 3);
    expect_count("sim:toy:2", 1);
    expect_count("sim:toy:0,sim:toy:2", 2);
    struct lab_device_ref ref = sim_ref("sim:toy:2");
    assert_string_equal(ref.name, "sim:toy:2");
    assert_int_equal(ref.node, 2);
    assert_true(ref.simulated);
    assert_int_equal(ref.memory_bytes, 2000000000);
    assert_int_equal(ref.machine->node_count, 2);
    assert_true(ref.machine->simulated);
    expect_refusal("sim", "name a machine, such as sim:l40s-10");
    expect_refusal("sim:", "sim:MACHINE:NUMBER");
    expect_refusal("sim:toy:3", "toy has 3 GPUs, so the last is sim:toy:2");
    expect_refusal("sim:l40s", "did you mean 'l40s-10'?");
    expect_refusal("sim:l40s", "there are dgx-h100, g5.12xlarge, h200-8, l40s-10 and rtx4070tis-2");
    expect_refusal("sim:/no/such.yaml", "/no/such.yaml");
    expect_refusal("sim:toy:0,sim:toy", "sim:toy:0 is named twice");
}

LAB_TEST(auto_never_takes_one) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device_list list = {0};
    sim_ok(lab_device_select(sim_here, "auto", &sim_arena, &list, &err), &err);
    assert_false(list.items[0].simulated);
}

LAB_TEST(another_description_is_another_machine) {
    uint64_t before = lab_machine_identity(sim_ref("sim:toy:0").machine);
    assert_true(before == lab_machine_identity(sim_ref("sim:toy:2").machine));
    lab_device_define("toy", toy_with(&sim_arena, "kernel_us: 5", "kernel_us: 6"));
    assert_true(before != lab_machine_identity(sim_ref("sim:toy:0").machine));
}

LAB_TEST(files_and_folders_are_found) {
    const char *file = test_path("machine/mine.yaml");
    test_write(file, TOY_HEAD);
    test_write(test_path("machine/l40s-10.yaml"), TOY_HEAD);
    expect_count(lab_arena_printf(&sim_arena, "sim:%s", file), 3);
    expect_count(lab_arena_printf(&sim_arena, "sim:%s:1", file), 1);
    expect_refusal("sim:mine", "there is no simulated machine 'mine'");
    lab_device_set_folders((const char *const[]){test_folder(), NULL});
    expect_count("sim:mine", 3);
    expect_count("sim:l40s-10", 3); /* a file of one's own hides the one that ships */
    lab_device_set_folders(NULL);
    expect_count("sim:l40s-10", 10);
}

LAB_TEST(mistakes_are_told_with_their_line) {
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        {"title: toy\n", "", "'title' is missing"},
        {"title: toy", "titel: toy", "sim:toy:1: unknown key 'titel'; did you mean 'title'?"},
        {"cores: 4", "core: 4", "sim:toy:4: unknown key 'core'; did you mean 'cores'?"},
        {"memory_gb: 8", "memory_gb: -8", "sim:toy:4: memory_gb=-8: must be 0 to"},
        {"number: 2", "number: 0", "sim:toy:5: NUMA node 0 must come before node 0"},
        {"[[10, 20], [20, 10]]", "[[10, 20]]", "sim:toy:6: distances: 1 rows for 2 NUMA nodes"},
        {"[[10, 20], [20, 10]]", "[[10, 9], [20, 10]]", "10 from itself and 11 to 254 from"},
        {"joins: [0, 2]", "joins: [0, 1]", "sim:toy:8: link between joins NUMA node 1"},
        {"joins: [0, 2]", "joins: [0]", "joins must be two NUMA nodes"},
        {"joins: [0, 2], ", "", "no links join NUMA nodes 2 and 0, where GPU 0 is"},
        {"name: up", "name: between", "there are two links named 'between'"},
        {"bandwidth_gb_s: 10}", "bandwidth_gb_s: 0}", "link up: bandwidth_gb_s must be above 0"},
        {"path: [up]", "path: [upp]", "GPU 0: there is no link 'upp'; did you mean 'up'?"},
        {"- {model: toy", "- {model: toys", "there is no model 'toys'; did you mean 'toy'?"},
        {"model: toy, node: 0", "model: toy, node: 1", "GPU 0: there is no NUMA node 1"},
        {"    tflops: {fp32: 1}\n", "", "'tflops' is missing"},
        {"fp32: 1", "fp31: 1", "unknown key 'fp31'; did you mean"},
        {"limit_w: 100", "limit_w: 1", "model toy: power.limit_w is below idle_w"},
        {"idle_w: 10", "idle: 10", "unknown key 'idle'; did you mean 'idle_w'?"},
        {"clock_mhz: 1000", "clock_mhz: 100", "clock_min_mhz must be above 0 and up to clock_mhz"},
        {"gpus:\n", "gpu:\n", "unknown key 'gpu'; did you mean"},
        {"models:\n  toy:", "models: 7\nx:", "unknown key 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_device_define("toy", toy_with(&sim_arena, cases[i].from, cases[i].to));
        expect_refusal("sim:toy", cases[i].words);
    }
}

LAB_TEST(mistakes_in_what_is_planted_are_told_too) {
    static const char *const cases[][2] = {
        {"noise: {between: {copy: -1}}\n", "copy=-1: must be 0 to 10"},
        {"noise: {betwen: {copy: 1}}\n", "unknown key 'betwen'; did you mean 'between'?"},
        {"noise: 3\n", "noise: must be a map, not a whole number"},
        {"effects: {slow_gpu: [{gpu: 3}]}\n", "slow_gpu: there is no GPU 3"},
        {"effects: {slow_gpus: []}\n", "unknown key 'slow_gpus'; did you mean 'slow_gpu'?"},
        {"effects: {remote: [{size_kb: 2, slowdown: 0}, {size_kb: 1, slowdown: 0}]}\n",
         "remote: sizes must grow"},
        {"effects: {neighbour: {node: 1}}\n", "neighbour: there is no NUMA node 1"},
        {"effects: {neighbour: {node: 0, links: [down]}}\n", "there is no link 'down'"},
        {"effects: {drift: [{gpu: 0}]}\n", "'per_minute' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lab_device_define("toy", lab_arena_printf(&sim_arena, "%s%s", TOY_HEAD, cases[i][0]));
        expect_refusal("sim:toy", cases[i][1]);
    }
    lab_device_define("toy", "- a list\n");
    expect_refusal("sim:toy", "must be a map");
    lab_device_define("toy", "{");
    expect_refusal("sim:toy", "sim:toy:");
}

const struct lab_test_program lab_test_program = {.set_up = sim_set_up, .tear_down = sim_tear_down};
