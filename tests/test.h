/*
 * test.h: tests that list themselves. A test is written once, and runs in the order in which it
 * stands in its file; a test program is one such file with main from test.c:
 *
 *     LAB_TEST(a_clock_never_goes_back) {
 *         assert_true(…);
 *     }
 *
 * The state that a set-up left is in `state`. What all tests of a program have in common is said
 * once, all of it optional:
 *
 *     const struct lab_test_program lab_test_program = {.set_up = …, .tear_down = …};
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"

#define LAB_TEST(name) LAB_TEST_WITH(name, NULL, NULL)

/* A test with a set-up and a tear-down of its own. */
#define LAB_TEST_WITH(name, set_up, tear_down)                                                     \
    static void name(void **state);                                                                \
    static const struct lab_test lab_test_of_##name;                                               \
    static int lab_test_begin_##name(void **state) {                                               \
        return lab_test_begin(&lab_test_of_##name, state);                                         \
    }                                                                                              \
    static int lab_test_end_##name(void **state) {                                                 \
        return lab_test_end(&lab_test_of_##name, state);                                           \
    }                                                                                              \
    static const struct lab_test lab_test_of_##name = {                                            \
        {#name, name, lab_test_begin_##name, lab_test_end_##name, NULL},                           \
        __COUNTER__,                                                                               \
        set_up,                                                                                    \
        tear_down};                                                                                \
    __attribute__((used,                                                                           \
                   section("lab_tests"))) static const struct lab_test *const lab_test_at_##name = \
        &lab_test_of_##name;                                                                       \
    static void name(__attribute__((unused)) void **state)

struct lab_test {
    struct CMUnitTest test;
    int place; /* in the file: a compiler may lay the tests out in any order */
    CMFixtureFunction set_up, tear_down;
};

int lab_test_begin(const struct lab_test *test, void **state);
int lab_test_end(const struct lab_test *test, void **state);

/* --- assertions --- */

/* The call, which names its error `err`, succeeds; else the test fails with the error's text. */
#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        struct lab_err ok_err = LAB_ERR_INIT;                                                      \
        struct lab_err *err = &ok_err;                                                             \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, ok_err.text);                                                \
    } while (0)

/* The call, which names its error `err`, returns -1 with this code and a text that holds `part`. */
#define ASSERT_FAILS(call, expected_code, part)                                                    \
    do {                                                                                           \
        struct lab_err bad_err = LAB_ERR_INIT;                                                     \
        struct lab_err *err = &bad_err;                                                            \
        if ((call) != -1)                                                                          \
            fail_msg("%s doesn't fail", #call);                                                    \
        assert_contains(bad_err.text, part);                                                       \
        if ((expected_code) != LAB_ERR_NONE)                                                       \
            assert_int_equal(bad_err.code, expected_code);                                         \
    } while (0)

/* The same with any code. */
#define ASSERT_SAYS(call, part) ASSERT_FAILS(call, LAB_ERR_NONE, part)

#define assert_contains(text, part) lab_test_contains(text, part, __FILE__, __LINE__)
void lab_test_contains(const char *text, const char *part, const char *file, int line);

/* Not further apart than that; NAN is near to nothing. */
#define assert_near(value, expected, tolerance)                                                    \
    lab_test_near(value, expected, tolerance, __FILE__, __LINE__)
void lab_test_near(double value, double expected, double tolerance, const char *file, int line);

/* --- what each test has to itself, until its tear-down has run --- */

extern struct lab_arena test_arena;

const char *test_name(void);   /* of the test that runs */
const char *test_folder(void); /* made when it is first asked for, and removed with all in it */

/* A path in the test's folder, from the test's arena. */
const char *test_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Over what is there, as the kernel does; the folders to it are made. */
void test_write(const char *path, const char *text);
void test_write_bytes(const char *path, const char *bytes, size_t length);

void test_remove(const char *path); /* with all in it */

/* --- programs --- */

#define LAB_TEST_GO      (-1)
#define LAB_TEST_SKIPPED 77 /* CTest's word for it */

struct lab_test_program {
    CMFixtureFunction open, close;       /* once, around all tests */
    CMFixtureFunction set_up, tear_down; /* around each test that has none of its own */
    /* first of all: LAB_TEST_GO to run the tests, or else what the program returns; a program that
     * is started with arguments, as one that starts itself does, must not go on to its tests */
    int (*begin)(int argc, char **argv);
    int (*end)(int failed); /* what the program returns after that many failures */
};

extern const struct lab_test_program lab_test_program;

/* A `begin` for tests of times that are printed. */
int lab_test_in_utc(int argc, char **argv);

/* Runs the program's tests as a group of this name; how many failed. For a `begin` that runs them
 * more than once; cmocka's filters choose among them. */
int lab_test_run(const char *group, CMFixtureFunction open, CMFixtureFunction close);
