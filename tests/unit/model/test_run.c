/* Which GPU a run's device is on, as its member name says. */
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
