/*
 * machine.c: questions that the plain data of a machine answers by itself.
 */
#include "model/machine.h"

#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"

#include <stdio.h>
#include <string.h>

/* How many CPUs from `at` on lie `stride` apart. */
static int run_length(const struct lab_cpus *cpus, int at, int stride) {
    int count = 1;
    while (at + count < cpus->count &&
           cpus->items[at + count] == cpus->items[at + count - 1] + stride)
        count++;
    return count;
}

void lab_cpus_write(const struct lab_cpus *cpus, struct lab_str *out) {
    if (cpus->count == 0)
        lab_str_add(out, "none");
    for (int i = 0; i < cpus->count;) {
        int first = cpus->items[i];
        int stride = i + 1 < cpus->count ? cpus->items[i + 1] - first : 1;
        int count = run_length(cpus, i, stride);
        if (count < (stride == 1 ? 2 : 4))
            count = 1; /* too short to be worth the notation */
        lab_str_printf(out, "%s%d", i ? "," : "", first);
        if (count > 1)
            lab_str_printf(out, "-%d", cpus->items[i + count - 1]);
        if (count > 1 && stride > 1)
            lab_str_printf(out, ":%d", stride);
        i += count;
    }
}

bool lab_cpus_contain(const struct lab_cpus *cpus, int cpu) {
    for (int i = 0; i < cpus->count; i++)
        if (cpus->items[i] == cpu)
            return true;
    return false;
}

/* --- identity: the hash of a text, so that fields can't run into each other --- */

/* Without the memory's size: the kernel's figure for it moves a little with every update. */
static void write_nodes(const struct lab_machine *machine, struct lab_str *out) {
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        lab_str_printf(out, "node %d ", node->number);
        lab_cpus_write(&node->cpus, out);
        for (int j = 0; j < machine->node_count; j++)
            lab_str_printf(out, " %d", lab_machine_distance(machine, i, j));
        lab_str_add(out, "\n");
    }
}

static void write_cores(const struct lab_machine *machine, struct lab_str *out) {
    for (int i = 0; i < machine->core_count; i++) {
        const struct lab_core *core = &machine->cores[i];
        lab_str_printf(out, "core %d %d ", core->package, core->node);
        lab_cpus_write(&core->cpus, out);
        lab_str_add(out, "\n");
    }
}

uint64_t lab_machine_identity(const struct lab_machine *machine) {
    LAB_AUTO(str, text);
    lab_str_printf(&text, "cpu %s\n", machine->cpu_model);
    write_nodes(machine, &text);
    write_cores(machine, &text);
    for (int i = 0; i < machine->pci_count; i++) {
        const struct lab_pci *pci = &machine->pci[i];
        if (pci->kind == LAB_PCI_GPU)
            lab_str_printf(&text, "gpu %s %04x:%04x %d\n", pci->address, pci->vendor_id,
                           pci->device_id, pci->node);
    }
    if (machine->simulated)
        lab_str_printf(&text, "simulated %016llx\n", (unsigned long long)machine->definition);
    return lab_hash_bytes(LAB_HASH_START, text.text, text.length);
}

/* --- places --- */

int lab_machine_node_index(const struct lab_machine *machine, int number) {
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].number == number)
            return i;
    return -1;
}

int lab_machine_distance(const struct lab_machine *machine, int from, int to) {
    if (from < 0 || from >= machine->node_count || to < 0 || to >= machine->node_count)
        return 0;
    return machine->distances[from * machine->node_count + to];
}

int lab_pci_shared_bridges(const struct lab_pci *a, const struct lab_pci *b) {
    int shared = 0;
    while (shared < a->bridge_count && shared < b->bridge_count &&
           a->bridges[shared] == b->bridges[shared])
        shared++;
    return shared;
}

/*
 * Both paths lead from the host bridge down. Below the last bridge that they share, a device on a
 * port of the same switch has that port only; anything longer is a further switch.
 */
static enum lab_link link_by_bridges(const struct lab_pci *a, const struct lab_pci *b) {
    int shared = lab_pci_shared_bridges(a, b);
    if (shared == 0)
        return LAB_LINK_UNKNOWN;
    if (shared == 1)
        return LAB_LINK_PHB;
    if (a->bridge_count - shared <= 1 && b->bridge_count - shared <= 1)
        return LAB_LINK_PIX;
    return LAB_LINK_PXB;
}

enum lab_link lab_machine_link(const struct lab_machine *machine, const struct lab_pci *a,
                               const struct lab_pci *b) {
    if (strcmp(a->address, b->address) == 0)
        return LAB_LINK_SELF;
    enum lab_link link = link_by_bridges(a, b);
    if (link != LAB_LINK_UNKNOWN)
        return link;
    bool one_node = machine->node_count == 1;
    if (!one_node && (a->node < 0 || b->node < 0))
        return LAB_LINK_UNKNOWN;
    if (!one_node && a->node != b->node)
        return LAB_LINK_SYS;
    /* one node: without bridges it could as well be nearer than that */
    return a->bridge_count > 0 && b->bridge_count > 0 ? LAB_LINK_NODE : LAB_LINK_UNKNOWN;
}

const char *lab_link_name(enum lab_link link) {
    static const char *const names[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};
    return names[link];
}

const char *lab_link_explanation(enum lab_link link) {
    static const char *const texts[] = {
        "the device itself",
        "at most one PCIe bridge",
        "several PCIe bridges, but not the host's",
        "the PCIe host bridge, usually the CPU",
        "several host bridges of one NUMA node",
        "the interconnect between NUMA nodes",
        "unknown to the topology",
    };
    return texts[link];
}

/* --- PCI devices --- */

bool lab_pci_is_gpu(const struct lab_pci *pci) {
    /* ASPEED, Matrox: management chips; Cirrus, Bochs, QXL, virtio, VMware: emulated */
    static const uint16_t plain[] = {0x1a03, 0x102b, 0x1013, 0x1234, 0x1b36, 0x1af4, 0x15ad};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (pci->vendor_id == plain[i])
            return false;
    return pci->kind == LAB_PCI_GPU;
}

const struct lab_pci *lab_machine_gpu(const struct lab_machine *machine, int number) {
    for (int i = 0; machine && number >= 0 && i < machine->pci_count; i++)
        if (lab_pci_is_gpu(&machine->pci[i]) && number-- == 0)
            return &machine->pci[i];
    return NULL;
}

static const char *name_prefix(const struct lab_pci *pci) {
    static const char *const prefixes[] = {"GPU", "NIC", "SSD", ""};
    return pci->kind == LAB_PCI_GPU && !lab_pci_is_gpu(pci) ? "VGA" : prefixes[pci->kind];
}

void lab_machine_pci_name(const struct lab_machine *machine, int index,
                          char ret_name[LAB_PCI_NAME_BYTES]) {
    const char *prefix = name_prefix(&machine->pci[index]);
    int number = 0;
    for (int i = 0; i < index; i++)
        number += lab_str_equal(name_prefix(&machine->pci[i]), prefix);
    if (*prefix)
        snprintf(ret_name, LAB_PCI_NAME_BYTES, "%s%d", prefix, number);
    else
        ret_name[0] = '\0';
}

struct lab_value *lab_cpus_value(const struct lab_cpus *cpus, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < cpus->count; i++)
        lab_value_append(arena, list, lab_value_int(arena, cpus->items[i]));
    return list;
}
