/* test_walk.c: what is found below a folder, in which order, and what is passed over. */
#include "base/file/file.h"
#include "base/file/walk.h"
#include "base/str.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct lab_arena arena;
static struct lab_err err;
static char root[64];

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    err = LAB_ERR_INIT;
    snprintf(root, sizeof root, "/tmp/gpulab-test-walk-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info, (void)type, (void)place;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    lab_arena_release(&arena);
    return 0;
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};

static const char *in_root(const char *path) {
    return lab_arena_printf(&arena, "%s/%s", root, path);
}

static void given_file(const char *path) {
    const char *whole = in_root(path), *refused;
    const char *folder = lab_arena_strndup(&arena, whole, (size_t)(strrchr(whole, '/') - whole));
    assert_int_equal(lab_file_make_folders(folder, 0777, &arena, &refused), 0);
    int fd = open(whole, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    close(fd);
}

/* All finds as "below|name", one after the other. */
static void assert_finds(const struct lab_walk *wanted, const char *expected) {
    struct lab_walk_find *finds;
    int count;
    LAB_AUTO(str, text);
    assert_int_equal(lab_walk(root, wanted, &arena, &finds, &count, &err), 0);
    for (int i = 0; i < count; i++) {
        const char *path = *finds[i].below
                               ? lab_arena_printf(&arena, "%s/%s", finds[i].below, finds[i].name)
                               : finds[i].name;
        assert_string_equal(finds[i].path, in_root(path));
        lab_str_printf(&text, "%s%s|%s", i ? " " : "", finds[i].below, finds[i].name);
    }
    assert_string_equal(text.text, expected);
}

LAB_TEST(files_are_found_by_their_endings_in_the_order_of_names) {
    static const char *const endings[] = {".db", ".csv", NULL};
    given_file("c.db");
    given_file("b/x/y.csv");
    given_file("b/a.db");
    given_file("a.txt");
    given_file(".db"); /* nothing stands before it */
    assert_finds(&(struct lab_walk){.endings = endings, .depth = 2}, "b|a.db b/x|y.csv |c.db");
    assert_finds(&(struct lab_walk){.endings = endings, .depth = 1}, "b|a.db |c.db");
    assert_finds(&(struct lab_walk){.any_file = true}, "|a.txt |c.db");
}

LAB_TEST(of_files_that_differ_in_their_endings_the_best_is_taken) {
    static const char *const endings[] = {".db", "_all.json", ".json", NULL};
    given_file("a.json");
    given_file("a_all.json");
    given_file("b.json");
    given_file("b_all.json");
    given_file("b.db");
    given_file("c.json");
    given_file("d/c.db");
    assert_finds(&(struct lab_walk){.endings = endings}, "|a_all.json |b.db |c.json");
}

LAB_TEST(folder_that_holds_a_name_is_not_entered) {
    given_file("x/study.db");
    given_file("x/inside/study.db");
    given_file("y/z/study.db");
    assert_finds(&(struct lab_walk){.holds = "study.db", .depth = 8}, "|x y|z");
}

LAB_TEST(links_and_hidden_names_are_passed_over) {
    given_file("real/a");
    given_file(".hidden/b");
    given_file("real/.c");
    assert_int_equal(symlink(root, in_root("real/circle")), 0);
    assert_int_equal(symlink(in_root("real/a"), in_root("link")), 0);
    assert_finds(&(struct lab_walk){.any_file = true, .depth = 8}, "real|a");
}

LAB_TEST(only_the_first_folder_has_to_be_readable) {
    struct lab_walk_find *finds;
    int count;
    given_file("a/x");
    given_file("b/y");
    if (geteuid() == 0)
        skip(); /* root reads everything */
    assert_int_equal(chmod(in_root("a"), 0), 0);
    assert_finds(&(struct lab_walk){.any_file = true, .depth = 8}, "b|y");
    assert_int_equal(
        lab_walk(in_root("a"), &(struct lab_walk){.any_file = true}, &arena, &finds, &count, &err),
        -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(chmod(in_root("a"), 0700), 0);
}

LAB_TEST(missing_folder_is_the_users_mistake) {
    struct lab_walk_find *finds;
    int count;
    assert_int_equal(lab_walk(in_root("nothing"), &(struct lab_walk){.any_file = true}, &arena,
                              &finds, &count, &err),
                     -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "nothing can't be read");
    assert_null(lab_walk_names(in_root("nothing"), &arena));
    assert_int_equal(errno, ENOENT);
}

LAB_TEST(names_are_sorted_and_complete) {
    given_file("b");
    given_file(".a");
    given_file("c/d");
    const char *const *names = lab_walk_names(root, &arena);
    assert_string_equal(names[0], ".a");
    assert_string_equal(names[1], "b");
    assert_string_equal(names[2], "c");
    assert_null(names[3]);
}

LAB_TEST(file_is_known_again_by_any_name) {
    struct lab_walk_seen seen = {0};
    given_file("a");
    given_file("b");
    assert_int_equal(link(in_root("a"), in_root("hard")), 0);
    assert_int_equal(symlink(in_root("a"), in_root("soft")), 0);
    assert_false(lab_walk_again(&seen, in_root("a"), &arena));
    assert_false(lab_walk_again(&seen, in_root("b"), &arena));
    assert_true(lab_walk_again(&seen, in_root("a"), &arena));
    assert_true(lab_walk_again(&seen, in_root("hard"), &arena));
    assert_true(lab_walk_again(&seen, in_root("soft"), &arena));
    assert_false(lab_walk_again(&seen, in_root("nothing"), &arena));
    assert_false(lab_walk_again(&seen, in_root("nothing"), &arena));
}

LAB_TEST(slashes_at_the_end_go) {
    assert_string_equal(lab_walk_trim("a/b//", &arena), "a/b");
    assert_string_equal(lab_walk_trim("/", &arena), "/");
    assert_string_equal(lab_walk_trim("//", &arena), "/");
}
