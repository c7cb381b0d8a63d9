/* A device that is slower than its peers is named, and no other. */
#include "claim_fixture.h"
#include "study_answers.h"

#define GPUS 6

/* `slow`: of GPU 4, on the model that computes; every GPU from its local node and a remote one. */
static void given_machine(struct given_study *given, int runs, double slow, double noise) {
    for (int r = 0; r < runs; r++)
        for (int gpu = 0; gpu < GPUS; gpu++)
            for (int m = 0; m < 2; m++)
                for (int node = 0; node < 2; node++)
                    given_add(given, (struct given_run){.model = m ? "vit32x6x512" : "vit0x0x0",
                                                        .gpu = gpu,
                                                        .node = node,
                                                        .home = gpu / 3,
                                                        .repeat = r,
                                                        .flops = m ? 1e9 : 0,
                                                        .rate = (m ? 500 : 4000) *
                                                                (node == gpu / 3 ? 1 : 0.85) *
                                                                (gpu == 4 && m ? 1 - slow : 1) *
                                                                (1 + noise * given_normal(given))});
}

LAB_TEST(a_device_that_is_slow_by_six_percent_is_named_alone) {
    int named = 0, others = 0, covered = 0;
    for (int study = 0; study < 20; study++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        given.random = (uint64_t)study * 100000;
        given_machine(&given, 5, 0.06, 0.005);
        struct lab_analysis_result result = when_asked(&given, "peers", NULL);
        const struct lab_claim *slow = claim_of(&result, "peers.device", "GPU 4");
        named += slow->verdict == LAB_CLAIM_YES && slow->effect < 0;
        for (int i = 0; i < result.claim_count; i++)
            others += lab_str_equal(result.claims[i].kind, "peers.device") &&
                      !lab_str_equal(result.claims[i].subject, "GPU 4") &&
                      result.claims[i].verdict == LAB_CLAIM_YES;
        const struct lab_claim *model = claim_of(&result, "peers.model", "GPU 4, vit32x6x512");
        covered += model->low <= -0.06 && -0.06 <= model->high;
        assert_says(result.answer, "GPU 4: ");
        assert_says(result.answer, "% lower throughput than its peers, mean of 2 models (95% CI [");
        assert_says(result.answer, "GPU 4, vit32x6x512: ");
        given_end(&given);
    }
    assert_int_equal(named, 20);
    assert_in_range(others, 0, 2);
    assert_in_range(covered, 17, 20);
}

/* A mean over models that copy and others dilutes a fault of compute: where one class alone differs,
 * that is what is said, by the table too. */
LAB_TEST(a_slow_device_is_told_by_class) {
    static const char *const copies = "{\"h2d_gb_per_s\": 6, \"d2h_gb_per_s\": 6, "
                                      "\"compute_utilization\": 0.1}",
                             *const computes = "{\"h2d_gb_per_s\": 60, \"d2h_gb_per_s\": 60, "
                                               "\"compute_utilization\": 0.9}";
    for (int slow_class = 0; slow_class < 3; slow_class++) { /* copies, computes, both */
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int i = 0; i < 5 * 5 * 4; i++) {
            int repeat = i / 20, gpu = i / 4 % 5, m = i % 4;
            bool slow = gpu == 2 && (slow_class == 2 || slow_class == m / 2);
            given_add(&given,
                      (struct given_run){.model = lab_arena_printf(&given.arena, "m%d", m),
                                         .gpu = gpu,
                                         .repeat = repeat,
                                         .samples = 10,
                                         .flops = 1e9 * (m + 1),
                                         .bytes = 6e6,
                                         .rate = (m < 2 ? 10000 : 1000) * (slow ? 0.94 : 1) *
                                                 (1 + 0.001 * given_normal(&given)),
                                         .result = m < 2 ? copies : computes});
        }
        struct lab_analysis_result result = when_asked(&given, "peers", NULL);
        static const char *const told[] = {
            "% lower throughput on 2 transfer-bound models than its peers (",
            "% lower throughput on 2 compute-bound models than its peers (",
            "% lower throughput than its peers, mean of 4 models ("};
        assert_says(result.answer, told[slow_class]);
        const struct lab_doc_cell *other = /* the class that isn't slow */
            cell(&result, 0, "devices", 2, slow_class ? "transfer_bound" : "compute_bound");
        assert_true(slow_class == 2 ? other->high < -0.05 : other->low > -0.005);
        const struct lab_chart_panel *drawn = &result.charts[0].panels[0];
        static const char *const titles[] = {"all models", "transfer-bound models",
                                             "compute-bound models"};
        const struct lab_chart_series *main = &drawn->series[(slow_class + 1) % 3];
        assert_int_equal(drawn->series_count, 3); /* the sentence's point is among them */
        assert_string_equal(main->title, titles[(slow_class + 1) % 3]);
        assert_true(fabs(main->y[2] + 6) < 0.5);
        struct lab_analysis_result recommended = when_asked(&given, "recommend", NULL);
        assert_says(recommended.answer, told[slow_class]);
        given_end(&given);
    }
}

/* A mean of models that disagree says so; the others are compared without it. */
LAB_TEST(models_that_disagree_are_told) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int i = 0; i < 5 * 4 * 2; i++) {
        int repeat = i / 8, gpu = i / 2 % 4, model = i % 2;
        given_add(&given, (struct given_run){.model = model ? "b" : "a",
                                             .gpu = gpu,
                                             .repeat = repeat,
                                             .flops = 1e9 * (model + 1),
                                             .rate = 1000 *
                                                     (gpu     ? 1
                                                      : model ? 1.1
                                                              : 0.98) *
                                                     (1 + .001 * given_normal(&given))});
    }
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    assert_says(result.answer, "GPU 0: 3.");
    assert_says(result.answer, " than its peers, mean of 2 models, -");
    assert_says(result.answer, "% by model (95% CI");
    assert_says(result.parts[0].notes[0], "GPU 0 differs and is no reference for the others");
    given_end(&given);
}

LAB_TEST(of_equal_devices_none_is_called_slow) {
    int studies = 0;
    for (int study = 0; study < 100; study++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        given.random = (uint64_t)study * 100000;
        given_machine(&given, 3 + study % 3, 0, 0.01);
        struct lab_analysis_result result = when_asked(&given, "peers", NULL);
        bool any = false;
        for (int i = 0; i < result.claim_count; i++)
            any |= result.claims[i].verdict == LAB_CLAIM_YES;
        studies += any;
        if (!any && strstr(result.answer, "No difference")) /* nodes alone differ, by 15% */
            assert_says(result.answer, " devices and their peers at the same NUMA distance (");
        given_end(&given);
    }
    assert_in_range(studies, 0, 10); /* the 99 % point at 5 % */
}

LAB_TEST(one_run_a_point_gives_values_and_no_verdict) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given_machine(&given, 1, 0.3, 0.001);
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    const struct lab_claim *slow = claim_of(&result, "peers.device", "GPU 4");
    assert_int_equal(slow->verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_true(slow->effect < -0.1);
    assert_contains(result.answer, "Inconclusive for 6 of 6 devices: GPU 4 differs most from its "
                                   "peers, by -");
    given_end(&given);
}

LAB_TEST(what_else_differs_about_a_slow_device_is_told) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int r = 0; r < 5; r++)
        for (int gpu = 0; gpu < 4; gpu++)
            given_add(&given,
                      (struct given_run){
                          .model = "vit",
                          .gpu = gpu,
                          .repeat = r,
                          .rate = (gpu == 2 ? 900 : 1000) * (1 + 0.002 * given_normal(&given)),
                          .result = gpu == 2 ? "{\"sm_clock_mhz\": 1710, \"power_w\": 300}"
                                             : "{\"sm_clock_mhz\": 1980, \"power_w\": 301}"});
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    assert_says(result.answer, "% lower throughput than its peers (");
    assert_says(result.answer, "It also differs in: SM clock 1710 MHz (peers 1980).");
    given_end(&given);
}

/* Peers that draw the same power show a difference that peers that scatter would hide. */
LAB_TEST(lower_power_of_a_slow_device_is_a_symptom) {
    for (int scatter = 0; scatter < 2; scatter++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int r = 0; r < 5; r++)
            for (int gpu = 0; gpu < 5; gpu++) {
                double power = gpu == 2 ? 274.6 : 276.6 + (scatter ? 6 : 0.2) * (gpu - 2);
                given_add(
                    &given,
                    (struct given_run){
                        .model = "vit",
                        .gpu = gpu,
                        .repeat = r,
                        .rate = (gpu == 2 ? 900 : 1000) * (1 + 0.002 * given_normal(&given)),
                        .result = lab_arena_printf(
                            &given.arena, "{\"sm_clock_mhz\": 2520, \"power_w\": %.1f}", power)});
            }
        struct lab_analysis_result result = when_asked(&given, "peers", NULL);
        assert_string_equal(cell(&result, 0, "devices", 2, "differs")->text, "");
        assert_string_equal(cell(&result, 0, "devices", 2, "symptoms")->text,
                            scatter ? "" : "power 275 W (peers 277)");
        assert_string_equal(cell(&result, 0, "devices", 2, "alike")->text,
                            scatter ? "SM clock, power, Xid errors" : "SM clock, Xid errors");
        assert_string_equal(cell(&result, 0, "devices", 1, "symptoms")->text, "");
        given_end(&given);
    }
}

LAB_TEST(of_two_halves_the_slow_one_is_named) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int r = 0; r < 5; r++)
        for (int gpu = 0; gpu < 4; gpu++)
            given_add(&given, (struct given_run){.model = "vit",
                                                 .gpu = gpu,
                                                 .repeat = r,
                                                 .rate = (gpu < 2 ? 1000 : 940) *
                                                         (1 + 0.003 * given_normal(&given))});
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    for (int i = 0; i < result.claim_count; i++) {
        bool slow = strcmp(result.claims[i].subject, "GPU 2") >= 0;
        assert_int_equal(result.claims[i].verdict == LAB_CLAIM_YES, slow);
        assert_true(!slow || (result.claims[i].low <= -0.06 && result.claims[i].high >= -0.06));
    }
    assert_int_equal(result.claims[0].scope_count,
                     2); /* GPU 0, against GPU 1: the reference first */
    assert_says(result.claims[0].scope[0], "gpu1");
    given_end(&given);
}

/* Given slices whose tunings chose other configurations, nothing is said of the devices. */
LAB_TEST(other_configurations_of_a_kernel_are_not_compared) {
    struct given_study given;
    given_begin(&given, "contention");
    for (int r = 0; r < 5; r++)
        for (int gpu = 0; gpu < 4; gpu++)
            given_add(&given, (struct given_run){
                                  .model = "flash",
                                  .gpu = gpu,
                                  .repeat = r,
                                  .rate = 1000 + r - 50 * gpu,
                                  .result = gpu % 2 ? "{\"configuration\": {\"tile\": 32}}"
                                                    : "{\"configuration\": {\"tile\": 96}}"});
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    assert_says(result.untested, "the same workload and kernel configuration.");
    given_end(&given);
}

LAB_TEST(a_point_without_throughput_spoils_no_other) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int r = 0; r < 5; r++)
        for (int gpu = 0; gpu < 4; gpu++)
            for (int m = 0; m < 2; m++)
                given_add(&given, (struct given_run){.model = m ? "gemm" : "vit",
                                                     .gpu = gpu,
                                                     .repeat = r,
                                                     .rate = gpu == 1 && m ? 0
                                                             : gpu == 2    ? 900 + r
                                                                           : 1000 + r});
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    assert_says(result.answer, "GPU 2: 10.0% lower throughput than its peers");
    assert_int_equal(claim_of(&result, "peers.device", "GPU 1")->verdict, LAB_CLAIM_NO);
    given_end(&given);
}

LAB_TEST(two_devices_have_no_peers) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int r = 0; r < 3; r++)
        for (int gpu = 0; gpu < 2; gpu++)
            given_add(&given,
                      (struct given_run){.model = "vit", .gpu = gpu, .repeat = r, .rate = 10 + r});
    struct lab_analysis_result result = when_asked(&given, "peers", NULL);
    assert_int_equal(result.claim_count, 0);
    assert_says(result.answer, "Not tested");
    given_end(&given);
}
