/* What a dry run says about time and disk: what is known, and what isn't. */
#include "study_fixture.h"

#include "base/json.h"

static struct lab_plan plan_of(struct lab_plan_run runs[48]) {
    static const struct lab_run_rank rank = {0, "cpu:0", 0};
    static const char *const no_series[] = {NULL};
    static struct lab_value options = {.type = LAB_VALUE_MAP};
    static const struct lab_machine machine;
    static struct lab_device_ref device = {.name = "cpu:0", .description = "2 cores"};
    for (int i = 0; i < 48; i++)
        runs[i] = (struct lab_plan_run){.id = "gpu0_numa0_vit0x0x0",
                                        .workload = "vit",
                                        .label = "vit0x0x0",
                                        .options = &options,
                                        .ranks = &rank,
                                        .rank_count = 1,
                                        .timeout_s = 300,
                                        .series = no_series,
                                        .point_count = 1};
    return (struct lab_plan){.option = "numa_study",
                             .study = "numa_locality_study",
                             .output_dir = "outputs",
                             .selector = "cpu",
                             .devices = {&device, 1},
                             .machine = &machine,
                             .runs = runs,
                             .run_count = 48,
                             .point_count = 48,
                             .job_count = 1,
                             .repeat = 1,
                             .max_workers = 1};
}

/* As it is where none of them is like any that has run. */
#define NOTHING_KNOWN                                                                              \
    { .expected_s = NAN, .unknown = 48, .guessed = 48, .most_s = 14400, .disk_bytes = 81920 }

static void assert_shown(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                         bool json, const char *part) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, out);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_report_add_plan(doc, plan, estimate);
    if (json)
        lab_json_write(lab_doc_value(doc, &arena), 0, &out);
    else
        lab_doc_write(doc, "text", (struct lab_style){.columns = 200, .unicode = true}, &out);
    assert_contains(out.text, part);
}

static void assert_says(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                        const char *part) {
    assert_shown(plan, estimate, false, part);
}

static void assert_json(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                        const char *part) {
    assert_shown(plan, estimate, true, part);
}

/* Given names wider than the terminal that differ in the middle, then that is not cut. */
LAB_TEST(names_of_runs_stay_distinct) {
    static const char id[] = "gpu0+1+2+3_numa0_batch_size256_ddp_backendnccl_optimizersgd_find_unus"
                             "ed_parametersfalse_precisionbf16";
    static const char other[] = "gpu0+1+2+3_numa0_batch_size256_ddp_backendnccl_optimizeradam_find_"
                                "unused_parametersfalse_precisionbf16";
    struct lab_plan_run runs[48];
    struct lab_plan plan = plan_of(runs);
    struct lab_plan_estimate estimate = NOTHING_KNOWN;
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, out);
    runs[0].id = id;
    runs[1].id = other;
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_report_add_plan(doc, &plan, &estimate);
    lab_doc_write(doc, "text", (struct lab_style){.columns = 80, .unicode = true}, &out);
    assert_contains(out.text, "sgd");
    assert_contains(out.text, "adam");
}

LAB_TEST(runs_are_points_times_repeats) {
    struct lab_plan_run runs[48];
    struct lab_plan plan = plan_of(runs);
    struct lab_plan_estimate estimate = NOTHING_KNOWN;
    assert_says(&plan, &estimate, "numa_study: 48 points × 1 repeat = 48 runs\n");
    plan.repeat = 4;
    plan.point_count = 12;
    assert_says(&plan, &estimate, "numa_study: 12 points × 4 repeats = 48 runs\n");
    assert_says(&plan, &estimate, "in 4 blocks of all 12 points");
    plan.point_count = 13; /* two of them are one run */
    assert_says(&plan, &estimate, "numa_study: 13 points, 12 distinct × 4 repeats = 48 runs\n");
}

LAB_TEST(nothing_like_it_has_run) {
    struct lab_plan_run runs[48];
    struct lab_plan plan = plan_of(runs);
    struct lab_plan_estimate estimate = NOTHING_KNOWN;
    assert_says(&plan, &estimate,
                "  Time      at most 4 h by their time-outs and retries; no comparable run on this "
                "machine\n");
    assert_json(&plan, &estimate,
                "\"expected_s\": null, \"expected_unknown\": 48, \"expected_guessed\": 48, "
                "\"expected_by_duration\": 0, "
                "\"expected_most_s\": 14400.0, "
                "\"disk_bytes\": 81920");
    plan.budget_s = 600;
    assert_says(&plan, &estimate,
                "at most 4 h by their time-outs and retries, and no run starts after 10 min; no "
                "comparable run");
}

LAB_TEST(earlier_runs_tell) {
    struct lab_plan_run runs[48];
    struct lab_plan plan = plan_of(runs);
    struct lab_plan_estimate estimate = NOTHING_KNOWN;
    estimate.expected_s = 731;
    estimate.unknown = 3;
    estimate.guessed = 5;
    estimate.most_s = 7200;
    estimate.disk_bytes = 1258291;
    estimate.earlier = true;
    assert_says(&plan, &estimate,
                "  Time      takes about 12 min (from earlier runs here; 5 of 48 runs estimated "
                "from others), at "
                "most 2 h by their time-outs and retries\n"
                "  Disk      writes about 1.20 MiB\n");
    assert_json(&plan, &estimate,
                "\"expected_s\": 731.0, \"expected_unknown\": 3, \"expected_guessed\": 5, "
                "\"expected_by_duration\": 0, "
                "\"expected_most_s\": 7200.0, "
                "\"disk_bytes\": 1258291");
    estimate.unknown = estimate.guessed = 0;
    assert_says(&plan, &estimate, "takes about 12 min (from earlier runs here), at most");
    estimate.brief = 3;
    assert_says(&plan, &estimate,
                "12 min (from earlier runs here and 3 short runs just made), at most");
    estimate.earlier = false;
    assert_says(&plan, &estimate, "takes about 12 min (from 3 short runs just made), at most");
}

LAB_TEST(a_duration_that_was_asked_for_is_no_history) {
    struct lab_plan_run runs[48];
    struct lab_plan plan = plan_of(runs);
    struct lab_plan_estimate estimate = NOTHING_KNOWN;
    estimate.expected_s = 7704;
    estimate.unknown = estimate.guessed = 0;
    estimate.by_duration = 48;
    estimate.earlier = true;
    assert_says(&plan, &estimate, "takes about 2.14 h (by experiment.duration), at most");
    assert_json(&plan, &estimate, "\"expected_by_duration\": 48");
    estimate.by_duration = 12;
    assert_says(&plan, &estimate,
                "takes about 2.14 h (from earlier runs here; 12 of 48 runs by "
                "experiment.duration), at most");
}
