/* test_dl.c: a library that is there, one that is not, one that is no library. */
#include "base/dl.h"

#include "test.h"
#include <string.h>

static struct {
    double (*cosine)(double);
    double (*nonsense)(double);
} math;

static const struct lab_dl_symbol symbols[] = {
    {"cos", &math.cosine, "no angles"},
    {"gpulab_no_such_symbol", &math.nonsense, "no nonsense"},
    {NULL},
};

LAB_TEST(symbols_are_found_or_said_to_be_missing) {
    const struct lab_dl_library library = {
        "mathematics", {"libgpulab-none.so.9", "libm.so.6"}, symbols, "no mathematics"};
    struct lab_dl_report report;
    lab_dl_load(&library, NULL, &test_arena, &report);
    assert_non_null(report.handle);
    assert_contains(report.path, "libm.so.6");
    assert_int_equal(report.path[0], '/');
    assert_int_equal(report.found, 1);
    assert_int_equal(report.missing, 1);
    assert_string_equal(report.effects[0], "no nonsense");
    assert_null(report.effects[1]);
    assert_null(report.reason);
    assert_true(math.cosine(0) == 1);
    assert_null(math.nonsense);
}

LAB_TEST(absence_is_an_answer) {
    static double (*const garbage)(double) = (double (*)(double))0x1;
    math.cosine = garbage;
    const struct lab_dl_library library = {
        "nothing", {"libgpulab-none.so.9", "libgpulab-none.so"}, symbols, "nothing at all"};
    static const char *const folders[] = {"/nonexistent", "/tmp", NULL};
    struct lab_dl_report report;
    lab_dl_load(&library, folders, &test_arena, &report);
    assert_null(report.handle);
    assert_null(report.path);
    assert_int_equal(report.found, 0);
    assert_int_equal(report.missing, 2);
    assert_string_equal(report.reason, "libgpulab-none.so.9 or libgpulab-none.so not found");
    assert_null(math.cosine);
}

LAB_TEST(a_file_that_cannot_be_loaded_says_why) {
    const char *path = test_path("libgpulab-none.so.9");
    test_write(path, "no library");
    const struct lab_dl_library library = {"broken", {"libgpulab-none.so.9"}, symbols, "nothing"};
    const char *const folders[] = {test_folder(), NULL};
    struct lab_dl_report report;
    lab_dl_load(&library, folders, &test_arena, &report);
    assert_null(report.handle);
    assert_contains(report.reason, path);
    assert_null(strstr(report.reason, "not found"));
}
