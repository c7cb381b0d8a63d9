/*
 * open.c: opens a machine through hwloc, this computer or a recorded one, and closes it again.
 *
 * hwloc stays loaded for as long as the machine is open, because it also binds. What this process
 * may not use (cgroup, taskset) is left out at once, so that nobody later plans work for it.
 */
#include "base/log.h"
#include "base/str.h"
#include "machine/topology.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- hwloc --- */

/*
 * hwloc writes to stderr when a file or the firmware is wrong; the user gets one line of ours
 * instead. Its switch is read from the environment when trouble occurs, and programs started later
 * must not inherit it, so it is set only while hwloc loads.
 */
static bool silence_begin(void) {
    if (getenv("HWLOC_HIDE_ERRORS"))
        return false;
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    return true;
}

static void silence_end(bool begun) {
    if (begun)
        unsetenv("HWLOC_HIDE_ERRORS");
}

void topology_keep_types(hwloc_topology_t hwloc) {
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_icache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
}

/*
 * hwloc leaves out what a cgroup forbids, but not what taskset does. PCI devices whose cores vanish
 * stay (ADAPT_IO): they can still be used, from further away.
 */
static void leave_out_forbidden_cpus(hwloc_topology_t hwloc) {
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(hwloc, mine, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(mine) &&
        !hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(hwloc), mine))
        hwloc_topology_restrict(hwloc, mine, HWLOC_RESTRICT_FLAG_ADAPT_IO);
    hwloc_bitmap_free(mine);
}

/* hwloc asks for a process's CPUs again and again, with ever more room, until it gets them. */
static int check_affinity(struct lab_err *err) {
    unsigned long cpus[1024];
    if (sched_getaffinity(0, sizeof cpus, (cpu_set_t *)cpus) < 0 && errno != EINVAL)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno,
                                 "the CPUs of this process can't be read (sched_getaffinity; a "
                                 "container's seccomp profile can deny it)");
    return 0;
}

static int load_this_machine(struct topology *topology, bool cores_alone, struct lab_err *err) {
    if (check_affinity(err) < 0)
        return -1;
    if (hwloc_topology_init(&topology->hwloc) < 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "hwloc can't be initialised");
    topology_keep_types(topology->hwloc);
    if (cores_alone) {
        hwloc_topology_set_io_types_filter(topology->hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
        /* the kernel has said all that is needed before it visits each core */
        hwloc_topology_set_components(topology->hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      "x86");
    }
    if (hwloc_topology_load(topology->hwloc) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "reading this machine's topology");
    leave_out_forbidden_cpus(topology->hwloc);
    return 0;
}

/* --- the machine as a whole --- */

static const char *info_of(struct topology *topology, hwloc_obj_t object, const char *name) {
    const char *value = object ? hwloc_obj_get_info_by_name(object, name) : NULL;
    return value ? lab_arena_strdup(&topology->arena, value) : "";
}

/* Built without NUMA, the kernel lacks its calls; a container that forbids them answers EPERM. */
static bool kernel_has_numa(void) {
    int mode;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 || errno != ENOSYS;
}

static void read_identity(struct topology *topology, const char *path) {
    struct lab_machine *machine = &topology->machine;
    /* HWLOC_XMLFILE and its like make hwloc speak of another machine than this one */
    machine->recorded = path || !hwloc_topology_is_thissystem(topology->hwloc);
    machine->source = path                ? lab_arena_strdup(&topology->arena, path)
                      : machine->recorded ? "the machine that hwloc's environment variables name"
                                          : "this machine";
    machine->numa_in_kernel = machine->recorded || kernel_has_numa();
    hwloc_obj_t root = hwloc_get_root_obj(topology->hwloc);
    hwloc_obj_t package = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, 0);
    machine->host = info_of(topology, root, "HostName");
    machine->cpu_model = info_of(topology, package ? package : root, "CPUModel");
}

static void log_what_is_missing(const struct lab_machine *machine) {
    if (!machine->numa_in_kernel)
        lab_log(LAB_LOG_INFO, "the kernel has no NUMA: NUMA node %d is the whole machine",
                machine->nodes[0].number);
    else if (machine->node_count == 1)
        lab_log(LAB_LOG_INFO, "%s has one NUMA node: all memory is equally near", machine->source);
    for (int i = 0; i < machine->pci_count; i++)
        if (machine->pci[i].node < 0)
            lab_log(LAB_LOG_INFO, "PCI device %s: the firmware doesn't report its NUMA node",
                    machine->pci[i].address);
}

static int open_machine(const char *topology_file, bool cores_alone,
                        struct lab_machine **ret_machine, struct lab_err *err) {
    struct topology *topology = lab_mem_alloc(1, sizeof *topology);
    lab_arena_init(&topology->arena);
    bool silenced = silence_begin();
    int result = topology_file ? topology_load_recorded(topology, topology_file, err)
                               : load_this_machine(topology, cores_alone, err);
    silence_end(silenced);
    if (result < 0) {
        lab_machine_close(&topology->machine);
        return -1;
    }
    read_identity(topology, topology_file);
    topology_read_nodes(topology);
    topology_read_pci(topology);
    log_what_is_missing(&topology->machine);
    *ret_machine = &topology->machine;
    return 0;
}

int lab_machine_open(const char *topology_file, struct lab_machine **ret_machine,
                     struct lab_err *err) {
    return open_machine(topology_file, false, ret_machine, err);
}

int lab_machine_open_cores(struct lab_machine **ret_machine, struct lab_err *err) {
    return open_machine(NULL, true, ret_machine, err);
}

void lab_machine_close(struct lab_machine *machine) {
    if (!machine)
        return;
    struct topology *topology = (struct topology *)machine;
    if (topology->hwloc)
        hwloc_topology_destroy(topology->hwloc);
    lab_arena_release(&topology->arena);
    lab_mem_free(topology);
}

/* --- what can be asked of it --- */

int topology_require_live(const struct lab_machine *machine, const char *what,
                          struct lab_err *err) {
    if (!machine->recorded)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "%s is only a recording: %s needs the machine itself", machine->source,
                       what);
}

/* Appends "node 1", "nodes 0, 1 and 3": those that the machine has. */
static void write_nodes(const struct lab_machine *machine, struct lab_str *out) {
    lab_str_add(out, machine->node_count == 1 ? "node " : "nodes ");
    for (int i = 0; i < machine->node_count; i++)
        lab_str_printf(out, "%s%d",
                       i == 0                         ? ""
                       : i == machine->node_count - 1 ? " and "
                                                      : ", ",
                       machine->nodes[i].number);
}

int lab_machine_require_node(const struct lab_machine *machine, int node, struct lab_err *err) {
    if (lab_machine_node_index(machine, node) >= 0)
        return 0;
    LAB_AUTO(str, there);
    if (!machine->numa_in_kernel)
        lab_str_printf(&there, "the kernel has no NUMA, so NUMA node %d is the whole machine",
                       machine->nodes[0].number);
    else if (machine->node_count == 1)
        lab_str_printf(&there, "%s has only NUMA node %d", machine->source,
                       machine->nodes[0].number);
    else {
        lab_str_printf(&there, "%s has ", machine->source);
        write_nodes(machine, &there);
    }
    lab_err_set(err, LAB_ERR_USER, "there is no NUMA node %d: %s", node, there.text);
    return lab_err_hint(err, LAB_HINT_NUMA_NODE);
}
