/* test_walk.c: what is found below a folder, in which order, and what is passed over. */
#include "base/file/file.h"
#include "base/file/walk.h"
#include "base/str.h"
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* All finds as "below|name", one after the other. */
static void assert_finds(const struct lab_walk *wanted, const char *expected) {
    struct lab_walk_find *finds;
    int count;
    LAB_AUTO(str, text);
    ASSERT_OK(lab_walk(test_folder(), wanted, &test_arena, &finds, &count, err));
    for (int i = 0; i < count; i++) {
        const char *path =
            *finds[i].below ? lab_arena_printf(&test_arena, "%s/%s", finds[i].below, finds[i].name)
                            : finds[i].name;
        assert_string_equal(finds[i].path, test_path("%s", path));
        lab_str_printf(&text, "%s%s|%s", i ? " " : "", finds[i].below, finds[i].name);
    }
    assert_string_equal(text.text, expected);
}

LAB_TEST(files_are_found_by_their_endings_in_the_order_of_names) {
    static const char *const endings[] = {".db", ".csv", NULL};
    test_write(test_path("c.db"), "");
    test_write(test_path("b/x/y.csv"), "");
    test_write(test_path("b/a.db"), "");
    test_write(test_path("a.txt"), "");
    test_write(test_path(".db"), ""); /* nothing stands before it */
    assert_finds(&(struct lab_walk){.endings = endings, .depth = 2}, "b|a.db b/x|y.csv |c.db");
    assert_finds(&(struct lab_walk){.endings = endings, .depth = 1}, "b|a.db |c.db");
    assert_finds(&(struct lab_walk){.any_file = true}, "|a.txt |c.db");
}

LAB_TEST(of_files_that_differ_in_their_endings_the_best_is_taken) {
    static const char *const endings[] = {".db", "_all.json", ".json", NULL};
    test_write(test_path("a.json"), "");
    test_write(test_path("a_all.json"), "");
    test_write(test_path("b.json"), "");
    test_write(test_path("b_all.json"), "");
    test_write(test_path("b.db"), "");
    test_write(test_path("c.json"), "");
    test_write(test_path("d/c.db"), "");
    assert_finds(&(struct lab_walk){.endings = endings}, "|a_all.json |b.db |c.json");
}

LAB_TEST(folder_that_holds_a_name_is_not_entered) {
    test_write(test_path("x/study.db"), "");
    test_write(test_path("x/inside/study.db"), "");
    test_write(test_path("y/z/study.db"), "");
    assert_finds(&(struct lab_walk){.holds = "study.db", .depth = 8}, "|x y|z");
}

LAB_TEST(links_and_hidden_names_are_passed_over) {
    test_write(test_path("real/a"), "");
    test_write(test_path(".hidden/b"), "");
    test_write(test_path("real/.c"), "");
    assert_int_equal(symlink(test_folder(), test_path("real/circle")), 0);
    assert_int_equal(symlink(test_path("real/a"), test_path("link")), 0);
    assert_finds(&(struct lab_walk){.any_file = true, .depth = 8}, "real|a");
}

LAB_TEST(only_the_first_folder_has_to_be_readable) {
    struct lab_walk_find *finds;
    int count;
    test_write(test_path("a/x"), "");
    test_write(test_path("b/y"), "");
    if (geteuid() == 0)
        skip(); /* root reads everything */
    assert_int_equal(chmod(test_path("a"), 0), 0);
    assert_finds(&(struct lab_walk){.any_file = true, .depth = 8}, "b|y");
    struct lab_walk wanted = {.any_file = true};
    ASSERT_FAILS(lab_walk(test_path("a"), &wanted, &test_arena, &finds, &count, err), LAB_ERR_USER,
                 "");
    assert_int_equal(chmod(test_path("a"), 0700), 0);
}

LAB_TEST(missing_folder_is_the_users_mistake) {
    struct lab_walk_find *finds;
    int count;
    struct lab_walk wanted = {.any_file = true};
    ASSERT_FAILS(lab_walk(test_path("nothing"), &wanted, &test_arena, &finds, &count, err),
                 LAB_ERR_USER, "nothing can't be read");
    assert_null(lab_walk_names(test_path("nothing"), &test_arena));
    assert_int_equal(errno, ENOENT);
}

LAB_TEST(names_are_sorted_and_complete) {
    test_write(test_path("b"), "");
    test_write(test_path(".a"), "");
    test_write(test_path("c/d"), "");
    const char *const *names = lab_walk_names(test_folder(), &test_arena);
    assert_string_equal(names[0], ".a");
    assert_string_equal(names[1], "b");
    assert_string_equal(names[2], "c");
    assert_null(names[3]);
}

LAB_TEST(file_is_known_again_by_any_name) {
    struct lab_walk_seen seen = {0};
    test_write(test_path("a"), "");
    test_write(test_path("b"), "");
    assert_int_equal(link(test_path("a"), test_path("hard")), 0);
    assert_int_equal(symlink(test_path("a"), test_path("soft")), 0);
    assert_false(lab_walk_again(&seen, test_path("a"), &test_arena));
    assert_false(lab_walk_again(&seen, test_path("b"), &test_arena));
    assert_true(lab_walk_again(&seen, test_path("a"), &test_arena));
    assert_true(lab_walk_again(&seen, test_path("hard"), &test_arena));
    assert_true(lab_walk_again(&seen, test_path("soft"), &test_arena));
    assert_false(lab_walk_again(&seen, test_path("nothing"), &test_arena));
    assert_false(lab_walk_again(&seen, test_path("nothing"), &test_arena));
}

LAB_TEST(slashes_at_the_end_go) {
    assert_string_equal(lab_walk_trim("a/b//", &test_arena), "a/b");
    assert_string_equal(lab_walk_trim("/", &test_arena), "/");
    assert_string_equal(lab_walk_trim("//", &test_arena), "/");
}
