/* Leases: one study at a time on a physical device, in a directory where nobody is trusted. */
#include "unit/run/folder_fixture.h"

#include "session/lease.h"

#include <sys/file.h>

static struct lab_holder self(void) {
    struct lab_holder holder;
    lab_holder_self("gpulab run quick_test", "/outputs/quick_test", &holder);
    return holder;
}

static int take(const char *const *devices, int count, struct lab_lease *lease) {
    struct lab_holder holder = self();
    return lab_lease_take(devices, count, &holder, NULL, NULL, lease, &err);
}

static const char *const cpu0[] = {"cpu:0"};
static const char *const both[] = {"cpu:1", "cpu:0", "cpu:1"};

static bool take_cpu0(const void *what) {
    (void)what;
    static struct lab_lease lease;
    return take(cpu0, 1, &lease) == 0;
}

/* Whether somebody else holds the device now. */
static bool is_held(const char *device) {
    struct lab_lease lease = {0};
    bool held = take(&device, 1, &lease) < 0;
    lab_lease_release(&lease);
    return held;
}

LAB_TEST(a_device_is_lent_once) {
    struct other other = start_other(take_cpu0, NULL);
    struct lab_lease lease = {0};
    assert_refused(take(cpu0, 1, &lease), LAB_ERR_USER,
                   lab_arena_printf(&arena, "cpu:0 is in use by process %d", other.pid));
    assert_contains(err.text, "(gpulab run quick_test, since ");
    assert_int_equal(lease.count, 0);
    kill_other(&other);
    assert_works(take(cpu0, 1, &lease));
    lab_lease_release(&lease);
    lab_lease_release(&lease); /* a released one too */
}

LAB_TEST(names_may_repeat) {
    struct lab_lease lease = {0};
    assert_works(take(both, 3, &lease));
    assert_int_equal(lease.count, 2);
    assert_true(is_held("cpu:0"));
    assert_true(is_held("cpu:1"));
    lab_lease_release(&lease);
    assert_false(is_held("cpu:0"));
}

LAB_TEST(none_at_all_is_fine) {
    struct lab_lease lease = {0};
    assert_works(take(NULL, 0, &lease));
    assert_int_equal(lease.count, 0);
    lab_lease_release(&lease);
}

LAB_TEST(all_or_none) {
    static const char *const cpu1[] = {"cpu:1"};
    struct lab_lease one = {0}, all = {0};
    assert_works(take(cpu1, 1, &one));
    assert_refused(take(both, 3, &all), LAB_ERR_USER, "cpu:1 is in use");
    assert_false(is_held("cpu:0"));
    lab_lease_release(&one);
}

struct waiting {
    int calls;
    int64_t pid;
    struct other *other;
    int give_up_at;
};

static bool count_calls(const char *device, const struct lab_holder *holder, void *state) {
    struct waiting *waiting = state;
    assert_string_equal(device, "cpu:0");
    waiting->pid = holder->pid;
    waiting->calls++;
    assert_false(is_held("cpu:1")); /* who waits for one keeps no other */
    if (waiting->other)
        kill_other(waiting->other);
    waiting->other = NULL;
    return waiting->calls != waiting->give_up_at;
}

LAB_TEST(one_can_wait_for_a_device) {
    struct other other = start_other(take_cpu0, NULL);
    pid_t pid = other.pid;
    struct waiting waiting = {.other = &other};
    struct lab_lease lease = {0};
    struct lab_holder holder = self();
    assert_works(lab_lease_take(both, 3, &holder, count_calls, &waiting, &lease, &err));
    assert_int_equal(lease.count, 2);
    assert_true(waiting.calls >= 1);
    assert_int_equal(waiting.pid, pid);
    lab_lease_release(&lease);
}

LAB_TEST(one_can_stop_waiting) {
    struct other other = start_other(take_cpu0, NULL);
    struct waiting waiting = {.give_up_at = 2};
    struct lab_lease lease = {0};
    struct lab_holder holder = self();
    assert_refused(lab_lease_take(both, 3, &holder, count_calls, &waiting, &lease, &err),
                   LAB_ERR_INTERRUPTED, "cpu:0");
    assert_int_equal(waiting.calls, 2);
    assert_int_equal(lease.count, 0);
    wait_for_other(&other);
}

LAB_TEST(other_users_can_lock_the_file_too) {
    mode_t before = umask(0077);
    struct lab_lease lease = {0};
    assert_works(take(cpu0, 1, &lease));
    umask(before);
    struct stat info;
    assert_int_equal(stat(in_root("locks/gpulab-cpu:0.lock"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666);
    lab_lease_release(&lease);
    assert_int_equal(stat(in_root("locks/gpulab-cpu:0.lock"), &info), 0); /* stays */
}

LAB_TEST(odd_names_become_plain_files) {
    static const char *const names[] = {"../../etc/x", "a b\xc3\xa4"};
    struct lab_lease lease = {0};
    assert_works(take(names, 2, &lease));
    assert_true(exists(in_root("locks/gpulab-..%2F..%2Fetc%2Fx.lock")));
    assert_true(exists(in_root("locks/gpulab-a%20b%C3%A4.lock")));
    lab_lease_release(&lease);
}

/* Each of these would have us write into, or wait for, something of somebody else's. */
LAB_TEST(traps_are_not_touched) {
    struct lab_lease lease = {0};
    make_directories(in_root("locks"));
    const char *path = in_root("locks/gpulab-cpu:0.lock"), *precious = in_root("precious");
    write_file(precious, "precious");

    assert_int_equal(symlink(precious, path), 0);
    assert_refused(take(cpu0, 1, &lease), LAB_ERR_SYSTEM, "not a plain file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(precious, path), 0);
    assert_refused(take(cpu0, 1, &lease), LAB_ERR_SYSTEM, "GPULAB_LOCK_DIR");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_refused(take(cpu0, 1, &lease), LAB_ERR_SYSTEM, "not a plain file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_refused(take(cpu0, 1, &lease), LAB_ERR_SYSTEM, path);

    struct stat info;
    assert_int_equal(stat(precious, &info), 0);
    assert_int_equal(info.st_size, strlen("precious"));
}

LAB_TEST(a_directory_that_cannot_be_used_is_passed_over) {
    struct lab_lease lease = {0};
    write_file(in_root("file"), "");
    setenv("GPULAB_LOCK_DIR", in_root("file"), 1);
    /* a name that no real study on this machine uses */
    const char *device = lab_arena_printf(&arena, "test:%s", strrchr(root, '-') + 1);
    assert_works(take(&device, 1, &lease));
    const char *const places[] = {"/run/lock", "/tmp"};
    int found = 0;
    for (int i = 0; i < 2; i++) {
        const char *path = lab_arena_printf(&arena, "%s/gpulab-%s.lock", places[i], device);
        found += unlink(path) == 0;
    }
    assert_int_equal(found, 1);
    lab_lease_release(&lease);
}

/* Given a directory that its owner alone can write to, then the owner passes it over as others do:
 * both have to lock the same file. */
LAB_TEST(the_directory_is_the_same_for_everybody) {
    const char *const places[] = {in_root("none"), in_root("file"), in_root("closed"),
                                  in_root("open"), NULL};
    write_file(places[1], "");
    make_directories(places[2]);
    make_directories(places[3]);
    assert_int_equal(chmod(places[2], 0755), 0);
    assert_int_equal(chmod(places[3], 01777), 0);
    assert_string_equal(lab_lease_directory(places), places[3]);
    assert_int_equal(chmod(places[3], 0770), 0);
    assert_string_equal(lab_lease_directory(places), places[2]); /* this user's alone */
    assert_null(lab_lease_directory(places + 4));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
