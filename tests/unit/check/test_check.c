/*
 * test_check.c: checks of simulated machines: each planted fault is found by the test that is for
 * it, a healthy machine passes, and what can't run is never a pass.
 */
#include "check/check.h"

#include "test.h"

#include "base/file/file.h"
#include "device/device.h"
#include "doc/doc.h"
#include "machine/machine.h"

#include <string.h>

static struct lab_machine *here;
static struct lab_arena arena;
static const char *base_text;

static int set_up(void **state) {
    char *text = NULL;
    size_t length;
    (void)state;
    lab_arena_init(&arena);
    ASSERT_OK(lab_machine_open(NULL, &here, err));
    ASSERT_OK(lab_file_read(LAB_TEST_SOURCE_DIR "/conf/machine/h200-8.yaml", 1 << 20, &arena, &text,
                            &length, err));
    base_text = text;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_device_define(NULL, NULL);
    lab_machine_close(here);
    lab_arena_release(&arena);
    return 0;
}

static struct lab_check_setup setup_with(const char *effects, int level) {
    struct lab_check_setup setup = {
        .machine = here, .all_devices = true, .level = level, .seed = 7};
    lab_device_define("m", lab_arena_printf(&arena, "%s%s\n", base_text, effects));
    ASSERT_OK(lab_device_select(here, "sim:m", &arena, &setup.devices, err));
    return setup;
}

static struct lab_check_result check_with(const char *effects, int level) {
    struct lab_check_setup setup = setup_with(effects, level);
    struct lab_check_result result;
    lab_check_run(&setup, &arena, &result);
    return result;
}

static const struct lab_check_finding *failure(const struct lab_check_result *result,
                                               const char *test, const char *subject) {
    for (int i = 0; i < result->count; i++)
        if (result->findings[i].verdict == LAB_CHECK_FAIL &&
            strcmp(result->findings[i].test->name, test) == 0 &&
            strcmp(result->findings[i].subject, subject) == 0)
            return &result->findings[i];
    return NULL;
}

LAB_TEST(a_healthy_machine_passes) {
    struct lab_check_result result = check_with("", 2);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena),
                    "healthy: 8 x NVIDIA H200 (simulated), level 2");
    assert_true(result.simulated);
}

LAB_TEST(each_planted_fault_is_found) {
    static const struct {
        const char *effects;
        int level;
        const char *test, *subject;
        enum lab_check_severity severity;
    } cases[] = {
        {"  link: [{gpu: 3, width: 8}]", 1, "pcie_width", "GPU 3", LAB_CHECK_ISOLATE},
        {"  link: [{gpu: 3, generation: 4}]", 1, "pcie_generation", "GPU 3", LAB_CHECK_ISOLATE},
        {"  power_cap: [{gpu: 2, limit_w: 350}]", 1, "power_limit", "GPU 2", LAB_CHECK_MONITOR},
        {"  errors: [{gpu: 6, ecc_uncorrected: 2}]", 1, "ecc", "GPU 6", LAB_CHECK_RESET},
        {"  errors: [{gpu: 6, ecc_corrected: 5000}]", 1, "ecc", "GPU 6", LAB_CHECK_MONITOR},
        {"  errors: [{gpu: 6, rows_pending: 1}]", 1, "row_remap", "GPU 6", LAB_CHECK_RESET},
        {"  errors: [{gpu: 6, rows_failed: 1}]", 1, "row_remap", "GPU 6", LAB_CHECK_ISOLATE},
        {"  errors: [{gpu: 1, xid: 79}]", 1, "xid", "GPU 1", LAB_CHECK_ISOLATE},
        {"  errors: [{gpu: 1, xid: 999}]", 1, "xid", "GPU 1", LAB_CHECK_MONITOR},
        {"  wrong_node: [{gpu: 4, node: 0}]", 1, "numa_node", "GPU 4", LAB_CHECK_MONITOR},
        {"  wrong_node: [{gpu: 4, node: 0}]", 2, "numa_nearest", "GPU 4", LAB_CHECK_ISOLATE},
        {"  link: [{gpu: 3, width: 8}]", 2, "h2d", "GPU 3, NUMA node 0", LAB_CHECK_ISOLATE},
        {"  power_cap: [{gpu: 2, limit_w: 350}]", 2, "gemm", "GPU 2", LAB_CHECK_ISOLATE},
        {"  dead_nvlink: [{gpus: [2, 5]}]", 2, "p2p", "GPU 5 to GPU 2", LAB_CHECK_RESET},
        {"  slow_gpu: [{gpu: 1, compute: 0.03}]", 2, "gemm", "GPU 1", LAB_CHECK_ISOLATE},
        {"  slow_gpu: [{gpu: 1, compute: 0.03}]", 2, "hbm", "GPU 1", LAB_CHECK_ISOLATE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_check_result result = check_with(cases[i].effects, cases[i].level);
        const struct lab_check_finding *found = failure(&result, cases[i].test, cases[i].subject);
        if (!found) {
            fail_msg("%s: %s", cases[i].effects,
                     lab_check_reason(&result, LAB_CHECK_MONITOR, &arena));
            continue;
        }
        assert_int_equal(found->severity, cases[i].severity);
        assert_int_equal(found->tries, 3);
        assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 1);
        assert_int_equal(lab_check_status(&result, LAB_CHECK_ISOLATE),
                         cases[i].severity == LAB_CHECK_ISOLATE);
        assert_true(lab_str_columns(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena)) <=
                    LAB_CHECK_REASON_COLUMNS);
    }
}

/* Where all links are dead, no pair is slower than its peers. */
LAB_TEST(a_fabric_that_is_dead_is_found) {
    LAB_AUTO(str, pairs);
    struct lab_check_result result;
    for (int i = 0; i < 64; i++)
        if (i / 8 < i % 8)
            lab_str_printf(&pairs, "%s{gpus: [%d, %d]}", pairs.length ? ", " : "", i / 8, i % 8);
    struct lab_check_setup setup =
        setup_with(lab_arena_printf(&arena, "  dead_nvlink: [%s]", pairs.text), 2);
    setup.only = (const char *const[]){"p2p", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena),
                    "below what its NVLinks carry, 450 (+55 more)");
}

LAB_TEST(power_under_load_is_compared_with_the_peers) {
    struct lab_check_setup setup = setup_with("  power_cap: [{gpu: 2, limit_w: 450}]", 2);
    struct lab_check_result result;
    setup.only = (const char *const[]){"load_power", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_non_null(failure(&result, "load_power", "GPU 2"));
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 1);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_RESET), 0);
}

LAB_TEST(a_programs_own_xid_is_no_failure) {
    struct lab_check_result result = check_with("  errors: [{gpu: 1, xid: 31}]", 1);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
}

LAB_TEST(what_could_not_run_is_not_healthy) {
    struct lab_check_setup setup = setup_with("", 1);
    struct lab_check_result result;
    setup.limit_s = 1e-9; /* no test has time */
    lab_check_run(&setup, &arena, &result);
    for (int i = 0; i < result.count; i++)
        assert_int_not_equal(result.findings[i].verdict, LAB_CHECK_PASS);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 2);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena), "not checked: ");
    /* a process that ended early: what it said stays, the rest is broken */
    result = check_with("", 1);
    result.count = 5;
    lab_check_complete(&result, NULL, "the driver didn't answer", &arena);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 2);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena), "didn't answer");
    /* one GPU without a file of its own: nothing to compare with */
    setup = setup_with("", 2);
    setup.devices.count = 1;
    setup.only = (const char *const[]){"gemm", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(result.findings[0].verdict, LAB_CHECK_SKIPPED);
    assert_contains(result.findings[0].reason, "no expected value");
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 2);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena),
                    "not checked: no test could run: gemm: not judged: no expected value");
    /* with facts that passed it is healthy as far as they go, and says how many rates weren't judged */
    setup.only = (const char *const[]){"ecc", "gemm", "hbm", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena),
                    "level 2, 1 passed, 2 skipped (2 not judged)");
}

LAB_TEST(findings_survive_another_process) {
    struct lab_check_result result = check_with("  slow_gpu: [{gpu: 1, compute: 0.1}]", 2);
    const struct lab_check_finding *found = failure(&result, "gemm", "GPU 1");
    struct lab_check_finding back;
    assert_non_null(found);
    assert_int_equal(lab_check_finding_read(lab_check_finding_value(found, &arena), &arena, &back),
                     0);
    assert_ptr_equal(back.test, found->test);
    assert_string_equal(back.reason, found->reason);
    assert_near(back.measured, found->measured, 0);
    /* what it is compared with, and what would pass, are of one reference */
    assert_string_equal(back.group, found->group);
    assert_contains(found->reason, "below the median of 8 GPUs");
    assert_near(found->least, 0.985 * found->expected, 1e-9);
    assert_int_equal(back.verdict, LAB_CHECK_FAIL);
    assert_int_equal(lab_check_finding_read(lab_value_map(&arena), &arena, &back), -1);
    LAB_AUTO(str, text);
    lab_check_write_textfile(&result, LAB_CHECK_MONITOR, 1700000000, &text);
    assert_contains(text.text, "gpulab_check_status{level=\"2\",simulated=\"true\"} 1\n");
    assert_contains(text.text, "test=\"gemm\",severity=\"isolate\",subject=\"GPU 1\"} 1\n");
    assert_contains(text.text, ",unit=\"TFLOP/s\"} ");
}

LAB_TEST(a_fleet_is_learnt_and_compared_with) {
    struct lab_check_setup setup = setup_with("", 2);
    struct lab_check_result result;
    struct lab_expected expected, pooled;
    const char *text;
    setup.learns = true;
    setup.only = (const char *const[]){"gemm", "p2p", "gpu_count", NULL};
    lab_check_run(&setup, &arena, &result);
    ASSERT_OK(lab_check_learn(&result, NULL, &arena, &text, err));
    ASSERT_OK(lab_expected_read(text, strlen(text), "fleet.yaml", &arena, &expected, err));
    const struct lab_expected_value *gemm = lab_expected_get(&expected, "gemm_bf16_tflops");
    assert_int_equal(gemm->seen_count, 24); /* 8 GPUs, three times each */
    assert_near(gemm->value, 672, 5);
    assert_near(gemm->tolerance, 0.015, 0.001);
    assert_int_equal(expected.gpus, 8);
    /* another host of the fleet adds to it */
    ASSERT_OK(lab_check_learn(&result, &expected, &arena, &text, err));
    ASSERT_OK(lab_expected_read(text, strlen(text), "fleet.yaml", &arena, &pooled, err));
    assert_int_equal(lab_expected_get(&pooled, "gemm_bf16_tflops")->seen_count, 48);
    /* by another test, later: what isn't measured then stays as it is */
    struct lab_check_result later;
    setup = setup_with("", 2);
    setup.learns = true;
    setup.only = (const char *const[]){"allreduce", NULL};
    lab_check_run(&setup, &arena, &later);
    ASSERT_OK(lab_check_learn(&later, &expected, &arena, &text, err));
    ASSERT_OK(lab_expected_read(text, strlen(text), "fleet.yaml", &arena, &pooled, err));
    const struct lab_expected_value *same = lab_expected_get(&pooled, "gemm_bf16_tflops");
    assert_near(same->value, gemm->value, 0);
    assert_near(same->tolerance, gemm->tolerance, 0);
    assert_int_equal(same->seen_count, 24);
    /* three sums of one host are too few for their spread to be a tolerance */
    assert_near(lab_expected_get(&pooled, "allreduce_gb_s")->tolerance, 0.1, 1e-9);
    /* a value that was written by hand has nothing that it was learnt from */
    struct lab_expected_value by_hand[] = {{"load_clock_mhz", 1980, 0.05, NULL, 0}};
    struct lab_expected written = {.model = "NVIDIA H200", .values = by_hand, .count = 1};
    ASSERT_OK(lab_check_learn(&later, &written, &arena, &text, err));
    ASSERT_OK(lab_expected_read(text, strlen(text), "fleet.yaml", &arena, &pooled, err));
    assert_near(lab_expected_get(&pooled, "load_clock_mhz")->tolerance, 0.05, 0);
    /* all GPUs of a host 5 % slow: no peer shows it, the fleet does */
    setup = setup_with("  slow_gpu: [{gpu: 0, compute: 0.05}, {gpu: 1, compute: 0.05}, "
                       "{gpu: 2, compute: 0.05}, {gpu: 3, compute: 0.05}, {gpu: 4, compute: 0.05}, "
                       "{gpu: 5, compute: 0.05}, {gpu: 6, compute: 0.05}, {gpu: 7, compute: 0.05}]",
                       2);
    setup.only = (const char *const[]){"gemm", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
    setup.expected = &expected;
    setup.expected_count = 1;
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 1);
    assert_contains(lab_check_reason(&result, LAB_CHECK_MONITOR, &arena), "below the expected");
    /* a failed host teaches nothing, and a host that learns is tested as any other */
    ASSERT_SAYS(lab_check_learn(&result, NULL, &arena, &text, err), "a host with a failure");
    static const char *const faults[] = {"  dead_nvlink: [{gpus: [2, 5]}]",
                                         "  slow_gpu: [{gpu: 3, compute: 0.1}]"};
    for (int i = 0; i < 2; i++) {
        setup = setup_with(faults[i], 2);
        setup.learns = true;
        setup.only = (const char *const[]){"gemm", "p2p", NULL};
        lab_check_run(&setup, &arena, &result);
        assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 1);
        ASSERT_SAYS(lab_check_learn(&result, NULL, &arena, &text, err), "a host with a failure");
    }
    /* one GPU has neither peers nor a file: it is learnt from, and not judged */
    setup = setup_with("", 2);
    setup.learns = true;
    setup.devices.count = 1;
    setup.only = (const char *const[]){"gemm", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(result.findings[0].verdict, LAB_CHECK_SKIPPED);
    ASSERT_OK(lab_check_learn(&result, NULL, &arena, &text, err));
}

LAB_TEST(rows_join_what_is_compared_with_the_same) {
    struct lab_check_setup setup = {.machine = here, .all_devices = true, .level = 3, .seed = 7};
    struct lab_check_result result;
    ASSERT_OK(lab_device_select(here, "sim:l40s-10", &arena, &setup.devices, err));
    setup.limit_s = 20;
    setup.only = (const char *const[]){"h2d", "variation", NULL};
    lab_check_run(&setup, &arena, &result);
    LAB_AUTO(str, text);
    lab_doc_write(lab_check_doc(&result, LAB_CHECK_MONITOR, &arena), "markdown",
                  (struct lab_style){0}, &text);
    assert_contains(text.text, "10 × NVIDIA L40S (simulated), level 3");
    assert_contains(text.text, "| h2d (GB/s) | 10 GPUs, dist. 12 | 2");
    assert_contains(text.text, "| h2d (GB/s) | 10 GPUs, dist. 32 | 2");
    assert_null(strstr(text.text, "30 GPUs"));
    assert_contains(text.text, "| variation | 10 GPUs | 0."); /* from where to where */
}

LAB_TEST(files_of_expected_values_are_checked) {
    static const char *const cases[][2] = {
        {"[1]", "must be a map"},
        {"origin: measured", "'model' is missing"},
        {"model: NVIDIA H200\norigin:", "'origin' is empty"},
        {"model: X\norigin: guessed", "origin"},
        {"model: X\nvalue: {}", "did you mean 'values'"},
        {"model: X\nvalues: {gem_bf16_tflops: {value: 1}}", "did you mean 'gemm_bf16_tflops'"},
        {"model: X\nvalues: {hbm_gb_s: 5}", "must be {value"},
        {"model: X\nvalues: {hbm_gb_s: {tolerance: 0.1}}", "'value' is missing"},
        {"model: X\nvalues: {hbm_gb_s: {value: 1, tolerance: 2}}", "tolerance"},
        {"model: X\nvalues: {hbm_gb_s: {value: 1, seen: [a]}}", "must hold rates"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_expected expected;
        ASSERT_FAILS(
            lab_expected_read(cases[i][0], strlen(cases[i][0]), "f.yaml", &arena, &expected, err),
            LAB_ERR_USER, cases[i][1]);
    }
    const struct lab_expected items[] = {{.model = "NVIDIA H200"}, {.model = "NVIDIA H200 NVL"}};
    assert_ptr_equal(lab_expected_find(items, 2, "NVIDIA H200 NVL"), &items[1]);
    assert_ptr_equal(lab_expected_find(items, 2, "NVIDIA H200, 132 x"), &items[0]);
    assert_null(lab_expected_find(items, 2, "NVIDIA H100"));
    ASSERT_SAYS(lab_check_test_find("gem", err) ? 0 : -1, "did you mean 'gemm'");
}

LAB_TEST(long_tests_run_on_all_gpus_at_once) {
    struct lab_check_setup setup = setup_with("", 3);
    struct lab_check_result result;
    setup.devices.count = 3;
    setup.limit_s = 4; /* the soak has a quarter of it */
    setup.only =
        (const char *const[]){"gemm", "allreduce", "soak", "contention", "memory_patterns", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
    assert_true(result.findings[3].measured > 1); /* allreduce */
    LAB_AUTO(str, text);
    lab_doc_write(lab_check_doc(&result, LAB_CHECK_MONITOR, &arena), "markdown",
                  (struct lab_style){0}, &text);
    assert_contains(text.text, "Healthy: ");
    assert_contains(text.text, "of 20 s: the limit allows no more");
    assert_contains(text.text, "simulated memory has no content");
}

/* What GPUs can't do is skipped in all tests that need it, and no error. */
LAB_TEST(gpus_without_bf16_are_checked_all_the_same) {
    const char *bf16 = strstr(base_text, "bf16: ");
    struct lab_check_setup setup = setup_with("", 3);
    struct lab_check_result result;
    assert_non_null(bf16);
    const char *text = lab_arena_printf(&arena, "%.*sbf16: 0%s", (int)(bf16 - base_text), base_text,
                                        bf16 + strcspn(bf16, ",}"));
    lab_device_define("m", text);
    ASSERT_OK(lab_device_select(here, "sim:m", &arena, &setup.devices, err));
    setup.devices.count = 2;
    setup.only = (const char *const[]){"answers", "gemm", "soak", "variation", NULL};
    lab_check_run(&setup, &arena, &result);
    assert_int_equal(lab_check_status(&result, LAB_CHECK_MONITOR), 0);
    assert_contains(result.findings[result.count - 3].reason, "does no gemm in bf16"); /* soak */
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
