/* test_simd.c: the loops of every instruction set that this CPU has, against libm in double. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/cpu/cpu.h"
#include "device/cpu/simd/simd.h"

#include <math.h>
#include <string.h>

#include "test.h"

static const char *const words[] = {"base", "avx2", "avx512"};

/* The variant of that word, or NULL where this CPU lacks it. */
static const struct cpu_simd *variant(int index) {
    setenv("GPULAB_SIMD", words[index], 1);
    const struct cpu_simd *simd = cpu_simd_select();
    const struct cpu_simd *asked[] = {
        &cpu_simd_base,
#if defined(__x86_64__)
        &cpu_simd_avx2,
        &cpu_simd_avx512,
#else
        NULL,
        NULL,
#endif
    };
    unsetenv("GPULAB_SIMD");
    return simd == asked[index] ? simd : NULL;
}

static double exact_gelu(double x) {
    return x / 2 * erfc(-x / sqrt(2));
}

LAB_TEST(gelu_keeps_its_digits_everywhere) {
    enum { COUNT = 200003 };
    float *x = lab_mem_alloc(COUNT, sizeof *x), *y = lab_mem_alloc(COUNT, sizeof *y);
    for (int i = 0; i < COUNT; i++)
        x[i] = -20.0f + 40.0f * (float)i / (float)(COUNT - 1);
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        if (!simd)
            continue;
        simd->gelu(y, x, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double exact = exact_gelu(x[i]);
            /* relative, down to where single precision ends */
            double allowed = 5e-7 * fabs(exact) + 2e-37;
            if (!(fabs((double)y[i] - exact) <= allowed))
                fail_msg("%s: gelu(%.9g) is %.9g, must be %.9g", cpu_simd_name(simd), (double)x[i],
                         (double)y[i], exact);
        }
    }
    lab_mem_free(x);
    lab_mem_free(y);
}

LAB_TEST(gelu_of_tiny_and_special_values) {
    const float x[] = {0.0f,      1e-30f,   -1e-30f,   1e-8f,   -1e-8f, 3e38f,
                       -3e38f,    INFINITY, -INFINITY, NAN,     1.0f,   -14.4f,
                       -14.5001f, 14.5001f, 100.0f,    -100.0f, 0.5f};
    enum { COUNT = sizeof x / sizeof x[0] };
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        if (!simd)
            continue;
        float y[COUNT];
        simd->gelu(y, x, COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (isnan(x[i])) {
                assert_true(isnan(y[i]));
                continue;
            }
            double exact = x[i] == -INFINITY ? 0 : exact_gelu(x[i]);
            if (isinf(exact))
                assert_true(y[i] == INFINITY);
            else
                assert_true(fabs((double)y[i] - exact) <= 5e-7 * fabs(exact) + 2e-37);
        }
    }
}

LAB_TEST(softmax_rows_of_every_length) {
    enum { MOST = 131 };
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        for (int count = 1; simd && count <= MOST; count++) {
            float x[MOST], y[MOST + 1];
            double sum = 0;
            for (int i = 0; i < count; i++) {
                x[i] = 80.0f - 1.7f * (float)((i * 37) % count);
                sum += exp((double)x[i] - 80);
            }
            y[count] = 42;
            simd->softmax(y, x, count);
            for (int i = 0; i < count; i++)
                assert_true(fabs((double)y[i] - exp((double)x[i] - 80) / sum) <=
                            1e-6 * exp((double)x[i] - 80) / sum + 1e-37);
            assert_true(y[count] == 42);
        }
    }
}

LAB_TEST(softmax_of_infinities_and_nan) {
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        if (!simd)
            continue;
        /* masked places get no share */
        float masked[20], y[20];
        for (int i = 0; i < 20; i++)
            masked[i] = i % 2 ? -INFINITY : 3.0f;
        simd->softmax(y, masked, 20);
        for (int i = 0; i < 20; i++)
            assert_true(fabsf(y[i] - (i % 2 ? 0.0f : 0.1f)) < 1e-7f);
        /* a row with nothing but masked places has no shares at all */
        for (int i = 0; i < 20; i++)
            masked[i] = -INFINITY;
        simd->softmax(y, masked, 20);
        for (int i = 0; i < 20; i++)
            assert_true(isnan(y[i]));
        /* one NaN spoils its row, wherever it stands */
        for (int at = 0; at < 20; at++) {
            for (int i = 0; i < 20; i++)
                masked[i] = i == at ? NAN : (float)i;
            simd->softmax(y, masked, 20);
            for (int i = 0; i < 20; i++)
                assert_true(isnan(y[i]));
        }
    }
}

LAB_TEST(layer_norm_far_from_zero) {
    enum { COUNT = 197 };
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        if (!simd)
            continue;
        /* values around 1000 with a deviation of about 1: E[x²] − E[x]² would be noise */
        float x[COUNT], gamma[COUNT], beta[COUNT];
        double mean = 0, variance = 0;
        for (int i = 0; i < COUNT; i++) {
            x[i] = 1000.0f + (float)((i * 29) % 17) * 0.25f;
            gamma[i] = 1;
            beta[i] = 0;
            mean += (double)x[i] / COUNT;
        }
        for (int i = 0; i < COUNT; i++)
            variance += (x[i] - mean) * (x[i] - mean) / COUNT;
        float y[COUNT];
        simd->layer_norm(y, x, gamma, beta, COUNT, 1e-5f);
        for (int i = 0; i < COUNT; i++)
            assert_true(fabs(y[i] - (x[i] - mean) / sqrt(variance + 1e-5)) < 2e-4);
        x[100] = NAN;
        simd->layer_norm(y, x, gamma, beta, COUNT, 1e-5f);
        for (int i = 0; i < COUNT; i++)
            assert_true(isnan(y[i]));
    }
}

static int warnings;

static void count_warnings(enum lab_log_level level, const char *text, void *state) {
    (void)state;
    assert_int_equal(level, LAB_LOG_WARNING);
    assert_contains(text, "base");
    warnings++;
}

/* As a GPU does it: ties away from zero in tf32, to even in bf16; a lone part of a vector, too. */
LAB_TEST(rounding_is_to_nearest) {
    const struct {
        float x, tf32, bf16;
    } cases[] = {
        {1, 1, 1},
        {-0.0f, -0.0f, -0.0f},
        {0x1.002p0f, 0x1.004p0f, 0x1p0f}, /* tf32: a tie, up */
        {-0x1.002p0f, -0x1.004p0f, -0x1p0f},
        {0x1.006p0f, 0x1.008p0f, 0x1p0f},      /* another, up */
        {0x1.001ffep0f, 0x1p0f, 0x1p0f},       /* just below the tie */
        {0x1.01p0f, 0x1.01p0f, 0x1p0f},        /* bf16: a tie, down */
        {-0x1.03p0f, -0x1.03p0f, -0x1.04p0f},  /* up, away from zero */
        {0x1.fffffep0f, 0x1p1f, 0x1p1f},       /* into the next power of two */
        {0x1.fffffep127f, INFINITY, INFINITY}, /* beyond the largest */
        {-INFINITY, -INFINITY, -INFINITY},
        {0x1.8p-140f, 0, 0},
        {0x1.8p-130f, 0x1.8p-130f, 0x1.8p-130f}, /* below the normal range */
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    float x[COUNT + 1], y[COUNT + 1];
    for (int i = 0; i < COUNT; i++)
        x[i] = cases[i].x;
    const uint32_t largest_nan = 0x7fffffff; /* whose digits must not carry into the sign */
    memcpy(&x[COUNT], &largest_nan, sizeof *x);
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        for (int bf16 = 0; simd && bf16 <= 1; bf16++) {
            simd->round(y, x, COUNT + 1, bf16);
            assert_true(isnan(y[COUNT]));
            for (int i = 0; i < COUNT; i++) {
                float expected = bf16 ? cases[i].bf16 : cases[i].tf32;
                if (memcmp(&y[i], &expected, sizeof expected) != 0)
                    fail_msg("%s: %a in %s is %a, must be %a", cpu_simd_name(simd), (double)x[i],
                             bf16 ? "bf16" : "tf32", (double)y[i], (double)expected);
            }
        }
    }
}

LAB_TEST(an_unknown_wish_is_answered_with_the_best) {
    unsetenv("GPULAB_SIMD");
    const struct cpu_simd *best = cpu_simd_select();
    lab_log_set_sink(count_warnings, NULL, LAB_LOG_DEBUG);
    setenv("GPULAB_SIMD", "mmx", 1);
    assert_ptr_equal(cpu_simd_select(), best);
    assert_int_equal(warnings, 1);
    setenv("GPULAB_SIMD", "base", 1);
    assert_ptr_equal(cpu_simd_select(), &cpu_simd_base);
    assert_int_equal(warnings, 1);
    unsetenv("GPULAB_SIMD");
    lab_log_set_sink(NULL, NULL, LAB_LOG_ERROR);
}

LAB_TEST(the_peak_is_a_possible_number) {
    for (int v = 0; v < 3; v++) {
        const struct cpu_simd *simd = variant(v);
        if (!simd)
            continue;
        double flops = cpu_simd_peak_flops(simd, 5 * LAB_NS_PER_MS);
        assert_true(isfinite(flops) && flops > 1e7 && flops < 1e12);
    }
}
