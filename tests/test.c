/* test.c: the main of every test program; the linker gathers the tests that it runs. */
#include "test.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* of programs that say nothing of their own */
__attribute__((weak)) const struct lab_test_program lab_test_program = {0};

/* made by the linker, unless the program has no test at all */
extern const struct lab_test *const __start_lab_tests[] __attribute__((weak));
extern const struct lab_test *const __stop_lab_tests[] __attribute__((weak));

static int by_place(const void *a, const void *b) {
    const struct lab_test *const *left = a, *const *right = b;
    return (*left)->place - (*right)->place;
}

int lab_test_run(const char *group, CMFixtureFunction open, CMFixtureFunction close) {
    size_t count = 0;
    while (&__start_lab_tests[count] != __stop_lab_tests)
        count++;
    const struct lab_test **listed = lab_mem_alloc(count + 1, sizeof *listed);
    struct CMUnitTest *tests = lab_mem_alloc(count + 1, sizeof *tests);
    for (size_t i = 0; i < count; i++)
        listed[i] = __start_lab_tests[i];
    qsort(listed, count, sizeof *listed, by_place);
    for (size_t i = 0; i < count; i++) {
        tests[i] = listed[i]->test;
        if (!tests[i].setup_func && !tests[i].teardown_func) {
            tests[i].setup_func = lab_test_program.set_up;
            tests[i].teardown_func = lab_test_program.tear_down;
        }
    }
    int failed = _cmocka_run_group_tests(group, tests, count, open, close);
    lab_mem_free(tests);
    lab_mem_free(listed);
    return failed;
}

void lab_test_contains(const char *text, const char *part, const char *file, int line) {
    if (text && strstr(text, part))
        return;
    print_error("'%s' is not in:\n%s\n", part, text ? text : "nothing");
    _fail(file, line);
}

void lab_test_near(double value, double expected, double tolerance, const char *file, int line) {
    if (fabs(value - expected) <= tolerance)
        return;
    print_error("%.17g is not within %g of %.17g\n", value, tolerance, expected);
    _fail(file, line);
}

int lab_test_in_utc(int argc, char **argv) {
    (void)argc;
    (void)argv;
    setenv("TZ", "UTC", 1);
    tzset();
    return LAB_TEST_GO;
}

int main(int argc, char **argv) {
    const struct lab_test_program *program = &lab_test_program;
    int status = program->begin ? program->begin(argc, argv) : LAB_TEST_GO;
    if (status != LAB_TEST_GO)
        return status;
    int failed = lab_test_run("tests", program->open, program->close);
    return program->end ? program->end(failed) : failed;
}
