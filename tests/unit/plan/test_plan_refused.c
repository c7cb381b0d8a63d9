/* What a plan refuses, and whether the message says what would be right. */
#include "plan_fixture.h"

static void given_study(const char *text) {
    given("experiment/mine.yaml",
          lab_arena_printf(&arena, "defaults: [_vit, _self_]\nname: mine\n%s", text));
}

/* --- what isn't here --- */

LAB_TEST(missing_devices_and_nodes_name_the_way_out) {
    REFUSED(ONE_NODE, "asks for devices 1, 2 and 3, but device=auto has 1 here (0 is cpu:0)",
            "experiment=numa_study");
    REFUSED(ONE_NODE, "NUMA node 2, but this machine has only node 0", "experiment=numa_study");
    const char *hint = strstr(plan_err.text, "; to run it here, add: ");
    assert_non_null(hint);
    /* what the hint says does run here */
    const char *both = lab_arena_strdup(&arena, strstr(hint, "experiment."));
    const char *space = strchr(both, ' ');
    const char *words[] = {"experiment=numa_study",
                           lab_arena_strndup(&arena, both, (size_t)(space - both)), space + 1,
                           NULL};
    assert_int_equal(plan_words(ONE_NODE, words), 0);
    assert_int_equal(plan.run_count, 6 * 5);
}

LAB_TEST(a_hint_keeps_what_is_here) {
    REFUSED(FOUR_NODES,
            "add: experiment.hardware.gpu_ids=[3,[0,1]] experiment.hardware.numa_nodes=[2,0]",
            "device=cpu", "experiment=quick_test", "experiment.hardware.gpu_ids=[3,[0,1],7,[1,9]]",
            "experiment.hardware.numa_nodes=[2,5]");
    assert_null(strstr(plan_err.text, "only node"));
    REFUSED(FOUR_NODES, "add: experiment.hardware.numa_nodes=[0]", "device=cpu",
            "experiment=quick_test", "experiment.hardware.numa_nodes=[9]");
}

LAB_TEST(too_little_memory_names_what_would_fit) {
    /* the nodes of this recorded machine have 126 GiB or so */
    REFUSED(FOUR_NODES, "to run it here, add: experiment.test.memory_size_mb=", "device=cpu",
            "experiment=quick_test", "experiment.test.memory_size_mb=1000000");
    const char *hint = strstr(plan_err.text, "experiment.test.");
    const char *words[] = {"device=cpu", "experiment=quick_test", lab_arena_strdup(&arena, hint),
                           NULL};
    assert_int_equal(plan_words(FOUR_NODES, words), 0);
    /* a model that doesn't fit whatever the pool */
    REFUSED(FOUR_NODES, "a smaller experiment.test.batch_size", "device=cpu",
            "experiment=quick_test", "experiment.vit_configs.dim=65536",
            "experiment.vit_configs.depth=200");
}

LAB_TEST(numbers_are_numbers) {
    REFUSED(FOUR_NODES, "isn't a number from 0 on", "experiment=quick_test",
            "experiment.hardware.gpu_ids=[a]");
    REFUSED(FOUR_NODES, "isn't a number from 0 on", "experiment=quick_test",
            "experiment.hardware.numa_nodes=[-1]");
    REFUSED(FOUR_NODES, "hardware.gpu_ids is empty", "experiment=quick_test",
            "experiment.hardware.gpu_ids=[]");
    REFUSED(FOUR_NODES, "1 to 16 numbers", "experiment=quick_test",
            "experiment.hardware.gpu_ids=[[]]");
    REFUSED(FOUR_NODES, "there is no NUMA node 9", "experiment=quick_test", "device=cpu:9");
}

/* --- keys --- */

LAB_TEST(unknown_keys_suggest_the_nearest) {
    REFUSED(FOUR_NODES, "'experiment.test.batchsize'; did you mean 'batch_size'?",
            "experiment=quick_test", "+experiment.test.batchsize=4");
    REFUSED(FOUR_NODES, "'experiment.repaet'; did you mean 'repeat'?", "experiment=quick_test",
            "+experiment.repaet=4");
    REFUSED(FOUR_NODES, "'experiment.hardware.gpu_id'; did you mean 'gpu_ids'?",
            "experiment=quick_test", "+experiment.hardware.gpu_id=4");
    REFUSED(FOUR_NODES, "'sede'; did you mean 'seed'?", "experiment=quick_test", "+sede=4");
    REFUSED(FOUR_NODES, "experiment.vit_configs", "experiment=quick_test",
            "+experiment.vit_configs[1].dept=4");
    assert_contains(plan_err.text, "did you mean 'depth'?");
    REFUSED(FOUR_NODES, "name it in experiment.axes", "experiment=quick_test",
            "+experiment.models=[{depth:1}]");
}

LAB_TEST(errors_of_a_file_have_its_line) {
    given_study("test:\n  batch_size: many\naxes: []\n");
    REFUSED(FOUR_NODES, "experiment/mine.yaml:4: batch_size=many: must be a whole number",
            "experiment=mine");
    given_study("vit_configs:\n  - {depth: 1}\n  - {depht: 1}\n");
    REFUSED(FOUR_NODES, "experiment/mine.yaml:5: unknown key 'depht'; did you mean 'depth'?",
            "experiment=mine");
    given_study("workload: vti\n");
    REFUSED(FOUR_NODES,
            "experiment/mine.yaml:3: experiment.workload: unknown workload 'vti' (did "
            "you mean 'vit'?)",
            "experiment=mine");
    given_study("axes: [hardware.gpu_idz]\n");
    REFUSED(FOUR_NODES, "did you mean 'hardware.gpu_ids'?", "experiment=mine");
}

LAB_TEST(a_word_says_it_once) {
    REFUSED(FOUR_NODES, "experiment.test.batch_size=x: must be a whole number",
            "experiment=quick_test", "experiment.test.batch_size=x");
    REFUSED(FOUR_NODES, "experiment.order=sorted: must be random or as_given",
            "experiment=quick_test", "experiment.order=sorted");
    assert_true(strstr(plan_err.text, "experiment.order") == plan_err.text);
    assert_null(strstr(plan_err.text + 5, "experiment.order"));
}

LAB_TEST(a_run_does_something) {
    REFUSED(FOUR_NODES, "experiment.test.num_samples=0: must be 1 to", "experiment=quick_test",
            "experiment.test.num_samples=0");
    REFUSED(FOUR_NODES,
            "+experiment.test.num_steps=0: must be at least 1, or -1 to count by samples",
            "experiment=quick_test", "+experiment.test.num_steps=0");
    given_study("test:\n  num_steps: 0\naxes: []\n");
    REFUSED(FOUR_NODES, "mine.yaml:4: experiment.test.num_steps=0: must be at least 1",
            "experiment=mine");
    given_study("axes: [{test.num_steps: [4, 0]}]\n");
    REFUSED(FOUR_NODES, "num_steps=0: must be at least 1", "experiment=mine");
}

LAB_TEST(lists_where_one_value_belongs_show_the_sweep) {
    REFUSED(FOUR_NODES, "sweep it (-m …batch_size=4,8) or name it in axes", "experiment=quick_test",
            "experiment.test.batch_size=[4,8]");
}

LAB_TEST(values_still_to_be_given_are_asked_for) {
    given_study("test:\n  batch_size: ???\naxes: []\n");
    REFUSED(FOUR_NODES, "has no value yet", "experiment=mine");
}

LAB_TEST(a_name_is_that_of_a_directory) {
    REFUSED(FOUR_NODES, "must be a directory's name", "experiment=quick_test",
            "experiment.name=../etc");
    REFUSED(FOUR_NODES, "experiment.name is missing", "experiment=quick_test", "~experiment.name");
}

LAB_TEST(rules_between_keys_hold) {
    REFUSED(FOUR_NODES, "quick_test: memory_size_mb=1: the pool must hold two batches",
            "experiment=quick_test", "experiment.test.memory_size_mb=1");
    REFUSED(FOUR_NODES, "tensor_shape has 2 numbers", "experiment=quick_test",
            "experiment.test.tensor_shape=[3,224]");
}

LAB_TEST(a_sweep_changes_what_runs_not_how) {
    REFUSED(FOUR_NODES, "experiment.name can't be swept", "-m", "device=cpu",
            "experiment=quick_test,scaling_study");
    REFUSED(FOUR_NODES, "repeat=2 does each run twice", "-m", "experiment=quick_test", "seed=1,2");
    REFUSED(FOUR_NODES, "several devices are one list", "-m", "experiment=quick_test",
            "device=cpu:0,cpu:1");
}

/* --- series --- */

LAB_TEST(series_are_checked) {
    static const struct {
        const char *series, *part;
    } cases[] = {
        {"depth", "must be a list"},
        {"[1]", "a series is a map"},
        {"[{where: {depth: 1}}]", "a series needs a name"},
        {"[{name: a}, {name: a}]", "two series are named a"},
        {"[{name: a, were: {}}]", "unknown key 'were'"},
        {"[{name: a, where: {vit_configs.size: 1}}]", "no element has the key"},
        {"[{name: a, where: {tset.batch_size: 1}}]", "there is no experiment.tset.batch_size"},
        {"[{name: a, axes: [{test.batch_size: [2]}], where: {test.batch_size: 99}}]",
         "no point meets"},
        {"[{name: a, axes: 3}]", "axes must be a list"},
        {"[{name: a, axes: [3]}]", "an axis is the name of a key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        given_study(lab_arena_printf(&arena, "vit_configs: [{depth: 1}, {depth: 2}]\nseries: %s\n",
                                     cases[i].series));
        REFUSED(FOUR_NODES, cases[i].part, "device=cpu", "experiment=mine");
    }
}

LAB_TEST(too_many_points_are_refused_at_once) {
    REFUSED(FOUR_NODES, "a plan has 100000 at most", "-m", "device=cpu", "experiment=numa_study",
            "experiment.test.sync_frequency=range(1,10001)",
            "experiment.test.batch_size=range(1,11)");
    REFUSED(FOUR_NODES, "a plan has 100000 runs at most", "device=cpu", "experiment=numa_study",
            "repeat=100000");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
