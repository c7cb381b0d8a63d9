/* What /proc says, from texts as kernels write them. */
#include "measure/measure_internal.h"

#include "test.h"
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char stat_before[] = "cpu  1000 20 300 50000 100 7 30 10 5 0\n"
                                  "cpu0 500 10 150 25000 50 4 15 5 5 0\n"
                                  "cpu1 500 10 150 25000 50 3 15 5 0 0\n"
                                  "intr 123 0 0\nctxt 12345\nbtime 1700000000\n"
                                  "procs_running 2\nsoftirq 1 2 3\n";
/* 2 s later on two CPUs at 100 ticks a second: busy + 250, steal + 20, idle + 130 */
static const char stat_after[] = "cpu  1200 20 340 50120 110 7 40 30 5 0\n"
                                 "cpu0 600 10 170 25060 55 4 20 15 5 0\n"
                                 "cpu1 600 10 170 25060 55 3 20 15 0 0\n"
                                 "intr 123 0 0\n";
static const char loadavg[] = "1.50 0.09 0.03 1/101 8834\n";
static const char pressure_before[] = "some avg10=2.73 avg60=3.06 avg300=0.93 total=7840211\n"
                                      "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
static const char pressure_after[] = "some avg10=9.73 avg60=3.06 avg300=0.93 total=8240211\n"
                                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

#define assert_close(value, expected)                                                              \
    assert_near(value, expected, 1e-9 * fmax(1, fabs((double)(expected))))

static struct lab_conditions_reading reading_at(double time_s, const char *stat,
                                                const char *pressure, double own_s) {
    struct lab_conditions_reading r = lab_conditions_parse(stat, loadavg, pressure, pressure, 100);
    r.time_s = time_s;
    r.own_s = own_s;
    r.age_s = 1e-9;
    return r;
}

LAB_TEST(the_files_are_understood) {
    struct lab_conditions_reading r = reading_at(0, stat_before, pressure_before, 0);
    assert_close(r.busy_s, 13.57);
    assert_close(r.steal_s, 0.1);
    assert_close(r.total_s, 514.67); /* guest time is in user already */
    assert_close(r.cpus, 2);
    assert_close(r.load, 1.5);
    assert_close(r.pressure_cpu_s, 7.840211);
}

LAB_TEST(others_are_what_we_did_not_use) {
    struct lab_conditions_reading before = reading_at(10, stat_before, pressure_before, 3.0);
    struct lab_conditions_reading after = reading_at(12, stat_after, pressure_after, 4.5);
    before.own_s = 0; /* nothing yet: the load is all foreign */
    struct lab_conditions c = lab_conditions_between(&before, &after);
    assert_close(c.load_before, 0.75);
    before.own_s = 3.0;
    c = lab_conditions_between(&before, &after);
    assert_close(c.foreign_cpu, (2.5 - 1.5) / 4.0); /* 2.5 s busy, 1.5 ours, of 4 s on two CPUs */
    assert_close(c.steal, 0.2 / 4.0);
    assert_close(c.pressure_cpu, 0.2);
    assert_close(c.pressure_memory, 0.2);
}

LAB_TEST(our_own_threads_are_taken_off_the_load) {
    struct lab_conditions_reading r = reading_at(0, stat_before, NULL, 0);
    /* one thread of ours, running for 600 s, is 1 of the load of 1.5 by now */
    r.own_s = r.age_s = 600;
    assert_true(fabs(lab_conditions_between(&r, &r).load_before - 0.25) < 1e-4);
    /* never below nothing */
    r.own_s = 6000;
    assert_close(lab_conditions_between(&r, &r).load_before, 0);
}

LAB_TEST(counting_errors_stay_within_bounds) {
    struct lab_conditions_reading before = reading_at(10, stat_before, pressure_before, 0);
    struct lab_conditions_reading after = reading_at(12, stat_after, pressure_after, 2.6);
    /* ticks say 2.5 s, our own clock 2.6 s */
    assert_close(lab_conditions_between(&before, &after).foreign_cpu, 0);
}

LAB_TEST(what_is_missing_is_unknown) {
    struct lab_conditions_reading none = lab_conditions_parse(NULL, NULL, NULL, NULL, 100);
    struct lab_conditions c = lab_conditions_between(&none, &none);
    assert_true(isnan(c.load_before) && isnan(c.foreign_cpu) && isnan(c.steal));
    assert_true(isnan(c.pressure_cpu) && isnan(c.pressure_memory));
    struct lab_conditions_reading odd =
        lab_conditions_parse("hello\n", "", "none\n", "some avg10=x", 100);
    assert_true(isnan(odd.busy_s) && isnan(odd.load) && isnan(odd.pressure_cpu_s));
    assert_true(isnan(odd.pressure_memory_s));
    /* before Linux 2.6.11 there was no steal */
    struct lab_conditions_reading old =
        lab_conditions_parse("cpu  10 0 10 80\ncpu0 10 0 10 80\n", NULL, NULL, NULL, 100);
    assert_close(old.busy_s, 0.2);
    assert_true(isnan(old.steal_s));
}

LAB_TEST(too_short_a_time_tells_nothing) {
    struct lab_conditions_reading before = reading_at(10, stat_before, pressure_before, 3.0);
    struct lab_conditions c = lab_conditions_between(&before, &before);
    assert_true(isnan(c.foreign_cpu) && isnan(c.steal) && isnan(c.pressure_cpu));
}

/* Ten ticks of all CPUs together. */
LAB_TEST(shares_need_some_ticks) {
    struct lab_conditions_reading before = lab_conditions_parse(stat_before, NULL, NULL, NULL, 100);
    double tick_s = 1 / (double)sysconf(_SC_CLK_TCK);
    before.own_s = 0;
    for (double ticks = 0.5; ticks < 20; ticks++) {
        struct lab_conditions_reading after = before;
        after.total_s += ticks * tick_s;
        after.busy_s += ticks * tick_s / 4;
        double share = lab_conditions_between(&before, &after).foreign_cpu;
        assert_true(ticks < 10 ? isnan(share) : fabs(share - 0.25) < 1e-9);
    }
}

LAB_TEST(a_start_is_found_behind_any_name) {
    static const char self[] =
        "8834 (a) b (c) R 1 8834 8834 34816 8834 4194304 100 0 0 0 5 2 0 0 20 0 1 0 114256 8192 1";
    assert_close(lab_conditions_parse_start(self, 100), 1142.56);
    assert_true(isnan(lab_conditions_parse_start("8834 broken", 100)));
    assert_true(isnan(lab_conditions_parse_start(NULL, 100)));
}

LAB_TEST(cpu_time_counts_children_that_have_ended) {
    static const char process[] = "8834 (a) b (c) R 1 8834 8834 34816 8834 4194304 100 0 0 0 500 "
                                  "20 7 3 20 0 1 0 114256 8192 1";
    assert_close(lab_conditions_parse_cpu(process, 100), 5.3);
    assert_true(isnan(lab_conditions_parse_cpu("8834 broken", 100)));
    assert_true(isnan(lab_conditions_parse_cpu(NULL, 100)));
}

#define WORK_S 0.1

static void work(void) {
    while ((double)clock() / CLOCKS_PER_SEC < WORK_S) {
    }
}

/* What a process says of itself with a sibling that has worked: bit 0, that it isn't its own; bit 1,
 * that it is the family's. */
static int ask_sibling(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        double own_s = lab_conditions_read(0).own_s, all_s = lab_conditions_read(getppid()).own_s;
        _exit((own_s < WORK_S / 2) | (all_s > 0.9 * WORK_S) << 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

/* Ranks in processes of their own aren't what else runs on the machine. */
LAB_TEST(the_parent_and_its_other_children_are_ours) {
    int done[2], status = 0;
    char byte;
    assert_int_equal(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        work();
        if (write(done[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_int_equal(ask_sibling(), 3);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(ask_sibling(), 3); /* now in the parent's time */
    close(done[0]);
    close(done[1]);
}

LAB_TEST(this_machine_can_be_read) {
    struct lab_conditions_reading r = lab_conditions_read(0);
    assert_true(r.time_s > 0);
    assert_true(r.own_s >= 0);
    assert_false(r.age_s < -1);
    assert_false(r.cpus < 1);
    assert_true(r.busy_s > 0 && r.total_s > r.busy_s && r.load >= 0);
    /* time that passes is seen, in seconds, and so is work of ours */
    double until_s = r.time_s + 0.05;
    volatile double sum = 0;
    struct lab_conditions_reading later;
    do {
        for (int i = 0; i < 100000; i++)
            sum += sqrt(i);
        later = lab_conditions_read(0);
    } while (later.time_s < until_s);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_near(later.time_s, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, 5);
    assert_true(later.own_s > r.own_s && later.own_s - r.own_s < 5);
    assert_near(later.age_s - r.age_s, later.time_s - r.time_s, 1);
    assert_true(sum > 0);
}
