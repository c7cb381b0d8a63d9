/* Phases: who runs when, kept apart by what, and what is left out where it can't be had. */
#include "plan_fixture.h"

#include "run/plan_record.h"

static int count_phase(const char *phase) {
    int count = 0;
    for (int i = 0; i < plan.run_count; i++)
        count += strcmp(plan.runs[i].phase->name, phase) == 0;
    return count;
}

static bool is_noted(const char *part) {
    for (int i = 0; plan.notes && plan.notes[i]; i++)
        if (strstr(plan.notes[i], part))
            return true;
    return false;
}

LAB_TEST(each_kernel_is_done_alone_and_together) {
    PLAN("experiment=contention", "experiment.repeat=1");
    /* three kernels: four devices alone, all at once, all at once but apart, and the choices at the
     * end */
    assert_int_equal(plan.run_count, 3 * (4 + 1 + 1 + 4));
    assert_int_equal(count_phase("baseline"), 12);
    assert_int_equal(count_phase("concurrent"), 3);
    assert_int_equal(count_phase("isolated"), 3);
    assert_int_equal(count_phase("regret"), 12);
    const struct lab_plan_run *alone = find_run("gpu2_gemm1024x1024x1024_baseline");
    assert_int_equal(alone->rank_count, 1);
    assert_string_equal(alone->ranks[0].device, "cpu:2");
    assert_int_equal(alone->ranks[0].numa_node, -1); /* the system chooses */
    const struct lab_plan_run *together = find_run("gpu0+1+2+3_softmax8192x2048_concurrent");
    assert_int_equal(together->rank_count, 4);
    assert_int_equal(together->processes, LAB_PLAN_SHARED);
    assert_int_equal(together->phase->mitigations, 0);
    const struct lab_plan_run *apart = find_run("gpu0+1+2+3_numa0+1+2+3_softmax8192x2048_isolated");
    assert_int_equal(apart->processes, LAB_PLAN_PER_RANK);
    assert_int_equal(apart->ranks[3].numa_node, 3);
    assert_int_equal(apart->phase->mitigations,
                     LAB_PLAN_PROCESS | LAB_PLAN_AFFINITY | LAB_PLAN_NUMA);
}

LAB_TEST(kernels_and_blocks_share_a_phases_time) {
    PLAN("experiment=contention", "experiment.repeat=2", "experiment.duration=60s");
    const struct lab_plan_run *run = find_run("gpu0_gemm1024x1024x1024_baseline_r1");
    assert_true(run->tune_s == 5 && run->duration_s == 5); /* 60 s / 3 kernels / 2 blocks, halved */
    run = find_run("gpu0_gemm1024x1024x1024_regret_r1");
    assert_true(run->tune_s == 0 && run->duration_s == 10);
    /* a model has told all within a second of its time */
    PLAN("experiment=contention", "device=sim:rtx4070tis-2", "experiment.duration=60s");
    assert_true(find_run("gpu0_gemm1024x1024x1024_baseline_r1")->duration_s == 1);
}

LAB_TEST(what_needs_a_choice_comes_behind_it) {
    PLAN("experiment=contention", "experiment.repeat=3",
         "experiment.phases=[tuning_cache,regret,baseline,concurrent]");
    int block_runs = plan.run_count / 3;
    for (int i = 0; i < plan.run_count; i++) {
        const struct lab_plan_run *run = &plan.runs[i];
        assert_int_equal(run->repeat, i / block_runs);
        for (int k = i + 1; k < plan.run_count && plan.runs[k].repeat == run->repeat; k++) {
            assert_false(run->phase->regret && !plan.runs[k].phase->regret);
            assert_false(run->repeat == 0 && run->phase->mitigations & LAB_PLAN_TUNING_CACHE &&
                         strcmp(plan.runs[k].phase->name, "baseline") == 0);
        }
    }
    assert_true(find_run("gpu0+1+2+3_gemm1024x1024x1024_tuning_cache_r0")->tune_s == 0);
}

LAB_TEST(what_can_not_be_had_is_left_out_and_said) {
    PLAN("experiment=contention", "experiment.phases=[baseline,topology,mps,process]");
    assert_int_equal(count_phase("topology") + count_phase("mps"), 0);
    assert_true(count_phase("process") > 0);
    assert_true(
        is_noted("phase topology is left out, as no mitigation of it applies: no two of the "
                 "devices share a link"));
    assert_true(is_noted("phase mps is left out"));
    /* a simulated machine lives in one process, and has no CPUs */
    const char *const simulated[] = {"device=sim:rtx4070tis-2", "experiment=contention", NULL};
    assert_int_equal(plan_words(FOUR_NODES, simulated), 0);
    assert_int_equal(count_phase("isolated"), 0);
    assert_true(is_noted("phase isolated is left out, as no mitigation of it applies: simulated "
                         "devices share one process; "
                         "simulated devices have no CPUs to bind to; memory is on the local NUMA "
                         "node anyway"));
    assert_int_equal(count_phase("regret"), 0); /* nothing there can be tuned */
    assert_true(plan.runs[0].tune_s == 0);
    const char *const cached[] = {"device=sim:rtx4070tis-2", "experiment=contention",
                                  "experiment.phases=[baseline,tuning_cache]", NULL};
    assert_int_equal(plan_words(FOUR_NODES, cached), 0);
    assert_int_equal(count_phase("tuning_cache"), 0);
    assert_true(is_noted("phase tuning_cache is left out of gemm1024x1024x1024"));
}

LAB_TEST(devices_that_share_nothing_run_together) {
    const char *const words[] = {"device='cpu:0/2,cpu:1/2'",
                                 "experiment=contention",
                                 "experiment.repeat=1",
                                 "experiment.workload=[gemm]",
                                 "experiment.phases=[baseline,topology]",
                                 NULL};
    if (plan_words(FOUR_NODES, words) < 0)
        fail_msg("%s", plan_err.text);
    assert_string_equal(find_run("gpu0+2_gemm1024x1024x1024_topology")->ranks[1].device,
                        "cpu:1/2.0");
    assert_int_equal(find_run("gpu1+3_gemm1024x1024x1024_topology")->rank_count, 2);
}

LAB_TEST(a_neighbour_on_purpose_has_a_phase_of_its_own) {
    PLAN("experiment=contention", "experiment.phases=[baseline]", "experiment.disturb=membw");
    assert_int_equal(count_phase("disturbed"), count_phase("baseline"));
    const struct lab_plan_run *run = find_run("gpu1_softmax8192x2048_disturbed_r4");
    assert_string_equal(run->phase->disturb, "membw");
    struct lab_run record = lab_run_plan_record(&plan, (int)(run - plan.runs), &arena);
    assert_contains(record.test, "\"phase\": \"disturbed\"");
    assert_contains(record.test, "\"disturb\": \"membw\"");
}

LAB_TEST(a_phase_of_ones_own) {
    PLAN("experiment=contention",
         "experiment.phases=[baseline,{name:pinned,place:together,apart:[affinity,numa]}]");
    assert_int_equal(
        find_run("gpu0+1+2+3_numa0+1+2+3_gemm1024x1024x1024_pinned_r0")->phase->mitigations,
        LAB_PLAN_AFFINITY | LAB_PLAN_NUMA);
}

/* A phase more or less leaves the others what they are, so that a study can be widened. */
LAB_TEST(a_phase_is_part_of_what_a_run_is) {
    PLAN("experiment=contention", "experiment.phases=[baseline,baseline_again]");
    uint64_t base = find_run("gpu0_gemm1024x1024x1024_baseline_r0")->identity;
    assert_true(base != find_run("gpu0_gemm1024x1024x1024_baseline_again_r0")->identity);
    PLAN("experiment=contention");
    assert_true(base == find_run("gpu0_gemm1024x1024x1024_baseline_r0")->identity);
}

LAB_TEST(each_workload_has_its_own_keys) {
    PLAN("experiment=contention", "experiment.workload=[gemm,softmax]", "experiment.gemm.m=64",
         "experiment.hardware.gpu_ids=[1,2]");
    assert_non_null(find_run("gpu1_gemm64x1024x1024_baseline_r0"));
    assert_int_equal(find_run("gpu1+2_softmax8192x2048_concurrent_r0")->rank_count, 2);
    REFUSED(FOUR_NODES, "unknown key 'mm'; did you mean 'm'?", "device=cpu",
            "experiment=contention", "+experiment.gemm.mm=3");
    REFUSED(FOUR_NODES, "duplicate gemm", "device=cpu", "experiment=contention",
            "experiment.workload=[gemm,gemm_benchmark]");
}

LAB_TEST(what_makes_no_sense_is_refused) {
    REFUSED(ONE_NODE, "must be none, cpu, membw, pcie, sm or power", "device=cpu:0/2",
            "experiment=contention", "experiment.disturb=noise");
    REFUSED(ONE_NODE, "regret compares the choices of other phases with those of baseline",
            "device=cpu:0/2", "experiment=contention", "experiment.phases=[regret]");
    REFUSED(ONE_NODE, "pinned uses baseline's choices: add baseline", "device=cpu:0/2",
            "experiment=contention",
            "experiment.phases=[concurrent,{name:pinned,place:together,apart:[tuning_cache]}]");
    REFUSED(ONE_NODE, "on CPUs it must be cpu or membw", "device=cpu:0/2", "experiment=contention",
            "experiment.disturb=pcie");
    REFUSED(ONE_NODE, "on GPUs it must be pcie, membw, sm or power", "device=sim:rtx4070tis-2",
            "experiment=contention", "experiment.disturb=cpu");
    REFUSED(ONE_NODE, "needs a study with phases", "experiment=quick_test",
            "experiment.disturb=cpu");
    REFUSED(ONE_NODE, "phase disturbed needs a neighbour", "device=cpu:0/2",
            "experiment=contention", "experiment.phases=[baseline,disturbed]");
    REFUSED(ONE_NODE, "there is no phase 'basline': there are baseline", "device=cpu:0/2",
            "experiment=contention", "experiment.phases=[basline]");
    REFUSED(ONE_NODE, "duplicate baseline", "device=cpu:0/2", "experiment=contention",
            "experiment.phases=[baseline,baseline]");
    REFUSED(ONE_NODE, "must be alone or together", "device=cpu:0/2", "experiment=contention",
            "experiment.phases=[{name:x,place:apart}]");
    REFUSED(ONE_NODE, "apart: there are process, affinity", "device=cpu:0/2",
            "experiment=contention", "experiment.phases=[{name:x,place:together,apart:[magic]}]");
    REFUSED(ONE_NODE, "leave experiment.max_workers out", "device=cpu:0/2", "experiment=contention",
            "experiment.max_workers=2");
    REFUSED(ONE_NODE, "there is only one device, cpu:0", "device=cpu:0", "experiment=contention",
            "experiment.phases=[concurrent]");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
