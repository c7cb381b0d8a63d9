/* How outputs are judged, and how values travel in a device's number format. */
#include "machine/machine.h"
#include "workload/workload.h"

#include "test.h"
#include <math.h>

static struct lab_verification compare(const float *out, const double *reference, int64_t count) {
    struct lab_verification ret;
    lab_verify_compare(out, reference, count, LAB_POISON, 1e-5, &ret);
    assert_true(ret.applicable);
    return ret;
}

LAB_TEST(equal_outputs_pass) {
    struct lab_verification v = compare((float[]){1, 2, 2}, (double[]){1, 2, 2}, 3);
    assert_true(v.passed);
    assert_true(v.relative_error == 0);
    assert_int_equal(v.elements, 3);
    assert_true(v.tolerance == 1e-5);
}

LAB_TEST(error_is_relative_to_the_norm) {
    /* ‖(0, 0, 0.5)‖ / ‖(2, 2, 1)‖ = 0.5/3 */
    struct lab_verification v = compare((float[]){2, 2, 1.5f}, (double[]){2, 2, 1}, 3);
    assert_false(v.passed);
    assert_true(fabs(v.relative_error - 0.5 / 3) < 1e-12);
    assert_contains(v.text, "1.67e-01");
}

LAB_TEST(what_was_never_written_fails) {
    /* even where the reference happens to be the poison itself */
    struct lab_verification v =
        compare((float[]){1, LAB_POISON, LAB_POISON}, (double[]){1, LAB_POISON, 3}, 3);
    assert_false(v.passed);
    assert_string_equal(v.text, "2 of 3 outputs still poisoned");
}

LAB_TEST(poison_may_be_nan) {
    struct lab_verification v;
    lab_verify_compare((float[]){NAN, 1}, (double[]){1, 1}, 2, NAN, 1e-5, &v);
    assert_false(v.passed);
    assert_string_equal(v.text, "1 of 2 outputs still poisoned");
}

LAB_TEST(nan_fails) {
    struct lab_verification v = compare((float[]){1, NAN}, (double[]){1, 2}, 2);
    assert_false(v.passed);
    assert_true(isinf(v.relative_error));
    assert_string_equal(v.text, "1 of 2 outputs are NaN");
}

LAB_TEST(infinity_fails) {
    assert_false(compare((float[]){1, INFINITY}, (double[]){1, 2}, 2).passed);
    assert_false(compare((float[]){1, -INFINITY}, (double[]){1, -INFINITY}, 2).passed);
}

/* A parameter of 1 has steps of 1.2e-7: a change of 1e-6 can't be nearer than that. */
LAB_TEST(updates_may_be_off_by_rounding_alone) {
    const double before[] = {1, 0.5, 0.01}, exact[] = {1 - 1e-6, 0.5 - 1e-6, 0.01 - 1e-6};
    double now[3];
    for (int i = 0; i < 3; i++)
        now[i] = (double)(float)exact[i];
    assert_true(lab_verify_distance(now, exact, 3, 0) > 0);
    assert_true(lab_verify_update(now, exact, before, 3, 0) == 0);
    /* given a step of half the size, then half of it is missing, and of none all of it */
    for (int i = 0; i < 3; i++)
        now[i] = before[i] - 5e-7;
    double half = lab_verify_update(now, exact, before, 3, 0);
    assert_true(half > 0.4 && half <= 0.5);
    assert_true(lab_verify_update(before, exact, before, 3, 0) > 0.9);
    assert_true(lab_verify_update(before, before, before, 3, 0) == 0);
    assert_true(isinf(lab_verify_update(exact, before, before, 3, 0)));
    now[1] = NAN;
    assert_true(isinf(lab_verify_update(now, exact, before, 3, 0)));
}

/* At the threshold of pruning rounding decides; elsewhere a parameter that isn't pruned is wrong. */
LAB_TEST(updates_at_the_threshold_may_be_pruned_or_not) {
    const double before[] = {1, 0.02}, exact[] = {0.9, 0.01 * (1 - 1e-8)};
    const double pruned[] = {0.9, 0}, kept[] = {0.9, 0.005};
    assert_true(lab_verify_update(pruned, exact, before, 2, 0.01) == 0);
    assert_true(lab_verify_update(exact, pruned, before, 2, 0.01) == 0);
    assert_true(lab_verify_update(pruned, exact, before, 2, 0) > 0.05);
    assert_true(lab_verify_update(kept, pruned, before, 2, 0.01) > 0.02);
}

LAB_TEST(zero_reference_wants_zeros) {
    assert_true(compare((float[]){0, 0}, (double[]){0, 0}, 2).passed);
    struct lab_verification v = compare((float[]){0, 1e-30f}, (double[]){0, 0}, 2);
    assert_false(v.passed);
    assert_true(isinf(v.relative_error));
}

LAB_TEST(nothing_compared_is_no_pass) {
    assert_false(compare(NULL, NULL, 0).passed);
}

LAB_TEST(large_counts_are_readable) {
    enum { COUNT = 25600 };
    static float out[COUNT];
    static double reference[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = i < 1280 ? LAB_POISON : 1;
        reference[i] = 1;
    }
    assert_string_equal(compare(out, reference, COUNT).text,
                        "1,280 of 25,600 outputs still poisoned");
}

LAB_TEST(a_partial_check_says_so_and_misses_no_poison) {
    struct lab_verification v = compare((float[]){1, 2}, (double[]){1, 2}, 2);
    lab_verify_partial(&v, 1, 1024, "rows", 0, 2048);
    assert_true(v.passed);
    assert_string_equal(v.text, "relative error 0.0e+00 over 1 of 1,024 rows (2 outputs)");
    lab_verify_partial(&v, 1, 1024, "rows", 3, 2048);
    assert_false(v.passed);
    assert_string_equal(v.text, "3 of 2,048 outputs still poisoned or not finite");
}

LAB_TEST(bytes_must_be_equal) {
    struct lab_verification v;
    lab_verify_bytes("abcd", "abcd", 4, &v);
    assert_true(v.applicable && v.passed);
    assert_int_equal(v.elements, 4);
    lab_verify_bytes("abXY", "abcd", 4, &v);
    assert_false(v.passed);
    assert_true(v.relative_error > 0);
    assert_string_equal(v.text, "2 of 4 bytes are wrong, the first at offset 2");
}

LAB_TEST(simulated_devices_compute_nothing) {
    struct lab_verification v = {.applicable = true};
    struct lab_device device = {.ref = {.simulated = false}};
    assert_false(lab_verify_skip(&device, &v));
    device.ref.simulated = true;
    assert_true(lab_verify_skip(&device, &v));
    assert_false(v.applicable);
    assert_string_equal(v.text, "simulated"); /* who shows it says "not applicable" */
}

LAB_TEST(memory_for_checking_is_asked_for_first) {
    struct lab_machine *machine = NULL;
    ASSERT_OK(lab_machine_open(NULL, &machine, err));
    struct lab_device device = {.machine = machine};
    ASSERT_OK(lab_verify_room(&device, 1 << 20, err));
    ASSERT_FAILS(lab_verify_room(&device, 0x1p50, err), LAB_ERR_MEMORY,
                 "takes 1.00 PiB of host memory");
    lab_machine_close(machine);
}

/* --- number formats --- */

static uint16_t encode_half(enum lab_dtype dtype, float value) {
    uint16_t half;
    lab_data_encode(dtype, &value, 1, &half);
    return half;
}

LAB_TEST(bf16_rounds_to_even) {
    assert_int_equal(encode_half(LAB_BF16, 1.0f), 0x3f80);
    assert_int_equal(encode_half(LAB_BF16, -2.0f), 0xc000);
    assert_int_equal(encode_half(LAB_BF16, 1 + 0x1p-8f), 0x3f80);            /* tie: down */
    assert_int_equal(encode_half(LAB_BF16, 1 + 3 * 0x1p-8f), 0x3f82);        /* tie: up */
    assert_int_equal(encode_half(LAB_BF16, 1 + 0x1p-8f + 0x1p-20f), 0x3f81); /* above the tie */
    assert_int_equal(encode_half(LAB_BF16, INFINITY), 0x7f80);
}

LAB_TEST(fp16_rounds_to_even) {
    assert_int_equal(encode_half(LAB_FP16, 1.0f), 0x3c00);
    assert_int_equal(encode_half(LAB_FP16, -1.5f), 0xbe00);
    assert_int_equal(encode_half(LAB_FP16, 1 + 0x1p-11f), 0x3c00);
    assert_int_equal(encode_half(LAB_FP16, 1 + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(encode_half(LAB_FP16, 65504.0f), 0x7bff);
    assert_int_equal(encode_half(LAB_FP16, 65519.0f), 0x7bff);
    assert_int_equal(encode_half(LAB_FP16, 65520.0f), 0x7c00);
    assert_int_equal(encode_half(LAB_FP16, 0x1p-14f), 0x0400);
    assert_int_equal(encode_half(LAB_FP16, 0x1p-24f), 0x0001);
    assert_int_equal(encode_half(LAB_FP16, 0x1p-25f), 0x0000);      /* tie: to zero */
    assert_int_equal(encode_half(LAB_FP16, -3 * 0x1p-25f), 0x8002); /* tie: up */
    assert_int_equal(encode_half(LAB_FP16, 0x1.ffcp-15f), 0x0400);  /* into the normal range */
}

LAB_TEST(every_half_survives_the_round_trip) {
    const enum lab_dtype dtypes[] = {LAB_BF16, LAB_FP16};
    for (size_t d = 0; d < 2; d++)
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t half = (uint16_t)bits;
            float value;
            lab_data_decode(dtypes[d], &half, 1, &value);
            uint16_t back = encode_half(dtypes[d], value);
            if (isnan(value))
                lab_data_decode(dtypes[d], &back, 1, &value), assert_true(isnan(value));
            else
                assert_int_equal(back, half);
        }
}

LAB_TEST(poison_is_exact_in_every_format) {
    const enum lab_dtype dtypes[] = {LAB_FP32, LAB_TF32, LAB_BF16, LAB_FP16};
    for (size_t d = 0; d < 4; d++) {
        float value = LAB_POISON, back = 0;
        char encoded[4];
        lab_data_encode(dtypes[d], &value, 1, encoded);
        lab_data_decode(dtypes[d], encoded, 1, &back);
        assert_true(back == LAB_POISON);
    }
}

/* --- finding --- */

LAB_TEST(workloads_are_found_by_name) {
    struct lab_err err = LAB_ERR_INIT;
    assert_string_equal(lab_workload_find("gemm", &err)->name, "gemm");
    assert_int_equal(err.code, LAB_ERR_NONE);
}

LAB_TEST(an_unknown_one_names_the_nearest_and_all) {
    struct lab_err err = LAB_ERR_INIT;
    assert_null(lab_workload_find("gem", &err));
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "did you mean 'gemm'?");
    assert_contains(err.text, "softmax");
    assert_contains(err.text, "vit");
}
