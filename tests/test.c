/* test.c: the main of every test program; the linker gathers the tests that it runs. */
#include "test.h"

#include "base/file/file.h"

#include <ftw.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* --- what each test has to itself --- */

struct lab_arena test_arena;
static char folder[32]; /* "" = not made */

const char *test_folder(void) {
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/gpulab-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

const char *test_path(const char *format, ...) {
    char name[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return lab_arena_printf(&test_arena, "%s/%s", test_folder(), name);
}

void test_write_bytes(const char *path, const char *bytes, size_t length) {
    const char *refused, *name = strrchr(path, '/');
    const char *parent = lab_arena_strndup(&test_arena, path, (size_t)(name - path));
    assert_int_equal(lab_file_make_folders(parent, 0755, &test_arena, &refused), 0);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
        fail_msg("%s can't be written", path);
}

void test_write(const char *path, const char *text) {
    test_write_bytes(path, text, strlen(text));
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    remove(path);
    return 0;
}

void test_remove(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_folder(void) {
    if (!folder[0])
        return;
    chmod(folder, 0700);
    test_remove(folder);
    folder[0] = '\0';
}

/* --- tests --- */

/* A weak reference, not a weak definition: of a const one clang takes the values it sees here. */
#pragma weak lab_test_program

static const struct lab_test_program *get_program(void) {
    static const struct lab_test_program none; /* of programs that say nothing of their own */
    return &lab_test_program ? &lab_test_program : &none;
}

/* made by the linker, unless the program has no test at all */
extern const struct lab_test *const __start_lab_tests[] __attribute__((weak));
extern const struct lab_test *const __stop_lab_tests[] __attribute__((weak));

static bool is_plain(const struct lab_test *test) {
    return !test->set_up && !test->tear_down;
}

static const char *name = "";

const char *test_name(void) {
    return name;
}

int lab_test_begin(const struct lab_test *test, void **state) {
    name = test->test.name;
    CMFixtureFunction set_up = is_plain(test) ? get_program()->set_up : test->set_up;
    lab_arena_init(&test_arena);
    return set_up ? set_up(state) : 0;
}

int lab_test_end(const struct lab_test *test, void **state) {
    CMFixtureFunction tear_down = is_plain(test) ? get_program()->tear_down : test->tear_down;
    int status = tear_down ? tear_down(state) : 0;
    remove_folder();
    lab_arena_release(&test_arena);
    return status;
}

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
    for (size_t i = 0; i < count; i++)
        tests[i] = listed[i]->test;
    int failed = _cmocka_run_group_tests(group, tests, count, open, close);
    lab_mem_free(tests);
    lab_mem_free(listed);
    return failed;
}

/* --- assertions --- */

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

/* --- programs --- */

int lab_test_in_utc(int argc, char **argv) {
    (void)argc;
    (void)argv;
    setenv("TZ", "UTC", 1);
    tzset();
    return LAB_TEST_GO;
}

int main(int argc, char **argv) {
    const struct lab_test_program *program = get_program();
    int status = program->begin ? program->begin(argc, argv) : LAB_TEST_GO;
    if (status != LAB_TEST_GO)
        return status;
    if (argc > 1) { /* a worker of a test that forgot its `begin` would start workers without end */
        print_error("%s takes no '%s'\n", argv[0], argv[1]);
        return 2;
    }
    int failed = lab_test_run("tests", program->open, program->close);
    return program->end ? program->end(failed) : failed;
}
