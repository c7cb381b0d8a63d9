/* The claims of a study with phases: what takes longer, the likely cause, what recovers it, what
 * tuning makes of it. */
#include "analysis/contention/contention.h"
#include "claim_fixture.h"
#include "study_answers.h"

#define BLOCKS 5

struct phase_given { /* what a phase does to a kernel on a device */
    const char *name, *place, *apart, *disturb;
    double slower;                       /* 1.18 = takes 18 % longer */
    double compute, memory, pcie, clock; /* what is left of each; 0 = all */
    double uneven[BLOCKS];               /* likewise of memory, by block */
    double links[BLOCKS];                /* likewise of PCIe */
    double times[BLOCKS];                /* slower by as much besides, by block; 0 = not */
    double power_w;                      /* drawn of 700 W; 0 = unknown */
    int tried;                           /* configurations, by its tuning; 0 = 12 */
};

static double or_all(double left) {
    return left > 0 ? left : 1;
}

static const char *test_of(struct given_study *given, const struct phase_given *phase) {
    const char *disturb =
        phase->disturb ? lab_arena_printf(&given->arena, "\"%s\"", phase->disturb) : "null";
    return lab_arena_printf(
        &given->arena,
        "{\"phase\": \"%s\", \"place\": \"%s\", \"apart\": [%s], "
        "\"disturb\": %s, \"tune_s\": 2, \"notes\": [\"phase mps is left out: no daemon\"]}",
        phase->name, phase->place, phase->apart ? phase->apart : "", disturb);
}

/* A rank's own result: what it chose, and what its probes found, each with half a percent of
 * chance. */
static const char *result_of(struct given_study *given, const struct phase_given *phase, int block,
                             const char *config) {
    double by_chance[4];
    for (int i = 0; i < 4; i++)
        by_chance[i] = 1 + 0.005 * given_normal(given);
    double clock = 1700 * or_all(phase->clock) * by_chance[3];
    double memory = or_all(phase->memory) * or_all(phase->uneven[block]);
    double pcie = 50 * or_all(phase->pcie) * or_all(phase->links[block]) * by_chance[2];
    const char *power =
        phase->power_w > 0
            ? lab_arena_printf(&given->arena, ", \"power_w\": %.1f, \"power_limit_w\": 700.0",
                               phase->power_w)
            : "";
    return lab_arena_printf(
        &given->arena,
        "{\"ranks\": [{\"best_config\": %s, \"tuning\": {\"num_configs_tested\": %d}, "
        "\"capacity\": {\"clock_mhz\": %.6f, "
        "\"flops_per_second\": %.6f, \"memory_gb_per_s\": %.6f, \"h2d_gb_per_s\": %.6f, "
        "\"d2h_gb_per_s\": %.6f%s}}]}",
        config, phase->tried > 0 ? phase->tried : 12, clock,
        1e10 * clock * or_all(phase->compute) * by_chance[0],
        3000 * memory * or_all(phase->compute) * or_all(phase->clock) * by_chance[1], pcie, pcie,
        power);
}

/* Blocks drift apart by a fifth, which pairing takes out. */
static void given_kernel(struct given_study *given, const char *kernel, int gpu,
                         const struct phase_given *phase, const char *config) {
    for (int block = 0; block < BLOCKS; block++)
        given_add(given,
                  (struct given_run){.model = kernel,
                                     .gpu = gpu,
                                     .repeat = block,
                                     .rate = 10 / (0.001 * phase->slower * (1 + 0.05 * block) *
                                                   or_all(phase->times[block]) *
                                                   (1 + 0.004 * given_normal(given))),
                                     .suffix = lab_arena_printf(&given->arena, "_%s", phase->name),
                                     .phase = phase->name,
                                     .test = test_of(given, phase),
                                     .result = result_of(given, phase, block, config)});
}

static void given_regret(struct given_study *given, const char *kernel, int gpu, double ratio) {
    static const struct phase_given regret = {.name = "regret", .place = "alone"};
    for (int block = 0; block < BLOCKS; block++)
        given_add(given,
                  (struct given_run){
                      .model = kernel,
                      .gpu = gpu,
                      .repeat = block,
                      .rate = 10000,
                      .suffix = "_regret",
                      .phase = "regret",
                      .test = test_of(given, &regret),
                      .result = lab_arena_printf(
                          &given->arena,
                          "{\"ranks\": [{\"regret\": [{\"phase\": \"concurrent\", \"config\": "
                          "\"rows=2\", \"same\": %s, \"ratio\": %.6f}]}]}",
                          ratio == 1 ? "true" : "false",
                          ratio * (ratio == 1 ? 1 : 1 + 0.003 * given_normal(given)))});
}

static const struct phase_given baseline = {
    .name = "baseline", .place = "alone", .slower = 1, .power_w = 204};
#define FIRST_CHOICE  "{\"rows\": 1}"
#define SECOND_CHOICE "{\"rows\": 2}"

/* A softmax in the baseline and in another phase. */
static struct lab_analysis_result when_phase(struct given_study *given, struct phase_given phase) {
    given_begin(given, "contention");
    given_kernel(given, "softmax", 0, &baseline, FIRST_CHOICE);
    given_kernel(given, "softmax", 0, &phase, FIRST_CHOICE);
    return when_asked(given, "contention", NULL);
}

static const char *cause(const struct lab_analysis_result *result) {
    const struct lab_claim *claim = find_claim(result, "contention.cause", "");
    const struct lab_doc_cell *cell = figure(result, 0, "cause");
    const char *key = cell->data ? cell->data->string : cell->text;
    assert_int_equal(claim != NULL, strstr(result->answer, "Likely cause") != NULL);
    assert_int_equal(claim != NULL, key && strcmp(key, "not identified") != 0);
    return key;
}

LAB_TEST(nothing_is_found_where_nothing_is) {
    struct given_study given;
    given_begin(&given, "contention");
    struct phase_given again = {.name = "baseline_again", .place = "alone", .slower = 1};
    for (int k = 0; k < 3; k++) {
        const char *kernel = lab_arena_printf(&given.arena, "kernel%d", k);
        given_kernel(&given, kernel, 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, kernel, 0, &again, FIRST_CHOICE);
    }
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "Phase baseline_again: all 3 kernels are unchanged (within ±");
    assert_null(result.action);                                       /* one device alone twice */
    assert_int_equal(result.charts[0].panels[0].series[0].colour, 1); /* 0 is the baseline's */
    assert_string_equal(result.claims[0].kind, "contention.slowdown");
    for (int i = 0; i < result.claim_count; i++)
        assert_int_not_equal(result.claims[i].verdict, LAB_CLAIM_YES);
    for (int r = 0; r < 4; r++) /* a change follows from the two values next to it */
        assert_near(cell(&result, 0, "resources", r, "here")->value /
                        cell(&result, 0, "resources", r, "baseline")->value,
                    1 + cell(&result, 0, "resources", r, "change")->value, 1e-9);
    assert_int_equal(result.finding, LAB_ANALYSIS_FINDS_NOTHING);
    given_end(&given);
}

/* A GPU that is slow by itself is seen among all of them, alone and at once. */
LAB_TEST(the_first_chart_has_every_device) {
    struct given_study given;
    given_begin(&given, "contention");
    struct phase_given together = {.name = "concurrent", .place = "together", .slower = 1};
    for (int gpu = 0; gpu < 3; gpu++) {
        struct phase_given alone = baseline, at_once = together;
        alone.slower = at_once.slower = gpu == 2 ? 1.06 : 1;
        given_kernel(&given, "gemm", gpu, &alone, FIRST_CHOICE);
        given_kernel(&given, "gemm", gpu, &at_once, FIRST_CHOICE);
    }
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const struct lab_chart_panel *panel = &result.charts[0].panels[0];
    assert_string_equal(result.charts[0].name, "contention_devices");
    assert_says(result.charts[0].title, "alone (baseline) and at once (concurrent)");
    assert_says(result.charts[1].caption, " Capacity: bars are the mean of all GPUs.");
    const struct lab_chart_panel *capacity = &result.charts[1].panels[1];
    const struct lab_chart_series *single = &capacity->series[capacity->series_count - 1];
    assert_string_equal(single->title, "single GPUs");
    assert_true(single->on == 1 && single->count % 3 == 0);
    assert_int_equal(panel->x.name_count, 3);
    assert_int_equal(panel->series_count, 2);
    for (int s = 0; s < 2; s++) {
        assert_near(panel->series[s].y[1], 0, 1.5);
        assert_near(panel->series[s].y[2], 6, 1.5);
    }
    given_end(&given);
}

LAB_TEST(the_cause_is_what_fell_most) {
    static const struct {
        struct phase_given phase;
        const char *key, *words;
    } rows[] = {
        {{.slower = 1.6, .compute = 0.6}, "sm", "Likely cause: SM compute rate 39"},
        {{.slower = 1.3, .memory = 0.7}, "membw", "Likely cause: memory bandwidth "},
        {{.slower = 1.1, .clock = 0.9, .power_w = 712}, "power", "GPUs draw 712 of 700 W"},
        {{.slower = 1.02, .pcie = 0.5}, "pcie", "Likely cause: PCIe bandwidth "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct phase_given phase = rows[i].phase;
        phase.name = "disturbed";
        phase.place = "alone";
        phase.disturb = rows[i].key;
        struct given_study given;
        struct lab_analysis_result result = when_phase(&given, phase);
        assert_string_equal(cause(&result), rows[i].key);
        assert_says(result.answer, rows[i].words);
        assert_says(result.answer, "neighbour (");
        assert_int_equal(result.finding, LAB_ANALYSIS_FINDS);
        given_end(&given);
    }
}

/* Memory bandwidth rose from 21.6 to 22.6 GB/s and was blamed, since its ratio to compute fell. */
LAB_TEST(what_did_not_fall_is_no_cause) {
    static const struct phase_given rows[] = {
        {.slower = 1.3, .compute = 1.2, .memory = 1.047 / 1.2},
        /* varies too much */
        {.slower = 1.3, .uneven = {0.62, 1.31, 0.96, 1.20, 0.88}},
        {.slower = 1.3, .compute = 1.47, .uneven = {1.4, 0.6, 1.5, 0.65, 1}},
        /* fell for certain, but by too little for such a slow-down */
        {.slower = 2.5, .memory = 0.97},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct phase_given phase = rows[i];
        phase.name = "concurrent";
        phase.place = "together";
        struct given_study given;
        struct lab_analysis_result result = when_phase(&given, phase);
        assert_string_equal(cause(&result), "not identified");
        assert_says(result.answer, "Cause not identified.");
        assert_int_equal(result.finding, LAB_ANALYSIS_FINDS);
        given_end(&given);
    }
}

/* Headline, rows and exit status follow from the same claims. */
LAB_TEST(blocks_that_differ_are_inconclusive) {
    static const struct {
        double times[BLOCKS];
        enum lab_claim_verdict verdict;
        const char *words;
        enum lab_analysis_finding finding;
    } rows[] = {
        {{0.99, 1.01, 1.00, 1.01, 0.99}, LAB_CLAIM_NO, "is unchanged", LAB_ANALYSIS_FINDS_NOTHING},
        {{0.95, 1.04, 1.06, 0.94, 1.02},
         LAB_CLAIM_INCONCLUSIVE,
         "Too noisy here: quiet the machine.",
         LAB_ANALYSIS_CANT_TELL},
        {{0.85, 1.30, 1.20, 0.95, 1.15},
         LAB_CLAIM_INCONCLUSIVE,
         "softmax inconclusive (time +",
         LAB_ANALYSIS_CANT_TELL},
        {{1.05, 1.06, 1.05, 1.04, 1.05}, LAB_CLAIM_YES, "softmax takes 4.8%", LAB_ANALYSIS_FINDS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct phase_given again = {.name = "baseline_again", .place = "alone", .slower = 1};
        memcpy(again.times, rows[i].times, sizeof again.times);
        struct given_study given;
        struct lab_analysis_result result = when_phase(&given, again);
        assert_int_equal(find_claim(&result, "contention.kernel", "softmax")->verdict,
                         rows[i].verdict);
        assert_int_equal(find_claim(&result, "contention.slowdown", "")->verdict, rows[i].verdict);
        assert_string_equal(cell(&result, 0, "comparisons", 0, "change_verdict")->text,
                            lab_claim_verdict_name(rows[i].verdict));
        assert_true(figure(&result, 0, "slower")->value == (rows[i].verdict == LAB_CLAIM_YES));
        assert_says(result.answer, rows[i].words);
        assert_int_equal(result.finding, rows[i].finding);
        given_end(&given);
    }
}

/* The noisiest kernel alone would need more. */
LAB_TEST(one_comparison_needs_one_number_of_runs) {
    struct given_study given;
    struct phase_given noisy = {.name = "baseline_again",
                                .place = "alone",
                                .slower = 1,
                                .times = {0.95, 1.04, 1.03, 0.94, 1.02}},
                       quiet = {.name = "baseline_again", .place = "alone", .slower = 1};
    given_begin(&given, "contention");
    for (int i = 0; i < 2; i++) {
        given_kernel(&given, i ? "gemm" : "softmax", 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, i ? "gemm" : "softmax", 0, i ? &quiet : &noisy, FIRST_CHOICE);
    }
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const char *next = lab_claim_next(find_claim(&result, "contention.slowdown", ""), &given.arena);
    assert_says(next, "runs per point detect 2%");
    assert_says(result.answer, next);
    result = when_asked(&given, "variance", NULL);
    assert_says(result.answer, next);
    given_end(&given);
}

/* Their probes share PCIe, which is nothing to a kernel that copies nothing. */
static void given_four_gpus(struct given_study *given, int tried) {
    struct phase_given concurrent = {.name = "concurrent",
                                     .place = "together",
                                     .slower = 1.18,
                                     .memory = 0.8,
                                     .pcie = 0.5,
                                     .tried = tried};
    static const struct phase_given isolated = {
        .name = "isolated", .place = "together", .apart = "\"affinity\", \"numa\"", .slower = 1.02};
    given_begin(given, "contention");
    for (int gpu = 0; gpu < 4; gpu++) {
        given_kernel(given, "softmax", gpu, &baseline, FIRST_CHOICE);
        given_kernel(given, "softmax", gpu, &concurrent, gpu ? SECOND_CHOICE : FIRST_CHOICE);
        given_kernel(given, "softmax", gpu, &isolated, FIRST_CHOICE);
        given_regret(given, "softmax", gpu, gpu ? 1.04 : 1);
    }
}

LAB_TEST(the_answer_has_slow_down_cause_recovery_and_tuning) {
    struct given_study given;
    given_four_gpus(&given, 12);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const char *const parts[] = {"softmax takes 1",
                                 "Likely cause: memory bandwidth",
                                 "Phase isolated (affinity, numa): softmax takes 1",
                                 "of its slowdown recovered.",
                                 "Tuning chose otherwise in 15 of 20 (at least 12 conf",
                                 "On the idle device that takes 3.0% longer",
                                 NULL};
    for (int i = 0; parts[i]; i++)
        assert_says(result.answer, parts[i]);
    const struct lab_claim *slowdown = find_claim(&result, "contention.slowdown", "at once"),
                           *recovery = find_claim(&result, "contention.recovery", "isolated");
    assert_true(slowdown->low < 0.18 && slowdown->high > 0.18);
    assert_true(slowdown->high - slowdown->low < 0.02);
    assert_true(recovery->low < 1.02 / 1.18 - 1 && recovery->high > 1.02 / 1.18 - 1);
    assert_int_equal(recovery->verdict, LAB_CLAIM_YES);
    double back = cell(&result, 0, "recoveries", 0, "recovered")->value;
    assert_true(back > 0.8 && back < 0.97);
    assert_int_equal(find_claim(&result, "contention.tuning", "at once")->verdict, LAB_CLAIM_YES);
    assert_string_equal(result.command,
                        "export CUDA_DEVICE_ORDER=PCI_BUS_ID; for g in 0:0; do "
                        "CUDA_VISIBLE_DEVICES=${g%:*} numactl "
                        "--cpunodebind=${g#*:} --membind=${g#*:} PROGRAM & done; wait");
    assert_true(has_note(result.notes, "Phase mps is left out"));
    given_end(&given);
}

/* Ties keep the default, so that such tunings agree whatever the load. */
LAB_TEST(two_configurations_are_no_tuning) {
    struct given_study given;
    given_four_gpus(&given, 2);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_says(result.answer,
                "Auto-tuning was not tested: tunings tried 2 configurations, 3 needed.");
    assert_int_equal(find_claim(&result, "contention.tuning", "at once")->verdict,
                     LAB_CLAIM_NOT_TESTED);
    assert_true(figure(&result, 0, "configurations_tried")->value == 2);
    assert_string_equal(result.further, "experiment.duration=200s"); /* 2 × 10 × 2 s × 5 blocks */
    assert_true(isnan(figure(&result, 0, "tunings")->value));
    given_end(&given);
}

/* Chosen by a slow-down that chance made, the recovery would be too large. */
LAB_TEST(a_mitigation_is_compared_whether_or_not_anything_is_slower) {
    static const struct phase_given concurrent = {
        .name = "concurrent", .place = "together", .slower = 1, .pcie = 0.5};
    static const struct phase_given isolated = {
        .name = "isolated", .place = "together", .apart = "\"numa\"", .slower = 1};
    struct given_study given;
    given_begin(&given, "contention");
    given_kernel(&given, "gemm", 0, &baseline, FIRST_CHOICE);
    given_kernel(&given, "gemm", 0, &concurrent, FIRST_CHOICE);
    given_kernel(&given, "gemm", 0, &isolated, FIRST_CHOICE);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_int_equal(find_claim(&result, "contention.recovery", "isolated")->verdict, LAB_CLAIM_NO);
    assert_true(isnan(cell(&result, 0, "recoveries", 0, "recovered")->value));
    assert_null(strstr(result.answer, "recover"));
    assert_says(result.answer, "% lower than with one GPU alone (95% CI [");
    assert_says(result.charts[0].caption, "Isolated: likewise, each on its local NUMA node.");
    given_end(&given);
}

/* GPUs 0 and 1 are behind one switch, 2 and 3 on root ports. */
LAB_TEST(gpus_that_share_a_bridge_are_named) {
    static const struct phase_given concurrent[] = {
        {.name = "concurrent", .place = "together", .slower = 1, .pcie = 0.53},
        {.name = "concurrent", .place = "together", .slower = 1}};
    static const char *names[] = {"host", "bridge"};
    static int bridges[3][2] = {{0, 1}, {0, 2}, {0, 3}};
    struct lab_pci pci[4];
    struct lab_node node = {.cpus = {.count = 1}};
    struct lab_machine machine = {.pci = pci, .pci_count = 4, .nodes = &node, .node_count = 1};
    struct given_study given;
    given_begin(&given, "contention");
    for (int gpu = 0; gpu < 4; gpu++) {
        pci[gpu] = (struct lab_pci){.vendor_id = 0x10de,
                                    .bridges = bridges[gpu > 1 ? gpu - 1 : 0],
                                    .bridge_names = names,
                                    .bridge_count = 2};
        snprintf(pci[gpu].address, sizeof pci[gpu].address, "0000:%02x:00.0", gpu);
        given_kernel(&given, "gemm", gpu, &baseline, FIRST_CHOICE);
        given_kernel(&given, "gemm", gpu, &concurrent[gpu > 1], FIRST_CHOICE);
    }
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].ranks[0].gpu = given.table.runs[i].ranks[0].gpu_id;
    given.table.machine = &machine;
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "PCIe bandwidth of GPUs 0+1, which share a bridge, is 4");
    assert_says(result.answer, "% lower than alone. PCIe bandwidth of GPUs 2 and 3: unchanged. ");
    /* a mean is true of neither */
    assert_null(strstr(strstr(result.answer, "PCIe"), "mean of 4 GPUs"));
    given.table.machine = NULL;
    result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "PCIe bandwidth of 2 of 4 GPUs 4");
    assert_says(result.answer, "% lower than with one GPU alone (GPUs 2 and 3: unchanged). ");
    assert_null(strstr(strstr(result.answer, "PCIe"), "mean of 4 GPUs"));
    given_end(&given);
}

/* The kernel that is slowed, before others. Where none is, what falls comes next to a kernel. */
LAB_TEST(the_chart_begins_with_what_the_answer_is_about) {
    static const char *names[] = {"host", "bridge"};
    static int bridges[] = {0, 1};
    struct lab_pci pci[2];
    struct lab_node node = {.cpus = {.count = 1}};
    struct lab_machine machine = {.pci = pci, .pci_count = 2, .nodes = &node, .node_count = 1};
    for (int slowed = 0; slowed < 2; slowed++) {
        struct phase_given plain = {.name = "concurrent",
                                    .place = "together",
                                    .slower = 1,
                                    .pcie = 0.5},
                           slow = plain;
        struct given_study given;
        given_begin(&given, "contention");
        slow.slower = slowed ? 1.3 : 1;
        for (int gpu = 0; gpu < 2; gpu++) {
            pci[gpu] = (struct lab_pci){
                .vendor_id = 0x10de, .bridges = bridges, .bridge_names = names, .bridge_count = 2};
            snprintf(pci[gpu].address, sizeof pci[gpu].address, "0000:%02x:00.0", gpu);
            given_kernel(&given, "gemm", gpu, &baseline, FIRST_CHOICE);
            given_kernel(&given, "gemm", gpu, &plain, FIRST_CHOICE);
            given_kernel(&given, "softmax", gpu, &baseline, FIRST_CHOICE);
            given_kernel(&given, "softmax", gpu, &slow, FIRST_CHOICE);
        }
        for (int i = 0; i < given.table.run_count; i++)
            given.table.runs[i].ranks[0].gpu = given.table.runs[i].ranks[0].gpu_id;
        given.table.machine = &machine;
        struct lab_analysis_result result = when_asked(&given, "contention", NULL);
        const struct lab_chart_panel *panels = result.charts[0].panels;
        assert_int_equal(result.charts[0].panel_count, 3);
        assert_string_equal(panels[slowed ? 2 : 1].y.title, "PCIe bandwidth [GB/s]");
        assert_int_equal(result.charts[0].columns, 2); /* next to each other */
        if (slowed) {
            assert_string_equal(panels[0].title, "softmax");
            assert_string_equal(panels[1].title, "gemm");
        } else {
            assert_says(result.answer, "(mean of 2 GPUs: 24.9 instead of 49.9 GB/s, 50.0% lower, ");
            assert_says(result.others[0],
                        "% lower PCIe bandwidth where 2 GPUs copy at once (24.9 instead of 49.9 "
                        "GB/s). One copying job on each PCIe bridge: not tested");
            struct lab_analysis_input input = {.studies = &given.table, .study_count = 1};
            struct contention made = contention_make(&input, &given.arena);
            assert_near(contention_bound_percent(&made.list[0]), 1.1, 0.01); /* as the answer has */
        }
        given_end(&given);
    }
}

/* Six GPUs, of which 0 and 1 share a bridge. GPU 1 copies more slowly even alone, GPU 5 is slower in
 * all, and copies of GPU 0 fall in every second block where they are `uneven`. */
static void given_six_gpus(struct given_study *given, bool uneven) {
    static const char *names[] = {"host", "bridge"};
    static int bridges[5][2] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}};
    static struct lab_pci pci[6];
    static struct lab_node node = {.cpus = {.count = 1}};
    static struct lab_machine machine = {
        .pci = pci, .pci_count = 6, .nodes = &node, .node_count = 1};
    given_begin(given, "contention");
    for (int gpu = 0; gpu < 6; gpu++) {
        double slower = gpu == 5 ? 1.06 : 1, copies = gpu == 1 ? 0.8 : 1;
        struct phase_given alone = {
            .name = "baseline", .place = "alone", .slower = slower, .pcie = copies};
        struct phase_given at_once = {.name = "concurrent",
                                      .place = "together",
                                      .slower = slower,
                                      .pcie = gpu < 2 ? 0.5 * copies : 1};
        for (int block = 1; block < BLOCKS && uneven && gpu == 0; block += 2)
            alone.links[block] = 0.7;
        pci[gpu] = (struct lab_pci){.vendor_id = 0x10de,
                                    .bridges = bridges[gpu > 1 ? gpu - 1 : 0],
                                    .bridge_names = names,
                                    .bridge_count = 2};
        snprintf(pci[gpu].address, sizeof pci[gpu].address, "0000:%02x:00.0", gpu);
        given_kernel(given, "gemm", gpu, &alone, FIRST_CHOICE);
        given_kernel(given, "gemm", gpu, &at_once, FIRST_CHOICE);
    }
    for (int i = 0; i < given->table.run_count; i++)
        given->table.runs[i].ranks[0].gpu = given->table.runs[i].ranks[0].gpu_id;
    given->table.machine = &machine;
}

LAB_TEST(gpus_that_are_slow_by_themselves_are_named) {
    struct given_study given;
    given_six_gpus(&given, false);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const struct lab_claim *alone = find_claim(&result, "contention.alone", "GPU 1 alone");
    assert_true(alone && alone->low < -0.2 && -0.2 < alone->high);
    assert_says(result.answer, " GPU 1 alone: 20");
    assert_says(result.answer, "% lower PCIe bandwidth of test copies than its peers (95% CI [");
    assert_null(find_claim(&result, "contention.alone", "GPU 5")); /* its copies are as fast */
    assert_says(result.others[0], "Check PCIe width and generation of GPU 1: 20");
    assert_says(result.others[0], "% lower copy bandwidth than its peers (95% CI [");
    assert_says(result.others[0], "]%, 5 runs each). Every run is slow: ");
    assert_says(result.others[1],
                "Put at most one copying job on GPUs 0+1, which share a PCIe bridge: 50");
    assert_null(result.others[2]);
    assert_says(result.charts[0].caption, "GPU 5: 5.");
    assert_says(result.charts[0].caption, "% lower throughput is a 6.");
    struct lab_analysis_input input = {.studies = &given.table, .study_count = 1};
    struct contention made = contention_make(&input, &given.arena);
    made.slow = contention_slow_find(&made);
    struct contention_bridges found =
        contention_bridges_find(&made, &made.list[0].resources[CONTENTION_PCIE]);
    assert_string_equal(found.shared, "GPUs 0+1");
    assert_string_equal(found.own, "GPUs 2–5");
    given_end(&given);
}

/* Copies of GPU 0 may be as slow as those of GPU 1 on its bridge. */
LAB_TEST(gpus_that_may_be_slow_are_named_as_inconclusive) {
    struct given_study given;
    given_six_gpus(&given, true);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const struct lab_claim *open = find_claim(&result, "contention.alone", "GPU 0 alone");
    assert_true(open && open->verdict == LAB_CLAIM_INCONCLUSIVE);
    assert_says(result.others[0], ". Inconclusive: GPU 0");
    given_end(&given);
}

/* As of a study that was stopped: what isolated has not run yet it can't have recovered. */
LAB_TEST(what_a_phase_has_not_run_it_does_not_recover) {
    static const struct phase_given concurrent = {
        .name = "concurrent", .place = "together", .slower = 1.18};
    static const struct phase_given isolated = {
        .name = "isolated", .place = "together", .apart = "\"numa\"", .slower = 1};
    struct given_study given;
    given_begin(&given, "contention");
    for (int k = 0; k < 2; k++) {
        const char *kernel = k ? "softmax" : "gemm";
        given_kernel(&given, kernel, 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, kernel, 0, &concurrent, FIRST_CHOICE);
    }
    given_kernel(&given, "gemm", 0, &isolated, FIRST_CHOICE);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_null(strstr(result.answer, "recover"));
    assert_null(find_claim(&result, "contention.recovery", ""));
    given_end(&given);
}

/* A run that failed leaves its block out, and no more. With one block there is no verdict. */
LAB_TEST(one_block_gives_values_and_no_verdict) {
    struct given_study given;
    given_four_gpus(&given, 12);
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].run->repeat == 0 && given.table.runs[i].ranks[0].gpu_id == 0)
            given.table.runs[i].used = false;
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "softmax takes 1");
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].used &= given.table.runs[i].run->repeat == 1;
    result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "softmax inconclusive (time +1");
    assert_says(result.answer, " experiment.repeat=5 gives verdicts.");
    given.table.repeats_planned = true; /* some are still to be done */
    given.table.planned_count = given.table.run_count + 1;
    result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, " Finish the study: its repeats give verdicts.");
    for (int i = 0; i < result.claim_count; i++)
        assert_true(result.claims[i].verdict == LAB_CLAIM_INCONCLUSIVE ||
                    result.claims[i].verdict == LAB_CLAIM_NOT_TESTED);
    assert_int_equal(result.finding, LAB_ANALYSIS_CANT_TELL);
    given_end(&given);
}

LAB_TEST(without_phases_there_is_no_verdict) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given_add(&given, (struct given_run){.model = "vit", .rate = 1});
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_true(result.lacks);
    const struct lab_analysis *analysis = lab_analysis_find("contention", NULL);
    assert_int_equal(analysis->interest(&given.table), 0);
    given_end(&given);
}
