/*
 * bind.c: threads on cores, and where the kernel says they are.
 */
#include "base/file/file.h"
#include "base/log.h"
#include "base/str.h"
#include "machine/topology.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#define STATUS_MAX_BYTES (1u << 20) /* a list of CPUs grows with the machine */

static int check_cpus(const struct lab_machine *machine, const struct lab_cpus *cpus,
                      struct lab_err *err) {
    if (cpus->count <= 0) {
        lab_err_set(err, LAB_ERR_USER, "no CPUs to bind to");
        return lab_err_hint(err, LAB_HINT_NUMA_NODE);
    }
    struct lab_cpus here = topology_of(machine)->all_cpus;
    for (int i = 0; i < cpus->count; i++)
        if (!lab_cpus_contain(&here, cpus->items[i])) {
            LAB_AUTO(str, list);
            lab_cpus_write(&here, &list);
            lab_err_set(err, LAB_ERR_USER, "this process has no CPU %d: it may use %s",
                        cpus->items[i], list.text);
            return lab_err_hint(err, LAB_HINT_CPUSET);
        }
    return 0;
}

int lab_bind_cpus(const struct lab_machine *machine, const struct lab_cpus *cpus,
                  bool whole_process, struct lab_err *err) {
    if (topology_require_live(machine, "binding threads", err) < 0 ||
        check_cpus(machine, cpus, err) < 0)
        return -1;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = 0; i < cpus->count; i++)
        hwloc_bitmap_set(set, (unsigned)cpus->items[i]);
    /* for a process hwloc walks /proc/self/task until no thread was missed */
    int result = hwloc_set_cpubind(topology_of(machine)->hwloc, set,
                                   whole_process ? HWLOC_CPUBIND_PROCESS : HWLOC_CPUBIND_THREAD);
    int why = errno;
    hwloc_bitmap_free(set);
    if (result == 0)
        return 0;
    LAB_AUTO(str, list);
    lab_cpus_write(cpus, &list);
    lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "binding %s to CPUs %s",
                      whole_process ? "this process" : "a thread", list.text);
    return lab_err_hint(err, LAB_HINT_NUMA_NODE);
}

int lab_bind_thread_to_node(const struct lab_machine *machine, int node, struct lab_err *err) {
    if (lab_machine_require_node(machine, node, err) < 0)
        return -1;
    const struct lab_cpus *cpus = &machine->nodes[lab_machine_node_index(machine, node)].cpus;
    if (cpus->count == 0) {
        lab_log(LAB_LOG_INFO, "NUMA node %d has no cores for this process: its thread may use any",
                node);
        cpus = &topology_of(machine)->all_cpus;
    }
    return lab_bind_cpus(machine, cpus, false, err);
}

/* --- reading back --- */

/* "0-3,8" into numbers. */
static void parse_list(const char *text, struct lab_cpus *cpus) {
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last; cpu++)
            LAB_PUSH(cpus->items, cpus->count) = (int)cpu;
        text = *end == ',' ? end + 1 : end;
    }
}

int lab_bind_read_cpus(pid_t tid, struct lab_cpus *ret_cpus, struct lab_err *err) {
    char path[48] = "/proc/thread-self/status";
    if (tid != 0)
        snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    LAB_AUTO(arena, arena);
    char *text;
    size_t length;
    if (lab_file_read(path, STATUS_MAX_BYTES, &arena, &text, &length, err) < 0)
        return -1;
    static const char key[] = "\nCpus_allowed_list:";
    const char *at = strstr(text, key);
    struct lab_cpus cpus = {0};
    if (at)
        parse_list(at + sizeof key - 1 + strspn(at + sizeof key - 1, " \t"), &cpus);
    if (cpus.count == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s doesn't list the CPUs allowed", path);
    *ret_cpus = cpus;
    return 0;
}

/* --- proof --- */

static int node_of_cpu(const struct lab_machine *machine, int cpu) {
    for (int i = 0; i < machine->node_count; i++)
        if (lab_cpus_contain(&machine->nodes[i].cpus, cpu))
            return machine->nodes[i].number;
    return -1;
}

static int wrong_place(const struct lab_machine *machine, const struct lab_node *node, int cpu,
                       const struct lab_cpus *allowed, struct lab_err *err) {
    LAB_AUTO(str, should);
    LAB_AUTO(str, may);
    lab_cpus_write(allowed, &may);
    lab_cpus_write(&node->cpus, &should);
    lab_err_set(err, LAB_ERR_WRONG,
                "not bound to NUMA node %d: the thread is on CPU %d of node %d and may use CPUs "
                "%s; node %d has CPUs %s",
                node->number, cpu, node_of_cpu(machine, cpu), may.text, node->number, should.text);
    return lab_err_hint(err, LAB_HINT_THREAD_MOVED);
}

int lab_bind_prove_thread(const struct lab_machine *machine, int node, struct lab_err *err) {
    if (topology_require_live(machine, "verifying where a thread runs", err) < 0 ||
        lab_machine_require_node(machine, node, err) < 0)
        return -1;
    const struct lab_node *home = &machine->nodes[lab_machine_node_index(machine, node)];
    if (home->cpus.count == 0)
        return 0; /* every core is as good: see lab_bind_thread_to_node */
    struct lab_cpus allowed = {0};
    if (lab_bind_read_cpus(0, &allowed, err) < 0)
        return -1;
    int cpu = sched_getcpu();
    bool right = lab_cpus_contain(&home->cpus, cpu);
    for (int i = 0; i < allowed.count; i++)
        right = right && lab_cpus_contain(&home->cpus, allowed.items[i]);
    int result = right ? 0 : wrong_place(machine, home, cpu, &allowed, err);
    lab_mem_free(allowed.items);
    return result;
}
