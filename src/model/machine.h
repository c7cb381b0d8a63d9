/*
 * model/machine.h: a machine as plain data: NUMA nodes, cores, caches, PCI devices and what lies
 * between them. `src/machine` fills it from this computer or from a recorded topology; everything
 * later only reads it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lab_arena;
struct lab_str;
struct lab_value;

struct lab_cpus { /* logical CPUs by the kernel's number, ascending */
    int *items;
    int count;
};

struct lab_core {
    int node;             /* index into nodes, -1 = unknown */
    int package;          /* socket, from 0 */
    struct lab_cpus cpus; /* its hardware threads */
};

struct lab_node {
    int number;           /* the kernel's: what numactl and `numa_nodes` mean */
    struct lab_cpus cpus; /* empty for a node with memory only */
    int core_count;
    int64_t memory_bytes;
    int64_t free_bytes; /* when the machine was read; -1 = unknown (a recorded topology) */
};

struct lab_cache {
    int level;
    char kind; /* 'd', 'i', 'u' */
    int64_t size_bytes;
    int line_bytes;
    int count;           /* how many such caches */
    int shared_by_cores; /* cores on each */
};

enum lab_pci_kind {
    LAB_PCI_GPU, /* display or 3D controller, processing accelerator */
    LAB_PCI_NETWORK,
    LAB_PCI_STORAGE,
    LAB_PCI_OTHER,
};

struct lab_pci {
    char address[16]; /* "0000:3b:00.0", lower case */
    enum lab_pci_kind kind;
    uint16_t class_id, vendor_id, device_id;
    const char *vendor, *name; /* may be "" */
    const char *os_name;       /* "eth0", "nvme0n1", "card0", "cuda0"; may be "" */
    int node;                  /* index into nodes; -1 = the firmware doesn't say */
    double link_gbs;           /* GB/s as hwloc reports it; 0 = unknown */
    /* bridges above it, from the host bridge down to the nearest; ids are equal where shared */
    int *bridges;
    const char **bridge_names; /* "0000:3a:00.0", or a simulated link's; NULL = not known */
    int bridge_count;          /* 0 = not known */
};

/* How two PCI devices reach each other; nvidia-smi's words, from near to far. */
enum lab_link {
    LAB_LINK_SELF,
    LAB_LINK_PIX,     /* one PCIe bridge between them at most */
    LAB_LINK_PXB,     /* several bridges, but not the host's */
    LAB_LINK_PHB,     /* the host bridge */
    LAB_LINK_NODE,    /* several host bridges of one NUMA node */
    LAB_LINK_SYS,     /* another NUMA node */
    LAB_LINK_UNKNOWN, /* the topology doesn't tell */
};

struct lab_machine {
    const char *source;  /* "this machine", or the topology file's path */
    bool recorded;       /* from a file: nothing can be bound or measured */
    bool simulated;      /* described rather than read: it exists as a model alone; also recorded */
    uint64_t definition; /* simulated: a hash of the description; part of the identity */
    bool binds_itself;   /* simulated: memory that nothing binds is on the device's NUMA node */
    const char *host;    /* may be "" */
    const char *cpu_model; /* may be "" */
    int package_count;
    struct lab_core *cores;
    int core_count;
    struct lab_node *nodes; /* ascending by number; never empty */
    int node_count;
    bool numa_in_kernel; /* false: one node stands for the whole machine */
    int *distances;      /* node_count², row = from; 0 = unknown; 10 on the diagonal */
    struct lab_cache *caches;
    int cache_count;
    struct lab_pci *pci; /* ascending by address */
    int pci_count;
};

/* "0-15,64-79"; a regular stride as taskset writes it, "0-62:2". "none" for no CPU at all. */
void lab_cpus_write(const struct lab_cpus *cpus, struct lab_str *out);
bool lab_cpus_contain(const struct lab_cpus *cpus, int cpu);
struct lab_value *lab_cpus_value(const struct lab_cpus *cpus, struct lab_arena *arena); /* a list */

/*
 * A hash that is the same as long as what is measured here means the same: CPU model, cores and
 * memory nodes with their CPUs and distances, GPUs by address and model. Free memory, the host's
 * name and network cards don't count.
 */
uint64_t lab_machine_identity(const struct lab_machine *machine);

/* Index into nodes of the kernel's node number, or -1. */
int lab_machine_node_index(const struct lab_machine *machine, int number);

/* The kernel's distance (10 = local), 0 if unknown; arguments are indices. */
int lab_machine_distance(const struct lab_machine *machine, int from, int to);

/* A GPU that computes: graphics of a server's management chip or of an emulator are none. */
bool lab_pci_is_gpu(const struct lab_pci *pci);
/* The number-th of those, in PCI order; NULL = there is none, or no machine. */
const struct lab_pci *lab_machine_gpu(const struct lab_machine *machine, int number);

#define LAB_PCI_NAME_BYTES 16
/*
 * "GPU0", "NIC1", "SSD0", "VGA0" (graphics that don't compute): the index counts devices of that
 * kind in PCI order, so that GPU0 is what CUDA calls 0. Other kinds: "".
 */
void lab_machine_pci_name(const struct lab_machine *machine, int index,
                          char ret_name[LAB_PCI_NAME_BYTES]);

/*
 * A switch is one bridge here, as for nvidia-smi, although it shows as an upstream port with
 * downstream ports below: two devices on ports of one switch are PIX. NODE and SYS need the nodes
 * of both devices; on a machine with one node there is only that.
 */
enum lab_link lab_machine_link(const struct lab_machine *machine, const struct lab_pci *a,
                               const struct lab_pci *b);
/* How many bridges both have above them, the host's among them; 0 = none, or not known. */
int lab_pci_shared_bridges(const struct lab_pci *a, const struct lab_pci *b);
const char *lab_link_name(enum lab_link link);        /* "PIX"; "X" for self, "?" for unknown */
const char *lab_link_explanation(enum lab_link link); /* "at most one PCIe bridge" */
