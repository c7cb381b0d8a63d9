/* spread: each point once, on whichever of gpu_ids is free; crossing stays the default. */
#include "plan_fixture.h"

#include "run/plan_record.h"

#define MATRIX                                                                                     \
    "experiment=test_matrix", "experiment.command='train {lr} {max_iters}'",                       \
        "~experiment.matrix.optimizer", "+experiment.matrix.lr=[0.1,0.01,0.001]"

LAB_TEST(each_point_runs_once_where_there_is_room) {
    PLAN(MATRIX, "gpu_ids=all", "spread=true");
    assert_int_equal(plan.run_count, 3);
    assert_int_equal(plan.point_count, 3);
    const struct lab_plan_run *run = find_run("lr0.1_max_iters5000");
    assert_int_equal(run->slot_count, 4);
    assert_int_equal(run->rank_count, 1);
    for (int i = 0; i < 4; i++) { /* each device with its own node */
        assert_int_equal(run->slots[i].gpu_id, i);
        assert_int_equal(run->slots[i].numa_node, i);
    }
    assert_int_equal(plan.max_workers, 4);
    /* a file says that it isn't placed yet, and that its place will be no setting */
    struct lab_run record = lab_run_plan_record(&plan, 0, &arena);
    assert_int_equal(record.ranks[0].gpu_id, -1);
    assert_string_equal(record.ranks[0].device, "any");
    assert_true(record.spread);
    /* crossed with the devices it is another study */
    PLAN(MATRIX, "gpu_ids=all");
    assert_int_equal(plan.run_count, 12);
    assert_int_equal(plan.max_workers, 1);
    assert_int_equal(find_run("gpu2_numa0_lr0.1_max_iters5000")->slot_count, 0);
    record = lab_run_plan_record(&plan, 0, &arena);
    assert_false(record.spread);
}

LAB_TEST(the_identity_has_no_device) {
    static const struct {
        const char *words[3];
        bool same;
    } cases[] = {
        {{"gpu_ids=[3]"}, true},
        {{"gpu_ids=2"}, true},
        {{"gpu_ids=[0,1]", "experiment.max_workers=1"}, true},
        {{"gpu_ids=all", "numa_nodes=all"}, true}, /* not crossed: each device's own */
        {{"gpu_ids=all", "numa_nodes=[1]"}, false},
        {{"gpu_ids=all", "device=cpu:0/2"}, false}, /* a slice is another kind of device */
        {{"gpu_ids=[[0,1],[2,3]]"}, false},
    };
    PLAN(MATRIX, "gpu_ids=all", "spread=true");
    uint64_t first = plan.identity;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *words = cases[i].words;
        const char *second = words[1] ? words[1] : "seed=42";
        PLAN(MATRIX, "spread=true", words[0], second);
        if ((plan.identity == first) != cases[i].same)
            fail_msg("%s %s", words[0], second);
    }
}

LAB_TEST(the_node_is_the_one_that_is_named) {
    PLAN(MATRIX, "gpu_ids=[1,3]", "spread=true", "numa_nodes=[2]");
    assert_int_equal(plan.runs[0].slots[0].numa_node, 2);
    assert_int_equal(plan.runs[0].slots[1].numa_node, 2);
    PLAN(MATRIX, "gpu_ids=[1,3]", "spread=true", "numa_nodes=[0,2]");
    assert_int_equal(plan.runs[0].slots[1].numa_node, 3);
    assert_non_null(strstr(plan.notes[0], "aren't crossed"));
}

LAB_TEST(gangs_are_spread_too) {
    PLAN(MATRIX, "gpu_ids=[[0,1],[2,3]]", "spread=true", "experiment.runs_per_device=2");
    const struct lab_plan_run *run = find_run("lr0.01_max_iters5000");
    assert_int_equal(run->slot_count, 2);
    assert_int_equal(run->rank_count, 2);
    assert_int_equal(run->slots[3].gpu_id, 3);
    assert_int_equal(plan.max_workers, 4);
    PLAN(MATRIX, "gpu_ids=all", "spread=true", "experiment.max_workers=3");
    assert_int_equal(plan.max_workers, 3);
    /* simulated devices take turns, as without it */
    PLAN("experiment=quick_test", "device=sim:g5.12xlarge", "gpu_ids=all", "spread=true");
    assert_int_equal(plan.max_workers, 1);
    assert_int_equal(plan.runs[0].slot_count, 4);
}

LAB_TEST(what_is_refused) {
    REFUSED(FOUR_NODES, "each gang has as many devices: one has 1, another 2", "device=cpu", MATRIX,
            "gpu_ids=[0,[1,2]]", "spread=true");
    REFUSED(FOUR_NODES, "experiment.spread and experiment.gpu_mode both say", "device=cpu", MATRIX,
            "gpu_ids=all", "spread=true", "+experiment.gpu_mode=multi");
    REFUSED(FOUR_NODES, "experiment.spread and experiment.phases both say", "device=cpu",
            "experiment=contention", "spread=true");
    REFUSED(FOUR_NODES, "asks for device 7", "device=cpu", MATRIX, "gpu_ids=[0,7]", "spread=true");
    REFUSED(FOUR_NODES, "aren't of one kind", "device=[cpu:0,'cpu:1/2']", "experiment=quick_test",
            "gpu_ids=all", "spread=true");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
