/* Limits of control groups, from folders as the kernel lays them out. */
#include "machine/topology.h"

#include <sys/stat.h>

#include "test.h"

#define MIB ((int64_t)1 << 20)

static void put_mib(const char *path, int64_t mib) {
    char text[32];
    snprintf(text, sizeof text, "%lld\n", (long long)(mib * MIB));
    test_write(test_path("%s", path), text);
}

LAB_TEST(version_2_has_one_tree) {
    /* given a group with a limit below one without */
    test_write(test_path("v2/outer/memory.max"), "max\n");
    put_mib("v2/outer/memory.current", 900);
    put_mib("v2/outer/inner/memory.max", 100);
    put_mib("v2/outer/inner/memory.current", 40);
    test_write(test_path("v2/outer/inner/memory.stat"), "\n");
    const char *v2 = test_path("v2");
    assert_int_equal(topology_cgroup_left(v2, "0::/outer/inner\n"), 60 * MIB);
    assert_int_equal(topology_cgroup_left(v2, "0::/outer\n"), -1);
    assert_int_equal(topology_cgroup_left(v2, "0::/\n"), -1);
    assert_int_equal(topology_cgroup_left(v2, ""), -1);
    /* file cache that wasn't used for a while can be dropped */
    char stat[64];
    snprintf(stat, sizeof stat, "anon 1\ninactive_file_not 5\ninactive_file %lld\nslab 7\n",
             (long long)(30 * MIB));
    test_write(test_path("v2/outer/inner/memory.stat"), stat);
    assert_int_equal(topology_cgroup_left(v2, "0::/outer/inner\n"), 90 * MIB);
    /* the tightest on the way to the root holds, and one that is exceeded leaves nothing */
    put_mib("v2/outer/memory.max", 910);
    assert_int_equal(topology_cgroup_left(v2, "0::/outer/inner\n"), 10 * MIB);
    put_mib("v2/outer/memory.max", 800);
    assert_int_equal(topology_cgroup_left(v2, "0::/outer/inner\n"), 0);
}

LAB_TEST(version_1_has_a_tree_for_memory) {
    put_mib("v1/memory/jobs/memory.limit_in_bytes", 500);
    put_mib("v1/memory/jobs/memory.usage_in_bytes", 200);
    /* its word for no limit */
    test_write(test_path("v1/memory/memory.limit_in_bytes"), "9223372036854771712\n");
    put_mib("v1/memory/memory.usage_in_bytes", 5000);
    put_mib("v1/elsewhere/memory.max", 1);
    put_mib("v1/elsewhere/memory.current", 0);
    const char *v1 = test_path("v1");
    static const char both[] = "0::/elsewhere\n12:cpu,cpuacct:/a\n4:rdma,memory:/jobs\n1:pids:/\n";
    assert_int_equal(topology_cgroup_left(v1, both), 300 * MIB);
    assert_true(topology_cgroup_left(v1, "4:memory:/\n") > (int64_t)1 << 60);
}

LAB_TEST(cpu_time_has_a_quota) {
    test_write(test_path("cpu/cpu.max"), "max 100000\n");
    test_write(test_path("cpu/job/cpu.max"), "150000 100000\n");
    const char *cpu = test_path("cpu");
    assert_int_equal(topology_cgroup_cpu(cpu, "0::/job\n"), 1500);
    assert_int_equal(topology_cgroup_cpu(cpu, "0::/\n"), -1);
    test_write(test_path("cpu/cpu/old/cpu.cfs_quota_us"), "50000\n");
    test_write(test_path("cpu/cpu/old/cpu.cfs_period_us"), "100000\n");
    test_write(test_path("cpu/cpu/cpu.cfs_quota_us"), "-1\n");
    test_write(test_path("cpu/cpu/cpu.cfs_period_us"), "100000\n");
    assert_int_equal(topology_cgroup_cpu(cpu, "3:cpu,cpuacct:/old\n0::/\n"), 500);
    assert_int_equal(topology_cgroup_cpu(cpu, "3:cpu,cpuacct:/\n"), -1);
}

LAB_TEST(a_container_s_group_is_the_root_it_sees) {
    put_mib("box/memory.max", 64);
    put_mib("box/memory.current", 14);
    const char *box = test_path("box");
    assert_int_equal(topology_cgroup_left(box, "0::/docker/0123456789abcdef\n"), 50 * MIB);
    assert_int_equal(topology_cgroup_left(box, "0::/\n"), 50 * MIB);
}

LAB_TEST(odd_text_is_no_limit) {
    static const char *const odd[] = {"\n", "nonsense", "0:", "0::", "::::\n:\n", "4:memory"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_int_equal(topology_cgroup_left("/nowhere", odd[i]), -1);
}
