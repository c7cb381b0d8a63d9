/* test_own.c: files and folders of the caller's own, where others put links, pipes and theirs. */
#include "base/file/own.h"

#include "base/file/file.h"
#include "base/file/out_dir.h"
#include "base/file/out_file.h"
#include "base/file/walk.h"

#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Starts a child that opens an output and is killed with it open. */
static void be_killed(bool scratch) {
    pid_t child = fork();
    if (child == 0) {
        struct lab_out_file file;
        struct lab_scratch_dir dir;
        int result = scratch ? lab_scratch_dir_open(&test_arena, &dir, NULL)
                             : lab_out_file_open(test_path("out.csv"), &test_arena, &file, NULL);
        if (result == 0 && scratch)
            test_write(lab_arena_printf(&test_arena, "%s/below/file", dir.path), "");
        _exit(result < 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(names_in(test_folder()), 1);
}

LAB_TEST(leftovers_of_an_export_go) {
    struct lab_out_file first, second;
    test_folder();
    be_killed(false);
    const char *left = test_path("%s", lab_walk_names(test_folder(), &test_arena)[0]);
    ASSERT_OK(lab_out_file_open(test_path("out.csv"), &test_arena, &first, err));
    assert_true(exists(left)); /* so young that it may be another host's */
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, left, old, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, first.temporary, old, 0), 0);
    ASSERT_OK(lab_out_file_open(test_path("out.csv"), &test_arena, &second, err));
    assert_false(exists(left));
    assert_true(exists(first.temporary)); /* as old, but open */
    ASSERT_OK(lab_out_file_finish(&first, err));
    ASSERT_OK(lab_out_file_finish(&second, err));
    assert_int_equal(names_in(test_folder()), 1);
}

LAB_TEST(leftovers_of_a_report_go) {
    struct lab_scratch_dir first, second;
    setenv("TMPDIR", test_folder(), 1);
    be_killed(true);
    ASSERT_OK(lab_scratch_dir_open(&test_arena, &first, err));
    assert_int_equal(names_in(test_folder()), 1);
    ASSERT_OK(lab_scratch_dir_open(&test_arena, &second, err));
    assert_int_equal(names_in(test_folder()), 2);
    lab_scratch_dir_close(&first);
    lab_scratch_dir_close(&second);
    assert_int_equal(names_in(test_folder()), 0);

    struct lab_out_dir *dir;
    struct lab_out_dir_spec spec = {.path = test_path("report")};
    test_write(test_path("report/" LAB_FILE_TEMPORARY "1-0-0.tmp"), "");
    ASSERT_OK(lab_out_dir_open(&spec, &dir, err));
    assert_int_equal(names_in(spec.path), 0);
    lab_out_dir_close(dir);
    unsetenv("TMPDIR");
}
