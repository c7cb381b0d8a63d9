/*
 * test_blas_core.c: a CPU that OpenBLAS doesn't know. The program starts itself again with the
 * library told to use its oldest kernels, which is what it does by itself on such a CPU.
 */
#include "device/cpu/blas.h"

#include <cblas.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define VARIABLE "OPENBLAS_CORETYPE"
#define SIZE     70

LAB_TEST(a_better_core_is_named_only_where_there_is_one) {
    const char *better = cpu_blas_better_core("Prescott");
    if (!better)
        skip(); /* this CPU has no wide vectors */
    assert_null(cpu_blas_better_core(better));
    assert_null(cpu_blas_better_core("Cooperlake"));
    assert_null(cpu_blas_better_core("Zen"));
}

LAB_TEST(an_unknown_cpu_gets_wide_kernels_that_compute_right) {
    const char *better = cpu_blas_better_core("Prescott");
    if (!better)
        skip();
    /* given a library that fell back to its oldest kernels */
    assert_string_equal(openblas_get_corename(), "Prescott");
    /* when the device asks */
    assert_string_equal(cpu_blas_core(), better);
    assert_null(getenv(VARIABLE));
    /* then products are right */
    static float a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
    }
    struct cpu_matrix left = {.data = a, .stride = SIZE}, right = {.data = b, .stride = SIZE};
    cpu_blas_gemm(SIZE, SIZE, SIZE, 1, left, right, 0, c, SIZE);
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++) {
            float sum = 0;
            for (int k = 0; k < SIZE; k++)
                sum += a[row * SIZE + k] * b[k * SIZE + column];
            assert_true(c[row * SIZE + column] == sum); /* small whole numbers: exact */
        }
}

static int begin(int argc, char **argv) {
    (void)argc;
    const char *core = getenv(VARIABLE); /* the user may have named another one */
    if (!core || strcmp(core, "Prescott") != 0) {
        setenv(VARIABLE, "Prescott", 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    unsetenv(VARIABLE); /* the library has read it by now */
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.begin = begin};
