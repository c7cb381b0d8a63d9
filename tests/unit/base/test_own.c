/* test_own.c: files and folders of the caller's own, where others put links, pipes and theirs. */
#include "base/file/own.h"

#include "base/file/file.h"
#include "base/file/walk.h"

#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static int names_in(const char *folder) {
    const char *const *names = lab_walk_names(folder, &test_arena);
    int count = 0;
    while (names[count])
        count++;
    return count;
}

/* Opens in every way that takes what is there; whatever it is, the file `precious` stays. */
static void expect_refused(const char *path, const char *words) {
    for (enum lab_own how = LAB_OWN_CHANGE; how <= LAB_OWN_APPEND; how++) {
        ASSERT_FAILS(lab_own_open(path, how, err), LAB_ERR_USER, words);
        assert_int_equal(errno, EPERM);
    }
    assert_int_equal(lab_own_open(path, LAB_OWN_NEW, NULL), -1);
    assert_int_equal(errno, EEXIST);
}

LAB_TEST(a_file_of_the_callers_own) {
    const char *path = test_path("log");
    for (int i = 0; i < 2; i++) {
        int fd = lab_own_open(path, LAB_OWN_APPEND, NULL);
        assert_int_equal(lab_file_write_all(fd, "line\n", 5), 0);
        lab_file_close(&fd);
    }
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 10);
    ASSERT_FAILS(lab_own_open(test_path("none/log"), LAB_OWN_APPEND, err), LAB_ERR_USER, "No such");
}

LAB_TEST(traps_are_not_opened) {
    const char *path = test_path("log"), *precious = test_path("precious");
    test_write(precious, "precious");
    assert_int_equal(symlink(precious, path), 0);
    expect_refused(path, "is a link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(precious, path), 0);
    expect_refused(path, "has a second name");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0); /* nobody reads it, nobody writes it */
    expect_refused(path, "is a pipe");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(test_path("nowhere"), path), 0);
    expect_refused(path, "is a link");
    assert_false(exists(test_path("nowhere")));
    ASSERT_FAILS(lab_own_folder(path, err), LAB_ERR_USER, "is a link or a file");
    ASSERT_FAILS(lab_own_folder(precious, err), LAB_ERR_USER, "is a link or a file");
    ASSERT_OK(lab_own_folder(test_path("new"), err));
    ASSERT_OK(lab_own_folder(test_path("new"), err));
}

LAB_TEST(what_another_user_made_is_not_ours) {
    if (geteuid() != 0)
        skip(); /* needs a second user */
    const char *folder = test_path("theirs"), *file = test_path("file");
    assert_int_equal(mkdir(folder, 0777), 0);
    test_write(file, "");
    assert_int_equal(chown(folder, 65534, 65534), 0);
    assert_int_equal(chown(file, 65534, 65534), 0);
    ASSERT_FAILS(lab_own_folder(folder, err), LAB_ERR_USER, "belongs to another user");
    expect_refused(file, "belongs to another user");
    assert_int_equal(names_in(test_folder()), 2); /* no trace of the question */
}

LAB_TEST(a_rename_replaces_nothing) {
    test_write(test_path("a"), "a");
    test_write(test_path("b"), "b");
    assert_int_equal(lab_own_rename_new(test_path("a"), test_path("b")), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(lab_own_rename_new(test_path("a"), test_path("c")), 0);
    assert_true(exists(test_path("c")) && !exists(test_path("a")));
}
