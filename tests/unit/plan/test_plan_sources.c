/*
 * Command lines of the published GPU-NUMA guide and plan that these studies come from, as they
 * stand there behind the script's name, and what they plan. (There the image sizes and batch sizes
 * of one line are crossed where pairs were meant: both forms are below.)
 */
#include "plan_fixture.h"

struct line {
    const char *words[8];
    int64_t points;
    int distinct; /* each has `repeat` runs: 5, in quick_test 1 */
};

static const struct line lines[] = {
    {{"experiment=numa_study"}, 48, 48},
    {{"experiment=quick_test"}, 3, 3},
    {{"experiment=scaling_study"}, 9, 8},
    {{"experiment=numa_study", "experiment.hardware.gpu_ids=[0,1]"}, 24, 24},
    {{"experiment=quick_test", "experiment.test.num_samples=500"}, 3, 3},
    {{"experiment=numa_study", "experiment.hardware.numa_nodes=[0,1,2]"}, 72, 72},
    {{"experiment=numa_study", "experiment.test.compile_model=true"}, 48, 48},
    {{"-m", "experiment=scaling_study", "experiment.test.compile_model=true,false"}, 18, 16},
    {{"-m", "experiment=numa_study", "experiment.test.compile_model=true,false",
      "experiment.hardware.numa_nodes=[0],[2]"},
     96,
     96},
    /* a key without an index means every model: 4 depths × 6 models × 2 nodes × 2 devices */
    {{"-m", "experiment.vit_configs.depth=2,4,6,8", "experiment.hardware.gpu_ids=[0],[1]"}, 96, 96},
    {{"experiment=numa_study", "experiment.test.batch_size=20", "experiment.test.timeout_s=900"},
     48,
     48},
    {{"experiment=quick_test", "experiment.hardware.gpu_ids=[0,1,2,3]"}, 12, 12},
    {{"-m", "experiment=numa_study", "experiment.test.compile_model=true,false",
      "experiment.hardware.numa_nodes=[0],[2]", "experiment.test.num_samples=500"},
     96,
     96},
    {{"experiment=numa_study", "experiment.resume=false"}, 48, 48},
    {{"experiment=numa_study", "experiment.hardware.gpu_ids=[0,3]",
      "experiment.hardware.numa_nodes=[0,2,3]"},
     36,
     36},
    {{"experiment=numa_study", "experiment.test.num_samples=2000"}, 48, 48},
    /* eight depths at dim 512, most of them in several jobs, and three more widths at depth 6 */
    {{"-m", "experiment=scaling_study", "experiment.vit_configs[0].depth=2,4,6,8,10,12,16,20"},
     73,
     11},
    {{"-m", "experiment=scaling_study",
      "experiment.vit_configs[0].dim=128,256,384,512,768,1024,1280"},
     63,
     14},
    {{"-m", "experiment=numa_study",
      "experiment.test.tensor_shape=[3,224,224],[3,384,384],[3,512,512],[3,768,768]",
      "experiment.test.batch_size=10,8,6,4"},
     768,
     768},
    {{"-m", "experiment=numa_study",
      "zip(experiment.test.tensor_shape=[[3,224,224],[3,384,384],[3,512,512],[3,768,768]],"
      "experiment.test.batch_size=[10,8,6,4])"},
     192,
     192},
    {{"-m", "experiment=numa_study", "experiment.test.batch_size=4,8,16,32",
      "experiment.test.memory_size_mb=512,1024"},
     384,
     384},
    {{"-m", "experiment=numa_study", "experiment.test.memory_size_mb=256,512,1024,2048"}, 192, 192},
    {{"-m", "experiment=numa_study", "experiment.test.compile_model=true,false"}, 96, 96},
    {{"-m", "experiment.test.compile_model=true,false",
      "experiment.vit_configs=[{name:small,patch_size:32,depth:2,heads:4,dim:256,mlp_dim:1024}]"},
     16,
     16},
    {{"-m", "experiment=numa_study", "experiment.test.batch_size=16,32,64",
      "experiment.max_workers=8"},
     144,
     144},
    {{"experiment=numa_study", "experiment.test.num_samples=5000",
      "experiment.test.timeout_s=1800"},
     48,
     48},
    /* lists of devices, each alone: 1 + 1 + 1 + 1 + 2 + 2 of them, four of which differ */
    {{"-m", "experiment=numa_study", "experiment.hardware.gpu_ids=[0],[1],[2],[3],[0,1],[0,2]"},
     96,
     48},
};

LAB_TEST(published_lines_plan_as_they_were_meant) {
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *words[10] = {"device=cpu"};
        for (int k = 0; lines[i].words[k]; k++)
            words[k + 1] = lines[i].words[k];
        print_message("%s %s %s\n", words[1], words[2] ? words[2] : "", words[3] ? words[3] : "");
        if (plan_words(FOUR_NODES, words) < 0)
            fail_msg("%s", plan_err.text);
        assert_int_equal(plan.point_count, lines[i].points);
        assert_int_equal(plan.repeat, strcmp(plan.option, "quick_test") == 0 ? 1 : 5);
        assert_int_equal(plan.run_count, lines[i].distinct * plan.repeat);
    }
}

LAB_TEST(a_study_of_ones_own_is_added) {
    given("experiment/custom.yaml", "defaults: [numa_study, _self_]\nname: custom\n");
    PLAN("+experiment=custom", "experiment.vit_configs.patch_size=16");
    assert_string_equal(plan.study, "custom");
    assert_string_equal(plan.option, "custom");
    assert_int_equal(plan.run_count, 48 * 5);
    for (int i = 0; i < plan.run_count; i++)
        assert_int_equal(lab_value_get(plan.runs[i].options, "patch_size")->integer, 16);
}

struct shipped {
    const char *study, *directory;
    int64_t points;
    int runs;
};

LAB_TEST(studies_that_ship_have_their_figures) {
    static const struct shipped all[] = {
        {"experiment=quick_test", "quick_test", 3, 3},
        {"experiment=numa_study", "numa_locality_study", 48, 48 * 5},
        {"experiment=scaling_study", "model_scaling_study", 9, 8 * 5},
        {"experiment=scaling_extended", "scaling_extended", 15, 14 * 5},
        {"experiment=compile_study", "compile_study", 28, 28 * 5},
        {"experiment=throughput_study", "throughput_study", 108, 108 * 5},
        {"experiment=stability", "stability", 48, 48 * 5},
        /* 2 models × 4 batches on 1, 2 and 4 devices, 50 times */
        {"experiment=train_scaling", "train_scaling", 24, 1200},
        /* 3 models × 2 nodes × (4 + 8 + 4), of which batch 10 at 224 pixels and 512 MB is in two */
        {"experiment=transfer_study", "transfer_study", 96, 90 * 5},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        print_message("%s\n", all[i].study);
        PLAN(all[i].study);
        assert_string_equal(plan.study, all[i].directory);
        assert_int_equal(plan.point_count, all[i].points);
        assert_int_equal(plan.run_count, all[i].runs);
    }
}

struct given_law { /* what somebody says who has measured */
    enum lab_plan_choice medium, large;
    int asked;
};

static enum lab_plan_choice given_choice(void *state, const struct lab_plan_question *question,
                                         struct lab_arena *for_words, const char **ret_why) {
    struct given_law *law = state;
    law->asked++;
    assert_string_equal(question->workload, "mlp");
    assert_true(question->devices > 1 && question->layers >= 4);
    *ret_why = lab_arena_strdup(for_words, "so it was measured");
    return question->parameters < 1e6 ? law->medium : law->large;
}

/* What was measured decides, and the published rule only where nothing was. */
LAB_TEST(measurements_decide_before_the_published_rule) {
    struct given_law law = {LAB_PLAN_SEVERAL, LAB_PLAN_ONE, 0};
    plan_strategy = (struct lab_plan_strategy){given_choice, &law};
    PLAN("experiment=train_scaling", "experiment.gpu_mode=auto", "experiment.runs=1");
    assert_int_equal(plan.run_count, 4 * 3 + 4); /* medium on 1, 2 and 4 devices, large on one */
    bool takes = false, leaves = false;
    for (int i = 0; plan.notes[i]; i++) {
        takes |= strstr(plan.notes[i], "takes 2 devices for mlp_medium_batch16: so it was") != NULL;
        leaves |= strstr(plan.notes[i], "leaves mlp_large_batch128 on one device: so it") != NULL;
    }
    assert_true(takes && leaves);
    law = (struct given_law){LAB_PLAN_UNKNOWN, LAB_PLAN_UNKNOWN, 0};
    PLAN("experiment=train_scaling", "experiment.gpu_mode=auto", "experiment.runs=1");
    assert_int_equal(plan.run_count, 4 + 4 + 2);
    law.asked = 0;
    PLAN("experiment=train_scaling", "experiment.gpu_mode=compare", "experiment.runs=1");
    assert_int_equal(law.asked, 0);
    plan_strategy = (struct lab_plan_strategy){NULL, NULL};
}

/* The line of the published study, as it was meant, and what each gpu_mode comes to on four
 * devices. */
LAB_TEST(training_is_planned_by_its_mode) {
#define LINE "experiment=train_scaling", "experiment.model=medium", "experiment.runs=20"
    PLAN(LINE, "experiment.gpu_mode=compare", "experiment.batch_sizes=[32,64,128]");
    assert_int_equal(plan.run_count, 3 * 3 * 20);
    const struct lab_plan_run *run = find_run("gpu0+1_numa0_mlp_medium_batch64_r0");
    assert_int_equal(run->iterations, 100);
    assert_int_equal(run->warmup_iterations, 10);
    assert_int_equal(run->num_samples, 100 * 64); /* that the steps come to */
    assert_int_equal(run->warmup_samples, 10 * 64);
    assert_int_equal(run->processes, LAB_PLAN_SHARED);
    PLAN(LINE, "experiment.gpu_mode=single");
    assert_int_equal(plan.run_count, 4 * 20);
    PLAN(LINE, "experiment.gpu_mode=multi", "experiment.batch_sizes=16");
    assert_int_equal(plan.run_count, 20);
    assert_int_equal(plan.runs[0].rank_count, 4);
    /* 54,403 parameters are too few for any batch; 2,021,379 enough from batch 128 on */
    PLAN("experiment=train_scaling", "experiment.gpu_mode=auto", "experiment.runs=1");
    assert_int_equal(plan.run_count, 4 + 4 + 2);
    assert_contains(plan.notes[0], "on one device, by a published rule: fewer than");
    /* gangs that are named stay as they are */
    PLAN(LINE, "experiment.hardware.gpu_ids=[0,[1,2]]", "experiment.batch_sizes=16");
    assert_int_equal(plan.run_count, 2 * 20);
#undef LINE
    REFUSED(ONE_NODE, "add: device=cpu:0/2", "device=cpu", "experiment=train_scaling");
    REFUSED(FOUR_NODES, "leave experiment.processes=per_rank out", "device=cpu",
            "experiment=train_scaling", "experiment.processes=per_rank");
    REFUSED(FOUR_NODES, "widths=50-0-3: each width must be 1 to", "device=cpu",
            "experiment=train_scaling", "experiment.widths=50-0-3");
    REFUSED(FOUR_NODES, "asks for device 7, but device=cpu has 4 here", "device=cpu",
            "experiment=train_scaling", "experiment.hardware.gpu_ids=[0,7]");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
