/* test_file.c: reading within bounds, writing all or nothing. */
#include "base/file/file.h"
#include "base/file/lock.h"
#include "base/file/map.h"

#include "test.h"
#include <dirent.h>
#include <fcntl.h>
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

static int count_files(void) {
    int count = 0;
    DIR *listing = opendir(test_folder());
    for (const struct dirent *entry; (entry = readdir(listing));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(listing);
    return count;
}

LAB_TEST(what_is_written_is_read) {
    const char *path = test_path("a.txt");
    static const char bytes[] = "one\0two";
    assert_int_equal(lab_file_write_atomic(path, bytes, sizeof bytes - 1, &err), 0);
    char *text;
    size_t length;
    assert_int_equal(lab_file_read(path, 7, &test_arena, &text, &length, &err), 0);
    assert_int_equal(length, 7);
    assert_memory_equal(text, bytes, 8);
    assert_int_equal(lab_file_write_atomic(path, "", 0, &err), 0);
    assert_int_equal(lab_file_read(path, 7, &test_arena, &text, &length, &err), 0);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    assert_int_equal(count_files(), 1); /* no temporary file is left */
}

LAB_TEST(what_is_mapped_is_the_file) {
    struct lab_file_map map;
    const char *path = test_path("m");
    assert_int_equal(lab_file_write_atomic(path, "tokens", 6, &err), 0);
    assert_int_equal(lab_file_map_open(path, &map, &err), 0);
    assert_int_equal(map.length, 6);
    assert_memory_equal(map.bytes, "tokens", 6);
    lab_file_map_close(&map);
    assert_null(map.bytes);
    /* given an empty file, then there is nothing to map */
    assert_int_equal(lab_file_write_atomic(path, "", 0, &err), 0);
    assert_int_equal(lab_file_map_open(path, &map, &err), 0);
    assert_int_equal(map.length, 0);
    lab_file_map_close(&map);
    /* given no file, then that is an error */
    assert_int_equal(lab_file_map_open(test_path("none"), &map, &err), -1);
    assert_contains(err.text, "No such file");
    assert_int_equal(lab_file_map_open(test_folder(), &map, &err), -1);
    assert_contains(err.text, "is a directory");
    assert_int_equal(lab_file_map_open("/dev/null", &map, &err), -1);
    assert_contains(err.text, "is a device or pipe");
}

LAB_TEST(a_large_file) {
    size_t size = 100000;
    char *bytes = lab_arena_alloc(&test_arena, size, 1);
    memset(bytes, 'x', size);
    assert_int_equal(lab_file_write_atomic(test_path("b"), bytes, size, &err), 0);
    char *text;
    size_t length;
    assert_int_equal(lab_file_read(test_path("b"), size, &test_arena, &text, &length, &err), 0);
    assert_int_equal(length, size);
    assert_memory_equal(text, bytes, size);
    assert_int_equal(lab_file_read(test_path("b"), size - 1, &test_arena, &text, &length, &err),
                     -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "too large: 100000 bytes, at most 99999 are read");
}

LAB_TEST(what_is_no_file_is_refused) {
    char *text = NULL;
    size_t length;
    assert_int_equal(lab_file_read(test_folder(), 100, &test_arena, &text, &length, &err), -1);
    assert_contains(err.text, "is a directory, not a file");
    assert_int_equal(lab_file_read("/dev/zero", 100, &test_arena, &text, &length, &err), -1);
    assert_string_equal(err.text, "/dev/zero is a device or pipe, not a file");
    assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
    assert_int_equal(lab_file_read(test_path("fifo"), 100, &test_arena, &text, &length, &err), -1);
    assert_contains(err.text, "device or pipe");
    assert_int_equal(lab_file_read(test_path("none"), 100, &test_arena, &text, &length, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "No such file or directory");
    assert_null(text);
}

LAB_TEST(files_of_the_kernel_have_no_size) {
    char *text;
    size_t length;
    assert_int_equal(lab_file_read("/proc/self/stat", 4096, &test_arena, &text, &length, &err), 0);
    assert_int_equal(strtol(text, NULL, 10), getpid());
    assert_int_equal(lab_file_read("/proc/self/stat", 3, &test_arena, &text, &length, &err), -1);
    assert_contains(err.text, "too large: at most 3 bytes are read");
}

LAB_TEST(the_old_file_stays_where_writing_fails) {
    assert_int_equal(lab_file_write_atomic(test_path("none/x"), "new", 3, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    /* a directory is in the way: the rename fails, and nothing is left of the attempt */
    assert_int_equal(mkdir(test_path("taken"), 0700), 0);
    assert_int_equal(lab_file_write_atomic(test_path("taken"), "new", 3, &err), -1);
    assert_int_equal(count_files(), 1);
    rmdir(test_path("taken"));
}

LAB_TEST(permissions) {
    mode_t mask = umask(022);
    struct stat info;
    assert_int_equal(lab_file_write_atomic(test_path("p"), "x", 1, &err), 0);
    assert_int_equal(stat(test_path("p"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
    assert_int_equal(chmod(test_path("p"), 0600), 0);
    assert_int_equal(lab_file_write_atomic(test_path("p"), "y", 1, &err), 0);
    assert_int_equal(stat(test_path("p"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    umask(mask);
}

LAB_TEST(children_inherit_what_is_below) {
    int below = dup(STDERR_FILENO), above = dup(STDERR_FILENO);
    lab_file_keep_from_children(above);
    assert_int_equal(fcntl(below, F_GETFD), 0);
    assert_int_equal(fcntl(above, F_GETFD), FD_CLOEXEC);
    lab_file_close(&below);
    lab_file_close(&above);
}

/* Given a command that is too long, then what is kept of it says so. */
LAB_TEST(a_long_command_is_cut) {
    struct lab_holder holder;
    char command[400];
    memset(command, 'x', sizeof command);
    command[sizeof command - 1] = '\0';
    lab_holder_self(command, NULL, &holder);
    assert_int_equal(strlen(holder.command), sizeof holder.command - 1);
    assert_string_equal(holder.command + sizeof holder.command - 5, "x...");
    command[sizeof holder.command - 1] = '\0';
    lab_holder_self(command, NULL, &holder);
    assert_string_equal(holder.command, command);
}

LAB_TEST(numbers_in_files) {
    static const struct {
        const char *text;
        int result;
        int64_t value;
    } cases[] = {
        {"42\n", 0, 42},  {"-1\n", 0, -1},  {"0x1f\n", 0, 31}, {" 7 ", 0, 7},
        {"", -1, 0},      {"max\n", -1, 0}, {"4 5\n", -1, 0},  {"99999999999999999999\n", -1, 0},
        {"010\n", 0, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = cases[i].text;
        assert_int_equal(lab_file_write_atomic(test_path("n"), text, strlen(text), &err), 0);
        int64_t value = 0;
        assert_int_equal(lab_file_read_int(test_path("n"), &value), cases[i].result);
        assert_int_equal(value, cases[i].value);
    }
    int64_t value = 5;
    assert_int_equal(lab_file_read_int(test_path("none"), &value), -1);
    assert_int_equal(lab_file_read_int(test_folder(), &value), -1);
    assert_int_equal(value, 5);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
