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
    assert_true(line->least == line->most && fabs(line->most - line->gain.effect) < 1e-9);
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
    assert_contains(advice.answer, "(1 run each: no interval)");
    given_end(&given);
}

/* GPU 1's local node, 1, wasn't tested: its line holds until that is. Node 0 is better than node 2 by
 * 25% and by 11% in the batches of one model, and as good for the other: a range is by model. */
LAB_TEST(a_line_can_be_provisional) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int i = 0; i < 5 * 2 * 2 * 2 * 2; i++) {
        int node = i % 2 ? 2 : 0, gpu = i / 2 % 2, large = i / 4 % 2, copies = i / 8 % 2;
        double remote = !copies ? 1 : large ? 0.8 : 0.9;
        given_add(&given, (struct given_run){.model = copies ? "a" : "b",
                                             .suffix = large ? "_batch8" : "_batch4",
                                             .gpu = gpu,
                                             .node = node,
                                             .home = gpu,
                                             .repeat = i / 16,
                                             .flops = copies ? 1e9 : 1e12,
                                             .rate = 1000 * (node ? remote : 1) *
                                                     exp(.001 * given_normal(&given))});
    }
    struct lab_advice advice = lab_advice_make(&given.table, NULL, &given.arena);
    assert_int_equal(advice.line_count, 2);
    assert_string_equal(lab_advice_node(&advice.lines[0], &given.arena), "0");
    assert_string_equal(lab_advice_node(&advice.lines[1], &given.arena), "0 (until 1 is tested)");
    assert_true(advice.lines[1].least == 0 &&
                fabs(advice.lines[1].most - (1 / sqrt(.8 * .9) - 1)) < .01);
    assert_true(advice.lines[1].averaged); /* batches of a model */
    assert_string_equal(advice.unbound, "");
    given_end(&given);
}

/* Devices without a line are named, with the reason; none is where all have one. */
LAB_TEST(devices_without_a_line_are_named) {
    struct given_study given;
    struct lab_advice advice = advise(&given, 3, 5, 1 / 1.2, .005);
    assert_string_equal(advice.unbound, "");
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].ranks[0].gpu == 2)
            given.table.runs[i].rate *= exp(.5 * given_normal(&given));
    advice = lab_advice_make(&given.table, NULL, &given.arena);
    assert_int_equal(advice.line_count, 2);
    assert_contains(advice.unbound, "GPU 2: inconclusive: GPU 2, NUMA node 0: ");
    struct lab_doc *doc = lab_doc_open(NULL, &given.arena);
    LAB_AUTO(str, text);
    lab_advice_add(doc, &advice);
    lab_doc_write(doc, "markdown", (struct lab_style){0}, &text);
    assert_contains(text.text, "GPU 2: inconclusive: ");
    given_end(&given);
}

LAB_TEST(a_bound_says_what_is_not_gained) {
    struct given_study given;
    struct lab_advice advice = advise(&given, 4, 8, 1, .001);
    assert_int_equal(advice.line_count, 0);
    assert_contains(advice.answer, "No binding is advised. No difference larger than 0.");
    given_end(&given);
}

/* --- settings and phases: a claim that holds is a line with its gain, and no other is --- */

#define OPTIONS "{\"batch_size\": %d, \"compile_model\": %s}"

/* `gain` of the larger batch, or of compiling. */
static struct lab_advice advise_setting(struct given_study *given, bool compiles, int runs,
                                        double gain) {
    given_begin(given, compiles ? "compile_study" : "throughput_study");
    for (int r = 0; r < runs; r++)
        for (int level = 0; level < 2; level++)
            given_add(
                given,
                (struct given_run){
                    .model = "m",
                    .flops = 1e9,
                    .repeat = r,
                    .rate = 1000 * (1 + level * gain) * exp(.005 * given_normal(given)),
                    .suffix = level ? "_other" : NULL,
                    .options = lab_arena_printf(&given->arena, OPTIONS, !compiles && level ? 32 : 1,
                                                compiles && level ? "true" : "false")});
    given->table.machine = &machine;
    return lab_advice_make(&given->table, NULL, &given->arena);
}

LAB_TEST(a_setting_that_pays_off_is_advised) {
    static const char *const kinds[] = {"recommend.batch", "recommend.compile"};
    for (int compiles = 0; compiles < 2; compiles++) {
        struct given_study given;
        struct lab_advice advice = advise_setting(&given, compiles, 5, .2);
        assert_int_equal(advice.choice_count, 1);
        assert_string_equal(advice.choices[0].kind, kinds[compiles]);
        assert_true(advice.choices[0].low < .2 && .2 < advice.choices[0].high);
        assert_contains(advice.answer, compiles ? "Compiled: " : "Batch 32: ");
        assert_contains(advice.answer, "higher throughput than ");
        given_end(&given);
        /* inconclusive, absent, slower */
        const struct {
            int runs;
            double gain;
        } none[] = {{1, .2}, {5, 0}, {5, -.2}};
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            advice = advise_setting(&given, compiles, none[i].runs, none[i].gain);
            assert_int_equal(advice.choice_count, 0);
            assert_contains(advice.answer, "No setting is advised. ");
            given_end(&given);
        }
    }
}

/* At once takes twice as long; `isolated` recovers a part of that, in turn with one GPU idle. */
static struct lab_advice advise_phase(struct given_study *given, int blocks, double recovery,
                                      bool in_turn) {
    const struct {
        const char *name, *test;
        double time_s;
    } phases[] = {{"baseline", "{\"phase\": \"baseline\", \"place\": \"alone\"}", 1},
                  {"concurrent", "{\"phase\": \"concurrent\", \"place\": \"together\"}", 2},
                  {"isolated",
                   "{\"phase\": \"isolated\", \"place\": \"together\", \"apart\": [\"process\"]}",
                   2 - recovery}};
    given_begin(given, "contention");
    for (int r = 0; r < blocks; r++)
        for (int p = 0; p < 3; p++)
            for (int gpu = 0; gpu < 2; gpu++)
                given_add(given,
                          (struct given_run){
                              .model = "m",
                              .gpu = gpu,
                              .repeat = r,
                              .phase = phases[p].name,
                              .test = phases[p].test,
                              .suffix = lab_arena_printf(&given->arena, "_%s", phases[p].name),
                              .rate = exp(.005 * given_normal(given)) / phases[p].time_s});
    for (int i = 1; i < given->table.run_count; i += 2) /* one run of both GPUs */
        if (!(in_turn && lab_str_equal(given->table.runs[i].phase, "isolated")))
            given->table.runs[i].run = given->table.runs[i - 1].run;
    given->table.machine = &machine;
    return lab_advice_make(&given->table, NULL, &given->arena);
}

LAB_TEST(a_phase_that_recovers_is_advised) {
    struct given_study given;
    struct lab_advice advice = advise_phase(&given, 5, .9, false);
    assert_int_equal(advice.choice_count, 1);
    assert_string_equal(advice.choices[0].kind, "contention.throughput");
    assert_contains(advice.answer, "isolated");
    given_end(&given);
    assert_int_equal(advise_phase(&given, 5, 0, false).choice_count, 0);
    given_end(&given);
    assert_int_equal(advise_phase(&given, 1, .9, false).choice_count, 0);
    given_end(&given);
}

/* Each kernel takes 45% less time, and the machine does 9% less. */
LAB_TEST(a_phase_that_idles_devices_is_not_advised) {
    struct given_study given;
    struct lab_advice advice = advise_phase(&given, 5, .9, true);
    assert_int_equal(advice.choice_count, 0);
    assert_contains(advice.answer, "No setting is advised. isolated");
    assert_contains(advice.answer, "% lower total throughput than ");
    assert_true(advice.tested[0].low < -1 / 11. && -1 / 11. < advice.tested[0].high);
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

/* --- what no study measures --- */

static bool has_untested(const struct lab_advice *advice, const char *name, const char *line) {
    for (int i = 0; i < advice->untested_count; i++)
        if (lab_str_equal(advice->untested[i].name, name))
            return !line || lab_str_equal(advice->untested[i].line, line);
    return false;
}

/* Two GPUs on each node, 0 and 1 on one switch; a card each for Ethernet. */
LAB_TEST(what_is_not_measured_fits_the_machine) {
    int switched[] = {1, 2}, other[] = {3, 4};
    struct lab_pci pci[6] = {{.address = "0000:01:00.0", .name = "NVIDIA L40S", .node = 0},
                             {.address = "0000:02:00.0", .name = "NVIDIA L40S", .node = 0},
                             {.address = "0000:81:00.0", .name = "NVIDIA H200", .node = 1},
                             {.address = "0000:82:00.0", .name = "NVIDIA H200", .node = 1},
                             {.address = "0000:91:00.0", .os_name = "eth0", .node = 0},
                             {.address = "0000:92:00.0", .os_name = "eth1", .node = 1}};
    for (int i = 0; i < 6; i++) {
        pci[i].kind = i < 4 ? LAB_PCI_GPU : LAB_PCI_NETWORK;
        pci[i].class_id = i < 4 ? 0x0302 : 0x0200;
        pci[i].vendor_id = 0x10de;
        pci[i].vendor = "";
        pci[i].os_name = pci[i].os_name ? pci[i].os_name : "";
        pci[i].name = pci[i].name ? pci[i].name : "";
        pci[i].bridges = i < 2 ? switched : other + i % 2;
        pci[i].bridge_count = i < 2 ? 2 : 1;
    }
    struct lab_machine whole = machine;
    whole.pci = pci;
    whole.pci_count = 6;
    struct given_study given;
    advise(&given, 2, 5, .8, .005); /* GPU 1 sits on node 0 here, and was bound to both */
    given.table.machine = &whole;
    struct lab_advice advice = lab_advice_make(&given.table, NULL, &given.arena);
    assert_true(has_untested(&advice, "openmp", "OMP_NUM_THREADS=2 PROGRAM"));
    assert_true(has_untested(&advice, "bridge", "flock /tmp/gpu0-1.lock PROGRAM"));
    assert_true(has_untested(&advice, "nccl_socket", "NCCL_SOCKET_IFNAME=eth0 PROGRAM"));
    assert_true(has_untested(&advice, "exclusive", "sudo nvidia-smi -i 0,1 -c EXCLUSIVE_PROCESS"));
    assert_false(has_untested(&advice, "mps", NULL) || has_untested(&advice, "mig", NULL) ||
                 has_untested(&advice, "nccl_ib", NULL) ||
                 has_untested(&advice, "nccl_p2p", NULL) || has_untested(&advice, "local", NULL));
    /* then slices of an H200 and GPU 0, never bound to its local node */
    for (int i = 0; i < given.table.run_count; i++) {
        struct lab_study_rank *rank = &given.table.runs[i].ranks[0];
        bool first = rank->gpu == 0;
        rank->device = first ? "cuda:0" : "cuda:2/4.0";
        rank->gpu = first ? 0 : 2;
        rank->numa_node = first ? 1 : rank->numa_node;
    }
    advice = lab_advice_make(&given.table, NULL, &given.arena);
    assert_true(has_untested(&advice, "local",
                             ORDER "CUDA_VISIBLE_DEVICES=0 numactl "
                                   "--cpunodebind=0 --membind=0 PROGRAM"));
    assert_true(has_untested(&advice, "mps", "nvidia-cuda-mps-control -d"));
    assert_true(has_untested(&advice, "mig", "sudo nvidia-smi -i 2 -mig 1"));
    assert_true(has_untested(&advice, "nccl_p2p", NULL));
    assert_false(has_untested(&advice, "exclusive", NULL) || has_untested(&advice, "bridge", NULL));
    given_end(&given);
}
