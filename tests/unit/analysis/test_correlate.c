/* Whether `correlate` finds what goes together with iterations, and nothing else. */
#include "resource_fixture.h"

#include "analysis/analysis_resource.h"

#include <stdlib.h>

struct noise { /* pseudo-random, the same for the same time */
    uint64_t seed;
    double around, width;
};

static double drawn(uint64_t seed, double seconds) {
    return lab_random_uniform(seed, (uint64_t)llround(seconds * 1000));
}

static double noisy(double seconds, void *context) {
    const struct noise *noise = context;
    return noise->around + noise->width * (drawn(noise->seed, seconds) - 0.5);
}

static double constant(double seconds, void *context) {
    (void)seconds;
    return *(const double *)context;
}

/* A neighbour that works in bursts of random length: 1 while it does. */
static bool burst(double seconds) {
    return lab_random_uniform(77, (uint64_t)(seconds / 0.7)) > 0.6;
}

static double neighbour_core(double seconds, void *context) {
    /* a reading tells of the time before it */
    return (burst(seconds - 0.05) ? 90 : 5) + noisy(seconds, context);
}

static double slowed(double seconds, void *context) {
    return *(const double *)context * (burst(seconds) ? 1.2 : 1);
}

static double steady(double seconds, void *context) {
    (void)seconds;
    return *(const double *)context;
}

static double busy_with_pace(double seconds, void *context) {
    return (burst(seconds - 0.05) ? 70 : 90) + noisy(seconds, context);
}

static double ten_ms = 0.01, total = 24 * 1073741824.0;
static struct noise small = {5, 0, 4}, other = {6, 4e9, 4e9}, more = {8, 60, 20};

static struct given_run on_gpu(int gpu) {
    return (struct given_run){.model = "softmax", .gpu = gpu, .rate = 1000, .spread = 0.02};
}

/* Two GPUs, GPU 1 disturbed by what runs on CPU 3; forty unrelated columns beside. */
static struct beside add_samples(struct given_study *given, struct lab_study_run *run,
                                 bool disturbed) {
    static struct noise unrelated[40];
    struct beside beside = given_samples(given, run, 0.1);
    for (int g = 0; g < 2; g++) {
        struct lab_track *gpu = given_entity(&beside, LAB_ENTITY_GPU, g);
        given_column(&beside, gpu, LAB_METRIC_UTILIZATION, -1, 1,
                     g == 1 && disturbed ? busy_with_pace : noisy, g == 1 ? &small : &more);
        given_column(&beside, gpu, LAB_METRIC_MEMORY_TOTAL, -1, 1, constant, &total);
        given_column(&beside, gpu, LAB_METRIC_PCIE_TX_RATE, -1, 1, noisy, &other);
    }
    struct lab_track *cpu = given_entity(&beside, LAB_ENTITY_CPU, 0);
    for (int core = 0; core < 40; core++) {
        unrelated[core] = (struct noise){(uint64_t)(1000 * run->run->number + core), 50, 60};
        given_column(&beside, cpu, LAB_METRIC_CORE_UTILIZATION, core, 1,
                     core == 3 ? neighbour_core : noisy, core == 3 ? &small : &unrelated[core]);
    }
    return beside;
}

LAB_TEST(test_the_noisy_neighbour_is_named_first) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_study_run *quiet = given_paced(&given, on_gpu(0), 20, steady, &ten_ms);
    add_samples(&given, quiet, false);
    struct lab_study_run *slow = given_paced(&given, on_gpu(1), 20, slowed, &ten_ms);
    add_samples(&given, slow, true);
    /* within one run: a value and no verdict */
    struct lab_analysis_result result = when_asked(&given, "correlate");
    if (!lab_str_starts(result.answer, "Iteration time on GPU 1 and the utilisation of CPU 3: "
                                       "inconclusive (ρ = 0."))
        fail_msg("%s", result.answer);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_INCONCLUSIVE);
    struct given_run second = on_gpu(1);
    second.repeat = 1;
    slow = given_paced(&given, second, 20, slowed, &ten_ms);
    add_samples(&given, slow, true);
    result = when_asked(&given, "correlate");
    if (!lab_str_starts(result.answer,
                        "Iteration time on GPU 1 correlates with the utilisation of CPU 3 (ρ = 0."))
        fail_msg("%s", result.answer);
    assert_contains(result.answer, "], 95% CI, 2 runs, ");
    assert_contains(result.answer, " independent windows). 1 of ");
    assert_contains(result.answer, " tested is a possible cause.");
    assert_string_equal(cell_of(&result, "findings", 0, "resource")->text, "core_utilization:3");
    assert_string_equal(cell_of(&result, "findings", 0, "device")->text, "GPU 1");
    assert_true(cell_of(&result, "findings", 0, "spearman")->low > 0.4);
    assert_true(cell_of(&result, "findings", 0, "spearman")->high < 1);
    assert_true(cell_of(&result, "findings", 0, "windows")->value > 150);
    assert_true(cell_of(&result, "findings", 0, "effective_windows")->value <
                cell_of(&result, "findings", 0, "windows")->value);
    /* its own utilisation falls as well, but is no cause */
    bool own = false;
    for (int i = 0; i < table_of(&result, "findings")->row_count; i++)
        if (lab_str_equal(cell_of(&result, "findings", i, "resource")->text, "gpu1.utilization")) {
            assert_string_equal(cell_of(&result, "findings", i, "role")->text, "own activity");
            own = true;
        }
    assert_true(own);
    /* constants are left out and counted: both GPUs' memory, beside each device */
    assert_int_equal(figure_of(&result, "constant")->value, 4);
    assert_int_equal(figure_of(&result, "resources")->value, 2 * (2 * 3 + 40));
    assert_string_equal(result.claims[0].kind, "correlate.resource");
    assert_string_equal(result.claims[0].subject, "GPU 1, utilisation of CPU 3");
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_YES);
    given_end(&given);
}

LAB_TEST(test_bursts_are_told_as_spikes) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_study_run *slow = given_paced(&given, on_gpu(1), 60, slowed, &ten_ms);
    add_samples(&given, slow, true);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    const struct lab_doc_table *spikes = table_of(&result, "spikes");
    bool found = false;
    for (int i = 0; i < spikes->row_count; i++)
        found |=
            lab_str_equal(cell_of(&result, "spikes", i, "resource")->text, "core_utilization:3");
    /* bursts fill 40 % of the time here: too many to be spikes */
    assert_false(found);
    given_end(&given);
}

/* Short and rare: a tenth of the time. */
static bool rare(double seconds) {
    return seconds >= 0 && fmod(seconds, 3) < 0.3;
}

static double rare_core(double seconds, void *context) {
    return (rare(seconds - 0.05) ? 95 : 5) + noisy(seconds, context);
}

static double slowed_rarely(double seconds, void *context) {
    return *(const double *)context * (rare(seconds) ? 1.3 : 1);
}

LAB_TEST(test_rare_bursts_are_spikes_with_their_cost) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_study_run *run = given_paced(&given, on_gpu(1), 60, slowed_rarely, &ten_ms);
    struct beside beside = given_samples(&given, run, 0.1);
    struct lab_track *cpu = given_entity(&beside, LAB_ENTITY_CPU, 0);
    given_column(&beside, cpu, LAB_METRIC_CORE_UTILIZATION, 7, 1, rare_core, &small);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_string_equal(cell_of(&result, "spikes", 0, "resource")->text, "core_utilization:7");
    assert_true(cell_of(&result, "spikes", 0, "events")->value >= 18);
    assert_true(cell_of(&result, "spikes", 0, "time_change")->low > 0.2);
    assert_true(cell_of(&result, "spikes", 0, "time_change")->high < 0.4);
    assert_string_equal(result.claims[result.claim_count - 1].kind, "correlate.resource");
    given_end(&given);
}

LAB_TEST(test_where_nothing_goes_together_it_says_what_would_have_been_seen) {
    struct given_study given;
    given_begin(&given, "quiet");
    given.random = 5000;
    struct given_run row = on_gpu(0);
    for (row.repeat = 0; row.repeat < 2; row.repeat++) {
        struct lab_study_run *run = given_paced(&given, row, 30, steady, &ten_ms);
        add_samples(&given, run, false);
    }
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_int_equal(figure_of(&result, "found")->value, 0);
    assert_contains(result.answer, "No sampled resource correlates with iteration time (");
    assert_contains(result.answer, "would have been detected");
    assert_int_equal(result.claim_count, 1);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NO);
    assert_true(result.claims[0].bound > 0.3 && result.claims[0].bound < 0.95);
    given_end(&given);
}

/* Points differ in pace and in load: that alone must not count. */
static double heavy = 80, light = 20, twenty_ms = 0.02;
static double loaded(double seconds, void *context) {
    return *(const double *)context + 5 * (drawn(42, seconds) - 0.5);
}

LAB_TEST(test_different_points_are_not_held_against_each_other) {
    struct given_study given;
    given_begin(&given, "two");
    for (int model = 0; model < 2; model++) {
        struct given_run row = on_gpu(0);
        row.model = model ? "gemm" : "softmax";
        struct lab_study_run *run =
            given_paced(&given, row, 20, steady, model ? &twenty_ms : &ten_ms);
        struct beside beside = given_samples(&given, run, 0.1);
        struct lab_track *cpu = given_entity(&beside, LAB_ENTITY_CPU, 0);
        given_column(&beside, cpu, LAB_METRIC_CPU_UTILIZATION, -1, 1, loaded,
                     model ? &heavy : &light);
    }
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_int_equal(figure_of(&result, "found")->value, 0);
    assert_int_equal(figure_of(&result, "tested")->value, 2);
    given_end(&given);
}

/* High in one window of ten: all others lie below the mean. */
static double rarely(double seconds, void *context) {
    return noisy(seconds, context) + (drawn(91, seconds) > 0.9 ? 100 : 0);
}

LAB_TEST(test_points_that_vary_differently_are_held_against_themselves) {
    struct given_study given;
    given_begin(&given, "two models");
    for (int i = 0; i < 20; i++) {
        bool second = i % 2;
        struct given_run row = on_gpu(0);
        row.model = second ? "gemm" : "softmax";
        row.spread = second ? 0.05 : 0.01;
        row.repeat = i / 2;
        struct lab_study_run *run = given_paced(&given, row, 2, steady, &ten_ms);
        struct beside beside = given_samples(&given, run, 0.1);
        given_column(&beside, given_entity(&beside, LAB_ENTITY_CPU, 0), LAB_METRIC_CORE_UTILIZATION,
                     0, 1, second ? noisy : rarely, &small);
    }
    /* most of the first model's windows have less of the core than its mean, and less spread than
     * the other's: that says nothing of what the core does */
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_int_equal(table_of(&result, "findings")->row_count, 0);
    for (int i = 0; i < table_of(&result, "tested")->row_count; i++)
        assert_true(fabs(cell_of(&result, "tested", i, "spearman")->value) < 0.3);
    given_end(&given);
}

LAB_TEST(test_slow_metrics_have_windows_of_a_second) {
    struct given_study given;
    given_begin(&given, "slow");
    struct lab_study_run *run = given_paced(&given, on_gpu(0), 40, slowed, &ten_ms);
    struct beside beside = given_samples(&given, run, 0.1);
    struct lab_track *gpu = given_entity(&beside, LAB_ENTITY_GPU, 0);
    given_column(&beside, gpu, LAB_METRIC_POWER_LIMIT, -1, 10, noisy, &more);
    given_column(&beside, gpu, LAB_METRIC_SM_CLOCK, -1, 1, noisy, &more);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    for (int i = 0; i < table_of(&result, "tested")->row_count; i++) {
        bool slow =
            lab_str_equal(cell_of(&result, "tested", i, "resource")->text, "gpu0.power_limit");
        double length_s = cell_of(&result, "tested", i, "window_ms")->value;
        assert_true(fabs(length_s - (slow ? 1 : 0.1)) < 0.01);
        assert_true(fabs(cell_of(&result, "tested", i, "windows")->value - (slow ? 39 : 399)) < 3);
    }
    given_end(&given);
}

/* What a pipeline's first iterations take longer is the measurement's, not the resource's. */
LAB_TEST(test_refills_are_in_no_window) {
    struct given_study given;
    given_begin(&given, "pipeline");
    struct given_run row = on_gpu(0);
    row.spread = 0;
    struct lab_study_run *run = given_paced(&given, row, 20, steady, &ten_ms);
    given_refills(&given, run, 17);
    struct beside beside = given_samples(&given, run, 0.1);
    struct lab_track *cpu = given_entity(&beside, LAB_ENTITY_CPU, 0);
    given_column(&beside, cpu, LAB_METRIC_CPU_UTILIZATION, -1, 1, noisy, &more);
    const struct lab_study_run *runs[] = {run};
    struct lab_resource resource = {
        .kind = LAB_ENTITY_CPU, .metric = LAB_METRIC_CPU_UTILIZATION, .instance = -1};
    struct lab_rank_times paces;
    struct lab_windows windows;
    lab_rank_times_make(runs, 1, 0, &given.arena, &paces);
    lab_windows_init(&windows);
    assert_true(lab_windows_fill(&windows, &paces, &resource, 0));
    assert_true(windows.count > 100);
    for (size_t i = 0; i < windows.count; i++) {
        assert_true(fabs(windows.time[i] - 1) < 1e-6);
        assert_true(windows.spread[i] < 1e-3);
    }
    lab_windows_release(&windows);
    given_end(&given);
}

static double half_s = 0.5;
LAB_TEST(test_an_iteration_longer_than_a_window_is_one) {
    struct given_study given;
    given_begin(&given, "long");
    struct given_run row = on_gpu(0);
    struct lab_study_run *run = given_paced(&given, row, 40, steady, &half_s);
    struct beside beside = given_samples(&given, run, 0.1);
    struct lab_track *cpu = given_entity(&beside, LAB_ENTITY_CPU, 0);
    given_column(&beside, cpu, LAB_METRIC_CPU_UTILIZATION, -1, 1, noisy, &more);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    /* one iteration has no spread */
    assert_int_equal(figure_of(&result, "tested")->value, 1);
    double windows = cell_of(&result, "tested", 0, "windows")->value;
    assert_true(windows > 70 && windows < 82);
    given_end(&given);
}

LAB_TEST(test_counters_count_by_their_rate) {
    struct given_study given;
    given_begin(&given, "counter");
    struct lab_study_run *run = given_paced(&given, on_gpu(0), 60, slowed, &ten_ms);
    struct beside beside = given_samples(&given, run, 0.1);
    struct lab_track *numa = given_entity(&beside, LAB_ENTITY_NUMA, 0);
    given_column(&beside, numa, LAB_METRIC_NODE_MISS, 1, 1, constant, &heavy);
    int64_t sum = 0; /* grows fast while the neighbour works */
    for (size_t i = 0; i < numa->count; i++)
        numa->values[0][i] = sum += burst(0.1 * (double)i - 0.05) ? 5000 : 10;
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_string_equal(cell_of(&result, "findings", 0, "resource")->text, "node_miss:1");
    assert_true(cell_of(&result, "findings", 0, "spearman")->low > 0.4);
    given_end(&given);
}

/* --- what is no cause --- */

LAB_TEST(heat_follows_from_the_work_and_is_no_cause) {
    struct lab_resource resource = {.kind = LAB_ENTITY_GPU, .metric = LAB_METRIC_TEMPERATURE};
    assert_int_equal(lab_resource_role(&resource, 0), LAB_RESOURCE_OWN);
    assert_int_equal(lab_resource_role(&resource, 1), LAB_RESOURCE_OUTSIDE);
    resource.metric = LAB_METRIC_SM_CLOCK;
    assert_int_equal(lab_resource_role(&resource, 0), LAB_RESOURCE_STATE);
}

static struct lab_resource_correlation a_tie(enum lab_resource_role role, double r, double p) {
    return (struct lab_resource_correlation){
        .resource = {.kind = LAB_ENTITY_CPU, .metric = LAB_METRIC_CPU_UTILIZATION, .instance = -1},
        .role = role,
        .effective = 100,
        .spearman = {.r = r, .p = p, .interval = {NAN, NAN, NAN}}};
}

#define TIES 40

LAB_TEST(test_own_pace_makes_no_room_for_causes) {
    /* given thirty figures that follow the pace, and ten of others, one with p = 2 % */
    struct lab_resource_correlation items[TIES];
    struct lab_resource_correlations correlations = {
        .items = items, .count = TIES, .window_s = NAN};
    for (int i = 0; i < 30; i++)
        items[i] = a_tie(LAB_RESOURCE_OWN, -0.7, 1e-6);
    for (int i = 30; i < TIES; i++)
        items[i] = a_tie(LAB_RESOURCE_OUTSIDE, 0.1, 0.5);
    items[TIES - 1] = a_tie(LAB_RESOURCE_OUTSIDE, 0.4, 0.02);
    lab_resource_correlations_adjust(&correlations, 1);
    /* then one of ten with p = 2 % is what chance brings */
    for (int i = 0; i < TIES; i++)
        assert_int_equal(correlations.items[i].found,
                         correlations.items[i].role == LAB_RESOURCE_OWN);
}

LAB_TEST(test_a_sure_but_weak_correlation_is_no_cause) {
    struct lab_resource_correlation items[] = {a_tie(LAB_RESOURCE_OUTSIDE, 0.2, 1e-9),
                                               a_tie(LAB_RESOURCE_OUTSIDE, 0.35, 1e-9),
                                               a_tie(LAB_RESOURCE_OUTSIDE, -0.6, 1e-9)};
    struct lab_resource_correlations correlations = {.items = items, .count = 3, .window_s = NAN};
    lab_resource_correlations_adjust(&correlations, 1);
    assert_false(items[0].found);
    assert_true(items[1].found);
    assert_true(items[2].found &&
                !lab_resource_correlation_is_suspect(&items[2])); /* what has the wrong sign */
}

LAB_TEST(test_what_a_gang_mate_does_is_no_cause) {
    static double bytes = 1e9;
    struct given_study given;
    given_begin(&given, "gang");
    struct lab_study_run *run = given_paced(&given, on_gpu(2), 30, slowed, &ten_ms);
    struct lab_study_rank *ranks = lab_arena_alloc(&given.arena, 2, sizeof *ranks);
    ranks[0] = run->ranks[0];
    ranks[1] = (struct lab_study_rank){.gpu_id = 0, .device = "cuda:0", .rate = 1000};
    run->ranks = ranks;
    run->rank_count = 2;
    struct beside beside = given_samples(&given, run, 0.1);
    struct noise traffic = {9, bytes, bytes};
    struct lab_track *mate = given_entity(&beside, LAB_ENTITY_GPU, 0);
    given_column(&beside, mate, LAB_METRIC_UTILIZATION, -1, 1, neighbour_core, &small);
    given_column(&beside, mate, LAB_METRIC_PCIE_RX_RATE, -1, 1, noisy, &traffic);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_string_equal(result.answer,
                        "Not tested: only the activity of the runs' own GPUs was sampled.");
    for (int i = 0; i < table_of(&result, "tested")->row_count; i++)
        assert_string_equal(cell_of(&result, "tested", i, "role")->text, "same run's activity");
    assert_string_equal(table_of(&result, "findings")->title,
                        "Follows from the iterations (expected)");
    assert_true(table_of(&result, "findings")->aside);
    assert_int_equal(figure_of(&result, "tested")->value, 0);
    assert_int_equal(figure_of(&result, "expected")->value, table_of(&result, "tested")->row_count);
    assert_contains(result.parts[0].notes[1], "Other GPUs of a run (utilisation of GPU 0: ρ = ");
    /* but beside a run of GPU 2 alone it may be one */
    run->rank_count = 1;
    result = when_asked(&given, "correlate");
    assert_true(
        lab_str_starts(result.answer, "Iteration time on GPU 2 and the utilisation of GPU 0: "));
    given_end(&given);
}

LAB_TEST(test_each_metric_has_a_name_of_its_own) {
    LAB_AUTO(arena, arena);
    const char *titles[LAB_METRIC_COUNT];
    for (int m = 0; m < LAB_METRIC_COUNT; m++) {
        struct lab_resource resource = {
            .kind = LAB_ENTITY_GPU, .metric = (enum lab_metric_id)m, .instance = -1};
        titles[m] = lab_resource_title(&resource, &arena);
        for (int k = 0; k < m; k++)
            if (lab_str_equal(titles[m], titles[k]))
                fail_msg("%s and %s are both called '%s'", lab_metric((enum lab_metric_id)m)->name,
                         lab_metric((enum lab_metric_id)k)->name, titles[m]);
    }
}

/* --- what is lacking --- */

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "nothing");
    struct lab_analysis_result result = when_asked(&given, "correlate");
    assert_string_equal(result.answer, "Not tested: there is no run.");
    given_end(&given);

    given_begin(&given, "no iterations");
    struct given_run row = on_gpu(0);
    given_add(&given, row);
    result = when_asked(&given, "correlate");
    assert_contains(result.answer, "no iterations were kept");
    given_end(&given);

    given_begin(&given, "no samples");
    row.iterations = 500;
    given_add(&given, row);
    result = when_asked(&given, "correlate");
    assert_contains(result.answer, "nothing was sampled");
    assert_null(chart_of(&result, "correlate_top"));
    given_end(&given);

    given_begin(&given, "elsewhere");
    struct lab_study_run *run = given_paced(&given, on_gpu(0), 10, steady, &ten_ms);
    add_samples(&given, run, false);
    for (int t = 0; t < run->recording->track_count; t++)
        for (size_t i = 0; i < run->recording->tracks[t].count; i++)
            run->recording->tracks[t].times_ns[i] += 3600000000000LL;
    result = when_asked(&given, "correlate");
    assert_contains(result.answer, "no sample lies within the iterations");
    given_end(&given);

    given_begin(&given, "constant");
    run = given_paced(&given, on_gpu(0), 10, steady, &ten_ms);
    struct beside beside = given_samples(&given, run, 0.1);
    given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, 0), LAB_METRIC_POWER, -1, 1,
                 constant, &heavy);
    result = when_asked(&given, "correlate");
    assert_contains(result.answer, "1 of 1 sampled resources never changed");
    given_end(&given);
}

/* --- pictures --- */

LAB_TEST(test_pictures_show_the_finding_and_the_machine) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_study_run *slow = given_paced(&given, on_gpu(1), 20, slowed, &ten_ms);
    static double none = 0; /* of a GPU that no run has: not drawn */
    struct beside idle = add_samples(&given, slow, true);
    given_column(&idle, given_entity(&idle, LAB_ENTITY_GPU, 2), LAB_METRIC_UTILIZATION, -1, 1,
                 constant, &none);
    struct lab_analysis_result result = when_asked(&given, "correlate");
    const struct lab_chart *top = chart_of(&result, "correlate_top");
    assert_non_null(top);
    assert_int_equal(top->panel_count, 1);
    assert_string_equal(top->panels[0].x.title, "Utilisation of CPU 3 [%]");
    assert_string_equal(top->panels[0].y.title, "Iteration time [ms]");
    for (size_t i = 0; i < top->panels[0].series[0].count; i++)
        assert_true(top->panels[0].series[0].y[i] > 8 && top->panels[0].series[0].y[i] < 14);
    const struct lab_chart *line = chart_of(&result, "resource_timeline");
    assert_non_null(line);
    /* no memory in use and no CPU as a whole was recorded */
    assert_int_equal(line->panel_count, 2);
    assert_int_equal(line->panels[0].series_count, 2);
    assert_int_equal(line->panels[0].shade_count, 1);
    assert_true(fabs(line->panels[0].shades[0].until - 20) < 0.2);
    given_end(&given);
}
