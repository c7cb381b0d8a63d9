/*
 * pci.c: PCI devices, the node each belongs to, and the bridges above it.
 *
 * Which node: the kernel's word (sysfs numa_node) goes first, where this is the machine itself and
 * the word isn't -1. Otherwise hwloc's place for the device counts, if the cores near that place
 * belong to one node only. A device of which the firmware says nothing hangs below the whole
 * machine: with several nodes that have cores its node is unknown (-1); with one there is no other
 * place that it could be near to.
 */
#include "base/file/file.h"
#include "machine/topology.h"

static enum lab_pci_kind kind_of(unsigned class_id) {
    switch (class_id >> 8) {
    case 0x03: /* display, 3D */
    case 0x12: /* processing accelerator */
        return LAB_PCI_GPU;
    case 0x02:
        return LAB_PCI_NETWORK;
    case 0x01:
        return LAB_PCI_STORAGE;
    default:
        return class_id == 0x0c06 ? LAB_PCI_NETWORK : LAB_PCI_OTHER; /* InfiniBand, the old class */
    }
}

/* --- node --- */

static int node_from_kernel(const struct lab_machine *machine, const char *address) {
    char path[80];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", address);
    int64_t number;
    if (lab_file_read_int(path, &number) < 0 || number < 0)
        return -1;
    return lab_machine_node_index(machine, (int)number);
}

static int node_from_place(struct topology *topology, hwloc_obj_t device) {
    const struct lab_machine *machine = &topology->machine;
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology->hwloc, device);
    int found = -1;
    for (int i = 0; i < machine->node_count; i++) {
        const struct lab_node *node = &machine->nodes[i];
        bool covered = place->nodeset && hwloc_bitmap_isset(place->nodeset, (unsigned)node->number);
        if (!covered || (node->cpus.count == 0 && machine->node_count > 1))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* --- one device --- */

/* Its address; a host bridge has none. */
static const char *bridge_name(struct topology *topology, hwloc_obj_t bridge) {
    const struct hwloc_pcidev_attr_s *pci = &bridge->attr->bridge.upstream.pci;
    if (bridge->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
        return lab_arena_printf(&topology->arena, "host%u", bridge->logical_index);
    return lab_arena_printf(&topology->arena, "%04x:%02x:%02x.%01x", (unsigned)pci->domain,
                            (unsigned)pci->bus, (unsigned)pci->dev, (unsigned)pci->func);
}

static void read_bridges(struct topology *topology, hwloc_obj_t device, struct lab_pci *pci) {
    int count = 0;
    for (hwloc_obj_t above = device->parent; above; above = above->parent)
        count += above->type == HWLOC_OBJ_BRIDGE;
    pci->bridges = lab_arena_alloc(&topology->arena, (size_t)count + 1, sizeof *pci->bridges);
    pci->bridge_names =
        lab_arena_alloc(&topology->arena, (size_t)count + 1, sizeof *pci->bridge_names);
    pci->bridge_count = count;
    for (hwloc_obj_t above = device->parent; above; above = above->parent)
        if (above->type == HWLOC_OBJ_BRIDGE) {
            pci->bridges[--count] = (int)above->logical_index;
            pci->bridge_names[count] = bridge_name(topology, above);
        }
}

/* The name that a person knows: eth0 rather than mlx5_0, card0 rather than renderD128. */
static int os_name_rank(const struct hwloc_obj *os_device) {
    switch (os_device->attr->osdev.type) {
    case HWLOC_OBJ_OSDEV_COPROC:
        return 4;
    case HWLOC_OBJ_OSDEV_NETWORK:
    case HWLOC_OBJ_OSDEV_BLOCK:
        return 3;
    case HWLOC_OBJ_OSDEV_GPU:
        return strncmp(os_device->name, "card", 4) == 0 ? 2 : 1;
    default:
        return 0;
    }
}

static const char *os_name_of(struct topology *topology, hwloc_obj_t device) {
    hwloc_obj_t best = NULL;
    for (hwloc_obj_t child = device->io_first_child; child; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->name &&
            (!best || os_name_rank(child) > os_name_rank(best)))
            best = child;
    return best ? lab_arena_strdup(&topology->arena, best->name) : "";
}

static const char *info_of(struct topology *topology, hwloc_obj_t device, const char *key) {
    const char *value = hwloc_obj_get_info_by_name(device, key);
    return value ? lab_arena_strdup(&topology->arena, value) : "";
}

static void read_device(struct topology *topology, hwloc_obj_t device, struct lab_pci *pci) {
    const struct hwloc_pcidev_attr_s *attr = &device->attr->pcidev;
    snprintf(pci->address, sizeof pci->address, "%04x:%02x:%02x.%01x", attr->domain, attr->bus,
             attr->dev, attr->func & 7u);
    pci->kind = kind_of(attr->class_id);
    pci->class_id = attr->class_id;
    pci->vendor_id = attr->vendor_id;
    pci->device_id = attr->device_id;
    pci->vendor = info_of(topology, device, "PCIVendor");
    pci->name = info_of(topology, device, "PCIDevice");
    pci->os_name = os_name_of(topology, device);
    pci->link_gbs = attr->linkspeed > 0 ? (double)attr->linkspeed : 0;
    pci->node =
        topology->machine.recorded ? -1 : node_from_kernel(&topology->machine, pci->address);
    if (pci->node < 0)
        pci->node = node_from_place(topology, device);
    read_bridges(topology, device, pci);
}

static int by_address(const void *a, const void *b) {
    return strcmp(((const struct lab_pci *)a)->address, ((const struct lab_pci *)b)->address);
}

void topology_read_pci(struct topology *topology) {
    struct lab_machine *machine = &topology->machine;
    int count = hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_PCI_DEVICE);
    if (count <= 0)
        return;
    machine->pci = lab_arena_alloc(&topology->arena, (size_t)count, sizeof *machine->pci);
    for (int i = 0; i < count; i++) {
        hwloc_obj_t device =
            hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PCI_DEVICE, (unsigned)i);
        read_device(topology, device, &machine->pci[machine->pci_count++]);
    }
    qsort(machine->pci, (size_t)count, sizeof *machine->pci, by_address);
    topology_name_pci(topology);
}
