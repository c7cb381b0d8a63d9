/* All studies of a user, and which of them a word means. */
#include "folder_fixture.h"

#include <pwd.h>
#include <utime.h>

static const char *make_known(const char *name) {
    const char *folder = in_root(name);
    make_study(folder, PLAN, MACHINE, 0);
    lab_folder_register(folder);
    return folder;
}

static const char *const *known(int expected_count) {
    const char *const *paths;
    int count;
    lab_folder_known(&arena, &paths, &count);
    assert_int_equal(count, expected_count);
    return paths;
}

LAB_TEST(studies_are_known_wherever_they_lie_newest_first) {
    const char *second = make_known("here/quick_test/2026-11-14/10-00-00_2");
    const char *third = make_known("there/numa/2026-11-14/10-00-00");
    const char *first = make_known("here/quick_test/2026-11-15/09-00-00");
    lab_folder_register(first); /* twice is once */
    const char *const *paths = known(3);
    assert_string_equal(paths[0], first);
    assert_string_equal(paths[1], second);
    assert_string_equal(paths[2], third);
}

/* Whichever was written last: names tell when they began, those of one second have numbers. */
LAB_TEST(studies_of_one_day_go_by_their_names) {
    static const char *const times[] = {"12-00-01", "12-00-00_10", "12-00-00_9", "12-00-00_2",
                                        "12-00-00", "11-59-59",    "09-00-00_3"};
    enum { COUNT = sizeof times / sizeof *times };
    const char *made[COUNT];
    for (int i = 0; i < COUNT; i++)
        made[i] = make_known(lab_arena_printf(&arena, "outputs/numa/2026-11-14/%s", times[i]));
    const char *const *paths = known(COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(paths[i], made[i]);
}

LAB_TEST(a_folder_of_another_name_is_as_old_as_its_file) {
    const char *old = make_known("quick_test/2001-01-01/10-00-00");
    const char *renamed = make_known("copies/mine");
    const char *coming = make_known("quick_test/2099-01-01/10-00-00");
    struct utimbuf times = {1500000000, 1500000000}; /* 2017 */
    assert_int_equal(utime(lab_arena_printf(&arena, "%s/study.db", renamed), &times), 0);
    const char *const *paths = known(3);
    assert_string_equal(paths[0], coming);
    assert_string_equal(paths[1], renamed);
    assert_string_equal(paths[2], old);
}

LAB_TEST(what_is_gone_is_forgotten) {
    const char *folder = make_known("outputs/quick_test/2026-11-14/10-00-00");
    make_known("outputs/quick_test/2026-11-15/10-00-00");
    assert_int_equal(count_entries(in_root("state/gpulab/studies")), 2);
    /* without its database it is no study, but it may come back */
    const char *database = lab_arena_printf(&arena, "%s/study.db", folder);
    assert_int_equal(rename(database, in_root("aside")), 0);
    known(1);
    assert_int_equal(count_entries(in_root("state/gpulab/studies")), 2);
    assert_int_equal(rename(in_root("aside"), database), 0);
    known(2);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    known(1);
    assert_int_equal(count_entries(in_root("state/gpulab/studies")), 1);
}

LAB_TEST(foreign_files_in_the_registry_are_left_alone) {
    const char *study = make_known("outputs/quick_test/2026-11-14/10-00-00");
    make_study(in_root("other"), PLAN, MACHINE, 0);
    write_file(in_root("state/gpulab/studies/README"), "/tmp");
    write_file(in_root("state/gpulab/studies/0123456789abcdef"), "");
    write_file(in_root("state/gpulab/studies/0123456789abcdee"), "not a path");
    make_directories(in_root("state/gpulab/studies/0123456789abcded"));
    /* names that are no hash, and one that leads nowhere */
    write_file(in_root("state/gpulab/studies/0123456789abcde"), in_root("other"));
    write_file(in_root("state/gpulab/studies/0123456789abcdef0"), in_root("other"));
    write_file(in_root("state/gpulab/studies/0123456789abcdeF"), in_root("other"));
    assert_int_equal(symlink("nothing", in_root("state/gpulab/studies/0123456789abcdea")), 0);
    /* a path with a zero in it */
    FILE *file = fopen(in_root("state/gpulab/studies/0123456789abcdeb"), "w");
    assert_non_null(file);
    fwrite(study, 1, strlen(study) + 1, file);
    fclose(file);
    known(1);
    assert_int_equal(count_entries(in_root("state/gpulab/studies")), 10);
    write_file(in_root("state/gpulab/studies/0123456789abcdec"), in_root("other"));
    known(2);
}

/* The user's state folder, by the environment, else by the system's list of users. */
LAB_TEST(state_is_kept_where_the_environment_says) {
    const struct passwd *user = getpwuid(getuid());
    const char *home = getenv("HOME") ? lab_arena_strdup(&arena, getenv("HOME")) : NULL;
    const char *of_user =
        user ? lab_arena_printf(&arena, "%s/.local/state/gpulab", user->pw_dir) : "";
    const struct {
        const char *state, *home, *expected;
    } cases[] = {{"/x", "/h", "/x/gpulab"},
                 {"x", "/h", "/h/.local/state/gpulab"},
                 {"", "/h", "/h/.local/state/gpulab"},
                 {NULL, "/h", "/h/.local/state/gpulab"},
                 {NULL, "h", of_user},
                 {NULL, NULL, of_user}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i].state ? setenv("XDG_STATE_HOME", cases[i].state, 1) : unsetenv("XDG_STATE_HOME");
        cases[i].home ? setenv("HOME", cases[i].home, 1) : unsetenv("HOME");
        const char *found = lab_folder_state(&arena);
        assert_string_equal(found ? found : "", cases[i].expected);
    }
    if (home)
        setenv("HOME", home, 1);
}

/* From a folder without studies: those of a folder are known without a registry. */
LAB_TEST(a_registry_that_cannot_be_made_does_not_matter) {
    char before[4096];
    write_file(in_root("state"), "a file");
    make_known("elsewhere/outputs/quick_test/2026-11-14/10-00-00");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    known(0);
    assert_int_equal(chdir(before), 0);
}

/* --- words --- */

static const char *resolve(const char *word) {
    const char *path = NULL;
    assert_works(lab_folder_resolve(word, &arena, &path, &err));
    return path;
}

/* Given a user without a home, then the studies of the folder he is in are found. */
LAB_TEST(without_a_registry_those_here_are_known) {
    char before[4096];
    const char *older = in_root("outputs/quick_test/2026-11-14/10-00-00");
    const char *newer = in_root("outputs/numa/2026-11-15/10-00-00"), *path;
    make_study(older, PLAN, MACHINE, 0);
    make_study(newer, PLAN, MACHINE, 0);
    write_file(in_root("file"), "");
    setenv("XDG_STATE_HOME", in_root("file"), 1); /* nothing can be made below it */
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    assert_string_equal(known(2)[0], newer);
    assert_works(lab_folder_resolve("quick_test", &arena, &path, &err));
    assert_string_equal(path, older);
    setenv("XDG_STATE_HOME", in_root("state"), 1); /* not made yet: there is no study yet */
    known(0);
    assert_int_equal(chdir(before), 0);
}

LAB_TEST(a_path_to_or_into_a_study_is_that_study) {
    const char *folder = in_root("elsewhere/mine"); /* not registered */
    make_study(folder, PLAN, MACHINE, 0);
    make_directories(lab_arena_printf(&arena, "%s/logs/deep", folder));
    write_file(lab_arena_printf(&arena, "%s/logs/deep/file", folder), "");
    write_file(lab_arena_printf(&arena, "%s/results.json", folder), "[]");
    write_file(lab_arena_printf(&arena, "%s/logs/a.stderr", folder), "");
    assert_string_equal(resolve(folder), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/study.db", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/results.json", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/logs/a.stderr", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/logs/deep", folder)), folder);
    const char *path;
    assert_refused(lab_folder_resolve(lab_arena_printf(&arena, "%s/logs/deep/file", folder), &arena,
                                      &path, &err),
                   LAB_ERR_USER, "there is no study in ");
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(lab_arena_printf(&arena, "%s/logs", folder)), 0);
    assert_string_equal(resolve("."), folder);
    assert_string_equal(resolve(".."), folder);
    assert_string_equal(resolve("../study.db"), folder);
    assert_int_equal(chdir(before), 0);
}

LAB_TEST(a_beginning_means_the_newest) {
    const char *old = make_known("outputs/quick_test/2026-11-14/10-00-00");
    const char *newer = make_known("outputs/quick_test/2026-11-14/12-00-00");
    const char *newest = make_known("other/quick_test/2026-11-15/09-00-00");
    const char *large = make_known("outputs/quick_test_large/2026-11-16/09-00-00");
    assert_string_equal(resolve(NULL), large);
    assert_string_equal(resolve("quick_test"), newest);
    assert_string_equal(resolve("quick_test/"), newest);
    assert_string_equal(resolve("quick_test/2026-11-14"), newer);
    assert_string_equal(resolve("quick_test/2026-11-14/10"), old);
    assert_string_equal(resolve("quick_test/2026-11-14/10-00-00"), old);
    assert_string_equal(resolve("quick_test_l"), large);
    assert_string_equal(resolve("qu"), large);
}

LAB_TEST(a_directory_means_the_newest_below_it) {
    const char *old = make_known("outputs/quick_test/2026-11-14/10-00-00");
    const char *newer = make_known("outputs/numa/2026-11-15/10-00-00");
    make_known("outputs-2/quick_test/2026-11-16/10-00-00");
    assert_string_equal(resolve(in_root("outputs")), newer);
    assert_string_equal(resolve(in_root("outputs/quick_test")), old);
    assert_string_equal(resolve(in_root("outputs/quick_test/2026-11-14/")), old);
}

LAB_TEST(the_name_that_it_was_run_by_works_too) {
    const char *folder = make_known("outputs/locality/2026-11-14/10-00-00");
    assert_string_equal(resolve("quick"), folder); /* the fixture's option */
}

LAB_TEST(words_that_mean_no_study_are_refused) {
    const char *path;
    assert_refused(lab_folder_resolve(NULL, &arena, &path, &err), LAB_ERR_USER,
                   "gpulab run quick_test");
    make_known("outputs/quick_test/2026-11-14/10-00-00");
    assert_refused(lab_folder_resolve("quik_test", &arena, &path, &err), LAB_ERR_USER,
                   "did you mean 'quick_test'?");
    assert_refused(lab_folder_resolve("zebra", &arena, &path, &err), LAB_ERR_USER, "gpulab list");
    make_directories(in_root("empty"));
    assert_refused(lab_folder_resolve(in_root("empty"), &arena, &path, &err), LAB_ERR_USER,
                   "there is no study in");
    static const char *const paths[] = {"zebra.db", "quick_test/zebra", "a/quick_test"};
    for (int i = 0; i < 3; i++)
        assert_refused(lab_folder_resolve(paths[i], &arena, &path, &err), LAB_ERR_USER,
                       lab_arena_printf(&arena, "there is no file or directory '%s'", paths[i]));
    /* part of a name is none; nor is a study's option where another has the name */
    assert_refused(lab_folder_resolve("uick_test", &arena, &path, &err), LAB_ERR_USER,
                   "no study 'uick_test'; did you mean 'quick_test'?");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
