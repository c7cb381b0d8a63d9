/* Matrices over a program of the user's: points, names, identities, and what is refused. */
#include "plan_fixture.h"

#define TRAIN "experiment.command='train --opt {optimizer} --iters {max_iters}'"

LAB_TEST(a_matrix_is_crossed_with_the_hardware) {
    PLAN("experiment=test_matrix", TRAIN, "experiment.order=as_given",
         "experiment.hardware.gpu_ids=[0,1]");
    assert_int_equal(plan.point_count, 6);
    assert_int_equal(plan.run_count, 6);
    assert_string_equal(plan.runs[0].id, "gpu0_numa0_max_iters5000_optimizersgd");
    assert_string_equal(plan.runs[5].id, "gpu1_numa0_max_iters5000_optimizeradamw");
    const struct lab_plan_run *run = &plan.runs[1];
    assert_string_equal(run->workload, "command");
    assert_string_equal(run->label, "max_iters5000_optimizeradam");
    const struct lab_value *matrix = lab_value_get(run->options, "matrix");
    assert_string_equal(lab_value_get(matrix, "optimizer")->string, "adam");
    assert_int_equal(lab_value_get(matrix, "max_iters")->integer, 5000);
    assert_int_equal(lab_value_get(lab_value_get(run->options, "metrics"), "patterns")->count, 0);
    assert_true(run->timeout_s == 3600);
    assert_int_equal(run->device_bytes + run->host_bytes, 0);
}

LAB_TEST(a_program_runs_once_unless_told_otherwise) {
    PLAN("experiment=test_matrix", TRAIN);
    assert_int_equal(plan.runs[0].iterations, 1);
    assert_int_equal(plan.runs[0].warmup_iterations, 0);
    PLAN("experiment=test_matrix", TRAIN, "+experiment.test.num_samples=5",
         "+experiment.test.warmup_samples=2");
    assert_int_equal(plan.runs[0].iterations, 5);
    assert_int_equal(plan.runs[0].warmup_iterations, 2);
}

LAB_TEST(presets_of_data_parallel_training) {
    static const struct {
        const char *preset, *machine;
        int gpus, batch;
    } cases[] = {{"1gpu", "g5.12xlarge", 1, 64},
                 {"2gpus", "rtx4070tis-2", 2, 128},
                 {"4gpus", "g5.12xlarge", 4, 256},
                 {"8gpus", "dgx-h100", 8, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *preset = lab_arena_printf(&arena, "experiment/ddp=%s", cases[i].preset);
        const char *device = lab_arena_printf(&arena, "device=sim:%s", cases[i].machine);
        PLAN(
            "experiment=test_matrix", preset, device,
            "experiment.command='run {ddp_backend} {find_unused_parameters} {batch_size} {tracker} "
            "{optimizer}'");
        assert_int_equal(plan.run_count, 3);
        const struct lab_plan_run *run = &plan.runs[0];
        const struct lab_value *matrix = lab_value_get(run->options, "matrix");
        assert_int_equal(run->rank_count, cases[i].gpus);
        assert_int_equal(run->processes, cases[i].gpus > 1 ? LAB_PLAN_LAUNCHER : LAB_PLAN_PER_RANK);
        for (int k = 0; k < run->rank_count; k++) /* each GPU with its own node */
            assert_int_equal(run->ranks[k].numa_node, plan.devices.items[k].node);
        assert_string_equal(lab_value_get(matrix, "ddp_backend")->string, "nccl");
        assert_false(lab_value_get(matrix, "find_unused_parameters")->boolean);
        assert_int_equal(lab_value_get(matrix, "batch_size")->integer, cases[i].batch);
        assert_string_equal(lab_value_get(matrix, "tracker")->string, "none");
        /* planned, so that it can be looked at anywhere; run.c refuses to run it */
        assert_non_null(strstr(plan.notes[0], "your own program can't run on it"));
        assert_null(plan.notes[1]);
    }
    PLAN("experiment=test_matrix", "experiment/ddp=4gpus", "device=sim:g5.12xlarge", TRAIN);
    assert_string_equal(plan.notes[1], "of the matrix, neither command nor env uses: ddp_backend, "
                                       "find_unused_parameters, batch_size, tracker");
    REFUSED(FOUR_NODES,
            "asks for devices 4, 5, 6 and 7, but device=sim:g5.12xlarge has 4 (0 is "
            "sim:g5.12xlarge:0, 1 is sim:g5.12xlarge:1, 2 is sim:g5.12xlarge:2, 3 is "
            "sim:g5.12xlarge:3); to run it here, add: experiment.hardware.gpu_ids=[[0,1,2,3]] (or "
            "choose experiment/ddp=4gpus)",
            "experiment=test_matrix", "experiment/ddp=8gpus", "device=sim:g5.12xlarge", TRAIN);
    REFUSED(FOUR_NODES, "objective=loss:down: must be a metric's name, or that with :min or :lower",
            "experiment=test_matrix", TRAIN, "experiment.objective=loss:down");
}

LAB_TEST(a_matrix_over_a_workload_of_gpulabs) {
    /* its keys become options; what a preset for programs has besides is noted */
    PLAN("experiment=test_matrix", "experiment.workload=mlp", "experiment.order=as_given",
         "+experiment.matrix.batch_size=[32,64]", "+experiment.matrix.lr=0.1");
    assert_int_equal(plan.run_count, 2);
    assert_string_equal(plan.runs[1].workload, "mlp");
    assert_int_equal(lab_value_get(plan.runs[1].options, "batch_size")->integer, 64);
    assert_true(lab_value_get(plan.runs[1].options, "lr")->number == 0.1);
    assert_true(plan.runs[0].iterations > 1);
    assert_string_equal(plan.notes[0],
                        "of the matrix, mlp has no option for: optimizer, max_iters");
    /* as is its launcher */
    PLAN("experiment=test_matrix", "experiment/ddp=4gpus", "experiment.workload=mlp",
         "device=sim:g5.12xlarge");
    assert_int_equal(plan.run_count, 1);
    assert_int_equal(plan.runs[0].rank_count, 4);
    assert_int_not_equal(plan.runs[0].processes, LAB_PLAN_LAUNCHER);
    assert_int_equal(lab_value_get(plan.runs[0].options, "batch_size")->integer, 256);
    assert_string_equal(plan.notes[0],
                        "of the matrix, mlp has no option for: optimizer, max_iters, ddp_backend, "
                        "find_unused_parameters, tracker");
    assert_string_equal(plan.notes[1], "processes=launcher has no effect: mlp is not a program");
    REFUSED(FOUR_NODES, "mlp is a workload of gpulab's: leave it out", "experiment=test_matrix",
            "experiment.workload=mlp", "device=cpu", "experiment.processes=launcher");
    PLAN("experiment=test_matrix", "experiment.workload=gemm",
         "+experiment.matrix.shape=[{m: 64, n: 64, k: 64}, {m: 128, n: 64, k: 64}]");
    assert_int_equal(plan.run_count, 2);
    /* what is typed is meant */
    REFUSED(FOUR_NODES, "unknown key 'batch_sise'; did you mean 'batch_size'?", "device=cpu",
            "experiment=test_matrix", "experiment.workload=mlp",
            "+experiment.matrix.batch_sise=[32,64]");
    REFUSED(FOUR_NODES, "experiment.workload=mlp is gpulab's own: leave one out", "device=cpu",
            "experiment=test_matrix", "experiment.workload=mlp", "experiment.command=train");
}

/* What the study's file sets for its own workload is left out and noted; typed, it is meant. */
LAB_TEST(a_study_with_another_workload) {
    PLAN("experiment=train_scaling", "experiment.workload=gpt2", "device=sim:g5.12xlarge",
         "experiment.batch_sizes=[4,8]", "experiment.runs=1");
    assert_int_equal(plan.run_count, 6); /* on 1, 2 and 4 devices */
    assert_string_equal(plan.runs[0].workload, "gpt2");
    assert_string_equal(plan.notes[0], "model has no effect: gpt2 has no such option");
    REFUSED(FOUR_NODES, "unknown key 'model'; there are depth", "experiment=train_scaling",
            "experiment.workload=gpt2", "device=cpu", "experiment.model=[medium]");
}

LAB_TEST(presets_and_words_change_the_matrix) {
    PLAN("experiment=test_matrix", TRAIN, "experiment/matrix=quick");
    find_run("gpu0_numa0_max_iters500_optimizersgd");
    PLAN("experiment=test_matrix", TRAIN, "experiment.matrix.max_iters=7",
         "experiment.matrix.optimizer=[lion]");
    assert_int_equal(plan.run_count, 1);
    find_run("gpu0_numa0_max_iters7_optimizerlion");
}

/* The preset's optimizers make no other run where the command doesn't take them. */
LAB_TEST(what_nothing_uses_makes_no_other_run) {
    PLAN("experiment=test_matrix", "experiment.command='train --lr {lr} --iters {max_iters}'",
         "+experiment.matrix.lr=[0.1,0.01]", "experiment.matrix.max_iters=500");
    assert_int_equal(plan.point_count, 6);
    assert_int_equal(plan.run_count, 2);
    assert_int_equal(find_run("gpu0_numa0_lr0.1_max_iters500")->point_count, 3);
    find_run("gpu0_numa0_lr0.01_max_iters500");
    assert_null(lab_value_get(lab_value_get(plan.runs[0].options, "matrix"), "optimizer"));
}

LAB_TEST(a_variable_uses_it_as_well) {
    PLAN("experiment=test_matrix", "experiment.command=train", "+experiment.env.OPT='{optimizer}'");
    assert_int_equal(plan.run_count, 3);
    find_run("gpu0_numa0_optimizeradamw");
}

LAB_TEST(variables_can_be_an_axis) {
    PLAN("experiment=test_matrix", "experiment.command=train",
         "experiment.axes=[{env.THREADS: [1, 2]}]");
    assert_int_equal(plan.run_count, 2);
    const struct lab_value *env = lab_value_get(plan.runs[0].options, "env");
    assert_int_equal(lab_value_get(env, "THREADS")->type, LAB_VALUE_INT);
}

LAB_TEST(a_key_of_the_matrix_can_be_an_axis_alone) {
    PLAN("experiment=test_matrix", "experiment.command='train {lr} {max_iters} {x}'",
         "+experiment.matrix={lr: [1, 2], max_iters: 5, x: 9}", "~experiment.matrix.optimizer",
         "experiment.axes=[matrix.lr]");
    assert_int_equal(plan.run_count, 2);
    find_run("gpu0_numa0_lr1_max_iters5_x9");
}

LAB_TEST(keys_of_one_element_move_together) {
    PLAN("experiment=test_matrix", "experiment.command='train {depth} {lr}'",
         "+experiment.matrix.model=[{depth: 2, lr: 0.1}, {depth: 4, lr: 0.05}]");
    assert_int_equal(plan.run_count, 2);
    find_run("gpu0_numa0_depth4_lr0.05");
}

LAB_TEST(a_sweep_is_as_good) {
    PLAN("-m", "experiment=test_matrix", "experiment.command='train {lr}'",
         "+experiment.matrix.lr=0.1,0.01,1e-5");
    assert_int_equal(plan.job_count, 3);
    assert_int_equal(plan.run_count, 3);
    find_run("gpu0_numa0_lr0.1");
    find_run("gpu0_numa0_lr1e-05");
}

LAB_TEST(commands_of_one_label_are_distinct) {
    PLAN("-m", "experiment=test_matrix", "experiment.command='train -a','train -b'");
    assert_int_equal(plan.run_count, 2);
    find_run("gpu0_numa0_train_commandtrain--a");
}

/* --- identity --- */

static uint64_t identity(const char *word) {
    PLAN("experiment=test_matrix", TRAIN, "experiment.matrix.optimizer=[sgd]", word);
    assert_int_equal(plan.run_count, 1);
    return plan.runs[0].identity;
}

LAB_TEST(all_that_makes_a_run_is_in_its_identity) {
    static const char *const changes[] = {
        "experiment.command='train2 --opt {optimizer} --iters {max_iters}'",
        "experiment.matrix.max_iters=7",
        "+experiment.env.A=1",
        "experiment.metrics.patterns=['loss {loss}']",
        "experiment.metrics.json=false",
    };
    uint64_t first = identity("seed=1");
    assert_true(identity("seed=2") == first);
    assert_true(identity("+experiment.matrix.unused=3") == first);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        assert_true(identity(changes[i]) != first);
}

LAB_TEST(the_order_of_keys_is_not) {
    PLAN("experiment=test_matrix", "experiment.command='t {a} {b}'", "+experiment.matrix.a=1",
         "+experiment.matrix.b=2", "+experiment.env={X: 1, Y: 2}");
    uint64_t first = plan.identity;
    PLAN("experiment=test_matrix", "experiment.command='t {a} {b}'", "+experiment.matrix.b=2",
         "+experiment.matrix.a=1", "+experiment.env={Y: 2, X: 1}");
    assert_true(plan.identity == first);
}

/* --- launchers --- */

#define GANG "experiment.hardware.gpu_ids=[[0,1]]"

static enum lab_plan_processes processes_of(const char *command, const char *word) {
    PLAN("experiment=test_matrix", command, GANG, word);
    return plan.runs[0].processes;
}

LAB_TEST(a_launcher_is_one_program_for_a_gang) {
    static const struct {
        const char *command, *word;
        enum lab_plan_processes processes;
    } cases[] = {
        {"experiment.command=train", "experiment.processes=launcher", LAB_PLAN_LAUNCHER},
        {"experiment.command=train", "seed=1", LAB_PLAN_PER_RANK},
        /* who asks for the number of GPUs starts a process for each */
        {"experiment.command='run -n {gpu_count}'", "seed=1", LAB_PLAN_LAUNCHER},
        {"experiment.command=train", "+experiment.env.IDS='{gpu_ids}'", LAB_PLAN_LAUNCHER},
        {"experiment.command='run {gpu_count}'", "+experiment.matrix.gpu_count=3",
         LAB_PLAN_PER_RANK},
        {"experiment.command='run {gpu_count}'", "experiment.processes=per_rank",
         LAB_PLAN_PER_RANK},
        {"experiment.command=train", "device=cpu:0/2", LAB_PLAN_PER_RANK},
        {"experiment.command='run {gpu_count}'", "device=cpu:0/2", LAB_PLAN_LAUNCHER},
        {"experiment.command='run {gpu_count}'", "experiment.hardware.gpu_ids=[0]",
         LAB_PLAN_PER_RANK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(processes_of(cases[i].command, cases[i].word), cases[i].processes);
}

LAB_TEST(a_launched_gang_is_another_run) {
    processes_of("experiment.command=train", "experiment.processes=launcher");
    uint64_t launched = plan.identity;
    assert_int_equal(plan.runs[0].rank_count, 2);
    processes_of("experiment.command=train", "experiment.processes=per_rank");
    assert_true(plan.identity != launched);
    PLAN("experiment=test_matrix", "experiment.command=train", "experiment.processes=launcher",
         "experiment.hardware.gpu_ids=[0,1]");
    assert_contains(plan.notes[plan.notes[1] ? 1 : 0], "experiment.gpu_mode=multi");
    PLAN("experiment=test_matrix", "experiment.command=train", "experiment.processes=launcher",
         "experiment.hardware.gpu_ids=all", "experiment.gpu_mode=multi");
    assert_int_equal(plan.runs[0].rank_count, 4);
    assert_int_equal(plan.runs[0].processes, LAB_PLAN_LAUNCHER);
    REFUSED(FOUR_NODES, "vit is a workload of gpulab's", "device=cpu", "experiment=quick_test",
            "experiment.processes=launcher");
}

/* --- refused --- */

LAB_TEST(mistakes_are_found_when_it_is_planned) {
    REFUSED(FOUR_NODES, "experiment.command has no value yet: add experiment.command=VALUE",
            "device=cpu", "experiment=test_matrix");
    REFUSED(FOUR_NODES, "unknown placeholder {optimiser}; did you mean {optimizer}?", "device=cpu",
            "experiment=test_matrix", "experiment.command='train {optimiser}'");
    REFUSED(FOUR_NODES, "reads no number", "device=cpu", "experiment=test_matrix", TRAIN,
            "experiment.metrics.patterns=[loss]");
    REFUSED(FOUR_NODES, "is not a variable name", "device=cpu", "experiment=test_matrix", TRAIN,
            "+experiment.env={a-b: 1}");
    REFUSED(FOUR_NODES, "unknown key 'experiment.test.batch_size'", "device=cpu",
            "experiment=test_matrix", TRAIN, "+experiment.test.batch_size=4");
    REFUSED(FOUR_NODES, "experiment.matrix.lr is empty", "device=cpu", "experiment=test_matrix",
            TRAIN, "+experiment.matrix.lr=[]");
    REFUSED(FOUR_NODES, "matrix.optimizer is a list", "device=cpu", "experiment=test_matrix", TRAIN,
            "experiment.axes=[]");
    REFUSED(FOUR_NODES, "experiment.matrix: nothing uses it", "device=cpu", "experiment=quick_test",
            "+experiment.matrix={lr: 1}");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
