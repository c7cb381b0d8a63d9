/* test_profiler.c: nsys before a worker: found on PATH or refused, and the words it is called by. */
#include "base/file/own.h"
#include "run/launch/profiler.h"

#include "test.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct lab_plan wanted = {.profiler = "nsys"}, other = {.profiler = "none"};

/* A folder with such a file in it. */
static const char *folder_with(const char *name, const char *file, mode_t mode) {
    const char *folder = test_path("%s", name), *path = test_path("%s/%s", name, file);
    assert_int_equal(lab_own_new_folder(folder), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
    return folder;
}

LAB_TEST(a_profiler_has_to_be_on_the_path) {
    const char *good = folder_with("good", "nsys", 0700);
    const char *no_program = folder_with("no_program", "nsys", 0600);
    const char *another = folder_with("another", "nsys2", 0700);
    const char *folder = test_path("folder");
    assert_int_equal(lab_own_new_folder(folder), 0);
    assert_int_equal(lab_own_new_folder(test_path("folder/nsys")), 0);
    char long_one[5000];
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    const struct {
        const char *path;
        bool found;
    } cases[] = {
        {"", false},
        {":", false},
        {good, true},
        {no_program, false},
        {another, false},
        {folder, false},
        {long_one, false},
        {lab_arena_printf(&test_arena, "%s:%s", no_program, good), true},
        {lab_arena_printf(&test_arena, "%s::%s:", long_one, good), true},
        {lab_arena_printf(&test_arena, "%s:%s", good, another), true},
        {lab_arena_printf(&test_arena, "%s%s", good, another), false},
    };
    assert_true(lab_profiler_is_wanted(&wanted));
    assert_false(lab_profiler_is_wanted(&other));
    assert_false(lab_profiler_is_wanted(&(struct lab_plan){0}));
    const char *path = lab_arena_strdup(&test_arena, getenv("PATH"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_err why = LAB_ERR_INIT;
        setenv("PATH", cases[i].path, 1);
        int result = lab_profiler_check(&wanted, &why);
        if ((result == 0) != cases[i].found)
            fail_msg("%.60s: %d", cases[i].path, result);
        if (!cases[i].found)
            assert_contains(why.text, "there is no nsys on PATH");
        ASSERT_OK(lab_profiler_check(&other, err));
    }
    /* an empty part is the folder one is in */
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(good), 0);
    static const char *const empty[] = {"", ":", "/nowhere:", ":/nowhere", "/nowhere::/nowhere"};
    for (int i = 0; i < 5; i++) {
        setenv("PATH", empty[i], 1);
        ASSERT_OK(lab_profiler_check(&wanted, err));
    }
    assert_int_equal(chdir(before), 0);
    unsetenv("PATH");
    ASSERT_FAILS(lab_profiler_check(&wanted, err), LAB_ERR_USER, "experiment.profiler=none");
    setenv("PATH", path, 1);
}

static const char *words_of(const char *const *argv) {
    const char *text = "";
    for (int i = 0; argv[i]; i++)
        text = lab_arena_printf(&test_arena, "%s%s%s", text, i ? " " : "", argv[i]);
    return text;
}

LAB_TEST(the_worker_follows_the_profilers_words) {
    static const char *const worker[] = {"gpulab", "worker", NULL};
    static const char before[] = "nsys profile --output %s --force-overwrite true --trace "
                                 "cuda,nvtx --cuda-graph-trace node --sample none --cpuctxsw none ";
    const char *report = test_path("traces/pipeline_a"), *link = test_path("link");
    const char *expected = lab_arena_printf(&test_arena, before, report);
    const char *const *argv;
    struct lab_err err = LAB_ERR_INIT;
    struct stat info;
    argv = lab_profiler_wrap(report, NULL, worker, &test_arena, &err);
    assert_non_null(argv);
    assert_string_equal(words_of(argv), lab_arena_printf(&test_arena, "%sgpulab worker", expected));
    assert_int_equal(stat(test_path("traces"), &info), 0);
    /* by its file, wherever a link leads */
    assert_int_equal(symlink("/bin/some program", link), 0);
    argv = lab_profiler_wrap(report, link, worker, &test_arena, &err);
    assert_string_equal(words_of(argv),
                        lab_arena_printf(&test_arena, "%s/bin/some program worker", expected));
    argv = lab_profiler_wrap("bare", "/bin/sh/none", worker, &test_arena, &err);
    assert_string_equal(words_of(argv),
                        lab_arena_printf(&test_arena, "%s/bin/sh/none worker",
                                         lab_arena_printf(&test_arena, before, "bare")));
    /* where its folder can't be made, it isn't started */
    assert_null(lab_profiler_wrap(test_path("link/x/y"), NULL, worker, &test_arena, &err));
    assert_true(err.code != LAB_ERR_NONE);
}
