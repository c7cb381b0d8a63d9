/* test_probe_process.c: processes of a made-up /proc: who they are, what they use, where they
 * are. */
#include "host_fixture.h"

#include "probe/process/details.h"

extern const struct lab_probe lab_probe_process;

#define ID "3f4e0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab"

/* Two nodes with two CPUs each. */
static int cpus_0[] = {0, 1}, cpus_1[] = {2, 3};
static struct lab_node nodes[] = {{.number = 0, .cpus = {cpus_0, 2}},
                                  {.number = 1, .cpus = {cpus_1, 2}}};
static const struct lab_machine machine = {.nodes = nodes, .node_count = 2};

static void process_host(struct host *host) {
    host_init(host);
    host->setup.machine = &machine;
    host->setup.table = lab_gpu_process_table_open();
    host->setup.interval_ns = LAB_NS_PER_S;
    test_write(test_path("proc/stat"), "cpu 1 1 1 1\n");
    test_write(test_path("sys/devices/system/node/node0/cpulist"), "0-1\n");
    test_write(test_path("sys/devices/system/node/node1/cpulist"), "2-3\n");
}

static void process_host_release(struct host *host) {
    struct lab_gpu_process_table *table = host->setup.table;
    host_release(host);
    lab_gpu_process_table_close(table);
}

struct fields {
    const char *name;
    int ppid, flags, ticks, threads, start, rss_pages, cpu;
};

static void write_stat(const char *path, int pid, const struct fields *fields) {
    char text[512];
    snprintf(text, sizeof text,
             "%d (%s) S %d 1 1 0 -1 %d 0 0 0 0 %d 0 0 0 20 0 %d 0 %d 999999 %d "
             "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0\n",
             pid, fields->name, fields->ppid, fields->flags, fields->ticks, fields->threads,
             fields->start, fields->rss_pages, fields->cpu);
    test_write(path, text);
}

static void write_process(int pid, const struct fields *fields) {
    write_stat(test_path("proc/%d/stat", pid), pid, fields);
}

static void put_on_gpu(struct host *host, int entity, int node, int32_t pid) {
    struct lab_entity gpu = {.kind = LAB_ENTITY_GPU, .index = entity, .node = node};
    struct lab_gpu_process item = {.pid = pid,
                                   .memory_bytes = 5 << 20,
                                   .sm_percent = 40,
                                   .memory_percent = NAN,
                                   .compute = true};
    lab_gpu_process_table_add(host->setup.table, entity, &gpu);
    lab_gpu_process_table_tell(host->setup.table, entity, &item, 1);
}

LAB_TEST(a_process_on_a_gpu_is_known_in_full) {
    struct host host;
    process_host(&host);
    /* a name that tries hard to look like more fields */
    struct fields fields = {"py (th) on\n", 77, 0, 1000, 3, 4242, 256, 2};
    write_process(100, &fields);
    test_write(test_path("proc/100/status"),
               "Name:\tpy\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t2-3\nMems_allowed_list:\t0\n");
    test_write(test_path("proc/100/cmdline"), "python3 train.py\n--lr\x1b[31m \xff");
    test_write(test_path("proc/100/cgroup"), "0::/system.slice/docker-" ID ".scope\n");
    struct fields thread = fields;
    write_stat(test_path("proc/100/task/100/stat"), 100, &thread);
    thread.cpu = 0;
    write_stat(test_path("proc/100/task/101/stat"), 101, &thread);
    write_stat(test_path("proc/100/task/102/stat"), 102, &thread);
    test_write(test_path("proc/100/numa_maps"),
               "7f00 default anon=9 dirty=9 N0=1024 N1=16384 kernelpagesize_kB=4\n"
               "7f10 default file=/usr/lib/libcuda.so mapped=9 N0=99999 kernelpagesize_kB=4\n"
               "7f20 default file=/dev/shm/x mapped=9 N1=512 kernelpagesize_kB=4\n"
               "7f30 default file=/anon_hugepage\\040(deleted) huge anon=2 N1=2 "
               "kernelpagesize_kB=2048\n");
    put_on_gpu(&host, 5, 0, 100);
    host_open(&host, &lab_probe_process);
    host_read(&host, 0, LAB_PROBE_TICK);
    assert_int_equal(host.list.count, 1);
    const struct lab_process_sample *process = &host.list.items[0];
    assert_int_equal(process->pid, 100);
    assert_int_equal(process->parent_pid, 77);
    assert_int_equal(process->start, 4242);
    assert_string_equal(process->name, "py (th) on?");
    assert_string_equal(process->user, "root");
    assert_string_equal(process->command, "python3 train.py --lr?[31m ?");
    assert_string_equal(process->container, "3f4e01234567");
    assert_true(isnan(process->cpu_percent));
    assert_int_equal(process->memory_bytes, 256 * sysconf(_SC_PAGESIZE));
    assert_int_equal(process->threads, 3);
    assert_int_equal(process->cpu_node, 0); /* two of three threads */
    assert_int_equal(process->allowed_nodes, 1 << 1);
    assert_int_equal(process->node_count, 2);
    assert_int_equal(process->node_bytes[0], 4 << 20);
    assert_int_equal(process->node_bytes[1], (64 + 2 + 4) << 20);
    assert_int_equal(process->gpu_count, 1);
    assert_int_equal(process->gpus[0].entity, 5);
    assert_int_equal(process->gpus[0].memory_bytes, 5 << 20);
    assert_true(process->gpus[0].sm_percent == 40 && isnan(process->gpus[0].memory_percent));
    assert_int_equal(process->placement, LAB_PLACEMENT_MEMORY);
    assert_string_equal(process->advice, "migratepages 100 1 0");

    /* half a second of CPU time in two seconds */
    fields.ticks += (int)sysconf(_SC_CLK_TCK) / 2;
    write_process(100, &fields);
    host_read(&host, 2000, LAB_PROBE_TICK);
    assert_close(host.list.items[0].cpu_percent, 25);
    /* too soon: no list; at an edge there is one */
    host_read(&host, 100, LAB_PROBE_TICK);
    assert_int_equal(host.lists, 2);
    host_read(&host, 0, LAB_PROBE_EDGE);
    assert_int_equal(host.lists, 3);
    assert_close(host.list.items[0].cpu_percent, 25);
    process_host_release(&host);
}

LAB_TEST(processes_that_were_asked_for_are_listed_with_their_waiting) {
    struct host host;
    process_host(&host);
    struct fields fields = {"rank", 1, 0, 1000, 1, 10, 5, 0};
    write_process(100, &fields);
    write_process(101, &fields);
    write_process(102, &fields); /* nobody asked for it */
    test_write(test_path("proc/100/schedstat"), "500000000 1000000000 77\n");
    host.setup.pids = (const int32_t[]){100, 101, 999};
    host.setup.pid_count = 3;
    host_open(&host, &lab_probe_process);
    host_read(&host, 0, LAB_PROBE_TICK);
    assert_int_equal(host.list.count, 2);
    assert_true(isnan(host.list.items[0].queue_percent)); /* a difference needs two */
    test_write(test_path("proc/100/schedstat"), "900000000 1300000000 99\n");
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_close(host.list.items[0].queue_percent, 100 * 0.3 / (0.3 + 0.4));
    assert_close(host.list.items[0].active_percent, 70);
    assert_true(isnan(host.list.items[1].queue_percent)); /* a kernel that doesn't count it */
    test_write(test_path("proc/100/schedstat"), "901000000 1320000000 99\n");
    host_read(&host, 2000, LAB_PROBE_TICK);
    assert_close(host.list.items[0].queue_percent, 0); /* it wants to run 2% of the time */
    process_host_release(&host);
}

LAB_TEST(a_process_that_ends_or_is_replaced_is_no_error) {
    struct host host;
    process_host(&host);
    struct fields fields = {"a", 1, 0, 1000, 1, 10, 5, 0};
    write_process(100, &fields);
    put_on_gpu(&host, 0, 0, 100);
    host_open(&host, &lab_probe_process);
    host_read(&host, 0, LAB_PROBE_TICK);
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_close(host.list.items[0].cpu_percent, 0);
    assert_string_equal(host.list.items[0].user, "?"); /* its status can't be read */
    /* another one under its number */
    struct fields other = {"b", 1, 0, 99, 1, 20, 5, 0};
    write_process(100, &other);
    test_write(test_path("proc/100/status"), "Uid:\t3999999999\t0\t0\t0\n");
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_true(isnan(host.list.items[0].cpu_percent));
    assert_string_equal(host.list.items[0].name, "b");
    assert_string_equal(host.list.items[0].user, "3999999999");
    /* gone, or never to be seen from here; the GPU still knows of its memory */
    test_remove(test_path("proc/100"));
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_int_equal(host.list.count, 1);
    assert_string_equal(host.list.items[0].name, "");
    assert_int_equal(host.list.items[0].gpus[0].memory_bytes, 5 << 20);
    assert_int_equal(host.list.items[0].placement, LAB_PLACEMENT_UNKNOWN);
    lab_gpu_process_table_tell(host.setup.table, 0, NULL, 0);
    host_read(&host, 1000, LAB_PROBE_TICK);
    assert_int_equal(host.list.count, 0);
    assert_int_equal(host.lists, 5); /* that nobody is there is told, too */
    process_host_release(&host);
}

LAB_TEST(of_all_processes_the_largest_and_busiest_are_listed) {
    struct host host;
    process_host(&host);
    host.setup.all_processes = true;
    for (int i = 0; i < 520; i++) { /* 1000 is the smallest, 1519 the largest */
        struct fields fields = {"x", 1, 0, 0, 1, 1, i, 0};
        write_process(1000 + i, &fields);
    }
    struct fields kernel = {"kworker", 2, 0x00200000, 999, 1, 1, 0, 0};
    write_process(7, &kernel);
    struct fields broken = {"no", 1, 0, 0, 1, 1, 1, 0};
    write_process(8, &broken);
    test_write(test_path("proc/8/stat"), "8 (no");
    put_on_gpu(&host, 0, 0, 1003);
    host_open(&host, &lab_probe_process);
    host_read(&host, 0, LAB_PROBE_TICK);
    /* the smallest but one works */
    struct fields busy = {"x", 1, 0, 100, 1, 1, 1, 0};
    write_process(1001, &busy);
    host_read(&host, 60000, LAB_PROBE_TICK);
    assert_int_equal(host.list.count, 501);
    assert_int_equal(host.list.left_out, 19);
    assert_int_equal(host.list.items[0].pid, 1003);
    assert_int_equal(host.list.items[0].gpu_count, 1);
    assert_int_equal(host.list.items[1].pid, 1001);
    bool largest = false, smallest = false, threads = false;
    for (int i = 0; i < host.list.count; i++) {
        largest = largest || host.list.items[i].pid == 1519;
        threads = threads || host.list.items[i].pid < 1000;
        smallest = smallest || host.list.items[i].pid == 1251; /* idle, and not among the large */
    }
    assert_true(largest && !smallest && !threads);
    process_host_release(&host);
}

static void container_is(const char *cgroup, const char *expected) {
    char name[64];
    details_container(cgroup, name, sizeof name);
    assert_string_equal(name, expected);
}

LAB_TEST(containers_are_known_by_their_groups) {
    container_is("0::/system.slice/docker-" ID ".scope\n", "3f4e01234567");
    container_is("12:cpu:/docker/" ID "\n11:memory:/docker/" ID "\n0::/\n", "3f4e01234567");
    container_is("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab12.slice/"
                 "cri-containerd-" ID ".scope\n",
                 "3f4e01234567");
    container_is("3:cpu:/kubepods/besteffort/pod12ab34/" ID "\n", "3f4e01234567");
    container_is("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
                 ".scope\n",
                 "3f4e01234567");
    container_is("0::/machine.slice/libpod-conmon-" ID ".scope\n", "");
    container_is("0::/lxc.payload.web/system.slice/ssh.service\n", "web");
    container_is("4:memory:/lxc/db\n", "db");
    container_is("0::/machine.slice/machine-build.scope/init.scope\n", "build");
    container_is("0::/user.slice/user-0.slice/session-1.scope\n", "");
    container_is("0::/\n", "");
    container_is("", "");
    container_is("0::/x/" ID "0\n", ""); /* 65 digits are no id */
}
