/* test_out_dir.c: directories that are filled again: whose they are, what is replaced, what
 * stays. */
#include "base/file/out_dir.h"

#include "base/file/file.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct lab_err err;

static int set_up(void **state) {
    (void)state;
    err = LAB_ERR_INIT;
    return 0;
}

static const char *read_text(const char *name) {
    char *text;
    size_t length;
    return lab_file_read(test_path("%s", name), 1 << 20, &test_arena, &text, &length, NULL) == 0
               ? text
               : NULL;
}

static int fill(const struct lab_out_dir_spec *spec, const char *name, const char *text) {
    struct lab_out_dir *dir;
    err = LAB_ERR_INIT;
    if (lab_out_dir_open(spec, &dir, &err) < 0)
        return -1;
    int result = lab_out_dir_add(dir, name, text, strlen(text), &err);
    if (result == 0)
        result = lab_out_dir_commit(dir, &err);
    lab_out_dir_close(dir);
    return result;
}

/* Given a directory that was filled before, then what was written is replaced or removed, and no
 * more. */
LAB_TEST(only_what_was_written_is_replaced) {
    struct lab_out_dir_spec spec = {.path = test_path("out")};
    assert_int_equal(fill(&spec, "a", "one"), 0);
    test_write(test_path("out/mine"), "mine");
    assert_int_equal(fill(&spec, "b", "two"), 0);
    assert_null(read_text("out/a"));
    assert_string_equal(read_text("out/b"), "two");
    assert_string_equal(read_text("out/mine"), "mine");
    assert_int_equal(fill(&spec, "mine", "ours"), -1);
    assert_string_equal(read_text("out/mine"), "mine");
    assert_string_equal(read_text("out/b"), "two");
    spec.forced = true;
    assert_int_equal(fill(&spec, "mine", "ours"), 0);
}

/* Given a directory that is the program's own by the file beside it, then it is so with that file
 * alone. */
LAB_TEST(the_file_beside_makes_it_ours) {
    struct lab_out_dir_spec spec = {.path = test_path("report"), .owner = "study.db"};
    assert_int_equal(mkdir(spec.path, 0700), 0);
    test_write(test_path("report/index.html"), "of the user");
    assert_int_equal(fill(&spec, "index.html", "page"), -1);
    assert_contains(err.text, "holds no study.db of yours");
    assert_int_equal(symlink("/etc/hostname", test_path("study.db")), 0);
    assert_int_equal(fill(&spec, "index.html", "page"), -1);
    assert_int_equal(unlink(test_path("study.db")), 0);
    test_write(test_path("study.db"), "");
    assert_int_equal(fill(&spec, "index.html", "page"), 0);
    assert_string_equal(read_text("report/index.html"), "page");
}

/* Given a manifest that is too long, then it lists nothing: its last name may be half of
 * another. */
LAB_TEST(a_manifest_that_is_cut_off_lists_nothing) {
    struct lab_out_dir_spec spec = {.path = test_path("out")};
    size_t length = (size_t)2 << 20;
    char *text = lab_arena_alloc(&test_arena, length + 1, 1);
    assert_int_equal(mkdir(spec.path, 0700), 0);
    memset(text, '\n', length);
    memcpy(text, "gpulab files 1\na\n", 17);
    test_write(test_path("out/" LAB_OUT_DIR_MANIFEST), text);
    test_write(test_path("out/a"), "mine");
    assert_int_equal(fill(&spec, "a", "ours"), -1);
    assert_string_equal(read_text("out/a"), "mine");
}

/* Given a scratch directory, then nobody else may look into it, and closing leaves nothing. */
LAB_TEST(scratch_is_private_and_goes) {
    struct lab_scratch_dir scratch;
    struct stat info;
    assert_int_equal(lab_scratch_dir_open(&test_arena, &scratch, &err), 0);
    const char *path = scratch.path;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(lab_file_replace(lab_arena_printf(&test_arena, "%s/a", path), "x", 1, &err),
                     0);
    lab_scratch_dir_close(&scratch);
    assert_int_equal(access(path, F_OK), -1);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
