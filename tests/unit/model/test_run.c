/* Which GPU a device is on, as its member name says; what kind of warning a sentence is. */
#include "model/run.h"

#include "test.h"

LAB_TEST(a_device_names_its_gpu) {
    assert_int_equal(lab_run_device_gpu("cuda:0"), 0);
    assert_int_equal(lab_run_device_gpu("cuda:12"), 12);
    assert_int_equal(lab_run_device_gpu("cuda:3/4.2"), 3); /* a slice */
    assert_int_equal(lab_run_device_gpu("cuda:MIG-5f0c"), LAB_RUN_GPU_BY_ID);
    assert_int_equal(lab_run_device_gpu("cuda:-1"), LAB_RUN_GPU_BY_ID);
    assert_int_equal(lab_run_device_gpu("cuda:99999999999999999999"), LAB_RUN_GPU_BY_ID);
    assert_int_equal(lab_run_device_gpu("cpu:0/2.1"), LAB_RUN_NO_GPU);
    assert_int_equal(lab_run_device_gpu(""), LAB_RUN_NO_GPU);
    assert_int_equal(lab_run_device_gpu("sim:l40s-10:3"), 3);
    assert_int_equal(lab_run_device_gpu("sim:./my:own.yaml:12"), 12);
    assert_int_equal(lab_run_device_gpu("sim:l40s-10"), LAB_RUN_NO_GPU); /* names several */
    assert_true(lab_run_device_is_simulated("sim:l40s-10:3"));
    assert_false(lab_run_device_is_simulated("cuda:0"));
}

LAB_TEST(a_run_uses_a_gpu_if_any_rank_does) {
    const struct lab_run_rank ranks[] = {{.device = "cpu:0"}, {.device = "cuda:1/2.0"}};
    assert_false(lab_run_uses_gpu(ranks, 0));
    assert_false(lab_run_uses_gpu(ranks, 1));
    assert_true(lab_run_uses_gpu(ranks, 2));
}

LAB_TEST(a_sentence_has_its_kind_and_its_rank) {
    static const struct {
        const char *sentence, *plain;
        enum lab_run_warning kind;
    } cases[] = {
        {"rank 3: severe outliers: 106 of 1121", "severe outliers: 106 of 1121",
         LAB_RUN_WARNING_OUTLIERS},
        {"rank 12: tuning: the hypervisor took 4.3% of it",
         "tuning: the hypervisor took 4.3% of it", LAB_RUN_WARNING_STEAL},
        {"other processes took 12.0% of it", "other processes took 12.0% of it",
         LAB_RUN_WARNING_LOAD},
        {"5.41 other threads per CPU were ready", "5.41 other threads per CPU were ready",
         LAB_RUN_WARNING_LOAD},
        {"no metric was read: it printed nothing", "no metric was read: it printed nothing",
         LAB_RUN_WARNING_NO_METRIC},
        {"rank 1 began 12 ms after rank 0", "rank 1 began 12 ms after rank 0",
         LAB_RUN_WARNING_OTHER},
        {"", "", LAB_RUN_WARNING_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *plain = lab_run_warning_of_rank(cases[i].sentence);
        assert_string_equal(plain, cases[i].plain);
        assert_int_equal(lab_run_warning_kind(plain), cases[i].kind);
    }
    assert_true(lab_run_warning_is_of_times(LAB_RUN_WARNING_FEW));
    assert_false(lab_run_warning_is_of_times(LAB_RUN_WARNING_NO_METRIC));
}
