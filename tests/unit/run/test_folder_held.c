/* A study's folder: two runners never share one; what its lock says, and who may hold it. */
#include "folder_fixture.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>

/* --- two runners --- */

LAB_TEST(a_held_one_is_refused_and_says_by_whom) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct lab_folder_request wanted = request(true);
    struct lab_holder holder;
    assert_false(lab_folder_held(in_study("2026-11-14/10-00-00"), &holder));
    struct other other = start_other(open_and_keep, &wanted);

    assert_true(lab_folder_held(in_study("2026-11-14/10-00-00"), &holder));
    assert_int_equal(holder.pid, other.pid);
    assert_string_equal(holder.command, "gpulab run quick_test");
    assert_string_equal(holder.folder, in_study("2026-11-14/10-00-00"));
    assert_true(holder.since_wall_ns > 0);
    assert_true(*holder.host);

    struct lab_folder folder = LAB_FOLDER_INIT;
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER,
                   lab_arena_printf(&arena, "is in use by process %d on ", other.pid));
    assert_contains(err.text, "(gpulab run quick_test, since ");
    assert_contains(err.text, "experiment.resume=false");

    /* a killed one's lock goes with it, its content stays */
    kill_other(&other);
    assert_false(lab_folder_held(in_study("2026-11-14/10-00-00"), &holder));
    assert_int_equal(holder.pid, 0);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    assert_true(lab_folder_held(in_study("2026-11-14/10-00-00"), NULL));
    lab_folder_close(&folder);
}

LAB_TEST(who_only_locks_the_file_is_no_runner) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct lab_folder_request wanted = request(true);
    struct other other = start_other(open_and_keep, &wanted);
    kill_other(&other);
    int reader = open(in_study("2026-11-14/10-00-00/lock"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(reader, LOCK_EX | LOCK_NB), 0);
    assert_false(lab_folder_held(in_study("2026-11-14/10-00-00"), NULL));
    struct lab_folder folder = LAB_FOLDER_INIT;
    assert_refused(lab_folder_open(&wanted, &folder, &err), LAB_ERR_USER,
                   "though its runner has ended");
    close(reader);
}

LAB_TEST(one_that_is_just_being_made_is_found) {
    struct lab_folder_request wanted = request(true);
    struct lab_folder folder = LAB_FOLDER_INIT;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t other = fork();
    if (other == 0) { /* begins, makes the study, and ends */
        if (lab_folder_open(&wanted, &folder, &err) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        usleep(100000);
        make_study(folder.path, PLAN, MACHINE, 1);
        _exit(lab_folder_publish(&folder, &err) < 0);
    }
    assert_int_equal(read(ready[0], (char[1]){0}, 1), 1);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    lab_folder_close(&folder);
    int status;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(ready[0]);
    close(ready[1]);
}

/* Holds it, but not for long: as the workers of a runner that was just killed. */
static bool open_for_a_moment(const void *what) {
    if (!open_and_keep(what))
        return false;
    ualarm(200000, 0);
    return true;
}

LAB_TEST(one_whose_holder_is_dying_is_waited_for) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct lab_folder_request wanted = request(true);
    struct other other = start_other(open_for_a_moment, &wanted);
    struct lab_folder folder = LAB_FOLDER_INIT;
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    lab_folder_close(&folder);
    wait_for_other(&other);
}

static const char *replaced, *replacement;

static void replace_and_end(int signal_number) {
    _exit(signal_number != SIGALRM || rename(replacement, replaced) < 0);
}

/* Locks the file; in a moment another is in its place, which nobody holds. */
static bool lock_until_replaced(const void *what) {
    replaced = what;
    replacement = lab_arena_printf(&arena, "%s.new", replaced);
    write_file(replacement, "");
    signal(SIGALRM, replace_and_end);
    ualarm(200000, 0);
    return flock(open(replaced, O_RDONLY | O_CLOEXEC), LOCK_EX | LOCK_NB) == 0;
}

LAB_TEST(a_lock_that_is_replaced_meanwhile_is_opened_anew) {
    const char *lock = in_study("2026-11-14/10-00-00/lock");
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    write_file(lock, "");
    struct lab_folder_request wanted = request(true);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct stat held, there;
    struct other other = start_other(lock_until_replaced, lock);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    wait_for_other(&other);
    assert_true(folder.resumed);
    assert_int_equal(fstat(folder.lock_fd, &held), 0);
    assert_int_equal(stat(lock, &there), 0);
    assert_int_equal(held.st_ino, there.st_ino);
    lab_folder_close(&folder);
}

/* Another user, who can read the file. */
static bool lock_as_another_user(const void *what) {
    int fd = open(what, O_RDONLY | O_CLOEXEC);
    return setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

LAB_TEST(a_lock_of_another_user_is_not_waited_for) {
    const char *lock = in_study("2026-11-14/10-00-00/lock");
    if (geteuid() != 0)
        skip(); /* only root has other users */
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    write_file(lock, "");
    struct lab_folder_request wanted = request(true);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct other other = start_other(lock_as_another_user, lock);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    assert_true(folder.resumed);
    lab_folder_close(&folder);
    wait_for_other(&other);
}

LAB_TEST(a_worker_that_lives_on_keeps_its_folder) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct lab_folder folder = LAB_FOLDER_INIT;
    struct lab_folder_request wanted = request(true);
    assert_works(lab_folder_open(&wanted, &folder, &err));
    int inherited = dup(folder.lock_fd);
    lab_folder_close(&folder);
    assert_true(lab_folder_held(in_study("2026-11-14/10-00-00"), NULL));
    close(inherited);
    assert_false(lab_folder_held(in_study("2026-11-14/10-00-00"), NULL));
}

/* --- what a lock says --- */

static bool lock_file(const void *what) {
    struct lab_folder_request wanted = request(true);
    static struct lab_folder folder;
    if (lab_folder_open(&wanted, &folder, &err) < 0 || ftruncate(folder.lock_fd, 0) < 0)
        return false;
    const char *text = what;
    return pwrite(folder.lock_fd, text, strlen(text), 0) == (ssize_t)strlen(text);
}

LAB_TEST(any_content_of_a_lock_is_survived) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    char *long_text = lab_arena_alloc(&arena, 100001, 1);
    memset(long_text, '[', 100000);
    const char *const texts[] = {"",
                                 "{\"pid\": 47",
                                 "[1, 2]",
                                 "{\"pid\": \"x\", \"host\": 3, \"command\": null}",
                                 "{\"pid\": -4, \"since_wall_ns\": 1e300}",
                                 "\xff\xfe\x01",
                                 long_text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct other other = start_other(lock_file, texts[i]);
        struct lab_holder holder;
        LAB_AUTO(str, text);
        assert_true(lab_folder_held(in_study("2026-11-14/10-00-00"), &holder));
        lab_holder_describe(&holder, &text);
        assert_string_equal(text.text, "another process");
        kill_other(&other);
    }
}

LAB_TEST(a_lock_cannot_steer_the_terminal) {
    make_study(in_study("2026-11-14/10-00-00"), PLAN, MACHINE, 0);
    struct other other =
        start_other(lock_file, "{\"pid\": 7, \"host\": \"a\\u001b[2J\\u009bb\xc3\xa4\"}");
    struct lab_holder holder;
    assert_true(lab_folder_held(in_study("2026-11-14/10-00-00"), &holder));
    assert_string_equal(holder.host, "a?[2J??b\xc3\xa4");
    kill_other(&other);
}

LAB_TEST(holders_are_described_by_what_is_known) {
    LAB_AUTO(str, text);
    struct lab_holder holder = {.pid = 4711, .host = "node7"};
    lab_holder_describe(&holder, &text);
    assert_string_equal(text.text, "process 4711 on node7");
    lab_str_clear(&text);
    snprintf(holder.command, sizeof holder.command, "gpulab run quick_test");
    lab_holder_describe(&holder, &text);
    assert_string_equal(text.text, "process 4711 on node7 (gpulab run quick_test)");
    lab_str_clear(&text);
    setenv("TZ", "UTC", 1);
    tzset();
    holder.since_wall_ns = 1700000000LL * LAB_NS_PER_S; /* not today */
    lab_holder_describe(&holder, &text);
    assert_string_equal(text.text,
                        "process 4711 on node7 (gpulab run quick_test, since 2023-11-14 22:13:20)");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
