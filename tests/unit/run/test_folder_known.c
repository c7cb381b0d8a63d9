/* All studies of a user, and which of them a word means. */
#include "folder_fixture.h"

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
    make_known("outputs/quick_test/2026-11-14/10-00-00");
    write_file(in_root("state/gpulab/studies/README"), "/tmp");
    write_file(in_root("state/gpulab/studies/0123456789abcdef"), "");
    write_file(in_root("state/gpulab/studies/0123456789abcdee"), "not a path");
    make_directories(in_root("state/gpulab/studies/0123456789abcded"));
    known(1);
    assert_int_equal(count_entries(in_root("state/gpulab/studies")), 5);
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
    make_directories(lab_arena_printf(&arena, "%s/logs", folder));
    write_file(lab_arena_printf(&arena, "%s/results.json", folder), "[]");
    write_file(lab_arena_printf(&arena, "%s/logs/a.stderr", folder), "");
    assert_string_equal(resolve(folder), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/study.db", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/results.json", folder)), folder);
    assert_string_equal(resolve(lab_arena_printf(&arena, "%s/logs/a.stderr", folder)), folder);
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
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
