/* What a plan is made of: axes, series, gangs, repeats, order, names, identities. */
#include "plan_fixture.h"

/* A study in a folder of the test's own, on the null workload unless told otherwise. */
static void given_study(const char *text) {
    given("experiment/mine.yaml",
          lab_arena_printf(&arena, "defaults: [_base, _self_]\nname: mine\n%s", text));
}

LAB_TEST(a_run_knows_all_about_itself) {
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.order=as_given");
    const struct lab_plan_run *run = find_run("gpu3_numa2_vit16x12x1024");
    assert_ptr_equal(run, &plan.runs[47]);
    assert_string_equal(run->workload, "vit");
    assert_string_equal(run->label, "vit16x12x1024");
    assert_int_equal(run->rank_count, 1);
    assert_int_equal(run->ranks[0].gpu_id, 3);
    assert_string_equal(run->ranks[0].device, "cpu:3");
    assert_int_equal(run->ranks[0].numa_node, 2);
    assert_int_equal(run->iterations, 100);
    assert_int_equal(run->warmup_iterations, 10);
    assert_true(run->timeout_s == 600);
    assert_int_equal(lab_value_get(run->options, "memory_size_mb")->integer, 512);
    assert_in_range(run->host_bytes, 500 << 20, 540 << 20);
    assert_true(run->device_bytes > 0);
    assert_null(run->series[0]);
    assert_int_equal(run->point_count, 1);
    assert_string_equal(plan.study, "numa_locality_study");
    assert_string_equal(plan.option, "numa_study");
    assert_int_equal(plan.devices.count, 4);
}

LAB_TEST(part_of_a_batch_is_an_iteration) {
    PLAN("experiment=quick_test", "experiment.test.num_samples=101",
         "experiment.test.warmup_samples=1");
    assert_int_equal(plan.runs[0].iterations, 21);
    assert_int_equal(plan.runs[0].warmup_iterations, 1);
}

LAB_TEST(the_last_axis_is_the_fastest) {
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.order=as_given",
         "experiment.hardware.gpu_ids=[0,1]");
    assert_string_equal(plan.runs[0].id, "gpu0_numa0_vit0x0x0");
    assert_string_equal(plan.runs[1].id, "gpu0_numa0_vit32x2x128");
    assert_string_equal(plan.runs[6].id, "gpu0_numa2_vit0x0x0");
    assert_string_equal(plan.runs[12].id, "gpu1_numa0_vit0x0x0");
}

LAB_TEST(all_means_every_device_and_every_node) {
    PLAN("experiment=quick_test", "experiment.hardware.gpu_ids=all",
         "experiment.hardware.numa_nodes=all", "experiment.order=as_given");
    assert_int_equal(plan.run_count, 4 * 4 * 3);
    assert_string_equal(plan.runs[0].id, "gpu0_numa0_vit0x0x0");
    assert_string_equal(plan.runs[47].ranks[0].device, "cpu:3");
    assert_int_equal(plan.runs[47].ranks[0].numa_node, 3);
}

LAB_TEST(local_means_each_devices_node) {
    PLAN("experiment=quick_test", "gpu_ids=[3,[1,2]]", "experiment.order=as_given");
    assert_int_equal(plan.run_count, 2 * 3);
    assert_string_equal(plan.runs[0].id, "gpu3_numa3_vit0x0x0");
    assert_int_equal(plan.runs[3].ranks[0].numa_node, 1);
    assert_int_equal(plan.runs[3].ranks[1].numa_node, 2);
    PLAN("experiment=quick_test", "gpu_ids=[3]", "numa_nodes=[local,0]");
    assert_int_equal(plan.run_count, 2 * 3);
    REFUSED(FOUR_NODES, "gpu_ids: local isn't a number", "experiment=quick_test", "gpu_ids=local");
}

LAB_TEST(keys_of_one_entry_move_together) {
    given_study("workload: vit\n"
                "axes:\n"
                "  - {test.batch_size: [4, 8], test.tensor_shape: [[3, 32, 32], [3, 64, 64]]}\n"
                "  - {depth: [1, 2, 3]}\n");
    PLAN("experiment=mine", "experiment.order=as_given");
    assert_int_equal(plan.run_count, 6);
    const struct lab_value *options = plan.runs[3].options;
    assert_int_equal(lab_value_get(options, "batch_size")->integer, 8);
    assert_int_equal(lab_value_get(options, "tensor_shape")->items[2]->integer, 64);
    assert_int_equal(lab_value_get(options, "depth")->integer, 1);

    given_study("axes: [{test.num_samples: [4, 8], test.timeout_s: [1, 2, 3]}]\n");
    REFUSED(FOUR_NODES, "the one has 2 values, the other 3", "experiment=mine");
}

LAB_TEST(lists_in_a_map_are_an_axis_each) {
    given_study("workload: vit\nmodel: {depth: [1, 2], dim: [64, 128, 256], heads: 2}\n"
                "axes: [model]\n");
    PLAN("experiment=mine", "experiment.order=as_given");
    assert_int_equal(plan.run_count, 6);
    assert_string_equal(plan.runs[1].id, "gpu0_numa0_vit32x1x128");
    assert_int_equal(lab_value_get(plan.runs[5].options, "heads")->integer, 2);
}

LAB_TEST(a_shape_is_one_value_and_shapes_are_an_axis) {
    given_study("workload: vit\ntest: {tensor_shape: [3, 32, 32]}\naxes: [test.tensor_shape]\n");
    PLAN("experiment=mine");
    assert_int_equal(plan.run_count, 1);
    PLAN("experiment=mine", "experiment.test.tensor_shape=[[3,32,32],[3,64,64]]");
    assert_int_equal(plan.run_count, 2);
    find_run("gpu0_numa0_vit32x6x512_tensor_shape3x64x64");
}

/* --- series --- */

LAB_TEST(what_two_series_share_runs_once) {
    PLAN("experiment=scaling_study", "experiment.repeat=1");
    const struct lab_plan_run *both = find_run("gpu0_numa0_vit32x6x512");
    assert_int_equal(both->point_count, 2);
    assert_string_equal(both->series[0], "depth");
    assert_string_equal(both->series[1], "dim");
    assert_null(both->series[2]);
    assert_string_equal(find_run("gpu0_numa0_vit32x6x256")->series[0], "dim");
}

LAB_TEST(a_point_of_no_series_runs_all_the_same) {
    PLAN("experiment=scaling_study", "experiment.repeat=1", "experiment.vit_configs[0].dim=384");
    assert_int_equal(plan.run_count, 8);
    assert_null(find_run("gpu0_numa0_vit32x2x384")->series[0]);
}

LAB_TEST(axes_of_a_series_are_its_own) {
    given_study("workload: vit\n"
                "test: {batch_size: [4, 8]}\n"
                "axes: [test.batch_size]\n"
                "series:\n"
                "  - {name: deep, axes: [{depth: [1, 2]}]}\n"
                "  - {name: wide, axes: [{test.batch_size: [16]}, {dim: [64, 128]}],\n"
                "     where: {dim: [64, 256]}}\n");
    PLAN("experiment=mine");
    assert_int_equal(plan.run_count, 5); /* 2 × 2, and one of the two widths at batch 16 */
    assert_string_equal(find_run("gpu0_numa0_vit32x6x64")->series[0], "wide");
    assert_int_equal(
        lab_value_get(find_run("gpu0_numa0_vit32x6x64")->options, "batch_size")->integer, 16);
}

LAB_TEST(what_a_series_crosses_has_no_point_for_itself) {
    given_study("workload: vit\n"
                "vit_configs: [{depth: 1}, {depth: 2}, {depth: 3}]\n"
                "axes: [vit_configs]\n"
                "series: [{name: two, where: {vit_configs.depth: 2},\n"
                "          axes: [{test.batch_size: [4, 8]}]}]\n");
    PLAN("experiment=mine");
    assert_int_equal(plan.run_count, 4); /* depth 2 in two batch sizes, and 1 and 3 as they are */
    find_run("gpu0_numa0_vit32x2x512_batch_size8");
    assert_null(find_run("gpu0_numa0_vit32x3x512")->series[0]);
}

/* --- ranks --- */

LAB_TEST(an_inner_list_is_a_gang) {
    PLAN("experiment=quick_test", "experiment.hardware.gpu_ids=[0,[1,3]]",
         "experiment.hardware.numa_nodes=[2]");
    assert_int_equal(plan.run_count, 6);
    const struct lab_plan_run *gang = find_run("gpu1+3_numa2_vit0x0x0");
    assert_int_equal(gang->rank_count, 2);
    assert_string_equal(gang->ranks[1].device, "cpu:3");
    assert_int_equal(gang->ranks[1].numa_node, 2);
    assert_int_equal(plan.processes, LAB_PLAN_PER_RANK);

    PLAN("experiment=quick_test", "experiment.hardware.gpu_ids=[[1,3]]",
         "experiment.hardware.numa_nodes=[[1,3]]");
    assert_int_equal(find_run("gpu1+3_numa1+3_vit0x0x0")->ranks[1].numa_node, 3);
    REFUSED(FOUR_NODES, "2 nodes, but 1 device", "device=cpu", "experiment=quick_test",
            "experiment.hardware.numa_nodes=[[1,3]]");
    REFUSED(FOUR_NODES, "duplicate device 1", "device=cpu", "experiment=quick_test",
            "experiment.hardware.gpu_ids=[[1,1]]");
}

LAB_TEST(a_gang_of_slices_is_one_process) {
    PLAN("experiment=quick_test", "device=cpu:0/2", "experiment.hardware.gpu_ids=[[0,1]]");
    assert_int_equal(plan.processes, LAB_PLAN_SHARED);
    assert_string_equal(plan.runs[0].ranks[1].device, "cpu:0/2.1");
    PLAN("experiment=quick_test", "device=cpu:0/2", "experiment.hardware.gpu_ids=[[0,1]]",
         "experiment.processes=per_rank");
    assert_int_equal(plan.processes, LAB_PLAN_PER_RANK);
}

/* --- order --- */

static void ids_in_order(const char **ids, int count) {
    for (int i = 0; i < count; i++)
        ids[i] = plan.runs[i].id;
}

LAB_TEST(the_seed_is_the_order) {
    const char *first[48], *again[48], *other[48];
    PLAN("experiment=numa_study", "experiment.repeat=1");
    ids_in_order(first, 48);
    PLAN("experiment=numa_study", "experiment.repeat=1");
    ids_in_order(again, 48);
    PLAN("experiment=numa_study", "experiment.repeat=1", "seed=43");
    ids_in_order(other, 48);
    int moved = 0;
    for (int i = 0; i < 48; i++) {
        assert_string_equal(first[i], again[i]);
        moved += strcmp(first[i], other[i]) != 0;
    }
    assert_true(moved > 24);
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.order=as_given", "seed=43");
    assert_string_equal(plan.runs[0].id, "gpu0_numa0_vit0x0x0");
}

LAB_TEST(each_block_has_every_run_once) {
    PLAN("experiment=numa_study", "repeat=3");
    assert_int_equal(plan.run_count, 144);
    assert_int_equal(plan.point_count, 48);
    int moved = 0;
    for (int block = 0; block < 3; block++) {
        bool seen[4][4][6] = {0};
        static const char *const labels[] = {"vit0x0x0",    "vit32x2x128", "vit32x4x256",
                                             "vit32x6x512", "vit16x8x768", "vit16x12x1024"};
        for (int i = 0; i < 48; i++) {
            const struct lab_plan_run *run = &plan.runs[48 * block + i];
            assert_int_equal(run->repeat, block);
            int label = 0;
            while (strcmp(labels[label], run->label) != 0)
                label++;
            bool *mark = &seen[run->ranks[0].gpu_id][run->ranks[0].numa_node][label];
            assert_false(*mark);
            *mark = true;
            moved += block && strcmp(run->label, plan.runs[i].label) != 0;
        }
    }
    assert_true(moved > 24);
    find_run("gpu0_numa0_vit0x0x0_r2");
}

/* Up to 0.1.0 repeat=1 was the default: a study of then is known by that plan. */
LAB_TEST(the_first_block_is_the_plan_without_repeats) {
    PLAN("experiment=numa_study", "experiment.repeat=1");
    uint64_t once = plan.identity, first = find_run("gpu0_numa0_vit0x0x0")->identity;
    assert_true(plan.once_identity == once);
    PLAN("experiment=numa_study");
    assert_int_equal(plan.repeat, 5);
    assert_true(plan.identity != once);
    assert_true(plan.once_identity == once);
    assert_true(find_run("gpu0_numa0_vit0x0x0_r0")->identity == first);
}

/* --- names --- */

LAB_TEST(names_tell_apart_what_varies) {
    PLAN("-m", "experiment=quick_test", "experiment.test.compile_model=true,false",
         "experiment.test.batch_size=5,10");
    find_run("gpu0_numa0_vit32x2x256_batch_size5_compiled");
    find_run("gpu0_numa0_vit0x0x0_batch_size10");
    PLAN("-m", "experiment=quick_test", "experiment.test.num_samples=100,200");
    find_run("gpu0_numa0_vit0x0x0_num_samples200");
    /* heads differ from model to model, but no two models of one name differ in them */
    PLAN("experiment=quick_test");
    find_run("gpu0_numa0_vit32x2x256");
}

LAB_TEST(names_are_unique_and_fit_for_files) {
    PLAN("-m", "experiment=numa_study", "experiment.test.batch_size=4,8",
         "experiment.test.memory_size_mb=512,1024", "experiment.vit_configs.mlp_dim=128,256",
         "experiment.test.fill=random,sequential,zeros", "experiment.test.sync_frequency=5,10",
         "experiment.test.num_samples=100,1000", "experiment.test.warmup_samples=10,20",
         "experiment.test.d2h=input,output", "repeat=2");
    for (int i = 0; i < plan.run_count; i++) {
        assert_true(strlen(plan.runs[i].id) <= LAB_PLAN_ID_MAX);
        assert_null(strchr(plan.runs[i].id, '/'));
    }
    struct lab_value *ids = lab_value_map(&arena);
    for (int i = 0; i < plan.run_count; i++) {
        assert_null(lab_value_get(ids, plan.runs[i].id));
        lab_value_set_int(&arena, ids, plan.runs[i].id, i);
    }
}

/* --- identity --- */

LAB_TEST(what_a_result_does_not_depend_on_is_not_in_its_identity) {
    PLAN("experiment=quick_test");
    uint64_t whole = plan.identity, run = find_run("gpu0_numa0_vit32x4x512")->identity;
    PLAN("experiment=quick_test", "seed=7", "output_dir=elsewhere", "experiment.order=as_given",
         "experiment.test.timeout_s=9", "experiment.max_retries=3", "experiment.resume=false");
    assert_true(plan.identity == whole);
    assert_true(find_run("gpu0_numa0_vit32x4x512")->identity == run);
}

LAB_TEST(what_it_depends_on_is) {
    static const char *const changes[] = {
        "experiment.test.num_samples=200",
        "experiment.test.warmup_samples=5",
        "experiment.test.dtype=bf16",
        "experiment.test.fill=zeros",
        "experiment.hardware.numa_nodes=[1]",
        "experiment.vit_configs.heads=2",
        "experiment.test.tensor_shape=[1,64,64]",
        "device=cpu:1",
    };
    PLAN("experiment=quick_test");
    uint64_t whole = plan.identity, run = find_run("gpu0_numa0_vit32x4x512")->identity;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        PLAN("experiment=quick_test", changes[i]);
        assert_true(plan.identity != whole);
        for (int k = 0; k < plan.run_count; k++)
            assert_true(plan.runs[k].identity != run);
    }
    PLAN("experiment=quick_test", "repeat=2");
    assert_true(find_run("gpu0_numa0_vit32x4x512_r0")->identity == run);
    assert_true(find_run("gpu0_numa0_vit32x4x512_r1")->identity != run);
}

LAB_TEST(two_ways_to_write_the_same_work_are_one_run) {
    PLAN("-m", "experiment=numa_study", "experiment.repeat=1",
         "experiment.vit_configs[1].mlp_dim=0,512");
    assert_int_equal(plan.run_count, 48);
    PLAN("-m", "experiment=numa_study", "experiment.repeat=1",
         "experiment.vit_configs[0].dim=64,128");
    assert_int_equal(plan.run_count, 48);
    assert_int_equal(plan.point_count, 96);
    /* nor do 995 and 1000 samples differ in batches of ten */
    PLAN("-m", "experiment=numa_study", "experiment.repeat=1",
         "experiment.test.num_samples=995,1000", "experiment.test.timeout_s=100,200");
    assert_int_equal(plan.run_count, 48);
    assert_true(plan.runs[0].timeout_s == 200);
}

static void assert_note(const char *expected) {
    for (int i = 0; plan.notes && plan.notes[i]; i++)
        if (strcmp(plan.notes[i], expected) == 0)
            return;
    fail_msg("no note '%s' but '%s'", expected,
             plan.notes && plan.notes[0] ? plan.notes[0] : "none");
}

LAB_TEST(what_has_no_effect_is_noted) {
    PLAN("-m", "experiment=numa_study", "experiment.hardware.gpu_ids=[0],[1],[2],[3],[0,1],[0,2]");
    assert_int_equal(plan.point_count, 96);
    assert_int_equal(plan.run_count, 48 * plan.repeat);
    assert_note("48 points are the same run as another point: experiment.hardware.gpu_ids has no "
                "effect on them; [0,1] is each device alone, [[0,1]] both at once");
    PLAN("-m", "experiment=numa_study", "experiment.test.timeout_s=100,200");
    assert_note("48 points are the same run as another point: experiment.test.timeout_s has no "
                "effect on them");
    given_study("workload: vit\nvit_configs: [{depth: 0, dim: 64}, {depth: 0, dim: 128}]\n"
                "axes: [vit_configs]\n");
    PLAN("experiment=mine");
    assert_note("1 point is the same run as another point: vit_configs has no effect on it");
    /* what two series share is meant so, and gangs are no other way to write the same */
    PLAN("experiment=scaling_study");
    assert_true(!plan.notes || !plan.notes[0]);
    PLAN("experiment=throughput_study");
    assert_true(!plan.notes || !plan.notes[0]);
}

LAB_TEST(canonical_forms_are_settled_and_valid) {
    for (int i = 0; lab_workloads[i]; i++) {
        const struct lab_workload *workload = lab_workloads[i];
        if (!workload->canonical)
            continue;
        void *config = lab_workload_config(workload, &arena);
        workload->canonical(config);
        const char *once = text_of(lab_options_to_map(workload->options, config, &arena));
        workload->canonical(config);
        const char *twice = text_of(lab_options_to_map(workload->options, config, &arena));
        assert_string_equal(once, twice);
        struct lab_err err = LAB_ERR_INIT;
        if (workload->check && workload->check(config, &err) < 0)
            fail_msg("%s: %s", workload->name, err.text);
    }
}

/* A batch of a GPT-2 training has more tokens than the default has samples. */
LAB_TEST(a_run_has_enough_iterations_unless_it_was_told_how_many) {
    PLAN("experiment=test_matrix", "experiment.workload=gpt2", "+experiment.dtype=fp32");
    assert_int_equal(plan.runs[0].iterations, 20);
    assert_int_equal(plan.runs[0].num_samples, 20 * 4 * 1024);
    PLAN("experiment=test_matrix", "experiment.workload=gpt2", "+experiment.dtype=fp32",
         "+experiment.test.num_steps=3");
    assert_int_equal(plan.runs[0].iterations, 3);
    PLAN("experiment=test_matrix", "experiment.workload=gpt2", "+experiment.dtype=fp32",
         "+experiment.test.num_samples=1");
    assert_int_equal(plan.runs[0].iterations, 1);
    PLAN("experiment=test_matrix",
         "experiment.command=true"); /* a program of one's own runs once */
    assert_int_equal(plan.runs[0].iterations, 1);
}

LAB_TEST(an_identity_stays_what_it_was) {
    PLAN("experiment=quick_test");
    /* what studies on disk were written with; it may change only with the workload's version */
    assert_int_equal(find_run("gpu0_numa0_vit32x4x512")->identity, 0xbac0ddcd48516466ULL);
    /* a key that came later counts only where it isn't at its default */
    PLAN("experiment=quick_test", "+experiment.forward=false");
    assert_int_not_equal(find_run("gpu0_numa0_vit32x4x512_copies")->identity,
                         0xbac0ddcd48516466ULL);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
