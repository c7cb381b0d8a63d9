/* test_store_refused.c: files that aren't a study's, that can't be written, and disks without
 * room. */
#include "store_fixture.h"
#include "version.h"

#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct lab_store *unused;

#define assert_not_read(code, gist)                                                                \
    do {                                                                                           \
        assert_refused(lab_store_open(path, LAB_STORE_READ, &unused, &err), code, gist);           \
        assert_refused(lab_store_open(path, LAB_STORE_WRITE, &unused, &err), code, gist);          \
    } while (0)

static void write_bytes(const char *where, const char *bytes, size_t length, off_t offset) {
    int fd = open(where, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0 && pwrite(fd, bytes, length, offset) == (ssize_t)length);
    close(fd);
}

/* --- files --- */

LAB_TEST(what_is_no_database_is_refused) {
    assert_not_read(LAB_ERR_USER, "No such file");
    write_bytes(path, "", 0, 0);
    assert_not_read(LAB_ERR_USER, "it is empty");
    static const char text[4096] = "a report, not a database";
    write_bytes(path, text, sizeof text, 0);
    assert_not_read(LAB_ERR_USER, "not an SQLite database");
    path = folder;
    assert_not_read(LAB_ERR_USER, "is a directory");
    path = "/dev/null";
    assert_not_read(LAB_ERR_USER, "device or pipe");
}

/* Offsets in the header of an SQLite file. */
enum { USER_VERSION_LAST_BYTE = 63, APPLICATION_ID = 68 };

LAB_TEST(somebody_elses_database_is_refused) {
    lab_store_close(create(path));
    write_bytes(path, "\x0f\x05\x51\x12", 4, APPLICATION_ID);
    assert_not_read(LAB_ERR_USER, "of another program");
}

LAB_TEST(a_later_version_is_refused_by_its_number) {
    lab_store_close(create(path));
    write_bytes(path, "\x4d", 1, USER_VERSION_LAST_BYTE);
    assert_not_read(LAB_ERR_USER, "(file version 77): gpulab " LAB_VERSION
                                  " reads up to file version 5. Use gpulab ");
}

LAB_TEST(a_truncated_file_is_refused) {
    lab_store_close(create(path));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 4096), 0);
    assert_not_read(LAB_ERR_WRONG, "is damaged");
    assert_int_equal(truncate(path, 4096), 0);
    assert_not_read(LAB_ERR_WRONG, "is damaged");
    assert_int_equal(truncate(path, 50), 0);
    assert_not_read(LAB_ERR_WRONG, "is damaged");
}

LAB_TEST(damaged_iterations_are_an_error) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(add_iterations(store, 1, 0, 0, 10));
    struct lab_iteration *items;
    size_t count;
    static const char *const damages[] = {
        "UPDATE iterations SET count = 11", "UPDATE iterations SET first = 1, count = 10",
        "UPDATE iterations SET first = 0, bytes = substr(bytes, 1, 20)",
        "UPDATE iterations SET bytes = x''", "UPDATE iterations SET bytes = x'01ffffffffffff7f'"};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        assert_works(lab_store_exec(store, damages[i], &err));
        assert_refused(lab_store_iterations(store, 1, 0, &arena, &items, &count, &err),
                       LAB_ERR_WRONG, "is damaged");
    }
    assert_int_equal(read_run(store, 1).state, LAB_RUN_RUNNING);
    lab_store_close(store);
}

LAB_TEST(a_file_without_its_study_is_damaged) {
    struct lab_store *store = create(path);
    struct lab_store_study study;
    assert_works(lab_store_exec(store, "DELETE FROM study", &err));
    assert_refused(lab_store_study(store, &arena, &study, &err), LAB_ERR_WRONG,
                   "it holds no study");
    lab_store_close(store);
}

/* A study's file may come from anybody: what it would run isn't run. */
LAB_TEST(triggers_in_a_file_do_not_fire) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_exec(store,
                                "CREATE TRIGGER trap BEFORE UPDATE ON run BEGIN"
                                " SELECT RAISE(ABORT, 'it fired'); END",
                                &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    lab_store_close(store);
}

/* Who may write to a study's folder puts links and pipes where SQLite keeps changes: what they lead
 * to stays as it is, and nothing waits for a pipe's other end. */
LAB_TEST(traps_beside_a_file_are_not_opened) {
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    const char *victim = lab_arena_printf(&arena, "%s/victim", folder);
    write_bytes(victim, "precious", 8, 0);
    lab_store_close(create(path));
    alarm(20); /* a pipe has no other end */
    for (int i = 0; i < 9; i++) {
        const char *trap = lab_arena_printf(&arena, "%s%s", path, beside[i / 3]);
        assert_int_equal(i % 3 == 0   ? symlink(victim, trap)
                         : i % 3 == 1 ? link(victim, trap)
                                      : mkfifo(trap, 0666),
                         0);
        const char *gist = lab_arena_printf(&arena, "%s is a link, a pipe or a device", trap);
        assert_refused(lab_store_open(path, LAB_STORE_WRITE, &unused, &err), LAB_ERR_SYSTEM, gist);
        if (lab_str_equal(beside[i / 3], "-journal"))
            assert_refused(lab_store_open(path, LAB_STORE_READ, &unused, &err), LAB_ERR_SYSTEM,
                           gist);
        struct stat info;
        assert_int_equal(stat(victim, &info), 0);
        assert_int_equal(info.st_size, 8);
        assert_int_equal(unlink(trap), 0);
        lab_store_close(reopen(LAB_STORE_WRITE));
    }
    alarm(0);
}

LAB_TEST(an_existing_file_is_never_replaced) {
    write_bytes(path, "mine", 4, 0);
    assert_refused(lab_store_create(path, &a_study, two_runs, 2, &unused, &err), LAB_ERR_USER,
                   "exists already");
    const char *nowhere = lab_arena_printf(&arena, "%s/missing/study.db", folder);
    assert_refused(lab_store_create(nowhere, &a_study, two_runs, 2, &unused, &err), LAB_ERR_USER,
                   "No such file");
    assert_int_equal(count_files(folder, false), 1);
}

LAB_TEST(a_second_writer_is_told_so) {
    struct lab_store *first = create(path);
    assert_works(lab_store_begin(first, true, &err));
    assert_refused(lab_store_open(path, LAB_STORE_WRITE, &unused, &err), LAB_ERR_SYSTEM,
                   "another process is writing");
    struct lab_store *reader = reopen(LAB_STORE_READ);
    assert_int_equal(read_run(reader, 1).state, LAB_RUN_PLANNED);
    lab_store_close(reader);
    lab_store_rollback(first);
    lab_store_close(first);
    lab_store_close(reopen(LAB_STORE_WRITE));
}

LAB_TEST(what_nobody_would_find_is_not_written) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    const char *elsewhere = lab_arena_printf(&arena, "%s/elsewhere.db", folder);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_refused(lab_store_begin_run(store, 1, epoch, 7, &err), LAB_ERR_SYSTEM,
                   "study.db is gone: it was moved or removed");
    assert_int_equal(rename(elsewhere, path), 0);
    assert_works(lab_store_begin_run(store, 1, epoch, 7, &err));
    lab_store_close(store);
}

LAB_TEST(names_that_mean_something_to_sqlite_are_only_names) {
    static const char *const names[] = {":memory:", "file:a?mode=memory", "50%41#1?immutable=0",
                                        "größer ' \" ;"};
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path = names[i];
        lab_store_close(create(path));
        lab_store_close(reopen(LAB_STORE_READ));
        assert_int_equal(access(names[i], F_OK), 0);
    }
    assert_int_equal(chdir(before), 0);
}

LAB_TEST(network_file_systems_share_no_memory) {
    assert_false(lab_store_shares_memory(0x6969));                         /* NFS */
    assert_false(lab_store_shares_memory(0xff534d42));                     /* CIFS */
    assert_false(lab_store_shares_memory((unsigned long)(int)0xfe534d42)); /* SMB2, sign extended */
    assert_true(lab_store_shares_memory(0xef53));                          /* ext4 */
    assert_true(lab_store_shares_memory(0x01021994));                      /* tmpfs */
}

/* --- permissions: as somebody who isn't root, for whom there are none --- */

/* In this process, so that what it executes counts as covered. */
static int as_nobody(int (*action)(void)) {
    bool root = geteuid() == 0;
    if (root && (setresgid(65534, 65534, 0) < 0 || setresuid(65534, 65534, 0) < 0)) {
        print_message("SKIPPED: root can't become somebody else here\n");
        skip();
    }
    int result = action();
    if (root)
        assert_true(setresuid(0, 0, 0) == 0 && setresgid(0, 0, 0) == 0);
    return result;
}

static const char *gist;
static enum lab_store_mode wanted_mode;
static enum lab_run_state wanted_state;

static int is_refused(void) {
    if (lab_store_open(path, wanted_mode, &unused, &err) == 0)
        return 1;
    if (strstr(err.text, gist))
        return 0;
    print_message("%s\n", err.text);
    return 2;
}

static int is_read(void) {
    struct lab_run *runs;
    int count;
    struct lab_store *store;
    if (lab_store_open(path, LAB_STORE_READ, &store, &err) < 0 ||
        lab_store_runs(store, &arena, &runs, &count, &err) < 0) {
        print_message("%s\n", err.text);
        return 1;
    }
    lab_store_close(store);
    return count == 2 && runs[0].state == wanted_state ? 0 : 2;
}

LAB_TEST(permissions_are_named) {
    lab_store_close(create(path));
    chmod(folder, 0755);
    chmod(path, 0444);
    wanted_mode = LAB_STORE_WRITE;
    gist = "can't be written to: Permission denied";
    assert_int_equal(as_nobody(is_refused), 0);
    chmod(path, 0);
    wanted_mode = LAB_STORE_READ;
    gist = "can't be read: Permission denied";
    assert_int_equal(as_nobody(is_refused), 0);
    /* the file may be written, but nothing beside it can be made */
    chmod(path, 0666);
    chmod(folder, 0555);
    wanted_mode = LAB_STORE_WRITE;
    gist = path;
    assert_int_equal(as_nobody(is_refused), 0);
    wanted_state = LAB_RUN_PLANNED;
    assert_int_equal(as_nobody(is_read), 0);
    chmod(folder, 0755);
}

/* A writer that ends without closing: the last changes are in the WAL alone. */
static void leave_open(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lab_store *store;
        int64_t epoch;
        _exit(lab_store_open(path, LAB_STORE_WRITE, &store, &err) < 0 ||
              lab_store_epoch(store, "runner", &epoch, &err) < 0 ||
              lab_store_begin_run(store, 2, epoch, 1, &err) < 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

LAB_TEST(a_file_that_was_not_closed_is_read_where_nothing_can_be_written) {
    lab_store_close(create(path));
    leave_open();
    assert_int_equal(count_files(folder, false), 3);
    chmod(folder, 0555);
    wanted_state = LAB_RUN_RUNNING;
    assert_int_equal(as_nobody(is_read), 0);
    /* as when only two of the three were copied: never the old state in silence */
    chmod(folder, 0755);
    unlink(lab_arena_printf(&arena, "%s-shm", path));
    chmod(folder, 0555);
    wanted_mode = LAB_STORE_READ;
    gist = "was not closed";
    assert_int_equal(as_nobody(is_refused), 0);
    /* the WAL has gone into the file, which still is in WAL mode: it is read alone */
    chmod(folder, 0755);
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    lab_store_abandon(store);
    assert_int_equal(count_files(folder, false), 1);
    chmod(folder, 0555);
    wanted_state = LAB_RUN_RUNNING;
    assert_int_equal(as_nobody(is_read), 0);
    chmod(folder, 0755);
}

/* A writer in rollback mode that ends in the middle of a change, half of which is in the file. */
static void leave_half_a_change(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lab_store *store;
        _exit(lab_store_open(path, LAB_STORE_WRITE, &store, &err) < 0 ||
              lab_store_exec(store,
                             "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                             "UPDATE run SET label = hex(randomblob(100000)), state = 'failed'",
                             &err) < 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

LAB_TEST(half_a_change_is_undone_for_a_reader) {
    lab_store_close(create(path));
    leave_half_a_change();
    assert_int_equal(count_files(folder, false), 2);
    chmod(folder, 0555);
    wanted_mode = LAB_STORE_READ;
    gist = "was not closed";
    assert_int_equal(as_nobody(is_refused), 0);
    chmod(folder, 0755);
    struct lab_store *store = reopen(LAB_STORE_READ);
    assert_int_equal(read_run(store, 1).state, LAB_RUN_PLANNED);
    assert_string_equal(read_run(store, 1).label, "32x6x512");
    lab_store_close(store);
    assert_int_equal(count_files(folder, false), 1);
}

/* --- a full disk --- */

static void fill_disk(const char *where) {
    static const char zeros[4096];
    int fd = open(where, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void on_full_disk(const char *filler) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_finish_run(store, 1, &a_result, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 1, &err));
    assert_works(add_iterations(store, 2, 0, 0, 1000));

    fill_disk(filler);
    size_t kept = 1000;
    while (kept < 1000000 && add_iterations(store, 2, 0, (int64_t)kept, 1000) == 0)
        kept += 1000;
    assert_int_equal(err.code, LAB_ERR_SYSTEM);
    assert_string_equal(err.text, lab_arena_printf(&arena, "%s: no space left", path));
    assert_int_equal(err.hint, LAB_HINT_OUT_OF_SPACE);
    err = LAB_ERR_INIT;
    assert_int_equal(read_run(store, 1).state, LAB_RUN_DONE);
    assert_int_equal(count_iterations(store, 2, 0), kept);
    const char *other = lab_arena_printf(&arena, "%s/disk/other.db", folder);
    assert_refused(lab_store_create(other, &a_study, two_runs, 2, &unused, &err), LAB_ERR_SYSTEM,
                   "no space left");
    assert_int_equal(access(other, F_OK), -1);

    unlink(filler);
    assert_works(add_iterations(store, 2, 0, (int64_t)kept, 1000));
    assert_works(lab_store_finish_run(store, 2, &a_result, &err));
    lab_store_close(store);
    store = reopen(LAB_STORE_READ);
    assert_int_equal(read_run(store, 1).state, LAB_RUN_DONE);
    assert_int_equal(read_run(store, 2).state, LAB_RUN_DONE);
    assert_int_equal(count_iterations(store, 2, 0), kept + 1000);
    lab_store_close(store);
}

static int unmount(void **state) {
    const char *disk = lab_arena_printf(&arena, "%s/disk", folder);
    umount2(disk, MNT_DETACH);
    rmdir(disk);
    return tear_down(state);
}

LAB_TEST_WITH(a_full_disk_costs_nothing_that_was_kept, set_up, unmount) {
    const char *disk = lab_arena_printf(&arena, "%s/disk", folder);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (mount("none", disk, "tmpfs", 0, "size=512k") < 0) {
        rmdir(disk);
        print_message("SKIPPED: a small disk can't be mounted here: %s\n", strerror(errno));
        skip();
    }
    path = lab_arena_printf(&arena, "%s/study.db", disk);
    on_full_disk(lab_arena_printf(&arena, "%s/filler", disk));
    assert_int_equal(count_files(disk, false), 1);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
