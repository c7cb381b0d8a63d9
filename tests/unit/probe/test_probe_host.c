/* test_probe_host.c: cpu, memory and numa, over files of machines that were, or never were. */
#include "host_fixture.h"

#include "probe/probe_host.h"

extern const struct lab_probe lab_probe_cpu, lab_probe_memory, lab_probe_numa;

/* --- numbers --- */

LAB_TEST(numbers_of_any_size_are_no_danger) {
    int64_t value = 0;
    const char *at = " \t42 -7";
    assert_true(probe_text_number(&at, &value) && value == 42);
    assert_true(probe_text_number(&at, &value) && value == -7 && *at == '\0');
    assert_false(probe_text_number(&at, &value));
    at = "99999999999999999999999999999999999";
    assert_true(probe_text_number(&at, &value) && value > INT32_MAX && *at == '\0');
    bool marks[8] = {0};
    probe_text_cpus("1-2,5,7-99999999999999999999", marks, 8);
    static const bool expected[8] = {0, 1, 1, 0, 0, 1, 0, 1};
    assert_memory_equal(marks, expected, sizeof marks);
    memset(marks, 0, sizeof marks);
    probe_text_cpus("-3-0,x", marks, 8);
    probe_text_cpus("3-", marks, 8);
    probe_text_cpus("", marks, 8);
    assert_true(marks[0] && !marks[1] && !marks[3]);
}

/* --- cpu --- */

static void write_pressure(const char *which, int total_us) {
    char text[256];
    snprintf(text, sizeof text,
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
             "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
             total_us);
    test_write(test_path("proc/pressure/%s", which), text);
}

LAB_TEST(cpus_are_as_busy_as_their_times_differ) {
    struct host host;
    host_init(&host);
    /* user nice system idle iowait irq softirq steal guest guest_nice; CPU 1 is offline */
    test_write(test_path("proc/stat"), "cpu  100 0 100 800 0 0 0 0 50 0\n"
                                       "cpu0 50 0 50 400 0 0 0 0 0 0\n"
                                       "cpu2 50 0 50 400 0 0 0 0 0 0\n"
                                       "intr 12345 0 0 0\nctxt 1\n");
    test_write(test_path("proc/loadavg"), "3.07 1.00 0.50 1/100 12345\n");
    write_pressure("cpu", 1000000);
    write_pressure("memory", 0);
    test_write(test_path("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"), "3000000\n");
    test_write(test_path("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq"), "1000400\n");
    host_open(&host, &lab_probe_cpu);
    assert_int_equal(host.entities[0].kind, LAB_ENTITY_CPU);
    assert_string_equal(host.entities[0].id, "cpu");
    assert_int_equal(host.entities[0].column_count, 9 + 2 + 2);

    test_write(test_path("proc/stat"), "cpu  130 0 120 830 10 5 5 0 50 0\n"
                                       "cpu0 80 0 50 420 0 0 0 0 0 0\n"
                                       "cpu2 50 0 70 410 10 5 5 0 0 0\n");
    write_pressure("cpu", 1250000);
    write_pressure("memory", 5000);
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_CPU_UTILIZATION, -1), 60.0);
    assert_close(host_value(&host, LAB_METRIC_CPU_SYSTEM, -1), 30.0);
    assert_close(host_value(&host, LAB_METRIC_CPU_IOWAIT, -1), 10.0);
    assert_close(host_value(&host, LAB_METRIC_CPU_STEAL, -1), 0.0);
    assert_close(host_value(&host, LAB_METRIC_CORE_UTILIZATION, 0), 60.0);
    assert_close(host_value(&host, LAB_METRIC_CORE_UTILIZATION, 2), 60.0);
    assert_close(host_value(&host, LAB_METRIC_CORE_FREQUENCY, 0), 3000);
    assert_close(host_value(&host, LAB_METRIC_CORE_FREQUENCY, 2), 1000);
    assert_close(host_value(&host, LAB_METRIC_CPU_FREQUENCY, -1), 2000);
    assert_close(host_value(&host, LAB_METRIC_LOAD, -1), 3.07);
    assert_close(host_value(&host, LAB_METRIC_PRESSURE_CPU, -1), 25.0);
    assert_close(host_value(&host, LAB_METRIC_PRESSURE_MEMORY, -1), 0.5);
    assert_true(isnan(host_value(&host, LAB_METRIC_PRESSURE_IO, -1))); /* this kernel has none */

    /* a tenth of a second later: what is slow isn't read, and a counter that fell is no share */
    test_write(test_path("proc/stat"), "cpu  130 0 120 825 20 5 5 10 50 0\n"
                                       "cpu0 80 0 50 420 0 0 0 10 0 0\n");
    host_read(&host, 100, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_CPU_STEAL, -1), 66.67);
    assert_close(host_value(&host, LAB_METRIC_CPU_UTILIZATION, -1), 66.67);
    assert_close(host_value(&host, LAB_METRIC_CORE_UTILIZATION, 0), 100);
    assert_true(isnan(host_value(&host, LAB_METRIC_CORE_UTILIZATION, 2))); /* went offline */
    assert_true(isnan(host_value(&host, LAB_METRIC_LOAD, -1)));
    assert_true(isnan(host_value(&host, LAB_METRIC_CORE_FREQUENCY, 0)));
    assert_int_equal(host.ticks, 2);
    /* an edge reads all */
    host_read(&host, 1, LAB_PROBE_EDGE);
    assert_int_equal(host.ticks, 3);
    assert_close(host_value(&host, LAB_METRIC_LOAD, -1), 3.07);
    assert_true(isnan(host_value(&host, LAB_METRIC_CPU_UTILIZATION, -1)));
    host_release(&host);
}

LAB_TEST(frequencies_come_from_cpuinfo_where_there_is_no_cpufreq) {
    struct host host;
    host_init(&host);
    test_write(test_path("proc/stat"), "cpu 1 1 1 1\ncpu0 1 1 1 1\ncpu1 1 1 1 1\n");
    LAB_AUTO(str, text);
    for (int i = 0; i < 2; i++) { /* longer than what is read at once */
        lab_str_printf(&text, "processor\t: %d\ncpu MHz\t\t: %d.640\nflags\t\t: ", i, 2500 + i);
        lab_str_add_repeat(&text, "flag ", i ? 10 : 8000);
        lab_str_add(&text, "\n\n");
    }
    test_write(test_path("proc/cpuinfo"), text.text);
    host_open(&host, &lab_probe_cpu);
    host_read(&host, 100, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_CORE_FREQUENCY, 0), 2500);
    assert_close(host_value(&host, LAB_METRIC_CORE_FREQUENCY, 1), 2501);
    assert_true(isnan(host_value(&host, LAB_METRIC_LOAD, -1))); /* no such file */
    host_release(&host);
}

LAB_TEST(without_proc_there_is_nothing_to_open) {
    struct host host;
    host_init(&host);
    const struct lab_probe *const probes[] = {&lab_probe_cpu, &lab_probe_memory, &lab_probe_numa};
    for (int i = 0; i < 3; i++) {
        struct lab_err err = LAB_ERR_INIT;
        assert_int_equal(probes[i]->open(&host.setup, &host.state, &err), -1);
        assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
        assert_true(*err.text);
    }
    struct lab_err err = LAB_ERR_INIT;
    test_write(test_path("proc/stat"), "what is this\n");
    assert_int_equal(lab_probe_cpu.open(&host.setup, &host.state, &err), -1);
    host_release(&host);
}

/* --- memory --- */

LAB_TEST(memory_is_used_where_it_is_not_available) {
    struct host host;
    host_init(&host);
    test_write(test_path("proc/meminfo"),
               "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n"
               "Buffers:          50 kB\nCached:          300 kB\nSwapCached:        9 kB\n"
               "Shmem:            30 kB\nSwapTotal:       200 kB\nSwapFree:        150 kB\n");
    host_open(&host, &lab_probe_memory);
    host_read(&host, 0, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_HOST_TOTAL, -1), 1000 * 1024);
    assert_close(host_value(&host, LAB_METRIC_HOST_USED, -1), 600 * 1024);
    assert_close(host_value(&host, LAB_METRIC_HOST_AVAILABLE, -1), 400 * 1024);
    assert_close(host_value(&host, LAB_METRIC_HOST_CACHED, -1), 320 * 1024);
    assert_close(host_value(&host, LAB_METRIC_SWAP_USED, -1), 50 * 1024);
    /* an old kernel, and one without swap */
    test_write(test_path("proc/meminfo"), "MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 300 kB\n");
    host_read(&host, 200, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_HOST_USED, -1), 600 * 1024);
    assert_true(isnan(host_value(&host, LAB_METRIC_SWAP_USED, -1)));
    /* faster than it is worth: no tick */
    host_read(&host, 10, LAB_PROBE_TICK);
    assert_int_equal(host.ticks, 2);
    test_write(test_path("proc/meminfo"), "");
    assert_int_equal(host_read(&host, 200, LAB_PROBE_TICK), -1);
    host_release(&host);
}

/* --- numa --- */

LAB_TEST(nodes_have_memory_counters_and_busy_cpus) {
    struct host host;
    host_init(&host);
    host.setup.interval_ns = LAB_NS_PER_S;
    test_write(test_path("proc/stat"),
               "cpu 0 0 0 30\ncpu0 0 0 0 10\ncpu1 0 0 0 10\ncpu2 0 0 0 10\n");
    test_write(test_path("sys/devices/system/node/node0/cpulist"), "0,2\n");
    test_write(test_path("sys/devices/system/node/node0/meminfo"),
               "Node 0 MemTotal:       16384 kB\nNode 0 MemFree:         8192 kB\n");
    test_write(test_path("sys/devices/system/node/node0/numastat"),
               "numa_hit 5\nnuma_miss 1\nnuma_foreign 2\ninterleave_hit 9\nlocal_node 4\n"
               "other_node 3\n");
    test_write(test_path("sys/devices/system/node/node10/cpulist"), "1\n");
    test_write(test_path("sys/devices/system/node/node10/meminfo"), "Node 10 MemTotal: 7 kB\n");
    test_write(test_path("sys/devices/system/node/possible"), "0-15\n");
    host_open(&host, &lab_probe_numa);
    test_write(test_path("proc/stat"),
               "cpu 10 0 0 50\ncpu0 10 0 0 20\ncpu1 0 0 0 20\ncpu2 10 0 0 10\n");
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_close(host_value(&host, LAB_METRIC_NODE_TOTAL, 0), 16 << 20);
    assert_close(host_value(&host, LAB_METRIC_NODE_FREE, 0), 8 << 20);
    assert_close(host_value(&host, LAB_METRIC_NODE_HIT, 0), 5);
    assert_close(host_value(&host, LAB_METRIC_NODE_MISS, 0), 1);
    assert_close(host_value(&host, LAB_METRIC_NODE_FOREIGN, 0), 2);
    assert_close(host_value(&host, LAB_METRIC_NODE_OTHER, 0), 3);
    assert_close(host_value(&host, LAB_METRIC_NODE_UTILIZATION, 0), 66.67);
    assert_close(host_value(&host, LAB_METRIC_NODE_UTILIZATION, 10), 0);
    assert_close(host_value(&host, LAB_METRIC_NODE_TOTAL, 10), 7 << 10);
    assert_true(isnan(host_value(&host, LAB_METRIC_NODE_FREE, 10)));
    assert_true(isnan(host_value(&host, LAB_METRIC_NODE_HIT, 10)));
    host_release(&host);
}
