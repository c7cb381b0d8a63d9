/* The verdict of a study with phases: what is slowed, by what, what takes it back, what tuning
 * makes of it. */
#include "study_answers.h"

#define BLOCKS 5

struct phase_given { /* what a phase does to a kernel on a device */
    const char *name, *place, *apart, *disturb;
    double slower;                       /* 1.18 = takes 18 % longer */
    double compute, memory, pcie, clock; /* what is left of each; 0 = all */
    double uneven[BLOCKS];               /* likewise of memory, by block */
    double times[BLOCKS];                /* slower by as much besides, by block; 0 = not */
    double power_w;                      /* drawn of 700 W; 0 = unknown */
};

static double or_all(double left) {
    return left > 0 ? left : 1;
}

static const char *test_of(struct given_study *given, const struct phase_given *phase) {
    const char *disturb =
        phase->disturb ? lab_arena_printf(&given->arena, "\"%s\"", phase->disturb) : "null";
    return lab_arena_printf(&given->arena,
                            "{\"phase\": \"%s\", \"place\": \"%s\", \"apart\": [%s], "
                            "\"disturb\": %s, \"notes\": [\"phase mps is left out: no daemon\"]}",
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
    const char *power =
        phase->power_w > 0
            ? lab_arena_printf(&given->arena, ", \"power_w\": %.1f, \"power_limit_w\": 700.0",
                               phase->power_w)
            : "";
    return lab_arena_printf(
        &given->arena,
        "{\"ranks\": [{\"best_config\": %s, \"capacity\": {\"clock_mhz\": %.6f, "
        "\"flops_per_second\": %.6f, \"memory_gb_per_s\": %.6f, \"h2d_gb_per_s\": %.6f, "
        "\"d2h_gb_per_s\": %.6f%s}}]}",
        config, clock, 1e10 * clock * or_all(phase->compute) * by_chance[0],
        3000 * memory * or_all(phase->compute) * or_all(phase->clock) * by_chance[1],
        50 * or_all(phase->pcie) * by_chance[2], 50 * or_all(phase->pcie) * by_chance[2], power);
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

static const char *resource(const struct lab_analysis_result *result, int part) {
    return figure(result, part, "resource")->text;
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
    assert_contains(result.answer, "Phase baseline_again slows nothing");
    assert_true(figure(&result, 0, "slowed")->value == 0);
    assert_string_equal(resource(&result, 0), "none less than before");
    assert_int_equal(result.finding, LAB_ANALYSIS_FINDS_NOTHING);
    given_end(&given);
}

LAB_TEST(the_resource_of_which_least_is_left_is_named_first) {
    static const struct {
        struct phase_given phase;
        const char *key, *words;
    } rows[] = {
        {{.slower = 1.6, .compute = 0.6}, "sm", "time on the multiprocessors"},
        {{.slower = 1.3, .memory = 0.7}, "membw", "memory bandwidth"},
        {{.slower = 1.1, .clock = 0.9, .power_w = 712}, "power", "draws 712 W instead of 204 W"},
        {{.slower = 1.02, .pcie = 0.5}, "pcie", "PCIe bandwidth"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct given_study given;
        given_begin(&given, "contention");
        struct phase_given phase = rows[i].phase;
        phase.name = "disturbed";
        phase.place = "alone";
        phase.disturb = rows[i].key;
        given_kernel(&given, "softmax", 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, "softmax", 0, &phase, FIRST_CHOICE);
        struct lab_analysis_result result = when_asked(&given, "contention", NULL);
        assert_string_equal(resource(&result, 0), rows[i].key);
        if (!strstr(result.answer, rows[i].words))
            fail_msg("no '%s' in: %s", rows[i].words, result.answer);
        assert_contains(result.answer, "A neighbour on purpose");
        assert_int_equal(result.finding, LAB_ANALYSIS_FINDS);
        given_end(&given);
    }
}

/* As between cores of a virtual machine, which share a path to memory only now and then. */
LAB_TEST(a_loss_that_comes_and_goes_is_found_by_its_ranks) {
    static const struct {
        double left[BLOCKS];
        const char *key;
        double slower;
    } rows[] = {
        {{0.62, 0.93, 0.96, 0.60, 0.88}, "membw"},
        {{0.62, 1.31, 0.96, 1.20, 0.88}, "none less for certain"}, /* a machine that isn't quiet */
        {{0.97, 0.93, 0.96, 1.30, 1.32}, "none less for certain"},
        /* that there is contention is certain by the kernel's time: this is the likeliest cause */
        {{0.62, 1.05, 0.66, 1.06, 0.99}, "membw", 1.3},
        /* and this, since as much is left of everything else as before */
        {{0.93, 1.02, 0.94, 1.02, 0.91}, "membw", 1.3},
        /* but not what may be more as well as less */
        {{0.82, 1.15, 0.86, 1.16, 0.99}, "none less for certain", 1.3},
        {{0.99, 1.01, 1.00, 1.01, 0.99}, "none less than before", 1.3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct given_study given;
        struct phase_given phase = {
            .name = "disturbed", .place = "alone", .disturb = "membw", .slower = 1};
        memcpy(phase.uneven, rows[i].left, sizeof phase.uneven);
        phase.slower = rows[i].slower > 0 ? rows[i].slower : 1;
        given_begin(&given, "contention");
        given_kernel(&given, "softmax", 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, "softmax", 0, &phase, FIRST_CHOICE);
        struct lab_analysis_result result = when_asked(&given, "contention", NULL);
        assert_string_equal(resource(&result, 0), rows[i].key);
        given_end(&given);
    }
}

/* As on a machine whose other users went away meanwhile. */
LAB_TEST(of_what_is_named_less_is_left) {
    struct phase_given phase = {.name = "disturbed",
                                .place = "alone",
                                .disturb = "membw",
                                .slower = 1.3,
                                .compute = 1.47,
                                .uneven = {1.4, 0.6, 1.5, 0.65, 1}};
    struct given_study given;
    given_begin(&given, "contention");
    given_kernel(&given, "softmax", 0, &baseline, FIRST_CHOICE);
    given_kernel(&given, "softmax", 0, &phase, FIRST_CHOICE);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_string_equal(resource(&result, 0), "none less for certain");
    assert_null(strstr(result.answer, "Most likely"));
    assert_contains(result.answer, "What it takes wasn't found");
    assert_int_equal(result.finding, LAB_ANALYSIS_FINDS);
    given_end(&given);
}

/* The same is what is known to be the same; and how many blocks would tell is said. */
LAB_TEST(what_differs_from_block_to_block_is_not_the_same) {
    static const struct {
        double times[BLOCKS];
        const char *verdict, *words;
        enum lab_analysis_finding finding;
    } rows[] = {
        {{0.99, 1.01, 1.00, 1.01, 0.99}, "same", "slows nothing: no", LAB_ANALYSIS_FINDS_NOTHING},
        {{0.95, 1.04, 1.06, 0.94, 1.02}, "undecided", "repeat=", LAB_ANALYSIS_CANT_TELL},
        {{0.85, 1.30, 1.20, 0.95, 1.15}, "undecided", "quieter", LAB_ANALYSIS_CANT_TELL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct phase_given again = {.name = "baseline_again", .place = "alone", .slower = 1};
        memcpy(again.times, rows[i].times, sizeof again.times);
        struct given_study given;
        given_begin(&given, "contention");
        given_kernel(&given, "softmax", 0, &baseline, FIRST_CHOICE);
        given_kernel(&given, "softmax", 0, &again, FIRST_CHOICE);
        struct lab_analysis_result result = when_asked(&given, "contention", NULL);
        const struct lab_doc_table *table = &result.parts[0].tables[0];
        assert_string_equal(table->cells[table->column_count - 2].text, rows[i].verdict);
        if (!strstr(result.answer, rows[i].words))
            fail_msg("no '%s' in: %s", rows[i].words, result.answer);
        if (i > 0)
            assert_contains(result.answer, "can't be ruled out");
        assert_int_equal(result.finding, rows[i].finding);
        given_end(&given);
    }
}

/* Their probes share PCIe, which is nothing to a kernel that copies nothing. */
static void given_four_gpus(struct given_study *given) {
    static const struct phase_given concurrent = {
        .name = "concurrent", .place = "together", .slower = 1.18, .memory = 0.8, .pcie = 0.5};
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

LAB_TEST(the_answer_has_slow_down_mitigation_choices_and_their_cost) {
    struct given_study given;
    given_four_gpus(&given);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const char *const parts[] = {"slow softmax by 1",
                                 "isolated takes back all but",
                                 "What goes with it is the memory bandwidth",
                                 "chose another configuration in 15 of 20",
                                 "on the idle device that costs 3.0 %",
                                 NULL};
    for (int i = 0; parts[i]; i++)
        if (!strstr(result.answer, parts[i]))
            fail_msg("no '%s' in: %s", parts[i], result.answer);
    /* each device's choices, which come to as many */
    assert_string_equal(cell(&result, 0, "comparisons", 1, "other_choices")->text, "0 of 5");
    for (int row = 2; row <= 4; row++)
        assert_string_equal(cell(&result, 0, "comparisons", row, "other_choices")->text, "5 of 5");
    const struct lab_doc_cell *change = figure(&result, 0, "change");
    assert_true(change->low < 0.18 && change->high > 0.18 && change->high - change->low < 0.02);
    double back = figure(&result, 1, "taken_back")->value;
    assert_true(back > 0.8 && back < 0.97);
    /* what to do, and what the plan had left out, stand below */
    bool advised = false, noted = false;
    for (int i = 0; result.notes[i]; i++) {
        advised |= strstr(result.notes[i], "numactl") != NULL;
        noted |= strstr(result.notes[i], "phase mps is left out") != NULL;
    }
    assert_true(advised && noted);
    given_end(&given);
}

/* As of a study that was stopped: what isolated has not done yet it can't have taken back. */
LAB_TEST(what_a_phase_has_not_run_it_does_not_take_back) {
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
    assert_null(strstr(result.answer, "back"));
    assert_true(isnan(figure(&result, 1, "taken_back")->value));
    given_end(&given);
}

LAB_TEST(a_clock_that_is_held_back_excuses_losses_and_makes_no_gains) {
    struct phase_given phase = {.name = "disturbed",
                                .place = "alone",
                                .disturb = "power",
                                .slower = 1.2,
                                .clock = 0.87,
                                .pcie = 0.95};
    struct given_study given;
    given_begin(&given, "contention");
    given_kernel(&given, "softmax", 0, &baseline, FIRST_CHOICE);
    given_kernel(&given, "softmax", 0, &phase, FIRST_CHOICE);
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    const struct lab_doc_table *left = &result.parts[0].tables[1];
    for (int r = 0; r < 4; r++) {
        const struct lab_doc_cell *row = left->cells + (ptrdiff_t)r * left->column_count;
        bool is_power = strcmp(row[0].text, "power") == 0;
        assert_string_equal(row[left->column_count - 1].text, is_power ? "less" : "same");
    }
    given_end(&given);
}

/* A run that failed leaves its block out, and no more. */
LAB_TEST(blocks_without_both_sides_do_not_count) {
    struct given_study given;
    given_four_gpus(&given);
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].run->repeat == 0 && given.table.runs[i].ranks[0].gpu_id == 0)
            given.table.runs[i].used = false;
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_contains(result.answer, "slow softmax by 1");
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].used &= given.table.runs[i].run->repeat == 1;
    result = when_asked(&given, "contention", NULL);
    assert_contains(result.answer, "more blocks would tell");
    given_end(&given);
}

/* From within a run nobody knows how far the next would be. */
LAB_TEST(one_block_says_that_it_is_one) {
    struct phase_given again = {.name = "baseline_again", .place = "alone"};
    const struct phase_given *const phases[] = {&baseline, &again};
    struct given_study given;
    given_begin(&given, "contention");
    for (int i = 0; i < 2; i++)
        given_add(&given, (struct given_run){.model = "softmax",
                                             .rate = 10000,
                                             .suffix = i ? "_baseline_again" : "_baseline",
                                             .phase = phases[i]->name,
                                             .test = test_of(&given, phases[i]),
                                             .iterations = 400,
                                             .spread = 0.01});
    struct lab_analysis_result result = when_asked(&given, "contention", NULL);
    assert_says(result.answer, "slows nothing: no slow-down larger than 2.0 % within one run each");
    assert_says(result.answer, "repeat=5");
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
