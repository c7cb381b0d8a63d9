/*
 * topology.h: what the files of this folder share. Not seen outside it.
 *
 *   open.c       this machine, and life        recorded.c   recorded machines
 *   nodes.c      nodes, cores, caches, distances
 *   pci.c        PCI devices                   pci_names.c  what their numbers are called
 *   free.c       memory that a node has left   cgroup.c     limits of control groups
 *   bind.c       threads on cores              memory.c     memory on nodes
 *   proof.c      what the kernel says about both
 */
#pragma once

#include "base/mem.h"
#include "machine/machine.h"

#include <hwloc.h>

struct topology {
    struct lab_machine machine; /* first: what others see */
    struct lab_arena arena;     /* owns all that it points to */
    hwloc_topology_t hwloc;
    struct lab_cpus all_cpus; /* of all nodes: what this process may use */
};

static inline const struct topology *topology_of(const struct lab_machine *machine) {
    return (const struct topology *)machine;
}

/* Loads hwloc from a recorded file; LAB_ERR_USER if it isn't one. */
int topology_load_recorded(struct topology *topology, const char *path, struct lab_err *err);
/* What of the machine hwloc shall keep; before loading. */
void topology_keep_types(hwloc_topology_t hwloc);

/* Fill their part of the machine from the loaded hwloc topology; pci after nodes. */
void topology_read_nodes(struct topology *topology);
void topology_read_pci(struct topology *topology);

/* Fails for a machine that is only a recording; `what` is "binding threads". */
int topology_require_live(const struct lab_machine *machine, const char *what, struct lab_err *err);

/*
 * What this process can still get from a node (-1 = the whole machine); -1 = unknown. `ret_limited`
 * (may be NULL): a limit of its control groups says so, not the node.
 */
int64_t topology_free_bytes(const struct lab_machine *machine, int node, bool *ret_limited);
/* Limits (limit.h) from where cgroups are mounted and from the text of /proc/self/cgroup; of CPU
 * time in thousandths of a CPU. */
int64_t topology_cgroup_left(const char *mount, const char *membership);
int64_t topology_cgroup_cpu(const char *mount, const char *membership);
/* All memory of this machine, as the kernel counts it; -1 = unknown. */
int64_t topology_total_bytes(void);

/*
 * The same from the text of the kernel's files, /sys/devices/system/node/nodeN/meminfo and
 * /proc/zoneinfo; "" for the latter means no reserve.
 */
int64_t topology_parse_node_free(const char *meminfo, const char *zoneinfo, int node);

/* Names out of the text of pci.ids; "" where it has none. */
void topology_parse_pci_ids(const char *ids, size_t length, unsigned vendor_id, unsigned device_id,
                            struct lab_arena *arena, const char **ret_vendor,
                            const char **ret_name);
/* Fills names that hwloc didn't know. */
void topology_name_pci(struct topology *topology);
