/* A device has a line where its node is faster for certain, and no line else. */
#include "unit/analysis/study_fixture.h"

#include "advise/advise.h"
#include "base/str.h"

#include <math.h>

#include "test.h"

static int low[] = {0, 1, 2, 3}, high[] = {16, 17, 18, 19};
static struct lab_node nodes[] = {{.number = 0, .core_count = 4, .cpus = {low, 4}},
                                  {.number = 1, .core_count = 4, .cpus = {high, 4}}};
static const struct lab_machine machine = {.nodes = nodes, .node_count = 2, .numa_in_kernel = true};

/* GPUs 0 to gpus − 1, even ones at home on node 0, bound to both nodes; a remote node has `remote`
 * of the throughput. */
static struct lab_advice advise(struct given_study *given, int gpus, int runs, double remote,
                                double noise) {
    given_begin(given, "numa_study");
    for (int r = 0; r < runs; r++)
        for (int gpu = 0; gpu < gpus; gpu++)
            for (int node = 0; node < 2; node++)
                given_add(given, (struct given_run){.model = "vit32x2x128",
                                                    .gpu = gpu,
                                                    .node = node,
                                                    .home = gpu % 2,
                                                    .repeat = r,
                                                    .rate = 1000 * (node == gpu % 2 ? 1 : remote) *
                                                            exp(noise * given_normal(given))});
    for (int i = 0; i < given->table.run_count; i++)
        given->table.runs[i].ranks[0].gpu = given->table.runs[i].ranks[0].gpu_id;
    given->table.machine = &machine;
    return lab_advice_make(&given->table, NULL, &given->arena);
}

#define ORDER "CUDA_DEVICE_ORDER=PCI_BUS_ID "
#define BIND1 "numactl --cpunodebind=1 --membind=1 PROGRAM"

LAB_TEST(each_gpu_has_its_line_and_gain) {
    struct given_study given;
    struct lab_advice advice = advise(&given, 2, 5, 1 / 1.2, .005);
    assert_int_equal(advice.line_count, 2);
    const struct lab_advice_line *line = &advice.lines[1];
    assert_string_equal(line->device, "GPU 1");
    assert_string_equal(line->cpus, "16-19");
    assert_string_equal(line->plain, ORDER "CUDA_VISIBLE_DEVICES=1 " BIND1);
    assert_string_equal(line->torchrun, ORDER
                        "CUDA_VISIBLE_DEVICES=1 torchrun --nproc-per-node 1 --no-python " BIND1);
    assert_string_equal(line->mpirun,
                        "mpirun --bind-to none -n 1 env " ORDER "CUDA_VISIBLE_DEVICES=1 " BIND1);
    assert_string_equal(line->srun,
                        "srun -n 1 --cpu-bind=none env " ORDER "CUDA_VISIBLE_DEVICES=1 " BIND1);
    assert_string_equal(line->gain.kind, "advise.bind");
    assert_true(line->gain.low < .2 && .2 < line->gain.high);
    assert_string_equal(advice.all.torchrun,
                        ORDER "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node 2 --no-python "
                              "gpulab bind PROGRAM");
    assert_contains(advice.answer,
                    "Bind each device as below. Local NUMA nodes, mean of 2 devices: ");
    assert_string_equal(advice.tested[0].kind, "advise.bind_all");
    given_end(&given);
}

/* On machines without any effect a line is rare, whatever the noise; with one run there is none. */
LAB_TEST(no_line_without_a_certain_gain) {
    enum { STUDIES = 200 };
    int wrong = 0;
    for (int i = 0; i < STUDIES; i++) {
        struct given_study given;
        wrong += advise(&given, 4, 5, 1, .015).line_count > 0;
        given_end(&given);
    }
    assert_true(wrong <= STUDIES / 10);
    struct given_study given;
    struct lab_advice advice = advise(&given, 4, 1, .5, .015);
    assert_int_equal(advice.line_count, 0);
    assert_contains(advice.answer, "No binding is advised. ");
    assert_contains(advice.answer, "inconclusive (1 run each)");
    given_end(&given);
}

LAB_TEST(a_bound_says_what_is_not_gained) {
    struct given_study given;
    struct lab_advice advice = advise(&given, 4, 8, 1, .001);
    assert_int_equal(advice.line_count, 0);
    assert_contains(advice.answer, "No binding is advised. No difference larger than 0.");
    given_end(&given);
}

/* What was chosen before stays, also where it is slower now. */
LAB_TEST(nodes_chosen_before_are_measured_again) {
    struct given_study first, second;
    struct lab_advice before = advise(&first, 2, 5, 1.2, .005);
    assert_int_equal(before.lines[0].numa_node, 1); /* the remote one is faster */
    advise(&second, 2, 5, .8, .005);
    struct lab_advice now = lab_advice_make(&second.table, &before, &second.arena);
    assert_int_equal(now.line_count, 0);
    assert_string_equal(now.tested[1].subject, before.lines[0].gain.subject);
    assert_true(now.tested[1].high < -.15);
    given_end(&first);
    given_end(&second);
}
